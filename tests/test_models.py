"""Model shapes and parameter counts against published numbers.

Counts are integers read off checkpoints or printed by other tools: equality is the only tolerance, unless a line says
that only a vendor's rounding is known.  Sources stand beside the numbers.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.errors import UnknownName
from roofline.models import Model, list_models, load_model, read_config

AIC = "github.com/ai-dynamo/aiconfigurator 095f58a, model_configs"
TOTALS = {  # model: (total, active without the input embedding, source of the number)
    "deepseek-v2-lite": (15_706_484_224, 2_451_435_008, "HF safetensors total of DeepSeek-V2-Lite"),
    "deepseek-v3": (671_026_419_200, 36_625_618_432, "without its MTP module; 671 B / 37 B in arXiv:2412.19437"),
    "kimi-k2": (1_026_408_232_448, 31_687_095_808, "Kimi-K2; 1.04 T / 32.6 B with its embedding in arXiv:2507.20534"),
    "llama-3.1-8b": (8_030_261_248, 7_504_924_672, "HF safetensors total; gpt-fast streams 7.505e9"),
    "llama-3.1-70b": (70_553_706_496, 69_503_033_344, "HF safetensors total"),
    "gpt-oss-120b": (116_829_156_672, 5_132_849_472, "116.83 B / 5.13 B, arXiv:2508.10925 table 1"),
    "gpt-oss-20b": (20_914_757_184, 3_608_307_264, "20.91 B / 3.61 B, arXiv:2508.10925 table 1"),
    "qwen3-0.6b": (596_049_920, 596_049_920, "tied table counted once: 0.6 B, vLLM measures 1.12 GiB of weights"),
    "nemotron-h-56b": (56_324_350_464, 55_250_608_640, "Nemotron-H-56B; 56 B in arXiv:2504.03624"),
    "mixtral-8x7b": (46_702_792_704, 12_748_853_248, "HF safetensors total"),
    "nemotron-3-nano-30b-a3b": (31_577_940_288, 3_227_754_816, "n_params printed by llama.cpp for the GGUF"),
}
ROUNDED = {  # model: (total in 1e9, active with embedding in 1e9, half a unit of the last digit), vendors' model cards
    "deepseek-v2": (236, 21, 0.5),
    "deepseek-v3.2": (671, 38, 1.0),  # 671 B is said without the indexer's 0.85 B
    "glm-5": (744, 42, 1.0),  # the vendor says 40 B active, without the embedding
    "llama-3.1-405b": (406, 406, 0.5),
    "longcat-flash": (560, 31.3, 1.0),  # 18.6 to 31.3 B active, here the most
    "qwen2.5-72b": (72.7, 72.7, 0.05),
    "qwen3-235b-a22b": (235, 22.2, 0.5),
    "qwen3-30b-a3b": (30.5, 3.3, 0.1),
    "qwen3.5-122b-a10b": (122, 10, 0.5),
    "glm-5.3-flash": (313, 17.4, 0.5),  # 320 B with the MTP layer (7.4 B)
    "minimax-m2.5": (229, 11, 0.5),
    "gemma-4-26b-a4b": (25.2, 3.8, 0.1),
    "llama-4-scout": (107.8, 17.2, 0.1),  # 109 B with the vision tower
    "step-3.7-flash": (196, 11, 0.5),
    "mimo-7b": (7.6, 7.6, 0.05),
}


@pytest.mark.parametrize("name", TOTALS)
def test_parameters_are_exact(name: str) -> None:
    total, active, source = TOTALS[name]
    params = load_model(name).params
    assert (params.total, params.active) == (total, active), source


@pytest.mark.parametrize("name", ROUNDED)
def test_parameters_round_to_what_the_vendor_says(name: str) -> None:
    total, active, half = ROUNDED[name]
    params = load_model(name).params
    assert params.total / 1e9 == pytest.approx(total, abs=half)
    assert params.active_with_embedding / 1e9 == pytest.approx(active, abs=half)


def test_deepseek_v3_with_embedding_and_its_mtp_module() -> None:
    params = load_model("deepseek-v3").params
    assert params.active_with_embedding == 37_552_297_472
    assert params.mtp == 11_610_068_224  # without the table and head it shares
    assert params.embedding == 129_280 * 7168


def test_deepseek_v3_tensor_types_match_the_checkpoint_listing() -> None:
    """The hub's safetensors summary of deepseek-ai/DeepSeek-V3: BF16 3,918,786,560, F32 41,555,600 and
    F8_E4M3 680,571,043,840 elements.  The checkpoint stores the table and the head once more for the MTP module."""
    model = load_model("deepseek-v3")
    fp8 = bf16 = f32 = 0
    for name, weight in model.tensors():
        if model.quantization.format_of(name, weight):
            rows, columns = weight.shape
            fp8 += weight.params
            f32 += weight.copies * -(-rows // 128) * -(-columns // 128)
        elif weight.dtype == "float32":
            f32 += weight.params
        else:
            bf16 += weight.params
    assert (bf16 + 2 * 129_280 * 7168, f32, fp8) == (3_918_786_560, 41_555_600, 680_571_043_840)


def test_kimi_k3_matches_the_checkpoint_listing() -> None:
    """Payload of the 96 shards of moonshotai/Kimi-K3 (1,560,860,324,864 B) less the vision tower (802,428,928 B) and
    the projector (92,289,024 B), both BF16; elements: F32 11,122,432, BF16 57,179,884,544, MXFP4 2,722,740,830,208."""
    model = load_model("kimi-k3")
    found: dict[str, int] = {}
    for name, weight in model.tensors():
        dtype, _ = model.quantization.stored(name, weight, model.dtype)
        found[dtype] = found.get(dtype, 0) + weight.params
    towers = 802_428_928 + 92_289_024
    assert found == {
        "float32": 11_122_432, "bfloat16": 57_179_884_544 - towers // 2, "mxfp4": 2_722_740_830_208,
    }  # fmt: skip
    assert model.weight_bytes.total == 1_560_860_324_864 - towers
    assert model.kinds() == {"kda": 69, "mla": 24}


def test_attention_parameters_of_a_layer() -> None:
    """Matrices only: V3 187,105,280 (scaling-book-2026, "187M"); V2 149,225,472; K2 101,122,048; GLM-5 165,019,648;
    V2-Lite 13,762,560; indexers V3.2 13,959,168 and GLM-5 9,371,648 (sums over the shapes of the vLLM docstring)."""
    want = {
        "deepseek-v3": 187_105_280, "deepseek-v2": 149_225_472, "kimi-k2": 101_122_048, "glm-5": 165_019_648,
        "deepseek-v2-lite": 13_762_560,
    }  # fmt: skip
    for name, number in want.items():
        mixer = load_model(name).layers[0].attention
        assert sum(w.params for w in mixer.weights if w.kind == "attention") == number, name
    for name, number in {"deepseek-v3.2": 13_959_168, "glm-5": 9_371_648}.items():
        mixer = load_model(name).layers[0].attention
        assert sum(w.params for w in mixer.weights if w.kind == "indexer" and len(w.shape) == 2) == number, name


def test_shape_of_deepseek_v32_binds_kernels() -> None:
    assert load_model("deepseek-v3.2").shape == {
        "heads": 128, "latent": 512, "rope": 64, "nope": 128, "value": 128, "q_latent": 1536, "topk": 2048,
        "index_heads": 64, "index_head_dim": 128, "hidden": 7168, "layers": 61, "vocab": 129_280,
    }  # fmt: skip


SHAPES = {  # H, d, r, n, v, D, layers; facts of the published configurations
    "deepseek-v2": (128, 512, 64, 128, 128, 5120, 60),
    "deepseek-v2-lite": (16, 512, 64, 128, 128, 2048, 27),
    "kimi-k2": (64, 512, 64, 128, 128, 7168, 61),
    "kimi-k3": (96, 512, 64, 128, 128, 7168, 93),
    "glm-5": (64, 512, 64, 192, 256, 6144, 78),
    "glm-5.3": (64, 512, 64, 192, 256, 6144, 78),
    "glm-5.3-flash": (64, 512, 0, 256, 256, 4096, 45),
    "longcat-flash": (64, 512, 64, 128, 128, 6144, 56),
}


@pytest.mark.parametrize("name", SHAPES)
def test_latent_shapes(name: str) -> None:
    shape = load_model(name).shape
    names = ("heads", "latent", "rope", "nope", "value", "hidden", "layers")
    assert tuple(shape[key] for key in names) == SHAPES[name]


def test_glm_52_runs_its_indexer_in_21_of_78_layers() -> None:
    """vLLM docs/features/index_cache.md: frequency 4, offset 3 gives layers 0, 1, 2, 6, 10, ..., 74."""
    model = load_model("glm-5.2")
    full = [layer.index for layer in model.layers if layer.attention.indexer == "full"]
    assert full == [0, 1, 2, *range(6, 78, 4)]
    assert (len(full), full[-1]) == (21, 74)
    assert all(layer.attention.indexer == "full" for layer in load_model("glm-5").layers)


def test_glm_53_flash_pools_keys_in_its_eleven_sparse_layers() -> None:
    model = load_model("glm-5.3-flash")
    assert [layer.index for layer in model.layers_of("dsa")] == list(range(3, 45, 4))
    assert model.layers_of("dsa")[0].attention.shape["index_pool"] == 4
    assert model.kinds() == {"kda": 34, "dsa": 11}


def test_layers_by_kind() -> None:
    """Open cases C07 to C09 and C14: block pattern, layer lists, a window that is present but switched off."""
    assert load_model("nemotron-h-56b").kinds() == {"mamba2": 54, "none": 54, "gqa": 10}
    assert load_model("gemma-4-26b-a4b").kinds() == {"window": 25, "gqa": 5}
    assert load_model("gpt-oss-120b").kinds() == {"window": 18, "gqa": 18}
    assert load_model("mimo-7b").kinds() == {"gqa": 36}
    assert load_model("llama-4-scout").kinds() == {"chunked": 36, "gqa": 12}
    assert load_model("deepseek-v3").kinds() == {"mla": 61}
    dense = [layer.index for layer in load_model("deepseek-v3").layers if layer.ffn.kind == "dense"]
    assert dense == [0, 1, 2]


def test_expert_shapes() -> None:
    moe = load_model("deepseek-v3").layers[3].ffn.shape
    assert (moe["experts"], moe["active_experts"], moe["shared_experts"], moe["ffn"]) == (256, 8, 1, 2048)
    longcat = load_model("longcat-flash").layers[0].ffn.shape
    assert (longcat["experts"], longcat["zero_experts"], longcat["active_experts"]) == (512, 256, 12)
    assert [block.kind for block in load_model("longcat-flash").layers[0].ffns] == ["dense", "moe"]
    assert load_model("kimi-k3").layers[1].ffn.shape["expert_hidden"] == 3584


def test_zero_experts_widen_the_router_and_nothing_else() -> None:
    """LongCat-Flash: 512 + 256 rows and correction biases in each of 28 routers; 512 experts with weights."""
    by_class = load_model("longcat-flash").params.by_class
    assert by_class["router"] == 28 * (768 * 6144 + 768)
    assert by_class["routed_experts"] == 28 * 512 * 3 * 6144 * 2048


def test_hyper_connections_of_glm_53_flash() -> None:
    """Shape guide of glm5_next in transformers: (2 + 4) * 4 rows over 4 streams, a bias a row, 3 scales; twice."""
    assert load_model("glm-5.3-flash").params.by_class["hyper_connection"] == 45 * 2 * (24 * 4 * 4096 + 24 + 3)


def test_nemotron_super_has_its_own_blocks_in_each_layer() -> None:
    """nvidia/Llama-3_3-Nemotron-Super-49B-v1 (config in {AIC}): 80 blocks, 49 with attention; 49.9 B on the card."""
    runs = [
        (8, 2.625, 1), (8, 5.25, 5), (0, 2.625, 2), (8, 5.25, 3), (0, 3.28125, 1), (8, 5.25, 30), (0, 1.3125, 1),
        (0, 2.625, 2), (0, 1.3125, 1), (0, 5.25, 1), (0, 1.3125, 1), (0, 2.625, 1), (0, 1.3125, 3), (8, 5.25, 1),
        (0, 1.3125, 1), (0, 1.0, 2), (0, 1.3125, 1), (0, 1.0, 3), (0, 1.3125, 2), (0, 0.5, 2), (0, 1.0, 2),
        (0, 0.5, 2), (0, 1.0, 1), (0, 0.5, 2), (8, 5.25, 9),
    ]  # fmt: skip
    blocks = [
        {"attention": {"no_op": not group, "n_heads_in_group": group or None}, "ffn": {"ffn_mult": factor}}
        for group, factor, times in runs
        for _ in range(times)
    ]
    model = _read(
        model_type="nemotron-nas", hidden_size=8192, vocab_size=128_256, num_hidden_layers=80, num_attention_heads=64,
        num_key_value_heads=None, intermediate_size=None, block_configs=blocks, tie_word_embeddings=False,
    )  # fmt: skip
    assert model.kinds() == {"gqa": 49, "none": 31}
    assert model.params.total / 1e9 == pytest.approx(49.9, abs=0.05)
    assert model.kv("bf16").bytes_per_token == 49 * 2 * 8 * 128 * 2


def test_defaults_are_listed_and_a_declared_head_width_wins() -> None:
    model = load_model("llama-3.1-8b")
    assert [(t.key, t.value) for t in model.defaults_taken] == [("head_dim", 128)]
    odd = load_model("gpt-oss-20b")  # hidden 2880, 64 heads: 45 would be derived
    assert odd.shape["head_dim"] == 64
    assert any("head_dim 64 is declared" in note for note in odd.notes)
    lite = load_model("deepseek-v2-lite")  # q_lora_rank null: queries projected directly
    assert "q_latent" not in lite.shape
    weights = {w.name: w.shape for w in lite.layers[0].attention.weights}
    assert weights["self_attn.q_proj.weight"] == (16 * 192, 2048)


@pytest.mark.parametrize("name", list_models())
def test_every_builtin_has_a_source_and_parts_that_add_up(name: str) -> None:
    model = load_model(name)
    assert model.source.address.startswith("https://")
    assert model.source.repo
    assert model.source.file
    assert model.source.revision
    params = model.params
    assert params.total == sum(params.by_class.values()) == sum(w.params for _, w in model.tensors(mtp=False))
    assert params.active <= params.active_with_embedding <= params.total
    size = model.weight_bytes
    assert size.total == sum(size.by_class.values()) == sum(size.by_dtype.values())
    names = [tensor for tensor, _ in model.tensors()]
    assert len(names) == len(set(names)), "two tensors of one name"
    assert [layer.index for layer in model.layers] == list(range(len(model.layers)))


def test_names_are_found_whatever_their_case_and_owner() -> None:
    assert load_model("DeepSeek-V3.2").id == load_model("deepseek-ai/DeepSeek-V3.2").id == "deepseek-v3.2"
    with pytest.raises(UnknownName, match=r"deepseek-v3.*roofline model list") as caught:
        load_model("deepseek-v33")
    assert caught.value.exit_code == 2


def test_a_model_is_frozen() -> None:
    model = load_model("llama-3.1-8b")
    with pytest.raises(AttributeError, match="frozen"):
        model.hidden = 1
    with pytest.raises(TypeError):
        model.layers[0].attention.shape["heads"] = 1  # type: ignore[index]


def _read(**keys: object) -> Model:
    return read_config(keys, "test.json", "test")


@settings(deadline=None, max_examples=60)
@given(
    heads=st.integers(1, 16), group=st.integers(1, 4), width=st.integers(1, 16), hidden=st.integers(1, 64),
    ffn=st.integers(1, 64), layers=st.integers(1, 5), vocab=st.integers(1, 99), tied=st.booleans(),
)  # fmt: skip
def test_dense_count_is_the_sum_written_by_hand(
    heads: int, group: int, width: int, hidden: int, ffn: int, layers: int, vocab: int, tied: bool
) -> None:
    model = _read(
        model_type="qwen3", num_attention_heads=heads * group, num_key_value_heads=heads, head_dim=width,
        hidden_size=hidden, intermediate_size=ffn, num_hidden_layers=layers, vocab_size=vocab,
        tie_word_embeddings=tied, dtype="bfloat16",
    )  # fmt: skip
    layer = hidden * width * (2 * heads * group + 2 * heads) + 2 * width + 3 * hidden * ffn + 2 * hidden
    total = layers * layer + hidden + vocab * hidden * (1 if tied else 2)
    assert model.params.total == total
    assert model.params.active == total - (0 if tied else vocab * hidden)
    assert model.weight_bytes.total == 2 * total


@settings(deadline=None, max_examples=40)
@given(experts=st.integers(1, 9), active=st.integers(1, 9), dense=st.integers(0, 4), shared=st.integers(0, 3))
def test_expert_count_is_the_sum_written_by_hand(experts: int, active: int, dense: int, shared: int) -> None:
    keys = {
        "model_type": "deepseek_v3", "hidden_size": 8, "vocab_size": 11, "num_hidden_layers": 4,
        "num_attention_heads": 2, "kv_lora_rank": 5, "q_lora_rank": 3, "qk_rope_head_dim": 2, "qk_nope_head_dim": 4,
        "v_head_dim": 6, "intermediate_size": 7, "moe_intermediate_size": 9, "n_routed_experts": max(experts, active),
        "num_experts_per_tok": active, "n_shared_experts": shared, "first_k_dense_replace": dense,
        "scoring_func": "sigmoid", "tie_word_embeddings": False,
    }  # fmt: skip
    params = _read(**keys).params
    attention = 8 * 3 + 3 + 3 * 2 * 6 + 8 * 7 + 5 + 5 * 2 * 10 + 12 * 8
    router, expert = max(experts, active) * 9, 3 * 8 * 9
    always = 4 * (attention + 16) + dense * 3 * 8 * 7 + (4 - dense) * (router + shared * expert) + 8 + 88
    assert params.active == always + (4 - dense) * active * expert
    assert params.total == always + 88 + (4 - dense) * max(experts, active) * expert
