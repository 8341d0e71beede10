r"""Feed-forward blocks: gated matrices, and routed experts as grouped matrix products.

    t token   m input width   f feed-forward width   a (token, routed expert) pair on the rank   x different expert
    visited

A gated block multiplies by two matrices, applies the activation to the first product and multiplies both, all in one
kernel (one exponential an element for SiLU or GELU).  Routed experts do the same for `routed_tokens` rows, and read the
weights of `distinct_experts` experts only, each once.

Assumed: the activation is fused; a token is read once for all its experts on the rank, and its weighted sum written
once.  Not counted: sorting of tokens by expert, padding of a group to a tile.
Source: arXiv:2002.05202 (gated units), arXiv:2101.03961 sec. 2 (routing); distinct experts: `roofline.kernels.rules`.

>>> MOE_GATED.flops
4*ffn*hidden*routed_tokens
>>> MOE_GATED.reads
hidden*(2*distinct_experts*ffn*w_weight + tokens*w_act)
"""

from __future__ import annotations

from roofline.kernel import Exp, Kernel, Mac, Read, Vector, Write
from roofline.symbols import sym

GATED_LINEAR = Kernel(
    "gated_linear",
    Mac("t m f", "gate"),
    Mac("t m f", "up"),
    Exp("t f", "activation"),
    Vector("t f", 2, "activation times up"),
    Read("m f", sym.w_weight, "gate weights"),
    Read("m f", sym.w_weight, "up weights"),
    Read("t m", sym.w_act, "input"),
    Write("t f", sym.w_act, "activated product"),
    title="gate and up projections with activation",
    assumes=("weights read once", "activation fused"),
    omits=("bias",),
    source="arXiv:2002.05202",
)

MOE_GATED = Kernel(
    "moe_gated",
    Mac("a m f", "gate"),
    Mac("a m f", "up"),
    Exp("a f", "activation"),
    Vector("a f", 2, "activation times up"),
    Read("x m f", sym.w_weight, "gate weights of visited experts"),
    Read("x m f", sym.w_weight, "up weights of visited experts"),
    Read("t m", sym.w_act, "tokens"),
    Write("a f", sym.w_act, "activated products"),
    title="routed experts: gate and up with activation",
    assumes=("weights of a visited expert read once", "activation fused", "a token read once for all its experts"),
    omits=("sorting of tokens by expert", "padding of groups to tiles"),
    source="arXiv:2101.03961 sec. 2; arXiv:2002.05202",
)

MOE_UP = Kernel(
    "moe_up",
    Mac("a m f", "up"),
    Vector("a f", 2, "activation"),
    Read("x m f", sym.w_weight, "up weights of visited experts"),
    Read("t m", sym.w_act, "tokens"),
    Write("a f", sym.w_act, "activated products"),
    title="routed experts without gate: up with activation",
    assumes=("weights of a visited expert read once", "activation fused (squared ReLU, no exponential)"),
    omits=("sorting of tokens by expert", "padding of groups to tiles"),
    source="arXiv:2101.03961 sec. 2",
)

MOE_DOWN = Kernel(
    "moe_down",
    Mac("a f m", "down"),
    Vector("a m", 1, "weighted sum over a token's experts"),
    Read("x f m", sym.w_weight, "down weights of visited experts"),
    Read("a f", sym.w_act, "activated products"),
    Write("t m", sym.w_act, "sum over a token's experts"),
    title="routed experts: down and weighted sum",
    assumes=("weights of a visited expert read once", "a token's sum written once"),
    omits=("padding of groups to tiles",),
    source="arXiv:2101.03961 sec. 2",
)

KERNELS = (GATED_LINEAR, MOE_GATED, MOE_UP, MOE_DOWN)
