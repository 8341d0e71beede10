"""The roofline law on random shapes and rates: legs, bounds, verdict, ridge."""

from __future__ import annotations

from functools import cache
from itertools import permutations
from math import inf, log2
from typing import Any

import pytest
import sympy as sp
from drawing import NAMES, RATES, SIZES, WIDTHS, bounds, dense_kernel, leg_times, names, put, rates, shapes
from hypothesis import assume, example, given
from hypothesis import strategies as st

from roofline import law
from roofline.derivations import decode, decode_intensity_limit, heads_at_ridge
from roofline.kernel import Sequence
from roofline.kernels import KERNELS
from roofline.symbols import SYMBOLS, exact


def legs_of(name: str, size: dict[str, Any], rate: dict[str, Any]) -> dict[str, Any]:
    """Each leg's time in numbers."""
    return {leg: put(time, **size, **rate) for leg, time in leg_times(name).items()}


ONES = dict.fromkeys((*SIZES, *WIDTHS, "kv_heads", "kernel_heads", "prefix"), 1)


@given(shapes(), rates, names)
@example(ONES, dict.fromkeys(RATES, 1), "mla_mqa")
def test_each_leg_is_the_work_over_its_rate(size: dict[str, Any], rate: dict[str, Any], name: str) -> None:
    units = {"tensor": ("flops", "peak"), "vector": ("vector_flops", "vector_peak"), "exp": ("exps", "exp_rate")}
    units["memory"] = ("bytes", "bandwidth")
    work = {leg: put(dense_kernel(name).quantity(q), **size) / exact(rate[unit]) for leg, (q, unit) in units.items()}
    assert legs_of(name, size, rate) == {leg: time for leg, time in work.items() if time}


@pytest.mark.parametrize("name", NAMES)
def test_legs_left_out(name: str) -> None:
    (kernel,) = dense_kernel(name).kernels
    assert set(law.legs(kernel, without={"exp", "memory"})) == set(law.legs(kernel)) - {"exp", "memory"}
    tensor = law.legs(kernel).get("tensor")
    if tensor is not None:
        alone = {"exp", "memory", "vector"}
        assert law.time_lower(kernel, without=alone) == law.time_upper(kernel, without=alone) == tensor


@given(shapes(), rates, names)
def test_the_bounds_enclose_each_other(size: dict[str, Any], rate: dict[str, Any], name: str) -> None:
    legs = legs_of(name, size, rate)
    lower, upper = (put(bound, **size, **rate) for bound in bounds(name))
    assert lower == max(legs.values())
    assert upper == sum(legs.values())
    assert lower <= upper <= len(legs) * lower


@given(shapes(), rates, names, names)
def test_kernels_one_after_the_other_add_their_times(
    size: dict[str, Any], rate: dict[str, Any], one: str, two: str
) -> None:
    """The lower bound of a sequence is the sum of the lower bounds: never below the bound of the fused totals."""
    for together, first, second in zip(bounds(one, two), bounds(one), bounds(two), strict=True):
        assert put(together, **size, **rate) == put(first, **size, **rate) + put(second, **size, **rate)
    both = dense_kernel(one, two)
    fused = max(put(both.flops, **size) / exact(rate["peak"]), put(both.bytes, **size) / exact(rate["bandwidth"]))
    assert put(bounds(one, two)[0], **size, **rate) >= fused


@given(shapes(), rates, names, st.integers(1, 5))
def test_a_repeated_kernel_is_a_sequence_of_copies(
    size: dict[str, Any], rate: dict[str, Any], name: str, times: int
) -> None:
    """As often as it is repeated where it stands in a sequence; on its own it is one run."""
    (kernel,), many = dense_kernel(name).kernels, repeated(name, times)
    assert many.kernels[0].flops == kernel.flops
    once = [put(bound, **size, **rate) for bound in bounds(name)]
    for bound, single in zip((law.time_lower, law.time_upper), once, strict=True):
        assert put(bound(many.kernels[0]), **size, **rate) == single
        assert put(bound(many), **size, **rate) == times * single
    assert put(many.flops, **size) == times * put(kernel.flops, **size)
    assert put(many.bytes, **size) == times * put(kernel.bytes, **size)


@cache
def repeated(name: str, times: int) -> Sequence:
    """A sequence of one kernel that runs several times."""
    return Sequence("repeated", dense_kernel(name).kernels[0].repeated(times))


@given(rates, st.fractions(0, 1000, max_denominator=9))
def test_attainable_is_under_both_roofs_and_on_one(rate: dict[str, Any], intensity: Any) -> None:
    found = put(law.attainable(), **rate, intensity=intensity)
    roofs = exact(rate["peak"]), exact(rate["bandwidth"]) * exact(intensity)
    assert found <= min(roofs)
    assert found in roofs
    at_ridge = put(law.attainable(), **rate, intensity=put(law.ridge(), **rate))
    assert at_ridge == exact(rate["peak"])
    assert (found == roofs[0]) == (exact(intensity) >= put(law.ridge(), **rate))


@given(shapes(), rates)
def test_time_is_the_work_over_the_attainable_rate(size: dict[str, Any], rate: dict[str, Any]) -> None:
    """For a kernel of two legs the time bound and the attainable performance are the same law."""
    kernel = dense_kernel("linear")
    found = put(law.attainable(), **rate, intensity=put(kernel.intensity, **size))
    assert put(bounds("linear")[0], **size, **rate) == put(kernel.flops, **size) / found


@cache
def decode_intensity() -> sp.Expr:
    """Intensity at a finite context, queries and output counted."""
    return decode().intensity


@given(shapes(), rates)
def test_heads_at_the_ridge_put_back_give_the_ridge(size: dict[str, Any], rate: dict[str, Any]) -> None:
    free = {k: v for k, v in size.items() if k in ("q_len", "latent", "rope")} | {"kv_row_bytes": size["w_kv"]}
    heads = put(heads_at_ridge(), **free, **rate)
    assert put(decode_intensity_limit(), **free, heads=heads) == put(law.ridge(), **rate)
    rest = {k: size[k] for k in ("batch", "w_act", "context")}
    at_length = put(decode_intensity(), **free, **rest, heads=heads)
    if size["q_len"] == 1:
        assert at_length < put(law.ridge(), **rate)  # Q and O only add bytes: a finite context lies below its limit


@given(
    st.fractions("1/64", 64, max_denominator=64),
    st.fractions("1/64", 64, max_denominator=64),
    st.fractions(0, 64, max_denominator=64),
)
def test_the_verdict_names_the_longest_leg_and_its_distance(tensor: Any, memory: Any, other: Any) -> None:
    assume(len({tensor, memory, other}) == 3)
    times = {"tensor": float(tensor), "memory": float(memory), "exp": float(other), "vector": float(other) / 2}
    found = law.verdict(times)
    words = {"tensor": "compute", "memory": "memory", "exp": "special-function unit"}
    assert found.bound == words[max(words, key=lambda leg: times[leg])]
    assert found.distance == pytest.approx(log2(tensor / memory))
    assert found.flops_headroom == pytest.approx(memory / tensor)
    assert found.bytes_headroom == pytest.approx(tensor / memory)
    assert law.verdict(times | {"vector": 1e3}).bound == "vector unit"


def test_the_verdict_of_a_kernel_with_one_leg() -> None:
    """Nothing to compute: infinitely far on the memory side; nothing to move: infinitely far on the other."""
    assert law.verdict({"memory": 1.0}) == ("memory", -inf, inf, 0.0)
    assert law.verdict({"tensor": 1.0}) == ("compute", inf, 0.0, inf)


@given(shapes(), rates, names)
def test_the_verdict_agrees_with_intensity_and_ridge(size: dict[str, Any], rate: dict[str, Any], name: str) -> None:
    found = law.verdict({leg: float(time) for leg, time in legs_of(name, size, rate).items()})
    kernel, ridge = dense_kernel(name), put(law.ridge(), **rate)
    intensity = put(kernel.flops / kernel.bytes, **size)
    assert found.bytes_headroom == pytest.approx(float(intensity / ridge))
    assert found.distance == (pytest.approx(log2(intensity / ridge)) if intensity else -inf)


def test_every_permutation_of_a_sum_is_the_same_kernel_time() -> None:
    """Order of kernels does not matter to the totals or the times."""
    parts = [KERNELS[n] for n in ("mla_absorption", "mla_mqa", "mla_unabsorption")]
    sums = {law.time_upper(a + b + c) for a, b, c in permutations(parts)}
    assert len(sums) == 1


def test_symbols_of_the_laws_are_the_glossarys() -> None:
    assert law.ridge().free_symbols | law.attainable().free_symbols <= set(SYMBOLS.values())
