"""Model step: what one step of a model costs, kernel by kernel, what bounds it, and what would help."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import streamlit as st

from roofline.answer import Answer
from roofline.answers.compare import compare
from roofline.answers.step import step
from roofline.answers.step_map import step_map
from roofline.answers.step_report import OMITS
from roofline.dashboard import kit
from roofline.dashboard.controls import choice, steps
from roofline.dashboard.deployment import deployment
from roofline.dashboard.selection import Selection
from roofline.dashboard.step_charts import bars, bars_alt, map_alt, map_spec
from roofline.dashboard.uploads import uploaded
from roofline.models import Model, load_model
from roofline.units import number, show

TITLE, PATH = "Model step", "step"
PARAMETERS = ("phase", "q_len", "tp", "dp", "ep", "kv_dtype")
PHASES = ("decode", "oneshot", "chunked")
NEW_TOKENS = tuple(2**k for k in range(7, 18))
DRAFTED = (1, 2, 3, 4, 5, 6, 7, 8)
KV_DTYPES = ("auto", "bf16", "fp8", "fp8_row")
DEFAULTS = {"phase": "decode", "tp": 1, "dp": 1, "ep": 1, "kv_dtype": "auto", "context": 0, "batch": 1}


def page(selection: Selection) -> None:
    """The ledger of a step, its bounds, what would help, and the bound over batch and length."""
    st.title(TITLE)
    with st.expander("A model of your own: upload its config.json"):
        own = uploaded("model", "config.json", ["json"], load_model, "The configuration as the Hugging Face hub has it")
    if own is not None:
        st.info(f"Shown is the uploaded model {own.id}, not the one of the sidebar.", icon=":material/upload_file:")
    model = _model(selection.model) if own is None else own
    options = _controls(model)
    with kit.guarded():
        _answered(selection, model, options)
    kit.footer(selection.roof_or_none or "datasheet", OMITS)


@lru_cache(maxsize=64)
def _model(name: str) -> Model:
    return load_model(name)


def _controls(model: Model) -> dict[str, Any]:
    """Phase and deployment; only degrees that divide the model are on offer."""
    left, middle, right = st.columns(3)
    phase = choice("phase", PHASES, "decode")
    chosen: dict[str, Any] = {"phase": phase.show(left)}
    prefill = chosen["phase"] != "decode"
    new = steps("q_len", NEW_TOKENS if prefill else DRAFTED, 2048 if prefill else 1)
    chosen["q_len"] = new.show(middle)
    kv = choice("kv_dtype", KV_DTYPES, "auto")
    chosen["kv_dtype"] = kv.show(right)
    return chosen | deployment(model, left, middle, right)


@lru_cache(maxsize=256)
def _step(model: Model, hardware: str, **options: Any) -> Answer:
    return step(model, hardware, **options)


@lru_cache(maxsize=64)
def _map(model: Model, hardware: str, **options: Any) -> Answer:
    return step_map(model, hardware, **options)


@lru_cache(maxsize=64)
def _compare(model: Model, hardware: tuple[str, ...], tp: int, dp: int, ep: int, **options: Any) -> Answer:
    return compare(model, hardware, deployments=[{"tp": tp, "dp": dp, "ep": ep}], **options)


def _answered(selection: Selection, model: Model, options: dict[str, Any]) -> None:
    """Everything that follows from the choices."""
    load = {"batch": selection.batch, "context": 0 if options["phase"] == "oneshot" else selection.context}
    asked = {**options, **load, "roof": selection.roof_or_none}
    found = _step(model, selection.chip, **asked)
    _headline(found)
    st.subheader("Where the step goes")
    kit.chart(bars(found), "step_bars", bars_alt(found))
    st.subheader("Ledger")
    kit.table(found)
    kit.notes(found)
    kit.downloads("step", found, lambda: _figure("ledger", found))
    _help(found)
    mapped = _map(model, selection.chip, **options, roof=selection.roof_or_none)
    _heat_map(mapped, {**load, "q_len": options["q_len"]})
    kit.downloads("step-map", mapped, lambda: _figure("step_map", mapped))
    if len(selection.hardware) > 1:
        st.subheader("Side by side")
        kit.table(_compare(model, selection.hardware, **asked))
    with st.expander("Formulas' inputs, rates and sums"):
        kit.explain(found)
    name = selection.model if model is _model(selection.model) else "config.json"
    kit.reproduce(
        *kit.call_lines("step", name, selection.chip, named=("model", "hardware"), defaults=DEFAULTS, **asked)
    )


def _headline(found: Answer) -> None:
    """The bounds in large figures."""
    latency = ("TTFT", "ttft_s") if "ttft_s" in found.data else ("TPOT", "tpot_s")
    held = found["memory"]
    fits = {True: "fits", False: "does not fit", None: "capacity not sourced"}[found["fits"]]
    told = (
        (f"{latency[0]} at least", show(found[latency[1]], "s"), "Lower bound of the latency, collectives hidden"),
        ("Step", f"{show(found['time_lower_s'], 's')} to {show(found['time_upper_s'], 's')}", "Both time bounds"),
        ("Bound by", found["bound"], "What the largest share of the time waits for"),
        ("Tokens/s per GPU", number(found["tokens_per_s_per_gpu"]), f"On {found['deployment']['gpus']} GPUs, at most"),
        ("Memory", fits, f"{show(held['total_bytes'], 'B')} on the fullest device"),
        (
            "Largest batch",
            "-" if held["max_batch"] is None else number(held["max_batch"]),
            "Of this length, no reserve",
        ),
    )
    row = st.container(horizontal=True)
    for label, value, meaning in told:
        row.metric(label, value, help=meaning, width="content")


def _help(found: Answer) -> None:
    """Elasticities: how much less time one percent more of a rate gives."""
    st.subheader("What would help")
    rates = [{"rate": name.replace("_", " "), "value": value} for name, value in found["elasticities"].items()]
    spec = {
        "data": {"values": rates},
        "height": {"step": 26},
        "params": [{"name": "pick", "select": {"type": "point", "fields": ["rate"]}}],
        "mark": "bar",
        "encoding": {
            "y": {"field": "rate", "type": "nominal", "sort": "-x", "title": None},
            "x": {
                "field": "value",
                "type": "quantitative",
                "scale": {"domain": [0, 1]},
                "axis": {"tickCount": 5},
                "title": "percent less time per percent more of the rate",
            },
            "tooltip": [{"field": "rate"}, {"field": "value", "type": "quantitative", "format": ".3f"}],
        },
    }
    told = ", ".join(f"{row['rate']} {row['value']:.2f}" for row in rates if row["value"])
    kit.chart(spec, "step_help", f"Elasticities of the lower time bound: {told or 'none'}.")
    at_ridge = found["batch_at_ridge"]
    st.caption(
        "Batch at which the matrix products take as long as the bytes, caches included: "
        + (number(at_ridge) if at_ridge is not None else "none does")
        + "."
    )


def _heat_map(mapped: Answer, current: dict[str, Any]) -> None:
    """The lower bound over batch and length: colour its time, letter what binds, pale where it does not fit."""
    along = mapped["along"]
    title = {"context": "cached tokens per sequence (context)", "q_len": "new tokens per sequence (q_len)"}[along]
    st.subheader("The bound over batch and " + {"context": "context", "q_len": "prompt"}[along])
    rows = [
        {
            **row,
            "time": show(row["time_lower_s"], "s"),
            "memory": {True: "fits", False: "does not fit", None: "capacity not sourced"}[row["fits"]],
            "here": row["batch"] == current["batch"] and row[along] == current[along],
        }
        for row in mapped.rows
    ]
    kit.chart(map_spec(rows, along, title), "step_map", map_alt(mapped, along))
    letters = ", ".join(dict.fromkeys(f"{row['letter']} {row['bound']}" for row in rows))
    st.caption(f"Bound by {letters}; pale and in brackets: does not fit; framed: the step above.")


def _figure(kind: str, answer: Answer) -> Any:
    """The matplotlib figure of a download."""
    from roofline.figures import styled
    from roofline.figures.step import FIGURES

    with styled("paper"):
        return FIGURES[kind](answer.document).figure
