"""Expressions lowered to a small graph in which equal parts are one node, and the text of a node.

`codegen` prints the nodes as Python, `grid` runs them as array operations.  Operands are ordered by their text, so
nothing depends on the hash seed.  `ceiling(p/q)` becomes ``-(-p // q)``: floor division is exact at multiples, while
``ceil((1/75) * 525)`` is 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sympy as sp

from roofline.errors import BadValue

Node = tuple[Any, ...]  # (op, *children or payload); children are indices into Graph.nodes
LEAVES = ("num", "sym")
CALLS = {sp.exp: "exp", sp.log: "log", sp.Abs: "fabs", sp.Heaviside: "heaviside"}
COMPARE = {
    sp.StrictLessThan: "<", sp.LessThan: "<=", sp.StrictGreaterThan: ">", sp.GreaterThan: ">=",
    sp.Equality: "==", sp.Unequality: "!=",
}  # fmt: skip


class Graph:
    """Hash-consed nodes of one or more expressions.

    Nodes: ("num", value) ("sym", name) ("sum", plus, minus) ("prod", over, under) ("pow", a, b) ("max"|"min", *args)
    ("floordiv", a, b) ("call", function, a) ("where", condition, a, b) ("cmp", sign, a, b) ("and"|"or", *args)
    ("not", a).
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._index: dict[Node, int] = {}
        self._texts: dict[int, tuple[str, int]] = {}
        self._lowered: dict[Any, int] = {}

    def add(self, *node: Any) -> int:
        """The index of a node, made if it is new (1 and 1.0 are told apart)."""
        key = (*node, type(node[-1]))
        if key not in self._index:
            self._index[key] = len(self.nodes)
            self.nodes.append(node)
        return self._index[key]

    def children(self, i: int) -> tuple[int, ...]:
        """The operands of a node."""
        op, *rest = self.nodes[i]
        if op in LEAVES:
            return ()
        if op in ("sum", "prod"):
            return (*rest[0], *rest[1])
        return tuple(rest[1:] if op in ("call", "cmp") else rest)

    def lower(self, expr: Any) -> int:
        """The node of a sympy expression."""
        if expr not in self._lowered:
            self._lowered[expr] = self._lower(expr)
        return self._lowered[expr]

    def _lower(self, e: Any) -> int:
        if e.is_Symbol:
            return self.add("sym", e.name)
        if e.is_Number or e.is_NumberSymbol:
            return self._number(e)
        if e.is_Add:
            return self._sum(e)
        if e.is_Mul or e.is_Pow:
            return self._product(e)
        if isinstance(e, (sp.Max, sp.Min)):
            return self.add("max" if isinstance(e, sp.Max) else "min", *self._many(e.args))
        if isinstance(e, (sp.ceiling, sp.floor)):
            return self._rounded(e)
        if type(e) in CALLS:
            return self.add("call", CALLS[type(e)], self.lower(e.args[0]))
        return self._logic(e)

    def _logic(self, e: Any) -> int:
        if isinstance(e, sp.Piecewise):
            return self._piecewise(e)
        if type(e) in COMPARE:
            return self.add("cmp", COMPARE[type(e)], self.lower(e.lhs), self.lower(e.rhs))
        if isinstance(e, (sp.And, sp.Or)):
            return self.add("and" if isinstance(e, sp.And) else "or", *self._many(e.args))
        if isinstance(e, sp.Not):
            return self.add("not", self.lower(e.args[0]))
        raise BadValue("expression", type(e).__name__, "+ * **, Max, Min, ceiling, floor, exp, log, Abs or Piecewise")

    def _number(self, e: Any) -> int:
        if e.is_Rational and e.q != 1:
            return self._quotient(int(e.p), int(e.q))
        if e in (sp.oo, -sp.oo, sp.nan, sp.zoo):
            raise BadValue("expression", e, "finite numbers")
        return self.add("num", int(e) if e.is_Integer else float(e))

    def _quotient(self, p: int, q: int) -> int:
        if p < 0:
            return self.add("sum", (), (self._quotient(-p, q),))
        return self.add("prod", (self.add("num", p),), (self.add("num", q),))

    def _many(self, parts: Iterable[Any]) -> tuple[int, ...]:
        return self._sorted(self.lower(p) for p in parts)

    def _sorted(self, nodes: Iterable[int]) -> tuple[int, ...]:
        """Numbers first, then by text, so that the order does not depend on how sympy stores the arguments."""

        def key(i: int) -> tuple[bool, str, str]:
            text = self.text(i)[0]
            return self.nodes[i][0] != "num", text.lstrip("(-"), text

        return tuple(sorted(nodes, key=key))

    def _sum(self, e: Any) -> int:
        plus: list[int] = []
        minus: list[int] = []
        for term in e.args:
            negative = term.as_coeff_Mul()[0].is_negative
            (minus if negative else plus).append(self.lower(-term if negative else term))
        return self.add("sum", self._sorted(plus), self._sorted(minus))

    def _product(self, e: Any) -> int:
        coefficient, rest = e.as_coeff_Mul()
        if coefficient.is_negative:
            return self.add("sum", (), (self.lower(-e),))
        over: list[int] = []
        under: list[int] = []
        for factor in sp.Mul.make_args(rest):
            base, exponent = factor.as_base_exp() if factor.is_Pow else (factor, sp.S.One)
            inverse = bool(exponent.is_number and exponent.is_negative)
            (under if inverse else over).append(self._power(base, -exponent if inverse else exponent))
        numerator, denominator = (coefficient.p, coefficient.q) if coefficient.is_Rational else (coefficient, 1)
        if numerator != 1 or not over:
            over.append(self._number(sp.sympify(numerator)))
        if denominator != 1:
            under.append(self.add("num", int(denominator)))
        if len(over) == 1 and not under:
            return over[0]
        return self.add("prod", self._sorted(over), self._sorted(under))

    def _power(self, base: Any, exponent: Any) -> int:
        if exponent == 1:
            return self.lower(base)
        if base == sp.E:
            return self.add("call", "exp", self.lower(exponent))
        if exponent == sp.S.Half:
            return self.add("call", "sqrt", self.lower(base))
        return self.add("pow", self.lower(base), self.lower(exponent))

    def _rounded(self, e: Any) -> int:
        """floor(p/q) = p // q; ceiling(p/q) = -(-p // q).  Floor division of floats is exact, p * (1/q) is not."""
        p, q = sp.fraction(sp.together(e.args[0]))
        if isinstance(e, sp.floor):
            return self.add("floordiv", self.lower(p), self.lower(q))
        return self.add("sum", (), (self.add("floordiv", self.lower(-p), self.lower(q)),))

    def _piecewise(self, e: Any) -> int:
        *cases, (last, condition) = e.args
        if condition != sp.true:
            raise BadValue("expression", e, "a Piecewise whose last case is always true")
        result = self.lower(last)
        for value, condition in reversed(cases):
            result = self.add("where", self.lower(condition), self.lower(value), result)
        return result

    def symbols(self, roots: Iterable[int]) -> list[str]:
        """Names that these nodes depend on, sorted."""
        seen: set[int] = set()
        todo = list(roots)
        while todo:
            i = todo.pop()
            if i not in seen:
                seen.add(i)
                todo.extend(self.children(i))
        return sorted(self.nodes[i][1] for i in seen if self.nodes[i][0] == "sym")

    def text(self, i: int) -> tuple[str, int]:
        """Scalar text of a node without temporaries, and how tightly it binds; operands are ordered by it."""
        if i not in self._texts:
            self._texts[i] = printed(self, i, self.text, MATH)
        return self._texts[i]


ATOM, POWER, UNARY, PRODUCT, FLOOR, SUM, LOOSE = 6, 5, 4, 3, 2, 1, 0
Dialect = Mapping[str, Callable[..., str]]
STEP = "(0.0 if {a} < 0 else 1.0 if {a} > 0 else 0.5)"
MATH: Dialect = {
    "call": lambda name, a: STEP.format(a=a) if name == "heaviside" else f"math.{name}({a})",
    "fold": lambda name, args: f"{name}({', '.join(args)})",
    "where": lambda c, a, b: f"({a} if {c} else {b})",
    "logic": lambda op, args: "(" + f" {op} ".join(args) + ")",
    "not": lambda a: f"(not {a})",
}


def _nested(name: str, args: list[str]) -> str:
    return args[0] if len(args) == 1 else f"np.{name}imum({_nested(name, args[:-1])}, {args[-1]})"


NUMPY: Dialect = {
    "call": lambda name, a: f"np.heaviside({a}, 0.5)" if name == "heaviside" else f"np.{name}({a})",
    "fold": _nested,
    "where": lambda c, a, b: f"np.where({c}, {a}, {b})",
    "logic": lambda op, args: "(" + (" & " if op == "and" else " | ").join(args) + ")",
    "not": lambda a: f"(~{a})",
}


def printed(graph: Graph, i: int, of: Callable[[int], tuple[str, int]], dialect: Dialect) -> tuple[str, int]:
    """Source text of one node and its precedence, given the texts of its operands."""

    def at(child: int, level: int) -> str:
        text, bound = of(child)
        return text if bound >= level else f"({text})"

    op, *rest = graph.nodes[i]
    match op:
        case "num":
            return (repr(rest[0]), ATOM) if rest[0] >= 0 else (f"({rest[0]!r})", ATOM)
        case "sym":
            return rest[0], ATOM
        case "sum":
            over = sorted(rest[0], key=lambda c: graph.nodes[c][0] == "num")  # x + 1, not 1 + x
            text = " + ".join(at(c, SUM) for c in over) + "".join(f" - {at(c, PRODUCT)}" for c in rest[1])
            if over:
                return text, SUM
            return "-" + text[3:], SUM if len(rest[1]) > 1 else min(UNARY, of(rest[1][0])[1])
        case "prod":
            under = "".join(f" / {at(c, UNARY)}" for c in rest[1])
            return " * ".join(at(c, PRODUCT if n == 0 else UNARY) for n, c in enumerate(rest[0])) + under, PRODUCT
        case "pow":
            return f"{at(rest[0], ATOM)}**{at(rest[1], ATOM)}", POWER
        case "floordiv":
            return f"{at(rest[0], UNARY)} // {at(rest[1], UNARY)}", FLOOR
        case "max" | "min":
            return dialect["fold"](op, [at(c, LOOSE) for c in rest]), ATOM
        case "call":
            return dialect["call"](rest[0], at(rest[1], SUM)), ATOM
        case "where":
            return dialect["where"](*(at(c, SUM) for c in rest)), ATOM
        case "cmp":
            return f"({at(rest[1], SUM)} {rest[0]} {at(rest[2], SUM)})", ATOM
        case "not":
            return dialect["not"](at(rest[0], LOOSE)), ATOM
        case _:
            return dialect["logic"](op, [at(c, LOOSE) for c in rest]), ATOM
