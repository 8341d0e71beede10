"""One configuration of a step: model, part and deployment, planned and evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from roofline.errors import BadValue
from roofline.models import Model
from roofline.plan import Deployment, Options, Step, UseCost, Workload, plan
from roofline.plan.chip import Chip, chip
from roofline.plan.numbers import Bounds, bounds_of

if TYPE_CHECKING:
    from roofline.accelerators import Accelerator


class Asked(NamedTuple):
    """One configuration: the model, the part and its rates, the step, its costs and bounds."""

    model: Model
    part: Accelerator
    chip: Chip
    step: Step
    costs: list[UseCost]
    bounds: Bounds
    stages: tuple[float, ...]
    launch: Mapping[str, Any]
    stage_steps: tuple[Step, ...]

    def stage_times(self, **changed: float) -> tuple[float, ...]:
        """The lower bound of each pipeline stage [s], its share of the launch gaps included."""
        return _stage_times(self.stage_steps, self.step, self.chip, self.launch, **changed)


def workload(
    phase: str,
    batch: float,
    q_len: float | None,
    context: float,
    drafts: float,
    prefill_batch: float,
    prefill_context: float,
    image_tokens: float,
) -> Workload:
    """The workload; q_len has a value of its own in decode only."""
    if q_len is None:
        if phase in ("oneshot", "chunked", "mixed"):
            raise BadValue("q_len", "nothing", "the new tokens per sequence of the prefill", f"phase {phase}")
        q_len = 1 + drafts
    return Workload(phase, batch, q_len, context, drafts, prefill_batch, prefill_context, image_tokens).checked()


def ask(
    model: Model,
    part: Accelerator,
    load: Workload,
    spread: Deployment,
    options: Options,
    roof: str | None = None,
    link: float | None = None,
    launch: Mapping[str, Any] | None = None,
) -> Asked:
    """Plan and evaluate one configuration."""
    found = plan(model, load, spread, options)
    speeds = chip(part, roof, spread, link)
    costs = found.costs(speeds.rates)
    launch = launch or {"launch_gap": 0.0, "n_kernels": None}
    count = found.n_kernels if launch["n_kernels"] is None else launch["n_kernels"]
    bounds = bounds_of(costs, launch["launch_gap"] * count)
    steps = tuple(plan(model, load, spread, options, stage=s) for s in range(spread.pp)) if spread.pp > 1 else (found,)
    one = spread.pp == 1 and launch["n_kernels"] is None  # a single stage is the step itself
    stages = (bounds.lower,) if one else _stage_times(steps, found, speeds, launch)
    return Asked(found.model, part, speeds, found, costs, bounds, stages, launch, steps)


def _stage_times(
    steps: tuple[Step, ...], whole: Step, speeds: Chip, launch: Mapping[str, Any], **changed: float
) -> tuple[float, ...]:
    """Lower bounds of stages; a number of launches that is given is shared out as the kernels are."""
    given = launch["n_kernels"]
    counts = [s.n_kernels if given is None else given * s.n_kernels / whole.n_kernels for s in steps]
    return tuple(
        s.bounds(speeds.rates, launch_gap=launch["launch_gap"], n_kernels=n, **changed).lower
        for s, n in zip(steps, counts, strict=True)
    )
