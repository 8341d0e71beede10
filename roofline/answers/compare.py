"""`roofline compare`: chips, models or deployments side by side, each a row, the first one as the yardstick."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from roofline.answer import Answer, Column
from roofline.answers.common import chosen
from roofline.answers.step import step
from roofline.answers.step_report import CONVENTION, OMITS
from roofline.errors import BadValue, RooflineError
from roofline.units import number

if TYPE_CHECKING:
    from roofline.accelerators import Accelerator
    from roofline.models import Model

DEGREES = ("tp", "dp", "ep", "pp", "cp", "micro_batches")
COLUMNS = (
    Column("model", "model"),
    Column("hardware", "accelerator"),
    Column("deployment", "deployment"),
    Column("gpus", "GPUs", "1"),
    Column("time_lower_s", "step at least", "ms", scale=1e-3),
    Column("time_upper_s", "at most", "ms", scale=1e-3),
    Column("tokens_per_s_per_gpu", "tokens/s per GPU", "1/s"),
    Column("tokens_per_s_per_user", "per user", "1/s"),
    Column("bound", "bound"),
    Column("helps_most", "helps most"),
    Column("fits", "fits"),
    Column("max_batch", "largest batch", "1"),
    Column("speedup", "speed-up", "1", show=lambda v: f"{v:.3f}"),
    Column("refused", "refused"),
)
TAKEN = (
    "time_lower_s",
    "time_upper_s",
    "bound",
    "tokens_per_s",
    "tokens_per_s_per_gpu",
    "tokens_per_s_per_user",
    "tpot_s",
    "ttft_s",
    "fits",
    "helps_most",
    "elasticities",
    "batch_at_ridge",
)


def compare(
    models: str | Model | Sequence[str | Model],
    hardware: str | Accelerator | Iterable[str | Accelerator],
    deployments: Sequence[Mapping[str, int]] = ({},),
    **workload: Any,
) -> Answer:
    """Every model on every accelerator in every deployment, under one workload.

    Parameters: models, ids, paths or Models; hardware, as for `roofline.heads`; deployments, each a mapping of degrees
    such as {"tp": 8} or {"dp": 8, "ep": 8}; workload, further arguments of `roofline.step`.
    Rows that do not divide or have no sourced rate say why under `refused`; `speedup` is the first row's time over the
    row's own.

    >>> rows = compare("llama-3.1-8b", "h100-sxm,h200-sxm", batch=1, context=512).rows
    >>> round(rows[1]["speedup"], 3)                                    # a bandwidth-bound step: 4.8 / 3.35
    1.433
    """
    wanted = [models] if not isinstance(models, (list, tuple)) else list(models)
    parts = chosen(hardware)
    asked = list(product(wanted, parts.parts, list(deployments) or [{}]))
    if len(asked) < 2:
        raise BadValue("compare", f"{len(asked)} configuration", "two or more models, accelerators or deployments")
    rows = [_row(model, part, spread, workload) for model, part, spread in asked]
    base = rows[0].get("time_lower_s")
    for row in rows:
        row["speedup"] = base / row["time_lower_s"] if base and row.get("time_lower_s") else None
    answered = any("time_lower_s" in row for row in rows)
    notes = (
        "Speed-up: time bound of the first row over the row's own; "
        f"batch {number(workload.get('batch', 1))} on the whole deployment.",
        CONVENTION,
        OMITS,
    )
    data = {"rows": rows, "workload": {k: v for k, v in workload.items() if isinstance(v, (int, float, str))}}
    return Answer(
        "compare",
        data,
        _columns(rows),
        title="Steps side by side",
        notes=(*parts.warnings, *notes),
        digest=parts.digest,
        no_answer="" if answered else "every configuration is refused: " + str(rows[0]["refused"]),
    )


def _columns(rows: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Columns that some row fills."""
    return tuple(c for c in COLUMNS if any(row.get(c.key) is not None for row in rows))


def _row(model: Any, part: Accelerator, spread: Mapping[str, int], workload: Mapping[str, Any]) -> dict[str, Any]:
    """One configuration, or why there is none."""
    name = model if isinstance(model, str) else model.id
    head = {
        "model": name,
        "hardware": part.id,
        "deployment": " ".join(f"{k}={v}" for k, v in spread.items()) or "1 device",
    }
    try:
        found = step(model, part, **{**workload, **spread})
    except RooflineError as error:
        return {**head, "refused": str(error)}
    held = found["memory"]
    return {
        **head,
        "model": found["model"],
        "gpus": found["deployment"]["gpus"],
        **{k: found[k] for k in TAKEN if k in found.data},
        "max_batch": held["max_batch"],
        "memory": held,
        "totals": found["totals"],
    }


def degrees(text: str) -> dict[str, int]:
    """A deployment from text: "dp=8,ep=8".

    >>> degrees("dp=8,ep=8")
    {'dp': 8, 'ep': 8}
    """
    found: dict[str, int] = {}
    for pair in text.replace(" ", ",").split(","):
        name, equals, count = pair.strip().partition("=")
        name = name.replace("-", "_")
        if name not in DEGREES or not equals or not count.isdigit() or name in found:
            raise BadValue("deployment", text, f"degrees such as tp=8,pp=2 out of {', '.join(DEGREES)}, each once")
        found[name] = int(count)
    return found
