"""`roofline hardware`: the accelerators, one of them in full, validation of a user's file, and the schema."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from roofline.accelerators import Accelerator
from roofline.answer import Answer, Column, Section
from roofline.answers.common import chosen
from roofline.units import show

_LIST = (
    Column("hardware", "id"),
    Column("name", "name"),
    Column("vendor", "vendor"),
    Column("precision", "precision"),
    Column("peak_flop_per_s", "peak", "TFLOP/s", scale=1e12),
    Column("bandwidth_byte_per_s", "bandwidth", "TB/s", scale=1e12),
    Column("ridge_flop_per_byte", "ridge", "FLOP/B"),
    Column("capacity_bytes", "capacity", "GB", scale=1e9),
    Column("roofs", "roofs"),
)
_ROOFS = (
    Column("roof", "roof"),
    Column("precision", "precision"),
    Column("peak_flop_per_s", "peak", "TFLOP/s", scale=1e12),
    Column("bandwidth_byte_per_s", "bandwidth", "TB/s", scale=1e12),
    Column("ridge_flop_per_byte", "ridge", "FLOP/B"),
    Column("kind", "kind"),
    Column("source", "source"),
)


def hardware(name: str | None = None, files: Any = ()) -> Answer:
    """All accelerators, or one in full.

    Parameters: name, an id (None lists all); files, YAML files with parts of one's own to add.

    >>> hardware("h800-sxm").data["name"]
    'H800 SXM5 80GB'
    """
    asked = chosen([*([name] if name else ["all"]), *files])
    return _one(asked.parts[0], asked) if name else _all(asked)


def _all(asked: Any) -> Answer:
    rows = [_list_row(part) for part in asked.parts]
    missing = [r["hardware"] for r in rows if r["ridge_flop_per_byte"] is None]
    notes = (
        "Dense peaks at bf16, or fp16 where a part has no bf16; a dash is a number without a sourced "
        "address, not zero.",
        f"{len(rows)} parts, {len(missing)} without a sourced ridge: {', '.join(missing)}.",
    )
    return Answer(
        "hardware", {"rows": rows}, _LIST, title="Accelerators", notes=asked.warnings + notes, digest=asked.digest
    )


def _list_row(part: Accelerator) -> dict[str, Any]:
    usual = [r for r in part.roofs if r.precision == part.ridge_precision]
    sheet = next((r for r in usual if r.name == "datasheet"), None)
    return {
        "hardware": part.id,
        "name": part.name,
        "vendor": part.vendor,
        "precision": part.ridge_precision,
        "peak_flop_per_s": part.peaks.get(part.ridge_precision),
        "bandwidth_byte_per_s": part.bandwidth,
        "ridge_flop_per_byte": sheet.ridge if sheet else None,
        "capacity_bytes": part.capacity_bytes,
        "roofs": [r.name for r in usual],
        "flags": list(part.flags),
    }


def _one(part: Accelerator, asked: Any) -> Answer:
    roofs = [
        {
            "roof": r.name,
            "precision": r.precision,
            "peak_flop_per_s": r.peak,
            "bandwidth_byte_per_s": r.bandwidth,
            "ridge_flop_per_byte": r.ridge,
            "kind": r.kind,
            "source": r.source,
            "note": r.note,
        }
        for r in part.roofs
        if r.has_rates
    ]
    sources = [s._asdict() for s in part.sources]
    data = {
        "hardware": part.id,
        "name": part.name,
        "vendor": part.vendor,
        "architecture": part.architecture,
        "roofs": roofs,
        "capacity_bytes": part.capacity_bytes,
        "exp_rate_exp_per_s": part.exp_rate,
        "link_bandwidth_byte_per_s": part.link,
        "achievable": dict(part.achievable),
        "flags": list(part.flags),
        "sources": sources,
        "skipped_reason": part.skipped_reason,
        "unsourced": list(part.unsourced),
        "entry": deepcopy(dict(part.raw)),  # the part and its entry are shared by all who ask
    }
    facts = [
        f"{label}: {show(value, unit)}"
        for label, value, unit in (
            ("Capacity", part.capacity_bytes, "B"),
            ("Exponentials", part.exp_rate, "exp/s"),
            ("Link, one direction", part.link, "B/s"),
        )
        if value
    ]
    facts += [f"Flag: {flag}" for flag in part.flags]
    facts += [f"No ridge: {part.skipped_reason}"] if part.skipped_reason else []
    lines = tuple(f"{s.field}: {s.value} ({s.kind}) {s.url or 'unsourced'}" for s in part.sources)
    return Answer(
        "hardware-part",
        data,
        _ROOFS,
        table="roofs",
        title=f"{part.name} ({part.id})",
        notes=(*asked.warnings, *facts),
        sections=(Section("Sources", lines),),
        digest=asked.digest,
    )


def validate(path: str) -> Answer:
    """Read a user's hardware file as `--hardware FILE` does and say what it holds; raises BadFile where it "
    "is invalid."""
    from roofline.accelerators.schema import validate as check_file

    report = check_file(path)
    warnings = [{"where": where, "warning": text} for where, text in report.warnings]
    data = {"file": path, "accelerators": [part.id for part in report.accelerators], "rows": warnings}
    columns = (Column("where", "place"), Column("warning", "warning"))
    return Answer(
        "hardware-validate",
        data,
        columns,
        title=f"{path}: {len(data['accelerators'])} accelerators, valid, {len(warnings)} warnings",
    )


def schema() -> dict[str, Any]:
    """The JSON Schema of a hardware file."""
    from roofline.accelerators.schema import json_schema

    return json_schema()
