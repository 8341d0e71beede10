"""Uses of the token mixers: grouped-query, windowed, chunked and cross attention, MLA in both modes, DSA,
recurrences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from roofline.errors import BadValue, UnknownName
from roofline.models import Attention, Layer
from roofline.models.kv import index_row, kv_row, latent_row, state_width
from roofline.plan.maker import Group, Maker
from roofline.plan.records import Use, Value
from roofline.plan.tensors import Product, Tensor, products

BLOCK = 64  # tokens of a recurrent layer's block in prefill (FlashKDA and the SSD kernels use 64 to 256)
INWARD = {
    "q_a_proj": "query and KV latents",
    "kv_a_proj_with_mqa": "query and KV latents",
    "q_proj": "queries, keys, values",
    "q_b_proj": "queries from the latent",
    "wq_b": "indexer queries",
}
OUT = {"o_proj": "output projection", "out_proj": "output projection"}


def mixer(make: Maker, layer: Layer) -> Iterator[Use]:
    """Every use of a layer's token mixer, its all-reduce included."""
    attention = layer.attention
    tensors = make.tensors(layer, attention.weights, attention.shape.get("kv_heads", 1))
    norms, rest = make.split(tensors)
    yield from make.norms(norms, attention)
    if attention.kind == "none":
        yield from make.plain(rest, "attention", {}, "linear map in place of attention")
        return
    if attention.kind not in KINDS:
        raise UnknownName("kind of attention", attention.kind, KINDS)
    yield from KINDS[attention.kind](make, layer, rest)
    yield from make.all_reduce("all-reduce after attention")


def _grouped(make: Maker, layer: Layer, tensors: list[Tensor]) -> Iterator[Use]:
    """GQA under a dense, windowed or chunked visibility; a layer that borrows a cache appends nothing."""
    attention = layer.attention
    row = kv_row(attention, make.cache.dtype, make.spread.tp)
    yield from make.plain(tensors, "attention", {**INWARD, **OUT}, "queries, keys, values")
    sight = {"gqa": "dense", "window": "window", "chunked": "chunked"}[attention.kind]
    for group in make.groups:
        if attention.owner is None:
            yield _append(make, group, row)
        yield from _heads_apart(make, group, attention, row, sight)


def _append(make: Maker, group: Group, row: float) -> Use:
    return make.use(_named("cache append", group), "cache_append", "attention", {**group.values, "kv_row_bytes": row})


def _named(name: str, group: Group) -> str:
    return f"{name}, {group.name}" if group.name else name


def _heads_apart(make: Maker, group: Group, attention: Attention, row: float, sight: str) -> Iterator[Use]:
    """The core with keys and values per group, and what context parallelism adds."""
    shape, splits = attention.shape, make.spread.cp > 1 and not group.prefills
    heads = shape["heads"] // make.spread.tp * (make.spread.cp if splits else 1)
    dim, value = shape["head_dim"], shape.get("value", shape["head_dim"])
    values: dict[str, Value] = {**group.values, "heads": heads, **_sight(make, sight, splits)}
    if "window" in shape:
        values["window"] = shape["window"]
    name = _named({"dense": "attention core", "window": "windowed core", "chunked": "chunked core"}[sight], group)
    if value == dim:
        values |= {"head_dim": dim, "kv_row_bytes": row}
        yield make.use(name, "attention", "attention", values, precision=make.core_precision)
    else:  # values narrower than keys: the kernel with its own width for each
        values |= {"nope": dim, "rope": 0, "value": value, "expanded_row_bytes": row}
        yield make.use(name, "mla_mha", "attention", values, precision=make.core_precision)
    yield from _context_parallel(make, group, heads, dim, value, row)


def _sight(make: Maker, sight: str, splits: bool) -> dict[str, Value]:
    """Pairs and rows of a visibility, or a rank's share of them."""
    place = f"{sight}.split" if splits else sight
    return {"pairs": f"{place}.pairs", "rows_read": f"{place}.rows_read", **({"cp": make.spread.cp} if splits else {})}


def _context_parallel(make: Maker, group: Group, heads: float, query: float, out: float, row: float) -> Iterator[Use]:
    """Decode: queries of the cp ranks gathered, partial outputs reduced.  Prefill: the cached rows gathered."""
    cp = make.spread.cp
    if cp == 1:
        return
    if group.prefills:
        values: dict[str, Value] = {**group.values, "rows_read": "gathered_rows", "cp": cp, "kv_row_bytes": row}
        yield make.use(_named("gather of cached rows", group), "kv_send", "communication", values)
        return
    for name, kernel, width in (
        ("gather of queries", "all_gather", query),
        ("merge of partial outputs", "reduce_scatter", out),
    ):
        values = {**group.values, "tokens": "tokens", "hidden": heads * width, "ranks": cp}
        yield make.use(_named(name, group), kernel, "communication", values)


def _cross(make: Maker, layer: Layer, tensors: list[Tensor]) -> Iterator[Use]:
    """Cross-attention: keys and values of the image tokens are made in the prefill and kept."""
    attention = layer.attention
    row = kv_row(attention, make.cache.dtype, make.spread.tp)
    images = [t for t in tensors if t.leaf in ("k_proj", "v_proj")]
    yield from make.plain([t for t in tensors if t not in images], "attention", {"q_proj": "queries", **OUT}, "queries")
    for group in make.groups:
        if group.prefills:
            for product in products(images):
                tokens = {**group.values, "tokens": "image_rows"}
                yield make.linear(_named("keys and values of image tokens", group), "attention", product, tokens)
        shape = attention.shape
        values: dict[str, Value] = {
            **group.values,
            "heads": shape["heads"] // make.spread.tp,
            "head_dim": shape["head_dim"],
            "kv_row_bytes": row,
            "pairs": "cross.pairs",
            "rows_read": "cross.rows_read",
        }
        yield make.use(
            _named("cross-attention core", group), "cross_attention", "attention", values, precision=make.core_precision
        )


def _latent(make: Maker, layer: Layer, tensors: list[Tensor]) -> Iterator[Use]:
    """MLA and DSA.  kv_b is a matrix of the absorption in MQA mode and of the up-projection in MHA mode."""
    attention = layer.attention
    up = [t for t in tensors if t.leaf == "kv_b_proj"]
    index = [t for t in tensors if t.weight.kind == "indexer"]
    others = [t for t in tensors if t not in up and t not in index]
    yield from make.plain(others, "attention", {**INWARD, **OUT}, "queries")
    yield from make.plain(index, "indexer", {**INWARD, "wk": "indexer keys and weights"}, "indexer keys and weights")
    (kv_b,) = products(up)
    row = latent_row(attention.shape["latent"], attention.shape["rope"], make.cache.dtype)
    for group in make.groups:
        yield _append(make, group, row)
        if attention.indexer == "full":
            yield from _indexer(make, group, attention)
        mode = (make.options.mode or ("mha" if attention.kind == "mla" else "mqa")) if group.prefills else "mqa"
        cores = _expanded if mode == "mha" else _absorbed
        yield from cores(make, group, attention, kv_b, row)


def _indexer(make: Maker, group: Group, attention: Attention) -> Iterator[Use]:
    """Scores over all causal keys (or pools of them), and the selection."""
    shape, pool = attention.shape, attention.shape.get("index_pool", 1)
    row = index_row(shape["index_head_dim"], make.options.index_dtype)
    sight = _sight(make, "pooled" if pool > 1 else "dense", make.spread.cp > 1 and not group.prefills)
    sight |= {"index_pool": pool} if pool > 1 else {}
    keys: dict[str, Value] = {**group.values, **sight}
    yield make.use(
        _named("indexer key append", group), "cache_append", "indexer", {**group.values, "kv_row_bytes": row / pool}
    )
    values = {
        **keys,
        "index_heads": shape["index_heads"],
        "index_head_dim": shape["index_head_dim"],
        "index_row_bytes": row,
        "w_index": 1,
        "w_logit": 4,
    }
    precision = "bf16" if make.options.index_dtype == "bfloat16" else "fp8"
    yield make.use(_named("indexer scores", group), "dsa_indexer", "indexer", values, precision=precision)
    chosen = {**keys, "topk": shape["topk"], "w_logit": 4}
    yield make.use(_named("top-k selection", group), "dsa_topk", "indexer", chosen)


def _latent_shape(make: Maker, attention: Attention, splits: bool) -> dict[str, Value]:
    """Widths, and the heads of the rank as they are and as the kernel runs them."""
    shape = attention.shape
    heads = shape["heads"] // make.spread.tp * (make.spread.cp if splits else 1)
    padded = make.options.kernel_heads or heads
    if padded < heads:
        raise BadValue("kernel_heads", padded, f"at least the {heads} heads of a rank", "a kernel pads, it drops none")
    return {"heads": heads, "kernel_heads": padded, **{k: shape[k] for k in ("latent", "rope")}}


def _absorbed(make: Maker, group: Group, attention: Attention, kv_b: Product, row: float) -> Iterator[Use]:
    """MQA mode."""
    shape, splits = attention.shape, make.spread.cp > 1 and not group.prefills
    own = shape["heads"] // make.spread.tp
    projection: dict[str, Value] = {
        **group.values,
        "heads": own,
        "latent": shape["latent"],
        "w_weight": kv_b.element_bytes,
    }
    told = {"precision": kv_b.precision, "weights": kv_b.names}
    yield make.use(
        _named("absorption of queries", group),
        "mla_absorption",
        "attention",
        {**projection, "nope": shape["nope"]},
        **told,
    )
    sparse = attention.kind == "dsa"
    sight = ("topk" if make.options.gather == "none" else "topk_perfect") if sparse else "dense"
    values: dict[str, Value] = {
        **group.values,
        **_latent_shape(make, attention, splits),
        **_sight(make, sight, splits),
        "kv_row_bytes": row,
    }
    values |= {"topk": shape["topk"]} if sparse else {}
    name, kernel = ("sparse core, MQA mode", "dsa_mqa") if sparse else ("core, MQA mode", "mla_mqa")
    yield make.use(_named(name, group), kernel, "attention", values, precision=make.core_precision)
    yield make.use(
        _named("un-absorption of outputs", group),
        "mla_unabsorption",
        "attention",
        {**projection, "value": shape["value"]},
        **told,
    )
    heads = own * (make.spread.cp if splits else 1)
    yield from _context_parallel(make, group, heads, shape["latent"] + shape["rope"], shape["latent"], row)


def _expanded(make: Maker, group: Group, attention: Attention, kv_b: Product, row: float) -> Iterator[Use]:
    """MHA mode: every visible row is expanded, the cached context included; sparse attention masks and skips
    nothing."""
    shape = attention.shape
    values: dict[str, Value] = {
        **group.values,
        "heads": shape["heads"] // make.spread.tp,
        "rope": shape["rope"],
        "nope": shape["nope"],
        "value": shape["value"],
        "w_expanded": make.options.w_act,
        **_sight(make, "dense", False),
    }
    values["expanded_row_bytes"] = "expanded_row"
    up = {**values, "latent": shape["latent"], "kv_row_bytes": row, "w_weight": kv_b.element_bytes}
    yield make.use(
        _named("up-projection of latents", group),
        "mla_up_projection",
        "attention",
        up,
        precision=kv_b.precision,
        weights=kv_b.names,
    )
    kernel = "dsa_mha" if attention.kind == "dsa" else "mla_mha"
    yield make.use(_named("core, MHA mode", group), kernel, "attention", values, precision=make.core_precision)
    yield from _context_parallel(make, group, shape["heads"] // make.spread.tp, 0, 0, row)


def _recurrent(make: Maker, layer: Layer, tensors: list[Tensor]) -> Iterator[Use]:
    """A state instead of a cache: step form in decode, block form in prefill."""
    shape, tp = layer.attention.shape, make.spread.tp
    taps = [t for t in tensors if len(t.weight.shape) == 3]
    biases = {t.leaf for t in taps}
    conv = [t for t in tensors if t.leaf in biases]
    yield from make.plain(
        [t for t in tensors if t not in conv],
        "attention",
        {**OUT, "f_b_proj": "decay and gate"},
        "inputs of the recurrence",
    )
    heads, groups = shape["state_heads"] // tp, -(-shape["state_groups"] // tp)
    channels = heads * shape["state_value"] + 2 * groups * shape["state_key"]
    size = sum(t.bytes for t in conv)
    kind = "ssm" if layer.attention.kind == "mamba2" else "delta"
    for group in make.groups:
        first: dict[str, Value] = {**group.values, "conv_channels": channels, "conv": shape["conv"]}
        first["w_weight"] = size / (channels * shape["conv"])
        yield make.use(
            _named("short convolution", group), "short_conv", "attention", first, weights=tuple(t.name for t in conv)
        )
        values: dict[str, Value] = {
            **group.values,
            "state_heads": heads,
            "state_key": shape["state_key"],
            "state_value": shape["state_value"],
            "w_state": _state_bytes(make),
        }
        values |= {"state_groups": groups} if kind == "ssm" else {}
        values |= {"chunk": BLOCK} if group.prefills else {}
        form = "block" if group.prefills else "step"
        yield make.use(_named(f"recurrence, {form} form", group), f"{kind}_{form}", "attention", values)


def _state_bytes(make: Maker) -> float:
    return state_width(make.model, "auto", "state_dtype", make.model.state_dtype)


Writer = Callable[[Maker, Layer, list[Tensor]], Iterator[Use]]
KINDS: Mapping[str, Writer] = {
    "gqa": _grouped,
    "window": _grouped,
    "chunked": _grouped,
    "cross": _cross,
    "mla": _latent,
    "dsa": _latent,
    "kda": _recurrent,
    "gated_delta": _recurrent,
    "mamba2": _recurrent,
}
