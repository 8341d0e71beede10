"""Vega-Lite specifications from the records of the library's answers; nothing here computes a quantity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import streamlit as st

from roofline.units import number

Spec = dict[str, Any]
ZOOM = {"name": "zoom", "select": "interval", "bind": "scales"}
TERA = 1e12
PLAIN = {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}}
DASHES = ([1, 0], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2], [12, 3], [3, 3, 8, 3], [6, 6])


def ink() -> str:
    """The colour of text and neutral lines on the theme in use."""
    try:
        dark = st.context.theme.type == "dark"
    except Exception:  # outside a browser session there is no theme
        dark = False
    return "#E6E6E6" if dark else "#31333F"


def log_axis(field: str, title: str, domain: Sequence[float], base: int = 10, **more: Any) -> Spec:
    """A logarithmic axis with short numbers."""
    form = {"format": "~s", "tickCount": 6} if base == 10 else {"format": ",d"}
    marks = {"labelOverlap": True, "title": title, **form}
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"type": "log", "base": base, "domain": list(domain), "nice": False},
        "axis": marks,
        **more,
    }


def layered(layers: Iterable[Spec], height: int = 460, **more: Any) -> Spec:
    """Layers over one another, with the zoom in the first; each layer brings its data.  Legends stand below."""
    first, *rest = layers
    first = {**first, "params": [ZOOM, *first.get("params", [])]}
    stacked = {"legend": {"layout": {"bottom": {"direction": "vertical", "anchor": "start"}}}}
    fit = {"type": "fit-x", "contains": "padding"}  # the height is that of the axes, without the legends
    return {"height": height, "autosize": fit, "layer": [first, *rest], "config": stacked, **more}


def legend(columns: int = 1, **more: Any) -> Spec:
    """A legend below the chart; what stands after a colon goes on a line of its own, for narrow screens."""
    words = {"labelExpr": "split(datum.label, ': ')", "labelLimit": 420, "titleLimit": 420}
    return {"orient": "bottom", "columns": columns, **words, **more}


def staggered(records: Sequence[Spec], text: str, plain: Spec, **mark: Any) -> list[Spec]:
    """A text layer a record, each one line lower than the last, so that neighbours do not hide one another."""
    look = {"type": "text", "align": "left", "dx": 8, "fontSize": 11, "color": ink(), **mark}
    return [
        {
            "data": values([record]),
            "mark": {**look, "dy": 10 + 13 * at},
            "encoding": {**plain, "text": {"field": text}},
        }
        for at, record in enumerate(records)
    ]


def values(records: Iterable[Mapping[str, Any]]) -> Spec:
    """Records as the data of a layer."""
    return {"values": list(records)}


def roofline_spec(data: Mapping[str, Any]) -> Spec:
    """The chart of `step_roofline`: roofs, ridges and the kernels of a step; "pick" is the kernel clicked on."""
    domain, color = data["domain"], ink()
    x = log_axis("x", "arithmetic intensity [FLOP/B]", domain["intensity_flop_per_byte"])
    y = log_axis("y", "attainable bound [FLOP/s]", domain["attainable_flop_per_s"])
    names = [_roof_name(r) for r in data["roofs"]]
    dash = {
        "field": "roof",
        "title": "roof and its ridge",
        "scale": {"domain": names, "range": [DASHES[i % len(DASHES)] for i in range(len(names))]},
        "legend": legend(symbolStrokeColor=color, symbolSize=400, symbolType="stroke"),
    }
    lines = {
        "data": values(_roof_lines(data["roofs"])),
        "mark": {"type": "line", "color": color, "strokeWidth": 1.6, "clip": True},
        "encoding": {"x": x, "y": y, "strokeDash": dash, "order": {"field": "x"}},
    }
    marks = _ridges(data["roofs"])
    ridges = {
        "data": values(marks),
        "mark": {"type": "point", "shape": "diamond", "size": 70, "color": color, "filled": True},
        "encoding": {**PLAIN, "tooltip": _hover(roof="roof", ridge="ridge", peak="peak", bandwidth="bandwidth")},
    }
    told = staggered(sorted(marks, key=lambda m: -m["y"]), "ridge", PLAIN)
    chips = {p["hardware"] for p in data["points"]}
    return layered([lines, ridges, *told, _kernel_points(data["points"], len(chips) > 1)], 400)


def _roof_name(roof: Mapping[str, Any]) -> str:
    return f"{roof['short']}: {number(roof['ridge_flop_per_byte'])} FLOP/B"


def _roof_lines(roofs: Iterable[Mapping[str, Any]]) -> list[Spec]:
    keys = ("intensity_flop_per_byte", "attainable_flop_per_s")
    return [
        {"x": x, "y": y, "roof": _roof_name(r)}
        for r in roofs
        for x, y in zip(*(r["line"][k] for k in keys), strict=True)
    ]


def _ridges(roofs: Iterable[Mapping[str, Any]]) -> list[Spec]:
    return [
        {
            "x": r["ridge_flop_per_byte"],
            "y": r["peak_flop_per_s"],
            "roof": r["short"],
            "ridge": f"{number(r['ridge_flop_per_byte'])} FLOP/B",
            "peak": f"{number(r['peak_flop_per_s'] / TERA)} TFLOP/s",
            "bandwidth": f"{number(r['bandwidth_byte_per_s'] / TERA)} TB/s",
        }
        for r in roofs
    ]


def _kernel_points(points: Iterable[Mapping[str, Any]], several: bool) -> Spec:
    """Size: share of the time; colour: what bounds it; shape: the accelerator."""
    told = _hover(
        name="kernel", hardware="accelerator", precision="precision", flops="FLOPs", bytes="bytes",
        intensity="intensity", attainable="attainable bound", of_roof="of the roof", share_text="share of time",
        bound="bound",
    )  # fmt: skip
    shown = {"name": "shown", "select": {"type": "point", "fields": ["bound"]}, "bind": "legend"}
    pick = {"name": "pick", "select": {"type": "point", "fields": ["name", "hardware"], "toggle": False}}
    return {
        "data": values(map(_kernel_record, points)),
        "params": [pick, shown],
        "mark": {"type": "point", "filled": True, "stroke": ink(), "strokeWidth": 0.7, "cursor": "pointer"},
        "encoding": {
            **PLAIN,
            "size": {
                "field": "share",
                "type": "quantitative",
                "title": "share of time",
                "scale": {"type": "sqrt", "domain": [0, 1], "range": [60, 1600]},
                "legend": {**legend(3, format=".0%", values=[0.01, 0.1, 0.5]), "labelExpr": "datum.label"},
            },
            "color": {"field": "bound", "title": "bound by (click to single out)", "legend": legend(4)},
            "shape": {"field": "hardware", "title": "accelerator", "legend": legend(2) if several else None},
            "opacity": {"condition": {"param": "shown", "value": 0.85}, "value": 0.12},
            "tooltip": told,
        },
    }


def _kernel_record(p: Mapping[str, Any]) -> Spec:
    return {
        "x": p["intensity_flop_per_byte"],
        "y": p["attainable_flop_per_s"],
        **{k: p[k] for k in ("name", "hardware", "precision", "share", "bound")},
        "flops": f"{number(p['flops'] / 1e9)} GFLOP",
        "bytes": f"{number(p['bytes'] / 1e6)} MB",
        "intensity": f"{number(p['intensity_flop_per_byte'])} FLOP/B",
        "attainable": f"{number(p['attainable_flop_per_s'] / TERA)} TFLOP/s",
        "of_roof": f"{p['roof_fraction']:.1%}",
        "share_text": f"{p['share']:.2%}",
    }


def _hover(**fields: str) -> list[Spec]:
    return [{"field": field, "title": title, "type": "nominal"} for field, title in fields.items()]


def heads_spec(data: Mapping[str, Any], heads: float) -> Spec:
    """The chart of ``plot("heads")``: intensity by head count, ridges, crossings, and the head count asked about."""
    domain, color = data["domain"], ink()
    ends = [min(domain["heads"][0], heads), max(domain["heads"][1], heads)]
    x = log_axis("x", "query heads", ends, base=2)
    y = log_axis("y", "intensity [FLOP/B]", domain["intensity_flop_per_byte"])
    crossings = _heads_crossings(data)
    series = {"field": "line", "title": "cached row", "legend": legend()}
    points = [
        {"x": h, "y": i, "line": line["label"]}
        for line in data["lines"]
        for h, i in zip(line["heads"], line["intensity_flop_per_byte"], strict=True)
    ]
    lines = {
        "data": values(points),
        "mark": {"type": "line", "strokeWidth": 2.2, "clip": True},
        "encoding": {"x": x, "y": y, "color": series},
    }
    names = list(dict.fromkeys(c["roof"] for c in crossings))
    dash = {
        "field": "roof",
        "title": "ridge, and the head count on it",
        "scale": {"domain": names, "range": [DASHES[(i + 1) % len(DASHES)] for i in range(len(names))]},
        "legend": legend(symbolStrokeColor=color, symbolSize=400, symbolType="stroke"),
    }
    levels = {
        "data": values(crossings),
        "mark": {"type": "rule", "color": color, "strokeWidth": 1.2, "clip": True},
        "encoding": {"y": PLAIN["y"], "strokeDash": dash, "tooltip": _hover(roof="ridge")},
    }
    asked = {
        "data": values([{"x": heads, "label": f"{number(heads)} heads"}]),
        "mark": {"type": "rule", "color": color, "strokeWidth": 1.5},
        "encoding": {"x": PLAIN["x"], "tooltip": _hover(label="asked")},
    }
    met = {
        "data": values(crossings),
        "mark": {"type": "point", "filled": True, "size": 70, "stroke": color, "strokeWidth": 0.7, "opacity": 1},
        "encoding": {**PLAIN, "color": {"field": "line"}, "tooltip": _hover(roof="ridge", line="row", told="heads")},
    }
    told = staggered(sorted(crossings, key=lambda c: -c["y"]), "told", PLAIN, fontWeight="bold")
    return layered([lines, levels, asked, met, *told], 360)


def _heads_crossings(data: Mapping[str, Any]) -> list[Spec]:
    labels = {line["kv_row_bytes"]: line["label"] for line in data["lines"]}
    return [
        {
            "x": c["heads_exact"],
            "y": c["ridge_flop_per_byte"],
            "line": labels[c["kv_row_bytes"]],
            "told": f"{c['heads_exact']:.1f}",
            "roof": f"{c['hardware']} {c['roof']}: {number(c['ridge_flop_per_byte'])} FLOP/B, "
            f"{c['heads_exact']:.1f} heads",
        }
        for c in data["crossings"]
    ]
