"""The page of MHA mode against MQA mode: at which length, chunk or batch both cost the same."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import streamlit as st

from roofline.answer import Answer
from roofline.answers.crossover import crossover
from roofline.answers.live import crossover_live
from roofline.answers.plot import figure, plot
from roofline.answers.plotted_crossover import SIDES
from roofline.dashboard import kit
from roofline.dashboard.controls import choice, escape, several, slider, steps, switch
from roofline.dashboard.crossover_chart import crossover_spec
from roofline.dashboard.frame import catalog, known_model
from roofline.dashboard.live import live_slider
from roofline.dashboard.selection import Selection
from roofline.units import number

TITLE, PATH = "MHA or MQA mode", "crossover"
PARAMETERS = (
    "phase",
    "cost",
    "between",
    "tp",
    "kernel_heads",
    "rate_ratio",
    "gather",
    "skip",
    "unknown",
    "q_len",
    "prefix",
)
PHASES = ("oneshot", "chunked", "decode", "shared-prefix")
USUAL = {
    "kernel_heads": None,
    "rate_ratio": 1.0,
    "gather": "none",
    "skip": True,
    "between": "modes",
    "phase": "oneshot",
}
RATIO = slider("rate_ratio", 0.1, 2.0, 1.0, 0.01)
UNITS = {"seq_len": "tokens", "q_len": "new tokens", "batch": "sequences"}
ROOM = 4  # of the cost axis around the curves, for the ratios that the slider can still reach
OWN_HEADS = 0  # kernel_heads that stands for "as many as the rank has"


def page(selection: Selection) -> None:
    """Curves of both modes, crossings, derivation, table."""
    st.title("MHA or MQA mode")
    st.markdown("MHA mode (naive, compute friendly) expands the cache to every head; MQA mode (absorbed, data-movement "
                "friendly) reads the shared latent row. Which one is cheaper?")  # fmt: skip
    top = st.container()
    options = _options(selection)
    priced = options["cost"] == "time"
    chip, roof = (selection.chip, selection.roof_or_none) if priced else (None, None)
    asked = tuple(sorted(options.items()))
    found = answer(selection.model, chip, roof, asked)
    with top:
        _live(found, selection.model, chip, roof, asked)
    st.markdown(f"**{escape(found.title)}**")
    kit.chart(crossover_spec(found.data), "crossover_chart", _alt(found))
    _verdict(found)
    kit.table(found)
    kit.notes(found)
    with st.expander("Derivation: the equation with numbers put in, its roots, the rejected ones"):
        kit.explain(found)
    drawn = {"model": selection.model, "hardware": chip, "roof": roof, **options}
    kit.downloads("crossover", found, lambda: figure("crossover", **drawn))
    kit.reproduce(*_lines(selection.model, chip, roof, options))
    kit.footer(roof or "datasheet" if priced else "none; FLOPs of the formulas, no chip", found.notes[-1])


@lru_cache(512)
def answer(model: str, chip: str | None, roof: str | None, asked: tuple[tuple[str, Any], ...]) -> Answer:
    """The answer, kept for a slider that comes back; it is immutable and depends on nothing but its arguments."""
    return plot(
        "crossover", model=known_model(model), hardware=catalog()[chip] if chip else None, roof=roof, **dict(asked)
    )


@lru_cache(256)
def curves(
    model: str, chip: str | None, roof: str | None, asked: tuple[tuple[str, Any], ...], unknown: str
) -> list[dict[str, Any]]:
    """Cost of both sides by the unknown and the rate ratio, as JavaScript, for the first TP degree."""
    options = {k: v for k, v in asked if k != "unknown"}
    found = crossover(known_model(model), catalog()[chip] if chip else None, roof=roof, **options)
    case = found.cases[0]
    if case is None:
        return []
    told = f"TP {found.rows[0]['tp']}" if len(options["tp"]) > 1 else ""
    return [{**s, "label": ", ".join(filter(None, (SIDES[s["label"]], told)))} for s in crossover_live(case, unknown)]


def _live(found: Answer, model: str, chip: str | None, roof: str | None, asked: tuple[tuple[str, Any], ...]) -> None:
    """The rate ratio under the finger: both curves and their crossing follow it."""
    fixed = tuple((k, v) for k, v in asked if k != "rate_ratio")
    unknown, axis = found["unknown"], found["axis"]
    low, high = found["domain"][axis["key"]]
    live_slider(
        RATIO,
        "Cost of both modes",
        x={"name": unknown, "unit": UNITS[unknown], "domain": found["domain"]["unknown"]},
        y={"unit": axis["unit"], "domain": [low / ROOM, high * ROOM]},
        curves=curves(model, chip, roof, fixed, unknown),
        levels=[],
    )


def _options(selection: Selection) -> dict[str, Any]:
    row = st.columns(4)
    phase = choice("phase", PHASES, "oneshot").show(row[0])
    usual = "time" if phase == "shared-prefix" else "flops"
    cost = choice("cost", ("flops", "time"), usual).show(row[1])
    heads = choice("kernel_heads", (OWN_HEADS, 16, 32, 64, 128), OWN_HEADS).show(row[2])
    gather = choice("gather", ("none", "perfect"), "none").show(row[3])
    degrees = several("tp", (1, 2, 4, 8, 16), (1,)).show()
    skip = switch("skip", True).show()
    options = {
        "rate_ratio": RATIO.from_address(),
        "phase": phase,
        "cost": cost,
        "kernel_heads": heads or None,
        "gather": gather,
        "skip": skip,
        "tp": tuple(degrees) or (1,),
    }
    return options | _workload(phase, selection)


def _workload(phase: str, selection: Selection) -> dict[str, Any]:
    """What a phase takes from the workload; the axis of the chart is its unknown."""
    if phase == "chunked":
        return {"context": selection.context}
    if phase == "decode":
        unknown = choice("unknown", ("seq_len", "batch"), "seq_len").show()
        new = steps("q_len", (1, 2, 4, 8), 1).show()
        rest = {"context": selection.context} if unknown == "batch" else {"batch": selection.batch}
        return {"unknown": unknown, "q_len": new, **rest}
    if phase == "shared-prefix":
        return {"prefix": steps("prefix", tuple(2**k for k in range(8, 18)), 4096).show()}
    return {}


def _alt(found: Answer) -> str:
    met = "; ".join(f"{c['label']}" for c in found["crossings"]) or "none"
    return f"Cost of both modes, log-log. {found.title}. Crossings: {met}. The table below has the same content."


def _verdict(found: Answer) -> None:
    """The crossings in words, or why there is none."""
    for row in found.rows:
        where = f"{row['model']}, TP {row['tp']}"
        if row["value"] is None:
            st.markdown(f"- {escape(where)}: {escape(str(row['reason']))}")
        else:
            told = f"{SIDES[row['cheaper_below']]} is cheaper below, {SIDES[row['cheaper_above']]} above"
            st.markdown(f"- {escape(where)}: **{number(row['value'], 6)}** ({escape(row['unknown'])}); {escape(told)}")


def _lines(model: str, chip: str | None, roof: str | None, options: dict[str, Any]) -> tuple[str, str]:
    kept = {k: v for k, v in options.items() if v != USUAL.get(k, ...)} | {"cost": options["cost"]}
    python, _ = kit.call_lines("plot", "crossover", model=model, hardware=chip, roof=roof, **kept)
    _, cli = kit.call_lines("plot", model=model, command="plot crossover", hardware=chip, roof=roof, **kept)
    return python, cli
