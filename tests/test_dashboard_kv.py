"""The page KV memory: presets give the published numbers whatever stood before, list, table and address hold the same,
the lines that reproduce it do, and what does not fit is said."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("streamlit")
from hypothesis import given, settings
from hypothesis import strategies as some
from streamlit.testing.v1 import AppTest
from test_dashboard_pages import SMALL, cells_of, charts, errors, metrics, open_page

import roofline
from roofline.answers.kv import kv_pages
from roofline.cli import run
from roofline.dashboard.controls import NOTES
from roofline.dashboard.kv_charts import KINDS, ROWS, SINGLE, cells
from roofline.dashboard.kv_requests import LONGEST, MOST, read_lengths
from roofline.memory.engines import ENGINES
from roofline.units import number

pytestmark = pytest.mark.usefixtures("unfolded")

LARGE = {"model": "deepseek-v3.2", "hardware": ("h800-sxm",), "context": 8192}
# The paged-KV article (P03 to P26 of test_memory_pages.py): 61 pages of 16, 30 of 976 slots empty, 122 MiB; 1,614 of
# 2,560 by reserving 512; 83 and 32 requests in 2 GiB.  Of its other lists it gives the wastes: 81.9 %; 2.1 and 1.5 %.
PUBLISHED = {
    "article": {"Pages": "61", "Paged, empty": "3.07%", "Reserved, empty": "63.05%", "Held": "122 MiB",
                "Fit paged": "83", "Fit reserved": "32"},
    "one-long": {"Reserved, empty": "81.91%"},
    "near-reserve": {"Reserved, empty": "2.11%", "Paged, empty": "1.49%", "Held": "318 MiB"},
}  # fmt: skip
SWEEP = {1: 85, 2: 85, 4: 85, 8: 85, 16: 83, 32: 82, 64: 75, 128: 64, 256: 53, 512: 32}  # the article: page -> fit


def table(at: AppTest, column: str) -> Any:
    """The table that has a column."""
    return next(f.value for f in at.dataframe if column in f.value.columns)


def told(at: AppTest) -> str:
    return " ".join(w.value for w in at.warning).replace("\\", "")


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_preset_gives_the_published_numbers_whatever_stood_before(name: str) -> None:
    moved = {"page_size": 64, "reserve": 4096, "pool": "8GiB", "prefix": 48, "prefix_requests": 2}
    at = open_page("page_kv", None, lengths="9,800,77", bytes_per_token="model", **moved)
    at.button(key=f"_preset_{name}").click().run()
    assert not at.error
    shown = metrics(at)
    assert {label: shown[label] for label in PUBLISHED[name]} == PUBLISHED[name]
    assert at.select_slider(key="page_size").value == 16
    assert at.slider(key="prefix").value == 0


def test_the_sweep_is_the_article_s() -> None:
    rows = table(open_page("page_kv"), "fit in pool")
    assert dict(zip(rows["page [tokens]"], rows["fit in pool"], strict=True)) == SWEEP


def test_counts_are_numbers_so_that_headings_sort() -> None:
    at = open_page("page_kv")
    assert [str(kind) for kind in table(at, "request").dtypes] == ["int64"] * 7
    assert str(table(at, "tokens held")["tokens held"].dtype) == "int64"


def test_the_page_starts_with_a_deployment_that_does() -> None:
    at = open_page("page_kv", LARGE)
    rows = table(at, "engine")
    assert at.select_slider(key="tp").value == 16
    assert set(rows["starts"]) == {"yes"}
    assert (rows["left for caches [GiB]"] > 0).all()
    assert not at.warning


def test_what_does_not_start_is_told_with_what_is_missing_and_what_would() -> None:
    at = open_page("page_kv", LARGE, tp=1)
    assert set(table(at, "engine")["starts"]) == {"no"}
    for engine in ENGINES:
        asked = {"engine": engine, "max_model_len": 8192, "utilization": 0.9}
        one = roofline.kv_capacity("deepseek-v3.2", "h800-sxm", tp=1, **asked)
        assert f"{engine} {one['missing_bytes'] / 2**30:.1f} GiB" in told(at)
        assert not roofline.kv_capacity("deepseek-v3.2", "h800-sxm", tp=8, **asked)["starts"]

    assert f"{', '.join(ENGINES)}: starts from TP 16 on" in told(at)


def test_where_no_degree_starts_that_is_said() -> None:
    at = open_page("page_kv", {"model": "kimi-k3", "hardware": ("t4",)})
    assert "no TP on offer starts" in told(at)
    assert not [c for c in charts(at) if c.alt.startswith("Requests that fit")]


@pytest.mark.parametrize(
    "text", [",".join(["9999999"] * MOST), ",".join(map(str, range(1, MOST + 1))) + " " * (LONGEST - 691)]
)
def test_the_longest_lists_come_back_from_a_link(text: str) -> None:
    assert len(text) <= LONGEST
    at = open_page("page_kv", None, lengths=text, reserve=131072, page_size=512)
    kept = text.replace(" ", "")
    assert at.text_input(key="_kv_text").value == kept
    assert at.query_params["lengths"] == kept
    assert at.session_state[NOTES] == {}
    pages = roofline.kv_pages([int(n) for n in kept.split(",")], page_size=512)["pages"]
    assert metrics(at)["Pages"] == f"{pages:,}"


@pytest.mark.parametrize(
    "text", ["1," * (LONGEST // 2) + "1", "../../etc/passwd", "<img src=x>", "1;2", "1e9", "$(id)", "0"]
)
def test_a_bad_list_is_told_and_the_list_before_stays(text: str) -> None:
    linked = open_page("page_kv", None, lengths=text)
    assert "lengths" in linked.session_state[NOTES]
    assert metrics(linked)["Pages"] == "61"
    typed = open_page("page_kv", None, lengths="100,200")
    typed.text_input(key="_kv_text").set_value(text).run()
    assert "The list before stays in use" in errors(typed)
    assert typed.text_input(key="_kv_text").value == typed.query_params["lengths"] == "100,200"
    assert metrics(typed)["Pages"] == "20"


def test_the_four_kinds_of_pages_differ_without_colour() -> None:
    spec = json.loads(charts(open_page("page_kv", None, prefix=64))[0].spec)
    outline, inside = (layer["encoding"] for layer in spec["layer"])
    dashes, fills = outline["strokeDash"]["scale"], inside["fillOpacity"]["scale"]
    assert dashes["domain"] == fills["domain"] == list(KINDS.values())
    looks = {kind: (tuple(dash), fill) for kind, dash, fill in
             zip(dashes["domain"], dashes["range"], fills["range"], strict=True)}  # fmt: skip
    assert (
        looks.pop("partly full") == looks["full"]
    )  # filled as far as its tokens reach, which tells it from a full one
    assert len(set(looks.values())) == 3
    assert len({dash for dash, _ in looks.values()}) == len({fill for _, fill in looks.values()}) == 3


@pytest.mark.parametrize("address", [{}, {"lengths": "50,60,70", "page_size": 8, "prefix": 24, "pool": "1GiB"},
                                     {"bytes_per_token": "model"}, {"lengths": "600,20", "prefix": 64}])  # fmt: skip
def test_the_lines_reproduce_what_is_shown(address: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """The second list suits neither its prefix nor its reservation, so the lines are without them."""
    at = open_page("page_kv", {**SMALL, "context": 4096}, **address)
    python, account, _, sizes, by_engine, capacity = [code.value for code in at.code]
    found = eval(python.splitlines()[1], {"roofline": roofline})
    assert metrics(at)["Pages"] == f"{found['pages']:,}"
    documents = []
    for line in (account, sizes, *capacity.splitlines()[:-1]):
        assert run([*line.split()[1:], "--json"]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    assert documents[0]["pages"] == found["pages"]
    assert [row["fit_requests"] for row in documents[1]["sweep"]] == list(table(at, "fit in pool")["fit in pool"])
    assert [d["tokens"] for d in documents[2:]] == list(table(at, "tokens held")["tokens held"])
    drawn = eval(by_engine.splitlines()[-1], {"roofline": roofline})
    assert [line["engine"] for line in drawn["lines"]] == [*ENGINES, "ideal"]


def test_the_article_s_numbers() -> None:
    """61 pages, 30 empty slots (3.07 %), 63.05 % by reserving 512; 83 and 32 fit in 2 GiB: the paged-KV article."""
    found = metrics(open_page("page_kv"))
    assert (found["Pages"], found["Paged, empty"], found["Reserved, empty"]) == ("61", "3.07%", "63.05%")
    assert (found["Fit paged"], found["Fit reserved"]) == ("83", "32")


def test_a_link_restores_the_whole_view() -> None:
    at = open_page("page_kv", None, lengths="50,60,70", page_size=8, reserve=128, pool="1GiB", prefix=24)
    found = kv_pages(
        [50, 60, 70], page_size=8, reserve=128, pool_bytes=2**30, bytes_per_token=2**17, shared_prefix=(24, 3)
    )
    assert metrics(at)["Pages"] == number(found["pages"])
    assert metrics(at)["Fit paged"] == number(found["fit"]["paged_requests"])
    shown = [row["kind"] for row in cells_of(charts(at)[0])]
    letters = "".join(found["grid"])
    assert {kind: shown.count(kind) for kind in set(shown)} == {KINDS[k]: letters.count(k) for k in set(letters)}


@pytest.mark.parametrize(("name", "waste"), [("one-long", "81.91%"), ("near-reserve", "2.11%")])
def test_a_preset_fills_the_controls(name: str, waste: str) -> None:
    """Reserving wastes 81.9 % and 2.1 %: the article's presets A and B."""
    at = open_page("page_kv")
    at.button(key=f"_preset_{name}").click().run()
    assert metrics(at)["Reserved, empty"] == waste
    assert at.query_params["lengths"] == at.text_input(key="_kv_text").value
    at.button(key="_preset_article").click().run()
    assert "lengths" not in at.query_params
    assert "reserve" not in at.query_params


def test_the_list_as_text_is_read_and_bad_text_leaves_the_list() -> None:
    at = open_page("page_kv")
    at.text_input(key="_kv_text").set_value("100, 200").run()
    assert metrics(at)["Pages"] == "20"
    assert at.query_params["lengths"] == "100,200"
    at.text_input(key="_kv_text").set_value("100,<b>x").run()
    assert "lengths: got" in errors(at)
    assert metrics(at)["Pages"] == "20"


def test_the_list_outlives_a_visit_to_another_page() -> None:
    """Streamlit forgets the widgets of a page that is left, edits of the table among them."""
    at = open_page("page_kv")
    at.text_input(key="_kv_text").set_value("100,200").run()
    at.session_state["_kv_list"] = [1]  # what the table held before it was edited
    for away in (True, False):
        at.session_state["away"] = away
        at.run()
    assert at.text_input(key="_kv_text").value == "100,200"
    assert metrics(at)["Pages"] == "20"


def test_a_prefix_or_reservation_that_does_not_suit_is_told() -> None:
    at = open_page("page_kv", None, lengths="600,20", reserve=512, prefix=64, prefix_requests=2)
    assert "at least the longest request, 600 tokens" in errors(at)
    assert "longer than a member" in errors(at)
    assert metrics(at)["Pages"] == "40"
    assert "Reserved, empty" not in metrics(at)


@pytest.mark.parametrize("text", ["", "0", "-3", "1.5", "1e3", "x", "1,,x", "٣", "99999999", ",".join(["1"] * 201)])
def test_what_is_no_list_of_lengths(text: str) -> None:
    assert read_lengths(text) == []


@settings(max_examples=30, deadline=None)
@given(
    lengths=some.lists(some.integers(1, 3000), min_size=1, max_size=60),
    page=some.sampled_from([1, 16, 512]),
    reserve=some.sampled_from([4096, 65536]),
)
def test_the_cells_of_the_grid_cover_it_once(lengths: list[int], page: int, reserve: int) -> None:
    """Law: rectangles of a row lie end to end, and those that carry tokens are the pages of the request."""
    found = kv_pages(lengths, page_size=page, reserve=reserve)
    drawn = list(cells(found)) if found["grid"] else []
    assert len(drawn) <= ROWS * max(SINGLE, 4)
    for at, line in enumerate((found["grid"] or [])[:ROWS]):
        mine = [c for c in drawn if c["row"].startswith(f"{at + 1}:")]
        assert [c["left"] for c in mine] == [0, *(c["right"] for c in mine[:-1])]
        assert mine[-1]["right"] == len(line)
        assert sum(c["pages"] for c in mine if c["kind"] != KINDS["."]) == found["rows"][at]["pages"]


def test_capacity_is_told_for_every_engine() -> None:
    at = open_page("page_kv", {**SMALL, "context": 4096}, tp=2)
    rows = next(f.value for f in at.dataframe if "engine" in f.value.columns)
    assert list(rows["engine"]) == ["vllm", "sglang", "trtllm", "llamacpp"]
    for row in rows.to_dict("records"):
        alone = roofline.kv_capacity(
            "llama-3.1-8b", "h100-sxm", engine=row["engine"], tp=2, max_model_len=4096, utilization=0.9
        )
        assert row["tokens held"] == alone["tokens"]
