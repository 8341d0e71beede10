"""Mixtures of experts with grouped-query attention: Mixtral, Qwen-MoE, gpt-oss, MiniMax-M2, GLM-4 MoE.

Axes: experts E_n of width D_ff, E_k of them a token; shared experts every token visits.  Which layers are dense comes
from `first_k_dense_replace`, `mlp_only_layers` or `decoder_sparse_step`, which slide a window from `layer_types`.
Sources: arXiv:2401.04088 (Mixtral), arXiv:2505.09388 (Qwen3), arXiv:2508.10925 (gpt-oss), and the model classes of
these types in huggingface/transformers.
"""

from __future__ import annotations

from roofline.models.config import Config
from roofline.models.deepseek import dense_layers, expert_shape, mtp_layers
from roofline.models.dense import window_of, windowed_layers
from roofline.models.parts import (
    Built,
    Moe,
    assemble,
    dense_ffn,
    gqa,
    group_heads,
    head_width,
    layer_count,
    moe_ffn,
)
from roofline.models.records import Attention


def body(cfg: Config) -> str:
    """The prefix of the tensors: a nested language model sits below another name."""
    return "model.language_model." if cfg.where else "model."


def mixers_of(
    cfg: Config, n: int, *, qkv_bias: bool, out_bias: bool, qk_norm: str, sinks: bool = False
) -> list[Attention]:
    """Grouped-query attention for each layer, with the window where it applies."""
    hidden, heads = cfg.count("hidden_size"), cfg.count("num_attention_heads")
    kv_heads, width = group_heads(cfg, heads), head_width(cfg, hidden, heads)
    window = window_of(cfg, cfg.family)
    slides = windowed_layers(cfg, n, window, cfg.family)

    def made(span: int) -> Attention:
        return gqa(
            hidden,
            heads,
            kv_heads,
            width,
            kind="window" if span else "gqa",
            window=span,
            qkv_bias=qkv_bias,
            out_bias=out_bias,
            qk_norm=qk_norm,
            sinks=sinks,
        )

    full, local = made(0), made(window) if any(slides) else made(0)
    return [local if slide else full for slide in slides]


def read_mixtral(cfg: Config, top: Config) -> Built:
    """Mixtral: every layer has experts."""
    n, hidden = layer_count(cfg), cfg.count("hidden_size")
    experts = cfg.count("num_local_experts", default=8, why="default of the family's configuration")
    active = cfg.count("num_experts_per_tok", default=2, high=experts, why="default of the family's configuration")
    block = moe_ffn(
        Moe(hidden, cfg.count("intermediate_size"), experts, active, base="block_sparse_moe.", names=("w1", "w3", "w2"))
    )
    mixers = mixers_of(cfg, n, qkv_bias=False, out_bias=False, qk_norm="")
    return assemble(cfg, top, mixers, [block] * n, place=body(cfg))


def read_minimax_m2(cfg: Config, top: Config) -> Built:
    """MiniMax-M2: norms over all query heads and all key heads, experts in every layer."""
    n, hidden = layer_count(cfg), cfg.count("hidden_size")
    cfg.items("attn_type_list", n, (1,))  # 1 is softmax attention, the only kind in this family
    experts = cfg.count("num_local_experts")
    if cfg.count("shared_intermediate_size", default=0, low=0):
        cfg.fail("shared_intermediate_size", cfg.get("shared_intermediate_size"), "0", "its shared expert is not known")
    block = moe_ffn(
        Moe(
            hidden,
            cfg.count("intermediate_size"),
            experts,
            cfg.count("num_experts_per_tok", high=experts),
            base="block_sparse_moe.",
            names=("w1", "w3", "w2"),
            correction="e_score_correction_bias" if cfg.flag("use_routing_bias", False) else "",
        )
    )
    kind = {"per_layer": "full", "per_head": "head"}.get(cfg.text("qk_norm_type", default="per_layer"), "full")
    norms = kind if cfg.flag("use_qk_norm", True, "default of the family's configuration") else ""
    if cfg.has("num_mtp_modules"):
        cfg.note("prediction modules are named, but not described, by the configuration: not counted")
    return assemble(cfg, top, mixers_of(cfg, n, qkv_bias=False, out_bias=False, qk_norm=norms), [block] * n)


def read_qwen_moe(cfg: Config, top: Config) -> Built:
    """Qwen2-MoE and Qwen3-MoE: dense layers where listed, or where the sparse step leaves them out."""
    n, hidden = layer_count(cfg), cfg.count("hidden_size")
    experts = cfg.count("num_experts")
    active = cfg.count("num_experts_per_tok", high=experts)
    old = cfg.family == "qwen2_moe"
    shared = cfg.count("shared_expert_intermediate_size") if old else 0
    block = moe_ffn(
        Moe(
            hidden,
            cfg.count("moe_intermediate_size"),
            experts,
            active,
            shared,
            1 if shared else 0,
            shared_gate="shared_expert_gate" if shared else "",
            shared_base="shared_expert.",
        )
    )
    step = cfg.count("decoder_sparse_step", default=1, why="default of the family's configuration")
    only = cfg.items("mlp_only_layers", choices=range(n)) or []
    dense = [i in only or (i + 1) % step != 0 for i in range(n)]
    plain = dense_ffn(hidden, cfg.count("intermediate_size")) if any(dense) else block
    cfg.get("intermediate_size")
    bias = cfg.flag("attention_bias", False)
    mixers = mixers_of(cfg, n, qkv_bias=old or bias, out_bias=bias, qk_norm="" if old else "head")
    return assemble(cfg, top, mixers, [plain if flag else block for flag in dense], place=body(cfg))


def read_gpt_oss(cfg: Config, top: Config) -> Built:
    """gpt-oss: biases everywhere, a learned sink per head, every second layer banded."""
    n, hidden = layer_count(cfg), cfg.count("hidden_size")
    experts = cfg.count("num_local_experts")
    bias = cfg.flag("attention_bias", True, "default of the family's configuration")
    block = moe_ffn(
        Moe(
            hidden,
            cfg.count("intermediate_size"),
            experts,
            cfg.count("num_experts_per_tok", "experts_per_token", high=experts),
            router="router",
            router_bias=True,
            expert_bias=True,
        )
    )
    if not cfg.has("layer_types"):
        cfg.fail("layer_types", "nothing", "one kind for each layer")
    return assemble(cfg, top, mixers_of(cfg, n, qkv_bias=bias, out_bias=bias, qk_norm="", sinks=True), [block] * n)


def read_glm4_moe(cfg: Config, top: Config) -> Built:
    """GLM-4.5 to 4.7: grouped-query attention, dense first layers, experts with a correction bias, a shared expert."""
    n, hidden = layer_count(cfg), cfg.count("hidden_size")
    block = moe_ffn(expert_shape(cfg, hidden)._replace(correction="gate.e_score_correction_bias"))
    first = dense_layers(cfg, n)
    plain = dense_ffn(hidden, cfg.count("intermediate_size")) if any(first) else block
    bias = cfg.flag("attention_bias", False, "default of the family's configuration")
    norms = "head" if cfg.flag("use_qk_norm", False, "default of the family's configuration") else ""
    mixers = mixers_of(cfg, n, qkv_bias=bias, out_bias=False, qk_norm=norms)
    built = assemble(cfg, top, mixers, [plain if dense else block for dense in first])
    modules = cfg.count("num_nextn_predict_layers", default=0, low=0, high=64, why="no prediction module is named")
    return built._replace(mtp=mtp_layers(hidden, built.layers[-1], n, modules, mixers[-1]))
