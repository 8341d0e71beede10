r"""The two derivations the project is known for, as expressions that follow from the kernels and nothing else.

*Which head count sits on the ridge?*  MQA-mode decode over a long context, intensity set equal to the ridge:

>>> decode_intensity_limit()
2*heads*q_len*(2*latent + rope)/kv_row_bytes
>>> heads_at_ridge()
kv_row_bytes*peak/(2*bandwidth*q_len*(2*latent + rope))

*Where do the modes cross?*  See `roofline.crossovers`, which starts from the same kernels.
Source of the question: arXiv:2405.04434 sec. 2.1; FlashMLA docs/20250422-new-kernel-deep-dive.md.
"""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from roofline.kernel import Kernel
from roofline.kernels.mla import MLA_MQA
from roofline.law import ridge
from roofline.symbols import Expr, sym
from roofline.visibility import dense, oneshot, topk


def decode() -> Kernel:
    """MQA-mode attention core of one decode step, every key visible, heads not padded, row width kept as a symbol."""
    return MLA_MQA.bind(**dense().bindings(), kernel_heads=sym.heads, kv_row_bytes=sym.kv_row_bytes)


@lru_cache
def decode_intensity_limit() -> Expr:
    """Intensity of that kernel for a long context [FLOP/B]: only cache rows are left of the traffic."""
    return sp.factor(sp.limit(decode().intensity, sym.context, sp.oo))


@lru_cache
def heads_at_ridge() -> Expr:
    """Heads at which that intensity equals the ridge (exact, not rounded)."""
    (solution,) = sp.solve(decode_intensity_limit() - ridge(), sym.heads)
    return sp.factor(solution)


def beyond_topk() -> Expr:
    """Pairs of a one-shot sparse prefill longer than top-k, as a polynomial: missing keys of the first queries skipped.

    >>> beyond_topk()
    seq_len*topk - topk**2/2 + topk/2
    """
    past = sp.Dummy("past", positive=True)
    pairs = oneshot(topk()).pairs.subs(sym.seq_len, sym.topk + past).doit()
    return sp.expand(pairs.subs(past, sym.seq_len - sym.topk))


@lru_cache
def crossing_length(rho: Expr) -> Expr:
    """Length at which masked MHA over all causal pairs costs as much as sparse MQA, whose pairs cost `rho` times more.

    The larger of the two roots; it lies above top-k for rho > 1, the smaller one below.

    >>> crossing_length(sp.Rational(17, 5)).subs(sym.topk, 2048).evalf(7)
    12812.96
    """
    length = sp.Dummy("length", real=True)
    difference = (oneshot(dense()).pairs - rho * beyond_topk()).subs(sym.seq_len, length)
    found = sp.solve(difference, length)
    return max(found, key=lambda root: root.subs({rho: 3, sym.topk: 2048}))
