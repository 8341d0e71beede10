"""The last resort for one unknown: sign changes of lhs - rhs on a logarithmic grid, each refined by bisection.

Used only where the equation is not piecewise rational in the unknown (a root, a power, a logarithm of it).  Finds every
root at which the sign changes between two grid points; a root that only touches, or two roots closer than the grid
(64 points a factor of ten), can be missed, which `Solution.searched` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

import sympy as sp

from roofline.solver.numbers import Problem
from roofline.solver.solution import Jump, Root, Solution, shown

PER_DECADE = 64
SMALLEST, LARGEST = 1e-6, 1e15
TOLERANCE = 1e-9


def scan(problem: Problem) -> Solution:
    """Roots by sign changes over the range, or over 1e-6 to 1e15 where it is open-ended."""
    low = max(float(problem.low), SMALLEST) if problem.low >= 0 else float(problem.low)
    high = min(float(problem.high), LARGEST)
    sides = sp.lambdify([problem.x], [problem.lhs, problem.rhs], "math")
    roots, jumps = [], []
    for a, b in _changes(sides, _grid(low, high)):
        value = _bisected(sides, a, b)
        left, right = _sides(sides, value)
        residual = abs(left - right) / max(abs(left), abs(right), 1e-300)
        if residual <= TOLERANCE:
            before, after = (int(math.copysign(1, _gap(sides, p))) for p in (a, b))
            roots.append(Root(sp.Float(value), problem.unknown, (), residual, "numeric", before, after))
        else:
            jumps.append(Jump(sp.Float(value), sp.Float(_sides(sides, a)[0]), sp.Float(_sides(sides, b)[0])))
    reason = "" if roots else _reason(problem, sides, low, high, jumps)
    searched = f"{PER_DECADE} points a decade from {low:g} to {high:g}; roots without a change of sign are not seen"
    found = Solution(problem.unknown, tuple(roots), reason=reason, jumps=tuple(jumps), searched=searched)
    return replace(found, low=problem.low, high=problem.high)


Sides = Callable[[float], list[float]]


def _grid(low: float, high: float) -> list[float]:
    if low <= 0:
        return [low + (high - low) * i / 2000 for i in range(2001)]
    count = max(2, int(PER_DECADE * math.log10(high / low)) + 1)
    return [low * (high / low) ** (i / count) for i in range(count + 1)]


def _sides(sides: Sides, point: float) -> tuple[float, float]:
    try:
        left, right = sides(point)
        return float(left), float(right)
    except (ValueError, OverflowError, ZeroDivisionError, TypeError):
        return math.nan, math.nan


def _gap(sides: Sides, point: float) -> float:
    left, right = _sides(sides, point)
    return left - right


def _changes(sides: Sides, grid: list[float]) -> Iterator[tuple[float, float]]:
    """Neighbouring grid points with different signs; a zero on the grid counts once, from its left neighbour."""
    values = [(p, g) for p in grid if not math.isnan(g := _gap(sides, p))]
    for (a, fa), (b, fb) in pairwise(values):
        if fa * fb < 0 or (fb == 0 and fa != 0):
            yield a, b


def _bisected(sides: Sides, a: float, b: float) -> float:
    fa = _gap(sides, a)
    while True:
        middle = math.sqrt(a) * math.sqrt(b) if a > 0 else (a + b) / 2
        if not a < middle < b:
            middle = (a + b) / 2
        if not a < middle < b:
            return min((a, b), key=lambda p: abs(_gap(sides, p)))
        fm = _gap(sides, middle)
        if fm == 0:
            return middle
        a, b = (middle, b) if fm * fa > 0 else (a, middle)


def _reason(problem: Problem, sides: Sides, low: float, high: float, jumps: list[Jump]) -> str:
    name, target = problem.labels
    if jumps:
        return f"no root: {name} jumps over {target} at {problem.unknown} = {shown(jumps[0].at)}"
    side = "below" if _gap(sides, high) < 0 else "above"
    first, last = (shown(_sides(sides, p)[0]) for p in (low, high))
    path = f"{name} goes from {first} at {problem.unknown} = {shown(low)} to {last} at {shown(high)}"
    return f"{path}; no change of sign was found, it stays {side} {target}"
