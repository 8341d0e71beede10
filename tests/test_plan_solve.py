"""Questions to a step in symbols: the batch at its ridge, the context at which attention overtakes the FFN, the
degree at
which the link binds.  Answers of the solver are put back into the numeric face."""

from __future__ import annotations

import pytest

from roofline.accelerators import load_catalog
from roofline.grid import evaluate_grid
from roofline.models import load_model
from roofline.plan import Deployment, Options, Workload, plan
from roofline.plan.capacity import first_link_bound
from roofline.plan.chip import chip
from roofline.solver import roots
from roofline.solver.sensitivity import elasticity
from roofline.symbols import sym

CATALOG = load_catalog(environ={})


def test_batch_at_the_ridge_in_closed_form() -> None:
    """Llama-3.1-8B, 64 tokens of context: FLOPs over bytes of the whole step equal the ridge at one batch, for any
    chip."""
    step = plan(load_model("llama-3.1-8b"))
    cost = step.cost(q_len=1, context=63)
    (root,) = roots(cost.flops / sym.peak, cost.bytes / sym.bandwidth, "batch").roots
    ridge = {sym.peak: 989_400_000_000_000, sym.bandwidth: 3_350_000_000_000}
    batch = float(root.value.xreplace(ridge))
    totals = step.totals(batch=batch, q_len=1.0, context=63.0)
    assert totals["flops"] / totals["bytes"] == pytest.approx(989.4 / 3.35)


def test_context_at_which_attention_overtakes_the_experts() -> None:
    """DeepSeek-V3 decode: FLOPs of the attention part (projections and core) against those of router and experts, a
    token."""
    step = plan(load_model("deepseek-v3"))
    attention, experts = (step.cost(parts, batch=1, q_len=1).flops for parts in (("attention",), ("experts", "ffn")))
    (root,) = roots(attention, experts, "context").roots
    parts: dict[str, float] = {"attention": 0.0, "experts": 0.0, "ffn": 0.0}
    for c in step.costs(context=float(root.value)):
        if c.use.part in parts:
            parts[c.use.part] += c.flops * c.use.count
    assert parts["attention"] == pytest.approx(parts["experts"] + parts["ffn"])
    assert 1000 < root.value < 3000


def test_degree_at_which_the_link_binds() -> None:
    """A long prefill of Llama-3.1-8B at 50 GB/s: some degree makes the all-reduces longer than the kernels, the one
    below not."""
    m, load = load_model("llama-3.1-8b"), Workload("oneshot", q_len=16_384)
    part = CATALOG["h100-sxm"]
    found = first_link_bound(m, part, load, Deployment(), Options(), link=50e9)

    def legs(tp: int) -> tuple[float, float]:
        bounds = plan(m, load, Deployment(tp=tp)).bounds(chip(part, link=50e9).rates)
        return bounds.link, bounds.compute_lower

    assert found is not None
    assert legs(found)[0] > legs(found)[1]
    assert legs(found // 2)[0] <= legs(found // 2)[1]
    assert first_link_bound(m, part, load, Deployment(), Options(), link=1e15) is None


def test_elasticity_of_a_step_is_its_memory_share() -> None:
    """d ln t / d ln bandwidth of the lower bound at a point: minus the share of time that memory binds."""
    step = plan(load_model("llama-3.1-8b"))
    time = step.time_lower(q_len=1, context=700, batch=4)
    slope = elasticity(time.xreplace({sym.exp_rate: 10**12, sym.vector_peak: 10**14, sym.peak: 10**15}), "bandwidth")
    value = slope.xreplace({sym.bandwidth: 10**12})
    assert float(value) == pytest.approx(-1.0, abs=1e-3)


def test_a_grid_of_steps_is_the_step_at_each_point() -> None:
    """Batch x context on two chips from one formula, against the numeric face."""
    step = plan(load_model("deepseek-v3.2"), Workload("decode", batch=1, context=1), Deployment(tp=8))
    rates = [chip(CATALOG[name], spread=Deployment(tp=8)).rates for name in ("h200-sxm", "gb200")]
    columns = {
        "peak": [r.peaks["bf16"] for r in rates],
        "peak_fp8": [r.peaks["fp8"] for r in rates],
        **{n: [getattr(r, n) for r in rates] for n in ("bandwidth", "vector_peak", "exp_rate", "link_bandwidth")},
    }
    axes = {"chips": columns, "batch": [1, 17, 300], "context": [100, 5000]}
    found = evaluate_grid({"time": step.time_lower(q_len=1)}, axes).value
    for c, r in enumerate(rates):
        for b, batch in enumerate((1.0, 17.0, 300.0)):
            for x, context in enumerate((100.0, 5000.0)):
                wanted = step.bounds(r, batch=batch, context=context).lower
                assert float(found[c, b, x]) == pytest.approx(wanted, rel=1e-12)
