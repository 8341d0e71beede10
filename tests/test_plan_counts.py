"""Brute counts of the kernels that a step adds to attention: each is run on small arrays, one operation at a time.

The numbers compared are what the loops did; where two forms exist their results are compared too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from roofline.kernels import KERNELS

Array = np.ndarray
SEEDS = range(4)


class Tally:
    """Counts of one run: multiply-adds, vector operations, exponentials, bytes read, written and sent."""

    def __init__(self) -> None:
        self.macs = self.vector = self.exps = self.read = self.written = self.sent = 0

    def dot(self, x: Iterable[float], y: Iterable[float]) -> float:
        total = 0.0
        for a, b in zip(x, y, strict=True):
            total += a * b
            self.macs += 1
        return total

    def exp(self, x: float) -> float:
        self.exps += 1
        return math.exp(x)

    def load(self, values: Array, width: int) -> Array:
        self.read += values.size * width
        return values

    def store(self, values: Any, width: int) -> None:
        self.written += np.size(values) * width

    def vec(self, value: Any) -> Any:
        self.vector += 1
        return value


def same(kernel: str, tally: Tally, values: Mapping[str, Any]) -> None:
    """The kernel's totals at these sizes are the tally."""
    bound = KERNELS[kernel].bind(**values)
    totals = (bound.flops, bound.vector_flops, bound.exps, bound.reads, bound.bytes - bound.reads, bound.total("link"))
    assert totals == (2 * tally.macs, tally.vector, tally.exps, tally.read, tally.written, tally.sent), kernel


def sizes(seed: int, *names: str, high: int = 5) -> dict[str, int]:
    """Small sizes that differ, and widths that differ from them."""
    rng = np.random.default_rng(seed)
    found = {name: int(rng.integers(1, high)) for name in names}
    return found | dict(
        zip(("w_act", "w_weight", "w_kv", "w_state"), map(int, rng.permutation([2, 3, 5, 7])), strict=True)
    )


def silu_products(t: Tally, token: Array, gate: Array, up: Array) -> list[float]:
    """One token through the two matrices [f, m] with the activation: sigmoid (one exp), times gate, times up."""
    made = []
    for g, u in zip(gate, up, strict=True):
        a, b = t.dot(token, g), t.dot(token, u)
        made.append(t.vec(t.vec(a / (1 + t.exp(-a))) * b))
    return made


@pytest.mark.parametrize("seed", SEEDS)
def test_gated_linear(seed: int) -> None:
    s, t, rng = sizes(seed, "tokens", "hidden", "ffn"), Tally(), np.random.default_rng(seed)
    gate, up = (t.load(rng.normal(size=(s["ffn"], s["hidden"])), s["w_weight"]) for _ in range(2))
    for token in rng.normal(size=(s["tokens"], s["hidden"])):
        t.store(silu_products(t, t.load(token, s["w_act"]), gate, up), s["w_act"])
    same("gated_linear", t, s)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("gated", [True, False])
def test_routed_experts(seed: int, gated: bool) -> None:
    """Tokens routed at random; an expert's weights are loaded when its first token comes, a token once for all
    experts."""
    s, rng, n, k = sizes(seed, "hidden", "ffn"), np.random.default_rng(seed), 6, 2
    tokens, ups, downs = 5, rng.normal(size=(n, 2, s["ffn"], s["hidden"])), rng.normal(size=(n, s["hidden"], s["ffn"]))
    x = rng.normal(size=(tokens, s["hidden"]))
    picks = [sorted(map(int, rng.permutation(n)[:k])) for _ in range(tokens)]
    held = {0, 1, 2, 3}  # the rank's experts: some picks lie elsewhere
    up, down = Tally(), Tally()
    seen, pairs = set[int](), 0
    middle: dict[tuple[int, int], list[float]] = {}
    for expert in sorted({e for pick in picks for e in pick} & held):
        weights = up.load(ups[expert] if gated else ups[expert][:1], s["w_weight"])
        for i in (i for i in range(tokens) if expert in picks[i]):
            token = x[i] if i in seen else up.load(x[i], s["w_act"])
            seen.add(i)
            pairs += 1
            if gated:
                middle[i, expert] = silu_products(up, token, *weights)
            else:  # squared ReLU: two vector operations
                middle[i, expert] = [
                    up.vec(up.vec(max(a, 0.0)) ** 2) for a in (up.dot(token, row) for row in weights[0])
                ]
            up.store(middle[i, expert], s["w_act"])
    sums = {i: np.zeros(s["hidden"]) for i in seen}
    for expert in sorted({e for _, e in middle}):
        matrix = down.load(downs[expert], s["w_weight"])
        for i in (i for i, e in middle if e == expert):
            row = down.load(np.array(middle[i, expert]), s["w_act"])
            for at, line in enumerate(matrix):
                sums[i][at] = down.vec(sums[i][at] + 0.5 * down.dot(row, line))
    for total in sums.values():
        down.store(total, s["w_act"])
    values = {**s, "routed_tokens": pairs, "distinct_experts": len({e for _, e in middle}), "tokens": len(seen)}
    same("moe_gated" if gated else "moe_up", up, values)
    same("moe_down", down, values)


def recurrence(seed: int) -> tuple[dict[str, int], dict[str, Array]]:
    s = sizes(seed, "batch", "q_len", "state_heads", "state_key", "state_value")
    rng, (b, n, z, y, u) = (
        np.random.default_rng(seed),
        (s[k] for k in ("batch", "q_len", "state_heads", "state_key", "state_value")),
    )
    made = {"state": (b, z, y, u), "q": (b, n, z, y), "k": (b, n, z, y), "v": (b, n, z, u)}
    return s, {name: rng.normal(size=shape) for name, shape in made.items()} | {
        "decay": rng.uniform(0.5, 1, size=(b, n, z, y))
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_delta_step(seed: int) -> None:
    """S = decay S; S += k (v - k S); o = q S: one decay and three multiply-adds a state element."""
    s, a = recurrence(seed)
    t = Tally()
    for b, z in itertools.product(range(s["batch"]), range(s["state_heads"])):
        state = t.load(a["state"][b, z], s["w_state"]).copy()
        for i in range(s["q_len"]):
            q, k, v = (t.load(a[name][b, i, z], s["w_act"]) for name in "qkv")
            for y, u in np.ndindex(state.shape):
                state[y, u] = t.vec(state[y, u] * a["decay"][b, i, z, y])
            wrong = [v[u] - t.dot(k, state[:, u]) for u in range(len(v))]
            for y, u in np.ndindex(state.shape):
                state[y, u] += k[y] * wrong[u]
                t.macs += 1
            t.store([t.dot(q, state[:, u]) for u in range(len(v))], s["w_act"])
        t.store(state, s["w_state"])
    same("delta_step", t, s)


def test_delta_block_is_the_published_count() -> None:
    """FlashKDA: 12 C^3 + 8 C^2 D + 6 C D^2 FLOP a block and head (SemiAnalysis on Kimi K3, KDA prefill, 3 Aug 2026);
    its step form 7 D^2 FLOP and 8 D^2 bytes of an fp32 state, decay included."""
    for c, d in ((16, 128), (64, 128), (64, 64)):
        block = KERNELS["delta_block"].bind(
            batch=1, q_len=5 * c, chunk=c, state_heads=1, state_key=d, state_value=d, w_act=0, w_state=4
        )
        assert block.flops == 5 * (12 * c**3 + 8 * c**2 * d + 6 * c * d**2)
        step = KERNELS["delta_step"].bind(
            batch=1, q_len=1, state_heads=1, state_key=d, state_value=d, w_act=0, w_state=4
        )
        assert step.flops + step.vector_flops == 7 * d**2
        assert step.bytes == block.bytes == 8 * d**2


@pytest.mark.parametrize("seed", SEEDS)
def test_ssm_step_and_block_agree(seed: int) -> None:
    """Mamba-2 with one decay a head: the step form and the block form give one output, each with its own count."""
    rng = np.random.default_rng(seed)
    s = sizes(seed, "batch", "state_groups", "state_key", "state_value") | {"chunk": 3, "q_len": 6}
    s["state_heads"] = 2 * s["state_groups"]
    b, n, z, y, u, g = (s[k] for k in ("batch", "q_len", "state_heads", "state_key", "state_value", "state_groups"))
    keys, queries, x = rng.normal(size=(b, n, g, y)), rng.normal(size=(b, n, g, y)), rng.normal(size=(b, n, z, u))
    decay, start = rng.uniform(0.5, 1, size=(b, n, z)), rng.normal(size=(b, z, y, u))
    step, by_step = _ssm_step(s, keys, queries, x, decay, start)
    block, by_block = _ssm_block(s, keys, queries, x, decay, start)
    np.testing.assert_allclose(by_step, by_block, rtol=1e-9, atol=1e-9)
    same("ssm_step", step, s)
    same("ssm_block", block, s)


def _ssm_step(
    s: Mapping[str, int], keys: Array, queries: Array, x: Array, decay: Array, start: Array
) -> tuple[Tally, Array]:
    t, out = Tally(), np.zeros_like(x)
    for b in range(s["batch"]):
        states = [t.load(start[b, z], s["w_state"]).copy() for z in range(s["state_heads"])]
        for i in range(s["q_len"]):
            k, q = t.load(keys[b, i], s["w_act"]), t.load(queries[b, i], s["w_act"])
            for z, state in enumerate(states):
                value, g = t.load(x[b, i, z], s["w_act"]), z // 2
                for y, u in np.ndindex(state.shape):
                    state[y, u] = t.vec(state[y, u] * decay[b, i, z])
                    state[y, u] += k[g, y] * value[u]
                    t.macs += 1
                out[b, i, z] = [t.dot(q[g], state[:, u]) for u in range(len(value))]
                t.store(out[b, i, z], s["w_act"])
        for state in states:
            t.store(state, s["w_state"])
    return t, out


def _ssm_block(
    s: Mapping[str, int], keys: Array, queries: Array, x: Array, decay: Array, start: Array
) -> tuple[Tally, Array]:
    t, out, c = Tally(), np.zeros_like(x), s["chunk"]
    for b in range(s["batch"]):
        states = [t.load(start[b, z], s["w_state"]).copy() for z in range(s["state_heads"])]
        for first in range(0, s["q_len"], c):
            at = range(first, first + c)
            k, q = t.load(keys[b, list(at)], s["w_act"]), t.load(queries[b, list(at)], s["w_act"])
            scores = {
                (g, i, j): t.dot(q[i, g], k[j, g]) for g in range(s["state_groups"]) for i in range(c) for j in range(c)
            }
            for z, state in enumerate(states):
                g, value = z // 2, t.load(x[b, list(at), z], s["w_act"])
                total = np.cumprod(decay[b, list(at), z])
                for i in range(c):
                    weights = [scores[g, i, j] * total[i] / total[j] if j <= i else 0.0 for j in range(c)]
                    inside = [t.dot(weights, value[:, u]) for u in range(value.shape[1])]
                    before = [t.dot(q[i, g], state[:, u]) * total[i] for u in range(value.shape[1])]
                    out[b, first + i, z] = np.add(inside, before)
                    t.store(out[b, first + i, z], s["w_act"])
                scaled = [k[j, g] * total[-1] / total[j] for j in range(c)]
                for y, u in np.ndindex(state.shape):
                    state[y, u] = state[y, u] * total[-1] + t.dot([row[y] for row in scaled], value[:, u])
        for state in states:
            t.store(state, s["w_state"])
    return t, out


@pytest.mark.parametrize("seed", SEEDS)
def test_short_convolution(seed: int) -> None:
    s, rng = sizes(seed, "batch", "q_len", "conv", "conv_channels"), np.random.default_rng(seed)
    t, c = Tally(), s["conv"]
    taps = t.load(rng.normal(size=(s["conv_channels"], c)), s["w_weight"])
    for _ in range(s["batch"]):
        for o in range(s["conv_channels"]):
            line = [*t.load(rng.normal(size=c - 1), s["w_act"]), *t.load(rng.normal(size=s["q_len"]), s["w_act"])]
            for i in range(s["q_len"]):
                total = 0.0
                for j in range(c):
                    total = t.vec(total + taps[o, j] * line[i + j])
                t.store(total, s["w_act"])
            t.store(line[len(line) - (c - 1) :], s["w_act"])
    same("short_conv", t, s)


Keys = Callable[[Array, int], tuple[Array, Array]]


def attention(t: Tally, s: Mapping[str, int], rows: Array, width: int, queries: Array, parts: Keys) -> Array:
    """Causal attention over rows [b, T, ...]; `parts` gives keys [T, e] and values [T, v] of a head."""
    b, n, h = queries.shape[:3]
    out = []
    for sequence in range(b):
        held = t.load(rows[sequence], s["w_kv"])
        for i, head in itertools.product(range(n), range(h)):
            keys, values = parts(held, head)
            query, limit = t.load(queries[sequence, i, head], s["w_act"]), s["context"] + i + 1
            scores = [t.dot(query, key) for key in keys[:limit]]
            weights = [t.exp(x - max(scores)) for x in scores]
            result = [t.dot(weights, values[:limit, v]) for v in range(width)]
            t.store(result, s["w_act"])
            out.append(np.array(result) / sum(weights))
    return np.array(out)


def dense_values(s: Mapping[str, int]) -> dict[str, int]:
    """Pairs and rows by counting."""
    pairs = sum(s["context"] + i + 1 for i in range(s["q_len"]))
    return {**s, "pairs": pairs, "rows_read": s["context"] + s["q_len"]}


@pytest.mark.parametrize("seed", SEEDS)
def test_grouped_latent_tied_and_gqla_cores(seed: int) -> None:
    s, rng = sizes(seed, "batch", "q_len", "latent", "rope", "nope", "value", "kv_heads"), np.random.default_rng(seed)
    s |= {"context": seed, "heads": 2 * s["kv_heads"], "head_dim": 2 * s["rope"]}
    b, n, h, g, d, r, e = (s[k] for k in ("batch", "q_len", "heads", "kv_heads", "latent", "rope", "head_dim"))
    total = s["context"] + n

    def latent(held: Array, head: int) -> tuple[Array, Array]:
        own = held[:, head // 2 * d : (head // 2 + 1) * d]
        return np.concatenate([own, held[:, g * d :]], axis=1), own

    t = Tally()
    attention(t, s, rng.normal(size=(b, total, g * d + r)), d, rng.normal(size=(b, n, h, d + r)), latent)
    same("gla", t, dense_values(s))

    def tied(held: Array, head: int) -> tuple[Array, Array]:
        own = held[:, head // 2 * e : (head // 2 + 1) * e]
        return np.concatenate([own[:, : e - r], held[:, g * e :]], axis=1), own

    t = Tally()
    attention(t, s, rng.normal(size=(b, total, g * e + r)), e, rng.normal(size=(b, n, h, e)), tied)
    same("gta", t, dense_values(s))
    nope, v = s["nope"], s["value"]

    def grouped(held: Array, head: int) -> tuple[Array, Array]:
        at = head // 2 * (nope + v)
        return np.concatenate([held[:, at : at + nope], held[:, g * (nope + v) :]], axis=1), held[
            :, at + nope : at + nope + v
        ]

    t = Tally()
    attention(t, s, rng.normal(size=(b, total, g * (nope + v) + r)), v, rng.normal(size=(b, n, h, nope + r)), grouped)
    same("gqla_grouped", t, dense_values(s))


@pytest.mark.parametrize("seed", SEEDS)
def test_cross_attention(seed: int) -> None:
    """Every query sees all image tokens, whatever the context."""
    s, rng, t = (
        sizes(seed, "batch", "q_len", "kv_heads", "head_dim", "image_tokens"),
        np.random.default_rng(seed),
        Tally(),
    )
    h, g, e, n = 2 * s["kv_heads"], s["kv_heads"], s["head_dim"], s["image_tokens"]
    everything = {**s, "context": n}  # the causal limit lies beyond every row

    def parts(held: Array, head: int) -> tuple[Array, Array]:
        return held[:, 0, head // 2], held[:, 1, head // 2]

    attention(
        t,
        everything,
        rng.normal(size=(s["batch"], n, 2, g, e)),
        e,
        rng.normal(size=(s["batch"], s["q_len"], h, e)),
        parts,
    )
    same("cross_attention", t, {**s, "heads": h})


@pytest.mark.parametrize("seed", SEEDS)
def test_norm_embedding_and_append(seed: int) -> None:
    s, rng, t = sizes(seed, "batch", "q_len", "tokens", "hidden"), np.random.default_rng(seed), Tally()
    weights = t.load(rng.normal(size=s["hidden"]), s["w_weight"])
    for token in rng.normal(size=(s["tokens"], s["hidden"])):
        total = 0.0
        for x in t.load(token, s["w_act"]):
            total = t.vec(total + x * x)
        scale = (total / s["hidden"]) ** -0.5
        t.store([t.vec(t.vec(x * scale) * w) for x, w in zip(token, weights, strict=True)], s["w_act"])
    same("norm", t, s)
    t, table = Tally(), rng.normal(size=(9, s["hidden"]))
    for row in rng.integers(0, 9, size=s["tokens"]):
        t.store(t.load(table[row], s["w_weight"]), s["w_act"])
    same("embedding", t, s)
    t = Tally()
    for _ in range(s["batch"] * s["q_len"]):
        t.store(np.zeros(7), 1)
    same("cache_append", t, {**s, "kv_row_bytes": 7})


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_ring_collectives(ranks: int) -> None:
    """A ring of ranks that really pass parts around: the sums come out, and rank 0 counts what it sends."""
    s = {"tokens": 6, "hidden": 2 * ranks, "w_act": 2, "ranks": ranks}
    rng, t = np.random.default_rng(ranks), Tally()
    own = rng.normal(size=(ranks, ranks, s["tokens"] * 2))  # rank, part
    wanted, parts = own.sum(axis=0), own.copy()
    for step in range(ranks - 1):  # reduce-scatter
        moved = [(rank, (rank - step) % ranks, parts[rank, (rank - step) % ranks].copy()) for rank in range(ranks)]
        for rank, part, data in moved:
            parts[(rank + 1) % ranks, part] += data
            t.sent += data.size * s["w_act"] if rank == 0 else 0
    same("reduce_scatter", t, s)
    gathered, whole = Tally(), Tally()
    for step in range(ranks - 1):  # all-gather
        moved = [
            (rank, (rank + 1 - step) % ranks, parts[rank, (rank + 1 - step) % ranks].copy()) for rank in range(ranks)
        ]
        for rank, part, data in moved:
            parts[(rank + 1) % ranks, part] = data
            gathered.sent += data.size * s["w_act"] if rank == 0 else 0
    for rank in range(ranks):
        np.testing.assert_allclose(parts[rank], wanted)
    same("all_gather", gathered, s)
    whole.sent = t.sent + gathered.sent
    same("all_reduce", whole, s)


def test_dispatch_and_combine_count_what_deepseek_counts() -> None:
    """32 tokens to 9 experts of a 7,000-wide model, one byte out and two back, at 50 GB/s: 120.96 us (DeepSeek-V3
    "Insights",
    arXiv:2505.09343 sec. 4.2), twice that and 61 layers: 14.76 ms."""
    values = {"tokens": 32, "hidden": 7000, "destinations": 9, "w_dispatch": 1, "w_act": 2}
    sent = sum(KERNELS[k].bind(**values).total("link") for k in ("moe_dispatch", "moe_combine"))
    assert float(sent) / 50e9 == pytest.approx(120.96e-6, abs=1e-12)
    assert 2 * 61 * float(sent) / 50e9 == pytest.approx(14.76e-3, abs=0.005e-3)
