"""Counters that *run* what the kernels describe, on small shapes, and count while they run.

A `Chip` does the arithmetic one multiply-add at a time; a `Memory` holds an array of which every element that crosses
the interface is charged its own width; a `Cache` is a memory of rows that stay on chip (each fetched once), or that
every query fetches again.  No cost formula appears here: the counts are what the loops did, and the loops compute the
attention output, which the tests compare between the modes and with a plain softmax.

Widths are small integers that differ from one another, so that a width in the wrong place changes the count.
The factor 1/sqrt(width) of the scores is left to the queries, the division by the softmax sum is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from roofline import visibility as vis
from roofline.visibility import Visibility

Array = np.ndarray
Key = tuple[int, bool]  # row of the cache, and whether it counts (a masked or missing key is computed and does not)


class Chip:
    """The tally of one kernel."""

    def __init__(self) -> None:
        self.macs = self.exps = self.vector = self.bytes_read = self.bytes_written = self.pairs = self.rows = 0

    def dot(self, x: Iterable[float], y: Iterable[float]) -> float:
        """Sum of products, one multiply-add each."""
        total = 0.0
        for a, b in zip(x, y, strict=True):
            total += a * b
            self.macs += 1
        return total

    def add_scaled(self, into: Array, scale: float, x: Array) -> None:
        """into += scale * x, one multiply-add each."""
        for at in range(len(x)):
            into[at] += scale * x[at]
            self.macs += 1

    def product(self, rows: Array, matrix: Array) -> Array:
        """rows @ matrix, one multiply-add each."""
        return np.array([[self.dot(row, column) for column in matrix.T] for row in rows])

    def exp(self, x: float) -> float:
        """One exponential."""
        self.exps += 1
        return math.exp(x)

    def relu(self, x: float) -> float:
        """One vector operation."""
        self.vector += 1
        return max(x, 0.0)

    def weigh(self, total: float, weight: float, x: float) -> float:
        """total + weight * x on the vector unit: one (fused) operation."""
        self.vector += 1
        return total + weight * x

    def attend(self, query: Array, keys: list[Array], values: list[Array], counts: list[bool]) -> Array:
        """Softmax attention of one query and one head; a key that does not count is computed, then masked."""
        scores = [self.dot(query, key) for key in keys]
        scores = [score if ok else -math.inf for score, ok in zip(scores, counts, strict=True)]
        top = max(scores)
        weights = [self.exp(score - top) for score in scores]
        out = np.zeros(len(values[0]))
        for weight, value in zip(weights, values, strict=True):
            self.add_scaled(out, weight, value)
        return out / sum(weights)


class Memory:
    """An array in device memory.  `width` [B per element]: one number, or one for each element of a row."""

    def __init__(self, chip: Chip, values: Array, width: Any) -> None:
        self.chip, self.values = chip, values
        self.width = np.broadcast_to(np.asarray(width), values.shape)

    def load(self, *at: int) -> Array:
        """Read a part; what is read is charged."""
        self.chip.bytes_read += int(self.width[at].sum())
        return self.values[at]

    def store(self, value: Any, *at: int) -> None:
        """Write a part; what is written is charged."""
        self.chip.bytes_written += int(self.width[at].sum())
        self.values[at] = value


class Cache:
    """Rows of every sequence.  keep: a row stays on chip once fetched.  The first `prefix` rows are stored once."""

    def __init__(self, memory: Memory, keep: bool, prefix: int) -> None:
        self.memory, self.keep, self.prefix = memory, keep, prefix
        self.held: dict[tuple[int, int], Array] = {}

    def place(self, sequence: int, key: int) -> tuple[int, int]:
        """Where the row is stored: a shared row lies with the first sequence."""
        return (0 if key < self.prefix else sequence, key)

    def fetch(self, sequence: int, keys: list[Key]) -> list[Array]:
        """The rows of one query's keys."""
        rows = []
        for key, _ in keys:
            place = self.place(sequence, key)
            if not self.keep or place not in self.held:
                self.held[place] = self.memory.load(*place)
                self.memory.chip.rows += 1
            rows.append(self.held[place])
        return rows


class Sight(NamedTuple):
    """Who sees whom, as lists made by loops; `law` is the visibility that must count them."""

    law: Visibility
    keys: Callable[[int, int], list[Key]]  # (sequence, query) -> keys the kernel computes
    keep: bool = True
    prefix: int = 0


class Case(NamedTuple):
    """One random model and workload: sizes and widths by glossary name, and the arrays."""

    size: dict[str, int]
    latents: Array  # [b, T, d]      T = context + q_len
    ropes: Array  # [b, T, r]
    q_nope: Array  # [b, s, h, n]
    q_rope: Array  # [b, s, h, r]
    w_uk: Array  # [h, n, d]
    w_uv: Array  # [h, d, v]
    rng: np.random.Generator

    @property
    def keys(self) -> int:
        """Rows in the cache of one sequence, the new ones included."""
        return self.size["context"] + self.size["q_len"]

    def steps(self) -> Iterable[tuple[int, int]]:
        """(sequence, query) in order."""
        return ((b, i) for b in range(self.size["batch"]) for i in range(self.size["q_len"]))


WIDTHS = ("w_kv", "w_weight", "w_act", "w_expanded", "w_index", "w_logit")


def draw(seed: int, **fixed: int) -> Case:
    """A random case.  Sizes are small and mostly differ; kernel_heads is at least heads; kv_heads divides heads."""
    rng = np.random.default_rng(seed)
    high = {"batch": 4, "q_len": 6, "context": 8, "latent": 6, "rope": 5, "nope": 6, "value": 6, "head_dim": 5,
            "index_heads": 4,
                "index_head_dim": 5, "topk": 8, "window": 8, "hidden": 6, "ffn": 6, "tokens": 6}  # fmt: skip
    size = {name: int(rng.integers(0 if name in ("context", "rope") else 1, top)) for name, top in high.items()}
    size |= {
        "kv_heads": int(rng.integers(1, 3)),
        **dict(zip(WIDTHS, map(int, rng.permutation([1, 2, 3, 5, 7, 11])), strict=True)),
    }
    size["heads"] = size["kv_heads"] * int(rng.integers(1, 3))
    size["kernel_heads"] = size["heads"] + int(rng.integers(0, 3))
    size["prefix"] = int(rng.integers(0, size["context"] + 1))
    size |= fixed
    b, s, h, t = size["batch"], size["q_len"], size["heads"], size["context"] + size["q_len"]
    d, r, n, v = (size[k] for k in ("latent", "rope", "nope", "value"))
    latents, ropes = rng.normal(size=(b, t, d)), rng.normal(size=(b, t, r))
    for shared in (latents, ropes):
        shared[:, : size["prefix"]] = shared[0, : size["prefix"]]
    queries = rng.normal(size=(b, s, h, n)), rng.normal(size=(b, s, h, r))
    return Case(size, latents, ropes, *queries, rng.normal(size=(h, n, d)), rng.normal(size=(h, d, v)), rng)


def sights(case: Case) -> dict[str, Sight]:
    """Every visibility for one case."""
    c, k, w = case.size["context"], case.size["topk"], case.size["window"]

    def causal(b: int, i: int) -> list[Key]:
        return [(key, True) for key in range(case.keys) if key <= c + i]

    def everything(b: int, i: int) -> list[Key]:
        return [(key, True) for key in range(case.keys)]

    def windowed(b: int, i: int) -> list[Key]:
        return [(key, True) for key in range(case.keys) if c + i - w < key <= c + i]

    chosen = {(b, i): [int(key) for key in case.rng.permutation(c + i + 1)[:k]] for b, i in case.steps()}
    spread = {(b, i): keys for b in range(case.size["batch"]) for i, keys in enumerate(least_overlap(case))}

    def padded(keys: list[int]) -> list[Key]:
        return [(key, True) for key in keys] + [(0, False)] * (k - len(keys))

    found = {
        "dense": Sight(vis.dense(), causal),
        "full": Sight(vis.full(), everything),
        "window": Sight(vis.window(), windowed),
        "topk": Sight(vis.topk(), lambda b, i: [(key, True) for key in chosen[b, i]], keep=False),
        "topk, no skip": Sight(vis.topk(skip=False), lambda b, i: padded(chosen[b, i]), keep=False),
        "topk, perfect": Sight(vis.topk(gather="perfect"), lambda b, i: [(key, True) for key in spread[b, i]]),
        "topk, no skip, perfect": Sight(vis.topk(skip=False, gather="perfect"), lambda b, i: padded(spread[b, i])),
        "shared prefix": Sight(vis.shared_prefix(), causal, prefix=case.size["prefix"]),
    }
    if case.size["prefix"]:
        part = [(key, True) for key in range(case.size["prefix"])]
        found["prefix part"] = Sight(vis.prefix_part(), lambda b, i: part, prefix=case.size["prefix"])
    return found


def least_overlap(case: Case) -> list[list[int]]:
    """A selection of top-k keys per query that reuses a row only when no fresh one is left: the most rows needed."""
    used: set[int] = set()
    picks = []
    for i in range(case.size["q_len"]):
        visible = sorted(range(case.size["context"] + i + 1), key=lambda key: (key in used, key))
        picks.append(visible[: case.size["topk"]])
        used |= set(picks[-1])
    return picks


def chunk(case: Case, start: int, stop: int) -> Case:
    """The same prompt's new tokens start..stop as a step of its own: what came before them is its context."""
    total = case.size["context"] + stop
    size = case.size | {"context": case.size["context"] + start, "q_len": stop - start}
    return case._replace(
        size=size, latents=case.latents[:, :total], ropes=case.ropes[:, :total],
        q_nope=case.q_nope[:, start:stop], q_rope=case.q_rope[:, start:stop],
    )  # fmt: skip
