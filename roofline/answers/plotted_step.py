"""A whole step on the roofline: every kernel of a model's step as a point, with its share of the time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from roofline.answer import Answer, Column
from roofline.answers.common import chosen
from roofline.answers.plotted import many
from roofline.answers.step import Asked, ask, kernel_row, workload
from roofline.answers.step_report import CONVENTION, OMITS
from roofline.errors import UnknownName
from roofline.models import Model, load_model
from roofline.plan import Deployment, Options
from roofline.units import number, show

if TYPE_CHECKING:
    from roofline.accelerators import Accelerator, Roof

Record = dict[str, Any]
_COLUMNS = (
    Column("name", "kernel"),
    Column("hardware", "accelerator"),
    Column("precision", "precision"),
    Column("flops", "FLOPs", "GFLOP", scale=1e9),
    Column("bytes", "bytes", "MB", scale=1e6),
    Column("intensity_flop_per_byte", "intensity", "FLOP/B"),
    Column("attainable_flop_per_s", "attainable bound", "TFLOP/s", scale=1e12),
    Column("roof_fraction", "of the roof", "%", scale=1e-2),
    Column("time_lower_s", "time at least", "µs", scale=1e-6),
    Column("share", "share of time", "%", scale=1e-2),
    Column("bound", "bound"),
)


def step_roofline(
    model: str | Model,
    hardware: str | Iterable[str | Accelerator],
    *,
    roof: str | None = None,
    precision: str | Iterable[str] = (),
    phase: str = "decode",
    batch: float = 1,
    q_len: float | None = None,
    context: float = 0,
    tp: int = 1,
    kv_dtype: str = "auto",
    weight_dtype: str = "auto",
    w_act: float = 2,
) -> Answer:
    """The roofs of accelerators, and the kernels of one step of a model as points on them.

    Parameters: as for `step`; hardware, one accelerator or several; roof, the one that times are taken from (default
    the datasheet's; the others that a part has are drawn as lines too); precision, further ones to draw roofs for.

    Returns rows, one a kernel and accelerator, in order of their time: `attainable_flop_per_s` is what the roof of the
    kernel's precision allows at its intensity, `roof_fraction` that over the peak [1], `share` the part of the step's
    time.  Kernels without tensor FLOPs or without bytes have no place on the chart; `points` are the others.

    >>> top = step_roofline("llama-3.1-8b", "h100-sxm", batch=64, context=4096).rows[0]
    >>> top["name"], top["bound"], round(top["roof_fraction"], 4)
    ('attention core', 'memory', 0.0135)
    """
    load = workload(phase, batch, q_len, context, 0, 1, 0, 0)
    options = Options(kv_dtype=kv_dtype, weight_dtype=weight_dtype, w_act=w_act)
    whole = load_model(model) if isinstance(model, str) else model
    parts = chosen(hardware)
    steps = [ask(whole, part, load, Deployment(tp=tp), options, roof) for part in parts.parts]
    rows = [row for asked in steps for row in _rows(asked)]
    points = [row for row in rows if row["flops"] and row["bytes"]]
    used = list(dict.fromkeys([*(p["precision"] for p in points), *many(precision)]))
    lines = [line for asked in steps for line in _lines(asked, used, roof)]
    domain = _domain(lines, points)
    for line in lines:
        line["line"] = _line(line, domain["intensity_flop_per_byte"])
    names = "; ".join(f"{a.part.name}: {a.chip.roof}" for a in steps)
    title = (
        f"{phase} step of {whole.name}, batch {number(batch)}, context {number(context)}"
        + (f", q_len {number(load.q_len)}" if load.q_len != 1 else "")
        + (f", TP {tp}" if tp != 1 else "")
        + f"; bound from the roof ({names})"
    )
    inputs = {"model": whole.id, "phase": phase, "batch": batch, "q_len": load.q_len, "context": context, "tp": tp}
    data = {"rows": rows, "points": points, "roofs": lines, "domain": domain, "inputs": inputs, "title": title,
            "weight_dtype": weight_dtype, "kv_dtype": kv_dtype}  # fmt: skip
    told = (*parts.warnings, *dict.fromkeys(n for a in steps for n in a.chip.notes), CONVENTION, OMITS)
    return Answer("step-roofline", data, _COLUMNS, title=title, notes=told, digest=parts.digest)


def _rows(asked: Asked) -> list[Record]:
    """The kernels of one accelerator's step, the longest first."""
    found = [_placed(kernel_row(c, asked), asked, c.use.values) for c in asked.costs]
    return sorted(found, key=lambda row: -row["time_lower_s"])


def _placed(row: Record, asked: Asked, values: Mapping[str, Any]) -> Record:
    """A kernel with its place on the roof of its precision."""
    told = {k: v for k, v in row.items() if k != "weights"}
    told |= {"label": row["name"], "hardware": asked.part.id, "model": asked.model.id, "roof": asked.chip.roof,
             "values": dict(values)}  # fmt: skip
    if not (row["flops"] and row["bytes"]):
        return {**told, "attainable_flop_per_s": None, "roof_fraction": None}
    peak = asked.chip.rates.peaks[row["precision"]]
    reached = _attainable(peak, asked.chip.rates.bandwidth, row["intensity_flop_per_byte"])
    return {**told, "attainable_flop_per_s": reached, "roof_fraction": reached / peak}


def _attainable(peak: float, bandwidth: float, intensity: float) -> float:
    return float(_law()(peak=peak, bandwidth=bandwidth, intensity=intensity))


@cache
def _law() -> Callable[..., Any]:
    """The law of the roofline as a function of plain numbers."""
    from sympy import lambdify

    from roofline import law
    from roofline.symbols import sym

    return lambdify([sym.peak, sym.bandwidth, sym.intensity], law.attainable(), "math")  # type: ignore[no-any-return]


def _lines(asked: Asked, precisions: list[str], roof: str | None) -> list[Record]:
    """The roofs that the times are taken from, and without a name asked for the part's other roofs."""
    rates, part = asked.chip.rates, asked.part
    given = {(r.name, r.precision): r for r in part.roofs}
    missing = [p for p in precisions if p not in rates.peaks]
    if missing and not any(p in rates.peaks for p in precisions):
        raise UnknownName(f"precision of {part.id}", missing[0], rates.peaks)
    found = [
        _roof(part, asked.chip.roof, p, rates.peaks[p], rates.bandwidth, given.get((asked.chip.roof, p)))
        for p in precisions
        if p in rates.peaks
    ]
    others = [] if roof else [r for r in part.roofs if r.name != asked.chip.roof and r.precision in precisions]
    return [*found, *(_roof(part, r.name, r.precision, r.peak, r.bandwidth, r) for r in others if r.has_rates)]


def _roof(part: Accelerator, name: str, precision: str, peak: float, bandwidth: float, given: Roof | None) -> Record:
    ridge = peak / bandwidth
    return {
        "hardware": part.id,
        "roof": name,
        "precision": precision,
        "peak_flop_per_s": peak,
        "bandwidth_byte_per_s": bandwidth,
        "ridge_flop_per_byte": ridge,
        "kind": given.kind if given else "derived",
        "source": given.source if given else "peak of the datasheet over the bandwidth of this roof",
        "label": f"{part.name} {name}, {precision}: {number(peak / 1e12)} TFLOP/s over {show(bandwidth, 'B/s')}, "
        f"ridge {show(ridge, 'FLOP/B')}",
        "short": f"{part.id} {name} {precision}",
    }


def _line(roof: Record, domain: list[float]) -> Record:
    """Both ends of a roof and its ridge."""
    at = sorted({domain[0], roof["ridge_flop_per_byte"], domain[1]})
    return {
        "intensity_flop_per_byte": at,
        "attainable_flop_per_s": [_attainable(roof["peak_flop_per_s"], roof["bandwidth_byte_per_s"], x) for x in at],
    }


def _domain(roofs: list[Record], points: list[Record]) -> dict[str, list[float]]:
    """Room around every ridge and point."""
    found = [r["ridge_flop_per_byte"] for r in roofs] + [p["intensity_flop_per_byte"] for p in points]
    lowest = min([p["attainable_flop_per_s"] for p in points] or [r["peak_flop_per_s"] / 100 for r in roofs])
    return {
        "intensity_flop_per_byte": [min(found) / 2, max(found) * 4],
        "attainable_flop_per_s": [lowest / 3, 2 * max(r["peak_flop_per_s"] for r in roofs)],
    }
