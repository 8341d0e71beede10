"""Changes of a Python file, one node of its syntax tree at a time: operators, comparisons, constants, Min and Max."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import Any

ARITHMETIC: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip
COMPARE: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
NAMES = {
    "Min": "Max",
    "Max": "Min",
    "minimum": "maximum",
    "maximum": "minimum",
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
}


def edits(node: ast.AST) -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Changes of one node, each as a function that edits it in place."""
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        new = ARITHMETIC[type(node.op)]
        yield f"{type(node.op).__name__} is {new.__name__}", lambda n: setattr(n, "op", new())
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARE:
        other = COMPARE[type(node.ops[0])]
        yield f"{type(node.ops[0]).__name__} is {other.__name__}", lambda n: n.ops.__setitem__(0, other())
    if isinstance(node, ast.BoolOp):
        yield "and/or", lambda n: setattr(n, "op", ast.Or() if isinstance(n.op, ast.And) else ast.And())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        yield (
            f"{type(node.op).__name__} dropped",
            lambda n: setattr(n, "op", ast.UAdd() if isinstance(n.op, ast.USub) else _Keep()),
        )
    if isinstance(node, ast.IfExp):
        yield "branches swapped", lambda n: n.__dict__.update(body=n.orelse, orelse=n.body)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield f"{node.value} is {not node.value}", lambda n: setattr(n, "value", not n.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        yield f"{node.value} + 1", lambda n: setattr(n, "value", n.value + 1)
    if isinstance(node, ast.Name) and node.id in NAMES:
        yield f"{node.id} is {NAMES[node.id]}", lambda n: setattr(n, "id", NAMES[n.id])
    if isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield f"{node.attr} is {NAMES[node.attr]}", lambda n: setattr(n, "attr", NAMES[n.attr])


class _Keep(ast.UAdd):
    """`not x` becomes `bool(x)`: written as a double negation, because unary plus of a bool is an int."""


class _Unparse(ast.NodeTransformer):
    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, _Keep):
            return ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), node.operand))
        return node


def source_variants(text: str) -> Iterator[tuple[str, str]]:
    """(description, mutated source) for every change; annotations and `strict=` are left alone."""
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    quiet = {
        id(n)
        for f in nodes
        for a in ("annotation", "returns")
        if isinstance(getattr(f, a, None), ast.AST)
        for n in ast.walk(getattr(f, a))
    }
    quiet |= {id(n.value) for n in nodes if isinstance(n, ast.keyword) and n.arg == "strict"}  # zip of equal lengths
    for at, node in enumerate(nodes):
        if id(node) in quiet:
            continue
        for index, (what, _) in enumerate(edits(node)):
            fresh = copy.deepcopy(tree)
            target = list(ast.walk(fresh))[at]
            list(edits(target))[index][1](target)
            mutated = ast.unparse(ast.fix_missing_locations(_Unparse().visit(fresh)))
            line = getattr(node, "lineno", 0)
            yield f"line {line}: {what}: {text.splitlines()[line - 1].strip()[:90]}", mutated
