"""Bytes of the cache against published figures and engines' logs.  Exact: all are integers in the sources."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.errors import BadValue
from roofline.models import Model, list_models, load_model, read_config
from roofline.models.kv import KV_DTYPES, index_row

PER_TOKEN = [  # model, kv dtype, bytes per token of a long sequence, source
    ("deepseek-v3", "bf16", 70_272, "arXiv:2505.09343 table 1: 70.272 KB; M06"),
    ("deepseek-v3", "fp8", 35_136, "61 * 576"),
    ("qwen2.5-72b", "bf16", 327_680, "arXiv:2505.09343 table 1: 327.680 KB; M07"),
    ("llama-3.1-405b", "bf16", 516_096, "arXiv:2505.09343 table 1: 516.096 KB; M08"),
    ("llama-3.1-8b", "bf16", 131_072, "paged-KV article: 128 KiB"),
    ("llama-3.1-70b", "bf16", 327_680, "2 * 80 * 8 * 128 * 2"),
    ("deepseek-v3.2", "fp8_row", 40_016 + 8_052, "sglang #11309: 975,424 tokens in 43.67 GiB; M23"),
    ("deepseek-v3.2", "bf16", 70_272 + 8_052, "with fp8 indexer keys"),
    ("deepseek-v3.2", "fp8", 61 * (576 + 132), "M48 counts 128-byte keys without their scale"),
    ("glm-5", "fp8_row", 61_464, "M24: (656 + 132) * 78"),
    ("glm-5.2", "fp8_row", 53_940, "656 * 78 + 132 * 21; K1"),
    ("glm-5.3", "fp8", 47_700, "vLLM concurrency calculator: 3,052,800 B for a block of 64 tokens"),
    ("glm-5.3-flash", "fp8", 11 * 512 + 11 * 33, "11 rows of 512 and 11 keys pooled by 4: 5,995"),
    ("kimi-k3", "bf16", 24 * 1152, "24 latent layers, 69 recurrent"),
    ("kimi-k2", "bf16", 70_272, "C04"),
    ("deepseek-v2-lite", "bf16", 31_104, "C01: 27 * 576 * 2"),
    ("qwen3-0.6b", "bf16", 114_688, "C13: head width 128, not 1024 / 16"),
    ("qwen3-32b", "bf16", 262_144, "LMCache #1769: 67.32 GiB for 275,760 tokens"),
    ("qwen3-30b-a3b", "fp8", 49_152, "V04"),
    ("mimo-7b", "bf16", 147_456, "C14"),
    ("nemotron-h-56b", "bf16", 40_960, "C07: 10 attention layers of 118"),
    ("gemma-4-26b-a4b", "bf16", 20_480, "C08: 5 full layers of 2 heads, 512 wide"),
    ("gpt-oss-120b", "bf16", 36_864, "C09: 18 full layers, head width 64"),
    ("gpt-oss-20b", "bf16", 24_576, "12 full layers of 2 * 8 * 64 * 2"),
    ("qwen3.5-122b-a10b", "fp8", 12 * 1024, "V18: 12 full layers of 1,024 B"),
    ("longcat-flash", "bf16", 56 * 1152, "two attentions in each of 28 blocks"),
    ("qwen3-32b", "q8_0", 139_264, "llama.cpp #11200: 4,352 MiB for 32,768 tokens of this shape"),
]


@pytest.mark.parametrize(("name", "dtype", "want", "source"), PER_TOKEN)
def test_bytes_per_token(name: str, dtype: str, want: int, source: str) -> None:
    assert load_model(name).kv(dtype).bytes_per_token == want, source


def test_ratios_of_the_insights_paper() -> None:
    """M09: 4.66 printed.  M10: 7.344; the paper prints 7.28, which its own bytes do not give."""
    names = ("deepseek-v3", "qwen2.5-72b", "llama-3.1-405b")
    v3, qwen, llama = (load_model(name).kv("bf16").bytes_per_token for name in names)
    assert qwen / v3 == pytest.approx(4.66, abs=0.005)
    assert llama / v3 == pytest.approx(7.344, abs=0.001)


def test_flashmla_counts_62_layers_for_128k_tokens() -> None:
    """FlashMLA's kernel notes: 8.72 GiB for one request of 128 K tokens, with the prediction layer (M21)."""
    kv = load_model("deepseek-v3").kv("bf16", mtp=True)
    assert kv.at(131_072) / 2**30 == pytest.approx(8.72, abs=0.005)


def test_indexer_key_rows() -> None:
    """vLLM v1/attention/backends/mla/indexer.py: 128 fp8 + 4; half of it + 4 in fp4 (M50)."""
    assert (index_row(128, "fp8"), index_row(128, "fp4"), index_row(128, "bfloat16")) == (132, 68, 256)


def test_a_latent_cache_is_not_divided_by_tensor_parallelism() -> None:
    """V05: five ranks of a TP8 DeepSeek-V3 print 107,312 tokens and more in about 7.02 GiB each."""
    kv = load_model("deepseek-v3").kv("bf16", tp=8)
    assert kv.bytes_per_token == 70_272
    assert kv.at(107_312) / 2**30 == pytest.approx(7.02, abs=0.005)


def test_key_value_heads_are_divided_then_replicated() -> None:
    """V01: Qwen3-235B at TP4 holds 48,128 B a token and rank; beyond 4 ranks every rank keeps one head."""
    model = load_model("qwen3-235b-a22b")
    found = [model.kv("bf16", tp=n).bytes_per_token for n in (1, 2, 4, 8, 16)]
    assert found == [192_512, 96_256, 48_128, 48_128, 48_128]
    with pytest.raises(BadValue, match=r"tp: got 3.*\[1, 2, 4, 8, 16, 32, 64\]"):
        model.kv("bf16", tp=3)


def test_windows_hold_at_most_their_span() -> None:
    """aiconfigurator #1537: gpt-oss-120b, fp8, 65,936 tokens: 1.1341 GiB, not the 2.2637 of 36 full layers (V23, whose
    windowed half holds 128 tokens)."""
    kv = load_model("gpt-oss-120b").kv("fp8")
    assert kv.at(65_936) / 2**30 == pytest.approx(1.1341, abs=0.0005)
    assert kv.by_kind == {"window": 18_432, "gqa": 18_432}
    assert kv.at(100) == 36 * 1024 * 100
    gemma = load_model("gemma-4-26b-a4b").kv("bf16")
    assert gemma.by_kind == {"window": 204_800, "gqa": 20_480}  # C08
    assert gemma.fixed_bytes_per_sequence == 204_800 * 1024
    scout = load_model("llama-4-scout").kv("bf16")  # C12: chunked layers keep at most 8,192 tokens
    assert scout.fixed_bytes_per_sequence == 36 * 4096 * 8192


def test_recurrent_states() -> None:
    """C07: Nemotron-H-56B in bf16 and with a float32 state; V18: 4,268,032 B for a layer of Qwen3.5-122B; llama.cpp
    prints 598.5 MiB for four cells of Qwen3.6-27B in float32 (S10); K3 keeps 96 x 128 x 128 in float32 a KDA layer."""
    nemotron = load_model("nemotron-h-56b")
    assert nemotron.kv("bf16").fixed_bytes_per_sequence == 459_620_352
    assert nemotron.kv("bf16", state_dtype="fp32").fixed_bytes_per_sequence == 912_605_184
    qwen = load_model("qwen3.5-122b-a10b").kv("fp8")
    assert qwen.fixed_bytes_per_sequence == 36 * 4_268_032
    k3 = load_model("kimi-k3").kv("bf16")
    assert k3.fixed_bytes_per_sequence == 69 * (96 * 128 * 128 * 4 + 3 * 12_288 * 3 * 2)
    small = _read(
        model_type="qwen3_5_text", hidden_size=5120, vocab_size=248_320, num_hidden_layers=64, num_attention_heads=24,
        num_key_value_heads=4, head_dim=256, intermediate_size=17_408, full_attention_interval=4,
        linear_num_key_heads=16, linear_num_value_heads=48, linear_key_head_dim=128, linear_value_head_dim=128,
        linear_conv_kernel_dim=4, tie_word_embeddings=False,
    ).kv("f16", state_dtype="f32", conv_dtype="f32")  # fmt: skip
    assert 4 * small.fixed_bytes_per_sequence == 598.5 * 2**20
    assert small.bytes_per_token * 262_144 == 16_384 * 2**20


def test_states_are_divided_over_ranks() -> None:
    one, four = (load_model("qwen3.5-122b-a10b").kv("fp8", tp=n).fixed_bytes_per_sequence for n in (1, 4))
    assert four == one / 4
    with pytest.raises(BadValue, match=r"tp"):
        load_model("kimi-k3").kv("bf16", tp=5)


def test_gemma_3n_layers_that_borrow_a_cache() -> None:
    """C16, defaults of transformers: 20 of 35 layers own a cache, 4 of them full; 285,212,672 B at 32,768 tokens."""
    model = _read(
        model_type="gemma3n",
        text_config={
            "model_type": "gemma3n_text", "num_kv_shared_layers": 15, "num_hidden_layers": 35, "sliding_window": 512,
            "num_key_value_heads": 2, "head_dim": 256, "intermediate_size": [16_384] * 35,
            "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 7,
        },
    )  # fmt: skip
    own = [layer for layer in model.layers if layer.attention.owner is None]
    assert (len(own), sum(layer.attention.kind == "gqa" for layer in own)) == (20, 4)
    kv = model.kv("bf16")
    assert (kv.bytes_per_token, kv.at(32_768)) == (8192, 285_212_672)
    assert {layer.attention.owner for layer in model.layers[20:]} == {18, 19}


def test_cross_attention_caches_image_tokens_once() -> None:
    """C18, Llama-3.2-Vision: 32 self layers, 8 cross layers; 6,404 image tokens take 209,846,272 B."""
    model = _read(
        model_type="mllama",
        text_config={
            "model_type": "mllama_text_model", "hidden_size": 4096, "num_hidden_layers": 40, "num_attention_heads": 32,
            "num_key_value_heads": 8, "intermediate_size": 14_336, "vocab_size": 128_256,
            "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38], "tie_word_embeddings": False,
        },
    )  # fmt: skip
    kv = model.kv("bf16")
    assert (kv.bytes_per_token, kv.image_token_bytes) == (131_072, 32_768)
    assert kv.at(0, image_tokens=6404) == 209_846_272


def test_hunyuan_shares_a_cache_between_two_layers() -> None:
    """C20, the fields of LMCache's modelconfig.json: 64 layers, share factor 2: 81,920 B a token, not 163,840."""
    model = _read(
        model_type="hunyuan", hidden_size=6400, num_hidden_layers=64, num_attention_heads=80, num_key_value_heads=8,
        intermediate_size=18_304, vocab_size=129_024, cla_share_factor=2, use_cla=True, num_experts=16, moe_topk=1,
        tie_word_embeddings=True,
    )  # fmt: skip
    assert model.kv("bf16").bytes_per_token == 81_920


def test_values_narrower_than_keys() -> None:
    """XiaomiMiMo/MiMo-V2-Flash: full layers 4 heads of 192 + 128, windows of 128 tokens with 8 heads."""
    model = _read(
        model_type="mimo_v2_flash", hidden_size=4096, num_hidden_layers=6, num_attention_heads=64,
        num_key_value_heads=4, head_dim=192, v_head_dim=128, intermediate_size=16_384, vocab_size=152_576,
        sliding_window=128,
        swa_num_attention_heads=64, swa_num_key_value_heads=8, swa_head_dim=192, swa_v_head_dim=128,
        hybrid_layer_pattern=[0, 1, 1, 1, 1, 0], moe_layer_freq=[0, 1, 1, 1, 1, 1], moe_intermediate_size=2048,
        n_routed_experts=256, n_shared_experts=None, num_experts_per_tok=8, tie_word_embeddings=False,
    )  # fmt: skip
    kv = model.kv("bf16")
    assert kv.bytes_per_token == 2 * 4 * (192 + 128) * 2
    assert kv.fixed_bytes_per_sequence == 4 * 8 * (192 + 128) * 2 * 128


def test_dtypes_that_do_not_exist_are_refused() -> None:
    with pytest.raises(BadValue, match="kv_dtype"):
        load_model("deepseek-v3").kv("fp7")
    with pytest.raises(BadValue, match="index_dtype"):
        load_model("deepseek-v3.2").kv("fp8", index_dtype="int8")


def _read(**keys: object) -> Model:
    return read_config(keys, "test.json", "test")


@settings(deadline=None, max_examples=80)
@given(
    name=st.sampled_from(list_models()), dtype=st.sampled_from(KV_DTYPES), tokens=st.integers(0, 300_000),
    tp=st.sampled_from((1, 2, 4, 8)),
)  # fmt: skip
def test_laws_of_every_model(name: str, dtype: str, tokens: int, tp: int) -> None:
    """Ranks hold at least the whole; more tokens never take fewer bytes; long sequences follow slope + fixed."""
    model = load_model(name)
    kv = model.kv(dtype)
    assert kv.at(tokens + 1) >= kv.at(tokens)
    widest = max((part.span or 0) for part in kv.parts)
    if tokens >= widest:
        assert kv.at(tokens) == pytest.approx(kv.bytes_per_token * tokens + kv.fixed_bytes_per_sequence, rel=1e-12)
    try:
        rank = model.kv(dtype, tp=tp)
    except BadValue:
        return
    assert kv.at(tokens) / tp <= rank.at(tokens) * (1 + 1e-12)
    assert rank.at(tokens) <= kv.at(tokens)
    if set(model.kinds()) <= {"mla", "dsa"}:
        assert rank.at(tokens) == kv.at(tokens)


@settings(deadline=None, max_examples=40)
@given(name=st.sampled_from(list_models()), tokens=st.integers(0, 100_000))
def test_fp8_halves_the_payload_and_not_the_indexer(name: str, tokens: int) -> None:
    model = load_model(name)
    states = sum(part.layers * part.state_bytes for part in model.kv("bf16").parts)
    keys = sum(
        index_row(layer.attention.shape["index_head_dim"], "fp8") / layer.attention.shape.get("index_pool", 1)
        for layer in model.layers
        if layer.attention.indexer == "full"
    )
    wide, narrow = (model.kv(dtype).at(tokens) - states - keys * tokens for dtype in ("bf16", "fp8"))
    assert wide == pytest.approx(2 * narrow, rel=1e-9, abs=1e-3)
