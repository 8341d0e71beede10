r"""Multi-head latent attention (MLA) in its two modes, and the projections of the latent that each mode needs.

    b sequence   s new token   p visible (query, key) pair   k cache row read
    h head   H head as the kernel runs it (padded)   d latent   r rotary part   n no-rope part   v value part

Per cached token the model keeps one latent vector and one rotary key, shared by all heads.
*MQA mode* (absorbed): the query is carried into the latent space, every head attends to the same row, and the output
is carried back.  *MHA mode* (expanded): the latent is expanded to keys and values of every head.  Same result.

Assumed: scores stay on chip; in MQA mode keys and values are the same row, read once for all heads.  In MHA mode the
expanded rotary key is stored once for all heads (bind expanded_row_bytes to count it per head).
Not counted: append of new rows, softmax rescaling, quantisation of the cache.
Source: DeepSeek-V2, arXiv:2405.04434 sec. 2.1 and appendix C; FlashMLA README (cache row of 656 bytes).

>>> import sympy as sp
>>> from roofline.visibility import dense
>>> from roofline.symbols import sym
>>> decode = MLA_MQA.bind(**dense().bindings(), q_len=1, batch=1, kernel_heads=sym.heads)
>>> sp.factor(sp.limit(decode.intensity, sym.context, sp.oo))              # long contexts: cache rows only
2*heads*(2*latent + rope)/(w_kv*(latent + rope))
>>> _.subs({sym.heads: 128, sym.latent: 512, sym.rope: 64, sym.w_kv: 2})
2176/9
"""

from __future__ import annotations

from roofline.kernel import Exp, Kernel, Mac, Read, Write
from roofline.symbols import sym

_SOURCE = "arXiv:2405.04434 sec. 2.1, app. C"
_LATENT_ROW = sym.w_kv * (sym.latent + sym.rope)
_EXPANDED_ROW = sym.w_expanded * (sym.heads * (sym.nope + sym.value) + sym.rope)
EXPANDED_ROW_PER_HEAD = sym.w_expanded * sym.heads * (sym.nope + sym.rope + sym.value)  # rotary key copied to each

MLA_MQA = Kernel(
    "mla_mqa",
    Mac("b p H d", "scores on the latent"),
    Mac("b p H r", "scores on the rotary key"),
    Exp("b p H"),
    Mac("b p H d", "weighted sum of latents"),
    Read("b k", sym.kv_row_bytes, "cache rows, shared by all heads"),
    Read("b s h d", sym.w_act, "absorbed queries"),
    Read("b s h r", sym.w_act, "rotary queries"),
    Write("b s h d", sym.w_act, "output in latent space"),
    title="MLA attention core, MQA mode (absorbed)",
    defaults={"kv_row_bytes": _LATENT_ROW},
    assumes=("scores stay on chip", "one cache row serves every head, as key and as value"),
    omits=("append of new cache rows", "softmax rescaling", "dequantisation of fp8 rows"),
    source=_SOURCE,
)

MLA_MHA = Kernel(
    "mla_mha",
    Mac("b p h n", "scores on the no-rope part"),
    Mac("b p h r", "scores on the rotary part"),
    Exp("b p h"),
    Mac("b p h v", "weighted sum of values"),
    Read("b k", sym.expanded_row_bytes, "expanded keys and values"),
    Read("b s h n", sym.w_act, "queries, no-rope part"),
    Read("b s h r", sym.w_act, "queries, rotary part"),
    Write("b s h v", sym.w_act, "output"),
    title="MLA attention core, MHA mode (expanded)",
    defaults={"expanded_row_bytes": _EXPANDED_ROW},
    assumes=("scores stay on chip", "expanded keys and values are reused over the query tile"),
    omits=("softmax rescaling",),
    source=_SOURCE,
)

MLA_UP_PROJECTION = Kernel(
    "mla_up_projection",
    Mac("b k d h n", "keys from latents (W_UK)"),
    Mac("b k d h v", "values from latents (W_UV)"),
    Read("b k", sym.kv_row_bytes, "cache rows"),
    Read("d h n", sym.w_weight, "W_UK"),
    Read("d h v", sym.w_weight, "W_UV"),
    Write("b k", sym.expanded_row_bytes, "expanded keys and values"),
    title="MHA mode: up-projection of the latents (kv_b)",
    defaults={"kv_row_bytes": _LATENT_ROW, "expanded_row_bytes": _EXPANDED_ROW},
    assumes=("every visible row is expanded in every step, cached context included",),
    source=_SOURCE,
)

MLA_ABSORPTION = Kernel(
    "mla_absorption",
    Mac("b s h n d", "queries into the latent space (W_UK)"),
    Read("b s h n", sym.w_act, "queries, no-rope part"),
    Read("h n d", sym.w_weight, "W_UK"),
    Write("b s h d", sym.w_act, "absorbed queries"),
    title="MQA mode: absorption of the queries",
    source=_SOURCE,
)

MLA_UNABSORPTION = Kernel(
    "mla_unabsorption",
    Mac("b s h d v", "outputs out of the latent space (W_UV)"),
    Read("b s h d", sym.w_act, "output in latent space"),
    Read("h d v", sym.w_weight, "W_UV"),
    Write("b s h v", sym.w_act, "output"),
    title="MQA mode: un-absorption of the output",
    source=_SOURCE,
)

KERNELS = (MLA_MHA, MLA_MQA, MLA_UP_PROJECTION, MLA_ABSORPTION, MLA_UNABSORPTION)
