"""Figures of a whole step: where its time, FLOPs and bytes go, and its bound over batch and length.

    plot_x(data, *, ax=None, width=6.9) -> Axes

`data` is the document of `roofline.step` or of `roofline.answers.step_map.step_map`.  They draw and compute nothing
but the shares of a stacked bar.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.patches import Patch

from roofline.figures.canvas import blank
from roofline.figures.parts import finish, font_size, line_style
from roofline.units import number, show

BARS = (
    ("time_lower_s", "kernel times", "s"),
    ("flops", "FLOPs", "FLOP"),
    ("bytes", "bytes", "B"),
    ("link_bytes", "sent", "B"),
)
HATCHES = ("", "", "", "", "", "", "", "////")


def plot_ledger(data: Mapping[str, Any], *, ax: Axes | None = None, width: float = 6.9) -> Axes:
    """Draw ``roofline.step``: one bar each for time, FLOPs, bytes and bytes sent, stacked by kernel, coloured by part.

    Every bar is 100 % of its quantity; the total stands at its name.
    """
    own, ax = 0.0 if ax else 1.5, ax or blank(width)
    parts = list(dict.fromkeys(row["part"] for row in data["kernels"]))
    edge = ax.spines["bottom"].get_edgecolor()
    names: list[str] = []
    for key, name, unit in BARS:
        total = sum(row[key] for row in data["kernels"])
        if not total:
            continue
        left = 0.0
        for row in data["kernels"]:
            share = 100 * row[key] / total
            ax.barh(
                len(names),
                share,
                left=left,
                color=line_style(parts.index(row["part"]))["color"],
                hatch=HATCHES[parts.index(row["part"]) % len(HATCHES)],
                edgecolor=edge,
                linewidth=0.3,
                gid=f"{key}/{row['name']}",
            )
            left += share
        names.append(f"{name}, {show(total, unit)}")
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlim(0, 100)
    ax.set_xlabel("share of the step [%]")
    ax.grid(False)
    key_ = [
        Patch(facecolor=line_style(i)["color"], label=part, hatch=HATCHES[i % 8], edgecolor=edge, linewidth=0.3)
        for i, part in enumerate(parts)
    ]
    title = f"{data['phase']} step of {data['model']} on {data['deployment']['gpus']} x {data['hardware']}: "
    return finish(ax, title + f"at least {show(data['time_lower_s'], 's')}, {data['bound']} bound", key_, [], own)


def plot_step_map(data: Mapping[str, Any], *, ax: Axes | None = None, width: float = 6.9) -> Axes:
    """Draw ``step_map``: the lower time bound as colour, what binds as a letter, brackets where it does not fit."""
    own, ax = 0.0 if ax else 0.75 + 0.33 * width, ax or blank(width)
    lengths, batches = data["axes"][data["along"]], data["axes"]["batch"]
    count = len(lengths)
    times = [[row["time_lower_s"] for row in data["rows"][i * count : (i + 1) * count]] for i in range(len(batches))]
    mesh = ax.pcolormesh(times, norm=LogNorm(), cmap="viridis", gid="map")
    shade: Any = mesh.norm
    for at, row in enumerate(data["rows"]):
        letter = row["letter"] if row["fits"] is not False else f"({row['letter']})"
        low = shade(row["time_lower_s"]) < 0.5
        where = (at % count + 0.5, at // count + 0.5)
        ax.text(
            *where,
            letter,
            ha="center",
            va="center",
            color="white" if low else "black",
            size=font_size("legend.fontsize") * 0.85,
            gid=f"cell/{at}",
        )
    ax.set_xticks([i + 0.5 for i in range(count)], [_short(v) for v in lengths])
    ax.set_yticks([i + 0.5 for i in range(len(batches))], [_short(v) for v in batches])
    ax.set_xlabel({"q_len": "new tokens per sequence", "context": "cached tokens per sequence"}[data["along"]])
    ax.set_ylabel("batch")
    ax.grid(False)
    bar = ax.figure.colorbar(mesh, ax=ax, label="step at least [s]")
    bar.outline.set_visible(False)
    said = ", ".join(dict.fromkeys(f"{row['letter']} {row['bound']}" for row in data["rows"]))
    title = f"Bound of a {data['phase']} step of {data['model']} on {data['deployment']['gpus']} x {data['hardware']}"
    return finish(ax, f"{title}; bound by {said}; in brackets: does not fit", [], [], own)


def _short(value: float) -> str:
    """A power of two as 64, 8Ki or 1Mi."""
    for scale, unit in ((2**20, "Mi"), (2**10, "Ki")):
        if value >= scale and value % scale == 0:
            return f"{number(value / scale)}{unit}"
    return number(value)


FIGURES = {"ledger": plot_ledger, "step_map": plot_step_map}
