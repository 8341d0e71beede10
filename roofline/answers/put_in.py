"""A formula with its numbers in place of its letters, as LaTeX."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import sympy as sp

from roofline import derivations
from roofline.answer import Section
from roofline.evaluate import closed_form
from roofline.glossary import GLOSSARY
from roofline.law import ridge as ridge_point
from roofline.symbols import latex
from roofline.units import number

MARK = "\x00"  # around the name of a symbol whose number is put in later


def put_in(expr: Any, values: Mapping[str, float]) -> str:
    r"""LaTeX of an expression, each quantity of `values` written as its number, nothing multiplied out.

    >>> from roofline.symbols import sym
    >>> put_in(sym.heads * (sym.latent + sym.rope) / sym.bandwidth, {"heads": 128, "latent": 512, "rope": 64})
    '\\frac{128 \\cdot \\left(512 + 64\\right)}{\\beta}'
    """
    text = _template(expr)
    for symbol in expr.free_symbols:
        name = symbol.name
        told = plain(values[name]) if name in values else GLOSSARY[name].latex if name in GLOSSARY else name
        text = text.replace(MARK + name + MARK, told)
    return text


@lru_cache(256)
def _template(expr: Any) -> str:
    """LaTeX of an expression with a marked name for each symbol, so that it is set once for many numbers."""
    names = {symbol: MARK + symbol.name + MARK for symbol in expr.free_symbols}
    return str(sp.latex(expr, symbol_names=names, mul_symbol="dot"))


_letters = lru_cache(64)(latex)


def plain(value: float) -> str:
    """A number as LaTeX: thousands apart, powers of ten written out."""
    if value and (abs(value) >= 1e7 or abs(value) < 1e-3):
        digits, power = f"{value:.5e}".split("e")
        return rf"{float(digits):g} \cdot 10^{{{int(power)}}}"
    return number(value, 6).replace(",", r"\,")


def heads_steps(row: Mapping[str, Any], inputs: Mapping[str, float], heads: float) -> Section:
    """How the head count of one row of `heads` comes about, step by step, in letters and with the numbers put in.

    Parameters: row, of `roofline.heads`; inputs, of the same answer; heads, a count to put into the intensity.
    """
    shape = {k: inputs[k] for k in ("latent", "rope", "q_len", "kv_row_bytes")}
    intensity, count = derivations.decode_intensity_limit(), derivations.heads_at_ridge()
    at = closed_form("decode_intensity_limit")(**shape, heads=heads)
    ridge = row["ridge_flop_per_byte"]
    rates = {k: row[f"{k}_{unit}"] for k, unit in (("peak", "flop_per_s"), ("bandwidth", "byte_per_s"))}
    told = rf"I = {_letters(intensity)} = {put_in(intensity, {**shape, 'heads': heads})} = {plain(at)}"
    formulas = [told + r"\ \text{FLOP/B}"]
    if all(rates.values()):
        met = ridge_point()
        formulas.append(rf"I^* = {_letters(met)} = {put_in(met, rates)} = {plain(ridge)}\ \text{{FLOP/B}}")
        formulas.append(
            rf"I = I^* \;\Rightarrow\; H = {_letters(count)} = {put_in(count, {**shape, **rates})}"
            rf" = {row['heads_exact']:.2f}"
        )
    lines = (f"{row['hardware']}, roof {row['roof']} [{row['kind']}]: {row['source']}",)
    return Section(f"{row['hardware']}, {row['roof']}", lines, tuple(formulas))
