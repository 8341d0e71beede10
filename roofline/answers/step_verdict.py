"""The verdict of `roofline step`: what binds, what would help most, and which batch reaches the ridge or a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from roofline.plan import UseCost, Workload
from roofline.plan.capacity import first_where, largest_within

if TYPE_CHECKING:
    from roofline.answers.step_asked import Asked


def period(load: Workload, flight: int, lower: float, slowest: float) -> float:
    """From the first batch in flight to the last one out (prefill), or from one token of a sequence to its next."""
    if load.phase in ("oneshot", "chunked"):
        return lower + (flight - 1) * slowest
    return max(lower, flight * slowest)


def bound(costs: Iterable[UseCost]) -> str:
    """The unit that binds for the largest share of the time of the kernels that compute."""
    found: dict[str, float] = {}
    for c in costs:
        if c.bound not in ("link", "none"):
            found[c.bound] = found.get(c.bound, 0.0) + c.lower * c.use.count
    return max(found, key=lambda name: found[name]) if found else "none"


def helping(asked: Asked) -> dict[str, Any]:
    """Elasticities of the lower bound: percent less time for one percent more of a rate."""
    found = dict.fromkeys(("bandwidth", "peak", "vector_peak", "exp_rate", "link_bandwidth", "launch_gap"), 0.0)
    whole = asked.bounds.lower
    if whole <= 0:
        return {"elasticities": found, "helps_most": None}
    names = {
        "memory": "bandwidth",
        "compute": "peak",
        "vector unit": "vector_peak",
        "special-function unit": "exp_rate",
    }
    if asked.bounds.link > asked.bounds.compute_lower:
        found["link_bandwidth"] = asked.bounds.link / whole
    else:
        for c in asked.costs:
            if c.bound in names:
                found[names[c.bound]] += c.lower * c.use.count / whole
    found["launch_gap"] = asked.bounds.gaps / whole
    return {"elasticities": found, "helps_most": max(found, key=lambda name: found[name])}


def batch_at_ridge(asked: Asked) -> int | None:
    """The smallest batch whose matrix products take as long as its bytes, caches included; None where none does."""
    products, traffic = (asked.step.leg_time(leg, asked.chip.rates, "batch") for leg in ("tensor", "memory"))
    return first_where(lambda batch: products(batch) >= traffic(batch))


def within(asked: Asked, slo: float, gained: float) -> int:
    """The largest batch whose time a token, or of the whole prefill, keeps the limit."""
    gap, count = asked.launch["launch_gap"], asked.launch["n_kernels"]
    load, spread = asked.step.workload, asked.step.deployment

    def time(batch: float) -> float:
        lower = asked.step.bounds(asked.chip.rates, launch_gap=gap, n_kernels=count, batch=batch).lower
        slowest = max(asked.stage_times(batch=batch)) if spread.micro_batches > 1 else lower
        return period(load, spread.micro_batches, lower, slowest)

    limit = slo * (gained if load.phase in ("decode", "mixed") else 1)
    return largest_within(time, limit, spread.dp)
