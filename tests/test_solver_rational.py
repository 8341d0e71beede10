"""Rational functions of one unknown: roots, signs, limits and directions against values worked out by hand."""

from __future__ import annotations

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from roofline.solver.rational import (
    DIGITS,
    NotRational,
    approx,
    between,
    cuts,
    direction,
    fraction,
    limit,
    real_roots,
    sign_at,
)

X = sp.Symbol("x", real=True)
HALF = sp.Rational(1, 2)
oo = sp.oo
whole = st.integers(-9, 9)


def poly(expr: sp.Expr) -> sp.Poly:
    return sp.Poly(expr, X, domain="QQ")


def test_numerator_and_denominator_share_no_factor() -> None:
    """(x^2 - 1)/(x - 1) + 1/x = (x + 1) + 1/x = (x^2 + x + 1)/x."""
    top, bottom = fraction((X**2 - 1) / (X - 1) + 1 / X, X)
    assert top.as_expr() / bottom.as_expr() == (X**2 + X + 1) / X
    assert (top.degree(), bottom.degree()) == (2, 1)


@pytest.mark.parametrize("expr", [sp.sqrt(X), sp.log(X), sp.Max(X, 3), X * sp.Symbol("other"), X**X])
def test_what_is_no_rational_function_says_so(expr: sp.Expr) -> None:
    with pytest.raises(NotRational):
        fraction(expr, X)


def test_digits() -> None:
    third = approx(sp.Rational(1, 3))
    assert DIGITS == 40
    assert abs(sp.Rational(third) - sp.Rational(1, 3)) < sp.Rational(1, 10**40)
    assert (approx(oo), approx(-oo)) == (oo, -oo)


def test_real_roots() -> None:
    """Linear, quadratic and higher factors; multiple roots once; none for constants, zero and x^2 + 1."""
    surds = [(1 - sp.sqrt(5)) / 2, (1 + sp.sqrt(5)) / 2]
    assert real_roots(poly(3 * X - 2)) == (sp.Rational(2, 3),)
    assert list(real_roots(poly(X**2 - X - 1))) == surds
    assert [sp.simplify(r - s) for r, s in zip(real_roots(poly(3 * X**2 - 3 * X - 3)), surds, strict=True)] == [0, 0]
    assert real_roots(poly((X - 2) ** 3 * (X + 5) * (X**2 + 1))) == (-5, 2)
    nine_fifths = sp.Rational(9, 5)  # sqrt(3) = 1.73 lies below it, and is found after it
    assert list(real_roots(poly((X - 2) * (X - nine_fifths) * (X**2 - 3)))) == [-sp.sqrt(3), sp.sqrt(3), nine_fifths, 2]
    for none in (0, 7, X**2 + 1, X**4 + X + 1):
        assert real_roots(poly(sp.sympify(none))) == ()
    (cubic,) = real_roots(poly(X**3 - 2))
    assert cubic.is_Float
    assert abs(cubic**3 - 2) < sp.Float("1e-38")


def test_quadratic_formula_with_a_leading_factor() -> None:
    """2 x^2 + 3 x - 4: (-3 +- sqrt(9 + 32))/4."""
    assert list(real_roots(poly(2 * X**2 + 3 * X - 4))) == [(-3 - sp.sqrt(41)) / 4, (-3 + sp.sqrt(41)) / 4]


@given(st.sets(whole, min_size=1, max_size=4), st.integers(1, 3))
def test_the_roots_of_a_product_of_lines_are_those_of_the_lines(points: set[int], power: int) -> None:
    assert list(real_roots(poly(sp.prod((X - p) ** power for p in points)))) == sorted(points)


@pytest.mark.parametrize(
    ("low", "high", "point"),
    [
        (-oo, oo, 0),
        (-oo, sp.Rational(7, 2), 2),  # floor(7/2) - 1
        (-oo, 3, 2),
        (0, oo, 2),
        (3, oo, 8),  # 2 floor(low) + 2
        (sp.Rational(7, 2), oo, 8),
        (-HALF, oo, 0),
        (-7, oo, 0),
        (1, 4, sp.Rational(5, 2)),
    ],
)
def test_a_simple_number_between(low: sp.Expr, high: sp.Expr, point: sp.Expr) -> None:
    assert between(sp.sympify(low), sp.sympify(high)) == point


def test_between_two_numbers_closer_than_floats_can_tell() -> None:
    """1 and 1 + 1e-20 are one float."""
    low, high = sp.Integer(1), 1 + sp.Rational(1, 10**20)
    assert low < between(low, high) < high
    assert sp.sqrt(2) < between(sp.sqrt(2), sp.sqrt(2) + sp.Rational(1, 10**20)) < sp.sqrt(2) + sp.Rational(1, 10**20)


def test_sign_at_a_point() -> None:
    """(x - 1)/(x - 3): + below 1, 0 at 1, - between, + above 3."""
    expr = (X - 1) / (X - 3)
    assert [sign_at(expr, X, sp.Integer(p)) for p in (0, 1, 2, 4)] == [1, 0, -1, 1]


def test_cuts_are_zeros_and_poles_inside() -> None:
    expr = (X - 1) * (X - 4) / ((X - 2) * (X - 6))
    assert cuts(expr, X, sp.Integer(0), oo) == [1, 2, 4, 6]
    assert cuts(expr, X, sp.Integer(1), sp.Integer(6)) == [2, 4]  # the ends are left out
    assert cuts(sp.Integer(0), X, sp.Integer(0), oo) == []


@pytest.mark.parametrize(
    ("expr", "point", "side", "value"),
    [
        ((3 * X + 1) / (2 * X - 5), oo, "+", sp.Rational(3, 2)),
        ((3 * X + 1) / (2 * X - 5), -oo, "+", sp.Rational(3, 2)),
        (X / (X**2 + 1), oo, "+", 0),
        (X**2 / (X + 1), oo, "+", oo),
        (-(X**2) / (X + 1), oo, "+", -oo),
        (X**2 / (X + 1), -oo, "+", -oo),  # odd order: the sign turns
        (X**3 / (X + 1), -oo, "+", oo),  # even order: it does not
        (sp.Integer(0), oo, "+", 0),
        (sp.Integer(0), -oo, "+", 0),
        ((X + 1) / (X + 2), sp.Integer(2), "+", sp.Rational(3, 4)),
        ((X**2 - 1) / (X - 1), sp.Integer(1), "-", 2),
        (1 / (X - 3), sp.Integer(3), "+", oo),
        (1 / (X - 3), sp.Integer(3), "-", -oo),
        ((X - 4) / (X - 3) ** 2, sp.Integer(3), "+", -oo),
        ((X - 4) / (X - 3) ** 2, sp.Integer(3), "-", -oo),
        ((X - 2) / (X - 3), sp.Integer(3), "-", -oo),  # a zero on either side of the pole
        ((X - 2) * (X - 4) / (X - 3), sp.Integer(3), "+", -oo),
        ((X - 2) * (X - 4) / (X - 3), sp.Integer(3), "-", oo),
        ((X - 1) * (X - 2) * (X - 4) * (X - 5) / (X - 3), sp.Integer(3), "+", oo),
        ((X - 1) * (X - 2) * (X - 4) * (X - 5) / (X - 3), sp.Integer(3), "-", -oo),
    ],
)
def test_limits(expr: sp.Expr, point: sp.Expr, side: str, value: sp.Expr) -> None:
    assert limit(expr, X, point, side) == value


def test_from_the_right_unless_told() -> None:
    assert limit(1 / (X - 3), X, sp.Integer(3)) == oo


def test_limits_at_two_poles_that_forty_digits_hardly_tell_apart() -> None:
    """1/((x - c)^2 - 2) at c -+ sqrt(2): +, - on either side of the first, -, + of the second, however large c is."""
    c = 10**12
    expr = 1 / sp.expand((X - c) ** 2 - 2)
    signs = [limit(expr, X, c + at, side) for at in (-sp.sqrt(2), sp.sqrt(2)) for side in "-+"]
    assert signs == [oo, -oo, -oo, oo]


@pytest.mark.parametrize(
    ("expr", "low", "high", "told"),
    [
        (X**2, 0, oo, 1),  # the turn at 0 is not inside
        (X**2, -oo, 0, -1),
        (X**2, -1, oo, 2),
        (X**3, -oo, oo, 1),  # a level point is no turn
        (sp.Integer(5), 0, oo, 0),
        ((X**2 - 1) / (X - 1) - X, 0, oo, 0),
        (1 / X, 0, oo, -1),
        (X / (X + 1), 0, oo, 1),  # slope ((x + 1) - x)/(x + 1)^2
        ((2 * X + 3) / (X + 1), 0, oo, -1),  # slope (2 (x + 1) - (2 x + 3))/(x + 1)^2 = -1/(x + 1)^2
        ((X**2 + 4) / X, 0, oo, 2),  # falls to 4 at 2, then rises
        ((X**2 + 4) / X, 0, 2, -1),
        ((X**2 + 4) / X, 2, 9, 1),
    ],
)
def test_direction(expr: sp.Expr, low: sp.Expr, high: sp.Expr, told: int) -> None:
    assert direction(expr, X, sp.sympify(low), sp.sympify(high)) == told


@given(whole, whole, whole, st.integers(10, 20))
def test_a_rational_function_rises_where_its_difference_is_positive(a: int, b: int, c: int, high: int) -> None:
    """Brute force: (a x^2 + b x + c)/(x + 1) on a grid in (0, high)."""
    expr = (a * X**2 + b * X + c) / (X + 1)
    steps = {sp.sign(expr.subs(X, sp.Rational(k + 1, 8)) - expr.subs(X, sp.Rational(k, 8))) for k in range(1, 40)}
    told = direction(expr, X, sp.Integer(0), sp.Integer(high))
    assert told == 2 or steps <= {told}
