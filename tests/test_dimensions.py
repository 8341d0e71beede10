"""Dimensions as a homomorphism over the expression tree: sums and maxima need equal dimensions, products add them.

In tests only: inside the package units are a matter of the border.  A total drops the FLOP of a multiply-add and the
byte of a literal width, so `with_units` puts them back as symbols.
"""

from __future__ import annotations

from typing import Any

import pytest
import sympy as sp

from roofline import derivations, law
from roofline import visibility as vis
from roofline.glossary import GLOSSARY
from roofline.kernel import Kernel, Term
from roofline.kernels import KERNELS
from roofline.symbols import SYMBOLS, sym

BASE = ("FLOP", "B", "s", "exp")
Dim = tuple[Any, ...]  # exponents of BASE
FLOP, BYTE, EXP = (sp.Symbol(name, positive=True) for name in ("unit_flop", "unit_byte", "unit_exp"))


class Mismatch(Exception):
    """Two things of unequal dimension were added or compared."""


def unit(text: str) -> Dim:
    """The exponents of a unit such as "FLOP/s"; counts and tokens have none."""
    above, _, below = text.partition("/")
    names = set(BASE) | {"1", "tokens"}
    assert {above, below or "1"} <= names, f"unknown unit {text!r}"
    return tuple((above == base) - (below == base) for base in BASE)


NONE = unit("1")
UNITS = {SYMBOLS[name]: unit(record.unit) for name, record in GLOSSARY.items()}
UNITS |= {FLOP: unit("FLOP"), BYTE: unit("B"), EXP: unit("exp")}


def dim(expr: sp.Expr) -> Dim:
    """The dimension of an expression, or Mismatch."""
    if expr.is_number:
        return NONE
    if expr.is_Symbol:
        return UNITS[expr]
    if expr.is_Mul:
        return tuple(sum(parts) for parts in zip(*(dim(a) for a in expr.args), strict=True))
    if expr.is_Pow:
        base, power = expr.args
        if not power.is_number:
            raise Mismatch(f"exponent {power}")
        return tuple(power * e for e in dim(base))
    if isinstance(expr, (sp.Add, sp.Max, sp.Min)):
        return alike(expr)
    if isinstance(expr, (sp.ceiling, sp.floor)):
        return dim(expr.args[0])
    raise Mismatch(f"no rule for {expr.func}")


def alike(expr: sp.Expr) -> Dim:
    """The one dimension of all arguments; a bare 0 fits any."""
    found = {dim(a) for a in expr.args if a != 0}
    if len(found) > 1:
        raise Mismatch(f"{expr} mixes {found}")
    return found.pop()


def with_units(kernel: Kernel) -> Kernel:
    """The same kernel with the FLOP, the exponential and the byte of a literal width as symbols."""
    own = {"tensor": FLOP, "vector": FLOP, "exp": EXP}

    def put(term: Term) -> Term:
        literal = not isinstance(term.amount, sp.Basic)
        return term._replace(amount=term.amount * own.get(term.resource, BYTE if literal else 1))

    other = kernel.named(kernel.name, terms=tuple(put(t) for t in kernel.terms))
    other.bindings = {k: BYTE * v if UNITS[k] == unit("B") and dim(v) == NONE else v for k, v in other.bindings.items()}
    return other


WITH_LITERAL_BYTES = {  # defaults that are bytes although no width stands in them, and why
    "index_row_bytes": "an fp8 element is one byte, the scale four",
    "w_index": "fp8 queries",
    "w_logit": "fp32 logits",
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernel(name: str) -> None:
    kernel = with_units(KERNELS[name])
    wanted = {"tensor": "FLOP", "vector": "FLOP", "exp": "exp", "read": "B", "write": "B", "link": "B"}
    for resource, text in wanted.items():
        total = kernel.total(resource)
        assert total == 0 or dim(total) == unit(text), f"{name}.{resource}: {total}"
    assert kernel.flops == 0 or dim(kernel.intensity) == unit("FLOP/B")
    if law.legs(kernel):
        assert dim(law.time_lower(kernel)) == dim(law.time_upper(kernel)) == unit("s")


@pytest.mark.parametrize("name", KERNELS)
def test_defaults_have_the_dimension_of_what_they_stand_for(name: str) -> None:
    for symbol, value in KERNELS[name].bindings.items():
        literal = symbol.name in WITH_LITERAL_BYTES and dim(value) == NONE
        assert dim(value) == UNITS[symbol] or literal, f"{name}.{symbol} = {value}"


def test_visibilities_count() -> None:
    for seen in (
        vis.dense(),
        vis.full(),
        vis.window(),
        vis.topk(),
        vis.topk(skip=False, gather="perfect"),
        vis.shared_prefix(),
    ):
        assert dim(seen.pairs) == dim(seen.rows_read) == NONE


def test_laws() -> None:
    assert dim(law.ridge()) == UNITS[sym.ridge] == UNITS[sym.intensity]
    assert dim(law.attainable()) == UNITS[sym.attainable]
    assert dim(FLOP * derivations.decode_intensity_limit()) == UNITS[sym.ridge]
    assert dim(derivations.heads_at_ridge() / FLOP) == UNITS[sym.heads]


@pytest.mark.parametrize(
    "wrong",
    [
        sym.peak + sym.bandwidth,
        sp.Max(sym.peak, sym.intensity, evaluate=False),
        sym.flops / sym.peak + sym.bytes,
        sym.kv_row_bytes + sym.latent,
        2**sym.heads,
        sp.log(sym.heads),
    ],
)
def test_the_check_refuses_what_does_not_add_up(wrong: sp.Expr) -> None:
    with pytest.raises(Mismatch):
        dim(wrong)


def test_the_check_finds_a_forgotten_width() -> None:
    kernel = KERNELS["mla_mqa"]
    for at, term in enumerate(kernel.terms):
        if term.resource in ("read", "write"):
            broken = kernel.named(
                "broken", terms=(*kernel.terms[:at], term._replace(amount=sym.latent), *kernel.terms[at + 1 :])
            )
            with pytest.raises(Mismatch):
                dim(with_units(broken).bytes)
