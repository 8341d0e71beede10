"""How the answer of `roofline crossover` is told: columns, notes, explanation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roofline import law
from roofline.answer import Column, Section
from roofline.answers.crossover_inputs import in_words
from roofline.crossovers import Case, Crossing, sides
from roofline.symbols import latex
from roofline.units import number

LEFT_OUT = {
    "modes": "Left out: indexer and top-k selection (both modes of a sparse model run them), mask bits, launch gaps, "
    "softmax rescaling, fixed cost per call. Measured crossings of whole modules lie far above those of the attention "
    "cores.",
    "indexer": "Left out: projections of indexer and attention, top-k selection, launch gaps, softmax rescaling, fixed "
    "cost per call.",
    "dense": "Left out: projections, which both sides share but for the indexer's own, top-k selection, launch gaps, "
    "softmax rescaling, fixed cost per call.",
}


def title(between: str, phase: str) -> str:
    subject = {
        "modes": "MHA mode against MQA mode",
        "indexer": "Indexer against the attention core",
        "dense": "Dense attention against sparse with its indexer",
    }
    return f"{subject[between]}, {phase}"


def columns(rows: list[dict[str, Any]]) -> tuple[Column, ...]:
    def threshold(voices: Any) -> str:
        own = [v for v in voices if v["engine"] == "vLLM" and "seq_len" in v]
        return "; ".join(f"{v['backend']} {bracket(v)}" for v in own) or "-"

    columns = [
        Column("model", "model"),
        Column("hardware", "chip"),
        Column("roof", "roof"),
        Column("tp", "TP", flush_right=True),
        Column("heads", "heads", flush_right=True),
        Column("kernel_heads", "run as", flush_right=True),
        Column("rate_ratio", "rate ratio", flush_right=True),
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
        if c.key not in ("hardware", "roof", "convention", "engine_thresholds") or any(r.get(c.key) for r in rows)
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


def notes(inputs: Mapping[str, Any], rows: list[dict[str, Any]]) -> tuple[str, ...]:
    notes = [f"Inputs: {in_words(inputs, inputs['phase'])}."]
    notes += dict.fromkeys(f"{who(r)}: {r['reason']}" for r in rows if r["reason"])
    measured = list(dict.fromkeys(_measured_text(m) for r in rows for m in r["measured"]))
    if measured:
        notes.append("Measured, whole modules (projections, indexer, top-k): " + "; ".join(measured) + ".")
    if any(r["engine_thresholds"] for r in rows):
        notes.append(
            "`vLLM's own table` is empirical (last length run in MHA mode, next that is not), not a result "
            "of this model; --json has all engines with date and source."
        )
    return (*notes, LEFT_OUT[inputs["between"]])


def who(row: Mapping[str, Any]) -> str:
    """Model, degree, chip and roof of a row, in words."""
    chip = f", {row['hardware']} [{row['roof']}]" if row["hardware"] else ""
    return f"{row['model']}, TP {row['tp']}{chip}"


def _measured_text(entry: Mapping[str, Any]) -> str:
    where = f"{entry['hardware']} TP {entry['tp']}"
    return (
        f"{where} {number(entry['seq_len'])}"
        if entry["seq_len"]
        else f"{where} no crossing up to {number(entry['measured_to'])}"
    )


def explained(row: Mapping[str, Any], case: Case, found: list[Crossing]) -> list[Section]:
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
    if case.cost == "time":
        rates = ", ".join(f"{name} = {number(value)}" for name, value in case.rates.items())
        lines += [f"rates: {rates}"] if rates else []
        dropped = dict.fromkeys(leg for side in (first, second) for leg in law.legs_left_out(side, case.rates))
        lines += [f"no leg of {', '.join(dropped)}: no rate of it is sourced"] if dropped else []
    return [Section(who(row), tuple(dict.fromkeys(lines)), tuple(dict.fromkeys(formulas)))]
