"""Random shapes and rates for the laws, and totals of kernels at them, exactly."""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy as sp
from hypothesis import strategies as st

from roofline import law
from roofline import visibility as vis
from roofline.kernel import Cost
from roofline.kernels import KERNELS, attention, linear, mla, sparse
from roofline.symbols import exact, symbol
from roofline.visibility import Visibility

SIZES = ("batch", "q_len", "context", "heads", "latent", "rope", "nope", "value", "head_dim", "index_heads",
         "index_head_dim", "topk", "window", "hidden", "ffn", "tokens")  # fmt: skip
WIDTHS = ("w_kv", "w_weight", "w_act", "w_expanded", "w_index", "w_logit")
RATES = ("peak", "vector_peak", "exp_rate", "bandwidth")
CORES = ("attention", "mla_mha", "mla_mqa")
PROJECTIONS = ("mla_up_projection", "mla_absorption", "mla_unabsorption")
ZERO = ("context", "rope")  # the sizes that may be 0


@st.composite
def shapes(draw: st.DrawFn, high: int = 24) -> dict[str, int]:
    """Sizes and widths by name; kv_heads divides heads, kernel_heads is at least heads, prefix lies within context."""
    size = {name: draw(st.integers(name not in ZERO, high)) for name in SIZES}
    size |= {name: draw(st.integers(1, 8)) for name in WIDTHS}
    size["kv_heads"] = draw(st.integers(1, 6))
    size["heads"] = size["kv_heads"] * draw(st.integers(1, 6))
    size["kernel_heads"] = size["heads"] + draw(st.integers(0, 8))
    size["prefix"] = draw(st.integers(0, size["context"]))
    return size


rates = st.fixed_dictionaries({name: st.fractions(1, 1000, max_denominator=9) for name in RATES})
factors = st.fractions(min_value="1/8", max_value=8, max_denominator=8)
NAMES = sorted(k.name for module in (attention, linear, mla, sparse) for k in module.KERNELS)
names = st.sampled_from(NAMES)
SPARSE = (vis.topk(), vis.topk(skip=False), vis.topk(gather="perfect"))
sights = st.sampled_from([vis.dense(), vis.full(), vis.window(), *SPARSE, vis.shared_prefix()])


@cache
def expression(name: str, quantity: str, sight: Visibility | None) -> sp.Expr:
    """A total of a kernel under a visibility, symbols left in."""
    kernel = KERNELS[name]
    return sp.sympify(getattr(kernel.bind(**sight.bindings()) if sight else kernel, quantity))


@cache
def dense_kernel(*parts: str) -> Cost:
    """Kernels one after the other under causal attention, sizes left in."""
    first, *rest = (KERNELS[name].bind(**vis.dense().bindings()) for name in parts)
    return sum(rest, start=first)


@cache
def leg_times(name: str) -> dict[str, sp.Expr]:
    """Time of each leg."""
    (kernel,) = dense_kernel(name).kernels
    return law.legs(kernel)


@cache
def bounds(*parts: str) -> tuple[sp.Expr, sp.Expr]:
    """Lower and upper time bound."""
    return law.time_lower(dense_kernel(*parts)), law.time_upper(dense_kernel(*parts))


def put(expr: sp.Expr, **values: Any) -> Any:
    """The expression with numbers put in, exactly."""
    return expr.xreplace({symbol(k): exact(v) for k, v in values.items()})


def total(name: str, quantity: str, size: dict[str, Any], sight: Visibility | None = None) -> Any:
    """One total as an exact number."""
    bound = name.startswith("dsa_m")  # these two carry their visibility
    found = put(expression(name, quantity, None if bound else sight or vis.dense()), **size)
    assert found.is_number, found
    return found
