"""Cost of two ways to compute the same attention, where they cross, and what engines and measurements say beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log10
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FixedLocator

from roofline.figures.canvas import blank
from roofline.figures.labels import Label, text_width
from roofline.figures.parts import binary_axis, finish, font_size, height_of_axes, line_style, log_axis, marker

DASHES = ("-", "--")  # first side, second side
MARK_DASHES = {"published": ":", "measured": "-."}
PITCH = 1.5  # height of a lane over the font size
SCALES = {
    "flop": ((1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "relative": ((1.0, "relative: only a ridge point is given"),),
}


def plot_crossover(data: Mapping[str, Any], *, ax: Axes | None = None, width: float = 6.9) -> Axes:
    """Draw the data of ``roofline.plot("crossover", ...)``: two curves a TP degree, crossings, and outside thresholds.

    Parameters: data, with `lines`, `crossings`, `windows`, `marks`, `domain`, `axis` and `title`; ax, axes to draw into
    (default a new figure of `width` inches).  Each source of thresholds has a lane of its own below the curves.
    """
    lanes = [m for m in data["marks"] if m["items"]]
    own, ax = 0.0 if ax else 0.75 + 0.28 * width, ax or blank(width)
    scale, unit = _scale(data)
    ax.set_xlabel(data["axis"]["unknown"])
    ax.set_ylabel(f"{data['axis']['cost']} [{unit}]")
    binary_axis(ax, *data["domain"]["unknown"])
    pitch = PITCH * font_size("legend.fontsize") / 72
    strip = (len(lanes) + 0.4) * pitch if lanes else 0.0  # inches
    band = min(0.6, strip / (own + strip if own else height_of_axes(ax)))
    _make_room(ax, band, [c / scale for c in data["domain"][data["axis"]["key"]]])
    _curves(ax, data, scale)
    key = [*_windows(ax, data["windows"]), *_lanes(ax, data["marks"], band)]
    for c in data["crossings"]:
        ax.plot(
            [c["value"]],
            [c[data["axis"]["key"]] / scale],
            linestyle="none",
            marker=marker(c["series"]),
            color=line_style(c["series"])["color"],
            markeredgecolor=ax.spines["bottom"].get_edgecolor(),
            markeredgewidth=0.5,
            gid=f"crossing/{c['tp']}/{c['value']:.0f}",
            zorder=5,
        )
    labels = [Label(c["label"], [(c["value"], c[data["axis"]["key"]] / scale)], -60.0) for c in data["crossings"]]
    return finish(ax, data["title"], key, [*labels, *_curve_labels(data, scale)], own and own + strip, band)


def _scale(data: Mapping[str, Any]) -> tuple[float, str]:
    """The largest prefix that keeps the top of the axis above 1."""
    steps = SCALES[data["axis"]["unit"]]
    return next(((s, u) for s, u in steps if data["domain"][data["axis"]["key"]][1] >= s), steps[-1])


def _curves(ax: Axes, data: Mapping[str, Any], scale: float) -> None:
    """Colour by series (TP degree), dashes by side; a curve that several series share takes the text colour."""
    sides = list(dict.fromkeys(line["side"] for line in data["lines"]))
    alone = len({tuple(line["series"]) for line in data["lines"]}) == 1
    for line in data["lines"]:
        color = line_style(sides.index(line["side"]) if alone else line["series"][0])["color"]
        if len(line["series"]) > 1 and not alone:
            color = ax.yaxis.label.get_color()
        ax.plot(
            line["unknown"],
            [y / scale for y in line[data["axis"]["key"]]],
            color=color,
            linestyle=DASHES[sides.index(line["side"])],
            gid=f"line/{line['side']}/{'+'.join(map(str, line['series']))}",
        )


def _curve_labels(data: Mapping[str, Any], scale: float) -> list[Label]:
    """The name of each curve, anywhere along it."""
    found = []
    for line in data["lines"]:
        steps = range(4, len(line["unknown"]) - 4, 4)
        found.append(
            Label(line["label"], [(line["unknown"][i], line[data["axis"]["key"]][i] / scale) for i in steps], 100.0)
        )
    return found


def _make_room(ax: Axes, band: float, cost: Sequence[float]) -> None:
    """Lower the vertical axis so that the share `band` of its height lies below the curves, without ticks, in grey."""
    low, high = cost
    log_axis(ax, "y", low, high)
    if not band:
        return
    ticks = [t for t in ax.yaxis.get_major_locator().tick_values(low, high) if low <= t <= high]
    ax.set_ylim(10 ** (log10(high) - log10(high / low) / (1 - band)), high)
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_minor_locator(FixedLocator([]))
    ground = Rectangle(
        (0, 0),
        1,
        band,
        transform=ax.transAxes,
        facecolor=ax.spines["bottom"].get_edgecolor(),
        alpha=0.12,
        edgecolor="none",
        zorder=0.5,
    )
    ax.add_patch(ground)


def _windows(ax: Axes, windows: Sequence[Mapping[str, Any]]) -> list[Patch]:
    """The two-sided window in which the first side is cheaper, shaded."""
    for w in windows:
        ax.axvspan(
            w["low"],
            w["high"],
            color=line_style(2)["color"],
            alpha=0.14,
            linewidth=0,
            zorder=0.8,
            gid=f"window/{w['low']:.0f}",
        )
    return [Patch(color=line_style(2)["color"], alpha=0.3, label=w["label"]) for w in windows]


def _lanes(ax: Axes, marks: Sequence[Mapping[str, Any]], band: float) -> list[Line2D]:
    """One lane a source, from above in the order of the key; a source without a mark stands in the key alone."""
    lanes = [m for m in marks if m["items"]]
    key = []
    for i, mark in enumerate(marks):
        published = mark["kind"] == "published"
        color = line_style(i)["color"]
        look = {"color": color, "marker": marker(i) if published else "*", "markeredgecolor": color}
        look |= {"markerfacecolor": ax.get_facecolor() if published else color, "linestyle": MARK_DASHES[mark["kind"]]}
        if mark in lanes:
            _lane(ax, mark["items"], band * (len(lanes) - lanes.index(mark) - 0.3) / (len(lanes) + 0.4), look, i)
        else:
            look |= {"marker": "none", "linestyle": "none"}
        key.append(Line2D([], [], linewidth=0.8, label=mark["label"], **look))
    return key


def _lane(ax: Axes, items: Sequence[Mapping[str, Any]], y: float, look: Mapping[str, Any], lane: int) -> None:
    """A mark at each threshold, a bar for a range, and a thin line up through the curves."""
    blend = ax.get_xaxis_transform()
    line = {"transform": blend, "color": look["color"]}
    for item in items:
        gid = f"mark/{lane}/{item['tp'] or ''}"
        ax.plot([item["at"]] * 2, [y, 1], linestyle=look["linestyle"], linewidth=0.6, alpha=0.7, zorder=1.4, **line)
        if item.get("from"):
            ends = [item["from"], item["at"]]
            ax.plot(ends, [y, y], linewidth=2.5, linestyle="-", solid_capstyle="butt", gid=f"{gid}/range", **line)
        alone = {**look, "linestyle": "none", "marker": ">" if item.get("beyond") else look["marker"]}
        ax.plot([item["at"]], [y], transform=blend, gid=gid, zorder=4, **alone)
    _lane_texts(ax, items, y, blend)


def _lane_texts(ax: Axes, items: Sequence[Mapping[str, Any]], y: float, blend: Any) -> None:
    """TP degrees beside the marks of a lane; only digits where marks stand close; degrees at one place together."""
    size = 0.88 * font_size("legend.fontsize")
    together: dict[float, list[str]] = {}
    for item in items:
        if item["tp"]:
            together.setdefault(item["at"], []).append(str(item["tp"]))
    at = [ax.transData.transform((x, 1))[0] * 72 / ax.figure.dpi for x in sorted(together)]
    gaps = [b - a for a, b in pairwise(at)] + [1e9]
    wordy = min(gaps) > text_width(ax, "TP 88", size) + 9
    for x, gap in zip(sorted(together), gaps[: len(together)], strict=True):
        text = ("TP " if wordy else "") + "/".join(together[x])
        aside = -1 if gap < text_width(ax, text, size) + 9 else 1  # to the left where the next mark is close
        ax.annotate(
            text,
            (x, y),
            xycoords=blend,
            xytext=(4.5 * aside, 0),
            textcoords="offset points",
            ha="left" if aside > 0 else "right",
            va="center",
            fontsize=size,
            gid="lane",
            zorder=6,
        )
