"""Every kernel against loops that do its work and count it (`counting`): FLOPs, exponentials, vector operations, bytes
read and bytes written equal exactly, and both MLA modes give the same output.

`check_kernel` and `check_visibility` take the object under test, so that `mutants` can call them with broken ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import counted as run
import numpy as np
import pytest
import sympy as sp
from counting import Case, Chip, Sight, chunk, draw, sights

from roofline import visibility as vis
from roofline.kernel import Kernel
from roofline.kernels import KERNELS, attention, linear, mla, sparse
from roofline.symbols import SYMBOLS
from roofline.visibility import Visibility

SEEDS = range(12)
NAMES = [k.name for module in (attention, linear, mla, sparse) for k in module.KERNELS]
CARRIED = {"dsa_mqa": vis.topk(), "dsa_mha": vis.dense()}  # kernels that bring their visibility along


class Counted(NamedTuple):
    """One execution: which kernel, under which visibility (None: its own, or none), the sizes and the tally."""

    kernel: str
    label: str
    sight: Visibility | None
    size: dict[str, int]
    chip: Chip


@cache
def executions() -> tuple[Counted, ...]:
    """Every kernel run on every seed and visibility.  The outputs are compared on the way."""
    return tuple(found for seed in SEEDS for found in _execute(seed))


def _execute(seed: int) -> Iterator[Counted]:
    case = draw(seed)
    for name, sight in sights(case).items():
        yield from _both_modes(case, sight, f"seed {seed}, {name}")
    chip, counted, plain = run.linear(case)
    np.testing.assert_allclose(counted, plain, rtol=1e-10, atol=1e-10)
    yield Counted("linear", f"seed {seed}", None, case.size, chip)
    yield from _sparse(case, f"seed {seed}")


def _both_modes(case: Case, sight: Sight, label: str) -> Iterator[Counted]:
    wanted = run.reference(case, sight)
    first, absorbed = run.absorption(case)
    core, latent_out = run.mqa_core(case, sight, absorbed)
    last, output = run.unabsorption(case, latent_out)
    np.testing.assert_allclose(output, wanted, rtol=1e-10, atol=1e-10, err_msg=f"MQA mode, {label}")
    for name, chip in (("mla_absorption", first), ("mla_mqa", core), ("mla_unabsorption", last)):
        yield Counted(name, label, sight.law, case.size, chip)
    up, expanded = run.up_projection(case, sight.prefix)
    core, output = run.mha_core(case, sight, expanded)
    np.testing.assert_allclose(output, wanted, rtol=1e-10, atol=1e-10, err_msg=f"MHA mode, {label}")
    yield Counted("mla_mha", label, sight.law, case.size, core)
    rows = vis.shared_prefix() if sight.prefix else vis.dense()  # every cached row is expanded, whoever sees it
    yield Counted("mla_up_projection", label, rows, case.size, up)
    yield from _grouped(case, sight, label)


def _grouped(case: Case, sight: Sight, label: str) -> Iterator[Counted]:
    size = case.size
    queries = case.rng.normal(size=(size["batch"], size["q_len"], size["heads"], size["head_dim"]))
    rows = case.rng.normal(size=(size["batch"], case.keys, 2, size["kv_heads"], size["head_dim"]))
    rows[:, : sight.prefix] = rows[0, : sight.prefix]
    chip, output = run.grouped_core(case, sight, queries, rows)
    for b, i in case.steps():
        keys = [key for key, ok in sight.keys(b, i) if ok]
        k, v = np.repeat(rows[b, keys], size["heads"] // size["kv_heads"], axis=2).transpose(1, 2, 0, 3)  # [h, keys, e]
        weights = np.exp(np.einsum("he,hke->hk", queries[b, i], k))
        wanted = np.einsum("hk,hke->he", weights / weights.sum(axis=1, keepdims=True), v)
        np.testing.assert_allclose(output[b, i], wanted, rtol=1e-10, atol=1e-10, err_msg=label)
    yield Counted("attention", label, sight.law, case.size, chip)


def _sparse(case: Case, label: str) -> Iterator[Counted]:
    """DSA as a chain: indexer, selection, then both cores on what was really selected."""
    chip, logits, plain = run.indexer(case)
    np.testing.assert_allclose(logits[np.isfinite(logits)], plain[np.isfinite(logits)], rtol=1e-10, atol=1e-10)
    yield Counted("dsa_indexer", label, vis.dense(), case.size, chip)
    chip, chosen = run.select(case, logits)
    yield Counted("dsa_topk", label, vis.dense(), case.size, chip)
    picked = {(b, i): {int(key) for key in chosen[b, i] if key >= 0} for b, i in case.steps()}
    causal = sights(case)["dense"].keys
    sparse = Sight(vis.topk(), lambda b, i: [(key, True) for key in sorted(picked[b, i])], keep=False)
    masked = Sight(vis.dense(), lambda b, i: [(key, key in picked[b, i]) for key, _ in causal(b, i)])
    _, absorbed = run.absorption(case)
    core, latent_out = run.mqa_core(case, sparse, absorbed)
    yield Counted("dsa_mqa", label, None, case.size, core)
    _, by_mqa = run.unabsorption(case, latent_out)
    core, by_mha = run.mha_core(case, masked, run.up_projection(case, 0)[1])
    yield Counted("dsa_mha", label, None, case.size, core)
    np.testing.assert_allclose(by_mqa, by_mha, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(by_mha, run.reference(case, sparse), rtol=1e-10, atol=1e-10)


def check_kernel(kernel: Kernel) -> None:
    """The kernel's totals equal the counts of every execution of the kernel of that name."""
    found = [e for e in executions() if e.kernel == kernel.name]
    assert found, f"no counter runs {kernel.name}"
    if kernel.name in CARRIED:
        assert {k.name: v for k, v in kernel.bindings.items()}.items() >= CARRIED[kernel.name].bindings().items()
    kernel = kernel.bind(
        **{k.name: k for k, v in kernel.bindings.items() if v.is_number}
    )  # widths of the case, not the usual ones
    totals: dict[Visibility | None, tuple[sp.Expr, ...]] = {}
    for _, label, sight, size, chip in found:
        if sight not in totals:
            bound = kernel.bind(**sight.bindings()) if sight else kernel
            totals[sight] = bound.flops, bound.exps, bound.vector_flops, bound.reads, bound.bytes - bound.reads
        got = tuple(put(total, size) for total in totals[sight])
        counts = 2 * chip.macs, chip.exps, chip.vector, chip.bytes_read, chip.bytes_written
        assert got == counts, f"{kernel.name}, {label}: (flops, exps, vector, read, written) {got}, counted {counts}"


def put(expr: sp.Expr, size: dict[str, int]) -> Any:
    """Numbers into an expression."""
    return expr.xreplace({SYMBOLS[name]: sp.Integer(value) for name, value in size.items()})


def check_visibility(name: str, visibility: Visibility) -> None:
    """Pairs and rows read equal what the executed attention computed and fetched for all sequences."""
    for e in executions():
        if e.kernel == "mla_mqa" and e.label.split(", ", 1)[1] == name:
            total = tuple(e.size["batch"] * put(x, e.size) for x in (visibility.pairs, visibility.rows_read))
            assert total == (e.chip.pairs, e.chip.rows), f"{name}, {e.label}: {total}"
    for size, pairs, rows in walked(name):
        found = put(visibility.pairs, size), put(visibility.rows_read, size)
        assert found == (pairs, rows), f"{name}, {size}: {found}"


@cache
def walked(name: str) -> list[tuple[dict[str, int], int, int]]:
    """Longer sequences: pairs and rows of one sequence by walking over the keys, without the arithmetic."""
    found = []
    for seed in range(120):
        rng = np.random.default_rng(1000 + seed)
        high = 40 if seed % 8 == 0 else 6
        sizes = {k: int(rng.integers(k != "context", high)) for k in ("q_len", "context", "topk", "window")}
        case = draw(seed, batch=1, heads=1, kv_heads=1, prefix=(sizes["context"] + 1) // 2, **sizes)
        if name not in sights(case):
            continue  # no prefix, no part over it
        sight = sights(case)[name]
        pairs, rows, held = 0, 0, set[int]()
        for b, i in case.steps():
            keys = [key for key, _ in sight.keys(b, i)]
            pairs, rows = pairs + len(keys), rows + (len(keys) if not sight.keep else len(set(keys) - held))
            held |= set(keys)
        found.append((case.size, pairs, rows))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_kernel_equals_the_count(name: str) -> None:
    check_kernel(KERNELS[name])


SIGHTS = sights(draw(0, context=3, prefix=2))


@pytest.mark.parametrize("name", SIGHTS)
def test_visibility_equals_the_count(name: str) -> None:
    check_visibility(name, SIGHTS[name].law)


def test_the_counters_reach_every_branch() -> None:
    """A draw that never clipped, padded or shared would prove nothing."""
    sizes = [e.size for e in executions() if e.label.endswith("dense")]
    assert any(v["topk"] < v["context"] for v in sizes)
    assert any(v["topk"] > v["context"] + v["q_len"] for v in sizes)
    assert any(v["context"] < v["topk"] < v["context"] + v["q_len"] for v in sizes)
    assert any(v["window"] <= v["context"] for v in sizes)
    assert any(v["window"] > v["context"] + v["q_len"] for v in sizes)
    assert any(v["kernel_heads"] > v["heads"] for v in sizes)
    assert any(v["heads"] > v["kv_heads"] > 1 for v in sizes)
    assert any(v["prefix"] > 0 and v["batch"] > 1 for v in sizes)
    assert any(v["context"] == 0 for v in sizes)


@pytest.mark.parametrize("seed", range(4))
def test_chunked_prefill_over_a_context(seed: int) -> None:
    """Chunks of a prompt: output and FLOPs of the core as in one piece; kv_b runs over the context again."""
    case = draw(seed, q_len=7, context=2)
    whole = sights(case)["dense"]
    wanted, names = run.reference(case, whole), ("mla_mqa", "mla_mha", "mla_up_projection")
    macs, rows, outputs = dict.fromkeys(names, 0), 0, []
    for start, stop in ((0, 3), (3, 6), (6, 7)):
        part = chunk(case, start, stop)
        sight = sights(part)["dense"]
        core, latent_out = run.mqa_core(part, sight, run.absorption(part)[1])
        up, expanded = run.up_projection(part, 0)
        masked, output = run.mha_core(part, sight, expanded)
        np.testing.assert_allclose(run.unabsorption(part, latent_out)[1], output, rtol=1e-10, atol=1e-10)
        outputs.append(output)
        rows += up.rows
        for name, chip in zip(names, (core, masked, up), strict=True):
            macs[name] += chip.macs
            assert KERNELS[name].bind(**part.size, **vis.dense().bindings()).flops == 2 * chip.macs
    np.testing.assert_allclose(np.concatenate(outputs, axis=1), wanted, rtol=1e-10, atol=1e-10)
    for name in ("mla_mqa", "mla_mha"):
        assert KERNELS[name].bind(**case.size, **vis.dense().bindings()).flops == 2 * macs[name]
    assert rows == case.size["batch"] * (5 + 8 + 9) > case.size["batch"] * case.keys


def test_flashmla_row_of_656_bytes() -> None:
    """512 fp8 elements, 4 fp32 scales, 64 bf16 rotary elements (FlashMLA README at 9241ae3, "FP8 KV cache"): each row
    is fetched once and charged whole, so the kernel takes it as kv_row_bytes."""
    case = draw(3, latent=512, rope=64, heads=1, kernel_heads=1, kv_heads=1, batch=1, q_len=2, context=3)
    scaled = np.zeros((1, case.keys, 4))
    with_scales = case._replace(
        ropes=np.concatenate([case.ropes, scaled], axis=2),
        q_rope=np.concatenate([case.q_rope, np.zeros((1, 2, 1, 4))], axis=3),
        size=case.size | {"rope": 68},
    )
    layout = [1] * 512 + [2] * 64 + [4] * 4
    chip, _ = run.mqa_core(with_scales, sights(case)["dense"], run.absorption(case)[1], row_width=layout)
    queries = 2 * 1 * (512 + 68) * case.size["w_act"]
    assert chip.bytes_read - queries == 5 * 656
    kernel = KERNELS["mla_mqa"].bind(**vis.dense().bindings(), **case.size, kv_row_bytes=656)
    assert kernel.reads - 2 * (512 + 64) * case.size["w_act"] == 5 * 656


def test_random_selection_needs_at_most_the_rows_of_perfect_reuse() -> None:
    """`gather="perfect"` is the least overlapping selection; any other touches fewer different rows."""
    for seed in range(30):
        case = draw(seed, batch=1)
        union = {key for b, i in case.steps() for key, _ in sights(case)["topk"].keys(b, i)}
        assert len(union) <= vis.topk(gather="perfect").bind(**case.size).rows_read


def test_torch_counts_the_same_flops() -> None:
    """Batched matmuls of both modes under `torch.utils.flop_counter.FlopCounterMode` (2 FLOP a multiply-add)."""
    torch = pytest.importorskip(
        "torch", reason="torch is not installed: a third count of the same FLOPs, not the only one"
    )
    from torch.utils.flop_counter import FlopCounterMode

    for seed in range(7):
        case = draw(seed, batch=1, q_len=3)
        size = case.size | {"kernel_heads": case.size["heads"]}
        sized = {
            name: KERNELS[name].bind(**size, **vis.full().bindings()).flops
            for name in KERNELS
            if name.startswith("mla")
        }
        t = {
            name: torch.tensor(getattr(case, name)) for name in ("latents", "ropes", "q_nope", "q_rope", "w_uk", "w_uv")
        }
        latents, ropes = t["latents"][0], t["ropes"][0]
        q_nope, q_rope = t["q_nope"][0].transpose(0, 1), t["q_rope"][0].transpose(0, 1)  # [h, s, n], [h, s, r]
        with FlopCounterMode(display=False) as absorbed:
            q = torch.bmm(q_nope, t["w_uk"])
            scores = torch.matmul(q.flatten(0, 1), latents.T) + torch.matmul(q_rope.flatten(0, 1), ropes.T)
            out = torch.matmul(torch.softmax(scores, -1), latents).reshape(q.shape)
            by_mqa = torch.bmm(out, t["w_uv"])
        with FlopCounterMode(display=False) as expanded:
            k = torch.matmul(latents, t["w_uk"].flatten(0, 1).T).reshape(len(latents), size["heads"], -1)
            v = torch.matmul(latents, t["w_uv"].transpose(0, 1).flatten(1)).reshape(len(latents), size["heads"], -1)
            keys = torch.cat([k, ropes[:, None].expand(-1, size["heads"], -1)], 2).transpose(0, 1)
            weights = torch.softmax(torch.bmm(torch.cat([q_nope, q_rope], 2), keys.transpose(1, 2)), -1)
            by_mha = torch.bmm(weights, v.transpose(0, 1))
        assert torch.allclose(by_mqa, by_mha, atol=1e-10)
        assert absorbed.get_total_flops() == sized["mla_absorption"] + sized["mla_mqa"] + sized["mla_unabsorption"]
        assert expanded.get_total_flops() == sized["mla_up_projection"] + sized["mla_mha"]
