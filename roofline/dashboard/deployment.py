"""The deployment of a step, chosen alike on every page that asks for one; only degrees that the model allows are on
offer."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import streamlit as st

from roofline.answers.step_map import degrees
from roofline.dashboard import visits
from roofline.dashboard.controls import choice, refuse, steps
from roofline.dashboard.parameters import label
from roofline.models import Model
from roofline.plan import WEIGHT_DTYPES

NAMES = ("tp", "dp", "ep")
MORE = ("pp", "cp", "micro_batches", "weight_dtype")  # rarely asked for
USUAL = 16  # ranks that the experts of a model are spread over where nothing is chosen: two machines of eight
IN_FLIGHT = tuple(2**k for k in range(7))
ONLY = {
    "ep": "no routed experts, or one rank",
    "pp": "one layer",
    "cp": "splits the copies of a cache that tensor-parallel ranks hold; here there is one copy",
}


@lru_cache(maxsize=256)
def allowed(model: Model, tp: int = 1, dp: int = 1) -> dict[str, list[int]]:
    """The degrees on offer; `ep` and `cp` at the given tp and dp."""
    return degrees(model, tp=tp, dp=dp)


@lru_cache(maxsize=64)
def usual(model: Model) -> dict[str, int]:
    """What a page starts with: experts spread over sixteen data-parallel ranks, any other model on one; of `ep` the
    largest on offer up to this."""
    return {"tp": 1, "dp": USUAL if USUAL in allowed(model, 1, USUAL)["ep"] else 1, "ep": USUAL, "pp": 1, "cp": 1}


def deployment(model: Model, *places: Any) -> dict[str, int]:
    """Tensor, data and expert parallel degree, each control in its place."""
    chosen: dict[str, int] = {}
    for name, where in zip(NAMES, places, strict=True):
        chosen[name] = _degree(name, model, chosen, where)
    return chosen


def more_deployment(model: Model, chosen: dict[str, int], *places: Any) -> dict[str, Any]:
    """Pipeline and context parallel degree, batches in flight and the format of the weights, each control in its place;
    `chosen`: what `deployment` gave."""
    pipeline, context, flight, weights = places
    stages = _degree("pp", model, chosen, pipeline)
    return {
        "pp": stages,
        "cp": _degree("cp", model, chosen, context),
        "micro_batches": _in_flight(stages, flight),
        "weight_dtype": choice("weight_dtype", WEIGHT_DTYPES, "auto").show(weights),
    }


def _degree(name: str, model: Model, chosen: dict[str, int], where: Any) -> int:
    """A slider over the degrees that divide, or a word where there is but one."""
    spread = (chosen["tp"], chosen["dp"]) if name in ONLY else ()
    offered, start = allowed(model, *spread)[name], usual(model)[name]
    if len(offered) > 1:
        start = max(n for n in offered if n <= max(start, offered[0]))
        return int(steps(name, offered, start).show(where))
    only = offered[0] if offered else 1
    not_asked(name, str(only))
    where.caption(f"{name.upper()}: {only} ({ONLY.get(name, 'the shapes divide by no other')})")
    return only


def _in_flight(stages: int, where: Any) -> int:
    """Batches in flight in the pipeline, where there is one."""
    if stages > 1:
        return int(steps("micro_batches", IN_FLIGHT, 1).show(where))
    not_asked("micro_batches", "1", " without a pipeline")
    where.caption(f"{label('micro_batches')}: 1, there is one stage")
    return 1


def not_asked(name: str, used: str, why: str = "") -> None:
    """A note where the address gives a parameter that has no control in this view, unless it had one just now."""
    visits.now().read.add(name)
    given = st.query_params.get_all(name)
    if given and given != [used] and name not in st.session_state:
        refuse(name, ", ".join(given), f"nothing{why}" if why else used, used)
