"""Model step: what one step of a model costs, kernel by kernel, what bounds it, and what would help."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow as pa
import streamlit as st

from roofline.accelerators import Accelerator
from roofline.answer import Answer
from roofline.answers.compare import DEGREES, compare
from roofline.answers.step import step
from roofline.answers.step_fit import larger_that_fit
from roofline.answers.step_map import BATCHES, LENGTHS, step_map
from roofline.answers.step_report import OMITS
from roofline.dashboard import kit, known, step_controls
from roofline.dashboard.selection import Selection
from roofline.dashboard.step_charts import bars, bars_alt, helping, helping_alt, map_alt, map_data, map_spec
from roofline.dashboard.step_controls import LATENCY, NEW_TOKENS, workload_and_deployment
from roofline.dashboard.uploads import File, uploaded
from roofline.models import Model, load_model
from roofline.plan import Deployment
from roofline.units import number, show

PARAMETERS = (*step_controls.PARAMETERS, LATENCY, "view")
VIEWS = ("Ledger", "What would help", "Batch and length")
# of the library, so that what the page starts with is written out where it differs
DEFAULTS = step.__kwdefaults__ or {}
AXES = {"context": LENGTHS, "q_len": NEW_TOKENS}  # of the map, the values of the sliders
CONFIG = "The configuration as the Hugging Face hub has it"
VISIT = "_step_map_visit"  # clicks on the map so far: as a part of what is selected, a second click on a cell is news
PHASES = {"decode": "", "oneshot": "", "chunked": "", "mixed": " of the decode part"}
GAINED, NEW = "Tokens that the sequences gain", "New tokens of the prefill"
COUNTED = {"decode": GAINED, "oneshot": NEW, "chunked": NEW, "mixed": f"{GAINED}, those of the prefill not counted"}


def page(selection: Selection) -> None:
    """The ledger of a step, its bounds, what would help, and the bound over batch and length."""
    with st.expander("A model of your own: upload its config.json"):
        own = uploaded(known.MODEL, "config.json", ["json"], load_model, CONFIG, then=_chosen)
        if own is not None:
            told = f"Read: {own.name}. It stands in the list of models of the sidebar, for every page."
            st.success(kit.escape(told))
    options = workload_and_deployment(selection.loaded, latency=True)
    with kit.guarded():
        _answered(selection, options)
    kit.footer(selection.roof_or_none or "datasheet", OMITS)


@lru_cache(maxsize=256)
def _step(model: Model, hardware: Accelerator, **options: Any) -> Answer:
    return step(model, hardware, **options)


@lru_cache(maxsize=64)
def _map(model: Model, hardware: Accelerator, **options: Any) -> tuple[Answer, pa.Table]:
    along = "q_len" if options["phase"] == "oneshot" else "context"
    mapped = step_map(model, hardware, batches=BATCHES, lengths=AXES[along], **options)
    return mapped, map_data(mapped)


@lru_cache(maxsize=64)
def _compare(
    model: Model, hardware: tuple[Accelerator, ...], spread: tuple[tuple[str, int], ...], **options: Any
) -> Answer:
    return compare(model, hardware, deployments=[dict(spread)], **options)


@lru_cache(maxsize=64)
def _larger(model: Model, hardware: Accelerator, **options: Any) -> list[Deployment]:
    return larger_that_fit(model, hardware, **options)


def _chosen(file: File) -> None:
    """Show a model that has just arrived."""
    st.session_state["model"] = file.name


def _answered(selection: Selection, options: dict[str, Any]) -> None:
    """Everything that follows from the choices."""
    model, part = selection.loaded, selection.part
    load = {"batch": selection.batch, "context": 0 if options["phase"] == "oneshot" else selection.context}
    roof: dict[str, Any] = {"roof": selection.roof_or_none}
    timeless = {name: value for name, value in options.items() if name != LATENCY}
    asked = {**options, **load}
    found = _step(model, part, **asked, **roof)
    _headline(found)
    if found["fits"] is False:
        _too_large(found, _larger(model, part, **timeless, **load))
    st.header("Where the step goes")
    kit.chart(bars(found), "step_bars", bars_alt(found))
    if len(selection.hardware) > 1:
        _side_by_side(selection, asked | roof)
    ledger, helping, mapping = kit.views(*VIEWS)
    ledger.show(lambda: _ledger(found))
    helping.show(lambda: _help(found))
    mapping.show(lambda: _heat_map(*_map(model, part, **timeless, **roof), asked))
    lines = kit.call_lines(
        "step", selection.model, selection.spelled[0], named=("model", "hardware"), defaults=DEFAULTS, **asked, **roof
    )
    kit.reproduce("step", *lines)


def _headline(found: Answer) -> None:
    """The bounds in large figures."""
    if "ttft_s" in found.data:
        latency, value, meaning = "TTFT at least", found["ttft_s"], "Time to the first token"
    else:
        latency, value, meaning = "TPOT at least", found["tpot_s"], "Time per output token"
    held, deployment = found["memory"], found["deployment"]
    fits = {True: "fits", False: "does not fit", None: "capacity not sourced"}[found["fits"]]
    both = f"{show(found['time_lower_s'], 's')} to {show(found['time_upper_s'], 's')}"
    told = (
        (latency, show(value, "s"), f"{meaning}: a lower bound, collectives hidden"),
        ("Step, both bounds", both, "Collectives hidden and legs overlapped; nothing overlapped"),
        ("Bound by", found["bound"], "What the largest share of the time waits for"),
        (
            "Tokens/s per GPU, at most",
            number(found["tokens_per_s_per_gpu"]),
            f"{COUNTED[found['phase']]}; {number(deployment['gpus'])} GPUs in all",
        ),
        ("Memory", fits, f"{show(held['total_bytes'], 'B')} of weights and cache on the fullest device"),
        (
            "Largest batch",
            "-" if held["max_batch"] is None else number(held["max_batch"]),
            "Sequences of this length that fit, no reserve kept",
        ),
    )
    row = st.container(horizontal=True)
    for label, text, more in told:
        row.metric(label, text, help=more, width="content")


def _too_large(found: Answer, larger: list[Deployment]) -> None:
    """What would hold a step that does not fit."""
    held, now = found["memory"], found["deployment"]
    need = f"The step needs {show(held['total_bytes'], 'B')} a device, of {show(held['capacity_bytes'], 'B')}."
    ways = [
        " ".join(f"{k.upper()} {n}" for k, n in spread._asdict().items() if n != now[k])
        + f" ({number(spread.gpus)} GPUs)"
        for spread in larger
    ]
    told = f"The smallest larger deployment that holds it: {' or '.join(ways)}." if ways else (
        "No larger deployment with one degree raised, up to 64, holds it."
    )  # fmt: skip
    fewer = f" Or a batch of at most {number(held['max_batch'])}." if held["max_batch"] else ""
    st.info(kit.escape(f"{need} {told}{fewer}"), icon=":material/memory:")


def _side_by_side(selection: Selection, asked: dict[str, Any]) -> None:
    """The same step on both accelerators."""
    spread = tuple((name, asked[name]) for name in DEGREES if asked[name] != 1)
    rest = {name: value for name, value in asked.items() if name not in DEGREES}
    st.header("Side by side")
    kit.table(_compare(selection.loaded, selection.parts, spread, **rest))


def _ledger(found: Answer) -> None:
    """Every kernel in figures."""
    kit.table(found)
    kit.notes(found, besides=OMITS)
    kit.downloads("step", found, lambda: _figure("ledger", found))
    kit.folded("Formulas' inputs, rates and sums", "explain_step", lambda: kit.explain(found))


def _help(found: Answer) -> None:
    """Elasticities: how much less time one percent more of a rate gives."""
    kit.chart(helping(found), "step_help", helping_alt(found))
    at_ridge = found["batch_at_ridge"]
    st.caption(
        "Batch at which the matrix products take as long as the bytes, caches included: "
        + (number(at_ridge) if at_ridge is not None else "none does")
        + "."
    )


def _heat_map(mapped: Answer, cells: pa.Table, asked: dict[str, Any]) -> None:
    """The lower bound over batch and length: colour its time, letter what binds, pale where it does not fit."""
    along = mapped["along"]
    length = {"context": "context", "q_len": "prompt"}[along] + PHASES[asked["phase"]]
    st.header(f"The bound over batch and {length}")
    here = [row["batch"] == asked["batch"] and row[along] == asked[along] for row in mapped.rows]
    visit = [st.session_state.get(VISIT, 0)] * len(here)
    cells = cells.append_column("here", pa.array(here)).append_column("visit", pa.array(visit))
    kit.chart(map_spec(cells, along), "step_map", map_alt(mapped, along), picked=_picked)
    letters = ", ".join(dict.fromkeys(f"{row['letter']} {row['bound']}" for row in mapped.rows))
    told = f"Bound by {letters}; pale and in brackets: does not fit; framed: the step above. "
    st.caption(told + f"A click on a cell sets batch and {along}.")
    kit.downloads("step-map", mapped, lambda: _figure("step_map", mapped))


def _picked() -> None:
    """Set the controls to the cell of the map that was clicked on; what is no cell of it changes nothing."""
    picked = (st.session_state["step_map"].get("selection") or {}).get("cell")
    cell = picked[-1] if isinstance(picked, list) and picked else None
    axes: dict[str, tuple[int, ...]] = {"batch": BATCHES, **AXES}
    st.session_state[VISIT] = st.session_state.get(VISIT, 0) + 1
    for name, value in cell.items() if isinstance(cell, dict) else ():
        if value in axes.get(name, ()):
            st.session_state[name] = int(value)


def _figure(kind: str, answer: Answer) -> Any:
    """The matplotlib figure of a download."""
    from roofline.figures import styled
    from roofline.figures.step import FIGURES

    with styled("paper"):
        return FIGURES[kind](answer.document).figure
