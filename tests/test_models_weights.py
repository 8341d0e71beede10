"""Bytes of checkpoints by the dtypes they really store, scales included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roofline.errors import BadFile
from roofline.models import Weight, load_model, read_config
from roofline.models.quant import Format, Quantization

LLAMA_70B = {
    "model_type": "llama", "hidden_size": 8192, "intermediate_size": 28_672, "num_hidden_layers": 80, "head_dim": 128,
    "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128_256, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}  # fmt: skip
TINY = {
    "model_type": "llama", "hidden_size": 256, "intermediate_size": 384, "num_hidden_layers": 2, "head_dim": 64,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 512, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}  # fmt: skip
MATRICES = 2 * (256 * 64 * (4 + 2 + 2 + 4) + 3 * 256 * 384)  # of both layers
REST = 2 * (2 * 512 * 256 + 5 * 256)  # table, head and norms in bf16


def test_gpt_oss_checkpoints_are_425_bits_an_expert_weight() -> None:
    """C09 and vLLM's log (V10): 60.77 and 12.82 GiB; MX puts one 8-bit scale on 32 values of 4 bits."""
    for name, gib in (("gpt-oss-120b", 60.77), ("gpt-oss-20b", 12.82)):
        assert load_model(name).weight_bytes.total / 2**30 == pytest.approx(gib, abs=0.005)


def test_unquantised_models_take_two_bytes_a_parameter() -> None:
    """vLLM's log for Llama-3.1-8B and Qwen3-0.6B (V10): 14.96 and 1.11 GiB from parameters."""
    for name, gib in (("llama-3.1-8b", 14.96), ("qwen3-0.6b", 1.11)):
        assert load_model(name).weight_bytes.total / 2**30 == pytest.approx(gib, abs=0.005)
        assert load_model(name).weight_bytes.total == 2 * load_model(name).params.total


def test_fp8_blocks_of_deepseek_v3_with_their_scales() -> None:
    """Files of deepseek-ai/DeepSeek-V3: 688,586,727,753 B, headers of about 92,000 tensors included, and the table and
    head stored twice: the payload lies below by the headers, at most 200 B a tensor."""
    size = load_model("deepseek-v3").weight_bytes
    payload = size.total + size.mtp + 2 * 2 * 129_280 * 7168
    assert 0 < 688_586_727_753 - payload < 92_000 * 200


def test_second_file_sets_weights_and_cache(tmp_path: Path) -> None:
    """nvidia/Llama-3.1-70B-Instruct-FP8 (C21, L09): matrices 68,451,041,280 B, head in bf16, and an fp8 cache on
    "auto" that config.json alone does not show."""
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_70B))
    assert load_model(str(tmp_path)).kv().bytes_per_token == 327_680
    quant = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(quant))
    for place in (tmp_path, tmp_path / "config.json"):
        model = load_model(str(place))
        assert model.kv().bytes_per_token == 163_840
        assert model.kv("bf16").bytes_per_token == 327_680
        size = model.weight_bytes
        scales = 80 * 7 * 8  # a float32 for the weight and one for the input, of each matrix
        assert size.by_class["attention"] + size.by_class["dense_ffn"] == 68_451_041_280 + scales
        assert size.by_class["head"] == 2_101_346_304


@pytest.mark.parametrize(
    ("form", "bits", "extra"),
    [
        (Format("fp8", 8, per_tensor=8), 8, 8),
        (Format("mxfp4", 4, 1.0, 32), 4.25, 0),
        (Format("nvfp4", 4, 1.0, 16, per_tensor=8), 4.5, 8),
        (Format("int4", 4, 2.0, 32, per_tensor=16), 4.5, 16),
        (Format("int4", 4, 2.0, 128, zero_bits=4), 4 + 20 / 128, 0),
        (Format("int8", 8, 4.0), 8 + 32 / 1024, 0),
    ],
)
def test_bits_of_a_format(form: Format, bits: float, extra: int) -> None:
    """Bits an element of a 512 x 1024 matrix, and bytes a tensor."""
    weight = Weight("x.weight", (512, 1024), "attention", 3, 1)
    assert form.size(weight) == 3 * (512 * 1024 * bits / 8 + extra)


def test_partial_blocks_have_a_scale_of_their_own() -> None:
    form = Format("fp8_block", 8, 4.0, block=(128, 128))
    assert form.size(Weight("kv_a.weight", (576, 7168), "attention")) == 576 * 7168 + 5 * 56 * 4


SCHEMES = [
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, MATRICES + 4 * 2 * (4 + 2 + 2 + 4 + 6 + 6 + 6) + REST),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16}, MATRICES * 9 // 16 + 14 * 8 + REST),
    ({"quant_method": "awq", "bits": 4, "group_size": 128}, int(MATRICES * (0.5 + 2.5 / 128)) + REST),
    (
        {
            "quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
            "config_groups": {"g": {"targets": ["Linear"], "weights": {
                "num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": True}}},
        },
        MATRICES * 9 // 16 + 14 * 16 + REST,
    ),
    (
        {
            "quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {
                "model.layers.0.mlp.down_proj": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
                "lm_head": {"quant_algo": "FP8"}}},
        2 * MATRICES - 256 * 384 * 2 + (256 * 384 * 9 // 16 + 4) + REST - 512 * 256 + 8,
    ),
    ({"quant_method": "fp8", "modules_to_not_convert": ["mlp", "model.layers.0.self_attn"]}, None),
]  # fmt: skip


@pytest.mark.parametrize(("scheme", "want"), SCHEMES)
def test_schemes_on_a_small_model(scheme: dict[str, object], want: int | None) -> None:
    model = read_config({**TINY, "quantization_config": scheme}, "test.json", "test")
    if want is None:  # only the attention of layer 1 is left: a name, and a part of names
        want = REST + 2 * MATRICES - 256 * 64 * 12 + 4 * 4
    assert model.weight_bytes.total == want


def test_norms_routers_and_tables_keep_their_dtype() -> None:
    model = load_model("deepseek-v3.2")
    kept = {
        weight.kind
        for name, weight in model.tensors()
        if model.quantization.format_of(name, weight) is None and len(weight.shape) == 2
    }
    assert kept == {"embedding", "head", "router", "mtp", "indexer"}
    assert model.weight_bytes.by_dtype.keys() == {"bfloat16", "float32", "fp8_block"}


@pytest.mark.parametrize(
    ("scheme", "place"),
    [
        ({"quant_method": "bitsandbytes"}, "quantization_config.quant_method"),
        ({}, "quantization_config.quant_method"),
        ({"quant_method": "fp8", "weight_block_size": [128, 0]}, "quantization_config.weight_block_size"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP5"}, "quantization_config.quant_algo"),
        ({"quant_method": "awq", "bits": 5, "group_size": 128}, "quantization_config.bits"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 0}, "quantization_config.group_size"),
        ({"quant_method": "compressed-tensors", "config_groups": {}}, "quantization_config.config_groups"),
        (
            {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "NVFP4"},
            "quantization_config.kv_cache_quant_algo",
        ),
    ],
)
def test_unknown_schemes_are_refused_by_name(scheme: dict[str, object], place: str) -> None:
    with pytest.raises(BadFile) as caught:
        read_config({**TINY, "quantization_config": scheme}, "test.json", "test")
    assert caught.value.where.rstrip(".") == place


def test_an_empty_scheme_stores_the_model_dtype() -> None:
    weight = Weight("x.weight", (4, 4), "attention")
    assert Quantization().stored("x.weight", weight, "bfloat16") == ("bfloat16", 32)
