r"""The roofline law: ridge, attainable performance, time bounds, verdict.

A kernel keeps several units busy at once.  Each is a *leg*: its work over its rate.

    tensor   flops / peak            vector   vector_flops / vector_peak
    exp      exps / exp_rate         memory   bytes / bandwidth
    link     link_bytes / link_bandwidth (collectives)

`time_lower` is the longest leg (everything else hidden behind it), `time_upper` the sum of the legs (nothing
overlapped).  Both are bounds from the roofs; launch gaps and achieved rates are not in them.  Kernels that run one
after the other add, fused ones take the maximum over their totals.
Source: Williams, Waterman and Patterson, CACM 52(4), 2009, sec. 3.

>>> ridge()
peak/bandwidth
>>> from roofline.kernels import KERNELS
>>> legs(KERNELS["mla_absorption"])["tensor"]
2*batch*heads*latent*nope*q_len/peak
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import NamedTuple

import sympy as sp

from roofline.errors import BadValue
from roofline.kernel import Cost, Kernel, per_byte
from roofline.symbols import Expr, maximum, minimum, sym

LEGS = {  # leg -> (total of the kernel, rate of the chip)
    "tensor": ("flops", "peak"),
    "vector": ("vector_flops", "vector_peak"),
    "exp": ("exps", "exp_rate"),
    "memory": ("bytes", "bandwidth"),
    "link": ("link_bytes", "link_bandwidth"),
}
BOUNDS = {
    "tensor": "compute",
    "vector": "vector unit",
    "exp": "special-function unit",
    "memory": "memory",
    "link": "link",
}


def ridge() -> Expr:
    """Ridge point peak / bandwidth [FLOP/B]: the intensity at which both roofs meet."""
    return sym.peak / sym.bandwidth


def intensity() -> Expr:
    """Arithmetic intensity flops / bytes [FLOP/B]: of a kernel, or of several together."""
    return per_byte(sym.flops, sym.bytes)


def attainable() -> Expr:
    """Attainable performance min(peak, bandwidth * intensity) [FLOP/s]."""
    return minimum(sym.peak, sym.bandwidth * sym.intensity)


def leg(name: str) -> Expr:
    """Time of a leg in letters: its total over its rate [s]."""
    total, rate = LEGS[name]
    return getattr(sym, total) / getattr(sym, rate)


def legs(kernel: Kernel, without: Collection[str] = ()) -> dict[str, Expr]:
    """Time of each leg that the kernel uses [s]; `without` names legs whose rate is not known."""
    return {leg: time for leg, time in _legs(kernel).items() if leg not in without}


@lru_cache(maxsize=256)
def _legs(kernel: Kernel) -> Mapping[str, Expr]:
    """The legs of one kernel, worked out once: neither a kernel nor the times change."""
    work = {name: (getattr(sym, total), _work(kernel, total)) for name, (total, _) in LEGS.items()}
    return {name: leg(name).xreplace({total: amount}) for name, (total, amount) in work.items() if amount != 0}


def _work(kernel: Kernel, total: str) -> Expr:
    """A total of the kernel; link bytes are no quantity of a kernel that computes, so they are asked for here only."""
    return kernel.total("link") if total == "link_bytes" else kernel.quantity(total)


def time_lower(cost: Cost, without: Collection[str] = ()) -> Expr:
    """Lower time bound [s]: the longest leg of each kernel, added over kernels that run one after the other."""
    timed = [(k, legs(k, without)) for k in cost.kernels]
    for k, found in timed:
        if not found and (own := legs(k)):
            raise BadValue("without", ", ".join(sorted(without)), f"at least one leg of {k.name} ({', '.join(own)})")
    return sp.Add(*(_times(cost, k) * maximum(*found.values()) for k, found in timed if found))


def time_upper(cost: Cost, without: Collection[str] = ()) -> Expr:
    """Upper time bound of the roofs [s]: the sum of all legs of all kernels."""
    return sp.Add(*(_times(cost, k) * sp.Add(*legs(k, without).values()) for k in cost.kernels))


def _times(cost: Cost, kernel: Kernel) -> Expr:
    """How often a kernel runs: as a sequence says, once where the kernel stands alone."""
    return sp.Integer(1) if cost is kernel else kernel.times


def legs_left_out(cost: Cost, known: Collection[str]) -> tuple[str, ...]:
    """The legs that a cost uses and for which no rate is among `known` (peak, bandwidth, exp_rate, ...).

    >>> from roofline.kernels import KERNELS
    >>> legs_left_out(KERNELS["mla_mqa"], ("peak", "bandwidth"))
    ('exp',)
    """
    used = {leg for kernel in cost.kernels for leg in legs(kernel)}
    return tuple(leg for leg, (_, rate) in LEGS.items() if leg in used and rate not in known)


class Verdict(NamedTuple):
    """What bounds a kernel on a chip, and how far it is from the ridge.

    bound: "memory", "compute", "vector unit" or "special-function unit".  `distance` = log2(intensity / ridge): below
    0 on the memory side, above on the compute side.  `flops_headroom`: how many times more FLOPs would fit before
    compute binds; `bytes_headroom`: how many times more bytes before memory binds (each at least 1 on its side).
    """

    bound: str
    distance: float
    flops_headroom: float
    bytes_headroom: float


def verdict(times: dict[str, float]) -> Verdict:
    """The verdict from the legs' times [s] of one kernel.

    >>> verdict({"tensor": 1.0, "memory": 2.0})
    Verdict(bound='memory', distance=-1.0, flops_headroom=2.0, bytes_headroom=0.5)
    """
    from math import inf, log2

    longest = max(times, key=lambda leg: times[leg])
    tensor, memory = times.get("tensor", 0.0), times.get("memory", 0.0)
    ratio = tensor / memory if memory else inf
    distance = log2(ratio) if 0 < ratio < inf else (inf if ratio else -inf)
    return Verdict(BOUNDS[longest], distance, 1 / ratio if ratio else inf, ratio)
