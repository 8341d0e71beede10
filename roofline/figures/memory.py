"""Figures of the memory answers: the page grid, waste against page size, hit ratio and concurrency.

    plot_x(data, *, ax=None, width=6.9) -> Axes

`data` is the document of `kv_pages`, `kv_replay` or `kv_curve`, or the same read back from its JSON.  Conventions as in
`roofline.figures`: they draw and compute nothing, and without `ax` a new Figure is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from roofline.errors import NoAnswer
from roofline.figures.canvas import blank
from roofline.figures.labels import Label
from roofline.figures.parts import binary_axis, finish, line_style, log_axis, marker
from roofline.units import number

GRID_ROWS = 40  # requests that a page grid shows
CELLS = {
    "F": "full page",
    "P": "last page, filled as far as coloured",
    "S": "shared page",
    ".": "reserved, never filled",
}


def plot_pages(data: Mapping[str, Any], *, ax: Axes | None = None, width: float = 6.9) -> Axes:
    """Draw the page grid of ``kv_pages``: a row a request, a cell a page.

    Full pages are solid, a last page is coloured as far as it is filled, shared pages are hatched, and pages that only
    a reservation would hold are dotted outlines.  Raises NoAnswer where the answer has no grid (very many pages).
    """
    grid = data.get("grid")
    if not grid:
        raise NoAnswer("too many pages for a grid: ask for fewer requests or larger pages")
    shown = grid[:GRID_ROWS]
    own, ax = 0.0 if ax else 0.22 * len(shown) + 0.3, ax or blank(width)
    longest = max(map(len, shown))
    for row, line in enumerate(shown):
        filled = data["rows"][row]["last_page_tokens"] / data["page_size"] if data["rows"] else 1.0
        for at, cell in enumerate(line):
            _cell(ax, at, row, cell, filled if cell == "P" else 1.0)
    ax.set_xlim(-0.4, longest + 0.4)
    ax.set_ylim(len(shown) - 0.3, -0.7)
    ax.set_yticks(range(len(shown)), [_row_name(data, row) for row in range(len(shown))])
    ax.set_xlabel(f"page ({number(data['page_size'])} tokens each)")
    ax.tick_params(axis="y", length=0)
    ax.grid(False)
    title = f"{number(data['pages'])} pages hold {number(data['tokens'])} tokens"
    if len(grid) > GRID_ROWS:
        title += f"; {GRID_ROWS} of {len(grid)} requests shown"
    used = {cell for line in shown for cell in line}
    return finish(ax, title, [_sample(ax, cell) for cell in CELLS if cell in used], [], own)


def _row_name(data: Mapping[str, Any], row: int) -> str:
    return f"{row + 1}: {number(data['rows'][row]['tokens'])} tokens" if data["rows"] else str(row + 1)


def _look(ax: Axes, cell: str) -> dict[str, Any]:
    """Colour, hatch and outline of a kind of cell; told apart without colour too."""
    edge = ax.spines["bottom"].get_edgecolor()
    if cell == ".":
        return {"facecolor": "none", "edgecolor": edge, "linestyle": (0, (1, 1.5)), "linewidth": 0.5}
    if cell == "S":
        return {"facecolor": "none", "edgecolor": line_style(1)["color"], "hatch": "////", "linewidth": 0.7}
    return {
        "facecolor": line_style(0)["color"],
        "edgecolor": edge,
        "linewidth": 0.4,
        "alpha": 1.0 if cell == "F" else 0.55,
    }


def _cell(ax: Axes, at: int, row: int, cell: str, filled: float) -> None:
    """One page."""
    place, size = (at + 0.08, row - 0.38), (0.84, 0.76)
    if cell == "P":
        outline = {**_look(ax, "F"), "facecolor": "none", "alpha": 1.0}
        ax.add_patch(Rectangle(place, *size, **outline, gid=f"page/{row}/{at}"))
        ax.add_patch(Rectangle(place, size[0] * filled, size[1], **{**_look(ax, "P"), "linewidth": 0}))
        return
    ax.add_patch(Rectangle(place, *size, **_look(ax, cell), gid=f"page/{row}/{at}"))


def _sample(ax: Axes, cell: str) -> Patch:
    return Patch(**_look(ax, cell), label=CELLS[cell])


def plot_waste(data: Mapping[str, Any], *, ax: Axes | None = None, width: float = 6.9) -> Axes:
    """Draw the sweep of ``kv_pages``: empty slots as a share of those held, against page size.

    A level shows what the reservation wastes, where there is one.
    """
    sweep = data["sweep"]
    own, ax = 0.0 if ax else 0.95 + 0.3 * width, ax or blank(width)
    sizes, shares = [row["page_size"] for row in sweep], [100 * row["waste"] for row in sweep]
    ax.plot(sizes, shares, **line_style(0), marker=marker(0), gid="waste")
    ax.set_xlabel("page size [tokens]")
    ax.set_ylabel("empty slots [% of those held]")
    key = [Line2D([], [], **line_style(0), marker=marker(0), label="pages")]
    top = max(shares)
    if "reserved" in data:
        level = 100 * data["reserved"]["waste"]
        top = max(top, level)
        ax.plot([min(sizes), max(sizes)], [level, level], **line_style(1), gid="reserved")
        text = f"reserving {number(data['reserved']['reserve_tokens'])} tokens each"
        key.append(Line2D([], [], **line_style(1), label=text))
    ax.set_ylim(0, top * 1.12 or 1.0)
    binary_axis(ax, min(sizes) / 1.15, max(sizes) * 1.15)
    title = f"What pages leave empty: {number(data['requests'])} requests, {number(data['tokens'])} tokens"
    return finish(ax, title, key, [], own)


def plot_hits(data: Mapping[str, Any], *, ax: Axes | None = None, width: float = 6.9) -> Axes:
    """Draw ``kv_replay``: hit ratio against the size of the pool, and as a level that of an unlimited pool."""
    own, ax = 0.0 if ax else 0.95 + 0.3 * width, ax or blank(width)
    limited = sorted((row["blocks"], row["hit_ratio"]) for row in data["rows"] if row["blocks"] is not None)
    unlimited = next((row["hit_ratio"] for row in data["rows"] if row["blocks"] is None), None)
    if not limited:
        raise NoAnswer("a curve needs pools of a given size: --blocks 1000,10000,...")
    sizes, ratios = [size for size, _ in limited], [ratio for _, ratio in limited]
    log_axis(ax, "x", min(sizes) / 1.3, max(sizes) * 1.3)
    ax.plot(sizes, ratios, **line_style(0), marker=marker(0), gid="hits")
    ax.set_xlabel(f"pool [blocks of {number(data['block_size'])} tokens]")
    ax.set_ylabel("hit ratio [hits per look-up]")
    key, top = [Line2D([], [], **line_style(0), marker=marker(0), label="pool of that size")], max(ratios)
    if unlimited is not None:
        ax.plot([min(sizes) / 1.3, max(sizes) * 1.3], [unlimited] * 2, **line_style(1), gid="unlimited")
        key.append(Line2D([], [], **line_style(1), label=f"unlimited pool: {unlimited:.4f}"))
        top = max(top, unlimited)
    ax.set_ylim(0, top * 1.12 or 1.0)
    labels = [Label(f"{ratio:.3f}", [(size, ratio + 0.012 * top)]) for size, ratio in limited]  # clear of the mark
    title = f"Prefix-cache hits of {number(data['requests'])} requests, {number(data['lookups'])} block look-ups"
    return finish(ax, title, key, labels, own)


def plot_concurrency(data: Mapping[str, Any], *, ax: Axes | None = None, width: float = 6.9) -> Axes:
    """Draw ``kv_curve``: requests that fit on a rank against their length, both axes logarithmic."""
    own, ax = 0.0 if ax else 0.95 + 0.3 * width, ax or blank(width)
    values = [v for line in data["lines"] for v in line["concurrency"] if v]
    if not values:
        raise NoAnswer("no request of these lengths fits")
    contexts = data["lines"][0]["context"]
    log_axis(ax, "y", min(values) / 1.5, max(values) * 1.5)
    key = []
    for index, line in enumerate(data["lines"]):
        points = [(x, y) for x, y in zip(line["context"], line["concurrency"], strict=True) if y]
        style = {**line_style(index), "marker": marker(index)}
        ax.plot([x for x, _ in points], [y for _, y in points], **style, gid=f"line/{line['label']}")
        key.append(Line2D([], [], **style, label=line["label"]))
    if min(values) / 1.5 < 1 < max(values) * 1.5:
        ax.axhline(1, color=ax.spines["bottom"].get_edgecolor(), linewidth=0.6, linestyle=(0, (1, 1.5)), gid="one")
    ax.set_xlabel("context [tokens]")
    ax.set_ylabel("requests at once")
    binary_axis(ax, min(contexts) / 1.15, max(contexts) * 1.15)
    return finish(ax, data["title"], key, [], own)
