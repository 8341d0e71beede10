"""The step of a model as a cost in symbols: what `roofline formula --model` prints and `solve --model` solves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from roofline.answer import Answer, Column
from roofline.errors import BadValue, UnknownName
from roofline.glossary import GLOSSARY
from roofline.models import Model, load_model
from roofline.plan import PHASES, Step, Workload, plan
from roofline.symbols import latex
from roofline.units import number

TOTALS = ("flops", "bytes", "exps", "vector_flops", "link_bytes")


def step_cost(model: str | Model, phase: str | None = None, parts: Collection[str] = ()) -> Any:
    """The step of a model on one device as a `Sequence`, workload in symbols.

    parts: only these, such as attention, indexer, experts, ffn, head; none is all of them.
    """
    step = _step(model, phase)
    known = tuple(dict.fromkeys(use.part for use in step.uses))
    for part in parts:
        if part not in known:
            raise UnknownName(f"part of {step.model.id}", part, known)
    return step.cost(tuple(parts) or None)


def _step(model: str | Model, phase: str | None) -> Step:
    """The step on one device."""
    if phase not in (None, *PHASES):
        raise UnknownName("phase of a step", phase, PHASES)
    return plan(load_model(model), Workload(phase or "decode"))


def ledger(
    model: str | Model,
    *,
    quantity: str | None = None,
    phase: str | None = None,
    values: Mapping[str, float] | None = None,
) -> Answer:
    """Every kernel of a step with how often it runs and its formulas, and the totals, in symbols or with numbers.

    >>> ledger("llama-3.1-8b", values=dict(batch=1, q_len=1))["totals"][0]["text"]
    '524288*(context + 1) + 15009316864'
    """
    if quantity is not None and quantity not in (*TOTALS, "intensity"):
        raise UnknownName("quantity of a step", quantity, (*TOTALS, "intensity"))
    values = dict(values or {})
    step = _step(model, phase)
    whole = step.cost().bind(**values)
    shown = [quantity] if quantity in TOTALS else ["flops", "bytes"]
    rows = [_row(use.name, kernel, shown) for use, kernel in zip(step.uses, whole.kernels, strict=True)]
    names = [quantity] if quantity else [*(q for q in TOTALS if _expr(whole, q) != 0), "intensity"]
    totals = [_total(whole, name) for name in names]
    columns = [
        Column("use", "kernel"),
        Column("runs", "runs", show=number),
        *(Column(name, f"{name} of one run") for name in shown),
    ]
    notes = [f"{t['quantity']} of the step [{t['unit']}]: {t['text']}" for t in totals]
    put_in = ", ".join(f"{k} = {number(v)}" for k, v in values.items()) or "none: the workload is symbols"
    data = {
        "model": whole.name.split(":")[0],
        "rows": rows,
        "totals": totals,
        "inputs": values,
        "phase": phase or "decode",
        "quantities": totals,
    }
    return Answer(
        "ledger", data, columns, title=whole.title, notes=(*notes, f"Numbers put in: {put_in}. One device, TP 1.")
    )


def _row(use: str, kernel: Any, names: list[str]) -> dict[str, Any]:
    return {
        "use": use,
        "kernel": kernel.name,
        "runs": float(kernel.times),
        "precision": kernel.precision,
        **{name: str(_expr(kernel, name)) for name in names},
    }


def _expr(cost: Any, name: str) -> Any:
    """A total of the step; bytes sent to other devices are one too."""
    return cost.total("link") if name == "link_bytes" else cost.quantity(name)


def _total(cost: Any, name: str) -> dict[str, Any]:
    expr = _expr(cost, name)
    if expr.is_number and not expr.is_finite:
        raise BadValue(name, expr, "a finite result")
    return {
        "quantity": name,
        "unit": GLOSSARY[name].unit,
        "text": str(expr),
        "latex": f"{GLOSSARY[name].latex} = {latex(expr)}",
        "value": float(expr) if expr.is_number else None,
    }
