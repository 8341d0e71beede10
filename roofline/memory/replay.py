"""A trace against a pool of blocks with prefix caching and LRU eviction, one request after the other.

A request looks up the blocks of its input in order; the leading run that is there is a hit, all later blocks are
computed, because a block is of use only behind its whole prefix.  Then all its blocks are the most recent ones, and the
pool is trimmed to its capacity.  This is the best case of an instant server: see `roofline.memory.live` for requests
that overlap in time.
Memory is that of the blocks held: nothing is kept of an evicted block.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from roofline.errors import BadValue
from roofline.memory.trace import Row

POINTS = 512  # most points of an occupancy curve


class Lru:
    """A pool of `capacity` blocks (None: unlimited) with the least recently used one evicted first.

    >>> pool = Lru(3)
    >>> pool.touch([1, 2, 3]), pool.touch([1, 4]), pool.touch([2, 3])
    (0, 1, 0)
    >>> len(pool), pool.evicted
    (3, 2)
    """

    __slots__ = ("_held", "capacity", "evicted", "peak")

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity, self.evicted, self.peak = capacity, 0, 0
        self._held: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def touch(self, ids: Sequence[int]) -> int:
        """Use these blocks in order; how many of them, from the first, were there."""
        held = self._held
        move, hits, before = held.move_to_end, 0, len(held)
        for block in ids:
            if block not in held:
                break
            move(block)
            hits += 1
        if hits == len(ids):
            return hits
        rest = ids[hits:]
        for block in rest:
            held[block] = None
        if len(held) < before + len(rest):  # some were there, behind a gap
            for block in rest:
                move(block)
        if self.capacity is not None and len(held) > self.capacity:
            self._trim(len(held) - self.capacity)
        self.peak = max(self.peak, len(held))
        return hits

    def _trim(self, over: int) -> None:
        self.evicted += over
        drop = self._held.popitem
        for _ in range(over):
            drop(last=False)


class Replayed(NamedTuple):
    """What a pool of `blocks` (None: unlimited) saw.

    lookups, hits in blocks; peak: most blocks held at once after a request; occupancy: (timestamp [ms], blocks held)
    along the trace, at most `POINTS` pairs, each the most of its stretch.
    """

    blocks: int | None
    requests: int
    lookups: int
    hits: int
    evicted: int
    peak: int
    occupancy: tuple[tuple[float, int], ...]

    @property
    def hit_ratio(self) -> float:
        """Hits over look-ups."""
        return self.hits / self.lookups if self.lookups else 0.0


class Curve:
    """A series of any length kept as at most `POINTS` stretches, each with its largest value.

    >>> curve = Curve(points=4)
    >>> for t in range(100): curve.add(t, t % 7)
    >>> curve.pairs()
    ((0, 6), (32, 6), (64, 6), (96, 6))
    """

    def __init__(self, points: int = POINTS) -> None:
        self._points, self._every, self._seen = points, 1, 0
        self._pairs: list[tuple[float, int]] = []

    def add(self, at: float, value: int) -> None:
        """The next value."""
        if self._seen % self._every == 0:
            if len(self._pairs) == self._points:
                odd = self._pairs[1::2]
                self._pairs = [(a, max(v, w)) for (a, v), (_, w) in zip(self._pairs[::2], odd, strict=True)]
                self._every *= 2
            self._pairs.append((at, value))
        elif value > self._pairs[-1][1]:
            self._pairs[-1] = (self._pairs[-1][0], value)
        self._seen += 1

    def pairs(self) -> tuple[tuple[float, int], ...]:
        """The series."""
        return tuple(self._pairs)


def capacities(values: Iterable[int | None]) -> list[int | None]:
    """Pool sizes in blocks, None for an unlimited one."""
    found = list(values)
    for value in found:
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**12):
            raise BadValue("blocks", value, "a whole number of blocks from 1 to 10^12, or unlimited")
    if not found:
        raise BadValue("blocks", "nothing", "at least one capacity")
    return list(dict.fromkeys(found))


def replay(
    rows: Iterable[Row],
    blocks: Iterable[int | None] = (None,),
    *,
    block_size: int = 512,
    tick: Callable[[], None] | None = None,
) -> list[Replayed]:
    """Replay a trace against pools of several capacities at once, in one pass.

    rows: as `roofline.memory.trace.read_trace` gives them; blocks: capacities, None is unlimited; block_size: tokens
    per block, used only for rows without `hash_ids`, whose blocks are all new; tick: called now and then, for a bar.

    >>> rows = [Row(0, 1024, 1, [0, 1]), Row(1, 1536, 1, [0, 1, 2]), Row(2, 512, 1, [0])]
    >>> [(r.blocks, r.hits, r.lookups) for r in replay(rows, [1, None])]
    [(1, 0, 6), (None, 3, 6)]
    """
    pools = [Lru(capacity) for capacity in capacities(blocks)]
    hits, curves = [0] * len(pools), [Curve() for _ in pools]
    requests = lookups = unknown = 0
    for requests, row in enumerate(rows, 1):
        ids = row.hash_ids
        if ids is None:
            ids = fresh_ids(row, block_size, unknown)
            unknown += len(ids)
        lookups += len(ids)
        for at, pool in enumerate(pools):
            hits[at] += pool.touch(ids)
            curves[at].add(row.timestamp, len(pool))
        if tick and requests % 256 == 0:
            tick()
    return [
        Replayed(pool.capacity, requests, lookups, found, pool.evicted, pool.peak, curve.pairs())
        for pool, found, curve in zip(pools, hits, curves, strict=True)
    ]


def fresh_ids(row: Row, block_size: int, start: int) -> list[int]:
    """Numbers for blocks that nothing is known about: negative, so that no given number meets them."""
    blocks = -(-row.input_length // block_size)
    if blocks > 10**7:
        most = f"at most {10**7 * block_size:,} tokens in a request without hash_ids"
        raise BadValue("input_length", row.input_length, most)
    return list(range(-start - 1, -start - 1 - blocks, -1))
