"""What moves the latency of the page Model step alone: accepted drafts, and batches in flight in a pipeline."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import roofline
from roofline.dashboard.controls import NOTES
from roofline.units import number, show

LOAD = {"batch": 64, "context": 8192}  # of the sidebar


def open_page(model: str, **address: Any) -> AppTest:
    """Model step on one H200 as it opens, without the frame."""

    def app(model: str) -> None:  # its source alone is run
        from roofline.dashboard import page_step
        from roofline.dashboard.selection import Selection

        page_step.page(Selection(model, ("h200-sxm",)))

    at = AppTest.from_function(app, args=(model,), default_timeout=60)
    for name, value in address.items():
        at.query_params[name] = str(value)
    at.run()
    assert not at.exception
    assert not at.error
    return at


def shown(at: AppTest, label: str) -> str:
    return next(m.value for m in at.metric if m.label == label)


def tpot(**options: Any) -> str:
    return show(roofline.step("deepseek-v3.2", "h200-sxm", dp=16, ep=16, **LOAD, **options)["tpot_s"], "s")


def test_acceptance_is_asked_for_where_there_are_drafts_and_moves_the_latency() -> None:
    at = open_page("deepseek-v3.2", drafts=3)
    assert shown(at, "TPOT at least") == tpot(drafts=3)
    at.slider(key="acceptance").set_value(2.5).run()
    assert shown(at, "TPOT at least") == tpot(drafts=3, acceptance=2.5)
    assert tpot(drafts=3, acceptance=2.5) != tpot(drafts=3)
    linked = open_page("deepseek-v3.2", drafts=3, acceptance=2.5)
    assert shown(linked, "TPOT at least") == shown(at, "TPOT at least")


def test_every_draft_stays_accepted_when_there_are_more_of_them() -> None:
    at = open_page("deepseek-v3.2", drafts=1)
    at.select_slider(key="drafts").set_value(4).run()
    assert at.slider(key="acceptance").value == 5
    assert shown(at, "TPOT at least") == tpot(drafts=4)
    at.select_slider(key="drafts").set_value(2).run()
    assert at.slider(key="acceptance").value == 3
    assert shown(at, "TPOT at least") == tpot(drafts=2)


@pytest.mark.parametrize("address", [{"acceptance": 2}, {"drafts": 1, "acceptance": 3}, {"micro_batches": 4}])
def test_what_has_no_place_is_told(address: dict[str, Any]) -> None:
    """Without drafts nothing is accepted, of one draft no third token comes, and one stage has one batch."""
    at = open_page("deepseek-v3.2", **address)
    assert list(at.session_state[NOTES]) == [list(address)[-1]]


def test_batches_in_flight_fill_a_pipeline_and_its_memory() -> None:
    at = open_page("llama-3.1-8b", pp=4, micro_batches=8)
    found = roofline.step("llama-3.1-8b", "h200-sxm", pp=4, micro_batches=8, **LOAD)
    assert shown(at, "TPOT at least") == show(found["tpot_s"], "s")
    assert shown(at, "Largest batch") == number(found["memory"]["max_batch"])
    alone = roofline.step("llama-3.1-8b", "h200-sxm", pp=4, **LOAD)
    assert found["memory"]["max_batch"] < alone["memory"]["max_batch"]
    assert found["tpot_s"] > alone["tpot_s"]
