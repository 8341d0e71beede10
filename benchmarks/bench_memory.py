"""Times of the memory package: page accounting of a million requests, and look-ups of a replayed trace per second.

    python benchmarks/bench_memory.py [TRACE]

Without TRACE a random stream with prefix reuse is replayed.  Prints the best of three.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable

from roofline.memory.pages import Prefix, fit, reserved, share, split
from roofline.memory.replay import replay
from roofline.memory.trace import Row, read_trace


def best(run: Callable[[], object], times: int = 3) -> float:
    """Shortest of several runs, processor time [s]."""
    found = []
    for _ in range(times):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found)


def pages(count: int = 1_000_000) -> float:
    """Page accounting of `count` requests: pages, slack, waste, reservation, sharing, fit."""
    draw = random.Random(1)
    lengths = [draw.randint(1, 4000) for _ in range(count)]

    def run() -> None:
        cut = split(lengths, 16)
        naive = reserved(cut.lengths, 4096)
        shared = share(cut, Prefix(64, 3))
        assert (cut.slack, cut.waste, cut.slacks, naive.waste, shared.held, fit(cut, 10**11)) is not None

    return best(run)


def stream(requests: int = 20_000) -> list[Row]:
    """Sessions that come back with a longer prefix."""
    draw, sessions, fresh, rows = random.Random(2), [[0]], 1, []
    for _ in range(requests):
        ids = list(sessions[draw.randrange(len(sessions))]) if draw.random() < 0.5 else [0]
        new = draw.randint(1, 20)
        ids += range(fresh, fresh + new)
        fresh += new
        sessions = [*sessions[-500:], ids[:200]]
        rows.append(Row(0.0, 512 * len(ids), 1, ids))
    return rows


def main() -> None:
    """Print both."""
    print(f"page accounting of 1,000,000 requests: {pages():.3f} s")
    rows = list(read_trace(sys.argv[1])) if len(sys.argv) > 1 else stream()
    lookups = sum(len(row.hash_ids or ()) for row in rows)
    for capacity in (1000, 10_000, 100_000, None):
        seconds = best(lambda capacity=capacity: replay(rows, [capacity]))  # type: ignore[misc]
        print(f"replay, {capacity or 'unlimited'} blocks: {lookups / seconds / 1e6:.2f} million look-ups per second")
    if len(sys.argv) > 1:
        seconds = best(lambda: replay(read_trace(sys.argv[1]), [10_000]))
        print(f"replay with reading and checking the file: {lookups / seconds / 1e6:.2f} million look-ups per second")


if __name__ == "__main__":
    main()
