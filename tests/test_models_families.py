"""Families beyond the built-in models, each against the parameter total of a published checkpoint.

Totals are those of the safetensors summaries on the models' hub pages; the keys are those of their config.json.  Some
checkpoints store the table and the head once more beside a prediction module: `copies` counts those rows.
"""

from __future__ import annotations

from typing import Any

import pytest

from roofline.errors import BadFile
from roofline.models import Model, read_config

GLM4 = {
    "model_type": "glm4_moe", "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 151_552, "num_experts_per_tok": 8, "n_shared_experts": 1, "attention_bias": True,
    "num_nextn_predict_layers": 1,
}  # fmt: skip
GEMMA2 = {"model_type": "gemma2", "head_dim": 256, "vocab_size": 256_000, "tie_word_embeddings": True}
KIMI_LINEAR = {
    "model_type": "kimi_linear", "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 27,
    "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 163_840, "kv_lora_rank": 512,
    "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "num_experts": 256,
    "num_experts_per_token": 8, "num_shared_experts": 1, "moe_intermediate_size": 1024, "first_k_dense_replace": 1,
    "mla_use_nope": True,
    "linear_attn_config": {
        "kda_layers": [i for i in range(1, 27) if i % 4], "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
        "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4,
    },
}  # fmt: skip
CASES: dict[str, tuple[int, int, dict[str, Any]]] = {  # name: (total of the page, rows stored twice, keys)
    "gemma-2-2b": (2_614_341_888, 0, {
        **GEMMA2, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
        "num_key_value_heads": 4}),
    "gemma-2-9b": (9_241_705_984, 0, {
        **GEMMA2, "hidden_size": 3584, "intermediate_size": 14_336, "num_hidden_layers": 42, "num_attention_heads": 16,
        "num_key_value_heads": 8}),
    "gemma-3-1b": (999_885_952, 0, {
        "model_type": "gemma3_text", "hidden_size": 1152, "intermediate_size": 6912, "num_hidden_layers": 26,
        "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 262_144,
        "sliding_window": 512, "tie_word_embeddings": True}),
    "Kimi-Linear-48B-A3B": (49_122_681_728, 0, KIMI_LINEAR),
    "GLM-4.5-Air": (110_468_824_832, 2 * 151_552, {
        **GLM4, "hidden_size": 4096, "intermediate_size": 10_944, "moe_intermediate_size": 1408,
        "num_hidden_layers": 46, "n_routed_experts": 128, "first_k_dense_replace": 1}),
    "GLM-4.7-Flash": (31_221_488_576, 2 * 154_880, {
        "model_type": "glm4_moe_lite", "hidden_size": 2048, "intermediate_size": 10_240, "moe_intermediate_size": 1536,
        "num_hidden_layers": 47, "num_attention_heads": 20, "num_key_value_heads": 20, "vocab_size": 154_880,
        "n_routed_experts": 64, "num_experts_per_tok": 4, "n_shared_experts": 1, "first_k_dense_replace": 1,
        "q_lora_rank": 768, "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256,
        "num_nextn_predict_layers": 1, "topk_method": "noaux_tc"}),
    "Qwen1.5-MoE-A2.7B": (14_315_784_192, 0, {
        "model_type": "qwen2_moe", "hidden_size": 2048, "intermediate_size": 5632, "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 5632, "num_hidden_layers": 24, "num_attention_heads": 16,
        "num_key_value_heads": 16, "vocab_size": 151_936, "num_experts": 60, "num_experts_per_tok": 4,
        "use_sliding_window": False, "sliding_window": 32_768, "max_window_layers": 21}),
    "Phi-3-mini-4k": (3_821_079_552, 0, {
        "model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32_064, "sliding_window": 2047}),
    "Mistral-7B-v0.1": (7_241_732_096, 0, {
        "model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14_336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32_000, "sliding_window": 4096}),
    "Qwen2.5-7B": (7_615_616_512, 0, {
        "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18_944, "num_hidden_layers": 28,
        "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152_064}),
    "Qwen3-Coder-480B-A35B": (480_154_875_392, 0, {
        "model_type": "qwen3_moe", "hidden_size": 6144, "intermediate_size": 8192, "moe_intermediate_size": 2560,
        "num_hidden_layers": 62, "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128,
        "vocab_size": 151_936, "num_experts": 160, "num_experts_per_tok": 8}),
}  # fmt: skip


def _read(keys: dict[str, Any]) -> Model:
    return read_config({"dtype": "bfloat16", "tie_word_embeddings": False, **keys}, "test.json", "test")


@pytest.mark.parametrize("name", CASES)
def test_totals_of_published_checkpoints(name: str) -> None:
    total, copies, keys = CASES[name]
    params = _read(keys).params
    assert params.total + params.mtp + copies * keys["hidden_size"] == total


def test_kinds_of_those_families() -> None:
    assert _read(CASES["gemma-2-9b"][2]).kinds() == {"window": 21, "gqa": 21}
    assert _read(CASES["gemma-3-1b"][2]).kinds() == {"window": 22, "gqa": 4}
    assert _read(CASES["Phi-3-mini-4k"][2]).kinds() == {"window": 32}
    assert _read(KIMI_LINEAR).kinds() == {"kda": 20, "mla": 7}
    assert "q_latent" not in _read(KIMI_LINEAR).shape


def test_gemma3_of_an_image_model_takes_the_documented_defaults() -> None:
    """google/gemma-3-4b: the text part names five keys; heads, widths and vocabulary are the family's defaults."""
    text = {
        "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10_240, "num_hidden_layers": 34,
        "sliding_window": 1024,
    }  # fmt: skip
    model = read_config({"model_type": "gemma3", "text_config": text, "vision_config": {}}, "test.json", "test")
    taken = {t.key: t.value for t in model.defaults_taken}
    assert taken["text_config.num_attention_heads"] == 8
    assert taken["text_config.vocab_size"] == 262_208
    assert model.params.total / 1e9 == pytest.approx(3.88, abs=0.005)  # 4.30 B with the vision tower's 0.42
    assert model.kv("bf16").bytes_per_token == 5 * 2 * 4 * 256 * 2
    assert any("vision_config" in note for note in model.notes)


def test_step_gives_windowed_layers_heads_of_their_own() -> None:
    """stepfun-ai/Step-3.7-Flash as published: 96 query heads in windowed layers, a list of kinds that also holds the
    three prediction modules, experts named by number; the backbone is given as 196.81 B parameters."""
    text = {
        "model_type": "step3p5", "hidden_size": 4096, "intermediate_size": 11_264, "num_hidden_layers": 45,
        "num_attention_heads": 64, "num_attention_groups": 8, "head_dim": 128, "vocab_size": 128_896,
        "sliding_window": 512, "layer_types": (["full_attention"] + ["sliding_attention"] * 3) * 12,
        "attention_other_setting": {"num_attention_heads": 96, "num_attention_groups": 8, "head_dim": 128},
        "moe_layers_enum": ",".join(str(i) for i in range(3, 45)), "moe_num_experts": 288, "moe_top_k": 8,
        "moe_intermediate_size": 1280, "share_expert_dim": 1280, "num_nextn_predict_layers": 3,
        "use_moe_router_bias": True, "tie_word_embeddings": False,
    }  # fmt: skip
    model = read_config({"model_type": "step3p7", "text_config": text, "dtype": "bfloat16"}, "test.json", "test")
    assert model.kinds() == {"gqa": 12, "window": 33}
    assert model.layers[1].attention.shape["heads"] == 96
    assert model.params.total / 1e9 == pytest.approx(196.81, abs=0.2)


def test_nemotron_3_super_has_experts_in_a_narrower_space_and_a_module_of_two_blocks() -> None:
    """nvidia/NVIDIA-Nemotron-3-Super-120B-A12B: 120.6 B parameters, 12.7 B active with the embedding (model card)."""
    word = "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME"
    keys = {
        "model_type": "nemotron_h", "hidden_size": 4096, "vocab_size": 131_072, "num_hidden_layers": 88,
        "hybrid_override_pattern": word, "mtp_hybrid_override_pattern": "*E", "num_nextn_predict_layers": 1,
        "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "mamba_num_heads": 128,
        "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4, "intermediate_size": 2688,
        "moe_intermediate_size": 2688, "moe_latent_size": 1024, "moe_shared_expert_intermediate_size": 5376,
        "n_routed_experts": 512, "n_shared_experts": 1, "num_experts_per_tok": 22,
    }  # fmt: skip
    model = _read(keys)
    assert model.kinds() == {"mamba2": 40, "none": 40, "gqa": 8}
    assert model.params.total / 1e9 == pytest.approx(120.6, abs=0.1)
    assert model.params.active_with_embedding / 1e9 == pytest.approx(12.7, abs=0.1)
    assert [layer.attention.kind for layer in model.mtp] == ["gqa", "none"]
    listed = {"M": "mamba", "E": "moe", "*": "attention"}
    blocks = {k: v for k, v in keys.items() if k not in ("hybrid_override_pattern", "num_hidden_layers")}
    again = _read({**blocks, "layers_block_type": [listed[letter] for letter in word]})
    assert again.params == model.params
    with pytest.raises(BadFile, match=r"hybrid_override_pattern\[2\]: got 'X'"):
        _read({**keys, "hybrid_override_pattern": "MEX" + word[3:]})
    with pytest.raises(BadFile, match="num_hidden_layers: got 87"):
        _read({**keys, "num_hidden_layers": 87})


def test_qwen36_adds_up_to_its_shards() -> None:
    """Qwen/Qwen3.6-35B-A3B: 71.9036 GB of bf16 tensors in 26 shards, of which the vision tower is 446,571,248 elements
    (27 blocks 1152 wide, FFN 4304, a merger of 4608 to 2048; summed by hand) and one prediction layer."""
    text = {
        "model_type": "qwen3_5_moe_text", "hidden_size": 2048, "num_hidden_layers": 40, "num_attention_heads": 16,
        "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 248_320, "num_experts": 256, "num_experts_per_tok": 8,
        "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "full_attention_interval": 4,
        "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "attn_output_gate": True,
        "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False, "dtype": "bfloat16",
    }  # fmt: skip
    model = read_config({"model_type": "qwen3_5_moe", "text_config": text, "tie_word_embeddings": False}, "t.json", "t")
    assert model.kinds() == {"gated_delta": 30, "gqa": 10}
    assert 2 * (model.params.total + model.params.mtp + 446_571_248) == pytest.approx(71.9036e9, abs=5e4)


def test_dense_layers_of_qwen_moe() -> None:
    keys = {**CASES["Qwen3-Coder-480B-A35B"][2], "num_hidden_layers": 6}
    assert [x.ffn.kind for x in _read({**keys, "mlp_only_layers": [0, 3]}).layers] == (["dense", "moe", "moe"] * 2)
    assert [x.ffn.kind for x in _read({**keys, "decoder_sparse_step": 2}).layers] == ["dense", "moe"] * 3
    with pytest.raises(BadFile, match=r"mlp_only_layers\[0\]: got 6"):
        _read({**keys, "mlp_only_layers": [6]})


def test_llama4_maverick_alternates_dense_and_expert_layers() -> None:
    """meta-llama/Llama-4-Maverick-17B-128E: 400 B; 401.58 B on the page with the vision tower's 0.87 B."""
    text = {
        "model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16_384,
        "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
        "vocab_size": 202_048, "num_local_experts": 128, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2,
        "attention_chunk_size": 8192,
    }  # fmt: skip
    model = read_config({"model_type": "llama4", "text_config": text, "tie_word_embeddings": False}, "t.json", "t")
    assert model.params.total / 1e9 == pytest.approx(401.58 - 0.87, abs=0.02)
    assert [layer.ffn.kind for layer in model.layers[:4]] == ["dense", "moe", "dense", "moe"]
    assert [layer.attention.kind for layer in model.layers[:4]] == ["chunked", "chunked", "chunked", "gqa"]


def test_contradictory_layer_lists_of_kimi_linear_are_refused() -> None:
    def changed(**parts: Any) -> dict[str, Any]:
        return {**KIMI_LINEAR, "linear_attn_config": {**KIMI_LINEAR["linear_attn_config"], **parts}}  # type: ignore[dict-item]

    for keys, place in (
        (changed(full_attn_layers=[4, 8, 12, 16, 20, 24]), "linear_attn_config.full_attn_layers"),
        (changed(full_attn_layers=[3, 8, 12, 16, 20, 24, 27]), "linear_attn_config.full_attn_layers[0]"),
        (changed(kda_layers=[0]), "linear_attn_config.kda_layers[0]"),
        (changed(head_dim=None), "linear_attn_config.head_dim"),
    ):
        with pytest.raises(BadFile) as caught:
            _read(keys)
        assert caught.value.where == place


def test_sparse_attention_of_unknown_kinds_is_refused_by_name() -> None:
    """MiniMax-M3 and DeepSeek-V4 cache what is not modelled here; so does a known family with their keys."""
    for kind in ("minimax_m3", "deepseek_v4", "jamba", "rwkv"):
        with pytest.raises(BadFile, match=f"model_type: got '{kind}', expected one of .*deepseek_v3"):
            _read({**CASES["Qwen2.5-7B"][2], "model_type": kind})
    with pytest.raises(BadFile, match="linear_attn_config"):
        _read({**CASES["Qwen2.5-7B"][2], "linear_attn_config": {"kda_layers": [1]}})
