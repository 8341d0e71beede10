"""The built-in hardware.yaml: where it lies, and how a cold start reads it without a YAML parser.

`python -m roofline.accelerators.schema` writes a JSON copy beside the package.  The copy is taken as long as it was
made from the very file that lies there; after an edit the YAML itself is read.  Either way the data is the same, and
trusted: the tests validate every number of it.

A session that asks a hundred times parses it once, and an edit is seen all the same (`roofline.files`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from roofline.files import kept

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # the package roofline
CACHE = os.path.join(_HERE, "_generated", "hardware.json")


def builtin_path() -> str:
    """The built-in hardware.yaml: inside the package in a wheel, at the top of the repository in a checkout."""
    packed = os.path.join(_HERE, "data", "hardware.yaml")
    return packed if os.path.exists(packed) else os.path.join(os.path.dirname(_HERE), "hardware.yaml")


def builtin() -> tuple[Mapping[str, Mapping[str, Any]], str]:
    """The entries of the built-in file and the sha256 of its text, from the JSON copy if that is fresh."""
    return kept(_read, builtin_path(), CACHE)


def _read(path: str, copy: str) -> tuple[Mapping[str, Mapping[str, Any]], str]:
    from zlib import crc32

    with open(path, "rb") as file:
        data = file.read().replace(b"\r\n", b"\n")
    if os.path.exists(copy):
        import json

        with open(copy, encoding="utf-8") as file:
            cached = json.load(file)
        if cached["crc32"] == crc32(data) and cached["size"] == len(data):
            return cached["accelerators"], cached["sha256"]
    return parse_builtin(data)


def parse_builtin(data: bytes) -> tuple[Mapping[str, Mapping[str, Any]], str]:
    """The entries of the built-in YAML text and its sha256.  Trusted: the tests validate it."""
    from hashlib import sha256

    import yaml

    document = yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return document["accelerators"], sha256(data).hexdigest()
