"""The bound of a step over a grid of batches and lengths, and the degrees of parallelism that divide a model.

The grid is evaluated at once: the functions that `roofline._generated` printed for numbers are run on arrays, with
numpy's minimum and maximum in place of the builtin ones, so that the map costs little more than one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from roofline._generated.kernels import LEGS
from roofline._generated.rules import RULES
from roofline.answer import Answer, Column
from roofline.answers.common import chosen
from roofline.answers.step_asked import workload
from roofline.answers.step_report import CONVENTION, OMITS
from roofline.errors import BadValue
from roofline.glossary import check
from roofline.models import Model, load_model
from roofline.plan import Deployment, Options, Step, Use, check_deployment, plan
from roofline.plan.capacity import largest_batch, stages
from roofline.plan.chip import chip
from roofline.plan.numbers import BOUND, QUANTITIES, Rates
from roofline.plan.spread import replicas, tensor_degrees

if TYPE_CHECKING:
    from roofline.accelerators import Accelerator

BATCHES = tuple(2**k for k in range(13))
LENGTHS = tuple(2**k for k in range(8, 21))
LETTERS = {"memory": "M", "compute": "C", "link": "L", "vector unit": "V", "special-function unit": "S", "none": "-"}
MOST = 64  # devices along one degree that `degrees` lists
_COLUMNS = (
    Column("batch", "batch", "1"),
    Column("context", "context", "1"),
    Column("q_len", "new tokens", "1"),
    Column("time_lower_s", "step at least", "ms", scale=1e-3),
    Column("bound", "bound"),
    Column("fits", "fits"),
)


def step_map(
    model: str | Model,
    hardware: str | Accelerator,
    *,
    batches: Iterable[float] = BATCHES,
    lengths: Iterable[float] = LENGTHS,
    phase: str = "decode",
    q_len: float | None = None,
    drafts: float = 0,
    prefill_batch: float = 1,
    prefill_context: float = 0,
    tp: int = 1,
    dp: int = 1,
    ep: int = 1,
    pp: int = 1,
    cp: int = 1,
    micro_batches: int = 1,
    kv_dtype: str = "auto",
    weight_dtype: str = "auto",
    mode: str | None = None,
    roof: str | None = None,
) -> Answer:
    """Lower time bound of a step, what binds and whether it fits, for each batch and length.

    Parameters: as `roofline.step`; batches and lengths, the two axes: lengths are contexts (in a mixed step those of
    the decode part), in a one-shot prefill the prompt's q_len.  Row i * len(lengths) + j is batch i at length j.
    Times [s] are those of `roofline.step` without launch gaps.

    >>> cells = step_map("llama-3.1-8b", "h100-sxm", batches=[1, 64], lengths=[4096]).rows
    >>> [(c["batch"], round(c["time_lower_s"] * 1e3, 2), c["bound"]) for c in cells]
    [(1, 4.64, 'memory'), (64, 14.85, 'memory')]
    """
    along = "q_len" if phase == "oneshot" else "context"
    axes = {"batch": _axis("batch", batches), along: _axis(along, lengths)}
    found = load_model(model)
    parts = chosen(hardware)
    if len(parts.parts) != 1:
        raise BadValue("hardware", ", ".join(p.id for p in parts.parts), "one part")
    part, spread = parts.parts[0], Deployment(tp, dp, ep, pp, cp, micro_batches)
    own = {"q_len": q_len, "context": 0.0} | {along: axes[along][0]}
    load = workload(phase, 1, own["q_len"], own["context"] or 0, drafts, prefill_batch, prefill_context, 0)
    step = plan(found, load, spread, Options(kv_dtype, weight_dtype, mode=mode))
    speeds = chip(part, roof, spread)
    batch, length = np.meshgrid(axes["batch"], axes[along], indexing="ij")
    times, bound = _bounds(step, speeds.rates, {"batch": batch, along: length})
    most = _most(step, part, along, axes[along])
    rows = [
        {
            "batch": one,
            along: length,
            "time_lower_s": float(times[i, j]),
            "bound": str(bound[i, j]),
            "letter": LETTERS[str(bound[i, j])],
            "fits": None if (limit := most[j]) is None else one <= limit,
        }
        for i, one in enumerate(axes["batch"])
        for j, length in enumerate(axes[along])
    ]
    data = {
        "rows": rows,
        "axes": axes,
        "along": along,
        "max_batch": most,
        "model": found.id,
        "hardware": part.id,
        "roof": speeds.roof,
        "deployment": {**spread._asdict(), "gpus": spread.gpus},
        "phase": phase,
    }
    return Answer(
        "step-map",
        data,
        [c for c in _COLUMNS if c.key in rows[0]],
        title=f"Bound of a {phase} step of {found.name} on {spread.gpus} x {part.id}",
        notes=(f"Roof: {speeds.roof}.", *parts.warnings, *speeds.notes, CONVENTION, OMITS),
        digest=parts.digest,
    )


def degrees(model: str | Model, *, tp: int = 1, dp: int = 1) -> dict[str, list[int]]:
    """The degrees of parallelism that the model allows, up to 64 each: tensor, data, pipeline, and at the given tp and
    dp expert and context parallelism.

    >>> degrees("llama-3.1-8b")["tp"], degrees("deepseek-v3.2", dp=8)["ep"], degrees("deepseek-v3.2", tp=4)["cp"]
    ([1, 2, 4, 8, 16, 32], [1, 2, 4, 8], [1, 2, 4])
    """
    found = load_model(model)
    powers = [2**k for k in range(MOST.bit_length())]
    whole = [n for n in tensor_degrees(found) if n <= MOST]
    ranks, copies = tp * dp, replicas(found, tp)
    return {
        "tp": whole,
        "dp": powers,
        "ep": [n for n in range(1, ranks + 1) if ranks % n == 0 and _allowed(found, Deployment(tp, dp, n))],
        "pp": [n for n in powers if n <= len(found.layers)],
        "cp": [n for n in range(1, copies + 1) if copies % n == 0],
    }


def _allowed(model: Model, spread: Deployment) -> bool:
    try:
        check_deployment(model, spread)
    except BadValue:
        return False
    return True


def _axis(name: str, values: Iterable[float]) -> list[float]:
    """Values of an axis, each in the range of its quantity."""
    found = [check(name, value) for value in values]
    if not found:
        raise BadValue(name, "nothing", "at least one value")
    return found


def _most(step: Step, part: Accelerator, along: str, lengths: Iterable[float]) -> list[int | None]:
    """The largest batch that fits on every stage at each length, None where the capacity is not sourced."""
    capacity = part.visible_bytes
    if capacity is None:
        return [None for _ in lengths]
    held = stages(step.model, step.deployment, step.options, drafts=step.workload.drafts)
    loads = [step.workload._replace(**{along: length}) for length in lengths]  # type: ignore[arg-type]
    return [largest_batch(capacity, [stage(load) for stage in held], step.deployment) for load in loads]


def _bounds(step: Step, rates: Rates, changed: Mapping[str, Any]) -> tuple[Any, Any]:
    """Lower time bound [s] and what binds, over arrays of workload numbers; as `Step.bounds` at each point."""
    numbers: dict[str, Any] = {**step.numbers, **{name: values.astype(float) for name, values in changed.items()}}
    shape = np.broadcast_shapes(*(values.shape for values in changed.values()))
    names = list(dict.fromkeys(BOUND[leg] for leg in LEGS))
    spent, link = dict.fromkeys(names, np.zeros(shape)), np.zeros(shape)
    for use in step.uses:
        legs = _legs(use, numbers, rates)
        if not legs:
            continue
        times = np.stack([np.broadcast_to(time, shape) for time in legs.values()])
        longest = times.max(axis=0) * use.count
        if "link" in legs:
            link = link + longest
        elif "link" not in QUANTITIES[use.kernel]:
            which = times.argmax(axis=0)
            for at, leg in enumerate(legs):
                spent[BOUND[leg]] = spent[BOUND[leg]] + np.where(which == at, longest, 0.0)
    compute = np.sum(list(spent.values()), axis=0)
    bound = np.array(names)[np.argmax(list(spent.values()), axis=0)]
    return np.maximum(compute, link), np.where(link > compute, "link", bound)


def _legs(use: Use, numbers: Mapping[str, Any], rates: Rates) -> dict[str, Any]:
    """The time of each leg of one run [s] as an array."""
    functions, known = QUANTITIES[use.kernel], dict[str, Any]()
    legs = {}
    for leg, rate in LEGS.items():
        speed = rates.of(leg, use) if leg in functions else None
        if speed:
            function = _arrays(functions[leg])
            names = _names(function)
            known |= {n: _resolve(n, use.values, numbers) for n in names if n not in known and n != rate}
            legs[leg] = function(**{n: speed if n == rate else known[n] for n in names})
    return legs


@lru_cache(maxsize=1024)
def _arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """A generated function of numbers as one of arrays: the same code with numpy's minimum and maximum."""
    code: Any = function.__code__
    return FunctionType(code, {**function.__globals__, "min": np.minimum, "max": np.maximum})


def _names(function: Callable[..., Any]) -> Sequence[str]:
    code: Any = function.__code__
    return code.co_varnames[: code.co_kwonlyargcount]  # type: ignore[no-any-return]


def _resolve(name: str, values: Mapping[str, Any], numbers: Mapping[str, Any], busy: tuple[str, ...] = ()) -> Any:
    """As `roofline.plan.numbers.resolve`, for arrays: what a use binds, what a rule makes, or the workload's own."""
    bound = values.get(name) if name not in busy else None
    if bound is None:
        return numbers[name]
    if not isinstance(bound, str):
        return bound
    rule = RULES.get(bound)
    if rule is None:
        return _resolve(bound, {}, numbers)
    function = _arrays(rule)
    return function(**{n: _resolve(n, values, numbers, (*busy, name)) for n in _names(function)})
