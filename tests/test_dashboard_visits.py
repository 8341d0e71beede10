"""Pages that share names of controls: each finds its own values again, and what a link gives for no control is told."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from test_dashboard import ENTRY, fine
from test_dashboard_uploads import GOOD

TITLES = {"roofline": "Roofline", "heads": "Head count", "crossover": "MHA or MQA mode", "step": "Model step",
          "kv": "KV memory", "hardware": "Hardware"}  # fmt: skip


def open_at(page: str = "roofline", **address: Any) -> AppTest:
    """The whole dashboard, opened at a page of its navigation by a link."""
    at = AppTest.from_file(str(ENTRY), default_timeout=60).run()
    fresh = AppTest.from_file(str(ENTRY), default_timeout=60)
    fresh._registered_pages = at._registered_pages
    for name, value in address.items():
        fresh.query_params[name] = value
    return go(fresh, page)


def go(at: AppTest, page: str) -> AppTest:
    """Click on a page in the navigation, which empties the address."""
    at._page_hash = next(
        number for number, info in at._registered_pages.items() if info["page_name"] == TITLES[page]
    )  # switch_page knows pages that are files
    at.run()
    assert at.title[0].value == TITLES[page]
    return fine(at)


def leave(at: AppTest, page: str) -> AppTest:
    for name in list(at.query_params):
        del at.query_params[name]
    return go(at, page)


def widget(at: AppTest, key: str) -> Any:
    every = [*at.selectbox, *at.select_slider, *at.slider, *at.button_group, *at.toggle]
    return next((one for one in every if one.key == key), None)


def test_a_name_that_stands_for_something_else_on_another_page_does_no_harm() -> None:
    at = open_at("step")
    widget(at, "tp").set_value(2).run()
    widget(at, "phase").set_value("mixed").run()
    leave(at, "crossover")
    assert widget(at, "tp").value == [1]
    assert widget(at, "phase").value == "oneshot"
    widget(at, "tp").set_value([2, 4]).run()
    widget(at, "phase").set_value("shared-prefix").run()
    widget(at, "prefix").set_value(8192).run()
    leave(at, "kv")
    assert (widget(at, "tp").value, widget(at, "prefix").value) == (16, 0)
    leave(at, "step")
    assert (widget(at, "tp").value, widget(at, "phase").value) == (2, "mixed")
    leave(at, "crossover")
    assert (widget(at, "tp").value, widget(at, "phase").value) == ([2, 4], "shared-prefix")
    assert widget(at, "prefix").value == 8192


@pytest.mark.parametrize("first", TITLES)
def test_every_page_opens_after_every_other(first: str) -> None:
    for second in TITLES:
        at = open_at(first)
        leave(at, second)
        leave(at, first)
        assert not at.warning


def test_roofline_and_model_step_ask_for_the_same_step() -> None:
    at = open_at("step", phase="chunked", q_len="4096", tp="4")
    leave(at, "roofline")
    assert (widget(at, "phase").value, widget(at, "q_len").value, widget(at, "tp").value) == ("chunked", 4096, 4)


def test_what_another_page_left_is_not_found_by_a_control_that_comes_later() -> None:
    at = open_at("crossover", phase="decode", q_len="8")
    leave(at, "step")
    widget(at, "phase").set_value("chunked").run()
    assert widget(at, "q_len").value == 2048


@pytest.mark.parametrize(("page", "name", "value"), [("heads", "heads", 100), ("crossover", "rate_ratio", 0.5)])
def test_a_live_slider_is_found_as_it_was_left(page: str, name: str, value: float) -> None:
    at = open_at(page, **{name: str(value)})
    leave(at, "hardware")
    leave(at, page)
    assert at.query_params[name] == str(value)


@pytest.mark.parametrize(
    ("page", "address", "names"),
    [
        ("crossover", {"prefix": "-1"}, ["prefix"]),
        ("crossover", {"q_len": "abc", "unknown": "foo"}, ["q_len", "unknown"]),
        ("crossover", {"phase": "decode", "between": "indexer", "unknown": "batch"}, ["unknown"]),
        ("heads", {"explain": "foo", "roof": "datasheet"}, ["explain"]),
        ("roofline", {"lengths": "<script>"}, ["lengths"]),
        ("roofline", {"heads": "abc", "acceptance": "99", "view": "Ledger"}, ["acceptance", "heads", "view"]),
        ("heads", {"q_len": "1.5"}, ["q_len"]),
        ("heads", {"latent": "100.5"}, ["latent"]),
        ("heads", {"latent": "1e3"}, ["latent"]),
        ("heads", {"heads": "64.7"}, ["heads"]),
        ("heads", {"heads": "1_0"}, ["heads"]),
        ("heads", {"heads": ["1", "2"]}, ["heads"]),
        ("heads", {"q_len": ["3", "4"]}, ["q_len"]),
        ("kv", {"prefix": "12.5"}, ["prefix"]),
        ("step", {"drafts": "bad", "view": "Foo", "batch": "7"}, ["batch", "drafts", "view"]),
    ],
    ids=str,
)
def test_a_link_s_mistake_is_told_and_gone_with_the_page(page: str, address: dict[str, Any], names: list[str]) -> None:
    at = open_at(page, **address)
    told = at.warning[0].value.replace("\\", "")
    assert sorted(line.split()[1] for line in told.splitlines()) == names
    assert not set(names) & set(at.query_params)
    usual = open_at(page, **{name: value for name, value in address.items() if name not in names})
    assert [m.value for m in at.metric] == [m.value for m in usual.metric]
    leave(at, "hardware")
    assert not at.warning


def test_a_note_goes_when_its_control_is_touched_even_to_the_default() -> None:
    at = open_at("step", drafts="bad", batch="7")
    widget(at, "drafts").set_value(1).run()
    widget(at, "drafts").set_value(0).run()
    assert "drafts" not in at.warning[0].value
    assert "batch" in at.warning[0].value


def test_a_number_is_taken_however_it_is_spelled() -> None:
    at = open_at("heads", w_kv="1")
    assert not at.warning
    assert widget(at, "w_kv").value == 1.0
    assert at.query_params["w_kv"] == "1.0"
    assert widget(fine(at.run()), "w_kv").value == 1.0


def test_a_page_starts_anew_with_another_model() -> None:
    """What stood at its start is not what the page was left with."""
    at = open_at("step")
    assert widget(at, "dp").value == 16
    leave(at, "hardware")
    widget(at, "model").set_value("llama-3.1-8b").run()
    leave(at, "step")
    assert widget(at, "dp").value == 1
    widget(at, "drafts").set_value(1).run()
    leave(at, "roofline")
    widget(at, "drafts").set_value(4).run()
    leave(at, "step")
    assert widget(at, "acceptance").value == 5
    assert "acceptance" not in at.query_params


@pytest.mark.parametrize(
    ("page", "move", "follows"),
    [("crossover", ("phase", "shared-prefix"), {"cost": "time"}),
     ("hardware", ("hardware", "b200-sxm"), {"part": "b200-sxm", "first": "b200-sxm"}),
     ("kv", ("model", "llama-3.1-8b"), {"tp": 1})],
)  # fmt: skip
def test_a_start_that_moves_takes_its_control_along(page: str, move: tuple[str, str], follows: dict[str, Any]) -> None:
    """The address leaves starts out, so what it shows elsewhere has to be what is shown here."""
    at = open_at(page)
    widget(at, move[0]).set_value(move[1]).run()
    assert {name: widget(at, name).value for name in follows} == follows
    link = open_at(page, **{move[0]: move[1]})
    assert {name: widget(link, name).value for name in follows} == follows


def test_a_note_goes_when_something_else_sets_the_control() -> None:
    at = open_at("step", batch="7")
    at.session_state["batch"] = 256  # as a click on the map does
    at.run()
    assert not at.warning


def test_only_a_link_s_values_are_told() -> None:
    """Choices that go with another choice are no mistake of anybody."""
    at = open_at("step", hardware_2="h200-sxm", drafts="4", acceptance="4.2")
    widget(at, "drafts").set_value(1).run()
    assert widget(at, "acceptance").value == 2
    widget(at, "hardware").set_value("h200-sxm").run()
    assert widget(at, "hardware_2").value == "none"
    assert not at.warning


def test_a_second_file_of_another_name_takes_the_place_of_the_first() -> None:
    at = open_at("step")
    for name in ("a.json", "config (1).json"):
        at.file_uploader[0].set_value((name, GOOD, "application/json")).run()
        fine(at)
        assert widget(at, "model").value == name
        assert not at.warning


def test_a_model_that_comes_after_its_link_is_no_mistake_any_more() -> None:
    at = open_at("step", model="config.json")
    assert "model in the address" in at.warning[0].value
    at.file_uploader[0].set_value(("config.json", GOOD, "application/json")).run()
    assert widget(at, "model").value == "config.json"
    assert not at.warning
