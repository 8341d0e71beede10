"""The chart of the crossover page: cost of both modes, crossings, and what engines and measurements say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roofline.dashboard.charts import PLAIN, Spec, ink, layered, legend, log_axis, staggered, values
from roofline.units import number

HEIGHT, LANE = 400, 17  # pixels: chart, and the strip of one source of thresholds below the curves
SHAPES = ("triangle-up", "square", "diamond", "cross", "triangle-down", "circle", "triangle-right", "triangle-left")


def crossover_spec(data: Mapping[str, Any]) -> Spec:
    """Curves, crossings, windows, and a lane for each outside source of thresholds."""
    key, lanes = data["axis"]["key"], [m for m in data["marks"] if m["items"]]
    x = log_axis("x", data["axis"]["unknown"], data["domain"]["unknown"], base=2)
    y = log_axis("y", f"{data['axis']['cost']} [{data['axis']['unit']}]", _with_room(data["domain"][key], len(lanes)))
    marks = [_outside(lanes, at) for at in range(len(lanes))]
    windows = [_windows(data["windows"])] if data["windows"] else []
    return layered([_curves(data, x, y), *windows, *_crossings(data), *marks], HEIGHT)


def _with_room(domain: list[float], lanes: int) -> list[float]:
    """The cost axis, longer at its lower end by the pixels of the lanes."""
    low, high = domain
    share = (lanes * LANE + 8) / HEIGHT if lanes else 0
    return [low * (low / high) ** (share / (1 - share)), high]


def _curves(data: Mapping[str, Any], x: Spec, y: Spec) -> Spec:
    key = data["axis"]["key"]
    records = [
        {"x": a, "y": b, "curve": line["label"], "side": line["side"]}
        for line in data["lines"]
        for a, b in zip(line["unknown"], line[key], strict=True)
    ]
    names = list(dict.fromkeys(line["label"] for line in data["lines"]))
    sides = list(dict.fromkeys(line["side"] for line in data["lines"]))
    dashes = [[1, 0] if line["side"] == sides[0] else [7, 4] for line in data["lines"]]
    told = {"field": "curve", "title": "cost of", "scale": {"domain": names}, "legend": legend(2)}
    dash = {**told, "scale": {"domain": names, "range": dashes}}
    hover = [
        {"field": "curve", "title": "cost of"},
        {"field": "x", "title": data["axis"]["unknown"], "format": ",.0f"},
        {"field": "y", "title": data["axis"]["cost"], "format": ".4~s"},
    ]
    return {
        "data": values(records),
        "mark": {"type": "line", "strokeWidth": 2, "clip": True},
        "encoding": {"x": x, "y": y, "color": told, "strokeDash": dash, "tooltip": hover},
    }


def _windows(windows: list[Mapping[str, Any]]) -> Spec:
    return {
        "data": values({"x": w["low"], "x2": w["high"], "told": w["label"]} for w in windows),
        "mark": {"type": "rect", "opacity": 0.12, "color": ink(), "clip": True},
        "encoding": {"x": PLAIN["x"], "x2": {"field": "x2"}, "tooltip": [{"field": "told", "title": "window"}]},
    }


def _crossings(data: Mapping[str, Any]) -> list[Spec]:
    key = data["axis"]["key"]
    records = [
        {
            "x": c["value"],
            "y": c[key],
            "told": c["label"],
            "sides": f"{c['cheaper_below']} cheaper below, {c['cheaper_above']} above",
        }
        for c in data["crossings"]
    ]
    if not records:
        return []
    point = {
        "data": values(records),
        "mark": {"type": "point", "filled": True, "size": 90, "color": ink(), "opacity": 1, "clip": True},
        "encoding": {**PLAIN, "tooltip": [{"field": "told", "title": "crossing"}, {"field": "sides", "title": "who"}]},
    }
    return [point, *staggered(records, "told", PLAIN, fontWeight="bold")]


def _outside(lanes: list[Mapping[str, Any]], at: int) -> Spec:
    """One source of thresholds or measured crossings: not a result of this model, hence apart from the curves."""
    mark, names = lanes[at], [m["label"] for m in lanes]
    records = [
        {
            "x": item.get("from", item["at"]),
            "lane": mark["label"],
            "told": number(round(item["at"])) + (f" at TP {item['tp']}" if item["tp"] else ""),
            "source": f"{mark['source']}, {mark['date']}",
        }
        for item in mark["items"]
    ]
    shape = {
        "field": "lane",
        "title": "outside this model: engines, measurements",
        "scale": {"domain": names, "range": [SHAPES[i % len(SHAPES)] for i in range(len(names))]},
        "legend": legend(symbolFillColor=ink()),
    }
    hover = [{"field": "lane", "title": "who"}, {"field": "told", "title": "length"}, {"field": "source"}]
    return {
        "data": values(records),
        "mark": {"type": "point", "filled": True, "size": 60, "color": ink(), "opacity": 0.85, "clip": True},
        "encoding": {
            "x": PLAIN["x"],
            "y": {"value": HEIGHT - LANE * (len(lanes) - at) + LANE // 2},
            "shape": shape,
            "tooltip": hover,
        },
    }
