"""Equations with symbols left in the coefficients: closed forms with the conditions under which they hold.

Every combination of active arguments of the Max and Min that depend on the unknown is a branch with conditions; the
branch is linear or quadratic in the unknown (or falls into such factors) and is solved by the formula.  Conditions
that the signs of the symbols or the given assumptions decide are dropped (true) or reject the root (false); the
others are returned with it.  A Max or ceiling without the unknown is an ordinary coefficient.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import sympy as sp

from roofline.errors import BadValue
from roofline.solver.branches import KINKS, STEPS, Branch, branches, innermost, put
from roofline.solver.numbers import Problem, branch_text
from roofline.solver.rational import NotRational
from roofline.solver.signs import Signs
from roofline.solver.solution import Interval, Rejected, Root, Solution
from roofline.solver.witness import verdict
from roofline.symbols import SYMBOLS, Expr

Assumptions = tuple[sp.Basic, ...]
Names = dict[Expr, Expr]


@dataclass
class Found:
    """What the branches have given so far."""

    roots: list[Root] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    intervals: list[Interval] = field(default_factory=list)


def solve_symbols(problem: Problem, assume: Assumptions = ()) -> Solution:
    """All roots with their conditions.  Raises BadValue where there is no closed form."""
    signs = Signs(problem, assume)
    problem, names = _hidden(problem, signs)
    found = Found()
    try:
        for branch in branches(problem.difference, problem.x, signs.nonnegative):
            _solve_branch(problem, branch, signs, found)
    except NotRational:
        raise _no_closed_form(problem, names) from None
    found.roots = _verified(problem, _merged(found), assume, found)
    return _with_reason(problem, _named(problem, found, names), names)


def _hidden(problem: Problem, signs: Signs) -> tuple[Problem, Names]:
    """The problem with Max, ceiling, ... without the unknown as plain symbols, and what every dummy stands for."""
    lhs, rhs = (_settled(side, problem.x, signs) for side in (problem.lhs, problem.rhs))
    nodes = [n for n in (lhs - rhs).atoms(*KINKS, *STEPS) if not n.has(problem.x)]
    marks: Names = {}
    for i, node in enumerate(sorted(nodes, key=str)):  # sorted, so that two runs agree
        marks[node] = sp.Dummy(f"c{i}", positive=node.is_positive or None, real=True)
    unknown = SYMBOLS.get(problem.unknown, sp.Symbol(problem.unknown))
    names = {mark: node for node, mark in marks.items()} | {problem.x: unknown}
    return problem._replace(lhs=put(lhs, marks), rhs=put(rhs, marks)), names


def _settled(side: Expr, x: sp.Symbol, signs: Signs) -> Expr:
    """Max and Min without the unknown decided where signs and assumptions do it (Max(0, topk) is topk)."""
    for node in sorted((n for n in side.atoms(sp.Max, sp.Min) if not n.has(x)), key=sp.count_ops):
        for arg in node.args:
            others = (other for other in node.args if other != arg)
            if all(signs.nonnegative(arg - o if isinstance(node, sp.Max) else o - arg) for o in others):
                side = put(side, {node: arg})
                break
    return side


def _no_closed_form(problem: Problem, names: Names) -> BadValue:
    symbols = (problem.lhs - problem.rhs).free_symbols - set(names)
    symbols |= set().union(*(n.free_symbols for n in names.values())) - {names[problem.x]}
    wanted = ", ".join(sorted(s.name for s in symbols))
    return BadValue(problem.unknown, "an equation without closed form", f"numbers for {wanted}")


def _solve_branch(problem: Problem, branch: Branch, signs: Signs, found: Found) -> None:
    """Add the roots of one smooth branch, or the interval on which it is identically zero."""
    top = sp.fraction(sp.together(branch.expr))[0]
    if not top.is_polynomial(problem.x):
        raise NotRational(str(top))
    poly = sp.Poly(top, problem.x)
    if poly.is_zero:
        low, high, left = signs.interval(branch.conditions)
        open_ = (signs.simplified(c, False) for c in left)
        found.intervals.append(Interval(low, high, tuple(c for c in open_ if c not in (True, sp.true))))
        return
    text = branch_text(branch.choices, problem)
    for factor in _factors(poly):
        for value, larger, needed in _formula(factor, signs):
            outcome = signs.conditions(value, factor, larger, branch.conditions, needed)
            if isinstance(outcome, str):
                found.rejected.append(Rejected(value, outcome, text))
            else:
                found.roots.append(Root(value, problem.unknown, outcome, 0, text))


def _factors(poly: sp.Poly) -> list[sp.Poly]:
    """Factors that depend on the unknown."""
    if poly.degree() == 1:
        return [poly]
    x = poly.gen
    return [sp.Poly(factor, x) for factor, _ in sp.factor_list(poly.as_expr())[1] if factor.has(x)]


def _formula(poly: sp.Poly, signs: Signs) -> Iterator[tuple[Expr, bool | None, list[sp.Basic]]]:
    """Roots of a linear or quadratic polynomial: value, whether it is the larger of two, what it needs to exist."""
    if poly.degree() == 1:
        a, b = poly.all_coeffs()
        value = sp.factor(-b / a)
        below = sp.fraction(value)[1]
        yield value, None, signs.undecided(sp.Ne(below, 0), below)
        return
    if poly.degree() != 2:
        raise NotRational(str(poly))
    a, b, c = poly.all_coeffs()
    if signs.sign(a) == -1:
        a, b, c = -a, -b, -c
    disc = sp.factor(b * b - 4 * a * c)
    if signs.sign(disc) == -1:
        return
    needed = [] if signs.sign(disc) == 1 else [disc >= 0]
    needed += signs.undecided(sp.Ne(a, 0), a)
    half, spread = sp.factor(-b / (2 * a)), sp.sqrt(sp.factor(disc / (4 * a * a)))
    for side in (-1, 1):
        yield half + side * spread, (side == 1) if signs.sign(a) == 1 else None, needed


def _merged(found: Found) -> list[Root]:
    """Equal values once, under the weaker conditions; the end of an interval of equality is not a root besides."""
    kept: list[Root] = []
    for root in found.roots:
        held = set(root.conditions)
        if any(root.value in (i.low, i.high) and set(i.conditions) <= held for i in found.intervals):
            continue
        same = [r for r in kept if r.value == root.value]
        if any(set(r.conditions) <= held for r in same):
            continue
        kept = [r for r in kept if r not in same or not held.issubset(r.conditions)] + [root]
    return kept


def _verified(problem: Problem, roots: list[Root], assume: Assumptions, found: Found) -> list[Root]:
    """Each root put back into the whole equation, on random shapes that meet its conditions."""
    kept = []
    for root in roots:
        seen = verdict(problem, root, assume)
        if seen == "wrong":
            found.rejected.append(Rejected(root.value, "does not satisfy the equation put back", root.branch))
        else:
            kept.append(replace(root, witnessed=seen == "holds"))
    return kept


def _named(problem: Problem, found: Found, names: Names) -> Solution:
    """The solution with every dummy replaced by what it stands for."""

    def shown(conditions: tuple[sp.Basic, ...]) -> tuple[sp.Basic, ...]:
        named = (c.xreplace(names) for c in conditions)
        return tuple(dict.fromkeys(c for c in named if c != sp.true))

    values = {root.value for root in found.roots}
    rejected = [r._replace(value=r.value.xreplace(names)) for r in found.rejected if r.value not in values]
    return Solution(
        problem.unknown,
        tuple(replace(r, value=r.value.xreplace(names), conditions=shown(r.conditions)) for r in found.roots),
        tuple(dict.fromkeys(rejected)),
        intervals=tuple(i._replace(conditions=shown(i.conditions)) for i in found.intervals),
        low=problem.low,
        high=problem.high,
    )


def _with_reason(problem: Problem, solution: Solution, names: Names) -> Solution:
    """Limits of the quantity at the ends of the range, and why there is no root, if there is none."""
    x, both, unknown = problem.x, problem.rhs.has(problem.x), problem.unknown
    quantity = problem.lhs / problem.rhs if both else problem.lhs
    label = " / ".join(problem.labels) if both else problem.labels[0]
    if not quantity.has(x):
        return replace(solution, reason="" if solution else f"{label} does not depend on {unknown}")
    limits: list[Expr | None] = [None, None]
    if innermost(quantity, x, KINKS + STEPS) is None:
        limits = [_limit(quantity, x, end) for end in (problem.low, problem.high)]
    low, high = (None if v is None else v.xreplace(names) for v in limits)
    done = replace(solution, limit_low=low, limit_high=high)
    if solution:
        return done
    ends = zip((low, high), (problem.low, problem.high), strict=True)
    path = " to ".join(f"{v} ({unknown} -> {end})" for v, end in ends if v is not None)
    why = "; ".join(dict.fromkeys(f"{r.value} {r.reason}" for r in solution.rejected))
    tail = f": {why}" if why else ""
    return replace(done, reason=f"{label}{' goes from ' + path if path else ''} has no root for any {unknown}{tail}")


def _limit(quantity: Expr, x: sp.Symbol, end: Expr) -> Expr | None:
    """Limit of a rational function with symbols, from inside the range; None where it diverges or is not known."""
    top, bottom = (sp.Poly(part, x) for part in sp.fraction(sp.together(quantity)))
    if end == sp.oo:
        order = top.degree() - bottom.degree()
        return None if order > 0 else sp.factor(top.LC() / bottom.LC()) if order == 0 else sp.Integer(0)
    below = bottom.eval(end)
    return sp.factor(top.eval(end) / below) if below != 0 else None
