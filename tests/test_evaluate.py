"""Numbers put into formulas: scalars, arrays and exact sympy agree; missing, unknown and impossible values are told."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from roofline.errors import BadValue, UnknownName
from roofline.evaluate import closed_form, evaluate, leg_times, parameters, scalar, visible
from roofline.kernels import KERNELS
from roofline.law import attainable, legs, time_lower
from roofline.symbols import sym
from roofline.visibility import dense

MQA = {"latent": 512, "rope": 64, "w_kv": 2, "w_act": 2, "q_len": 1}
DECODE = KERNELS["mla_absorption"] + KERNELS["mla_mqa"] + KERNELS["mla_unabsorption"]


def test_intensity_of_decode_by_three_ways() -> None:
    """241.78 FLOP/B: 17/9 of 128 heads, the long-context limit (arXiv:2405.04434 shapes, bf16 cache)."""
    values = MQA | visible("dense", q_len=1, context=8191) | {"heads": 128, "kernel_heads": 128, "w_act": 0}
    by_id = evaluate("mla_mqa", "intensity", **values)
    assert by_id == pytest.approx(2176 / 9, rel=1e-14)
    assert evaluate(KERNELS["mla_mqa"], "intensity", **values) == pytest.approx(by_id, rel=1e-14)
    assert evaluate((KERNELS["mla_mqa"], "intensity"), **values) == pytest.approx(by_id, rel=1e-14)
    arrays = evaluate(
        "mla_mqa", "intensity", **values | {"heads": np.array([128, 1]), "kernel_heads": np.array([128, 1])}
    )
    assert arrays == pytest.approx([by_id, by_id / 128], rel=1e-14)


@pytest.mark.parametrize(
    "how",
    [
        lambda v: evaluate("mla_mqa", "bytes", **v),
        lambda v: evaluate(KERNELS["mla_mqa"], "bytes", **v),
        lambda v: evaluate("mla_mqa", "bytes", **v | {"batch": [1, 2]})[0],
    ],
)
def test_a_row_width_may_be_given_instead_of_its_default(how: object) -> None:
    values = {"batch": 1, "heads": 1, "latent": 512, "rope": 64, "q_len": 1, "rows_read": 10, "w_act": 0}
    assert how(values | {"w_kv": 2}) == 11520  # type: ignore[operator]
    assert how(values | {"kv_row_bytes": 656}) == 6560  # type: ignore[operator]


def test_a_value_bound_by_hand_is_not_overruled() -> None:
    decode = KERNELS["mla_mqa"].bind(q_len=1)
    with pytest.raises(BadValue, match="bound to 1"):
        evaluate(decode, "bytes", **MQA)


@given(
    h=st.lists(st.integers(1, 300), min_size=1, max_size=4), c=st.lists(st.integers(0, 10**6), min_size=1, max_size=4)
)
def test_arrays_broadcast_to_what_each_point_gives(h: list[int], c: list[int]) -> None:
    cost = DECODE.bind(**dense().bindings(), kernel_heads=sym.heads)
    expr = time_lower(cost)
    fixed = MQA | {
        "nope": 128,
        "value": 128,
        "batch": 3,
        "w_weight": 1,
        "peak": 1e15,
        "bandwidth": 3e12,
        "exp_rate": 4e12,
    }
    table = evaluate(expr, heads=np.array(h)[:, None], context=np.array(c), **fixed)
    assert table.shape == (len(h), len(c))
    assert table.dtype == np.float64
    for i, heads in enumerate(h):
        for j, context in enumerate(c):
            assert table[i, j] == pytest.approx(evaluate(expr, heads=heads, context=context, **fixed), rel=1e-14)


def test_a_constant_is_broadcast_to_the_common_shape() -> None:
    assert evaluate(sp.Integer(3), heads=[1, 2]).tolist() == [3, 3]
    assert evaluate(sym.heads * 0 + sym.batch, heads=[[1, 2]], batch=5).tolist() == [[5, 5]]
    assert evaluate("mla_absorption", "exps", batch=[1, 2]).tolist() == [0, 0]
    assert evaluate(3) == 3.0


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint16, np.float32])
def test_integers_are_cast_before_they_can_overflow(dtype: type) -> None:
    """2 * 100**9 is beyond int64 (and far beyond int8); numpy would wrap around silently."""
    x = np.full(2, 100, dtype=dtype)
    result = evaluate(2 * sym.heads**5 * sym.batch**4, heads=x, batch=x)
    assert result.dtype == np.float64
    assert result.tolist() == [2e18, 2e18]
    assert evaluate(2 * sym.heads**9, heads=dtype(100)) == 2e18
    assert evaluate(sym.heads**30, heads=10**6) == pytest.approx(1e180)


def test_missing_names_are_told_with_unit_and_meaning() -> None:
    with pytest.raises(BadValue) as told:
        evaluate(sym.peak / sym.bandwidth * sym.heads, heads=3)
    assert str(told.value) == (
        "values: got only heads, expected also bandwidth [B/s] (memory bandwidth), "
        "peak [FLOP/s] (dense tensor-unit rate at the precision of the kernel)"
    )
    with pytest.raises(BadValue, match=r"got none, expected also batch \[1\] .*, w_kv"):
        evaluate("mla_mqa", "bytes")
    with pytest.raises(BadValue, match="also batch"):
        evaluate(sym.batch + sym.heads, heads=[1.0, 2.0])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: evaluate(sym.heads, head=3), "unknown quantity 'head'.*heads"),
        (lambda: evaluate("mla_mqaa", "flops"), "unknown kernel 'mla_mqaa'.*mla_mqa"),
        (lambda: evaluate("mla_mqa", "flop"), "unknown quantity of kernel 'mla_mqa' 'flop'.*flops"),
        (lambda: visible("densee"), "unknown visibility 'densee'.*dense"),
        (lambda: leg_times("mla"), "unknown kernel 'mla'"),
        (lambda: scalar("mla_mqa", "byte"), "bytes"),
        (lambda: closed_form("head"), "heads_at_ridge"),
    ],
)
def test_unknown_names_come_with_the_nearest(call: object, told: str) -> None:
    with pytest.raises(UnknownName, match=told):
        call()  # type: ignore[operator]


@pytest.mark.parametrize(
    "bad",
    [0, -1, float("nan"), float("inf"), True, "8", None, 10**400, np.nan, [1.0, 0.0], [1.0, np.nan], [[np.inf]], ["8"]],
)
def test_values_outside_the_range_are_refused(bad: object) -> None:
    with pytest.raises(BadValue, match="heads"):
        evaluate(sym.heads + 1, heads=bad)
    with pytest.raises(BadValue, match="heads"):
        evaluate("mla_absorption", "flops", batch=1, latent=1, nope=1, q_len=1, heads=bad)


def test_the_place_of_a_bad_array_element_is_told() -> None:
    with pytest.raises(BadValue, match=r"heads\[1, 2\]: got -4.0, expected a finite number > 0 \[1\]: query heads"):
        evaluate(sym.heads, heads=[[1, 2, 3], [4, 5, -4]])
    with pytest.raises(BadValue, match=r"tp\[1\]: got 1.5, expected a whole number"):
        evaluate(sym.heads / sym.tp, heads=8, tp=[1, 1.5])


def test_shapes_that_do_not_broadcast_are_told() -> None:
    with pytest.raises(BadValue, match=r"batch \(3,\), heads \(2,\)|heads \(2,\), batch \(3,\)"):
        evaluate(sym.heads + sym.batch, heads=[1, 2], batch=[1, 2, 3])


def test_a_kernel_without_a_quantity_is_asked_back() -> None:
    with pytest.raises(BadValue, match="one of flops"):
        evaluate(KERNELS["mla_mqa"], heads=1)


@given(peak=st.floats(1e12, 1e16), bandwidth=st.floats(1e11, 1e14), exp_rate=st.floats(1e11, 1e13), b=st.integers(1, 9))
def test_leg_times_are_the_laws(peak: float, bandwidth: float, exp_rate: float, b: int) -> None:
    values = MQA | {
        "heads": 16,
        "kernel_heads": 64,
        "batch": b,
        "peak": peak,
        "bandwidth": bandwidth,
        "exp_rate": exp_rate,
    }
    values |= visible("topk", q_len=1, context=5000, topk=2048)
    found = leg_times("mla_mqa", **values)
    assert found == {
        leg: pytest.approx(evaluate(e, **values), rel=1e-14) for leg, e in legs(KERNELS["mla_mqa"]).items()
    }
    assert max(found.values()) == pytest.approx(evaluate(time_lower(KERNELS["mla_mqa"]), **values), rel=1e-14)
    assert evaluate("mla_mqa", "memory", **values) == found["memory"]
    assert evaluate(KERNELS["mla_mqa"], "memory", **values) == pytest.approx(found["memory"], rel=1e-14)
    assert set(leg_times("mla_mqa", ["exp"], **values)) == {"tensor", "memory"}


def test_attainable_never_exceeds_a_roof() -> None:
    intensity = np.logspace(-2, 4, 50)
    found = evaluate(attainable(), peak=1e15, bandwidth=3e12, intensity=intensity)
    assert (found <= 1e15).all()
    assert (found <= 3e12 * intensity).all()


def test_symbols_of_ones_own_work_by_name() -> None:
    x = sp.Symbol("x")
    assert evaluate(x * sym.heads, x=-2, heads=3) == -6
    assert evaluate(x * sym.heads, x=[-2, 1], heads=3).tolist() == [-6, 3]


def test_one_point_of_a_built_in_kernel_needs_neither_sympy_nor_numpy() -> None:
    code = (
        "import sys; from roofline.evaluate import evaluate, leg_times, closed_form, visible\n"
        "v = visible('dense', q_len=1, context=10)\n"
        "evaluate('mla_mqa', 'bytes', batch=1, heads=8, latent=4, rope=2, w_kv=2, w_act=2, q_len=1, **v)\n"
        "print([m for m in ('sympy', 'numpy') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "[]\n"


def test_parameters_are_the_names_a_function_takes() -> None:
    assert parameters(scalar("mla_absorption", "flops")) == ("batch", "heads", "latent", "nope", "q_len")
