"""The second half of the page KV memory: what the cards of an accelerator hold of a model, by engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import streamlit as st

from roofline.answer import Answer
from roofline.answers.kv import kv_capacity
from roofline.answers.kv_curve import kv_curve
from roofline.answers.step_map import degrees
from roofline.dashboard import kit
from roofline.dashboard.controls import choice, slider, steps
from roofline.dashboard.kv_charts import curve_alt, curve_spec
from roofline.dashboard.selection import Selection
from roofline.memory.engines import ENGINES
from roofline.units import number

PARAMETERS = ("tp", "kv_dtype", "utilization")
KV_DTYPES = ("auto", "bf16", "fp8", "fp8_row")


@lru_cache(maxsize=128)
def _tensor_degrees(model: str) -> list[int]:
    return degrees(model)["tp"]


@lru_cache(maxsize=256)
def _by_engine(model: str, hardware: str, **options: Any) -> Answer:
    """One row an engine; notes that several engines share once."""
    found = [kv_capacity(model, hardware, engine=engine, **options) for engine in ENGINES]
    rows = [answer.rows[0] for answer in found]
    kept = [c for c in found[0].columns if any(row.get(c.key) is not None for row in rows)]
    said = dict.fromkeys(note for answer in found for note in answer.notes)
    notes = [note if (who := _who(note, found)) == "" else f"{who}: {note}" for note in said]
    title = f"Capacity for requests of {number(options['max_model_len'])} tokens"
    data = {"rows": rows, "model": model, "hardware": hardware, "inputs": options}
    return replace(found[0], name="kv-capacity", data=data, columns=kept, notes=tuple(notes), title=title)


def _who(note: str, found: Sequence[Answer]) -> str:
    """The engines that say a note, nothing where all do."""
    names = [engine for engine, answer in zip(ENGINES, found, strict=True) if note in answer.notes]
    return "" if len(names) == len(found) else ", ".join(names)


@lru_cache(maxsize=128)
def _curve(model: str, hardware: str, **options: Any) -> Answer:
    return kv_curve(model, hardware, engine=ENGINES, **options)


def capacity(selection: Selection) -> None:
    """What one rank of the chosen accelerator holds of the chosen model, by engine."""
    st.markdown(
        f"`{selection.model}` on `{selection.chip}`, requests of {number(selection.context)} tokens: "
        "model, accelerator and context are those of the sidebar."
    )
    left, middle, right = st.columns(3)
    allowed = _tensor_degrees(selection.model)
    tp = steps("tp", allowed, 1).show(left) if len(allowed) > 1 else 1
    dtype = choice("kv_dtype", KV_DTYPES, "auto")
    options = {"tp": tp, "kv_dtype": dtype.show(middle)}
    options["utilization"] = slider("utilization", 0.5, 1.0, 0.9, 0.01).show(right)
    found = _by_engine(selection.model, selection.chip, max_model_len=selection.context, **options)
    kit.table(found)
    kit.notes(found)
    kit.downloads("kv-capacity", found)
    curve = _curve(selection.model, selection.chip, **options)
    if any(value for line in curve["lines"] for value in line["concurrency"]):
        kit.chart(curve_spec(curve, selection.context), "kv_curve", curve_alt(curve))
        kit.downloads("kv-concurrency", curve, lambda: _figure(curve))
    else:
        st.info("Nothing is left for caches: take more ranks (TP) or another accelerator.", icon=":material/info:")
    asked = {"engine": "vllm", "max_model_len": selection.context, **options}
    kit.reproduce(
        *kit.call_lines(
            "kv_capacity",
            selection.model,
            selection.chip,
            command="kv capacity",
            named=("model", "hardware"),
            defaults={"tp": 1, "kv_dtype": "auto"},
            **asked,
        )
    )


def _figure(curve: Answer) -> Any:
    """The matplotlib figure of a download."""
    from roofline.figures import memory, styled

    with styled("paper"):
        return memory.plot_concurrency(curve.document).figure
