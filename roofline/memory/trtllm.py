"""TensorRT-LLM: a fraction of the memory that is *free* once weights and activations are there, in blocks of tokens.

free_gpu_memory_fraction multiplies what is left, not the card, so capacity grows faster than the number of ranks: each
rank holds fewer weights.  Windowed layers keep at most their window, recurrent states come per request.

Source: docs "KV cache management" of github.com/NVIDIA/TensorRT-LLM; measured batches in
github.com/ai-dynamo/aiconfigurator, tests/integration/test_trtllm_kv_cache_capacity.py (checked in the tests).
"""

from __future__ import annotations

from roofline.memory.layouts import Layout
from roofline.memory.pages import whole
from roofline.memory.plan import Plan
from roofline.models.kv import Part

FRACTION = 0.9  # free_gpu_memory_fraction where none is given
TOKENS_PER_BLOCK = 32


class TrtllmPlan(Plan):
    """The blocks of one rank.  Made by `plan`."""

    engine = "trtllm"

    def __init__(self, layout: Layout, block_size: int) -> None:
        self.layout, self.block_size = layout, block_size

    def blocks(self, available: float) -> int:
        """Blocks that hold a stretch of tokens in every layer."""
        row = self.layout.all_rows * self.block_size
        return int(available // row) if row else 0

    def tokens(self, available: float) -> int:
        """Tokens in those blocks."""
        return self.blocks(available) * self.block_size

    def needed(self, length: int, requests: int = 1) -> float:
        """Bytes of `requests` requests, windows and states included."""
        return requests * sum(self._part(part, length) for part in self.layout.cache.parts)

    def _part(self, part: Part, length: int) -> float:
        held = length if part.span is None else min(length, part.span)
        return part.layers * (part.row_bytes * (-(-held // self.block_size) * self.block_size) + part.state_bytes)

    def concurrency(self, available: float, length: int) -> float:
        """Requests of `length` tokens."""
        return available / self.needed(length)


def plan(layout: Layout, *, block_size: int | None = None) -> TrtllmPlan:
    """The blocks for a layout; block_size in tokens (default 32).

    >>> from roofline.memory.layouts import of_shape
    >>> plan(of_shape(32, 32, 128, "fp16")).tokens(69524783104)
    132608
    """
    return TrtllmPlan(layout, whole("block_size", block_size if block_size is not None else TOKENS_PER_BLOCK, 1, 10**7))
