r"""A linear layer: one weight matrix applied to a batch of tokens.

    t token   m input width   f output width

Assumed: weights are read once, activations once in and once out.
Source: definition; jax-ml/scaling-book, roofline.md, "Matrix multiplication".

>>> import sympy as sp
>>> sp.limit(LINEAR.intensity, sym.tokens, sp.oo)                  # never above this, for any batch
2*ffn*hidden/(ffn*w_act + hidden*w_act)
"""

from __future__ import annotations

from roofline.kernel import Kernel, Mac, Read, Write
from roofline.symbols import sym

LINEAR = Kernel(
    "linear",
    Mac("t m f", "matrix product"),
    Read("m f", sym.w_weight, "weights"),
    Read("t m", sym.w_act, "input"),
    Write("t f", sym.w_act, "output"),
    title="linear layer",
    assumes=("weights read once",),
    omits=("bias",),
    source="definition",
)

KERNELS = (LINEAR,)
