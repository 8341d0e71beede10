r"""Attention core with keys and values per head: MHA (kv_heads = heads), GQA and MQA (kv_heads = 1).

    b sequence   s new token   p visible (query, key) pair   k cache row read
    h query head   g key/value head   e head width

Assumed: scores and probabilities stay on chip (FlashAttention), each cache row is read once per sequence.
Not counted: the append of new rows, masks, rescaling of the running softmax.
Source: arXiv:2205.14135 sec. 3 (fused attention), arXiv:2305.13245 sec. 2 (grouped queries).

>>> from roofline.visibility import dense
>>> ATTENTION.flops
4*batch*head_dim*heads*pairs
>>> ATTENTION.bind(**dense().bindings(), w_act=0, q_len=1).intensity       # decode: the group size, at two bytes
2*heads/(kv_heads*w_kv)
"""

from __future__ import annotations

from roofline.kernel import Exp, Kernel, Mac, Read, Write
from roofline.symbols import sym

ATTENTION = Kernel(
    "attention",
    Mac("b p h e", "scores"),
    Exp("b p h"),
    Mac("b p h e", "weighted sum of values"),
    Read("b k", sym.kv_row_bytes, "keys and values"),
    Read("b s h e", sym.w_act, "queries"),
    Write("b s h e", sym.w_act, "output"),
    title="attention core (MHA, GQA, MQA)",
    defaults={"kv_row_bytes": 2 * sym.w_kv * sym.kv_heads * sym.head_dim},
    assumes=("scores stay on chip",),
    omits=("append of new cache rows", "mask", "softmax rescaling"),
    source="arXiv:2205.14135 sec. 3; arXiv:2305.13245 sec. 2",
)

KERNELS = (ATTENTION,)
