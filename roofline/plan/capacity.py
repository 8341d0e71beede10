"""What a step needs in memory, and the largest batch that fits or that keeps a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from roofline.accelerators import Accelerator
from roofline.models import Model
from roofline.plan.records import Deployment, Options, Workload
from roofline.plan.spread import rank_bytes, stage_layers, tensor_degrees

LARGEST = 1 << 40  # a batch beyond this is no answer


class Memory(NamedTuple):
    """Bytes on the fullest device: weights, caches of its sequences, of one sequence of the batch, and those of prompts
    that a mixed step takes in besides."""

    weights: float
    kv: float
    kv_per_sequence: float
    kv_prompts: float = 0.0

    @property
    def total(self) -> float:
        """Weights and caches."""
        return self.weights + self.kv


def memory(model: Model, load: Workload, spread: Deployment, options: Options) -> Memory:
    """Memory of the fullest device; activations, graphs and the engine's reserve are not in it."""
    return fullest(held(load) for held in stages(model, spread, options, drafts=load.drafts))


def fullest(needs: Iterable[Memory]) -> Memory:
    """The stage that holds the most."""
    return max(needs, key=lambda need: need.total)


def stages(
    model: Model, spread: Deployment, options: Options, *, drafts: float = 0
) -> list[Callable[[Workload], Memory]]:
    """What a device of each pipeline stage holds of a workload, as functions of it; drafts: those of that workload.

    What does not depend on batch and lengths is worked out once, for the many cells of a map.
    """
    return [_stage(model, spread, options, stage, bool(drafts)) for stage in range(spread.pp)]


def _stage(
    model: Model, spread: Deployment, options: Options, stage: int, drafts: bool
) -> Callable[[Workload], Memory]:
    cache = with_layers(model, spread.pp, stage).kv(
        options.kv_dtype, tp=spread.tp, index_dtype=options.index_dtype, mtp=drafts and stage == spread.pp - 1
    )
    weights = rank_bytes(model, spread, stage, mtp=drafts)
    flight = spread.micro_batches

    def held(load: Workload) -> Memory:
        length = load.context + (1 + load.drafts if load.phase == "mixed" else load.q_len)
        one = cache.at(length, load.image_tokens) / spread.cp
        own, prompts = math.ceil(load.batch / spread.dp) * one, 0.0
        if load.phase == "mixed":
            prompt = cache.at(load.prefill_context + load.q_len, load.image_tokens) / spread.cp
            prompts = math.ceil(load.prefill_batch / spread.dp) * prompt
        return Memory(weights, (own + prompts) * flight, one, prompts * flight)

    return held


def with_layers(model: Model, pp: int, stage: int) -> Model:
    """The model with the layers of one stage only, for its cache."""
    if pp == 1:
        return model
    fields = {field: getattr(model, field) for field in model.__slots__}
    return Model(**{**fields, "layers": stage_layers(model, pp, stage)})


def largest_batch(capacity: float, needs: Sequence[Memory], spread: Deployment) -> int:
    """Sequences that fit on all data-parallel ranks together, with every sequence as long as the step says.

    needs: of every pipeline stage, for the one that is fullest now need not be the one that is full first.
    """
    free = [capacity - need.weights - need.kv_prompts for need in needs]
    each = [need.kv_per_sequence * spread.micro_batches for need in needs]
    if min(free) < 0 or max(each) <= 0:
        return 0
    return min(int(left // one) for left, one in zip(free, each, strict=True) if one > 0) * spread.dp


def largest_within(time: Callable[[float], float], limit: float, step: int = 1) -> int:
    """The largest batch, a multiple of `step`, whose time keeps the limit; 0 where one `step` does not."""
    if time(step) > limit:
        return 0
    high = 1
    while time(high * 2 * step) <= limit:
        high *= 2
        if high * step > LARGEST:
            return high * step
    low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if time(middle * step) <= limit else (low, middle)
    return low * step


def first_where(reached: Callable[[float], bool], limit: int = 1 << 24) -> int | None:
    """The smallest whole number from 1 on at which a condition holds, if it holds from there on; None up to `limit`."""
    high = 1
    while not reached(high):
        high *= 4
        if high > limit:
            return None
    low = high // 4
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def first_link_bound(
    model: Model, part: Accelerator, load: Workload, spread: Deployment, options: Options, link: float | None = None
) -> int | None:
    """The smallest tp at which the collectives of a step take longer than its kernels; None where none does.

    link: bandwidth of one device in one direction [B/s], in place of the part's own.

    >>> from roofline.accelerators import load_catalog
    >>> from roofline.models import load_model
    >>> chip, load = load_catalog(environ={})["h100-sxm"], Workload("decode", batch=256, context=1000)
    >>> first_link_bound(load_model("llama-3.1-8b"), chip, load, Deployment(), Options()) is None
    True
    """
    from roofline.plan import plan
    from roofline.plan.chip import chip

    for tp in tensor_degrees(model):
        if tp % spread.cp == 0 and (tp * spread.dp) % spread.ep == 0:
            degrees = spread._replace(tp=tp)
            bounds = plan(model, load, degrees, options).bounds(chip(part, None, degrees, link).rates)
            if bounds.link > bounds.compute_lower:
                return tp
    return None
