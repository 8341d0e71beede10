"""Uses of the feed-forward blocks, dense and with experts, and of the two ends of a model."""

from __future__ import annotations

from collections.abc import Iterator

from roofline.models import Ffn, Layer, Weight
from roofline.plan.maker import Maker
from roofline.plan.records import Use, Value
from roofline.plan.tensors import MATH, OUTWARD, Tensor, products, shared, stored


def feed_forward(make: Maker, layer: Layer) -> Iterator[Use]:
    """Every feed-forward block of a layer, with what it sends."""
    for block in layer.ffns:
        norms, rest = make.split(make.tensors(layer, block.weights))
        yield from make.norms(norms)
        if block.kind == "moe":
            yield from _experts(make, block, rest)
        elif block.kind == "dense":
            yield from _pair(make, rest, "ffn", "dense FFN", block.gated)
            yield from make.all_reduce("all-reduce after the FFN")
        else:
            yield from make.plain(rest, "ffn", {}, "linear map in place of an FFN")


def _pair(make: Maker, tensors: list[Tensor], part: str, name: str, gated: bool) -> Iterator[Use]:
    """Up (with gate) and down."""
    for product in products(tensors):
        if product.leaves[0] in OUTWARD:
            yield make.linear(f"{name}, down", part, product)
        elif gated and len(product.leaves) == 2:
            values = {**make.tokens, "hidden": product.width, "ffn": product.out / 2, "w_weight": product.element_bytes}
            title = f"{name}, gate and up"
            yield make.use(title, "gated_linear", part, values, precision=product.precision, weights=product.names)
        else:
            yield make.linear(f"{name}, up", part, product)


def _experts(make: Maker, block: Ffn, tensors: list[Tensor]) -> Iterator[Use]:
    """Router, shared experts, projections around routed experts, routed experts, dispatch and combine."""
    kinds: dict[str, list[Tensor]] = {}
    for t in tensors:
        kinds.setdefault(t.weight.kind, []).append(t)
    routed = kinds.pop("routed_experts")
    yield from make.plain(kinds.pop("router", []), "experts", {}, "router")
    yield from _pair(make, kinds.pop("shared_experts", []), "experts", "shared experts", block.gated)
    for kind, rest in kinds.items():
        yield from make.plain(rest, "experts", {}, kind.replace("_", " "))
    yield from _sent(make, block, routed, "moe_dispatch")
    yield from _routed(make, block, routed)
    yield from _sent(make, block, routed, "moe_combine")
    yield from make.all_reduce("all-reduce after the experts")


def _routed(make: Maker, block: Ffn, tensors: list[Tensor]) -> Iterator[Use]:
    """The two grouped products of the experts on a rank."""
    shape, spread, way = block.shape, make.spread, make.options.routing
    routing: dict[str, Value] = {
        **make.step_tokens,
        "experts": shape["experts"],
        "active_experts": shape["active_experts"],
        "zero_experts": shape["zero_experts"],
        "ep": spread.ep,
        "routed_tokens": f"routed.{way}",
        "distinct_experts": f"distinct.{way}",
        "tokens": "visiting_tokens",
    }
    width, ffn = shape["expert_hidden"], shared(shape["ffn"], spread.expert_tp)
    for outward in (False, True):
        members = [t for t in tensors if (t.leaf in OUTWARD) is outward]
        matrices = 2 if block.gated and not outward else 1
        elements = matrices * width * ffn * shape["experts"] / spread.ep
        size = sum(t.bytes for t in members)
        kernel = "moe_down" if outward else "moe_gated" if block.gated else "moe_up"
        name = (
            "routed experts, down"
            if outward
            else "routed experts, gate and up"
            if block.gated
            else "routed experts, up"
        )
        values = {**routing, "hidden": width, "ffn": ffn, "w_weight": size / elements}
        told = tuple(t.name for t in members)
        yield make.use(name, kernel, "experts", values, precision=members[0].precision, weights=told)


def _sent(make: Maker, block: Ffn, routed: list[Tensor], kernel: str) -> Iterator[Use]:
    """Tokens to the experts of other ranks, or partial sums back; none where all ranks hold the same tokens."""
    spread, shape = make.spread, block.shape
    if spread.dp == 1:
        return
    values: dict[str, Value] = {
        **make.tokens,
        "hidden": shape["expert_hidden"],
        "destinations": "destinations",
        "ranks": spread.expert_ranks,
        "ep": spread.ep,
        "active_experts": shape["active_experts"],
    }
    if spread.tp > 1:  # the ranks of a replica send a part of its tokens each
        values = {
            **values,
            "tokens": "mixed_tokens_split" if make.load.phase == "mixed" else "tokens_split",
            "tp": spread.tp,
        }
    if kernel == "moe_dispatch":
        values["w_dispatch"] = make.options.w_act if routed[0].precision == "bf16" else 1
    yield make.use(kernel.replace("moe_", "expert "), kernel, "communication", values)


def first_end(make: Maker) -> Iterator[Use]:
    """The lookup of the new tokens, and the sum over ranks that each hold a part of the table."""
    for weight in make.model.ends:
        if weight.kind == "embedding":
            size = make.model.quantization.stored(weight.name, weight, make.model.dtype)[1]
            values = {**make.tokens, "hidden": weight.shape[1], "w_weight": size / weight.elements}
            yield make.use("embedding", "embedding", "embedding", values, weights=(weight.name,))
    yield from make.all_reduce("all-reduce after the embedding")


def last_end(make: Maker) -> Iterator[Use]:
    """The last norm, the head on the tokens that ask for a next one, and the gather of its logits."""
    tensors = stored(make.model, make.spread, "", [w for w in make.model.ends if w.kind not in ("embedding", "head")])
    norms, rest = make.split(tensors)
    yield from make.norms(norms)
    yield from make.plain(rest, "ffn", {}, "maps beside the layers")
    yield from head(make)


def head(make: Maker) -> Iterator[Use]:
    """The head: a matrix of its own, or the embedding's."""
    weight = head_of(make.model.ends)
    dtype, size = make.model.quantization.stored(weight.name, weight, make.model.dtype)
    vocab, width = weight.shape
    if make.model.tied:
        vocab = min(vocab, make.model.vocab)
    rows = -(-vocab // make.spread.tp)
    values = {**make.head_tokens, "hidden": width, "ffn": rows, "w_weight": size / weight.elements}
    yield make.use("head", "linear", "head", values, precision=MATH.get(dtype, "bf16"), weights=(weight.name,))
    if make.spread.tp > 1:
        gathered = {**make.head_tokens, "hidden": vocab, "ranks": make.spread.tp}
        yield make.use("gather of logits", "all_gather", "communication", gathered)


def head_of(ends: tuple[Weight, ...]) -> Weight:
    """The tensor that the head multiplies by."""
    return next((w for w in ends if w.kind == "head"), ends[0])
