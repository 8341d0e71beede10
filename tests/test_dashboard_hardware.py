"""The page Hardware and its commands: the lines that reproduce it do, uploads are told with their place, two parts and
the table on the command line are those of the page."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from own_part import PART

pytest.importorskip("streamlit")
from streamlit.testing.v1 import AppTest
from test_dashboard_pages import cells_of, charts, errors, open_page

import roofline
from roofline.answers.hardware_table import choices, hardware_compare, hardware_table
from roofline.cli import run
from roofline.errors import BadFile, BadValue, RooflineError

pytestmark = pytest.mark.usefixtures("unfolded")

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
BAD = {
    "text for a number": (PART.replace("4.0e+12", "4.0e12"), "bandwidth_byte_per_s"),
    "duplicate key": (
        PART.replace("    vendor: Me\n", "    vendor: Me\n    vendor: You\n"),
        "accelerators.my-part.vendor",
    ),
    "anchors": (BOMB + PART, "aliases"),
    "too large": (PART + "#" * 2_000_000, "expected"),
    "wrong unit": (PART.replace("peak_flop_per_s: {", "peak_tflops: {"), "peak_tflops"),
    "not a number": (PART.replace("4.0e+12", ".nan"), "bandwidth_byte_per_s"),
    "negative": (PART.replace("4.0e+12", "-4.0e+12"), "bandwidth_byte_per_s"),
    "no YAML": ("accelerators: [", "line"),
    "bytes": ("\0\1\2", "mine.yaml"),
    "taken id": (PART.replace("my-part", "h100-sxm"), "h100-sxm"),
}


def upload(at: AppTest, text: str) -> AppTest:
    return at.file_uploader[0].set_value(("mine.yaml", text.encode(), "application/yaml")).run()


def document(capsys: pytest.CaptureFixture[str], line: str) -> dict[str, Any]:
    assert run([*line.split()[1:], "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def lines(at: AppTest) -> list[str]:
    """The commands that reproduce the table, the part and the pair."""
    return [code.value for code in at.code if code.value.startswith("roofline ")]


def calls(at: AppTest) -> list[str]:
    return [code.value.splitlines()[1] for code in at.code if code.value.startswith("import ")]


@pytest.mark.parametrize(
    "address",
    [{}, {"precision": "fp8", "table_roof": "practical"}, {"search": "h200", "vendor": "NVIDIA"}, {"second": "mi300x"}],
    ids=str,
)
def test_the_lines_reproduce_what_is_shown(address: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    at = open_page("page_hardware", None, **address)
    shown, part, pair = at.dataframe[0].value, at.dataframe[1].value, at.dataframe[3].value
    told = [document(capsys, line) for line in lines(at)]
    assert [row["hardware"] for row in told[0]["rows"]] == list(shown["id"])
    assert [row["roof"] for row in told[1]["roofs"]] == list(part["roof"])
    assert [row["quantity"] for row in told[2]["rows"]] == list(pair["quantity"])
    assert [eval(call, {"roofline": roofline})["data_digest"] for call in calls(at)] == [d["data_digest"] for d in told]


def test_the_lines_name_the_uploaded_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at = upload(open_page("page_hardware"), PART)
    at.selectbox(key="part").set_value("my-part")
    at.selectbox(key="second").set_value("my-part").run()
    (tmp_path / "mine.yaml").write_text(PART)
    monkeypatch.chdir(tmp_path)
    told = [document(capsys, line) for line in lines(at)]
    assert "my-part" in {row["hardware"] for row in told[0]["rows"]}
    assert told[1]["name"] == "my-part"
    assert told[2]["hardware"] == ["h100-sxm", "my-part"]
    assert [len(eval(call, {"roofline": roofline})) > 0 for call in calls(at)] == [True] * 3


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_told_with_its_place_and_the_last_good_one_stays(name: str, tmp_path: Path) -> None:
    text, place = BAD[name]
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(RooflineError) as known:
        roofline.hardware(files=[str(file)])
    at = upload(upload(open_page("page_hardware"), PART), text)
    assert not at.exception
    assert place in errors(at)
    if name != "too large":  # a page takes less than the command line does
        assert str(known.value).replace(str(tmp_path) + "/", "")[:200] in errors(at)
    assert "last good file stays" in errors(at)
    assert "/tmp" not in errors(at)
    assert "my-part" in set(at.dataframe[0].value["id"])


def test_every_ridge_is_drawn_by_name_and_sorted() -> None:
    found = roofline.hardware_table()
    (proto,) = charts(open_page("page_hardware"))
    drawn = cells_of(proto)
    ridges = {r["hardware"]: r["ridge_flop_per_byte"] for r in found.rows if r["ridge_flop_per_byte"]}
    assert {row["hardware"]: row["ridge_flop_per_byte"] for row in drawn} == ridges
    assert [row["ridge_flop_per_byte"] for row in drawn] == sorted(ridges.values(), reverse=True)
    marks, *names = json.loads(proto.spec)["layer"]
    low, high = marks["encoding"]["x"]["scale"]["domain"]
    assert low < min(ridges.values()) < max(ridges.values()) < high
    sides = {layer["transform"][0]["filter"].split()[1]: layer["mark"]["align"] for layer in names}
    assert sides == {">=": "right", "<": "left"}  # each name once, towards the middle, so that none is cut off


def test_two_parts_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """H200 over H100: 4.8 against 3.35 TB/s (NVIDIA's datasheets)."""
    found = document(capsys, "roofline hardware compare h100-sxm h200-sxm")
    ratio = {row["quantity"]: row["ratio"] for row in found["rows"]}
    assert ratio["bandwidth"] == pytest.approx(4.8 / 3.35)
    assert found["rows"] == json.loads(json.dumps(roofline.hardware_compare("h100-sxm", "h200-sxm")["rows"]))
    out = tmp_path / "pair.csv"
    assert run(["hardware", "compare", "h100-sxm", "h200-sxm", "-o", str(out)]) == 0
    assert next(csv.DictReader(out.open()))["quantity"] == found["rows"][0]["quantity"]
    (tmp_path / "mine.yaml").write_text(PART)
    own = document(capsys, f"roofline hardware compare h100-sxm my-part --hardware {tmp_path}/mine.yaml")
    same = document(capsys, f"roofline hardware compare h100-sxm {tmp_path}/mine.yaml")
    assert own["rows"] == same["rows"]
    assert own["hardware"] == ["h100-sxm", "my-part"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("compare h100-sxm nonesuch", "unknown accelerator 'nonesuch'"),
        ("compare h100-sxm all", "expected one accelerator"),
        ("compare h100-sxm h200-sxm,b200-sxm", "expected one accelerator"),
        ("table --precision fp3", "unknown precision 'fp3'"),
        ("table --roof nonesuch", "unknown roof 'nonesuch'"),
        ("table --vendor Nobody", "unknown vendor 'Nobody'"),
    ],
)
def test_what_the_commands_do_not_know_is_told(words: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hardware", *words.split()]) == 2
    told = capsys.readouterr()
    assert expected in told.err
    assert told.out == ""


def test_filters_leave_what_they_name() -> None:
    """Law: a filter keeps rows, and two filters keep what each of them keeps."""
    everything = [r["hardware"] for r in roofline.hardware_table().rows]
    both = [r["hardware"] for r in roofline.hardware_table(vendor=["NVIDIA", "AMD"], search="hbm").rows]
    ours = {r["hardware"] for r in roofline.hardware_table(vendor=["NVIDIA", "AMD"]).rows}
    found = {r["hardware"] for r in roofline.hardware_table(search="hbm").rows}
    assert both == [i for i in everything if i in ours & found]
    assert 0 < len(ours) < len(everything)


def test_a_part_compared_with_itself_is_one() -> None:
    found = roofline.hardware_compare("b200-sxm", "b200-sxm")
    assert {row["ratio"] for row in found.rows} == {1}
    assert len({column.title for column in found.columns}) == 5
    with pytest.raises(BadValue, match="one accelerator"):
        roofline.hardware_compare("b200-sxm", "all")


@pytest.mark.parametrize("roof", ["practical", "flashmla"])
def test_a_row_has_the_rates_of_its_roof_or_none(roof: str) -> None:
    """MI325X has no measured roof: its datasheet's rates have no place in a table of measured ones."""
    catalog = roofline.load_catalog()
    for row in roofline.hardware_table(roof=roof).rows:
        own = {(r.peak, r.bandwidth) for r in catalog[row["hardware"]].roofs if r.name == roof and r.has_rates}
        assert (row["peak_flop_per_s"], row["bandwidth_byte_per_s"]) in (own or {(None, None)})
        assert (row["ridge_flop_per_byte"] is None) == (row["peak_flop_per_s"] is None)


def test_the_filters_leave_what_they_name() -> None:
    at = open_page("page_hardware", None, search="h100", precision="fp8")
    table = at.dataframe[0].value
    everything = {row["hardware"]: row for row in hardware_table(precision="fp8").rows}
    assert {i for i in everything if "h100" in i} <= set(table["id"])
    assert len(table) < len(everything)
    row = table.set_index("id").loc["h100-sxm"]
    assert row["ridge [FLOP/B]"] == pytest.approx(everything["h100-sxm"]["ridge_flop_per_byte"], rel=1e-5)
    assert row["source"].startswith("http")


def test_ridges_are_those_of_the_command() -> None:
    """The same numbers as `roofline hardware list`, part by part."""
    listed = {row["hardware"]: row["ridge_flop_per_byte"] for row in roofline.hardware().rows}
    assert {row["hardware"]: row["ridge_flop_per_byte"] for row in hardware_table().rows} == listed


def test_every_roof_and_precision_on_offer_has_a_part() -> None:
    known = choices()
    assert all(hardware_table(precision=p)["with_ridge"] for p in known["precision"])
    named = {roof.name for part in roofline.load_catalog().values() for roof in part.roofs}
    assert set(known["roof"]) == named


def test_two_parts_compared() -> None:
    """H200 over H100: 4.8 against 3.35 TB/s, the same tensor units (NVIDIA's datasheets)."""
    rows = {row["quantity"]: row["ratio"] for row in hardware_compare("h100-sxm", "h200-sxm").rows}
    assert rows["bandwidth"] == pytest.approx(4.8 / 3.35)
    assert rows["peak bf16"] == 1
    back = {row["quantity"]: row["ratio"] for row in hardware_compare("h200-sxm", "h100-sxm").rows}
    assert all(back[name] == pytest.approx(1 / ratio) for name, ratio in rows.items() if ratio)


def test_no_part_left_is_said() -> None:
    at = open_page("page_hardware", None, search="no such part")
    assert "No part passes" in " ".join(i.value for i in at.info)


def test_an_uploaded_part_is_listed_and_a_bad_file_says_where(tmp_path: Path) -> None:
    at = open_page("page_hardware")
    at.file_uploader[0].set_value(("mine.yaml", PART.encode(), "application/yaml")).run()
    assert "my-part" in at.success[0].value.replace("\\", "")
    row = at.dataframe[0].value.set_index("id").loc["my-part"]
    assert row["ridge [FLOP/B]"] == 250
    at.selectbox(key="second").set_value("my-part").run()
    assert not at.error
    bad = PART.replace("4.0e+12", "4.0e12")  # which YAML reads as text
    file = tmp_path / "mine.yaml"
    file.write_text(bad)
    with pytest.raises(BadFile) as known:
        roofline.hardware(files=[str(file)])
    at.file_uploader[0].set_value(("mine.yaml", bad.encode(), "application/yaml")).run()
    assert str(known.value).replace(str(tmp_path) + "/", "") in errors(at)
    assert "my-part" in set(at.dataframe[0].value["id"])  # the last good file stays
