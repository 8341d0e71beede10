"""What every engine plan answers, and the questions asked of it: capacity, verdict, and the inverse questions.

An engine turns available bytes into blocks, tokens and requests by a rule of its own (`vllm`, `sglang`, `trtllm`,
`llamacpp` beside this file); what is said here holds for all of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from roofline.errors import BadValue
from roofline.memory.layouts import Layout

GIB = 2.0**30
LONGEST = 2**40  # tokens up to which a longest context is looked for


class Plan:
    """How an engine lays a model's cache out on one rank."""

    engine = ""
    layout: Layout
    block_size: int
    taken: tuple[str, ...] = ()  # defaults that were taken, in words

    def blocks(self, available: float) -> int:
        """Blocks that `available` bytes hold."""
        raise NotImplementedError

    def tokens(self, available: float) -> int:
        """Tokens, as the engine counts and prints them."""
        raise NotImplementedError

    def needed(self, length: int, requests: int = 1) -> float:
        """Bytes that `requests` requests of `length` tokens need."""
        raise NotImplementedError

    def concurrency(self, available: float, length: int) -> float:
        """Requests of `length` tokens that fit at once, with its fraction."""
        raise NotImplementedError

    def details(self, available: float, length: int) -> dict[str, Any]:
        """What else the engine prints."""
        return {}


class Capacity(NamedTuple):
    """What one rank holds.  Bytes and tokens; `longest`: the longest context of one request."""

    plan: Plan
    available: float
    length: int
    blocks: int
    tokens: int
    concurrency: float
    needed: float
    longest: int

    @property
    def starts(self) -> bool:
        """Whether one request of the asked length fits: otherwise engines refuse to start, or cut the length."""
        return self.available > 0 and self.needed <= self.available

    @property
    def missing(self) -> float:
        """Bytes that are missing for one request [B]; 0 where it fits."""
        return max(self.needed - self.available, 0.0)


def hold(plan: Plan, available: float, length: int) -> Capacity:
    """The capacity of a rank with `available` bytes for caches, for requests of `length` tokens."""
    if isinstance(length, bool) or not isinstance(length, int) or not 1 <= length <= LONGEST:
        raise BadValue("max_model_len", length, "a whole number of tokens from 1 to 2^40")
    given = max(available, 0.0)
    return Capacity(plan, available, length, plan.blocks(given), plan.tokens(given), plan.concurrency(given, length),
                    plan.needed(length), longest(plan, given))  # fmt: skip


def longest(plan: Plan, available: float, requests: int = 1) -> int:
    """The longest context that `requests` requests can all have; 0 where not even one token each fits."""
    low, high = 0, LONGEST
    while low < high:
        middle = (low + high + 1) // 2
        if plan.needed(middle, requests) <= available:
            low = middle
        else:
            high = middle - 1
    return low


class Budget(NamedTuple):
    """Where the bytes of a card go, in one engine's arithmetic.  `available` is what is left for caches."""

    rule: str
    total: float
    fraction: float
    weights: float
    activation: float
    non_torch: float

    @property
    def available(self) -> float:
        """Bytes for caches; negative where the weights alone are too large."""
        rest = self.weights + self.activation + self.non_torch
        return self.fraction * (self.total - rest) if self.rule == "of_free" else self.fraction * self.total - rest

    def fraction_for(self, needed: float) -> float:
        """The utilisation at which `needed` bytes are available; above 1: no setting does."""
        rest = self.weights + self.activation + self.non_torch
        if self.rule == "of_free":
            return needed / (self.total - rest) if self.total > rest else float("inf")
        return (needed + rest) / self.total


def implied_bytes_per_token(total_bytes: float, tokens: int) -> float:
    """Bytes per token behind a printed size and token count.

    >>> implied_bytes_per_token(69524783104, 132608)
    524288.0
    """
    if not tokens > 0:
        raise BadValue("tokens", tokens, "a count > 0")
    return total_bytes / tokens


def printed_unit(value: float, tokens: int, bytes_per_token: float) -> str:
    """Which unit a log means by "GB": the one in which the number agrees with the bytes, or "neither" (0.1 %).

    >>> printed_unit(48.0, 524288, 98304)
    'GiB'
    """
    exact = tokens * bytes_per_token
    for unit, scale in (("GiB", GIB), ("GB", 1e9)):
        if abs(value * scale / exact - 1) < 1e-3:
            return unit
    return "neither"
