"""The data behind the figure `crossover`: cost per query of both sides, crossings, and what others say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from roofline.answers.common import chosen, roof_for
from roofline.answers.crossover import Crossings, crossover
from roofline.answers.plotted_marks import marks
from roofline.crossovers import SUBJECTS, UNKNOWNS, Case, equation
from roofline.errors import BadValue, NoAnswer, UnknownName
from roofline.evaluate import evaluate
from roofline.models import Model, load_model
from roofline.phases import check_phase
from roofline.units import number

SIDES = {
    "mha": "MHA mode",
    "mqa": "MQA mode",
    "indexer": "indexer",
    "attention": "attention core",
    "dense": "dense",
    "dsa": "sparse with indexer",
}
TITLES = {
    "modes": "MHA mode against MQA mode",
    "indexer": "indexer against attention core",
    "dense": "dense against sparse attention",
}
AXES = {
    "seq_len": "sequence length [tokens]",
    "q_len": "new tokens per sequence (chunk)",
    "batch": "sequences in the batch",
}
PER_OCTAVE = 8
Record = dict[str, Any]
Variant = tuple[int, str]  # TP degree, convention


def crossover_data(
    model: str | Model = "deepseek-v3.2",
    hardware: Any = None,
    *,
    unknown: str | None = None,
    phase: str = "oneshot",
    cost: str = "flops",
    between: str = "modes",
    roof: str | None = None,
    tp: int | Iterable[int] = 1,
    topk: float | None = None,
    **options: Any,
) -> tuple[Record, Crossings]:
    """Curves of both sides for each TP degree, every crossing, and the thresholds and measurements beside it."""
    unknown = _unknown(unknown, check_phase(phase), between, options.pop("at_length", None))
    options = {k: v for k, v in options.items() if v is not None}
    part, r = _chip(hardware, roof) if hardware is not None else (None, None)
    whole = load_model(model)
    answer = crossover(whole, part, phase=phase, cost=cost, between=between, roof=roof, tp=tp, topk=topk, **options)
    scene = crossover_scene(answer, unknown, part, r)
    rows, cases, key = scene["rows"], scene.pop("cases"), scene["axis"]["key"]
    domain = octaves(places(rows, scene["marks"]))
    lines = _lines(cases, unknown, domain, rows, key)
    seen = [c for line in lines for c in line[key]]
    data = {
        **scene,
        "lines": lines,
        "crossings": [_crossing(row, cases, unknown, key) for row in rows if row["value"] is not None],
        "domain": {"unknown": domain, key: [min(seen) / 1.3, max(seen) * 1.6]},
    }
    return data, answer


def crossover_scene(answer: Crossings, unknown: str | None = None, part: Any = None, roof: Any = None) -> Record:
    """What stands on the axis of one unknown beside the curves themselves: rows, windows, thresholds, names.

    Parameters: answer, of `crossover` for one model; unknown (default the first of the phase); part and roof, where
    its cost is time.  `cases` are those of the curves, by TP degree and convention.  Raises NoAnswer with the reason
    where there is nothing to draw.
    """
    asked = answer["inputs"]
    unknown = _unknown(unknown, asked["phase"], asked["between"], None)
    own = [
        (row, case) for row, case in zip(answer.rows, answer.cases, strict=True) if row["unknown"] in (unknown, None)
    ]
    rows = [row for row, _ in own]
    cases = {_variant(row): case for row, case in own if case is not None}
    if not cases:
        raise NoAnswer(str(rows[0]["reason"]))
    found = marks(rows, unknown, asked.get("context", 0))
    return {
        "rows": rows,
        "cases": cases,
        "windows": _windows(rows),
        "marks": [m for m in found if m["items"] or (unknown == "seq_len" and m["label"])],
        "unknown": unknown,
        "inputs": asked,
        "axis": _axis(unknown, asked["cost"], roof),
        "title": _title(asked, part, roof, rows),
    }


def _unknown(unknown: str | None, phase: str, between: str, at_length: Any) -> str:
    if at_length is not None:
        raise BadValue("at_length", at_length, "none: the figure has the crossing for the rate ratio given")
    known = UNKNOWNS[phase] if between == "modes" else UNKNOWNS[phase][:1]
    if unknown is not None and unknown not in known:
        told = "" if between == "modes" else f" between {between}"
        raise UnknownName(f"axis of phase {phase}{told}", unknown, known)
    return unknown or known[0]


def _chip(hardware: Any, roof: str | None) -> tuple[Any, Any]:
    parts = chosen(hardware).parts
    if len(parts) != 1:
        raise BadValue("hardware", ", ".join(p.id for p in parts), "one accelerator for a crossover figure")
    return parts[0], roof_for(parts[0], roof)


def _variant(row: Mapping[str, Any]) -> Variant:
    return row["tp"], row["convention"] or ""


def _per_query(case: Case, unknown: str, at: list[float]) -> list[list[float]]:
    """Cost of both sides per query token, at each value of the unknown."""
    from roofline.symbols import exact, sym

    batch = sym.batch if unknown == "batch" else exact(case.given.get("batch", 1))
    queries = (
        sym.seq_len
        if case.phase == "oneshot"
        else sym.q_len
        if unknown == "q_len"
        else exact(case.given.get("q_len", 1))
    )
    return [
        [float(v) for v in evaluate(total / (batch * queries), **{unknown: at})] for total in equation(case, unknown)
    ]


def _lines(cases: Mapping[Variant, Case], unknown: str, domain: list[float], rows: list[Any], key: str) -> list[Record]:
    """A curve for each side and variant; variants with the same curve share one."""
    low, high = (round(PER_OCTAVE * math.log2(d)) for d in domain)
    exact = {float(row[k]) for row in rows for k in ("value", "valid_from") if row[k]}
    at = sorted(
        {2.0 ** (k / PER_OCTAVE) for k in range(low, high + 1)} | {x for x in exact if domain[0] < x < domain[1]}
    )
    found: dict[tuple[Any, ...], Record] = {}
    for series, (variant, case) in enumerate(cases.items()):
        for name, cost in zip(SUBJECTS[case.subject], _per_query(case, unknown, at), strict=True):
            line = found.setdefault(
                (name, *cost), {"side": name, "series": [], "variants": [], "unknown": at, key: cost}
            )
            line["series"].append(series)
            line["variants"].append(variant)
    for line in found.values():
        line["label"] = ", ".join(filter(None, [SIDES[line["side"]], told(line["variants"], list(cases))]))
        line["tp"] = list(dict.fromkeys(tp for tp, _ in line.pop("variants")))
    return sorted(found.values(), key=lambda line: list(SIDES).index(line["side"]))


def told(variants: Sequence[Variant], every: Sequence[Variant]) -> str:
    """What sets these variants apart from the others of the figure, in words."""
    degrees, conventions = (list(dict.fromkeys(v[i] for v in variants)) for i in (0, 1))
    said = [f"TP {'/'.join(map(str, degrees))}"] if len({tp for tp, _ in every}) > 1 else []
    if len({c for _, c in every}) > len(conventions):
        said += [str(c).split(" (")[0] for c in conventions]
    return ", ".join(said)


def _crossing(row: Mapping[str, Any], cases: Mapping[Variant, Case], unknown: str, key: str) -> Record:
    variant, several = _variant(row), len({tp for tp, _ in cases}) > 1
    cost = _per_query(cases[variant], unknown, [row["value"]])[0][0]
    text = (f"TP {row['tp']}: " if several else "") + number(
        round(row["value"]) if row["value"] >= 1000 else row["value"]
    )
    return {
        "series": list(cases).index(variant),
        "tp": row["tp"],
        "value": row["value"],
        key: cost,
        "label": text,
        "cheaper_below": row["cheaper_below"],
        "cheaper_above": row["cheaper_above"],
    }


def _windows(rows: list[Any]) -> list[Record]:
    """Where a side is cheaper between two crossings only; TP degrees with the same window share one."""
    found: dict[tuple[Any, ...], Record] = {}
    for a, b in pairwise(rows):
        if (
            a["value"] is not None
            and b["value"] is not None
            and _variant(a) == _variant(b)
            and a["cheaper_above"] == b["cheaper_below"]
        ):
            window = {"tp": [], "low": a["value"], "high": b["value"], "cheaper": a["cheaper_above"]}
            found.setdefault((a["value"], b["value"]), window)["tp"].append(a["tp"])
    several = len({row["tp"] for row in rows}) > 1
    for w in found.values():
        w["label"] = (
            f"{SIDES.get(w['cheaper'], w['cheaper'])} cheaper: {number(round(w['low']))} to {number(round(w['high']))}"
        )
        w["label"] += f" (TP {'/'.join(map(str, w['tp']))})" if several else ""
    return list(found.values())


def places(rows: Iterable[Any], found: Iterable[Record]) -> list[float]:
    """Everything that has a place on the axis: crossings, lower ends, thresholds, measurements."""
    held = [float(row[k]) for row in rows for k in ("value", "valid_from") if row[k]]
    return held + [float(item[k]) for m in found for item in m["items"] for k in ("at", "from") if item.get(k)]


def octaves(held: Iterable[float]) -> list[float]:
    """Ends of an axis: whole octaves around places on it, at least four."""
    known = [p for p in held if p > 0] or [1024, 32768]
    low, high = max(0, math.floor(math.log2(min(known))) - 1), math.ceil(math.log2(max(known))) + 1
    return [2.0**low, 2.0 ** max(high, low + 4)]


def _axis(unknown: str, cost: str, roof: Any) -> Record:
    name = "FLOPs per query, layer and rank" if cost == "flops" else "time bound per query, layer and rank"
    unit = (
        "flop" if cost == "flops" else "s" if roof.has_rates else "relative"
    )  # of a bare ridge only relative times are known
    return {"unknown": AXES[unknown], "cost": name, "unit": unit, "key": f"cost_{unit}"}


def _title(asked: Mapping[str, Any], part: Any, roof: Any, rows: list[Any]) -> str:
    if asked["cost"] == "flops":
        what = "FLOPs of the formulas, no chip"
    else:
        what = f"time bound from the roof {roof.name} of {part.name}"
    padded = sorted({r["kernel_heads"] for r in rows if r["kernel_heads"] != r["heads"]})
    ratio = f", rate ratio {number(rows[0]['rate_ratio'])}" if rows[0]["rate_ratio"] != 1 else ""
    return f"{rows[0]['model']}, {asked['phase']}: {TITLES[asked['between']]}; {what}{ratio}" + (
        f", heads run as {'/'.join(map(str, padded))}" if padded else ""
    )
