r"""Token mixers with a state: Kimi delta attention (KDA) and the gated delta net, Mamba-2; and their short convolution.

    b sequence   s new token   z state head   G group of heads   y state row (key)   u state column (value)
    l token of a block   o channel of the convolution   c its tap

*Step form* (decode): per token and head the state is decayed, read at the key, corrected by an outer product and read
at the query.  For the delta rule that is 7 operations a state element: one decay, three multiply-adds; for Mamba-2,
which does not read at the key, 5.  The state is read and written once per sequence and step.
*Block form* (prefill): blocks of `chunk` tokens in the WY form; a block of C tokens takes 12 C^3 + 8 C^2 D + 6 C D^2
FLOP a head where D = state_key = state_value.  A masked half is not skipped.  Mamba-2 (SSD): the products of B and C
once a group, those with the input once a head, and the state twice.

Assumed: everything between two states stays on chip.  Not counted: gates, decays' exponentials, norms of keys.
Source: arXiv:2510.26692 sec. 3 (KDA), arXiv:2412.06464 sec. 3 (gated delta), arXiv:2405.21060 sec. 6 (Mamba-2).

>>> DELTA_STEP.bind(batch=1, q_len=1, state_heads=1, state_key=128, state_value=128).flops / 128**2    # + 1 decay
6
>>> DELTA_BLOCK.bind(batch=1, q_len=64, chunk=64, state_heads=1, state_key=128, state_value=128).flops
13631488
>>> 12 * 64**3 + 8 * 64**2 * 128 + 6 * 64 * 128**2
13631488
"""

from __future__ import annotations

from roofline.kernel import Kernel, Mac, Read, Vector, Write
from roofline.symbols import sym

_STATE = (Read("b z y u", sym.w_state, "state"), Write("b z y u", sym.w_state, "state"))
_TOKENS = (
    Read("b s z y", sym.w_act, "queries"),
    Read("b s z y", sym.w_act, "keys"),
    Read("b s z u", sym.w_act, "values"),
    Write("b s z u", sym.w_act, "output"),
)
_LEFT_OUT = ("gates and their exponentials", "norms of keys and queries")

DELTA_STEP = Kernel(
    "delta_step",
    Vector("b s z y u", 1, "decay"),
    Mac("b s z y u", "state at the key"),
    Mac("b s z y u", "outer product of the correction"),
    Mac("b s z y u", "state at the query"),
    *_STATE,
    *_TOKENS,
    title="delta rule, step form (KDA, gated delta net)",
    assumes=("state read and written once per sequence and step",),
    omits=_LEFT_OUT,
    source="arXiv:2510.26692 sec. 3; arXiv:2412.06464 sec. 3",
)

DELTA_BLOCK = Kernel(
    "delta_block",
    *(Mac("b s z y u", label) for label in ("state at the keys", "state at the queries", "update of the state")),
    *(Mac("b s z l y", label) for label in ("keys with keys", "queries with keys")),
    *(Mac("b s z l u", label) for label in ("corrected values", "products with values")),
    *(Mac("b s z l l", "inverse of the block's triangle") for _ in range(6)),
    *_STATE,
    *_TOKENS,
    title="delta rule, block form (KDA, gated delta net)",
    assumes=("state read and written once per sequence and step", "masked half of a block computed"),
    omits=_LEFT_OUT,
    source="arXiv:2510.26692 sec. 3; arXiv:2412.06464 sec. 3",
)

SSM_STEP = Kernel(
    "ssm_step",
    Vector("b s z y u", 1, "decay"),
    Mac("b s z y u", "outer product of input and B"),
    Mac("b s z y u", "state at C"),
    *_STATE,
    Read("b s G y", sym.w_act, "B"),
    Read("b s G y", sym.w_act, "C"),
    Read("b s z u", sym.w_act, "input"),
    Write("b s z u", sym.w_act, "output"),
    title="Mamba-2 state, step form",
    assumes=("state read and written once per sequence and step",),
    omits=_LEFT_OUT,
    source="arXiv:2405.21060 sec. 3",
)

SSM_BLOCK = Kernel(
    "ssm_block",
    Mac("b s G l y", "C with B"),
    Mac("b s z l u", "products with the input"),
    Mac("b s z y u", "update of the state"),
    Mac("b s z y u", "state at C"),
    *_STATE,
    Read("b s G y", sym.w_act, "B"),
    Read("b s G y", sym.w_act, "C"),
    Read("b s z u", sym.w_act, "input"),
    Write("b s z u", sym.w_act, "output"),
    title="Mamba-2 state, block form",
    assumes=("state read and written once per sequence and step", "masked half of a block computed"),
    omits=_LEFT_OUT,
    source="arXiv:2405.21060 sec. 6",
)

SHORT_CONV = Kernel(
    "short_conv",
    Vector("b s o c", 1, "taps"),
    Read("b s o", sym.w_act, "input"),
    Read("o c", sym.w_weight, "weights"),
    Read("b o", (sym.conv - 1) * sym.w_act, "last inputs"),
    Write("b o", (sym.conv - 1) * sym.w_act, "last inputs"),
    Write("b s o", sym.w_act, "output"),
    title="short convolution",
    assumes=("one channel at a time, on the vector unit",),
    omits=("activation",),
    source="arXiv:2405.21060 sec. 7",
)

KERNELS = (DELTA_STEP, DELTA_BLOCK, SSM_STEP, SSM_BLOCK, SHORT_CONV)
