"""Rules of a step by enumeration: routing of tokens to experts, destinations, chunked attention."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import pytest

from roofline.kernels.rules import RULES, VISIBILITIES
from roofline.symbols import exact, symbol


def rule(name: str, **values: Any) -> Any:
    """A rule with numbers put in."""
    return RULES[name].xreplace({symbol(k): exact(v) for k, v in values.items()})


@pytest.mark.parametrize(
    ("n", "k", "zero", "t", "ep"), [(4, 2, 0, 3, 1), (4, 2, 0, 3, 2), (4, 1, 0, 4, 4), (3, 2, 2, 2, 1), (6, 3, 0, 2, 3)]
)
def test_routing_rules_by_enumeration(n: int, k: int, zero: int, t: int, ep: int) -> None:
    """Every way of routing t tokens to k of n experts (and `zero` that pass through), over ep ranks."""
    choices = list(itertools.combinations(range(n + zero), k))
    here = set(range(n // ep))  # the experts of rank 0
    runs = list(itertools.product(choices, repeat=t))
    pairs = [sum(len(here & set(pick)) for pick in run) for run in runs]
    distinct = [len(here & {e for pick in run for e in pick}) for run in runs]
    values = {"step_tokens": t, "experts": n, "active_experts": k, "zero_experts": zero, "ep": ep}
    assert rule("routed.expected", **values) == Fraction(sum(pairs), len(runs))
    assert rule("distinct.expected", **values) == Fraction(sum(distinct), len(runs))
    assert rule("routed.worst", **values) == max(pairs)
    assert rule("distinct.worst", **values) == max(distinct)
    if zero == 0 and (t * k) % ep == 0:
        even = [d for d, p in zip(distinct, pairs, strict=True) if p == t * k // ep]
        assert rule("distinct.balanced", **values) == max(even)


@pytest.mark.parametrize(("k", "ep"), [(2, 2), (3, 4), (1, 3)])
def test_destinations_by_enumeration(k: int, ep: int) -> None:
    """Picks that fall on ranks at random: the mean number of other ranks visited by a token of rank 0."""
    runs = list(itertools.product(range(ep), repeat=k))
    mean = Fraction(sum(len(set(run) - {0}) for run in runs), len(runs))
    assert rule("destinations", ranks=ep, ep=ep, active_experts=k) == mean


def test_chunked_attention_by_walking() -> None:
    """Llama 4: a query sees its own aligned chunk up to itself."""
    sight = VISIBILITIES["chunked"]
    for window, context, q_len in itertools.product((1, 3, 4), range(9), (1, 2, 5)):
        seen = [[j for j in range(i + 1) if j // window == i // window] for i in range(context, context + q_len)]
        rows = {j for keys in seen for j in keys} | set(range(context, context + q_len))
        found = sight.bind(window=window, context=context, q_len=q_len)
        assert found.pairs == sum(map(len, seen)), (window, context, q_len)
        assert found.rows_read == len(rows), (window, context, q_len)
