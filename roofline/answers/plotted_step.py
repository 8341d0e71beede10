"""The data behind the figure `step`: every kernel of a step under the roofs of one accelerator or several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from roofline._generated import law
from roofline.answer import Answer, Column, Section
from roofline.answers.common import chosen
from roofline.answers.step import kernel_row, parts_of, terms
from roofline.answers.step_asked import Asked, ask
from roofline.answers.step_report import CONVENTION, OMITS, said, sections
from roofline.answers.step_verdict import bound
from roofline.errors import NoAnswer, UnknownName
from roofline.models import Model, fits_positions, load_model
from roofline.units import number, show

if TYPE_CHECKING:
    from roofline.accelerators import Accelerator, Roof
    from roofline.plan import Workload

Record = dict[str, Any]
ALL_ROOFS = "all"
COLORS = ("part", "bound")
COLUMNS = (
    Column("name", "kernel"),
    Column("hardware", "accelerator"),
    Column("precision", "precision"),
    Column("flops", "FLOPs", "GFLOP", scale=1e9),
    Column("bytes", "bytes", "MB", scale=1e6),
    Column("intensity_flop_per_byte", "intensity", "FLOP/B"),
    Column("attainable_flop_per_s", "attainable bound", "TFLOP/s", scale=1e12),
    Column("roof_fraction", "of the peak", "%", scale=1e-2),
    Column("attained_flop_per_s", "best rate", "TFLOP/s", scale=1e12),
    Column("time_lower_s", "time at least", "µs", scale=1e-6),
    Column("share", "share of time", "%", scale=1e-2),
    Column("bound", "bound"),
)


def step_data(
    model: str | Model = "deepseek-v3.2",
    hardware: str | Accelerator | Iterable[str | Accelerator] = "h800-sxm",
    *,
    roof: str | None = None,
    color: str = "part",
    **options: Any,
) -> Answer:
    """Every kernel of a step with its place on the roofline, and the roofs.

    Parameters: model, hardware (one accelerator or several) and the options of `roofline.step`, of which `acceptance`
    and `slo` change nothing here; roof, the one that times are taken from, or "all": the datasheet's, and every other
    roof of an accelerator drawn as a line; color, what the colour of a dot tells: "part" of the model or "bound".

    Returns rows, one a kernel and accelerator, the longest first: `attainable_flop_per_s` is min(peak, bandwidth *
    intensity) on the roof of its precision, `roof_fraction` that over the peak [1], `attained_flop_per_s` FLOPs over
    the lower time bound, which is less where the vector or the special-function unit binds, `share` the part of the
    time.  `points` are the rows with FLOPs and bytes, in the order of the step; the others are named in `not_shown`.

    >>> top = step_data("llama-3.1-8b", "h100-sxm", batch=64, context=4096).rows[0]
    >>> top["name"], top["bound"], round(top["roof_fraction"], 4)
    ('attention core', 'memory', 0.0135)
    """
    if color not in COLORS:
        raise UnknownName("color", color, COLORS)
    parts = chosen(hardware)
    every, name = roof == ALL_ROOFS, None if roof == ALL_ROOFS else roof
    whole = load_model(model)
    asked = terms(**options, roof=name)
    steps = [ask(whole, part, *asked) for part in parts.parts]
    kernels = [_placed(kernel_row(c, a), a, c.use.values) for a in steps for c in a.costs]
    points = [row for row in kernels if row["attained_flop_per_s"]]
    if not points:
        raise NoAnswer("no kernel of this step has matrix products and traffic of its own")
    roofs = [line for a in steps for line in _roofs(a, points, every)]
    totals = [_whole(a, [row for row in kernels if row["hardware"] == a.part.id]) for a in steps]
    domain = _domain(roofs, points, totals)
    data: Record = {
        "rows": sorted(kernels, key=lambda row: -row["time_lower_s"]),
        "points": points,
        "whole": totals,
        "roofs": [{**r, "line": _line(r, domain["intensity_flop_per_byte"])} for r in roofs],
        "domain": domain,
        "not_shown": [_aside(row) for row in kernels if not row["attained_flop_per_s"]],
        "rates": {a.part.id: {"roof": a.chip.roof, **a.chip.rates._asdict()} for a in steps},
        "inputs": _inputs(steps),
        "color": color,
        "title": _title(steps),
    }
    return Answer("plot-step", data, COLUMNS, title=data["title"], notes=_notes(steps, data, parts.warnings),
                  sections=_sections(steps, kernels), digest=parts.digest)  # fmt: skip


def _placed(row: Record, asked: Asked, values: Mapping[str, Any]) -> Record:
    """A kernel with its place on the roof of its precision."""
    percent = 100 * row["share"]
    told = {k: v for k, v in row.items() if k != "weights"}
    told |= {"label": f"{row['name']} {number(round(percent, 0 if percent >= 10 else 1))} %",
             "hardware": asked.part.id, "roof": asked.chip.roof, "values": dict(values)}  # fmt: skip
    if not (row["flops"] and row["bytes"]):
        return {**told, **dict.fromkeys(("attainable_flop_per_s", "roof_fraction", "attained_flop_per_s"))}
    peak = asked.chip.rates.peaks[row["precision"]]
    reached = law.attainable(peak=peak, bandwidth=asked.chip.rates.bandwidth, intensity=row["intensity_flop_per_byte"])
    return {
        **told,
        "attainable_flop_per_s": reached,
        "roof_fraction": reached / peak,
        "attained_flop_per_s": row["flops"] / row["time_lower_s"],
    }


def _aside(row: Record) -> Record:
    """What is said of a kernel without a place on the axes."""
    return {key: row[key] for key in ("name", "hardware", "part", "share", "bound", "time_lower_s")}


def _whole(asked: Asked, rows: list[Record]) -> Record:
    """The step as one point; it lies below the roofs as far as its kernels take turns at what binds."""
    flops, moved, time = sum(r["flops"] for r in rows), sum(r["bytes"] for r in rows), asked.bounds.lower
    place = {"intensity_flop_per_byte": law.intensity(flops=flops, bytes=moved), "attained_flop_per_s": flops / time}
    limits = {"time_lower_s": time, "time_upper_s": asked.bounds.upper, "bound": _bound(asked)}
    return {"hardware": asked.part.id, **place, **limits}


def _bound(asked: Asked) -> str:
    return "link" if asked.bounds.link > asked.bounds.compute_lower else bound(asked.costs)


def _roofs(asked: Asked, points: Iterable[Record], every: bool) -> list[Record]:
    """The roofs that the times are taken from, one a precision in use; with `every` the part's other ones too."""
    rates, part = asked.chip.rates, asked.part
    used = dict.fromkeys(p["precision"] for p in points if p["hardware"] == part.id)
    given = {(r.name, r.precision): r for r in part.roofs}
    found = [
        _roof(part, asked.chip.roof, p, rates.peaks[p], rates.bandwidth, given.get((asked.chip.roof, p))) for p in used
    ]
    others = [r for r in part.roofs if every and r.name != asked.chip.roof and r.precision in used and r.has_rates]
    return [*found, *(_roof(part, r.name, r.precision, r.peak, r.bandwidth, r) for r in others)]


def _roof(part: Accelerator, name: str, precision: str, peak: float, bandwidth: float, given: Roof | None) -> Record:
    ridge = law.ridge(peak=peak, bandwidth=bandwidth)
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


def _line(roof: Record, ends: list[float]) -> Record:
    """Both ends of a roof and its ridge."""
    at = sorted({ends[0], roof["ridge_flop_per_byte"], ends[1]})
    rates = {"peak": roof["peak_flop_per_s"], "bandwidth": roof["bandwidth_byte_per_s"]}
    return {"intensity_flop_per_byte": at, "attainable_flop_per_s": [law.attainable(**rates, intensity=x) for x in at]}


def _domain(roofs: list[Record], points: list[Record], totals: list[Record]) -> dict[str, list[float]]:
    """Room around every ridge and point."""
    places = [*points, *totals]
    x = [r["ridge_flop_per_byte"] for r in roofs] + [p["intensity_flop_per_byte"] for p in places]
    lowest, highest = min(p["attained_flop_per_s"] for p in places), max(r["peak_flop_per_s"] for r in roofs)
    return {
        "intensity_flop_per_byte": [min(x) / 3, max(x) * 8],
        "attained_flop_per_s": [lowest / 3, 2.2 * highest],
    }


def _inputs(steps: list[Asked]) -> Record:
    step, model = steps[0].step, steps[0].model
    options = step.options
    return {
        "model": model.id,
        "hardware": [a.part.id for a in steps],
        "phase": step.workload.phase,
        "workload": step.workload._asdict(),
        "deployment": {**step.deployment._asdict(), "gpus": step.deployment.gpus},
        "dtypes": {
            "kv": model.kv(options.kv_dtype).dtype,
            "weight": options.weight_dtype,
            "index": options.index_dtype,
            "act_bytes": options.w_act,
        },
    }


def _title(steps: list[Asked]) -> str:
    """Model, step, deployment and what comes out on each accelerator."""
    load: Workload = steps[0].step.workload
    spread = steps[0].step.deployment
    told = [f"{k} {number(getattr(load, k))}" for k in ("batch", "q_len", "context")]
    if load.phase == "mixed":
        told += [f"{k} {number(getattr(load, k))}" for k in ("prefill_batch", "prefill_context")]
    told += [f"{k.upper()} {getattr(spread, k)}" for k in ("tp", "dp", "ep", "pp", "cp") if getattr(spread, k) != 1]
    ends = [
        f"{spread.gpus} x {a.part.name}, roof {a.chip.roof}: at least {show(a.bounds.lower, 's')}, {_bound(a)} bound"
        for a in steps
    ]
    return f"{steps[0].model.id}, {load.phase} step, {', '.join(told)}. On {'; on '.join(ends)}"


def _notes(steps: list[Asked], data: Record, warnings: tuple[str, ...]) -> tuple[str, ...]:
    """What has to be said with the chart."""
    names = dict.fromkeys(row["name"] for row in data["not_shown"])
    aside = [f"Not drawn, no matrix products or no traffic of their own: {', '.join(names)}."] if names else []
    own = dict.fromkeys(f"{a.part.id}: {note}" if len(steps) > 1 else note for a in steps for note in a.chip.notes)
    lines = dict.fromkeys(a.chip.roof for a in steps)
    roof = f"Times, shares and bounds are taken from the roof {', '.join(lines)}; other roofs are only drawn."
    drawn = any(r["roof"] != data["rates"][r["hardware"]]["roof"] for r in data["roofs"])
    told = [*([roof] if drawn else []), *aside, *own, *steps[0].model.notes, *said(steps[0])]
    warning = fits_positions(steps[0].model, max(int(steps[0].step.workload.seq_len), 1))
    return (*warnings, *([f"Warning: {warning}."] if warning else []), *told, CONVENTION, OMITS)


def _sections(steps: list[Asked], kernels: list[Record]) -> tuple[Section, ...]:
    """What --explain adds: as for `roofline.step`."""
    found: list[Section] = []
    for asked in steps:
        mine = [row for row in kernels if row["hardware"] == asked.part.id]
        data = {"parts": parts_of(mine), "defaults_taken": [t._asdict() for t in asked.model.defaults_taken]}
        found += [s for s in sections(asked, data) if s not in found]
    return tuple(found)
