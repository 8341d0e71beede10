"""The charts of the page KV memory as Vega-Lite, and what they say in words."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pyarrow as pa

from roofline.answer import Answer
from roofline.dashboard import charts, kit
from roofline.memory.presets import PAGE_SIZES
from roofline.units import number

KINDS = {"F": "full", "P": "partly full", "S": "shared: pale, dashed", ".": "only reserved: dotted"}
SINGLE = 64  # pages of a row up to which each is drawn by itself
ROWS = 40  # requests that the grid shows


def cells(found: Answer) -> Iterator[dict[str, Any]]:
    """The grid as rectangles in units of a page: one a page, in long rows one a run of equal pages."""
    for at, line in enumerate(found["grid"][:ROWS]):
        request = found["rows"][at]
        label = f"{at + 1}: {number(request['tokens'])}"
        start = 0
        for kind, group in groupby(line):
            count = len(list(group))
            size = 1 if len(line) <= SINGLE else count
            for left in range(start, start + count, size):
                cell = {"row": label, "left": left, "right": left + size, "kind": KINDS[kind], "pages": size}
                yield {**cell, "fill": request["last_page_tokens"] if kind == "P" else found["page_size"]}
            start += count


def grid_spec(found: Answer) -> dict[str, Any]:
    """Rectangles, filled as far as tokens reach; kinds differ by fill and outline too: shared pages are pale in a
    dashed outline, free ones empty in a dotted one."""
    kinds = list(KINDS.values())
    size = found["page_size"]
    tooltip = [
        {"field": "row", "title": "request: tokens"},
        {"field": "kind"},
        {"field": "pages", "type": "quantitative"},
        {"field": "fill", "title": "tokens in a page", "type": "quantitative"},
    ]
    axis = {"tickMinStep": 1, "labelOverlap": True}
    place = {
        "x": {"field": "left", "type": "quantitative", "title": f"page of {number(size)} tokens", "axis": axis,
              "scale": {"nice": False}},
        "y": {"field": "row", "type": "nominal", "sort": None, "title": "request: tokens"},
        "tooltip": tooltip,
    }  # fmt: skip
    kind = {"field": "kind", "type": "nominal", "scale": {"domain": kinds}}
    symbol = {"symbolSize": 200, "symbolType": "square"}
    legend = {"legend": charts.legend(2, title=None, **symbol)}
    dashes = {**kind, "scale": {"domain": kinds, "range": [[1, 0], [1, 0], [5, 2], [1, 2]]}, **legend}
    solid = {**kind, "scale": {"type": "ordinal", "domain": kinds, "range": [0.85, 0.85, 0.25, 0]}, "legend": None}
    outline = {
        "params": [{"name": "kind", "select": {"type": "point", "fields": ["kind"]}}],
        "mark": {"type": "bar", "height": 22, "fillOpacity": 0, "strokeWidth": 1.4},
        "encoding": {**place, "x2": {"field": "right"}, "stroke": {**kind, **legend}, "strokeDash": dashes},
    }
    inside = {
        "transform": [
            {"filter": f"datum.kind !== '{KINDS['.']}'"},
            {"calculate": f"datum.left + (datum.right - datum.left) * datum.fill / {size}", "as": "end"},
        ],
        "mark": {"type": "bar", "height": 22},
        "encoding": {**place, "x2": {"field": "end"}, "fill": {**kind, "legend": None}, "fillOpacity": solid},
    }
    return {"data": pa.Table.from_pylist(list(cells(found))), "height": {"step": 30}, "layer": [outline, inside]}


def grid_alt(found: Answer) -> str:
    told = "; ".join(
        f"request {row['request']}: {row['pages']} pages, the last with {row['last_page_tokens']} of "
        f"{found['page_size']} tokens"
        for row in found["rows"][:5]
    )
    return f"Grid of pages, a row a request. {told}. The table below has all requests."


def sweep_spec(swept: Answer, found: Answer) -> dict[str, Any]:
    """Empty slots against page size, the chosen size marked, the reservation as a level."""
    shown = ("page_size", "waste", "pages", "fit_requests")
    values = [{**{name: row[name] for name in shown}, "way": "pages"} for row in swept["sweep"]]
    chosen = {"page_size": found["page_size"], "waste": found["waste"], "way": "pages"}
    x = {
        "field": "page_size",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "nice": False},
        "axis": {"values": list(PAGE_SIZES), "format": "d"},
        "title": "page size [tokens]",
    }
    y = {"field": "waste", "type": "quantitative", "axis": {"format": "~%"}, "title": "empty slots"}
    color = {"field": "way", "type": "nominal", "legend": {"orient": "bottom", "title": None}}
    tooltip = [
        {"field": "page_size", "type": "quantitative"},
        {"field": "waste", "type": "quantitative", "format": ".2%"},
        {"field": "pages", "type": "quantitative", "format": ","},
        {"field": "fit_requests", "type": "quantitative", "format": ","},
    ]
    layers: list[dict[str, Any]] = [
        {
            "params": [kit.ZOOM],
            "mark": {"type": "line", "point": True},
            "encoding": {"x": x, "y": y, "color": color, "tooltip": tooltip},
        },
        {
            "data": {"values": [chosen]},
            "mark": {"type": "point", "size": 220, "strokeWidth": 2.5},
            "encoding": {"x": x, "y": y, "color": color},
        },
    ]
    if "reserved" in swept.data:
        level = {"waste": swept["reserved"]["waste"], "way": f"reserving {number(swept['reserved']['reserve_tokens'])}"}
        mark = {"type": "rule", "strokeDash": [6, 4], "strokeWidth": 2}
        layers.append({"data": {"values": [level]}, "mark": mark, "encoding": {"y": y, "color": color}})
    return {"data": pa.Table.from_pylist(values), "height": 320, "layer": layers}


def sweep_alt(swept: Answer) -> str:
    first, last = swept["sweep"][0], swept["sweep"][-1]
    return (
        f"Line of empty slots against page size: {first['waste']:.2%} at {first['page_size']}, {last['waste']:.2%} at "
        f"{last['page_size']}. The table below has every size."
    )


def curve_spec(curve: Answer, context: int) -> dict[str, Any]:
    """Requests at once against their length, a line an engine; the chosen length as a rule."""
    values = [row for row in curve.rows if row["concurrency"]]
    x = {
        "field": "context",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "nice": False},
        "axis": charts.BINARY,
        "title": "tokens of a request",
    }
    y = {
        "field": "concurrency",
        "type": "quantitative",
        "scale": {"type": "log"},
        "axis": {"format": "~g", "tickCount": 6},
        "title": "requests at once on a rank",
    }
    look = {"field": "label", "type": "nominal"}
    encoding = {
        "x": x,
        "y": y,
        "color": {**look, "legend": {"orient": "bottom", "columns": 2, "title": None, "symbolType": "stroke"}},
        "strokeDash": look,
        "tooltip": [
            look,
            {"field": "context", "type": "quantitative", "format": ","},
            {"field": "concurrency", "type": "quantitative", "format": ".2f"},
        ],
    }
    chosen = {"data": {"values": [{"context": context}]}, "mark": {"type": "rule", "strokeDash": [2, 3]}}
    return {
        "data": pa.Table.from_pylist(values),
        "height": 400,
        "layer": [
            {"params": [kit.ZOOM], "mark": {"type": "line", "point": True}, "encoding": encoding},
            {**chosen, "encoding": {"x": {"field": "context", "type": "quantitative"}, "color": {"value": "#808080"}}},
        ],
    }


def curve_alt(curve: Answer) -> str:
    told = "; ".join(
        f"{line['label']}: {line['concurrency'][0]:.1f} at {number(line['context'][0])} tokens"
        for line in curve["lines"]
        if line["concurrency"][0]
    )
    return f"Requests that fit at once on a rank, by their length, a line an engine. {told}."
