"""Equations in one unknown: roots, intervals, jumps, residuals and the words, worked out by hand."""

from __future__ import annotations

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.errors import BadValue
from roofline.kernel import Kernel, Mac
from roofline.solver import Interval, Jump, roots, solve_cost
from roofline.solver.branches import segments
from roofline.solver.numbers import TOLERANCE, Problem, branch_text, residual_at, solve_numbers
from roofline.symbols import maximum, minimum, sym

X = sp.Symbol("x", real=True)
Z, oo = sp.Integer(0), sp.oo
LABELS = ("left side", "right side")


def problem(lhs: sp.Expr, rhs: sp.Expr | int, low: int = 0, high: sp.Expr = oo, *, closed: bool = False) -> Problem:
    ends = (sp.sympify(low), sp.sympify(high), not closed, not closed)
    return Problem(sp.sympify(lhs), sp.sympify(rhs), X, "heads", *ends, LABELS)


# The range


def test_outside_the_range() -> None:
    open_, closed = problem(X, 1, 2, sp.Integer(8)), problem(X, 1, 2, sp.Integer(8), closed=True)
    below, above = "{} lies below the range heads {} 2", "{} lies above the range heads {} 8"
    assert [open_.outside(sp.Integer(v)) for v in (1, 2, 3, 8, 9)] == [
        below.format(1, ">"), below.format(2, ">"), "", above.format(8, "<"), above.format(9, "<"),
    ]  # fmt: skip
    assert [closed.outside(sp.Integer(v)) for v in (1, 2, 3, 8, 9)] == [
        below.format(1, ">="), "", "", "", above.format(9, "<="),
    ]  # fmt: skip


def test_a_root_at_a_closed_end_has_one_side() -> None:
    """(x - 2)(x - 5)(x - 8) on 2..8: + right of 2, - right of 5, nothing beyond."""
    found = solve_numbers(problem((X - 2) * (X - 5) * (X - 8), 0, 2, sp.Integer(8), closed=True))
    assert [(r.value, r.before, r.after) for r in found.roots] == [(2, None, 1), (5, 1, -1), (8, -1, None)]
    assert (found.low, found.high, found.jumps, found.searched) == (2, 8, (), "")


def test_a_range_of_one_point() -> None:
    """[5, 5] holds 5; [5, 5), (5, 5] and [6, 5] hold nothing."""
    assert roots(sym.heads, 5, "heads", low=5, high=5).values == (5,)
    assert roots(sym.heads, 4, "heads", low=5, high=5).values == ()
    empty = [roots(sym.heads, 5, "heads", low=5, assume=[sym.heads < 5])]
    empty += [roots(sym.heads, 5, "heads", high=5, assume=[sym.heads > 5])]
    empty += [roots(sym.heads, 5, "heads", low=6, high=5)]
    assert [(s.roots, s.reason) for s in empty] == [((), "the assumptions leave nothing of the range")] * 3


def test_a_symbol_of_ones_own_begins_at_zero() -> None:
    """(y - 1/2)(y + 1) y: 0 is not in the range, and neither is -1."""
    y = sp.Symbol("y")
    found = roots(y * (y - sp.Rational(1, 2)) * (y + 1), 0, y)
    assert (found.values, [r.value for r in found.rejected]) == ((0.5,), [-1, 0])
    assert (found.low, found.high) == (0, oo)


def test_a_kernel_that_moves_no_bytes_has_no_intensity() -> None:
    with pytest.raises(BadValue, match="a kernel that moves bytes"):
        solve_cost("batch", Kernel("pure", Mac("b h"), source="this test"), target=3, heads=2)


# Residuals


def test_a_root_is_exact_although_its_terms_are_rounded() -> None:
    """x/3 + x/7 + x/11 = 131/231 x, and x^2 - x/3 - 1/7 = 0 at (1/3 + sqrt(1/9 + 4/7))/2 = (7 + sqrt(301))/42."""
    for value in (sp.Rational(1, 13), sp.Rational(2, 17)):
        (root,) = solve_numbers(problem(X / 3 + X / 7 + X / 11, sp.Rational(131, 231) * value)).roots
        assert (root.value, root.residual, root.is_exact) == (value, 0, True)
    for p, q in ((3, 7), (7, 11), (13, 17)):
        found = solve_numbers(problem(X**2 - X / p, sp.Rational(1, q)))
        (root,) = found.roots
        assert sp.expand(root.value**2 - root.value / p - sp.Rational(1, q)) == 0
        assert (root.residual, root.is_exact) == (0, True)


def test_the_residual_is_the_numerator_over_its_largest_term() -> None:
    """x^2 - 3 at sqrt(2): |2 - 3|/3; at 2: |4 - 3|/4.  x - 5 + 6/x = (x^2 - 5 x + 6)/x at 1: |1 - 5 + 6|/6."""
    assert residual_at(problem(X**2, 3), sp.sqrt(2)) == pytest.approx(1 / 3, rel=1e-15)
    assert residual_at(problem(X**2, 3), sp.Integer(2)) == pytest.approx(1 / 4, rel=1e-15)
    assert residual_at(problem(X + 6 / X, 5), sp.Integer(1)) == pytest.approx(2 / 6, rel=1e-15)
    assert residual_at(problem(X**2, 3), sp.sqrt(3)) == 0
    assert residual_at(problem(X**2, X * X), sp.sqrt(3)) == 0  # the same on both sides
    assert residual_at(problem(X**2, X * X), sp.Rational(1, 3)) == 0
    assert residual_at(problem(maximum(X, 4), 4), sp.sqrt(3)) == 0
    assert residual_at(problem(X**2, 3), sp.sqrt(3).n(40)) < 1e-38
    assert 8e-9 < residual_at(problem(X**2, 3), sp.Float("1.7320508", 40)) < 9e-9
    assert TOLERANCE == 1e-12


def test_a_product_is_no_worse_than_a_sum() -> None:
    """(x^5 - x - 1)(x + 1) is one term: the error of a root in 40 digits is as large as the term itself."""
    (root,) = roots((sym.heads**5 - sym.heads - 1) * (sym.heads + 1), 0, "heads").roots
    assert float(root.value) ** 5 - float(root.value) == pytest.approx(1, rel=1e-14)
    assert root.residual < 1e-38


def test_a_jump_is_no_root() -> None:
    """64 ceiling(x/64) + x: 128 at 64, above 192 right of it, so that 192 is never reached."""
    found = solve_numbers(problem(64 * sp.ceiling(X / 64) + X, 192))
    assert found.roots == ()
    assert found.jumps == (Jump(64, 128, 192),)
    down = solve_numbers(problem(5 - sp.floor(X / 10), sp.Rational(7, 2), high=sp.Integer(100)))
    assert down.jumps == (Jump(20, 4, 3),)
    pole = solve_numbers(problem(1 / (X - 3), 0))
    assert pole.jumps == (Jump(3, -oo, oo),)
    turned = solve_numbers(problem(1 / (X - 3) ** 2, 0))
    assert turned.jumps == ()
    inside = solve_numbers(problem((X - 7) / (X - 3), 0))
    assert ([r.value for r in inside.roots], inside.jumps) == ([7], (Jump(3, oo, -oo),))


# Intervals


def test_neighbouring_intervals_are_one_and_others_stay_apart() -> None:
    """Max(x, 10) = 10 + Max(x - 10, 0) everywhere; the cases below are equal on 0..1, 2..3 and 4..5."""
    assert solve_numbers(problem(maximum(X, 10), 10 + maximum(X - 10, 0))).intervals == (Interval(Z, oo),)
    cases = [(2 * (k % 2), k + 1 > X) for k in range(5)]
    apart = solve_numbers(problem(sp.Piecewise(*cases, (sp.Integer(9), True)), 0))
    assert apart.intervals == tuple(Interval(sp.Integer(k), sp.Integer(k + 1)) for k in (0, 2, 4))
    assert (apart.roots, apart.jumps) == ((), ())


def test_the_end_of_an_interval_is_no_root_besides() -> None:
    """Min(x, 4) = 4 from 4 on; Max(x, 4) = 4 up to 4; (x - 2) Max(x - 4, 0) up to 4, where 2 lies inside."""
    for lhs, interval in ((minimum(X, 4), (4, oo)), (maximum(X, 4), (0, 4))):
        found = solve_numbers(problem(lhs, 4))
        assert (found.roots, found.intervals, found.jumps) == ((), (Interval(*interval),), ())
    found = solve_numbers(problem((X - 2) * (X - 9) * maximum(X - 4, 0), 0))
    assert ([r.value for r in found.roots], found.intervals) == ([9], (Interval(0, 4),))
    assert (found.roots[0].before, found.roots[0].after) == (-1, 1)


# What is rejected


def test_a_root_of_a_branch_elsewhere_is_rejected_with_the_place() -> None:
    """Max(2 x, 12) + Min(x, 4) = 17: below 4: 12 + x gives 5; 4 to 6: 16, never; above 6: 2 x + 4 gives 13/2."""
    found = solve_numbers(problem(maximum(2 * X, 12) + minimum(X, 4), 17))
    assert [r.value for r in found.roots] == [sp.Rational(13, 2)]
    assert [(r.value, r.reason) for r in found.rejected] == [(5, "5 lies above 4, where this branch ends")]
    low = solve_numbers(problem(maximum(2 * X, 12) + minimum(X, 4), 15))
    assert [r.value for r in low.roots] == [3]
    assert [(r.value, r.reason) for r in low.rejected] == [
        (sp.Rational(11, 2), "5.50 lies below 6, where this branch begins")
    ]


def test_roots_and_rejected_in_rising_order() -> None:
    f = (X + 3) * (X - sp.Rational(5, 2)) * (X**2 - 2) * (X - 7) * (X + 1)
    found = solve_numbers(problem(f, 0, high=sp.Integer(6)))
    assert [r.value for r in found.roots] == [sp.sqrt(2), sp.Rational(5, 2)]
    assert [r.value for r in found.rejected] == [-3, -sp.sqrt(2), -1, 7]
    assert found.rejected[0].reason == "-3 lies below the range heads > 0"
    assert found.rejected[3].reason == "7 lies above the range heads < 6"
    assert [(r.before, r.after) for r in found.roots] == [(-1, 1), (1, -1)]  # - at 0: 3 * -5/2 * -2 * -7 * 1


def test_a_root_of_two_branches_is_accepted_once() -> None:
    """Max(x, 8 - x) = 4 touches at 4, a root of both lines; one branch's root is no rejection beside it."""
    found = solve_numbers(problem(maximum(X, 8 - X), 4))
    assert [(r.value, r.before, r.after) for r in found.roots] == [(4, 1, 1)]
    assert found.rejected == ()
    twice = solve_numbers(problem(maximum(X, 12 - X) + 0 * X, 4))
    assert [(r.value, "where this branch" in r.reason) for r in twice.rejected] == [(4, True), (8, True)]


def test_what_a_step_rejects_is_not_listed_cell_by_cell() -> None:
    """x + ceiling(x) = 5/2: cell 1 would have 3/2, outside of 0..1; in cell 2 it is 1/2: nothing is listed."""
    found = solve_numbers(problem(X + sp.ceiling(X), sp.Rational(5, 2)))
    assert (found.roots, found.rejected, found.jumps) == ((), (), (Jump(1, 2, 3),))


# Steps without end


def test_how_far_the_steps_were_searched() -> None:
    """ceiling(x/8)/x = 1/8 at every multiple of 8; 255 cells end at 8 * 255 = 2,040."""
    far = solve_numbers(problem(sp.ceiling(X / 8) / X, sp.Rational(1, 8)))
    assert [r.value for r in far.roots] == [8 * k for k in range(1, 256)]
    assert far.searched == "only up to heads = 2,040: too many steps beyond"
    near = solve_numbers(problem(sp.ceiling(X / 8) / X, sp.Rational(1, 8), high=sp.Integer(33), closed=True))
    assert ([r.value for r in near.roots], near.searched) == ([8, 16, 24, 32], "")
    two = solve_numbers(problem(maximum(X - 50, 50 - X) - sp.ceiling(X / 10), 0))
    assert ([r.value for r in two.roots], two.searched) == ([45, 56], "")


# Words


def test_branch_in_words() -> None:
    names = sp.symbols("a:z", positive=True)
    inner = sp.Add(*names[:15])  # "a + b + ... + o": 15 letters and 14 " + ", 57 characters
    ask = problem(X, 1)
    for more, shown in ((8, "8"), (88, "88")):
        long = inner + more
        text = str(long)
        told = branch_text(((maximum(X, long), long),), ask)
        assert told == f"Max = {text if len(text) <= 60 else text[:57] + '...'}"
        assert len(text) in (61, 62), (shown, len(text))
    exactly = sp.Symbol("y" * 60)
    assert branch_text(((maximum(X, exactly), exactly),), ask) == "Max = " + "y" * 60
    longer = sp.Symbol("y" * 61)
    assert branch_text(((maximum(X, longer), longer),), ask) == "Max = " + "y" * 57 + "..."
    both = ((maximum(X, 4), X), (minimum(X, 9), sp.Integer(9)), (maximum(X, 3), X))
    assert branch_text(both, ask) == "Max = heads; Min = 9"


# The law: what is found is a root, and every change of sign is explained


@settings(max_examples=12)
@given(st.lists(st.integers(1, 19), min_size=1, max_size=4, unique=True), st.integers(1, 30), st.sampled_from([0, 5]))
def test_a_product_of_lines_beside_kinks_has_those_roots(points: list[int], kink: int, tile: int) -> None:
    """Factors that are positive for x > 0 change no root and no sign of a product."""
    f = sp.prod(X - p for p in points) * (maximum(X, kink) + (sp.ceiling(X / tile) if tile else 1))
    found = solve_numbers(problem(f, 0, high=sp.Integer(20)))
    assert [r.value for r in found.roots] == sorted(points)
    assert (found.jumps, found.intervals) == ((), ())
    last = 1 if len(points) % 2 == 0 else -1
    for root in found.roots:
        assert (root.before, root.after) == (last, -last)
        last = -last


def test_the_pieces_of_a_problem_cover_its_range() -> None:
    found = segments(problem(maximum(X, 4), minimum(X, 9)).difference, X, Z, oo)
    assert [(p.low, p.high) for p in found] == [(0, 4), (4, 9), (9, oo)]
