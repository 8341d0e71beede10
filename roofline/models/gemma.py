"""Gemma 2, 3, 3n and 4: windows between full layers, norms around both sublayers, one table for both ends.

Gemma 3n and 4 can share caches: the last `num_kv_shared_layers` layers read the keys and values of the last earlier
layer of their kind.  Gemma 4 has another head width and number of key/value heads in its full layers, and keys that
serve as values without a projection of their own.  Sources: the configuration and model classes gemma2, gemma3,
gemma3n and gemma4 of huggingface/transformers.
"""

from __future__ import annotations

from roofline.models.config import Config
from roofline.models.parts import (
    Built,
    Moe,
    dense_ffn,
    ends,
    gqa,
    linear,
    moe_ffn,
    norm,
    tie,
    with_weights,
)
from roofline.models.records import Attention, Ffn, Layer, Weight

WHY = "default of the family's configuration"
DEFAULTS = {  # heads, key/value heads, head width, window, every n-th layer is full, vocabulary, width, FFN, layers
    "gemma2": (8, 4, 256, 4096, 2, 256_000, 2304, 9216, 26),
    "gemma3_text": (8, 4, 256, 4096, 6, 262_208, 2304, 9216, 26),
    "gemma3n_text": (8, 2, 256, 512, 5, 262_400, 2048, 16_384, 35),
    "gemma4_text": (8, 4, 256, 512, 6, 262_144, 2304, 9216, 30),
}


def four_norms(hidden: int) -> tuple[Weight, ...]:
    """Norms before and after the token mixer and the feed-forward block."""
    names = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")
    return tuple(weight for name in names for weight in norm(name, hidden))


def kinds_of(cfg: Config, n: int, every: int) -> list[bool]:
    """For each layer, whether the window applies; without a list, every n-th layer is full."""
    kinds = cfg.items("layer_types", n, ("full_attention", "sliding_attention"))
    named = cfg.count("sliding_window_pattern", "_sliding_window_pattern", default=None)
    if kinds is not None:
        return [kind == "sliding_attention" for kind in kinds]
    if named is None:
        cfg.default("layer_types", f"every {every}th layer full", WHY)
    step = named or every
    return [(i + 1) % step != 0 for i in range(n)]


def owners(slides: list[bool], shared: int, cfg: Config) -> list[int | None]:
    """For each layer, the layer whose cache it reads, or None for its own."""
    first = len(slides) - shared
    if shared and first <= 0:
        cfg.fail("num_kv_shared_layers", shared, f"fewer than the {len(slides)} layers")
    found: list[int | None] = [None] * len(slides)
    for i in range(first, len(slides)):
        earlier = [j for j in range(first) if slides[j] == slides[i]]
        if not earlier:
            cfg.fail("num_kv_shared_layers", shared, "a layer of the same kind before the shared ones")
        found[i] = earlier[-1]
    return found


def read_gemma(cfg: Config, top: Config) -> Built:
    """Gemma 2, 3, 3n and 4."""
    heads_, kv_, width_, window_, every, vocab_, hidden_, ffn_, layers_ = DEFAULTS[cfg.family]
    n = cfg.count("num_hidden_layers", default=layers_, high=10_000, why=WHY)
    hidden, vocab = cfg.count("hidden_size", default=hidden_, why=WHY), cfg.count("vocab_size", default=vocab_, why=WHY)
    heads = cfg.count("num_attention_heads", default=heads_, why=WHY)
    kv_heads = cfg.count("num_key_value_heads", default=kv_, why=WHY)
    if heads % kv_heads:
        cfg.fail("num_key_value_heads", kv_heads, f"a divisor of num_attention_heads {heads}")
    width = cfg.count("head_dim", default=width_, why=WHY)
    window = cfg.count("sliding_window", default=window_, why=WHY)
    slides = kinds_of(cfg, n, every)
    shared = (
        cfg.count("num_kv_shared_layers", default=15 if cfg.family == "gemma3n_text" else 0, low=0, why=WHY)
        if (cfg.family in ("gemma3n_text", "gemma4_text"))
        else 0
    )
    reads = owners(slides, shared, cfg)
    kinds = list(zip(slides, reads, strict=True))
    made = {
        (slide, owner): _mixer(cfg, hidden, heads, kv_heads, width, window if slide else 0, owner)
        for slide, owner in dict.fromkeys(kinds)
    }
    mixers = [made[kind] for kind in kinds]
    ffns, norms = _ffns(cfg, hidden, n, ffn_, shared), (*four_norms(hidden), *_extras(cfg, hidden))
    place = _place(cfg)
    layers = tuple(Layer(i, mixers[i], ffns[i], f"{place}layers.{i}.", norms) for i in range(n))
    tied = tie(cfg, top, True)
    edges = ends(vocab, hidden, tied, embed=f"{place}embed_tokens", final=f"{place}norm")
    return Built(hidden, vocab, layers, (*edges, *_tables(cfg, hidden, n, place)), tied)


def _place(cfg: Config) -> str:
    if not cfg.where:
        return "model."
    return "language_model.model." if cfg.family == "gemma3_text" else "model.language_model."


def _mixer(
    cfg: Config, hidden: int, heads: int, kv_heads: int, width: int, window: int, owner: int | None
) -> Attention:
    """One layer's attention.  Gemma 3n keeps unused key and value projections in layers that read another's cache."""
    bias, same = cfg.flag("attention_bias", False), False
    if cfg.family == "gemma4_text":
        same = cfg.flag("attention_k_eq_v", False) and not window
        wide = cfg.count("global_head_dim", default=512, why=WHY)
        few = cfg.count("num_global_key_value_heads", default=None)
        if not window:
            width = wide
            kv_heads = few if same and few else kv_heads
            if heads % kv_heads:
                cfg.fail("num_global_key_value_heads", kv_heads, f"a divisor of num_attention_heads {heads}")
    made = gqa(
        hidden,
        heads,
        kv_heads,
        width,
        kind="window" if window else "gqa",
        window=window,
        qkv_bias=bias,
        out_bias=bias,
        qk_norm="" if cfg.family == "gemma2" else "head",
        key_is_value=same,
        borrow=owner if cfg.family == "gemma4_text" else None,
    )
    if owner is not None and cfg.family == "gemma3n_text":
        idle = ("self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.k_norm.weight")
        weights = tuple(w._replace(active=0) if w.name in idle else w for w in made.weights)
        made = made._replace(weights=weights, owner=owner)
    return made


def _ffns(cfg: Config, hidden: int, n: int, default: int, shared: int) -> list[tuple[Ffn, ...]]:
    """The feed-forward blocks of each layer; Gemma 3n lists a width for each layer, Gemma 4 can have experts beside."""
    listed = cfg.get("intermediate_size")
    if isinstance(listed, list):
        widths = cfg.items("intermediate_size", n) or []
        for at, width in enumerate(widths):
            if isinstance(width, bool) or not isinstance(width, int) or width < 1:
                cfg.fail(f"intermediate_size[{at}]", width, "a whole number >= 1")
    else:
        widths = [cfg.count("intermediate_size", default=default, why=WHY)] * n
    if cfg.flag("use_double_wide_mlp", False):
        widths = [w * 2 if i >= n - shared else w for i, w in enumerate(widths)]
    made = {width: dense_ffn(hidden, width) for width in set(widths)}
    beside: tuple[Ffn, ...] = (_experts(cfg, hidden),) if cfg.flag("enable_moe_block", False) else ()
    return [(made[width], *beside) for width in widths]


def _experts(cfg: Config, hidden: int) -> Ffn:
    """Gemma 4's experts, with the norms and scales that they bring."""
    experts = cfg.count("num_experts")
    block = moe_ffn(
        Moe(
            hidden,
            cfg.count("moe_intermediate_size"),
            experts,
            cfg.count("top_k_experts", high=experts),
            base="",
            router="router.proj",
        )
    )
    extra = [Weight("router.scale", (hidden,), "router"), Weight("router.per_expert_scale", (experts,), "router")]
    for name in ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2"):
        extra += norm(name, hidden)
    return with_weights(block, extra)


def _extras(cfg: Config, hidden: int) -> tuple[Weight, ...]:
    """What else a layer of Gemma 3n or 4 holds."""
    made: list[Weight] = []
    if cfg.family == "gemma4_text":
        made.append(Weight("layer_scalar", (1,), "norm"))
    if cfg.family == "gemma3n_text":
        rank = cfg.count("laurel_rank", default=64, why=WHY)
        inputs = cfg.count("altup_num_inputs", default=4, why=WHY)
        made += linear("laurel.linear_left", rank, hidden, "residual")
        made += linear("laurel.linear_right", hidden, rank, "residual")
        made += [*norm("laurel.post_laurel_norm", hidden), Weight("altup.correct_output_scale", (hidden,), "residual")]
        made += linear("altup.correction_coefs", inputs, inputs, "residual")
        made += linear("altup.prediction_coefs", inputs * inputs, inputs, "residual")
        made += [*linear("altup.modality_router", inputs, hidden, "residual"), *norm("altup.router_norm", hidden)]
    width = _per_layer(cfg)
    if width:
        made += linear("per_layer_input_gate", width, hidden, "per_layer_input")
        made += linear("per_layer_projection", hidden, width, "per_layer_input")
        made += norm("post_per_layer_input_norm", hidden)
    return tuple(made)


def _per_layer(cfg: Config) -> int:
    """The width of the per-layer inputs, 0 without them."""
    if cfg.family not in ("gemma3n_text", "gemma4_text"):
        return 0
    width: int = cfg.count("hidden_size_per_layer_input", default=256, low=0, why=WHY)
    return width


def _tables(cfg: Config, hidden: int, n: int, place: str) -> tuple[Weight, ...]:
    """The table of per-layer inputs and the maps around AltUp's parallel streams."""
    made: list[Weight] = []
    width = _per_layer(cfg)
    if width:
        rows = cfg.count("vocab_size_per_layer_input", default=262_144, why=WHY)
        made.append(Weight(f"{place}embed_tokens_per_layer.weight", (rows, n * width), "embedding", shard="vocab"))
        made += linear(f"{place}per_layer_model_projection", n * width, hidden, "per_layer_input")
        made += norm(f"{place}per_layer_projection_norm", width)
    if cfg.family == "gemma3n_text":
        more = cfg.count("altup_num_inputs", default=4, why=WHY) - 1
        for name in ("altup_projections", "altup_unembed_projections"):
            made += linear(f"{place}{name}.*", hidden, hidden, "residual", copies=more, active=more)
    return tuple(made)
