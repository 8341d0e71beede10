"""Blocks that many families share: attention, feed-forward and the two ends, each with its list of tensors.

Shapes are (out, in), as a linear layer stores them.  A fused checkpoint tensor (qkv, gate_up) is listed as its parts:
the number of parameters is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import NamedTuple

from roofline.models.config import Config
from roofline.models.records import Attention, Ffn, Layer, Weight

FP32 = "float32"


class Built(NamedTuple):
    """What a family reader returns: the body, the prediction modules, and the two ends."""

    hidden: int
    vocab: int
    layers: tuple[Layer, ...]
    ends: tuple[Weight, ...]
    tied: bool
    mtp: tuple[Layer, ...] = ()
    state_dtype: str = "auto"


def norm(name: str, width: int, *, bias: bool = False, kind: str = "norm", dtype: str = "") -> tuple[Weight, ...]:
    """An RMS norm, or a layer norm with its bias."""
    made = (Weight(f"{name}.weight", (width,), kind, dtype=dtype),)
    return (*made, Weight(f"{name}.bias", (width,), kind, dtype=dtype)) if bias else made


def linear(
    name: str, out: int, width: int, kind: str, *, bias: bool = False, shard: str = "", copies: int = 1, active: int = 1
) -> tuple[Weight, ...]:
    """A linear map, with its bias where it has one."""
    made = (Weight(f"{name}.weight", (out, width), kind, copies, active, shard),)
    return (*made, Weight(f"{name}.bias", (out,), kind, copies, active, shard)) if bias else made


def gqa(
    hidden: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    *,
    value: int = 0,
    kind: str = "gqa",
    window: int = 0,
    qkv_bias: bool = False,
    out_bias: bool = False,
    qk_norm: str = "",
    gate: bool = False,
    sinks: bool = False,
    key_is_value: bool = False,
    borrow: int | None = None,
    base: str = "self_attn.",
) -> Attention:
    """Grouped-query attention.  qk_norm: "head" (one scale a head width), "full" (over all heads) or "";
    gate: the query projection also makes an output gate; borrow: the layer whose keys and values it reads."""
    value = value or head_dim
    a = "attention"
    weights = [*linear(f"{base}q_proj", heads * head_dim * (2 if gate else 1), hidden, a, bias=qkv_bias, shard="heads")]
    if borrow is None:
        weights += linear(f"{base}k_proj", kv_heads * head_dim, hidden, a, bias=qkv_bias, shard="kv_heads")
        if not key_is_value:
            weights += linear(f"{base}v_proj", kv_heads * value, hidden, a, bias=qkv_bias, shard="kv_heads")
    weights += linear(f"{base}o_proj", hidden, heads * value, a, bias=out_bias, shard="heads")
    if qk_norm:
        weights += norm(f"{base}q_norm", head_dim * (heads if qk_norm == "full" else 1))
        if borrow is None:
            weights += norm(f"{base}k_norm", head_dim * (kv_heads if qk_norm == "full" else 1))
    if sinks:
        weights.append(Weight(f"{base}sinks", (heads,), "norm", shard="heads"))
    shape = {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "hidden": hidden}
    if value != head_dim:
        shape["value"] = value
    if window:
        shape["window"] = window
    return Attention(kind, MappingProxyType(shape), tuple(weights), borrow)


def dense_ffn(
    hidden: int, ffn: int, *, base: str = "mlp.", bias: bool = False, gated: bool = True, kind: str = "dense_ffn"
) -> Ffn:
    """A feed-forward block: gate, up and down, or up and down only."""
    weights = [*linear(f"{base}gate_proj", ffn, hidden, kind, bias=bias, shard="ffn")] if gated else []
    weights += linear(f"{base}up_proj", ffn, hidden, kind, bias=bias, shard="ffn")
    weights += _down(f"{base}down_proj", hidden, ffn, kind, bias)
    return Ffn("dense", MappingProxyType({"hidden": hidden, "ffn": ffn}), tuple(weights), gated)


def _down(name: str, hidden: int, ffn: int, kind: str, bias: bool, copies: int = 1, active: int = 1) -> list[Weight]:
    """The map back; its bias is not divided by tensor parallelism."""
    made = [Weight(f"{name}.weight", (hidden, ffn), kind, copies, active, "ffn")]
    return [*made, Weight(f"{name}.bias", (hidden,), kind, copies, active)] if bias else made


class Moe(NamedTuple):
    """What an expert block needs to know; widths in elements."""

    hidden: int
    ffn: int
    experts: int
    active: int
    shared_ffn: int = 0
    shared_experts: int = 0
    zero_experts: int = 0
    expert_hidden: int = 0
    gated: bool = True
    expert_bias: bool = False
    router_bias: bool = False
    correction: str = ""
    shared_gate: str = ""
    base: str = "mlp."
    router: str = "gate"
    experts_base: str = "experts.*."
    shared_base: str = "shared_experts."
    names: Sequence[str] = ("gate_proj", "up_proj", "down_proj")


def moe_ffn(moe: Moe) -> Ffn:
    """A block of routed experts with its router and, where there are some, its shared experts."""
    width = moe.expert_hidden or moe.hidden
    kind, base, pick = "routed_experts", moe.base, moe.experts + moe.zero_experts
    weights = [*linear(f"{base}{moe.router}", pick, moe.hidden, "router", bias=moe.router_bias)]
    if moe.correction:
        weights.append(Weight(f"{base}{moe.correction}", (pick,), "router", dtype=FP32))
    many = {"copies": moe.experts, "active": moe.active}
    for name in moe.names[:-1] if moe.gated else moe.names[1:-1]:
        place = f"{base}{moe.experts_base}{name}"
        weights += linear(place, moe.ffn, width, kind, bias=moe.expert_bias, shard="ffn", **many)
    weights += _down(f"{base}{moe.experts_base}{moe.names[-1]}", width, moe.ffn, kind, moe.expert_bias, **many)
    if moe.shared_ffn:
        place = f"{base}{moe.shared_base}"
        weights += dense_ffn(moe.hidden, moe.shared_ffn, base=place, gated=moe.gated, kind="shared_experts").weights
    if moe.shared_gate:
        weights.append(Weight(f"{base}{moe.shared_gate}.weight", (1, moe.hidden), "router"))
    shape = {"hidden": moe.hidden, "ffn": moe.ffn, "experts": moe.experts, "active_experts": moe.active}
    shape |= {"shared_experts": moe.shared_experts, "shared_ffn": moe.shared_ffn}
    shape |= {"zero_experts": moe.zero_experts, "expert_hidden": width}
    return Ffn("moe", MappingProxyType(shape), tuple(weights), moe.gated)


def with_weights(ffn: Ffn, extra: Sequence[Weight]) -> Ffn:
    """The same block with more tensors."""
    return ffn._replace(weights=(*ffn.weights, *extra))


def ends(
    vocab: int,
    hidden: int,
    tied: bool,
    *,
    embed: str = "model.embed_tokens",
    final: str = "model.norm",
    head: str = "lm_head",
) -> tuple[Weight, ...]:
    """The embedding, the last norm and, where it is not the embedding itself, the head."""
    made = [Weight(f"{embed}.weight", (vocab, hidden), "embedding", shard="vocab"), *norm(final, hidden)]
    if not tied:
        made.append(Weight(f"{head}.weight", (vocab, hidden), "head", shard="vocab"))
    return tuple(made)


def assemble(
    cfg: Config,
    top: Config,
    mixers: Sequence[Attention],
    ffns: Sequence[Ffn],
    *,
    place: str = "model.",
    head: str = "lm_head",
    norms: tuple[Weight, ...] = (),
) -> Built:
    """A body of residual layers, one mixer and one feed-forward block each, and its two ends."""
    hidden, vocab = cfg.count("hidden_size"), cfg.count("vocab_size")
    around = norms or two_norms(hidden)
    layers = tuple(
        Layer(i, mixer, (ffn,), f"{place}layers.{i}.", around)
        for i, (mixer, ffn) in enumerate(zip(mixers, ffns, strict=True))
    )
    tied = tie(cfg, top)
    made = ends(vocab, hidden, tied, embed=f"{place}embed_tokens", final=f"{place}norm", head=head)
    return Built(hidden, vocab, layers, made, tied)


def two_norms(hidden: int) -> tuple[Weight, ...]:
    """The norms before the token mixer and before the feed-forward block."""
    return (*norm("input_layernorm", hidden), *norm("post_attention_layernorm", hidden))


def head_width(cfg: Config, hidden: int, heads: int) -> int:
    """The head width: declared wins over hidden / heads, and the answer says so where they differ."""
    if not cfg.has("head_dim"):
        if hidden % heads:
            cfg.fail("num_attention_heads", heads, f"a divisor of hidden_size {hidden}, or a head_dim key")
        cfg.get("head_dim")
        cfg.default("head_dim", hidden // heads, "hidden_size / num_attention_heads")
        return hidden // heads
    width: int = cfg.count("head_dim")
    if width * heads != hidden:
        cfg.note(f"head_dim {width} is declared and used; hidden_size / num_attention_heads is {hidden / heads:g}")
    return width


def group_heads(cfg: Config, heads: int, key: str = "num_key_value_heads") -> int:
    """The number of key/value heads; where the key is missing, every query head has its own."""
    kv_heads: int = cfg.count(key, default=heads, why="num_attention_heads: every head has its own key and value")
    if heads % kv_heads:
        cfg.fail(key, kv_heads, f"a divisor of num_attention_heads {heads}")
    return kv_heads


def layer_count(cfg: Config, *keys: str) -> int:
    """The number of layers."""
    found: int = cfg.count(*(keys or ("num_hidden_layers",)), high=10_000)
    return found


def tie(cfg: Config, top: Config, family_default: bool = False) -> bool:
    """Whether the head is the embedding; the outer object decides where both say something."""
    for part in (top, cfg):
        if part.has("tie_word_embeddings"):
            cfg.get("tie_word_embeddings")
            return part.flag("tie_word_embeddings", False)
    cfg.default("tie_word_embeddings", family_default, "default of the family's configuration")
    return family_default
