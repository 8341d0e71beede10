"""Multi-head latent attention and its sparse form: DeepSeek V2, V3 and V3.2, Kimi K2, GLM-5, LongCat-Flash.

Axes: heads H, latent d, rope r, nope n, value v, query latent d_q (null: queries are projected directly), indexer heads
H_I of width d_I.  The cache row is the latent and the shared rotary key, d + r, whatever `num_key_value_heads` says.
Sources: arXiv:2405.04434 sec. 2.1 (MLA), arXiv:2412.19437 sec. 2 (MoE, MTP), arXiv:2512.02556 sec. 2 (indexer),
arXiv:2603.12201 (sharing the selection over layers).
"""

from __future__ import annotations

from types import MappingProxyType

from roofline.models.config import Config
from roofline.models.parts import (
    Built,
    Moe,
    assemble,
    dense_ffn,
    ends,
    layer_count,
    linear,
    moe_ffn,
    norm,
    tie,
)
from roofline.models.records import NO_FFN, Attention, Ffn, Layer, Weight

A, X = "attention", "indexer"


def mla(cfg: Config, hidden: int, *, out_gate: bool = False, base: str = "self_attn.") -> Attention:
    """Latent attention as the configuration describes it."""
    heads = cfg.count("num_attention_heads")
    cfg.get("num_key_value_heads")  # equal to the heads by convention; the cache is the latent
    cfg.get("head_dim")  # another name of the rotary or query width, unused by this attention
    latent, rope = cfg.count("kv_lora_rank"), cfg.count("qk_rope_head_dim", low=0)
    nope, value = cfg.count("qk_nope_head_dim"), cfg.count("v_head_dim")
    q_latent = cfg.count("q_lora_rank", default=None, null=True)
    if "q_lora_rank" not in cfg.data:
        cfg.fail("q_lora_rank", "nothing", "a whole number, or null for a direct query projection")
    declared = cfg.count("qk_head_dim", default=None)
    if declared not in (None, nope + rope):
        cfg.fail("qk_head_dim", declared, f"qk_nope_head_dim + qk_rope_head_dim = {nope + rope}")
    bias = cfg.flag("attention_bias", False)
    query = heads * (nope + rope)
    if q_latent is None:
        weights = [*linear(f"{base}q_proj", query, hidden, A, shard="heads")]
    else:
        weights = [*linear(f"{base}q_a_proj", q_latent, hidden, A, bias=bias), *norm(f"{base}q_a_layernorm", q_latent)]
        weights += linear(f"{base}q_b_proj", query, q_latent, A, shard="heads")
    weights += linear(f"{base}kv_a_proj_with_mqa", latent + rope, hidden, A, bias=bias)
    weights += norm(f"{base}kv_a_layernorm", latent)
    weights += linear(f"{base}kv_b_proj", heads * (nope + value), latent, A, shard="heads")
    if out_gate:
        weights += linear(f"{base}g_proj", heads * value, hidden, A, shard="heads")
    weights += linear(f"{base}o_proj", hidden, heads * value, A, bias=bias, shard="heads")
    shape = {"heads": heads, "latent": latent, "rope": rope, "nope": nope, "value": value, "hidden": hidden}
    if q_latent is not None:
        shape["q_latent"] = q_latent
    return Attention("mla", MappingProxyType(shape), tuple(weights))


def sparse(cfg: Config, core: Attention, hidden: int, *, pool: int = 1) -> tuple[Attention, Attention]:
    """Sparse attention over `core`: (a layer that runs the indexer, a layer that reuses a selection)."""
    heads, width, topk = cfg.count("index_n_heads"), cfg.count("index_head_dim"), cfg.count("index_topk")
    if "q_latent" not in core.shape:
        cfg.fail("q_lora_rank", "null", "a query latent: the indexer projects its queries from it")
    base = "self_attn.indexer."
    weights = [*linear(f"{base}wq_b", heads * width, core.shape["q_latent"], X), *linear(f"{base}wk", width, hidden, X)]
    weights += norm(f"{base}k_norm", width, bias=True, kind=X, dtype="float32")
    weights += linear(f"{base}weights_proj", heads, hidden, X)
    if pool > 1:  # keys are pooled by a learned gate and a position term
        weights.append(Weight(f"{base}index_kpool_compress_gate", (width, hidden), X))
        weights.append(Weight(f"{base}index_kpool_compress_ape", (pool, width), X, dtype="float32"))
    shape = {**core.shape, "topk": topk, "index_heads": heads, "index_head_dim": width}
    if pool > 1:
        shape["index_pool"] = pool
    frozen = MappingProxyType(shape)
    full = Attention("dsa", frozen, (*core.weights, *weights), None, "full")
    return full, Attention("dsa", frozen, core.weights, None, "shared")


def index_schedule(cfg: Config, layers: int) -> list[bool]:
    """For each layer, whether it runs the indexer.  A list wins over a pattern, a pattern over frequency and offset."""
    kinds = cfg.items("indexer_types", layers, ("full", "shared"))
    pattern = cfg.get("index_topk_pattern")
    freq = cfg.count("index_topk_freq", default=None)
    offset = cfg.count("index_skip_topk_offset", default=None, low=0)
    if pattern is not None:
        if not isinstance(pattern, str) or len(pattern) != layers or set(pattern) - {"F", "S"}:
            cfg.fail("index_topk_pattern", pattern, f"{layers} letters, F (runs the indexer) or S (shares a selection)")
        made = [letter == "F" for letter in pattern]
    elif freq is not None and freq > 1:
        if offset is None:
            offset = 2
            cfg.default("index_skip_topk_offset", offset, "default of the family's configuration")
        made = [max(i - offset + 1, 0) % freq == 0 for i in range(layers)]
    else:
        made = [True] * layers if kinds is None else [kind == "full" for kind in kinds]
    if kinds is not None and made != [kind == "full" for kind in kinds]:
        at = next(i for i, kind in enumerate(kinds) if made[i] != (kind == "full"))
        cfg.fail(f"indexer_types[{at}]", kinds[at], "full" if made[at] else "shared", "as the sharing keys say")
    if not made[0]:
        cfg.fail("indexer_types[0]", "shared", "full: the first layer has no earlier selection to share")
    return made


def expert_shape(cfg: Config, hidden: int) -> Moe:
    """The expert block of this family."""
    ffn, experts = cfg.count("moe_intermediate_size"), cfg.count("n_routed_experts", "num_experts", "num_local_experts")
    active = cfg.count("num_experts_per_tok", "num_experts_per_token", high=experts)
    shared = cfg.count("n_shared_experts", "num_shared_experts", default=0, low=0, why="no shared expert is named")
    noaux = cfg.text("topk_method", default="") == "noaux_tc" or cfg.text("scoring_func", default="") == "sigmoid"
    return Moe(
        hidden,
        ffn,
        experts,
        active,
        shared * ffn,
        shared,
        correction="gate.e_score_correction_bias" if noaux else "",
    )


def dense_layers(cfg: Config, layers: int) -> list[bool]:
    """For each layer, whether its feed-forward block is dense."""
    first = cfg.count("first_k_dense_replace", default=0, low=0, high=layers, why="every layer has experts")
    every = cfg.get("moe_layer_freq")
    if isinstance(every, list):
        flags = cfg.items("moe_layer_freq", layers, (0, 1)) or []
        made = [not flag for flag in flags]
    else:
        every = cfg.count("moe_layer_freq", default=1) if every is not None else 1
        made = [i < first or i % every != 0 for i in range(layers)]
    kinds = cfg.items("mlp_layer_types", layers, ("dense", "sparse"))
    if kinds is not None and made != [kind == "dense" for kind in kinds]:
        if cfg.has("first_k_dense_replace"):
            want = f"{sum(made)}, as first_k_dense_replace says"
            cfg.fail("mlp_layer_types", f"{kinds.count('dense')} dense layers", want)
        made = [kind == "dense" for kind in kinds]
    return made


def mtp_layers(hidden: int, like: Layer, first: int, count: int, attention: Attention) -> tuple[Layer, ...]:
    """Prediction modules: a layer like the last one, fed by the embedding and the hidden state, sharing both ends."""
    join = (
        *linear("eh_proj", hidden, 2 * hidden, "mtp"),
        *norm("enorm", hidden),
        *norm("hnorm", hidden),
        *norm("shared_head.norm", hidden),
    )
    place = like.prefix.rsplit(".", 2)[0]
    return tuple(
        like._replace(index=i, prefix=f"{place}.{i}.", weights=(*like.weights, *join), attention=attention)
        for i in range(first, first + count)
    )


def read_deepseek(cfg: Config, top: Config) -> Built:
    """DeepSeek V2, V3 and V3.2, Kimi K2, GLM-5: latent attention, dense first layers, experts after."""
    hidden, n = cfg.count("hidden_size"), layer_count(cfg)
    full = shared = mla(cfg, hidden)
    cfg.items("layer_types", n, ("deepseek_sparse_attention" if cfg.has("index_topk") else "full_attention",))
    schedule = [True] * n
    if cfg.has("index_topk"):
        full, shared = sparse(cfg, full, hidden, pool=cfg.count("index_kpool", default=None) or 1)
        schedule = index_schedule(cfg, n)
    mixers = [full if runs else shared for runs in schedule]
    ffns = feed_forward(cfg, hidden, n)
    built = assemble(cfg, top, mixers, ffns, place=body_name(cfg), head=head_name(cfg))
    modules = cfg.count("num_nextn_predict_layers", default=0, low=0, high=64, why="no prediction module is named")
    return built._replace(mtp=mtp_layers(hidden, built.layers[-1], n, modules, full))


def feed_forward(cfg: Config, hidden: int, n: int) -> list[Ffn]:
    """The feed-forward block of each layer: dense in the first ones, experts after."""
    first = dense_layers(cfg, n)
    experts = moe_ffn(expert_shape(cfg, hidden)) if not all(first) else NO_FFN
    dense = dense_ffn(hidden, cfg.count("intermediate_size")) if any(first) else experts
    return [dense if flag else experts for flag in first]


def body_name(cfg: Config) -> str:
    """The prefix of the body's tensors: a nested language model sits below another name."""
    return "language_model.model." if cfg.where else "model."


def head_name(cfg: Config) -> str:
    """The name of the head's tensor."""
    return "language_model.lm_head" if cfg.where else "lm_head"


def read_longcat(cfg: Config, top: Config) -> Built:
    """LongCat-Flash: each block holds two attentions and two dense blocks, and experts beside the first of them.

    Zero experts pass the token through: they widen the router and hold no weights.  A block is listed as two layers.
    Prediction modules of the checkpoint are not described by the configuration and are not counted.
    """
    hidden, vocab = cfg.count("hidden_size"), cfg.count("vocab_size")
    n = layer_count(cfg, "num_layers")
    both = cfg.count("num_hidden_layers", default=None)
    if both not in (None, 2 * n, n):
        cfg.fail("num_hidden_layers", both, f"2 * num_layers = {2 * n}")
    ffn, moe = cfg.count("ffn_hidden_size", "intermediate_size"), longcat_experts(cfg, hidden)
    halves = []
    for half in (0, 1):
        core, dense = mla(cfg, hidden, base=f"self_attn.{half}."), dense_ffn(hidden, ffn, base=f"mlps.{half}.")
        norms = (*norm(f"input_layernorm.{half}", hidden), *norm(f"post_attention_layernorm.{half}", hidden))
        halves.append((core, (dense, moe) if half == 0 else (dense,), norms))
    layers = []
    for i in range(2 * n):
        core, ffns, norms = halves[i % 2]
        layers.append(Layer(i, core, ffns, f"model.layers.{i // 2}.", norms))
    cfg.note("a block of LongCat-Flash is listed as two layers; its experts stand beside the first")
    tied = tie(cfg, top)
    return Built(hidden, vocab, tuple(layers), ends(vocab, hidden, tied), tied)


def longcat_experts(cfg: Config, hidden: int) -> Ffn:
    """LongCat's experts, some of which do nothing."""
    experts = cfg.count("n_routed_experts")
    zero = cfg.count("zero_expert_num", default=0, low=0, why="no zero expert is named")
    active = cfg.count("moe_topk", "num_experts_per_tok", high=experts + zero)
    if zero:
        share = active * experts / (experts + zero)
        cfg.note(f"active parameters are the most: with even routing {share:g} of a token's {active} experts are real")
    return moe_ffn(
        Moe(
            hidden,
            cfg.count("expert_ffn_hidden_size", "moe_intermediate_size"),
            experts,
            min(active, experts),
            zero_experts=zero,
            router="router.classifier",
            router_bias=cfg.flag("router_bias", False),
            correction="router.e_score_correction_bias",
        )
    )
