"""Lists of request lengths that show when paging helps, and the exercises that go with them."""

from __future__ import annotations

from typing import NamedTuple

from roofline.errors import UnknownName
from roofline.memory.pages import Prefix, share, split


class Preset(NamedTuple):
    """Request lengths, the reservation, and what they show."""

    lengths: tuple[int, ...]
    reserve: int
    shows: str


PRESETS = {
    "article": Preset((403, 96, 241, 30, 176), 512, "a mixed list: reserving wastes 63 %, pages of 16 waste 3 %"),
    "one-long": Preset((1990, 48, 45, 50, 44, 46), 2048, "one very long, the rest short: reserving wastes 82 %"),
    "near-reserve": Preset((508, 505, 495, 500, 498), 512, "all close to the reservation: paging saves one page"),
}
PAGE_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


def preset(name: str) -> Preset:
    """A preset by name.

    >>> preset("one-long").reserve
    2048
    """
    try:
        return PRESETS[name]
    except KeyError:
        raise UnknownName("preset", name, PRESETS) from None


def exercises() -> list[dict[str, object]]:
    """The three exercises, answered by the same functions that answer everything else.

    >>> [e["answer"] for e in exercises()]
    ['7 pages, 12 empty slots', '6 pages, 96 tokens', '512 slots reserved, 195.2 paged: 2.62 times']
    """
    one = split([100], 16)
    four = share(split([40] * 4, 16), Prefix(40, 4))
    article = PRESETS["article"]
    mean = split(article.lengths, 16).held / len(article.lengths)
    return [
        {"question": "100 tokens in pages of 16", "answer": f"{one.pages} pages, {one.slack} empty slots"},
        {"question": "4 requests share a prefix of 40 tokens: what is saved?",
         "answer": f"{four.shared_pages} pages, {four.shared_pages * 16} tokens"},
        {"question": "Slots of a request of the list, reserved and paged",
         "answer": f"{article.reserve} slots reserved, {mean:.1f} paged: {article.reserve / mean:.2f} times"},
    ]  # fmt: skip
