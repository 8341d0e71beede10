"""The page of MHA mode against MQA mode: at which length, chunk or batch both cost the same."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import streamlit as st

from roofline.accelerators import Accelerator
from roofline.answer import Answer
from roofline.answers.common import roof_for
from roofline.answers.crossover import crossover
from roofline.answers.crossover_text import LEFT_OUT
from roofline.answers.plot import figure
from roofline.answers.plotted_crossover import crossover_scene
from roofline.dashboard import kit, known, visits
from roofline.dashboard.controls import choice, escape, several, slider, steps, switch
from roofline.dashboard.live import live_slider
from roofline.dashboard.live_charts import Chart, crossover_live_chart
from roofline.dashboard.selection import Selection
from roofline.errors import RooflineError
from roofline.models import Model

PARAMETERS = (
    "phase",
    "between",
    "cost",
    "tp",
    "kernel_heads",
    "rate_ratio",
    "gather",
    "skip",
    "topk",
    "unknown",
    "q_len",
    "prefix",
)
PHASES = ("oneshot", "chunked", "decode", "shared-prefix")
SUBJECTS = ("modes", "indexer", "dense")
USUAL = {"tp": (1,), "rate_ratio": 1.0, "gather": "none", "skip": True, "between": "modes", "phase": "oneshot"}
RATIO = slider("rate_ratio", 0.1, 2.0, 1.0, 0.01)
RATIOS = (0.1, 0.2, 0.5, 1.0, 2.0)  # at which the axes are made to hold every crossing
DERIVATION = "Derivation: the equation with numbers put in, its roots, the rejected ones"
OWN_HEADS = 0  # kernel_heads that stands for "as many as the rank has"
TOPK = {"model": None, "none": 0}  # words that stand for no number of keys
Asked = tuple[tuple[str, Any], ...]


def page(selection: Selection) -> None:
    """Curves of both modes with their crossings, table, derivation."""
    st.markdown("MHA mode (naive, compute friendly) expands the cache to every head; MQA mode (absorbed, data-movement "
                "friendly) reads the shared latent row. Which one is cheaper?")  # fmt: skip
    top = st.container()
    options, unknown = _options(selection)
    modes, priced = options["between"] == "modes", options["cost"] == "time"
    part, roof = (selection.part, selection.roof_or_none) if priced else (None, None)
    chip = selection.spelled[0] if priced else None
    footer = (roof or "datasheet" if priced else "none; FLOPs of the formulas, no chip", LEFT_OUT[options["between"]])
    try:
        found, chart = answer(selection.loaded, part, roof, tuple(options.items()), unknown)
    except RooflineError as reason:
        visits.now().read.add(RATIO.name)  # which has no place where there is no chart
        with top:
            _refused(selection.model, reason)
        kit.footer(*footer)
        return
    with top:
        live_slider(RATIO, chart, idle="" if modes else "no part in this comparison: only the modes differ in rate")
        st.caption(escape(chart["title"]))
    kit.table(found)
    kit.notes(found, besides=LEFT_OUT[options["between"]])
    kit.folded(DERIVATION, "explain_crossover", lambda: kit.explain(found))
    drawn = {"model": selection.loaded, "hardware": part, "roof": roof, "unknown": unknown, **options}
    kit.downloads("crossover", found, lambda: figure("crossover", **drawn))
    kit.reproduce("crossover", *_lines(selection.model, chip, roof, unknown, options))
    kit.footer(*footer)


@lru_cache(512)
def answer(
    model: Model, part: Accelerator | None, roof: str | None, asked: Asked, unknown: str | None
) -> tuple[Answer, Chart]:
    """The answer and its chart, kept for a slider that comes back; they depend on nothing but the arguments."""
    found = crossover(model, part, roof=roof, **dict(asked))
    scene = crossover_scene(found, unknown, part, roof_for(part, roof) if part else None)
    return found, crossover_live_chart(scene, RATIOS)


def _options(selection: Selection) -> tuple[dict[str, Any], str | None]:
    """Options of `crossover`, and the unknown on the axis where a phase has several."""
    row = st.columns(4)
    phase = choice("phase", PHASES, "oneshot").show(row[0])
    shared = phase == "shared-prefix"
    between = choice("between", SUBJECTS[:1] if shared else SUBJECTS, "modes").show(row[1])
    cost = choice("cost", ("flops", "time"), "time" if shared else "flops").show(row[2])
    gather = choice("gather", ("none", "perfect"), "none").show(row[3])
    row = st.columns(4)
    degrees = several("tp", (1, 2, 4, 8, 16), (1,)).show(row[0])
    if not degrees:
        row[0].caption("None marked: TP 1.")
    heads = choice("kernel_heads", (OWN_HEADS, 16, 32, 64, 128), OWN_HEADS).show(row[1])
    topk = choice("topk", (*TOPK, "512", "1024", "2048", "4096"), "model").show(row[2])
    options = {
        "phase": phase,
        "cost": cost,
        "between": between,
        "tp": tuple(degrees) or (1,),
        "kernel_heads": heads or None,
        "rate_ratio": RATIO.from_address() if between == "modes" else 1.0,
        "gather": gather,
        "skip": switch("skip", True).show(row[3]),
        "topk": TOPK[topk] if topk in TOPK else int(topk),
    }
    workload, unknown = _workload(phase, between == "modes", selection)
    return {**options, **workload}, unknown


def _workload(phase: str, modes: bool, selection: Selection) -> tuple[dict[str, Any], str | None]:
    """What a phase takes from the workload; the axis of the chart is its unknown."""
    if phase == "oneshot":
        return {}, None
    if phase == "chunked":
        return {"batch": selection.batch, "context": selection.context}, None
    row = st.columns(4)
    new = {"q_len": steps("q_len", (1, 2, 4, 8), 1).show(row[0])}
    if phase == "shared-prefix":
        return {**new, "prefix": steps("prefix", tuple(2**k for k in range(8, 18)), 4096).show(row[1])}, None
    if not modes:
        return {**new, "batch": selection.batch}, None
    unknown = choice("unknown", ("seq_len", "batch"), "seq_len").show(row[1])
    return {**new, "batch": selection.batch, "context": selection.context}, unknown


def _refused(model: str, reason: RooflineError) -> None:
    """Why there is no answer, and what to choose instead."""
    kit.error(reason)
    if "latent" not in known.model(model).shape:
        st.markdown(f"Models with a latent, to choose in the sidebar: {escape(', '.join(with_latent()))}.")


@cache
def with_latent() -> tuple[str, ...]:
    """The built-in models of latent attention."""
    return tuple(name for name in known.built_in_models() if "latent" in known.model(name).shape)


def _lines(
    model: str, chip: str | None, roof: str | None, unknown: str | None, options: dict[str, Any]
) -> tuple[str, str]:
    """The numbers and the figure."""
    usual = {**USUAL, "cost": "time" if options["phase"] == "shared-prefix" else "flops"}
    given = {"model": model, "hardware": chip, "roof": roof, **options}
    python, _ = kit.call_lines("crossover", defaults=usual, **given)
    given |= {"topk": "none" if options["topk"] == 0 else options["topk"]}
    _, cli = kit.call_lines("crossover", defaults=usual, **given)
    drawn = {**given, "unknown": unknown, "output": "crossover.pdf"}
    _, figure_cli = kit.call_lines("plot", command="plot crossover", defaults={**usual, "cost": "flops"}, **drawn)
    return python, f"{cli}\n{figure_cli}"
