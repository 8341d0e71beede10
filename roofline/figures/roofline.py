"""The roofline: attainable performance over intensity, log-log, with kernels as points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from roofline.figures.canvas import blank
from roofline.figures.labels import Label
from roofline.figures.parts import finish, line_style, log_axis, marker
from roofline.units import number, show

TERA = 1e12


def plot_roofline(data: Mapping[str, Any], *, ax: Axes | None = None, width: float = 6.9) -> Axes:
    """Draw the data of ``roofline.plot("roofline", ...)``: roofs as lines, ridges as diamonds, kernels as points.

    Parameters: data, with `roofs` (each with its line), `points`, `domain` and `title`; ax, axes to draw into (default
    a new figure of `width` inches).  Horizontal: intensity [FLOP/B]; vertical: attainable bound [TFLOP/s].
    """
    own, ax = 0.0 if ax else 0.85 + 0.3 * width, ax or blank(width)
    low, high = data["domain"]["attainable_flop_per_s"]
    log_axis(ax, "x", *data["domain"]["intensity_flop_per_byte"])
    log_axis(ax, "y", low / TERA, high / TERA)
    ax.set_xlabel("arithmetic intensity [FLOP/B]")
    ax.set_ylabel("attainable bound [TFLOP/s]")
    styles = {roof_id(r): line_style(i) for i, r in enumerate(data["roofs"])}
    key = [roof_line(ax, r, styles[roof_id(r)]) for r in data["roofs"]]
    shapes = {use: marker(i) for i, use in enumerate(dict.fromkeys(p["label"] for p in data["points"]))}
    for point in data["points"]:
        _point(ax, point, styles[roof_id(point)]["color"], shapes[point["label"]])
    labels = [*value_labels(data), *_point_labels(data["points"]), *ridge_labels(data["roofs"])]
    return finish(ax, data["title"], key, labels, own)


def roof_id(record: Mapping[str, Any]) -> str:
    """What tells a roof from the others."""
    return "/".join((record["hardware"], record["roof"], record["precision"]))


def roof_line(ax: Axes, roof: Mapping[str, Any], style: Mapping[str, Any]) -> Line2D:
    """Draw one roof and its ridge; returns the line, for the key."""
    line = roof["line"]
    (drawn,) = ax.plot(
        line["intensity_flop_per_byte"],
        [y / TERA for y in line["attainable_flop_per_s"]],
        **style,
        gid=f"roof/{roof_id(roof)}",
        label=roof["label"],
        solid_joinstyle="miter",
    )
    ax.plot(
        [roof["ridge_flop_per_byte"]],
        [roof["peak_flop_per_s"] / TERA],
        linestyle="none",
        marker="D",
        markerfacecolor=ax.get_facecolor(),
        markeredgecolor=style["color"],
        gid=f"ridge/{roof_id(roof)}",
        zorder=4,
    )
    return drawn


def _point(ax: Axes, point: Mapping[str, Any], color: str, shape: str) -> None:
    ax.plot(
        [point["intensity_flop_per_byte"]],
        [point["attainable_flop_per_s"] / TERA],
        linestyle="none",
        marker=shape,
        color=color,
        markeredgecolor=ax.spines["bottom"].get_edgecolor(),
        markeredgewidth=0.5,
        gid=f"point/{roof_id(point)}/{point['label']}",
        zorder=5,
    )


def _point_labels(points: Iterable[Mapping[str, Any]]) -> list[Label]:
    """One name for each kernel, at any of its points, the first roof's before the others'."""
    places: dict[str, list[tuple[float, float]]] = {}
    for p in points:
        places.setdefault(p["label"], []).append((p["intensity_flop_per_byte"], p["attainable_flop_per_s"] / TERA))
    return [Label(text, anchors[:1], -45.0) for text, anchors in places.items()]


def ridge_labels(roofs: Iterable[Mapping[str, Any]]) -> list[Label]:
    """The ridge point beside its mark; equal ones once."""
    found = {(r["ridge_flop_per_byte"], r["peak_flop_per_s"]): None for r in roofs}
    return [Label(number(ridge), [(ridge, peak / TERA)], 120.0) for ridge, peak in found]


def value_labels(data: Mapping[str, Any], vertical: str = "attainable_flop_per_s") -> list[Label]:
    """The peak somewhere on each flat roof, the bandwidth somewhere on its slope; equal ones once."""
    (left, right), (bottom, _) = data["domain"]["intensity_flop_per_byte"], data["domain"][vertical]
    flats: dict[float, float] = {}
    slopes: dict[float, float] = {}
    for r in data["roofs"]:
        flats[r["peak_flop_per_s"]] = min(r["ridge_flop_per_byte"], flats.get(r["peak_flop_per_s"], right))
        slopes[r["bandwidth_byte_per_s"]] = max(r["ridge_flop_per_byte"], slopes.get(r["bandwidth_byte_per_s"], left))
    steepest, highest = max(slopes), max(flats)
    return [
        *(
            Label(
                f"{number(peak / TERA)} TFLOP/s",
                [(x, peak / TERA) for x in _spaced(right / 1.3, ridge * 1.4)],
                90.0 if peak == highest else -90.0,
            )
            for peak, ridge in flats.items()
        ),
        *(
            Label(
                show(rate, "B/s"),
                [(x, rate * x / TERA) for x in _spaced(max(left, bottom / rate) * 1.5, ridge / 1.5)],
                135.0 if rate == steepest else -45.0,
            )
            for rate, ridge in slopes.items()
        ),
    ]


def _spaced(start: float, end: float, count: int = 9) -> list[float]:
    """Points evenly spaced on a logarithmic axis."""
    return [start * (end / start) ** (i / (count - 1)) for i in range(count)]
