"""What a model is, as frozen records: layers, each with its attention, its feed-forward blocks and their weights.

Every count that this package reports is a sum over the `Weight`s listed here, so each number can be explained tensor
by tensor.  Shapes use the glossary's names (`heads`, `latent`, ...), so that a kernel binds them with ``**shape``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from roofline.errors import BadValue

if TYPE_CHECKING:
    from roofline.models.kv import KvCache
    from roofline.models.params import Params, WeightBytes
    from roofline.models.quant import Quantization


class Weight(NamedTuple):
    """One tensor of a block, or `copies` equal ones (experts).

    name: path below the layer, with ``*`` for the expert number; shape: (out, in) for a linear map;
    kind: the class it is summed under; active: how many of the copies a token visits;
    shard: what tensor parallelism divides ("heads", "kv_heads", "ffn", "vocab", "state"; "" is replicated);
    dtype: a dtype of its own that no quantisation changes ("" follows the checkpoint).
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    copies: int = 1
    active: int = 1
    shard: str = ""
    dtype: str = ""

    @property
    def elements(self) -> int:
        """Elements of one tensor."""
        return prod(self.shape)

    @property
    def params(self) -> int:
        """Elements of all copies."""
        return prod(self.shape) * self.copies


class Attention(NamedTuple):
    """The token mixer of a layer.

    kind: "gqa", "mla", "dsa", "window", "chunked", "cross", "mamba2", "gated_delta", "kda", "linear" or "none";
    shape: glossary names; weights: its tensors; owner: the layer whose cache it reads (None: its own);
    indexer: for "dsa", "full" (runs the indexer) or "shared" (reuses the selection of an earlier layer).
    """

    kind: str
    shape: Mapping[str, int] = MappingProxyType({})
    weights: tuple[Weight, ...] = ()
    owner: int | None = None
    indexer: str = ""


class Ffn(NamedTuple):
    """A feed-forward block.  kind: "dense", "moe" or "none"; gated: three matrices instead of two."""

    kind: str
    shape: Mapping[str, int] = MappingProxyType({})
    weights: tuple[Weight, ...] = ()
    gated: bool = True


NO_FFN = Ffn("none")
NO_ATTENTION = Attention("none")


class Layer(NamedTuple):
    """One layer: a token mixer and its feed-forward blocks (two where dense and experts stand side by side)."""

    index: int  # type: ignore[assignment]
    attention: Attention
    ffns: tuple[Ffn, ...]
    prefix: str
    weights: tuple[Weight, ...] = ()

    @property
    def ffn(self) -> Ffn:
        """The main feed-forward block: the expert block where there is one."""
        return next((f for f in self.ffns if f.kind == "moe"), self.ffns[0] if self.ffns else NO_FFN)

    def all_weights(self) -> Iterator[Weight]:
        """Every tensor of the layer."""
        yield from self.weights
        yield from self.attention.weights
        for block in self.ffns:
            yield from block.weights


class Source(NamedTuple):
    """Where the configuration comes from."""

    repo: str
    file: str
    revision: str
    address: str


class Taken(NamedTuple):
    """A key that the file leaves out, the value used instead, and why."""

    key: str
    value: object
    why: str


MAIN_ORDER = ("dsa", "mla", "gqa", "chunked", "window", "cross", "kda", "gated_delta", "mamba2", "none")


class Model:
    """A model as read from its configuration.  Frozen; lists of tensors and sums are made on demand.

    >>> from roofline.models import load_model
    >>> model = load_model("deepseek-v3.2")
    >>> model.shape["heads"], model.shape["latent"], model.shape["topk"], model.hidden
    (128, 512, 2048, 7168)
    >>> model.params.total
    671877944064
    """

    __slots__ = (
        "architecture",
        "defaults_taken",
        "dtype",
        "ends",
        "hidden",
        "id",
        "layers",
        "max_positions",
        "model_type",
        "mtp",
        "name",
        "notes",
        "quantization",
        "source",
        "state_dtype",
        "tied",
        "vocab",
    )

    id: str
    name: str
    model_type: str
    architecture: str
    source: Source
    hidden: int
    vocab: int
    layers: tuple[Layer, ...]
    mtp: tuple[Layer, ...]
    ends: tuple[Weight, ...]
    tied: bool
    dtype: str
    state_dtype: str
    quantization: Quantization
    max_positions: int
    defaults_taken: tuple[Taken, ...]
    notes: tuple[str, ...]

    def __init__(self, **fields: Any) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, fields.pop(name))
        if fields:
            raise TypeError(f"Model has no field {sorted(fields)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Model is frozen: cannot set {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Model is frozen: cannot delete {name}")

    def __repr__(self) -> str:
        return f"Model({self.id!r}, {self.architecture or self.model_type}, {len(self.layers)} layers)"

    def kinds(self) -> dict[str, int]:
        """How many layers mix tokens in which way, in order of appearance."""
        found: dict[str, int] = {}
        for layer in self.layers:
            found[layer.attention.kind] = found.get(layer.attention.kind, 0) + 1
        return found

    def layers_of(self, kind: str) -> tuple[Layer, ...]:
        """The layers whose token mixer is of this kind."""
        return tuple(layer for layer in self.layers if layer.attention.kind == kind)

    @property
    def shape(self) -> dict[str, int]:
        """Widths and counts of the model's main kind of attention, by glossary name, with hidden, layers and vocab."""
        kind = min(self.kinds(), key=MAIN_ORDER.index)
        main = self.layers_of(kind)[0].attention.shape
        return {**main, "hidden": self.hidden, "layers": len(self.layers), "vocab": self.vocab}

    def tensors(self, *, mtp: bool = True) -> Iterator[tuple[str, Weight]]:
        """(full name, weight) of every tensor, in the order of the checkpoint; `mtp`: with the prediction modules."""
        for weight in self.ends:
            yield weight.name, weight
        for layer in (*self.layers, *(self.mtp if mtp else ())):
            for weight in layer.all_weights():
                yield layer.prefix + weight.name, weight

    @property
    def params(self) -> Params:
        """Parameters: total, active per token, embedding, by class, and the MTP modules apart."""
        from roofline.models.params import count

        return count(self)

    @property
    def weight_bytes(self) -> WeightBytes:
        """Bytes of the checkpoint's tensors, scales included, by class; `.total` leaves the MTP modules out."""
        from roofline.models.params import weigh

        return weigh(self)

    def kv(self, dtype: str = "auto", **options: Any) -> KvCache:
        """The cache of one sequence on one rank; see `roofline.models.kv.cache`."""
        from roofline.models.kv import cache

        return cache(self, dtype, **options)


def fits_positions(model: Model, seq_len: int) -> str:
    """A warning where `seq_len` goes beyond the positions the model was made for, else an empty text."""
    if seq_len < 1:
        raise BadValue("seq_len", seq_len, "a count of at least 1")
    if model.max_positions and seq_len > model.max_positions:
        return f"{seq_len} tokens go beyond max_position_embeddings {model.max_positions} of {model.id}"
    return ""
