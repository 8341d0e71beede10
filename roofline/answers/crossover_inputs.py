"""What `roofline crossover` is told: options that a phase uses, what stands where none is given, and how it is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roofline import glossary
from roofline.crossovers import defaults
from roofline.errors import BadValue, UnknownName
from roofline.phases import check_phase
from roofline.units import number

WORKLOAD = ("batch", "q_len", "context", "prefix")
WIDTHS = (
    *("w_kv", "kv_row_bytes", "w_act", "w_weight", "w_expanded", "expanded_row_bytes"),
    *("w_index", "index_row_bytes", "w_logit"),
)
CONTEXT = 8192  # cached tokens where a phase needs them and none are given
USED = {  # phase -> what of the workload it is told; the rest is solved for, cancels, or has no meaning there
    "oneshot": ("batch",),
    "chunked": ("batch", "context"),
    "decode": ("batch", "q_len", "context"),
    "shared-prefix": ("q_len", "prefix"),
}


def workload(phase: str, between: str, given: Mapping[str, float | None]) -> dict[str, float]:
    """The values given, each checked and used by this phase, with the context that a phase needs.

    Raises UnknownName for a name that is no option, BadValue for a value out of range or one that the phase does not
    use: an option that changes nothing must not stand among the inputs of an answer.
    """
    used = USED[check_phase(phase)]
    if between != "modes" and phase == "decode":
        used = ("batch", "q_len")  # the length is solved for
    values: dict[str, float] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name in WORKLOAD and name not in used:
            raise BadValue(name, value, f"no value: a crossing of phase {phase} uses {', '.join(used)}")
        if name not in WORKLOAD and name not in WIDTHS:
            glossary.quantity(name)
            raise UnknownName("option of crossover", name, (*used, *WIDTHS))
        values[name] = glossary.check(name, value)
    return ({"context": CONTEXT} if "context" in used else {}) | values


def check_ratio(rate_ratio: float, at_length: float | None, between: str) -> None:
    """The rate ratio belongs to a comparison of the modes and is the unknown where a length is given."""
    glossary.check("rate_ratio", rate_ratio)
    if at_length is not None:
        if isinstance(at_length, bool) or not isinstance(at_length, (int, float)) or not 0 < at_length < float("inf"):
            raise BadValue("at_length", at_length, "a length, a finite number > 0")
        if rate_ratio != 1:
            raise BadValue("rate_ratio", rate_ratio, "no value beside at_length, which is solved for the rate ratio")
    if between != "modes" and rate_ratio != 1:
        raise BadValue("rate_ratio", rate_ratio, "no value: only the modes differ in rate")


def check_heads(kernel_heads: Any, engine: str | None) -> None:
    """Padding is given as a count or by an engine's rule."""
    if kernel_heads is None:
        return
    if engine is not None:
        raise BadValue("engine", engine, "either kernel_heads or engine, not both")
    if glossary.check("kernel_heads", kernel_heads) != int(kernel_heads):
        raise BadValue("kernel_heads", kernel_heads, "a whole number of heads, or None")


def degrees(tp: Any) -> list[int]:
    """One or several tensor-parallel degrees as a list."""
    found = [tp] if isinstance(tp, (int, float, str)) else list(tp)
    whole: list[Any] = [
        int(t) if hasattr(t, "__index__") and not isinstance(t, bool) else t for t in found
    ]  # numpy's integers
    return [int(glossary.check("tp", t)) for t in whole]


def in_words(inputs: Mapping[str, Any], phase: str) -> str:
    """The inputs in one line, with what stood where none was given."""
    shown = {k: v for k, v in inputs.items() if v is not None}
    usual = {k: v for k, v in defaults(phase, shown).items() if k not in shown and k in (*USED[phase], *WIDTHS)}
    if inputs["cost"] == "flops":
        usual = {k: v for k, v in usual.items() if k in WORKLOAD}  # FLOPs know no widths
    if "kv_row_bytes" in shown:
        usual.pop("w_kv", None)
    if "prefix" in usual:
        usual["prefix"] = "long, so that query and output traffic vanish beside it"
    shown |= usual
    if shown.get("kernel_heads") is None and inputs.get("engine") is None:
        shown["kernel_heads"] = "heads, not padded"
    return ", ".join(f"{k} = {_text(v)}" for k, v in shown.items())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return number(value) if isinstance(value, (int, float)) else str(value)
