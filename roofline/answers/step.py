"""`roofline step`: what one decode or prefill step costs, kernel by kernel, what bounds it, how fast it can be at
best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from roofline._generated import law
from roofline.answer import Answer
from roofline.answers.common import chosen
from roofline.answers.step_asked import Asked, ask, workload
from roofline.answers.step_report import COLUMNS, notes, sections
from roofline.answers.step_verdict import batch_at_ridge, bound, helping, period, within
from roofline.errors import BadValue
from roofline.glossary import check
from roofline.models import Model, load_model
from roofline.plan import Deployment, Options, UseCost, Workload
from roofline.plan.capacity import Memory, fullest, largest_batch, stages

if TYPE_CHECKING:
    from roofline.accelerators import Accelerator


def step(
    model: str | Model,
    hardware: str | Accelerator,
    *,
    phase: str = "decode",
    batch: float = 1,
    q_len: float | None = None,
    context: float = 0,
    drafts: float = 0,
    acceptance: float | None = None,
    prefill_batch: float = 1,
    prefill_context: float = 0,
    image_tokens: float = 0,
    tp: int = 1,
    dp: int = 1,
    ep: int = 1,
    pp: int = 1,
    cp: int = 1,
    micro_batches: int = 1,
    kv_dtype: str = "auto",
    weight_dtype: str = "auto",
    index_dtype: str = "fp8",
    routing: str = "expected",
    mode: str | None = None,
    gather: str = "perfect",
    kernel_heads: int | None = None,
    w_act: float = 2,
    roof: str | None = None,
    link_bandwidth: float | None = None,
    launch_gap: float = 0,
    n_kernels: float | None = None,
    slo: float | None = None,
) -> Answer:
    """One step of a model on an accelerator: kernels, totals, time bounds, verdict.

    Parameters: model, a built-in id, a path of a config.json or a Model; hardware, an id, a file with one part or an
    Accelerator; phase, decode, oneshot, chunked or mixed; batch, sequences of all data-parallel ranks; q_len, new
    tokens per sequence (decode: 1 + drafts; oneshot: the prompt; mixed: the prefill part); context, cached tokens;
    drafts, passes of the model's prediction modules; acceptance, tokens a sequence gains per decode step (default the
    most, 1 + drafts or q_len); tp, dp, ep, pp, cp, degrees; micro_batches, batches in flight in the pipeline (in a
    prefill: chunks); launch_gap [s] before each of n_kernels; link_bandwidth [B/s]; slo, a time a token [s].

    Raises UnknownName, BadValue, BadFile or NoAnswer.

    >>> answer = step("llama-3.1-8b", "h100-sxm", batch=64, context=4096)
    >>> answer["bound"], answer["fits"], round(answer["tpot_s"] * 1e3, 2)
    ('memory', True, 14.85)
    """
    asked_for = terms(**{name: value for name, value in locals().items() if name not in ("model", "hardware")})
    parts = chosen(hardware)
    if len(parts.parts) != 1:
        raise BadValue(
            "hardware", ", ".join(p.id for p in parts.parts), "one part", "`roofline compare` sets several side by side"
        )
    asked = ask(load_model(model), parts.parts[0], *asked_for)
    data = document(asked, acceptance, slo)
    title = f"{phase} step of {asked.model.name} on {asked.step.deployment.gpus} x {asked.part.id}"
    return Answer(
        "step", data, COLUMNS, "kernels", title, notes(asked, data, parts.warnings), sections(asked, data), parts.digest
    )


class Terms(NamedTuple):
    """What the keywords of `step` say of a configuration, sorted."""

    load: Workload
    spread: Deployment
    options: Options
    roof: str | None
    link: float | None
    launch: Mapping[str, Any]


def terms(**given: Any) -> Terms:
    """The keywords of `step` sorted; those that are not given stand at its defaults."""
    usual: dict[str, Any] = step.__kwdefaults__ or {}
    if strange := given.keys() - usual.keys():
        raise TypeError(f"step takes no {', '.join(sorted(strange))}; it takes {', '.join(usual)}")
    at = usual | given
    gap, count = check("launch_gap", at["launch_gap"]), at["n_kernels"]
    return Terms(
        workload(*(at[name] for name in Workload._fields)),
        Deployment(*(at[name] for name in Deployment._fields)),
        Options(*(at[name] for name in Options._fields)),
        at["roof"],
        at["link_bandwidth"],
        {"launch_gap": gap, "n_kernels": count if count is None else check("n_kernels", count)},
    )


def document(asked: Asked, acceptance: float | None = None, slo: float | None = None) -> dict[str, Any]:
    """The JSON document."""
    load, spread, options = asked.step.workload, asked.step.deployment, asked.step.options
    needs = [held(load) for held in stages(asked.model, spread, options, drafts=load.drafts)]
    rows = [kernel_row(c, asked) for c in asked.costs]
    totals: dict[str, Any] = {
        q: sum(r[q] for r in rows) for q in ("flops", "vector_flops", "exps", "bytes", "link_bytes")
    }
    totals |= {
        "intensity_flop_per_byte": law.intensity(flops=totals["flops"], bytes=totals["bytes"]),
        "n_kernels": asked.step.n_kernels,
    }
    gained = _gained(load, acceptance)
    return {
        "model": asked.model.id,
        "hardware": asked.part.id,
        "roof": asked.chip.roof,
        "phase": load.phase,
        "workload": load._asdict(),
        "deployment": {**spread._asdict(), "gpus": spread.gpus},
        "dtypes": {
            "kv": asked.model.kv(options.kv_dtype).dtype,
            "weight": options.weight_dtype,
            "index": options.index_dtype,
            "act_bytes": options.w_act,
        },
        "kernels": rows,
        "totals": totals,
        "parts": parts_of(rows),
        **_times(asked, gained),
        **_memory(asked, needs),
        **helping(asked),
        "batch_at_ridge": batch_at_ridge(asked),
        **({"slo": {"time_s": slo, "max_batch": within(asked, slo, gained)}} if slo is not None else {}),
        "defaults_taken": [t._asdict() for t in asked.model.defaults_taken],
    }


def _gained(load: Workload, acceptance: float | None) -> float:
    """Tokens that a sequence gains in a decode step."""
    most = 1 + load.drafts if load.phase == "mixed" else load.q_len
    if load.phase in ("oneshot", "chunked"):
        if acceptance is not None:
            raise BadValue("acceptance", acceptance, "nothing in a prefill", "it belongs to decode and mixed steps")
        return load.q_len
    if acceptance is None:
        return most
    if not 1 <= acceptance <= most:
        raise BadValue("acceptance", acceptance, f"from 1 to {most:g} tokens a step (1 + drafts)")
    return acceptance


def kernel_row(cost: UseCost, asked: Asked) -> dict[str, Any]:
    """One use, all its runs together."""
    runs, use = cost.use.count, cost.use
    tensor = asked.chip.rates.peak(use.precision)[1] if cost.flops else None
    whole = asked.bounds.compute_lower or asked.bounds.link
    return {
        "name": use.name,
        "kernel": use.kernel,
        "part": use.part,
        "count": runs,
        "precision": tensor,
        "flops": cost.flops * runs,
        "vector_flops": cost.vector_flops * runs,
        "exps": cost.exps * runs,
        "bytes": cost.bytes * runs,
        "link_bytes": cost.link_bytes * runs,
        "intensity_flop_per_byte": law.intensity(flops=cost.flops, bytes=cost.bytes) if cost.bytes else None,
        "time_lower_s": cost.lower * runs,
        "time_upper_s": cost.upper * runs,
        "share": cost.lower * runs / whole if whole else 0.0,
        "bound": cost.bound,
        "weights": list(use.weights),
    }


def parts_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Sums by part of the model: attention, indexer, ffn, experts, head, ..."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        part = found.setdefault(row["part"], dict.fromkeys(("flops", "bytes", "link_bytes", "time_lower_s"), 0.0))
        for quantity in part:
            part[quantity] += row[quantity]
    return found


def _times(asked: Asked, gained: float) -> dict[str, Any]:
    """Bounds, latency a token or to the first token, tokens per second."""
    load, spread, b = asked.step.workload, asked.step.deployment, asked.bounds
    flight = spread.micro_batches
    whole = period(load, flight, b.lower, max(asked.stages))
    out: dict[str, Any] = {
        "time_lower_s": b.lower,
        "time_upper_s": b.upper,
        "compute_lower_s": b.compute_lower,
        "compute_upper_s": b.compute_upper,
        "link_s": b.link,
        "launch_s": b.gaps,
        "bound": "link" if b.link > b.compute_lower else bound(asked.costs),
        "pipeline": {"stages_s": list(asked.stages), "bubble": (spread.pp - 1) / (spread.pp - 1 + flight)},
    }
    made = load.batch * gained if load.phase in ("decode", "mixed") else load.tokens
    speed = flight * made / whole
    out |= {"tokens_per_s": speed, "tokens_per_s_per_gpu": speed / spread.gpus}
    if load.phase in ("oneshot", "chunked"):
        return {**out, "ttft_s": whole}
    return {**out, "tpot_s": whole / gained, "tokens_per_s_per_user": gained / whole, "acceptance": gained}


def _memory(asked: Asked, needs: Sequence[Memory]) -> dict[str, Any]:
    """What the fullest device holds, whether it fits, and the largest batch that does on every stage."""
    need, capacity = fullest(needs), asked.part.visible_bytes
    most = None if capacity is None else largest_batch(capacity, needs, asked.step.deployment)
    told = {
        "weights_bytes": need.weights,
        "kv_bytes": need.kv,
        "kv_bytes_per_sequence": need.kv_per_sequence,
        "total_bytes": need.total,
        "capacity_bytes": capacity,
        "max_batch": most,
    }
    return {"fits": None if capacity is None else need.total <= capacity, "memory": told}
