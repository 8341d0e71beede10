"""What solving an equation returns: roots, what was rejected and why, and, where there is no root, the proof.

All values are sympy expressions, exact where a closed form exists.  `float(root.value)` gives the number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sympy as sp

from roofline.errors import BadValue
from roofline.symbols import Expr, exact, latex, sym


@dataclass(frozen=True)
class Root:
    """One real root in the range of the unknown, substituted back into the equation as it was asked.

    value: exact expression, or a `Float` where no closed form exists; conditions: what could not be decided because
    symbols are left; residual: 0 (exactly, by substitution) or the relative residual; branch: the active arguments;
    before, after: sign of lhs - rhs on either side (-1, 0, 1; None where symbols are left), equal where lhs only
    touches; witnessed: with symbols left, whether some of 400 random shapes met all conditions (and the equation).
    """

    value: Expr
    unknown: str
    conditions: tuple[sp.Basic, ...] = ()
    residual: float = 0
    branch: str = ""
    before: int | None = None
    after: int | None = None
    witnessed: bool = True

    @property
    def latex(self) -> str:
        """`unknown = value` in LaTeX, with the conditions."""
        shown = self.value if self.value.is_Rational or not self.value.is_Float else sp.Float(self.value, 8)
        name = getattr(sym, self.unknown, sp.Symbol(self.unknown))
        text = f"{latex(name)} = {latex(shown)}"
        return text + "".join(rf",\quad {latex(c)}" for c in self.conditions)

    @property
    def is_exact(self) -> bool:
        """Whether the value is a closed form that satisfies the equation exactly."""
        return bool(self.residual == 0 and not self.value.has(sp.Float))


class Rejected(NamedTuple):
    """A root of one smooth branch that is no answer, and the reason."""

    value: Expr
    reason: str
    branch: str = ""


class Interval(NamedTuple):
    """Both sides are identical for every value of the unknown between `low` and `high`."""

    low: Expr
    high: Expr
    conditions: tuple[sp.Basic, ...] = ()


class Jump(NamedTuple):
    """The left side jumps over the right side at `at`, from `before` to `after`, without being equal to it."""

    at: Expr
    before: Expr
    after: Expr


@dataclass(frozen=True)
class Solution:
    """All real roots of lhs = rhs in the range of the unknown.

    reason: empty if there is a root, else why there is none; limit_low, limit_high: the limit of the quantity at the
    ends of the range (of lhs / rhs if both sides depend on the unknown; None where it was not found); trend:
    "increasing", "decreasing", "constant" or "" (neither, or not decided); searched: set if the search had to stop.
    """

    unknown: str
    roots: tuple[Root, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    reason: str = ""
    limit_low: Expr | None = None
    limit_high: Expr | None = None
    trend: str = ""
    intervals: tuple[Interval, ...] = ()
    jumps: tuple[Jump, ...] = ()
    low: Expr = field(default_factory=lambda: sp.Integer(0))
    high: Expr = field(default_factory=lambda: sp.oo)
    searched: str = ""

    def __bool__(self) -> bool:
        return bool(self.roots or self.intervals)

    @property
    def values(self) -> tuple[float, ...]:
        """The roots as numbers; only where no symbols are left."""
        return tuple(float(root.value) for root in self.roots)


class NearestPower(NamedTuple):
    """A power of two and the side of the ridge it falls on: "memory", "compute" or "ridge"."""

    value: int
    side: str


def nearest_power_of_two(x: Any) -> NearestPower:
    """The whole power of two (1 at least) nearest to a count in log2, and the side of the ridge it falls on.

    More heads are more intensity, so a power below the exact count is memory-bound and one above is compute-bound.  A
    tie, only possible at an odd power of sqrt(2), goes up, as in `roofline.headcount`.

    >>> nearest_power_of_two(136.70), nearest_power_of_two(64)
    (NearestPower(value=128, side='memory'), NearestPower(value=64, side='ridge'))
    >>> nearest_power_of_two(91)                    # 2**6.508
    NearestPower(value=128, side='compute')
    """
    count = exact(x, "count")
    if not count.is_number or not count.is_finite or count.is_real is not True or count <= 0:
        raise BadValue("count", x, "a finite number > 0")
    power = max(0, int(sp.floor(sp.log(count, 2).evalf(30))))
    while 2 ** (2 * power + 1) <= count**2:
        power += 1
    value = 2**power
    return NearestPower(value, "ridge" if count == value else "memory" if value < count else "compute")


def shown(value: Any, digits: int = 6) -> str:
    """A value as it stands in a sentence."""
    value = sp.sympify(value)
    if value.is_infinite:
        return "oo" if value > 0 else "-oo"
    if not value.is_number:
        return str(value)
    number = float(value)
    if not 1 <= abs(number) < 1e15:
        return f"{number:.{digits}g}"
    return f"{number:,.{0 if abs(number) >= 1e5 else 2}f}".removesuffix(".00")
