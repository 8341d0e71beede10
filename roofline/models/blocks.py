"""Models whose layers differ one by one: Nemotron-H (a string or list of blocks), Nemotron-NAS (a list of block
settings), Mllama (cross-attention layers between the others) and Hunyuan (layers that share a cache).

Sources: arXiv:2504.03624 (Nemotron-H), arXiv:2411.19146 (Puzzle, the search behind Nemotron-NAS), the model class
mllama of huggingface/transformers, arXiv:2411.02265 (Hunyuan-Large).
"""

from __future__ import annotations

from roofline.models.config import Config
from roofline.models.parts import (
    Built,
    Moe,
    assemble,
    dense_ffn,
    ends,
    gqa,
    group_heads,
    head_width,
    layer_count,
    linear,
    moe_ffn,
    norm,
    tie,
    two_norms,
    with_weights,
)
from roofline.models.records import NO_ATTENTION, NO_FFN, Attention, Ffn, Layer, Weight
from roofline.models.recurrent import mamba2

LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def nemotron_kinds(cfg: Config, text_key: str, list_key: str) -> list[str] | None:
    """The blocks as words, from a string of letters or from a list."""
    word = cfg.text(text_key)
    listed = cfg.items(list_key, choices=tuple(LETTERS.values()))
    if word:
        bad = next((at for at, letter in enumerate(word) if letter not in LETTERS), None)
        if bad is not None:
            cfg.fail(f"{text_key}[{bad}]", word[bad], "one of M (Mamba), * (attention), - (dense), E (experts)")
        made = [LETTERS[letter] for letter in word]
        if listed is not None and listed != made:
            cfg.fail(list_key, listed, f"the same blocks as {text_key}")
        return made
    return listed


def read_nemotron_h(cfg: Config, top: Config) -> Built:
    """Nemotron-H and Nemotron 3: each block is one sublayer: Mamba-2, attention, dense or experts."""
    hidden, vocab = cfg.count("hidden_size"), cfg.count("vocab_size")
    kinds = nemotron_kinds(cfg, "hybrid_override_pattern", "layers_block_type")
    if kinds is None:
        cfg.fail("hybrid_override_pattern", "nothing", "a letter for each block, or layers_block_type")
    n = cfg.count("num_hidden_layers", default=len(kinds), high=10_000, why="the number of blocks listed")
    if n != len(kinds):
        cfg.fail("num_hidden_layers", n, f"{len(kinds)}, the number of blocks listed")
    made = {kind: _nemotron_block(cfg, hidden, kind) for kind in dict.fromkeys(kinds)}
    before = norm("norm", hidden)
    layers = tuple(
        Layer(i, made[kind][0], (made[kind][1],), f"backbone.layers.{i}.", before) for i, kind in enumerate(kinds)
    )
    tied = tie(cfg, top)
    edges = ends(vocab, hidden, tied, embed="backbone.embeddings", final="backbone.norm_f")
    return Built(hidden, vocab, layers, edges, tied, _nemotron_mtp(cfg, hidden, n))


def _nemotron_block(cfg: Config, hidden: int, kind: str) -> tuple[Attention, Ffn]:
    """One block: its token mixer or its feed-forward part."""
    if kind == "mamba":
        return mamba2(cfg, hidden), NO_FFN
    if kind == "attention":
        heads = cfg.count("num_attention_heads")
        width = cfg.count("head_dim", "attention_head_dim")
        bias = cfg.flag("attention_bias", False)
        return gqa(hidden, heads, group_heads(cfg, heads), width, qkv_bias=bias, out_bias=bias, base="mixer."), NO_FFN
    if kind == "mlp":
        bias = cfg.flag("mlp_bias", False)
        return NO_ATTENTION, dense_ffn(hidden, cfg.count("intermediate_size"), base="mixer.", gated=False, bias=bias)
    return NO_ATTENTION, _nemotron_experts(cfg, hidden)


def _nemotron_experts(cfg: Config, hidden: int) -> Ffn:
    """Experts of two matrices, in a narrower space where `moe_latent_size` says so."""
    experts = cfg.count("n_routed_experts")
    shared = cfg.count("n_shared_experts", default=0, low=0, why="no shared expert is named")
    width = cfg.count("moe_shared_expert_intermediate_size") if shared else 0
    narrow = cfg.count("moe_latent_size", default=None)
    block = moe_ffn(
        Moe(
            hidden,
            cfg.count("moe_intermediate_size"),
            experts,
            cfg.count("num_experts_per_tok", high=experts),
            shared * width,
            shared,
            expert_hidden=narrow or 0,
            gated=False,
            base="mixer.",
            correction="gate.e_score_correction_bias",
        )
    )
    if not narrow:
        return block
    extra = [*linear("mixer.fc1_latent_proj", narrow, hidden, "expert_projection")]
    return with_weights(block, [*extra, *linear("mixer.fc2_latent_proj", hidden, narrow, "expert_projection")])


def _nemotron_mtp(cfg: Config, hidden: int, n: int) -> tuple[Layer, ...]:
    """Prediction modules: the blocks of `mtp_hybrid_override_pattern`, joined in at the first."""
    count = cfg.count("num_nextn_predict_layers", default=0, low=0, high=64)
    kinds = nemotron_kinds(cfg, "mtp_hybrid_override_pattern", "mtp_layers_block_type")
    if not count:
        return ()
    if kinds is None:
        cfg.fail("mtp_hybrid_override_pattern", "nothing", "the blocks of the prediction module")
    join = (*linear("eh_proj", hidden, 2 * hidden, "mtp"), *norm("enorm", hidden), *norm("hnorm", hidden))
    made = []
    for i, kind in enumerate(kinds * count):
        mixer, ffn = _nemotron_block(cfg, hidden, kind)
        at = i % len(kinds)
        extra = (join if at == 0 else ()) + (norm("final_layernorm", hidden) if at == len(kinds) - 1 else ())
        made.append(Layer(n + i, mixer, (ffn,), f"mtp.layers.{i}.", (*norm("norm", hidden), *extra)))
    return tuple(made)


def read_nemotron_nas(cfg: Config, top: Config) -> Built:
    """Nemotron-NAS (DeciLM): for each layer its own group size and FFN width, or no attention or FFN at all."""
    hidden, vocab, n = cfg.count("hidden_size"), cfg.count("vocab_size"), layer_count(cfg)
    heads = cfg.count("num_attention_heads")
    width = head_width(cfg, hidden, heads)
    for key in ("num_key_value_heads", "intermediate_size"):
        if cfg.get(key) is not None:
            cfg.fail(key, cfg.get(key), "null: block_configs sets it for each layer")
    blocks = cfg.items("block_configs", n)
    if blocks is None:
        cfg.fail("block_configs", "nothing", f"one entry for each of {n} layers")
    bias = cfg.flag("attention_bias", False)
    layers = []
    for i, entry in enumerate(blocks):
        if not isinstance(entry, dict):
            cfg.fail(f"block_configs[{i}]", entry, "an object with attention and ffn")
        block = Config(entry, cfg.file, cfg.path(f"block_configs[{i}]"), cfg)
        mixer, first = _nas_attention(block, hidden, heads, width, bias)
        ffn, second = _nas_ffn(block, hidden, cfg.flag("mlp_bias", False))
        layers.append(Layer(i, mixer, (ffn,), f"model.layers.{i}.", (*first, *second)))
    tied = tie(cfg, top)
    return Built(hidden, vocab, tuple(layers), ends(vocab, hidden, tied), tied)


def _nas_attention(
    block: Config, hidden: int, heads: int, width: int, bias: bool
) -> tuple[Attention, tuple[Weight, ...]]:
    """One layer's attention and the norm before it: a group size, one linear map, or nothing."""
    part = block.need("attention")
    for key in ("sparsify", "num_sink_tokens", "window_length"):
        if part.get(key) not in (None, []):
            part.fail(key, part.get(key), "null", "windows and sinks of this family are not modelled")
    before = norm("input_layernorm", hidden)
    if part.flag("no_op", False):
        return NO_ATTENTION, ()
    if part.flag("replace_with_linear", False):
        return NO_ATTENTION._replace(weights=linear("self_attn.linear_attn", hidden, hidden, "attention")), before
    group = part.count("n_heads_in_group")
    if heads % group:
        part.fail("n_heads_in_group", group, f"a divisor of num_attention_heads {heads}")
    return gqa(hidden, heads, heads // group, width, qkv_bias=bias, out_bias=bias), before


def _nas_ffn(block: Config, hidden: int, bias: bool) -> tuple[Ffn, tuple[Weight, ...]]:
    """One layer's feed-forward block and the norm before it.  The width is 2/3 of ffn_mult * hidden, up to 256s."""
    part = block.need("ffn")
    if part.get("sparsify") not in (None, []):
        part.fail("sparsify", part.get("sparsify"), "null", "sparse blocks of this family are not modelled")
    before = norm("post_attention_layernorm", hidden)
    if part.flag("no_op", False):
        return NO_FFN, ()
    if part.flag("replace_with_linear", False):
        return NO_FFN._replace(weights=linear("mlp.linear_mlp", hidden, hidden, "dense_ffn")), before
    factor = part.number("ffn_mult")
    if factor is None or not 0 < factor < 1000:
        part.fail("ffn_mult", "nothing" if factor is None else factor, "a number > 0")
    return dense_ffn(hidden, -(-int(2 * factor * hidden / 3) // 256) * 256, bias=bias), before


def read_mllama(cfg: Config, top: Config) -> Built:
    """Mllama: text layers with a cache of their own, and cross-attention layers that cache the image tokens once."""
    hidden, vocab, n = cfg.count("hidden_size"), cfg.count("vocab_size"), layer_count(cfg)
    heads = cfg.count("num_attention_heads")
    kv_heads, width = group_heads(cfg, heads), head_width(cfg, hidden, heads)
    across = cfg.items("cross_attention_layers", choices=range(n))
    if across is None or len(set(across)) != len(across):
        cfg.fail("cross_attention_layers", across or "nothing", f"different layers from 0 to {n - 1}")
    own = gqa(hidden, heads, kv_heads, width)
    cross = gqa(hidden, heads, kv_heads, width, kind="cross", qk_norm="head", base="cross_attn.")
    gates = (Weight("cross_attn_attn_gate", (1,), "norm"), Weight("cross_attn_mlp_gate", (1,), "norm"))
    ffn = dense_ffn(hidden, cfg.count("intermediate_size"))
    place = "language_model.model." if cfg.where else "model."
    layers = tuple(
        Layer(
            i,
            cross if i in across else own,
            (ffn,),
            f"{place}layers.{i}.",
            (*two_norms(hidden), *(gates if i in across else ())),
        )
        for i in range(n)
    )
    tied = tie(cfg, top)
    made = list(ends(vocab, hidden, tied, embed=f"{place}embed_tokens", final=f"{place}norm"))
    made[0] = made[0]._replace(shape=(vocab + 8, hidden))  # eight rows more for the image tokens
    cfg.note("the embedding holds 8 rows more than vocab_size, for image tokens, as the family's model class makes it")
    return Built(hidden, vocab, layers, tuple(made), tied)


def read_hunyuan(cfg: Config, top: Config) -> Built:
    """Hunyuan-Large: experts with a shared one; with `use_cla`, every `cla_share_factor`-th layer's cache serves the
    layers up to the next."""
    hidden, n, heads = cfg.count("hidden_size"), layer_count(cfg), cfg.count("num_attention_heads")
    kv_heads = group_heads(cfg, heads)
    declared = cfg.count("attention_head_dim", default=None)
    width = declared or head_width(cfg, hidden, heads)
    step = cfg.count("cla_share_factor", default=1, why="every layer has a cache of its own")
    if not cfg.flag("use_cla", step > 1):
        step = 1
    norms = "head" if cfg.flag("use_qk_norm", False) else ""
    mixers = [
        gqa(hidden, heads, kv_heads, width, qk_norm=norms, borrow=None if i % step == 0 else i - i % step)
        for i in range(n)
    ]
    return assemble(cfg, top, mixers, [_hunyuan_block(cfg, hidden)] * n)


def _hunyuan_block(cfg: Config, hidden: int) -> Ffn:
    """Dense, or experts with a shared one of the same width."""
    experts, ffn = cfg.count("num_experts", default=1, why="a dense model"), cfg.count("intermediate_size")
    if experts == 1:
        return dense_ffn(hidden, ffn)
    shared = cfg.count("num_shared_expert", default=1, low=0, why="default of the family's configuration")
    width = cfg.count("moe_intermediate_size", default=ffn, why="intermediate_size")
    active = cfg.count("moe_topk", high=experts)
    return moe_ffn(
        Moe(hidden, width, experts, active, shared * ffn, shared, router="gate.wg", shared_base="shared_mlp.")
    )
