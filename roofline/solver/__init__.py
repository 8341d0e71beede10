"""Solve any formula for any of its quantities: all real roots, exact where possible, with conditions and proofs.

    roots(lhs, rhs, unknown)       any equation of sympy expressions
    solve_cost(unknown, cost, ...) a kernel against the ridge, a number, a time, or another kernel

The unknown is replaced by a plain real symbol before anything is solved, so that no assumption (`positive=True`) can
drop a root silently: a root outside the range is returned as rejected, with the reason.

>>> from roofline.symbols import sym
>>> found = roots(sym.seq_len**2 - 13 * sym.seq_len, -36, "seq_len", low=5)
>>> found.roots[0].value, found.rejected[0].reason
(9, '4 lies below the range seq_len >= 5')
>>> roots(2 * sym.heads * sym.latent, sym.ridge, "heads").roots[0].value
ridge/(2*latent)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache
from typing import Any

import sympy as sp

from roofline import law
from roofline.errors import BadValue, UnknownName
from roofline.glossary import GLOSSARY
from roofline.kernel import QUANTITIES, Cost
from roofline.solver.branches import prepared, put
from roofline.solver.numbers import Problem, solve_numbers
from roofline.solver.proofs import explained
from roofline.solver.rational import NotRational
from roofline.solver.scan import scan
from roofline.solver.solution import Interval, Jump, NearestPower, Rejected, Root, Solution, nearest_power_of_two
from roofline.solver.symbolic import solve_symbols
from roofline.symbols import Expr, exact, sym, symbol

__all__ = [
    "Interval", "Jump", "NearestPower", "Rejected", "Root", "Solution", "nearest_power_of_two", "roots", "solve_cost",
]  # fmt: skip

TARGETS = (*QUANTITIES, "time", "time_lower", "time_upper")


def roots(
    lhs: Any,
    rhs: Any,
    unknown: str | sp.Symbol,
    *,
    assume: Iterable[Any] = (),
    low: Any = None,
    high: Any = None,
    labels: tuple[str, str] = ("left side", "right side"),
) -> Solution:
    """All real roots of lhs = rhs in the range of the unknown.

    lhs, rhs: numbers or expressions, which may hold Max, Min, Abs, Piecewise and, with numbers for all other symbols,
    ceiling and floor; assume: relations such as ``sym.seq_len > sym.topk``, those on the unknown narrow its range;
    low, high: ends of the range, themselves included (default: the glossary's range); labels: names in `reason`.
    Raises BadValue where symbols are left and the equation has no closed form.

    >>> roots(sym.tokens / (sym.tokens + 1), 2, "tokens", labels=("share", "target")).reason
    'share goes from 0 (tokens -> 0) to 1 (tokens -> oo), increasing; it stays below target 2 for every value of tokens'
    """
    target = _unknown(unknown)
    x = _plain(target.name)
    swap: dict[Expr, Expr] = {target: x}
    left, right = (prepared(put(exact(side, label), swap)) for side, label in zip((lhs, rhs), labels, strict=True))
    bottom, top, bottom_open, top_open, rest = _range(target, assume, low, high)
    problem = Problem(left, right, x, target.name, bottom, top, bottom_open, top_open, labels)
    if sp.false in rest:
        return Solution(target.name, reason="the assumptions leave nothing of the range", low=bottom, high=top)
    others = (left.free_symbols | right.free_symbols | bottom.free_symbols | top.free_symbols) - {x}
    if others:
        return solve_symbols(problem, tuple(r.xreplace(swap) for r in rest))
    if bottom > top or (bottom == top and (bottom_open or top_open)):
        return Solution(target.name, reason="the assumptions leave nothing of the range", low=bottom, high=top)
    try:
        return explained(problem, solve_numbers(problem))
    except NotRational:
        return scan(problem)
    except TypeError as error:  # sympy leaves a comparison open where hundreds of digits cancel
        if "truth value" not in str(error):
            raise
        wanted = "numbers that a hundred digits tell apart"
        raise BadValue(target.name, "numbers too far apart", wanted, "some are too large or too small") from None


@cache
def _plain(name: str) -> sp.Dummy:
    """The real symbol that stands for an unknown; one a name, so that what was worked out of it is found again."""
    return sp.Dummy(name, real=True)


def _unknown(unknown: str | sp.Symbol) -> sp.Symbol:
    return unknown if isinstance(unknown, sp.Symbol) else symbol(unknown)


def _range(
    target: sp.Symbol, assume: Iterable[Any], low: Any, high: Any
) -> tuple[Expr, Expr, bool, bool, list[sp.Basic]]:
    """Ends of the range, whether each is open, and the assumptions that do not bound the unknown alone."""
    record = GLOSSARY.get(target.name)
    bottom, bottom_open = (exact(record.low), record.low_open) if record else (sp.Integer(0), True)
    top, top_open = sp.oo, True
    if low is not None:
        bottom, bottom_open = exact(low, f"low end of {target.name}"), False
    if high is not None:
        top, top_open = exact(high, f"high end of {target.name}"), False
    rest: list[sp.Basic] = []
    for relation in assume:
        if not getattr(relation, "free_symbols", set()) & {target}:
            rest += [] if relation == sp.true else [sp.sympify(relation)]
            continue
        point, rising, strict = _bound(target, relation)
        if rising and (point - bottom).is_negative is not True:
            bottom, bottom_open = point, strict or (bottom_open and point == bottom)
        elif not rising and (top - point).is_negative is not True:
            top, top_open = point, strict or (top_open and point == top)
    return bottom, top, bottom_open, top_open, rest


def _bound(target: sp.Symbol, relation: Any) -> tuple[Expr, bool, bool]:
    """What a relation says of the unknown: a point, whether the unknown lies above it, and whether strictly."""
    difference = relation.gts - relation.lts if hasattr(relation, "gts") else sp.Integer(0)
    poly = sp.Poly(difference, target) if difference.is_polynomial(target) else None
    if poly is None or poly.degree() != 1 or not (poly.LC().is_positive or poly.LC().is_negative):
        raise BadValue("assume", relation, f"an inequality that bounds {target.name}, or one of other quantities")
    strict = isinstance(relation, (sp.StrictGreaterThan, sp.StrictLessThan))
    return -poly.TC() / poly.LC(), bool(poly.LC().is_positive), strict


def solve_cost(
    unknown: str,
    cost: Cost,
    *,
    quantity: str | None = None,
    target: Any = None,
    equals: Cost | None = None,
    without: Collection[str] = (),
    assume: Iterable[Any] = (),
    low: Any = None,
    high: Any = None,
    **bound: Any,
) -> Solution:
    """Solve one quantity of a kernel or sequence for an unknown.

    quantity: intensity (default), flops, bytes, exps, vector_flops, time_lower (= time), time_upper; with either
    target: a number, an expression, or "ridge" (default for intensity), or equals: another cost, whose same quantity
    it is set equal to (default quantity: flops).  without: legs left out of a time because their rate is not known
    (tensor, vector, exp, memory).  bound: values of quantities, hardware rates included.

    >>> from roofline.kernels import KERNELS
    >>> never = solve_cost("tokens", KERNELS["linear"], ridge=295.3, hidden=128, ffn=512, w_act=2, w_weight=2)
    >>> never.roots, never.limit_high
    ((), 512/5)
    """
    name = quantity or ("flops" if equals is not None else "intensity")
    if name not in TARGETS:
        raise UnknownName("quantity to solve for", name, TARGETS)
    if (equals is None) == (target is None) and not (equals is None and name == "intensity"):
        raise BadValue("target", target, "either a target or another kernel to be equal to")
    if bound.get(unknown) is not None:
        raise BadValue(unknown, bound[unknown], "no value, because it is the unknown")
    lhs = _side(cost, name, without, bound)
    if equals is not None:
        rhs, label = _side(equals, name, without, bound), f"that of {equals.name}"
    elif target is None or target == "ridge":
        rhs, label = _given(sym.ridge if bound.get("ridge") is not None else law.ridge(), bound), "the ridge"
    elif isinstance(target, str):
        raise UnknownName("target", target, ("ridge", "a number"))
    else:
        rhs, label = _given(exact(target, "target"), bound), "the target"
    return roots(lhs, rhs, unknown, assume=assume, low=low, high=high, labels=(f"{name} of {cost.name}", label))


def _side(cost: Cost, name: str, without: Collection[str], bound: dict[str, Any]) -> Expr:
    """One quantity of a cost with everything given put in.

    Only what a kernel gives a default to (widths of rows) has to be bound; the rest is put into the finished formula,
    which is faster than binding because a Max is not built anew.
    """
    defaults = {s.name for kernel in cost.kernels for s in kernel.bindings}
    replaced = {k: v for k, v in bound.items() if k in defaults and v is not None}
    held = cost.bind(**replaced) if replaced else cost
    if name in ("time", "time_lower"):
        return _given(law.time_lower(held, without), bound)
    if name == "time_upper":
        return _given(law.time_upper(held, without), bound)
    return _given(held.quantity(name), bound)


def _given(expr: Expr, bound: dict[str, Any]) -> Expr:
    """The expression with the given values, each of which sees the others, as in `Kernel.bind`."""
    values: dict[Expr, Expr] = {symbol(k): exact(v, k) for k, v in bound.items() if v is not None}
    full = {k: put(v, {other: w for other, w in values.items() if other != k}) for k, v in values.items()}
    return put(expr, full)
