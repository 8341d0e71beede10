"""Experts with more than one kind of attention: Step-3.7, MiMo-V2, Llama 4.

Step and MiMo put windowed layers with their own numbers of heads between full ones; Llama 4 chunks the layers that
rotate.  Sources: the configuration and model classes step3p7, mimo_v2_flash and llama4 in huggingface/transformers and
the vendors' model code.
"""

from __future__ import annotations

from roofline.models.config import Config
from roofline.models.deepseek import body_name, dense_layers, expert_shape, head_name
from roofline.models.parts import (
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
)
from roofline.models.records import Attention, Ffn


def read_step(cfg: Config, top: Config) -> Built:
    """Step-3.5 and Step-3.7-Flash: windows with query heads of their own, an output gate per head, a shared expert."""
    n, hidden = layer_count(cfg), cfg.count("hidden_size")
    modules = cfg.count("num_nextn_predict_layers", "num_mtp_layers", default=0, low=0, high=64)
    experts = cfg.count("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts")
    active = cfg.count("num_experts_per_tok", "moe_top_k", high=experts)
    shared = cfg.count("n_shared_experts", default=1, low=0, high=1, why="default of the family's configuration")
    width = cfg.count("share_expert_dim", "share_expert_dims") if shared else 0
    block = moe_ffn(
        Moe(
            hidden,
            cfg.count("moe_intermediate_size"),
            experts,
            active,
            width,
            shared,
            base="moe.",
            shared_base="share_expert.",
            correction="router_bias" if cfg.flag("use_moe_router_bias", False) else "",
        )
    )
    dense = step_dense(cfg, n)
    plain = dense_ffn(hidden, cfg.count("intermediate_size")) if any(dense) else block
    full, local, slides = step_mixers(cfg, n, modules, hidden)
    if modules:
        cfg.note("prediction modules are named, but not described, by the configuration: not counted")
    mixers, ffns = [local if s else full for s in slides], [plain if d else block for d in dense]
    return assemble(cfg, top, mixers, ffns, place="model.language_model." if cfg.where else "model.")


def step_dense(cfg: Config, n: int) -> list[bool]:
    """For each layer, whether its feed-forward block is dense: all those that `moe_layers_enum` does not name."""
    named = cfg.get("moe_layers_enum")
    if named is None:
        return dense_layers(cfg, n)
    words = named.split(",") if isinstance(named, str) else named if isinstance(named, list) else None
    if words is None or not all(str(word).strip().isdigit() and int(word) < n for word in words):
        cfg.fail("moe_layers_enum", named, f"layers from 0 to {n - 1}, a list or separated by commas")
    sparse = {int(word) for word in words}
    return [i not in sparse for i in range(n)]


def step_mixers(cfg: Config, n: int, modules: int, hidden: int) -> tuple[Attention, Attention, list[bool]]:
    """(full, windowed, whether each layer is windowed); the list of kinds may include the prediction modules."""
    kinds = cfg.items("layer_types", choices=("full_attention", "sliding_attention"))
    if kinds is None or len(kinds) not in (n, n + modules):
        got = "nothing" if kinds is None else f"a list of {len(kinds)}"
        cfg.fail("layer_types", got, f"one kind for each of {n} layers")
    heads = cfg.count("num_attention_heads")
    kv_heads, width = cfg.count("num_key_value_heads", "num_attention_groups"), cfg.count("head_dim")
    other = cfg.section("attention_other_setting")
    few, wide, rank = heads, width, kv_heads
    if other is not None:
        few = other.count("num_attention_heads", default=heads, why="num_attention_heads")
        rank = other.count("num_attention_groups", default=kv_heads, why="num_attention_groups")
        wide = other.count("head_dim", default=width, why="head_dim")
    else:
        few = cfg.count("num_sliding_attention_heads", default=heads, why="num_attention_heads")
    for count, groups in ((heads, kv_heads), (few, rank)):
        if count % groups:
            cfg.fail("num_attention_heads", count, f"a multiple of {groups} key/value heads")
    gate = cfg.flag("use_head_wise_attn_gate", True, "default of the family's configuration")
    window = cfg.count("sliding_window") if "sliding_attention" in kinds else 0
    full, local = (
        head_gated(gqa(hidden, h, g, d, qk_norm="head", kind=kind, window=span), hidden, gate)
        for h, g, d, kind, span in ((heads, kv_heads, width, "gqa", 0), (few, rank, wide, "window", window))
    )
    return full, local, [kind == "sliding_attention" for kind in kinds[:n]]


def head_gated(made: Attention, hidden: int, gate: bool) -> Attention:
    """The same attention with one gate per query head on its output."""
    if not gate:
        return made
    extra = linear("self_attn.g_proj", made.shape["heads"], hidden, "attention", shard="heads")
    return made._replace(weights=(*made.weights, *extra))


def read_mimo_v2(cfg: Config, top: Config) -> Built:
    """MiMo-V2-Flash: values narrower than keys, windows with key/value heads of their own and a sink per head."""
    n, hidden, heads = layer_count(cfg), cfg.count("hidden_size"), cfg.count("num_attention_heads")
    pattern = cfg.items("hybrid_layer_pattern", n, (0, 1))
    if pattern is None:
        cfg.fail("hybrid_layer_pattern", "nothing", "0 (full) or 1 (window) for each layer")
    window = cfg.count("sliding_window", "sliding_window_size")
    cfg.get("attention_chunk_size")  # repeats the window
    full = gqa(
        hidden,
        heads,
        group_heads(cfg, heads),
        cfg.count("head_dim"),
        value=cfg.count("v_head_dim"),
        sinks=cfg.flag("add_full_attention_sink_bias", False),
    )
    swa_heads = cfg.count("swa_num_attention_heads")
    local = gqa(
        hidden,
        swa_heads,
        group_heads(cfg, swa_heads, "swa_num_key_value_heads"),
        cfg.count("swa_head_dim"),
        value=cfg.count("swa_v_head_dim"),
        kind="window",
        window=window,
        sinks=cfg.flag("add_swa_attention_sink_bias", False),
    )
    block = moe_ffn(expert_shape(cfg, hidden))
    first = dense_layers(cfg, n)
    plain = dense_ffn(hidden, cfg.count("intermediate_size")) if any(first) else block
    return assemble(cfg, top, [local if p else full for p in pattern], [plain if d else block for d in first])


def read_llama4(cfg: Config, top: Config) -> Built:
    """Llama 4: chunked attention with rotation, every fourth layer full and without; experts every few layers.

    The shared expert has the routed experts' width; dense layers have `intermediate_size_mlp`.
    """
    n, hidden, heads = layer_count(cfg), cfg.count("hidden_size"), cfg.count("num_attention_heads")
    kv_heads, width = group_heads(cfg, heads), head_width(cfg, hidden, heads)
    chunk = cfg.count("attention_chunk_size", default=8192, why="default of the family's configuration")
    rotated = llama4_rotation(cfg, n)
    bias = cfg.flag("attention_bias", False)
    full = gqa(hidden, heads, kv_heads, width, qkv_bias=bias, out_bias=bias)
    local = gqa(hidden, heads, kv_heads, width, qkv_bias=bias, out_bias=bias, kind="chunked", window=chunk)
    mixers = [local if rotate else full for rotate in rotated]
    place, head = body_name(cfg), head_name(cfg)
    return assemble(cfg, top, mixers, llama4_ffns(cfg, n, hidden), place=place, head=head)


def llama4_ffns(cfg: Config, n: int, hidden: int) -> list[Ffn]:
    """The feed-forward block of each layer: experts with a shared one, or dense between them."""
    experts, ffn, base = cfg.count("num_local_experts"), cfg.count("intermediate_size"), "feed_forward."
    active = cfg.count("num_experts_per_tok", high=experts)
    block = moe_ffn(Moe(hidden, ffn, experts, active, ffn, 1, base=base, router="router", shared_base="shared_expert."))
    every = cfg.count("interleave_moe_layer_step", default=1, why="default of the family's configuration")
    listed = cfg.items("moe_layers", choices=range(n))
    sparse = [i in listed if listed is not None else (i + 1) % every == 0 for i in range(n)]
    plain = block if all(sparse) else dense_ffn(hidden, cfg.count("intermediate_size_mlp"), base=base)
    cfg.get("intermediate_size_mlp")
    return [block if flag else plain for flag in sparse]


def llama4_rotation(cfg: Config, n: int) -> list[bool]:
    """For each layer, whether it rotates and is chunked: 1 in `no_rope_layers` means it does."""
    kinds = cfg.items("layer_types", n, ("full_attention", "chunked_attention"))
    listed = cfg.items("no_rope_layers")
    every = cfg.count("no_rope_layer_interval", default=4, why="default of the family's configuration")
    if kinds is not None:
        return [kind == "chunked_attention" for kind in kinds]
    if listed:
        return [flag == 1 for flag in cfg.items("no_rope_layers", n, (0, 1)) or []]
    return [(i + 1) % every != 0 for i in range(n)]
