"""Where a step does not fit: the smallest larger deployments that hold it, each grown in one way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from roofline.answers.common import chosen
from roofline.answers.step import terms
from roofline.answers.step_map import degrees
from roofline.errors import BadValue
from roofline.models import Model, load_model
from roofline.plan import Deployment, Options, Workload, check_deployment, with_weight_dtype
from roofline.plan.capacity import memory

if TYPE_CHECKING:
    from roofline.accelerators import Accelerator

WAYS = (("tp", "dp"), ("pp",))  # each divides weights, caches or both; the later where the earlier do not help


def larger_that_fit(
    model: str | Model,
    hardware: str | Accelerator,
    **options: Any,
) -> list[Deployment]:
    """The smallest larger deployments that hold the step, one for each degree that alone makes it fit, the fewest
    devices first; none where the capacity is not sourced.

    Parameters: those of `roofline.step`.  Grown are tp and dp, pp where neither helps or there are stages already.
    Experts spread along: ep grows with the ranks as far as the experts divide.

    >>> [spread[:3] for spread in larger_that_fit("deepseek-v3.2", "h200-sxm", batch=64, context=8192)]
    [(8, 1, 8), (1, 8, 8)]
    """
    part = chosen(hardware).parts[0]
    if part.visible_bytes is None:
        return []
    asked = terms(**options)
    found, start = with_weight_dtype(load_model(model), asked.options.weight_dtype), asked.spread
    capacity, held = part.visible_bytes, list[Deployment]()
    for ways in WAYS:
        if not held or start.pp > 1:
            tried = [
                _smallest(found, capacity, asked.load, list(_grown(found, start, way)), asked.options) for way in ways
            ]
            held += [spread for spread in tried if spread is not None]
    return sorted(held, key=lambda spread: spread.gpus)


def _grown(model: Model, start: Deployment, way: str) -> Iterator[Deployment]:
    """The deployment with one degree raised, smallest first, and ep with the ranks where it is spread over them."""
    now, spread_out = getattr(start, way), start.ep > 1 or start.expert_ranks == 1
    for degree in degrees(model)[way]:
        if degree <= now or degree % now:
            continue
        wide = start._replace(**{way: degree})
        ep = start.ep * (wide.expert_ranks // start.expert_ranks) if spread_out else start.ep
        for fewer in (ep, ep // 2, ep // 4, 1):
            try:
                yield check_deployment(model, wide._replace(ep=max(fewer, 1)))
            except BadValue:
                continue
            break


def _smallest(
    model: Model, capacity: float, load: Workload, grown: list[Deployment], options: Options
) -> Deployment | None:
    """The first that holds the load; the largest is tried first, for where it does not, none does."""

    def holds(spread: Deployment) -> bool:
        return memory(model, load, spread, options).total <= capacity

    if not grown or not holds(grown[-1]):
        return None
    return next(filter(holds, grown))
