"""Max, Min, Piecewise, ceiling and floor taken apart: pieces, cells, windows and branches worked out by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.solver.branches import (
    MAX_CELLS,
    Branch,
    Segment,
    _monotone,
    _whole_numbers,
    branches,
    envelope,
    has_steps,
    innermost,
    prepared,
    put,
    resolved,
    segments,
    windows,
)
from roofline.solver.rational import NotRational
from roofline.symbols import maximum, minimum

X = sp.Symbol("x", real=True)
A, B, C = sp.symbols("a b c", positive=True)
Z, ONE, HALF, oo = sp.Integer(0), sp.Integer(1), sp.Rational(1, 2), sp.oo
DOWN = sp.ceiling(X) - X  # falls from 1 to 0 in each cell


def at(expr: sp.Expr, point: sp.Expr) -> sp.Expr:
    """The value by sympy's own evaluation."""
    return expr.subs(X, point).doit()


def ends(found: list[Segment]) -> list[sp.Expr]:
    """Low end of the first piece and the high end of every piece; no gap between them."""
    assert all(one.high == two.low for one, two in pairwise(found))
    return [found[0].low, *(piece.high for piece in found)]


# Putting in


def test_put_does_not_compare_symbols_but_picks_among_numbers() -> None:
    both = put(maximum(A, B), {B: A + 1})
    assert both.func == sp.Max  # evaluated, sympy would see that a + 1 is the larger
    assert set(both.args) == {A, A + 1}
    assert set(put(minimum(A, B), {B: A + 1}).args) == {A, A + 1}
    assert set(put(maximum(A, B, X), {B: sp.Integer(4), X: sp.Integer(3)}).args) == {A, 3, 4}
    assert put(maximum(A, B), {A: sp.Integer(2), B: sp.sqrt(5)}) == sp.sqrt(5)
    assert put(minimum(A, B), {A: sp.Integer(2), B: sp.sqrt(5)}) == 2
    assert put(2 * A + maximum(A, B), {maximum(A, B): C}) == 2 * A + C


def test_what_does_not_change_is_not_built_anew() -> None:
    expr = maximum(A, B)
    assert put(expr, {C: ONE}) is expr
    assert put(expr, {}) is expr


def test_absolute_value_and_remainder_and_floats() -> None:
    assert prepared(sp.Abs(X - 3)) == sp.Max(X - 3, 3 - X, evaluate=False)
    assert prepared(sp.Mod(X, 7)) == X - 7 * sp.floor(X / 7)
    assert prepared(X * sp.Float("0.47") + 1) == sp.Rational(47, 100) * X + 1
    assert prepared(X + 1) == X + 1


def test_innermost() -> None:
    inner = maximum(X, A)
    assert innermost(minimum(inner, B) + C, X, (sp.Max, sp.Min)) == inner
    assert innermost(minimum(inner, B), X, (sp.Min,)) == minimum(inner, B)
    assert innermost(maximum(A, B) + X, X, (sp.Max,)) is None
    assert innermost(A, X, (sp.Max,)) is None
    assert has_steps(sp.ceiling(A) + sp.ceiling(X), X)
    assert not has_steps(sp.ceiling(A) + maximum(X, B), X)


# Pieces


def test_pieces_of_max_and_min() -> None:
    expr = maximum(X, 4) - minimum(3 * X, 30)
    assert ends(segments(expr, X, Z, oo)) == [0, 4, 10, oo]
    assert [p.expr for p in segments(expr, X, Z, oo)] == [4 - 3 * X, -2 * X, X - 30]
    first = segments(maximum(X, 4), X, Z, oo)[0]
    assert first.choices == ((maximum(X, 4), 4),)


def test_three_arguments_are_compared_pair_by_pair() -> None:
    """10 until x = 10, x until 3 x - 40 = x at 20."""
    found = segments(maximum(sp.Integer(10), X, 3 * X - 40), X, Z, oo)
    kept = [(p.high, p.expr) for p in found if p.high in (10, 20, oo)]
    assert kept == [(10, 10), (20, X), (oo, 3 * X - 40)]


def test_where_two_arguments_are_the_same_the_first_is_active() -> None:
    for kind in (maximum, minimum):
        node = kind(X**2 + X, X * (X + 1))
        (piece,) = segments(node, X, Z, oo)
        assert piece.expr == node.args[0]


def test_pieces_of_a_piecewise() -> None:
    expr = sp.Piecewise((X, X < 2), (X**2, X <= 5), (sp.Integer(7), True))
    found = segments(expr, X, Z, oo)
    assert [(p.low, p.high, p.expr) for p in found] == [(0, 2, X), (2, 5, X**2), (5, oo, 7)]
    crossed = sp.Piecewise((X, X**2 > 3 * X + 4), (-X, True))  # from x = 4 on
    assert [(p.high, p.expr) for p in segments(crossed, X, Z, oo)] == [(4, -X), (oo, X)]
    with pytest.raises(NotRational):
        segments(sp.Piecewise((X, X < 2)), X, Z, oo)


def test_cells_of_a_step() -> None:
    found = segments(sp.ceiling(X / 10) * X, X, sp.Integer(15), sp.Integer(40))
    assert [(p.low, p.high, p.expr) for p in found] == [(15, 20, 2 * X), (20, 30, 3 * X), (30, 40, 4 * X)]
    found = segments(sp.floor(X / 10), X, sp.Integer(15), sp.Integer(40))
    assert [(p.high, p.expr) for p in found] == [(20, 1), (30, 2), (40, 3)]
    falling = segments(sp.ceiling(sp.Rational(7, 2) - X), X, Z, sp.Integer(3))
    assert [(p.high, p.expr) for p in falling] == [(HALF, 4), (3 * HALF, 3), (5 * HALF, 2), (3, 1)]


def test_cells_of_a_function_that_turns() -> None:
    """x + 4/x falls from 5 at 1 to 4 at 2 and rises to 10.4 at 10; it is w at (w + sqrt(w^2 - 16))/2."""
    found = segments(sp.ceiling((X**2 + 4) / X), X, ONE, sp.Integer(10))
    edges = [(w + sp.sqrt(w * w - 16)) / 2 for w in map(sp.Integer, range(5, 11))]
    assert [sp.expand(e) for e in ends(found)] == [1, 2, *map(sp.expand, edges), 10]
    assert [p.expr for p in found] == [5, 5, 6, 7, 8, 9, 10, 11]
    turned = segments(sp.ceiling((X - 1) ** 2 / 4), X, ONE, sp.Integer(4))  # a turn at the end is no piece
    third = 1 + 2 * sp.sqrt(2)  # (x - 1)^2/4 = 2
    assert [(p.low, p.high, p.expr) for p in turned] == [(1, 3, 1), (3, third, 2), (third, 4, 3)]


def test_cells_on_both_sides_of_a_pole() -> None:
    """12/(x - 3): -12 at 2, and 4, 3, 2.4 at 6, 7, 8; towards the pole the cells have no end."""
    found = segments(sp.floor(12 / (X - 3)), X, sp.Integer(6), sp.Integer(8))
    assert [(p.low, p.high, p.expr) for p in found] == [(6, 7, 3), (7, 8, 2)]
    found = segments(sp.floor(12 / (X - 3)), X, Z, sp.Integer(9))
    assert ends(found)[:4] == [0, sp.Rational(3, 5), 1, sp.Rational(9, 7)]  # -4 at 0; -5, -6, -7
    assert ends(segments(sp.floor((X - 3) / (X - 4)), X, Z, sp.Integer(3))) == [0, 3]  # 3/4 to 0, no turn


def test_the_number_of_cells_is_bounded() -> None:
    found = segments(sp.ceiling(X), X, HALF, oo)
    assert MAX_CELLS == 256
    assert ends(found) == [HALF, *range(1, 256)]
    assert len(segments(sp.ceiling(X), X, HALF, sp.Rational(509, 2))) == 255  # as many as fit
    assert ends(segments(sp.ceiling(X), X, HALF, sp.Rational(511, 2)))[-1] == 255


@pytest.mark.parametrize(
    ("start", "stop", "numbers"),
    [
        (1, 3, [1, 2, 3]),
        (3, 1, [3, 2, 1]),
        (HALF, 3 * HALF, [1]),
        (3 * HALF, HALF, [1]),
        (HALF, sp.Rational(3, 4), []),
        (sp.Rational(3, 4), HALF, []),
        (2, 2, [2]),
    ],
)
def test_whole_numbers(start: sp.Expr, stop: sp.Expr, numbers: list[int]) -> None:
    assert list(_whole_numbers(sp.sympify(start), sp.sympify(stop))) == numbers


def test_whole_numbers_without_end_begin_at_the_end_there_is() -> None:
    up, down = range(3, 3 + 256), range(2, 2 - 256, -1)
    start = 5 * HALF
    assert list(_whole_numbers(start, oo)) == list(_whole_numbers(oo, start)) == list(up)
    assert list(_whole_numbers(start, -oo)) == list(_whole_numbers(-oo, start)) == list(down)
    assert list(_whole_numbers(oo, -oo)) == list(range(256))
    assert list(_whole_numbers(-oo, oo)) == list(range(0, -256, -1))


@settings(max_examples=25)
@given(st.lists(st.integers(-20, 20), min_size=6, max_size=6), st.sampled_from([0, 3, 7]))
def test_each_piece_is_the_function(numbers: list[int], tile: int) -> None:
    a, b, c, d, e, f = numbers
    expr = maximum(a * X + b, c * X + d, sp.Integer(e)) - minimum(f * X, X**2 / 4)
    expr += sp.ceiling(X / tile) if tile else 0
    found = segments(expr, X, ONE, sp.Integer(20))
    assert ends(found)[-1] == 20
    for piece in found:
        point = sp.Rational(sp.N((2 * piece.low + piece.high) / 3, 20))
        assert at(piece.expr, point) == at(expr, point)


def test_resolved_at_one_value() -> None:
    expr = maximum(X**2, 2) + minimum(X, 3) + sp.ceiling(X) + sp.floor(X / 2)
    assert resolved(expr, X, ONE) == 2 + X + 1 + 0
    assert resolved(expr, X, sp.Integer(4)) == X**2 + 3 + 4 + 2
    assert resolved(expr, X, sp.sqrt(3)) == X**2 + X + 2 + 0
    assert resolved(sp.ceiling(X) + X, X, sp.Integer(3)) == 3 + X  # at the edge itself the step has its own value
    assert resolved(sp.Piecewise((X, X < 2), (5 * X, True)), X, sp.Integer(2)) == 5 * X
    assert resolved(maximum(minimum(X, 9), 4), X, sp.Integer(6)) == X


@settings(max_examples=20)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(-5, 5))
def test_resolved_at_a_surd_where_two_arguments_meet(p: int, q: int, shift: int) -> None:
    """At a root of x^2 - p x - q both arguments are equal, whatever is added to both."""
    value = (p + sp.sqrt(p * p + 4 * q)) / 2
    expr = resolved(maximum(X**2 + shift * X, (p + shift) * X + q), X, value)
    assert abs(sp.N(expr.subs(X, value) - (value**2 + shift * value), 30)) < sp.Float("1e-25")


# Where steps can matter


def test_windows_of_a_step() -> None:
    """ceiling(x/10) - 5 lies between x/10 - 5 (zero at 50) and x/10 - 4 (zero at 40)."""
    expr = sp.ceiling(X / 10) - 5
    assert windows(expr, X, Z, sp.Integer(1000)) == [(40, 50)]
    assert windows(expr, X, Z, sp.Integer(45)) == [(40, 45)]
    assert windows(expr, X, sp.Integer(50), sp.Integer(90)) == [(50, 50)]  # ceiling(50/10) is 5
    assert windows(expr, X, sp.Integer(51), sp.Integer(90)) == []
    assert windows(sp.floor(X / 10) - 5, X, Z, oo) == [(50, 60)]
    assert windows(X - 5, X, Z, oo) == [(0, oo)]  # no step: the whole range


def test_windows_side_by_side_are_one_and_others_stay_apart() -> None:
    """With Max(x, 45) - 50 added: x/10 - 4 is zero at 40, 11/10 x - 50 at 500/11, with a kink at 45 in between."""
    assert windows(sp.ceiling(X / 10) + maximum(X, 45) - 50, X, Z, oo) == [(40, sp.Rational(500, 11))]
    valley = maximum(X - 50, 50 - X) - sp.ceiling(X / 10)  # 50 - x = x/10, x/10 + 1; x - 50 = x/10, x/10 + 1
    two = [(sp.Rational(490, 11), sp.Rational(500, 11)), (sp.Rational(500, 9), sp.Rational(170, 3))]
    assert windows(valley, X, Z, oo) == two


def test_a_zero_of_both_bounds_is_a_window_of_its_own() -> None:
    """(x - 5)(x - 9) ceiling(x/2) is zero at 5 and 9 whatever the step is, inside the range or at its end."""
    expr = (X - 5) * (X - 9) * sp.ceiling(X / 2)
    assert windows(expr, X, ONE, sp.Integer(20)) == [(5, 5), (9, 9)]
    assert windows(expr, X, sp.Integer(5), sp.Integer(9)) == [(5, 5), (9, 9)]
    assert windows((X - 5) ** 2 * sp.ceiling(X / 2), X, ONE, oo) == [(5, 5)]
    steps = (X - 40) * (sp.ceiling(X / 10) - 5)  # a zero at the end of a window does not cut it off
    assert windows(steps, X, ONE, oo) == [(40, 50)]
    assert windows((X - 50) * (sp.ceiling(X / 10) - 5), X, ONE, oo) == [(40, 50)]
    assert windows(sp.ceiling(X / 2) / (X - 5), X, ONE, oo) == []  # a pole is no zero


def test_where_the_function_is_not_monotone_in_a_step_the_whole_range_is_a_window() -> None:
    expr = DOWN * (1 - DOWN) - sp.Rational(1, 8)  # -1/8 at both corners, 7/72 at a third
    for low, high in ((0, 16), (4, 9), (0, oo), (0, HALF)):
        assert windows(expr, X, sp.sympify(low), sp.sympify(high)) == [(low, high)]


def test_envelope_of_two_steps() -> None:
    """ceiling(y) is y or y + 1, floor(y) is y or y - 1."""
    expr = sp.ceiling(X / 2) + 3 * sp.floor(X / 5)
    base = sp.Rational(11, 10) * X
    assert {sp.expand(e) for e in envelope(expr, X, (Z, ONE))} == {base, base + 1, base - 3, base - 2}
    assert envelope(expr, X, (HALF,)) == [base + HALF - 3 * HALF]
    assert envelope(X + sp.ceiling(A), X, (Z, ONE)) == [X + sp.ceiling(A)]


def test_from_the_fourth_step_on_all_take_the_same_offset() -> None:
    expr = sum(10**k * sp.ceiling(X / p) for k, p in enumerate((2, 3, 5, 7, 11)))
    found = envelope(expr, X, (Z, ONE))
    assert len(found) == 16
    linear = sum(10**k * X / p for k, p in enumerate((2, 3, 5, 7, 11)))
    digits = {f"{int(sp.expand(e - linear)):05d}" for e in found}
    assert len(digits) == 16
    assert all(set(d) <= {"0", "1"} for d in digits)
    pairs = [(i, j) for i in range(5) for j in range(i) if all(d[i] == d[j] for d in digits)]
    assert len(pairs) == 1  # exactly two of the five go together


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        (DOWN, True),
        (DOWN**2, True),
        (-DOWN, True),
        (DOWN * (DOWN - 1), False),
        (DOWN * (DOWN - 1) * (DOWN - sp.Rational(2, 3)), False),  # seen at one third
        (DOWN * (DOWN - 1) * (DOWN - sp.Rational(1, 3)), False),  # seen at two thirds
        (DOWN * (DOWN - 1) * (DOWN - HALF) * (DOWN - sp.Rational(1, 3)), False),
        (DOWN * (DOWN - 1) * (DOWN - sp.Rational(1, 4)) * (DOWN - sp.Rational(2, 3)), False),
    ],
)
def test_samples_at_one_and_two_thirds_of_a_step(shape: sp.Expr, told: bool) -> None:
    for low, high in ((Z, oo), (Z, sp.Integer(50)), (Z, HALF), (sp.Integer(3), oo), (sp.Integer(7), sp.Integer(8))):
        assert _monotone(shape, X, low, high, envelope(shape, X, (Z, ONE))) is told


@pytest.mark.parametrize("threshold", [sp.Rational(1, 2000), sp.Rational(1, 100), sp.Integer(10**8)])
def test_samples_reach_over_the_range(threshold: sp.Expr) -> None:
    """p (1 - p) + s p is monotone in p from 0 to 1 for s >= 1 and s = 0 makes it turn at 1/2."""
    far = DOWN * (1 - DOWN) + DOWN * maximum(Z, 1000 * (threshold - X) / threshold)
    near = DOWN * (1 - DOWN) + DOWN * maximum(Z, 1000 * (X - threshold) / threshold)
    for expr, low, high, told in (
        (far, Z, oo, False),
        (far, Z, threshold, True),
        (far, threshold, 4 * threshold, False),
        (near, Z, 2 * threshold, False),
        (near, Z, oo, threshold < sp.Rational(1, 1000)),  # to infinity samples begin at 1/1000
        (near, threshold, 4 * threshold, True),
    ):
        assert _monotone(expr, X, low, high, envelope(expr, X, (Z, ONE))) is bool(told)


# Branches with symbols


def undecided(expr: sp.Expr) -> bool | None:
    """The sign of a number; None for symbols."""
    return bool(expr >= 0) if expr.is_number else None


def test_branches_of_max_and_min() -> None:
    node = maximum(X, A)
    found = list(branches(node + B, X, undecided))
    assert found == [
        Branch(arg + B, (arg - other,), ((node, arg),)) for arg, other in (node.args, tuple(reversed(node.args)))
    ]
    node = minimum(X, A)
    found = list(branches(node, X, undecided))
    assert {(b.expr, b.conditions) for b in found} == {(X, (A - X,)), (A, (X - A,))}


def test_a_branch_needs_every_comparison() -> None:
    found = {b.expr: set(b.conditions) for b in branches(maximum(X, A, B), X, undecided)}
    assert found == {X: {X - A, X - B}, A: {A - X, A - B}, B: {B - X, B - A}}


def test_decided_comparisons_are_no_conditions_and_false_ones_no_branches() -> None:
    def decide(expr: sp.Expr) -> bool | None:
        return {A - B: True, B - A: False}.get(expr)

    found = {b.expr: b.conditions for b in branches(maximum(X, A, B), X, decide)}
    assert found == {X: (X - A, X - B), A: (A - X,)}


def test_a_condition_that_is_held_is_not_asked_again() -> None:
    """Two Max of x and a: both x or both a; once x >= a is held, only what is open is asked."""
    asked: list[sp.Expr] = []

    def decide(expr: sp.Expr) -> bool | None:
        asked.append(expr)
        return None

    found = list(branches(maximum(X, A) + 2 * minimum(X, A), X, decide))
    assert sorted(asked, key=str) == sorted([X - A, A - X, X - A, A - X], key=str)
    both = {b.expr: set(b.conditions) for b in found if len(b.conditions) == 1}
    assert both == {X + 2 * A: {X - A}, A + 2 * X: {A - X}}
    assert {b.expr for b in found} == {X + 2 * A, A + 2 * X, 3 * X, 3 * A}


@pytest.mark.parametrize("expr", [sp.ceiling(X), sp.Piecewise((X, X < 2), (A, True))])
def test_no_branches_of_steps_and_cases(expr: sp.Expr) -> None:
    with pytest.raises(NotRational):
        list(branches(expr, X, undecided))
