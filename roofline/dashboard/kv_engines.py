"""The second half of the page KV memory: what the cards of an accelerator hold of a model, by engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import streamlit as st

from roofline.accelerators import Accelerator
from roofline.answer import Answer, Column
from roofline.answers.kv import kv_capacity
from roofline.answers.kv_curve import kv_curve
from roofline.answers.step_map import degrees
from roofline.dashboard import kit
from roofline.dashboard.controls import choice, slider, steps
from roofline.dashboard.kv_charts import curve_alt, curve_spec
from roofline.dashboard.selection import Selection
from roofline.memory.engines import ENGINES
from roofline.memory.plan import GIB
from roofline.models import Model
from roofline.units import number

PARAMETERS = ("tp", "kv_dtype", "utilization")
KV_DTYPES = ("auto", "bf16", "fp8", "fp8_row")
UTILIZATION = 0.9
MOST = 16  # ranks that the page starts with where no fewer hold the model
SHOWN = (  # what matters first, for narrow screens; TP and DP are the same in every row
    Column("engine", "engine"),
    Column("starts", "starts"),
    Column("concurrency", "requests at once", "1"),
    Column("tokens", "tokens held", "1"),
    Column("missing_bytes", "missing", "GiB", scale=GIB),
    Column("longest_context", "longest request", "tokens"),
    Column("available_bytes", "left for caches", "GiB", scale=GIB),
    Column("bytes_per_token_per_rank", "per token and rank", "B"),
    Column("kv_dtype", "cache type"),
    Column("blocks", "blocks", "1"),
    Column("ideal_concurrency", "requests by exact bytes", "1"),
)


@lru_cache(maxsize=128)
def _tensor_degrees(model: Model) -> tuple[int, ...]:
    return tuple(degrees(model)["tp"])


@lru_cache(maxsize=256)
def _by_engine(model: Model, hardware: Accelerator, **options: Any) -> Answer:
    """One row an engine; notes that several engines share once."""
    found = [kv_capacity(model, hardware, engine=engine, **options) for engine in ENGINES]
    rows = [answer.rows[0] for answer in found]
    kept = [c for c in SHOWN if any(row.get(c.key) is not None for row in rows)]
    said = dict.fromkeys(note for answer in found for note in answer.notes)
    notes = [note if (who := _who(note, found)) == "" else f"{who}: {note}" for note in said]
    title = f"Capacity for requests of {number(options['max_model_len'])} tokens"
    data = {"rows": rows, "model": found[0]["model"], "hardware": hardware.id, "inputs": options}
    return replace(found[0], name="kv-capacity", data=data, columns=kept, notes=tuple(notes), title=title)


def _who(note: str, found: Sequence[Answer]) -> str:
    """The engines that say a note, nothing where all do."""
    names = [engine for engine, answer in zip(ENGINES, found, strict=True) if note in answer.notes]
    return "" if len(names) == len(found) else ", ".join(names)


@lru_cache(maxsize=128)
def _curve(model: Model, hardware: Accelerator, **options: Any) -> Answer:
    return kv_curve(model, hardware, engine=ENGINES, **options)


@lru_cache(maxsize=128)
def _least(model: Model, hardware: Accelerator, engine: str, degrees: tuple[int, ...], **options: Any) -> int | None:
    """The least of these degrees with which an engine starts."""
    rows = kv_capacity(model, hardware, engine=engine, **{**options, "tp": degrees}).rows
    return min((row["tp"] for row in rows if row["starts"]), default=None)


def _start(selection: Selection) -> int:
    """The degree that the page starts with: the least with which the first engine does."""
    model, part = selection.loaded, selection.part
    few = tuple(n for n in _tensor_degrees(model) if n <= MOST)
    if part.visible_bytes is None:
        return few[-1]
    asked = {"max_model_len": selection.context, "kv_dtype": "auto", "utilization": UTILIZATION}
    return _least(model, part, ENGINES[0], few, **asked) or few[-1]


def controls(selection: Selection) -> dict[str, Any]:
    """The options of `roofline.kv_capacity` that the page chooses."""
    st.markdown(
        f"`{selection.model}` on `{selection.chip}`, requests of {number(selection.context)} tokens: "
        "model, accelerator and context are those of the sidebar. All numbers are those of one rank."
    )
    left, middle, right = st.columns(3)
    offered = _tensor_degrees(selection.loaded)
    tp = 1
    if len(offered) > 1:
        tp = steps("tp", offered, _start(selection)).show(left)
    options: dict[str, Any] = {"tp": int(tp), "kv_dtype": choice("kv_dtype", KV_DTYPES, "auto").show(middle)}
    return options | {"utilization": slider("utilization", 0.5, 1.0, UTILIZATION, 0.01).show(right)}


def capacity(selection: Selection, options: dict[str, Any]) -> None:
    """What one rank of the chosen accelerator holds of the chosen model, by engine."""
    if selection.part.visible_bytes is None:
        st.info(kit.escape(f"No source gives the memory of {selection.chip}: take another accelerator in the sidebar."),
                icon=":material/info:")  # fmt: skip
        return
    found = _by_engine(selection.loaded, selection.part, max_model_len=selection.context, **options)
    _missing(selection, found)
    kit.table(found, engine=st.column_config.TextColumn(pinned=True))
    kit.notes(found)
    kit.downloads("kv-capacity", found)
    curve = _curve(selection.loaded, selection.part, **options)
    if any(value for line in curve["lines"] for value in line["concurrency"]):
        st.header("Requests by their length")
        kit.chart(curve_spec(curve, selection.context), "kv_curve", curve_alt(curve))
        kit.downloads("kv-concurrency", curve, lambda: _figure(curve))
    kit.reproduce("kv-capacity", *_lines(selection, options))


def _missing(selection: Selection, found: Answer) -> None:
    """Which engines do not start, what each lacks, and the degree that would do."""
    asked = found["inputs"]
    short = {row["engine"]: row["missing_bytes"] / GIB for row in found.rows if not row["starts"]}
    if not short:
        return
    model, part = selection.loaded, selection.part
    starts: dict[int | None, list[str]] = {}
    for engine in short:
        starts.setdefault(_least(model, part, engine, _tensor_degrees(model), **asked), []).append(engine)
    lacks = ", ".join(f"{engine} {number(gib)} GiB" for engine, gib in short.items())
    cures = [
        f"{', '.join(names)}: {'no TP on offer starts' if least is None else f'starts from TP {least} on'}."
        for least, names in starts.items()
    ]
    head = f"One request of {number(asked['max_model_len'])} tokens does not fit beside the weights at TP"
    told = f"{head} {asked['tp']}. Missing on each rank: {lacks}. {' '.join(cures)}"
    st.warning(kit.escape(told), icon=":material/memory_alt:")


def _lines(selection: Selection, options: Mapping[str, Any]) -> tuple[str, str]:
    """A call an engine, and that of the chart."""
    usual = {"tp": 1, "kv_dtype": "auto"}
    named = ("model", "hardware")
    where = (selection.model, selection.spelled[0])
    pairs = [
        kit.call_lines("kv_capacity", *where, command="kv capacity", named=named, defaults=usual, engine=engine,
                       max_model_len=selection.context, **options)
        for engine in ENGINES
    ]  # fmt: skip
    drawn = kit.call_lines("plot", "concurrency", named=("",), defaults=usual, model=where[0], hardware=where[1],
                           engine=list(ENGINES), **options)  # fmt: skip
    return kit.together([*pairs, drawn])


def _figure(curve: Answer) -> Any:
    """The matplotlib figure of a download."""
    from roofline.figures import memory, styled

    with styled("paper"):
        return memory.plot_concurrency(curve.document).figure
