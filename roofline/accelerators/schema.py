"""The format of hardware files, as pydantic models: strict numbers, no unknown keys, a source for every number.

Imported only when a user's file is read, when the JSON Schema is printed, and by the tests.  A run as a module
rewrites what is derived from it and from hardware.yaml: docs/hardware.schema.json and the JSON copy of the data.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, create_model, model_validator

from roofline.accelerators.parts import PRECISIONS, Accelerator, build
from roofline.accelerators.schema_errors import first_mistake, near, spelled
from roofline.accelerators.sourcing import Lines, matches, numbers
from roofline.accelerators.store import CACHE, builtin, builtin_path, parse_builtin
from roofline.errors import BadFile
from roofline.safe_yaml import parse_json, parse_yaml, read_text

Number = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True, gt=0)]
Text = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=2000)]
Address = Annotated[str, StringConstraints(strict=True, pattern=r"^(https?://|file:|doi:|arXiv:).+", max_length=2000)]
Kind = Literal["datasheet", "measured", "reported", "derived"]
Id = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.]*(-[a-z0-9.]+)*$", max_length=80)]
Key = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]+_(flop_per_s|byte_per_s|bytes|mfu)$", max_length=80)]
Pattern = Annotated[
    str, StringConstraints(pattern=r"^[^*,\s]*\*?[^*,\s]*(,\s*[^*,\s]*\*?[^*,\s]*)*$", min_length=1, max_length=1000)
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SourceLine(_Strict):
    """Where numbers come from.  `field` lists dotted fields, comma-separated, each with at most one `*`."""

    field: Pattern
    value: Text = Field(description="the number as the source prints it")
    url: Address | None = Field(None, description="public address; without one the line needs unsourced: true")
    kind: Kind
    via: Text | None = Field(None, description="the copy that was read instead of the page at url")
    unsourced: Literal[True, None] = Field(None, description="no public address is known: the number makes no roof")

    @model_validator(mode="after")
    def _addressed(self) -> SourceLine:
        if (self.url is None) != (self.unsourced is True):
            raise ValueError("without url" if self.url is None else "with url that calls itself unsourced")
        return self


class RoofLine(_Strict):
    """A pair of peak and bandwidth as a source uses it."""

    precision: Literal[PRECISIONS]  # type: ignore[valid-type]
    peak_flop_per_s: Number
    bandwidth_byte_per_s: Number
    url: Address
    kind: Kind
    note: Text | None = None


class Price(_Strict):
    """US dollars per device and hour: a dated assumption, never part of a roof."""

    usd_per_gpu_hour: Number
    basis: Text
    url: Address
    kind: Kind
    as_of: Text


def _record(title: str, doc: str, /, **fields: Any) -> Any:
    """A strict model in which every field may be missing ("not sourced"), but none may be null."""
    optional = {key: (kind, None) for key, kind in fields.items()}
    return create_model(title, __base__=_Strict, __doc__=doc, **optional)  # type: ignore[call-overload]


_RATES = dict.fromkeys(PRECISIONS, Number)
_ENGINES = {"fp32_vector_engine": Number, "fp32_scalar_engine": Number}
_LINK = {"name": Text, "per_direction_byte_per_s": Number}
_CACHE = dict.fromkeys(("l2_bytes", "l2_bandwidth_byte_per_s", "llc_bytes", "llc_bandwidth_byte_per_s"), Number)
_ONCHIP = (
    "l1_shared_bytes_per_cu",
    "lds_bytes_per_cu",
    "shared_bytes_per_cu",
    "sram_bytes",
    "sram_bandwidth_byte_per_s",
    "vmem_bytes",
)
Part: Any = _record(
    "Part",
    "One accelerator.  SI base units by suffix; a missing key means: not sourced.",
    **dict.fromkeys(
        ("vendor", "name", "architecture", "form_factor", "status", "memory_type", "capacity_basis", "fp4_format"), Text
    ),
    release_year=Count,
    compute_units=_record("ComputeUnits", "How many cores of which kind.", count=Count, kind=Text),
    capacity_bytes=Number,
    bandwidth_byte_per_s=Number,
    peak_flop_per_s=_record("Peaks", "Dense matrix-engine rates by precision, one multiply-add = 2.", **_RATES),
    vector_peak_flop_per_s=_record(
        "VectorPeaks", "Rates of the units that are no matrix engine.", **_RATES, **_ENGINES
    ),
    vendor_sparse_flop_per_s=_record("SparsePeaks", "What a vendor prints with sparsity; never a roof.", **_RATES),
    exp_rate_per_s=Number,
    roofs=dict[Id, RoofLine],
    achievable=dict[Key, Number],
    cache=_record("Cache", "Caches: sizes in bytes, rates in bytes per second.", **_CACHE),
    onchip=_record("OnChip", "Memory inside the compute units.", **dict.fromkeys(_ONCHIP, Number)),
    scale_up=_record(
        "ScaleUp", "Links to other devices, one direction.", **_LINK, domain_size=Count, vendor_quote=Text
    ),
    scale_out=_record("ScaleOut", "Network of one device, one direction.", per_direction_byte_per_s=Number, nic=Text),
    host_link=_record("HostLink", "Link to the host, one direction, raw signalling rate.", **_LINK),
    host_memory=_record(
        "HostMemory", "Host memory for one device.", bytes_per_device=Number, bandwidth_byte_per_s=Number, type=Text
    ),
    tdp_watts=Number,
    price=list[Price],
    flags=list[Text],
    override=Annotated[bool, Field(strict=True)],
    sources=list[SourceLine],
)


class HardwareFile(_Strict):
    """A hardware file: accelerators by kebab-case id."""

    accelerators: Annotated[dict[Id, Part], Field(min_length=1)]
    meta: dict[str, Any] | None = None


class Report(NamedTuple):
    """What `roofline hardware validate` says of a valid file: its parts, and (dotted path, text) warnings."""

    accelerators: tuple[Accelerator, ...]
    warnings: tuple[tuple[str, str], ...]


class Found(NamedTuple):
    """The entries of a valid file as plain data, its warnings, and a short sha256 of its text."""

    entries: dict[str, dict[str, Any]]
    warnings: tuple[tuple[str, str], ...]
    digest: str


def validate(path: str) -> Report:
    """Check a hardware file.  Raises BadFile (exit code 3) with the dotted path of the first mistake."""
    found = read(path)
    parts = tuple(build(part_id, entry, path) for part_id, entry in found.entries.items())
    return Report(parts, found.warnings)


def read(path: str) -> Found:
    """The entries of a user's file (YAML, or JSON by its name), validated.  Raises BadFile (exit code 3)."""
    from hashlib import sha256

    text = read_text(path)
    entries = checked(parse_json(text, path) if path.lower().endswith(".json") else parse_yaml(text, path), path)
    return Found(entries, tuple(_sparse_warnings(entries)), sha256(text.encode()).hexdigest()[:12])


def checked(document: Any, file: str) -> dict[str, dict[str, Any]]:
    """The entries of a document in the form above.  Raises BadFile."""
    try:
        HardwareFile.model_validate(document)
    except ValidationError as error:
        raise first_mistake(error, file, HardwareFile) from None
    entries: dict[str, dict[str, Any]] = document["accelerators"]
    for part_id, entry in entries.items():
        _check_sources(part_id, entry, file)
    return entries


def _check_sources(part_id: str, entry: Mapping[str, Any], file: str) -> None:
    """Every number needs a source line, and every source line a number."""
    lines = Lines(build(part_id, entry).sources)
    fields = dict(numbers(entry))
    for field, value in fields.items():
        if lines.best(field) is None:
            wanted = f"a line under sources with field: {field}, value, url and kind"
            raise BadFile(file, f"accelerators.{part_id}.{field}", f"{value:g} without a source", wanted)
    for index, line in enumerate(entry.get("sources") or ()):
        for pattern in (p.strip() for p in line["field"].split(",")):
            if not any(matches(field, pattern) for field in fields):
                where = f"accelerators.{part_id}.sources[{index}].field"
                raise BadFile(file, where, pattern, "a number of this part", near(pattern, fields))


# --- sparse peaks -------------------------------------------------------------------------------------------------


def _sparse_warnings(entries: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Peaks that are exactly twice a dense peak that is known: vendors print the sparse number first."""
    known = {i: (e.get("vendor", "").lower(), e.get("peak_flop_per_s", {})) for i, e in builtin()[0].items()}
    vendors = {vendor for vendor, _ in known.values()}
    for part_id, entry in entries.items():
        own = entry.get("vendor", "").lower()
        peers = {i: peaks for i, (vendor, peaks) in known.items() if own not in vendors or vendor == own}
        for precision, peak in entry.get("peak_flop_per_s", {}).items():
            twins = [i for i, peaks in peers.items() if _is_twice(peak, peaks.get(precision))]
            if twins:
                names = ", ".join(twins[:4]) + (", ..." if len(twins) > 4 else "")
                dense = spelled(peers[twins[0]][precision])
                text = f"{spelled(peak)} is twice the dense {precision} peak of {names} ({dense}); "
                advice = "if the vendor prints it 'with sparsity', halve it"
                yield f"accelerators.{part_id}.peak_flop_per_s.{precision}", text + advice


def _is_twice(peak: float, dense: float | None) -> bool:
    """Exactly 2x, up to the rounding of datasheets (1979 against 2 x 989.4)."""
    return dense is not None and math.isclose(peak, 2 * dense, rel_tol=1e-3)


# --- what is derived from this file and from hardware.yaml --------------------------------------------------------


def json_schema() -> dict[str, Any]:
    """The JSON Schema of hardware files."""
    schema: dict[str, Any] = _without_nulls(HardwareFile.model_json_schema())
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "roofline hardware file"
    line = schema["$defs"]["SourceLine"]
    line["anyOf"] = [
        {"required": ["url"], "properties": {"url": {"type": "string"}}},
        {"required": ["unsourced"], "properties": {"unsourced": {"const": True}}},
    ]
    return schema


def _without_nulls(node: Any) -> Any:
    """Drop `default: null`: a key that may be missing may still not be null."""
    if isinstance(node, dict):
        return {key: _without_nulls(value) for key, value in node.items() if not (key == "default" and value is None)}
    return [_without_nulls(item) for item in node] if isinstance(node, list) else node


def cache_text() -> str:
    """The JSON copy of the built-in file, with what tells whether it is fresh."""
    import json
    from zlib import crc32

    with open(builtin_path(), "rb") as file:
        data = file.read().replace(b"\r\n", b"\n")
    entries, digest = parse_builtin(data)
    copy = {"crc32": crc32(data), "size": len(data), "sha256": digest, "accelerators": entries}
    return json.dumps(copy, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"


def schema_path() -> str:
    """docs/hardware.schema.json of a checkout."""
    return os.path.join(os.path.dirname(builtin_path()), "docs", "hardware.schema.json")


def schema_text() -> str:
    """The text of docs/hardware.schema.json."""
    import json

    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Rewrite the schema and the JSON copy."""
    for path, text in ((schema_path(), schema_text()), (CACHE, cache_text())):
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)


if __name__ == "__main__":
    main()
