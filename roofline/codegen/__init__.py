"""One generator that turns sympy expressions into Python: scalar source, numpy source, and the nodes grids run on.

An expression is lowered to a graph in which equal parts are one node (`lowering`).  Two dialects print it:

    math    builtins and `math` only, for one point; Python ints stay exact
    numpy   float64 arrays of any broadcastable shapes

`ceiling(B/75)` is printed as ``-(-B // 75)``, which is exact at multiples.  The source does not depend on the hash
seed, and names reach it only as identifiers.

``python -m roofline._generated`` rewrites the modules there, which scalar answers import in place of sympy.

>>> from roofline.symbols import sym
>>> import sympy as sp
>>> print(source("tiles", sp.ceiling(sym.batch / 75)))
def tiles(*, batch):
    return -(-batch // 75)
<BLANKLINE>
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import sympy as sp

from roofline.codegen.lowering import ATOM, LEAVES, MATH, NUMPY, Dialect, Graph, printed
from roofline.errors import BadValue
from roofline.symbols import Expr


def source(name: str, expr: Expr, dialect: Dialect = MATH, doc: str = "") -> str:
    """Source of one function of keyword-only parameters named by the symbols; parts used twice become locals."""
    graph = Graph()
    root = graph.lower(sp.sympify(expr))
    names = graph.symbols([root])
    for bad in (n for n in names if not n.isidentifier() or keyword.iskeyword(n) or n in ("math", "np", "min", "max")):
        raise BadValue("symbol", bad, "a name that Python can use for a parameter")
    shared = _shared(graph, root, eager=dialect is NUMPY)
    lines: list[str] = []
    done: dict[int, tuple[str, int]] = {}

    def of(i: int) -> tuple[str, int]:
        if i not in done:
            text = printed(graph, i, of, dialect)
            if i in shared:
                lines.append(f"    t{len(lines)}_ = {text[0]}")
                text = (lines[-1].split()[0], ATOM)
            done[i] = text
        return done[i]

    result = of(root)[0]
    head = f"def {name}({'*, ' + ', '.join(names) if names else ''}):"
    return "\n".join([head, *([f'    """{doc}"""'] if doc else []), *lines, f"    return {result}", ""])


def _shared(graph: Graph, root: int, eager: bool) -> set[int]:
    """Nodes worth a local: used twice, and evaluated whatever a Piecewise decides (its branches may divide by zero)."""
    uses: dict[int, int] = {}
    always = {root}
    todo, walked = [(root, True)], set()
    while todo:
        i, sure = todo.pop()
        if (i, sure) in walked:
            continue
        walked.add((i, sure))
        for n, child in enumerate(graph.children(i)):
            certain = sure and (eager or graph.nodes[i][0] != "where" or n == 0)
            uses[child] = uses.get(child, 0) + 1
            always |= {child} if certain else set()
            todo.append((child, certain))
    return {i for i, n in uses.items() if n > 1 and i in always and graph.nodes[i][0] not in LEAVES}


@lru_cache(maxsize=512)
def compiled(expr: Expr, arrays: bool = False) -> Callable[..., Any]:
    """A function of keyword-only arguments: of floats, or of float64 arrays (`arrays`); compiled once per expression.

    No range is checked and nothing is cast; `roofline.evaluate.evaluate` does both.
    """
    if arrays:
        import numpy as module
    else:
        import math as module  # type: ignore[no-redef]
    scope: dict[str, Any] = {"np" if arrays else "math": module, "__name__": __name__}
    text = source("compiled", expr, NUMPY if arrays else MATH)  # printed from nodes, never a user's text
    exec(text, scope)
    function: Callable[..., Any] = scope["compiled"]
    return function


@contextmanager
def array_mode() -> Iterator[None]:
    """numpy settings for array source, in this thread: no warnings, and no buffering in broadcast operations.

    Branches that a Piecewise does not take may divide by zero.  Without casts numpy's iterator needs no buffer, yet
    with its default of 8192 elements it copies broadcast operands through one: 1.5 ns an element, not 0.35 (2.4).
    """
    import numpy as np

    with np.errstate(all="ignore"):
        before = np.setbufsize(16)
        try:
            yield
        finally:
            np.setbufsize(before)
