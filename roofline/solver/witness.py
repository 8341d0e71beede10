"""Put a symbolic root back into the whole equation, on random shapes that meet its conditions.

The branch a root comes from is satisfied identically; the equation as asked still holds Max and Min, whose choice is
only known under the conditions.  Random shapes that meet them are the check that branch and conditions belong together.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import mpmath as mp  # type: ignore[import-untyped]
import sympy as sp

from roofline.solver.numbers import Problem
from roofline.solver.solution import Root
from roofline.symbols import Expr

TRIALS, WANTED, TOLERANCE, DIGITS = 400, 5, 1e-12, 50  # digits enough that a small root of a quadratic keeps twenty

_OPERATIONS: Mapping[type, Callable[..., Any]] = {
    sp.Add: lambda *a: mp.fsum(a),
    sp.Mul: lambda *a: mp.fprod(a),
    sp.Pow: lambda a, b: a**b,
    sp.Max: max,
    sp.Min: min,
    sp.ceiling: mp.ceil,
    sp.floor: mp.floor,
    sp.log: mp.log,
    sp.exp: mp.exp,
}

_RELATIONS: Mapping[type, Callable[[Any, Any], Any]] = {
    sp.Ge: operator.ge,
    sp.Gt: operator.gt,
    sp.Le: operator.le,
    sp.Lt: operator.lt,
    sp.Ne: operator.ne,
    sp.Eq: operator.eq,
}


def number(expr: Expr, at: Mapping[Any, Any]) -> Any:
    """A number without compiling: `sympy.lambdify` takes seconds for a Max of symbols, because it builds it anew."""
    if expr.is_Symbol:
        return at[expr]
    if expr.is_Number:
        return mp.mpf(expr.p) / expr.q if expr.is_Rational else mp.mpf(float(expr))
    value = _OPERATIONS[expr.func](*(number(arg, at) for arg in expr.args))
    if isinstance(value, mp.mpc):
        raise ValueError(f"{expr} is not real here")
    return value


def verdict(problem: Problem, root: Root, assume: tuple[sp.Basic, ...] = ()) -> str:
    """ "holds" on every shape found, "wrong" on one of them, or "unseen": no random shape met the conditions."""
    exprs = [problem.lhs, problem.rhs, root.value, *root.conditions, *assume]
    names = sorted(set().union(*(e.free_symbols for e in exprs)) - {problem.x}, key=str)
    seen = 0
    for shape in _shapes(names):
        with mp.workdps(DIGITS):
            gap = _gap(problem, root, assume, shape)
        if gap is not None and gap > TOLERANCE:
            return "wrong"
        seen += gap is not None
        if seen == WANTED:
            break
    return "holds" if seen else "unseen"


def _shapes(names: list[sp.Symbol]) -> Iterator[dict[Any, Any]]:
    """Random values over six factors of ten, the same in every run."""
    generator = random.Random(20)
    for _ in range(TRIALS):
        yield {name: mp.mpf(10 ** generator.uniform(0, 6)) for name in names}


def _gap(problem: Problem, root: Root, assume: tuple[sp.Basic, ...], shape: dict[Any, Any]) -> Any:
    """lhs - rhs at the root over the largest term, None where the conditions do not hold."""
    try:
        at = shape | {problem.x: number(root.value, shape)}
        if not all(_holds(c, at) for c in (*root.conditions, *assume)):
            return None
        terms = [term for side in (problem.lhs, -problem.rhs) for term in sp.Add.make_args(side)]
        values = [number(term, at) for term in terms]
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return abs(mp.fsum(values)) / max(1e-300, *(abs(v) for v in values))


def _holds(condition: sp.Basic, at: Mapping[Any, Any]) -> bool:
    left, right = number(condition.lhs, at), number(condition.rhs, at)
    return bool(_RELATIONS[condition.func](left, right))
