"""The cache of one sequence on one rank: bytes per token, and bytes that do not grow.

Bytes at L tokens are  sum over layers of row * min(L, span) + states,  where span is the window of a windowed layer
and unbounded otherwise.  Two numbers describe long contexts: the slope (rows of the unbounded layers) and the fixed
part (full windows and recurrent states).  Page rounding and engine reserves are not counted here.

Row widths: a latent row of d + r elements serves all heads and is replicated over tensor-parallel ranks; key/value
heads are divided, and replicated once there are more ranks than heads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from roofline.errors import BadValue
from roofline.models.records import Attention, Model

BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "fp8": 1.0, "int8": 1.0, "q8_0": 34 / 32, "q4_0": 18 / 32}
NAMES = {  # spellings -> names
    "bf16": "bfloat16",
    "fp16": "float16",
    "f16": "float16",
    "half": "float16",
    "fp32": "float32",
    "f32": "float32",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "float8_e4m3fn": "fp8",
    "fp8_ds_mla": "fp8_row",
    "float": "float32",
}
KV_DTYPES = ("auto", "bfloat16", "float16", "float32", "fp8", "fp8_row", "int8", "q8_0", "q4_0")
INDEX_DTYPES = ("fp8", "fp4", "bfloat16")
STATE_DTYPES = ("auto", "float32", "bfloat16", "float16")


class Part(NamedTuple):
    """The layers of one kind: how many hold a cache, bytes per token and layer, its span, bytes of state per layer."""

    kind: str
    layers: int
    row_bytes: float
    span: int | None
    state_bytes: float = 0.0

    @property
    def slope(self) -> float:
        """Bytes per further token of a long sequence, all layers of the part."""
        return self.layers * self.row_bytes if self.span is None else 0.0

    @property
    def fixed(self) -> float:
        """Bytes of a long sequence that do not grow, all layers of the part."""
        return self.layers * (self.state_bytes + (self.row_bytes * self.span if self.span else 0.0))

    def at(self, tokens: float) -> float:
        """Bytes of a sequence of `tokens`."""
        held = tokens if self.span is None else min(tokens, self.span)
        return self.layers * (self.row_bytes * held + self.state_bytes)


class KvCache(NamedTuple):
    """The cache of one sequence on one rank."""

    dtype: str
    tp: int
    parts: tuple[Part, ...]
    image_token_bytes: float = 0.0

    @property
    def bytes_per_token(self) -> float:
        """Slope: bytes per further token of a long sequence."""
        return sum(part.slope for part in self.parts)

    @property
    def fixed_bytes_per_sequence(self) -> float:
        """Bytes that a long sequence holds whatever its length: full windows and states."""
        return sum(part.fixed for part in self.parts)

    @property
    def by_kind(self) -> Mapping[str, float]:
        """Bytes per token of a short sequence (within every window), by kind of layer."""
        found: dict[str, float] = {}
        for part in self.parts:
            found[part.kind] = found.get(part.kind, 0.0) + part.layers * part.row_bytes
        return found

    def at(self, tokens: float, image_tokens: float = 0.0) -> float:
        """Bytes of one sequence of `tokens`, and of the image tokens that cross attention keeps.

        >>> from roofline.models import load_model
        >>> load_model("deepseek-v3").kv("bf16").at(131072) / 2**30
        8.578125
        """
        if tokens < 0:
            raise BadValue("tokens", tokens, "a count >= 0")
        return sum(part.at(tokens) for part in self.parts) + self.image_token_bytes * image_tokens


def cache(
    model: Model,
    dtype: str = "auto",
    *,
    tp: int = 1,
    index_dtype: str = "fp8",
    state_dtype: str = "auto",
    conv_dtype: str = "auto",
    mtp: bool = False,
) -> KvCache:
    """The cache of one sequence of `model` on one of `tp` ranks.

    dtype: "auto" (what the checkpoint says, else its own dtype), bf16, fp16, fp8, "fp8_row" (the FlashMLA row: latent
    in fp8, a float32 scale per 128, rotary key in bf16; other layers plain fp8), q8_0, q4_0.  index_dtype: the
    indexer's keys, fp8 or fp4 with one float32 scale, or bf16.  state_dtype, conv_dtype: recurrent states.
    mtp: with the prediction modules' own cache.  Raises BadValue for a dtype or degree that does not fit.

    >>> from roofline.models import load_model
    >>> load_model("deepseek-v3.2").kv("fp8_row").bytes_per_token
    48068.0
    """
    dtype = _dtype(model, dtype)
    if isinstance(tp, bool) or not isinstance(tp, int) or tp < 1:
        raise BadValue("tp", tp, "a whole number >= 1")
    _among("index_dtype", NAMES.get(index_dtype, index_dtype), INDEX_DTYPES)
    wide = state_width(model, state_dtype, "state_dtype", model.state_dtype)
    states = (wide, state_width(model, conv_dtype, "conv_dtype", "auto"))
    counted: dict[Part, int] = {}
    image = 0.0
    for layer in (*model.layers, *(model.mtp if mtp else ())):
        attention = layer.attention
        if attention.kind == "none" or attention.owner is not None:
            continue
        if attention.kind == "cross":
            image += kv_row(attention, dtype, tp)
            continue
        part = _part(attention, dtype, tp, NAMES.get(index_dtype, index_dtype), states)
        counted[part] = counted.get(part, 0) + 1
    parts = tuple(part._replace(layers=number) for part, number in counted.items())
    return KvCache(dtype, tp, parts, image)


def _part(attention: Attention, dtype: str, tp: int, index_dtype: str, states: tuple[float, float]) -> Part:
    """One layer's cache."""
    kind, shape = attention.kind, attention.shape
    if kind in ("mla", "dsa"):
        row = latent_row(shape["latent"], shape["rope"], dtype)
        if attention.indexer == "full":
            row += index_row(shape["index_head_dim"], index_dtype) / shape.get("index_pool", 1)
        return Part(kind, 1, row, None)
    if kind in ("gqa", "window", "chunked"):
        return Part(kind, 1, kv_row(attention, dtype, tp), shape.get("window"))
    return Part(kind, 1, 0.0, None, _state_bytes(attention, tp, states))


def latent_row(latent: int, rope: int, dtype: str) -> float:
    """Bytes of a latent row."""
    if dtype == "fp8_row":
        return latent + 4 * -(-latent // 128) + 2 * rope
    return (latent + rope) * BYTES[dtype]


def index_row(width: int, dtype: str) -> float:
    """Bytes of an indexer key: its elements and one float32 scale (bf16 has none).

    >>> index_row(128, "fp8"), index_row(128, "fp4")
    (132.0, 68.0)
    """
    return {"fp8": width + 4.0, "fp4": width / 2 + 4.0, "bfloat16": 2.0 * width}[dtype]


def kv_row(attention: Attention, dtype: str, tp: int) -> float:
    """Bytes of one token's keys and values on a rank."""
    shape = attention.shape
    heads, kv_heads = shape["heads"], shape["kv_heads"]
    if heads % tp or (kv_heads % tp and tp % kv_heads):
        good = [n for n in range(1, heads + 1) if heads % n == 0 and (kv_heads % n == 0 or n % kv_heads == 0)]
        raise BadValue("tp", tp, f"a degree that divides {heads} heads over {kv_heads} key/value heads: {good}")
    elements = max(kv_heads // tp, 1) * (shape["head_dim"] + shape.get("value", shape["head_dim"]))
    return elements * BYTES["fp8" if dtype == "fp8_row" else dtype]


def _state_bytes(attention: Attention, tp: int, widths: tuple[float, float]) -> float:
    """Bytes of a recurrent layer's state and of its short convolution on a rank."""
    shape, (wide, conv) = attention.shape, widths
    heads, groups = shape["state_heads"], shape["state_groups"]
    if heads % tp:
        good = [n for n in range(1, heads + 1) if heads % n == 0]
        raise BadValue("tp", tp, f"a divisor of the {heads} state heads: {good}")
    h, g = heads // tp, -(-groups // tp)
    state = h * shape["state_key"] * shape["state_value"]
    channels = h * shape["state_value"] + 2 * g * shape["state_key"]
    return state * wide + channels * (shape["conv"] - 1) * conv


def _dtype(model: Model, dtype: str) -> str:
    """The dtype of the cache; "auto" is what the checkpoint asks for."""
    name = NAMES.get(str(dtype).lower(), str(dtype).lower())
    _among("kv_dtype", name, KV_DTYPES)
    return (model.quantization.kv_dtype or model.dtype) if name == "auto" else name


def state_width(model: Model, dtype: str, name: str, own: str) -> float:
    """Bytes per element of a recurrent state."""
    found = NAMES.get(dtype, dtype)
    _among(name, found, STATE_DTYPES)
    if found == "auto":
        found = model.dtype if own == "auto" else own
    return BYTES[found]


def _among(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise BadValue(name, value, "one of " + ", ".join(choices))
