"""llama.cpp: one buffer of cells per layer, allocated whole at start-up; K and V types may differ.

Cells are n_ctx rounded up to 256, for all slots together.  Windowed layers have a buffer of their own, of
min(n_ctx, window * slots + micro-batch) cells rounded up to 256.  Recurrent layers keep one float32 state a slot.  A
q8_0 row takes 34 bytes per 32 values, q4_0 18.

Source: src/llama-kv-cache.cpp, llama-kv-cache-iswa.cpp and llama-memory-recurrent.cpp of github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

from typing import Any

from roofline.memory.layouts import Layout
from roofline.memory.pages import whole
from roofline.memory.plan import Plan

PAD = 256
UBATCH = 512
MIB = 2.0**20


class LlamacppPlan(Plan):
    """The buffers of one device, or of all where layers are split over several.  Made by `plan`."""

    engine = "llamacpp"

    def __init__(self, layout: Layout, slots: int, ubatch: int) -> None:
        self.layout, self.slots, self.ubatch, self.block_size = layout, slots, ubatch, PAD

    def cells(self, n_ctx: int, span: int | None = None, slots: int = 1) -> int:
        """Cells of a buffer."""
        wanted = n_ctx if span is None else min(n_ctx, span * slots + self.ubatch)
        return -(-wanted // PAD) * PAD

    def needed(self, length: int, requests: int = 1) -> float:
        """Bytes of the buffers when n_ctx is `length` for each of `requests` slots."""
        total, slots = 0.0, max(self.slots, requests)
        for part in self.layout.cache.parts:
            cells = self.cells(length * requests, part.span, slots) if part.row_bytes else 0
            total += part.layers * (part.row_bytes * cells + part.state_bytes * slots)
        return total

    def blocks(self, available: float) -> int:
        """Stretches of 256 cells."""
        return self.tokens(available) // PAD

    def tokens(self, available: float) -> int:
        """The largest n_ctx whose buffers fit."""
        from roofline.memory.plan import longest

        return longest(self, available) // PAD * PAD

    def concurrency(self, available: float, length: int) -> float:
        """Slots of `length` tokens each whose buffers fit, and the share of one more."""
        low, high = 0, 2**40
        while low < high:
            middle = (low + high + 1) // 2
            if self.needed(length, middle) <= available:
                low = middle
            else:
                high = middle - 1
        before = self.needed(length, low) if low else 0.0
        return low + min((available - before) / (self.needed(length, low + 1) - before), 1.0)

    def details(self, available: float, length: int) -> dict[str, Any]:
        """Buffer sizes for n_ctx = `length` as the log prints them [MiB]."""
        return sizes(self.layout, self.cells(length), self.slots)


def sizes(layout: Layout, cells: int, slots: int = 1) -> dict[str, Any]:
    """The buffers in MiB: K and V, or latent and rotary part, and recurrent states.

    >>> from roofline.memory.layouts import of_shape
    >>> sizes(of_shape(64, 8, 128, "q8_0"), 32768)["k_mib"]
    2176.0
    """
    parts = layout.cache.parts
    found: dict[str, Any] = {
        "k_mib": layout.keys * cells / MIB,
        "v_mib": layout.values * cells / MIB,
        "latent_mib": layout.latent * cells / MIB,
        "rope_mib": layout.rope * cells / MIB,
        "recurrent_mib": sum(p.layers * p.state_bytes for p in parts) * slots / MIB,
    }
    found = {name: value for name, value in found.items() if value}
    found["layer_mib"] = [(p.kind, p.layers, p.row_bytes * cells / MIB) for p in parts if p.row_bytes]
    return found


def plan(layout: Layout, *, slots: int = 1, ubatch: int | None = None) -> LlamacppPlan:
    """The buffers for a layout; slots: parallel sequences (-np), ubatch: micro-batch (-ub, default 512).

    >>> from roofline.models import load_model
    >>> from roofline.memory.layouts import of_model
    >>> plan(of_model(load_model("deepseek-r1"), "f16")).needed(32768) / 2**20
    2196.0
    """
    micro = whole("ubatch", ubatch if ubatch is not None else UBATCH, 1, 10**9)
    return LlamacppPlan(layout, whole("slots", slots, 1, 10**6), micro)
