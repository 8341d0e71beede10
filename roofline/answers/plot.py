"""`roofline plot`: a figure and the data it draws."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from roofline.answer import Answer, Column
from roofline.answers import plotted, plotted_crossover, plotted_heads
from roofline.errors import UnknownName
from roofline.units import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("roofline", "heads", "crossover", "step", "pages", "waste", "hits", "concurrency")
OMITS = (
    "Left out: launch gaps, achieved rates below the roof, everything outside the kernels named. Bounds from the roofs."
)
_PLACE = (Column("hardware", "accelerator"), Column("roof", "roof"), Column("precision", "precision"))
_COLUMNS = {
    "roofline": (
        Column("kernel", "kernel"),
        Column("model", "model"),
        *_PLACE,
        Column("ridge_flop_per_byte", "ridge", "FLOP/B"),
        Column("intensity_flop_per_byte", "intensity", "FLOP/B"),
        Column("attainable_flop_per_s", "attainable bound", "TFLOP/s", scale=1e12),
        Column("bound", "bound"),
    ),
    "heads": (
        *_PLACE,
        Column("kv_row_bytes", "cached row", "B"),
        Column("ridge_flop_per_byte", "ridge", "FLOP/B"),
        Column("heads_exact", "heads on the ridge", "1", show=lambda v: f"{v:.2f}"),
    ),
    "crossover": (
        Column("model", "model"),
        Column("tp", "TP"),
        Column("heads", "heads"),
        Column("kernel_heads", "run as"),
        Column("unknown", "unknown"),
        Column("value", "crossing", show=number),
        Column("cheaper_below", "cheaper below"),
        Column("cheaper_above", "cheaper above"),
    ),
}


def plot(
    kind: str, output: str | os.PathLike[str] | None = None, *, width: float = 6.9, style: str = "paper", **options: Any
) -> Answer:
    """The data of a figure, and the figure as a file where `output` is given.

    Parameters: kind, one of those below; output, a file (.pdf .svg .png .pgf);
    width of the figure [inch]; style, "paper", "screen" or "dark"; options, those of the commands:

        roofline     hardware, roof, precision, kernel, model, phase, tp, kernel_heads, batch, q_len, context, w_kv, ...
        heads        hardware, roof, latent, rope, w_kv, kv_row_bytes (one or several), q_len
        crossover    model, hardware, unknown, and the options of `roofline.crossover`
        step         model, hardware (one or several), roof ("all" draws the others too), color ("part" or "bound"),
                     and the options of `roofline.step`
        pages        those of `roofline.kv_pages`: the pages of each request
        waste        those of `roofline.kv_pages`, with several page sizes
        hits         those of `roofline.kv_replay`, with several pools
        concurrency  model, hardware, engine, kv_dtype, lengths, and the options of `roofline.kv_capacity`

    Returns an Answer whose data hold the lines and points drawn.  Raises NoAnswer for .pgf where TeX is not installed.

    >>> answer = plot("heads", hardware="h800-sxm", roof="flashmla", kv_row_bytes=1152)
    >>> [(round(c["heads_exact"], 2), c["kv_row_bytes"]) for c in answer["crossings"]]
    [(136.7, 1152)]
    """
    if output is not None:
        from roofline.figures import check_suffix

        check_suffix(output)
    answer = _answer(kind, options)
    if output is not None:
        from roofline.figures import draw, save

        save(draw(kind, answer.data, width=width, style=style), output)
    return answer


def figure(kind: str, *, width: float = 6.9, style: str = "paper", **options: Any) -> Figure:
    """The figure of `plot` as a matplotlib Figure, not tied to pyplot; its axes are `figure.axes[0]`."""
    from roofline.figures import draw

    return draw(kind, _answer(kind, options).data, width=width, style=style)


def _answer(kind: str, options: dict[str, Any]) -> Answer:
    if kind not in KINDS:
        raise UnknownName("figure", kind, KINDS)
    if kind in KINDS[4:]:
        return _of_memory(kind, options)
    if kind == "step":
        from roofline.answers.plotted_step import step_data

        return step_data(**options)
    if kind == "crossover":
        data, found = plotted_crossover.crossover_data(**options)
        return Answer(
            "plot-crossover",
            data,
            _COLUMNS[kind],
            title=data["title"],
            notes=found.notes,
            sections=found.sections,
            digest=found.digest,
        )
    data, parts = (plotted.roofline_data if kind == "roofline" else plotted_heads.heads_data)(**options)
    shown = {k: v for k, v in data["inputs"].items() if v is not None}
    notes = [
        "Inputs: "
        + ", ".join(f"{k} = {number(v) if isinstance(v, (int, float)) else v}" for k, v in shown.items())
        + "."
    ]
    notes += [f"Not drawn, no roof of its precision: {name}.".replace("\n", ", ") for name in data.get("not_shown", ())]
    notes += [f"Skipped {s['hardware']}: {s['reason']}." for s in data.get("skipped", ())]
    return Answer(
        f"plot-{kind}",
        data,
        _COLUMNS[kind],
        title=data["title"],
        notes=(*parts.warnings, *notes, OMITS),
        digest=parts.digest,
    )


def _of_memory(kind: str, options: dict[str, Any]) -> Answer:
    """A figure of the memory answers draws the document of its command."""
    if kind == "hits":
        from roofline.answers.kv_replay import kv_replay as answer
    elif kind == "concurrency":
        from roofline.answers.kv_curve import kv_curve as answer  # type: ignore[assignment]
    else:
        from roofline.answers.kv_pages import kv_pages as answer  # type: ignore[assignment]
    return replace(answer(**options), name=f"plot-{kind}")
