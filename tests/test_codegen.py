"""Generated source: equal to exact sympy, fresh, independent of the hash seed, and safe."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import roofline._generated
from roofline import derivations, visibility
from roofline._generated import closed_forms, kernels, visibilities
from roofline._generated.__main__ import modules
from roofline.codegen import NUMPY, compiled, source
from roofline.errors import BadValue
from roofline.evaluate import parameters, scalar
from roofline.kernels import KERNELS
from roofline.law import legs
from roofline.symbols import sym

FOLDER = Path(roofline._generated.__file__).parent
CASES = [(k, q) for k, row in kernels.QUANTITIES.items() for q, f in row.items() if parameters(f)]
WHOLE = st.integers(1, 5000)


def test_the_generated_source_is_fresh() -> None:
    stale = [n for n, text in modules().items() if (FOLDER / n).read_text(encoding="utf-8") != text]
    assert not stale, f"{stale} differ from the formulas: run python -m roofline._generated"


def test_the_source_does_not_depend_on_the_hash_seed() -> None:
    code = "from roofline._generated.__main__ import modules; import sys; sys.stdout.write(repr(modules()))"
    seed = os.environ | {"PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"}
    done = subprocess.run([sys.executable, "-c", code], env=seed, capture_output=True, check=True, text=True)
    assert done.stdout == repr(modules())


def test_the_generated_modules_import_nothing_but_math() -> None:
    code = (
        "import sys; before = set(sys.modules); from roofline._generated import kernels, visibilities, closed_forms;"
        "print(sorted(m for m in set(sys.modules) - before if not m.startswith('roofline')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() in ("[]", "['math']")


def test_every_kernel_and_quantity_has_a_function() -> None:
    assert list(kernels.QUANTITIES) == list(KERNELS)
    for name, kernel in KERNELS.items():
        assert {"flops", "vector_flops", "exps", "bytes"} | set(legs(kernel)) <= set(kernels.QUANTITIES[name])
        assert set(kernels.DEFAULTS[name]) == {s.name for s in kernel.bindings}


def test_only_what_is_0_takes_no_parameters() -> None:
    for name, row in kernels.QUANTITIES.items():
        for quantity, function in row.items():
            if not parameters(function):
                assert function() == raw(name, quantity) == 0


@cache
def raw(kernel: str, quantity: str) -> sp.Expr:
    """The kernel's expression with nothing bound, so that every name is given."""
    free = KERNELS[kernel].bind(**{s.name: s for s in KERNELS[kernel].bindings})
    return legs(free)[quantity] if quantity in kernels.LEGS else free.quantity(quantity)


@pytest.mark.parametrize(("kernel", "quantity"), CASES)
@settings(max_examples=3)
@given(data=st.data())
def test_scalar_and_array_source_equal_exact_sympy(kernel: str, quantity: str, data: st.DataObject) -> None:
    expr, function = raw(kernel, quantity), scalar(kernel, quantity)
    names = sorted(s.name for s in expr.free_symbols)
    assert set(parameters(function)) == set(names)
    drawn = {name: data.draw(WHOLE, name) for name in names}
    exact = float(expr.xreplace({getattr(sym, name): sp.Integer(value) for name, value in drawn.items()}))
    assert function(**drawn) == pytest.approx(exact, rel=1e-13)  # sums of positive terms: a few roundings
    column = {name: np.array([value, value + 1.0]) for name, value in drawn.items()}
    assert np.broadcast_to(compiled(expr, arrays=True)(**column), (2,)) == pytest.approx(
        [exact, function(**{name: value + 1 for name, value in drawn.items()})], rel=1e-13
    )


@pytest.mark.parametrize("name", visibilities.VISIBILITIES)
@settings(max_examples=15)
@given(s=st.integers(1, 40), c=st.integers(0, 40), k=st.integers(1, 60), b=st.integers(1, 4), p=st.integers(0, 40))
def test_generated_visibilities_count_what_the_formulas_count(
    name: str, s: int, c: int, k: int, b: int, p: int
) -> None:
    made = visibility.topk(skip="no_skip" not in name, gather="perfect" if "perfect" in name else "none")
    made = made if name.startswith("topk") else getattr(visibility, name)()
    values = {"q_len": s, "context": c, "topk": k, "window": k, "batch": b, "prefix": p}
    for quantity, function in visibilities.VISIBILITIES[name].items():
        exact = getattr(made, quantity).xreplace({getattr(sym, n): sp.Integer(v) for n, v in values.items()})
        assert function(**{n: values[n] for n in parameters(function)}) == pytest.approx(float(exact), rel=1e-14)
    if name == "topk":  # and a count by hand
        assert visibilities.topk_pairs(q_len=s, context=c, topk=k) == sum(min(c + i, k) for i in range(1, s + 1))


def test_closed_forms_carry_their_latex() -> None:
    for name, function in closed_forms.FORMS.items():
        expr = getattr(derivations, name)()
        assert str(expr) == closed_forms.TEXT[name]
        assert set(parameters(function)) == {s.name for s in expr.free_symbols}
    # DeepSeek's H800 pair 865 TFLOP/s and 3.35 TB/s: 136.70 heads (FlashMLA deep dive, by its formula)
    heads = closed_forms.heads_at_ridge(kv_row_bytes=1152, peak=865e12, bandwidth=3.35e12, q_len=1, latent=512, rope=64)
    assert heads == pytest.approx(136.70, abs=0.005)


@given(x=st.integers(1, 10**12), q=st.integers(1, 600))
def test_ceilings_and_floors_are_exact_at_and_around_multiples(x: int, q: int) -> None:
    up, down = sp.ceiling(sym.batch / q), sp.floor(sym.batch / q)
    for value in (x, x * q):
        for arrays, given_ in ((False, float(value)), (True, np.array([float(value)]))):
            assert compiled(up, arrays)(batch=given_) == -(-value // q)
            assert compiled(down, arrays)(batch=given_) == value // q


def test_the_tile_that_floats_round_up() -> None:
    """numpy's ceil((1/75) * 525) is 8: this is why a ceiling is printed as a floor division."""
    assert math.ceil((1 / 75) * 525) == 8
    assert compiled(sp.ceiling(sym.batch / 75))(batch=525.0) == 7


SHAPES = [
    3 * sp.ceiling(sym.batch / 75) - 1,
    2 * sp.floor(sym.batch / sym.heads + sym.q_len / 3) / sp.ceiling(sym.batch / 3),
    sym.heads / (-sym.batch * (sym.heads + 3) - sym.heads * sym.batch),
    sp.sqrt(sym.heads) / sp.sqrt(sym.batch) - 2 * sym.heads**-3,
    -((sym.heads + 1) ** 2) + 2 ** (-sym.heads / 8),
    sp.exp(-sym.heads / 50) / 3 - sp.log(sym.batch, 2),
    sp.Max(1, sym.heads - sym.batch, sp.Min(sym.batch, sym.q_len, 7)),
    sp.Piecewise(
        (sp.log(sym.heads), sym.heads > sym.batch), (-sym.heads - 1, (sym.batch < 9) & (sym.q_len > 2)), (7, True)
    ),
    sp.Abs(sym.heads - sym.batch) / (sym.heads + sp.pi),
    sp.Heaviside(sym.heads - sym.batch),
    sym.heads ** sp.Rational(2, 3) - sp.Rational(1, 3) * sym.q_len ** (sym.batch / 40),
    sp.Mul(sym.heads, -sym.batch * (2 + sym.heads), evaluate=False),
]


@pytest.mark.parametrize("expr", SHAPES, ids=str)
@settings(max_examples=15)
@given(h=st.integers(1, 60), b=st.integers(1, 60), s=st.integers(1, 9))
def test_every_kind_of_expression_prints_what_it_means(expr: sp.Expr, h: int, b: int, s: int) -> None:
    values = {n: v for n, v in (("heads", h), ("batch", b), ("q_len", s)) if getattr(sym, n) in expr.free_symbols}
    exact = float(expr.subs({getattr(sym, n): v for n, v in values.items()}).evalf(30))
    assert compiled(expr)(**{n: float(v) for n, v in values.items()}) == pytest.approx(exact, rel=1e-12, abs=1e-12)
    arrays = {n: np.array([float(v)]) for n, v in values.items()}
    assert compiled(expr, arrays=True)(**arrays) == pytest.approx(exact, rel=1e-12, abs=1e-12)


def test_a_branch_not_taken_is_not_computed_for_one_point() -> None:
    x = sym.context
    expr = sp.Piecewise((sp.log(x) + sp.log(x) ** 2, x > 0), (0, True))  # log(x) twice, yet no local before the branch
    assert compiled(expr)(context=0.0) == 0
    assert compiled(expr)(context=1.0) == 0


@pytest.mark.parametrize("name", ["a b", "class", "x;import os", "math", "__import__('os')"])
def test_a_name_reaches_the_source_only_as_an_identifier(name: str) -> None:
    with pytest.raises(BadValue, match="parameter"):
        source("f", sp.Symbol(name) + 1)


@pytest.mark.parametrize("expr", [sp.oo, sp.nan, sp.gamma(sym.heads), sp.Derivative(sp.Function("g")(sym.heads))])
def test_what_cannot_be_printed_is_refused(expr: sp.Expr) -> None:
    with pytest.raises(BadValue, match="expression"):
        source("f", expr, NUMPY)
