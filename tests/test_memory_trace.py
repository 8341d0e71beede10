"""Traces: reading, refusing, replaying, and requests that overlap.

The published Mooncake trace is not in the repository.  Where ROOFLINE_TRACE names conversation_trace.jsonl(.gz) of
github.com/kvcache-ai/Mooncake, FAST25-release/traces, commit 3b5a5941, its hit ratios are checked too.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
from collections import OrderedDict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.answers.kv import kv_replay
from roofline.answers.kv_replay import SAMPLE
from roofline.errors import BadFile, BadValue
from roofline.memory import trace as traces
from roofline.memory.live import live
from roofline.memory.replay import Curve, Lru, replay
from roofline.memory.trace import Row, read_trace

laws = settings(max_examples=150, deadline=None)
requests = st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=12), min_size=1, max_size=40)
GOOD = {"timestamp": 1, "input_length": 1024, "output_length": 5, "hash_ids": [0, 1]}


def reference(rows: list[list[int]], capacity: int | None) -> int:
    """Ten lines that say what a hit is."""
    pool: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for ids in rows:
        for block in ids:
            if block not in pool:
                break
            hits += 1
        for block in ids:
            pool[block] = None
            pool.move_to_end(block)
        while capacity is not None and len(pool) > capacity:
            pool.popitem(last=False)
    return hits


def as_rows(found: list[list[int]]) -> list[Row]:
    return [Row(float(at), 512 * len(ids), 10, ids) for at, ids in enumerate(found)]


@laws
@given(requests, st.lists(st.one_of(st.none(), st.integers(1, 40)), min_size=1, max_size=4))
def test_replay_agrees_with_the_reference(found: list[list[int]], pools: list[int | None]) -> None:
    for got in replay(as_rows(found), pools):
        assert got.hits == reference(found, got.blocks)
        assert got.lookups == sum(map(len, found))
        assert got.blocks is None or got.peak <= got.blocks
        assert got.peak + got.evicted >= len({block for ids in found for block in ids})


@laws
@given(requests)
def test_more_blocks_never_hit_less(found: list[list[int]]) -> None:
    hits = [got.hits for got in replay(as_rows(found), [1, 2, 4, 8, 16, 32, 64, None])]
    assert hits == sorted(hits)
    assert hits[-1] == hits[-2]


def test_memory_is_that_of_the_blocks_held() -> None:
    pool = Lru(10)
    for at in range(5000):
        pool.touch([at, at + 1])
    assert len(pool) == 10
    assert pool.evicted == 5001 - 10


def test_a_curve_keeps_the_largest_value_of_each_stretch() -> None:
    curve = Curve(points=8)
    for at in range(1000):
        curve.add(at, 500 if at == 777 else 1)
    pairs = curve.pairs()
    assert len(pairs) <= 8
    assert max(value for _, value in pairs) == 500
    assert [at for at, _ in pairs] == sorted(at for at, _ in pairs)


def test_rows_without_ids_share_nothing() -> None:
    rows = [Row(0, 1024, 1, None), Row(1, 1024, 1, None), Row(2, 512, 1, [0])]
    assert [(r.hits, r.lookups, r.peak) for r in replay(rows, [None])] == [(0, 5, 5)]
    with pytest.raises(BadValue, match="input_length"):
        replay([Row(0, 10**12, 1, None)], [1])


@pytest.mark.parametrize("pools", [[], [0], [-5], [1.5], [True], [10**13]])
def test_bad_pools(pools: list[object]) -> None:
    with pytest.raises(BadValue, match="blocks"):
        replay([], pools)  # type: ignore[arg-type]


# ---- reading


def write(path: Path, *lines: object, packed: bool = False) -> Path:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_json_lines_plain_and_gzipped(tmp_path: Path, packed: bool) -> None:
    path = write(tmp_path / "t.jsonl", GOOD, "", {**GOOD, "timestamp": 2.5, "extra": 1}, packed=packed)
    assert list(read_trace(path, block_size=512)) == [Row(1, 1024, 5, [0, 1]), Row(2.5, 1024, 5, [0, 1])]


def test_csv_in_any_order_of_columns(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv", "output_length,timestamp,hash_ids,input_length", "5,0,0 1,1024", '"7","3","","512"'
    )
    assert list(read_trace(path)) == [Row(0, 1024, 5, [0, 1]), Row(3, 512, 7, None)]
    path = write(tmp_path / "u.csv", "timestamp,input_length,output_length", "0,1024,5")
    assert list(read_trace(path)) == [Row(0, 1024, 5, None)]


BAD = {
    "not json": ("{oops", "a JSON object"),
    "a list": ("[1, 2]", "a JSON object"),
    "no length": ({"timestamp": 2, "output_length": 1}, "input_length"),
    "negative": ({**GOOD, "input_length": -5}, "input_length -5"),
    "zero": ({**GOOD, "input_length": 0}, "input_length 0"),
    "fraction": ({**GOOD, "output_length": 1.5}, "output_length 1.5"),
    "a text": ({**GOOD, "input_length": "1024"}, "input_length 1024"),
    "true": ({**GOOD, "input_length": True}, "input_length True"),
    "huge": ({**GOOD, "input_length": 10**18}, "10\\^12"),
    "huge time": ({**GOOD, "timestamp": 1e30}, "timestamp"),
    "not a number": ('{"timestamp": NaN, "input_length": 1, "output_length": 1}', "timestamp"),
    "infinite": ('{"timestamp": Infinity, "input_length": 1, "output_length": 1}', "timestamp"),
    "many digits": ('{"timestamp": ' + "9" * 5000 + ', "input_length": 1, "output_length": 1}', "a JSON object"),
    "deep": ('{"timestamp": ' + "[" * 100_000, "a JSON object"),
    "ids of texts": ({**GOOD, "hash_ids": ["a", "b"]}, "whole numbers"),
    "ids negative": ({**GOOD, "hash_ids": [0, -1]}, "whole numbers"),
    "no ids": ({**GOOD, "hash_ids": []}, "a list of"),
    "too few ids": ({**GOOD, "hash_ids": [0]}, "2, one per block of 512"),
    "out of order": ({**GOOD, "timestamp": 0}, "timestamps in order"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_refused_with_its_number_or_counted(tmp_path: Path, name: str) -> None:
    line, said = BAD[name]
    path = write(tmp_path / "t.jsonl", GOOD, line, {**GOOD, "timestamp": 9})
    with pytest.raises(BadFile, match=r"t\.jsonl: line 2: .*" + said):
        list(read_trace(path, block_size=512))
    opened = read_trace(path, block_size=512, skip_bad=True)
    assert [row.timestamp for row in opened] == [1, 9]
    assert opened.skipped == 1
    assert opened.problems[0].startswith("line 2: ")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(json.dumps(GOOD).encode() + b'\n{"timestamp": \xff\xfe}\n')
    with pytest.raises(BadFile, match="line 2"):
        list(read_trace(path))


def test_a_csv_row_of_the_wrong_width_or_kind(tmp_path: Path) -> None:
    head = "timestamp,input_length,output_length"
    with pytest.raises(BadFile, match="line 2: got 2 columns, expected 3"):
        list(read_trace(write(tmp_path / "a.csv", head, "0,1")))
    with pytest.raises(BadFile, match=r"line 2: .*numbers in"):
        list(read_trace(write(tmp_path / "b.csv", head, "0,1.5,2")))
    with pytest.raises(BadFile, match="line 1: got no output_length"):
        list(read_trace(write(tmp_path / "c.csv", "timestamp,input_length", "0,1")))


def test_a_file_that_ends_in_the_middle(tmp_path: Path) -> None:
    whole = (json.dumps(GOOD) + "\n") * 50
    plain = tmp_path / "t.jsonl"
    plain.write_text(whole[:-20])
    with pytest.raises(BadFile, match=r"line 50: .*where the file ends"):
        list(read_trace(plain))
    packed = tmp_path / "t.jsonl.gz"
    packed.write_bytes(gzip.compress(os.urandom(0) + whole.encode())[:-9])
    with pytest.raises(BadFile, match="gzip stream that stops in the middle"):
        list(read_trace(packed))
    opened = read_trace(packed, skip_bad=True)
    assert len(list(opened)) <= 50
    assert opened.truncated
    assert opened.skipped == 1


def test_a_broken_gzip_stream(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(os.urandom(2000).hex().encode()))
    packed[40] ^= 0xFF
    path = tmp_path / "t.gz"
    path.write_bytes(bytes(packed))
    with pytest.raises(BadFile, match=r"gzip|a JSON object|first line"):
        list(read_trace(path))


def test_a_gzip_bomb_is_refused_without_unpacking_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "MAX_LINE", 2**16)
    monkeypatch.setattr(traces, "FREE_BYTES", 2**18)
    one_line = tmp_path / "a.gz"
    one_line.write_bytes(gzip.compress(b"{" + b" " * 2**22))
    with pytest.raises(BadFile, match="line 1: got over 65,536 bytes"):
        list(read_trace(one_line))
    with pytest.raises(BadFile, match="line 1"):  # not a bad line to be skipped
        list(read_trace(one_line, skip_bad=True))
    many_lines = tmp_path / "b.gz"
    many_lines.write_bytes(gzip.compress((json.dumps(GOOD) + "\n").encode() * 40_000))
    with pytest.raises(BadFile, match="grows at most 200 times"):
        list(read_trace(many_lines))


def test_no_file_an_empty_one_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="No such file"):
        list(read_trace(tmp_path / "none"))
    with pytest.raises(BadFile, match="no rows"):
        list(read_trace(write(tmp_path / "empty")))
    with pytest.raises(BadFile):
        list(read_trace(tmp_path))


# ---- requests that overlap


@laws
@given(requests, st.integers(14, 60), st.sampled_from([0.0, 0.001, 0.1, 10.0]))
def test_overlapping_requests_all_end(found: list[list[int]], pages: int, pace: float) -> None:
    found = [list(dict.fromkeys(ids)) for ids in found]
    rows = [Row(at * 100.0, 8 * len(ids) - 3, 9 * (at % 5), ids) for at, ids in enumerate(found)]
    got = live(rows, pages, time_per_token=pace, page_size=8)
    needed = [max(-(-(r.input_length + r.output_length) // 8), len(r.hash_ids or ())) for r in rows]
    assert got.completed + got.refused == got.requests == len(rows)
    assert got.peak <= pages
    assert got.hits <= got.lookups
    assert got.refused == sum(count > pages for count in needed)


@laws
@given(requests)
def test_with_room_for_all_overlap_changes_no_hit(found: list[list[int]]) -> None:
    found = [list(dict.fromkeys(ids)) for ids in found]
    got = live(as_rows(found), 10_000, time_per_token=0.01)
    assert got.hits == reference(found, None)
    assert (got.preemptions, got.delayed, got.refused) == (0, 0, 0)


def test_a_growing_request_preempts_the_youngest() -> None:
    rows = [Row(0, 512, 1000, [0]), Row(1, 512, 1000, [1])]
    got = live(rows, 5, time_per_token=0.01)
    assert got.preemptions == 1
    assert got.lookups == 2  # what a preempted request computes again is no look-up
    assert got.completed == 2
    assert got.peak == 5
    assert got.most_running == 2
    alone = live(rows, 6, time_per_token=0.01)
    assert alone.preemptions == 0


def test_a_request_that_never_fits_is_refused_and_the_rest_go_on() -> None:
    rows = [Row(0, 5120, 1, list(range(10))), Row(1, 512, 1, [99])]
    got = live(rows, 4, time_per_token=0.01)
    assert (got.refused, got.completed) == (1, 1)


def test_waiting_holds_up_those_behind() -> None:
    rows = [Row(0, 1024, 100, [0, 1]), Row(0, 1024, 100, [2, 3]), Row(0, 512, 100, [4])]
    got = live(rows, 4, time_per_token=0.01)
    assert got.delayed == 2
    assert got.waited > 0
    assert got.completed == 3


@pytest.mark.parametrize("pace", [-1.0, float("nan"), 1e9])
def test_bad_pace(pace: float) -> None:
    with pytest.raises(BadValue, match="time_per_token"):
        live([], 4, time_per_token=pace)


# ---- the answer, the shipped trace and the published one


def test_the_shipped_trace_is_what_its_script_writes() -> None:
    script = Path(__file__).parent.parent / "tools" / "make_trace.py"
    spec = importlib.util.spec_from_file_location("make_trace", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = "".join(json.dumps(row) + "\n" for row in module.rows())
    assert gzip.decompress(SAMPLE.read_bytes()).decode() == text


def test_the_answer_on_the_shipped_trace() -> None:
    found = kv_replay("sample", [100, 400, None])
    ratios = [row["hit_ratio"] for row in found.rows]
    assert ratios == sorted(ratios)
    assert found["requests"] == 384
    assert all(len(row["occupancy"]) <= 512 for row in found.rows)
    busy = kv_replay("sample", [60], time_per_token=0.05)
    assert busy.rows[0]["completed"] + busy.rows[0]["refused"] == 384
    with pytest.raises(BadValue, match="unlimited"):
        kv_replay("sample", time_per_token=0.05)


def test_progress_is_told_and_goes_forward() -> None:
    seen: list[float] = []
    kv_replay("sample", progress=seen.append)
    assert seen == sorted(seen)
    assert seen
    assert all(0 <= share <= 1 for share in seen)


@pytest.mark.skipif("ROOFLINE_TRACE" not in os.environ, reason="ROOFLINE_TRACE names no published trace")
def test_the_published_trace() -> None:
    found = kv_replay(os.environ["ROOFLINE_TRACE"], [1000, 3000, 10_000, 30_000, None])
    assert found["requests"] == 12_031
    assert found["lookups"] == 288_500
    assert found.rows[-1]["peak_blocks"] == 182_790
    assert [round(row["hit_ratio"], 4) for row in found.rows] == [0.0445, 0.0650, 0.2112, 0.3257, 0.3664]
