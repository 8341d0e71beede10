"""Max, Min, Abs, Piecewise, ceiling and floor taken apart, so that what is left is a smooth function.

`sympy.solve` cannot solve an equation with a Max.  Here the range of the unknown is cut where the active argument of
the innermost such node changes; on each piece the node is replaced by its active argument, and so on outwards.  The
number of pieces grows with the number of kinks, not with the number of combinations.  With symbols left in the
coefficients the kinks have no order, so all combinations are listed with their conditions (`branches`).

Steps (ceiling, floor) have a cell per value and no end of cells.  `windows` finds where cells can matter at all: the
rounded value lies between its argument and its argument + 1, so wherever the function has one sign with both put in,
no cell can hold a root.  (Functions here are monotone in every rounded count; `windows` checks this on samples.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise, product
from typing import NamedTuple

import sympy as sp

from roofline.solver.ordered import inside, rising
from roofline.solver.rational import NotRational, approx, between, cuts, fraction, limit, real_roots, sign_at
from roofline.symbols import Expr, maximum

STEPS = (sp.ceiling, sp.floor)
KINKS = (sp.Max, sp.Min, sp.Piecewise)
MAX_CELLS = 256
SAMPLES = 14


Choices = tuple[tuple[Expr, Expr], ...]
Decide = Callable[[Expr], bool | None]


class Segment(NamedTuple):
    """A smooth piece: between `low` and `high` the function is `expr`, by these choices (node, active argument)."""

    low: Expr
    high: Expr
    expr: Expr
    choices: Choices


class Branch(NamedTuple):
    """A smooth piece with symbols left: valid where every condition (an expression) is >= 0."""

    expr: Expr
    conditions: tuple[Expr, ...]
    choices: Choices


def put(expr: Expr, new: dict[Expr, Expr]) -> Expr:
    """`xreplace` that does not make Max and Min compare all their arguments (24 times faster on symbols)."""
    return _put(expr, new, {})


def _put(expr: Expr, new: dict[Expr, Expr], known: dict[Expr, Expr]) -> Expr:
    """`known` holds what was replaced already: the same part may occur many times."""
    if expr in new:
        return new[expr]
    if not expr.args:
        return expr
    if expr not in known:
        args = [_put(a, new, known) for a in expr.args]
        known[expr] = expr if all(a is b for a, b in zip(args, expr.args, strict=True)) else _rebuilt(expr, args)
    return known[expr]


def _rebuilt(expr: Expr, args: list[Expr]) -> Expr:
    if isinstance(expr, (sp.Max, sp.Min)):
        pick = max if isinstance(expr, sp.Max) else min
        return pick(args, key=approx) if all(a.is_number for a in args) else expr.func(*args, evaluate=False)
    return expr.func(*args)


def prepared(expr: Expr) -> Expr:
    """Abs and Mod written with Max and floor; floats as the decimal fractions they were typed as."""
    if expr.has(sp.Abs):
        expr = expr.replace(sp.Abs, lambda a: maximum(a, -a))
    if expr.has(sp.Mod):
        expr = expr.replace(sp.Mod, lambda a, b: a - b * sp.floor(a / b))
    floats = expr.atoms(sp.Float)
    return put(expr, {f: sp.Rational(str(f)) for f in floats}) if floats else expr


def innermost(expr: Expr, x: sp.Symbol, kinds: tuple[type, ...]) -> Expr | None:
    """The first node of these kinds that depends on `x` and holds no other such node; None if there is none."""
    return _innermost(expr, x, kinds)[1]


def _innermost(expr: Expr, x: sp.Symbol, kinds: tuple[type, ...]) -> tuple[bool, Expr | None]:
    """Whether the expression depends on `x`, and the node."""
    depends = expr == x
    for arg in expr.args:
        inner, found = _innermost(arg, x, kinds)
        if found is not None:
            return True, found
        depends = depends or inner
    return depends, expr if depends and isinstance(expr, kinds) else None


def has_steps(expr: Expr, x: sp.Symbol) -> bool:
    """Whether a ceiling or floor depends on the unknown."""
    return any(node.has(x) for node in expr.atoms(*STEPS))


def segments(expr: Expr, x: sp.Symbol, low: Expr, high: Expr) -> list[Segment]:
    """Smooth pieces between `low` and `high`, in order.  Raises NotRational where a cut has no closed form."""
    return list(_pieces(expr, x, low, high))


@lru_cache(maxsize=256)
def _pieces(expr: Expr, x: sp.Symbol, low: Expr, high: Expr) -> tuple[Segment, ...]:
    return tuple(_segments(expr, x, low, high, ()))


def _segments(expr: Expr, x: sp.Symbol, low: Expr, high: Expr, chosen: Choices) -> Iterator[Segment]:
    node = innermost(expr, x, KINKS + STEPS)
    if node is None:
        yield Segment(low, high, expr, chosen)
        return
    points = [low, *_cut_points(node, x, low, high), high]
    for a, b in pairwise(points[:MAX_CELLS]):  # the rest of the range is not searched; the last piece's end says so
        active = _active(node, x, between(a, b))
        yield from _segments(put(expr, {node: active}), x, a, b, (*chosen, (node, active)))


@lru_cache(maxsize=1024)
def _cut_points(node: Expr, x: sp.Symbol, low: Expr, high: Expr) -> tuple[Expr, ...]:
    """Where the active argument of a node, all of whose arguments are smooth, may change."""
    if isinstance(node, STEPS):
        return tuple(_cell_edges(node.args[0], x, low, high))
    if isinstance(node, sp.Piecewise):
        relations = {r for _, condition in node.args for r in condition.atoms(sp.core.relational.Relational)}
        differences = [r.lhs - r.rhs for r in relations]
    else:
        differences = [a - b for i, a in enumerate(node.args) for b in node.args[:i]]
    return tuple(sorted({p for d in differences for p in cuts(d, x, low, high)}, key=rising))


@lru_cache(maxsize=4096)
def _active(node: Expr, x: sp.Symbol, point: Expr) -> Expr:
    """The active argument at a point; the first one where several are equal."""
    if isinstance(node, STEPS):
        return node.func(node.args[0].xreplace({x: point}))
    if isinstance(node, sp.Piecewise):
        for value, condition in node.args:
            if condition.xreplace({x: point}) == sp.true:
                return value
        raise NotRational(str(node))
    best = node.args[0]
    for other in node.args[1:]:
        sign = sign_at(other - best, x, point)
        if sign > 0 if isinstance(node, sp.Max) else sign < 0:
            best = other
    return best


def _cell_edges(inner: Expr, x: sp.Symbol, low: Expr, high: Expr) -> list[Expr]:
    """Where `inner` passes a whole number, at most MAX_CELLS of them on each stretch between two turns."""
    top, bottom = fraction(inner, x)
    slope = top.diff(x) * bottom - top * bottom.diff(x)
    turns = sorted({p for q in (slope, bottom) for p in real_roots(q) if inside(low, p, high)}, key=rising)
    edges = set(turns)
    for a, b in pairwise([low, *turns, high]):
        start, stop = limit(inner, x, a, "+"), limit(inner, x, b, "-")
        for whole in _whole_numbers(start, stop):
            edges |= {p for p in real_roots(top - whole * bottom) if inside(a, p, b)}
    return sorted(edges, key=rising)


def _whole_numbers(start: Expr, stop: Expr) -> Iterator[sp.Integer]:
    """Whole numbers from `start` to `stop`, in that direction; at most MAX_CELLS."""
    if start.is_infinite:
        start, stop = stop, start
        if start.is_infinite:
            start = sp.Integer(0)
    up = (stop - start).is_extended_positive
    whole = sp.ceiling(start) if up else sp.floor(start)
    for _ in range(MAX_CELLS):
        if whole > stop if up else whole < stop:
            return
        yield whole
        whole += 1 if up else -1


def resolved(expr: Expr, x: sp.Symbol, value: Expr) -> Expr:
    """`expr` with every choice made as it falls at one value of the unknown (exact, surds included)."""
    while (node := innermost(expr, x, KINKS + STEPS)) is not None:
        expr = put(expr, {node: _active(node, x, value)})
    return expr


def windows(expr: Expr, x: sp.Symbol, low: Expr, high: Expr) -> list[tuple[Expr, Expr]]:
    """Parts of the range where steps can bring `expr` to zero (the whole range if it has no steps)."""
    if not has_steps(expr, x):
        return [(low, high)]
    corners = envelope(expr, x, (sp.Integer(0), sp.Integer(1)))
    if not _monotone(expr, x, low, high, corners):
        return [(low, high)]
    pieces = [p for corner in corners for p in segments(corner, x, low, high)]
    points = {p for piece in pieces for p in (piece.low, *cuts(piece.expr, x, piece.low, piece.high))} | {low, high}
    zeros = {p for s in pieces for p in real_roots(fraction(s.expr, x)[0]) if s.low <= p <= s.high}
    found: list[tuple[Expr, Expr]] = []
    for a, b in pairwise(sorted(points, key=approx)):
        signs = {int(sp.sign(put(corner, {x: between(a, b)}))) for corner in corners}
        parts = [(a, b)] if signs not in ({1}, {-1}) else [(end, end) for end in (a, b) if end in zeros]
        for start, end in parts:  # of a part with one sign only an end can be zero, as in (x - 5) ceiling(x / 2)
            joined = found and found[-1][1] == start
            found = [*found[:-1], (found[-1][0], end)] if joined else [*found, (start, end)]
    return found


def envelope(expr: Expr, x: sp.Symbol, offsets: tuple[Expr, ...]) -> list[Expr]:
    """`expr` with each rounded value replaced by its argument plus each of the offsets (minus, for floor)."""
    out = []
    for combination in product(offsets, repeat=min(sum(n.has(x) for n in expr.atoms(*STEPS)), 4)):
        filled, k = expr, 0
        while (node := innermost(filled, x, STEPS)) is not None:
            offset = combination[min(k, len(combination) - 1)]
            filled = put(filled, {node: node.args[0] + (offset if isinstance(node, sp.ceiling) else -offset)})
            k += 1
        out.append(filled)
    return out


def _monotone(expr: Expr, x: sp.Symbol, low: Expr, high: Expr, corners: list[Expr]) -> bool:
    """Whether, on samples, the function with half-rounded values lies between its corners."""
    inside = envelope(expr, x, (sp.Rational(1, 3), sp.Rational(2, 3)))
    first = float(low) if low > 0 else float(min(high, sp.Integer(1))) / 1000
    last = float(high) if high.is_finite else first * 1e12
    for k in range(SAMPLES):
        point = sp.Rational(first * (last / first) ** ((k + 0.5) / SAMPLES))
        at = [put(c, {x: point}) for c in corners]
        if any(not min(at) <= put(f, {x: point}) <= max(at) for f in inside):
            return False
    return True


def branches(expr: Expr, x: sp.Symbol, decide: Decide) -> Iterator[Branch]:
    """Every combination of active arguments that `decide` (sign of an expression, >= 0) does not exclude."""
    yield from _branches(expr, x, decide, (), ())


def _branches(expr: Expr, x: sp.Symbol, decide: Decide, held: tuple[Expr, ...], chosen: Choices) -> Iterator[Branch]:
    node = innermost(expr, x, KINKS + STEPS)
    if node is None:
        yield Branch(expr, held, chosen)
        return
    if not isinstance(node, (sp.Max, sp.Min)):
        raise NotRational(str(node))
    for i, active in enumerate(node.args):
        sign = 1 if isinstance(node, sp.Max) else -1
        needed = [sign * (active - other) for j, other in enumerate(node.args) if j != i]
        verdicts = [True if need in held else decide(need) for need in needed]
        if False not in verdicts:
            more = tuple(n for n, v in zip(needed, verdicts, strict=True) if v is None)
            yield from _branches(put(expr, {node: active}), x, decide, held + more, (*chosen, (node, active)))
