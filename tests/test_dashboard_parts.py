"""Parts of a page that are closed: what is not seen is neither computed nor sent, and their controls live on."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from roofline.dashboard import page_kv, page_step


def open_page(page: str, **address: Any) -> AppTest:
    """A page as it opens, without the frame."""

    def app(page: str) -> None:  # its source alone is run
        from importlib import import_module

        from roofline.dashboard.selection import Selection

        import_module(f"roofline.dashboard.page_{page}").page(Selection())

    at = AppTest.from_function(app, args=(page,), default_timeout=60)
    for name, value in address.items():
        at.query_params[name] = str(value)
    at.run()
    assert not at.exception
    return at


def keys(at: AppTest) -> list[str]:
    """The keys of the charts that were sent."""
    return [chart.proto.id.split("-")[-1] for chart in at.get("vega_lite_chart")]


@pytest.mark.parametrize("page", ["roofline", "heads", "crossover", "step", "kv", "hardware"])
def test_lines_and_downloads_are_made_when_they_are_opened(page: str) -> None:
    at = open_page(page)
    assert not at.code
    assert not at.get("download_button")
    at.session_state[f"_lines_{page}"] = True
    at.run()
    assert [code.language for code in at.code] == ["python", "bash"]
    at.session_state[f"_download_{'kv-pages' if page == 'kv' else page}"] = True
    at.run()
    labels = [button.proto.label for button in at.get("download_button")]
    assert labels == ["PDF", "SVG", "PNG", "CSV", "JSON", "LaTeX"]


@pytest.mark.parametrize(
    ("page", "drawn"),
    [
        ("step", {"Ledger": ["step_bars"], "What would help": ["step_bars", "step_help"],
                  "Batch and length": ["step_bars", "step_map"]}),
        ("kv", {"Pages": ["kv_grid"], "Page size": ["kv_sweep"], "Capacity by engine": ["kv_curve"]}),
        ("hardware", {"All parts": ["ridges"], "One part in full": [], "Two compared": []}),
    ],
)  # fmt: skip
def test_a_page_draws_the_part_that_is_seen(page: str, drawn: dict[str, list[str]]) -> None:
    for view, charts in drawn.items():
        assert keys(open_page(page, view=view)) == charts, view


def test_the_map_is_not_worked_out_before_it_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("the map was worked out")

    monkeypatch.setattr(page_step, "_map", never)
    assert not open_page("step", view="Ledger").error


def test_a_control_of_a_part_that_is_not_seen_keeps_its_value() -> None:
    at = open_page("kv", tp=8)
    assert at.select_slider(key="tp").value == 8
    at.session_state["view"] = page_kv.VIEWS[2]
    at.run()
    assert at.select_slider(key="tp").value == 8
    at.select_slider(key="tp").set_value(4).run()
    at.session_state["view"] = page_kv.VIEWS[0]
    at.run()
    assert at.select_slider(key="tp").value == 4
