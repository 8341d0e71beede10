"""The pages Model step, KV memory and Hardware: what they show is what the library answers, whatever the address holds.

`AppTest` runs a page without a browser; charts are compared as JSON with the answers, never as pixels.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from typing import Any

import pytest

pytest.importorskip("streamlit")
from hypothesis import given, settings
from hypothesis import strategies as some
from streamlit.testing.v1 import AppTest

import roofline
from roofline.answers.hardware_table import hardware_table
from roofline.answers.step_map import degrees, step_map
from roofline.dashboard.controls import NOTES
from roofline.errors import BadValue, RooflineError
from roofline.models import list_models
from roofline.plan import Deployment, check_deployment
from roofline.units import number, show

pytestmark = pytest.mark.usefixtures("unfolded")

PAGES = ("page_step", "page_kv", "page_hardware")
SMALL = {"model": "llama-3.1-8b", "hardware": ("h100-sxm",)}


def open_page(page: str, selection: dict[str, Any] | None = None, **address: Any) -> AppTest:
    """A page with a selection and parameters of the address, run once."""

    def app(page: str, selection: dict) -> None:  # type: ignore[type-arg]  # its source alone is run
        from importlib import import_module

        import streamlit as st

        from roofline.dashboard.selection import Selection

        if not st.session_state.get("away"):
            import_module(f"roofline.dashboard.{page}").page(Selection(**selection))

    at = AppTest.from_function(app, args=(page, SMALL if selection is None else selection), default_timeout=60)
    for name, value in address.items():
        at.query_params[name] = str(value)
    at.run()
    assert not at.exception
    return at


def charts(at: AppTest) -> list[Any]:
    return [element.proto for element in at.get("vega_lite_chart")]


def metrics(at: AppTest) -> dict[str, str]:
    return {m.label: m.value for m in at.metric}


@cache
def default_metrics(page: str) -> dict[str, str]:
    return metrics(open_page(page))


def errors(at: AppTest) -> str:
    return " ".join(e.value for e in at.error).replace("\\", "")


def cells_of(proto: Any, at: int = 0) -> list[dict[str, Any]]:
    """The records of a chart, which travel as Arrow beside its spec."""
    import pyarrow as pa

    data = proto.datasets[at].data.data if proto.datasets else proto.data.data
    return pa.ipc.open_stream(data).read_all().to_pylist()


# --- all three ---


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("model", ["deepseek-v3.2", "gemma-4-26b-a4b", "nemotron-h-56b"])
def test_every_page_draws_without_an_error(page: str, model: str) -> None:
    at = open_page(page, {"model": model, "hardware": ("h200-sxm", "mi300x"), "batch": 1, "context": 256})
    assert not at.error
    assert "not forecasts" in at.caption[-2].value  # the footer stands last
    for proto in charts(at):
        assert len(proto.alt) > 40
        assert json.loads(proto.spec)


@pytest.mark.parametrize("page", PAGES)
def test_every_control_has_a_help_text(page: str) -> None:
    at = open_page(page)
    widgets = [*at.select_slider, *at.slider, *at.selectbox, *at.text_input]
    assert len(widgets) >= 4
    assert [w.label for w in widgets if len(w.help or "") < 8] == []


@pytest.mark.parametrize("page", PAGES)
def test_what_is_downloaded_and_reproduced_is_there(page: str) -> None:
    at = open_page(page)
    labels = {button.proto.label for button in at.get("download_button")}
    assert {"PDF", "SVG", "PNG", "CSV", "JSON", "LaTeX"} <= labels
    told = [code.value for code in at.code]
    assert any(text.startswith(("import roofline", "from roofline")) for text in told)
    assert any(text.startswith("roofline ") for text in told)
    for text in told:
        if text.startswith(("import", "from")):
            exec(compile(text, "shown", "exec"), {})  # ours, not a user's


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("value", ["../../etc/passwd", "<script>alert(1)</script>", "-1", "9" * 10_000])
def test_a_bad_address_gives_the_default_view_and_a_note(page: str, value: str) -> None:
    module = import_module(f"roofline.dashboard.{page}")
    names = [name for name in module.PARAMETERS if name not in ("search", "vendor")]
    at = open_page(page, None, **dict.fromkeys(names, value))
    assert not at.error
    assert metrics(at) == default_metrics(page)
    told = at.session_state[NOTES]
    assert set(names) - {"ep"} <= set(told)  # this model has no experts, so there is no such control
    assert all(len(got) < 80 for got, _, _ in told.values())


def test_sessions_share_nothing() -> None:
    first, second = open_page("page_kv", None, lengths="10,20"), open_page("page_kv")
    first.text_input(key="_kv_text").set_value("7,7,7").run()
    second.run()
    assert second.text_input(key="_kv_text").value == "403,96,241,30,176"


# --- Model step ---


def test_the_step_is_the_library_s() -> None:
    at = open_page("page_step", {**SMALL, "batch": 128, "context": 4096}, tp=4, kv_dtype="fp8")
    found = roofline.step("llama-3.1-8b", "h100-sxm", batch=128, context=4096, tp=4, kv_dtype="fp8")
    assert metrics(at)["TPOT at least"] == show(found["tpot_s"], "s")
    assert metrics(at)["Largest batch"] == number(found["memory"]["max_batch"])
    assert metrics(at)["Memory"] == "fits"
    bars = [row for row in cells_of(charts(at)[0]) if row["quantity"] == "FLOPs"]
    expected = {row["name"]: row["flops"] for row in found["kernels"] if row["flops"]}
    assert {row["kernel"]: row["value"] for row in bars} == pytest.approx(expected)
    helps = {row["rate"]: row["value"] for row in cells_of(charts(at)[1])}
    assert helps == pytest.approx({k.replace("_", " "): v for k, v in found["elasticities"].items()})


def test_the_ledger_sums_to_the_bound_on_one_device() -> None:
    """Without collectives the bars of time are the whole step."""
    at = open_page("page_step", SMALL)
    times = [row["value"] for row in cells_of(charts(at)[0]) if row["quantity"] == "time"]
    found = roofline.step("llama-3.1-8b", "h100-sxm", batch=64, context=8192)
    assert sum(times) == pytest.approx(found["time_lower_s"])


def test_only_degrees_that_divide_are_on_offer() -> None:
    at = open_page("page_step", {"model": "deepseek-v3.2", "hardware": ("h200-sxm",)}, tp=2, dp=4)
    offered = at.select_slider(key="ep").options
    assert offered == ["1", "2", "4", "8"]
    at.select_slider(key="tp").set_value(1)
    at.select_slider(key="dp").set_value(1).run()
    assert not at.error
    assert "ep" not in [s.key for s in at.select_slider]
    assert at.session_state["_refused"] == {}


def test_prefill_asks_for_a_prompt_and_tells_the_first_token() -> None:
    at = open_page("page_step", None, phase="oneshot", q_len=8192)
    found = roofline.step("llama-3.1-8b", "h100-sxm", phase="oneshot", batch=64, q_len=8192)
    assert metrics(at)["TTFT at least"] == show(found["ttft_s"], "s")
    assert "prompt" in " ".join(s.value for s in at.header)


def test_what_has_no_answer_is_said_in_place() -> None:
    at = open_page("page_step", {**SMALL, "roof": "flashmla"})
    with pytest.raises(RooflineError) as known:
        roofline.step("llama-3.1-8b", "h100-sxm", roof="flashmla", batch=64, context=8192)
    assert str(known.value) in errors(at)
    assert at.select_slider(key="tp").value == 1  # the controls are still there


def test_the_map_marks_the_step_that_is_shown() -> None:
    at = open_page("page_step", {**SMALL, "batch": 256, "context": 2048})
    rows = cells_of(charts(at)[2])
    here = [row for row in rows if row["here"]]
    found = roofline.step("llama-3.1-8b", "h100-sxm", batch=256, context=2048)
    assert [(row["batch"], row["context"]) for row in here] == [(256, 2048)]
    assert here[0]["time_lower_s"] == pytest.approx(found["time_lower_s"])
    assert len(rows) == 169


CASES = [
    ("llama-3.1-8b", "h100-sxm", {}),
    ("deepseek-v3.2", "h200-sxm", {"dp": 8, "ep": 8}),
    ("gpt-oss-120b", "b200-sxm", {"tp": 4}),
    ("nemotron-h-56b", "h200-sxm", {"tp": 8}),
    ("kimi-k3", "b200-sxm", {"tp": 4, "pp": 2, "ep": 4}),
    ("llama-3.1-8b", "h100-sxm", {"pp": 4, "micro_batches": 8}),
]


@settings(max_examples=12, deadline=None)
@given(
    case=some.sampled_from(CASES),
    phase=some.sampled_from([("decode", 1), ("decode", 4), ("chunked", 512), ("oneshot", 1)]),
    batch=some.integers(1, 5000),
    length=some.integers(1, 300_000),
)
def test_the_map_is_the_step_at_every_point(case: Any, phase: tuple[str, int], batch: int, length: int) -> None:
    """Law: arrays through the generated functions give what `roofline.step` gives number by number."""
    model, part, spread = case
    name, q_len = phase
    along = "q_len" if name == "oneshot" else "context"
    asked = {"phase": name, "q_len": q_len, **spread}
    row = step_map(model, part, batches=[1, batch], lengths=[7, length], **asked).rows[3]
    whole = roofline.step(model, part, **{**asked, "batch": batch, along: length})
    assert row["time_lower_s"] == pytest.approx(whole["time_lower_s"], rel=1e-12)
    assert (row["bound"], row["fits"]) == (whole["bound"], whole["fits"])


@pytest.mark.parametrize("model", list_models()[::6])
def test_degrees_are_those_the_plan_takes(model: str) -> None:
    """Brute count: every degree up to 64 is tried."""
    found = degrees(model, tp=1, dp=8)
    loaded = roofline.load_model(model)

    def takes(spread: Deployment) -> bool:
        try:
            return check_deployment(loaded, spread) == spread
        except BadValue as error:
            return error.name == "ep"  # another ep would do

    assert found["tp"] == [n for n in range(1, 65) if takes(Deployment(tp=n))]
    for ep in range(1, 9):
        try:
            check_deployment(loaded, Deployment(dp=8, ep=ep))
        except BadValue:
            assert ep not in found["ep"]
        else:
            assert ep in found["ep"]


# --- figures of the downloads ---


def test_figures_of_the_downloads_hold_the_numbers() -> None:
    from roofline.figures import styled, to_bytes
    from roofline.figures.ridges import plot_ridges
    from roofline.figures.step import plot_ledger, plot_step_map

    found = roofline.step("llama-3.1-8b", "h100-sxm", batch=64, context=4096, tp=2)
    mapped = step_map("llama-3.1-8b", "h100-sxm", batches=[1, 64], lengths=[256, 4096])
    table = {**hardware_table().document, "rows": hardware_table().rows[:12]}
    with styled("paper"):
        bars, cells_, ridges = plot_ledger(found.document), plot_step_map(mapped.document), plot_ridges(table)
        assert to_bytes(bars.figure, ".svg").startswith(b"<?xml")
    widths = {p.get_gid(): p.get_width() for p in bars.patches if p.get_gid()}
    total = sum(row["bytes"] for row in found["kernels"])
    for row in found["kernels"]:
        assert widths[f"bytes/{row['name']}"] == pytest.approx(100 * row["bytes"] / total)
    drawn = [text.get_text() for text in cells_.texts if text.get_gid()]
    assert drawn == [row["letter"] if row["fits"] else f"({row['letter']})" for row in mapped.rows]
    marks = {line.get_gid(): line.get_xdata()[0] for line in ridges.lines if line.get_gid()}
    expected = {f"ridge/{r['hardware']}": r["ridge_flop_per_byte"] for r in table["rows"] if r["ridge_flop_per_byte"]}
    assert marks == expected
