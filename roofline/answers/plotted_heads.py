"""The data behind the figure `heads`: intensity by head count, ridges, and where they meet, as plain records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from roofline.answers.common import Parts, chosen
from roofline.answers.heads import heads
from roofline.answers.plotted import many
from roofline.derivations import decode_intensity_limit
from roofline.errors import NoAnswer
from roofline.evaluate import evaluate
from roofline.units import number

Record = dict[str, Any]
USUAL = (512, 64)  # latent and rope for which the rows below are defined
FLASHMLA_ROW = 656  # bytes of FlashMLA's fp8 row
ROW_NAMES: Mapping[float, str] = {1152: "bf16 row", 576: "plain fp8 row", FLASHMLA_ROW: "FlashMLA fp8 row"}
LEVEL = ("hardware", "roof", "precision", "ridge_flop_per_byte", "kind", "source")


def heads_data(
    hardware: Any = ("h800-sxm", "h200-sxm", "mtt-s4000"),
    *,
    roof: Any = (),
    w_kv: float | None = None,
    kv_row_bytes: Any = None,
    **shape: float,
) -> tuple[Record, Parts]:
    """One line a row width, one level a ridge, and each crossing with its exact head count.

    shape: latent, rope, q_len (512, 64, 1).  The rows drawn are that of w_kv and those of kv_row_bytes; where neither
    is given, two bytes an element, and FlashMLA's 656 bytes where the shape is the one it is made for.
    """
    shape = {"latent": 512, "rope": 64, "q_len": 1, **shape}
    crossings, skipped = _crossings(hardware, many(roof) if roof else [None], _widths(w_kv, kv_row_bytes, shape), shape)
    exact = [c["heads_exact"] for c in crossings]
    ends = [2.0 ** max(0, math.floor(math.log2(min(exact))) - 2), 2.0 ** (math.ceil(math.log2(max(exact))) + 1)]
    lines = [_line(width, ends, shape) for width in dict.fromkeys(c["kv_row_bytes"] for c in crossings)]
    ridges = {(c["hardware"], c["roof"]): c for c in crossings}.values()
    levels = [{k: c[k] for k in LEVEL} | {"label": f"{c['hardware']} {c['roof']}"} for c in ridges]
    lowest = min(y for line in lines for y in line["intensity_flop_per_byte"])
    highest = max(level["ridge_flop_per_byte"] for level in levels)
    data = {
        "rows": crossings,
        "crossings": crossings,
        "lines": lines,
        "ridges": levels,
        "domain": {"heads": ends, "intensity_flop_per_byte": [lowest / 1.2, 2.2 * highest]},
        "inputs": {**shape, "kv_row_bytes": [line["kv_row_bytes"] for line in lines]},
        "title": _title(shape, ", ".join(dict.fromkeys(c["roof"] for c in crossings))),
        "skipped": skipped,
    }
    return data, chosen(hardware)


def _widths(w_kv: float | None, kv_row_bytes: Any, shape: Mapping[str, float]) -> list[dict[str, float]]:
    """Each row width as an option of `heads`."""
    if kv_row_bytes is None and w_kv is None:
        w_kv, kv_row_bytes = 2, FLASHMLA_ROW if (shape["latent"], shape["rope"]) == USUAL else None
    rows = [] if kv_row_bytes is None else many(kv_row_bytes)
    return [*([] if w_kv is None else [{"w_kv": w_kv}]), *({"kv_row_bytes": row} for row in rows)]


def _crossings(
    hardware: Any, roofs: list[str | None], widths: list[dict[str, float]], shape: Mapping[str, float]
) -> tuple[list[Record], list[Record]]:
    """The rows of `heads` for every width and roof, and the parts that none of the roofs fits."""
    found: list[Record] = []
    skipped: dict[str, str] = {}
    for width in widths:
        for name in roofs:
            answer = heads(hardware, roof=name, **width, **shape)
            found += [{**row, "kv_row_bytes": answer["inputs"]["kv_row_bytes"]} for row in answer.rows]
            skipped |= {s["hardware"]: s["reason"] for s in answer.data["skipped"]}
    if not found:
        raise NoAnswer("no ridge to draw: " + "; ".join(f"{part} {reason}" for part, reason in skipped.items()))
    drawn = {row["hardware"] for row in found}
    return found, [{"hardware": part, "reason": why} for part, why in skipped.items() if part not in drawn]


def _line(width: float, ends: list[float], shape: Mapping[str, float]) -> Record:
    counts = [2.0**k for k in range(round(math.log2(ends[0])), round(math.log2(ends[1])) + 1)]
    values = evaluate(decode_intensity_limit(), heads=counts, kv_row_bytes=width, **shape)
    known = width in ROW_NAMES and (shape["latent"], shape["rope"]) == USUAL
    label = f"{number(width)} B per cached row" + (f" ({ROW_NAMES[width]})" if known else "")
    return {
        "kv_row_bytes": width,
        "heads": counts,
        "intensity_flop_per_byte": [float(v) for v in values],
        "label": label,
    }


def _title(shape: Mapping[str, float], roofs: str) -> str:
    new = f"{number(shape['q_len'])} new token" + ("s" if shape["q_len"] != 1 else "")
    told = f"latent {number(shape['latent'])}, rope {number(shape['rope'])}, {new}"
    return f"Intensity of MQA-mode decode (long-context limit, {told}) and ridges of the roofs: {roofs}"
