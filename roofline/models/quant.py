"""How a checkpoint stores its tensors: the scheme, which tensors it covers, and the bytes of each with its scales.

Sources of the layouts: fp8 blocks (arXiv:2412.19437 sec. 3.3: one float32 scale per 128 x 128 block), MX formats (OCP
MX v1.0: one 8-bit scale per 32 elements), NVFP4 (one fp8 scale per 16 elements and one float32 per tensor),
compressed-tensors pack-quantized (int4 in int32 words, a bf16 scale per group), AWQ and GPTQ (scales and zero points).
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from roofline.models.config import Config
from roofline.models.records import Weight

SIZES = {"float32": 4, "bfloat16": 2, "float16": 2}
DTYPES = {"bfloat16": "bfloat16", "float16": "float16", "float32": "float32", "half": "float16", "float": "float32"}
METHODS = ("fp8", "modelopt", "mxfp4", "compressed-tensors", "awq", "gptq")
ALGOS = {
    "FP8": "fp8",
    "NVFP4": "nvfp4",
    "W4A16_NVFP4": "nvfp4",
    "W4A8_NVFP4_FP8": "nvfp4",
    "MXFP8": "mxfp8",
    "MXFP4": "mxfp4",
    "FP8_PB_WO": "fp8_block",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8_channel",
    "W4A16_AWQ": "int4",
    "INT4_AWQ": "int4",
    "W8A16": "int8_channel",
    "INT8_SQ": "int8_channel",
}
LINEAR = ("attention", "indexer", "linear_attention", "dense_ffn", "routed_experts", "shared_experts", "mtp")


class Format(NamedTuple):
    """One way to store a matrix.  group: elements of a row under one scale; block: (rows, columns) under one."""

    name: str
    bits: int
    scale: float = 0.0
    group: int = 0
    block: tuple[int, int] = (0, 0)
    per_tensor: int = 0
    zero_bits: int = 0

    def size(self, weight: Weight) -> int:
        """Bytes of the weight, all copies, scales included."""
        rows, columns = weight.shape[-2], weight.shape[-1]
        planes = weight.elements // (rows * columns)
        data = rows * columns * self.bits // 8
        if self.block[0]:
            scales = -(-rows // self.block[0]) * -(-columns // self.block[1]) * self.scale
        elif self.group > 0:
            groups = rows * -(-columns // self.group)
            scales = groups * self.scale + groups * self.zero_bits / 8
        else:
            scales = rows * self.scale
        return int(planes * (data + scales) + self.per_tensor) * weight.copies


class Quantization(NamedTuple):
    """The scheme of a checkpoint.  method "" stores every tensor in the model's dtype."""

    method: str = ""
    base: Format | None = None
    skip: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    head: bool = False
    mixed: Mapping[str, Format] | None = None
    kv_dtype: str = ""
    file: str = ""

    def format_of(self, name: str, weight: Weight) -> Format | None:
        """The format of a tensor, or None where it keeps the model's dtype."""
        if len(weight.shape) < 2 or weight.dtype or not name.endswith((".weight", "_proj")):
            return None
        module = name.removesuffix(".weight")
        if self.mixed is not None:
            return self._mixed(module)
        if self.base is None or (weight.kind not in LINEAR and not (weight.kind == "head" and self.head)):
            return None
        if self.only and weight.kind not in self.only:
            return None
        if name.endswith(("eh_proj.weight", "weights_proj.weight")) or _matches(module, self.skip):
            return None
        return self.base

    def _mixed(self, module: str) -> Format | None:
        """The format of a module in a list of modules; an expert list may name the first expert or the whole bank."""
        table = self.mixed or {}
        for spelled in (module, module.replace(".*.", ".0."), module.partition(".*.")[0]):
            if spelled in table:
                return table[spelled]
        return None

    def stored(self, name: str, weight: Weight, dtype: str) -> tuple[str, int]:
        """(format, bytes) of a tensor, all copies."""
        found = self.format_of(name, weight) if self.method else None
        if found is not None:
            return found.name, found.size(weight)
        kept = weight.dtype or dtype
        return kept, weight.params * SIZES[kept]


def _matches(module: str, patterns: tuple[str, ...]) -> bool:
    """Whether a module is named by one of the patterns: a name, a part of one, a glob, or ``re:`` and an expression."""
    for pattern in patterns:
        if pattern.startswith("re:"):
            import re

            if re.match(pattern[3:], module):
                return True
        elif "*" in pattern:
            if fnmatchcase(module, pattern) or fnmatchcase(module, pattern + ".*"):
                return True
        elif (
            module == pattern
            or module.startswith(pattern + ".")
            or ("." not in pattern and f".{pattern}." in f".{module}.")
        ):
            return True
    return False


def read_quantization(top: Config, text: Config, second: Config | None) -> Quantization:
    """The scheme from `quantization_config` (outer or nested) or from the second file."""
    part = top.section("quantization_config") or text.section("quantization_config")
    if second is not None:
        inner = second.section("quantization") or second
        return _modelopt(inner)._replace(file=str(second.file))
    if part is None:
        return Quantization()
    method = part.text("quant_method")
    if method == "" and part.has("quant_algo"):
        method = "modelopt"
    if method not in METHODS:
        part.fail("quant_method", method or "nothing", "one of " + ", ".join(METHODS))
    readers = {"fp8": _fp8, "modelopt": _modelopt, "mxfp4": _mxfp4, "compressed-tensors": _compressed}
    return readers.get(method, _packed)(part)


def _names(part: Config, *keys: str) -> tuple[str, ...]:
    """A list of module names or patterns."""
    for key in keys:
        found = part.items(key)
        if found is not None:
            for at, entry in enumerate(found):
                if not isinstance(entry, str) or len(entry) > 300:
                    part.fail(f"{key}[{at}]", entry, "the name of a module")
            return tuple(found)
    return ()


def _fp8(part: Config) -> Quantization:
    """Fine-grained fp8: blocks with a float32 scale each, or one scale per tensor."""
    block = part.items("weight_block_size")
    if block is None:
        form = Format("fp8", 8, per_tensor=4)
    else:
        if len(block) != 2 or not all(isinstance(b, int) and not isinstance(b, bool) and b > 0 for b in block):
            part.fail("weight_block_size", block, "two positive whole numbers")
        form = Format("fp8_block", 8, 4.0, block=(block[0], block[1]))
    return Quantization("fp8", form, _names(part, "modules_to_not_convert", "ignored_layers"))


def _mxfp4(part: Config) -> Quantization:
    """MXFP4 as in gpt-oss: the matrices of the routed experts, 4 bits and one 8-bit scale per 32."""
    form = Format("mxfp4", 4, 1.0, 32)
    return Quantization("mxfp4", form, _names(part, "modules_to_not_convert"), only=("routed_experts",))


def _algo(part: Config, key: str, name: object, group: int) -> Format:
    """A named ModelOpt algorithm."""
    kind = ALGOS.get(name) if isinstance(name, str) else None
    if kind is None:
        part.fail(key, name, "one of " + ", ".join((*ALGOS, "MIXED_PRECISION")))
    made = {
        "fp8": Format("fp8", 8, per_tensor=8),
        "nvfp4": Format("nvfp4", 4, 1.0, group or 16, per_tensor=4 if name == "W4A16_NVFP4" else 8),
        "mxfp8": Format("mxfp8", 8, 1.0, 32),
        "mxfp4": Format("mxfp4", 4, 1.0, 32),
        "fp8_block": Format("fp8_block", 8, 4.0, block=(128, 128)),
        "fp8_channel": Format("fp8", 8, 4.0),
        "int4": Format("int4", 4, 2.0, group or 128),
        "int8_channel": Format("int8", 8, 4.0),
    }
    return made[kind]


def _modelopt(part: Config) -> Quantization:
    """ModelOpt: one algorithm with exceptions, or a list of modules each with its own."""
    algo = part.get("quant_algo")
    kv = part.get("kv_cache_quant_algo")
    scheme = part.section("kv_cache_scheme")
    kv_dtype = "fp8" if kv == "FP8" or (scheme is not None and scheme.count("num_bits") == 8) else ""
    if kv not in (None, "FP8", "NVFP4", "INT8"):
        part.fail("kv_cache_quant_algo", kv, "FP8, INT8, NVFP4 or null")
    if kv == "INT8":
        kv_dtype = "int8"
    if kv == "NVFP4":
        part.fail("kv_cache_quant_algo", kv, "FP8, INT8 or null", "the layout of an NVFP4 cache is not modelled")
    skip = _names(part, "exclude_modules", "ignore")
    if algo == "MIXED_PRECISION":
        table = part.need("quantized_layers")
        mixed = {}
        for name in table.data:
            entry = table.need(name)
            group = entry.count("group_size", default=None) or 16
            mixed[name] = _algo(entry, "quant_algo", entry.get("quant_algo"), group)
        return Quantization("modelopt", None, skip, mixed=mixed, kv_dtype=kv_dtype)
    if algo is None and kv is not None:
        return Quantization("", None, kv_dtype=kv_dtype)
    group = part.count("group_size", default=None) or 0
    return Quantization("modelopt", _algo(part, "quant_algo", algo, group), skip, kv_dtype=kv_dtype)


def _compressed(part: Config) -> Quantization:
    """compressed-tensors: one group of linear layers with a number format."""
    groups = part.need("config_groups")
    if len(groups.data) != 1:
        groups.fail("", f"{len(groups.data)} groups", "one group", "several formats in one checkpoint are not modelled")
    name = next(iter(groups.data))
    group = groups.need(name)
    targets = _names(group, "targets")
    if targets != ("Linear",):
        group.fail("targets", list(targets), "['Linear']")
    weights = group.need("weights")
    scheme = part.section("kv_cache_scheme")
    kv_dtype = "fp8" if scheme is not None and scheme.count("num_bits") == 8 else ""
    form = _number_format(weights, group.text("format") or part.text("format"))
    return Quantization("compressed-tensors", form, _names(part, "ignore"), head=True, kv_dtype=kv_dtype)


def _number_format(weights: Config, packing: str) -> Format:
    """Bits, grouping and scale of one group of compressed-tensors."""
    bits, kind, strategy = weights.count("num_bits"), weights.text("type", default="int"), weights.text("strategy")
    if bits not in (4, 8):
        weights.fail("num_bits", bits, "4 or 8")
    if strategy in ("group", "tensor_group"):
        size = weights.count("group_size")
    elif strategy == "block":
        block = weights.items("block_structure", 2)
        if block is None:
            weights.fail("block_structure", "nothing", "two positive whole numbers")
        return Format("fp8_block", bits, 4.0, block=(int(block[0]), int(block[1])))
    elif strategy in ("channel", "tensor"):
        name = f"{'fp' if kind == 'float' else 'int'}{bits}"
        return Format(name, bits, 4.0) if strategy == "channel" else Format(name, bits, per_tensor=4)
    else:
        weights.fail("strategy", strategy or "nothing", "one of group, tensor_group, block, channel, tensor")
    if packing.startswith("mxfp4"):
        return Format("mxfp4", 4, 1.0, size)
    if kind == "float":
        return Format("nvfp4", 4, 1.0, size, per_tensor=8)
    zero = 0 if weights.flag("symmetric", True) else bits
    return Format(f"int{bits}", bits, 2.0, size, per_tensor=16, zero_bits=zero)  # weight_shape: two int64


def _packed(part: Config) -> Quantization:
    """AWQ and GPTQ: packed integers with half-precision scales and packed zero points per group."""
    bits = part.count("bits", "w_bit")
    if bits not in (2, 3, 4, 8):
        part.fail("bits", bits, "2, 3, 4 or 8")
    size = part.get("group_size") if part.has("group_size") else part.get("q_group_size")
    if isinstance(size, bool) or not isinstance(size, int) or size == 0 or size < -1:
        part.fail("group_size", size, "a positive whole number, or -1 for one group a row")
    form = Format(f"int{bits}", bits, 2.0, 2**31 if size == -1 else size, zero_bits=bits)
    return Quantization(part.text("quant_method"), form, _names(part, "modules_to_not_convert"))


def model_dtype(top: Config, text: Config) -> str:
    """The dtype of tensors that no scheme covers."""
    for part in (text, top):
        value: Any = part.text("torch_dtype", "dtype").removeprefix("torch.")
        if value:
            if value not in DTYPES:
                part.fail("torch_dtype" if part.has("torch_dtype") else "dtype", value, "one of " + ", ".join(DTYPES))
            return DTYPES[value]
    text.default("dtype", "bfloat16", "no dtype key; unquantised tensors are taken as bfloat16")
    return "bfloat16"
