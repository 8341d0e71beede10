"""`roofline crossover`: at which length, query count or batch MHA mode and MQA mode cost the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from roofline import engines, glossary
from roofline.answer import Answer, Section
from roofline.answers.common import digest_of, leg_rates, roofed, skipped_note, with_adhoc
from roofline.answers.crossover_inputs import check_heads, check_ratio, degrees, workload
from roofline.answers.crossover_text import LEFT_OUT, columns, explained, notes, title
from roofline.crossovers import Case, Crossing, crossings, rate_ratio_at
from roofline.errors import BadValue, UnknownName
from roofline.kernels.mla import EXPANDED_ROW_PER_HEAD
from roofline.models import Model, load_model

MLA_SHAPE = ("heads", "latent", "rope", "nope", "value", "topk", "index_heads", "index_head_dim")
OMITS = LEFT_OUT["modes"]


@dataclass(frozen=True, repr=False)
class Crossings(Answer):
    """An answer that also holds, for each row, the `Case` that it was solved from (None where there was none)."""

    cases: tuple[Case | None, ...] = ()


def crossover(
    model: str | Model | Iterable[str | Model] = ("deepseek-v3.2", "glm-5"),
    hardware: Any = None,
    *,
    phase: str = "oneshot",
    cost: str | None = None,
    between: str = "modes",
    roof: str | None = None,
    tp: int | Iterable[int] = 1,
    kernel_heads: int | None = None,
    engine: str | None = None,
    rate_ratio: float = 1,
    at_length: float | None = None,
    gather: str = "none",
    skip: bool = True,
    topk: float | None = None,
    peak: str | float | None = None,
    bandwidth: str | float | None = None,
    ridge: str | float | None = None,
    **given: float | None,
) -> Crossings:
    """Where MHA mode and MQA mode of a model's latent attention cross; one row a real root.

    Parameters: model, built-in ids, paths of config.json, or Models; hardware, needed for cost "time"; phase,
    "oneshot", "chunked", "decode" or "shared-prefix"; cost, "flops" (default) or "time" (default of a shared prefix,
    where the ratio of FLOPs does not depend on the batch); between, "modes", "indexer" (indexer
    against the attention core) or "dense" (sparse attention with its indexer against dense); tp, one or several
    degrees that divide the heads; kernel_heads or engine, how the MQA kernel pads heads; rate_ratio, MHA-mode FLOP
    rate over MQA-mode FLOP rate; at_length, solve for the rate ratio that puts the crossing at this length instead;
    gather, reuse of gathered rows; skip, whether missing keys of the first queries are skipped; topk, override of the
    model's (0 = dense attention); peak and bandwidth, or ridge, an ad hoc
    part; given, what the phase uses of batch, q_len, context, prefix, and widths: w_kv,
    kv_row_bytes, w_act, ...  Raises BadValue for a value that the phase would not use.

    >>> round(crossover("deepseek-v3.2").rows[0]["value"], 2)
    12812.96
    """
    hardware = with_adhoc(hardware, peak, bandwidth, ridge)
    check_heads(kernel_heads, engine)
    if gather not in ("none", "perfect"):
        raise UnknownName("gather reuse", gather, ("none", "perfect"))
    values = workload(phase, between, given)
    check_ratio(rate_ratio, at_length, between)
    if topk:
        glossary.check("topk", topk)
    cost = _cost(cost, phase, hardware)
    models = [load_model(m) for m in ([model] if isinstance(model, (str, Model)) else model)]
    parts = roofed(hardware, roof) if hardware is not None else None
    roofs = parts.pairs if parts else [(None, None)]
    options = {"cost": cost, "subject": between, "gather": gather, "skip": skip, "rate_ratio": rate_ratio}
    rows: list[dict[str, Any]] = []
    cases: list[Case | None] = []
    sections: list[Section] = []
    for m in models:
        for degree in degrees(tp):
            for part, r in roofs:
                padded = (
                    kernel_heads
                    if engine is None
                    else engines.padded_heads(engine, _rank_heads(m, degree))
                    if _is_mla(m)
                    else None
                )
                for row, case in _rows(
                    m, degree, part, r, phase, {**options, "kernel_heads": padded}, values, at_length, topk, sections
                ):
                    rows.append(row)
                    cases.append(case)
    inputs = {
        "phase": phase,
        "cost": cost,
        "between": between,
        "gather": gather,
        "skip": skip,
        "rate_ratio": rate_ratio,
        "at_length": at_length,
        "engine": engine,
        "kernel_heads": kernel_heads,
        "topk": topk,
        "tp": degrees(tp),
        **values,
    }
    none = "" if any(r["value"] is not None for r in rows) else "; ".join(dict.fromkeys(str(r["reason"]) for r in rows))
    skipped = parts.skipped if parts else []
    data = {
        "rows": rows,
        "inputs": inputs,
        "skipped": skipped,
        "article": deepcopy(_article()),
    }
    used = [parts.digest if parts else "", engines.data(), [dict(m.shape) for m in models]]
    return Crossings(
        "crossover",
        data,
        columns(rows),
        cases=tuple(cases),
        title=title(between, phase),
        notes=(*(parts.warnings if parts else ()), *notes(inputs, rows), *skipped_note(skipped)),
        sections=tuple(sections),
        digest=digest_of(*used),
        no_answer=none,
    )


def _cost(cost: str | None, phase: str, hardware: Any) -> str:
    """What is counted: FLOPs, but time for a shared prefix, where FLOPs never cross."""
    if cost is not None or phase != "shared-prefix":
        return cost or "flops"
    if hardware is None:
        wanted = "an accelerator: a shared prefix is compared by time"
        raise BadValue("hardware", "nothing", wanted, "cost flops has no crossing: its ratio is the same at any batch")
    return "time"


def _is_mla(model: Model) -> bool:
    return "latent" in model.shape


def _rank_heads(model: Model, tp: int) -> int:
    """Query heads of one rank; a degree that does not divide them is refused."""
    heads = model.shape["heads"]
    glossary.check("tp", tp)
    if heads % tp:
        divisors = [d for d in range(1, heads + 1) if heads % d == 0]
        raise BadValue("tp", tp, f"a divisor of the {heads} heads of {model.id}: {', '.join(map(str, divisors))}")
    return int(heads // tp)


def _rank_shape(model: Model, tp: int, topk: float | None) -> dict[str, Any]:
    """The attention shape of one rank: heads divide, everything else is replicated."""
    shape: dict[str, Any] = {name: model.shape[name] for name in MLA_SHAPE if name in model.shape}
    shape["heads"] = _rank_heads(model, tp)
    if topk is not None:
        shape["topk"] = topk
    return {k: v for k, v in shape.items() if k != "topk" or v}


def _rows(
    model: Model,
    tp: int,
    part: Any,
    roof: Any,
    phase: str,
    options: dict[str, Any],
    values: Mapping[str, float],
    at_length: float | None,
    topk: float | None,
    sections: list[Section],
) -> list[tuple[dict[str, Any], Case | None]]:
    """The rows of one model, degree and chip, each with the case it was solved from."""
    told = {
        "model": model.id,
        "phase": phase,
        "tp": tp,
        "cost": options["cost"],
        "between": options["subject"],
        "rate_ratio": options["rate_ratio"] if at_length is None else None,
        "hardware": part.id if part else None,
        "roof": roof.name if roof else None,
    }
    if not _is_mla(model):
        kinds = ", ".join(model.kinds())
        reason = f"{model.id} has no latent: MHA mode and MQA mode are modes of latent attention (kinds here: {kinds})"
        return [({**told, **_empty(), "reason": reason}, None)]
    shape = _rank_shape(model, tp, topk)
    if options["subject"] != "modes" and not {"topk", "index_heads"} <= shape.keys():
        return [({**told, **_empty(), "reason": f"{model.id} has no sparse attention, so no indexer"}, None)]
    chip = leg_rates(part, roof) if part else {}
    peaks = (
        {
            r.precision: r.peak
            for r in part.roofs
            if r.name == "datasheet" and r.has_rates and r.precision != roof.precision
        }
        if part
        else {}
    )
    rows: list[tuple[dict[str, Any], Case | None]] = []
    for convention, extra in _conventions(phase):
        case = Case(phase, shape, rates=chip, peaks=peaks, given={**values, **extra}, **options)
        found = [rate_ratio_at(case, at_length)] if at_length is not None else crossings(case)
        sections += explained(told, case, found)
        rows += [({**told, **_row(c, case, model, tp, convention)}, case) for c in found]
    return rows


def _conventions(phase: str) -> list[tuple[str, dict[str, Any]]]:
    """Expanded keys that are kept may hold the rotary part once for all heads or copied to each (as the "
    "paper counts)."""
    if phase != "shared-prefix":
        return [("", {})]
    copied = "rotary key stored per head (arXiv:2509.21081)"
    return [("rotary key stored once", {}), (copied, {"expanded_row_bytes": EXPANDED_ROW_PER_HEAD})]


def _empty() -> dict[str, Any]:
    keys = ("heads", "kernel_heads", "unknown", "value", "cheaper_below", "cheaper_above", "valid_from")
    return {**dict.fromkeys(keys), "conditions": [], "engine_thresholds": [], "measured": []}


def _row(crossing: Crossing, case: Case, model: Model, tp: int, convention: str) -> dict[str, Any]:
    shape, modes = dict(model.shape), case.subject == "modes"
    sparse = case.sparse and modes  # engines' tables and measured modules are those of sparse attention
    oneshot = case.phase == "oneshot" and sparse
    voices = (
        engines.thresholds(shape, tp, cached=case.phase == "chunked")
        if sparse and case.phase in ("oneshot", "chunked")
        else []
    )
    if crossing.unknown == "q_len" and modes:
        voices += engines.query_gates(int(case.shape["heads"]))
    exact = crossing.root.value if crossing.root else None
    return {
        "heads": case.shape["heads"],
        "convention": convention or None,
        "kernel_heads": case.kernel_heads or case.shape["heads"],
        "unknown": crossing.unknown,
        "value": crossing.value,
        "value_exact": str(exact) if exact is not None and crossing.root and crossing.root.is_exact else None,
        "cheaper_below": crossing.cheaper_below,
        "cheaper_above": crossing.cheaper_above,
        "valid_from": crossing.valid_from,
        "conditions": [
            *filter(None, [convention]),
            *crossing.conditions,
            *([crossing.root.branch] if crossing.root and crossing.root.branch else []),
        ],
        "reason": crossing.reason or None,
        "rejected": [
            {"value": float(r.value) if r.value.is_number and r.value.is_real else str(r.value), "reason": r.reason}
            for r in crossing.rejected
        ],
        "engine_thresholds": voices,
        "measured": engines.measured_crossings(shape, tp) if oneshot else [],
    }


@lru_cache(maxsize=1)
def _article() -> dict[str, Any]:
    """The article's two lengths as what they are: rate ratios of V3.2 with heads padded to 128, solved here."""
    data = engines.article_lengths()
    return {
        **{k: str(data[k]) for k in ("source", "url", "date")},
        "rows": [{**row, "rate_ratio": _article_ratio(row["tp"], row["length"])} for row in data["rows"]],
        "reading": "read off a plot, no constant of any engine; rate_ratio gives the same crossing, heads run as 128",
    }


def _article_ratio(tp: int, length: int) -> float | None:
    """The rate ratio that puts the one-shot crossing of V3.2 at a length, by FLOPs."""
    case = Case("oneshot", _rank_shape(load_model("deepseek-v3.2"), tp, None), kernel_heads=128)
    return rate_ratio_at(case, length).value
