"""Closed forms with symbols left: values and conditions worked out by hand, with the signs of the glossary.

Below, x = heads > 0, p = latent > 0, q = rope >= 0, n = nope > 0, k = topk > 0; a, b, c are any real numbers.
"""

from __future__ import annotations

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.errors import BadValue
from roofline.solver import Interval, Solution, roots
from roofline.solver.symbolic import _limit
from roofline.symbols import maximum, minimum, sym

X, P, Q, N, K = sym.heads, sym.latent, sym.rope, sym.nope, sym.topk
A, B, C = sp.symbols("a b c", real=True)
REST = " has no root for any heads"


def told(solution: Solution) -> list[tuple[sp.Expr, set[sp.Basic]]]:
    return [(r.value, set(r.conditions)) for r in solution.roots]


def below(value: str, low: str = "> 0") -> str:
    return f"{REST}: {value} lies below the range heads {low}"


LOWER, LOW = below("-1/(latent + rope)"), below("-(latent + nope)/rope")


# Linear


def test_signs_of_the_symbols() -> None:
    """The test's own ground: which of them may be zero."""
    assert [s.is_positive for s in (X, P, Q, N, K)] == [True, True, None, True, True]


def test_linear() -> None:
    assert told(roots(P * X, N, "heads")) == [(N / P, set())]
    assert told(roots(P * X, Q, "heads")) == [(Q / P, {Q > 0})]
    assert told(roots(A * X, B, "heads")) == [(B / A, {sp.Ne(A, 0), A * B > 0})]
    assert told(roots((P - Q) * X, N, "heads")) == [(N / (P - Q), {P > Q})]  # p > q says that p - q is not 0
    assert told(roots(P * X, Q, "heads", low=1, high=9)) == [(Q / P, {Q >= P, 9 * P >= Q})]
    none = roots(P * X, -N, "heads")
    assert (none.roots, [(r.value, r.reason) for r in none.rejected]) == (
        (),
        [(-N / P, "lies below the range heads > 0")],
    )


def test_a_root_is_verified_where_a_shape_meets_its_conditions() -> None:
    (seen,) = roots(P * X, Q, "heads").roots
    (unseen,) = roots(P * X, Q, "heads", assume=[Q > P + 10**8]).roots  # random shapes stay below 10^6
    assert (seen.witnessed, unseen.witnessed) == (True, False)


# Quadratic


def test_quadratic() -> None:
    """x^2 - p x + q: (p -+ sqrt(p^2 - 4 q))/2, both positive, the smaller only if q > 0."""
    spread = sp.sqrt(P**2 - 4 * Q)
    real = P**2 - 4 * Q >= 0
    for sign in (1, -1):
        assert told(roots(sign * (X**2 - P * X), -sign * Q, "heads")) == [
            (P / 2 - spread / 2, {real, Q > 0}),
            (P / 2 + spread / 2, {real}),
        ]


def test_quadratic_with_a_negative_lead() -> None:
    """The same in an unknown that sympy sorts after p: its factor is p s - s^2 - q, with -1 before s^2."""
    s, spread = sym.seq_len, sp.sqrt(P**2 - 4 * Q)
    real = P**2 - 4 * Q >= 0
    for sign in (1, -1):
        assert told(roots(sign * (s**2 - P * s), -sign * Q, "seq_len")) == [
            (P / 2 - spread / 2, {real, Q > 0}),
            (P / 2 + spread / 2, {real}),
        ]
    assert told(roots(P * s - s**2, -N, "seq_len")) == [(P / 2 + sp.sqrt(P**2 + 4 * N) / 2, set())]


def test_quadratic_with_a_leading_symbol() -> None:
    """p x^2 - q x - 1: (q +- sqrt(q^2 + 4 p))/(2 p); the product of both is negative, in either writing."""
    spread = sp.sqrt(4 * P + Q**2) / (2 * P)
    for sign in (1, -1):
        found = roots(sign * (P * X**2 - Q * X - 1), 0, "heads")
        assert told(found) == [(Q / (2 * P) + spread, set())]
        assert [(r.value, r.reason) for r in found.rejected] == [
            (Q / (2 * P) - spread, "lies below the range heads > 0")
        ]


def test_quadratic_whose_sign_is_open() -> None:
    """a x^2 + b x + c: neither the order of the roots nor whether there are any is known."""
    found = roots(A * X**2 + B * X + C, 0, "heads")
    assert len(found.roots) == 2
    for root in found.roots:
        assert sp.simplify(A * root.value**2 + B * root.value + C) == 0
        assert {sp.Ne(A, 0), B**2 - 4 * A * C >= 0} < set(root.conditions)


def test_quadratic_without_real_roots_and_with_one() -> None:
    """Discriminants: -4 (q^2 + p + 1) < 0; 0."""
    none = roots(X**2 + Q**2 + P + 1, 0, "heads")
    assert (none.roots, none.rejected) == ((), ())
    assert none.reason == f"left side goes from latent + rope**2 + 1 (heads -> 0){REST}"
    assert told(roots(X**2 - 2 * P * X + P**2, 0, "heads")) == [(P, set())]


def test_an_assumption_makes_the_roots_real() -> None:
    """x^2 - p x + n with p^2 > 4 n given: both roots without a condition."""
    half, spread = P / 2, sp.sqrt(P**2 - 4 * N) / 2
    found = roots(X**2 - P * X, -N, "heads", assume=[P**2 > 4 * N])
    assert told(found) == [(half - spread, set()), (half + spread, set())]


def test_factors_are_solved_one_by_one() -> None:
    """(x - p)(x^2 - q): the square needs nothing, because q >= 0."""
    found = roots((X - P) * (X**2 - Q), 0, "heads")
    assert told(found) == [(P, set()), (sp.sqrt(Q), {Q > 0})]
    assert [(r.value, r.reason) for r in found.rejected] == [(-sp.sqrt(Q), "lies below the range heads > 0")]
    assert told(roots((X - P) ** 3 * (X + N), 0, "heads")) == [(P, set())]


@pytest.mark.parametrize("expr", [X**3 - X * P - Q - 1, X**P - 3, sp.log(X) - P, sp.ceiling(X / P) - 3])
def test_without_closed_form_numbers_are_asked_for(expr: sp.Expr) -> None:
    wanted = ", ".join(sorted(s.name for s in expr.free_symbols - {X}))
    with pytest.raises(BadValue, match=f"numbers for {wanted}"):
        roots(expr, 0, "heads")


def test_what_a_hidden_maximum_holds_is_asked_for_too() -> None:
    with pytest.raises(BadValue, match="numbers for latent, nope, rope"):
        roots(X**5 - X * maximum(P, Q), N, "heads")


def test_what_cancels_is_not_asked_for() -> None:
    with pytest.raises(BadValue, match=r"numbers for nope$"):
        roots(X**5 - X + P, N + P, "heads")


# Max and Min


def test_branches_and_their_conditions() -> None:
    """Max(2 x, p) = n: x = n/2 where n >= p; the constant branch is never equal."""
    assert told(roots(maximum(2 * X, P), N, "heads")) == [(N / 2, {N >= P})]
    assert told(roots(minimum(2 * X, P), N, "heads")) == [(N / 2, {P >= N})]
    found = roots(maximum(X - P, X - Q) * (X - 1), 0, "heads")
    assert [(r.value, set(r.conditions), r.branch) for r in found.roots] == [
        (1, {Q >= P}, "Max = heads - latent"),
        (P, {Q >= P}, "Max = heads - latent"),
        (1, {P >= Q}, "Max = heads - rope"),
        (Q, {Q > 0, P >= Q}, "Max = heads - rope"),
    ]


def test_the_same_root_with_weaker_conditions_is_kept() -> None:
    """|x - p| = 0 in both branches; Max(x - p, (x - p) q) = 0 at p in both, whatever q is."""
    touching = roots(maximum(X - P, P - X), 0, "heads")
    assert told(touching) == [(P, set())]
    assert touching.roots[0].branch == "Max = -heads + latent"  # the first of the two
    assert told(roots(maximum(X - P, 2 * X - 2 * P), 0, "heads")) == [(P, set())]


def test_equality_on_an_interval() -> None:
    """Max(x, p) = p up to p, with q only if p >= q; the end p is no root besides."""
    assert roots(maximum(X, P), P, "heads").intervals == (Interval(sp.Integer(0), P),)
    assert roots(minimum(X, P), P, "heads").intervals == (Interval(P, sp.oo),)
    found = roots(maximum(X, P, Q), P, "heads")
    assert (found.intervals, found.roots) == ((Interval(sp.Integer(0), P, (P >= Q,)),), ())
    beside = roots((maximum(X, P) - P) * (X - N), 0, "heads")  # n is another root, above p only
    assert (beside.intervals, told(beside)) == ((Interval(sp.Integer(0), P),), [(N, {N >= P})])
    assert roots(P + N, N + P, "heads").intervals == (Interval(sp.Integer(0), sp.oo),)


def test_what_holds_no_unknown_is_a_coefficient() -> None:
    """Nested, repeated and rounded; put back in the answer."""
    wide = maximum(K, minimum(Q, N))
    tiles = sp.ceiling(N / P)
    assert told(roots(X * wide, tiles, "heads")) == [(tiles / wide, set())]
    found = roots(X * wide, N + minimum(Q, N), "heads")
    assert told(found) == [((N + minimum(Q, N)) / wide, set())]
    assert told(roots(X * tiles, Q, "heads")) == [(Q / tiles, {Q > 0})]
    signed = maximum(A, B)
    ((value, conditions),) = told(roots(X * signed, P, "heads"))
    assert value == P / signed
    assert conditions == {signed > 0}


def test_maximum_settled_by_signs() -> None:
    """Max(k, 2 k) = 2 k and Min(5 k, 3 k, k) = k for k > 0; Max(0, p) = p."""
    assert told(roots(X * maximum(K, 2 * K), minimum(5 * K, 3 * K, K), "heads")) == [(sp.Rational(1, 2), set())]
    assert told(roots(X * maximum(sp.Integer(0), P), N, "heads")) == [(N / P, set())]
    assert told(roots(X * minimum(sp.Integer(0), P) + X, N, "heads")) == [(N, set())]
    open_ = maximum(K, 2 * K, N)  # k <= 2 k says nothing of n
    assert told(roots(X * open_, P, "heads")) == [(P / open_, set())]
    assert told(roots(X * maximum(P, N), N, "heads", assume=[P > N])) == [(N / P, set())]
    assert told(roots(X * minimum(P, N), N, "heads", assume=[P > N])) == [(1, set())]


# Why there is none


@pytest.mark.parametrize(
    ("lhs", "rhs", "low", "high", "reason"),
    [
        (P * X / (Q * X + 1), -1, 0, P / Q, "0 (heads -> 0) to latent/rope (heads -> oo)" + LOWER),
        (P * X**2 / (N * X**2 + 1), -2, 0, P / N, "0 (heads -> 0) to latent/nope (heads -> oo)" + REST),
        (P / (Q * X + N), -1, P / N, 0, "latent/nope (heads -> 0) to 0 (heads -> oo)" + LOW),
        (P * X + N, -1, N, None, "nope (heads -> 0)" + below("-(nope + 1)/latent")),
        (P / X + N, -1, None, N, "nope (heads -> oo)" + below("-latent/(nope + 1)")),
        (P / X + N * X, -1, None, None, ""),
    ],
)
def test_the_limits_are_told(lhs: sp.Expr, rhs: int, low: sp.Expr, high: sp.Expr, reason: str) -> None:
    found = roots(lhs, rhs, "heads")
    assert (found.roots, found.limit_low, found.limit_high) == ((), low, high)
    if reason:
        assert found.reason == f"left side goes from {reason}"
    else:
        assert found.reason.startswith(f"left side{REST}: ")


def test_limits_at_finite_ends() -> None:
    found = roots((X + P) / (X + Q), -1, "heads", low=2, high=5)
    assert (found.limit_low, found.limit_high) == ((P + 2) / (Q + 2), (P + 5) / (Q + 5))
    path = "(latent + 2)/(rope + 2) (heads -> 2) to (latent + 5)/(rope + 5) (heads -> 5)"
    assert found.reason == f"left side goes from {path}" + below("-(latent + rope)/2", ">= 2")


def test_with_the_unknown_on_both_sides_the_ratio_is_told() -> None:
    """(p x + n)/(-q x - 1) goes from -n at 0 to -p/q; it would have to be 1."""
    found = roots(P * X + N, -Q * X - 1, "heads")
    assert (found.limit_low, found.limit_high) == (-N, -P / Q)
    path = "-nope (heads -> 0) to -latent/rope (heads -> oo)"
    assert found.reason == f"left side / right side goes from {path}" + below("-(nope + 1)/(latent + rope)")


def test_no_limits_of_a_maximum_and_nothing_where_it_does_not_depend() -> None:
    found = roots(maximum(X, P), -1, "heads")
    assert (found.limit_low, found.limit_high, found.roots) == (None, None, ())
    assert found.reason.startswith(f"left side{REST}")
    assert roots(P, N, "heads").reason == "left side does not depend on heads"
    assert roots(P + N, N + P, "heads").reason == ""
    assert roots(P * X, N, "heads").reason == ""
    hidden = roots(X * maximum(Q, P), -1, "heads")  # a limit holds no dummy
    assert hidden.limit_low == 0
    assert roots(X + maximum(Q, P), -1, "heads").limit_low == maximum(Q, P)


@pytest.mark.parametrize(
    ("expr", "end", "value"),
    [
        ((P * X**2 + 1) / (Q * X**2 + X), sp.oo, P / Q),
        ((P * X + 1) / (Q * X**2 + X), sp.oo, 0),
        ((P * X**3 + 1) / (Q * X**2 + X), sp.oo, None),
        ((P * X + 1) / (Q * X + 3), sp.Integer(2), (2 * P + 1) / (2 * Q + 3)),
        ((P * X + 1) / (X - 2), sp.Integer(2), None),
        (P * X, P, P**2),
    ],
)
def test_limit_of_a_rational_function(expr: sp.Expr, end: sp.Expr, value: sp.Expr | None) -> None:
    found = _limit(expr, X, end)
    assert found == value if value is None else sp.cancel(found - value) == 0


# The law: numbers put into the closed form are the roots for those numbers

whole = st.integers(1, 40)


@settings(max_examples=20)
@given(whole, st.integers(0, 40), whole, st.integers(0, 3))
def test_closed_forms_hold_for_numbers(p: int, q: int, n: int, which: int) -> None:
    """Where its conditions hold each closed form is a root, and there are no others."""
    lhs, rhs = FORMS[which]
    at = {P: sp.Integer(p), Q: sp.Integer(q), N: sp.Integer(n)}
    forms = [r for r in CLOSED[which].roots if all(c.xreplace(at) == sp.true for c in r.conditions)]
    found = roots(lhs.xreplace(at), rhs.xreplace(at), "heads")
    values = {sp.nsimplify(sp.radsimp(r.value.xreplace(at))) for r in forms}
    for i in found.intervals:
        values -= {v for v in values if i.low <= v <= i.high}
    assert sorted(float(v) for v in values) == pytest.approx(list(found.values))


FORMS = (
    (X**2 - P * X, -Q),
    (maximum(P * X, N), Q + 1),
    (maximum(X - P, Q - X), N),
    (minimum(P * X, N + X), Q + maximum(P, N)),
)
CLOSED = [roots(lhs, rhs, "heads") for lhs, rhs in FORMS]
