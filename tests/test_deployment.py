"""Degrees of parallelism: what divides, what replicates, what is refused and why; collectives; pipeline; capacity."""

from __future__ import annotations

from typing import Any

import pytest

from roofline.accelerators import load_catalog
from roofline.errors import BadValue, NoAnswer
from roofline.models import load_model
from roofline.plan import Deployment, Options, Rates, Use, Workload, check_deployment, plan, rank_bytes, stage_layers
from roofline.plan.capacity import first_where, largest_batch, largest_within, memory
from roofline.plan.chip import chip
from roofline.plan.numbers import UseCost

CATALOG = load_catalog(environ={})
RATES = Rates({"bf16": 989e12, "fp8": 1979e12}, 4.8e12, link_bandwidth=450e9)


def uses(name: str, load: Workload | None = None, **degrees: int) -> dict[str, Use]:
    return {u.name: u for u in plan(load_model(name), load, Deployment(**degrees)).uses}


def costs(name: str, load: Workload | None = None, **degrees: int) -> dict[str, UseCost]:
    return {c.use.name: c for c in plan(load_model(name), load, Deployment(**degrees)).costs(RATES)}


@pytest.mark.parametrize(
    ("name", "degrees", "what", "choices"),
    [
        ("deepseek-v3", {"tp": 3}, "tp", "1, 2, 4, 8, 16, 32, 64, 128"),
        ("llama-3.1-8b", {"tp": 64}, "tp", "1, 2, 4, 8, 16, 32"),
        ("qwen3-30b-a3b", {"tp": 3}, "tp", "heads 32 cannot be divided by 3"),
        ("deepseek-v3", {"dp": 6, "ep": 6}, "ep", "no degree fits"),
        ("deepseek-v3", {"dp": 8, "ep": 3}, "ep", "1, 2, 4, 8"),
        ("llama-3.1-8b", {"ep": 2}, "ep", "no routed experts"),
        ("llama-3.1-8b", {"pp": 33}, "pp", "at most the 32 layers"),
        ("llama-3.1-8b", {"tp": 8, "cp": 2}, "cp", "1 copies"),
        ("llama-3.1-8b", {"tp": 32, "cp": 3}, "cp", "one of 1, 2, 4"),
        ("deepseek-v3", {"tp": 4, "cp": 8}, "cp", "one of 1, 2, 4"),
        ("deepseek-v3", {"tp": 0}, "tp", "whole number >= 1"),
        ("deepseek-v3", {"micro_batches": 0}, "micro_batches", "whole number >= 1"),
    ],
)
def test_a_degree_that_does_not_divide_says_which_do(
    name: str, degrees: dict[str, int], what: str, choices: str
) -> None:
    with pytest.raises(BadValue) as error:
        check_deployment(load_model(name), Deployment(**degrees))
    assert error.value.name == what
    assert choices in str(error.value)


@pytest.mark.parametrize("degrees", [{"tp": 1.5}, {"dp": True}, {"pp": "2"}])
def test_a_degree_is_a_whole_number(degrees: dict[str, Any]) -> None:
    with pytest.raises(BadValue, match="whole number"):
        check_deployment(load_model("deepseek-v3"), Deployment(**degrees))


def test_key_value_heads_divide_then_replicate() -> None:
    """Llama-3.1-8B has 8: at TP 16 each rank keeps one, so its cache row stops falling (4,096 B over 8 ranks = 512
    B)."""
    rows = [uses("llama-3.1-8b", tp=tp)["attention core"].values["kv_row_bytes"] for tp in (1, 2, 8, 16, 32)]
    assert rows == [4096, 2048, 512, 512, 512]
    assert [uses("llama-3.1-8b", tp=tp)["attention core"].values["heads"] for tp in (8, 32)] == [4, 1]


def test_the_latent_replicates_and_the_heads_divide() -> None:
    """Every rank reads the whole latent row (shallowsim issue 4; ridgepoint pools it over ranks)."""
    one, eight = (costs("deepseek-v3", Workload("decode", context=8191), tp=tp)["core, MQA mode"] for tp in (1, 8))
    assert one.use.values["kv_row_bytes"] == eight.use.values["kv_row_bytes"] == 1152
    assert one.flops == 8 * eight.flops
    assert eight.bytes > 8192 * 1152


def test_context_parallelism_splits_the_copies_of_a_cache() -> None:
    """cp ranks hold a share of each sequence and attend with each other's heads: the core's FLOPs of a rank stay, its
    rows
    fall, and queries are gathered and outputs merged."""
    load = Workload("decode", batch=4, context=8191)
    plain, split = costs("deepseek-v3", load, tp=8), costs("deepseek-v3", load, tp=8, cp=4)
    assert split["core, MQA mode"].flops == plain["core, MQA mode"].flops
    rows = [c["core, MQA mode"].bytes - 4 * h * 1088 * 2 for c, h in ((plain, 16), (split, 64))]
    assert rows == [4 * 8192 * 1152, 4 * 2048 * 1152]
    assert split["gather of queries"].link_bytes == 4 * 64 * 576 * 2 * 3 / 4
    assert split["merge of partial outputs"].link_bytes == 4 * 64 * 512 * 2 * 3 / 4
    gather = costs("deepseek-v3", Workload("chunked", q_len=64, context=4000), tp=8, cp=4)["gather of cached rows"]
    assert gather.link_bytes == 4000 * 3 / 4 * 1152


def test_the_indexer_runs_whole_on_every_tensor_parallel_rank() -> None:
    load = Workload("decode", context=9999)
    one, eight = costs("deepseek-v3.2", load, tp=1), costs("deepseek-v3.2", load, tp=8)
    assert one["indexer scores"].flops == eight["indexer scores"].flops == 16384 * 10_000
    assert one["indexer queries"].flops == eight["indexer queries"].flops


def test_all_reduces_of_a_tensor_parallel_step() -> None:
    """Two a layer and one after the embedding, of 2 (n - 1)/n of the activations."""
    step = plan(load_model("llama-3.1-70b"), Workload("decode", batch=16), Deployment(tp=8))
    runs = sum(u.count for u in step.uses if u.kernel == "all_reduce")
    assert runs == 161
    sent = sum(c.link_bytes * c.use.count for c in step.costs() if c.use.kernel == "all_reduce")
    assert sent == 161 * 2 * 7 / 8 * 16 * 8192 * 2
    assert not [u for u in plan(load_model("llama-3.1-70b")).uses if u.part == "communication"]


def test_experts_over_data_parallel_ranks_send_tokens_there_and_back() -> None:
    """DeepSeek-V3 on 8 ranks, 16 tokens each: dispatch in fp8, combine in 16 bits, to 7 (1 - (7/8)^8) other ranks on
    average."""
    found = costs("deepseek-v3", Workload("decode", batch=128), dp=8, ep=8)
    visited = 7 * (1 - (7 / 8) ** 8)
    assert found["expert dispatch"].link_bytes == pytest.approx(16 * 7168 * visited)
    assert found["expert combine"].link_bytes == pytest.approx(2 * 16 * 7168 * visited)
    slices = costs(
        "deepseek-v3", Workload("decode", batch=128), dp=8
    )  # every expert cut in eight: all ranks need all tokens
    assert slices["expert dispatch"].link_bytes == pytest.approx(16 * 7168 * 7)


def test_the_busiest_data_parallel_rank_holds_the_rest() -> None:
    """13 sequences on 4 ranks: one has 4; the experts see all 13."""
    step = plan(load_model("deepseek-v3"), Workload("decode", batch=13), Deployment(dp=4, ep=4))
    named = {u.name: u for u in step.uses}
    assert step.value(named["core, MQA mode"], "batch") == 4
    assert step.value(named["routed experts, down"], "step_tokens") == 13


def test_mixed_step_over_data_parallel_ranks_shares_one_read_of_the_weights() -> None:
    """Adding phases per operation over-estimates a mixed step 1.5 to 3 times (aiconfigurator issue 1150)."""
    load = Workload("mixed", batch=64, context=4000, q_len=512, prefill_context=1000, prefill_batch=2)
    found = costs("deepseek-v3", load, dp=2, ep=2)
    assert found["output projection"].flops == 2 * (32 + 512) * 16384 * 7168
    assert found["core, MQA mode, decode"].use.values["batch"] == "rank_batch"
    assert found["core, MHA mode, prefill"].flops == 2 * 128 * 320 * (512 * 1000 + 512 * 513 / 2)
    assert found["head"].flops == 2 * (32 + 1) * 7168 * 129280


def test_pipeline_stages_share_layers_and_ends() -> None:
    """61 layers over 4 stages: 16 + 15 + 15 + 15; the uses of the stages together are those of the whole, sends
    included."""
    m, load, spread = load_model("deepseek-v3"), Workload("decode", batch=8, context=100), Deployment(pp=4)
    assert [len(stage_layers(m, 4, s)) for s in range(4)] == [16, 15, 15, 15]
    whole = plan(m, load, spread).totals()
    parts = [plan(m, load, spread, stage=s).totals() for s in range(4)]
    for quantity, value in whole.items():
        assert sum(p[quantity] for p in parts) == pytest.approx(value, rel=1e-12)
    assert whole["link_bytes"] == 3 * 8 * 7168 * 2


@pytest.mark.parametrize("name", ["deepseek-v3", "llama-3.1-8b", "gpt-oss-120b", "qwen3.5-122b-a10b"])
def test_stages_hold_all_weights(name: str) -> None:
    m = load_model(name)
    table = m.quantization.stored(m.ends[0].name, m.ends[0], m.dtype)[1]
    held = sum(rank_bytes(m, Deployment(pp=2), s) for s in range(2))
    assert held == pytest.approx(m.weight_bytes.total + (table if m.tied else 0), rel=1e-12)


def test_expert_parallel_weights_of_a_rank() -> None:
    """DeepSeek-V3 in bf16, EP 8 with attention on every rank: 2 x (routed/8 + the rest) bytes, with 3 dense layers
    kept dense
    (aiconfigurator counts them as experts, 3.3 % over)."""
    m = load_model("deepseek-v3")
    routed = m.params.by_class["routed_experts"]
    assert routed == 58 * 256 * 3 * 7168 * 2048
    stored = m.weight_bytes
    expected = stored.total - stored.by_class["routed_experts"] * 7 / 8
    assert rank_bytes(m, Deployment(dp=8, ep=8)) == pytest.approx(expected, rel=1e-12)


def test_memory_counts_caches_where_they_are() -> None:
    """Latent of V3 in bf16: 70,272 B a token on every rank; 86 sequences of 8,192 on H200 at TP 8 was ridgepoint's
    truth,
    689 needs attention data parallelism."""
    m, load = load_model("deepseek-r1"), Workload("decode", batch=80, context=8191)
    tp, dp = Deployment(tp=8), Deployment(dp=8, ep=8)
    options = Options(kv_dtype="bf16")
    one, many = memory(m, load, tp, options), memory(m, load, dp, options)
    assert one.kv_per_sequence == many.kv_per_sequence == 70_272 * 8192
    assert (one.kv, many.kv) == (80 * 70_272 * 8192, 10 * 70_272 * 8192)
    free = 141e9 - one.weights
    assert largest_batch(141e9, [one], tp) == free // (70_272 * 8192)
    assert largest_batch(141e9, [many], dp) % 8 == 0
    assert largest_batch(1e9, [one], tp) == 0


def test_capacity_is_tight() -> None:
    """The largest batch fits, one more does not."""
    m, load = load_model("llama-3.1-8b"), Workload("decode", context=9999)
    need = memory(m, load, Deployment(), Options())
    most = largest_batch(80e9, [need], Deployment())
    totals = [memory(m, load._replace(batch=b), Deployment(), Options()).total for b in (most, most + 1)]
    assert totals[0] <= 80e9 < totals[1]


def test_searches_for_whole_numbers() -> None:
    for edge in (1, 2, 3, 17, 4096, 99_999):
        assert first_where(lambda x, e=edge: x >= e) == edge  # type: ignore[misc]
        assert largest_within(lambda x: float(x), edge) == edge
        assert largest_within(lambda x: float(x), edge, 4) == edge // 4 * 4
    assert first_where(lambda x: False) is None
    assert largest_within(lambda x: 1.0, 2.0) > 1 << 30


def test_links_beyond_the_domain() -> None:
    """Within 8 GPUs NVLink counts; over 16, half of an all-to-all leaves the node over a 50 GB/s port."""
    h100 = CATALOG["h100-sxm"]
    inside = chip(h100, spread=Deployment(dp=8, ep=8)).rates
    assert inside.link_bandwidth == inside.wide_bandwidth == 450e9
    outside = chip(h100, spread=Deployment(dp=16, ep=16)).rates
    assert outside.link_bandwidth == 450e9
    assert outside.wide_bandwidth == pytest.approx(50e9 * 15 / 8)
    assert chip(CATALOG["gb200"], spread=Deployment(dp=72)).rates.wide_bandwidth == 900e9
    assert chip(h100, spread=Deployment(tp=2), link=1e9).rates.link_bandwidth == 1e9


def test_precision_falls_back_to_the_next_wider() -> None:
    """A chip without fp8 multiplies in 16 bits; one without any peak says so."""
    assert Rates({"bf16": 1.0, "fp16": 1.0}, 1.0).peak("fp8") == (1.0, "bf16")
    assert Rates({"fp16": 2.0}, 1.0).peak("fp4") == (2.0, "fp16")
    assert Rates({"given": 3.0}, 1.0).peak("fp8") == (3.0, "given")
    with pytest.raises(NoAnswer, match="fp64"):
        Rates({"fp64": 1.0}, 1.0).peak("bf16")


def test_a_named_roof_keeps_the_other_precisions() -> None:
    found = chip(CATALOG["h800-sxm"], "flashmla")
    assert found.rates.peaks["bf16"] == 865e12
    assert found.rates.peaks["fp8"] == 1978.9e12
    assert "flashmla" in found.notes[0]


def test_key_and_value_weights_replicate_with_their_heads() -> None:
    """At TP 32 a rank keeps one of 8 key/value heads: 128 rows each of k and v beside 128 rows of q (one query
    head)."""
    assert [uses("llama-3.1-8b", tp=tp)["queries, keys, values"].values["ffn"] for tp in (1, 8, 32)] == [6144, 768, 384]


def test_the_indexer_multiplies_in_fp8_unless_its_keys_are_wider() -> None:
    def precision(**given: str) -> str:
        found = plan(load_model("deepseek-v3.2"), options=Options(**given)).uses  # type: ignore[arg-type]
        return next(u.precision for u in found if u.kernel == "dsa_indexer")

    assert (precision(), precision(index_dtype="bfloat16")) == ("fp8", "bf16")


def test_prediction_modules_take_memory_when_they_draft() -> None:
    m = load_model("deepseek-v3")
    plain, drafting = (
        memory(m, Workload("decode", q_len=1 + d, drafts=d, context=100), Deployment(), Options()) for d in (0, 1)
    )
    assert drafting.weights - plain.weights == m.weight_bytes.mtp > 0
    assert drafting.kv_per_sequence == 102 * 62 * 1152
