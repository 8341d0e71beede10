"""What other tools answered wrongly, each under the name of the mistake, and what is right.

Source of their answers: a survey of 25 tools run side by side on 2026-11-29; the numbers named are theirs.
"""

from __future__ import annotations

from typing import Any

import pytest

from roofline.accelerators import adhoc
from roofline.answers.step import step


def rows(answer: Any) -> dict[str, Any]:
    return {row["name"]: row for row in answer["kernels"]}


def test_decode_counts_the_projections_of_mla() -> None:
    """aiconfigurator's SOL decode of V3 leaves out q_a, q_b, kv_a and o: 0.221 ms.  61 x 187.1 M fp8 weights alone
    take 2.38 ms."""
    answer = step("deepseek-v3", "h200-sxm", batch=1, context=128)
    time = sum(r["time_lower_s"] for r in answer["kernels"] if r["part"] == "attention")
    assert 2.38e-3 <= time < 2.6e-3


def test_other_latent_shapes_than_deepseeks_count() -> None:
    """Literals 1088 and 576 in aiconfigurator's formulas: GLM-5 (192 + 64, 256) has its own projections and MHA
    mode."""
    core = rows(step("glm-5", "h200-sxm", phase="oneshot", q_len=2048, mode="mha"))["core, MHA mode"]
    assert core["flops"] == 78 * 2 * 64 * 512 * 2048 * 2049 / 2


def test_indexer_prefill_is_causal_and_its_cache_not_per_head() -> None:
    """aiconfigurator: 2 S S 64 128 logits FLOPs (twice too many) and KV bytes times the heads (7.12e9 B at 65,536)."""
    found = rows(step("deepseek-v3.2", "h200-sxm", phase="oneshot", q_len=65536))
    assert found["indexer scores"]["flops"] == 61 * 16384 * 65536 * 65537 / 2
    core = found["sparse core, MQA mode"]["bytes"] / 61
    assert core < 65536 * (1152 + 128 * 1088 * 2) * 1.001


def test_dense_layers_of_a_mixture_stay_dense() -> None:
    """aiconfigurator and InferSim count the three dense layers of V3 as experts: 96.86 instead of 93.79 GiB a GPU at
    EP 8 (bf16)."""
    held = step("deepseek-v3", "h200-sxm", dp=8, ep=8)["memory"]["weights_bytes"]
    assert rows(step("deepseek-v3", "h200-sxm"))["dense FFN, down"]["count"] == 3
    assert held / 2**30 == pytest.approx(93.79, rel=0.01)


def test_active_parameters_are_counted_not_scaled() -> None:
    """ridgepoint takes 12 % of 671 B as active (80.5 B): a decode of one sequence reads 37 B weights, 1 byte each or
    so."""
    read = step("deepseek-v3", "h200-sxm", batch=1, w_act=0)["totals"]["bytes"]
    assert 37e9 < read < 40e9


def test_tensor_parallelism_does_not_scale_perfectly() -> None:
    """ridgepoint gives 954 tokens/s to Llama-3-8B on 8 H100 by dividing everything: ours is slower than an eighth
    once the
    collectives and replicated norms count, in the upper bound."""
    one, eight = (step("llama-3.1-8b", "h100-sxm", batch=64, context=1000, tp=tp) for tp in (1, 8))
    assert eight["time_upper_s"] > one["time_upper_s"] / 8
    assert eight["link_s"] > 0


def test_the_ridge_of_an_fp8_model_is_the_fp8_ridge() -> None:
    """ridgepoint's 148 at fp8: with 1,979 TFLOP/s over 3.35 TB/s and one byte a weight it is 295."""
    found = step("llama-3.1-70b", adhoc(peak=1978.9e12, bandwidth=3.35e12), weight_dtype="fp8", w_act=0)[
        "batch_at_ridge"
    ]
    assert found == pytest.approx(1978.9 / 3.35 / 2, rel=0.02)


def test_large_batches_do_not_bind_where_a_mixed_label_says() -> None:
    """servcalc: "saturating batch 16" although batch 64 and 128 are memory-bound in the same table."""
    for batch in (16, 64, 128):
        assert step("llama-3.1-8b", "h100-sxm", batch=batch, context=4096)["bound"] == "memory"


def test_a_decode_can_be_compute_bound() -> None:
    """kv-planner has "memory-bound" hard-coded: at batch 8,192 it runs at 1,880 of 989 TFLOP/s."""
    answer = step("llama-3.1-8b", "h100-sxm", batch=8192, context=16)
    assert answer["bound"] == "compute"
    assert answer["totals"]["flops"] / answer["time_lower_s"] <= 989.4e12


def test_dense_mla_attends_to_everything() -> None:
    """llm-mem-planner gives V3 the top-2048 of V3.2: the same 24.65 ms at 4,096 and at 65,536 tokens."""
    short, long = (rows(step("deepseek-v3", "h200-sxm", context=c))["core, MQA mode"]["flops"] for c in (4095, 65535))
    assert long == 16 * short
    assert short == 61 * 1.140850688e9


def test_the_head_multiplies_and_adds_and_the_embedding_does_not() -> None:
    """LLM-Viewer's head lacks the factor 2 (525,336,576), GenZ counts the lookup as a 4.30 TFLOP product; S = 4,096
    in all 6.157e13."""
    answer = step("llama-3.1-8b", "h100-sxm", phase="oneshot", q_len=4096)
    assert rows(answer)["head"]["flops"] == 1_050_673_152
    assert rows(answer)["embedding"]["flops"] == 0
    assert rows(answer)["attention core"]["flops"] == pytest.approx(4.39912e12, rel=1e-5)
    assert answer["totals"]["flops"] == pytest.approx(6.15748e13, rel=1e-5)


def test_grouped_queries_read_shared_keys_once() -> None:
    """LLM-Viewer issue 12: 67,108,864 instead of 16,777,216 B of keys and values a layer at 4,096 tokens."""
    row = rows(step("llama-3.1-8b", "h100-sxm", context=4095, w_act=0))["attention core"]
    assert row["bytes"] == 32 * 16_777_216


def test_absorbed_decode_is_not_a_mode_that_does_not_exist() -> None:
    """llm_roofline_simulation: MHA-mode FLOPs with MQA-mode bytes, 3.4 x low.  Per layer at 8,192 tokens, 128 heads:
    2.28e9."""
    row = rows(step("deepseek-v3", "h200-sxm", context=8191))["core, MQA mode"]
    assert row["flops"] / 61 == 2 * 128 * 1088 * 8192


def test_active_experts_only() -> None:
    """MaxText PR 678: Mixtral with all 8 experts a token, 287.78 instead of 79.98 TFLOP; only expert FLOPs scale by
    4."""
    flops = {r["name"]: r["flops"] for r in step("mixtral-8x7b", "h100-sxm")["kernels"]}
    everything = sum(flops.values()) + 3 * (flops["routed experts, gate and up"] + flops["routed experts, down"])
    assert 3.0 < everything / sum(flops.values()) < 4.0


def test_expert_parallelism_over_nodes_needs_no_tables() -> None:
    """aiconfigurator refuses cross-node EP even in SOL mode; H800, H20 and MI300X are unknown to it."""
    for part in ("h800-sxm", "h20", "mi300x"):
        assert step("deepseek-v3", part, batch=256, context=1000, dp=16, ep=16)["tokens_per_s"] > 0
