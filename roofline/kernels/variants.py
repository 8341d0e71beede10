r"""Relatives of MLA and GQA: grouped latent attention (GLA), grouped tied attention (GTA), both paths of GQLA, and
cross-attention.

    b sequence   s new token   p visible pair   k cache row read   h query head   g group (latent or key/value head)
    e head width   d latent width of one group   r rotary part   n no-rope part   v value part

GLA keeps `kv_heads` latents, each shared by heads/kv_heads query heads, so tensor parallelism divides them.
GTA ties the no-rope half of a key to the value: one state of `head_dim` serves as value and as half a key; the other,
rotary half (`rope`) is one head for all.
GQLA has the MQA path of MLA (`mla_mqa`) and, from the same weights, a GQA path with keys and values of `kv_heads`
groups.
Cross-attention sees all `image_tokens` of a fixed cache.

Assumed and left out as in `attention` and `mla_mqa`.
Source: arXiv:2505.21487 sec. 3 (GTA, GLA), arXiv:2605.15250 (GQLA), the model class mllama of huggingface/transformers.

>>> from roofline.symbols import sym
>>> two = GLA.bind(kv_heads=2, latent=256, rope=64, w_act=0, rows_read=1, pairs=1, w_kv=2, heads=128)
>>> round(float(two.intensity), 1)                     # half of MLA's 241.8, as the paper says
128.0
"""

from __future__ import annotations

from roofline.kernel import Exp, Kernel, Mac, Read, Write
from roofline.kernels.attention import ATTENTION
from roofline.symbols import sym

GLA = Kernel(
    "gla",
    Mac("b p h d", "scores on the group's latent"),
    Mac("b p h r", "scores on the rotary key"),
    Exp("b p h"),
    Mac("b p h d", "weighted sum of latents"),
    Read("b k", sym.kv_row_bytes, "cache rows"),
    Read("b s h d", sym.w_act, "absorbed queries"),
    Read("b s h r", sym.w_act, "rotary queries"),
    Write("b s h d", sym.w_act, "output in latent space"),
    title="grouped latent attention core, absorbed",
    defaults={"kv_row_bytes": sym.w_kv * (sym.kv_heads * sym.latent + sym.rope)},
    assumes=("scores stay on chip", "a latent serves the heads of its group, the rotary key all heads"),
    omits=("append of new cache rows", "softmax rescaling"),
    source="arXiv:2505.21487 sec. 3.3",
)

GTA = Kernel(
    "gta",
    Mac("b p h e", "scores: tied half and rotary half"),
    Exp("b p h"),
    Mac("b p h e", "weighted sum of tied states"),
    Read("b k", sym.kv_row_bytes, "tied states and rotary keys"),
    Read("b s h e", sym.w_act, "queries"),
    Write("b s h e", sym.w_act, "output"),
    title="grouped tied attention core",
    defaults={"kv_row_bytes": sym.w_kv * (sym.kv_heads * sym.head_dim + sym.rope)},
    assumes=("scores stay on chip", "the tied state is read once, as value and as half a key"),
    omits=("append of new cache rows", "softmax rescaling"),
    source="arXiv:2505.21487 sec. 3.2",
)

GQLA_GROUPED = Kernel(
    "gqla_grouped",
    Mac("b p h n", "scores on the no-rope part"),
    Mac("b p h r", "scores on the rotary part"),
    Exp("b p h"),
    Mac("b p h v", "weighted sum of values"),
    Read("b k", sym.kv_row_bytes, "keys and values of the groups, rotary key"),
    Read("b s h n", sym.w_act, "queries, no-rope part"),
    Read("b s h r", sym.w_act, "queries, rotary part"),
    Write("b s h v", sym.w_act, "output"),
    title="GQLA core, grouped path",
    defaults={"kv_row_bytes": sym.w_kv * (sym.kv_heads * (sym.nope + sym.value) + sym.rope)},
    assumes=("scores stay on chip", "the expanded cache of the groups is kept"),
    omits=("append of new cache rows", "softmax rescaling"),
    source="arXiv:2605.15250",
)

CROSS_ATTENTION = ATTENTION.bind(pairs=sym.q_len * sym.image_tokens, rows_read=sym.image_tokens).named(
    "cross_attention",
    "cross-attention core over image tokens",
    assumes=(*ATTENTION.assumes, "every query sees all"),
    source="model class mllama of huggingface/transformers",
)

KERNELS = (GLA, GTA, GQLA_GROUPED, CROSS_ATTENTION)
