"""The solver against published crossings, against counting sign changes, and its own law: a root put back solves it.

Exact rows compare sympy expressions.  A printed number gets half a unit of its last digit.
"""

from __future__ import annotations

from typing import Any

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline import headcount, law
from roofline.derivations import decode, decode_intensity_limit
from roofline.errors import BadValue, UnknownName
from roofline.kernel import Cost
from roofline.kernels import KERNELS
from roofline.solver import Interval, Root, Solution, nearest_power_of_two, roots, solve_cost
from roofline.solver.branches import put
from roofline.solver.numbers import Problem
from roofline.solver.witness import verdict
from roofline.symbols import exact, maximum, minimum, sym
from roofline.visibility import dense, oneshot, prefix_part, topk

# Shapes as in the config.json of each repository on Hugging Face.
V32 = {"heads": 128, "latent": 512, "rope": 64, "nope": 128, "value": 128}  # deepseek-ai/DeepSeek-V3.2-Exp
GLM5 = {"heads": 64, "latent": 512, "rope": 64, "nope": 192, "value": 256}  # zai-org/GLM-5
FLASH = {"heads": 64, "latent": 512, "rope": 0, "nope": 256, "value": 256}  # zai-org/GLM-5.3-Flash
MHA, MQA = KERNELS["mla_mha"], KERNELS["mla_mqa"]


def holds(solution: Solution, lhs: Any, rhs: Any) -> None:
    """Every root satisfies the equation, checked by sympy itself at 40 digits."""
    x = getattr(sym, solution.unknown)
    for root in solution.roots:
        left, right = (sp.N(put(sp.sympify(side), {x: root.value}), 40) for side in (lhs, rhs))
        assert abs(left - right) <= 1e-25 * (abs(left) + abs(right) + 1)


# Head counts on the ridge


@pytest.mark.parametrize(
    ("peak", "bandwidth", "heads", "power"),
    [
        (865, 3.35, 136.70, (128, "memory")),  # H1: FlashMLA, docs/20250422-new-kernel-deep-dive.md; ±0.005, two digits
        (98.304, 0.768, 67.76, (64, "memory")),  # H1: MTT S4000 data sheet, mthreads.com
        (989.4, 4.8, 109.13, (128, "compute")),  # H2: NVIDIA H200 data sheet
        (2250, 7.7, 154.70, (128, "memory")),  # H2: NVIDIA DGX B200 data sheet
        (2250, 8.0, 148.90, (128, "memory")),  # H2: SemiAnalysis InferenceX
    ],
)
def test_heads_at_the_ridge(peak: float, bandwidth: float, heads: float, power: tuple[int, str]) -> None:
    shape = {"q_len": 1, "kv_row_bytes": 1152, "latent": 512, "rope": 64}
    lhs = decode_intensity_limit().subs({getattr(sym, k): v for k, v in shape.items()})
    (root,) = roots(lhs, exact(peak) / exact(bandwidth), "heads").roots
    assert float(root.value) == pytest.approx(heads, abs=0.005)
    assert root.is_exact
    assert tuple(nearest_power_of_two(root.value)) == power
    assert (root.before, root.after) == (-1, 1)


def test_heads_at_the_ridge_with_query_traffic_included() -> None:
    """With Q and O read and written the intensity saturates: 240.9 FLOP/B at 64K keys and 128 heads is the cache limit
    of 241.8 less the traffic, so the ridge of an H800 (258.2) needs more heads than the limit's 136.7."""
    solution = solve_cost("heads", decode(), **{k: V32[k] for k in ("latent", "rope")}, q_len=1, batch=1, w_act=2,
                          kv_row_bytes=1152, context=65535, ridge=exact(865) / exact(3.35))  # fmt: skip
    (root,) = solution.roots
    assert 136.71 < float(root.value) < 137.5


# One-shot prefill: masked MHA against sparse MQA (arXiv:2512.02556, vllm-project/vllm #48770)


def one_shot(skip: bool = True) -> tuple[Cost, Cost]:
    return MHA.bind(**oneshot(dense()).bindings()), MQA.bind(**oneshot(topk(skip=skip)).bindings())


@pytest.mark.parametrize(
    ("shape", "heads", "kernel_heads", "skip", "crossing"),
    [
        (V32, 128, 128, True, 12_813),  # X1, the closed form with rho = 17/5, to the token
        (GLM5, 64, 64, True, 7_518),  # X1, rho = 17/8
        (V32, 64, 128, True, 26_788),  # X1 at TP 2, 4, 8 with heads run as 128
        (V32, 32, 128, True, 54_662),
        (V32, 16, 128, True, 110_377),
        (V32, 128, 128, False, 13_925),  # X1b: 2 rho K - 1, missing keys computed
        (GLM5, 64, 64, False, 8_703),
    ],
)
def test_one_shot_crossing(shape: dict[str, int], heads: int, kernel_heads: int, skip: bool, crossing: int) -> None:
    mha, mqa = one_shot(skip)
    given_ = shape | {"heads": heads, "kernel_heads": kernel_heads, "topk": 2048, "batch": 1}
    solution = solve_cost("seq_len", mha, equals=mqa, **given_)
    (root,) = (r for r in solution.roots if r.value > 2048)
    assert float(root.value) == pytest.approx(crossing, abs=0.5)
    assert root.is_exact
    assert (root.before, root.after) == (-1, 1)  # MHA mode is cheaper below


def test_the_other_root_lies_below_topk_and_is_rejected() -> None:
    mha, mqa = one_shot()
    solution = solve_cost("seq_len", mha, equals=mqa, kernel_heads=128, topk=2048, batch=1, **V32)
    (other,) = (r for r in solution.rejected if r.value > 0)
    assert other.reason == "1,112.44 lies below 2,048, where this branch begins"
    assert len(solution.roots) == 1


def test_one_shot_closed_form_with_symbols() -> None:
    """X1: K rho - 1/2 + sqrt(4 K^2 rho (rho - 1) + 1)/2 for rho > 1, without further conditions."""
    rho, k = sp.Symbol("rho", positive=True), sym.topk
    pairs, sparse = oneshot(dense()).pairs, oneshot(topk()).pairs
    solution = roots(pairs, rho * sparse, "seq_len", assume=[sym.seq_len > k, rho > 1])
    (root,) = solution.roots
    assert sp.simplify(root.value - (k * rho - sp.Rational(1, 2) + sp.sqrt(4 * k**2 * rho * (rho - 1) + 1) / 2)) == 0
    assert root.conditions == ()
    assert root.witnessed
    without = roots(pairs, rho * sparse, "seq_len")
    assert any("exclude each other" in r.reason for r in without.rejected)  # the smaller root: rho <= 1 and rho > 1
    assert all(r.conditions for r in without.roots)


@pytest.mark.parametrize(
    ("heads", "length", "ratio"),
    [(128, 5_000, 0.4515), (16, 77_000, 0.7005)],  # X2: both lengths read off a plot in vllm-project/vllm #48770
)
def test_rate_ratio_that_gives_a_length(heads: int, length: int, ratio: float) -> None:
    mha, mqa = one_shot()
    bound = V32 | {"heads": heads, "kernel_heads": 128, "topk": 2048, "batch": 1, "seq_len": length}
    values = {getattr(sym, k): v for k, v in bound.items()}
    (root,) = roots(mha.flops.subs(values) / sym.rate_ratio, mqa.flops.subs(values), "rate_ratio").roots
    assert float(root.value) == pytest.approx(ratio, abs=5e-5)


def test_rate_ratio_with_symbols() -> None:
    """X2: rho = L (L + 1) / (K (2 L - K + 1)), given L > K, with Min(L, K) settled by the assumption."""
    rho = sp.Symbol("rho", positive=True)
    length, k = sym.seq_len, sym.topk
    (root,) = roots(oneshot(dense()).pairs, rho * oneshot(topk()).pairs, rho, assume=[length > k]).roots
    assert sp.cancel(root.value - length * (length + 1) / (k * (2 * length - k + 1))) == 0


def test_equal_on_a_whole_interval() -> None:
    """At ratio 1 both count the same pairs up to K keys, and dense counts more above: an interval, not a root."""
    solution = roots(oneshot(dense()).pairs, oneshot(topk()).pairs.subs(sym.topk, 2048), "seq_len")
    assert solution.intervals == (Interval(sp.Integer(0), sp.Integer(2048)),)
    assert solution.roots == ()
    assert solution
    with_symbols = roots(oneshot(dense()).pairs, oneshot(topk()).pairs, "seq_len")
    assert with_symbols.intervals == (Interval(sp.Integer(0), sym.topk),)
    assert with_symbols.roots == ()


# Chunked prefill


def chunked(sparse: bool) -> tuple[Cost, Cost]:
    sight = topk() if sparse else dense()
    mha = MHA.bind(**dense().bindings()) + KERNELS["mla_up_projection"].bind(**dense().bindings())
    core = MQA.bind(**sight.bindings(), kernel_heads=sym.heads)
    return mha, KERNELS["mla_absorption"] + core + KERNELS["mla_unabsorption"]


@pytest.mark.parametrize(("shape", "count"), [(V32, 170.67), (GLM5, 398.22), (FLASH, 512)])  # X5: d(n+v)/(2d-n-v)
def test_queries_from_which_mha_mode_wins_over_a_long_context(shape: dict[str, int], count: float) -> None:
    mha, mqa = chunked(sparse=False)
    values = {getattr(sym, k): v for k, v in (shape | {"batch": 1}).items()}
    found = roots(mha.flops.subs(values), mqa.flops.subs(values), "q_len").roots
    limits = [sp.limit(root.value, sym.context, sp.oo) for root in found]
    assert [float(v) for v in limits if v.is_finite] == [pytest.approx(count, abs=0.005)]


def test_queries_from_which_mha_mode_wins_over_8192_keys() -> None:
    mha, mqa = chunked(sparse=False)
    solution = solve_cost("q_len", mha, equals=mqa, batch=1, context=8192, **V32)
    assert solution.values == (pytest.approx(168.9, abs=0.05),)  # X5
    assert solution.trend == "decreasing"
    assert solution.limit_high == sp.Rational(5, 17)  # the ratio of the cores, (n+r+v)/(2d+r)


def test_sparse_chunk_has_a_window_with_two_ends() -> None:
    """X5b: a quadratic in the chunk; MHA mode is cheaper between both roots, and nowhere from 4,950 cached keys on."""
    mha, mqa = chunked(sparse=True)
    bound = V32 | {"batch": 1, "topk": 2048}
    low, high = solve_cost("q_len", mha, equals=mqa, context=4096, **bound).roots
    assert float(low.value) == pytest.approx(662, abs=0.5)
    assert float(high.value) == pytest.approx(5_072, abs=0.5)
    assert (low.before, low.after, high.before, high.after) == (1, -1, -1, 1)
    assert len(solve_cost("q_len", mha, equals=mqa, context=4949, **bound).roots) == 2
    never = solve_cost("q_len", mha, equals=mqa, context=4950, **bound)
    assert never.roots == ()
    assert "at least 1.000" in never.reason
    assert "stays above 1" in never.reason


# Shared prefix (TyphoonMLA, arXiv:2509.21081 sec. 3): MQA mode compute-bound, MHA mode memory-bound


@pytest.mark.parametrize(
    ("ridge", "per_head", "queries"),
    [
        (207, True, 60.88),  # X6; the paper prints 61, with the rotary key stored in every head
        (207, False, 48.80),
        (exact(865) / exact(3.35), True, 75.94),
        (exact(865) / exact(3.35), False, 60.87),
    ],
)
def test_shared_prefix(ridge: Any, per_head: bool, queries: float) -> None:
    part = prefix_part().bindings()
    row = 2 * 128 * (128 + 64 + 128) if per_head else None
    mha, mqa = MHA.bind(**part, w_act=0), MQA.bind(**part, w_act=0, kernel_heads=sym.heads)
    bound = V32 | {"q_len": 1, "prefix": 4096, "w_kv": 2, "w_expanded": 2, "expanded_row_bytes": row}
    solution = solve_cost(
        "batch", mha, equals=mqa, quantity="time", without=("exp",), peak=ridge, bandwidth=1, **bound
    )  # fmt: skip
    (root,) = solution.roots
    assert float(root.value) == pytest.approx(queries, abs=0.005)
    assert (root.before, root.after) == (1, -1)


def test_shared_prefix_with_symbols() -> None:
    part = prefix_part().bindings()
    mha, mqa = MHA.bind(**part, w_act=0), MQA.bind(**part, w_act=0, kernel_heads=sym.heads)
    solution = solve_cost("batch", mha, equals=mqa, quantity="time", without=("exp",), q_len=1)
    h, d, r, n, v = sym.heads, sym.latent, sym.rope, sym.nope, sym.value
    expected = sym.peak * sym.w_expanded * (h * (n + v) + r) / (2 * sym.bandwidth * h * (2 * d + r))  # X6
    (root,) = (r for r in solution.roots if sp.cancel(r.value - expected) == 0)
    assert set(root.conditions) == {
        2 * d >= n + v,
        sym.w_expanded * (h * n + h * v + r) >= sym.w_kv * (d + r),
    }
    assert root.witnessed
    assert all(r.conditions for r in solution.roots)


# No answer is an answer


def test_a_layer_that_is_never_compute_bound() -> None:
    """A 4096 to 256 layer in bf16: 2 f m / (a (f + m)) = 4096/17 = 240.9 FLOP/B is its limit, below H100's 295.2."""
    shape = {"hidden": 4096, "ffn": 256, "w_act": 2, "w_weight": 2}
    solution = solve_cost("tokens", KERNELS["linear"], peak=989.4e12, bandwidth=3.352e12, **shape)
    assert solution.roots == ()
    assert (solution.limit_low, solution.limit_high, solution.trend) == (0, sp.Rational(4096, 17), "increasing")
    assert [r.reason.split(" lies ")[1] for r in solution.rejected] == ["below the range tokens > 0"]
    assert solution.reason == (
        "intensity of linear goes from 0 (tokens -> 0) to 240.94 (tokens -> oo), increasing; "
        "it stays below the ridge 295.17 for every value of tokens"
    )


def test_the_condition_for_ever_being_compute_bound() -> None:
    (root,) = solve_cost("tokens", KERNELS["linear"], ridge=sym.ridge).roots
    (condition,) = root.conditions
    d, f, a = sym.hidden, sym.ffn, sym.w_act
    assert sp.expand(condition.gts - condition.lts - (2 * d * f - sym.ridge * a * (d + f))) == 0


def test_constant_in_the_unknown() -> None:
    solution = solve_cost("batch", decode(), ridge=300, kv_row_bytes=1152, q_len=1, context=8191, w_act=2,
                          heads=128, latent=512, rope=64)  # fmt: skip
    assert solution.roots == ()
    # 234.85 with Q and O traffic: datacrunch.io, "DeepSeek + SGLang: Multi-Head Latent Attention" (printed 235)
    assert "does not depend on batch: it is 234.85, below the ridge 300" in solution.reason
    assert solution.limit_high == solution.limit_low


def test_a_step_jumps_over_the_target() -> None:
    """64-wide padding of heads: 2 * 64 * ceiling(H/64) is 384 at 192 heads and 512 above."""
    padded = 128 * sp.ceiling(sym.heads / 64)
    jump = roots(padded, 500, "heads")
    assert jump.roots == ()
    assert [tuple(j) for j in jump.jumps] == [(192, 384, 512)]
    assert "jumps over right side at heads = 192 (from 384 to 512)" in jump.reason
    assert roots(padded, 384, "heads").intervals == (Interval(sp.Integer(128), sp.Integer(192)),)
    assert roots(padded + sym.heads, 470, "heads").values == ()  # 384 + 86 would be, but 86 heads are padded to 128
    assert roots(padded + sym.heads, 534, "heads").values == (150,)
    assert roots(sym.heads / sp.ceiling(sym.heads / 64), 50, "heads", high=200).values == (50, 100, 150, 200)


def test_ceiling_of_a_fraction_is_exact() -> None:
    """In floats ceiling((1/75) * 525) is 8; every cell of a tile of 75 must come out right."""
    lhs = sp.ceiling(sym.q_len / 75)
    for cell in (1, 7, 13, 29):
        assert roots(lhs, cell, "q_len").intervals == (Interval(sp.Integer(75 * cell - 75), sp.Integer(75 * cell)),)


def test_the_value_of_a_step_belongs_to_one_side() -> None:
    """64 ceiling(H/64) + H: just above 64 heads it is 192 and a bit, at 64 it is 128: 192 is never reached."""
    solution = roots(64 * sp.ceiling(sym.heads / 64) + sym.heads, 192, "heads")
    assert solution.roots == ()
    assert [tuple(j) for j in solution.jumps] == [(64, 128, 192)]
    assert [(r.value, r.reason) for r in solution.rejected] == [(64, "does not satisfy the equation put back")]


def test_the_closest_approach_is_told_where_the_limits_prove_nothing() -> None:
    """Two humps, near 1 and, higher, near 200 (by evaluation on a grid); both limits are 0."""
    x = sym.heads
    humps = x / (x**2 + 1) / 2 + sp.Rational(5, 3) * 200 * x / (x**2 + 40_000)
    solution = roots(humps, 1, "heads")
    f = sp.lambdify(x, humps, "math")
    best = max(f(k / 10) for k in range(1, 10_000))
    told = float(solution.reason.split("at most ")[1].split()[0])
    assert told == pytest.approx(best, rel=1e-6)
    assert (solution.limit_low, solution.limit_high, solution.trend) == (0, 0, "")
    assert "at most" not in roots(humps + 2 / (1 + x), 3, "heads").reason  # the limit at 0, 2, is the highest


def test_steps_down_and_steps_that_are_not_monotone() -> None:
    x = sym.heads
    assert roots(64 * sp.floor(x / 64) + x, 300, "heads").values == (172,)  # 2 * 64 + 172
    part = sp.ceiling(x / 8) - x / 8  # falls from 1 to 0 in each cell; both ends of part (1 - part) are 0
    assert len(roots(part * (1 - part), sp.Rational(1, 8), "heads", high=16).roots) == 4
    far = roots(sp.ceiling(x / 8) / x, sp.Rational(1, 8), "heads")  # equal at every multiple of 8, without end
    assert far.values[:3] == (8, 16, 24)
    assert "too many steps" in far.searched


def test_the_check_of_a_symbolic_root_can_fail() -> None:
    x = sp.Dummy("x", real=True)
    lhs, rhs = sp.Max(x, sym.topk, evaluate=False), 2 * sym.topk
    problem = Problem(lhs, rhs, x, "heads", sp.Integer(0), sp.oo, True, True, ("a", "b"))
    assert verdict(problem, Root(2 * sym.topk, "heads")) == "holds"
    assert verdict(problem, Root(3 * sym.topk, "heads")) == "wrong"
    assert verdict(problem, Root(3 * sym.topk, "heads", (sym.topk > sym.rope + 10**9,))) == "unseen"


# Conditions


def test_conditions_follow_from_the_signs_of_a_quadratic() -> None:
    x, p, q = sym.heads, sym.latent, sym.rope
    assert len(roots(x**2 - p * x, q**2 + 1, "heads").roots) == 1  # the product of both roots is negative
    both = roots(x**2 - p * x + q**2 + 1, 0, "heads")
    assert [r.conditions for r in both.roots] == [(p**2 - 4 * q**2 - 4 >= 0,)] * 2
    none = roots(x**2 + p * x + q**2 + 1, 0, "heads")
    assert none.roots == ()
    assert {r.reason for r in none.rejected} == {"lies below the range heads > 0"}


def test_an_assumption_that_is_no_bound_on_a_symbol() -> None:
    """X1 from the kernels: with more work a pair in MQA mode than in MHA mode, one root and no other condition."""
    mha, mqa = one_shot()
    more = sym.kernel_heads * (2 * sym.latent + sym.rope) > sym.heads * (sym.nope + sym.rope + sym.value)
    solution = solve_cost("seq_len", mha, equals=mqa, assume=[sym.seq_len > sym.topk, more])
    (root,) = solution.roots
    assert root.conditions == ()
    assert [r.reason for r in solution.rejected if r.value != 0 and r.value != -1] == [
        "lies below the range seq_len > topk"
    ]
    at = {getattr(sym, k): v for k, v in (V32 | {"kernel_heads": 128, "topk": 2048}).items()}
    assert float(root.value.subs(at)) == pytest.approx(12_813, abs=0.5)


def test_the_same_root_of_two_branches_is_one_root() -> None:
    (root,) = roots(maximum(sym.heads - sym.topk, 2 * sym.heads - 2 * sym.topk), 0, "heads").roots
    assert (root.value, root.conditions) == (sym.topk, ())


# Traps


def test_roots_outside_the_range_are_reported_not_dropped() -> None:
    """sympy drops -3 silently for a positive symbol."""
    solution = roots(sym.context**2 + sym.context, 6, "context")
    assert (solution.values, [r.value for r in solution.rejected]) == ((2,), [-3])


def test_an_end_of_the_range_is_a_root_only_where_it_belongs_to_it() -> None:
    assert roots(sym.context * (sym.context - 4), 0, "context").values == (0, 4)  # context >= 0
    assert roots(sym.heads * (sym.heads - 4), 0, "heads").values == (4,)  # heads > 0
    assert roots(sym.heads, 4, "heads", low=4).values == (4,)
    assert roots(sym.heads, 4, "heads", assume=[sym.heads > 4]).values == ()
    assert roots(sym.heads, 4, "heads", assume=[sym.heads < 4]).values == ()
    assert roots(sym.heads, 4, "heads", high=4).values == (4,)
    assert "leave nothing" in roots(sym.heads, sym.topk, "heads", assume=[sym.rope < 0]).reason
    assert roots(sym.heads, sym.topk, "heads", assume=[sym.rope >= 0]).roots[0].value == sym.topk
    for several in ([sym.heads > 2, 3 * sym.heads > 12], [3 * sym.heads > 12, sym.heads > 2, sym.heads > -9]):
        assert roots(sym.heads * (9 - sym.heads), 8, "heads", assume=several).values == (8,)
        assert roots(sym.heads * (9 - sym.heads), 20, "heads", assume=several).values == (5,)
    with pytest.raises(BadValue, match="bounds heads"):
        roots(sym.heads, 4, "heads", assume=[sym.heads**2 > 4])
    assert "leave nothing" in roots(sym.heads, 4, "heads", low=5, assume=[sym.heads < 4]).reason


def test_a_root_that_only_touches() -> None:
    (root,) = roots(maximum(sym.heads, 8 - sym.heads), 4, "heads").roots
    assert (root.value, root.before, root.after) == (4, 1, 1)


def test_no_closed_form_in_radicals_is_a_float_with_a_residual() -> None:
    (root,) = roots(sym.heads**5 - sym.heads, 5, "heads").roots
    assert root.value.is_Float
    assert not root.is_exact
    assert root.residual < 1e-25
    assert float(root.value) ** 5 - float(root.value) == pytest.approx(5, rel=1e-14)


def test_numeric_fallback() -> None:
    """x ln x = 100 at e^W(100), W of SciPy 1.17: 29.5366; and every sign change of a wave."""
    (root,) = roots(sym.heads * sp.log(sym.heads), 100, "heads").roots
    assert (root.branch, float(root.value)) == ("numeric", pytest.approx(float(sp.exp(sp.LambertW(100)))))
    assert root.residual < 1e-12
    wave = roots(sp.sin(sym.heads), sp.Rational(1, 2), "heads", low=1, high=20)
    expected = [(sp.pi * k + (-1) ** k * sp.pi / 6).evalf() for k in range(1, 7)]
    assert list(wave.values) == [pytest.approx(float(v)) for v in expected if v < 20]
    jump = roots(sp.sqrt(sym.heads) + 5 * sp.floor(sym.heads / 10), 6, "heads")
    assert (jump.roots, float(jump.jumps[0].at)) == ((), pytest.approx(10))
    nothing = roots(sp.sqrt(sym.heads) + 2, 1, "heads")
    assert (nothing.roots, "no change of sign" in nothing.reason) == ((), True)


def test_symbols_without_closed_form_ask_for_numbers() -> None:
    with pytest.raises(BadValue, match="numbers for latent, rope"):
        roots(sym.heads**sym.latent, sym.rope, "heads")


def test_bad_questions() -> None:
    with pytest.raises(UnknownName, match="heads"):
        roots(sym.heads, 1, "head")
    with pytest.raises(BadValue, match="unknown"):
        solve_cost("heads", decode(), heads=3)
    with pytest.raises(UnknownName, match="intensity"):
        solve_cost("heads", decode(), quantity="speed", target=1)
    with pytest.raises(BadValue, match="target"):
        solve_cost("heads", decode(), quantity="flops")
    with pytest.raises(BadValue, match="target"):
        solve_cost("heads", decode(), target=float("nan"))


@pytest.mark.parametrize(
    ("count", "power", "side"),
    [
        (1, 1, "ridge"),
        (0.3, 1, "compute"),
        (90.5, 64, "memory"),
        (90.6, 128, "compute"),
        (3 * 2**200, 2**202, "compute"),
    ],
)
def test_nearest_power_of_two(count: float, power: int, side: str) -> None:
    """The turn is at 64 sqrt(2) = 90.51; a tie goes up."""
    assert nearest_power_of_two(count) == (power, side)
    assert nearest_power_of_two(sp.sqrt(2) * 64) == (128, "compute")
    assert nearest_power_of_two(count).value == headcount.nearest_power_of_two(float(count))


# The law: a root put back gives the target; and nothing is missed

whole = st.integers(1, 300)


@st.composite
def kinked(draw: st.DrawFn) -> sp.Expr:
    """A random roofline-like function of `batch`: sums of Max and Min of lines and hyperbolas, sometimes padded."""
    x = sym.batch
    lines = [draw(whole) * x + draw(whole) for _ in range(2)] + [sp.Integer(draw(whole)) * 40]
    curves = [sp.Integer(draw(whole)) * 200 / x + draw(whole), x * draw(whole) * 300 / (x + draw(whole))]
    total = maximum(lines[0], lines[2]) + draw(st.sampled_from((1, -1))) * minimum(lines[1], curves[1])
    if draw(st.booleans()):
        total += maximum(curves[0], draw(st.sampled_from([sp.Integer(50), 3 * x])))
    return total + draw(st.sampled_from([0, 0, 7])) * sp.ceiling(x / draw(st.sampled_from([3, 16])))


@settings(max_examples=15)
@given(kinked(), whole)
def test_a_root_put_back_gives_the_target_and_none_is_missed(lhs: sp.Expr, factor: int) -> None:
    """Brute force: every change of sign on a fine grid has a root or a jump in its cell."""
    target = sp.Integer(factor * 25)
    solution = roots(lhs, target, "batch", high=60)
    holds(solution, lhs, target)
    found = [float(r.value) for r in solution.roots] + [float(j.at) for j in solution.jumps]
    found += [float(end) for i in solution.intervals for end in (i.low, i.high)]
    f = sp.lambdify(sym.batch, lhs - target, "math")
    grid = [k / 16 + 1e-9 for k in range(1, 60 * 16)]
    signs = [f(p) for p in grid]
    for a, b, fa, fb in zip(grid, grid[1:], signs, signs[1:], strict=False):
        if fa * fb < 0:
            assert any(a - 1e-6 <= p <= b + 1e-6 for p in found), (a, b, found)


@settings(max_examples=15)
@given(whole, whole, whole, st.integers(1, 4))
def test_symbolic_and_numeric_roots_agree(hidden: int, ffn: int, ridge: int, width: int) -> None:
    """The closed form with numbers put in is the numeric root wherever its conditions hold; elsewhere there is none."""
    values = {"hidden": hidden, "ffn": ffn, "ridge": ridge, "w_act": width, "w_weight": 2}
    (form,) = solve_cost("tokens", KERNELS["linear"], ridge=sym.ridge).roots
    at = {getattr(sym, k): v for k, v in values.items()}
    solution = solve_cost("tokens", KERNELS["linear"], **values)
    if all(c.subs(at) == sp.true for c in form.conditions):
        assert [r.value for r in solution.roots] == [form.value.subs(at)]
    else:
        assert solution.roots == ()


@settings(max_examples=10)
@given(st.integers(2, 40), st.integers(1, 40), st.sampled_from(["seq_len", "heads"]))
def test_time_of_a_kernel_equals_a_time(peak: int, context: int, unknown: str) -> None:
    core = MQA.bind(**oneshot(topk()).bindings(), kernel_heads=sym.heads, q_len=sym.seq_len)
    rest = {"seq_len": 700 + context, "heads": 16, "topk": 512, "batch": 1, "latent": 8, "rope": 4}
    rest |= {"w_kv": 2, "w_act": 2, "peak": peak, "bandwidth": 3}
    rest.pop(unknown)
    target = sp.Integer(10**8)  # above what the cache rows alone take
    (root,) = solve_cost(unknown, core, quantity="time", target=target, without=("exp",), **rest).roots
    time = put(law.time_lower(core, ("exp",)), {getattr(sym, k): sp.Integer(v) for k, v in rest.items()})
    assert abs(sp.N(put(time, {getattr(sym, unknown): root.value}) / target, 30) - 1) < 1e-25
