"""vLLM's block pool: hybrid groups, windows, recurrent states, and the "maximum concurrency" line.

All layers take pages of one size from one pool.  Layers of equal kind and row form groups of the same number of layers
(that of the rarest kind, or of the most common one where it is less than half as common again); a block is one page in
each layer of a group.  A request of L tokens holds, per group: ceil(L / block) blocks of full attention;
ceil(min(W - 1 + batched tokens, L) / block) + 1 of a window W; one recurrent state, two with prefix caching, and one
more per draft token.  Where there are states, blocks grow until a page of full attention is as large as a state; where
rows differ, narrower rows get longer blocks.  Rank sizes differ, and the smallest decides.

Source: vllm/v1/core/kv_cache_utils.py, vllm/v1/kv_cache_interface.py and vllm/platforms/interface.py of
github.com/vllm-project/vllm, read at commit 001cabc1; checked against printed logs in tests/test_memory_engines.py.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from roofline.errors import BadValue, NoAnswer
from roofline.memory.layouts import Layout
from roofline.memory.pages import whole
from roofline.memory.plan import Plan
from roofline.models.kv import Part

UTILIZATION = 0.9  # gpu_memory_utilization where none is given (newer versions: 0.92)
BATCHED = 2048  # max_num_batched_tokens where none is given; servers raise it on large cards
KERNEL = {"mla": 64, "dsa": 64}  # least block of the kernels; 16 for all others


class Group(NamedTuple):
    """Layers that share a block table."""

    kind: str
    layers: int
    block_size: int
    span: int | None


class Options(NamedTuple):
    """What a request holds beside its tokens' blocks: see `plan`."""

    batched: int
    cp: int
    states: int
    taken: tuple[str, ...]


class VllmPlan(Plan):
    """The pool of one rank.  Made by `plan`."""

    engine = "vllm"

    def __init__(self, layout: Layout, groups: list[Group], page: float, size: int, options: Options) -> None:
        self.layout, self.groups = layout, groups
        self.group_size, self.page_bytes = size, page
        self.block_bytes = page * size
        self.block_size = min((g.block_size for g in groups), default=1)
        self.batched, self.cp, self.states, self.taken = options

    def blocks(self, available: float) -> int:
        """Blocks of the pool."""
        return int(available // self.page_bytes // self.group_size)

    def tokens(self, available: float) -> int:
        """The "GPU KV cache size" up to version 0.20: blocks // groups * block size, times context-parallel ranks."""
        return self.blocks(available) // len(self.groups) * self.block_size * self.cp

    def request_blocks(self, length: int) -> int:
        """Blocks of one request, all groups."""
        return sum(self._held(group, length) for group in self.groups)

    def _held(self, group: Group, length: int) -> int:
        if group.kind == "state":
            return self.states
        if group.span is None:
            return math.ceil(math.ceil(length / self.cp) / group.block_size)
        if group.kind == "chunked":
            return math.ceil(min(group.span + self.batched, length) / group.block_size)
        return math.ceil(min(group.span - 1 + self.batched, length) / group.block_size) + 1

    def needed(self, length: int, requests: int = 1) -> float:
        """Bytes of `requests` requests."""
        return self.block_bytes * self.request_blocks(length) * requests

    def concurrency(self, available: float, length: int) -> float:
        """The "Maximum concurrency" line."""
        return self.blocks(available) / self.request_blocks(length)

    def details(self, available: float, length: int) -> dict[str, Any]:
        """Groups, and the token count that newer versions print."""
        return {
            "groups": [g._asdict() | {"blocks_per_request": self._held(g, length)} for g in self.groups],
            "layers_per_group": self.group_size,
            "block_bytes": self.block_bytes,
            "blocks_per_request": self.request_blocks(length),
            "tokens_at_full_length": int(self.concurrency(available, length) * length),
        }


def plan(
    layout: Layout,
    *,
    block_size: int | None = None,
    batched: int | None = None,
    prefix_caching: bool = False,
    drafts: int = 0,
    cp: int = 1,
) -> VllmPlan:
    """The block pool for a layout.

    block_size: tokens (default 16, 64 for latent rows); batched: max_num_batched_tokens; prefix_caching: for recurrent
    states, whether two per request are held ("align" mode) or one; drafts: speculative tokens; cp: context-parallel
    ranks over which the tokens of a sequence are dealt out.  Raises NoAnswer where vLLM has no page size for the mix.

    >>> from roofline.memory.layouts import of_shape
    >>> p = plan(of_shape(32, 8, 128))
    >>> p.blocks(11.12 * 2**30), round(p.concurrency(11.12 * 2**30, 8192), 2)
    (5693, 11.12)
    """
    parts = [part for part in layout.cache.parts if part.row_bytes or part.state_bytes]
    if not parts:
        raise NoAnswer("the model keeps no cache, so there is nothing to page")
    kernel = max(KERNEL.get(part.kind, 16) for part in parts)
    block = whole("block_size", block_size if block_size is not None else kernel, 1, 10**7)
    taken = []
    if batched is None and any(part.span for part in parts):
        taken.append(f"max_num_batched_tokens {BATCHED}, the engine's own default: windowed layers hold as many more")
    options = Options(
        whole("max_num_batched_tokens", batched if batched is not None else BATCHED, 1, 10**9),
        whole("cp", cp, 1, 4096),
        (2 if prefix_caching else 1) + whole("speculative_tokens", drafts, 0, 1000),
        tuple(taken),
    )
    if cp > 1 and any(part.span for part in parts):
        raise BadValue("cp", cp, "1 for a model with windowed layers: vLLM deals out full attention alone")
    if _one_kind(parts):
        layers = sum(part.layers for part in parts)
        page = sum(part.layers * (block * part.row_bytes or part.state_bytes) for part in parts)
        return VllmPlan(layout, [Group(_kind(parts[0]), layers, block, parts[0].span)], page, 1, options)
    groups, page, size = _groups(parts, block, kernel)
    return VllmPlan(layout, groups, page, size, options)


def _kind(part: Part) -> str:
    if part.state_bytes:
        return "state"
    return part.kind if part.span is not None else "full"


def _one_kind(parts: list[Part]) -> bool:
    """Whether all layers need the same number of token slots: then they are one group, whatever their rows."""
    return len({(_kind(part), part.span) for part in parts}) == 1


def _groups(parts: list[Part], block: int, kernel: int) -> tuple[list[Group], float, int]:
    """Groups of a mix, the bytes of a page, and the layers of a group."""
    states = [part.state_bytes for part in parts if part.state_bytes]
    rows = [part for part in parts if part.row_bytes]
    if states:
        row = next((part.row_bytes for part in rows if part.span is None), rows[0].row_bytes)
        align = max(kernel, block)
        block = max(block, align * math.ceil(max(states) / (align * row)))
    page = max(block * part.row_bytes for part in rows)
    counts = _counted(parts)
    size = min(counts.values())
    if max(counts.values()) < 1.5 * size:
        size = max(counts.values())
    groups = []
    for (kind, span, row), layers in counts.items():
        tokens = block if kind == "state" else page / row
        if tokens != int(tokens) or int(tokens) % block:
            raise NoAnswer(f"vLLM has no common page: a row of {row:g} B and one of {page / block:g} B do not divide")
        number = math.ceil(layers / size)
        groups += [Group(kind, len(range(i, layers, number)), int(tokens), span) for i in range(number)]
    return groups, page, max(group.layers for group in groups)


def _counted(parts: list[Part]) -> dict[tuple[str, int | None, float], int]:
    """Layers of every kind, span and row."""
    counts: dict[tuple[str, int | None, float], int] = {}
    for part in parts:
        key = (_kind(part), part.span, part.row_bytes)
        counts[key] = counts.get(key, 0) + part.layers
    return counts
