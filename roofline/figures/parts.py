"""What the figures share: logarithmic axes with plain numbers, title, key below the axes, and the last touch."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log2, log10
from typing import Any

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation

from roofline.figures.labels import Label, place, settle, text_width, wrapped
from roofline.units import number

MARKERS = ("o", "s", "^", "v", "P", "X", "h", "<", ">")
GROWTH = 1.1  # a figure of our own grows by this until every label has room, at most GROWTHS times
GROWTHS = 5
KEY_DROP = 30.0  # points from the axes down to the key: tick labels and axis label lie between


def font_size(name: str) -> float:
    """A size of the style in points, such as "legend.fontsize"."""
    return float(FontProperties(size=rcParams[name]).get_size_in_points())  # type: ignore[index]


def line_style(index: int) -> dict[str, Any]:
    """Colour and dashes of the style's cycle; both repeat after seven."""
    cycle = list(rcParams["axes.prop_cycle"])
    return {k: cycle[index % len(cycle)][k] for k in ("color", "linestyle")}


def marker(index: int) -> str:
    """A marker shape."""
    return MARKERS[index % len(MARKERS)]


def log_axis(ax: Axes, which: str, low: float, high: float) -> None:
    """A decimal logarithmic axis with plain numbers as ticks."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    getattr(ax, f"set_{which}scale")("log", base=10)
    getattr(ax, f"set_{which}lim")(low, high)
    short = log10(high / low) < 2
    axis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if short else (1,)))
    axis.set_minor_locator(NullLocator() if short else LogLocator(10, subs=(2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda v, _: number(v)))
    axis.set_minor_formatter(NullFormatter())


def binary_axis(ax: Axes, low: float, high: float) -> None:
    """A horizontal axis in powers of two; where not all fit as text, every second, third, ... one is written."""
    ax.set_xscale("log", base=2)
    ax.set_xlim(low, high)
    powers = [2.0**k for k in range(ceil(log2(low) - 1e-9), floor(log2(high) + 1e-9) + 1)]
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: number(v)))
    settle(ax)
    room = ax.get_window_extent().width * 72 / ax.figure.dpi
    widest = text_width(ax, number(powers[-1]), font_size("xtick.labelsize")) + 5
    step = max(1, ceil(widest * log2(high / low) / room))
    written = [p for p in powers if round(log2(p)) % step == 0]
    ax.xaxis.set_major_locator(FixedLocator(written))
    ax.xaxis.set_minor_locator(FixedLocator([p for p in powers if p not in written]))


def height_of_axes(ax: Axes, inches: float | None = None) -> float:
    """Height of the axes [inch]; with `inches` the figure is made as high as that needs, everything around included."""
    settle(ax)
    figure: Any = ax.figure
    height = float(ax.get_window_extent().height / figure.dpi)
    if inches is not None:
        figure.set_figheight(figure.get_figheight() + inches - height)
    return height


def finish(ax: Axes, title: str, key: Sequence[Any], labels: Sequence[Label], own: float, floor: float = 0.0) -> Axes:
    """Title, key and labels, in this order, because each takes room from the next.

    `own`: height of the axes [inch] of a figure made here, which may grow until all labels have room; 0 for axes of the
    caller, where labels without room are left out; ``ax.roofline_left_out`` lists them.  `floor`: as for `place`.
    """
    settle(ax)
    width = ax.get_window_extent().width * 72 / ax.figure.dpi
    size = font_size("axes.titlesize")
    ax.set_title(wrapped(ax, title, size, width), loc="left", fontsize=size, linespacing=1.15)
    if key:
        _key_below(ax, key, width)
    left_out: list[Label] = []
    for growth in range(GROWTHS + 1 if own else 1):
        for text in [t for t in ax.texts if t.get_gid() is None]:
            text.remove()
        if own:
            height_of_axes(ax, own * GROWTH ** min(growth, GROWTHS - 1))
        left_out = place(
            ax, labels, size=font_size("legend.fontsize"), floor=floor, strict=bool(own) and growth < GROWTHS
        )
        if not left_out:
            break
    if own:
        ax.figure.set_layout_engine("none")  # type: ignore[union-attr]  # positions stay as the labels were placed for
    ax.roofline_left_out = [label.text for label in left_out]  # type: ignore[attr-defined]
    return ax


def _key_below(ax: Axes, handles: Sequence[Any], width: float) -> None:
    """A key under the axes, entries wrapped to the width, in two columns where both fit."""
    size = font_size("legend.fontsize")
    samples = 3.6 * size  # line sample and gap
    widest = max(text_width(ax, h.get_label(), size) for h in handles) + samples
    columns = 2 if 2 * widest + size < width and len(handles) > 2 else 1
    for handle in handles:
        handle.set_label(wrapped(ax, handle.get_label(), size, width / columns - samples))
    anchor = ax.transAxes + ScaledTranslation(
        0,
        -KEY_DROP * font_size("axes.labelsize") / 7 / 72,
        ax.figure.dpi_scale_trans,
    )
    ax.legend(
        handles=list(handles),
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=anchor,
        ncols=columns,
        borderpad=0,
        borderaxespad=0,
        handlelength=2.8,
        handletextpad=0.6,
        labelspacing=0.35,
        columnspacing=1.0,
    )


__all__ = ["binary_axis", "finish", "font_size", "height_of_axes", "line_style", "log_axis", "marker"]
