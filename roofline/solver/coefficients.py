"""Polynomials of low degree as lists of whole coefficients, highest power first; the empty list is zero."""

from __future__ import annotations

from itertools import zip_longest
from math import gcd

Coefficients = list[int]


def plus(a: Coefficients, b: Coefficients) -> Coefficients:
    total = [i + j for i, j in zip_longest(reversed(a), reversed(b), fillvalue=0)]
    while total and not total[-1]:
        total.pop()
    return total[::-1]


def times(a: Coefficients, b: Coefficients) -> Coefficients:
    if not a or not b:
        return []
    product = [0] * (len(a) + len(b) - 1)
    for i, left in enumerate(a):
        for j, right in enumerate(b):
            product[i + j] += left * right
    return product


def power(a: Coefficients, exponent: int) -> Coefficients:
    product = [1]
    for _ in range(exponent):
        product = times(product, a)
    return product


def lowest_terms(top: Coefficients, bottom: Coefficients) -> tuple[Coefficients, Coefficients]:
    """Without a common factor, the denominator's leading coefficient positive."""
    if not top:
        return [], [1]
    common = _common(top, bottom) if len(bottom) > 1 and len(top) > 1 else [1]
    if len(common) > 1:
        top, bottom = _divided(top, common), _divided(bottom, common)
    share = gcd(*top, *bottom) * (1 if bottom[0] > 0 else -1)
    return [c // share for c in top], [c // share for c in bottom]


def _common(a: Coefficients, b: Coefficients) -> Coefficients:
    """The greatest common divisor of two polynomials, without a common factor of its coefficients (Euclid)."""
    while b:
        rest = a
        while len(rest) >= len(b):
            lead, own = rest[0], b[0]
            padded = b + [0] * (len(rest) - len(b))
            rest = _stripped([own * r - lead * c for r, c in zip(rest, padded, strict=True)])
        share = gcd(*rest) or 1
        a, b = b, [c // share for c in rest]
    share = gcd(*a)
    return [c // share for c in a]


def _stripped(a: Coefficients) -> Coefficients:
    """Without leading zeros."""
    for at, c in enumerate(a):
        if c:
            return a[at:]
    return []


def _divided(a: Coefficients, b: Coefficients) -> Coefficients:
    """The quotient of a polynomial by a primitive factor of it: whole, by Gauss's lemma."""
    quotient, rest = [], list(a)
    for at in range(len(a) - len(b) + 1):
        quotient.append(rest[at] // b[0])
        for i, c in enumerate(b):
            rest[at + i] -= quotient[-1] * c
    return quotient
