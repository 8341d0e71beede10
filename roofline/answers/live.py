"""Formulas as JavaScript, for charts that are redrawn in a browser while a slider is dragged.

Nothing is written by hand: the expressions are those that the library evaluates, printed in another language.  They are
printed in letters, once for every kind of question; the numbers of a model or a chip go along as values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import sympy as sp

from roofline.answers.plotted_crossover import octaves
from roofline.crossovers import Case, defaults, equation
from roofline.derivations import decode_intensity_limit
from roofline.evaluate import closed_form, evaluate
from roofline.symbols import SYMBOLS, Expr, sym

Script = dict[str, Any]  # names of the parameters, an expression in them, and values of those that stay as they are
Letters = tuple[tuple[str, Any], ...]  # name -> symbol, or an expression that is no number of the case
PER_OCTAVE, OCTAVES = 8, 21  # places at which a crossing is looked for


@lru_cache(256)
def javascript(expr: Expr) -> tuple[tuple[str, ...], str]:
    """Parameters and source of an expression, as JavaScript that `new Function(...names, "return " + source)` takes.

    >>> javascript(decode_intensity_limit())
    (('heads', 'kv_row_bytes', 'latent', 'q_len', 'rope'), '2*heads*q_len*(2*latent + rope)/kv_row_bytes')
    """
    names = tuple(sorted(s.name for s in expr.free_symbols))
    return names, str(sp.jscode(expr)).replace("\n", " ")


def heads_live(inputs: Mapping[str, float]) -> Script:
    """Intensity by head count, with the shape of an answer of `heads` put in."""
    return _script(decode_intensity_limit(), inputs, ("heads",))


def crossover_live(case: Case, unknown: str) -> list[Script]:
    """Cost per query of both sides of a case, by its unknown and by the rate ratio."""
    values = _numbers(case)
    return [_script(expr, values, (unknown, "rate_ratio")) for expr in _per_query(case, unknown)]


def heads_axes(data: Mapping[str, Any], low: float, high: float) -> dict[str, list[float]]:
    """Ends of both axes of a chart of `heads` that shows the counts from low to high and every crossing."""
    least_met = min(c["heads_exact"] for c in data["crossings"])
    ends = [min(low, 2.0 ** math.floor(math.log2(least_met))), max(high, data["domain"]["heads"][1])]
    shape = {k: v for k, v in data["inputs"].items() if k != "kv_row_bytes"}
    wide = closed_form("decode_intensity_limit")
    least = min(wide(**shape, kv_row_bytes=line["kv_row_bytes"], heads=ends[0]) for line in data["lines"])
    lowest = min([least, *(r["ridge_flop_per_byte"] for r in data["ridges"])])
    return {"heads": ends, "intensity_flop_per_byte": [lowest / 1.2, data["domain"]["intensity_flop_per_byte"][1]]}


def crossover_axes(
    cases: Iterable[Case], unknown: str, ratios: tuple[float, ...], held: Iterable[float]
) -> dict[str, list[float]]:
    """Ends of both axes that hold the crossings at every one of the rate ratios, so that none leaves the chart while
    the ratio moves, and the other places `held`."""
    seen = [_seen(*_per_query(case, unknown), _known(case, unknown), unknown, ratios, _lowest(case)) for case in cases]
    ends = octaves([*held, *(x for places, _, _ in seen for x in places)])
    shown = [k for k, x in enumerate(_grid()) if ends[0] <= x <= ends[1]]
    least = min(costs[k] for _, costs, _ in seen for k in shown)
    return {"unknown": ends, "cost": [least / 1.3, 1.6 * max(costs[k] for _, _, costs in seen for k in shown)]}


def _grid() -> list[float]:
    return [2.0 ** (k / PER_OCTAVE) for k in range(PER_OCTAVE * OCTAVES + 1)]


def _known(case: Case, unknown: str) -> tuple[tuple[str, float], ...]:
    return tuple(sorted((n, v) for n, v in _numbers(case).items() if n not in (unknown, "rate_ratio")))


def _lowest(case: Case) -> float:
    return float(case.shape.get("topk", 0)) if case.phase == "oneshot" else 0.0


@lru_cache(512)
def _seen(
    first: Expr, second: Expr, known: tuple[tuple[str, float], ...], unknown: str, ratios: tuple[float, ...], low: float
) -> tuple[list[float], list[float], list[float]]:
    """Places between which both sides cost the same for some ratio; least and largest cost at each place."""
    import numpy as np

    at = _grid()
    costs = []
    for expr in (first, second):
        needed = {s.name for s in expr.free_symbols}
        free = {**dict(known), unknown: at, "rate_ratio": [[r] for r in ratios]}
        costs.append(np.broadcast_to(evaluate(expr, **{n: free[n] for n in sorted(needed)}), (len(ratios), len(at))))
    gap = np.log(costs[0] / costs[1])
    met = np.nonzero((gap[:, 1:] * gap[:, :-1] <= 0) & (np.abs(gap[:, :-1]) > 1e-9))[1]
    places = sorted({at[i] for k in met for i in (int(k), int(k) + 1) if at[i] >= low})
    every = np.concatenate(costs)
    return places, every.min(0).tolist(), every.max(0).tolist()


def _script(expr: Expr, values: Mapping[str, float], free: tuple[str, ...]) -> Script:
    names, source = javascript(expr)
    return {"names": names, "source": source, "values": {n: values[n] for n in names if n not in free}}


class _InLetters(Case):
    """A case with symbols in place of its numbers; those were checked when the case itself was made."""

    def __post_init__(self) -> None:
        """Symbols compare to nothing."""


def _numbers(case: Case) -> dict[str, float]:
    """Every number of a case, by the name of its letter."""
    heads = {"kernel_heads": case.kernel_heads if case.kernel_heads is not None else case.shape["heads"]}
    peaks = {f"peak_{precision}": value for precision, value in case.peaks.items()}
    workload = {**defaults(case.phase, case.given), **case.given}
    known = {**case.shape, **heads, **case.rates, **peaks, **workload}
    return {name: float(value) for name, value in known.items() if isinstance(value, (int, float))}


def _per_query(case: Case, unknown: str) -> tuple[Expr, Expr]:
    """Cost per query of both sides, in letters."""
    workload = {**defaults(case.phase, case.given), **case.given}
    return _formula(
        (case.phase, case.subject, case.cost, case.skip, case.gather),
        _letters(case.shape),
        _letters(case.rates),
        tuple((precision, sp.Symbol(f"peak_{precision}", positive=True)) for precision in case.peaks),
        _letters(workload),
        unknown,
    )


def _letters(values: Mapping[str, Any]) -> Letters:
    """The symbol of each number; what is no number stands as it is, and so does zero: it leaves a term out."""
    numbers = (int, float)
    return tuple((n, SYMBOLS[n] if isinstance(v, numbers) and v else v) for n, v in sorted(values.items()))


@lru_cache(256)
def _formula(
    question: tuple[Any, ...], shape: Letters, rates: Letters, peaks: Letters, workload: Letters, unknown: str
) -> tuple[Expr, Expr]:
    phase, subject, cost, skip, gather = question
    case = _InLetters(
        phase, dict(shape), subject, sym.kernel_heads, cost, dict(rates), dict(peaks), sym.rate_ratio, skip, gather,
        dict(workload),
    )  # fmt: skip
    new = sym.seq_len if phase == "oneshot" else sym.q_len
    first, second = equation(case, unknown)
    return first / (sym.batch * new), second / (sym.batch * new)
