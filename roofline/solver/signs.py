"""The sign of an expression, as far as the signs of its symbols and the given assumptions decide it."""

from __future__ import annotations

from itertools import permutations
from typing import TypeAlias

import sympy as sp

from roofline.solver.numbers import Problem
from roofline.solver.solution import shown
from roofline.symbols import Expr

Outcome: TypeAlias = "sp.Basic | bool | list[sp.Basic]"
STRICT = (sp.StrictGreaterThan, sp.StrictLessThan)


class Signs:
    """Decides conditions for one problem.

    An expression's sign is that of its factors.  A factor is decided if sympy decides it from the signs of the symbols,
    if it still is after every assumption ``a > b`` with a symbol on the larger side was put in as ``a = b + something
    positive``, or if it is a known multiple of ``a - b`` of one assumption.
    """

    def __init__(self, problem: Problem, assume: tuple[sp.Basic, ...] = ()) -> None:
        self.problem = problem
        self.cache: dict[Expr, int | None] = {}
        self.known = [r.gts - r.lts for r in assume if hasattr(r, "gts")]
        self.shift: dict[Expr, Expr] = {}
        for relation in assume:
            if hasattr(relation, "gts") and relation.gts.is_Symbol:
                self.shift[relation.gts] = relation.lts + _more(isinstance(relation, STRICT))
        if problem.low.is_finite is not False:
            self.shift[problem.x] = problem.low + _more(problem.low_open)

    def nonnegative(self, expr: Expr) -> bool | None:
        """Whether expr >= 0, None if not decided."""
        sign = self.sign(expr)
        return None if sign is None else sign >= 0

    def sign(self, expr: Expr) -> int | None:
        """1, 0 or -1 if decided; None if not (an expression that may be zero or positive is not decided)."""
        if expr not in self.cache:
            self.cache[expr] = self._sign(expr)
        return self.cache[expr]

    def _sign(self, expr: Expr) -> int | None:
        quick = self._plain_sign(expr)
        if quick is not None:
            return quick
        total = 1
        for factor in sp.Mul.make_args(sp.factor(sp.together(expr))):
            sign = self._sign_of_factor(factor)
            if sign is None:
                return None
            total *= sign
        return total

    def _plain_sign(self, expr: Expr) -> int | None:
        """What sympy says of the expression, and of it with the assumptions put in."""
        if expr.is_number:
            return int(sp.sign(expr))
        for form in (expr, self._shifted(expr)):
            if form.is_positive or form.is_negative or form.is_zero:
                return 1 if form.is_positive else -1 if form.is_negative else 0
        return None

    def _sign_of_factor(self, factor: Expr) -> int | None:
        base, power = factor.as_base_exp()
        if power.is_Integer and base != factor:
            sign = self._sign_of_factor(base)
            return None if sign is None else sign ** abs(int(power))
        sign = self._plain_sign(factor)
        for difference in self.known if sign is None else ():
            ratio = sp.cancel(factor / difference)
            if ratio.is_positive or ratio.is_negative:
                return 1 if ratio.is_positive else -1
        return sign

    def _shifted(self, expr: Expr) -> Expr:
        for _ in self.shift:  # a shifted bound may hold another shifted symbol
            expr = expr.xreplace(self.shift)
        return sp.expand(expr)

    def undecided(self, condition: sp.Basic, expr: Expr) -> list[sp.Basic]:
        """The condition in a list, or nothing if the sign of `expr` is known and not zero."""
        return [] if self.sign(expr) in (1, -1) else [condition]

    def simplified(self, expr: Expr, strict: bool) -> sp.Basic | bool:
        """`expr > 0` (or >= 0) without the factors whose sign is known; True or False if all are."""
        surds = [p for p in expr.atoms(sp.Pow) if not p.exp.is_Integer]
        if any(not p.is_number for p in surds):
            return expr > 0 if strict else expr >= 0
        expr = sp.expand(expr) if surds else expr
        left, sign = sp.Integer(1), 1
        for factor in sp.Mul.make_args(sp.factor(sp.together(expr))):
            known = self._sign_of_factor(factor)
            if known is not None:
                sign *= known
            elif strict or not factor.is_nonnegative:  # where such a factor is zero, >= 0 holds anyway
                base, power = factor.as_base_exp()
                left *= base if not power.is_Integer or power % 2 else base**2
        if left == 1:
            return sign > 0 if strict else sign >= 0
        terms = sp.Add.make_args(sp.expand(left * sign))
        plus = sp.factor_terms(sp.Add(*(t for t in terms if not t.could_extract_minus_sign())))
        minus = sp.factor_terms(-sp.Add(*(t for t in terms if t.could_extract_minus_sign())))
        return plus > minus if strict else plus >= minus

    def conditions(
        self, value: Expr, poly: sp.Poly, larger: bool | None, held: tuple[Expr, ...], others: list[sp.Basic]
    ) -> tuple[sp.Basic, ...] | str:
        """What is left of the range and the branch conditions at a root of `poly`, or why it is no answer.

        larger: for a quadratic, whether it is the larger of the two roots (None if that depends on symbols).
        """
        told_false = "outside its branch: {} >= 0 is false there"
        wanted = [*self._range(), *((c, False, told_false.format(self._named(c))) for c in held)]
        bounds = [expr for expr, _, _ in wanted]
        left = [c for c in others if c != sp.true]
        for expr, strict, told in wanted:
            outcome = self._at_root(expr, strict, value, poly, larger)
            if outcome is False or outcome == sp.false:
                return f"lies {told}"
            if isinstance(outcome, list):
                left += outcome
            elif outcome is not True and outcome != sp.true and not self._follows(expr, bounds):
                left.append(outcome)
        if larger is None:
            return tuple(dict.fromkeys(self._without_implied(left)))
        if self._encloses(poly, bounds):  # the roots are real on their own
            disc = sp.factor(sp.discriminant(poly))
            left = [c for c in left if not (isinstance(c, sp.GreaterThan) and c.lhs == disc)]
        return self._contradiction(left) or tuple(dict.fromkeys(self._without_implied(left)))

    def _range(self) -> list[tuple[Expr, bool, str]]:
        """The range as conditions: expression, whether strictly positive, and what to say if it is not."""
        p = self.problem
        sign = ">" if p.low_open else ">="
        ends = [(p.x - p.low, p.low_open, f"below the range {p.unknown} {sign} {shown(p.low)}")]
        if p.high != sp.oo:
            ends.append((p.high - p.x, p.high_open, f"above the range, {p.unknown} up to {shown(p.high)}"))
        return ends

    def _named(self, expr: Expr) -> Expr:
        return expr.xreplace({self.problem.x: sp.Symbol(self.problem.unknown)})

    def _without_implied(self, conditions: list[sp.Basic]) -> list[sp.Basic]:
        """Without those `e != 0` that follow from a strict inequality of the same expression."""
        strict = [c.gts - c.lts for c in conditions if isinstance(c, STRICT)]
        implied = [c for c in conditions if isinstance(c, sp.Ne)]
        implied = [c for c in implied if any(sp.expand(c.lhs - s) == 0 or sp.expand(c.lhs + s) == 0 for s in strict)]
        return [c for c in conditions if c not in implied]

    def _contradiction(self, conditions: list[sp.Basic]) -> str:
        """Two conditions that cannot both hold: a positive multiple of one added to the other is negative."""
        plain = [c for c in conditions if hasattr(c, "gts") and all(p.exp.is_Integer for p in c.atoms(sp.Pow))]
        for one, two in permutations(plain, 2):
            first, second = one.gts - one.lts, two.gts - two.lts
            for name in sorted(first.free_symbols & second.free_symbols, key=str):
                if sp.degree(first, name) == sp.degree(second, name) == 1:
                    multiple = sp.cancel(-sp.Poly(second, name).LC() / sp.Poly(first, name).LC())
                    if self.sign(multiple) == 1 and self.sign(sp.expand(second + multiple * first)) == -1:
                        return f"has conditions that exclude each other: {one} and {two}"
        return ""

    def _bound(self, expr: Expr) -> tuple[Expr, int] | None:
        """`(point, 1)` if expr >= 0 says x >= point, `(point, -1)` if it says x <= point, else None."""
        x = self.problem.x
        if not expr.has(x) or not expr.is_polynomial(x):
            return None
        poly = sp.Poly(expr, x)
        sign = self.sign(poly.LC()) if poly.degree() == 1 else None
        return (-poly.TC() / poly.LC(), sign) if sign in (1, -1) else None

    def _follows(self, expr: Expr, others: list[Expr]) -> bool:
        """Whether the bound that `expr` sets follows from another one, strictly tighter."""
        here = self._bound(expr)
        if here is None:
            return False
        there = [b for b in map(self._bound, others) if b and b[1] == here[1]]
        return any(self.sign((point - here[0]) * here[1]) == 1 for point, _ in there)

    def _encloses(self, poly: sp.Poly, others: list[Expr]) -> bool:
        """Whether the quadratic is known to have its two signs, at a bound, so that its roots are real."""
        points = [b[0] for b in map(self._bound, others) if b]
        return any(self.sign(poly.LC() * poly.eval(p)) == -1 for p in points)

    def interval(self, held: tuple[Expr, ...]) -> tuple[Expr, Expr, tuple[Expr, ...]]:
        """The range, narrowed by conditions that bound the unknown, and the conditions that do not."""
        low, high, rest = self.problem.low, self.problem.high, []
        for expr in held:
            bound = self._bound(expr)
            if bound and bound[1] == 1 and self.sign(bound[0] - low) in (0, 1):
                low = bound[0]
            elif bound and bound[1] == -1 and (high == sp.oo or self.sign(high - bound[0]) in (0, 1)):
                high = bound[0]
            else:
                rest.append(expr)
        return low, high, tuple(rest)

    def _at_root(self, expr: Expr, strict: bool, value: Expr, poly: sp.Poly, larger: bool | None) -> Outcome:
        """The condition expr > 0 (or >= 0) at a root of `poly`."""
        bound = None if larger is None else self._bound(expr)
        if bound is not None:
            decided = self._beyond(poly, *bound, larger == (bound[1] == 1), strict)
            if decided is not None:
                return decided
        return self.simplified(expr.xreplace({self.problem.x: value}), strict)

    def _beyond(self, poly: sp.Poly, point: Expr, side: int, farther: bool, strict: bool) -> Outcome | None:
        """Whether a root of a quadratic lies above (side 1) or below (-1) a point, from the signs of the polynomial.

        farther: whether it is the one of the two roots on that side.  With y = side (x - point), a y^2 + b y + c = 0
        and a > 0: if c < 0 the point is between the roots; if c > 0 both roots are on the side of -b.
        """
        x = self.problem.x
        a, b, c = sp.Poly(poly.as_expr().xreplace({x: side * x + point}), x).all_coeffs()
        if self.sign(a) == -1:
            a, b, c = -a, -b, -c
        sign_b, sign_c = self.sign(b), self.sign(c)
        if sign_c == -1:
            return farther
        if sign_c == 1:
            return self.simplified(-b, True)
        if sign_b == -1:
            return True if farther else self.simplified(c, strict)
        if not farther:
            needed = [self.simplified(c, strict), self.simplified(-b, True)]
            return False if False in needed else [n for n in needed if n is not True]
        return self.simplified(-c, strict) if sign_b in (0, 1) else None


def _more(strict: bool) -> sp.Dummy:
    return sp.Dummy("more", positive=True) if strict else sp.Dummy("more", nonnegative=True)
