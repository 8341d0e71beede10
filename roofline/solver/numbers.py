"""Equations in which the unknown is the only symbol left: every root, exactly, and the proof where there is none.

The range is cut into smooth pieces (`roofline.solver.branches`); a piece is a rational function whose numerator has
finitely many real roots, all of which are found (`roofline.solver.rational`).  Nothing is sampled, except the sign
between two neighbouring roots, which cannot change there.  Only equations that are not piecewise rational go to
`roofline.solver.scan`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import sympy as sp

from roofline.solver.branches import Choices, Segment, has_steps, put, resolved, segments, windows
from roofline.solver.ordered import inside, order, rising
from roofline.solver.rational import approx, between, fraction, limit, real_roots, sign_at
from roofline.solver.solution import Interval, Jump, Rejected, Root, Solution, shown
from roofline.symbols import Expr

TOLERANCE = 1e-12
Signs = dict[tuple[Expr, Expr], int]


class Problem(NamedTuple):
    """lhs = rhs in the dummy `x`, which stands for `unknown`, between `low` and `high` (ends open or closed)."""

    lhs: Expr
    rhs: Expr
    x: sp.Symbol
    unknown: str
    low: Expr
    high: Expr
    low_open: bool
    high_open: bool
    labels: tuple[str, str]

    @property
    def difference(self) -> Expr:
        """lhs - rhs."""
        return self.lhs - self.rhs

    def outside(self, value: Expr) -> str:
        """Why a value is not in the range; empty if it is."""
        low, high = order(value, self.low), order(value, self.high)
        if low < 0 or (self.low_open and low == 0):
            sign = ">" if self.low_open else ">="
            return f"{shown(value)} lies below the range {self.unknown} {sign} {shown(self.low)}"
        if high > 0 or (self.high_open and high == 0):
            sign = "<" if self.high_open else "<="
            return f"{shown(value)} lies above the range {self.unknown} {sign} {shown(self.high)}"
        return ""


def solve_numbers(problem: Problem) -> Solution:
    """All roots, rejected roots, intervals of equality and jumps.  Raises NotRational if there is no such form."""
    x, f = problem.x, problem.difference
    parts = windows(f, x, problem.low, problem.high)
    pieces = [piece for part in parts for piece in segments(f, x, *part)]
    intervals = _intervals(pieces, x)
    accepted, rejected = _roots(problem, pieces, intervals)
    points = {p for s in pieces for p in (s.low, s.high, *real_roots(fraction(s.expr, x)[1]))}
    inner = {p for p in points | {r.value for r in accepted} if inside(problem.low, p, problem.high)}
    marks = [problem.low, *sorted(inner, key=rising), problem.high]
    signs = {(a, b): _sign_between(problem, pieces, a, b) for a, b in pairwise(marks)}
    return Solution(
        problem.unknown,
        tuple(_with_sides(root, marks, signs) for root in accepted),
        tuple(rejected),
        intervals=intervals,
        jumps=_jumps(problem, marks, signs, {r.value for r in accepted}),
        low=problem.low,
        high=problem.high,
        searched=_stopped(problem, pieces, parts),
    )


def _sign_between(problem: Problem, pieces: list[Segment], a: Expr, b: Expr) -> int:
    """Sign of lhs - rhs between two neighbouring marks: that of the piece there, where one was looked at."""
    point = between(a, b)
    for piece in pieces:
        if order(piece.low, a) <= 0 and order(b, piece.high) <= 0:
            return sign_at(piece.expr, problem.x, point)
    return int(sp.sign(put(problem.difference, {problem.x: point})))


def _stopped(problem: Problem, pieces: list[Segment], parts: list[tuple[Expr, Expr]]) -> str:
    """A note if the cells of a step were too many to go through."""
    reached = [max((p.high for p in pieces if order(p.high, end) <= 0), key=rising) for _, end in parts]
    early = [r for r, (_, end) in zip(reached, parts, strict=True) if r != end]
    return f"only up to {problem.unknown} = {shown(early[0])}: too many steps beyond" if early else ""


def _intervals(pieces: list[Segment], x: sp.Symbol) -> tuple[Interval, ...]:
    """Pieces on which both sides are identical, neighbours joined."""
    found: list[Interval] = []
    for piece in pieces:
        if not fraction(piece.expr, x)[0].is_zero:
            continue
        if found and found[-1].high == piece.low:
            found[-1] = Interval(found[-1].low, piece.high)
        else:
            found.append(Interval(piece.low, piece.high))
    return tuple(found)


def _roots(
    problem: Problem, pieces: list[Segment], intervals: tuple[Interval, ...]
) -> tuple[list[Root], list[Rejected]]:
    accepted: dict[Expr, Root] = {}
    rejected: dict[Expr, Rejected] = {}
    stepped = has_steps(problem.difference, problem.x)
    for piece in pieces:
        top = fraction(piece.expr, problem.x)[0]
        for value in real_roots(top):
            text, misplaced = branch_text(piece.choices, problem), _misplaced(piece, value)
            if misplaced and stepped:
                continue  # a cell's own line meets the target in countless places outside its cell
            if reason := problem.outside(value) or misplaced:
                rejected.setdefault(value, Rejected(value, reason, text))
            elif (residual := residual_at(problem, value)) > TOLERANCE:
                rejected.setdefault(value, Rejected(value, "does not satisfy the equation put back", text))
            elif not any(order(i.low, value) <= 0 <= order(i.high, value) for i in intervals):
                accepted.setdefault(value, Root(value, problem.unknown, (), residual, text))
    ordered = sorted(accepted.values(), key=lambda r: rising(r.value))
    others = sorted((r for v, r in rejected.items() if v not in accepted), key=lambda r: rising(r.value))
    return ordered, others


def _misplaced(piece: Segment, value: Expr) -> str:
    """Why a root of a branch is not on the piece where the branch is active; empty if it is."""
    if order(value, piece.low) < 0:
        return f"{shown(value)} lies below {shown(piece.low)}, where this branch begins"
    if order(value, piece.high) > 0:
        return f"{shown(value)} lies above {shown(piece.high)}, where this branch ends"
    return ""


def residual_at(problem: Problem, value: Expr) -> float:
    """0 if the equation as asked holds exactly at the value, else its numerator over the largest term of that.

    Not over the terms as they were asked: in (x^5 - x - 1) (x + 1) = 0 the one term is as small as the error.
    """
    top = fraction(resolved(problem.difference, problem.x, value), problem.x)[0]
    if not value.is_Float and (top.is_zero or value in real_roots(top)):
        return 0
    terms = [approx(factor * value**power) for (power,), factor in top.terms()]
    return float(abs(sum(terms)) / max(abs(term) for term in terms))


def _with_sides(root: Root, marks: list[Expr], signs: Signs) -> Root:
    """The root with the sign of lhs - rhs on either side of it."""
    gaps = list(pairwise(marks))
    before = next((signs[gap] for gap in gaps if gap[1] == root.value), None)
    after = next((signs[gap] for gap in gaps if gap[0] == root.value), None)
    return replace(root, before=before, after=after)


def _jumps(problem: Problem, marks: list[Expr], signs: Signs, found: set[Expr]) -> tuple[Jump, ...]:
    """Points that are no root, with opposite signs on either side."""
    jumps = []
    for a, b, c in zip(marks, marks[1:], marks[2:], strict=False):
        if b not in found and signs[a, b] * signs[b, c] < 0:
            left = segments(problem.lhs, problem.x, a, b)[-1]
            right = segments(problem.lhs, problem.x, b, c)[0]
            jumps.append(Jump(b, limit(left.expr, problem.x, b, "-"), limit(right.expr, problem.x, b, "+")))
    return tuple(jumps)


def branch_text(choices: Choices, problem: Problem) -> str:
    """Which argument of each Max, Min, ... is active, in a few words."""
    name = sp.Symbol(problem.unknown)
    parts = []
    for node, active in choices:
        text = str(active.xreplace({problem.x: name}))
        parts.append(f"{type(node).__name__} = {text if len(text) <= 60 else text[:57] + '...'}")
    return "; ".join(dict.fromkeys(parts))
