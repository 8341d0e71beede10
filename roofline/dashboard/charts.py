"""Vega-Lite specifications from the records of the library's answers; nothing here computes a quantity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import streamlit as st

from roofline.dashboard import kit
from roofline.plan.numbers import BOUND
from roofline.units import number, show

Spec = dict[str, Any]
TERA = 1e12
BINARY = {  # labels of axes in powers of two
    "labelExpr": "datum.value >= 1048576 ? datum.value / 1048576 + 'Mi' : "
    "datum.value >= 1024 ? datum.value / 1024 + 'Ki' : datum.value"
}
HEIGHT, LINE = 400, 13  # of the axes of the roofline, and of a line of its labels [pixel]
HEADROOM = 2.5  # above the highest roof, for the labels of several
SECOND = "#808080"  # the roofs of a second accelerator, readable on both themes
SHAPES = ("circle", "square")
BOUNDS = ("memory", "compute", *(b for b in BOUND.values() if b not in ("memory", "compute")), "none")
PLAIN = {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}}
DASHES = ([1, 0], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2], [12, 3], [3, 3, 8, 3], [6, 6])


def ink() -> str:
    """The colour of text and neutral lines on the theme in use."""
    return "#E6E6E6" if _dark() else "#31333F"


def paper() -> str:
    """The colour behind a chart on the theme in use."""
    return "#171614" if _dark() else "#FFFFFF"


def _dark() -> bool:
    try:
        return bool(st.context.theme.type == "dark")
    except Exception:  # outside a browser session there is no theme
        return False


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
    first = {**first, "params": [kit.ZOOM, *first.get("params", [])]}
    stacked = {"legend": {"layout": {"bottom": {"direction": "vertical", "anchor": "start"}}}}
    fit = {"type": "fit-x", "contains": "padding"}  # the height is that of the axes, without the legends
    return {"height": height, "autosize": fit, "layer": [first, *rest], "config": stacked, **more}


def legend(columns: int | Spec = 1, **more: Any) -> Spec:
    """A legend below the chart; what stands after a colon goes on a line of its own, for narrow screens."""
    words = {"labelExpr": "split(datum.label, ': ')", "labelLimit": 420, "titleLimit": 420}
    return {"orient": "bottom", "columns": columns, **words, **more}


def values(records: Iterable[Mapping[str, Any]]) -> Spec:
    """Records as the data of a layer."""
    return {"values": list(records)}


def roofline_spec(data: Mapping[str, Any], told: str = "", visit: int = 0) -> Spec:
    """The chart of ``plot("step")``: roofs, ridges and the kernels of a step; "pick" is the kernel clicked on.

    told: name of the kernel that is explained, drawn with a thick edge; visit: another number after every click, so
    that the next one is news even on the same point.
    """
    domain, color = data["domain"], ink()
    low, high = domain["attained_flop_per_s"]
    x = log_axis("x", "arithmetic intensity [FLOP/B]", domain["intensity_flop_per_byte"])
    y = log_axis("y", "attainable bound [FLOP/s]", [low, high * HEADROOM])
    chips = list(dict.fromkeys(r["hardware"] for r in data["roofs"]))
    names = [_roof_name(r, chips[0]) for r in data["roofs"]]
    dash = {
        "field": "roof",
        "title": "roof and its ridge",
        "scale": {"domain": names, "range": [DASHES[i % len(DASHES)] for i in range(len(names))]},
        "legend": legend({"expr": "width > 640 ? 3 : 1"}, symbolStrokeColor=color, symbolSize=400, symbolType="stroke"),
    }
    tone = {"field": "tone", "type": "nominal", "scale": None, "legend": None}
    tones = dict(zip(chips, (color, *(SECOND for _ in chips[1:])), strict=True))
    lines = {
        "data": values(_roof_lines(data["roofs"], tones)),
        "mark": {"type": "line", "strokeWidth": 1.6, "clip": True},
        "encoding": {"x": x, "y": y, "strokeDash": dash, "stroke": tone, "order": {"field": "x"}},
    }
    marks = values(_ridges(data["roofs"], math.log10(high * HEADROOM / low)))
    hover = _hover(roof="roof", ridge="ridge", peak="peak", bandwidth="bandwidth")
    ridges = {
        "data": marks,
        "mark": {"type": "point", "shape": "diamond", "size": 60, "color": color, "filled": True, "opacity": 1},
        "encoding": {**PLAIN, "tooltip": hover},
    }
    place = {key: {"expr": f"datum.{key}"} for key in ("align", "dx", "dy")}
    look = {"type": "text", "fontSize": 11, "clip": True, **place}
    labels = [
        {"data": marks, "mark": {**look, **way}, "encoding": {**PLAIN, "text": {"field": "number"}}}
        for way in ({"color": paper(), "stroke": paper(), "strokeWidth": 4, "strokeJoin": "round"}, {"color": color})
    ]
    return layered([lines, _kernel_points(data, told, visit), ridges, *labels], HEIGHT)


def _roof_name(roof: Mapping[str, Any], first: str) -> str:
    tone = "" if roof["hardware"] == first else " (grey)"
    return f"{roof['short']}{tone}: {number(roof['ridge_flop_per_byte'])} FLOP/B"


def _roof_lines(roofs: Iterable[Mapping[str, Any]], tones: Mapping[str, str]) -> list[Spec]:
    keys = ("intensity_flop_per_byte", "attainable_flop_per_s")
    return [
        {"x": x, "y": y, "roof": _roof_name(r, next(iter(tones))), "tone": tones[r["hardware"]]}
        for r in roofs
        for x, y in zip(*(r["line"][k] for k in keys), strict=True)
    ]


def _ridges(roofs: Iterable[Mapping[str, Any]], decades: float) -> list[Spec]:
    """The marks, each with the place of its label where the chart is empty: left of its ridge, or right of it and below
    the roof for the accelerators that lie below another."""
    chips: dict[str, list[Mapping[str, Any]]] = {}
    for r in sorted(roofs, key=lambda r: (r["peak_flop_per_s"], r["ridge_flop_per_byte"])):
        chips.setdefault(r["hardware"], []).append(r)
    *lower, highest = chips.values()
    below = [place for some in lower for place in zip(some[::-1], _stacked(some[::-1], decades, -1), strict=True)]
    left = list(zip(highest, _stacked(highest, decades, 1), strict=True))
    return [
        *(_ridge(r) | {"dx": 9, "dy": dy, "align": "left"} for r, dy in below),
        *(_ridge(r) | {"dx": -9, "dy": dy, "align": "right"} for r, dy in left),
    ]


def _stacked(roofs: Iterable[Mapping[str, Any]], decades: float, way: int) -> list[float]:
    """How many pixels lower than its mark each label stands (above: less than 0), so that it keeps a line's distance
    from the one before; way: 1 for roofs from the lowest up, -1 from the highest down."""
    found, taken = [], -math.inf
    for r in roofs:
        at = way * math.log10(r["peak_flop_per_s"]) * HEIGHT / decades
        taken = max(at + (LINE / 3 if way > 0 else LINE * 0.8), taken + LINE)
        found.append(round(way * (at - taken), 1))
    return found


def _ridge(r: Mapping[str, Any]) -> Spec:
    return {
        "x": r["ridge_flop_per_byte"],
        "y": r["peak_flop_per_s"],
        "roof": r["short"],
        "number": number(r["ridge_flop_per_byte"]),
        "ridge": f"{number(r['ridge_flop_per_byte'])} FLOP/B",
        "peak": f"{number(r['peak_flop_per_s'] / TERA)} TFLOP/s",
        "bandwidth": f"{number(r['bandwidth_byte_per_s'] / TERA)} TB/s",
    }


def _kernel_points(data: Mapping[str, Any], told: str, visit: int) -> Spec:
    """Size: share of the time; colour: what bounds it; shape: the accelerator.  Small points lie over large ones."""
    chips = [whole["hardware"] for whole in data["whole"]]
    hover = _hover(
        name="kernel", hardware="accelerator", precision="precision", flops="FLOPs", bytes="bytes",
        intensity="intensity", attainable="attainable bound", of_roof="of the peak", best="best rate",
        share_text="share of time", bound="bound",
    )  # fmt: skip
    shown = {"name": "shown", "select": {"type": "point", "fields": ["bound"]}, "bind": "legend"}
    pick = {"name": "pick", "select": {"type": "point", "fields": ["name", "hardware", "visit"], "toggle": False}}
    points = sorted(data["points"], key=lambda p: -p["share"])
    return {
        "data": values(_kernel_record(p, told) | {"visit": visit} for p in points),
        "params": [pick, shown],
        "mark": {"type": "point", "filled": True, "stroke": ink(), "cursor": "pointer"},
        "encoding": {
            **PLAIN,
            "size": {
                "field": "share",
                "type": "quantitative",
                "title": "share of time",
                "scale": {"type": "sqrt", "domain": [0, 1], "range": [60, 1600]},
                "legend": {**legend(3, format=".0%", values=[0.01, 0.1, 0.5]), "labelExpr": "datum.label"},
            },
            "color": {
                "field": "bound",
                "title": "bound by (click to single out)",
                "scale": {"domain": list(BOUNDS)},
                "legend": legend(4, values=[b for b in BOUNDS if any(p["bound"] == b for p in points)]),
            },
            "shape": {
                "field": "hardware",
                "title": "accelerator",
                "scale": {"domain": chips, "range": list(SHAPES[: len(chips)])},
                "legend": legend(2) if len(chips) > 1 else None,
            },
            "strokeWidth": {"condition": {"test": "datum.told", "value": 3}, "value": 0.7},
            "opacity": {"condition": {"param": "shown", "value": 0.85}, "value": 0.12},
            "tooltip": hover,
        },
    }


def _kernel_record(p: Mapping[str, Any], told: str) -> Spec:
    return {
        "x": p["intensity_flop_per_byte"],
        "y": p["attained_flop_per_s"],
        **{k: p[k] for k in ("name", "hardware", "precision", "share", "bound")},
        "told": p["name"] == told,
        "flops": show(p["flops"], "FLOP"),
        "bytes": show(p["bytes"], "B"),
        "intensity": f"{number(p['intensity_flop_per_byte'])} FLOP/B",
        "attainable": show(p["attainable_flop_per_s"], "FLOP/s"),
        "best": show(p["attained_flop_per_s"], "FLOP/s"),
        "of_roof": f"{p['roof_fraction']:.1%}",
        "share_text": f"{p['share']:.2%}",
    }


def _hover(**fields: str) -> list[Spec]:
    return [{"field": field, "title": title, "type": "nominal"} for field, title in fields.items()]
