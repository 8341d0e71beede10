"""Units at the border: text such as "3.35 TB/s" to SI floats, and floats to text.  Inside, floats are SI.

This module holds the only table of prefixes.  Decimal prefixes are powers of 1000, binary ones (KiB, MiB, ...)
powers of 1024 and only for bytes; a capacity therefore always says which it is.

>>> parse("3.35 TB/s", "B/s")
3350000000000.0
>>> parse("2GiB", "B")
2147483648.0
>>> show(3.35e12, "B/s")
'3.35 TB/s'
"""

from __future__ import annotations

import math
import re

from roofline.errors import BadValue

DECIMAL = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5}
UNITS = {  # canonical unit -> spellings accepted after the prefix
    "FLOP/s": ("FLOP/s",),
    "B/s": ("B/s",),
    "exp/s": ("exp/s",),
    "B": ("B",),
    "FLOP": ("FLOP",),
    "s": ("s",),
    "FLOP/B": ("FLOP/B", ""),
    "1": ("",),
}
_NUMBER = re.compile(
    r"\s*([+-]?(?:\d+(?:_\d+)*)(?:\.\d*)?(?:[eE][+-]?\d{1,4})?|[+-]?\.\d+(?:[eE][+-]?\d{1,4})?)\s*(\S*)\s*\Z"
)
_SMALL = {"m": 1e-3, "u": 1e-6, "µ": 1e-6, "n": 1e-9}


def parse(text: str | float, unit: str, name: str = "value", *, zero: bool = False) -> float:
    """Read a positive, finite quantity in `unit` and return it in SI.

    Parameters: text, a number with its unit (``"989TFLOP/s"``); unit, one of `UNITS`; name, used in errors;
    zero, whether 0 is allowed.  A bare number is refused where the unit has a dimension, because its scale
    would be a guess; a float passes as SI.

    >>> parse("989TFLOP/s", "FLOP/s")
    989000000000000.0
    >>> parse("3.35 TB", "B/s", "bandwidth")
    Traceback (most recent call last):
    roofline.errors.BadValue: bandwidth: got '3.35 TB', expected a positive number with a unit of B/s such as 1 TB/s
    """
    value = _si(text, unit) if isinstance(text, str) else text
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise BadValue(name, text, _expected(unit))
    if value < 0 or (value == 0 and not zero):
        raise BadValue(name, text, _expected(unit))
    return float(value)


def _si(text: str, unit: str) -> float | None:
    """The number in SI, or None where the text is not a number in this unit."""
    match = _NUMBER.match(text[:100])
    if match is None or len(text) > 100:
        return None
    number, suffix = float(match[1]), match[2]
    for spelling in UNITS[unit]:
        if suffix.endswith(spelling):
            prefix = suffix[: len(suffix) - len(spelling)] if spelling else suffix
            if prefix in DECIMAL and (prefix == "" or unit not in ("1", "s")):
                return number * 1000.0 ** DECIMAL[prefix]
            if prefix in BINARY and unit in ("B", "B/s"):
                return number * 1024.0 ** BINARY[prefix]
            if prefix in _SMALL and unit == "s":
                return number * _SMALL[prefix]
    return None


def _expected(unit: str) -> str:
    if unit in ("1", "FLOP/B"):
        return "a positive finite number" + (" of FLOP/B" if unit == "FLOP/B" else "")
    example = {"s": "1 ms", "B": "1 GB or 1 GiB"}.get(unit, f"1 T{unit}")
    return f"a positive number with a unit of {unit} such as {example}"


def show(value: float, unit: str = "", digits: int = 4) -> str:
    """A short text with a decimal prefix: three to four significant digits, never exponent notation in range.

    >>> show(9.894e14, "FLOP/s"), show(656, "B"), show(1.5e-6, "s"), show(120.888888, "FLOP/B")
    ('989.4 TFLOP/s', '656 B', '1.5 µs', '120.9 FLOP/B')
    """
    if not math.isfinite(value):
        return f"{value} {unit}".strip()
    if unit in ("", "1", "FLOP/B"):
        return f"{number(value, digits)} {unit if unit != '1' else ''}".strip()
    if unit == "s":
        for scale, prefix in ((1, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")):
            if abs(value) >= scale:
                return f"{number(value / scale, digits)} {prefix}s"
        return f"{number(value / 1e-9, digits)} ns"
    for prefix, power in (("E", 6), ("P", 5), ("T", 4), ("G", 3), ("M", 2), ("k", 1)):
        if abs(value) >= 1000.0**power:
            return f"{number(value / 1000.0**power, digits)} {prefix}{unit}"
    return f"{number(value, digits)} {unit}"


def number(value: float, digits: int = 4) -> str:
    """A plain number: integers with thousands separators, others to `digits` significant digits.

    >>> number(12813.4), number(0.4515), number(128.0), number(110377), number(1e308)
    ('12,813', '0.4515', '128', '110,377', '1e+308')
    """
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 1e18:  # three hundred digits of a float are no information
        return f"{float(value):.{digits}g}"
    if value == int(value):
        return f"{int(value):,}"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"
