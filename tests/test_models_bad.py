"""Configurations that must be refused, with the place, and mistakes of other tools that must not come back.

The mistakes are those that were found when other calculators were run on the same configurations; each test is named
after one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roofline.errors import BadFile, RooflineError
from roofline.models import fits_positions, load_model, read_config

LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14_336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128_256, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16", "max_position_embeddings": 131_072,
}  # fmt: skip
MLA: dict[str, Any] = {
    "model_type": "deepseek_v32", "hidden_size": 7168, "intermediate_size": 18_432, "num_hidden_layers": 61,
    "num_attention_heads": 128, "num_key_value_heads": 128, "vocab_size": 129_280, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16", "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128, "v_head_dim": 128, "n_routed_experts": 256, "num_experts_per_tok": 8,
    "n_shared_experts": 1, "moe_intermediate_size": 2048, "first_k_dense_replace": 3, "index_n_heads": 64,
    "index_head_dim": 128, "index_topk": 2048, "scoring_func": "sigmoid",
}  # fmt: skip
GLM: dict[str, Any] = {**MLA, "model_type": "glm_moe_dsa", "num_hidden_layers": 6}

BAD = [  # the base, the change, the place that the error must name
    (LLAMA, {"num_hidden_layers": "32"}, "num_hidden_layers"),
    (LLAMA, {"num_hidden_layers": -1}, "num_hidden_layers"),
    (LLAMA, {"num_hidden_layers": 0}, "num_hidden_layers"),
    (LLAMA, {"num_hidden_layers": 10**9}, "num_hidden_layers"),
    (LLAMA, {"num_hidden_layers": 32.0}, "num_hidden_layers"),
    (LLAMA, {"num_hidden_layers": True}, "num_hidden_layers"),
    (LLAMA, {"num_hidden_layers": None}, "num_hidden_layers"),
    (LLAMA, {"num_hidden_layers": float("nan")}, "num_hidden_layers"),
    (LLAMA, {"hidden_size": float("inf")}, "hidden_size"),
    (LLAMA, {"hidden_size": 10**12}, "hidden_size"),
    (LLAMA, {"hidden_size": [4096]}, "hidden_size"),
    (LLAMA, {"hidden_size": 4100}, "num_attention_heads"),
    (LLAMA, {"num_key_value_heads": 5}, "num_key_value_heads"),
    (LLAMA, {"num_attention_heads": 33}, "num_key_value_heads"),
    (LLAMA, {"tie_word_embeddings": "no"}, "tie_word_embeddings"),
    (LLAMA, {"torch_dtype": "int3"}, "torch_dtype"),
    (LLAMA, {"torch_dtype": 16}, "torch_dtype"),
    (LLAMA, {"model_type": None}, "model_type"),
    (LLAMA, {"model_type": "deepseek_v4"}, "model_type"),
    (LLAMA, {"model_type": ["llama"]}, "model_type"),
    (LLAMA, {"text_config": 5}, "text_config"),
    (LLAMA, {"kv_lora_rank": 512}, "kv_lora_rank"),
    (LLAMA, {"sliding_window": 4096}, "sliding_window"),
    (LLAMA, {"compress_ratios": [0, 4]}, "compress_ratios"),
    (LLAMA, {"num_kv_shared_layers": 4}, "num_kv_shared_layers"),
    (LLAMA, {"cla_share_factor": 2}, "cla_share_factor"),
    (LLAMA, {"sparse_attention_config": {"topk": 1}}, "sparse_attention_config"),
    (LLAMA, {"layer_types": ["full_attention"] * 31}, "layer_types"),
    (LLAMA, {"layer_types": ["full_attention"] * 31 + ["linear_attention"]}, "layer_types[31]"),
    (LLAMA, {"quantization_config": "fp8"}, "quantization_config"),
    (MLA, {"kv_lora_rank": None}, "kv_lora_rank"),
    (MLA, {"q_lora_rank": None}, "q_lora_rank"),
    (MLA, {"qk_rope_head_dim": -64}, "qk_rope_head_dim"),
    (MLA, {"qk_head_dim": 128}, "qk_head_dim"),
    (MLA, {"n_routed_experts": None}, "n_routed_experts"),
    (MLA, {"num_experts_per_tok": 257}, "num_experts_per_tok"),
    (MLA, {"first_k_dense_replace": 62}, "first_k_dense_replace"),
    (MLA, {"index_topk": 0}, "index_topk"),
    (MLA, {"index_topk": "2048"}, "index_topk"),
    (MLA, {"num_local_experts": 128}, "num_local_experts"),
    (GLM, {"indexer_types": ["full"] * 5}, "indexer_types"),
    (GLM, {"indexer_types": ["shared"] + ["full"] * 5}, "indexer_types[0]"),
    (GLM, {"indexer_types": ["full"] * 6, "index_topk_freq": 2, "index_skip_topk_offset": 2}, "indexer_types[2]"),
    (GLM, {"index_topk_pattern": "FSX"}, "index_topk_pattern"),
    (GLM, {"mlp_layer_types": ["dense"] + ["sparse"] * 5}, "mlp_layer_types"),
]


@pytest.mark.parametrize(("base", "change", "place"), BAD)
def test_bad_values_are_refused_with_their_place(base: dict[str, Any], change: dict[str, Any], place: str) -> None:
    with pytest.raises(BadFile) as caught:
        read_config({**base, **change}, "my/config.json", "x")
    assert caught.value.exit_code == 3
    assert caught.value.where == place
    assert str(caught.value).startswith(f"my/config.json: {place}: got ")


@pytest.mark.parametrize(
    "key", ["hidden_size", "vocab_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"]
)
def test_required_keys_are_not_guessed(key: str) -> None:
    with pytest.raises(BadFile, match=f"{key}: got nothing"):
        read_config({k: v for k, v in LLAMA.items() if k != key}, "c.json", "x")


def test_q_lora_rank_missing_is_not_the_same_as_null() -> None:
    with pytest.raises(BadFile, match="q_lora_rank: got nothing"):
        read_config({k: v for k, v in MLA.items() if k != "q_lora_rank"}, "c.json", "x")


def test_layout_keys_that_say_nothing_are_no_obstacle() -> None:
    off = {"num_kv_shared_layers": 0, "sliding_window": None, "use_cla": False, "layer_types": ["full_attention"] * 32}
    assert read_config({**LLAMA, **off}, "c.json", "x").kinds() == {"gqa": 32}


def test_the_bases_themselves_are_good() -> None:
    assert read_config(LLAMA, "c.json", "x").params.total == 8_030_261_248
    assert read_config(MLA, "c.json", "x").kinds() == {"dsa": 61}
    shared = {**GLM, "index_topk_freq": 2, "index_skip_topk_offset": 2}
    model = read_config(shared, "c.json", "x")
    assert [layer.attention.indexer for layer in model.layers] == ["full", "full", "shared", "full", "shared", "full"]
    pattern = read_config({**GLM, "index_topk_pattern": "FSFSFS"}, "c.json", "x")
    assert [layer.attention.indexer for layer in pattern.layers][:2] == ["full", "shared"]


TEXTS = [  # what a file holds, and a part of the message
    ("", "line 1 column 1"),
    ("[1, 2]", "expected a JSON object"),
    ('{"model_type": "llama", "hidden_size": 4096', "line 1 column"),
    ('{\n<<<<<<< HEAD\n "a": 1\n=======\n}', "line 2 column 1"),
    ('{"model_type": "llama", "num_hidden_layers": 32, "num_hidden_layers": 64}', "num_hidden_layers"),
    ('{"hidden_size": NaN}', "hidden_size"),
    ('{"hidden_size": 1e999}', "hidden_size"),
    ('{"hidden_size": ' + "9" * 5000 + "}", ""),
    ("[" * 100_000, "nested"),
    ('{"a": "' + "x" * 2_100_000 + '"}', "2 MB"),
    ("\x00\x01\x02", ""),
]


@pytest.mark.parametrize(("text", "part"), TEXTS)
def test_hostile_files_are_refused(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(BadFile) as caught:
        load_model(str(path))
    assert str(caught.value).startswith(str(path))
    assert part in str(caught.value)
    assert len(str(caught.value)) < 1500


def test_infinity_may_stand_in_a_key_that_is_not_used(tmp_path: Path) -> None:
    """NVIDIA's Nemotron-H config.json holds "time_step_limit": [0.0, Infinity]."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, "time_step_limit": [0.0, float("inf")]}))
    assert load_model(str(path)).params.total == 8_030_261_248
    path.write_text(json.dumps({**LLAMA, "hidden_size": float("inf")}))
    with pytest.raises(BadFile, match="hidden_size"):
        load_model(str(path))


def test_paths_that_are_no_configuration(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "raw.json").write_bytes(bytes(range(256)))
    for name in (tmp_path / "empty", tmp_path / "raw.json", tmp_path / "none.json", tmp_path / "a" / "config.json"):
        with pytest.raises(BadFile) as caught:
            load_model(str(name))
        assert caught.value.exit_code == 3
    for name in ("", "no such model", "x\0y", "a" * 5000):
        with pytest.raises(RooflineError):
            load_model(name)


def test_a_folder_and_a_named_file_load(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    (tmp_path / "My-Model_config.json").write_text(json.dumps(LLAMA))
    assert load_model(str(tmp_path)).id == tmp_path.name
    assert load_model(str(tmp_path / "My-Model_config.json")).id == "My-Model"
    assert load_model(str(tmp_path / "config.json")).source.file.endswith("config.json")


def test_context_beyond_the_positions_warns() -> None:
    model = read_config(LLAMA, "c.json", "x")
    assert fits_positions(model, 131_072) == ""
    assert "131072" in fits_positions(model, 131_073)


# ---- mistakes of other tools --------------------------------------------------------------------------------------


def test_not_dense_because_of_a_key_name() -> None:
    """A calculator looked for num_routed_experts and read DeepSeek-V3 (n_routed_experts) as dense."""
    assert load_model("deepseek-v3").layers[10].ffn.kind == "moe"
    assert load_model("deepseek-v3").layers[10].ffn.shape["experts"] == 256


def test_not_all_layers_as_experts() -> None:
    """Others count the 3 dense layers of DeepSeek-V3 as experts (702 B) or give 695.7, 672.15 or 11,500 B."""
    assert load_model("deepseek-v3").params.total == 671_026_419_200


def test_not_key_value_heads_for_a_latent_cache() -> None:
    """num_key_value_heads 128 is no cache: 1,748,992 and 3,997,696 B a token were given for 70,272."""
    kv = read_config({**MLA, "num_key_value_heads": 1}, "c.json", "x").kv("bf16")
    assert kv.bytes_per_token == read_config(MLA, "c.json", "x").kv("bf16").bytes_per_token == 78_324


def test_not_the_latent_without_its_rope_part() -> None:
    """62,464 and 124,928 B a token leave the 64 rotary columns out."""
    assert load_model("deepseek-v3").kv("bf16").bytes_per_token == 61 * (512 + 64) * 2


def test_not_the_stored_cache_times_topk_over_length() -> None:
    """Sparse attention stores every row: the slope does not depend on index_topk."""
    small = read_config({**MLA, "index_topk": 64}, "c.json", "x").kv("bf16")
    assert small.bytes_per_token == read_config(MLA, "c.json", "x").kv("bf16").bytes_per_token


def test_not_active_parameters_from_a_ratio() -> None:
    """max(8/256, 0.12) of 671 B gave 80.5 B active; others gave a negative number."""
    assert load_model("deepseek-v3").params.active_with_embedding / 1e9 == pytest.approx(37.55, abs=0.005)


def test_not_a_tied_head_because_it_is_missing() -> None:
    """A tool read Llama-3.1-8B as tied: 7.505 B instead of 8.030 B."""
    assert not load_model("llama-3.1-8b").tied


def test_not_sliding_layers_dropped() -> None:
    """gpt-oss-120b: 36,864 B alone forgets what the windows hold."""
    assert load_model("gpt-oss-120b").kv("bf16").fixed_bytes_per_sequence == 18 * 2048 * 128


def test_not_an_mtp_layer_because_the_class_is_deepseek() -> None:
    """Kimi-K2 runs DeepSeek-V3's class with num_nextn_predict_layers 0: 17.2 B were added."""
    assert load_model("kimi-k2").mtp == ()
    assert load_model("kimi-k2").params.mtp == 0


def test_not_a_window_that_is_switched_off() -> None:
    """Qwen2.5: sliding_window 131072 with use_sliding_window false, or without the switch."""
    keys = {**LLAMA, "model_type": "qwen2", "sliding_window": 131_072, "max_window_layers": 28}
    for extra in ({}, {"use_sliding_window": False}):
        assert read_config({**keys, **extra}, "c.json", "x").kinds() == {"gqa": 32}
    on = read_config({**keys, "use_sliding_window": True}, "c.json", "x")
    assert on.kinds() == {"gqa": 28, "window": 4}
    assert read_config({**LLAMA, "model_type": "mistral"}, "c.json", "x").kinds() == {"window": 32}
