"""Tensors of a block as matrix products: maps of the same input run as one, biases and small vectors ride along.

The byte width of a weight is what the checkpoint stores, scales, zero points and biases included, over its elements:
so the bytes that a plan reads are the checkpoint's to the last one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from roofline.models import Model, Weight
from roofline.plan.records import Deployment
from roofline.plan.spread import divisor

MATH = {  # stored format -> precision of the tensor unit; integer weights are widened to 16 bits
    "fp8": "fp8",
    "fp8_block": "fp8",
    "mxfp8": "fp8",
    "nvfp4": "fp4",
    "mxfp4": "fp4",
}
SECOND = ("q_b_proj", "kv_b_proj", "wq_b", "f_b_proj", "g_b_proj")  # fed by a projection, not by the residual stream
OUTWARD = ("o_proj", "out_proj", "down_proj", "w2", "fc2_latent_proj")  # back to the residual stream: rows are divided


class Tensor(NamedTuple):
    """One stored tensor as a rank holds it."""

    name: str
    weight: Weight
    bytes: float
    precision: str
    parts: int

    @property
    def leaf(self) -> str:
        """The last word of the name: q_proj, w2, A_log."""
        words = self.name.removesuffix(".weight").removesuffix(".bias").split(".")
        return next(word for word in reversed(words) if not word.isdigit())

    @property
    def is_matrix(self) -> bool:
        """A linear map: two axes, and not a vector written as one."""
        return len(self.weight.shape) == 2


class Product(NamedTuple):
    """A fused matrix product on one rank: input and output width, stored bytes, and its tensors."""

    width: float
    out: float
    bytes: float
    precision: str
    names: tuple[str, ...]
    leaves: tuple[str, ...]

    @property
    def element_bytes(self) -> float:
        """Bytes per element, all that rides along included."""
        return self.bytes / (self.width * self.out)


def stored(model: Model, spread: Deployment, prefix: str, weights: Iterable[Weight], kv_heads: int = 1) -> list[Tensor]:
    """The tensors of a block with their bytes on a rank; those no token visits (active 0) are left out."""
    made = []
    for weight in weights:
        if weight.active == 0:
            continue
        dtype, size = model.quantization.stored(prefix + weight.name, weight, model.dtype)
        parts = divisor(weight, spread, kv_heads)
        made.append(Tensor(prefix + weight.name, weight, size / parts, MATH.get(dtype, "bf16"), parts))
    return made


def products(tensors: Iterable[Tensor]) -> Iterator[Product]:
    """Fused products of a block's tensors, in order.

    Maps from the residual stream run as one (q, k and v; the two latents; all inputs of a recurrent mixer), as do the
    maps from the query latent; each map back is its own.  A precision of its own makes a product of its own.
    """
    groups: dict[tuple[object, ...], list[Tensor]] = {}
    loose: list[Tensor] = []
    for t in tensors:
        if not t.is_matrix:
            loose.append(t)
            continue
        own = t.name if t.leaf in OUTWARD or t.leaf == "kv_b_proj" else ""
        groups.setdefault((t.weight.shape[1], t.precision, own, t.leaf in SECOND), []).append(t)
    rides: dict[str, list[Tensor]] = {}
    leaves = {t.leaf for members in groups.values() for t in members}
    first = next(iter(groups.values()))[0].leaf if groups else ""
    for t in loose:
        rides.setdefault(t.leaf if t.leaf in leaves else first, []).append(t)
    for members in groups.values():
        more = [r for t in members for r in rides.get(t.leaf, ())]
        yield _product(members, more)


def _product(members: list[Tensor], more: list[Tensor]) -> Product:
    width: float = members[0].weight.shape[1]
    out: float = sum(shared(t.weight.shape[0], t.parts) for t in members)
    if members[0].leaf in OUTWARD:
        width, out = shared(members[0].weight.shape[1], members[0].parts), members[0].weight.shape[0]
    names = tuple(t.name for t in (*members, *more))
    size = sum(t.bytes for t in (*members, *more))
    return Product(width, out, size, members[0].precision, names, tuple(t.leaf for t in members))


def shared(count: int, parts: int) -> float:
    """The share of a rank, as a whole number where it is one."""
    return count // parts if count % parts == 0 else count / parts
