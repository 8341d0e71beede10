"""What pydantic says of a user's file, said as one `BadFile`: dotted path, what is there, what was expected."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated, Any, get_args, get_origin

from pydantic import ValidationError

from roofline.errors import BadFile
from roofline.safe_yaml import dotted

_NUMERIC = re.compile(r"\s*[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?\s*\Z")
_ADDRESS = "either a url, or `url: null` with `unsourced: true`"
_EXPECTED = {
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "text",
    "list_type": "a list",
    "bool_type": "true or false",
    "greater_than": "a number above 0",
    "finite_number": "a finite number",
    "missing": "this key",
    "too_short": "at least one entry",
    "string_too_short": "text",
}


def first_mistake(error: ValidationError, file: str, root: Any) -> BadFile:
    """The first mistake of a validation against the model `root`: dotted path, what is there, what was expected."""
    # a misspelt key is at the same time a missing one: say the first
    problem, *others = sorted(error.errors(include_url=False), key=lambda found: found["type"] == "missing")
    keys = [key for key in problem["loc"] if key != "[key]"]
    note = f"and {len(others)} more" if others else ""
    kind, got = problem["type"], problem["input"]
    if kind == "extra_forbidden":
        notes = [text for text in (near(str(keys[-1]), _fields_at(root, keys[:-1])), note) if text]
        return BadFile(file, dotted(keys), "a key that is not known", "one of the format's keys", "; ".join(notes))
    if kind == "value_error":
        return BadFile(file, dotted(keys), "a source " + problem["msg"].partition(", ")[2], _ADDRESS, note)
    if kind == "missing":
        return BadFile(file, dotted(keys), "nothing", "this key", note)
    expected = _EXPECTED.get(kind) or _described(problem)
    if kind in ("float_type", "int_type") and isinstance(got, str) and _NUMERIC.match(got):
        note = f"as text it is no number: write {spelled(float(got))} without quotes, with a dot and a signed exponent"
    return BadFile(file, dotted(keys), _shown(got), expected, note)


def _described(problem: Any) -> str:
    """The expectation of a rarer error, from its context."""
    context = problem.get("ctx", {})
    if problem["type"] == "literal_error":
        return str(context.get("expected", "one of the choices"))
    if problem["type"] == "string_pattern_mismatch":
        pattern = context.get("pattern", "")
        return "an address such as https://..." if "http" in pattern else f"text of the form {pattern}"
    if problem["type"].startswith(("model", "dict")):
        return "a mapping"
    return str(problem["msg"])


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    return repr(value) if isinstance(value, str) else str(value)


def spelled(value: float) -> str:
    """A float as every YAML reader takes it for one.

    >>> spelled(3.35e12), spelled(80.0)
    ('3.35e+12', '80.0')
    """
    if not math.isfinite(value) or abs(value) < 1e6:
        return repr(value)
    mantissa, exponent = f"{value:.14e}".split("e")
    mantissa = mantissa.rstrip("0")
    return f"{mantissa}0e{exponent}" if mantissa.endswith(".") else f"{mantissa}e{exponent}"


def near(name: str, choices: Iterable[str]) -> str:
    """The nearest choices as a note, or nothing."""
    found = get_close_matches(name, list(choices), n=3, cutoff=0.5)
    return "nearest: " + ", ".join(found) if found else ""


def _fields_at(root: Any, keys: list[Any]) -> list[str]:
    """The keys that the format knows at a place."""
    kind = root
    for key in keys:
        kind = kind.model_fields[key].annotation if hasattr(kind, "model_fields") else get_args(kind)[-1]
        if type(None) in get_args(kind):
            kind = get_args(kind)[0]
        if get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
    return list(getattr(kind, "model_fields", {}))
