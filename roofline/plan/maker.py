"""What every block of a plan shares: the model on a rank, the parts of the workload, and how uses are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from roofline.models import Attention, Layer, Model
from roofline.models.kv import BYTES, KvCache
from roofline.plan.records import Deployment, Options, Use, Value, Workload
from roofline.plan.tensors import Product, Tensor, products, stored

HEADED_NORMS = {"q_norm": "heads", "k_norm": "kv_heads", "o_norm": "heads"}


class Group(NamedTuple):
    """A part of the step whose sequences look alike: what stands for batch, q_len and context in it."""

    name: str
    values: Mapping[str, Value]
    prefills: bool


class Maker:
    """Writes uses for one rank.  `draft`: the passes of a prediction module in decode, one token a sequence."""

    def __init__(self, model: Model, load: Workload, spread: Deployment, options: Options, draft: bool = False) -> None:
        self.model, self.load, self.spread, self.options = model, load, spread, options
        self.cache: KvCache = model.kv(options.kv_dtype, tp=spread.tp, index_dtype=options.index_dtype)
        self.label = "draft: " if draft else ""
        self.groups = tuple(self._groups(draft))
        self.tokens = self._tokens(draft)
        self.step_tokens: dict[str, Value] = {"step_tokens": self.tokens["tokens"], **({"q_len": 1} if draft else {})}

    def _groups(self, draft: bool) -> Iterator[Group]:
        phase, ranks = self.load.phase, self.spread.dp > 1
        batch: dict[str, Value] = {"batch": "rank_batch"} if ranks else {}
        if draft:
            yield Group("", {**batch, "q_len": 1}, False)
        elif phase == "mixed":
            yield Group("decode", {**batch, "q_len": "verified"}, False)
            name = "rank_prefill_batch" if ranks else "prefill_batch"
            yield Group("prefill", {"batch": name, "context": "prefill_context"}, True)
        else:
            yield Group("", {**batch, **({"context": 0} if phase == "oneshot" else {})}, phase != "decode")

    def _tokens(self, draft: bool) -> dict[str, Value]:
        """What stands for the tokens of a rank in a linear layer."""
        made: dict[str, Value] = {"batch": "rank_batch"} if self.spread.dp > 1 else {}
        if draft:
            return {"tokens": "tokens", **made, "q_len": 1}
        if self.load.phase != "mixed":
            return {"tokens": "tokens", **made}
        return {"tokens": "mixed_tokens", **made, **({"prefill_batch": "rank_prefill_batch"} if made else {})}

    @property
    def head_tokens(self) -> dict[str, Value]:
        """What stands for the tokens of which the next one is asked: all in decode, the last of a prompt."""
        rule = {"decode": "tokens", "mixed": "mixed_head_tokens"}.get(self.load.phase, "head_tokens")
        return {**self.tokens, "tokens": "tokens" if "draft" in self.label else rule}

    def use(self, name: str, kernel: str, part: str, values: Mapping[str, Value], **more: object) -> Use:
        """A use with the activation width put in."""
        return Use(self.label + name, kernel, {"w_act": self.options.w_act, **values}, part, **more)  # type: ignore[arg-type]

    def linear(self, name: str, part: str, product: Product, tokens: Mapping[str, Value] | None = None) -> Use:
        """A plain matrix product."""
        shape = {"hidden": product.width, "ffn": product.out, "w_weight": product.element_bytes}
        values = {**(self.tokens if tokens is None else tokens), **shape}
        return self.use(name, "linear", part, values, precision=product.precision, weights=product.names)

    def tensors(self, layer: Layer, weights: Iterable[object], groups: int = 1) -> list[Tensor]:
        """The tensors of one block of a layer on this rank."""
        return stored(self.model, self.spread, layer.prefix, weights, groups)  # type: ignore[arg-type]

    def norms(self, tensors: Iterable[Tensor], attention: Attention | None = None) -> Iterator[Use]:
        """A norm for each scale vector; a scale of a head's width serves every head of the rank."""
        for t in tensors:
            width = self._norm_width(t, attention.shape if attention else {})
            values = {**self.tokens, "hidden": width, "w_weight": t.bytes / width}
            yield self.use(t.leaf, "norm", "norm", values, weights=(t.name,))

    def _norm_width(self, t: Tensor, shape: Mapping[str, int]) -> float:
        """Elements of a token that a norm covers on the rank."""
        count = shape.get(HEADED_NORMS.get(t.leaf, ""), 0)
        own = shape.get("head_dim", shape.get("state_value", 0))
        if not count:
            return t.weight.elements
        heads = max(count // self.spread.tp, 1)
        return heads * own if t.weight.elements in (own, own * count) else t.weight.elements

    def split(self, tensors: Iterable[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """(norms, everything else).  Vectors of a block without a matrix scale a token, as a norm does."""
        found = list(tensors)
        alone = not any(t.is_matrix for t in found)
        norms = [
            t for t in found if len(t.weight.shape) == 1 and (alone or (t.weight.kind == "norm" and "norm" in t.leaf))
        ]
        return norms, [t for t in found if t not in norms]

    def all_reduce(self, name: str) -> Iterator[Use]:
        """The sum over tensor-parallel ranks that follows a row-divided map."""
        if self.spread.tp > 1:
            values = {**self.tokens, "hidden": self.model.hidden, "ranks": self.spread.tp}
            yield self.use(name, "all_reduce", "communication", values)

    def plain(self, tensors: Iterable[Tensor], part: str, names: Mapping[str, str], default: str) -> Iterator[Use]:
        """Every product of a block, named by its first leaf."""
        for product in products(tensors):
            name = next((names[leaf] for leaf in product.leaves if leaf in names), default)
            yield self.linear(name, part, product)

    @property
    def kv_bytes(self) -> float:
        """Bytes of a cached element; the fp8 row of latent attention stores other layers in plain fp8."""
        return BYTES["fp8" if self.cache.dtype == "fp8_row" else self.cache.dtype]

    @property
    def core_precision(self) -> str:
        """Precision of the attention core: fp8 where the cache is plain fp8 (a kernel may multiply in it), else 16
        bits."""
        return "fp8" if self.cache.dtype == "fp8" else "bf16"
