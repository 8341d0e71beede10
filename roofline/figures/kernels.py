"""The kernels of a step on the roofline: the area of a dot is its share of the time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import sqrt
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from roofline.figures.canvas import blank
from roofline.figures.labels import Label
from roofline.figures.parts import finish, line_style, log_axis
from roofline.figures.roofline import TERA, ridge_labels, roof_id, roof_line, value_labels
from roofline.units import number

WHOLE = 22.0  # diameter of a dot that takes all of the time, in points
LEAST = 2.2  # and of the smallest, which would not be seen otherwise
MARKS = ("o", "s", "^", "P")  # one an accelerator
NAMED = 0.02  # share of the time from which a kernel is written beside its dot, as far as there is room


def plot_kernels(data: Mapping[str, Any], *, ax: Axes | None = None, width: float = 6.9) -> Axes:
    """Draw the data of ``roofline.plot("step", ...)``: a roof for each precision, a dot for each kernel.

    Parameters: data, with `roofs`, `points`, `whole`, `not_shown`, `domain`, `color` and `title`; ax, axes to draw into
    (default a new figure of `width` inches).  Colour says the part of the model or what binds (`color`), area the
    share of the time on its accelerator; the dots of a second accelerator are squares.
    """
    own, ax = 0.0 if ax else 0.95 + 0.33 * width, ax or blank(width)
    log_axis(ax, "x", *data["domain"]["intensity_flop_per_byte"])
    log_axis(ax, "y", *(y / TERA for y in data["domain"]["attained_flop_per_s"]))
    ax.set_xlabel("arithmetic intensity [FLOP/B]")
    ax.set_ylabel("best possible rate [TFLOP/s]")
    edge = ax.spines["bottom"].get_edgecolor()
    key = [
        roof_line(ax, r, {"color": edge, "linestyle": line_style(i)["linestyle"]}) for i, r in enumerate(data["roofs"])
    ]
    kinds = {kind: i for i, kind in enumerate(dict.fromkeys(p[data["color"]] for p in data["points"]))}
    chips = {whole["hardware"]: MARKS[i % len(MARKS)] for i, whole in enumerate(data["whole"])}
    for at, point in enumerate(sorted(data["points"], key=lambda p: -p["share"])):  # small ones over large ones
        look = {"marker": chips[point["hardware"]], "color": line_style(kinds[point[data["color"]]])["color"]}
        _dot(ax, point, look, f"point/{at}/{roof_id(point)}/{point['name']}")
    key += [_kind(kind, i, data) for kind, i in kinds.items()]
    key += [_chip(chip, mark, edge) for chip, mark in chips.items()] if len(chips) > 1 else []
    key += [*_whole(ax, data["whole"], edge), *_aside(data), _sizes(data["points"])]
    names = _names(data["points"], round(width))
    return finish(
        ax, data["title"], key, [*names, *value_labels(data, "attained_flop_per_s"), *ridge_labels(data["roofs"])], own
    )


def diameter(share: float) -> float:
    """Of a dot, in points: its area is the share."""
    return max(LEAST, WHOLE * sqrt(share))


def _dot(ax: Axes, point: Mapping[str, Any], look: Mapping[str, Any], gid: str) -> None:
    ax.plot(
        [point["intensity_flop_per_byte"]],
        [point["attained_flop_per_s"] / TERA],
        linestyle="none",
        markersize=diameter(point["share"]),
        **look,
        markeredgecolor=ax.spines["bottom"].get_edgecolor(),
        markeredgewidth=0.4,
        alpha=0.85,
        gid=gid,
        zorder=5,
    )


def _kind(kind: str, index: int, data: Mapping[str, Any]) -> Line2D:
    """A colour of the key, with the share of the time on each accelerator."""
    shares = [
        sum(p["share"] for p in data["points"] if p[data["color"]] == kind and p["hardware"] == w["hardware"])
        for w in data["whole"]
    ]
    look = {"linestyle": "none", "marker": "o", "color": line_style(index)["color"], "markersize": 5}
    named = {"part": kind, "bound": f"{kind} bound"}[data["color"]]
    return Line2D([], [], **look, label=f"{named}: {' and '.join(map(_percent, shares))}")


def _chip(chip: str, mark: str, edge: Any) -> Line2D:
    """A shape of the key."""
    look = {"linestyle": "none", "marker": mark, "markersize": 5, "color": "none", "markeredgecolor": edge}
    return Line2D([], [], **look, label=f"on {chip}")


def _whole(ax: Axes, totals: Iterable[Mapping[str, Any]], edge: Any) -> list[Line2D]:
    """The step as one hollow mark an accelerator."""
    look = {"linestyle": "none", "marker": "*", "markersize": 8, "markerfacecolor": "none", "markeredgecolor": edge}
    for whole in totals:
        at = [whole["intensity_flop_per_byte"]], [whole["attained_flop_per_s"] / TERA]
        ax.plot(*at, **look, gid=f"whole/{whole['hardware']}", zorder=6)
    return [Line2D([], [], **look, label="whole step")]


def _aside(data: Mapping[str, Any]) -> list[Line2D]:
    """What has no place on the axes, in one line of the key."""

    def shares(links: bool) -> list[float]:
        aside = [row for row in data["not_shown"] if (row["bound"] == "link") == links]
        return [sum(row["share"] for row in aside if row["hardware"] == w["hardware"]) for w in data["whole"]]

    told = [
        f"{what}: {' and '.join(map(_percent, shares(links)))}"
        for what, links in (("without matrix products", False), ("collectives, beside them", True))
        if any(shares(links))
    ]
    return [Line2D([], [], linestyle="none", label="; ".join(told))] if told else []


def _sizes(points: list[Mapping[str, Any]]) -> Line2D:
    largest = max(p["share"] for p in points)
    return Line2D(
        [],
        [],
        linestyle="none",
        marker="o",
        markersize=WHOLE * sqrt(largest / 4),
        color="none",
        markeredgecolor=line_style(0)["color"],
        label=f"area of a dot: share of the time; this one {_percent(largest / 4)}",
    )


def _percent(share: float) -> str:
    return f"{number(round(100 * share, 0 if share >= 0.1 else 2 if share < 0.001 else 1))} %"


def _names(points: Iterable[Mapping[str, Any]], most: int) -> list[Label]:
    """Names of the kernels that take long, longest first."""
    named = sorted((p for p in points if p["share"] >= NAMED), key=lambda p: -p["share"])[:most]
    return [Label(p["label"], [(p["intensity_flop_per_byte"], p["attained_flop_per_s"] / TERA)], -20.0) for p in named]
