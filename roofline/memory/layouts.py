"""What one rank caches per token and per sequence: of a model, of a shape, or of a bare number of bytes.

Builds on `roofline.models.kv`, which knows the layouts themselves; added here are the widths that only one engine has
(scales per token and head, nvfp4, the other block formats of llama.cpp), how a row splits into keys and values, the
state that drafts need, and the weights that lie on a rank.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from roofline.errors import BadValue
from roofline.models.kv import KV_DTYPES, NAMES, KvCache, Part
from roofline.models.records import Model

if TYPE_CHECKING:
    from roofline.models.records import Attention, Layer

GROWING = ("gqa", "window", "chunked")
# Bytes per element of further formats.  ggml blocks of 32 values: 2 bytes of scale, or 4 with an offset, and the bits
# (ggml-common.h of github.com/ggml-org/llama.cpp).  nvfp4: half a byte and a byte of scale per 16 values
# (vllm/v1/kv_cache_interface.py of github.com/vllm-project/vllm).
ELEMENT = {"q4_1": 20 / 32, "q5_0": 22 / 32, "q5_1": 24 / 32, "iq4_nl": 18 / 32, "nvfp4": 9 / 16}
SCALED = ("fp8_token_head", "int8_token_head")  # one byte an element, a float32 per token, head and of K and V
DTYPES = (*KV_DTYPES, *ELEMENT, *SCALED)


class Layout(NamedTuple):
    """The cache of one rank.

    cache: bytes by kind of layer; keys, values, latent, rope: bytes per token of all layers that cache tokens, whatever
    their span (a row is K and V, or one latent row); model: where it comes from, None for a shape or a bare number.
    """

    cache: KvCache
    keys: float
    values: float
    latent: float = 0.0
    rope: float = 0.0
    model: Model | None = None

    @property
    def bytes_per_token(self) -> float:
        """Bytes per further token of a long sequence."""
        return self.cache.bytes_per_token

    @property
    def all_rows(self) -> float:
        """Bytes per token if every layer cached every token: what a calculator without windows says."""
        return sum(part.layers * part.row_bytes for part in self.cache.parts)


def of_model(
    model: Model,
    dtype: str = "auto",
    *,
    tp: int = 1,
    index_dtype: str = "fp8",
    state_dtype: str = "auto",
    conv_dtype: str = "auto",
    drafts: int = 0,
    hybrid: bool = True,
) -> Layout:
    """The layout of a model on one of `tp` ranks.

    dtype: as `roofline.models.kv.cache`, or one of `DTYPES`; drafts: tokens of a speculative step, for which recurrent
    layers widen their convolution state and prediction (MTP) modules keep a cache; hybrid: False keeps every token in
    windowed layers too.

    >>> from roofline.models import load_model
    >>> layout = of_model(load_model("llama-3.1-8b"), "bf16", tp=4)
    >>> layout.bytes_per_token, layout.keys
    (32768.0, 16384.0)
    """
    name = NAMES.get(dtype.lower(), dtype.lower())
    if name not in DTYPES:
        raise BadValue("kv_dtype", dtype, "one of " + ", ".join(DTYPES))
    if isinstance(drafts, bool) or not isinstance(drafts, int) or not 0 <= drafts <= 1000:
        raise BadValue("speculative_tokens", drafts, "a whole number from 0 to 1,000")
    plain = "fp8" if name in (*ELEMENT, *SCALED) else name
    base = with_drafts(model, drafts) if drafts else model
    widths = {"index_dtype": index_dtype, "state_dtype": state_dtype, "conv_dtype": conv_dtype}
    cache = base.kv(plain, tp=tp, mtp=drafts > 0, **widths)
    if plain != name:
        cache = _widened(cache, name, model, tp)
    if not hybrid:
        parts = tuple(part._replace(span=None) for part in cache.parts)
        cache = cache._replace(parts=parts)
    return _split(cache, base, drafts > 0)


def mixed(keys: Layout, values: Layout) -> Layout:
    """Keys of one layout and values of another of the same model or shape, as llama.cpp allows.

    >>> mixed(of_shape(64, 8, 128, "q8_0"), of_shape(64, 8, 128, "q4_0")).bytes_per_token / 64 / 1024
    1.625
    """
    if not keys.keys:
        raise BadValue("v_dtype", values.cache.dtype, "a model with keys and values apart; this one keeps latent rows")
    parts = []
    for k, v in zip(keys.cache.parts, values.cache.parts, strict=True):
        share = _key_share(keys.model, k.kind)
        parts.append(k._replace(row_bytes=k.row_bytes * share + v.row_bytes * (1 - share)))
    cache = keys.cache._replace(dtype=f"{keys.cache.dtype}/{values.cache.dtype}", parts=tuple(parts))
    return keys._replace(cache=cache, values=values.values)


def _key_share(model: Model | None, kind: str) -> float:
    """Keys as a share of the elements of a row."""
    shape = next((a.shape for a in _attentions(model) if a.kind == kind), {}) if model else {}
    width = shape.get("head_dim", 1)
    return width / (width + shape.get("value", width))


def of_shape(layers: int, kv_heads: int, head_dim: int, dtype: str = "bf16", *, tp: int = 1) -> Layout:
    """Plain attention of a given shape; key/value heads divide by `tp` down to one.

    >>> of_shape(32, 8, 128).bytes_per_token
    131072.0
    """
    for label, value in (("layers", layers), ("kv_heads", kv_heads), ("head_dim", head_dim), ("tp", tp)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**7:
            raise BadValue(label, value, "a whole number from 1 to 10^7")
    if kv_heads % tp and tp % kv_heads:
        raise BadValue("tp", tp, f"a degree that divides the {kv_heads} key/value heads, or a multiple of them")
    heads, name = max(kv_heads // tp, 1), NAMES.get(dtype.lower(), dtype.lower())
    side = layers * heads * head_dim * _width(name) + (4.0 * layers * heads if name in SCALED else 0.0)
    return Layout(KvCache(name, tp, (Part("gqa", layers, 2 * side / layers, None),)), side, side)


def of_bytes(bytes_per_token: float, dtype: str = "given", tp: int = 1) -> Layout:
    """A cache known only by its bytes per token on the rank."""
    if not 0 < bytes_per_token < 1e15:
        raise BadValue("bytes_per_token", bytes_per_token, "a number of bytes > 0")
    return Layout(KvCache(dtype, tp, (Part("gqa", 1, float(bytes_per_token), None),)), 0.0, 0.0)


def with_drafts(model: Model, drafts: int) -> Model:
    """The model with convolution states that keep `drafts` more inputs, as engines need to take a draft back."""

    def widened(layer: Layer) -> Layer:
        shape = layer.attention.shape
        if "conv" not in shape:
            return layer
        return layer._replace(attention=layer.attention._replace(shape={**shape, "conv": shape["conv"] + drafts}))

    fields = {name: getattr(model, name) for name in Model.__slots__}
    return Model(**{**fields, "layers": tuple(widened(layer) for layer in model.layers)})


def _width(name: str) -> float:
    from roofline.models.kv import BYTES

    if name in SCALED:
        return 1.0
    if name not in BYTES and name not in ELEMENT:
        raise BadValue("kv_dtype", name, "one of " + ", ".join((*BYTES, *ELEMENT, *SCALED)))
    return ELEMENT[name] if name in ELEMENT else BYTES[name]


def _widened(cache: KvCache, name: str, model: Model, tp: int) -> KvCache:
    """One byte an element turned into another width; latent rows have no such formats."""
    heads = {max(a.shape["kv_heads"] // tp, 1) for a in _attentions(model) if a.kind in GROWING}
    parts = []
    for part in cache.parts:
        if part.kind in ("mla", "dsa"):
            formats = "bf16, fp16, fp8, fp8_row, q8_0 or q4_0"
            raise BadValue("kv_dtype", name, f"a format of latent rows, which {model.id} keeps: {formats}")
        row = part.row_bytes * ELEMENT.get(name, 1.0)
        if name in SCALED and part.row_bytes:
            if len(heads) > 1:
                raise BadValue("kv_dtype", name, f"another format: the layers have {sorted(heads)} key/value heads")
            row += 8.0 * next(iter(heads))
        parts.append(part._replace(row_bytes=row))
    return cache._replace(dtype=name, parts=tuple(parts))


def _attentions(model: Model, mtp: bool = False) -> list[Attention]:
    """The token mixers that own a cache."""
    found = (layer.attention for layer in (*model.layers, *(model.mtp if mtp else ())))
    return [a for a in found if a.kind != "none" and a.owner is None]


def _split(cache: KvCache, model: Model, mtp: bool) -> Layout:
    """How the rows divide into keys and values, or into latent and rotary key."""
    rows = {(part.kind, part.row_bytes): part.layers * part.row_bytes for part in cache.parts}
    keys = values = latent = rope = 0.0
    shapes = {a.kind: a.shape for a in _attentions(model, mtp)}
    for (kind, _), size in rows.items():
        shape = shapes[kind]
        if kind in GROWING:
            share = shape["head_dim"] / (shape["head_dim"] + shape.get("value", shape["head_dim"]))
            keys, values = keys + size * share, values + size * (1 - share)
        elif kind == "mla":
            share = shape["rope"] / (shape["rope"] + shape["latent"]) if cache.dtype != "fp8_row" else 0.0
            latent, rope = latent + size * (1 - share), rope + size * share
        elif kind == "dsa":
            latent += size
    return Layout(cache, keys, values, latent, rope, model)


@lru_cache(maxsize=256)  # a model is frozen, and every engine asks for the same sum over a thousand tensors
def weight_bytes(model: Model, *, tp: int = 1, expert_ranks: int | None = None, mtp: bool = False) -> float:
    """Bytes of weights on one rank: what tensor parallelism divides is divided, the rest is on every rank.

    expert_ranks: ranks over which routed experts are spread (default: the tensor-parallel ones); mtp: with the
    prediction modules.  Padding that an engine's kernels add (up to 7 % seen) and workspaces are not counted.

    >>> from roofline.models import load_model
    >>> round(weight_bytes(load_model("llama-3.1-8b")) / 2**30, 2)
    14.96
    """
    kv_heads = max((a.shape["kv_heads"] for a in _attentions(model) if "kv_heads" in a.shape), default=tp)
    total = 0.0
    for name, weight in model.tensors(mtp=mtp):
        size = model.quantization.stored(name, weight, model.dtype)[1]
        over = tp if weight.shard else 1
        if weight.shard == "kv_heads":
            over = min(tp, kv_heads)
        if weight.kind == "routed_experts":
            over = expert_ranks or tp
        total += size / over
    return total
