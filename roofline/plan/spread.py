"""Which degrees of parallelism a model allows, and what part of each tensor one device holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import gcd

from roofline.errors import BadValue
from roofline.models import Attention, Layer, Model, Weight
from roofline.plan.records import Deployment

LATENT = ("mla", "dsa")


def check_deployment(model: Model, spread: Deployment) -> Deployment:
    """The deployment as given, or BadValue that says which degrees do divide and why."""
    for name in spread._fields:
        value = getattr(spread, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise BadValue(name, value, "a whole number >= 1")
    good = tensor_degrees(model)
    if spread.tp not in good:
        raise BadValue(
            "tp",
            spread.tp,
            f"a degree that divides the heads and widths of {model.id}: {_listed(good)}",
            _why(model, spread.tp),
        )
    _check_experts(model, spread)
    if spread.pp > len(model.layers):
        raise BadValue("pp", spread.pp, f"at most the {len(model.layers)} layers of {model.id}")
    _check_context(model, spread)
    return spread


def tensor_degrees(model: Model) -> list[int]:
    """Every tp that divides the model: query and state heads, feed-forward widths; key/value heads divide or
    replicate."""
    limit = 0
    for _, count in counts(model):
        limit = gcd(limit, count)
    return [n for n in range(1, limit + 1) if limit % n == 0 and all(_groups_fit(a, n) for a in mixers(model))]


def counts(model: Model) -> Iterator[tuple[str, int]]:
    """(what, how many) of everything that tensor parallelism must divide."""
    for attention in mixers(model):
        if "heads" in attention.shape:
            yield "heads", attention.shape["heads"]
    for layer in distinct(model.layers):
        for block in layer.ffns:
            if block.kind == "dense":
                yield "ffn", block.shape["ffn"]
            elif block.kind == "moe" and block.shape["shared_ffn"]:
                yield "shared_ffn", block.shape["shared_ffn"]


def mixers(model: Model) -> list[Attention]:
    """The different token mixers that divide into heads."""
    found = {id(layer.attention): layer.attention for layer in model.layers}
    return [a for a in found.values() if a.kind != "none"]


def distinct(layers: Iterable[Layer]) -> list[Layer]:
    """One layer for each list of feed-forward blocks that occurs."""
    return list({tuple(id(f) for f in layer.ffns): layer for layer in layers}.values())


def _groups_fit(attention: Attention, tp: int) -> bool:
    groups = attention.shape.get("kv_heads", 1) if attention.kind not in LATENT else 1
    return groups % tp == 0 or tp % groups == 0


def _why(model: Model, tp: int) -> str:
    bad = [f"{what} {count}" for what, count in dict(counts(model)).items() if count % tp]
    if bad:
        return f"{', '.join(bad)} cannot be divided by {tp}"
    return f"key/value heads neither divide by {tp} nor replicate evenly"


def _listed(values: list[int]) -> str:
    return ", ".join(map(str, values))


def _check_experts(model: Model, spread: Deployment) -> None:
    blocks = [b for layer in distinct(model.layers) for b in layer.ffns if b.kind == "moe"]
    ranks = spread.expert_ranks
    if not blocks:
        if spread.ep > 1:
            raise BadValue("ep", spread.ep, f"1: {model.id} has no routed experts")
        return
    good = [n for n in range(1, ranks + 1) if ranks % n == 0 and all(_experts_fit(b.shape, ranks, n) for b in blocks)]
    if spread.ep in good:
        return
    experts, ffn = blocks[0].shape["experts"], blocks[0].shape["ffn"]
    reason = (
        f"tp * dp = {ranks} ranks, {experts} experts of width {ffn}: "
        "ep divides the ranks and the experts, ranks/ep the width"
    )
    raise BadValue("ep", spread.ep, f"one of {_listed(good)}" if good else "another tp or dp: no degree fits", reason)


def _experts_fit(shape: Mapping[str, int], ranks: int, ep: int) -> bool:
    return shape["experts"] % ep == 0 and shape["ffn"] % (ranks // ep) == 0


def _check_context(model: Model, spread: Deployment) -> None:
    if spread.cp == 1:
        return
    copies = replicas(model, spread.tp)
    good = [n for n in range(1, copies + 1) if copies % n == 0]
    if spread.cp not in good:
        note = f"the cache of a sequence has {copies} copies among tp = {spread.tp} ranks; cp splits the copies"
        raise BadValue("cp", spread.cp, f"one of {_listed(good)}", note)


def replicas(model: Model, tp: int) -> int:
    """How many of the tp ranks hold the same cache: all of them for a latent, tp / kv_heads where heads replicate."""
    found = 0
    for attention in mixers(model):
        if attention.kind in LATENT:
            found = gcd(found, tp)
        elif "kv_heads" in attention.shape:
            found = gcd(found, max(tp // attention.shape["kv_heads"], 1))
    return found or 1


def divisor(weight: Weight, spread: Deployment, kv_heads: int = 1) -> int:
    """Into how many parts tensor (and, for routed experts, expert) parallelism divides a tensor."""
    if weight.kind == "routed_experts":
        return spread.ep * (spread.expert_tp if weight.shard else 1)
    if weight.shard == "kv_heads":
        return min(spread.tp, kv_heads)
    return spread.tp if weight.shard else 1


def rank_bytes(model: Model, spread: Deployment, stage: int | None = None, *, mtp: bool = False) -> float:
    """Bytes of weights on one device: of one pipeline stage, or of the fullest one; `mtp`: prediction modules too.

    >>> from roofline.models import load_model
    >>> rank_bytes(load_model("llama-3.1-8b"), Deployment())
    16060522496.0
    """
    if stage is None:
        return max(rank_bytes(model, spread, s, mtp=mtp) for s in range(spread.pp))
    rule, total, known = model.quantization, 0.0, dict[tuple[int, ...], float]()
    plain = not rule.method or (not rule.skip and rule.mixed is None)
    last = stage == spread.pp - 1
    for layer in (*stage_layers(model, spread.pp, stage), *(model.mtp if mtp and last else ())):
        key = (id(layer.weights), id(layer.attention), *map(id, layer.ffns), -1 if plain else layer.index)
        if key not in known:
            groups = layer.attention.shape.get("kv_heads", 1)
            sizes = ((rule.stored(layer.prefix + w.name, w, model.dtype)[1], w) for w in layer.all_weights())
            known[key] = sum(size / divisor(w, spread, groups) for size, w in sizes)
        total += known[key]
    for weight in model.ends:
        table, head = weight.kind == "embedding", weight.kind != "embedding" or (model.tied and weight is model.ends[0])
        if (table and stage == 0) or (head and last):
            rows = -(-weight.shape[0] // spread.tp) / weight.shape[0] if weight.shard == "vocab" else 1
            total += rule.stored(weight.name, weight, model.dtype)[1] * rows
    return total


def stage_layers(model: Model, pp: int, stage: int) -> tuple[Layer, ...]:
    """The layers of one pipeline stage: contiguous, the first stages hold one more where they do not divide."""
    share, more = divmod(len(model.layers), pp)
    start = stage * share + min(stage, more)
    return model.layers[start : start + share + (stage < more)]
