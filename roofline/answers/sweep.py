"""`roofline sweep`: a kernel over a grid of numbers, as labelled arrays and as files."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from roofline import glossary, law
from roofline.answer import Answer, Column, Section
from roofline.answers.common import Roofed, leg_rates, roofed, skipped_note, with_adhoc
from roofline.errors import BadFile, BadValue
from roofline.grid import Labelled, evaluate_grid, parse_grid
from roofline.kernel import Cost
from roofline.kernels import kernel as find_kernel
from roofline.phases import on_phase
from roofline.symbols import latex, sym
from roofline.tables import write
from roofline.units import number

SHOWN = 40  # rows of the mesh in a table; a file has them all
SUFFIX = {
    "time_lower": "_s",
    "time_upper": "_s",
    "intensity": "_flop_per_byte",
    "peak": "_flop_per_s",
    "vector_peak": "_flop_per_s",
    "exp_rate": "_exp_per_s",
    "bandwidth": "_byte_per_s",
    "link_bandwidth": "_byte_per_s",
}


@dataclass(frozen=True, repr=False)
class Sweep(Answer):
    """An answer with the whole mesh in `table_` (a `Labelled`) and the names of the legs in `legs`."""

    mesh: Labelled | None = None
    legs: tuple[str, ...] = ()


def sweep(
    kernel: str | Cost,
    grid: Mapping[str, Any] | Iterable[str],
    *,
    hardware: Any = None,
    roof: str | None = None,
    phase: str | None = None,
    values: Mapping[str, float] | None = None,
    progress: Callable[[int, int], None] | None = None,
    peak: str | float | None = None,
    bandwidth: str | float | None = None,
    ridge: str | float | None = None,
) -> Sweep:
    """FLOPs, bytes, intensity and, on chips, time bounds and what binds, over the whole mesh of a grid.

    Parameters: kernel, an id or a kernel of one's own; grid, {quantity: values} or texts such as "heads=8:256:log2", in
    the order of the result's dimensions; hardware and roof, the chips, which become the first axis; phase, puts pairs
    and rows in; values, numbers for all other quantities; progress, called with blocks done and in all; peak and
    bandwidth, or ridge, an ad hoc part.

    >>> answer = sweep("mla_mqa", {"heads": [64, 128]}, phase="decode", values=dict(batch=1, q_len=1, context=8191,
    ...                latent=512, rope=64, w_kv=2, w_act=2))
    >>> answer.mesh.values["intensity"].round(2)
    array([119.13, 234.85])
    """
    axes = _axes(grid)
    hardware = with_adhoc(hardware, peak, bandwidth, ridge)
    given = {name: glossary.check(name, value) for name, value in (values or {}).items()}
    cost: Any = kernel if isinstance(kernel, Cost) else find_kernel(kernel)
    cost = on_phase(cost, phase) if phase else cost
    padded = "kernel_heads" not in axes and "kernel_heads" not in given
    cost = cost.bind(**({"kernel_heads": sym.heads} if padded else {}), **_widths(cost, {*axes, *given}))
    asked = Roofed([], [], "", ()) if hardware is None else roofed(hardware, roof, cost.kernels[0].precision)
    chips, told = _chips(asked)
    exprs = _expressions(cost, chips)
    free = {s.name for e in exprs.values() for s in e.free_symbols}
    used = {name: value for name, value in given.items() if name in free}
    mesh = evaluate_grid(exprs, ({"hardware": chips} if chips else {}) | axes, progress=progress, **used)  # type: ignore[arg-type]
    if not all(np.isfinite(v).all() for v in mesh.values.values()):
        raise BadValue("grid", "a point", "finite results", "the numbers given are too large or too small")
    legs = tuple(name.removeprefix("leg_") for name in exprs if name.startswith("leg_"))
    rows: dict[str, Any] = next(_tables(mesh, legs, SHOWN), {})
    shown = [{k: _plain(v[i]) for k, v in rows.items()} for i in range(len(next(iter(rows.values()), ())))]
    data = {
        "rows": shown,
        "points": prod(mesh.shape),
        "axes": [{"name": a.name, "length": len(a)} for a in mesh.axes],
        "kernel": cost.name,
        "phase": phase,
        "inputs": used,
        "roofs": told,
        "skipped": asked.skipped,
    }
    notes = _notes(data, given, used, padded, cost)
    dropped = law.legs_left_out(cost, chips) if chips else ()
    notes += (f"No leg of {', '.join(dropped)}: not every part has a sourced rate for it.",) if dropped else ()
    return Sweep(
        "sweep",
        data,
        _columns(rows),
        notes=(*asked.warnings, *notes, *skipped_note(asked.skipped)),
        sections=_sections(exprs, cost, told),
        digest=asked.digest,
        title=f"Sweep of {cost.name}: {number(data['points'])} points",
        mesh=mesh,
        legs=legs,
    )


def _axes(grid: Any) -> dict[str, Any]:
    """Axes by name, from texts or a mapping; a quantity given twice is refused."""
    pairs = list(grid.items()) if isinstance(grid, Mapping) else [parse_grid(text) for text in grid]
    axes = dict(pairs)
    if len(axes) != len(pairs):
        raise BadValue("grid", ", ".join(name for name, _ in pairs), "each quantity once")
    if not axes:
        raise BadValue("grid", "nothing", "at least one axis such as heads=8:256:log2")
    return axes


def _widths(cost: Any, names: set[str]) -> dict[str, Any]:
    """Quantities that a kernel has a default for but that the caller sets: they become symbols again."""
    held = {s.name for k in cost.kernels for s in k.bindings}
    return {name: getattr(sym, name) for name in names & held}


def _chips(asked: Roofed) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The chips' axis: rates that all of them have, and labels; and what to tell about their roofs."""
    if not asked.pairs:
        return {}, []
    parts = asked.pairs
    rates = [leg_rates(part, r) for part, r in parts]
    common = [name for name in rates[0] if all(name in one for one in rates)]
    columns = {name: [one[name] for one in rates] for name in common}
    told = [
        {
            "hardware": part.id,
            "roof": r.name,
            "precision": r.precision,
            "ridge_flop_per_byte": r.ridge,
            "kind": r.kind,
            "source": r.source,
        }
        for part, r in parts
    ]
    return {"label": [part.id for part, _ in parts], **columns}, told


def _expressions(cost: Any, chips: Mapping[str, Any]) -> dict[str, Any]:
    """What is evaluated: totals, and on chips both time bounds and each leg of a single kernel."""
    exprs = {
        name: cost.quantity(name) for name in ("flops", "bytes", "exps", "vector_flops") if cost.quantity(name) != 0
    }
    if cost.bytes != 0:
        exprs["intensity"] = cost.intensity
    if chips:
        without = [leg for leg, (_, rate) in law.LEGS.items() if rate not in chips]
        exprs |= {"time_lower": law.time_lower(cost, without), "time_upper": law.time_upper(cost, without)}
        if len(cost.kernels) == 1:
            exprs |= {f"leg_{leg}": time for leg, time in law.legs(cost, without).items()}
    return exprs


def _sections(exprs: Mapping[str, Any], cost: Any, roofs: list[dict[str, Any]]) -> tuple[Section, ...]:
    """The formulas that are evaluated, and the sources of kernels and roofs."""
    formulas = tuple(f"{glossary.GLOSSARY[n].latex} = {latex(e)}" for n, e in exprs.items() if n in glossary.GLOSSARY)
    sources = [f"{k.name}: {k.source}" for k in cost.kernels if k.source]
    sources += [f"{r['hardware']} [{r['roof']}, {r['kind']}]: {r['source']}" for r in roofs if r["source"]]
    return (Section("Formulas", (), formulas), Section("Sources", tuple(dict.fromkeys(sources)) or ("none given",)))


def _tables(mesh: Labelled, legs: tuple[str, ...], rows: int) -> Any:
    """The mesh as tables of columns with SI suffixes; the legs become one column that names what binds."""
    names = np.array([law.BOUNDS[leg] for leg in legs])
    for table in mesh.blocks(rows):
        times = [table.pop(f"leg_{leg}") for leg in legs]
        named = {k + SUFFIX.get(k, ""): v for k, v in table.items()}
        if legs:
            named["bound"] = names[np.argmax(np.stack(times), axis=0)]
        yield named


def _columns(table: Mapping[str, Any]) -> list[Column]:
    """The columns of the table on a screen: axes and results, without the rates of the chips."""
    rates = {rate + SUFFIX[rate] for _, rate in law.LEGS.values()}
    return [Column(k, k, show=_show, flush_right=k not in ("hardware", "bound")) for k in table if k not in rates]


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _show(value: Any) -> str:
    return value if isinstance(value, str) else number(value, 6)


def _notes(
    data: Mapping[str, Any], given: Mapping[str, float], used: Mapping[str, float], padded: bool, cost: Any
) -> tuple[str, ...]:
    inputs = ", ".join(f"{k} = {number(v, 6)}" for k, v in used.items()) or "none"
    notes = [
        f"Numbers put in: {inputs}; phase "
        f"{data['phase'] or 'not set'}{'; kernel_heads = heads (not padded)' if padded else ''}."
    ]
    unused = [name for name in given if name not in used]
    notes += [f"Not used by {data['kernel']}: {', '.join(unused)}."] if unused else []
    notes += [
        f"{r['hardware']}: roof {r['roof']}, {r['precision']}, {number(r['ridge_flop_per_byte'])} FLOP/B"
        for r in data["roofs"]
    ]
    notes += (
        [f"Shown: the first {SHOWN} of {number(data['points'])} points; -o FILE.csv|.npz|.parquet has them all."]
        if data["points"] > SHOWN
        else []
    )
    omits = sorted({o for k in cost.kernels for o in k.omits})
    return (*notes, f"Bounds from the roofs. Left out: {'; '.join(omits) or 'nothing'}; launch gaps; achieved rates.")


def write_sweep(answer: Sweep, path: str | os.PathLike[str]) -> None:
    """Write the whole mesh as .csv, .npz (arrays in mesh shape with their axes) or .parquet; whole or not at all."""
    writers = {".csv": _write_csv, ".npz": _write_npz, ".parquet": _write_parquet}
    target = Path(path)
    if target.suffix.lower() in (".md", ".tex", ".json") and answer.data["points"] <= SHOWN:
        return write(answer, path)
    if target.suffix.lower() not in writers:
        wanted = f"a file name that ends in {', '.join(writers)}, or .md, .tex, .json for at most {SHOWN} points"
        raise BadValue("-o", str(path), wanted)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        writers[target.suffix.lower()](answer, partial)
        os.replace(partial, target)
    except OSError as error:
        raise BadFile(path, "", error.strerror or error, "a file that can be written") from None
    finally:
        partial.unlink(missing_ok=True)


def _write_csv(answer: Sweep, path: Path) -> None:
    assert answer.mesh is not None
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for i, table in enumerate(_tables(answer.mesh, answer.legs, 65536)):
            if i == 0:
                writer.writerow(table)
            writer.writerows(zip(*(column.tolist() for column in table.values()), strict=True))


def _write_npz(answer: Sweep, path: Path) -> None:
    mesh = answer.mesh
    assert mesh is not None
    arrays = {name + SUFFIX.get(name, ""): v for name, v in mesh.values.items() if not name.startswith("leg_")}
    for axis in mesh.axes:
        arrays |= {f"axis_{name}": column for name, column in axis.columns.items()}
        if axis.labels is not None:
            arrays[f"axis_{axis.name}"] = np.array(axis.labels)
    if answer.legs:
        arrays["bound"] = np.argmax(np.stack([mesh.values[f"leg_{leg}"] for leg in answer.legs]), axis=0).astype(
            np.uint8
        )
        arrays["bound_names"] = np.array([law.BOUNDS[leg] for leg in answer.legs])
    arrays["axes"] = np.array([a.name for a in mesh.axes])
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # numpy types its flag only


def _write_parquet(answer: Sweep, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    assert answer.mesh is not None
    writer = None
    for table in _tables(answer.mesh, answer.legs, 1 << 20):
        batch = pa.table(dict(table))
        writer = writer or pq.ParquetWriter(path, batch.schema)
        writer.write_table(batch)
    if writer is not None:
        writer.close()
