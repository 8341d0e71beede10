"""`roofline formula`: the formulas of a kernel, in symbols or with numbers put in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp

from roofline import law
from roofline.answer import Answer, Column, Section
from roofline.errors import BadValue, UnknownName
from roofline.glossary import GLOSSARY, SYNONYMS, check
from roofline.kernel import QUANTITIES, Kernel
from roofline.kernels import KERNELS
from roofline.kernels import kernel as find_kernel
from roofline.phases import on_phase
from roofline.solver.sensitivity import elasticities
from roofline.symbols import SYMBOLS, exact, latex
from roofline.units import number

TIMES = ("time_lower", "time_upper")
ASKED = (*QUANTITIES, *TIMES)
RATES = tuple(rate for _, rate in law.LEGS.values())
_UNITS = {name: GLOSSARY[name].unit for name in ASKED}


def formula(
    kernel: str | Kernel | None = None,
    *,
    model: Any = None,
    quantity: str | None = None,
    phase: str | None = None,
    values: Mapping[str, float] | None = None,
) -> Answer:
    """The formulas of a kernel; without a kernel, the list of kernels.

    Parameters: kernel, an id or a Kernel of one's own; model, an id, path or Model, for the ledger of its whole step
    instead; quantity, one of flops, vector_flops, exps, bytes, intensity,
    time_lower, time_upper (default all totals that are not zero); phase, "decode", "chunked", "oneshot" or
    "shared-prefix" to put in pairs and rows;
    values, numbers for glossary quantities (what `--set` gives).

    >>> formula("mla_mqa", quantity="flops")["quantities"][0]["text"]
    '2*batch*kernel_heads*pairs*(2*latent + rope)'
    """
    if model is not None:
        from roofline.answers.ledger import ledger

        return ledger(model, quantity=quantity, phase=phase, values=values)
    if kernel is None:
        return kernel_list()
    chosen: Any = find_kernel(kernel)
    values = {name: check(name, value) for name, value in (values or {}).items()}
    if quantity is not None and quantity not in ASKED:
        raise UnknownName("kernel quantity", quantity, ASKED)
    phased = on_phase(chosen, phase) if phase else chosen
    bound = phased.bind(**{k: v for k, v in values.items() if k not in RATES})
    names = [quantity] if quantity else [q for q in QUANTITIES if q == "bytes" or _total(bound, q) != 0]
    rows = [_quantity_row(bound, name, values) for name in names]
    moved = _elasticities(phased, rows, values)
    data = {
        "kernel": chosen.name,
        "title": chosen.title,
        "quantities": rows,
        "phase": phase,
        "inputs": dict(values),
        "terms": [_term_row(term, size) for term, size in bound.parts()],
        "defaults": {str(k): str(v) for k, v in bound.bindings.items() if k not in map(SYMBOLS.get, values)},
        "assumes": list(chosen.assumes),
        "omits": list(chosen.omits),
        "source": chosen.source,
        "precision": chosen.precision,
        "elasticities": moved,
        "symbols": [_symbol_row(s) for s in sorted(map(str, bound.free_symbols))],
    }
    columns = (
        Column("quantity", "quantity"),
        Column("unit", "unit"),
        Column("value_text", "value"),
        Column("text", "formula"),
    )
    return Answer(
        "formula",
        data,
        columns,
        table="quantities",
        title=f"{chosen.name}: {chosen.title}",
        notes=_notes(chosen),
        sections=_sections(data),
    )


def _total(cost: Any, name: str) -> sp.Expr:
    """A quantity, with intensity counted as absent where nothing is computed."""
    return cost.flops if name == "intensity" else cost.quantity(name)


def kernel_list() -> Answer:
    """All kernels."""
    rows = [
        {
            "kernel": k.name,
            "title": k.title,
            "precision": k.precision,
            "source": k.source,
            "synonyms": list(SYNONYMS.get(k.name, ())),
        }
        for k in KERNELS.values()
    ]
    columns = (
        Column("kernel", "kernel"),
        Column("title", "what it computes"),
        Column("synonyms", "also called"),
        Column("source", "source"),
    )
    return Answer("formula", {"kernels": rows}, columns, table="kernels", title="Kernels")


def glossary() -> Answer:
    """All quantities: name, LaTeX, unit, meaning, HF key, range."""
    rows = [
        {**q._asdict(), "range": q.range_text, "synonyms": list(SYNONYMS.get(q.name, ()))} for q in GLOSSARY.values()
    ]
    columns = (
        Column("name", "name"),
        Column("latex", "LaTeX"),
        Column("unit", "unit"),
        Column("meaning", "meaning"),
        Column("hf_key", "HF config key"),
    )
    return Answer("glossary", {"quantities": rows}, columns, table="quantities", title="Glossary")


def _expr(cost: Any, name: str) -> Any:
    """A total of the kernel, or one of its time bounds."""
    return (
        {"time_lower": law.time_lower, "time_upper": law.time_upper}[name](cost)
        if name in TIMES
        else cost.quantity(name)
    )


def _elasticities(cost: Any, rows: list[dict[str, Any]], values: Mapping[str, float]) -> list[dict[str, Any]]:
    """Per cent by which intensity or time moves for one per cent of each input, where all numbers are given."""
    told = []
    for row in rows:
        if row["value"] and row["quantity"] in ("intensity", *TIMES):
            free = cost.bind(**{str(k): k for k in cost.bindings if str(k) in values})
            for name, value in elasticities(_expr(free, row["quantity"]), values).items():
                told.append({"quantity": row["quantity"], "input": name, "elasticity": value})
    return told


def _quantity_row(cost: Any, name: str, values: Mapping[str, float]) -> dict[str, Any]:
    expr = _expr(cost, name).xreplace({SYMBOLS[k]: exact(v) for k, v in values.items() if k in RATES})
    value = float(expr) if expr.is_number else None
    if value is not None and abs(value) == float("inf"):
        raise BadValue(name, expr, "a finite result")
    return {
        "quantity": name,
        "unit": _UNITS[name],
        "text": str(expr),
        "latex": f"{GLOSSARY[name].latex} = {latex(expr)}",
        "value": value,
        "value_text": None if value is None else number(value, 6),
    }


def _term_row(term: Any, size: sp.Expr) -> dict[str, Any]:
    return {
        "resource": term.resource,
        "axes": term.axes,
        "amount": str(term.amount),
        "label": term.label,
        "total": str(size),
    }


def _symbol_row(name: str) -> dict[str, Any]:
    record = GLOSSARY.get(name)
    return {
        "name": name,
        "latex": record.latex if record else name,
        "unit": record.unit if record else "",
        "meaning": record.meaning if record else "",
    }


def _notes(chosen: Kernel) -> tuple[str, ...]:
    assumed = f"Assumed: {'; '.join(chosen.assumes)}." if chosen.assumes else ""
    omitted = f"Left out: {'; '.join(chosen.omits)}." if chosen.omits else ""
    return tuple(t for t in (assumed, omitted, f"Source: {chosen.source}." if chosen.source else "") if t)


def _sections(data: Mapping[str, Any]) -> tuple[Section, ...]:
    terms = tuple(f"{t['resource']:<7}{t['axes']:<10} x {t['amount']:<28} {t['label']}" for t in data["terms"])
    inputs = tuple(f"{name} = {number(value)}" for name, value in data["inputs"].items()) or (
        "none: every quantity is a symbol",
    )
    symbols = tuple(f"{s['name']} ({s['latex']}) [{s['unit']}]: {s['meaning']}" for s in data["symbols"])
    defaults = tuple(f"{k} = {v}" for k, v in data["defaults"].items()) or ("none",)
    moved = tuple(f"{e['quantity']} by {e['input']}: {_signed(e['elasticity'])}" for e in data["elasticities"])
    extra = (Section("Elasticities (per cent for one per cent)", moved),) if moved else ()
    return (
        Section("Terms (resource, axes, amount per element)", terms),
        Section("Formulas", (), tuple(q["latex"] for q in data["quantities"])),
        Section("Numbers put in", inputs),
        Section("What stands for what until it is set", defaults),
        Section("Symbols left", symbols or ("none",)),
        *extra,
    )


def _signed(value: Any) -> str:
    """An elasticity; at a kink the values below and above."""
    return f"{value:+.4f}" if isinstance(value, float) else f"{value[0]:+.4f} below, {value[1]:+.4f} above"
