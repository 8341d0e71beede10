"""Formulas as JavaScript, for charts that are redrawn in a browser while a slider is dragged.

Nothing is written by hand: the expressions are those that the library evaluates, printed in another language.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import sympy as sp

from roofline.crossovers import SUBJECTS, Case, equation
from roofline.derivations import decode_intensity_limit
from roofline.symbols import Expr, exact, sym

Script = dict[str, Any]  # names of the parameters, and an expression in them


@lru_cache(256)
def javascript(expr: Expr) -> tuple[tuple[str, ...], str]:
    """Parameters and source of an expression, as JavaScript that `new Function(...names, "return " + source)` takes.

    >>> javascript(decode_intensity_limit())
    (('heads', 'kv_row_bytes', 'latent', 'q_len', 'rope'), '2*heads*q_len*(2*latent + rope)/kv_row_bytes')
    """
    names = tuple(sorted(s.name for s in expr.free_symbols))
    return names, str(sp.jscode(expr)).replace("\n", " ")


def heads_live(inputs: dict[str, float], label: str) -> Script:
    """Intensity by head count, with the shape of an answer of `heads` put in."""
    names, source = javascript(decode_intensity_limit())
    return {"label": label, "names": names, "source": source, "values": {n: inputs[n] for n in names if n != "heads"}}


def crossover_live(case: Case, unknown: str) -> list[Script]:
    """Cost per query of both sides of a case, by its unknown and by the rate ratio."""
    free = replace(case, rate_ratio=sym.rate_ratio)
    batch = sym.batch if unknown == "batch" else exact(case.given.get("batch", 1))
    new = sym.seq_len if case.phase == "oneshot" else exact(case.given.get("q_len", 1))
    queries = batch * (sym.q_len if unknown == "q_len" else new)
    scripts = []
    for name, total in zip(SUBJECTS[case.subject], equation(free, unknown), strict=True):
        names, source = javascript(total / queries)
        scripts.append({"label": name, "names": names, "source": source, "values": {}})
    return scripts
