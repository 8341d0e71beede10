"""A slider whose chart follows the finger: the formula runs in the browser, the value comes here on release."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from roofline.dashboard.controls import Control
from roofline.dashboard.parameters import PARAMETERS, label
from roofline.glossary import GLOSSARY

HTML = """<div class="live"><p><span class="label"></span> <b class="value"></b> <span class="help"></span></p>
<input type="range" disabled><div class="plot"><svg role="img"></svg><div class="tip" hidden></div></div>
<output aria-live="polite"></output><div class="key"></div></div>"""
CSS = """
.live { font-family: var(--st-font); color: var(--st-text-color); font-size: 14px; }
.live p { margin: 0; }
.live .help { font-size: 12px; margin-left: 8px; }
.live input { width: 100%; accent-color: var(--st-primary-color); height: 28px; margin: 0; }
.live input:focus-visible { outline: 2px solid var(--st-primary-color); }
.live .plot { position: relative; }
.live .plot > svg { width: 100%; height: auto; display: block; touch-action: pan-y; }
.live text { font-size: 12px; fill: var(--st-text-color); }
.live .small { font-size: 11px; }
.live .said { font-weight: 600; paint-order: stroke; stroke: var(--st-background-color); stroke-width: 4px; }
.live .grid { stroke: var(--st-border-color); stroke-width: 1; }
.live .level { stroke: var(--st-text-color); stroke-width: 1.3; }
.live .leader { stroke: var(--st-text-color); stroke-width: 0.8; }
.live .asked { stroke: var(--st-text-color); stroke-width: 1.5; }
.live .curve { fill: none; stroke-width: 2.4; }
.live .mark, .live .open { stroke: var(--st-background-color); stroke-width: 1; }
.live .open { fill: var(--st-background-color) !important; stroke-width: 2; }
.live .span { stroke-width: 3; }
.live .window { fill: var(--st-text-color); opacity: 0.12; }
.live .tip { position: absolute; top: 30px; max-width: 46%; padding: 4px 8px; white-space: pre-wrap; font-size: 12px;
  pointer-events: none; color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-text-color); border-radius: 4px; }
.live output { display: block; margin: 4px 0; }
.live .key { display: flex; flex-wrap: wrap; gap: 2px 18px; font-size: 13px; }
.live .key svg { margin-right: 6px; vertical-align: middle; }
.live .lanes { flex-basis: 100%; font-size: 12px; overflow-wrap: anywhere; }
"""


@cache
def _component() -> Any:
    """Registered once a process: its parts are constants, and what differs comes as data."""
    script = (Path(__file__).parent / "live.js").read_text(encoding="utf-8")
    return st.components.v2.component("roofline_live", html=HTML, css=CSS, js=script)


def live_slider(control: Control, chart: Mapping[str, Any], *, unit: str = "", idle: str = "") -> float:
    """The value of a slider drawn with its chart; its parameter of the address is kept as for any control.

    control: of kind "slider"; chart: of `roofline.dashboard.live_charts`; unit: of the slider; idle: why it can
    not be moved.  Where the slider is the axis it marks a place on the curves; where it is not, the curves follow it,
    and their crossings are marked.
    """
    value: float = control.from_address()

    def released() -> None:
        control.to_address(st.session_state[f"_live_{control.name}"]["value"])

    slider = {
        "name": control.name,
        "label": label(control.name),
        "help": idle or _help(control.name),
        "unit": unit,
        "value": value,
        "min": control.low,
        "max": control.high,
        "step": control.step,
        "disabled": bool(idle),
    }
    _component()(
        key=f"_live_{control.name}",
        data={**chart, "slider": slider},
        default={"value": value},
        on_value_change=released,
    )
    return value


def _help(name: str) -> str:
    """The glossary's meaning and the parameter's own words, as plain text."""
    known = [GLOSSARY[name].meaning] if name in GLOSSARY else []
    return "; ".join(filter(None, [*known, PARAMETERS[name].help]))
