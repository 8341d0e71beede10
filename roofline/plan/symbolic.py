"""The symbolic face of a step: its uses as kernels with everything bound that the plan binds, and the law's times.

sympy is imported here alone, and only when the symbolic face is asked for.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from roofline.plan.records import Use

if TYPE_CHECKING:
    from roofline.kernel import Kernel, Sequence

PEAKS = {"fp8": "peak_fp8", "fp4": "peak_fp4"}


def kernel_of(use: Use) -> Kernel:
    """The use's kernel, everything bound that the plan binds."""
    from roofline.kernels import KERNELS
    from roofline.kernels.rules import RULES as EXPRESSIONS
    from roofline.symbols import exact, symbol

    def expression(name: str, busy: tuple[str, ...]) -> Any:
        bound = use.values.get(name) if name not in busy else None
        if bound is None:
            return symbol(name)
        if not isinstance(bound, str):
            return _per_element(bound, use) if name == "w_weight" else exact(bound, name)
        if bound not in EXPRESSIONS:
            return symbol(bound)
        rule, more = EXPRESSIONS[bound], (*busy, name)
        return rule.xreplace({s: expression(s.name, more) for s in rule.free_symbols})

    kernel = KERNELS[use.kernel]
    free = kernel.bind(**{s.name: s for s in kernel.bindings})
    bound = {s: expression(s.name, ()) for s in free.free_symbols}
    found = free.named(use.name, kernel.title, precision=use.precision)
    found.bindings = bound
    return found.repeated(use.count)


def _per_element(width: float, use: Use) -> Any:
    """Bytes of a weight element as the fraction it was made of: whole bytes of a tensor over its elements, which its
    decimals would only approach."""
    from roofline.symbols import exact

    sides = [use.values.get(name) for name in ("hidden", "ffn")]
    elements = 2
    for side in sides:
        elements *= round(side) if isinstance(side, (int, float)) and side >= 1 else 1
    size = width * elements
    return exact(round(size)) / elements if abs(size - round(size)) < 1e-5 else exact(width, "w_weight")


def times(cost: Sequence) -> tuple[Any, Any, Any]:
    """The law's times, added: of the kernels that compute (lower, upper), and of the collectives."""
    from roofline.law import legs
    from roofline.symbols import SYMBOLS, maximum

    lower, upper, link = _Sum(), _Sum(), _Sum()
    for k in cost.kernels:
        own = {SYMBOLS["peak"]: SYMBOLS[PEAKS.get(k.precision, "peak")]}
        found = {leg: k.times * time.xreplace(own) for leg, time in legs(k).items()}
        if not found:
            continue
        shared, rest = _common(list(found.values()))
        if "link" in found:
            link.add(shared, rest[0])
        else:
            lower.add(shared, maximum(*rest))
            upper.add(shared, sum(rest))
    return lower.total(), upper.total(), link.total()


class _Sum:
    """A sum that keeps terms of a common factor together: batch * (a + b) instead of batch * a + batch * b, so that a
    grid
    evaluates what does not depend on the batch on its own axes."""

    def __init__(self) -> None:
        self.parts: dict[Any, list[Any]] = {}

    def add(self, factor: Any, term: Any) -> None:
        """One more term."""
        self.parts.setdefault(factor, []).append(term)

    def total(self) -> Any:
        """The sum."""
        return sum(factor * sum(terms) for factor, terms in self.parts.items())


def _common(times: list[Any]) -> tuple[Any, list[Any]]:
    """(factor, rest): the batch, where every time is a product with it; positive, so it may leave a maximum."""
    factors = [set(time.as_ordered_factors()) for time in times]
    shared = [f for f in set.intersection(*factors) if f.free_symbols and f.free_symbols <= _batches()]
    product = 1
    for f in sorted(shared, key=str):
        product = product * f
    return product, [time / product for time in times]


@lru_cache(maxsize=1)
def _batches() -> set[Any]:
    """Symbols that count sequences."""
    from roofline.symbols import SYMBOLS

    return {SYMBOLS[name] for name in ("batch", "prefill_batch", "dp")}
