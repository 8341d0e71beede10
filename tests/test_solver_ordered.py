"""The quick exact arithmetic of the solver against sympy's own, and what is worked out once against the plain way."""

from __future__ import annotations

import random

import pytest
import sympy as sp

import roofline
from roofline.crossovers import Case, _longest, equation
from roofline.models import load_model
from roofline.plan import Deployment, Workload, plan
from roofline.plan.numbers import Rates
from roofline.solver.ordered import floor, inside, order, sign_of, surd
from roofline.solver.rational import fraction, real_roots
from roofline.symbols import replaced, sym

X = sp.Dummy("x", real=True)
R = random.Random(3)


def a_number() -> sp.Expr:
    """A rational number or a quadratic surd."""
    p, q, d, r = R.randint(-30, 30), R.randint(-9, 9), R.choice((2, 3, 7, 12, 1_000_003)), R.randint(1, 12)
    return (p + R.choice((0, q)) * sp.sqrt(d)) / sp.Integer(r)


def test_order_is_that_of_sympy() -> None:
    numbers = [a_number() for _ in range(40)]
    for a in numbers:
        for b in numbers:
            assert order(a, b) == int(sp.sign(sp.N(a - b, 60, chop=True)))
        assert floor(a) == sp.floor(a)
        assert order(-sp.oo, a) == order(a, sp.oo) == -1
        assert inside(a - sp.Rational(1, 10**50), a, a + sp.Rational(1, 10**50))


def test_neighbours_that_forty_digits_do_not_tell_apart() -> None:
    root = sp.sqrt(2)
    near = sp.Rational(sp.floor(root * 10**80), 10**80)
    assert (order(near, root), order(root, near), order(root, root)) == (-1, 1, 0)
    for one, two in ((3, 2 * root), (root, 1), (7, 4 * sp.sqrt(3))):  # whose squares differ by one
        one, two = sp.sympify(one), sp.sympify(two)
        assert (order(one, two), order(two, one)) == (1, -1)
    assert surd(sp.cbrt(2)) is None
    assert surd(sp.Float("1.5")) is None
    assert order(sp.cbrt(2), sp.sqrt(2)) == -1


def test_the_sign_of_a_polynomial_is_that_of_sympy() -> None:
    for _ in range(60):
        coefficients, at = [R.randint(-20, 20) for _ in range(R.randint(1, 5))], a_number()
        value = sp.expand(sum(c * at**k for k, c in enumerate(reversed(coefficients))))
        assert sign_of(coefficients, surd(at)) == int(sp.sign(sp.N(value, 60, chop=True)))
    golden = (1 + sp.sqrt(5)) / 2
    assert sign_of([1, -1, -1], surd(golden)) == 0


def a_function(depth: int = 3) -> sp.Expr:
    if depth == 0:
        return R.choice((X, sp.Integer(R.randint(-6, 6)), sp.Rational(R.randint(1, 9), R.randint(1, 9))))
    one, two = a_function(depth - 1), a_function(depth - 1)
    return R.choice((one + two, one * two, one - two, one / two if two != 0 else one, one**2))


def test_fractions_are_those_of_sympy() -> None:
    field = sp.QQ.frac_field(X)
    for _ in range(150):
        expr = a_function()
        if expr.has(sp.zoo, sp.nan):
            continue
        whole = field.from_sympy(expr)
        expected = tuple(sp.Poly(part.as_expr(), X, domain="QQ") for part in (whole.numer, whole.denom))
        assert fraction(expr, X) == expected, expr


def test_roots_of_quadratics_are_those_of_factors() -> None:
    for _ in range(80):
        poly = sp.Poly(
            [R.choice((-3, -1, 1, 2, sp.Rational(2, 3))), R.randint(-9, 9), R.randint(-9, 9)], X, domain="QQ"
        )
        expected = sorted(set(poly.as_expr().as_poly(X).real_roots()), key=lambda v: sp.N(v, 40))
        found = real_roots(poly)
        assert len(found) == len(expected)
        assert all(sp.expand(a - b) == 0 for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("phase", ["oneshot", "chunked", "decode"])
def test_the_longest_leg_is_what_sympy_makes_of_it(phase: str) -> None:
    rates = {"peak": 865e12, "bandwidth": 3.35e12, "exp_rate": 3.86e12}
    shape = {"heads": 16, "latent": 512, "rope": 64, "nope": 128, "value": 128, "topk": 2048}
    given = {"context": 8192} if phase == "chunked" else {}
    for ratio in (0.3, 1, 1.7):
        for side in equation(Case(phase, shape, cost="time", rates=rates, rate_ratio=ratio, given=given),
                             "q_len" if phase == "chunked" else "seq_len"):  # fmt: skip
            assert side == side.replace(sp.Max, lambda *args: sp.Max(*args))
    x = sym.seq_len
    for legs in ([x, x**2], [3 * x, 2 * x, x**2 + 1], [x + 1, x], [x, x], [sp.Integer(2), x], [x**2, 5 * x, 7 + 0 * x]):
        assert _longest(list(legs)) == sp.Max(*legs)


def test_replacing_once_is_replacing() -> None:
    inner = sp.Min(sp.Max(sym.topk - sym.context, 0), sym.q_len)
    expr = inner * sym.context + inner**2 + (sym.q_len - inner) * sym.topk
    for new in (
        {sym.context: sp.Integer(0)},
        {sym.q_len: sym.seq_len, sym.topk: sp.Integer(7)},
        {inner: sym.batch},
        {},
    ):
        assert replaced(expr, new) == expr.xreplace(new)


@pytest.mark.parametrize(
    ("name", "spread"), [("llama-3.1-8b", Deployment(tp=2)), ("deepseek-v3.2", Deployment(1, 8, 8))]
)
@pytest.mark.parametrize("load", [Workload("decode", 64, 1, 8192), Workload("oneshot", 4, 2048)])
def test_a_leg_as_a_function_of_the_batch_is_the_leg_at_each_batch(
    name: str, spread: Deployment, load: Workload
) -> None:
    step = plan(load_model(name), load, spread)
    rates = Rates({"bf16": 9.9e14, "fp8": 1.98e15}, 3.35e12, 1e14, 4e12, 4.5e11)
    for leg in ("tensor", "memory"):
        time = step.leg_time(leg, rates, "batch")
        for batch in (1, 3, 64, 4096):
            costs = step.costs(rates, batch=batch)
            assert time(batch) == sum((c.use.count * c.legs[leg] for c in costs if leg in c.legs), 0.0)


def test_no_sparse_indexer_is_a_reason_and_no_mistake() -> None:
    """A top-k given to a model without an indexer does not give it one."""
    found = roofline.crossover("deepseek-v3", between="indexer", topk=1024)
    assert "no indexer" in found.rows[0]["reason"]
