"""Elasticities: by how many percent a quantity moves when one of its parameters moves by one percent.

    elasticity of Y to x  =  d ln Y / d ln x  =  (x / Y) dY/dx

Of a product of powers it is the exponent.  At a kink (the two arguments of a Max are equal: a kernel on the ridge) the
elasticity below and above differ, and both are given.  A ceiling or floor moves in steps; between steps its elasticity
is 0, which is what is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import sympy as sp

from roofline.errors import BadValue
from roofline.solver.branches import STEPS, Branch, branches, prepared, put
from roofline.symbols import Expr, exact, symbol

TIE = 1e-12


def elasticity(expr: Any, name: str | sp.Symbol) -> Expr:
    """d ln expr / d ln name as a formula; a Piecewise over the active arguments where a Max or Min depends on `name`.

    >>> from roofline.symbols import maximum, sym
    >>> elasticity(sym.heads**2 * sym.latent / sym.w_kv, "heads"), elasticity(sym.heads / sym.w_kv, "w_kv")
    (2, -1)
    >>> elasticity(maximum(sym.flops / sym.peak, sym.bytes / sym.bandwidth), "peak")
    Piecewise((0, bandwidth*flops - bytes*peak <= 0), (-1, True))
    """
    x = name if isinstance(name, sp.Symbol) else symbol(name)
    plain = prepared(exact(expr, "expression"))
    if any(node.has(x) for node in plain.atoms(sp.Piecewise)):
        raise BadValue("expression", "a Piecewise", "Max, Min, ceiling or floor; `elasticities` takes it at a point")
    steps = {node: sp.Dummy(positive=True) for node in plain.atoms(*STEPS) if node.has(x)}
    held = put(plain, steps)
    back = {mark: node for node, mark in steps.items()}
    found = list(branches(held, x, _decided))
    rows = [(_smooth(branch.expr, x).xreplace(back), _condition(branch).xreplace(back)) for branch in found]
    if len({value for value, _ in rows}) == 1:
        return rows[0][0]
    return sp.Piecewise(*rows[:-1], (rows[-1][0], True))


def _decided(expr: Expr) -> bool | None:
    return True if expr.is_nonnegative else False if expr.is_negative else None


def _condition(branch: Branch) -> sp.Basic:
    """The conditions of a branch, without denominators that are positive anyway."""
    cleared = []
    for difference in branch.conditions:
        top, bottom = sp.fraction(sp.together(difference))
        cleared.append(top if bottom.is_positive else difference)
    return sp.And(*(c >= 0 for c in cleared))


def _smooth(expr: Expr, x: sp.Symbol) -> Expr:
    if expr == 0:
        raise BadValue("expression", 0, "a quantity that is not zero")
    ratio = x * sp.diff(expr, x) / expr
    return sp.factor(sp.cancel(ratio)) if ratio.is_rational_function(x) else sp.simplify(ratio)


def elasticities(expr: Any, at: Mapping[str, Any]) -> dict[str, float | tuple[float, float]]:
    """Elasticity of `expr` to each of its quantities at one point, by name.

    at: a number for every quantity in `expr`, in SI units.  On a kink the value is the pair (below, above).
    Raises BadValue where a number is missing or the expression is zero there.

    >>> from roofline.symbols import maximum, sym
    >>> time = maximum(sym.flops / sym.peak, sym.bytes / sym.bandwidth)
    >>> elasticities(time, {"flops": 4, "peak": 2, "bytes": 1, "bandwidth": 1})
    {'bandwidth': 0.0, 'bytes': 0.0, 'flops': 1.0, 'peak': -1.0}
    >>> elasticities(time, {"flops": 2, "peak": 2, "bytes": 1, "bandwidth": 1})["flops"]
    (0.0, 1.0)
    """
    plain = prepared(exact(expr, "expression"))
    names = {s.name: s for s in plain.free_symbols}
    missing = sorted(set(names) - set(at))
    if missing:
        raise BadValue(", ".join(missing), "nothing", "a number for each quantity of the expression")
    point = _Point({names[k]: _exact_number(k, at[k]) for k in names})
    value = point.value(plain)
    if value == 0:
        raise BadValue("expression", 0, "a quantity that is not zero at this point")
    return {k: _pair(point.slope(plain, names[k], {}), point.values[names[k]] / value) for k in sorted(names)}


def _exact_number(name: str, value: Any) -> Number:
    number = exact(value, name)
    if not number.is_number or number.is_finite is not True or number.is_real is not True:
        raise BadValue(name, value, "a finite number")
    return Fraction(int(number.p), int(number.q)) if number.is_Rational else float(number)


def _pair(slope: Slope, scale: Number) -> float | tuple[float, float]:
    below, above = float(slope.below * scale), float(slope.above * scale)
    return below if math.isclose(below, above, rel_tol=1e-9, abs_tol=1e-12) else (below, above)


Number = Fraction | float


class Slope(NamedTuple):
    """Derivative from below and from above."""

    below: Number
    above: Number

    def times(self, factor: Number) -> Slope:
        """The chain rule for a smooth outer function."""
        return Slope(self.below * factor, self.above * factor)


ZERO = Slope(Fraction(0), Fraction(0))


class _Point:
    """Values and one-sided derivatives of expressions at one point; fractions as long as everything is rational."""

    def __init__(self, values: dict[Expr, Number]) -> None:
        self.values = values

    def value(self, expr: Expr) -> Number:
        """The value, computed once per sub-expression."""
        if expr not in self.values:
            self.values[expr] = self._value(expr)
        return self.values[expr]

    def _value(self, expr: Expr) -> Number:
        if expr.is_number:
            return _exact_number("constant", expr)
        if isinstance(expr, sp.Piecewise):
            return self.value(self._active_piece(expr))
        if expr.func not in _VALUES:
            raise BadValue("expression", expr.func.__name__, f"one of {', '.join(f.__name__ for f in _VALUES)}")
        return _VALUES[expr.func](*(self.value(arg) for arg in expr.args))

    def _active_piece(self, expr: Expr) -> Expr:
        for value, condition in expr.args:
            atoms = condition.atoms(sp.core.relational.Relational)
            relations = {r: sp.sympify(r.func(self.value(r.lhs), self.value(r.rhs))) for r in atoms}
            if condition.xreplace(relations) == sp.true:
                return value
        raise BadValue("expression", "no piece", "a piece that holds at this point")

    def slope(self, expr: Expr, x: sp.Symbol, done: dict[Expr, Slope]) -> Slope:
        """Derivatives with respect to `x` from below and above."""
        if expr == x:
            return Slope(Fraction(1), Fraction(1))
        if not expr.has(x) or isinstance(expr, STEPS):
            return ZERO
        if expr not in done:
            done[expr] = self._slope(expr, x, done)
        return done[expr]

    def _slope(self, expr: Expr, x: sp.Symbol, done: dict[Expr, Slope]) -> Slope:
        if isinstance(expr, sp.Piecewise):
            return self.slope(self._active_piece(expr), x, done)
        slopes = [self.slope(arg, x, done) for arg in expr.args]
        values = [self.value(arg) for arg in expr.args]
        if isinstance(expr, (sp.Max, sp.Min)):
            return _extreme(isinstance(expr, sp.Max), self.value(expr), values, slopes)
        if isinstance(expr, sp.Add):
            factors: list[Number] = [Fraction(1)] * len(values)
        elif isinstance(expr, sp.Mul):
            factors = [math.prod(values[:i] + values[i + 1 :], start=Fraction(1)) for i in range(len(values))]
        elif isinstance(expr, sp.Pow):
            base, power = values
            factors = [power * _power(base, power - 1), 0.0 if slopes[1] == ZERO else self.value(expr) * math.log(base)]
        else:
            factors = [self.value(expr) if isinstance(expr, sp.exp) else 1 / values[0]]
        parts = [s.times(f) for s, f in zip(slopes, factors, strict=True)]
        return Slope(sum(p.below for p in parts), sum(p.above for p in parts))


def _extreme(is_max: bool, value: Number, values: list[Number], slopes: list[Slope]) -> Slope:
    """Slope of a Max or Min: of the active argument; on a tie a Max has the flattest below and the steepest above."""
    near = TIE * abs(float(value))
    tied = [s for v, s in zip(values, slopes, strict=True) if v == value or abs(float(v - value)) <= near]
    below, above = [s.below for s in tied], [s.above for s in tied]
    return Slope(min(below), max(above)) if is_max else Slope(max(below), min(above))


def _power(base: Number, power: Number) -> Number:
    whole = isinstance(power, Fraction) and power.denominator == 1
    return base ** int(power) if whole else float(base) ** float(power)


_VALUES: Mapping[type, Callable[..., Number]] = {
    sp.Add: lambda *a: sum(a),
    sp.Mul: lambda *a: math.prod(a, start=Fraction(1)),
    sp.Pow: _power,
    sp.Max: max,
    sp.Min: min,
    sp.ceiling: math.ceil,
    sp.floor: math.floor,
    sp.log: math.log,
    sp.exp: math.exp,
}
