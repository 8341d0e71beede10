"""Rational functions of one unknown with rational coefficients: real roots, signs, limits.  All exact.

Everything here is arithmetic on polynomials over the rationals; nothing is simplified and nothing is guessed.  A real
root is a rational number or a quadratic surd where one exists, and otherwise a `Float` of 40 digits.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import gcd, isqrt, lcm

import sympy as sp
from sympy.polys.polyerrors import CoercionFailed

from roofline.solver.coefficients import Coefficients, lowest_terms, plus, power, times
from roofline.solver.ordered import DIGITS, Surd, approx, floor, inside, order, rising, sign_of, surd
from roofline.symbols import Expr

__all__ = [
    "Fraction", "NotRational", "approx", "between", "cuts", "direction", "fraction", "limit", "real_roots", "sign_at",
]  # fmt: skip
Fraction = tuple[sp.Poly, sp.Poly]  # numerator and denominator
HIGHEST = 12  # degree up to which sums and products of coefficients are quicker than sympy's polynomials


class NotRational(Exception):
    """The expression is no rational function of the unknown (roots, logarithms, choices left in it)."""


@lru_cache(maxsize=4096)
def fraction(expr: Expr, x: sp.Symbol) -> Fraction:
    """Numerator and denominator of `expr` without common factors, in whole coefficients."""
    found = _ratio(sp.sympify(expr), x)
    if found is not None and max(map(len, found)) <= HIGHEST:
        top, bottom = lowest_terms(*found)
        return sp.Poly.from_list(top or [0], x, domain="QQ"), sp.Poly.from_list(bottom, x, domain="QQ")
    field = sp.QQ.frac_field(x)
    try:
        element = field.from_sympy(sp.sympify(expr))
    except (CoercionFailed, TypeError, ValueError, NotImplementedError):
        raise NotRational(str(expr)) from None
    return sp.Poly(element.numer.as_expr(), x, domain="QQ"), sp.Poly(element.denom.as_expr(), x, domain="QQ")


def _ratio(expr: Expr, x: sp.Symbol) -> tuple[Coefficients, Coefficients] | None:
    """Numerator and denominator as whole numbers; None for what is not made of +, *, whole powers and rationals."""
    if expr.is_Rational:
        return [int(expr.p)] if expr.p else [], [int(expr.q)]
    if expr == x:
        return [1, 0], [1]
    if expr.is_Add or expr.is_Mul:
        top, bottom = ([], [1]) if expr.is_Add else ([1], [1])
        for arg in expr.args:
            part = _ratio(arg, x)
            if part is None or max(len(top), len(bottom), len(part[0])) > HIGHEST:
                return None
            if expr.is_Mul:
                top, bottom = times(top, part[0]), times(bottom, part[1])
            elif bottom == part[1]:
                top = plus(top, part[0])
            elif len(bottom) == len(part[1]) == 1:
                least = lcm(bottom[0], part[1][0])
                top = plus([c * (least // bottom[0]) for c in top], [c * (least // part[1][0]) for c in part[0]])
                bottom = [least]
            else:
                top = plus(times(top, part[1]), times(part[0], bottom))
                bottom = times(bottom, part[1])
        return top, bottom
    if expr.is_Pow and expr.exp.is_Integer and abs(expr.exp) < HIGHEST:
        part = _ratio(expr.base, x)
        if part is None or not all(part):
            return None
        top, bottom = part if expr.exp > 0 else part[::-1]
        return power(top, abs(int(expr.exp))), power(bottom, abs(int(expr.exp)))
    return None


@lru_cache(maxsize=4096)
def _whole(poly: sp.Poly) -> tuple[int, ...]:
    """The coefficients over their common denominator, highest power first."""
    found = poly.all_coeffs()
    least = lcm(*(int(c.q) for c in found))
    return tuple(int(c.p) * (least // int(c.q)) for c in found)


@lru_cache(maxsize=4096)
def real_roots(poly: sp.Poly) -> tuple[Expr, ...]:
    """The distinct real roots in rising order."""
    if poly.degree() <= 2:
        return _roots_of_quadratic(_whole(poly))
    found: list[Expr] = []
    for factor, _ in poly.factor_list()[1]:
        found += _roots_of_irreducible(factor)
    return tuple(sorted(found, key=rising))


def _roots_of_quadratic(coefficients: tuple[int, ...]) -> tuple[Expr, ...]:
    """The real roots of a polynomial of degree 2 or less."""
    share = gcd(*coefficients) * (1 if coefficients[0] > 0 else -1) or 1
    whole = [c // share for c in coefficients]
    if len(whole) < 2:
        return ()
    if len(whole) == 2:
        return (sp.Rational(-whole[1], whole[0]),)
    a, b, c = whole
    disc = b * b - 4 * a * c
    if disc < 0:
        return ()
    side = isqrt(disc)
    if side * side == disc:
        return tuple(sp.Rational(-b + s, 2 * a) for s in ((-side, side) if side else (0,)))
    root, twice = sp.sqrt(sp.Integer(disc)), sp.Integer(2 * a)
    return (-b - root) / twice, (-b + root) / twice


def _roots_of_irreducible(poly: sp.Poly) -> list[Expr]:
    if poly.degree() <= 2:
        return list(_roots_of_quadratic(_whole(poly)))
    return [sp.Float(sp.N(root, DIGITS), DIGITS) for root in poly.real_roots()]


@lru_cache(maxsize=4096)
def between(low: Expr, high: Expr) -> sp.Rational:
    """A simple rational number strictly between two numbers; either may be infinite."""
    if low == -sp.oo:
        return sp.Integer(0) if high == sp.oo else sp.Integer(floor(high) - 1)
    if high == sp.oo:
        return sp.Integer(floor(low) * 2 + 2) if order(low, sp.S.Zero) >= 0 else sp.Integer(0)
    middle = (approx(low) + approx(high)) / 2
    near = sp.Rational(float(middle))
    return near if inside(low, near, high) else sp.Rational(middle)


def sign_at(expr: Expr, x: sp.Symbol, point: Expr) -> int:
    """Sign of the rational function at a point that is no pole."""
    top, bottom = fraction(expr, x)
    at = surd(point)
    if at is None:
        return int(sp.sign(top.mul(bottom).eval(point)))
    return sign_of(_whole(top), at) * sign_of(_whole(bottom), at)


def _sign_of(poly: sp.Poly, point: sp.Rational) -> int:
    return sign_of(_whole(poly), Surd(int(point.p), 0, 0, int(point.q)))


def cuts(expr: Expr, x: sp.Symbol, low: Expr, high: Expr) -> list[Expr]:
    """Zeros and poles strictly between `low` and `high`, in rising order."""
    top, bottom = fraction(expr, x)
    return sorted((p for p in (*real_roots(top), *real_roots(bottom)) if inside(low, p, high)), key=rising)


def limit(expr: Expr, x: sp.Symbol, point: Expr, side: str = "+") -> Expr:
    """One-sided limit of the rational function; +-oo where it diverges."""
    top, bottom = fraction(expr, x)
    if point.is_infinite:
        order = top.degree() - bottom.degree()  # -oo for zero
        lead = top.LC() / bottom.LC()
        if point == -sp.oo and order % 2:
            lead = -lead
        if order < 0:
            return sp.Integer(0)
        return lead if order == 0 else sp.sign(lead) * sp.oo
    below = bottom.eval(point)
    if below != 0:
        return sp.sympify(top.eval(point) / below)
    if side == "+":
        near = between(point, [*cuts(expr, x, point, sp.oo), sp.oo][0])
    else:
        near = between([-sp.oo, *cuts(expr, x, -sp.oo, point)][-1], point)
    return {1: sp.oo, -1: -sp.oo}[sign_at(expr, x, near)]


def direction(expr: Expr, x: sp.Symbol, low: Expr, high: Expr) -> int:
    """1 where the function rises on the whole open interval, -1 where it falls, 0 where constant, 2 where it turns.

    The interval must hold no pole.
    """
    top, bottom = fraction(expr, x)
    slope = top.diff(x) * bottom - top * bottom.diff(x)
    if slope.is_zero:
        return 0
    turns = [r for r in real_roots(slope) if inside(low, r, high)]
    signs = {_sign_of(slope, between(a, b)) for a, b in pairwise([low, *turns, high])}
    return signs.pop() if len(signs) == 1 else 2
