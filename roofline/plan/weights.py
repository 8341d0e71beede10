"""Another weight dtype than the checkpoint's: the same model with one format for every matrix of its layers."""

from __future__ import annotations

from roofline.errors import UnknownName
from roofline.models import Model
from roofline.models.quant import DTYPES, Format, Quantization

SPELLED = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
FORMATS = {  # plain widths, and the block formats with their scales
    "fp8": Format("fp8", 8),
    "fp8_block": Format("fp8_block", 8, 4.0, block=(128, 128)),
    "mxfp8": Format("mxfp8", 8, 1.0, 32),
    "int8": Format("int8", 8),
    "nvfp4": Format("nvfp4", 4, 1.0, 16, per_tensor=8),
    "mxfp4": Format("mxfp4", 4, 1.0, 32),
    "int4": Format("int4", 4, 2.0, 128),
}
WEIGHT_DTYPES = ("auto", *SPELLED, *FORMATS)


def with_weight_dtype(model: Model, dtype: str, *, head: bool = False) -> Model:
    """The model with every matrix of its layers in `dtype`; embedding, norms, routers and (unless `head`) the head keep
    the model's own.  "auto" changes nothing.

    >>> from roofline.models import load_model
    >>> round(with_weight_dtype(load_model("llama-3.1-70b"), "fp8").weight_bytes.total / 1e9, 2)
    72.66
    """
    name = dtype.lower()
    if name == "auto":
        return model
    if name not in WEIGHT_DTYPES:
        raise UnknownName("weight_dtype", dtype, WEIGHT_DTYPES)
    fields = {field: getattr(model, field) for field in model.__slots__}
    kv = model.quantization.kv_dtype
    if name in SPELLED:
        assert SPELLED[name] in DTYPES.values()
        return Model(**{**fields, "dtype": SPELLED[name], "quantization": Quantization(kv_dtype=kv)})
    rule = Quantization("override", FORMATS[name], head=head, kv_dtype=kv)
    return Model(**{**fields, "quantization": rule})
