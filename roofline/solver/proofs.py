"""Why an equation in one unknown has no root: limits at both ends of the range, trend, closest approach, jumps.

"No answer" is an answer here; it carries the limit that proves it.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from roofline.solver.branches import envelope, has_steps, put, segments
from roofline.solver.numbers import Problem
from roofline.solver.ordered import inside
from roofline.solver.rational import approx, between, direction, fraction, limit, real_roots
from roofline.solver.solution import Solution, shown
from roofline.symbols import Expr

TREND = {1: "increasing", -1: "decreasing"}


def explained(problem: Problem, solution: Solution) -> Solution:
    """The solution with the limits of its quantity and, if there is no root, the reason."""
    quantity = compared(problem)
    done = replace(
        solution,
        limit_low=end_limit(quantity, problem, "low"),
        limit_high=end_limit(quantity, problem, "high"),
        trend=_trend(quantity, problem),
    )
    return done if solution else replace(done, reason=_reason(problem, done, quantity))


def compared(problem: Problem) -> Expr:
    """The left side, or lhs / rhs if both sides depend on the unknown."""
    return problem.lhs / problem.rhs if problem.rhs.has(problem.x) else problem.lhs


def _reason(problem: Problem, done: Solution, quantity: Expr) -> str:
    name, target = problem.labels
    both, unknown = problem.rhs.has(problem.x), problem.unknown
    label = f"{name} / {target}" if both else name
    goal = "1" if both else f"{target} {shown(problem.rhs)}"
    point = between(problem.low, problem.high)
    side = "below" if put(quantity, {problem.x: point}) < (1 if both else problem.rhs) else "above"
    if not quantity.has(problem.x):
        return f"{label} does not depend on {unknown}: it is {shown(quantity)}, {side} {goal}"
    if done.jumps:
        jump = done.jumps[0]
        values = f"from {shown(jump.before)} to {shown(jump.after)}"
        return f"{name} jumps over {target} at {unknown} = {shown(jump.at)} ({values})"
    ends = ((done.limit_low, done.low), (done.limit_high, done.high))
    path = " to ".join(f"{'?' if v is None else shown(v)} ({unknown} -> {shown(e)})" for v, e in ends)
    how = f", {done.trend}" if done.trend in TREND.values() else _closest(quantity, problem, side, done)
    return f"{label} goes from {path}{how}; it stays {side} {goal} for every value of {unknown}"


def _closest(quantity: Expr, problem: Problem, side: str, done: Solution) -> str:
    """The extreme value between the ends, where it comes closer than the limits."""
    if has_steps(quantity, problem.x):
        return ""
    x, low, high = problem.x, problem.low, problem.high
    points: set[Expr] = set()
    for piece in segments(quantity, x, low, high):
        top, bottom = fraction(piece.expr, x)
        slope = top.diff(x) * bottom - top * bottom.diff(x)
        turns = () if slope.is_zero else real_roots(slope)
        points |= {p for p in (piece.low, piece.high, *turns) if low < p < high and piece.low <= p <= piece.high}
    if not points:
        return ""
    pick, word = (max, "at most") if side == "below" else (min, "at least")
    best = pick(sorted(points, key=approx), key=lambda p: approx(put(quantity, {x: approx(p)})))
    value = approx(put(quantity, {x: approx(best)}))
    if any(v is not None and pick(v, value) == v for v in (done.limit_low, done.limit_high)):
        return ""
    return f", {word} {float(value):.8g} (at {problem.unknown} = {shown(best)})"


def end_limit(quantity: Expr, problem: Problem, end: str) -> Expr | None:
    """Limit at the low or high end of the range; with steps, that of all their bounds if they agree."""
    x, low, high = problem.x, problem.low, problem.high
    if not quantity.has(x):
        return quantity
    if has_steps(quantity, x):
        if end == "high" and high.is_infinite:
            return _limit_between_steps(quantity, problem)
        near = sp.Rational(1, 1000)
        low, high = (low, min(high, low + near)) if end == "low" else (max(low, high - near), high)
    piece = segments(quantity, x, low, high)[0 if end == "low" else -1]
    return limit(piece.expr, x, low, "+") if end == "low" else limit(piece.expr, x, high, "-")


def _limit_between_steps(quantity: Expr, problem: Problem) -> Expr | None:
    bounds = envelope(quantity, problem.x, (sp.Integer(0), sp.Integer(1)))
    last = [segments(b, problem.x, problem.low, problem.high)[-1].expr for b in bounds]
    limits = {limit(expr, problem.x, problem.high) for expr in last}
    return limits.pop() if len(limits) == 1 else None


def _trend(quantity: Expr, problem: Problem) -> str:
    if has_steps(quantity, problem.x):
        return ""
    pieces = segments(quantity, problem.x, problem.low, problem.high)
    if any(inside(p.low, pole, p.high) for p in pieces for pole in real_roots(fraction(p.expr, problem.x)[1])):
        return ""
    trends = {direction(p.expr, problem.x, p.low, p.high) for p in pieces} - {0}
    return TREND.get(trends.pop(), "") if len(trends) == 1 else "" if trends else "constant"
