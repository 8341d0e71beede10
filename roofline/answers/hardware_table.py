"""Accelerators as rows with their sources, ridge points at one precision and roof, and two parts compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from roofline.accelerators import Accelerator, Catalog, Roof, load_catalog, resolve
from roofline.accelerators.parts import PRECISIONS
from roofline.answer import Answer, Column
from roofline.answers.common import chosen
from roofline.errors import BadValue, UnknownName

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
    Column("ratio", "second / first", "1"),
)
COMPARED = ("first", "second")  # the columns that are headed by ids
MISSING = "A dash is a number without a sourced address, not zero."


def hardware_table(
    files: Any = (), *, precision: str = "bf16", roof: str = "datasheet", vendor: Any = (), search: str = ""
) -> Answer:
    """Every accelerator with its rates, the ridge point of a roof at a precision, and where the numbers come from.

    Parameters: files, YAML files or Accelerators to add; precision, bf16 (fp16 stands in where a part has none) or
    another one; roof, a name; vendor, one or several to keep; search, part of an id, a name, an architecture or a flag.
    Parts without that roof have no ridge, and no rates of another one.  `source` is that of the roof (datasheet: else
    of the bandwidth); `kind` is how its numbers were had.

    >>> [round(r["ridge_flop_per_byte"], 1) for r in hardware_table(search="h800").rows]
    [295.3]
    """
    parts = chosen(["all", *files])
    known = _choices(parts.parts)
    vendors = [vendor] if isinstance(vendor, str) else list(vendor)
    for name, values in (("precision", [precision]), ("roof", [roof]), ("vendor", vendors)):
        for value in values:
            if value not in known[name]:
                raise UnknownName(name, value, known[name])
    rows = [_row(part, precision, roof) for part in parts.parts]
    kept = [row for row in rows if _passes(row, vendors, search)]
    with_ridge = [row for row in kept if row["ridge_flop_per_byte"] is not None]
    notes = (
        *parts.warnings,
        f"Roof {roof} at {precision}: {len(with_ridge)} of {len(kept)} parts have it. Dense peaks. {MISSING}",
    )
    data = {
        "rows": kept,
        "precision": precision,
        "roof": roof,
        "vendor": vendors,
        "search": search,
        "parts": len(rows),
        "with_ridge": len(with_ridge),
    }
    title = f"Ridge points at {precision}, roof {roof}"
    return Answer("hardware-table", data, _COLUMNS, title=title, notes=notes, digest=parts.digest)


def _passes(row: dict[str, Any], vendors: list[str], search: str) -> bool:
    """Whether a row is of these vendors and has the words that are searched for."""
    told = " ".join((row["hardware"], row["name"], row["architecture"] or "", *row["flags"]))
    return (not vendors or row["vendor"] in vendors) and search.strip().lower() in told.lower()


def choices(files: Any = ()) -> dict[str, list[str]]:
    """What the table can be asked for: precisions and roofs that some part has, vendors.

    >>> choices()["roof"][:2]
    ['datasheet', 'practical']
    """
    return _choices(chosen(["all", *files]).parts)


def _choices(parts: list[Accelerator]) -> dict[str, list[str]]:
    roofs = [roof for part in parts for roof in part.roofs]
    found = {roof.precision for roof in roofs}
    return {
        "precision": [p for p in PRECISIONS if p in found],
        "roof": list(dict.fromkeys(("datasheet", "practical", *sorted({roof.name for roof in roofs})))),
        "vendor": sorted({part.vendor for part in parts if part.vendor}),
    }


def hardware_compare(first: str | Accelerator, second: str | Accelerator, files: Any = ()) -> Answer:
    """Two accelerators, number by number, with the second's over the first's.

    Parameters: first, second, an id, a file with one part, or an Accelerator; files, YAML files with parts of one's own
    that the ids may name.

    >>> rows = hardware_compare("h100-sxm", "h200-sxm").rows
    >>> [round(r["ratio"], 3) for r in rows if r["quantity"] == "bandwidth"]
    [1.433]
    """
    catalog = load_catalog()
    if files:
        _, catalog = resolve(files, catalog)
    a, catalog = _single(first, catalog)
    b, catalog = _single(second, catalog)
    mine, theirs = ({number[0]: number[1:] for number in _numbers(part)} for part in (a, b))
    rows = []
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
    heads = (a.id, b.id) if a.id != b.id else ("first", "second")
    columns = [replace(c, heading=heads[COMPARED.index(c.key)]) if c.key in COMPARED else c for c in _COMPARED]
    notes = (*catalog.warnings, "Datasheet, dense peaks. " + MISSING)
    data = {"rows": rows, "hardware": [a.id, b.id]}
    title = f"{a.name} and {b.name}"
    return Answer("hardware-compare", data, columns, title=title, notes=notes, digest=catalog.digest)


def _single(part: str | Accelerator, catalog: Catalog) -> tuple[Accelerator, Catalog]:
    """The one accelerator that is meant, and the catalogue with its file."""
    if isinstance(part, Accelerator):
        return part, catalog
    parts, catalog = resolve([part], catalog)
    if len(parts) != 1:
        raise BadValue("hardware", part, f"one accelerator, not {len(parts)}")
    return parts[0], catalog


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
    plain = name == "datasheet"  # of which a part may have one number without the other
    return {
        "hardware": part.id,
        "name": part.name,
        "vendor": part.vendor,
        "architecture": part.architecture,
        "precision": used,
        "peak_flop_per_s": roof.peak if roof else part.peaks.get(used) if plain else None,
        "bandwidth_byte_per_s": roof.bandwidth if roof else part.bandwidth if plain else None,
        "ridge_flop_per_byte": roof.ridge if roof else None,
        "capacity_bytes": part.capacity_bytes,
        "link_bandwidth_byte_per_s": part.link,
        "exp_rate_exp_per_s": part.exp_rate,
        "kind": roof.kind if roof else None,
        "source": _source(part, roof) if roof or plain else None,
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
