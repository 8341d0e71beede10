"""How the numbers of one kernel of a step come about, step by step: in letters, with its numbers put in, and the value.

What stands for a quantity in a use is a number or a rule (`roofline.plan`); a rule is told as a step of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import sympy as sp

from roofline import law
from roofline.answer import Section
from roofline.answers.put_in import plain, put_in
from roofline.glossary import GLOSSARY
from roofline.kernels import KERNELS
from roofline.kernels.rules import RULES
from roofline.plan.numbers import WIDE, resolve
from roofline.symbols import SYMBOLS, latex, maximum
from roofline.units import number

TOTALS = ("flops", "vector_flops", "exps", "bytes", "link_bytes")
BELOW = r" \\[0.3em] &= "  # the next step of a formula, below the last
SHORT = sp.Symbol("m", nonnegative=True)  # stands for a minimum that occurs several times in a formula
Record = Mapping[str, Any]


@lru_cache(128)
def totals(kernel: str) -> dict[str, Any]:
    """The totals of one run of a kernel that are not zero, in the quantities that a use binds."""
    free = KERNELS[kernel].bind(**{s.name: s for s in KERNELS[kernel].bindings})
    found = {name: free.total("link") if name == "link_bytes" else free.quantity(name) for name in TOTALS}
    return {name: expr for name, expr in found.items() if expr != 0}


def work_steps(row: Record, inputs: Record) -> Section:
    """What one run of a kernel computes and moves: what its rules give, each total, and the intensity.

    Parameters: row, of `roofline.plot("step")`; inputs, of the same answer.
    """
    numbers, kernel = workload_numbers(inputs), KERNELS[row["kernel"]]
    exprs, runs = totals(row["kernel"]), row["count"]
    names = sorted({s.name for expr in exprs.values() for s in expr.free_symbols})
    values = {name: resolve(name, row["values"], numbers) for name in names}
    formulas = list(dict.fromkeys(f for name in names for f in _rule_steps(name, row["values"], numbers, ())))
    formulas += [_total_step(name, expr, values, row[name] / runs) for name, expr in exprs.items()]
    if row["flops"] and row["bytes"]:
        found = {"flops": row["flops"] / runs, "bytes": row["bytes"] / runs}
        formulas.append(_step("intensity", law.intensity(), found, row["intensity_flop_per_byte"]))
    told = "; ".join(f"{name} = {number(value, 6)}" for name, value in values.items())
    lines = [
        f"{kernel.title}; {number(runs)} {'run' if runs == 1 else 'runs'} in the step.",
        f"Put in: {told}.",
        *([f"Assumed: {'; '.join(kernel.assumes)}."] if kernel.assumes else []),
        f"Left out: {'; '.join(kernel.omits) or 'nothing of its own'}.",
        f"Source: {kernel.source}.",
    ]
    return Section(f"{row['name']}: one run", tuple(lines), tuple(formulas))


def roof_steps(row: Record, rates: Record, roofs: Any) -> Section:
    """What the roof of one accelerator makes of it: attainable performance, and the lower bound of the time.

    Parameters: row, rates and roofs of `roofline.plot("step")`, rates those of the row's accelerator.
    """
    runs, formulas, lines = row["count"], [], []
    speeds = {**rates, "peak": rates["peaks"].get(row["precision"])}
    if row["kernel"] in WIDE and rates["wide_bandwidth"] is not None:
        speeds["link_bandwidth"] = rates["wide_bandwidth"]
    if row["attainable_flop_per_s"]:
        found = {**speeds, "intensity": row["intensity_flop_per_byte"]}
        formulas.append(_step("attainable", law.attainable(), found, row["attainable_flop_per_s"]))
        lines.append(f"{row['roof_fraction']:.2%} of the peak at {row['precision']}.")
    legs = [leg for leg, (q, rate) in law.LEGS.items() if row[q] and speeds[rate]]
    if legs:
        time = maximum(*map(law.leg, legs))
        used = [law.LEGS[leg] for leg in legs]
        found = {**{q: row[q] / runs for q, _ in used}, **{rate: speeds[rate] for _, rate in used}}
        formulas.append(_step("time_lower", time, found, row["time_lower_s"] / runs))
        if runs != 1:
            one, every = plain(row["time_lower_s"] / runs), plain(row["time_lower_s"])
            told = rf"{plain(runs)} \cdot {one}{BELOW}{every}\ \text{{s}}"
            formulas.append(
                rf"\begin{{aligned}} {plain(runs)} \, {GLOSSARY['time_lower'].latex} &= {told} \end{{aligned}}"
            )
        lines.append(f"{row['share']:.2%} of the time of the step; {row['bound']} bound.")
    silent = [GLOSSARY[rate].meaning for q, rate in law.LEGS.values() if row[q] and not speeds[rate]]
    lines += [f"No sourced rate: {'; '.join(silent)}; this leg is left out."] if silent else []
    lines += dict.fromkeys(_source(r) for r in roofs if _is_of(r, row))
    return Section(f"On {row['hardware']}, roof {row['roof']}", tuple(lines), tuple(formulas))


def workload_numbers(inputs: Record) -> dict[str, float]:
    """The numbers of the workload and the deployment that rules refer to."""
    load = {name: value for name, value in inputs["workload"].items() if name != "phase"}
    return {**load, "tp": inputs["deployment"]["tp"], "dp": inputs["deployment"]["dp"]}


def _is_of(roof: Record, row: Record) -> bool:
    return all(roof[key] == row[key] for key in ("hardware", "roof", "precision"))


def _source(roof: Record) -> str:
    return f"{roof['label']} [{roof['kind']}]: {roof['source']}"


def _rule_steps(name: str, values: Record, numbers: Record, busy: tuple[str, ...]) -> Iterator[str]:
    """The formula of a quantity that a rule makes, after those of the rules that it needs itself."""
    bound = values.get(name) if name not in busy else None
    if not isinstance(bound, str):
        return
    expr, inner = (RULES[bound], (*busy, name)) if bound in RULES else (SYMBOLS[bound], (*busy, *values))
    needs = sorted(s.name for s in expr.free_symbols)
    for other in needs:
        yield from _rule_steps(other, values, numbers, inner)
    found = {other: resolve(other, values, numbers, inner) for other in needs}
    sign = r"\leftarrow" if name in needs else "="  # a rank's share of a quantity keeps its letter
    yield _step(name, expr, found, resolve(name, values, numbers, busy), sign)


def _total_step(name: str, expr: Any, values: Record, value: float) -> str:
    return _step(name, expr, {s.name: values[s.name] for s in expr.free_symbols}, value)


def _step(name: str, expr: Any, values: Record, value: float, sign: str = "=") -> str:
    """Letters, numbers and value of a formula below one another."""
    short, repeated = _shortened(expr)
    lines = [_letters(short), put_in(short, {**values, SHORT.name: _at(repeated, values)})]
    unit = GLOSSARY[name].unit
    told = plain(value) + (rf"\ \text{{{unit}}}" if unit != "1" else "")
    told = BELOW.join(dict.fromkeys([*lines, told]))
    rows = rf"{GLOSSARY[name].latex} &{sign} {told}"
    if repeated is not None:
        parts = (_letters(repeated), put_in(repeated, values), plain(_at(repeated, values)))
        rows = rf"m &= {BELOW.join(parts)} \\[0.3em] {rows}"
    return rf"\begin{{aligned}} {rows} \end{{aligned}}"


@lru_cache(256)
def _letters(expr: Any) -> str:
    return latex(expr)


@lru_cache(256)
def _shortened(expr: Any) -> tuple[Any, Any]:
    """A formula with a letter for the minimum that occurs several times in it, and that minimum."""
    found = [e for e in sp.preorder_traversal(expr) if isinstance(e, sp.Min)]
    repeated = next((e for e in found if found.count(e) > 1), None)
    return (expr, None) if repeated is None else (expr.xreplace({repeated: SHORT}), repeated)


def _at(expr: Any, values: Record) -> float:
    """The number that a shortened minimum stands for."""
    return 0.0 if expr is None else float(expr.xreplace({s: sp.Float(values[s.name]) for s in expr.free_symbols}))
