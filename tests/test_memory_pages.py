"""Page accounting: every number of the paged-KV article, the laws that hold for any list, and a brute count.

P01-P27 are numbers of an article on paged KV caches (its default list 403, 96, 241, 30, 176; Llama-3.1-8B in bf16).
They are counts, so they must be met exactly.
"""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.answers.kv import kv_pages
from roofline.errors import BadValue, NoAnswer, UnknownName
from roofline.memory.pages import (
    Prefix,
    fit,
    fit_reserved,
    orders,
    read_overhead_bytes,
    reserved,
    share,
    slots,
    split,
    table_bytes,
)
from roofline.memory.pool import PagePool
from roofline.memory.presets import PAGE_SIZES, PRESETS, exercises, preset
from roofline.models import load_model

ARTICLE = (403, 96, 241, 30, 176)
KIB, MIB, GIB = 2**10, 2**20, 2**30
lists = st.lists(st.integers(1, 3000), min_size=1, max_size=12)
laws = settings(max_examples=200, deadline=None)


def answer(**options: object):
    return kv_pages(ARTICLE, reserve=512, pool_bytes=2 * GIB, bytes_per_token=128 * KIB, **options)


def test_p01_bytes_per_token() -> None:
    assert load_model("llama-3.1-8b").kv("bf16").bytes_per_token == 2 * 32 * 8 * 128 * 2 == 131072


def test_p03_to_p06_pages_of_sixteen() -> None:
    paging = split(ARTICLE, 16)
    assert paging.sizes == (26, 6, 16, 2, 11)
    assert (paging.used, paging.pages, paging.held, paging.slack) == (946, 61, 976, 30)
    assert paging.slacks == (13, 0, 15, 2, 0)
    assert paging.last_fill == (3, 16, 1, 14, 16)


def test_p07_to_p10_reserving() -> None:
    naive = reserved(ARTICLE, 512)
    assert (naive.held, naive.wasted) == (2560, 1614)
    assert naive.wastes == (109, 416, 271, 482, 336)
    assert naive.waste == 1614 / 2560
    assert round(100 * naive.waste, 4) == 63.0469


def test_p11_p12_bytes_and_share() -> None:
    data = answer()
    assert data["reserved"]["waste_bytes"] == 201.75 * MIB
    assert data["reserved"]["held_bytes"] == 320 * MIB
    assert data["held_bytes"] == 122 * MIB
    assert round(100 * data["waste"], 4) == 3.0738


def test_p13_cells() -> None:
    grid = answer()["grid"]
    assert sum(map(len, grid)) == 160
    assert sum(line.count(".") for line in grid) == 99
    assert sum(line.count("P") for line in grid) == 3  # two last pages are full
    assert answer()["full_last_pages"] == 2


def test_p14_to_p18_how_many_fit() -> None:
    pool = slots(2 * GIB, 128 * KIB)
    found = fit(split(ARTICLE, 16), pool)
    assert pool == 16384
    assert fit_reserved(512, pool) == 32
    assert (found.requests, found.rounds, found.rest, found.left) == (83, 16, 768, 0)
    assert answer()["fit"]["ratio"] == 2.59375
    assert answer()["fit"]["average_slots"] == 195.2


def test_p19_all_orders() -> None:
    assert orders(split(ARTICLE, 16), 16384) == {82: 12, 83: 60, 84: 48}
    brute: dict[int, int] = {}
    for order in permutations(ARTICLE):
        found = fit(split(order, 16), 16384).requests
        brute[found] = brute.get(found, 0) + 1
    assert brute == {82: 12, 83: 60, 84: 48}


def test_p20_p21_sharing() -> None:
    shared = share(split(ARTICLE, 16), Prefix(64, 3))
    assert (shared.shared_pages, shared.shared_pages * 16, shared.held) == (8, 128, 848)
    assert shared.stored + shared.slack == shared.held
    assert share(split(ARTICLE, 16), Prefix(15, 3)).shared_pages == 0
    assert share(split(ARTICLE, 16), Prefix(15, 3)).copied == 30
    assert share(split(ARTICLE, 16), Prefix(16, 3)).shared_pages == 2


def test_p22_p23_exercises() -> None:
    assert split([100], 16).pages == 7
    assert split([100], 16).slack == 12
    assert share(split([40] * 4, 16), Prefix(40, 4)).shared_pages == 6
    assert [e["answer"] for e in exercises()][:2] == ["7 pages, 12 empty slots", "6 pages, 96 tokens"]
    assert "195.2" in str(exercises()[2]["answer"])


SWEEP = {
    1: (946, 0, 0.0, 85),
    2: (948, 2, 0.21, 85),
    4: (952, 6, 0.63, 85),
    8: (960, 14, 1.46, 85),
    16: (976, 30, 3.07, 83),
    32: (992, 46, 4.64, 82),
    64: (1088, 142, 13.05, 75),
    128: (1280, 334, 26.09, 64),
    256: (1536, 590, 38.41, 53),
    512: (2560, 1614, 63.05, 32),
}


def test_p24_page_sweep() -> None:
    rows = answer(page_size=list(PAGE_SIZES))["sweep"]
    found = {
        r["page_size"]: (r["held_tokens"], r["slack_tokens"], round(100 * r["waste"], 2), r["fit_requests"])
        for r in rows
    }
    assert found == SWEEP


def test_p25_p26_presets() -> None:
    long = preset("one-long")
    naive = reserved(long.lengths, long.reserve)
    assert (naive.held, len(long.lengths), max(long.lengths)) == (12288, 6, 1990)
    assert 2218 <= naive.used <= 2230
    assert round(100 * naive.waste, 1) == 81.9
    near = preset("near-reserve")
    paging = split(near.lengths, 16)
    assert 2505 <= paging.used <= 2507
    assert (paging.held, reserved(near.lengths, near.reserve).held - paging.held) == (2544, 16)
    assert round(100 * reserved(near.lengths, 512).waste, 1) == 2.1
    assert round(100 * paging.waste, 1) == 1.5
    with pytest.raises(UnknownName, match="near-reserve"):
        preset("near")


@laws
@given(lists, st.integers(1, 700))
def test_p27_stored_and_slack_make_up_the_pages(lengths: list[int], page: int) -> None:
    paging = split(lengths, page)
    assert paging.used + paging.slack == paging.pages * page
    assert all(0 <= slack < page for slack in paging.slacks)
    assert sum(paging.slacks) == paging.slack
    assert split(lengths, 1).slack == 0


@laws
@given(lists, st.integers(1, 40), st.integers(0, 500))
def test_p27_a_page_as_large_as_the_reservation_is_the_naive_way(lengths: list[int], step: int, more: int) -> None:
    reserve = max(lengths) + more
    assert split(lengths, reserve).held == reserved(lengths, reserve).held
    reserve = -(-reserve // step) * step  # paging never holds more than reserving where pages divide the reservation
    assert split(lengths, step).held <= reserved(lengths, reserve).held


@laws
@given(lists, st.integers(1, 64), st.integers(0, 4000), st.integers(1, 12))
def test_sharing_frees_no_more_than_was_held(lengths: list[int], page: int, prefix: int, count: int) -> None:
    plain = split(lengths, page)
    long_enough = sum(length >= prefix for length in lengths)
    if count > long_enough:
        with pytest.raises(BadValue, match="prefix"):
            share(plain, Prefix(prefix, count))
        return
    shared = share(plain, Prefix(prefix, count))
    assert shared.shared_pages == (count - 1) * (prefix // page)
    assert 0 < shared.pages <= plain.pages
    assert shared.slack == plain.slack
    assert all(lengths[at] >= prefix for at in shared.members)


@laws
@given(lists, st.integers(1, 64), st.integers(0, 200_000))
def test_fit_is_what_a_pool_really_takes(lengths: list[int], page: int, pool: int) -> None:
    found = fit(split(lengths, page), pool)
    if found.requests > 300 or pool < page:
        assert found.requests * page <= pool or found.requests == 0
        return
    real = PagePool(pool // page, page)
    taken = 0
    try:
        while True:
            real.allocate(taken, lengths[taken % len(lengths)])
            taken += 1
    except NoAnswer:
        pass
    assert taken == found.requests
    assert real.free * page == found.left


@laws
@given(lists.filter(lambda found: len(found) <= 5), st.integers(1, 64), st.integers(0, 20_000))
def test_order_changes_the_last_round_only(lengths: list[int], page: int, pool: int) -> None:
    rounds = {fit(split(order, page), pool).rounds for order in permutations(lengths)}
    assert len(rounds) == 1
    found = orders(split(lengths, page), pool)
    assert max(found) - min(found) < len(lengths)


def test_optional_terms_that_the_article_leaves_out() -> None:
    paging = split(ARTICLE, 16)
    assert table_bytes(paging, 4) == 61 * 4
    assert table_bytes(paging, 4, max_len=512) == 5 * 32 * 4
    assert read_overhead_bytes(paging, 64, 2 * 32) == 61 * 64 * 64
    assert table_bytes(split(ARTICLE, 1)) > table_bytes(paging)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, 10**18 + 1, "16", None])
def test_bad_lengths_are_refused_by_their_place(bad: object) -> None:
    with pytest.raises(BadValue, match=r"lengths\[1\]"):
        split([5, bad], 16)  # type: ignore[list-item]


def test_huge_lengths_stay_exact() -> None:
    paging = split([10**18, 1], 7)
    assert paging.used + paging.slack == paging.pages * 7 == 7 * (-(-(10**18) // 7) + 1)


@pytest.mark.parametrize("page", [0, -16, 1.0])
def test_bad_page_size(page: object) -> None:
    with pytest.raises(BadValue, match="page_size"):
        split([5], page)  # type: ignore[arg-type]


def test_reservation_shorter_than_a_request_is_refused() -> None:
    with pytest.raises(BadValue, match="at least the longest request, 403"):
        reserved(ARTICLE, 402)


def test_pool_smaller_than_a_page() -> None:
    found = kv_pages([5], pool_bytes=15 * KIB, bytes_per_token=KIB)
    assert found["fit"]["paged_requests"] == 0
    assert any("less than one page" in note for note in found["notes"])


def test_what_is_missing_is_asked_for() -> None:
    with pytest.raises(BadValue, match="bytes_per_token"):
        kv_pages([5], pool_bytes=GIB)
    with pytest.raises(BadValue, match="lengths"):
        kv_pages()
    with pytest.raises(BadValue, match="lengths"):
        kv_pages([], page_size=16)
    with pytest.raises(BadValue, match="prefix requests"):
        kv_pages([5], shared_prefix=(2, 2))
    with pytest.raises(BadValue, match="not both"):
        kv_pages([5], model="llama-3.1-8b", bytes_per_token=1.0)
    with pytest.raises(BadValue, match="orders"):
        orders(split([1] * 9, 16), 100)


def test_a_million_requests_are_totals_only() -> None:
    found = kv_pages([100] * 200_000, reserve=128)
    assert found["pages"] == 1_400_000
    assert found["rows"] == []
    assert found["grid"] is None


def test_every_preset_is_within_its_reservation() -> None:
    for name in PRESETS:
        assert kv_pages(preset_name=name)["reserved"]["waste_tokens"] >= 0
