"""`roofline solve tp --model`: the tensor-parallel degree at which the links of a step bind, and the map around it.

Degrees are few and whole, and what divides a model decides which there are: no closed form, every one is tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roofline.answer import Answer, Column
from roofline.answers.common import chosen
from roofline.answers.step_asked import workload
from roofline.answers.step_report import CONVENTION, OMITS
from roofline.errors import BadValue
from roofline.models import Model, load_model
from roofline.plan import Deployment, Options, check_deployment, plan
from roofline.plan.chip import chip
from roofline.plan.spread import tensor_degrees
from roofline.units import number

LOAD = ("batch", "q_len", "context", "drafts", "prefill_batch", "prefill_context", "image_tokens")
SPREAD = ("dp", "ep", "pp", "cp")
_COLUMNS = (
    Column("hardware", "accelerator"),
    Column("tp", "TP", "1"),
    Column("compute_lower_s", "kernels at least", "ms", scale=1e-3),
    Column("link_s", "collectives", "ms", scale=1e-3),
    Column("binds", "links bind"),
    Column("refused", "refused"),
)


def link_binds(
    model: str | Model,
    hardware: Any,
    *,
    phase: str | None = None,
    roof: str | None = None,
    values: Mapping[str, float] | None = None,
) -> Answer:
    """The smallest tp at which the collectives of a step take longer than its kernels, on each accelerator.

    Parameters: values, of the workload (batch, q_len, context, ...), the other degrees (dp, ep, pp, cp), w_act and
    link_bandwidth [B/s]; roof, as for `roofline.step`.

    >>> found = link_binds("llama-3.1-8b", "h100-sxm", phase="oneshot", values=dict(q_len=16384, link_bandwidth=5e10))
    >>> [row["value"] for row in found["roots"]]
    [2]
    """
    if hardware is None:
        raise BadValue("hardware", "nothing", "an accelerator, whose links are asked about")
    given = dict(values or {})
    known = (*LOAD, *SPREAD, "w_act", "link_bandwidth")
    if unknown := [name for name in given if name not in known]:
        raise BadValue(unknown[0], given[unknown[0]], f"one of {', '.join(known)} beside tp")
    m = load_model(model)
    parts = chosen(hardware)
    rows = [row for part in parts.parts for row in _rows(m, part, phase or "decode", roof, given)]
    firsts = {
        p.id: next((r["tp"] for r in rows if r["hardware"] == p.id and r.get("binds")), None) for p in parts.parts
    }
    roots = [{"hardware": name, "unknown": "tp", "value": tp} for name, tp in firsts.items() if tp is not None]
    reasons = [f"{name}: the kernels take longer at every degree" for name, tp in firsts.items() if tp is None]
    told = [f"{row['hardware']}: the links bind from TP {row['value']} on." for row in roots]
    put_in = ", ".join(f"{k} = {number(v)}" for k, v in given.items()) or "none"
    data = {"unknown": "tp", "model": m.id, "phase": phase or "decode", "roots": roots, "rows": rows, "inputs": given}
    return Answer(
        "solve",
        data,
        tuple(c for c in _COLUMNS if any(row.get(c.key) is not None for row in rows)),
        title=f"tp at which the collectives of a {phase or 'decode'} step of {m.name} take longer than its kernels",
        notes=(
            *parts.warnings,
            *told,
            *(f"{text}." for text in reasons),
            f"Numbers put in: {put_in}.",
            CONVENTION,
            OMITS,
        ),
        digest=parts.digest,
        no_answer="; ".join(reasons) if not roots else "",
    )


def _rows(model: Model, part: Any, phase: str, roof: str | None, given: Mapping[str, float]) -> list[dict[str, Any]]:
    """Every degree that divides the model: what the kernels and the collectives take."""
    sizes = {name: given.get(name, default) for name, default in _DEFAULTS.items()}
    load = workload(phase, q_len=given.get("q_len"), **sizes)
    others = {name: int(given.get(name, 1)) for name in SPREAD}
    rows = []
    for tp in tensor_degrees(model):
        spread = Deployment(tp=tp, **others)
        try:
            check_deployment(model, spread)
        except BadValue as error:
            rows.append({"hardware": part.id, "tp": tp, "refused": str(error)})
            continue
        rates = chip(part, roof, spread, given.get("link_bandwidth")).rates
        if spread.gpus > 1 and rates.link_bandwidth is None:
            raise BadValue("link_bandwidth", "nothing", f"a rate [B/s]: none of {part.id} is sourced")
        bounds = plan(model, load, spread, Options(w_act=given.get("w_act", 2))).bounds(rates)
        found = {"compute_lower_s": bounds.compute_lower, "link_s": bounds.link}
        rows.append({"hardware": part.id, "tp": tp, **found, "binds": bounds.link > bounds.compute_lower})
    return rows


_DEFAULTS = {
    "batch": 1,
    "context": 0,
    "drafts": 0,
    "prefill_batch": 1,
    "prefill_context": 0,
    "image_tokens": 0,
}
