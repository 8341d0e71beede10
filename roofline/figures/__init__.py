"""Figures: each draws the data of one answer into axes and returns them.

    plot_x(data, *, ax=None, width=6.9) -> Axes

`data` is the document of ``roofline.plot("x", ...)``, or the same read back from its JSON: figures draw, they compute
nothing.  Without `ax` a new `matplotlib.figure.Figure` is made (`Axes.figure`); pyplot is never used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from roofline.errors import UnknownName
from roofline.figures.canvas import STYLES, SUFFIXES, check_suffix, save, styled, to_bytes
from roofline.figures.crossover import plot_crossover
from roofline.figures.heads import plot_heads
from roofline.figures.kernels import plot_kernels
from roofline.figures.memory import plot_concurrency, plot_hits, plot_pages, plot_waste
from roofline.figures.roofline import plot_roofline

FIGURES: Mapping[str, Callable[..., Axes]] = {
    "roofline": plot_roofline,
    "heads": plot_heads,
    "crossover": plot_crossover,
    "step": plot_kernels,
    "pages": plot_pages,
    "waste": plot_waste,
    "hits": plot_hits,
    "concurrency": plot_concurrency,
}


def draw(kind: str, data: Mapping[str, Any], *, width: float = 6.9, style: str = "paper") -> Figure:
    """A finished figure of one kind in a style ("paper", "screen", "dark"), `width` in inches."""
    if kind not in FIGURES:
        raise UnknownName("figure", kind, FIGURES)
    with styled(style):
        return FIGURES[kind](data, width=width).figure  # type: ignore[return-value]


__all__ = [
    "FIGURES",
    "STYLES",
    "SUFFIXES",
    "check_suffix",
    "draw",
    "plot_concurrency",
    "plot_crossover",
    "plot_heads",
    "plot_hits",
    "plot_pages",
    "plot_roofline",
    "plot_kernels",
    "plot_waste",
    "save",
    "styled",
    "to_bytes",
]
