"""Numbers of uses: totals, leg times and bounds, from generated functions; no sympy, no numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from roofline._generated.kernels import LEGS
from roofline._generated.kernels import QUANTITIES as PRINTED
from roofline._generated.rules import RULES
from roofline.errors import BadValue, NoAnswer
from roofline.plan.records import Use, Value

QUANTITIES: Mapping[str, Mapping[str, Callable[..., Any]]] = PRINTED  # type: ignore[assignment]
FALLBACK = {"fp4": ("fp4", "fp8", "bf16", "fp16"), "fp8": ("fp8", "bf16", "fp16"), "bf16": ("bf16", "fp16", "given")}
WIDE = ("moe_dispatch", "moe_combine", "send")
TOTALS = ("flops", "vector_flops", "exps", "bytes", "link_bytes")
BOUND = {
    "tensor": "compute",
    "vector": "vector unit",
    "exp": "special-function unit",
    "memory": "memory",
    "link": "link",
}
_ONE = {"link_bandwidth": 1.0}


class Rates(NamedTuple):
    """What a chip does per second: peaks by precision [FLOP/s], bandwidth [B/s], and where known vector rate [FLOP/s],
    exponentials [exp/s], link bandwidth of one device and direction [B/s]; `wide_bandwidth`: the same for traffic to
    experts and stages that may lie in other nodes."""

    peaks: Mapping[str, float]
    bandwidth: float
    vector_peak: float | None = None
    exp_rate: float | None = None
    link_bandwidth: float | None = None
    wide_bandwidth: float | None = None

    def peak(self, precision: str) -> tuple[float, str]:
        """The rate for a precision and its name: the next wider one where the chip has none of its own."""
        for name in FALLBACK[precision]:
            if name in self.peaks:
                return self.peaks[name], name
        if "given" in self.peaks:
            return self.peaks["given"], "given"
        raise NoAnswer(f"no peak for {precision} matrix products; the roof has {', '.join(self.peaks) or 'none'}")

    def of(self, leg: str, use: Use) -> float | None:
        """The rate of a leg of a use, None where it is not sourced."""
        if leg == "tensor":
            return self.peak(use.precision)[0]
        if leg == "link" and use.kernel in WIDE and self.wide_bandwidth is not None:
            return self.wide_bandwidth
        return getattr(self, LEGS[leg])  # type: ignore[no-any-return]


class UseCost(NamedTuple):
    """Totals of one run of a use [FLOP, exp, B], and the time of each leg [s]."""

    use: Use
    flops: float
    vector_flops: float
    exps: float
    bytes: float
    link_bytes: float
    legs: Mapping[str, float]

    @property
    def lower(self) -> float:
        """The longest leg [s]."""
        return max(self.legs.values(), default=0.0)

    @property
    def upper(self) -> float:
        """All legs one after the other [s]."""
        return sum(self.legs.values())

    @property
    def bound(self) -> str:
        """What bounds it: the unit of the longest leg."""
        return BOUND[max(self.legs, key=lambda leg: self.legs[leg])] if self.legs else "none"


class Bounds(NamedTuple):
    """Time bounds of a step [s].

    compute_lower, compute_upper: kernels that compute, the longest leg or all legs each; link: all collectives;
    lower: collectives hidden behind computation as far as they fit; upper: nothing overlaps; gaps: launch gaps, in
    both.
    """

    compute_lower: float
    compute_upper: float
    link: float
    gaps: float

    @property
    def lower(self) -> float:
        """Overlap perfect."""
        return max(self.compute_lower, self.link) + self.gaps

    @property
    def upper(self) -> float:
        """Overlap none."""
        return self.compute_upper + self.link + self.gaps


def cost(use: Use, numbers: Mapping[str, float], rates: Rates | None) -> UseCost:
    """Totals and leg times of one run of a use; `numbers`: what the use takes from the workload."""
    functions, known = QUANTITIES[use.kernel], dict[str, float]()
    totals = {q: call(functions[q], use.values, numbers, known) for q in TOTALS[:4]}
    totals["link_bytes"] = (
        call(functions["link"], use.values, numbers, {**known, **_ONE}) if "link" in functions else 0.0
    )
    legs = {}
    for leg, rate in LEGS.items():
        speed = rates.of(leg, use) if rates and leg in functions else None
        if speed:
            known[rate] = speed
            legs[leg] = call(functions[leg], use.values, numbers, known)
    return UseCost(use, legs=legs, **totals)


def call(
    function: Callable[..., float], values: Mapping[str, Value], numbers: Mapping[str, float], known: dict[str, float]
) -> float:
    """A generated function at what stands for its parameters; `known` remembers them for the use's other functions."""
    code, given = function.__code__, {}
    for name in code.co_varnames[: code.co_kwonlyargcount]:
        if name not in known:
            known[name] = resolve(name, values, numbers)
        given[name] = known[name]
    return float(function(**given))


def follow(
    name: str, values: Mapping[str, Value], numbers: Mapping[str, float], free: str, busy: tuple[str, ...] = ()
) -> float | Callable[[float], float]:
    """As `resolve`, with one workload quantity left free: a number, or a function of that quantity."""
    bound = values.get(name) if name not in busy else None
    if bound is None and name == free:
        return _itself
    rule: Any = RULES.get(bound) if isinstance(bound, str) else None
    if rule is None:
        if isinstance(bound, str):
            return follow(bound, {}, numbers, free)
        return resolve(name, values, numbers, busy)
    code = rule.__code__
    needs = code.co_varnames[: code.co_kwonlyargcount]
    return partly(rule, {n: follow(n, values, numbers, free, (*busy, name)) for n in needs})


def partly(
    function: Callable[..., float], given: Mapping[str, float | Callable[[float], float]]
) -> float | Callable[[float], float]:
    """A function with some parameters given as numbers and the others as functions of one quantity."""
    fixed = {name: value for name, value in given.items() if not callable(value)}
    moving = [(name, value) for name, value in given.items() if callable(value)]
    if not moving:
        return float(function(**fixed))
    return lambda free: float(function(**fixed, **{name: value(free) for name, value in moving}))


def _itself(free: float) -> float:
    return free


def bounds_of(costs: Iterable[UseCost], gaps: float = 0.0) -> Bounds:
    """Bounds of uses that run one after the other."""
    lower = upper = link = 0.0
    for c in costs:
        if "link" in c.legs:
            link += c.use.count * c.lower
        elif not c.link_bytes:
            lower += c.use.count * c.lower
            upper += c.use.count * c.upper
    return Bounds(lower, upper, link, gaps)


def resolve(name: str, values: Mapping[str, Value], numbers: Mapping[str, float], busy: tuple[str, ...] = ()) -> float:
    """The number that stands for a quantity: bound by the use, made by a rule, or taken from the workload.

    A rule bound to a name sees the workload's own value of that name, as `Kernel.bind` does.
    """
    bound = values.get(name) if name not in busy else None
    if bound is None:
        if name not in numbers:
            raise BadValue(name, "nothing", "a value bound by the plan or the workload")
        return numbers[name]
    if not isinstance(bound, str):
        return bound
    rule: Any = RULES.get(bound)
    if rule is None:
        return resolve(bound, {}, numbers)
    code = rule.__code__
    needs = code.co_varnames[: code.co_kwonlyargcount]
    return float(rule(**{n: resolve(n, values, numbers, (*busy, name)) for n in needs}))
