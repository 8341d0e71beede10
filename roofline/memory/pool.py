"""A pool of pages that sequences own, share and give back; every page is free, owned or cached at any time.

A full page may be owned by several sequences (a shared prefix); the page in which a prefix ends is copied, because both
will write behind it.  A freed sequence may stay cached: its pages belong to nobody, can be shared from again, and are
the first to go when pages run out, the least recently freed sequence first and from its end, so that what is left is
still a prefix.

>>> pool = PagePool(8, 16)
>>> pool.allocate("a", 40)
>>> pool.share("b", "a", 40)
>>> pool.used, pool.free
(4, 4)
>>> pool.release("a", keep=True); pool.release("b")
>>> pool.used, pool.cached, pool.free
(0, 2, 6)
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from roofline.errors import BadValue, NoAnswer
from roofline.memory.pages import whole


class PagePool:
    """`pages` pages of `page_size` tokens.

    `refs` counts the owners of every page that has any, a cached sequence counting as one; `free` pages have none.
    """

    def __init__(self, pages: int, page_size: int) -> None:
        self.pages, self.page_size = whole("pages", pages), whole("page_size", page_size)
        self.refs: dict[int, int] = {}
        self.live: dict[Hashable, list[int]] = {}
        self.tokens: dict[Hashable, int] = {}
        self.kept: OrderedDict[Hashable, list[int]] = OrderedDict()
        self.copies = self.evictions = 0
        self._free: list[int] = []
        self._next = 0  # pages from here on were never used

    @property
    def free(self) -> int:
        """Pages without owner."""
        return self.pages - len(self.refs)

    @property
    def used(self) -> int:
        """Pages owned by live sequences."""
        return len({page for owned in self.live.values() for page in owned})

    @property
    def cached(self) -> int:
        """Pages that only freed sequences hold."""
        return len(self.refs) - self.used

    @property
    def slack(self) -> int:
        """Token slots that no sequence fills, in the pages of live sequences; a copied page counts for each owner."""
        return sum(len(self.live[name]) * self.page_size - self.tokens[name] for name in self.live)

    def allocate(self, name: Hashable, tokens: int) -> None:
        """A new sequence.  Raises NoAnswer where even evicting does not make room; then nothing has changed owner."""
        self._absent(name)
        count = -(-whole("tokens", tokens) // self.page_size)
        self._room(count)
        self.live[name], self.tokens[name] = [self._take() for _ in range(count)], tokens

    def append(self, name: Hashable, tokens: int = 1) -> None:
        """More tokens of a live sequence.  They never go into a shared page, because only full pages are shared."""
        owned = self.live[self._present(name)]
        after = self.tokens[name] + whole("tokens", tokens)
        grow = -(-after // self.page_size) - len(owned)
        self._room(grow)
        owned += [self._take() for _ in range(grow)]
        self.tokens[name] = after

    def share(self, name: Hashable, source: Hashable, prefix: int) -> None:
        """A new sequence of `prefix` tokens that shares the whole pages of another; a partial page is copied."""
        self._absent(name)
        owned = self.live.get(source) or self.kept.get(source)
        if owned is None:
            raise BadValue("source", source, "a sequence that the pool holds")
        held = self.tokens.get(source, len(owned) * self.page_size)
        whole("prefix", prefix, 1, held)
        common = owned[: prefix // self.page_size]
        for page in common:
            self.refs[page] += 1
        try:
            partial = prefix % self.page_size != 0
            self._room(int(partial))
        except NoAnswer:
            for page in common:
                self._drop(page)
            raise
        self.live[name] = [*common, *([self._take()] if partial else [])]
        self.tokens[name] = prefix
        self.copies += partial

    def release(self, name: Hashable, *, keep: bool = False) -> None:
        """End a sequence; with `keep` its full pages stay cached under its name."""
        owned = self.live.pop(self._present(name))
        tokens = self.tokens.pop(name)
        full = tokens // self.page_size if keep else 0
        for page in owned[full:]:
            self._drop(page)
        if full:
            for page in self.kept.pop(name, []):
                self._drop(page)
            self.kept[name] = owned[:full]

    def evict(self, pages: int = 1) -> int:
        """Give up cached pages until `pages` more are free or no cached sequence is left; how many became free."""
        before = self.free
        while self.kept and self.free - before < pages:
            name = next(iter(self.kept))
            owned = self.kept[name]
            self._drop(owned.pop())
            self.evictions += 1
            if not owned:
                del self.kept[name]
        return self.free - before

    def _room(self, pages: int) -> None:
        if pages > self.free:
            self.evict(pages - self.free)
        if pages > self.free:
            raise NoAnswer(f"the pool has {self.free} of {self.pages} pages left, {pages} are needed")

    def _take(self) -> int:
        page = self._free.pop() if self._free else self._next
        self._next = max(self._next, page + 1)
        self.refs[page] = 1
        return page

    def _drop(self, page: int) -> None:
        self.refs[page] -= 1
        if not self.refs[page]:
            del self.refs[page]
            self._free.append(page)

    def _absent(self, name: Hashable) -> None:
        if name in self.live:
            raise BadValue("sequence", name, "a name that no live sequence has")

    def _present(self, name: Hashable) -> Hashable:
        if name not in self.live:
            raise BadValue("sequence", name, "the name of a live sequence")
        return name
