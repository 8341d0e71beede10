"""The page pool under random use: no page is lost, none is owned twice unless shared, counts always add up."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from roofline.errors import BadValue, NoAnswer
from roofline.memory.pages import split
from roofline.memory.pool import PagePool

PAGES, PAGE = 24, 4


class Pool(RuleBasedStateMachine):
    """Random allocate, append, share, release and evict against a model that knows only lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = PagePool(PAGES, PAGE)
        self.lengths: dict[int, int] = {}
        self.names = 0

    def pick(self, data: st.DataObject, names: list[int]) -> int:
        return data.draw(st.sampled_from(sorted(names)))

    @rule(tokens=st.integers(1, 40))
    def allocate(self, tokens: int) -> None:
        self.names += 1
        try:
            self.pool.allocate(self.names, tokens)
            self.lengths[self.names] = tokens
        except NoAnswer:
            assert -(-tokens // PAGE) > self.pool.free
            assert self.pool.cached == 0

    @precondition(lambda self: self.lengths)
    @rule(data=st.data(), tokens=st.integers(1, 9))
    def append(self, data: st.DataObject, tokens: int) -> None:
        name = self.pick(data, list(self.lengths))
        others = {other: list(pages) for other, pages in self.pool.live.items() if other != name}
        try:
            self.pool.append(name, tokens)
            self.lengths[name] += tokens
        except NoAnswer:
            assert self.pool.cached == 0
        assert others == {other: pages for other, pages in self.pool.live.items() if other != name}

    @precondition(lambda self: self.lengths)
    @rule(data=st.data())
    def share(self, data: st.DataObject) -> None:
        source = self.pick(data, list(self.lengths))
        prefix = data.draw(st.integers(1, self.lengths[source]))
        self.names += 1
        before = len(self.pool.refs)
        try:
            self.pool.share(self.names, source, prefix)
            self.lengths[self.names] = prefix
            common = prefix // PAGE
            assert self.pool.live[self.names][:common] == self.pool.live[source][:common]
            assert len(self.pool.refs) <= before + (prefix % PAGE != 0)
        except NoAnswer:
            assert self.pool.free == 0

    @precondition(lambda self: self.lengths)
    @rule(data=st.data(), keep=st.booleans())
    def release(self, data: st.DataObject, keep: bool) -> None:
        name = self.pick(data, list(self.lengths))
        self.pool.release(name, keep=keep)
        del self.lengths[name]

    @rule(pages=st.integers(1, 5))
    def evict(self, pages: int) -> None:
        free, cached, used = self.pool.free, self.pool.cached, self.pool.used
        freed = self.pool.evict(pages)
        assert self.pool.free == free + freed
        assert freed >= min(pages, cached)
        assert self.pool.used == used

    @invariant()
    def counts_add_up(self) -> None:
        pool = self.pool
        assert pool.free + pool.used + pool.cached == PAGES
        assert min(pool.free, pool.used, pool.cached) >= 0
        owners = Counter(page for owned in (*pool.live.values(), *pool.kept.values()) for page in owned)
        assert owners == Counter(pool.refs)  # no page is lost, none has an owner too many
        assert all(len(set(owned)) == len(owned) for owned in pool.live.values())
        assert all(0 <= page < PAGES for page in owners)

    @invariant()
    def every_sequence_has_its_tokens(self) -> None:
        assert self.pool.tokens == self.lengths
        for name, tokens in self.lengths.items():
            assert len(self.pool.live[name]) == -(-tokens // PAGE)
        if self.lengths:
            assert self.pool.slack == split(self.lengths.values(), PAGE).slack

    @invariant()
    def shared_pages_are_full(self) -> None:
        for name, owned in self.pool.live.items():
            last = self.lengths[name] // PAGE
            assert all(self.pool.refs[page] == 1 for page in owned[last:])


Pool.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestPool = Pool.TestCase


def test_the_page_in_which_a_prefix_ends_is_copied() -> None:
    pool = PagePool(8, 16)
    pool.allocate("a", 40)
    pool.share("b", "a", 40)
    assert pool.live["a"][:2] == pool.live["b"][:2]
    assert pool.live["a"][2] != pool.live["b"][2]
    assert pool.copies == 1


def test_a_cached_prefix_is_used_again_and_goes_from_its_end() -> None:
    pool = PagePool(4, 16)
    pool.allocate("a", 48)
    pool.append("a", 5)
    first = list(pool.live["a"])
    pool.release("a", keep=True)
    assert (pool.cached, pool.free) == (3, 1)  # the page that was not full is given back
    pool.allocate("b", 32)  # one page is free, one is taken from the end of a
    assert pool.kept["a"] == first[:2]
    pool.share("c", "a", 32)
    assert pool.live["c"] == first[:2]


def test_refusals_name_the_sequence() -> None:
    pool = PagePool(2, 16)
    pool.allocate("a", 16)
    with pytest.raises(BadValue, match="'a'"):
        pool.allocate("a", 1)
    with pytest.raises(BadValue, match="'b'"):
        pool.append("b")
    with pytest.raises(BadValue, match="source"):
        pool.share("c", "b", 1)
    with pytest.raises(BadValue, match="prefix"):
        pool.share("c", "a", 17)
    with pytest.raises(NoAnswer, match="1 of 2 pages left, 3 are needed"):
        pool.allocate("d", 48)
