r"""sympy symbols made from the glossary, and the way back to LaTeX.

Symbols are created here and nowhere else: two sympy symbols of equal name and different assumptions are different.

>>> from roofline.symbols import sym, latex
>>> sym.latent, latex(2 * sym.heads * sym.latent)
(latent, '2 H d')
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import sympy as sp

from roofline.errors import BadValue
from roofline.glossary import GLOSSARY, quantity

if TYPE_CHECKING:
    Expr: TypeAlias = Any  # sympy carries no types
else:
    Expr = sp.Expr
SYMBOLS: Mapping[str, sp.Symbol] = {
    name: sp.Symbol(name, positive=True) if record.low_open else sp.Symbol(name, nonnegative=True)
    for name, record in GLOSSARY.items()
}
sym: Any = SimpleNamespace(**SYMBOLS)
_LATEX = {SYMBOLS[name]: record.latex for name, record in GLOSSARY.items()}


def symbol(name: str) -> sp.Symbol:
    """The symbol of a glossary quantity; an unknown name is an error that lists the nearest ones."""
    quantity(name)
    return SYMBOLS[name]


def exact(value: Any, name: str = "value") -> Expr:
    """A sympy number or expression without rounding: 0.47 becomes 47/100, so that roots stay exact.

    >>> exact(0.47), exact(3.35e12)
    (47/100, 3350000000000)
    """
    if isinstance(value, sp.Basic):
        return value
    if isinstance(value, bool):
        raise BadValue(name, value, "a number")
    try:
        return sp.Rational(str(value)) if isinstance(value, float) else sp.Rational(Fraction(value))
    except (TypeError, ValueError, OverflowError):
        raise BadValue(name, value, "a finite number") from None


def latex(expr: Any, **settings: Any) -> str:
    """LaTeX with the glossary's names (sympy alone would read `beta_hbm` as a bold H)."""
    return str(sp.latex(expr, symbol_names=_LATEX, **settings)) if settings else _latex(expr)


@lru_cache(maxsize=512)
def _latex(expr: Any) -> str:
    return str(sp.latex(expr, symbol_names=_LATEX))


def replaced(expr: Expr, new: Mapping[Expr, Expr], known: dict[Expr, Expr] | None = None) -> Expr:
    """`expr.xreplace(new)`, in which a part that occurs many times is replaced once.

    known: what was replaced by the same `new` already.  A Max or Min compares its arguments whenever it is built, so
    this matters for pairs and rows that hold the same one over and over.
    """
    if expr in new:
        return new[expr]
    if not expr.args:
        return expr
    known = {} if known is None else known
    found = known.get(expr)
    if found is None:
        args = [replaced(a, new, known) for a in expr.args]
        found = expr if all(a is b for a, b in zip(args, expr.args, strict=True)) else expr.func(*args)
        known[expr] = found
    return found


def maximum(*parts: Expr) -> Expr:
    """Max without the pairwise comparisons that make sympy 24 times slower to build it."""
    return parts[0] if len(parts) == 1 else sp.Max(*parts, evaluate=False)


def minimum(*parts: Expr) -> Expr:
    """Min, built as `maximum` is."""
    return parts[0] if len(parts) == 1 else sp.Min(*parts, evaluate=False)
