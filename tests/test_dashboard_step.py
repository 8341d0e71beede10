"""The page Model step: its controls, what a click on the map sets, what would hold a step that does not fit, and what
its downloads hold.  The other tests of the page are in test_dashboard_pages.py."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

pytest.importorskip("streamlit")
from hypothesis import given, settings
from hypothesis import strategies as some
from streamlit.testing.v1 import AppTest

import roofline
from roofline import tables
from roofline.answers.step_fit import larger_that_fit
from roofline.answers.step_map import degrees, step_map
from roofline.dashboard import page_step
from roofline.dashboard.controls import NOTES
from roofline.errors import BadValue
from roofline.models import list_models, load_model
from roofline.plan import Deployment, check_deployment
from roofline.units import number, show

pytestmark = pytest.mark.usefixtures("unfolded")

SMALL = {"model": "llama-3.1-8b", "hardware": ("h100-sxm",)}
LARGE = {"model": "deepseek-v3.2", "hardware": ("h200-sxm",)}


def open_page(selection: dict[str, Any] | None = None, **address: Any) -> AppTest:
    """The page with a selection and parameters of the address, run once."""

    def app(selection: dict) -> None:  # type: ignore[type-arg]  # its source alone is run
        import streamlit as st

        from roofline.dashboard.page_step import page
        from roofline.dashboard.selection import Selection

        page(Selection(**{**selection, **st.session_state.get("other", {})}))

    at = AppTest.from_function(app, args=(SMALL if selection is None else selection,), default_timeout=60)
    for name, value in address.items():
        at.query_params[name] = str(value)
    at.run()
    assert not at.exception
    return at


def metrics(at: AppTest) -> dict[str, str]:
    return {m.label: m.value for m in at.metric}


def refused(at: AppTest) -> dict[str, Any]:
    return dict(at.session_state[NOTES]) if NOTES in at.session_state else {}


def shown_code(at: AppTest) -> tuple[str, str]:
    python, cli = [code.value for code in at.code]
    return python, cli


def keys(at: AppTest) -> set[str]:
    return {w.key for w in [*at.select_slider, *at.selectbox] if w.key}


def cells_of(proto: Any) -> list[dict[str, Any]]:
    """The records of a chart, which travel as Arrow beside its spec."""
    import pyarrow as pa

    return pa.ipc.open_stream(proto.data.data).read_all().to_pylist()


# --- controls ---


def test_experts_start_on_sixteen_ranks_and_the_lines_say_so() -> None:
    at = open_page({"model": "deepseek-v3.2", "hardware": ("h800-sxm",)})
    found = roofline.step("deepseek-v3.2", "h800-sxm", dp=16, ep=16, batch=64, context=8192)
    assert metrics(at)["Memory"] == "fits"
    assert metrics(at)["TPOT at least"] == show(found["tpot_s"], "s")
    python, cli = shown_code(at)
    assert "dp=16, ep=16" in python
    assert "--dp 16 --ep 16" in cli
    assert "tp" not in cli


def test_another_model_starts_where_its_own_link_does() -> None:
    """Starts are left out of the address, so one that is left by changing the model has to be that of the model."""
    at = open_page({"model": "deepseek-v3.2", "hardware": ("h800-sxm",)})
    for model, dp in (("llama-3.1-8b", 1), ("deepseek-v3.2", 16)):
        at.session_state["other"] = {"model": model}
        at.run()
        assert at.select_slider(key="dp").value == dp
    at.select_slider(key="dp").set_value(8).run()
    at.session_state["other"] = {"model": "llama-3.1-8b"}
    at.run()
    assert at.select_slider(key="dp").value == 8  # chosen, and in the address


@pytest.mark.parametrize(
    ("selection", "address", "asked"),
    [
        (LARGE, {"drafts": 2}, {"drafts": 2, "dp": 16, "ep": 16}),
        (SMALL, {"drafts": 3, "weight_dtype": "fp8"}, {"drafts": 3, "weight_dtype": "fp8"}),
        (LARGE, {"tp": 4, "dp": 4, "ep": 8, "cp": 2}, {"tp": 4, "dp": 4, "ep": 8, "cp": 2}),
        (SMALL, {"tp": 2, "pp": 4}, {"tp": 2, "pp": 4}),
        (
            SMALL,
            {"phase": "mixed", "q_len": 512, "prefill_batch": 2, "prefill_context": 1024, "drafts": 1},
            {"phase": "mixed", "q_len": 512, "prefill_batch": 2, "prefill_context": 1024, "drafts": 1},
        ),
        (SMALL, {"phase": "chunked", "q_len": 1024}, {"phase": "chunked", "q_len": 1024}),
    ],
)
def test_every_control_reaches_the_library(selection: Any, address: Any, asked: Any) -> None:
    at = open_page(selection, **address)
    found = roofline.step(selection["model"], selection["hardware"][0], batch=64, context=8192, **asked)
    assert not at.error
    assert refused(at) == {}
    told = metrics(at)
    latency = ("TTFT at least", "ttft_s") if "ttft_s" in found.data else ("TPOT at least", "tpot_s")
    assert told[latency[0]] == show(found[latency[1]], "s")
    assert told["Largest batch"] == number(found["memory"]["max_batch"])
    python, _ = shown_code(at)
    again: dict[str, Any] = {}
    exec(compile(python.replace("roofline.step", "answer = roofline.step"), "shown", "exec"), again)
    assert again["answer"].data == found.data


def test_only_what_a_phase_takes_is_on_offer() -> None:
    rest = {"phase", "kv_dtype", "tp", "dp", "pp", "weight_dtype"}
    phases = {
        "decode": {"drafts"},
        "oneshot": {"q_len"},
        "chunked": {"q_len"},
        "mixed": {"q_len", "drafts", "prefill_batch", "prefill_context"},
    }
    at = open_page()
    for phase, own in phases.items():
        at.selectbox(key="phase").set_value(phase).run()
        assert not at.error
        assert keys(at) == rest | own
        assert refused(at) == {}


@pytest.mark.parametrize("model", ["llama-3.1-8b", "deepseek-v3.2"])
def test_the_row_format_of_a_latent_cache_is_on_offer_where_there_is_one(model: str) -> None:
    at = open_page({"model": model, "hardware": ("h200-sxm",)})
    assert ("fp8_row" in at.selectbox(key="kv_dtype").options) is (model == "deepseek-v3.2")


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ({"q_len": 4}, "q_len"),  # decode has 1 + drafts
        ({"phase": "oneshot", "q_len": 512, "drafts": 2}, "drafts"),
        ({"prefill_batch": 2}, "prefill_batch"),
        ({"phase": "chunked", "q_len": 512, "prefill_context": 256}, "prefill_context"),
        ({"cp": 2}, "cp"),  # one copy of the cache on one rank
        ({"ep": 8}, "ep"),  # no experts
        ({"kv_dtype": "fp8_row"}, "kv_dtype"),
        ({"pp": 64}, "pp"),  # 32 layers
        ({"phase": "mixed", "q_len": 512, "prefill_batch": 0}, "prefill_batch"),
        ({"phase": "mixed", "q_len": 512, "prefill_context": -1}, "prefill_context"),
        ({"drafts": 9}, "drafts"),
        ({"drafts": "nan"}, "drafts"),
        ({"weight_dtype": "../x"}, "weight_dtype"),
    ],
)
def test_a_parameter_without_effect_or_out_of_range_is_told(address: dict[str, Any], told: str) -> None:
    at = open_page(None, **address)
    assert not at.error
    assert list(refused(at)) == [told]


@pytest.mark.parametrize(
    "address",
    [
        {"phase": "oneshot", "q_len": 128},
        {"phase": "oneshot", "q_len": 2**20},
        {"phase": "mixed", "q_len": 2**20, "prefill_batch": 256, "prefill_context": 2**20, "drafts": 8},
        {"pp": 32, "tp": 32, "dp": 64, "weight_dtype": "nvfp4", "kv_dtype": "int8"},
    ],
)
@pytest.mark.parametrize("load", [(1, 256), (4096, 2**20)])
def test_the_edges_of_every_control_have_an_answer(address: dict[str, Any], load: tuple[int, int]) -> None:
    at = open_page({**SMALL, "batch": load[0], "context": load[1]}, **address)
    assert not at.error
    assert refused(at) == {}
    assert len(at.metric) == 6


def test_two_accelerators_side_by_side() -> None:
    at = open_page({**LARGE, "hardware": ("h200-sxm", "b200-sxm")})
    rows = next(f.value for f in at.dataframe if "speed-up" in f.value.columns)
    alone = [
        roofline.step("deepseek-v3.2", part, dp=16, ep=16, batch=64, context=8192) for part in ("h200-sxm", "b200-sxm")
    ]
    assert list(rows["step at least [ms]"]) == pytest.approx([1e3 * a["time_lower_s"] for a in alone], rel=1e-5)
    assert list(rows["deployment"]) == ["dp=16 ep=16"] * 2


# --- what would hold it ---


@pytest.mark.parametrize(
    ("model", "part", "asked"),
    [
        ("deepseek-v3.2", "h200-sxm", {"batch": 64, "context": 8192}),
        ("deepseek-v3.2", "h800-sxm", {"batch": 4096, "context": 8192, "dp": 16, "ep": 16}),
        ("llama-3.1-405b", "h100-sxm", {"batch": 64, "context": 8192}),
        ("nemotron-h-56b", "h100-sxm", {"phase": "mixed", "q_len": 512, "batch": 64, "context": 8192}),
        ("llama-3.1-70b", "h100-sxm", {"batch": 8, "context": 2048, "weight_dtype": "fp8", "pp": 1}),
        ("deepseek-v3", "h100-sxm", {"batch": 8, "context": 2048, "pp": 2}),
    ],
)
def test_what_would_hold_it_does_and_nothing_smaller_of_its_kind(model: str, part: str, asked: dict[str, Any]) -> None:
    """Against the step itself, which weighs every deployment alone."""
    found = larger_that_fit(model, part, **asked)
    assert found
    assert [spread.gpus for spread in found] == sorted(spread.gpus for spread in found)
    for spread in found:
        assert roofline.step(model, part, **{**asked, **spread._asdict()})["fits"]
        raised = next(name for name in ("tp", "dp", "pp") if getattr(spread, name) != asked.get(name, 1))
        for degree in degrees(model)[raised]:
            ranks = {name: asked.get(name, 1) for name in ("tp", "dp")} | ({raised: degree} if raised != "pp" else {})
            if asked.get(raised, 1) < degree < getattr(spread, raised):
                for ep in degrees(model, **ranks)["ep"]:
                    assert not roofline.step(model, part, **{**asked, raised: degree, "ep": ep})["fits"]


def test_nothing_is_proposed_where_nothing_helps_or_nothing_is_known() -> None:
    assert larger_that_fit("deepseek-v3.2", "h800-sxm", batch=4096, context=2**20, dp=16, ep=16) == []
    unknown = next(i for i, part in roofline.load_catalog().items() if part.visible_bytes is None)
    assert larger_that_fit("llama-3.1-8b", unknown) == []


def test_a_step_that_does_not_fit_says_what_would() -> None:
    at = open_page({**LARGE, "hardware": ("h800-sxm",), "batch": 4096})
    told = " ".join(i.value for i in at.info).replace("\\", "")
    assert "DP 64 EP 64 (64 GPUs)" in told
    most = roofline.step("deepseek-v3.2", "h800-sxm", dp=16, ep=16, batch=4096, context=8192)["memory"]["max_batch"]
    assert f"a batch of at most {number(most)}" in told
    assert not open_page({**SMALL, "batch": 8}).info


# --- the map ---


CASES = [
    ("llama-3.1-8b", "h100-sxm", {"tp": 2}),
    ("deepseek-v3.2", "h200-sxm", {"tp": 4, "dp": 4, "ep": 16, "cp": 2}),
    ("nemotron-h-56b", "h200-sxm", {"tp": 8}),
    ("deepseek-v3", "b200-sxm", {"tp": 4, "pp": 3, "ep": 4}),
]


@settings(max_examples=16, deadline=None)
@given(
    case=some.sampled_from(CASES),
    phase=some.sampled_from(
        [
            {"phase": "decode", "drafts": 2},
            {"phase": "mixed", "q_len": 512},
            {"phase": "mixed", "q_len": 2048, "drafts": 1, "prefill_batch": 6, "prefill_context": 4096},
            {"phase": "chunked", "q_len": 512},
        ]
    ),
    batch=some.integers(1, 5000),
    context=some.integers(1, 300_000),
)
def test_the_map_is_the_step_with_drafts_and_in_a_mixed_step(case: Any, phase: Any, batch: int, context: int) -> None:
    """Law: arrays through the generated functions give what `roofline.step` gives number by number."""
    model, part, spread = case
    asked = {**phase, **spread}
    row = step_map(model, part, batches=[1, batch], lengths=[7, context], **asked).rows[3]
    whole = roofline.step(model, part, **{**asked, "batch": batch, "context": context})
    assert row["time_lower_s"] == pytest.approx(whole["time_lower_s"], rel=1e-12)
    assert (row["bound"], row["fits"]) == (whole["bound"], whole["fits"])


def test_the_map_weighs_every_stage() -> None:
    """Which stage of a pipeline is the fullest depends on the batch, as stages cache different layers."""
    asked = {"pp": 3, "context": 65536}
    at_one = roofline.step("nemotron-h-56b", "h100-sxm", batch=1, **asked)["memory"]["max_batch"]
    batches = [1, 36, 37, at_one]
    rows = step_map("nemotron-h-56b", "h100-sxm", batches=batches, lengths=[65536], pp=3).rows
    steps = [roofline.step("nemotron-h-56b", "h100-sxm", batch=batch, **asked) for batch in batches]
    assert [row["fits"] for row in rows] == [found["fits"] for found in steps]


@pytest.mark.parametrize("model", list_models()[::5])
def test_pipeline_and_context_degrees_are_those_the_plan_takes(model: str) -> None:
    """Brute count: every degree up to 64 is tried, at the largest tp and without experts' part in it."""
    loaded, tp = load_model(model), degrees(model)["tp"][-1]
    found = degrees(model, tp=tp)

    def takes(name: str, degree: int) -> bool:
        try:
            return bool(check_deployment(loaded, Deployment(tp=tp, ep=found["ep"][-1])._replace(**{name: degree})))
        except BadValue:
            return False

    assert found["cp"] == [n for n in range(1, 65) if takes("cp", n)]
    assert found["pp"] == [n for n in (1, 2, 4, 8, 16, 32, 64) if takes("pp", n)]


@pytest.mark.parametrize(
    ("phase", "cell", "expected"),
    [
        ("decode", {"batch": 256, "context": 2048}, {"batch": 256, "context": 2048}),
        ("mixed", {"batch": 1, "context": 256.0}, {"batch": 1, "context": 256}),
        ("oneshot", {"batch": 8, "q_len": 128}, {"batch": 8, "q_len": 128}),
    ],
)
def test_a_click_on_a_cell_sets_the_controls(phase: str, cell: Any, expected: Any, monkeypatch: Any) -> None:
    state: dict[str, Any] = {"step_map": {"selection": {"cell": [cell]}}}
    monkeypatch.setattr(page_step.st, "session_state", state)
    page_step._picked()
    assert {name: value for name, value in state.items() if name in ("batch", "context", "q_len")} == expected
    assert all(type(state[name]) is int for name in expected)


@pytest.mark.parametrize(
    "selection",
    [
        {},
        {"cell": []},
        {"cell": [{}]},
        {"cell": [{"batch": 3, "context": "8192"}]},
        {"cell": [{"batch": None, "context": [1]}]},
        {"cell": [{"batch": {"a": 1}, "tp": 8, "model": "x"}]},
        {"cell": "x"},
        {"cell": [["batch"]]},
        {"cell": {"batch": 64}},
    ],
)
def test_what_is_no_cell_sets_nothing(selection: Any, monkeypatch: Any) -> None:
    """A selection comes from the browser: it is user input."""
    state: dict[str, Any] = {"step_map": {"selection": selection}}
    monkeypatch.setattr(page_step.st, "session_state", state)
    page_step._picked()
    assert set(state) == {"step_map", page_step.VISIT}


def test_every_cell_of_the_map_is_a_value_of_the_sliders() -> None:
    from roofline.dashboard.frame import BATCHES, CONTEXTS
    from roofline.dashboard.step_controls import NEW_TOKENS

    for phase, lengths in (("decode", CONTEXTS), ("oneshot", NEW_TOKENS)):
        at = open_page(None, phase=phase)
        rows = cells_of(at.get("vega_lite_chart")[2].proto)
        along = "q_len" if phase == "oneshot" else "context"
        assert {row["batch"] for row in rows} == set(BATCHES)
        assert {row[along] for row in rows} == set(lengths)
        assert sum(row["here"] for row in rows) == 1


# --- downloads ---


@pytest.mark.parametrize("phase", [{}, {"phase": "mixed", "q_len": 512}, {"phase": "oneshot", "q_len": 2048}])
def test_every_download_opens_and_holds_the_shown_numbers(phase: dict[str, Any], monkeypatch: Any) -> None:
    """The functions that the buttons call, for the ledger and for the map."""
    made: dict[str, tuple[Any, Any]] = {}

    def take(name: str, answer: Any, figure: Any = None, **_: Any) -> None:
        made[name] = (answer, figure)

    monkeypatch.setattr(page_step.kit, "downloads", take)
    at = open_page(None, **phase)
    load = {"batch": 64, "context": 0 if phase.get("phase") == "oneshot" else 8192}
    found = roofline.step("llama-3.1-8b", "h100-sxm", **load, **phase)
    answer, figure = made["step"]
    rows = list(csv.DictReader(io.StringIO(tables.csv_text(answer))))
    assert [float(row["time_lower_s"]) for row in rows] == [row["time_lower_s"] for row in found["kernels"]]
    again = json.loads(answer.to_json())
    assert again["time_lower_s"] == found["time_lower_s"]
    assert again["kernels"] == json.loads(json.dumps(found["kernels"]))
    assert r"\begin{tabular}" in tables.latex(answer)
    assert show(found["time_lower_s"], "s") in figure().axes[0].get_title(loc="left") + figure().axes[0].get_title()
    shown = cells_of(at.get("vega_lite_chart")[2].proto)
    answer, figure = made["step-map"]
    rows = list(csv.DictReader(io.StringIO(tables.csv_text(answer))))
    assert [float(row["time_lower_s"]) for row in rows] == [row["time_lower_s"] for row in shown]
    letters = [text.get_text() for text in figure().axes[0].texts if text.get_gid()]
    assert letters == [row["letter"] if row["fits"] else f"({row['letter']})" for row in shown]
