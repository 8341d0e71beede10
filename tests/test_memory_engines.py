"""Engines against their own start-up logs, and the laws that every engine keeps.

Each case is a public log: the address, what was printed, and how close the rule has to come.  Bytes per token are
exact; tokens lie in the interval that the rounding of the printed GiB allows; concurrency within 0.01, as two decimals
are printed; verdicts are exact.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.answers.kv import kv_capacity, kv_show
from roofline.errors import BadValue, NoAnswer, UnknownName
from roofline.memory import llamacpp, sglang, trtllm, vllm
from roofline.memory.layouts import mixed, of_bytes, of_model, of_shape, weight_bytes
from roofline.memory.plan import GIB, Budget, hold, implied_bytes_per_token, longest, printed_unit
from roofline.models import load_model

laws = settings(max_examples=100, deadline=None)
VLLM = "https://github.com/vllm-project/vllm/"
LLMD = "https://github.com/llm-d/llm-d-benchmark/blob/2593348/config_explorer/empirical-vllm-memory-results.md"
DENSE = ("llama-3.1-8b", "qwen3-32b", "qwen3-30b-a3b", "mixtral-8x7b")
MIXES = ("gpt-oss-120b", "gemma-4-26b-a4b", "qwen3.5-122b-a10b", "llama-4-scout", "kimi-k3", "step-3.7-flash")


class Log(NamedTuple):
    """A start-up of vLLM: options, the size it printed, and what it printed then (None: not printed)."""

    case: str
    source: str
    options: dict[str, object]
    available_gib: str
    bytes_per_token: int
    tokens: int | None
    concurrency: float | None
    starts: bool


QWEN_14B = {"layers": 48, "kv_heads": 8, "head_dim": 128, "kv_dtype": "fp16", "tp": 2}
LOGS = (
    Log(
        "V01",
        VLLM + "issues/21348",
        {"model": "qwen3-235b-a22b", "kv_dtype": "bf16", "tp": 4, "max_model_len": 40960},
        "8.11,8.018",
        48128,
        178880,
        None,
        True,
    ),
    Log(
        "V02",
        VLLM + "issues/10517",
        {"model": "llama-3.1-8b", "kv_dtype": "fp16", "max_model_len": 20000},
        "3.81",
        131072,
        31232,
        1.56,
        True,
    ),
    Log(
        "V02, longer",
        VLLM + "issues/10517",
        {"model": "llama-3.1-8b", "kv_dtype": "fp16", "max_model_len": 29000},
        "2.89",
        131072,
        23648,
        0.82,
        False,
    ),
    Log(
        "V04",
        VLLM + "issues/25350",
        {"model": "qwen3-30b-a3b", "kv_dtype": "fp8", "max_model_len": 100000},
        "10.55",
        49152,
        230528,
        2.31,
        True,
    ),
    Log(
        "V04, longer",
        VLLM + "issues/25350",
        {"model": "qwen3-30b-a3b", "kv_dtype": "fp8", "max_model_len": 221000},
        "5.59",
        49152,
        None,
        None,
        False,
    ),
    Log(
        "V05",
        VLLM + "issues/15928",
        {"model": "deepseek-v3", "kv_dtype": "bf16", "tp": 8, "block_size": 16, "max_model_len": 32768},
        "7.023",
        70272,
        107312,
        3.27,
        True,
    ),
    Log(
        "V09",
        VLLM + "issues/12330",
        {"model": "llama-3.1-8b", "kv_dtype": "fp16", "max_model_len": 8192},
        "11.12",
        131072,
        91056,
        11.12,
        True,
    ),
    Log(
        "V12",
        LLMD,
        {"model": "qwen3-32b", "kv_dtype": "bf16", "max_model_len": 16000},
        "4.45",
        262144,
        None,
        1.139,
        True,
    ),
    Log(
        "V12, longer",
        LLMD,
        {"model": "qwen3-32b", "kv_dtype": "bf16", "max_model_len": 32000},
        "4.45",
        262144,
        None,
        None,
        False,
    ),
    Log("V15", VLLM + "issues/13061", {**QWEN_14B, "max_model_len": 131072}, "8.69,7.465", 98304, 81536, None, False),
    Log(
        "V18",
        "public log, address not recorded",
        {"model": "qwen3.5-122b-a10b", "kv_dtype": "fp8", "prefix_caching": True, "max_model_len": 131072},
        "21.43",
        12288,
        467712,
        11.79,
        True,
    ),
    Log(
        "V20",
        "public log, address not recorded",
        {"model": "gemma-4-26b-a4b", "kv_dtype": "fp8", "max_num_batched_tokens": 2048, "max_model_len": 131072},
        "51.62",
        10240,
        451040,
        33.42,
        True,
    ),
)


@pytest.mark.parametrize("log", LOGS, ids=[log.case for log in LOGS])
def test_vllm_prints(log: Log) -> None:
    found = kv_capacity(available_gib=log.available_gib, **log.options)  # type: ignore[arg-type]
    assert found["bytes_per_token_per_rank"] == log.bytes_per_token
    assert found["starts"] is log.starts
    if log.tokens is not None:
        assert found["tokens_low"] <= log.tokens <= found["tokens_high"]
    if log.concurrency is not None:
        assert found["concurrency"] == pytest.approx(log.concurrency, abs=0.01)


def test_v01_one_rank_is_larger_than_the_one_that_decides() -> None:
    plan = vllm.plan(of_model(load_model("qwen3-235b-a22b"), "bf16", tp=4))
    assert plan.tokens(8.11 * GIB) == 180928
    assert 178880 <= 180928 < 178880 * 1.015


def test_v02_refusal_says_what_is_missing() -> None:
    found = kv_capacity("llama-3.1-8b", kv_dtype="fp16", max_model_len=29000, available_gib="2.89")
    assert found["missing_bytes"] == found["needed_bytes"] - 2.89 * GIB > 0
    assert found["longest_context"] == pytest.approx(23648, rel=2e-3)
    assert any("Does not start" in note for note in found["notes"])


def test_v04_needed_size_and_estimated_length() -> None:
    found = kv_capacity("qwen3-30b-a3b", kv_dtype="fp8", max_model_len=221000, available_gib="5.59")
    assert found["needed_bytes"] / GIB == pytest.approx(10.12, abs=0.01)
    assert found["longest_context"] == pytest.approx(122080, rel=1e-3)


def test_v05_five_ranks_of_a_latent_cache() -> None:
    plan = vllm.plan(of_model(load_model("deepseek-v3"), "bf16", tp=8), block_size=16)
    printed = (107824, 107456, 107312, 107344, 107392)
    ratios = [plan.concurrency(tokens * 70272.0, 32768) for tokens in printed]
    assert ratios == pytest.approx([3.29, 3.28, 3.27, 3.28, 3.28], abs=0.005)
    assert min(printed) * 70272 / GIB == pytest.approx(7.02, abs=0.005)


def test_v07_v14_from_printed_counts() -> None:
    """https://github.com/vllm-project/vllm/pull/13596 and https://github.com/LMCache/LMCache/pull/1769."""
    found = kv_capacity(bytes_per_token=1024.0, blocks=127626, block_size=16, max_model_len=2048)
    assert found["tokens"] == 2042016
    assert found["concurrency"] == pytest.approx(997.08, abs=0.005)
    found = kv_capacity("qwen3-32b", kv_dtype="bf16", tokens=275760, max_model_len=40960)
    assert found["available_bytes"] / GIB == pytest.approx(67.32, abs=0.01)
    assert found["concurrency"] == pytest.approx(6.73, abs=0.005)
    assert found["tokens"] == 275760


def test_v09_whole_budget() -> None:
    options = {"total_gib": 39.5, "weights_gib": 14.96, "non_torch_gib": 0.10, "activation_gib": 9.37}
    found = kv_capacity("llama-3.1-8b", kv_dtype="fp16", max_model_len=8192, utilization=0.9, **options)
    assert found["available_bytes"] / GIB == pytest.approx(11.12, abs=0.01)
    assert found["blocks"] == pytest.approx(5691, rel=1e-3)
    assert found["concurrency"] == pytest.approx(11.12, abs=0.01)


@pytest.mark.parametrize(
    ("model", "weights", "activation", "available", "computed"),
    [
        ("llama-3.1-8b", 14.99, 4.76, 51.38, 14.96),
        ("qwen3-0.6b", 1.12, 5.56, 64.45, 1.11),
        ("gpt-oss-20b", 13.47, 7.38, 50.28, 12.82),
    ],
)
def test_v10_h100_budgets(model: str, weights: float, activation: float, available: float, computed: float) -> None:
    """llm-d's table: every term printed by vLLM on an H100 of 79.18 GiB at 0.9."""
    options = {"total_gib": 79.18, "weights_gib": weights, "activation_gib": activation, "non_torch_gib": 0.13}
    found = kv_capacity(model, max_model_len=16000, **options)
    assert found["available_bytes"] / GIB == pytest.approx(available, abs=0.02)
    own = weight_bytes(load_model(model)) / GIB
    assert own == pytest.approx(computed, abs=0.01)
    assert own <= weights <= own * 1.06


def test_v11_a_printed_size_that_needs_another_utilisation() -> None:
    """llm-d's gpt-oss-120b row: its terms leave 3.33 GiB at 0.95, not at the 0.9 that the page says."""
    options = {"total_gib": 79.18, "weights_gib": 64.38, "activation_gib": 7.38, "non_torch_gib": 0.13}
    assert kv_capacity("gpt-oss-120b", max_model_len=16000, **options)["starts"] is False
    found = kv_capacity("gpt-oss-120b", max_model_len=16000, available_gib="3.33", **options)
    assert found.rows[0]["utilization_implied"] == pytest.approx(0.95, abs=1e-4)


def test_v12_from_the_budget() -> None:
    options = {"total_gib": 79.18, "weights_gib": 61.03, "activation_gib": 5.64, "non_torch_gib": 0.14}
    short = kv_capacity("qwen3-32b", max_model_len=16000, **options)
    long = kv_capacity("qwen3-32b", max_model_len=32000, **options)
    assert short["available_bytes"] / GIB == pytest.approx(4.45, abs=0.02)
    assert (short["starts"], long["starts"]) == (True, False)
    assert (short["needed_bytes"] / GIB, long["needed_bytes"] / GIB) == pytest.approx((3.906, 7.8125), abs=0.02)
    assert short["longest_context"] == 18224
    assert 0.9 < long["utilization_needed"] < 0.95


def test_v18_blocks_of_a_mix_with_states() -> None:
    plan = vllm.plan(of_model(load_model("qwen3.5-122b-a10b"), "fp8"), prefix_caching=True)
    assert (plan.block_size, plan.group_size, len(plan.groups)) == (4176, 12, 4)
    assert plan.blocks(21.43 * GIB) == 448
    assert plan.request_blocks(131072) == 32 + 3 * 2


def test_qwen35_27b_without_prefix_caching() -> None:
    """https://github.com/vllm-project/vllm/issues/40691: 290,864 tokens, 33.04 requests of 32,768, one log.

    64 layers, 48 with a state of 48 x 128 x 128 float32 and 3 x 10,240 bf16, 16 of 4 heads x 256 in bf16; the size of
    the pool is not printed, so the blocks that fit both numbers are looked for.
    """
    from roofline.models.kv import KvCache, Part

    state = 48 * 128 * 128 * 4 + 3 * 10240 * 2
    cache = KvCache("bfloat16", 1, (Part("gated_delta", 48, 0.0, None, state), Part("gqa", 16, 4096.0, None)))
    plan = vllm.plan(of_bytes(1.0)._replace(cache=cache))
    assert plan.block_size == 784
    fits = [n for n in range(1400, 1600) if plan.tokens(n * plan.block_bytes) == 290864]
    assert any(round(plan.concurrency(n * plan.block_bytes, 32768), 2) == 33.04 for n in fits)


@pytest.mark.parametrize(("tp", "block"), [(1, 4192), (2, 4192), (4, 2112)])
def test_nemotron_block_depends_on_tp(tp: int, block: int) -> None:
    """https://github.com/vllm-project/vllm/issues/41037: --block-size 32, fp8 cache, two key/value heads."""
    layout = of_model(load_model("nemotron-3-nano-30b-a3b"), "fp8", tp=tp)
    assert vllm.plan(layout, block_size=32).block_size == block


def test_v20_one_request_of_a_windowed_mix() -> None:
    found = kv_capacity("gemma-4-26b-a4b", kv_dtype="fp8", max_model_len=131072, available_gib="51.62")
    assert found["needed_bytes"] / GIB == pytest.approx(1.5445, abs=5e-4)
    assert found["tokens"] == pytest.approx(451040, rel=5e-4)
    assert any("max_num_batched_tokens 2048" in note for note in found["notes"])


def test_window_blocks_at_the_edge() -> None:
    layout = of_model(load_model("gemma-4-26b-a4b"), "fp8")
    for batched, blocks in ((2049, 192 + 1), (2050, 193 + 1)):  # 1,023 + 2,049 tokens fill 192 blocks of 16
        assert vllm.plan(layout, batched=batched).request_blocks(131072) == 4096 + 5 * blocks
    chunked = vllm.plan(of_model(load_model("llama-4-scout"), "bf16"), batched=16)
    assert chunked.request_blocks(131072) == 8192 + 3 * (8192 + 16) // 16


def test_v22_without_the_hybrid_allocator() -> None:
    """https://github.com/vllm-project/vllm/issues/43308: gemma-4-31B, 50 GB held 55k tokens, then 525k."""
    from roofline.models.kv import KvCache, Part

    parts = (Part("window", 50, 2 * 16 * 256 * 2.0, 1024), Part("gqa", 10, 2 * 4 * 512 * 2.0, None))
    layout = of_bytes(1.0)._replace(cache=KvCache("bfloat16", 1, parts))
    plain = KvCache("bfloat16", 1, tuple(part._replace(span=None) for part in parts))
    before = vllm.plan(of_bytes(1.0)._replace(cache=plain))
    assert layout.all_rows == before.layout.bytes_per_token == 901120
    assert before.tokens(50e9) == pytest.approx(55000, rel=0.05)
    after = vllm.plan(layout)
    whole = after.details(50e9, 262144)["tokens_at_full_length"]
    assert whole / before.tokens(50e9) == pytest.approx(9.5, rel=0.05)


def test_v23_half_of_the_layers_are_windowed() -> None:
    """https://github.com/ai-dynamo/aiconfigurator/pull/1537: 65,936 tokens of gpt-oss-120b in fp8."""
    found = kv_show("gpt-oss-120b", kv_dtype="fp8", context=65936)
    assert found["bytes_per_sequence"] / GIB == pytest.approx(1.1341, abs=5e-4)
    assert found["bytes_if_every_layer_kept_all"] / GIB == pytest.approx(2.2637, abs=5e-4)


def test_v26_weights_above_the_static_fraction() -> None:
    """https://github.com/SemiAnalysisAI/InferenceX/issues/2128: 140.4 "GB" at 0.88, weights 125.65, MTP 3.07."""
    options = {"engine": "sglang", "bytes_per_token": 1024.0, "max_model_len": 1000, "total_gib": 140.4}
    found = kv_capacity(utilization=0.88, weights_gib=125.65, **options)
    assert found["starts"] is False
    assert found.rows[0]["budget"]["fraction"] * 140.4 == pytest.approx(123.55, abs=0.005)
    more = kv_capacity(utilization=0.88, weights_gib=125.65 + 3.07, **options)
    assert more["utilization_needed"] - found["utilization_needed"] == pytest.approx(0.0222, abs=1e-3)
    assert kv_capacity(utilization=0.92, weights_gib=125.65, **options)["starts"] is True


def test_published_concurrency_calculator() -> None:
    """vLLM's calculator for GLM-5.3 (vllm.ai/blog-assets/interactive_pages/hisparse_concurrency_calculator.html).

    Baseline on an H200 at TP 8: 17.8 GiB for caches, blocks of 64 tokens and 3,052,800 bytes, whole requests.
    """
    plan = vllm.plan(of_model(load_model("glm-5.3"), "fp8", tp=8))
    assert (plan.block_size, plan.block_bytes) == (64, 3_052_800)
    lengths = (8192, 16384, 32768, 65536, 81920, 131072, 262144, 524288)
    assert [int(plan.concurrency(17.8 * GIB, n)) for n in lengths] == [48, 24, 12, 6, 4, 3, 1, 0]
    assert longest(plan, 17.8 * GIB) == 400_640


# ---- SGLang, TensorRT-LLM, llama.cpp and others


def test_s01_sglang_prints_gib_as_gb() -> None:
    found = kv_capacity("qwen3-235b-a22b", engine="sglang", kv_dtype="bf16", tp=4, tokens=367404, max_model_len=40960)
    sizes = found.rows[0]["details"]
    assert (sizes["k_gib"], sizes["v_gib"]) == pytest.approx((8.23, 8.23), abs=0.005)
    assert found["tokens"] == 367404
    assert printed_unit(8.23, 367404, 94 * 128 * 2) == "GiB"


def test_s02_indexer_keys_are_counted() -> None:
    """https://github.com/sgl-project/sglang/pull/11309: DeepSeek-V3.2 with data-parallel attention."""
    layout = of_model(load_model("deepseek-v3.2"), "fp8_row")
    assert layout.bytes_per_token == 48068 == 61 * (656 + 132)
    assert sglang.sizes(layout, 975424)["kv_gib"] == pytest.approx(43.67, abs=0.01)


def test_s04_keys_and_values_apart() -> None:
    sizes = sglang.sizes(of_model(load_model("llama-3.1-8b"), "bf16"), 38141)
    assert (sizes["k_gib"], sizes["v_gib"]) == pytest.approx((2.33, 2.33), abs=0.005)


def test_s06_latent_and_rotary_part() -> None:
    """https://github.com/ggml-org/llama.cpp/pull/11446: DeepSeek-R1 at 32,768 in f16."""
    layout = of_model(load_model("deepseek-r1"), "f16")
    assert llamacpp.sizes(layout, 32768)["latent_mib"] == 1952.0
    assert llamacpp.sizes(layout, 32768)["rope_mib"] == 244.0
    assert llamacpp.plan(layout).needed(32768) == 2196 * 2**20


def test_s08_blocks_of_32_values() -> None:
    """https://github.com/ggml-org/llama.cpp/issues/11200: q8_0, 41 layers on one card and 23 on the other."""
    found = kv_capacity("qwen3-32b", engine="llamacpp", kv_dtype="q8_0", max_model_len=32768, available_gib=24)
    sizes = found.rows[0]["details"]
    assert (sizes["k_mib"], sizes["v_mib"]) == (2176.0, 2176.0)
    ((_, layers, each),) = sizes["layer_mib"]
    assert (layers, 41 * each, 23 * each) == (64, 2788.0, 1564.0)
    assert found["needed_bytes"] == 4352 * 2**20


def test_s10_cells_and_recurrent_state() -> None:
    """https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1862: Qwen3.6-27B at 262,144, 4 slots."""
    from roofline.models.kv import KvCache, Part

    state = 48 * 128 * 128 * 4 + 10240 * 3 * 4
    cache = KvCache("float16", 1, (Part("gated_delta", 48, 0.0, None, state), Part("gqa", 16, 2 * 4 * 256 * 2.0, None)))
    layout = of_bytes(1.0)._replace(cache=cache)
    assert llamacpp.sizes(layout, 262144, slots=4)["recurrent_mib"] == 598.5
    assert llamacpp.plan(layout, slots=4).needed(262144) == (16384 + 598.5) * 2**20


def test_s10_states_are_float32_whatever_the_checkpoint_says() -> None:
    found = kv_capacity("qwen3.5-122b-a10b", engine="llamacpp", kv_dtype="f16", max_model_len=4096, available_gib=1)
    assert found.rows[0]["details"]["recurrent_mib"] * 2**20 == 36 * (64 * 128 * 128 * 4 + 12288 * 3 * 4)


def test_s12_bytes_per_token_behind_a_log() -> None:
    """https://github.com/NVIDIA/TensorRT-LLM/issues/1400: an old model with as many key/value heads as heads."""
    assert implied_bytes_per_token(69524783104, 132608) == of_shape(32, 32, 128, "fp16").bytes_per_token == 524288
    assert trtllm.plan(of_shape(32, 32, 128, "fp16")).tokens(69524783104) == 132608


@pytest.mark.parametrize(("tp", "free", "batch"), [(1, 42.0, 27), (2, 58.3, 75), (4, 65.7, 169)])
def test_s14_measured_batches(tp: int, free: float, batch: int) -> None:
    """aiconfigurator, tests/integration/test_trtllm_kv_cache_capacity.py: Qwen3-32B-FP8, 5,096 tokens, fraction 0.8."""
    options = {"engine": "trtllm", "kv_dtype": "bf16", "tp": tp, "max_model_len": 5096, "utilization": 0.8}
    found = kv_capacity("qwen3-32b", free_gib=free, **options)
    assert abs(found["concurrency"] - batch) <= max(1, 0.02 * batch)


def test_s14_growth_is_more_than_linear_because_weights_shrink() -> None:
    options = {"engine": "trtllm", "kv_dtype": "bf16", "max_model_len": 5096, "utilization": 0.8, "total_gib": 79.18}
    found = [
        kv_capacity("qwen3-32b", tp=tp, weights_gib=32.0 / tp, activation_gib=5.2, **options)["concurrency"]
        for tp in (1, 2, 4)
    ]
    for got, measured in zip(found, (27, 75, 169), strict=True):
        assert abs(got - measured) <= max(1, 0.02 * measured)


def test_s16_block_size_and_unit_behind_a_log() -> None:
    """https://github.com/guoqingbao/xinfer/issues/195: 8,192 blocks, 524,288 tokens, "48.0 GB"."""
    per_token = of_model(load_model("qwen3-30b-a3b"), "bf16").bytes_per_token
    assert 524288 // 8192 == 64
    assert implied_bytes_per_token(48 * GIB, 524288) == per_token == 98304
    assert printed_unit(48.0, 524288, per_token) == "GiB"
    assert printed_unit(51.54, 524288, per_token) == "GB"
    assert printed_unit(50.0, 524288, per_token) == "neither"


# ---- laws


def plans(name: str, tp: int = 1) -> list[object]:
    model = load_model(name)
    return [module.plan(of_model(model, "auto", tp=tp)) for module in (vllm, sglang, trtllm, llamacpp)]


@pytest.mark.parametrize("name", [*DENSE, *MIXES, "deepseek-v3.2", "glm-5.2", "nemotron-h-56b"])
def test_what_is_needed_fits_into_what_is_needed(name: str) -> None:
    for plan in plans(name):
        for length, requests in ((1, 1), (1000, 1), (100_000, 3)):
            need = plan.needed(length, requests)  # type: ignore[attr-defined]
            assert longest(plan, need, requests) >= length  # type: ignore[arg-type]
            assert plan.concurrency(need + 1e7, length) > 0.99 * requests - 0.02  # type: ignore[attr-defined]


@laws
@given(st.sampled_from(DENSE + MIXES), st.floats(0, 400), st.floats(0, 400), st.integers(1, 300_000))
def test_more_memory_never_holds_less(name: str, a: float, b: float, length: int) -> None:
    low, high = sorted((a * GIB, b * GIB))
    for plan in plans(name):
        first, second = hold(plan, low, length), hold(plan, high, length)  # type: ignore[arg-type]
        assert first.tokens <= second.tokens
        assert first.concurrency <= second.concurrency
        assert first.longest <= second.longest
        assert first.starts <= second.starts
        assert first.missing >= second.missing


@laws
@given(st.sampled_from(DENSE), st.floats(1, 300), st.floats(0.01, 1), st.floats(0.01, 1), st.floats(0, 60))
def test_capacity_is_monotone_in_utilisation(name: str, total: float, a: float, b: float, weights: float) -> None:
    low, high = sorted((a, b))
    for rule in ("of_total", "of_free"):
        budgets = [Budget(rule, total * GIB, part, weights * GIB, 0.0, 0.0).available for part in (low, high)]
        assert budgets[0] <= budgets[1] or weights > total
        budget = Budget(rule, total * GIB, low, weights * GIB, 0.0, 0.0)
        if total > weights:
            again = budget._replace(fraction=budget.fraction_for(GIB)).available
            assert again == pytest.approx(GIB, rel=1e-6)


@laws
@given(st.sampled_from(DENSE), st.floats(0.1, 100), st.integers(1, 200_000))
def test_dense_models_are_whole_blocks_of_the_exact_bytes(name: str, size: float, length: int) -> None:
    layout = of_model(load_model(name), "bf16")
    plan = vllm.plan(layout)
    blocks = plan.blocks(size * GIB)
    assert blocks == int(size * GIB // (16 * layout.bytes_per_token))
    assert plan.concurrency(size * GIB, length) == blocks / math.ceil(length / 16)
    assert plan.needed(length) >= layout.cache.at(length)
    assert plan.needed(length) - layout.cache.at(length) < 16 * layout.bytes_per_token


@pytest.mark.parametrize("name", ["deepseek-v3", "deepseek-v3.2", "kimi-k2", "glm-5"])
def test_latent_bytes_do_not_depend_on_tp(name: str) -> None:
    model = load_model(name)
    sizes = {of_model(model, "bf16", tp=tp).bytes_per_token for tp in (1, 2, 4, 8)}
    assert len(sizes) == 1


@pytest.mark.parametrize("name", DENSE)
def test_key_value_heads_divide_down_to_one(name: str) -> None:
    model = load_model(name)
    heads = model.shape["kv_heads"]
    whole = of_model(model, "bf16").bytes_per_token
    for tp in (1, 2, 4, 8, 16):
        assert of_model(model, "bf16", tp=tp).bytes_per_token == whole / min(tp, heads)


def test_fp8_halves_the_payload_and_not_the_scales() -> None:
    for name in ("llama-3.1-8b", "gpt-oss-120b", "deepseek-v3"):
        model = load_model(name)
        assert of_model(model, "fp8").all_rows * 2 == of_model(model, "bf16").all_rows
    llama = load_model("llama-3.1-8b")
    scaled = of_model(llama, "fp8_token_head")
    assert scaled.bytes_per_token - of_model(llama, "fp8").bytes_per_token == 32 * 2 * 8 * 4
    assert of_shape(32, 8, 128, "fp8_token_head").bytes_per_token == scaled.bytes_per_token
    assert of_model(llama, "nvfp4").bytes_per_token == 65536 * 9 / 16
    row = of_model(load_model("deepseek-v3"), "fp8_row").bytes_per_token
    assert row == 61 * (512 + 4 * 4 + 2 * 64) == 61 * 656


@pytest.mark.parametrize("name", [*DENSE, *MIXES])
def test_drafts_only_widen_states_and_add_prediction_layers(name: str) -> None:
    model = load_model(name)
    plain, wide = of_model(model, "bf16"), of_model(model, "bf16", drafts=2)
    state = [sum(p.layers * p.state_bytes for p in layout.cache.parts) for layout in (plain, wide)]
    assert (state[1] > state[0]) == any(layer.attention.shape.get("conv") for layer in model.layers)
    assert wide.bytes_per_token >= plain.bytes_per_token
    assert (wide.bytes_per_token > plain.bytes_per_token) == bool(model.mtp)


def test_groups_hold_every_layer_once() -> None:
    for name in MIXES:
        layout = of_model(load_model(name), "bf16")
        plan = vllm.plan(layout)
        layers = sum(part.layers for part in layout.cache.parts)
        assert sum(group.layers for group in plan.groups) == layers
        assert plan.group_size == max(group.layers for group in plan.groups)


def test_a_mix_of_almost_equal_numbers_takes_the_larger_group() -> None:
    """12 windowed and 13 full layers (gpt-oss-20b with a drafter) are two groups of 13, not three of 12."""
    from roofline.models.kv import KvCache, Part

    parts = (Part("window", 12, 2048.0, 128), Part("gqa", 13, 2048.0, None))
    plan = vllm.plan(of_bytes(1.0)._replace(cache=KvCache("bfloat16", 1, parts)))
    assert (len(plan.groups), plan.group_size) == (2, 13)


def test_context_parallel_ranks_deal_out_the_tokens() -> None:
    layout = of_model(load_model("deepseek-v3"), "bf16")
    one, four = vllm.plan(layout), vllm.plan(layout, cp=4)
    assert four.tokens(8 * GIB) == 4 * one.tokens(8 * GIB)
    assert four.request_blocks(100_000) == math.ceil(math.ceil(100_000 / 4) / 64)
    with pytest.raises(BadValue, match="cp"):
        vllm.plan(of_model(load_model("gpt-oss-120b"), "bf16"), cp=2)


def test_keys_and_values_of_different_types() -> None:
    model = load_model("qwen3-32b")
    layout = mixed(of_model(model, "q8_0"), of_model(model, "q4_0"))
    assert layout.bytes_per_token == 64 * 1024 * (34 + 18) / 32
    assert layout.keys + layout.values == layout.bytes_per_token
    found = kv_capacity(
        "qwen3-32b", engine="llamacpp", kv_dtype="q8_0", v_dtype="q4_0", max_model_len=256, available_gib=9
    )
    assert found.rows[0]["details"]["v_mib"] == 64 * 1024 * 18 / 32 * 256 / 2**20
    with pytest.raises(BadValue, match="v_dtype"):
        kv_capacity("qwen3-32b", v_dtype="q4_0", max_model_len=256, available_gib=9)


def test_weights_divide_as_they_are_sharded() -> None:
    for name in ("llama-3.1-8b", "deepseek-v3.2", "gpt-oss-120b"):
        model = load_model(name)
        whole = weight_bytes(model)
        assert whole == pytest.approx(model.weight_bytes.total)
        for tp in (2, 8):
            assert whole / tp <= weight_bytes(model, tp=tp) < whole / tp * 1.35
    llama = load_model("llama-3.1-8b")
    pairs, norms = 2 * 32 * 1024 * 4096 * 2, 65 * 4096 * 2  # keys and values, of 8 heads; norms are on every rank
    rest = weight_bytes(llama) - pairs - norms
    assert weight_bytes(llama, tp=32) == pytest.approx(rest / 32 + pairs / 8 + norms)
    model = load_model("deepseek-v3.2")
    assert weight_bytes(model, tp=1, expert_ranks=8) < weight_bytes(model, tp=1) / 4


# ---- the answer: inverse questions, layouts, refusals


def test_longest_context_for_several_requests_and_back() -> None:
    found = kv_capacity("llama-3.1-8b", kv_dtype="bf16", max_model_len=8192, available_gib=10, requests=7)
    length = found.rows[0]["longest_context_for_requests"]
    plan = vllm.plan(of_model(load_model("llama-3.1-8b"), "bf16"))
    assert plan.needed(length, 7) <= 10 * GIB < plan.needed(length + 1, 7)


def test_layout_that_serves_most() -> None:
    options = {"kv_dtype": "bf16", "total_gib": 79.18, "max_model_len": 8192, "gpus": 8}
    found = kv_capacity("llama-3.1-70b", **options)
    assert [(row["tp"], row["dp"]) for row in found.rows] == [(1, 8), (2, 4), (4, 2), (8, 1)]
    assert [row["starts"] for row in found.rows] == [False, True, True, True]
    best = found.rows[found["best"]]
    assert all(row["total_concurrency"] == row["dp"] * row["concurrency"] for row in found.rows)
    assert best["total_concurrency"] == max(row["total_concurrency"] for row in found.rows if row["starts"])
    odd = kv_capacity("qwen3-235b-a22b", available_gib=8, max_model_len=1000, gpus=24)
    assert [row["tp"] for row in odd["skipped"]] == [3, 6, 12, 24]


def test_dtype_that_is_needed() -> None:
    options = {"available_gib": "4.45", "max_model_len": 32000}
    found = kv_capacity("qwen3-32b", kv_dtype=["bf16", "fp8", "nvfp4"], **options)
    assert [row["starts"] for row in found.rows] == [False, True, True]


def test_ideal_beside_reserved() -> None:
    found = kv_capacity("gpt-oss-120b", kv_dtype="bf16", available_gib=10, max_model_len=8192)
    row = found.rows[0]
    assert row["ideal_bytes_per_request"] == load_model("gpt-oss-120b").kv("bf16").at(8192)
    assert row["ideal_concurrency"] > row["concurrency"]


def test_sglang_pools_of_windows_and_states() -> None:
    plan = sglang.plan(of_model(load_model("gpt-oss-120b"), "bf16"))
    assert plan.tokens(10 * GIB) == int(10 * GIB // (18 * 2048 * 1.8))
    plan = sglang.plan(of_model(load_model("qwen3.5-122b-a10b"), "bf16"))
    slots = plan.slots(20 * GIB)
    assert slots == int(20 * GIB * 0.9 / 1.9 // plan.state)
    assert plan.concurrency(20 * GIB, 10) == slots / 3
    assert plan.taken


def test_llamacpp_pads_cells_and_keeps_a_small_window_cache() -> None:
    plan = llamacpp.plan(of_model(load_model("gemma-4-26b-a4b"), "f16"))
    assert plan.cells(1000) == 1024
    assert plan.cells(131072, 1024) == 1536
    assert plan.cells(131072, 1024, slots=4) == 4608
    assert plan.needed(131072) == 5 * 4096 * 131072 + 25 * 8192 * 1536


def test_refusals() -> None:
    with pytest.raises(UnknownName, match="vllm, sglang"):
        kv_capacity("llama-3.1-8b", engine="vlm", available_gib=1)
    with pytest.raises(BadValue, match="available_gib: got '10GB'"):
        kv_capacity("llama-3.1-8b", available_gib="10GB")
    with pytest.raises(BadValue, match="printed size for caches"):
        kv_capacity("llama-3.1-8b")
    with pytest.raises(BadValue, match="mem_fraction_static"):
        kv_capacity("llama-3.1-8b", engine="sglang", total_gib=80)
    with pytest.raises(BadValue, match="utilization"):
        kv_capacity("llama-3.1-8b", utilization=90, total_gib=80)
    with pytest.raises(BadValue, match="max_model_len"):
        kv_capacity(bytes_per_token=1.0, available_gib=1)
    with pytest.raises(BadValue, match="max_model_len"):
        kv_capacity("llama-3.1-8b", available_gib=1, max_model_len=0)
    with pytest.raises(BadValue, match="kv_dtype"):
        kv_capacity("llama-3.1-8b", available_gib=1, kv_dtype="fp3")
    with pytest.raises(BadValue, match="latent rows"):
        kv_capacity("deepseek-v3", available_gib=1, kv_dtype="nvfp4")
    with pytest.raises(BadValue, match="tp"):
        kv_capacity("llama-3.1-8b", available_gib=1, tp=3)
    with pytest.raises(UnknownName, match="option"):
        kv_capacity("llama-3.1-8b", available_gib=1, activation=3)
    with pytest.raises(BadValue, match="one of: a model"):
        kv_capacity("llama-3.1-8b", available_gib=1, bytes_per_token=2.0)
    with pytest.raises(BadValue, match="one accelerator"):
        kv_capacity("llama-3.1-8b", ["h100-sxm", "h200-sxm"])
    with pytest.raises(BadValue, match="free_gib"):
        kv_capacity("llama-3.1-8b", free_gib=40)


def test_rows_that_do_not_divide_have_no_page() -> None:
    from roofline.models.kv import KvCache, Part

    parts = (Part("window", 4, 96.0, 128), Part("gqa", 4, 64.0, None))
    with pytest.raises(NoAnswer, match="no common page"):
        vllm.plan(of_bytes(1.0)._replace(cache=KvCache("bfloat16", 1, parts)))


def test_the_card_gives_the_memory() -> None:
    found = kv_capacity("llama-3.1-8b", "h100-sxm", kv_dtype="bf16", max_model_len=8192)
    assert found["starts"]
    assert found["data_digest"]
    assert any("upper bound" in note for note in found["notes"])


def test_every_answer_is_a_json_document() -> None:
    import json

    for name in (*DENSE, *MIXES):
        for engine in ("vllm", "sglang", "trtllm", "llamacpp"):
            found = kv_capacity(name, engine=engine, available_gib="20.5", max_model_len=4096)
            assert json.loads(found.to_json())["schema"] == "roofline/kv-capacity/1"
        assert json.loads(kv_show(name).to_json())["rows"]
