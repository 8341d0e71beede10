"""Expressions as steps of two operands, arranged so that as few steps as possible run over a whole mesh.

Every step knows the axes it depends on (a bit mask).  Sums, products and maxima of many operands are folded pair by
pair, smallest broadcast union first: constants, then operands of one axis, ... ; equal steps are one step.  A division
by something smaller than the result is a multiplication by its reciprocal, which rounds once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

from roofline.codegen.lowering import Graph

COMMUTES = frozenset({"add", "multiply", "maximum", "minimum", "logical_and", "logical_or"})
SIGNS = {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "not_equal"}
BOOLEAN = frozenset({*SIGNS.values(), "logical_and", "logical_or", "logical_not"})
Operand = tuple[int, bool]  # step, and whether it is subtracted or divided by


class Step(NamedTuple):
    """`op` is "number", "name", "select" or a numpy ufunc; `args` are earlier steps, or the payload of a leaf."""

    op: str
    args: tuple[Any, ...]
    mask: int


class Fusion:
    """Steps for some expressions on an open grid: `axis_of` tells on which axis a name varies, `sizes` the lengths."""

    def __init__(self, exprs: Sequence[Any], axis_of: Mapping[str, int], sizes: Sequence[int]) -> None:
        self.axis_of, self.sizes = axis_of, tuple(sizes)
        self._sizes: dict[int, int] = {}
        self.steps: list[Step] = []
        self._index: dict[tuple[Any, ...], int] = {}
        self._done: dict[int, int] = {}
        self._graph = Graph()
        self.roots = [self._value(self._graph.lower(e)) for e in exprs]

    def size(self, mask: int) -> int:
        """Elements of an array over the axes in `mask`."""
        if mask not in self._sizes:
            self._sizes[mask] = prod(n for i, n in enumerate(self.sizes) if mask >> i & 1)
        return self._sizes[mask]

    def _step(self, op: str, *args: Any, leaf_mask: int | None = None) -> int:
        mask = leaf_mask
        if mask is None:
            mask = 0
            for a in args:
                mask |= self.steps[a].mask
            args = tuple(sorted(args)) if op in COMMUTES else args
        key = (op, *args)
        if key not in self._index:
            self._index[key] = len(self.steps)
            self.steps.append(Step(op, args, mask))
        return self._index[key]

    def _value(self, i: int) -> int:
        if i not in self._done:
            self._done[i] = self._lowered(*self._graph.nodes[i])
        return self._done[i]

    def _lowered(self, op: str, *rest: Any) -> int:
        match op:
            case "num":
                return self._step("number", float(rest[0]), leaf_mask=0)
            case "sym":
                axis = self.axis_of.get(rest[0])
                return self._step("name", rest[0], leaf_mask=0 if axis is None else 1 << axis)
            case "sum" | "prod":
                items = [(self._value(c), n == 1) for n, side in enumerate(rest) for c in side]
                return self._closed(*self._folded(items, self._added if op == "sum" else self._multiplied), op)
            case "call" | "cmp":
                name = SIGNS.get(rest[0], rest[0])
                args = [self._value(c) for c in rest[1:]]
                return self._step(name, *args, *([self._number(0.5)] if name == "heaviside" else []))
            case "pow":
                return self._power(*rest)
            case "where" | "floordiv" | "not":
                name = {"where": "select", "floordiv": "floor_divide", "not": "logical_not"}[op]
                return self._step(name, *(self._value(c) for c in rest))
        name = {"max": "maximum", "min": "minimum", "and": "logical_and", "or": "logical_or"}[op]
        items = [(self._value(c), False) for c in rest]
        return self._folded(items, lambda a, b: (self._step(name, a[0], b[0]), False))[0]

    def _number(self, value: float) -> int:
        return self._step("number", value, leaf_mask=0)

    def _power(self, base: int, exponent: int) -> int:
        op, value = self._graph.nodes[exponent][:2]
        if op == "num" and value in (2, 3, 4):
            square = self._step("square", self._value(base))
            return {2: lambda: square, 3: lambda: self._step("multiply", square, self._value(base)),
                    4: lambda: self._step("square", square)}[value]()  # fmt: skip
        return self._step("power", self._value(base), self._value(exponent))

    def _folded(self, items: list[Operand], combine: Callable[[Operand, Operand], Operand]) -> Operand:
        """Pairs of the smallest union first; operands of equal axes (and side) are joined before the search."""
        groups: dict[tuple[int, bool], Operand] = {}
        for item in items:
            key = (self.steps[item[0]].mask, item[1])
            groups[key] = combine(groups[key], item) if key in groups else item
        left = list(groups.values())
        while len(left) > 1:
            a, b = min(combinations(left, 2), key=lambda pair: self.size(self._union(*pair)))
            left = [x for x in left if x is not a and x is not b] + [combine(a, b)]
        return left[0]

    def _union(self, a: Operand, b: Operand) -> int:
        return self.steps[a[0]].mask | self.steps[b[0]].mask

    def _added(self, a: Operand, b: Operand) -> Operand:
        if a[1] == b[1]:
            return self._step("add", a[0], b[0]), a[1]
        plus, minus = (b, a) if a[1] else (a, b)
        return self._step("subtract", plus[0], minus[0]), False

    def _multiplied(self, a: Operand, b: Operand) -> Operand:
        if a[1] == b[1]:
            return self._step("multiply", a[0], b[0]), a[1]
        over, under = (b, a) if a[1] else (a, b)
        if self.size(self._union(a, b)) > self.size(self.steps[under[0]].mask):
            return self._step("multiply", over[0], self._step("reciprocal", under[0])), False
        return self._step("divide", over[0], under[0]), False

    def _closed(self, step: int, inverse: bool, op: str) -> int:
        if not inverse:
            return step
        return self._step("negative" if op == "sum" else "reciprocal", step)
