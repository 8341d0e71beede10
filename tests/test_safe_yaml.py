"""Hostile and ambiguous files: each is refused with its place, inside a memory and node budget, and none is executed.

The inputs are those measured in public issue threads on YAML and JSON loaders (alias bombs, deep nesting, duplicate
keys, 4,300-digit integers, Infinity in a vendor's config).  No test reads the clock; what bounds the time is counted:
bytes, nodes and levels.
"""

from __future__ import annotations

import json
import math
import tracemalloc

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline import safe_yaml
from roofline.errors import BadFile
from roofline.safe_yaml import load_json, load_yaml, parse_json, parse_yaml

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{last}'] * 9)}]\n" for last, name in zip("abcdefgh", "bcdefghi", strict=True)
)
DEEP = 100_000

REFUSED_YAML = {
    "alias bomb": (BOMB, "e[", "50,000 nodes"),  # 9**9 = 387 million leaves in 300 bytes
    "flow lists": ("[" * DEEP + "]" * DEEP, "", "64 nested levels"),
    "unclosed lists": ("[" * DEEP, "", "64 nested levels"),
    "block lists": ("- " * DEEP, "[0][0]", "64 nested levels"),
    "flow maps": ("{a: " * DEEP, "a.a.a", "64 nested levels"),
    "many nodes": ("[1" + ",1" * 999_000 + "]", "[49999]", "50,000 nodes"),
    "recursive alias": ("a: &a [*a]", "a[0]", "alias *a"),
    "unknown alias": ("a: {b: *c}", "a.b", "alias *c"),
    "python tag": ("a: !!python/object/apply:os.system [exit]", "a", "tag"),
    "core tag": ("a: !!float 3", "a", "tag"),
    "duplicate key": ("x: {y: {z: 1, z: 2}}", "x.y.z", "twice"),
    "duplicate key in a list": ("x: [1, {z: 1, z: 1}]", "x[1].z", "twice"),
    "long integer": ("a: [" + "9" * 4301 + "]", "a[0]", "4301 digits"),
    "number as key": ("a: {4090: 1}", "a", "a key of text"),
    "list as key": ("a: {? [b] : 1}", "a", "a key of text"),
    "two documents": ("a: 1\n---\nb: 1\n", "", "second document"),
    "empty": ("# nothing\n", "", "nothing"),
    "not YAML": ("a: [1", "line 2", "YAML"),
    "control character": ("a: \x01", "", "control characters"),
}

REFUSED_JSON = {
    "lists": ("[" * DEEP + "]" * DEEP, "line 1", "64 nested levels"),
    "objects": ('{"a":' * DEEP, "line 1", "64 nested levels"),
    "many values": ("[0" + ",0" * 999_000 + "]", "", "500,000 values"),
    "duplicate key": ('{"x": [0, {"a": 1, "a": 2}]}', "x[1].a", "twice"),
    "NaN": ('{"a": [1, NaN]}', "a[1]", "got NaN"),
    "Infinity": ('{"a": {"b": -Infinity}}', "a.b", "got -Infinity"),
    "1e999": ('{"a": 1e999}', "a", "a float can hold"),
    "long integer": ('{"a": ' + "9" * 4301 + "}", "a", "4301 digits"),
    "unterminated": ('"' + '\\"' * 900_000, "line 1", "unterminated"),
    "lone surrogate": ('{"a": "\\ud800"}', "", "surrogate"),
    "not JSON": ("{'a': 1}", "line 1 column 2", "JSON"),
    "empty": ("", "line 1", "JSON"),
}


@pytest.mark.parametrize("name", REFUSED_YAML)
def test_yaml_is_refused_with_its_place(name: str) -> None:
    text, where, words = REFUSED_YAML[name]
    with pytest.raises(BadFile) as error:
        parse_yaml(text, "file.yaml")
    assert error.value.where.startswith(where)
    assert str(error.value).startswith("file.yaml: ")
    assert words in str(error.value)
    assert len(str(error.value)) < 500  # a hostile file cannot flood the terminal
    assert error.value.exit_code == 3


@pytest.mark.parametrize("name", REFUSED_JSON)
def test_json_is_refused_with_its_place(name: str) -> None:
    text, where, words = REFUSED_JSON[name]
    with pytest.raises(BadFile) as error:
        parse_json(text, "file.json")
    assert error.value.where.startswith(where)
    assert words in str(error.value)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("name", ["alias bomb", "flow lists", "block lists", "flow maps", "many nodes"])
def test_memory_stays_below_100_mb(name: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(BadFile):
            parse_yaml(REFUSED_YAML[name][0])
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()


def test_two_megabytes_are_refused_before_parsing(tmp_path, monkeypatch) -> None:
    path = tmp_path / "big.yaml"
    path.write_bytes(b"#" * (safe_yaml.MAX_BYTES + 1))
    monkeypatch.setattr(safe_yaml, "parse_yaml", lambda *_: pytest.fail("was parsed"))
    with pytest.raises(BadFile, match="more than 2 MB"):
        load_yaml(str(path))
    path.write_bytes(b"#" * safe_yaml.MAX_BYTES)
    assert len(safe_yaml.read_text(str(path))) == safe_yaml.MAX_BYTES


def test_unreadable_files(tmp_path) -> None:
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("name: Größe".encode("latin-1"))
    with pytest.raises(BadFile, match=r"latin.yaml: byte 8: got 0xf6, expected UTF-8"):
        load_yaml(str(latin))
    for path in (str(tmp_path / "none.yaml"), str(tmp_path), "a\0b"):
        with pytest.raises(BadFile, match="a readable file"):
            load_json(path)


def test_a_byte_order_mark_is_no_content(tmp_path) -> None:
    path = tmp_path / "bom.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert load_json(str(path)) == {"a": 1}


def test_only_unambiguous_spellings_are_numbers_and_booleans() -> None:
    # On the left what YAML 1.1 readers disagree on or turn into something else (017 = 15, 1:30 = 90, NO = False).
    text = "[017, 1:30, 0x10, 1_000, 3.35e12, 80e9, 1e999, NO, on, 2025-02-01, '5', 3.35e+12, .5e+3, -4, +7, true, ~]"
    words = ["017", "1:30", "0x10", "1_000", "3.35e12", "80e9", "1e999", "NO", "on", "2025-02-01", "5"]
    assert parse_yaml(text) == [*words, 3.35e12, 500.0, -4, 7, True, None]
    infinite = parse_yaml("[.inf, -.INF, .nan]")
    assert infinite[:2] == [math.inf, -math.inf]
    assert math.isnan(infinite[2])


def test_infinity_is_accepted_only_on_request() -> None:
    # A vendor's config.json carries "time_step_limit": [0.0, Infinity].
    text = '{"time_step_limit": [0.0, Infinity]}'
    assert parse_json(text, allow_infinity=True) == {"time_step_limit": [0.0, math.inf]}
    with pytest.raises(BadFile, match="got NaN"):
        parse_json('{"a": NaN}', allow_infinity=True)
    with pytest.raises(BadFile, match="1e999"):
        parse_json('{"a": 1e999}', allow_infinity=True)


def test_brackets_inside_strings_are_no_nesting() -> None:
    assert parse_json('{"a": "' + "[" * 1000 + '"}') == {"a": "[" * 1000}
    assert parse_json(json.dumps({'q"[\\': "\\"}))['q"[\\'] == "\\"
    assert parse_json('{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}


def test_an_alias_that_is_small_is_allowed() -> None:
    assert parse_yaml("a: &a {b: 1}\nc: [*a, *a]\n") == {"a": {"b": 1}, "c": [{"b": 1}, {"b": 1}]}


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | st.integers() | FLOATS | st.text("aZ1.:#é ", max_size=8)
KEYS = st.text("ab1:", max_size=4)
TREES = st.recursive(SCALARS, lambda kids: st.lists(kids, max_size=4) | st.dictionaries(KEYS, kids, max_size=4))


@settings(deadline=None, max_examples=200)
@given(TREES)
def test_json_round_trip(tree) -> None:
    assert parse_json(json.dumps(tree)) == tree


@settings(deadline=None, max_examples=200)
@given(TREES)
def test_what_pyyaml_writes_is_read_as_it_reads_it(tree) -> None:
    text = yaml.safe_dump(tree, allow_unicode=True)
    assert parse_yaml(text) == yaml.safe_load(text) == tree
