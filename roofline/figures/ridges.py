"""The ridge points of many accelerators, sorted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from roofline.errors import NoAnswer
from roofline.figures.canvas import blank
from roofline.figures.parts import finish, font_size, line_style, log_axis, marker


def plot_ridges(data: Mapping[str, Any], *, ax: Axes | None = None, width: float = 6.9) -> Axes:
    """Draw `hardware_table`: a row a part with a ridge, sorted; colour and mark say how the numbers were had."""
    rows = sorted((r for r in data["rows"] if r["ridge_flop_per_byte"]), key=lambda r: r["ridge_flop_per_byte"])
    if not rows:
        raise NoAnswer("no part of these has such a roof")
    own, ax = 0.0 if ax else 0.14 * len(rows) + 0.4, ax or blank(width)
    kinds = list(dict.fromkeys(sorted(r["kind"] for r in rows)))
    ridges = [r["ridge_flop_per_byte"] for r in rows]
    log_axis(ax, "x", ridges[0] / 1.3, ridges[-1] * 1.3)
    for at, row in enumerate(rows):
        look = {"marker": marker(kinds.index(row["kind"])), "color": line_style(kinds.index(row["kind"]))["color"]}
        ax.plot([row["ridge_flop_per_byte"]], [at], linestyle="none", **look, gid=f"ridge/{row['hardware']}")
    ax.set_yticks(range(len(rows)), [r["hardware"] for r in rows], fontsize=font_size("ytick.labelsize") * 0.8)
    ax.set_ylim(-1, len(rows))
    ax.set_xlabel("ridge point [FLOP/B]")
    key = [
        Line2D([], [], linestyle="none", marker=marker(i), color=line_style(i)["color"], label=kind)
        for i, kind in enumerate(kinds)
    ]
    return finish(ax, f"Ridge points at {data['precision']}, roof {data['roof']}", key, [], own)


FIGURES = {"ridges": plot_ridges}
