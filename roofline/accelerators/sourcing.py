"""Who vouches for a number: source lines of a hardware entry, and which of them covers a dotted field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

KINDS = ("datasheet", "measured", "derived", "reported")  # the weaker of two numbers is the later one
DESCRIPTIVE = frozenset({"release_year", "scale_up.domain_size"})  # describe the part, carry no source line


class Source(NamedTuple):
    """One source line.  `field` lists dotted fields, comma-separated, with `*` for "any"; `url` is "" if unsourced."""

    field: str
    value: str
    url: str
    kind: str
    via: str = ""


def numbers(entry: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Every numeric leaf of an entry that needs a source line, as (dotted field, value).

    Roofs and prices carry their address themselves; a few descriptive numbers carry none.
    """
    for key, value in entry.items():
        field = prefix + key
        if isinstance(value, Mapping):
            if field != "roofs":
                yield from numbers(value, field + ".")
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and field not in DESCRIPTIVE:
            yield field, value


def matches(field: str, pattern: str) -> bool:
    """Whether a source's field pattern, with at most one `*`, covers a dotted field.

    >>> matches("peak_flop_per_s.bf16", "peak_flop_per_s.*"), matches("cache.l2_bytes", "cache.llc_*")
    (True, False)
    """
    head, star, tail = pattern.partition("*")
    if not star:
        return field == pattern
    return len(field) >= len(head) + len(tail) and field.startswith(head) and field.endswith(tail)


class Lines:
    """The source lines of a part, asked by field."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._exact: dict[str, Source] = {}
        self._wild: list[tuple[str, Source]] = []
        for source in sources:
            for pattern in map(str.strip, source.field.split(",")):
                if "*" in pattern:
                    self._wild.append((pattern, source))
                elif pattern not in self._exact or (source.url and not self._exact[pattern].url):
                    self._exact[pattern] = source
        self._wild.sort(key=lambda line: (not line[1].url, -len(line[0])))

    def best(self, field: str) -> Source | None:
        """The line for a field: with an address before without, exact before wildcard, longer before shorter."""
        exact = self._exact.get(field)
        if exact is not None and exact.url:
            return exact
        for pattern, source in self._wild:
            if matches(field, pattern):
                return source if source.url or exact is None else exact
        return exact
