"""Which (query, key) pairs are computed and which cache rows are read: the only place that knows causality,
windows, top-k, gather reuse and shared prefixes.

Per sequence, `q_len` new tokens follow `context` cached ones; query i (1..q_len) sees context + i keys.

    pairs      N_p  how many (query, key) pairs the kernel computes
    rows_read  N_r  how many cache rows cross the memory interface

Decode, speculative decode, chunked and one-shot prefill are the same kernel under another visibility.

>>> dense().pairs
context*q_len + q_len*(q_len + 1)/2
>>> oneshot(dense()).pairs
seq_len*(seq_len + 1)/2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy as sp

from roofline.errors import UnknownName
from roofline.symbols import Expr, exact, maximum, minimum, sym, symbol

GATHERS = ("none", "perfect")


@dataclass(frozen=True)
class Visibility:
    """Pairs computed and rows read per sequence, as expressions, and what they assume."""

    name: str
    pairs: Expr
    rows_read: Expr
    assumes: tuple[str, ...] = ()

    def bindings(self) -> dict[str, Expr]:
        """Keywords for `Kernel.bind`."""
        return {"pairs": self.pairs, "rows_read": self.rows_read}

    def bind(self, **values: Any) -> Visibility:
        """The same visibility with quantities replaced."""
        new = {symbol(k): exact(v, k) for k, v in values.items()}
        return Visibility(self.name, self.pairs.xreplace(new), self.rows_read.xreplace(new), self.assumes)


def dense() -> Visibility:
    """Causal attention over everything cached; each row is read once.  Covers decode and every prefill."""
    s, c = sym.q_len, sym.context
    return Visibility("dense", s * c + s * (s + 1) / 2, c + s, ("causal pairs counted exactly", "each row read once"))


def full() -> Visibility:
    """Every query sees every key (a kernel that masks nothing away, or cross-attention)."""
    s, c = sym.q_len, sym.context
    return Visibility("full", s * (c + s), c + s, ("no pair skipped",))


def clipped_pairs(cap: Expr) -> Expr:
    """sum over i = 1..q_len of min(context + i, cap): the first `m` queries see fewer than `cap` keys."""
    s, c = sym.q_len, sym.context
    m = minimum(maximum(cap - c, sp.Integer(0)), s)
    return m * c + m * (m + 1) / 2 + (s - m) * cap


def window() -> Visibility:
    """Causal sliding window of `window` keys; the rows of all windows together are read once."""
    s, c, w = sym.q_len, sym.context, sym.window
    return Visibility(
        "window", clipped_pairs(w), minimum(c + s, w + s - 1), ("rows in the union of the windows read once",)
    )


def topk(*, skip: bool = True, gather: str = "none") -> Visibility:
    """Sparse attention over `topk` selected keys per query.

    skip: whether the kernel leaves out the keys that the first queries do not have (FlashMLA counts q_len * topk, so it
    does not).  gather: "none" = each query fetches its own rows (upper bound), "perfect" = each row is fetched once.
    """
    if gather not in GATHERS:
        raise UnknownName("gather reuse", gather, GATHERS)
    s, c, k = sym.q_len, sym.context, sym.topk
    pairs = clipped_pairs(k) if skip else s * k
    rows = pairs if gather == "none" else minimum(c + s, pairs)
    told = (
        "missing keys of the first queries skipped"
        if skip
        else "missing keys of the first queries computed all the same"
    )
    return Visibility("topk", pairs, rows, (told, f"gather reuse between queries: {gather}"))


def shared_prefix() -> Visibility:
    """Dense attention of a batch whose sequences share their first `prefix` cached rows, read once for the batch."""
    s, c, p, b = sym.q_len, sym.context, sym.prefix, sym.batch
    return Visibility(
        "shared-prefix", dense().pairs, p / b + c - p + s, ("the shared prefix is read once for the batch",)
    )


def prefix_part() -> Visibility:
    """Only the shared prefix of such a batch: all queries see all of it (TyphoonMLA, arXiv:2509.21081)."""
    s, p, b = sym.q_len, sym.prefix, sym.batch
    return Visibility("prefix-part", s * p, p / b, ("only the shared prefix", "read once for the batch"))


def oneshot(visibility: Visibility) -> Visibility:
    """The same visibility for a prefill without cached context: q_len = seq_len."""
    bound = visibility.bind(context=0, q_len=sym.seq_len)
    return Visibility(f"{visibility.name}, one-shot", bound.pairs, bound.rows_read, visibility.assumes)
