"""Accelerators as rows with their sources, ridge points at one precision and roof, and two parts compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from roofline.accelerators import Accelerator, Roof
from roofline.accelerators.parts import PRECISIONS
from roofline.answer import Answer, Column
from roofline.answers.common import Parts, chosen
from roofline.errors import UnknownName

_COLUMNS = (
    Column("hardware", "id"),
    Column("name", "name"),
    Column("vendor", "vendor"),
    Column("precision", "precision"),
    Column("peak_flop_per_s", "peak", "TFLOP/s", scale=1e12),
    Column("bandwidth_byte_per_s", "bandwidth", "TB/s", scale=1e12),
    Column("ridge_flop_per_byte", "ridge", "FLOP/B"),
    Column("capacity_bytes", "capacity", "GB", scale=1e9),
    Column("link_bandwidth_byte_per_s", "link, one direction", "GB/s", scale=1e9),
    Column("exp_rate_exp_per_s", "exponentials", "Texp/s", scale=1e12),
    Column("kind", "kind"),
    Column("source", "source"),
    Column("flags", "flags"),
)
_COMPARED = (
    Column("quantity", "quantity"),
    Column("unit", "unit"),
    Column("first", "first", "1"),
    Column("second", "second", "1"),
    Column("ratio", "second / first", "1", show=lambda v: f"{v:.3f}"),
)
MISSING = "A dash is a number without a sourced address, not zero."


def hardware_table(files: Any = (), *, precision: str = "bf16", roof: str = "datasheet") -> Answer:
    """Every accelerator with its rates, the ridge point of a roof at a precision, and where the numbers come from.

    Parameters: files, YAML files or Accelerators to add; precision, bf16 (fp16 stands in where a part has none) or
    another one; roof, a name.  Parts without that roof have no ridge.  `source` is that of the roof, else of the
    bandwidth; `kind` is how its numbers were had.

    >>> [round(r["ridge_flop_per_byte"], 1) for r in hardware_table().rows if r["hardware"] == "h800-sxm"]
    [295.3]
    """
    if precision not in PRECISIONS:
        raise UnknownName("precision", precision, PRECISIONS)
    parts = chosen(["all", *files])
    rows = [_row(part, precision, roof) for part in parts.parts]
    with_ridge = [row for row in rows if row["ridge_flop_per_byte"] is not None]
    notes = (
        *parts.warnings,
        f"Roof {roof} at {precision}: {len(with_ridge)} of {len(rows)} parts have it. Dense peaks. {MISSING}",
    )
    data = {"rows": rows, "precision": precision, "roof": roof, "with_ridge": len(with_ridge)}
    title = f"Ridge points at {precision}, roof {roof}"
    return Answer("hardware-table", data, _COLUMNS, title=title, notes=notes, digest=parts.digest)


def choices(files: Any = ()) -> dict[str, list[str]]:
    """What the table can be asked for: precisions and roofs that some part has, vendors.

    >>> choices()["roof"][:2]
    ['datasheet', 'practical']
    """
    parts = chosen(["all", *files]).parts
    roofs = [roof for part in parts for roof in part.roofs]
    found = {roof.precision for roof in roofs}
    return {
        "precision": [p for p in PRECISIONS if p in found],
        "roof": list(dict.fromkeys(("datasheet", "practical", *sorted({roof.name for roof in roofs})))),
        "vendor": sorted({part.vendor for part in parts if part.vendor}),
    }


def compare_parts(first: str | Accelerator, second: str | Accelerator) -> Answer:
    """Two accelerators, number by number, with the second's over the first's.

    >>> rows = compare_parts("h100-sxm", "h200-sxm").rows
    >>> [round(r["ratio"], 3) for r in rows if r["quantity"] == "bandwidth"]
    [1.433]
    """
    parts = chosen([first, second])
    a, b = _both(parts, first, second)
    rows = []
    theirs = {name: (unit, value, scale) for name, unit, value, scale in _numbers(b)}
    mine = {name: (unit, value, scale) for name, unit, value, scale in _numbers(a)}
    for name in dict.fromkeys((*mine, *theirs)):
        unit, _, scale = mine.get(name) or theirs[name]
        left, right = (side[name][1] if name in side else None for side in (mine, theirs))
        rows.append(
            {
                "quantity": name,
                "unit": unit,
                "first": left / scale if left else None,
                "second": right / scale if right else None,
                "ratio": right / left if left and right else None,
            }
        )
    data = {"rows": rows, "hardware": [a.id, b.id]}
    return Answer(
        "hardware-compare",
        data,
        _COMPARED,
        title=f"{a.name} and {b.name}",
        notes=(*parts.warnings, "Datasheet, dense peaks. " + MISSING),
        digest=parts.digest,
    )


def _both(parts: Parts, first: Any, second: Any) -> tuple[Accelerator, Accelerator]:
    """The two parts in the order asked for; the same part twice is fine."""
    if len(parts.parts) == 1:
        return parts.parts[0], parts.parts[0]
    if isinstance(first, Accelerator) and not isinstance(second, Accelerator):  # names come before parts that are given
        return parts.parts[1], parts.parts[0]
    return parts.parts[0], parts.parts[1]


def _numbers(part: Accelerator) -> Iterator[tuple[str, str, float | None, float]]:
    """(quantity, unit, value in SI, scale) of what two parts are compared by."""
    for precision in PRECISIONS:
        if precision in part.peaks:
            yield f"peak {precision}", "TFLOP/s", part.peaks[precision], 1e12
    yield "bandwidth", "TB/s", part.bandwidth, 1e12
    yield "capacity", "GB", part.capacity_bytes, 1e9
    yield "link, one direction", "GB/s", part.link, 1e9
    yield "exponentials", "Texp/s", part.exp_rate, 1e12
    for roof in part.roofs:
        if roof.has_rates:
            yield f"ridge {roof.name} {roof.precision}", "FLOP/B", roof.ridge, 1.0


def _row(part: Accelerator, precision: str, name: str) -> dict[str, Any]:
    used = part.ridge_precision if precision == "bf16" else precision
    roof = next((r for r in part.roofs if r.name == name and r.precision == used and r.has_rates), None)
    return {
        "hardware": part.id,
        "name": part.name,
        "vendor": part.vendor,
        "architecture": part.architecture,
        "precision": used,
        "peak_flop_per_s": roof.peak if roof else part.peaks.get(used),
        "bandwidth_byte_per_s": roof.bandwidth if roof else part.bandwidth,
        "ridge_flop_per_byte": roof.ridge if roof else None,
        "capacity_bytes": part.capacity_bytes,
        "link_bandwidth_byte_per_s": part.link,
        "exp_rate_exp_per_s": part.exp_rate,
        "kind": roof.kind if roof else None,
        "source": _source(part, roof),
        "flags": list(_flags(part, roof)),
        "origin": part.origin,
    }


def _source(part: Accelerator, roof: Roof | None) -> str | None:
    """The address of the roof's numbers (the first of them), else of the bandwidth."""
    if roof is not None:
        return roof.source.partition(" ; ")[0] or None
    line = part.source_of("bandwidth_byte_per_s")
    return line.url if line is not None and line.url else None


def _flags(part: Accelerator, roof: Roof | None) -> Iterable[str]:
    """The entry's own flags, and why there is no ridge."""
    yield from part.flags
    if roof is None and part.skipped_reason:
        yield f"no ridge: {part.skipped_reason}"
    if part.fp16_for_bf16:
        yield "fp16 stands in for bf16"
