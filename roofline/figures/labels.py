"""Texts that keep out of each other's way: titles and keys wrapped to the width at hand, labels placed beside points.

Placement is greedy and deterministic: each label tries positions around its anchors, near ones first, and takes the one
that covers no other text and the fewest points of lines; a label that ends far away gets a leader line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import hypot
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.transforms import Bbox

DISTANCES = (
    3.0,
    6.0,
    10.0,
    16.0,
    24.0,
    34.0,
    46.0,
    60.0,
    76.0,
    94.0,
    114.0,
    136.0,
)  # points from the anchor to the box
DIRECTIONS = 16
LEADER_FROM = 10.0  # a label at this distance or further gets a leader line
LEADER_COST = 6.0
CROSSING = 60.0  # a leader line through a text
ON_LINE_COST = 4.0  # a label of a line may also sit on it, as contour labels do
OWN = 2.2  # points around an anchor that belong to its own line or mark
MARK = 3.0  # least reach of a mark around its point, in points
SAMPLE = 2.0  # points between two samples of a line
PADDING = 1.5


class Label(NamedTuple):
    """A text that belongs to a point of the axes, or to any one of several (a line).

    anchors: (x, y) in data units; toward: preferred direction [degrees, 90 is up].
    """

    text: str
    anchors: Sequence[tuple[float, float]]
    toward: float = 90.0


class _Spot(NamedTuple):
    """A chosen place: box and anchor in points, distance between them, and which anchor it is for."""

    box: Bbox
    anchor: Any
    distance: float
    which: int


class _Page:
    """What is already on the axes, in points: the frame, boxes of texts, and a map of where lines run."""

    def __init__(self, ax: Axes, floor: float) -> None:
        self.scale = 72 / ax.figure.dpi
        frame = _in_points(ax.get_window_extent(), self.scale)
        self.frame = Bbox.from_extents(frame.x0, frame.y0 + floor * frame.height, frame.x1, frame.y1).padded(-1)
        self.taken = np.array(
            [_in_points(t.get_window_extent(renderer_of(ax)), self.scale).extents for t in ax.texts]
        ).reshape(-1, 4)
        self.shape = np.ceil([frame.x1 + 2, frame.y1 + 2]).astype(int)
        self.map = np.zeros(self.shape)
        self.draw(_obstacles(ax, self.scale))

    def draw(self, points: Any) -> None:
        """Note points of lines on the map; sums over rectangles of it then cost four look-ups."""
        cells = points.astype(int)
        cells = cells[((cells >= 0) & (cells < self.shape)).all(axis=1)]
        np.add.at(self.map, (cells[:, 0], cells[:, 1]), 1)
        self.sums = np.pad(self.map.cumsum(0).cumsum(1), ((1, 0), (1, 0)))

    def free(self, boxes: Any) -> Any:
        """Which of the boxes (x0, y0, x1, y1) lie inside the frame and touch no text."""
        f, t = self.frame, self.taken[:, None]
        inside = (boxes[:, 0] > f.x0) & (boxes[:, 2] < f.x1) & (boxes[:, 1] > f.y0) & (boxes[:, 3] < f.y1)
        over = (
            (t[..., 0] < boxes[:, 2])
            & (t[..., 2] > boxes[:, 0])
            & (t[..., 1] < boxes[:, 3])
            & (t[..., 3] > boxes[:, 1])
        )
        return inside & ~over.any(axis=0)

    def hits(self, boxes: Any, padding: float = PADDING) -> Any:
        """Points of lines that each box would cover."""
        low = np.clip(np.floor(boxes[:, :2] - padding), 0, self.shape).astype(int)
        high = np.clip(np.ceil(boxes[:, 2:] + padding), 0, self.shape).astype(int)
        s = self.sums
        return s[high[:, 0], high[:, 1]] - s[low[:, 0], high[:, 1]] - s[high[:, 0], low[:, 1]] + s[low[:, 0], low[:, 1]]

    def way_cost(self, spot: _Spot) -> float:
        """What lies between anchor and text: past a line the text seems to be that line's; texts are not crossed."""
        steps = _steps(spot.anchor, _nearest(spot.box, spot.anchor), 2 + int(spot.distance))
        steps = steps[np.hypot(*(steps - spot.anchor).T) > OWN]
        if not len(steps):
            return 0.0
        inside = (steps[:, None] > self.taken[None, :, :2]) & (steps[:, None] < self.taken[None, :, 2:])
        crossed = int(inside.all(axis=2).any(axis=0).sum())
        lines = float((self.hits(np.hstack([steps, steps]), 0.3) > 0).sum())
        return (LEADER_COST if spot.distance >= LEADER_FROM else 0.0) + CROSSING * crossed + 1.5 * lines

    def add(self, spot: _Spot) -> None:
        """Take the room of a label and its leader line."""
        self.taken = np.vstack([self.taken, spot.box.padded(PADDING).extents])
        if spot.distance >= LEADER_FROM:
            self.draw(_steps(spot.anchor, _nearest(spot.box, spot.anchor), 40))


def renderer_of(ax: Axes) -> Any:
    """A renderer that measures text without drawing a file."""
    canvas: Any = ax.figure.canvas
    if not isinstance(canvas, FigureCanvasAgg):
        canvas = FigureCanvasAgg(canvas.figure)
    measuring: Any = canvas
    return measuring.get_renderer()


def settle(ax: Axes) -> None:
    """Let the layout engine place the axes, so that positions can be measured."""
    renderer_of(ax)
    ax.figure.draw_without_rendering()  # type: ignore[union-attr]


def text_size(ax: Axes, text: str, size: float) -> tuple[float, float]:
    """Width and height of a text in points."""
    probe = ax.text(0, 0, text, fontsize=size, linespacing=1.1)
    box = probe.get_window_extent(renderer_of(ax))
    probe.remove()
    return float(box.width * 72 / ax.figure.dpi), float(box.height * 72 / ax.figure.dpi)


def text_width(ax: Axes, text: str, size: float) -> float:
    """Width of a text in points."""
    return text_size(ax, text, size)[0]


def wrapped(ax: Axes, text: str, size: float, width: float) -> str:
    """The text broken into lines of at most `width` points, at blanks."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(ax, longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return "\n".join(lines)


def place(ax: Axes, labels: Iterable[Label], *, size: float, floor: float = 0.0, strict: bool = False) -> list[Label]:
    """Write the labels into the axes and return those for which no room was left (they are not drawn).

    `floor`: share of the height, from below, that stays free of labels; `strict`: rather no label than a leader line
    through a text.
    """
    settle(ax)
    page, left_out = _Page(ax, floor), []
    for label in labels:
        best = _best(
            page,
            label,
            _anchors(ax, label, page.scale),
            text_size(ax, label.text, size),
            CROSSING if strict else float("inf"),
        )
        if best is None:
            left_out.append(label)
            continue
        _write(ax, label, best, size)
        page.add(best)
    return left_out


def _anchors(ax: Axes, label: Label, scale: float) -> list[Any]:
    """The anchors of a label that lie inside the axes, in points."""
    places = [(ax.transData.transform(a) * scale, i) for i, a in enumerate(label.anchors)]
    frame = _in_points(ax.get_window_extent(), scale).padded(1)
    return [(p, i) for p, i in places if frame.contains(*p)]


def _best(page: _Page, label: Label, anchors: Sequence[Any], size: tuple[float, float], limit: float) -> _Spot | None:
    """The cheapest free spot below `limit`; tried in order of cost without leader, which ends the search early."""
    boxes, cost, which, rings = _spots(label, anchors, size)
    free = np.flatnonzero(page.free(boxes))
    own = (free >= rings) * (size[0] / SAMPLE + 2)  # a text on its line covers that line, as it should
    cost = cost[free] + 2.5 * np.maximum(0, page.hits(boxes[free]) - own)
    best, least = None, limit
    for i in np.argsort(cost, kind="stable"):
        if cost[i] >= least:
            break
        box, (anchor, index) = Bbox.from_extents(*boxes[free[i]]), anchors[which[free[i]]]
        spot = _Spot(box, anchor, float(hypot(*(_nearest(box, anchor) - anchor))), index)
        total = cost[i] + page.way_cost(spot)
        if total < least:
            best, least = spot, total
    return best


def _spots(label: Label, anchors: Sequence[Any], size: tuple[float, float]) -> tuple[Any, Any, Any, int]:
    """Boxes on rings around each anchor, then, for a line, boxes on it; what distance and turning away cost; the anchor
    of each; how many are on rings."""
    which, distance, k = (
        a.ravel() for a in np.meshgrid(np.arange(len(anchors)), DISTANCES, np.arange(DIRECTIONS), indexing="ij")
    )
    angle = 2 * np.pi * k / DIRECTIONS + np.radians(label.toward)
    toward = np.column_stack([np.cos(angle), np.sin(angle)])
    places = np.array([a for a, _ in anchors]).reshape(-1, 2)
    corner = places[which] + toward * distance[:, None] + (toward - 1) * np.array(size) / 2
    cost = distance / 4 + 3.0 * np.minimum(k, DIRECTIONS - k) / (DIRECTIONS / 2)
    if len(anchors) > 1:
        corner, cost = (
            np.vstack([corner, places - np.array(size) / 2]),
            np.hstack([cost, np.full(len(places), ON_LINE_COST)]),
        )
        which = np.hstack([which, np.arange(len(places))])
    return np.hstack([corner, corner + size]), cost, which, len(k)


def _in_points(box: Any, scale: float) -> Bbox:
    return Bbox(box.get_points() * scale)


def _obstacles(ax: Axes, scale: float) -> Any:
    """Points along every line and marker, in points of the page, a few points apart."""
    found: list[Any] = [np.empty((0, 2))]
    for line in ax.lines:
        xy = line.get_transform().transform(line.get_xydata()) * scale
        if line.get_linestyle() in ("None", "none", " ", ""):
            reach = max(MARK, line.get_markersize() / 2)  # large dots have more to cover
            steps = np.linspace(-reach, reach, 1 + 2 * int(reach / MARK))
            found += [xy + np.array([dx, dy]) for dx in steps for dy in steps] * 2
        for a, b in pairwise(xy):
            if np.isfinite([a, b]).all():
                found.append(_steps(a, b, min(400, 2 + int(hypot(*(b - a)) / SAMPLE))))
    points = np.vstack(found)
    return points[np.isfinite(points).all(axis=1)]


def _steps(a: Any, b: Any, count: int) -> Any:
    """Points from a to b."""
    return a + np.linspace(0, 1, count)[:, None] * (np.asarray(b) - a)


def _nearest(box: Bbox, anchor: Any) -> Any:
    """The point of a box that lies nearest to the anchor."""
    return np.array([min(max(anchor[0], box.x0), box.x1), min(max(anchor[1], box.y0), box.y1)])


def _write(ax: Axes, label: Label, spot: _Spot, size: float) -> None:
    end = _nearest(spot.box, spot.anchor)
    start = ((end[0] - spot.box.x0) / spot.box.width, (end[1] - spot.box.y0) / spot.box.height)
    leader = {
        "arrowstyle": "-",
        "linewidth": 0.5,
        "color": ax.spines["bottom"].get_edgecolor(),
        "shrinkA": 0,
        "shrinkB": 1.5,
        "relpos": start,
    }
    offset = (spot.box.x0 - spot.anchor[0], spot.box.y0 - spot.anchor[1])
    text = ax.annotate(
        label.text,
        label.anchors[spot.which],
        xytext=offset,
        textcoords="offset points",
        ha="left",
        va="bottom",
        fontsize=size,
        linespacing=1.1,
        zorder=6,
        bbox={"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.6, "alpha": 0.85},
        arrowprops=leader if spot.distance >= LEADER_FROM else None,
    )
    text.set_in_layout(False)
