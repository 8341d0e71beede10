r"""Collectives: the bytes that one device sends in one direction, by the algorithm that sends least.

    t token   m model width   n devices that take part (`ranks`)

    all_reduce      2 (n - 1)/n of the message (reduce-scatter, then all-gather)
    all_gather      (n - 1)/n of the gathered message
    reduce_scatter  (n - 1)/n of the message before it
    moe_dispatch    a token once to each of its `destinations`, in `w_dispatch`
    moe_combine     the partial sum of each of them back, in `w_act`
    send            the message, once (pipeline stages; KV between prefill and decode)

Assumed: each device sends and receives at once; `link_bandwidth` is one direction of one device; no contention.
Not counted: latency of a hop, reads and writes of device memory by the collective, in-network reduction.
Source: Thakur, Rabenseifner and Gropp, Int. J. HPC Appl. 19(1), 2005, sec. 4; arXiv:2412.19437 sec. 3.2 (dispatch).

>>> ALL_REDUCE.total("link").subs({"x": 1})
2*hidden*tokens*w_act*(ranks - 1)/ranks
"""

from __future__ import annotations

from typing import Any

from roofline.kernel import Kernel, Term
from roofline.symbols import sym


def Link(axes: str, width: Any, label: str = "") -> Term:
    """`width` bytes sent by one device per element."""
    return Term("link", axes, width, label)


_RING = "Thakur et al. 2005, sec. 4"
_REST = (sym.ranks - 1) / sym.ranks
_SAID: dict[str, Any] = {
    "assumes": ("bytes one device sends, both directions busy at once",),
    "omits": ("latency of a hop",),
}

ALL_REDUCE = Kernel(
    "all_reduce",
    Link("t m", 2 * sym.w_act * _REST, "partial sums out, sums back"),
    title="all-reduce",
    source=_RING,
    **_SAID,
)
ALL_GATHER = Kernel(
    "all_gather", Link("t m", sym.w_act * _REST, "own part to all others"), title="all-gather", source=_RING, **_SAID
)
REDUCE_SCATTER = Kernel(
    "reduce_scatter",
    Link("t m", sym.w_act * _REST, "partial sums to their owners"),
    title="reduce-scatter",
    source=_RING,
    **_SAID,
)
MOE_DISPATCH = Kernel(
    "moe_dispatch",
    Link("t m", sym.w_dispatch * sym.destinations, "tokens to their experts"),
    title="expert dispatch (all-to-all)",
    source="arXiv:2412.19437 sec. 3.2",
    **_SAID,
)
MOE_COMBINE = Kernel(
    "moe_combine",
    Link("t m", sym.w_act * sym.destinations, "partial sums back"),
    title="expert combine (all-to-all)",
    source="arXiv:2412.19437 sec. 3.2",
    **_SAID,
)
SEND = Kernel(
    "send", Link("t m", sym.w_act, "activations"), title="send to the next stage", source="definition", **_SAID
)
KV_SEND = Kernel(
    "kv_send", Link("b k", sym.kv_row_bytes, "cache rows"), title="send of cache rows", source="definition", **_SAID
)

KERNELS = (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, MOE_DISPATCH, MOE_COMBINE, SEND, KV_SEND)
