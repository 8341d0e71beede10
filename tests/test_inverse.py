"""The vectorised inverse: a root put back gives the target, jumps and poles are no roots, nothing is made up."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.codegen import compiled
from roofline.errors import BadValue
from roofline.inverse import invert
from roofline.symbols import sym
from roofline.visibility import dense, oneshot, topk

GAP = compiled(sym.rate_ratio * oneshot(topk()).pairs - oneshot(dense()).pairs, arrays=True)


def crossing_gap(seq_len: object, **columns: object) -> object:
    """Sparse pairs at `rate_ratio` times the cost, less dense pairs, of a one-shot prefill."""
    return GAP(seq_len=seq_len, **columns)


def test_one_shot_crossings_are_the_closed_form() -> None:
    """L* = K rho - 1/2 + sqrt(4 K^2 rho (rho - 1) + 1) / 2, the root above K; at K = 2048: 12,813 for rho = 3.4
    (DeepSeek-V3.2), 7,518 for 2.125 (GLM-5)."""
    rho = np.array([3.4, 2.125, *np.linspace(1.05, 40, 500)])
    found = invert(crossing_gap, 0, 2049, 1e7, rate_ratio=rho, topk=2048)
    exact = 2048 * rho - 0.5 + 0.5 * np.sqrt(4 * 2048**2 * rho * (rho - 1) + 1)
    assert found.verified.all()
    assert (found.sign_changes == 1).all()
    assert found.x == pytest.approx(exact, rel=1e-13)
    assert found.x[:2] == pytest.approx([12813, 7518], abs=0.5)


@given(
    rho=st.lists(st.floats(1.01, 50), min_size=1, max_size=20),
    k=st.integers(16, 4096),
    scan=st.integers(2, 65),
)
def test_a_root_put_back_gives_the_target(rho: list[float], k: int, scan: int) -> None:
    found = invert(crossing_gap, 0, k + 0.5, 1e9, scan=scan, rate_ratio=rho, topk=k)
    assert found.verified.all()
    scale = found.x**2
    assert np.abs(crossing_gap(found.x, rate_ratio=np.array(rho), topk=float(k)) / scale).max() < 1e-12
    assert found.residual == pytest.approx(crossing_gap(found.x, rate_ratio=np.array(rho), topk=float(k)))


def test_a_smooth_root_takes_few_steps() -> None:
    """Bisection would need about 45; inverse quadratic interpolation gets there in a handful."""
    calls: list[int] = []

    def counted(x: np.ndarray) -> np.ndarray:
        calls.append(np.size(x))
        return np.log(x) ** 3 + x

    found = invert(counted, np.linspace(3, 900, 50), 1.5, 1000.0, scan=9)
    assert found.verified.all()
    assert len(calls) <= 9 + 2 + 10 + 5  # scan, ends of the bracket, steps, verification


def test_no_bracket_is_nan_and_0_changes() -> None:
    found = invert(crossing_gap, 0, 2049, 1e7, rate_ratio=[0.4, 0.9, 3.4], topk=2048)
    assert np.isnan(found.x).tolist() == [True, True, False]
    assert found.sign_changes.tolist() == [0, 0, 1]
    assert found.verified.tolist() == [False, False, True]
    assert np.isnan(found.residual[0])


def test_all_roots_of_a_two_sided_window() -> None:
    """Sparse chunk over 4,096 cached tokens, DeepSeek-V3.2: MHA mode is cheaper between 662 and 5,072 new tokens."""

    def gap(s: np.ndarray, c: np.ndarray) -> np.ndarray:
        return 320 * s * s + ((2 * c + 1) * 320 - 2 * 2048 * 1088) * s + 2 * c * 512 * 256

    found = invert(gap, 0, 1, 1e6, all_roots=True, c=[4096.0, 8192.0])
    assert found.sign_changes.tolist() == [2, 0]
    assert found.x[:, 0] == pytest.approx([662, 5072], abs=1)
    assert np.isnan(found.x[:, 1]).all()
    assert found.verified.tolist() == [[True, False], [True, False]]
    first = invert(gap, 0, 1, 1e6, c=[4096.0, 8192.0])
    assert first.x[0] == found.x[0, 0]
    assert first.sign_changes.tolist() == [2, 0]


@given(st.lists(st.floats(0.02, 0.98), min_size=1, max_size=6, unique=True), st.integers(0, 3))
def test_brute_force_scan_finds_the_same_roots(places: list[float], extra: int) -> None:
    """A product of (ln x - r) over distinct roots r: a scan finer than the gaps finds each, by another way."""
    roots = sorted(round(p, 2) * 10 for p in places)
    roots = [r for n, r in enumerate(roots) if n == 0 or r - roots[n - 1] > 0.05]

    def f(x: np.ndarray) -> np.ndarray:
        return np.prod([np.log(x) - r for r in roots], axis=0)

    found = invert(f, 0, 1, math.exp(10), scan=401 + extra, all_roots=True)
    assert found.sign_changes == len(roots)
    assert np.log(found.x) == pytest.approx(np.array(roots), rel=1e-9)
    assert found.verified.all()


@pytest.mark.parametrize("f", [np.ceil, lambda x: 1 / (x - math.pi) + 3.5, lambda x: np.where(x > 5, 9.0, 1.0),
                               lambda x: 3.5 + np.sign(x - 4)])  # fmt: skip
def test_a_jump_or_a_pole_is_no_root(f: object) -> None:
    found = invert(f, 3.5, 1, 20)  # type: ignore[arg-type]
    assert found.sign_changes >= 1
    assert not found.verified or abs(found.residual) < 1e-9


def test_a_jump_is_reported_where_it_is() -> None:
    found = invert(np.ceil, 3.5, 1, 20)
    assert found.x == pytest.approx(3)
    assert not found.verified
    assert abs(found.residual) == 0.5


def test_kinks_and_flat_roots_are_roots() -> None:
    assert invert(lambda x: np.maximum(x, 2 * x - 5), 5, 1, 20).verified  # the root is the kink
    cube = invert(lambda x: (x - 3) ** 3, 0, 1, 20)
    assert cube.verified
    assert cube.x == pytest.approx(3, rel=1e-5)


def test_a_root_on_a_bound_or_scan_point_counts_once() -> None:
    for lo, hi in ((2, 50), (0.1, 2), (0.5, 8)):
        found = invert(lambda x: x, 2, lo, hi, scan=5)
        assert (found.x, found.sign_changes, found.verified) == (2, 1, True)
    touch = invert(lambda x: (x - 2) ** 2, 0, 0.5, 8, scan=5)  # 2 is the middle of the scan
    assert (touch.x, touch.verified) == (2, True)


def test_undefined_stretches_are_no_sign_change() -> None:
    found = invert(lambda x: np.where(x < 3, -1.0, np.where(x < 6, np.nan, 1.0)), 0, 1, 20)
    assert (found.sign_changes, found.verified) == (0, False)


def test_targets_bounds_and_columns_broadcast_and_threads_change_nothing() -> None:
    k = np.arange(1.0, 50001.0)
    one = invert(lambda x, k: x * k, [[6.0], [12.0]], 1e-5, [[100.0], [200.0]], k=k, threads=1)
    two = invert(lambda x, k: x * k, [[6.0], [12.0]], 1e-5, [[100.0], [200.0]], k=k)
    assert one.x.shape == (2, 50000)
    assert one.x == pytest.approx(np.array([[6.0], [12.0]]) / k, rel=1e-14)
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    closed = invert(lambda x: x * k[:7], [[6.0], [12.0]], 1e-5, 200, shape=(2, 7))
    assert closed.x == pytest.approx(one.x[:, :7], rel=1e-14)


@pytest.mark.parametrize(
    ("change", "told"),
    [({"lo": 0}, "0 < lo < hi"), ({"hi": 0.5}, "0 < lo < hi"), ({"hi": np.inf}, "finite"), ({"lo": np.nan}, "lo < hi"),
     ({"scan": 1}, "at least 2"), ({"target": [1, 2], "k": [1, 2, 3]}, "broadcast")],
)  # fmt: skip
def test_bad_questions_are_refused(change: dict[str, object], told: str) -> None:
    with pytest.raises(BadValue, match=told):
        invert(lambda x, k=1.0: x * k, **{"target": 3, "lo": 1, "hi": 9} | change)  # type: ignore[arg-type]


def test_an_error_inside_the_function_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        invert(lambda x: 1 // 0, 1, 1, 9)


def test_no_cases_give_no_roots() -> None:
    assert invert(lambda x, k: x * k, 1, 1, 9, k=np.empty(0)).x.shape == (0,)
