"""The head-count page: which head count sits on the ridge, and which chips suit a head count."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import streamlit as st

from roofline.answer import Answer
from roofline.answers.heads import OMITS, chips
from roofline.answers.live import heads_live
from roofline.answers.plot import figure, plot
from roofline.answers.put_in import heads_steps
from roofline.dashboard import charts, kit
from roofline.dashboard.controls import escape, slider, steps
from roofline.dashboard.frame import catalog
from roofline.dashboard.live import live_slider
from roofline.dashboard.selection import Selection

TITLE, PATH = "Head count", "heads"
PARAMETERS = ("heads", "latent", "rope", "w_kv", "kv_row_bytes", "q_len")
FROM_WIDTH = 0  # kv_row_bytes that stands for "as w_kv gives it"
HEADS = slider("heads", 1, 256, 64)
ROWS = (FROM_WIDTH, 288, 352, 576, 656, 1152, 2304)


def page(selection: Selection) -> None:
    """Chart, derivation with numbers, table of all accelerators."""
    st.title("Head count")
    st.markdown(
        "MQA-mode decode over a long context: intensity grows with the head count, and meets the ridge of a chip."
    )
    top = st.container()
    shape = _options()
    asked = int(HEADS.from_address())
    roof = selection.roof_or_none
    own = drawn(selection.hardware, roof, tuple(sorted(shape.items())))
    with top:
        _live(own)
    alt = "; ".join(f"{c['hardware']} {c['roof']}: {c['heads_exact']:.1f} heads" for c in own["crossings"])
    kit.chart(charts.heads_spec(own.data, asked), "heads_chart", f"Intensity by head count. Heads on the ridge: {alt}.")
    every = chips(asked, list(catalog().values()), roof=roof, **shape)
    _derivation(every, own["crossings"], asked)
    st.header(f"Which chips suit {asked} heads", anchor=False)
    kit.table(every, height=420, alt="All accelerators by their distance from the head count, nearest first")
    kit.notes(every)
    options = {**shape, "roof": roof or (), "hardware": list(selection.hardware)}
    kit.downloads("heads", every, lambda: figure("heads", **options))
    kit.reproduce(*_lines(asked, roof, shape))
    kit.footer(roof or "every roof that a part has", OMITS)


@lru_cache(256)
def drawn(hardware: tuple[str, ...], roof: str | None, shape: tuple[tuple[str, Any], ...]) -> Answer:
    """What the chart draws; immutable, and the same for any head count asked about."""
    return plot("heads", hardware=[catalog()[chip] for chip in hardware], roof=roof or (), **dict(shape))


def _live(own: Answer) -> None:
    """The head count under the finger: intensity by the formula itself, with the ridges of the chosen chips."""
    first, domain = own["crossings"][0], own["domain"]
    shape = {**own["inputs"], "kv_row_bytes": first["kv_row_bytes"]}
    live_slider(
        HEADS,
        "Intensity by head count",
        unit="heads",
        x={"name": "heads", "unit": "heads", "domain": [1, 256]},
        y={"unit": "FLOP/B", "domain": [1, domain["intensity_flop_per_byte"][1]]},
        curves=[heads_live(shape, own["lines"][0]["label"])],
        levels=[{"label": r["label"], "y": r["ridge_flop_per_byte"]} for r in own["ridges"]],
    )


def _options() -> dict[str, Any]:
    """The shape of the cached row."""
    row = st.columns(5)
    shape: dict[str, Any] = {
        "latent": slider("latent", 64, 2048, 512, 64).show(row[0]),
        "rope": slider("rope", 0, 256, 64, 16).show(row[1]),
        "q_len": slider("q_len", 1, 16, 1).show(row[2]),
    }
    width = steps("w_kv", (0.5, 1.0, 2.0, 4.0), 2.0).show(row[3])
    whole = steps("kv_row_bytes", ROWS, FROM_WIDTH).show(row[4])
    return shape | ({"kv_row_bytes": whole} if whole else {"w_kv": width})


def _derivation(every: Answer, rows: list[Any], asked: float) -> None:
    """Step by step, with the numbers put in, for the roofs of the chosen accelerators."""
    st.header("Derivation", anchor=False)
    st.markdown("\n".join(f"1. {escape(line)}" for line in every.sections[0].lines))
    tabs = st.tabs([f"{r['hardware']}, {r['roof']}" for r in rows])
    for tab, r in zip(tabs, rows, strict=True):
        with tab:
            told = heads_steps(r, every["inputs"], asked)
            for formula in told.formulas:
                st.latex(formula)
            st.caption(escape(" ".join(told.lines)))
            st.markdown(f"Nearest power of two: **{r['heads']}** heads, {escape(_there(r))}.")


def _there(r: Mapping[str, Any]) -> str:
    return (
        f"intensity {r['intensity_flop_per_byte']:.2f} FLOP/B against a ridge of {r['ridge_flop_per_byte']:.2f}, "
        f"{r['bound']} bound"
    )


def _lines(asked: int, roof: str | None, shape: Mapping[str, Any]) -> tuple[str, str]:
    usual = {"latent": 512, "rope": 64, "q_len": 1, "w_kv": 2}
    return kit.call_lines("chips", asked, named=("heads",), defaults=usual, roof=roof, **shape)
