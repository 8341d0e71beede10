"""Numbers that are rational or quadratic surds, as whole numbers: which of two is larger, and the sign of a polynomial.

Such a number is (p + q sqrt(d)) / r.  Comparing two of them, or putting one into a polynomial, needs a few products of
whole numbers and is exact; sympy does the same by general algebra, a hundred times slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key, lru_cache
from math import isqrt, lcm, prod
from typing import NamedTuple

import sympy as sp

from roofline.symbols import Expr

DIGITS = 40
SURE = sp.Rational(1, 10**30)  # relative distance at which two approximations of 40 digits tell numbers apart


class Surd(NamedTuple):
    """(p + q sqrt(d)) / r with r > 0; q and d are 0 where the number is rational."""

    p: int
    q: int
    d: int
    r: int


@lru_cache(maxsize=4096)
def surd(value: Expr) -> Surd | None:
    """The number as whole numbers, None where it is no rational and no quadratic surd."""
    if value.is_Rational:
        return Surd(int(value.p), 0, 0, int(value.q))
    plain, root = sp.Integer(0), value
    if value.is_Add and len(value.args) == 2 and value.args[0].is_Rational:
        plain, root = value.args
    factors = sp.Mul.make_args(root)
    roots = [f for f in factors if f.is_Pow and f.exp == sp.S.Half and f.base.is_Integer and f.base.is_positive]
    rest = [f for f in factors if f not in roots]
    if not roots or not all(f.is_Rational for f in rest):
        return None
    times = sp.Mul(*rest)
    r = lcm(int(plain.q), int(times.q))
    return Surd(int(plain.p) * (r // plain.q), int(times.p) * (r // times.q), prod(int(f.base) for f in roots), r)


@lru_cache(maxsize=4096)
def approx(value: Expr) -> sp.Float:
    """The value to 40 digits, for sorting (infinities stay)."""
    return value if value.is_infinite else sp.Float(sp.N(value, DIGITS), DIGITS)


def order(a: Expr, b: Expr) -> int:
    """-1 where a < b, 0 where they are equal, 1 where a > b."""
    if a == b:
        return 0
    if a.is_infinite or b.is_infinite:
        return -1 if a == -sp.oo or b == sp.oo else 1
    one, two = surd(a), surd(b)
    if one is not None and two is not None and (one.d == two.d or not one.d or not two.d):
        return _sign(one.p * two.r - two.p * one.r, one.q * two.r - two.q * one.r, one.d or two.d)
    x, y = approx(a), approx(b)
    if abs(x - y) > SURE * max(abs(x), abs(y)):
        return -1 if x < y else 1
    return -1 if a < b else 1 if a > b else 0


rising = cmp_to_key(order)  # a key for sorting


def inside(low: Expr, value: Expr, high: Expr) -> bool:
    """low < value < high."""
    return order(low, value) < 0 and order(value, high) < 0


def _sign(u: int, v: int, d: int) -> int:
    """Sign of u + v sqrt(d)."""
    left, right = (u > 0) - (u < 0), (v > 0) - (v < 0)
    if left == right or not right or not d:
        return left
    if not left:
        return right
    square = u * u - v * v * d
    return left if square > 0 else right if square < 0 else 0


def floor(value: Expr) -> int:
    """The largest whole number that is not above a finite number."""
    at = surd(value)
    if at is None:
        return int(sp.floor(value))
    square = at.q * at.q * at.d
    root = isqrt(square)
    part = root if at.q >= 0 else -root - (root * root != square)
    return (at.p + part) // at.r


def sign_of(coefficients: Sequence[int], at: Surd) -> int:
    """Sign of a polynomial, highest power first, at a number."""
    p, q, d, r = at
    u, v, scale = 0, 0, 1
    for c in coefficients:
        u, v = u * p + v * q * d + c * scale, u * q + v * p
        scale *= r
    return _sign(u, v, d)
