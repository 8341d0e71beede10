"""Elasticities against finite differences, and at kinks against both sides."""

from __future__ import annotations

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline import law
from roofline.errors import BadValue
from roofline.kernels import KERNELS
from roofline.solver.branches import put
from roofline.solver.sensitivity import elasticities, elasticity
from roofline.symbols import maximum, sym
from roofline.visibility import dense, oneshot, topk

V3 = {"heads": 128, "latent": 512, "rope": 64, "w_kv": 2, "w_act": 2, "batch": 4}  # deepseek-ai/DeepSeek-V3
H100 = {"peak": 989.4e12, "bandwidth": 3.35e12, "exp_rate": 3.9e12}  # NVIDIA H100 data sheet; exp_rate any rate will do
CORE = KERNELS["mla_mqa"].bind(**topk().bindings(), kernel_heads=sym.heads)
TIME = law.time_lower(CORE + KERNELS["mla_absorption"])


def by_difference(expr: sp.Expr, at: dict[str, float], name: str, step: float) -> float:
    """(ln Y(x e^step) - ln Y(x)) / step, in 40 digits."""

    def value(moved: dict[str, float]) -> sp.Expr:
        return sp.N(put(expr, {s: sp.Rational(str(moved[s.name])) for s in expr.free_symbols}), 40)

    return float(sp.log(value(at | {name: at[name] * (1 + step)}) / value(at)) / sp.log(1 + sp.Rational(str(step))))


@settings(max_examples=8)
@given(st.integers(1, 3000), st.integers(1, 9000), st.floats(0.01, 100, allow_nan=False))
def test_elasticities_equal_finite_differences(q_len: int, context: int, faster: float) -> None:
    at = V3 | H100 | {"q_len": q_len, "context": context + 0.25, "topk": 2048, "nope": 128, "w_weight": 2}
    at["peak"] = round(at["peak"] * faster)
    at["q_len"] += 0.125  # off the kinks at context + q_len = topk
    found = elasticities(TIME, at)
    assert set(found) == {s.name for s in TIME.free_symbols}
    for name in ("heads", "q_len", "context", "topk", "peak", "bandwidth", "exp_rate", "latent", "w_kv"):
        below, above = (by_difference(TIME, at, name, step) for step in (-1e-9, 1e-9))
        if abs(below - above) < 1e-6:  # no kink in between
            assert found[name] == pytest.approx(above, abs=1e-6), name


@settings(max_examples=15)
@given(st.floats(0.1, 10), st.floats(0.1, 10))
def test_time_is_of_degree_minus_one_in_the_rates(fast: float, wide: float) -> None:
    at = V3 | {"q_len": 7, "context": 900, "topk": 2048, "nope": 128, "w_weight": 2, "exp_rate": 1e12}
    found = elasticities(TIME, at | {"peak": 1e15 * fast, "bandwidth": 3e12 * wide})
    rates = [found[name] for name in ("peak", "bandwidth", "exp_rate")]
    assert sum(rates) == pytest.approx(-1, abs=1e-12)


def test_on_the_ridge_both_sides_are_told() -> None:
    time = maximum(sym.flops / sym.peak, sym.bytes / sym.bandwidth)
    found = elasticities(time, {"flops": 3 * 0.1, "peak": 0.3, "bytes": 7, "bandwidth": 7})
    expected = {"flops": (0, 1), "peak": (-1, 0), "bytes": (0, 1), "bandwidth": (-1, 0)}
    assert {name: pytest.approx(pair) for name, pair in expected.items()} == found
    rate = sp.Min(sym.peak, sym.bandwidth * sym.intensity)
    assert elasticities(rate, {"peak": 6, "bandwidth": 2, "intensity": 3})["peak"] == (1, 0)


def test_the_formula_of_the_one_shot_crossing() -> None:
    """Elasticity of the crossing to the rate ratio m, for DeepSeek-V3.2 with rho = 17/5 m: by hand, for large K, it is
    (1 + (2 rho - 1)/(2 q)) rho / (rho + q) with q = sqrt(rho^2 - rho); two digits."""
    rho, k = sp.Rational(17, 5) * sym.rate_ratio, sym.topk
    length = k * rho - sp.Rational(1, 2) + sp.sqrt(4 * k**2 * rho * (rho - 1) + 1) / 2
    for ratio, expected in ((1, 1.10), (0.7, 1.16), (0.45, 1.35), (0.35, 1.75)):
        found = elasticities(length, {"rate_ratio": ratio, "topk": 2048})["rate_ratio"]
        assert found == pytest.approx(expected, abs=0.005)
        formula = elasticity(length, "rate_ratio").subs({k: 2048, sym.rate_ratio: sp.Rational(str(ratio))})
        assert float(formula) == pytest.approx(expected, abs=0.005)


def test_symbolic_elasticities_hold_no_derivative_of_a_step() -> None:
    pairs = oneshot(topk()).pairs
    formula = elasticity(pairs, "seq_len")
    assert not formula.has(sp.Heaviside, sp.Derivative, sp.DiracDelta)
    for length in (100, 2047, 2049, 50_000):
        exact = formula.subs({sym.seq_len: length, sym.topk: 2048})
        at = {"seq_len": length, "topk": 2048}
        assert float(exact) == pytest.approx(by_difference(pairs, at, "seq_len", 1e-9), abs=1e-6)
    assert elasticity(oneshot(dense()).pairs, "topk") == 0
    assert elasticity(sym.batch * sp.ceiling(sym.heads / 64), "heads") == 0
    assert elasticity(sym.batch * sp.ceiling(sym.heads / 64), "batch") == 1


def test_intensity_of_decode() -> None:
    """Long-context intensity goes with the first power of heads and the inverse of the row (design of MLA,
    arXiv:2405.04434 sec. 2.1); with Q and O traffic the power of heads falls below one."""
    intensity = CORE.bind(kv_row_bytes=656).intensity
    at = {"q_len": 1, "context": 10**9, "topk": 10**12, "heads": 128, "latent": 512, "rope": 64, "w_act": 2, "batch": 1}
    assert elasticities(intensity, at)["heads"] == pytest.approx(1, abs=1e-5)
    short = elasticities(intensity, at | {"context": 1023})["heads"]
    # rows 1024 * 656 B against 128 heads * 1088 * 2 B: share of the rows in the traffic
    assert short == pytest.approx(1024 * 656 / (1024 * 656 + 128 * 1088 * 2), rel=1e-12)


def test_errors() -> None:
    with pytest.raises(BadValue, match="bandwidth, peak"):
        elasticities(law.ridge(), {})
    with pytest.raises(BadValue, match="peak"):
        elasticities(law.ridge(), {"peak": float("inf"), "bandwidth": 1})
    with pytest.raises(BadValue, match="not zero"):
        elasticities(sym.context * 1, {"context": 0})
    with pytest.raises(BadValue, match="Piecewise"):
        elasticity(sp.Piecewise((1, sym.heads > 3), (sym.heads, True)), "heads")
