"""Plans of layers that are not the usual ones: borrowed caches, cross-attention, windows, chunks, blocks, narrow
values."""

from __future__ import annotations

from typing import Any

import pytest

from roofline.models import Model, load_model, read_config
from roofline.plan import Deployment, Step, UseCost, Workload, plan


def _read(**keys: Any) -> Model:
    return read_config({"torch_dtype": "bfloat16", **keys}, "test.json", "test")


def named(step: Step) -> dict[str, UseCost]:
    return {c.use.name: c for c in step.costs()}


def test_layers_that_borrow_a_cache_append_nothing_and_project_no_keys() -> None:
    """Gemma 3n, defaults of transformers: 20 of 35 layers own a cache, all attend; the last 15 keep idle k and v
    weights."""
    model = _read(
        model_type="gemma3n",
        text_config={
            "model_type": "gemma3n_text",
            "num_kv_shared_layers": 15,
            "num_hidden_layers": 35,
            "sliding_window": 512,
            "num_key_value_heads": 2,
            "head_dim": 256,
            "intermediate_size": [16_384] * 35,
            "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 7,
        },
    )
    found = named(plan(model, Workload("decode", context=4000)))
    assert found["cache append"].use.count == 20
    assert (found["windowed core"].use.count, found["attention core"].use.count) == (28, 7)
    assert found["windowed core"].bytes < found["attention core"].bytes
    idle = sum(w.elements for w in model.layers[-1].attention.weights if not w.active)
    assert idle == 2 * 2 * 256 * 2048 + 256
    read = {w for u in plan(model).uses for w in u.weights}
    assert not any(".k_proj" in w and w.startswith("model.language_model.layers.34.") for w in read)


def test_cross_attention_makes_its_keys_in_the_prefill_only() -> None:
    """Llama-3.2-Vision: 8 cross layers over 6,404 image tokens; decode reads their cache and no k or v weights."""
    model = _read(
        model_type="mllama",
        text_config={
            "model_type": "mllama_text_model",
            "hidden_size": 4096,
            "num_hidden_layers": 40,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "intermediate_size": 14_336,
            "vocab_size": 128_256,
            "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38],
            "tie_word_embeddings": False,
        },
    )
    decode = named(plan(model, Workload("decode", context=4000, image_tokens=6404)))
    prefill = named(plan(model, Workload("oneshot", q_len=100, image_tokens=6404)))
    core = decode["cross-attention core"]
    assert core.use.count == 8
    assert core.flops == 4 * 32 * 128 * 6404
    assert core.bytes == 6404 * 4096 + 2 * 32 * 128 * 2
    assert "keys and values of image tokens" not in decode
    assert prefill["keys and values of image tokens"].flops == 2 * 6404 * 4096 * 2 * 1024
    assert prefill["cross-attention core"].flops == 100 * core.flops
    assert decode["attention core"].use.count == 32


def test_windows_stop_growing_and_chunks_start_again() -> None:
    """gpt-oss: 18 of 36 layers see 128 keys.  Llama 4: 36 of 48 layers see their chunk of 8,192 only."""
    short, long = (named(plan(load_model("gpt-oss-120b"), Workload("decode", context=c))) for c in (1000, 100_000))
    assert short["windowed core"].flops == long["windowed core"].flops == 4 * 64 * 64 * 128
    assert (short["windowed core"].use.count, short["attention core"].use.count) == (18, 18)
    before, after = (
        named(plan(load_model("llama-4-scout"), Workload("decode", context=c)))["chunked core"] for c in (8191, 8192)
    )
    assert (before.flops, after.flops) == (4 * 40 * 128 * 8192, 4 * 40 * 128)
    assert before.use.count == 36


def test_values_narrower_than_keys() -> None:
    """MiMo-V2-Flash: keys of 192, values of 128: 2 (192 + 128) FLOP a pair and head; a row holds both."""
    model = _read(
        model_type="mimo_v2_flash",
        hidden_size=4096,
        num_hidden_layers=6,
        num_attention_heads=64,
        num_key_value_heads=4,
        head_dim=192,
        v_head_dim=128,
        swa_num_attention_heads=64,
        swa_num_key_value_heads=8,
        swa_head_dim=192,
        swa_v_head_dim=128,
        sliding_window=128,
        hybrid_layer_pattern=[0, 1, 1, 1, 1, 0],
        intermediate_size=16_384,
        moe_intermediate_size=2048,
        n_routed_experts=256,
        num_experts_per_tok=8,
        moe_layer_freq=[0, 1, 1, 1, 1, 1],
        vocab_size=152_576,
        tie_word_embeddings=False,
    )
    core = named(plan(model, Workload("decode", context=999)))["attention core"]
    assert core.flops == 2 * 320 * 64 * 1000
    assert core.bytes == 1000 * 4 * 320 * 2 + 64 * 320 * 2


def test_blocks_that_are_one_sublayer_each() -> None:
    """Nemotron-3-Nano: 23 Mamba-2 blocks, 6 of attention, 23 of experts; each has one norm."""
    counts = {u.name: u.count for u in plan(load_model("nemotron-3-nano-30b-a3b")).uses}
    assert (counts["recurrence, step form"], counts["attention core"], counts["routed experts, up"]) == (23, 6, 23)


@pytest.mark.parametrize("name", ["kimi-k3", "glm-5.3-flash", "qwen3.5-122b-a10b", "nemotron-h-56b"])
def test_a_recurrent_prefill_runs_blocks_and_reads_its_state_once(name: str) -> None:
    step, block = (named(plan(load_model(name), load)) for load in (Workload("decode"), Workload("oneshot", q_len=640)))
    one, many = step["recurrence, step form"], block["recurrence, block form"]
    assert one.use.count == many.use.count
    assert many.flops > 100 * one.flops
    state = one.use.values["state_heads"] * one.use.values["state_key"] * one.use.values["state_value"]
    assert many.bytes - 640 * (one.bytes - 2 * state * one.use.values["w_state"]) == pytest.approx(
        2 * state * many.use.values["w_state"]
    )


def test_states_divide_over_ranks_and_their_groups_do_not_vanish() -> None:
    """Nemotron-H: 8 groups of 256 heads; at TP 8 a rank has one group and 32 heads."""
    use = next(
        u for u in plan(load_model("nemotron-h-56b"), deployment=Deployment(tp=8)).uses if u.kernel == "ssm_step"
    )
    assert (use.values["state_heads"], use.values["state_groups"]) == (32, 1)


def test_zero_experts_do_no_work() -> None:
    """LongCat-Flash routes 12 picks over 512 experts and 256 that pass through: 8 real pairs a token on average."""
    step = plan(load_model("longcat-flash"), Workload("decode", batch=30))
    use = next(u for u in step.uses if u.kernel == "moe_gated")
    assert step.value(use, "routed_tokens") == pytest.approx(30 * 8)
    assert use.count == 28
