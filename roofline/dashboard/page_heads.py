"""The head-count page: which head count sits on the ridge, and which chips suit a head count."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import streamlit as st

from roofline.accelerators import Accelerator
from roofline.answer import Answer
from roofline.answers.heads import OMITS, chips
from roofline.answers.plot import figure, plot
from roofline.answers.put_in import heads_steps
from roofline.dashboard import kit, known, uploads
from roofline.dashboard.controls import choice, escape, slider, steps
from roofline.dashboard.live import live_slider
from roofline.dashboard.live_charts import Chart, heads_live_chart
from roofline.dashboard.selection import Selection

PARAMETERS = ("heads", "latent", "rope", "w_kv", "kv_row_bytes", "q_len", "explain")
FROM_WIDTH = 0  # kv_row_bytes that stands for "as w_kv gives it"
HEADS = slider("heads", 1, 256, 64)
ROWS = (FROM_WIDTH, 288, 352, 576, 656, 1152, 2304)
USUAL = {"latent": 512, "rope": 64, "q_len": 1, "w_kv": 2}
Shape = tuple[tuple[str, Any], ...]


def page(selection: Selection) -> None:
    """Chart, derivation with numbers, table of all accelerators."""
    st.markdown(
        "MQA-mode decode over a long context: intensity grows with the head count, and meets the ridge of a chip."
    )
    top = st.container()
    shape, roof = _options(), selection.roof_or_none
    found, chart = drawn(selection.parts, roof, shape)
    with top:
        asked = int(live_slider(HEADS, chart, unit="heads"))
    every = nearest(asked, tuple(known.parts().values()), roof, shape)
    _derivation(every, found["crossings"], asked)
    st.markdown(f"## Which chips suit {asked} {'head' if asked == 1 else 'heads'}")
    kit.table(every, height=420, alt="All accelerators by their distance from the head count, nearest first")
    kit.notes(every, besides=OMITS)
    options = {**dict(shape), "roof": roof or (), "hardware": selection.parts}
    kit.downloads("heads", every, lambda: figure("heads", **options))
    own = uploads.good(known.HARDWARE)
    wanted = {"hardware": ["all", own.name] if own else None, "roof": roof, **dict(shape)}
    kit.reproduce("heads", *kit.call_lines("chips", asked, named=("heads",), defaults=USUAL, **wanted))
    kit.footer(roof or "every roof that a part has", OMITS)


@lru_cache(256)
def drawn(parts: tuple[Accelerator, ...], roof: str | None, shape: Shape) -> tuple[Answer, Chart]:
    """What the chart draws; immutable, and the same for any head count asked about."""
    found = plot("heads", hardware=parts, roof=roof or (), **dict(shape))
    return found, heads_live_chart(found.data, HEADS.low, HEADS.high)


@lru_cache(256)
def nearest(asked: int, parts: tuple[Accelerator, ...], roof: str | None, shape: Shape) -> Answer:
    """Every accelerator by its distance from a head count."""
    return chips(asked, parts, roof=roof, **dict(shape))


def _options() -> Shape:
    """The shape of the cached row."""
    row = st.columns(5)
    shape: dict[str, Any] = {
        "latent": slider("latent", 64, 2048, 512, 64).show(row[0]),
        "rope": slider("rope", 0, 256, 64, 16).show(row[1]),
        "q_len": slider("q_len", 1, 16, 1).show(row[2]),
    }
    width = steps("w_kv", (0.5, 1.0, 2.0, 4.0), 2.0).show(row[3])
    whole = steps("kv_row_bytes", ROWS, FROM_WIDTH).show(row[4])
    return tuple((shape | ({"kv_row_bytes": whole} if whole else {"w_kv": width})).items())


def _derivation(every: Answer, rows: list[Any], asked: float) -> None:
    """Step by step, with the numbers put in, for one roof of the chosen accelerators."""
    named = {f"{r['hardware']} {r['roof']}": r for r in rows}
    chosen = rows[0]
    if len(named) > 1:
        st.markdown("## Derivation")
        chosen = named[choice("explain", tuple(named), next(iter(named))).show()]
    st.markdown(("" if len(named) > 1 else "## Derivation\n\n") + _derived(every, chosen, asked))


def _derived(every: Answer, row: Mapping[str, Any], asked: float) -> str:
    """The derivation as one text, formulas between its lines."""
    told = heads_steps(row, every["inputs"], asked)
    formulas = r" \\[3ex] ".join(map(_broken, told.formulas))
    there = (
        f"intensity {row['intensity_flop_per_byte']:.2f} FLOP/B against a ridge of {row['ridge_flop_per_byte']:.2f}, "
        f"{row['bound']} bound"
    )
    parts = (
        "\n".join(f"1. {escape(line)}" for line in every.sections[0].lines),
        "$$\n\\begin{aligned}\n" + formulas + "\n\\end{aligned}\n$$",
        escape(" ".join(told.lines)),
        f"Nearest power of two: **{row['heads']}** heads, {escape(there)}.",
    )
    return "\n\n".join(parts)


def _broken(formula: str) -> str:
    """A formula on several lines, one a sign of equality, for narrow screens."""
    left, *rest = formula.rsplit(" = ", 3)
    before, arrow, last = left.rpartition(r"\Rightarrow\;")
    return (rf"&{before}{arrow} \\[1ex] " if arrow else "") + last + " &= " + r" \\[1ex] &= ".join(rest)
