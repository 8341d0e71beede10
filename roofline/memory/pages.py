"""Reserve-to-maximum against pages of a fixed size, for a list of request lengths; exact, in whole tokens.

Reserving gives every request `reserve` token slots; paging gives it ceil(length / page) pages, of which only the last
can be partly empty.  At every page size  used + slack = pages * page size.  Not counted here unless asked for
(`table_bytes`, `read_overhead_bytes`): the page table, scattered reads, scheduling.
Source: PagedAttention, arXiv:2309.06180 sec. 4; the sums are plain counting.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from roofline.errors import BadValue

LARGEST = 10**18  # tokens: longer than any cache, short enough for every exact step below
ORDERS = 8  # requests up to which every order is tried: 8! = 40,320


class Lengths(tuple[int, ...]):
    """Request lengths that were checked already."""

    __slots__ = ()


class Paging(NamedTuple):
    """A list of requests cut into pages.  Counts in tokens unless the name says pages.

    sizes: pages of each request; used: tokens that carry data; shared_pages: pages saved by a shared prefix;
    copied: tokens copied on write, because the shared prefix ends inside a page.
    """

    lengths: Lengths
    page_size: int
    sizes: tuple[int, ...]
    used: int
    pages: int
    shared_pages: int = 0
    copied: int = 0
    members: tuple[int, ...] = ()

    @property
    def held(self) -> int:
        """Token slots taken: pages * page size."""
        return self.pages * self.page_size

    @property
    def stored(self) -> int:
        """Tokens that lie in pages: a shared one counts once.  stored + slack = held."""
        return self.used - self.shared_pages * self.page_size

    @property
    def slack(self) -> int:
        """Empty slots in last pages; sharing does not change them."""
        return self.held - self.stored

    @property
    def waste(self) -> float:
        """Slack as a share of the slots taken."""
        return self.slack / self.held

    @property
    def slacks(self) -> tuple[int, ...]:
        """Empty slots in the last page of each request."""
        page = self.page_size
        return tuple([n * page - length for n, length in zip(self.sizes, self.lengths, strict=True)])

    @property
    def last_fill(self) -> tuple[int, ...]:
        """Tokens in the last page of each request."""
        return tuple(self.page_size - slack for slack in self.slacks)


class Reserve(NamedTuple):
    """A list of requests with `reserve` slots each."""

    lengths: Lengths
    reserve: int
    used: int

    @property
    def held(self) -> int:
        """Token slots taken."""
        return self.reserve * len(self.lengths)

    @property
    def wasted(self) -> int:
        """Slots that carry no data."""
        return self.held - self.used

    @property
    def waste(self) -> float:
        """Their share."""
        return self.wasted / self.held

    @property
    def wastes(self) -> tuple[int, ...]:
        """Slots without data of each request."""
        return tuple(self.reserve - length for length in self.lengths)


class Prefix(NamedTuple):
    """The first `tokens` tokens that `requests` requests have in common."""

    tokens: int
    requests: int


class Fit(NamedTuple):
    """How many requests of the list, arriving again and again in order, fit before the first that does not.

    rounds: whole lists; rest: what is left after them, left: what is left at the end (slots).
    """

    requests: int
    rounds: int
    rest: int
    left: int


def whole(name: str, value: object, low: int = 1, high: int = LARGEST) -> int:
    """A whole number in a range, or BadValue."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        limit = "10^18" if high == LARGEST else f"{high:,}"
        raise BadValue(name, value, f"a whole number from {low:,} to {limit}")
    return value


def checked(lengths: Iterable[int]) -> Lengths:
    """Request lengths, every one a whole number of at least 1 token."""
    if isinstance(lengths, Lengths):
        return lengths
    found = Lengths(lengths)
    if not found:
        raise BadValue("lengths", "nothing", "at least one request length")
    if set(map(type, found)) != {int} or min(found) < 1 or max(found) > LARGEST:
        for at, length in enumerate(found):
            whole(f"lengths[{at}]", length)
    return found


def split(lengths: Iterable[int], page_size: int) -> Paging:
    """Cut requests into pages.

    >>> p = split([403, 96, 241, 30, 176], 16)
    >>> p.sizes, p.slacks, p.last_fill
    ((26, 6, 16, 2, 11), (13, 0, 15, 2, 0), (3, 16, 1, 14, 16))
    """
    found, page = checked(lengths), whole("page_size", page_size)
    sizes = tuple([-(-length // page) for length in found])
    return Paging(found, page, sizes, sum(found), sum(sizes))


def reserved(lengths: Iterable[int], reserve: int) -> Reserve:
    """Give every request `reserve` slots; a request longer than that could not be served and is refused.

    >>> r = reserved([403, 96, 241, 30, 176], 512)
    >>> r.held, r.wasted, round(r.waste, 4)
    (2560, 1614, 0.6305)
    """
    found = checked(lengths)
    whole("reserve", reserve)
    if max(found) > reserve:
        raise BadValue("reserve", reserve, f"at least the longest request, {max(found)} tokens")
    return Reserve(found, reserve, sum(found))


def share(paging: Paging, prefix: Prefix) -> Paging:
    """The same requests with a common prefix held once: (n - 1) * floor(prefix / page) pages fewer.

    Members are the first `prefix.requests` of the list that are at least as long as the prefix; where fewer are, the
    prefix is longer than a member and is refused.  The page in which the prefix ends is copied by every further member
    that writes behind it, so only whole pages are shared.

    >>> s = share(split([403, 96, 241, 30, 176], 16), Prefix(64, 3))
    >>> s.shared_pages, s.held, s.members
    (8, 848, (0, 1, 2))
    """
    tokens, count = whole("prefix", prefix.tokens, 0), whole("prefix requests", prefix.requests)
    long_enough = [at for at, length in enumerate(paging.lengths) if length >= tokens]
    if count > len(paging.lengths):
        raise BadValue("prefix requests", count, f"at most the {len(paging.lengths)} requests of the list")
    if count > len(long_enough):
        short = min(paging.lengths)
        note = f"it is longer than a member: {len(long_enough)} requests have as many tokens, the shortest {short}"
        raise BadValue("prefix", tokens, f"a prefix that {count} requests of the list can hold", note)
    pages = (count - 1) * (tokens // paging.page_size)
    copied = (count - 1) * (tokens % paging.page_size)
    members = tuple(long_enough[:count])
    return paging._replace(pages=paging.pages - pages, shared_pages=pages, copied=copied, members=members)


def slots(pool_bytes: float, bytes_per_token: float) -> int:
    """Token slots of a pool.

    >>> slots(2 * 2**30, 128 * 2**10)
    16384
    """
    if not pool_bytes >= 0:
        raise BadValue("pool_bytes", pool_bytes, "a number of bytes >= 0")
    if not bytes_per_token > 0:
        raise BadValue("bytes_per_token", bytes_per_token, "a number of bytes > 0")
    return int(pool_bytes // bytes_per_token)


def fit(paging: Paging, pool_slots: int) -> Fit:
    """Requests that fit into a pool of pages when the list repeats in order, up to the first that does not fit.

    >>> fit(split([403, 96, 241, 30, 176], 16), 16384)
    Fit(requests=83, rounds=16, rest=768, left=0)
    """
    total, page = sum(paging.sizes), paging.page_size
    rounds, left = divmod(whole("pool_slots", pool_slots, 0) // page, total)
    requests, rest = rounds * len(paging.lengths), left
    for size in paging.sizes:
        if size > left:
            break
        left -= size
        requests += 1
    return Fit(requests, rounds, rest * page, left * page)


def fit_reserved(reserve: int, pool_slots: int) -> int:
    """Requests that fit when each reserves `reserve` slots.

    >>> fit_reserved(512, 16384)
    32
    """
    return whole("pool_slots", pool_slots, 0) // whole("reserve", reserve)


def orders(paging: Paging, pool_slots: int) -> dict[int, int]:
    """For every order of the list, how many requests fit: {requests: orders}.  At most `ORDERS` requests.

    >>> orders(split([403, 96, 241, 30, 176], 16), 16384)
    {82: 12, 83: 60, 84: 48}
    """
    from itertools import permutations

    if len(paging.lengths) > ORDERS:
        raise BadValue("orders", f"{len(paging.lengths)} requests", f"at most {ORDERS}: every order is tried")
    found: dict[int, int] = {}
    for order in permutations(paging.sizes):
        requests = fit(paging._replace(sizes=order), pool_slots).requests
        found[requests] = found.get(requests, 0) + 1
    return dict(sorted(found.items()))


def table_bytes(paging: Paging, entry_bytes: int = 4, max_len: int | None = None) -> int:
    """Bytes of the page tables: an entry per page held; with `max_len`, a row long enough for that many tokens each.

    >>> table_bytes(split([403, 96, 241, 30, 176], 16)), table_bytes(split([403, 96, 241, 30, 176], 16), max_len=512)
    (244, 640)
    """
    entries = sum(paging.sizes)
    if max_len is not None:
        entries = len(paging.lengths) * -(-whole("max_len", max_len) // paging.page_size)
    return entries * whole("entry_bytes", entry_bytes)


def read_overhead_bytes(paging: Paging, per_page_bytes: float, streams: int) -> float:
    """Extra bytes of one decode step when every page starts a new read that wastes `per_page_bytes`.

    streams: separate reads per page, such as 2 * layers where keys and values of a layer lie apart.

    >>> read_overhead_bytes(split([403, 96], 16), 64, 2 * 32)
    131072
    """
    if not per_page_bytes >= 0:
        raise BadValue("per_page_bytes", per_page_bytes, "a number of bytes >= 0")
    return sum(paging.sizes) * whole("streams", streams) * per_page_bytes
