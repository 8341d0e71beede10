"""Models: an HF `config.json` or a built-in id in, a frozen `Model` out.  No network, no remote code.

>>> from roofline.models import load_model
>>> model = load_model("glm-5.2")
>>> model.kinds(), sum(layer.attention.indexer == "full" for layer in model.layers)
({'dsa': 78}, 21)
>>> model.kv("fp8_row").bytes_per_token
53940.0
"""

from __future__ import annotations

from roofline.models.reader import list_models, load_model, read_config
from roofline.models.records import Attention, Ffn, Layer, Model, Source, Taken, Weight, fits_positions

__all__ = [
    "Attention",
    "Ffn",
    "Layer",
    "Model",
    "Source",
    "Taken",
    "Weight",
    "fits_positions",
    "list_models",
    "load_model",
    "read_config",
]
