"""Sums over a model's tensors: parameters and bytes, by class, exact.

`total` leaves the prediction (MTP) modules out, as the vendors' totals do; they stand beside it.  `active` is what one
token visits with the head but without the input embedding, of which a token reads one row.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from roofline.models.records import Layer, Model, Weight


class Params(NamedTuple):
    """Numbers of parameters."""

    total: int
    active: int
    active_with_embedding: int
    embedding: int
    mtp: int
    by_class: Mapping[str, int]


class WeightBytes(NamedTuple):
    """Bytes of stored tensors, scales and zero points included."""

    total: int
    mtp: int
    by_class: Mapping[str, int]
    by_dtype: Mapping[str, int]


def count(model: Model) -> Params:
    """Parameters of a model.

    >>> from roofline.models import load_model
    >>> load_model("llama-3.1-8b").params.total
    8030261248
    """
    by_class: dict[str, int] = {}
    active = 0
    for weights, layers in (*_distinct(model.layers), (model.ends, 1)):
        for weight in weights:
            elements = weight.elements * layers
            by_class[weight.kind] = by_class.get(weight.kind, 0) + elements * weight.copies
            if weight.kind != "embedding" or (model.tied and weight is model.ends[0]):
                active += elements * weight.active
    rows = by_class.get("embedding", 0)
    mtp = sum(weight.params for layer in model.mtp for weight in layer.all_weights())
    with_table = active if model.tied else active + rows
    return Params(sum(by_class.values()), active, with_table, rows, mtp, MappingProxyType(by_class))


def _distinct(layers: tuple[Layer, ...]) -> list[tuple[tuple[Weight, ...], int]]:
    """The lists of tensors that occur, each once, and how many layers have them."""
    found: dict[int, list[tuple[Weight, ...]]] = {}
    for layer in layers:
        for part in (layer.weights, layer.attention.weights, *(block.weights for block in layer.ffns)):
            found.setdefault(id(part), []).append(part)
    return [(parts[0], len(parts)) for parts in found.values()]


def weigh(model: Model) -> WeightBytes:
    """Bytes of a model's checkpoint.

    >>> from roofline.models import load_model
    >>> load_model("llama-3.1-8b").weight_bytes.total
    16060522496
    """
    by_class: dict[str, int] = {}
    by_dtype: dict[str, int] = {}
    rule = model.quantization
    for name, weight in model.tensors(mtp=False):
        dtype, size = rule.stored(name, weight, model.dtype)
        by_class[weight.kind] = by_class.get(weight.kind, 0) + size
        by_dtype[dtype] = by_dtype.get(dtype, 0) + size
    mtp = 0
    for layer in model.mtp:
        mtp += sum(rule.stored(layer.prefix + w.name, w, model.dtype)[1] for w in layer.all_weights())
    return WeightBytes(sum(by_class.values()), mtp, MappingProxyType(by_class), MappingProxyType(by_dtype))
