"""The kernels, run and counted: each function does one kernel's work on a `Case` with the machinery of `counting`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from counting import Array, Cache, Case, Chip, Key, Memory, Sight


def reference(case: Case, sight: Sight) -> Array:
    """Plain softmax attention on expanded keys and values: the output both modes must give.  [b, s, h, v]"""
    size, out = case.size, []
    for b, i in case.steps():
        keys = [key for key, ok in sight.keys(b, i) if ok]
        k_nope = np.einsum("kd,hnd->khn", case.latents[b, keys], case.w_uk)
        scores = np.einsum("hn,khn->hk", case.q_nope[b, i], k_nope) + case.q_rope[b, i] @ case.ropes[b, keys].T
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        values = np.einsum("kd,hdv->khv", case.latents[b, keys], case.w_uv)
        out.append(np.einsum("hk,khv->hv", weights / weights.sum(axis=1, keepdims=True), values))
    return np.array(out).reshape(size["batch"], size["q_len"], size["heads"], size["value"])


def absorption(case: Case) -> tuple[Chip, Array]:
    """Queries into the latent space: W_UK is read once.  [b, s, h, d]"""
    chip, size = Chip(), case.size
    weights, queries = Memory(chip, case.w_uk, size["w_weight"]), Memory(chip, case.q_nope, size["w_act"])
    out = Memory(chip, np.zeros((*case.q_nope.shape[:3], size["latent"])), size["w_act"])
    for head in range(size["heads"]):
        matrix = weights.load(head)
        for b, i in case.steps():
            out.store(chip.product(queries.load(b, i, head)[None], matrix)[0], b, i, head)
    return chip, out.values


def unabsorption(case: Case, latent_out: Array) -> tuple[Chip, Array]:
    """Outputs out of the latent space: W_UV is read once.  [b, s, h, v]"""
    chip, size = Chip(), case.size
    weights, inputs = Memory(chip, case.w_uv, size["w_weight"]), Memory(chip, latent_out, size["w_act"])
    out = Memory(chip, np.zeros((*latent_out.shape[:3], size["value"])), size["w_act"])
    for head in range(size["heads"]):
        matrix = weights.load(head)
        for b, i in case.steps():
            out.store(chip.product(inputs.load(b, i, head)[None], matrix)[0], b, i, head)
    return chip, out.values


def mqa_core(case: Case, sight: Sight, absorbed: Array, row_width: Any = None) -> tuple[Chip, Array]:
    """Absorbed mode: every head of the kernel attends to the same latent rows.  [b, s, h, d]"""
    chip, size, d = Chip(), case.size, case.size["latent"]
    rows = np.concatenate([case.latents, case.ropes], axis=2)
    cache = Cache(Memory(chip, rows, size["w_kv"] if row_width is None else row_width), sight.keep, sight.prefix)
    q_latent, q_rope = Memory(chip, absorbed, size["w_act"]), Memory(chip, case.q_rope, size["w_act"])
    out = Memory(chip, np.zeros_like(absorbed), size["w_act"])
    for b, i in case.steps():
        keys = sight.keys(b, i)
        fetched, counts = cache.fetch(b, keys), [ok for _, ok in keys]
        chip.pairs += len(keys)
        query = np.zeros((size["kernel_heads"], d + size["rope"]))  # padded heads stay zero and are computed
        query[: size["heads"]] = np.concatenate([q_latent.load(b, i), q_rope.load(b, i)], axis=1)
        result = [chip.attend(q, fetched, [row[:d] for row in fetched], counts) for q in query]
        out.store(result[: size["heads"]], b, i)
    return chip, out.values


def up_projection(case: Case, prefix: int) -> tuple[Chip, Array]:
    """Latents to keys and values of every head, the shared rotary key copied along.  [b, T, h n + h v + r]"""
    chip, size = Chip(), case.size
    h, n, v = size["heads"], size["nope"], size["value"]
    cache = Cache(Memory(chip, np.concatenate([case.latents, case.ropes], axis=2), size["w_kv"]), True, prefix)
    w_uk = Memory(chip, case.w_uk, size["w_weight"]).load()
    w_uv = Memory(chip, case.w_uv, size["w_weight"]).load()
    out = Memory(chip, np.zeros((size["batch"], case.keys, h * (n + v) + size["rope"])), size["w_expanded"])
    for b in range(size["batch"]):
        for key in range(case.keys):
            if cache.place(b, key) in cache.held:
                out.values[b, key] = out.values[
                    cache.place(b, key)
                ]  # shared rows: expanded once, a view for the others
                continue
            (row,) = cache.fetch(b, [(key, True)])
            latent, rope = row[None, : size["latent"]], row[size["latent"] :]
            keys = np.concatenate([chip.product(latent, w_uk[head].T)[0] for head in range(h)])
            values = np.concatenate([chip.product(latent, w_uv[head])[0] for head in range(h)])
            out.store(np.concatenate([keys, values, rope]), b, key)
    return chip, out.values


def mha_core(case: Case, sight: Sight, expanded: Array) -> tuple[Chip, Array]:
    """Expanded mode: keys and values of each head.  [b, s, h, v]"""
    chip, size = Chip(), case.size
    h, n, v = size["heads"], size["nope"], size["value"]
    cache = Cache(Memory(chip, expanded, size["w_expanded"]), sight.keep, sight.prefix)
    q_nope, q_rope = Memory(chip, case.q_nope, size["w_act"]), Memory(chip, case.q_rope, size["w_act"])
    out = Memory(chip, np.zeros((size["batch"], size["q_len"], h, v)), size["w_act"])
    for b, i in case.steps():
        keys = sight.keys(b, i)
        fetched, counts = cache.fetch(b, keys), [ok for _, ok in keys]
        chip.pairs += len(keys)
        query = np.concatenate([q_nope.load(b, i), q_rope.load(b, i)], axis=1)
        for head in range(h):
            k_head = [np.concatenate([row[head * n : (head + 1) * n], row[h * (n + v) :]]) for row in fetched]
            v_head = [row[h * n + head * v : h * n + (head + 1) * v] for row in fetched]
            out.values[b, i, head] = chip.attend(query[head], k_head, v_head, counts)
        out.store(out.values[b, i], b, i)
    return chip, out.values


def grouped_core(case: Case, sight: Sight, queries: Array, rows: Array) -> tuple[Chip, Array]:
    """MHA, GQA, MQA: rows hold keys and values of `kv_heads` heads.  queries [b, s, h, e], rows [b, T, 2, g, e]"""
    chip, size = Chip(), case.size
    cache = Cache(Memory(chip, rows, size["w_kv"]), sight.keep, sight.prefix)
    reads, out = Memory(chip, queries, size["w_act"]), Memory(chip, np.zeros_like(queries), size["w_act"])
    group = size["heads"] // size["kv_heads"]
    for b, i in case.steps():
        keys = sight.keys(b, i)
        fetched, counts = cache.fetch(b, keys), [ok for _, ok in keys]
        chip.pairs += len(keys)
        query = reads.load(b, i)
        result = [
            chip.attend(
                query[head],
                [row[0, head // group] for row in fetched],
                [row[1, head // group] for row in fetched],
                counts,
            )
            for head in range(size["heads"])
        ]
        out.store(result, b, i)
    return chip, out.values


def linear(case: Case) -> tuple[Chip, Array, Array]:
    """One weight matrix over the tokens: the counted product and numpy's."""
    chip, size = Chip(), case.size
    values, matrix = (
        case.rng.normal(size=(size["tokens"], size["hidden"])),
        case.rng.normal(size=(size["hidden"], size["ffn"])),
    )
    weights = Memory(chip, matrix, size["w_weight"]).load()
    inputs, out = (
        Memory(chip, values, size["w_act"]),
        Memory(chip, np.zeros((size["tokens"], size["ffn"])), size["w_act"]),
    )
    for t in range(size["tokens"]):
        out.store(chip.product(inputs.load(t)[None], weights)[0], t)
    return chip, out.values, values @ matrix


def indexer(case: Case) -> tuple[Chip, Array, Array]:
    """Lightning indexer over all causal pairs: its logits as counted, and by einsum.  [b, s, T]"""
    chip, size, rng = Chip(), case.size, case.rng
    b_, s, c, i_, j = (size[k] for k in ("batch", "q_len", "context", "index_heads", "index_head_dim"))
    rows = rng.normal(size=(b_, case.keys, j + 1))  # j elements of one byte and one scale of four
    cache = Cache(Memory(chip, rows, [1] * j + [4]), True, 0)
    queries, weights = rng.normal(size=(b_, s, i_, j)), rng.normal(size=(b_, s, i_))
    q_mem, w_mem = Memory(chip, queries, size["w_index"]), Memory(chip, weights, 4)
    logits = Memory(chip, np.full((b_, s, case.keys), -math.inf), size["w_logit"])
    for b, i in case.steps():
        query, weight = q_mem.load(b, i), w_mem.load(b, i)
        keys: list[Key] = [(key, True) for key in range(c + i + 1)]
        chip.pairs += len(keys)
        for (key, _), row in zip(keys, cache.fetch(b, keys), strict=True):
            score = 0.0
            for head in range(i_):
                score = chip.weigh(score, weight[head], chip.relu(chip.dot(query[head], row[:j])))
            logits.store(score * row[j], b, i, key)
    plain = np.einsum("bsit,bsi->bst", np.maximum(np.einsum("bsij,btj->bsit", queries, rows[..., :j]), 0), weights)
    return chip, logits.values, plain * rows[:, None, :, j]


def select(case: Case, logits: Array) -> tuple[Chip, Array]:
    """Top-k of each query's visible logits; missing places hold -1.  [b, s, K]"""
    chip, size = Chip(), case.size
    scores = Memory(chip, logits, size["w_logit"])
    chosen = Memory(chip, np.zeros((size["batch"], size["q_len"], size["topk"]), dtype=int), 4)
    for b, i in case.steps():
        seen = [float(scores.load(b, i, key)) for key in range(size["context"] + i + 1)]
        best = sorted(range(len(seen)), key=lambda key: -seen[key])[: size["topk"]]
        chosen.store(best + [-1] * (size["topk"] - len(best)), b, i)
    return chip, chosen.values
