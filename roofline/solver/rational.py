"""Rational functions of one unknown with rational coefficients: real roots, signs, limits.  All exact.

Everything here is arithmetic on polynomials over the rationals; nothing is simplified and nothing is guessed.  A real
root is a rational number or a quadratic surd where one exists, and otherwise a `Float` of 40 digits.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import sympy as sp
from sympy.polys.polyerrors import CoercionFailed

from roofline.symbols import Expr

DIGITS = 40
Fraction = tuple[sp.Poly, sp.Poly]  # numerator and denominator


class NotRational(Exception):
    """The expression is no rational function of the unknown (roots, logarithms, choices left in it)."""


@lru_cache(maxsize=1024)
def fraction(expr: Expr, x: sp.Symbol) -> Fraction:
    """Numerator and denominator of `expr` without common factors."""
    field = sp.QQ.frac_field(x)
    try:
        element = field.from_sympy(sp.sympify(expr))
    except (CoercionFailed, TypeError, ValueError, NotImplementedError):
        raise NotRational(str(expr)) from None
    return sp.Poly(element.numer.as_expr(), x, domain="QQ"), sp.Poly(element.denom.as_expr(), x, domain="QQ")


def approx(value: Expr) -> sp.Float:
    """The value to 40 digits, for sorting (infinities stay)."""
    return value if value.is_infinite else sp.Float(sp.N(value, DIGITS), DIGITS)


@lru_cache(maxsize=1024)
def real_roots(poly: sp.Poly) -> tuple[Expr, ...]:
    """The distinct real roots in rising order."""
    found: list[Expr] = []
    for factor, _ in poly.factor_list()[1]:
        found += _roots_of_irreducible(factor)
    return tuple(sorted(found, key=approx))


def _roots_of_irreducible(poly: sp.Poly) -> list[Expr]:
    if poly.degree() == 1:
        a, b = poly.all_coeffs()
        return [-b / a]
    if poly.degree() == 2:
        a, b, c = poly.all_coeffs()
        disc = b * b - 4 * a * c
        return [] if disc.is_negative else [(-b - sp.sqrt(disc)) / (2 * a), (-b + sp.sqrt(disc)) / (2 * a)]
    return [sp.Float(sp.N(root, DIGITS), DIGITS) for root in poly.real_roots()]


def between(low: Expr, high: Expr) -> sp.Rational:
    """A simple rational number strictly between two numbers; either may be infinite."""
    if low == -sp.oo:
        return sp.Integer(0) if high == sp.oo else sp.Integer(sp.floor(high)) - 1
    if high == sp.oo:
        return sp.Integer(sp.floor(low)) * 2 + 2 if low >= 0 else sp.Integer(0)
    middle = (approx(low) + approx(high)) / 2
    near = sp.Rational(float(middle))
    return near if low < near < high else sp.Rational(middle)


def sign_at(expr: Expr, x: sp.Symbol, point: sp.Rational) -> int:
    """Sign of the rational function at a rational point that is no pole."""
    top, bottom = fraction(expr, x)
    return int(sp.sign(top.mul(bottom).eval(point)))


def cuts(expr: Expr, x: sp.Symbol, low: Expr, high: Expr) -> list[Expr]:
    """Zeros and poles strictly between `low` and `high`, in rising order."""
    top, bottom = fraction(expr, x)
    return sorted((p for p in (*real_roots(top), *real_roots(bottom)) if low < p < high), key=approx)


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
    turns = [r for r in real_roots(slope) if low < r < high]
    signs = {int(sp.sign(slope.eval(between(a, b)))) for a, b in pairwise([low, *turns, high])}
    return signs.pop() if len(signs) == 1 else 2
