"""SGLang's token pool: what `mem_fraction_static` of the card leaves behind the weights, in tokens.

The pool has one slot per token: rest // bytes per token, rounded down to a page.  Models with windows have a second
pool with SWA_RATIO times as many slots for the windowed layers; recurrent models give STATE_RATIO / (1 + STATE_RATIO)
of the rest to states, of which a running request needs three while the radix cache keeps some.  The log prints K and V
sizes in "GB" that are GiB.

Source: python/sglang/srt/model_executor/model_runner_kv_cache_mixin.py of github.com/sgl-project/sglang, read at commit
001ccef0.
"""

from __future__ import annotations

from typing import Any

from roofline.errors import NoAnswer
from roofline.memory.layouts import Layout
from roofline.memory.pages import whole
from roofline.memory.plan import GIB, Plan

SWA_RATIO = 0.8  # --swa-full-tokens-ratio
STATE_RATIO = 0.9  # --mamba-full-memory-ratio
STATES_PER_REQUEST = 3


class SglangPlan(Plan):
    """The pools of one rank.  Made by `plan`."""

    engine = "sglang"

    def __init__(self, layout: Layout, page_size: int, taken: tuple[str, ...]) -> None:
        parts = layout.cache.parts
        self.layout, self.block_size, self.taken = layout, page_size, taken
        windowed = sum(p.layers * p.row_bytes for p in parts if p.span is not None)
        full = sum(p.layers * p.row_bytes for p in parts if p.span is None)
        self.cell = full + (windowed * SWA_RATIO if full else windowed)
        self.state = sum(p.layers * p.state_bytes for p in parts)
        if not self.cell:
            raise NoAnswer("the model caches no tokens, so there is no token pool")

    def blocks(self, available: float) -> int:
        """Pages of the token pool."""
        return self.tokens(available) // self.block_size

    def tokens(self, available: float) -> int:
        """max_total_num_tokens."""
        rest = available - self.slots(available) * self.state
        return int(rest // self.cell) // self.block_size * self.block_size

    def bytes_of(self, tokens: int) -> float:
        """Bytes behind a printed number of tokens, the pool of states included."""
        return self.cell * tokens * (1 + STATE_RATIO if self.state else 1)

    def slots(self, available: float) -> int:
        """Recurrent states that the pool of states holds."""
        return int(available * STATE_RATIO / (1 + STATE_RATIO) // self.state) if self.state else 0

    def needed(self, length: int, requests: int = 1) -> float:
        """Bytes of both pools for `requests` requests."""
        pages = -(-length // self.block_size) * self.block_size
        tokens = self.cell * pages * requests
        if not self.state:
            return tokens
        states = STATES_PER_REQUEST * requests * self.state
        return max(tokens * (1 + STATE_RATIO), states * (1 + STATE_RATIO) / STATE_RATIO)

    def concurrency(self, available: float, length: int) -> float:
        """Requests of `length` tokens."""
        found = self.tokens(available) / (-(-length // self.block_size) * self.block_size)
        return min(found, self.slots(available) / STATES_PER_REQUEST) if self.state else found

    def details(self, available: float, length: int) -> dict[str, Any]:
        """K and V sizes as the log prints them [GiB]."""
        slots = {"state_slots": self.slots(available)} if self.state else {}
        return sizes(self.layout, self.tokens(available)) | slots


def sizes(layout: Layout, tokens: int) -> dict[str, Any]:
    """The sizes that the log prints as "GB", which are GiB: K and V, or the one of latent rows and indexer keys.

    >>> from roofline.memory.layouts import of_shape
    >>> round(sizes(of_shape(94, 4, 128, tp=4), 367404)["k_gib"], 2)
    8.23
    """
    found = {"kv_gib": tokens * layout.all_rows / GIB}
    if layout.keys:
        found |= {"k_gib": tokens * layout.keys / GIB, "v_gib": tokens * layout.values / GIB}
    return found


def plan(layout: Layout, *, page_size: int | None = None) -> SglangPlan:
    """The token pool for a layout; page_size in tokens (default 1; 64 for sparse latent attention).

    >>> from roofline.models import load_model
    >>> from roofline.memory.layouts import of_model
    >>> p = plan(of_model(load_model("deepseek-v3.2"), "fp8_row"))
    >>> round(sizes(p.layout, 975424)["kv_gib"], 2)
    43.67
    """
    parts = layout.cache.parts
    usual = 64 if any(part.kind == "dsa" for part in parts) else 1
    taken = []
    if any(part.span is not None for part in parts):
        taken.append(f"swa_full_tokens_ratio {SWA_RATIO}, the engine's own default")
    if any(part.state_bytes for part in parts):
        taken.append(f"mamba_full_memory_ratio {STATE_RATIO}, {STATES_PER_REQUEST} states a request: its defaults")
    page = whole("block_size", page_size if page_size is not None else usual, 1, 10**7)
    return SglangPlan(layout, page, tuple(taken))
