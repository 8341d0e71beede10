"""A step: the uses of kernels it runs, and everything that follows from them.

`Step` has two faces of one list.  Numbers come from generated functions, without sympy: `costs`, `totals`, `bounds`.
`Step.cost()` is the same list as a symbolic `Sequence`, of which formulas, elasticities, roots and grids follow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from roofline._generated.kernels import LEGS
from roofline.plan.numbers import QUANTITIES, TOTALS, Bounds, Rates, UseCost, bounds_of, cost, follow, partly, resolve
from roofline.plan.records import Deployment, Options, Use, Workload
from roofline.plan.symbolic import kernel_of, times

if TYPE_CHECKING:
    from roofline.kernel import Sequence
    from roofline.models import Model


class Step:
    """One step on one device of each kind: the uses, and the numbers and names they depend on.

    `numbers`: values of the workload and the deployment by glossary name; a use binds the rest.
    """

    def __init__(self, model: Model, load: Workload, spread: Deployment, options: Options, uses: Iterable[Use]) -> None:
        self.model, self.workload, self.deployment, self.options = model, load, spread, options
        self.uses = merged(uses)
        self.numbers: dict[str, float] = {
            **{k: v for k, v in load._asdict().items() if k != "phase"},
            "tp": spread.tp,
            "dp": spread.dp,
        }

    def __repr__(self) -> str:
        return f"Step({self.model.id!r}, {self.workload.phase}, {len(self.uses)} uses)"

    @property
    def n_kernels(self) -> float:
        """Kernels launched."""
        return sum(u.count for u in self.uses)

    def value(self, use: Use, name: str, numbers: Mapping[str, float] | None = None) -> float:
        """What stands for a quantity in a use, as a number."""
        return resolve(name, use.values, self.numbers if numbers is None else numbers)

    def costs(self, rates: Rates | None = None, **changed: float) -> list[UseCost]:
        """Totals and leg times of every use, in order; `changed`: other workload numbers than the step's own."""
        numbers = {**self.numbers, **changed} if changed else self.numbers
        return [cost(use, numbers, rates) for use in self.uses]

    def leg_time(self, leg: str, rates: Rates, free: str) -> Callable[[float], float]:
        """The time of one leg added over all uses [s], as a function of one workload quantity."""
        parts: list[tuple[float, float | Callable[[float], float]]] = []
        for use in self.uses:
            function, speed = QUANTITIES[use.kernel].get(leg), rates.of(leg, use)
            if function is not None and speed:
                code: Any = function.__code__
                names = code.co_varnames[: code.co_kwonlyargcount]
                given = {n: speed if n == LEGS[leg] else follow(n, use.values, self.numbers, free) for n in names}
                parts.append((use.count, partly(function, given)))

        def time(value: float) -> float:
            total = 0.0
            for count, part in parts:
                total += count * (part(value) if callable(part) else part)
            return total

        return time

    def totals(self, **changed: float) -> dict[str, float]:
        """Sums over the uses, each as often as it runs."""
        costs = self.costs(None, **changed)
        return {q: sum(getattr(c, q) * c.use.count for c in costs) for q in TOTALS}

    def bounds(
        self, rates: Rates, *, launch_gap: float = 0.0, n_kernels: float | None = None, **changed: float
    ) -> Bounds:
        """Time bounds [s]; `launch_gap` [s] before each of `n_kernels` kernels (default: as many as the step runs)."""
        return bounds_of(
            self.costs(rates, **changed), launch_gap * (self.n_kernels if n_kernels is None else n_kernels)
        )

    def cost(self, parts: Collection[str] | None = None, **fixed: Any) -> Sequence:
        """The step as a symbolic sequence of kernels: workload quantities stay symbols unless given here.

        parts: only uses of these parts (attention, indexer, ffn, experts, head, embedding, norm, communication).

        >>> from roofline.models import load_model
        >>> from roofline.plan import plan
        >>> plan(load_model("llama-3.1-8b")).cost(batch=1, q_len=1).flops
        524288*(context + 1) + 15009316864
        """
        from roofline.kernel import Sequence

        kernels = [kernel_of(use).bind(**fixed) for use in self.uses if parts is None or use.part in parts]
        name = f"{self.model.id}: {self.workload.phase} step"
        return Sequence(name, *kernels, title=f"{self.workload.phase} step of {self.model.name}")

    def time_lower(self, **fixed: Any) -> Any:
        """Lower time bound in symbols: `peak` is the 16-bit one, `peak_fp8` and `peak_fp4` the others."""
        from roofline.symbols import maximum

        lower, _, link = times(self.cost(**fixed))
        return maximum(lower, link) if link != 0 else lower

    def time_upper(self, **fixed: Any) -> Any:
        """Upper time bound in symbols: all legs of all kernels one after the other."""
        _, upper, link = times(self.cost(**fixed))
        return upper + link


def merged(uses: Iterable[Use]) -> tuple[Use, ...]:
    """Equal uses as one, with their counts added, in order of first appearance."""
    found: dict[tuple[object, ...], Use] = {}
    for use in uses:
        key = (use.name, use.kernel, use.precision, tuple(use.values.items()))
        known = found.get(key)
        if known is not None:
            names = tuple(dict.fromkeys((*known.weights, *use.weights)))
            use = known._replace(count=known.count + use.count, weights=names)
        found[key] = use
    return tuple(found.values())
