"""Phases of serving as bindings: which visibility a kernel runs under, and which quantities are fixed by the phase.

    decode         q_len new tokens (1, or 1 + drafts) after `context` cached ones
    chunked        the same with a long q_len: one chunk of a prefill
    oneshot        no cached context, q_len = seq_len
    shared-prefix  decode of a batch whose first `prefix` cached tokens are shared and read once

>>> from roofline.kernels import KERNELS
>>> on_phase(KERNELS["attention"], "oneshot").exps
batch*heads*seq_len*(seq_len + 1)/2
"""

from __future__ import annotations

from typing import Any

from roofline import visibility
from roofline.errors import UnknownName
from roofline.kernel import Cost
from roofline.symbols import sym

PHASES = ("oneshot", "chunked", "decode", "shared-prefix")


def check_phase(phase: str) -> str:
    """The phase as given, or an error that lists the choices."""
    if phase not in PHASES:
        raise UnknownName("phase", phase, PHASES)
    return phase


def bindings(phase: str) -> dict[str, Any]:
    """What `Kernel.bind` needs for dense attention in a phase."""
    check_phase(phase)
    if phase == "shared-prefix":
        return visibility.shared_prefix().bindings()
    dense = visibility.dense()
    return dense.bindings() | ({"context": 0, "q_len": sym.seq_len} if phase == "oneshot" else {})


def on_phase(cost: Cost, phase: str) -> Any:
    """A kernel in a phase.  A kernel that brings its own visibility (dsa_mqa, dsa_mha) keeps it."""
    bound = bindings(phase)
    if not {sym.pairs, sym.rows_read} & cost.free_symbols:
        bound = {k: v for k, v in bound.items() if k in ("context", "q_len")}
    return cost.bind(**bound)
