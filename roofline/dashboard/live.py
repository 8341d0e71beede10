"""A slider whose chart follows the finger: the formula runs in the browser, the value comes here on release."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from roofline.dashboard.controls import Control
from roofline.dashboard.parameters import PARAMETERS, label

HTML = """<div class="live"><label><span class="name"></span> <b class="value"></b></label>
<input type="range"><svg role="img"></svg><div class="key"></div><output aria-live="polite"></output></div>"""
CSS = """
.live { font-family: var(--st-font); color: var(--st-text-color); font-size: 14px; }
.live input { width: 100%; accent-color: var(--st-primary-color); height: 28px; margin: 0; }
.live svg { width: 100%; height: auto; display: block; }
.live text { font-size: 12px; fill: var(--st-text-color); }
.live .grid { stroke: var(--st-border-color); stroke-width: 1; }
.live .level { stroke: var(--st-text-color); stroke-width: 1.2; stroke-dasharray: 4 3; }
.live .asked { stroke: var(--st-text-color); stroke-width: 1.5; }
.live .dot { fill: var(--st-text-color); }
.live .curve { fill: none; stroke: var(--st-primary-color); stroke-width: 2.4; }
.live .c1 { stroke: var(--st-text-color); stroke-dasharray: 8 5; }
.live output, .live .key { display: block; white-space: pre-wrap; }
"""


@cache
def _component() -> Any:
    """Registered once a process: its parts are constants, and what differs comes as data."""
    script = (Path(__file__).parent / "live.js").read_text(encoding="utf-8")
    return st.components.v2.component("roofline_live", html=HTML, css=CSS, js=script)


def live_slider(control: Control, title: str, **data: Any) -> float:
    """The value of a slider drawn with its chart; its parameter of the address is kept as for any control.

    control: of kind "slider"; data: `x` and `y` (name, unit, domain), `curves` (of `roofline.answers.live`), `levels`
    (label, y), and `unit` of the slider.  Where the slider is the axis it marks a place on the first curve; where it
    is not, the curves follow it, and the places where both cost the same are marked.
    """
    value: float = control.from_address()

    def released() -> None:
        control.to_address(st.session_state[f"_live_{control.name}"]["value"])

    slider = {
        "name": control.name,
        "label": label(control.name),
        "help": PARAMETERS[control.name].help,
        "unit": data.pop("unit", ""),
        "value": value,
        "min": control.low,
        "max": control.high,
        "step": control.step,
    }
    _component()(
        key=f"_live_{control.name}",
        data={"slider": slider, "title": title, **data},
        default={"value": value},
        on_value_change=released,
    )
    return value
