"""The deployment of a step, chosen alike on every page that asks for one; only degrees that the model allows are on
offer."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from roofline.answers.step_map import degrees
from roofline.dashboard.controls import steps
from roofline.models import Model

NAMES = ("tp", "dp", "ep")
USUAL = 16  # ranks that the experts of a model are spread over where nothing is chosen: two machines of eight
ONLY = {"ep": "no routed experts, or one rank"}


@lru_cache(maxsize=256)
def allowed(model: Model, tp: int = 1, dp: int = 1) -> dict[str, list[int]]:
    """The degrees on offer; `ep` at the given tp and dp."""
    return degrees(model, tp=tp, dp=dp)


@lru_cache(maxsize=64)
def usual(model: Model) -> dict[str, int]:
    """What a page starts with: experts spread over sixteen data-parallel ranks, any other model on one; of `ep` the
    largest on offer up to this."""
    return {"tp": 1, "dp": USUAL if USUAL in allowed(model, 1, USUAL)["ep"] else 1, "ep": USUAL}


def deployment(model: Model, *places: Any) -> dict[str, int]:
    """Tensor, data and expert parallel degree, each control in its place."""
    start = usual(model)
    chosen: dict[str, int] = {}
    for name, where in zip(NAMES, places, strict=True):
        spread = (chosen["tp"], chosen["dp"]) if name == "ep" else ()
        chosen[name] = _degree(name, allowed(model, *spread)[name], start[name], where)
    return chosen


def _degree(name: str, offered: list[int], start: int, where: Any) -> int:
    """A slider over the degrees that divide, or a word where there is but one."""
    if len(offered) > 1:
        return int(steps(name, offered, max(n for n in offered if n <= max(start, offered[0]))).show(where))
    only = offered[0] if offered else 1
    where.caption(f"{name.upper()}: {only} ({ONLY.get(name, 'the shapes divide by no other')})")
    return only
