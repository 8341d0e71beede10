"""Intensity against head count: where MQA-mode decode meets the ridges of several chips."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from roofline.figures.canvas import blank
from roofline.figures.labels import Label
from roofline.figures.parts import binary_axis, finish, line_style, log_axis, marker
from roofline.units import number


def plot_heads(data: Mapping[str, Any], *, ax: Axes | None = None, width: float = 6.9) -> Axes:
    """Draw the data of ``roofline.plot("heads", ...)``: a line for each row width, a level for each ridge, crossings.

    Parameters: data, with `lines`, `ridges`, `crossings`, `domain` and `title`; ax, axes to draw into (default a new
    figure of `width` inches).  Horizontal: heads, ticks at powers of two; vertical: intensity [FLOP/B].
    """
    own, ax = 0.0 if ax else 0.95 + 0.3 * width, ax or blank(width)
    log_axis(ax, "y", *data["domain"]["intensity_flop_per_byte"])
    ax.set_xlabel("query heads")
    ax.set_ylabel("arithmetic intensity [FLOP/B]")
    key = [_line(ax, line, i) for i, line in enumerate(data["lines"])]
    for ridge in data["ridges"]:
        _level(ax, ridge, data["domain"]["heads"])
    shapes = {line["kv_row_bytes"]: marker(i) for i, line in enumerate(data["lines"])}
    colors = {line["kv_row_bytes"]: line_style(i)["color"] for i, line in enumerate(data["lines"])}
    for c in data["crossings"]:
        ax.plot(
            [c["heads_exact"]],
            [c["ridge_flop_per_byte"]],
            linestyle="none",
            marker=shapes[c["kv_row_bytes"]],
            color=colors[c["kv_row_bytes"]],
            markeredgecolor=ax.spines["bottom"].get_edgecolor(),
            markeredgewidth=0.5,
            zorder=5,
            gid=f"crossing/{c['hardware']}/{c['roof']}/{c['kv_row_bytes']:g}",
        )
    binary_axis(ax, *data["domain"]["heads"])
    return finish(ax, data["title"], key, [*_ridge_labels(data), *_crossing_labels(data)], own)


def _line(ax: Axes, line: Mapping[str, Any], index: int) -> Line2D:
    ax.plot(line["heads"], line["intensity_flop_per_byte"], **line_style(index), gid=f"line/{line['kv_row_bytes']:g}")
    return Line2D([], [], **line_style(index), label=line["label"], marker=marker(index))


def _level(ax: Axes, ridge: Mapping[str, Any], ends: tuple[float, float]) -> None:
    ax.plot(
        list(ends),
        [ridge["ridge_flop_per_byte"]] * 2,
        color=ax.spines["bottom"].get_edgecolor(),
        linestyle=(0, (1, 1.5)),
        linewidth=0.9,
        gid=f"ridge/{ridge['hardware']}/{ridge['roof']}",
        zorder=1.5,
    )


def _crossing_labels(data: Mapping[str, Any]) -> list[Label]:
    """The exact head count beside its mark; marks of equal place once."""
    seen = {(c["heads_exact"], c["ridge_flop_per_byte"]): None for c in data["crossings"]}
    return [Label(number(x), [(x, y)], -50.0) for x, y in seen]


def _ridge_labels(data: Mapping[str, Any]) -> list[Label]:
    """Name and value of each ridge, anywhere on its level; equal ridges share a text."""
    low, high = data["domain"]["heads"]
    names: dict[float, list[str]] = {}
    for r in data["ridges"]:
        names.setdefault(r["ridge_flop_per_byte"], []).append(r["label"])
    places = [low * (high / low) ** (i / 12) for i in range(1, 12)]
    return [
        Label(f"{', '.join(who)}: {number(ridge)}", [(x, ridge) for x in places], 90.0) for ridge, who in names.items()
    ]
