"""Hybrids of softmax attention and recurrent mixers: Kimi Linear and Kimi K3, GLM-5.3-Flash, Qwen3-Next and Qwen3.5.

Which layer is which comes from a list: `kda_layers` / `full_attn_layers` (counted from one in Kimi, from zero in GLM),
`layer_types`, or `full_attention_interval` (the last of each group is full).  Sources: arXiv:2510.26692 (Kimi Linear),
the model classes qwen3_next, qwen3_5, qwen3_5_moe and glm5_next of huggingface/transformers, and the tensor lists of
the published checkpoints.
"""

from __future__ import annotations

from roofline.models.config import Config
from roofline.models.deepseek import (
    body_name,
    dense_layers,
    feed_forward,
    head_name,
    index_schedule,
    mla,
    mtp_layers,
    sparse,
)
from roofline.models.parts import (
    FP32,
    Built,
    Moe,
    assemble,
    dense_ffn,
    gqa,
    group_heads,
    head_width,
    layer_count,
    linear,
    moe_ffn,
    norm,
    two_norms,
    with_weights,
)
from roofline.models.records import Attention, Ffn, Layer, Weight
from roofline.models.recurrent import gated_delta, kda


def kimi_kinds(part: Config, n: int) -> list[bool]:
    """For each layer, whether it is a KDA layer; the two lists count from one and must cover every layer once."""
    lists = {key: part.items(key) for key in ("kda_layers", "full_attn_layers")}
    seen: dict[int, str] = {}
    for key, entries in lists.items():
        if entries is None:
            part.fail(key, "nothing", "the numbers of the layers of this kind, counted from 1")
        for at, entry in enumerate(entries):
            if isinstance(entry, bool) or not isinstance(entry, int) or not 1 <= entry <= n or entry in seen:
                part.fail(f"{key}[{at}]", entry, f"a layer from 1 to {n}, named once")
            seen[entry] = key
    missing = [i for i in range(1, n + 1) if i not in seen]
    if missing:
        got = f"{len(missing)} layers in neither list, first {missing[0]}"
        part.fail("full_attn_layers", got, "every layer in one")
    return [seen[i + 1] == "kda_layers" for i in range(n)]


def kimi_experts(cfg: Config, hidden: int) -> Ffn:
    """Routed experts, in a narrower space where `routed_expert_hidden_size` says so, and shared experts."""
    ffn, experts = cfg.count("moe_intermediate_size"), cfg.count("num_experts")
    shared = cfg.count("num_shared_experts", default=0, low=0, why="no shared expert is named")
    narrow = cfg.count("routed_expert_hidden_size", default=None)
    base = "block_sparse_moe."
    block = moe_ffn(
        Moe(
            hidden,
            ffn,
            experts,
            cfg.count("num_experts_per_token", "num_experts_per_tok", high=experts),
            shared * ffn,
            shared,
            expert_hidden=narrow or 0,
            base=base,
            correction="gate.e_score_correction_bias",
            names=("w1", "w3", "w2"),
        )
    )
    if not narrow:
        return block
    extra = [*linear(f"{base}routed_expert_down_proj", narrow, hidden, "expert_projection")]
    extra += linear(f"{base}routed_expert_up_proj", hidden, narrow, "expert_projection")
    if cfg.flag("latent_moe_use_norm", False):
        extra += norm(f"{base}routed_expert_norm", narrow)
    return with_weights(block, extra)


def read_kimi_linear(cfg: Config, top: Config) -> Built:
    """Kimi Linear and Kimi K3: KDA layers, and latent attention without rotation but with the cached rope part."""
    hidden, n = cfg.count("hidden_size"), layer_count(cfg)
    part = cfg.need("linear_attn_config")
    core = mla(cfg, hidden, out_gate=cfg.flag("mla_use_output_gate", False))
    state = kda_of(part, hidden)
    if cfg.flag("mla_use_nope", False):
        cfg.note("the latent attention does not rotate, yet caches qk_rope_head_dim columns: they are counted")
    if cfg.count("num_nextn_predict_layers", default=0, low=0):
        cfg.fail("num_nextn_predict_layers", cfg.get("num_nextn_predict_layers"), "0", "its tensors are not known")
    dense, experts = dense_ffn(hidden, cfg.count("intermediate_size")), kimi_experts(cfg, hidden)
    mixers = [state if recurrent else core for recurrent in kimi_kinds(part, n)]
    ffns = [dense if flag else experts for flag in dense_layers(cfg, n)]
    place, head = body_name(cfg), head_name(cfg)
    if not cfg.count("attn_res_block_size", default=None):
        return assemble(cfg, top, mixers, ffns, place=place, head=head)._replace(state_dtype=FP32)
    norms = (*two_norms(hidden), *residual("self_attention_res", hidden), *residual("mlp_res", hidden))
    built = assemble(cfg, top, mixers, ffns, place=place, head=head, norms=norms)
    return built._replace(state_dtype=FP32, ends=(*built.ends, *residual(f"{place}output_attn_res", hidden)))


def kda_of(part: Config, hidden: int) -> Attention:
    """The KDA mixer that `linear_attn_config` describes."""
    part.note("KDA states are taken as float32, as every implementation of them keeps them")
    heads, width, conv = part.count("num_heads"), part.count("head_dim"), part.count("short_conv_kernel_size")
    return kda(hidden, heads, width, conv, full_gate=part.flag("use_full_rank_gate", False))


def residual(name: str, hidden: int) -> tuple[Weight, ...]:
    """Attention over the residuals of earlier blocks: a norm and one row of scores."""
    return (*norm(f"{name}_norm", hidden), Weight(f"{name}_proj.weight", (1, hidden), "norm"))


def hyper_connections(hidden: int, streams: int) -> tuple[Weight, ...]:
    """Manifold-constrained hyper-connections: a map from all streams to the mixing weights, before each sublayer."""
    mix = (2 + streams) * streams
    made: list[Weight] = []
    for site in ("hc_attn", "hc_ffn"):
        made.append(Weight(f"{site}_fn", (mix, streams * hidden), "hyper_connection", dtype=FP32))
        made.append(Weight(f"{site}_base", (mix,), "hyper_connection", dtype=FP32))
        made.append(Weight(f"{site}_scale", (3,), "hyper_connection", dtype=FP32))
    return tuple(made)


def read_glm5_next(cfg: Config, top: Config) -> Built:
    """GLM-5.3-Flash: KDA layers, and sparse latent attention without rotation over pooled indexer keys."""
    hidden, n = cfg.count("hidden_size"), layer_count(cfg)
    part = cfg.need("linear_attn_config")
    kinds = cfg.items("layer_types", n, ("linear_attention", "deepseek_sparse_attention", "full_attention"))
    if kinds is None:
        cfg.fail("layer_types", "nothing", "one kind for each layer")
    _agree(part, kinds)
    pool = cfg.count("index_kpool", default=16, why="default of the family's configuration")
    full, shared = sparse(cfg, mla(cfg, hidden), hidden, pool=pool)
    if full.shape["topk"] % pool:
        cfg.fail("index_topk", full.shape["topk"], f"a multiple of index_kpool {pool}")
    state, schedule = kda_of(part, hidden), index_schedule(cfg, n)
    mixers = [
        state if kind == "linear_attention" else full if runs else shared
        for kind, runs in zip(kinds, schedule, strict=True)
    ]
    streams = cfg.count("hc_mult", default=4, why="default of the family's configuration")
    norms = (*two_norms(hidden), *(hyper_connections(hidden, streams) if cfg.flag("mhc", True) else ()))
    place = "model.language_model." if cfg.where else "model."
    ffns = feed_forward(cfg, hidden, n)
    built = assemble(cfg, top, mixers, ffns, place=place, norms=norms)
    cfg.note(f"{pool} indexer keys are pooled into one; the unpooled tail of at most {pool - 1} keys is not counted")
    modules = cfg.count("num_nextn_predict_layers", default=0, low=0, high=64, why="no prediction module is named")
    return built._replace(state_dtype=FP32, mtp=mtp_layers(hidden, built.layers[-1], n, modules, full))


def _agree(part: Config, kinds: list[str]) -> None:
    """The lists inside `linear_attn_config`, counted from zero, must say the same as `layer_types`."""
    for key, kind in (("kda_layers", True), ("full_attn_layers", False)):
        given = part.items(key)
        want = [i for i, name in enumerate(kinds) if (name == "linear_attention") is kind]
        if given is not None and given != want:
            part.fail(key, given, f"{want[:4]}..., as layer_types says")


def qwen_kinds(cfg: Config, n: int) -> list[bool]:
    """For each layer, whether it is a recurrent one."""
    kinds = cfg.items("layer_types", n, ("linear_attention", "full_attention"))
    every = cfg.count("full_attention_interval", default=None)
    if kinds is None:
        if every is None:
            every = 4
            cfg.default("full_attention_interval", 4, "default of the family's configuration")
        return [(i + 1) % every != 0 for i in range(n)]
    return [kind == "linear_attention" for kind in kinds]


def qwen_attention(cfg: Config, hidden: int) -> Attention:
    """Full attention of Qwen3-Next and Qwen3.5: a gate on the output, norms on queries and keys."""
    heads = cfg.count("num_attention_heads")
    bias = cfg.flag("attention_bias", False)
    return gqa(
        hidden,
        heads,
        group_heads(cfg, heads),
        head_width(cfg, hidden, heads),
        qk_norm="head",
        qkv_bias=bias,
        out_bias=bias,
        gate=cfg.flag("attn_output_gate", True),
    )


def qwen_experts(cfg: Config, hidden: int) -> Ffn:
    """Routed experts and one shared expert behind a gate of its own."""
    experts = cfg.count("num_experts")
    shared = cfg.count("shared_expert_intermediate_size", default=0, low=0, why="no shared expert is named")
    return moe_ffn(
        Moe(
            hidden,
            cfg.count("moe_intermediate_size"),
            experts,
            cfg.count("num_experts_per_tok", high=experts),
            shared,
            1 if shared else 0,
            shared_gate="shared_expert_gate" if shared else "",
            shared_base="shared_expert.",
        )
    )


def read_qwen_hybrid(cfg: Config, top: Config) -> Built:
    """Qwen3-Next, Qwen3.5 dense and Qwen3.5 with experts."""
    hidden, n = cfg.count("hidden_size"), layer_count(cfg)
    full, state = qwen_attention(cfg, hidden), gated_delta(cfg, hidden, split=cfg.family != "qwen3_next")
    only = cfg.items("mlp_only_layers") or []
    if only or cfg.count("decoder_sparse_step", default=1) != 1:
        cfg.fail("mlp_only_layers", only, "an empty list, and decoder_sparse_step 1")
    moe = cfg.has("num_experts") and cfg.family != "qwen3_5_text"
    ffn = qwen_experts(cfg, hidden) if moe else dense_ffn(hidden, cfg.count("intermediate_size"))
    mixers = [state if recurrent else full for recurrent in qwen_kinds(cfg, n)]
    place = "model.language_model." if cfg.where else "model."
    built = assemble(cfg, top, mixers, [ffn] * n, place=place)
    return built._replace(mtp=qwen_modules(cfg, hidden, n, full, ffn))


def qwen_modules(cfg: Config, hidden: int, n: int, full: Attention, ffn: Ffn) -> tuple[Layer, ...]:
    """Prediction modules: full attention and the body's feed-forward block, joined in at the first."""
    modules = cfg.count("mtp_num_hidden_layers", default=0, low=0, high=64)
    if modules and cfg.flag("mtp_use_dedicated_embeddings", False):
        cfg.fail("mtp_use_dedicated_embeddings", True, "false", "a table of its own is not modelled")
    join = (*linear("fc", hidden, 2 * hidden, "mtp"), *norm("pre_fc_norm_hidden", hidden))
    join = (*join, *norm("pre_fc_norm_embedding", hidden), *norm("norm", hidden))
    return tuple(
        Layer(n + i, full, (ffn,), f"mtp.layers.{i}.", (*two_norms(hidden), *(join if i == 0 else ())))
        for i in range(modules)
    )
