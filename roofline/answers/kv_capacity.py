"""`roofline kv capacity`: what a card holds of a model's cache, in the arithmetic of a serving engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from roofline.answer import Answer, Column, Section
from roofline.errors import BadValue
from roofline.memory.engines import ENGINES, Deployment, make_plan
from roofline.memory.plan import GIB, Budget, hold, longest
from roofline.models import Model, load_model
from roofline.units import number

_CAPACITY = (
    Column("engine", "engine"),
    Column("tp", "TP", "1"),
    Column("dp", "DP", "1"),
    Column("kv_dtype", "KV dtype"),
    Column("bytes_per_token_per_rank", "per token and rank", "B"),
    Column("available_bytes", "available", "GiB", scale=GIB),
    Column("blocks", "blocks", "1"),
    Column("tokens", "tokens", "1"),
    Column("concurrency", "concurrency", "1", show=lambda v: f"{v:.2f}"),
    Column("starts", "starts"),
    Column("missing_bytes", "missing", "GiB", scale=GIB),
    Column("longest_context", "longest context", "tokens"),
    Column("ideal_concurrency", "ideal", "1", show=lambda v: f"{v:.2f}"),
)
OMITS = "Left out: fragmentation, CUDA graphs and workspaces beyond the terms given, weight padding, scheduling."


def kv_capacity(
    model: str | Model | None = None,
    hardware: Any = None,
    *,
    engine: str = "vllm",
    tp: int | Iterable[int] = 1,
    dp: int = 1,
    kv_dtype: str | Iterable[str] = "auto",
    max_model_len: int | None = None,
    gpus: int | None = None,
    requests: int = 1,
    **options: Any,
) -> Answer:
    """How many tokens and requests a rank holds, in the arithmetic of a serving engine, beside the exact bytes.

    Parameters: model, an id, a config.json or a Model; hardware, an accelerator (not needed with available_gib);
    engine, one of vllm, sglang, trtllm, llamacpp; tp and kv_dtype, one or several (each makes a row); dp, replicas;
    gpus, all layouts tp * dp of that many GPUs; max_model_len, tokens of a request (default: what the model was made
    for); requests, for the inverse questions.  options: the fields of `roofline.memory.engines.Deployment`.

    >>> a = kv_capacity("llama-3.1-8b", kv_dtype="fp16", available_gib="11.12", max_model_len=8192)
    >>> a["blocks"], round(a["concurrency"], 2), a["starts"]
    (5693, 11.12, True)
    """
    if engine not in ENGINES:
        from roofline.errors import UnknownName

        raise UnknownName("engine", engine, ENGINES)
    part, digest = _part(hardware)
    deployment = Deployment.of(load_model(model) if model else None, part, engine, options)
    length = deployment.length(max_model_len)
    positive("requests", requests)
    rows, skipped = _rows(deployment, tp, dp, kv_dtype, gpus, length, requests)
    best = max(range(len(rows)), key=lambda i: (rows[i]["starts"], rows[i]["total_concurrency"]))
    shared = {name: rows[best][name] for name in SHARED}
    data = {
        **shared,
        "rows": rows,
        "best": best,
        "skipped": skipped,
        "max_model_len": length,
        "requests": requests,
        "engine": engine,
        "model": model.id if isinstance(model, Model) else model,
        "inputs": deployment.inputs(),
    }
    title = f"KV capacity of {deployment.name} in {engine}, requests of {number(length)} tokens"
    notes = (*_verdict(rows, best, gpus), *deployment.notes(rows[best]["plan_notes"]), OMITS)
    return Answer(
        "kv-capacity",
        data,
        _CAPACITY,
        title=title,
        notes=notes,
        sections=_capacity_sections(rows[best], engine),
        digest=digest,
    )


def _part(hardware: Any) -> tuple[Any, str]:
    """The one accelerator that is meant, and the digest of the data it comes from."""
    if hardware is None:
        return None, ""
    from roofline.answers.common import chosen

    found = chosen(hardware)
    if len(found.parts) != 1:
        raise BadValue("hardware", ", ".join(part.id for part in found.parts)[:80], "one accelerator")
    return found.parts[0], found.digest


SHARED = (
    "bytes_per_token_per_rank",
    "blocks",
    "tokens",
    "tokens_low",
    "tokens_high",
    "concurrency",
    "starts",
    "missing_bytes",
    "available_bytes",
    "needed_bytes",
    "longest_context",
    "utilization_needed",
    "block_size",
)


def _rows(deployment: Deployment, tp: Any, dp: int, kv_dtype: Any, gpus: int | None, length: int, requests: int) -> Any:
    """A row for each layout and dtype; layouts that the model's heads do not allow are skipped under `gpus`."""
    dtypes = [kv_dtype] if isinstance(kv_dtype, str) else list(kv_dtype)
    degrees: list[tuple[int, int]] = [(t, dp) for t in ([tp] if isinstance(tp, int) else list(tp))]
    if gpus is not None:
        positive("gpus", gpus)
        degrees = [(t, gpus // t) for t in range(1, min(gpus, 4096) + 1) if gpus % t == 0]
    rows, skipped = [], []
    for t, replicas in degrees:
        for dtype in dtypes:
            try:
                rows.append(_row(deployment, t, replicas, dtype, length, requests))
            except BadValue as error:
                if gpus is None or error.name != "tp":
                    raise
                skipped.append({"tp": t, "dp": replicas, "reason": str(error)})
    if not rows:
        raise BadValue(
            "gpus", gpus or "nothing", "a number of GPUs over which the heads divide, and at least one KV dtype"
        )
    return rows, skipped


def _row(deployment: Deployment, tp: int, dp: int, dtype: str, length: int, requests: int) -> dict[str, Any]:
    """One layout: the engine's count, the interval of a rounded size, the inverse answers, the exact bytes."""
    layout = deployment.layout(tp, dtype)
    plan = make_plan(deployment, layout)
    available, half, budget = deployment.available(plan, tp, positive("dp", dp))
    found = hold(plan, available, length)
    exact = layout.cache.at(length)
    need = plan.needed(length, requests)
    return {
        "engine": plan.engine,
        "tp": tp,
        "dp": dp,
        "kv_dtype": layout.cache.dtype,
        "bytes_per_token_per_rank": layout.bytes_per_token,
        "bytes_per_token_all_layers": layout.all_rows,
        "fixed_bytes_per_sequence": layout.cache.fixed_bytes_per_sequence,
        "block_size": plan.block_size,
        "available_bytes": available,
        "blocks": found.blocks,
        "tokens": found.tokens,
        "tokens_low": plan.tokens(max(available - half, 0.0)),
        "tokens_high": plan.tokens(max(available + half, 0.0)),
        "concurrency": found.concurrency,
        "requests": int(found.concurrency),
        "total_concurrency": dp * found.concurrency,
        "needed_bytes": found.needed,
        "starts": found.starts,
        "missing_bytes": found.missing,
        "longest_context": found.longest,
        "longest_context_for_requests": longest(plan, max(available, 0.0), requests),
        "utilization_needed": budget.fraction_for(need) if budget else None,
        "bytes_for_requests": need,
        "ideal_bytes_per_request": exact,
        "ideal_concurrency": max(available, 0.0) / exact if exact else None,
        "utilization_implied": budget.fraction_for(available)
        if budget and deployment.available_gib is not None
        else None,
        "budget": {**budget._asdict(), "available": budget.available} if budget else None,
        "details": plan.details(max(available, 0.0), length),
        "plan_notes": list(plan.taken),
    }


def _verdict(rows: Sequence[dict[str, Any]], best: int, gpus: int | None) -> list[str]:
    """Starts or not, with what is missing, in words."""
    row = rows[best]
    need, have = row["needed_bytes"] / GIB, row["available_bytes"] / GIB
    if row["starts"]:
        text = f"Starts: {have:.2f} GiB available, {need:.2f} GiB needed for one request; "
        text += f"{row['concurrency']:.2f} requests fit on a rank."
    else:
        text = f"Does not start: {need:.2f} GiB needed for one request, {have:.2f} GiB available, "
        text += f"{row['missing_bytes'] / GIB:.2f} GiB missing. "
        text += f"Longest context that fits: {number(row['longest_context'])} tokens."
    notes = [text]
    if row["tokens_low"] != row["tokens_high"]:
        notes.append(
            f"The printed size is rounded: {number(row['tokens_low'])} to {number(row['tokens_high'])} tokens."
        )
    if row["utilization_needed"] is not None and row["engine"] != "llamacpp":
        said = f"{row['utilization_needed']:.4f}" if row["utilization_needed"] <= 1 else "above 1: no setting does"
        notes.append(f"Utilisation needed for the requests asked about: {said}.")
    if row["utilization_implied"] is not None:
        notes.append(f"The available size with these terms means a utilisation of {row['utilization_implied']:.4f}.")
    if len(rows) > 1:
        first = next((r["kv_dtype"] for r in rows if r["starts"]), None)
        notes.append(
            f"Serves most: TP {row['tp']} x DP {row['dp']}, {row['kv_dtype']}, {row['total_concurrency']:.2f} requests"
            + ("." if first else "; none of the rows starts.")
        )
    return notes


def _capacity_sections(row: dict[str, Any], engine: str) -> tuple[Section, ...]:
    from importlib import import_module

    text = (import_module(f"roofline.memory.{engine}").__doc__ or "").splitlines()
    sections = [Section("Rule", tuple(line for line in text if line))]
    if row["budget"]:
        sections.append(Section("Budget", tuple(_budget_lines(Budget(*[row["budget"][f] for f in Budget._fields])))))
    details = dict(row["details"])
    found = tuple(
        f"{g['layers']} {g['kind']} layers: blocks of {g['block_size']} tokens, {g['blocks_per_request']} a request"
        for g in details.pop("groups", ())
    )
    found += tuple(f"{name}: {value}" for name, value in details.items())
    return (*sections, Section("As the engine lays it out", found)) if found else tuple(sections)


def _budget_lines(budget: Budget) -> list[str]:
    terms = [(n, getattr(budget, n) / GIB) for n in ("total", "weights", "activation", "non_torch", "available")]
    return [f"{name.replace('_', '-')}: {value:.2f} GiB" for name, value in terms] + [
        f"fraction: {budget.fraction:g} ({budget.rule})"
    ]


def positive(name: str, value: Any) -> int:
    """A whole number of at least 1, or BadValue."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**15:
        raise BadValue(name, value, "a whole number from 1 to 10^15")
    return value
