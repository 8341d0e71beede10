"""The data behind the figure `step`: every kernel of a step at its intensity and best rate, with its share of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roofline.answer import Answer
from roofline.answers.common import chosen
from roofline.answers.step import step
from roofline.errors import BadValue, NoAnswer
from roofline.plan.chip import chip
from roofline.units import number, show

if TYPE_CHECKING:
    from roofline.plan.numbers import Rates

Record = dict[str, Any]


def step_data(
    model: Any = "deepseek-v3.2", hardware: Any = "h800-sxm", *, roof: str | None = None, **options: Any
) -> tuple[Record, Answer]:
    """Roofs of the precisions that run, a point for each kernel with matrix products, and what has no place.

    Parameters: those of `roofline.step`.  A point stands at FLOP per byte and FLOP per second of its lower time bound:
    on its roof, or below where the vector or the special-function unit binds.
    """
    parts = chosen(hardware)
    if len(parts.parts) != 1:
        raise BadValue("hardware", ", ".join(p.id for p in parts.parts), "one part: a step runs on one")
    part = parts.parts[0]
    answer = step(model, part, roof=roof, **options)
    speeds = chip(part, roof)
    points = [_point(row, answer) for row in answer.rows if row["flops"] and row["bytes"]]
    if not points:
        raise NoAnswer("no kernel of this step has matrix products and traffic of its own")
    ends = _domain(speeds.rates, points)
    precisions = dict.fromkeys(p["precision"] for p in points)
    aside = [row for row in answer.rows if not (row["flops"] and row["bytes"])]
    return {
        "rows": sorted(points, key=lambda p: -p["share"]),
        "points": points,
        "whole": _whole(answer),
        "roofs": [_roof(part, speeds.roof, speeds.rates, p, ends["intensity_flop_per_byte"]) for p in precisions],
        "domain": ends,
        "not_shown": [{key: row[key] for key in ("name", "part", "share", "bound", "time_lower_s")} for row in aside],
        "time_lower_s": answer["time_lower_s"],
        "time_upper_s": answer["time_upper_s"],
        "inputs": {key: answer[key] for key in ("model", "hardware", "phase", "workload", "deployment", "dtypes")},
        "title": _title(answer, part.name),
    }, answer


def _point(row: Any, answer: Answer) -> Record:
    """One kernel, all its runs."""
    kept = ("name", "kernel", "part", "count", "precision", "intensity_flop_per_byte", "time_lower_s", "share", "bound")
    share = 100 * row["share"]
    return {
        **{key: row[key] for key in kept},
        "hardware": answer["hardware"],
        "roof": answer["roof"],
        "attained_flop_per_s": row["flops"] / row["time_lower_s"],
        "label": f"{row['name']} {number(round(share, 0 if share >= 10 else 1))} %",
    }


def _whole(answer: Answer) -> Record:
    """The step as one point; it lies below the roofs as far as its kernels take turns at what binds."""
    totals = answer["totals"]
    return {
        "intensity_flop_per_byte": totals["intensity_flop_per_byte"],
        "attained_flop_per_s": totals["flops"] / answer["time_lower_s"],
    }


def _roof(part: Any, roof: str, rates: Rates, precision: str, ends: list[float]) -> Record:
    """A roof line of one precision."""
    peak, rate = rates.peaks[precision], rates.bandwidth
    ridge = peak / rate
    at = sorted({ends[0], ridge, ends[1]})
    return {
        "hardware": part.id,
        "roof": roof,
        "precision": precision,
        "ridge_flop_per_byte": ridge,
        "peak_flop_per_s": peak,
        "bandwidth_byte_per_s": rate,
        "label": f"{part.name} {roof}, {precision}: {number(peak / 1e12)} TFLOP/s over {show(rate, 'B/s')}, "
        f"ridge {show(ridge, 'FLOP/B')}",
        "line": {"intensity_flop_per_byte": at, "attainable_flop_per_s": [min(peak, rate * x) for x in at]},
    }


def _domain(rates: Rates, points: list[Record]) -> dict[str, list[float]]:
    peaks = [rates.peaks[p["precision"]] for p in points]
    intensities = [*(peak / rates.bandwidth for peak in peaks), *(p["intensity_flop_per_byte"] for p in points)]
    return {
        "intensity_flop_per_byte": [min(intensities) / 3, max(intensities) * 8],
        "attained_flop_per_s": [min(p["attained_flop_per_s"] for p in points) / 3, 2.2 * max(peaks)],
    }


def _title(answer: Answer, name: str) -> str:
    load, spread = answer["workload"], answer["deployment"]
    said = [f"{key} {number(load[key])}" for key in ("batch", "q_len", "context")]
    said += [f"{key.upper()} {spread[key]}" for key in ("tp", "dp", "ep", "pp", "cp") if spread[key] != 1]
    return (
        f"{answer['model']}, {answer['phase']} step on {spread['gpus']} x {name}, {', '.join(said)}: "
        f"at least {show(answer['time_lower_s'], 's')}, {answer['bound']} bound"
    )
