"""`roofline crossover`: at which length, query count or batch MHA mode and MQA mode cost the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from roofline import engines, glossary
from roofline.answer import Answer, Column, Section
from roofline.answers.common import chosen, leg_rates
from roofline.crossovers import Case, Crossing, crossings, rate_ratio_at, sides
from roofline.errors import BadValue, UnknownName
from roofline.kernels.mla import EXPANDED_ROW_PER_HEAD
from roofline.models import Model, load_model
from roofline.symbols import latex
from roofline.units import number

MLA_SHAPE = ("heads", "latent", "rope", "nope", "value", "topk", "index_heads", "index_head_dim")
PHASE_NEEDS = {"chunked": ("context",), "decode": ("context",)}
CONTEXT = 8192  # cached tokens where a phase needs them and none are given
OMITS = (
    "Left out: indexer and top-k selection (both modes of a sparse model run them), mask bits, launch gaps, "
    "softmax rescaling, "
    "fixed cost per call. Measured crossings of whole modules lie far above those of the attention cores."
)


@dataclass(frozen=True, repr=False)
class Crossings(Answer):
    """An answer that also holds, for each row, the `Case` that it was solved from (None where there was none)."""

    cases: tuple[Case | None, ...] = ()


def crossover(
    model: str | Model | Iterable[str | Model] = ("deepseek-v3.2", "glm-5"),
    hardware: Any = None,
    *,
    phase: str = "oneshot",
    cost: str = "flops",
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
    **given: float | None,
) -> Crossings:
    """Where MHA mode and MQA mode of a model's latent attention cross; one row a real root.

    Parameters: model, built-in ids, paths of config.json, or Models; hardware, needed for cost "time"; phase,
    "oneshot", "chunked", "decode" or "shared-prefix"; cost, "flops" or "time"; between, "modes", "indexer" (indexer
    against the attention core) or "dense" (sparse attention with its indexer against dense); tp, one or several
    degrees that divide the heads; kernel_heads or engine, how the MQA kernel pads heads; rate_ratio, MHA-mode FLOP
    rate over MQA-mode FLOP rate; at_length, solve for the rate ratio that puts the crossing at this length instead;
    gather, reuse of gathered rows; skip, whether missing keys of the first queries are skipped; topk, override of the
    model's (0 = dense attention); given, batch, q_len, context, prefix, w_kv, kv_row_bytes, w_act, ...

    >>> round(crossover("deepseek-v3.2").rows[0]["value"], 2)
    12812.96
    """
    if kernel_heads is not None and engine is not None:
        raise BadValue("engine", engine, "either kernel_heads or engine, not both")
    if gather not in ("none", "perfect"):
        raise UnknownName("gather reuse", gather, ("none", "perfect"))
    values = {k: glossary.check(k, v) for k, v in given.items() if v is not None}
    values = dict.fromkeys(PHASE_NEEDS.get(phase, ()), CONTEXT) | values
    glossary.check("rate_ratio", rate_ratio)
    models = [
        m if isinstance(m, Model) else load_model(m) for m in ([model] if isinstance(model, (str, Model)) else model)
    ]
    parts = chosen(hardware) if hardware is not None else None
    roofs = [(p, p.roof(roof or "datasheet")) for p in parts.parts] if parts else [(None, None)]
    options = {"cost": cost, "subject": between, "gather": gather, "skip": skip, "rate_ratio": rate_ratio}
    rows: list[dict[str, Any]] = []
    cases: list[Case | None] = []
    sections: list[Section] = []
    for m in models:
        for degree in [tp] if isinstance(tp, int) else list(tp):
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
        **values,
    }
    none = "" if any(r["value"] is not None for r in rows) else "; ".join(dict.fromkeys(str(r["reason"]) for r in rows))
    data = {"rows": rows, "inputs": inputs, "article": _article()}
    return Crossings(
        "crossover",
        data,
        _columns(rows),
        cases=tuple(cases),
        title=_title(between, phase),
        notes=_notes(inputs, rows),
        sections=tuple(sections),
        digest=parts.digest if parts else "",
        no_answer=none,
    )


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
        "rate_ratio": options["rate_ratio"],
        "hardware": part.id if part else None,
        "roof": roof.name if roof else None,
    }
    if not _is_mla(model):
        kinds = ", ".join(model.kinds())
        reason = f"{model.id} has no latent: MHA mode and MQA mode are modes of latent attention (kinds here: {kinds})"
        return [({**told, **_empty(), "reason": reason}, None)]
    shape = _rank_shape(model, tp, topk)
    if options["subject"] != "modes" and "topk" not in shape:
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
        sections += _explained(model, tp, case, found)
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
    oneshot = case.phase == "oneshot" and modes
    voices = (
        engines.thresholds(shape, tp, cached=case.phase == "chunked")
        if modes and case.phase in ("oneshot", "chunked")
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


def _article() -> dict[str, Any]:
    """The article's two lengths as what they are: rate ratios, for 128 heads run as 128."""
    data = engines.article_lengths()
    return {
        **{k: str(data[k]) for k in ("source", "url", "date")},
        "rows": data["rows"],
        "reading": "read off a plot; as rate ratios with heads padded to 128 they are 0.4515 (5,000 at TP 1) "
        "and 0.7005 (77,000 at TP 8)",
    }


def _title(between: str, phase: str) -> str:
    subject = {
        "modes": "MHA mode against MQA mode",
        "indexer": "Indexer against the attention core",
        "dense": "Dense attention against sparse with its indexer",
    }
    return f"{subject[between]}, {phase}"


def _columns(rows: list[dict[str, Any]]) -> tuple[Column, ...]:
    def threshold(voices: Any) -> str:
        own = [v for v in voices if v["engine"] == "vLLM" and "seq_len" in v]
        return "; ".join(f"{v['backend']} {bracket(v)}" for v in own) or "-"

    columns = [
        Column("model", "model"),
        Column("hardware", "chip"),
        Column("tp", "TP"),
        Column("heads", "heads"),
        Column("kernel_heads", "run as"),
        Column("rate_ratio", "rate ratio"),
        Column("unknown", "unknown"),
        Column("value", "crossing", show=number),
        Column("cheaper_below", "cheaper below"),
        Column("cheaper_above", "cheaper above"),
        Column("engine_thresholds", "vLLM's own table", show=threshold),
        Column("convention", "convention"),
    ]
    return tuple(
        c
        for c in columns
        if c.key not in ("hardware", "convention", "engine_thresholds") or any(r.get(c.key) for r in rows)
    )


def bracket(voice: Mapping[str, Any]) -> str:
    """An engine's own threshold in words: the length it still runs in MHA mode, and the next that it does not."""
    if not voice["seq_len"]:
        return "never"
    beyond = voice["next_seq_len"]
    return (
        f"{number(voice['seq_len'])} to {number(beyond)}"
        if beyond
        else f"up to {number(voice['seq_len'])}, where the table ends"
    )


def _notes(inputs: Mapping[str, Any], rows: list[dict[str, Any]]) -> tuple[str, ...]:
    shown = ", ".join(
        f"{k} = {number(v) if isinstance(v, (int, float)) and not isinstance(v, bool) else v}"
        for k, v in inputs.items()
        if v is not None
    )
    notes = [f"Inputs: {shown}."]
    notes += [f"{r['model']}, TP {r['tp']}: {r['reason']}" for r in rows if r["reason"]]
    measured = [m for r in rows for m in r["measured"]]
    if measured:
        notes.append(
            "Measured, whole modules (projections, indexer, top-k): " + "; ".join(map(_measured_text, measured)) + "."
        )
    if any(r["engine_thresholds"] for r in rows):
        notes.append(
            "`vLLM's own table` is empirical (last length run in MHA mode, next that is not), not a result "
            "of this model; --json has all engines with date and source."
        )
    return (*notes, OMITS)


def _measured_text(entry: Mapping[str, Any]) -> str:
    where = f"{entry['hardware']} TP {entry['tp']}"
    return (
        f"{where} {number(entry['seq_len'])}"
        if entry["seq_len"]
        else f"{where} no crossing up to {number(entry['measured_to'])}"
    )


def _explained(model: Model, tp: int, case: Case, found: list[Crossing]) -> list[Section]:
    """The equation with numbers put in, its roots and the rejected ones."""
    first, second = sides(case)
    lines = [f"{name}: {side.title}" for name, side in zip(("first side", "second side"), (first, second), strict=True)]
    lines += [f"{k.name}: {k.source}" for k in dict.fromkeys((*first.kernels, *second.kernels))]
    formulas = []
    for crossing in found:
        formulas.append(f"{latex(crossing.lhs)} = {latex(crossing.rhs)}")
        if crossing.root:
            formulas.append(rf"{crossing.root.latex} \approx {crossing.value:.6g}")
        lines += [f"rejected: {r.reason}" for r in crossing.rejected]
    return [Section(f"{model.id}, TP {tp}", tuple(dict.fromkeys(lines)), tuple(dict.fromkeys(formulas)))]
