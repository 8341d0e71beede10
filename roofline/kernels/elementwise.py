r"""What touches every token once between the matrices: norms, the embedding lookup, the append to the cache.

    b sequence   s new token   t token   m model width

Assumed: a norm reads a token and writes it once (the residual sum is fused into a neighbour); a lookup reads one row.
Vector operations of a norm: square and add, scale by the inverse root, multiply by the weight: 3 an element.
Not counted: the root and the division once a token, rotary embedding, residual traffic.
Source: arXiv:1910.07467 sec. 3 (RMS norm); definition.

>>> EMBEDDING.flops, EMBEDDING.reads
(0, hidden*tokens*w_weight)
"""

from __future__ import annotations

from roofline.kernel import Kernel, Read, Vector, Write
from roofline.symbols import sym

NORM = Kernel(
    "norm",
    Vector("t m", 3, "square and add, scale, weigh"),
    Read("t m", sym.w_act, "input"),
    Read("m", sym.w_weight, "weights"),
    Write("t m", sym.w_act, "output"),
    title="root-mean-square norm",
    assumes=("one pass over a token",),
    omits=("residual sum", "the root once a token"),
    source="arXiv:1910.07467 sec. 3",
)

EMBEDDING = Kernel(
    "embedding",
    Read("t m", sym.w_weight, "one row of the table a token"),
    Write("t m", sym.w_act, "output"),
    title="embedding lookup",
    assumes=("one row read per token, no FLOP",),
    source="definition",
)

CACHE_APPEND = Kernel(
    "cache_append",
    Write("b s", sym.kv_row_bytes, "new cache rows"),
    title="append of new cache rows",
    assumes=("written once, whatever the dtype conversion",),
    source="definition",
)

KERNELS = (NORM, EMBEDDING, CACHE_APPEND)
