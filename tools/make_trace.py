"""Write the small trace that the package ships: roofline/data/traces/sample.jsonl.gz.

    python tools/make_trace.py [FILE]

Conversations arrive at random, come back with all they said before and a new question, and share one of a few system
prompts.  Blocks of 512 tokens; equal ids mean equal content and equal prefix.  Seeded, and gzip without a time, so the
file is the same on every run.
"""

from __future__ import annotations

import gzip
import heapq
import json
import random
import sys
from pathlib import Path

BLOCK = 512
SESSIONS = 120
PROMPTS = 4
TARGET = Path(__file__).resolve().parent.parent / "roofline" / "data" / "traces" / "sample.jsonl.gz"


class Conversation:
    """One session: its tokens so far and the ids of its full blocks."""

    def __init__(self, prompt: int) -> None:
        self.tokens = 2 * BLOCK
        self.ids = [2 * prompt, 2 * prompt + 1]


def rows(seed: int = 20260217) -> list[dict[str, object]]:
    """The requests in order of time."""
    draw = random.Random(seed)
    fresh = 2 * PROMPTS
    due = [(int(draw.uniform(0, 600_000)), n, Conversation(draw.randrange(PROMPTS))) for n in range(SESSIONS)]
    heapq.heapify(due)
    found: list[dict[str, object]] = []
    while due:
        at, n, talk = heapq.heappop(due)
        talk.tokens += int(draw.lognormvariate(6.3, 0.9)) + 1
        full, blocks = talk.tokens // BLOCK, -(-talk.tokens // BLOCK)
        while len(talk.ids) < full:
            talk.ids.append(fresh)
            fresh += 1
        ids = list(talk.ids)
        if blocks > full:  # the last block is not full: no later request has the same
            ids.append(fresh)
            fresh += 1
        answer = int(draw.lognormvariate(5.5, 0.6)) + 1
        found.append({"timestamp": at, "input_length": talk.tokens, "output_length": answer, "hash_ids": ids})
        talk.tokens += answer
        if draw.random() < 0.7:
            heapq.heappush(due, (at + int(draw.expovariate(1 / 45_000)) + 1000, n, talk))
    return found


def main() -> None:
    """Write the file."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    text = "".join(json.dumps(row) + "\n" for row in rows())
    target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{target}: {text.count(chr(10))} requests, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
