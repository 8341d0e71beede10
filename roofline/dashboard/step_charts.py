"""The charts of the page Model step as Vega-Lite, and what they say in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from roofline.answer import Answer
from roofline.dashboard import charts
from roofline.units import number, show

BARS = (("time_lower_s", "time", "s"), ("flops", "FLOPs", "FLOP"), ("bytes", "bytes", "B"), ("link_bytes", "sent", "B"))
LABELS = {**charts.BINARY, "labelAngle": -90}


NARROW = 320  # pixels of a map whose letters have to be small
TITLES = {"context": "cached tokens per sequence (context)", "q_len": "new tokens per sequence (q_len)"}


def arrow(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Records of a chart as Streamlit sends them: a list of dicts would go through pandas, at four times the time."""
    return pa.table({name: [row[name] for row in rows] for name in rows[0]} if rows else {})


def bars(found: Answer) -> dict[str, Any]:
    """One bar each for time, FLOPs, bytes and bytes sent, stacked by kernel, coloured by part of the model."""
    kernels = found["kernels"]
    values = [
        {
            "quantity": name,
            "kernel": row["name"],
            "part": row["part"],
            "value": row[key],
            "amount": show(row[key], unit),
            "bound": row["bound"],
            "runs": row["count"],
            "order": at,
        }
        for key, name, unit in BARS
        for at, row in enumerate(kernels)
        if row[key]
    ]
    return {
        "data": {"values": arrow(values)},
        "height": {"step": 44},
        "params": [{"name": "part", "select": {"type": "point", "fields": ["part"]}, "bind": "legend"}],
        "mark": {"type": "bar", "stroke": "#808080", "strokeWidth": 0.6, "height": 34},
        "encoding": {
            "y": {"field": "quantity", "type": "nominal", "sort": [b[1] for b in BARS], "title": None},
            "x": {
                "field": "value",
                "type": "quantitative",
                "stack": "normalize",
                "title": "share of the step",
                "axis": {"format": ".0%"},
            },
            "color": {
                "field": "part",
                "type": "nominal",
                "sort": list(dict.fromkeys(row["part"] for row in kernels)),
                "legend": {
                    "orient": "bottom",
                    "columns": 3,
                    "symbolStrokeWidth": 0,
                    "title": "part (click to single out)",
                },
            },
            "order": {"field": "order", "type": "quantitative"},
            "opacity": {"condition": {"param": "part", "value": 1}, "value": 0.2},
            "tooltip": [
                {"field": name, "type": "nominal"} for name in ("kernel", "part", "quantity", "amount", "bound", "runs")
            ],
        },
    }


def bars_alt(found: Answer) -> str:
    first = sorted(found["kernels"], key=lambda row: -row["share"])[:3]
    told = ", ".join(f"{row['name']} {row['share']:.0%}" for row in first)
    return f"Stacked bars of time, FLOPs and bytes of the step by kernel. Longest: {told}. The ledger has every number."


def helping(found: Answer) -> dict[str, Any]:
    """Elasticities of the lower time bound, one bar a rate."""
    rates = [{"rate": name.replace("_", " "), "value": value} for name, value in found["elasticities"].items()]
    return {
        "data": {"values": arrow(rates)},
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


def helping_alt(found: Answer) -> str:
    told = ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in found["elasticities"].items() if value)
    return f"Elasticities of the lower time bound: {told or 'none'}."


def map_data(mapped: Answer) -> pa.Table:
    """The cells of a map, with what its tooltip says."""
    fits = {True: "fits", False: "does not fit", None: "capacity not sourced"}
    return arrow([{**row, "time": show(row["time_lower_s"], "s"), "memory": fits[row["fits"]]} for row in mapped.rows])


def map_spec(cells: pa.Table, along: str) -> dict[str, Any]:
    """The lower bound over batch and length; `cells`: `map_data` and two columns, `here`, true at the step
    shown, and `visit`, part of what a click selects."""
    tooltip = [
        {"field": "batch", "type": "quantitative", "format": ","},
        {"field": along, "type": "quantitative", "format": ","},
        *({"field": name, "type": "nominal"} for name in ("time", "bound", "memory")),
    ]
    color = {
        "field": "time_lower_s",
        "type": "quantitative",
        "scale": {"type": "log", "scheme": "viridis"},
        "legend": {
            "title": "step at least [s]",
            "orient": "top",
            "format": "~s",
            "gradientLength": 220,
            "tickCount": 4,
        },
    }
    # either ink has a contrast of at least 4.5 to its cell
    bright = {"test": "luminance(scale('color', datum.time_lower_s)) > 0.179", "value": "black"}
    ink, shown, here = {"condition": bright, "value": "white"}, {"tooltip": tooltip}, _only("datum.here")
    frame = {"type": "rect", "filled": False}
    no = "datum.memory === 'does not fit'"
    return {
        "data": {"values": cells},
        "height": 560,
        "encoding": {
            "x": {"field": along, "type": "ordinal", "title": TITLES[along], "axis": LABELS},
            "y": {
                "field": "batch",
                "type": "ordinal",
                "sort": "descending",
                "title": "batch",
                "axis": {**LABELS, "labelAngle": 0},
            },
        },
        "layer": [
            {
                "params": [{"name": "cell", "select": {"type": "point", "fields": ["batch", along, "visit"]}}],
                "mark": {"type": "rect", "cursor": "pointer"},
                "encoding": {"color": color, "tooltip": tooltip},
            },
            {
                **_only(no),
                "mark": {"type": "rect", "color": "white", "opacity": 0.55, "cursor": "pointer"},
                "encoding": shown,
            },
            {**_only(f"!({no})"), **_letters("datum.letter"), "encoding": {**shown, "color": ink}},
            {
                **_only(no),
                **_letters("'(' + datum.letter + ')'"),
                "encoding": {**shown, "color": {"value": "black"}},
            },
            {**here, "mark": {**frame, "stroke": "black", "strokeWidth": 5}},
            {**here, "mark": {**frame, "stroke": "white", "strokeWidth": 2}},
        ],
    }


def _only(test: str) -> dict[str, Any]:
    return {"transform": [{"filter": test}]}


def _letters(text: str) -> dict[str, Any]:
    size = {"expr": f"width < {NARROW} ? 9 : 11"}
    return {"mark": {"type": "text", "fontSize": size, "text": {"expr": text}, "cursor": "pointer"}}


def map_alt(mapped: Answer, along: str) -> str:
    first, last = mapped.rows[0], mapped.rows[-1]
    return (
        f"Heat map of the lower time bound: from {show(first['time_lower_s'], 's')} at batch {number(first['batch'])}, "
        f"{along} {number(first[along])}, to {show(last['time_lower_s'], 's')} at batch {number(last['batch'])}, "
        f"{along} {number(last[along])}. The data are under Download."
    )
