r"""Where two ways to compute the same attention cost the same: MHA mode against MQA mode of MLA, the indexer against
the attention it serves, sparse attention against dense.

Every answer is two costs, each made of kernels under a visibility, set equal and solved for one quantity:

    oneshot        seq_len   masked MHA over all causal pairs | sparse MQA over top-k keys (attention cores: the
                             projections of both modes cost the same FLOPs and cancel)
    chunked        q_len     up-projection of context and chunk + MHA core | absorption + MQA core + un-absorption
    decode         seq_len, batch   the same two sums, few new tokens
    shared-prefix  batch     the part of the work that reads a prefix shared by the batch, expanded keys and values kept

`rate_ratio` m is MHA mode's FLOP rate over MQA mode's: with cost "flops" MHA's FLOPs are divided by m, with cost "time"
its tensor legs run at m times the peak.
Sources: arXiv:2512.02556 (DSA), arXiv:2509.21081 (shared prefix), vllm-project/vllm pull request 48770 (masked MHA).

>>> v32 = dict(heads=128, latent=512, rope=64, nope=128, value=128, topk=2048)
>>> [crossing] = crossings(Case("oneshot", v32))
>>> round(crossing.value, 2)
12812.96
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from typing import Any

import sympy as sp

from roofline import law, visibility
from roofline.errors import BadValue, UnknownName
from roofline.kernel import Cost
from roofline.kernels.mla import MLA_ABSORPTION, MLA_MHA, MLA_MQA, MLA_UNABSORPTION, MLA_UP_PROJECTION
from roofline.kernels.sparse import DSA_INDEXER
from roofline.phases import check_phase
from roofline.solver import roots
from roofline.solver.rational import approx, sign_at
from roofline.solver.solution import Rejected, Root
from roofline.symbols import Expr, exact, replaced, sym
from roofline.visibility import Visibility

COSTS = ("flops", "time")
SUBJECTS = {  # what is compared: the two sides' names
    "modes": ("mha", "mqa"),
    "indexer": ("indexer", "attention"),
    "dense": ("dense", "dsa"),
}
Numbers = tuple[tuple[str, Expr], ...]  # values by name, exact
PLACES = tuple(sp.Integer(2) ** k for k in (-40, 0, 12, 24, 40))  # where functions of an unknown are compared
UNKNOWNS = {"oneshot": ("seq_len",), "chunked": ("q_len",), "decode": ("seq_len", "batch"), "shared-prefix": ("batch",)}


@dataclass(frozen=True)
class Case:
    """One comparison: the phase, the model's shape per rank, how the kernels run, and what is counted.

    shape: glossary names of the rank's shape (heads per rank, latent, rope, nope, value; topk where attention is
    sparse; index_heads, index_head_dim where there is an indexer).  kernel_heads: heads as the MQA kernel runs them,
    None = as they are.  rates: peak, bandwidth and, where sourced, exp_rate and vector_peak of the chip, needed for
    cost "time"; peaks: tensor peak by precision, for kernels that run at another one than bf16.
    given: values for batch, q_len, context, prefix and for widths (w_kv, kv_row_bytes, w_act, ...).
    """

    phase: str
    shape: Mapping[str, Any]
    subject: str = "modes"
    kernel_heads: Any = None
    cost: str = "flops"
    rates: Mapping[str, Any] = field(default_factory=dict)
    peaks: Mapping[str, Any] = field(default_factory=dict)
    rate_ratio: Any = 1
    skip: bool = True
    gather: str = "none"
    given: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_phase(self.phase)
        if self.cost not in COSTS:
            raise UnknownName("cost", self.cost, COSTS)
        if self.subject not in SUBJECTS:
            raise UnknownName("comparison", self.subject, SUBJECTS)
        if self.cost == "time" and not self.rates:
            raise BadValue(
                "cost",
                "time",
                "an accelerator beside it",
                "a time needs --hardware, or --peak and --bandwidth, or --ridge",
            )
        if self.kernel_heads is not None and self.kernel_heads < self.shape["heads"]:
            raise BadValue(
                "kernel_heads", self.kernel_heads, f"at least the {self.shape['heads']} heads of the rank, or none"
            )

    @property
    def sparse(self) -> bool:
        """Whether the MQA core attends to top-k keys only."""
        return bool(self.shape.get("topk"))


@dataclass(frozen=True)
class Crossing:
    """One place where both sides cost the same, or the reason why there is none (`value` is then None).

    cheaper_below, cheaper_above: the cheaper side on either side of the value, names as in `SUBJECTS`; valid_from: the
    smallest value for which the comparison means something (top-k for sparse attention); lhs, rhs: the two costs.
    """

    unknown: str
    root: Root | None
    cheaper_below: str
    cheaper_above: str
    valid_from: float | None
    conditions: tuple[str, ...]
    reason: str
    lhs: Expr
    rhs: Expr
    rejected: tuple[Rejected, ...] = ()

    @property
    def value(self) -> float | None:
        """The crossing as a number.  Raises BadValue for one that no float holds."""
        if self.root is None:
            return None
        value = float(self.root.value)
        if not isfinite(value):
            raise BadValue(self.unknown, self.root.value, "a finite result", "the numbers given are too large")
        return value


def seen(case: Case) -> Visibility:
    """What the MQA core sees in this case."""
    return visibility.topk(skip=case.skip, gather=case.gather) if case.sparse else visibility.dense()


def sides(case: Case) -> tuple[Cost, Cost]:
    """The two costs in symbols, before numbers are put in."""
    return _sides(case.subject, case.phase, seen(case))


@lru_cache(maxsize=64)
def _sides(subject: str, phase: str, core: Visibility) -> tuple[Cost, Cost]:
    """The two costs of a comparison whose MQA core sees `core`; the same objects each time, for their totals cost."""
    dense = visibility.dense().bindings()
    sparse = core.bindings()
    if subject == "indexer":
        return DSA_INDEXER.bind(**dense), MLA_MQA.bind(**sparse)
    if subject == "dense":
        return MLA_MQA.bind(**dense), DSA_INDEXER.bind(**dense) + MLA_MQA.bind(**sparse)
    if phase == "oneshot":
        return MLA_MHA.bind(**dense), MLA_MQA.bind(**sparse)
    if phase == "shared-prefix":
        part = visibility.prefix_part().bindings()
        return MLA_MHA.bind(**part), MLA_MQA.bind(**part)
    return MLA_UP_PROJECTION.bind(**dense) + MLA_MHA.bind(**dense), MLA_ABSORPTION + MLA_MQA.bind(
        **sparse
    ) + MLA_UNABSORPTION


def defaults(phase: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Workload and widths that stand where the caller gave none."""
    values = {"batch": 1, "q_len": 1, "w_kv": 2, "w_act": 2, "w_weight": 2, "w_expanded": 2}
    if phase == "shared-prefix" and "prefix" not in given:
        values |= {"prefix": 1, "w_act": 0}  # per token of a long prefix: query and output traffic vanish beside it
    return values


def _values(case: Case) -> dict[str, Any]:
    """Workload and widths of a case."""
    return defaults(case.phase, case.given) | dict(case.given)


def put_in(case: Case, unknown: str) -> tuple[Cost, Cost]:
    """Both costs with everything but the unknown replaced by numbers."""
    values = {**_values(case), **case.shape}
    values["kernel_heads"] = case.kernel_heads if case.kernel_heads is not None else case.shape["heads"]
    if case.phase == "oneshot":
        values |= {"context": 0, "q_len": sym.seq_len}
    elif unknown == "seq_len":
        values["context"] = sym.seq_len - exact(values["q_len"])
    values.pop(unknown, None)  # it stays a symbol
    return _bound(*sides(case), _exact(values))


def _exact(values: Mapping[str, Any]) -> Numbers:
    """Values without rounding and in one order: what a cached result may be told apart by."""
    return tuple((name, exact(value, name)) for name, value in sorted(values.items()) if value is not None)


@lru_cache(maxsize=256)
def _bound(first: Cost, second: Cost, values: Numbers) -> tuple[Cost, Cost]:
    """Both costs with numbers put in; a new rate ratio asks for the same ones."""
    return first.bind(**dict(values)), second.bind(**dict(values))


def _amount(case: Case, cost: Cost, ratio: Expr | int) -> Expr:
    """FLOPs or time of one side; `ratio` scales its FLOP rate."""
    if case.cost == "flops":
        return cost.flops / ratio
    return _time(cost, _exact(case.rates), _exact(case.peaks), exact(ratio))


@lru_cache(maxsize=512)
def _time(cost: Cost, rates: Numbers, peaks: Numbers, ratio: Expr) -> Expr:
    """Lower time bound of a cost at these rates and tensor peaks by precision."""
    known, own = dict(rates), dict(peaks)
    without = frozenset(leg for leg, (_, rate) in law.LEGS.items() if rate not in known)
    put = {getattr(sym, name): value for name, value in rates}
    total = sp.Integer(0)
    for kernel in cost.kernels:
        peak = own.get(kernel.precision, known["peak"])
        legs = law.legs(kernel, without).values() or [law.time_lower(kernel, without)]  # which tells what is missing
        total += _longest([replaced(leg, {**put, sym.peak: peak * ratio}) for leg in legs])
    return total


def _longest(times: list[Expr]) -> Expr:
    """What `sympy.Max` makes of these times.

    It tries long to find which of two is larger wherever both are positive.  Two that cross there need no such trial,
    and they cross if one is larger at one place and smaller at another.
    """
    unknown = set().union(*(t.free_symbols for t in times))
    if len(times) == 1 or len(unknown) != 1 or any(t.has(sp.Max, sp.Min) for t in times):
        return sp.Max(*times)
    (x,) = unknown
    alone = [a for i, a in enumerate(times) if all(_cross(a, b, x) for j, b in enumerate(times) if j != i)]
    rest = [t for t in times if t not in alone]
    largest = sp.Max(*rest) if rest else sp.Max(*alone, evaluate=False)
    return sp.Max(*alone, *sp.Max.make_args(largest), evaluate=False) if alone else largest


def _cross(a: Expr, b: Expr, x: sp.Symbol) -> bool:
    """Whether the larger of two functions changes between some places (found by trial: False may be wrong)."""
    signs = {sign_at(a - b, x, place) for place in PLACES}
    return {-1, 1} <= signs


def equation(case: Case, unknown: str) -> tuple[Expr, Expr]:
    """Both sides as expressions of the unknown (and of `rate_ratio` where that is the unknown)."""
    first, second = put_in(case, unknown)
    ratio = sym.rate_ratio if unknown == "rate_ratio" else exact(case.rate_ratio, "rate_ratio")
    return _amount(case, first, ratio if case.subject == "modes" else 1), _amount(case, second, 1)


def crossings(case: Case, unknowns: tuple[str, ...] | None = None) -> list[Crossing]:
    """Every real root of the comparison for each unknown of the phase; one record with a reason where there is none."""
    asked = unknowns or (UNKNOWNS[case.phase] if case.subject == "modes" else UNKNOWNS[case.phase][:1])
    return [c for unknown in asked for c in _crossings(case, unknown)]


def rate_ratio_at(case: Case, seq_len: Any) -> Crossing:
    """The rate ratio at which the two modes cross at `seq_len` (one-shot prefill): the inverse question."""
    if case.phase != "oneshot" or case.subject != "modes":
        raise BadValue("at_length", seq_len, "phase oneshot and a comparison of the modes")
    first, second = (side.bind(seq_len=seq_len) for side in put_in(case, "rate_ratio"))
    lhs, rhs = _amount(case, first, sym.rate_ratio), _amount(case, second, 1)
    return _solved(case, "rate_ratio", lhs, rhs, None)[0]


def _crossings(case: Case, unknown: str) -> list[Crossing]:
    lhs, rhs = equation(case, unknown)
    return _solved(case, unknown, lhs, rhs, _lowest(case, unknown))


def _lowest(case: Case, unknown: str) -> float | None:
    """Below this every key is selected, or fewer keys than new tokens are left: the question has no meaning there."""
    if unknown != "seq_len":
        return None
    if case.phase == "oneshot":
        return case.shape["topk"] if case.sparse else None
    return float(_values(case)["q_len"])


def _solved(case: Case, unknown: str, lhs: Expr, rhs: Expr, lowest: float | None) -> list[Crossing]:
    names = SUBJECTS[case.subject]
    solution = roots(lhs, rhs, unknown, low=lowest, labels=names)
    rejected = tuple(r for r in solution.rejected if not (_real(r.value) and approx(r.value) <= 0))
    conditions = tuple(_conditions(case))
    if not solution.roots:
        cheaper = _cheaper(lhs, rhs, unknown, names)
        reason = (
            f"{names[0]} and {names[1]} never cost the same: {solution.reason}"
            if not solution.intervals
            else "both sides cost the same everywhere"
        )
        return [Crossing(unknown, None, cheaper, cheaper, lowest, conditions, reason, lhs, rhs, rejected)]
    return [
        Crossing(
            unknown,
            root,
            _side(root.before, names),
            _side(root.after, names),
            lowest,
            conditions,
            "",
            lhs,
            rhs,
            rejected,
        )
        for root in solution.roots
    ]


def _real(value: Expr) -> bool:
    return bool(value.is_number and value.is_real)


def _side(sign: int | None, names: tuple[str, str]) -> str:
    """The cheaper side from the sign of lhs - rhs."""
    return {None: "", 0: "equal", -1: names[0], 1: names[1]}[sign]


def _cheaper(lhs: Expr, rhs: Expr, unknown: str, names: tuple[str, str]) -> str:
    """The side that is cheaper where the two never cross."""
    difference = (lhs - rhs).subs(getattr(sym, unknown), 4099)
    return _side(int(sp.sign(difference)), names) if difference.is_number else ""


def _conditions(case: Case) -> list[str]:
    """What holds for every value of this comparison, in words."""
    values = _values(case)
    said = [
        f"{name} = {values[name]}"
        for name in ("batch", "q_len", "context", "prefix")
        if name in values and name not in UNKNOWNS[case.phase]
    ]
    if case.phase == "oneshot":
        said = ["attention cores only"] if case.subject == "modes" else []
    if case.sparse:
        said.append("missing keys skipped" if case.skip else "missing keys computed")
        said.append(f"gather reuse {case.gather}")
    if case.phase == "shared-prefix":
        said.append("expanded keys and values kept")
    return said
