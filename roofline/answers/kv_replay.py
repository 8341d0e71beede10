"""`roofline kv replay`: a trace of requests against pools of several sizes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from roofline.answer import Answer, Column, Section
from roofline.errors import BadValue
from roofline.memory.live import live
from roofline.memory.replay import replay
from roofline.memory.trace import Trace, read_trace
from roofline.units import number

SAMPLE = Path(__file__).parent.parent / "data" / "traces" / "sample.jsonl.gz"
_COLUMNS = (
    Column("blocks", "pool", "blocks", show=lambda v: f"{v:,}"),
    Column("hit_ratio", "hit ratio", "1", show=lambda v: f"{v:.4f}"),
    Column("hits", "hits", "blocks"),
    Column("lookups", "look-ups", "blocks"),
    Column("peak_blocks", "peak", "blocks"),
    Column("evicted", "evicted", "blocks"),
    Column("preemptions", "preemptions", "1"),
    Column("delayed", "delayed", "1"),
    Column("mean_wait_s", "mean wait", "s"),
    Column("most_running", "most running", "1"),
    Column("refused", "refused", "1"),
)
INSTANT = "Requests one after the other, each at once: the best case. --time-per-token lets them overlap."
OVERLAP = "Every request runs at the given pace whatever else runs: a model of load, not of speed."


def kv_replay(
    trace: str | os.PathLike[str],
    blocks: Iterable[int | None] = (None,),
    *,
    block_size: int = 512,
    skip_bad: bool = False,
    time_per_token: float | None = None,
    prefill_per_token: float = 0.0,
    progress: Callable[[float], None] | None = None,
) -> Answer:
    """Hit ratio of prefix caching with LRU eviction by pool size, occupancy over time and, with overlap, preemptions.

    Parameters: trace, a file (JSON lines or CSV, plain or gzipped) or "sample", the small generated one; blocks, pool
    sizes, None for unlimited; block_size, tokens per block (checked against each row); skip_bad, pass over bad lines
    and count them; time_per_token, prefill_per_token [s], let requests overlap; progress, called with the share read.

    >>> [round(row["hit_ratio"], 4) for row in kv_replay("sample", [100, None]).rows]
    [0.48, 0.6733]
    """
    path = SAMPLE if os.fspath(trace) == "sample" else trace
    pools = list(blocks)
    if isinstance(block_size, bool) or not isinstance(block_size, int) or not 1 <= block_size <= 10**6:
        raise BadValue("block_size", block_size, "a whole number of tokens from 1 to 10^6")
    if time_per_token is None and prefill_per_token:
        raise BadValue("prefill_per_token", prefill_per_token, "time_per_token with it, which lets requests overlap")
    if time_per_token is None:
        rows, opened = _instant(path, pools, block_size, skip_bad, progress)
    else:
        rows, opened = _overlapping(path, pools, block_size, skip_bad, progress, (time_per_token, prefill_per_token))
    data = {
        "trace": os.fspath(trace),
        "requests": rows[0]["requests"],
        "lookups": rows[0]["lookups"],
        "block_size": block_size,
        "skipped_lines": opened.skipped,
        "truncated": opened.truncated,
        "problems": opened.problems,
        "rows": rows,
        "time_per_token_s": time_per_token,
        "prefill_per_token_s": prefill_per_token,
    }
    columns = [c for c in _COLUMNS if any(row.get(c.key) is not None for row in rows) or c.key == "blocks"]
    counts = f"{number(rows[0]['requests'])} requests, {number(rows[0]['lookups'])} block look-ups"
    title = f"Replay of {os.path.basename(path)}: {counts}"
    return Answer(
        "kv-replay", data, columns, title=title, notes=_notes(opened, time_per_token, rows), sections=_sections()
    )


def _ticker(opened: Trace, progress: Callable[[float], None] | None) -> Callable[[], None] | None:
    return None if progress is None else lambda: progress(opened.fraction)


def _instant(
    path: Any, pools: list[int | None], block_size: int, skip_bad: bool, progress: Any
) -> tuple[list[dict[str, Any]], Trace]:
    """All pools in one pass over the file."""
    opened = read_trace(path, skip_bad=skip_bad, block_size=block_size)
    found = replay(opened, pools, block_size=block_size, tick=_ticker(opened, progress))
    return [
        {
            "blocks": r.blocks,
            "requests": r.requests,
            "hits": r.hits,
            "lookups": r.lookups,
            "hit_ratio": r.hit_ratio,
            "evicted": r.evicted,
            "peak_blocks": r.peak,
            "occupancy": [list(pair) for pair in r.occupancy],
        }
        for r in found
    ], opened


def _overlapping(
    path: Any, pools: list[int | None], block_size: int, skip_bad: bool, progress: Any, pace: tuple[float, float]
) -> Any:
    """One pass over the file for each pool."""
    rows = []
    opened = read_trace(path)
    for blocks in pools:
        if blocks is None:
            raise BadValue(
                "blocks", "unlimited", "a number of blocks: requests that overlap compete for a pool of a given size"
            )
        opened = read_trace(path, skip_bad=skip_bad, block_size=block_size)
        r = live(
            opened,
            blocks,
            time_per_token=pace[0],
            prefill_per_token=pace[1],
            page_size=block_size,
            tick=_ticker(opened, progress),
        )
        admitted = r.requests - r.refused
        rows.append(
            {
                "blocks": r.pages,
                "requests": r.requests,
                "hits": r.hits,
                "lookups": r.lookups,
                "hit_ratio": r.hit_ratio,
                "peak_blocks": r.peak,
                "preemptions": r.preemptions,
                "delayed": r.delayed,
                "mean_wait_s": r.waited / admitted if admitted else 0.0,
                "most_running": r.most_running,
                "refused": r.refused,
                "completed": r.completed,
                "occupancy": [[at * 1000.0, used] for at, used in r.occupancy],
            }
        )
    if not rows:
        raise BadValue("blocks", "nothing", "at least one capacity")
    return rows, opened


def _notes(opened: Trace, time_per_token: float | None, rows: list[dict[str, Any]]) -> tuple[str, ...]:
    notes = [
        "A block is a hit while all blocks before it in the request are; the least recently used goes first.",
        INSTANT if time_per_token is None else OVERLAP,
    ]
    if any(row["blocks"] is None for row in rows):
        notes.append("A dash is an unlimited pool.")
    if opened.skipped:
        notes.append(f"{opened.skipped} bad lines were skipped: " + "; ".join(opened.problems))
    if opened.truncated:
        notes.append("The file stops in the middle.")
    return tuple(notes)


def _sections() -> tuple[Section, ...]:
    rules = (
        "hits = leading run of a request's blocks that are in the pool; then all of them are the most recent",
        "the pool is trimmed to its size after each request",
    )
    return Section("Rule", rules), Section(
        "Format",
        (
            str(read_trace.__doc__).strip().splitlines()[0],
            "Mooncake, FAST'25: timestamp [ms], input_length, output_length, hash_ids",
        ),
    )
