"""The ridge points of the page Hardware as Vega-Lite, and what the chart says in words."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from roofline.answer import Answer
from roofline.dashboard.charts import ink
from roofline.units import number

NAMES = ("hardware", "name", "kind", "ridge_flop_per_byte", "peak_flop_per_s", "bandwidth_byte_per_s")
MIDDLE = 0.5  # of the axis: right of it a name stands left of its mark, so that it needs no margin of its own


def ridge_spec(found: Answer) -> dict[str, Any]:
    """A mark a part on a logarithmic axis, sorted; colour and shape say how its numbers were had."""
    rows = _with_ridge(found)
    low, high = rows[0]["ridge_flop_per_byte"], rows[-1]["ridge_flop_per_byte"]
    ends = [low / 1.3, high * 1.3]
    middle = ends[0] ** (1 - MIDDLE) * ends[1] ** MIDDLE
    kind: dict[str, Any] = {"field": "kind", "type": "nominal"}
    dim: dict[str, Any] = {"opacity": {"condition": {"param": "kind", "value": 1}, "value": 0.15}}
    x: dict[str, Any] = {
        "field": "ridge_flop_per_byte",
        "type": "quantitative",
        "title": "ridge point [FLOP/B]",
        "scale": {"type": "log", "domain": ends, "nice": False},
        "axis": {"format": "~s", "orient": "top", "labelOverlap": True},
    }
    blank: dict[str, Any] = {"grid": True, "labels": False, "ticks": False, "domain": False}
    y: dict[str, Any] = {"field": "hardware", "type": "nominal", "sort": None, "title": None, "axis": blank}
    tooltip = [
        *({"field": name, "type": "nominal"} for name in NAMES[:3]),
        {"field": NAMES[3], "type": "quantitative", "title": "ridge [FLOP/B]", "format": ".1f"},
        {"field": NAMES[4], "type": "quantitative", "title": "peak [FLOP/s]", "format": ".4~s"},
        {"field": NAMES[5], "type": "quantitative", "title": "bandwidth [B/s]", "format": ".4~s"},
    ]
    look: dict[str, Any] = {
        "color": {**kind, "legend": {"orient": "top", "columns": 2, "title": "how the numbers were had"}},
        "shape": kind,
    }
    marks: dict[str, Any] = {
        "params": [{"name": "kind", "select": {"type": "point", "fields": ["kind"]}, "bind": "legend"}],
        "mark": {"type": "point", "filled": True, "size": 60},
        "encoding": {"x": x, "y": y, **look, **dim, "tooltip": tooltip},
    }
    sides = ((f"datum.{NAMES[3]} >= {middle}", "right", -8), (f"datum.{NAMES[3]} < {middle}", "left", 8))
    named: dict[str, Any] = {"x": x, "y": y, **dim, "text": {"field": "hardware"}}
    names = [
        {
            "transform": [{"filter": where}],
            "mark": {"type": "text", "align": align, "dx": dx, "fontSize": 11, "color": ink()},
            "encoding": named,
        }
        for where, align, dx in sides
    ]
    shown = [{name: row[name] for name in NAMES} for row in reversed(rows)]
    return {"data": pa.Table.from_pylist(shown), "height": {"step": 15}, "layer": [marks, *names]}


def ridge_alt(found: Answer) -> str:
    rows = _with_ridge(found)
    ends = [f"{row['hardware']} at {number(row['ridge_flop_per_byte'])} FLOP/B" for row in (rows[0], rows[-1])]
    return f"Ridge points of {len(rows)} parts, from {ends[0]} to {ends[1]}. The table above has every number."


def _with_ridge(found: Answer) -> list[Any]:
    """The parts that have a ridge, sorted by it."""
    kept = [row for row in found.rows if row["ridge_flop_per_byte"] is not None]
    return sorted(kept, key=lambda row: row["ridge_flop_per_byte"])
