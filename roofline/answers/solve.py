"""`roofline solve`: any quantity of any kernel, solved for any unknown."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import isfinite
from typing import Any

from roofline import glossary, law
from roofline.answer import Answer, Column, Section
from roofline.answers.common import Roofed, leg_rates, rates, roofed, skipped_note, with_adhoc
from roofline.errors import BadValue, UnknownName
from roofline.kernel import QUANTITIES, Cost
from roofline.kernels import kernel as find_kernel
from roofline.phases import on_phase
from roofline.solver import TARGETS, Solution, solve_cost
from roofline.symbols import latex, sym
from roofline.units import number

_COLUMNS = (
    Column("hardware", "accelerator"),
    Column("roof", "roof"),
    Column("unknown", "unknown"),
    Column("value", "value", show=lambda v: number(v, 6)),
    Column("expr", "exactly", show=lambda text: text if len(text) <= 60 else "see --json"),
    Column("conditions", "conditions"),
)


def solve(
    unknown: str,
    kernel: str | Cost | None = None,
    *,
    model: Any = None,
    parts: Collection[str] = (),
    equals_parts: Collection[str] = (),
    equals_kernel: str | Cost | None = None,
    quantity: str | None = None,
    target: str | float | None = None,
    phase: str | None = None,
    hardware: Any = None,
    roof: str | None = None,
    values: Mapping[str, float] | None = None,
    peak: str | float | None = None,
    bandwidth: str | float | None = None,
    ridge: str | float | None = None,
) -> Answer:
    """Every real root: a quantity of a kernel on the ridge, at a target, or equal to that of another kernel.

    Parameters: unknown, a glossary quantity; kernel and equals_kernel, ids or kernels of one's own; or model, for its
    whole step or the parts named (attention, indexer, experts, ffn, ...), against equals_parts; quantity,
    "intensity" (default), "flops" (default with equals_kernel), "bytes", "time", ...; target, "ridge" or a number in
    SI; phase, puts pairs and rows in; hardware and roof, whose ridge and rates are used (without, the roots stay in
    symbols); peak and bandwidth, or ridge, an ad hoc part; values, numbers for other quantities.

    >>> found = solve("heads", "mla_mqa", phase="decode", hardware="h800-sxm", roof="flashmla",
    ...               values=dict(w_kv=2, w_act=0, q_len=1, context=8191, latent=512, rope=64))
    >>> round(found.rows[0]["value"], 2)
    136.7
    """
    glossary.quantity(unknown)
    hardware = with_adhoc(hardware, peak, bandwidth, ridge)
    if quantity is not None and quantity not in TARGETS:
        raise UnknownName("quantity to solve for", quantity, TARGETS)
    numbers = {name: glossary.check(name, value) for name, value in (values or {}).items()}
    if model is not None and unknown == "tp":
        from roofline.answers.step_degree import link_binds

        return link_binds(model, hardware, phase=phase, roof=roof, values=numbers)
    first, second = _sides(kernel, equals_kernel, model, parts, equals_parts, phase)
    goal = _target(target, second, quantity)
    rows, reasons, left = [], [], []
    timed = (quantity or "").startswith("time")
    asked = Roofed([], [], "", ()) if hardware is None else roofed(hardware, roof, first.kernels[0].precision)
    name = quantity or ("flops" if second else "intensity")
    sections = [_formula(name, first, second)] if model is None else []
    for told, chip, without in _chips(asked, timed) if asked.pairs else [({}, {}, ())]:
        given = {**chip, **numbers}
        if model is None and "kernel_heads" not in numbers and unknown != "kernel_heads":
            given["kernel_heads"] = numbers.get("heads", sym.heads)  # heads are not padded unless said
        found = solve_cost(unknown, first, quantity=quantity, target=goal, equals=second, without=without, **given)
        rows += [{**told, **_row(root, unknown)} for root in found.roots]
        rows += [
            {
                **told,
                "unknown": unknown,
                "value": None,
                "expr": f"every value from {i.low} to {i.high}",
                "latex": None,
                "conditions": [str(c) for c in i.conditions],
                "residual": 0,
            }
            for i in found.intervals
        ]
        reasons += [] if found else [{**told, "reason": found.reason}]
        dropped = law.legs_left_out(first, chip) if timed and told else ()
        if dropped:
            left.append(f"{told['hardware']}: no leg of {', '.join(dropped)}, because no rate of it is sourced.")
        sections.append(_explained(told, found, first, second, goal, given))
    reason = "; ".join(dict.fromkeys(r["reason"] for r in reasons)) if reasons and not rows else ""
    data = {
        "roots": rows,
        "without_root": reasons,
        "reason": reason or None,
        "unknown": unknown,
        "kernel": first.name,
        "model": None if model is None else str(getattr(model, "id", model)),
        "phase": phase,
        "quantity": name,
        "target": str(goal) if goal is not None else None,
        "inputs": numbers,
        "skipped": asked.skipped,
    }
    return Answer(
        "solve",
        data,
        _shown(rows),
        table="roots",
        title=_title(data, second),
        notes=(*asked.warnings, *_notes(data, first), *left, *skipped_note(asked.skipped)),
        sections=(*sections, *_sources(first, second, asked)),
        digest=asked.digest,
        no_answer=reason,
    )


def _sides(
    kernel: Any,
    equals_kernel: Any,
    model: Any,
    parts: Collection[str],
    equals_parts: Collection[str],
    phase: str | None,
) -> tuple[Any, Any]:
    """The cost solved for and the one it shall equal: kernels, or parts of a model's step."""
    if (model is None) == (kernel is None):
        raise BadValue("kernel", kernel, "a kernel, or a model for its whole step, one of the two")
    if model is None:
        return _bound(kernel, phase), _bound(equals_kernel, phase) if equals_kernel is not None else None
    from roofline.answers.ledger import step_cost

    if equals_kernel is not None:
        raise BadValue("equals_kernel", equals_kernel, "equals_parts, beside a model")
    return step_cost(model, phase, parts), step_cost(model, phase, equals_parts) if equals_parts else None


def _bound(kernel: Any, phase: str | None) -> Any:
    cost = kernel if isinstance(kernel, Cost) else find_kernel(kernel)
    return on_phase(cost, phase) if phase else cost


def _target(target: Any, second: Any, quantity: str | None) -> Any:
    """ "ridge", a number, or nothing where another kernel is the target."""
    if second is not None:
        if target is not None:
            raise BadValue("target", target, "either a target or another kernel to be equal to, not both")
        return None
    if target is None:
        if quantity not in (None, "intensity"):
            raise BadValue(
                "target", "nothing", f"a number in SI units for {quantity}, or another kernel to be equal to"
            )
        return "ridge"
    if target == "ridge":
        return target
    try:
        value = float(target)
    except (TypeError, ValueError):
        raise BadValue("target", target, "ridge, or a number in SI units") from None
    if not 0 < value < float("inf"):
        raise BadValue("target", target, "ridge, or a finite number > 0 in SI units")
    return value


def _chips(asked: Roofed, timed: bool) -> list[tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]]:
    """Who is asked, the rates put in, and the legs whose rate is not known."""
    chips = []
    for part, r in asked.pairs:
        chip = leg_rates(part, r) if timed else rates(r)
        if timed and not r.has_rates:
            chip = {"peak": r.peak}  # raises: a time needs rates, not a bare ridge
        without = tuple(leg for leg, (_, rate) in law.LEGS.items() if timed and rate not in chip)
        chips.append(
            (
                {"hardware": part.id, "roof": r.name, "precision": r.precision, "ridge_flop_per_byte": r.ridge},
                chip,
                without,
            )
        )
    return chips


def _row(root: Any, unknown: str) -> dict[str, Any]:
    value = float(root.value) if root.value.is_number else None
    if value is not None and not isfinite(value):
        raise BadValue(unknown, root.value, "a finite result", "the numbers given are too large")
    return {
        "unknown": unknown,
        "value": value,
        "expr": str(root.value),
        "latex": root.latex,
        "conditions": [str(c) for c in root.conditions],
        "residual": float(root.residual),
        "exact": root.is_exact,
        "branch": root.branch,
    }


def _explained(
    told: Mapping[str, Any], found: Solution, first: Any, second: Any, goal: Any, given: Mapping[str, Any]
) -> Section:
    lines = [f"{first.name}: {first.title}"] + (
        [f"equal to {second.name}: {second.title}"] if second else [f"target: {goal}"]
    )
    lines += [
        f"{name} = {number(value, 6) if isinstance(value, (int, float)) else value}" for name, value in given.items()
    ]
    lines += [f"rejected: {r.reason}" for r in found.rejected]
    if found.limit_low is not None and found.limit_high is not None:
        lines.append(
            f"limits over the range: {found.limit_low} and {found.limit_high}"
            + (f", {found.trend}" if found.trend else "")
        )
    lines += [f"jump at {j.at}: from {j.before} to {j.after}" for j in found.jumps]
    title = f"{told['hardware']} [{told['roof']}, {told['precision']}]" if told else "Solved"
    return Section(title, tuple(lines), tuple(root.latex for root in found.roots))


def _formula(name: str, first: Any, second: Any) -> Section:
    """The quantity that is solved for, in symbols."""
    cost = {"time": law.time_lower, "time_lower": law.time_lower, "time_upper": law.time_upper}
    sides = [side for side in (first, second) if side is not None]
    shown = [latex(cost[name](side) if name in cost else side.quantity(name)) for side in sides if _shows(side, name)]
    symbol = glossary.GLOSSARY["time_lower" if name == "time" else name].latex
    return Section(f"Formula of {name}", (), tuple(f"{symbol} = {tex}" for tex in shown))


def _shows(side: Any, name: str) -> bool:
    """Whether the quantity has a formula: intensity needs bytes."""
    return name not in QUANTITIES or name != "intensity" or side.bytes != 0


def _sources(first: Any, second: Any, asked: Roofed) -> tuple[Section, ...]:
    """Where the kernels and the roofs come from."""
    kernels = dict.fromkeys(k for side in (first, second) if side is not None for k in side.kernels)
    lines = [f"{k.name}: {k.source}" for k in kernels if k.source]
    lines += [f"{part.id} [{r.name}, {r.kind}]: {r.source}" for part, r in asked.pairs if r.source]
    return (Section("Sources", tuple(dict.fromkeys(lines))),) if lines else ()


def _shown(rows: list[dict[str, Any]]) -> tuple[Column, ...]:
    return tuple(c for c in _COLUMNS if any(row.get(c.key) not in (None, []) for row in rows))


def _title(data: Mapping[str, Any], second: Any) -> str:
    goal = f"that of {second.name}" if second else data["target"]
    return f"{data['unknown']} at which the {data['quantity']} of {data['kernel']} equals {goal}"


def _notes(data: Mapping[str, Any], first: Any) -> tuple[str, ...]:
    inputs = ", ".join(f"{k} = {number(v, 6)}" for k, v in data["inputs"].items()) or "none"
    free = {s.name for s in first.free_symbols} if data["model"] is None else set()
    if "kernel_heads" in free and "kernel_heads" not in data["inputs"] and data["unknown"] != "kernel_heads":
        inputs += "; kernel_heads = heads (not padded)"
    phase = data["phase"] or ("decode" if data["model"] else "")
    unset = "; phase not set: pairs and rows_read are symbols" if {"pairs", "rows_read"} & free else ""
    notes = [f"Numbers put in: {inputs}{'; phase ' + phase if phase else unset}."]
    notes += [f"{r.get('hardware', 'no root')}: {r['reason']}" for r in data["without_root"]]
    others = sorted({k.precision for k in first.kernels if k.flops != 0} - {"bf16"})
    if data["model"] and data["target"] == "ridge" and others:
        notes.append(
            f"The ridge is that of bf16; this step also runs products in {', '.join(others)}, whose ridges lie higher: "
            "`roofline step` weighs them (batch_at_ridge)."
        )
    omits = sorted({o for k in first.kernels for o in k.omits})
    return (*notes, f"Left out: {'; '.join(omits)}." if omits else "")
