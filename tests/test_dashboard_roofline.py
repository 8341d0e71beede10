"""The page Roofline: numbers put in give the numbers of the step, the chart holds the library's, a click and the select
box agree, one command makes the view again."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sympy as sp
from streamlit.testing.v1 import AppTest

import roofline
from roofline import law
from roofline.answers.plot import plot
from roofline.answers.put_in_kernel import roof_steps, totals, work_steps, workload_numbers
from roofline.cli import run
from roofline.dashboard import charts, page_roofline
from roofline.dashboard.selection import Selection
from roofline.errors import UnknownName
from roofline.plan.numbers import resolve
from roofline.symbols import SYMBOLS

pytestmark = pytest.mark.usefixtures("unfolded")

TWO = ("h800-sxm", "b200-sxm")
STEPS = {
    "decode": {"phase": "decode", "batch": 64, "context": 8192},
    "drafts": {"phase": "decode", "batch": 8, "context": 1000, "drafts": 2},
    "spread": {"phase": "decode", "batch": 64, "context": 8192, "dp": 8, "ep": 8},
    "sliced": {"phase": "decode", "batch": 4, "context": 512, "tp": 2},
    "oneshot": {"phase": "oneshot", "batch": 2, "q_len": 4096},
    "chunked": {"phase": "chunked", "q_len": 1024, "context": 3000},
    "mixed": {"phase": "mixed", "batch": 16, "q_len": 512, "context": 4096, "prefill_context": 1000},
}
MODELS = ("deepseek-v3.2", "llama-3.1-8b", "gpt-oss-20b", "kimi-k3", "nemotron-3-nano-30b-a3b", "llama-4-scout")
RUNS = [
    *(("deepseek-v3.2", step) for step in STEPS),
    *((model, "decode") for model in MODELS[1:]),
    ("llama-3.1-8b", "mixed"),
    ("llama-3.1-8b", "sliced"),
    ("deepseek-v3", "oneshot"),
    ("deepseek-v3", "chunked"),
]  # fmt: skip


def found(model: str, step: str, hardware: Any = "h800-sxm", **more: Any) -> Any:
    return plot("step", model=model, hardware=hardware, **STEPS[step], **more)


@pytest.mark.parametrize(("model", "step"), RUNS)
def test_the_symbolic_totals_with_the_numbers_put_in_are_those_of_the_step(model: str, step: str) -> None:
    """Law: sympy's expressions at the quantities of a use give what the generated functions gave, for every kernel."""
    answer = found(model, step)
    numbers = workload_numbers(answer["inputs"])
    for row in answer.rows:
        exprs = totals(row["kernel"])
        assert exprs, row["name"]
        for name in ("flops", "vector_flops", "exps", "bytes", "link_bytes"):
            expr = exprs.get(name, sp.Integer(0))
            put = {s: sp.Float(resolve(s.name, row["values"], numbers), 30) for s in expr.free_symbols}
            assert float(expr.xreplace(put)) == pytest.approx(row[name] / row["count"], rel=1e-9), (row["name"], name)


def read(tex: str) -> float:
    """The value of a formula in which only numbers stand, as a reader would work it out."""
    tex = re.sub(r"\\ \\text\{[^}]*\}", "", tex).replace(r"\,", "").replace("&", " ")
    for name in ("min", "max"):
        tex = re.sub(rf"\\{name}\\left\(", f"{name}(", tex)
    tex = re.sub(r"\\left\\lceil\{?", "math.ceil(", tex)
    tex = re.sub(r"\}?\\right\\rceil", ")", tex)
    tex = re.sub(r"\\left\\lfloor\{?", "math.floor(", tex)
    tex = re.sub(r"\}?\\right\\rfloor", ")", tex)
    tex = tex.replace(r"\left(", "(").replace(r"\right)", ")").replace(r"\cdot", "*")
    while r"\frac" in tex:
        tex = fraction(tex)
    tex = tex.replace("^", "**").replace("{", "(").replace("}", ")")
    assert not re.search(r"\\|[a-zA-Z]", re.sub(r"math\.(ceil|floor)|min|max", "", tex)), tex
    return float(eval(tex, {"math": math}))


def fraction(tex: str) -> str:
    """The first fraction written as a quotient."""
    at = tex.index(r"\frac")
    first = closing(tex, at + len(r"\frac"))
    second = closing(tex, first)
    above, below = tex[at + len(r"\frac") : first], tex[first:second]
    return f"{tex[:at]}(({above[1:-1]})/({below[1:-1]})){tex[second:]}"


def closing(tex: str, start: int) -> int:
    """Where the group in braces ends that starts here."""
    depth = 0
    for at in range(start, len(tex)):
        depth += (tex[at] == "{") - (tex[at] == "}")
        if not depth:
            return at + 1
    raise AssertionError(tex)


def steps_of(formula: str) -> list[list[str]]:
    """The steps of each quantity in a formula of several lines, letters first."""
    inner = formula.removeprefix(r"\begin{aligned} ").removesuffix(r" \end{aligned}")
    parts: list[list[str]] = []
    for line in inner.split(r" \\[0.3em] "):
        left, _, right = line.replace(r"&\leftarrow", "&=").partition("&=")
        if left.strip():
            parts.append([])
        parts[-1].append(right.strip())
    return parts


@pytest.mark.parametrize(("model", "step"), RUNS)
def test_what_is_shown_can_be_worked_out(model: str, step: str) -> None:
    """The LaTeX itself is read as arithmetic: numbers put in give the value below them, to the six digits shown."""
    answer = found(model, step)
    read_off = 0
    for row in answer.rows:
        sections = (work_steps(row, answer["inputs"]), roof_steps(row, answer["rates"]["h800-sxm"], answer["roofs"]))
        for formula in (f for section in sections for f in section.formulas if f.startswith(r"\begin")):
            for steps in steps_of(formula):
                values = [read(text) for text in steps[1:]]
                read_off += len(values)
                for one, other in pairwise(values):
                    assert one == pytest.approx(other, rel=2e-4, abs=1e-15), (row["name"], steps)
    assert read_off > 6 * len(answer.rows)


def test_the_steps_end_at_the_numbers_of_the_table() -> None:
    answer = found("deepseek-v3.2", "decode", hardware=TWO)
    for row in answer.rows:
        work, on = work_steps(row, answer["inputs"]), roof_steps(row, answer["rates"][row["hardware"]], answer["roofs"])
        ends = {
            text.split("&")[0].split("{aligned} ")[1].strip(): text
            for text in work.formulas + on.formulas
            if text.startswith(r"\begin")
        }
        told = (("F", "flops", row["count"]), ("Q", "bytes", row["count"]), ("I", "intensity_flop_per_byte", 1),
                (r"\Phi", "attainable_flop_per_s", 1), (r"t_{\downarrow}", "time_lower_s", row["count"]))  # fmt: skip
        for letter, key, runs in told:
            if row[key]:
                assert read(steps_of(ends[letter])[-1][-1]) == pytest.approx(row[key] / runs, rel=1e-5)
        assert any(line.startswith("Source: ") for line in work.lines)
        assert any(line.startswith("Left out: ") for line in work.lines)


def test_a_point_lies_on_the_law() -> None:
    answer = found("llama-3.1-8b", "oneshot", hardware=TWO, roof="all")
    roofs = {(r["hardware"], r["roof"], r["precision"]): r for r in answer["roofs"]}
    bound = law.attainable()
    for p in answer["points"]:
        r = roofs[p["hardware"], p["roof"], p["precision"]]
        at = {
            "peak": r["peak_flop_per_s"],
            "bandwidth": r["bandwidth_byte_per_s"],
            "intensity": p["intensity_flop_per_byte"],
        }
        assert p["attainable_flop_per_s"] == pytest.approx(
            float(bound.xreplace({SYMBOLS[k]: v for k, v in at.items()}))
        )
        assert p["roof_fraction"] == pytest.approx(p["attainable_flop_per_s"] / r["peak_flop_per_s"], rel=1e-12)
        assert p["attained_flop_per_s"] <= p["attainable_flop_per_s"] * (1 + 1e-12)
    for chip in TWO:  # shares are of the time of the kernels, so they add to one
        assert math.fsum(row["share"] for row in answer.rows if row["hardware"] == chip) == pytest.approx(1, rel=1e-9)
    assert {r["roof"] for r in answer["roofs"]} > {"datasheet"}
    alone = found("llama-3.1-8b", "oneshot", hardware=TWO)
    assert {r["roof"] for r in alone["roofs"]} == {"datasheet"}
    assert [p["share"] for p in alone["points"]] == [p["share"] for p in answer["points"]]


@pytest.mark.parametrize("step", STEPS)
def test_rows_are_the_kernels_of_the_step(step: str) -> None:
    answer, whole = found("deepseek-v3.2", step), roofline.step("deepseek-v3.2", "h800-sxm", **STEPS[step])
    keys = ("name", "flops", "bytes", "link_bytes", "time_lower_s", "share", "bound")
    longest = sorted(whole["kernels"], key=lambda k: -k["time_lower_s"])
    assert [[row[k] for k in keys] for row in answer.rows] == [[row[k] for k in keys] for row in longest]
    assert answer["whole"][0]["time_lower_s"] == whole["time_lower_s"]
    assert answer["whole"][0]["bound"] == whole["bound"]


def test_an_unknown_colour_is_refused() -> None:
    with pytest.raises(UnknownName, match="color"):
        found("llama-3.1-8b", "decode", color="red")


def opened(selection: Selection = Selection(), **address: str) -> AppTest:  # noqa: B008  frozen
    """The page alone, as an address opens it."""

    def script(selection):  # its source alone is run
        from dataclasses import replace

        import streamlit as st

        from roofline.dashboard import controls, kit, page_roofline

        chosen = replace(selection, model=st.session_state.get("model", selection.model))
        with kit.guarded():
            page_roofline.page(chosen)
        st.session_state["told"] = controls.refusals()

    at = AppTest.from_function(script, args=(selection,), default_timeout=60)
    for name, value in address.items():
        at.query_params[name] = value
    at.run()
    assert not at.exception, [e.message for e in at.exception]
    assert not at.error, [e.value for e in at.error]
    return at


def spec(at: AppTest) -> dict[str, Any]:
    (chart,) = at.get("vega_lite_chart")
    return json.loads(chart.proto.spec)  # type: ignore[no-any-return]


def layer(at: AppTest, field: str) -> list[dict[str, Any]]:
    return next(x["data"]["values"] for x in spec(at)["layer"] if field in x["data"]["values"][0])


@pytest.mark.parametrize("chips", [("h200-sxm", "b200-sxm"), ("v100-sxm-32gb",)])
@pytest.mark.parametrize("model", ["llama-3.1-8b", "glm-5", "mixtral-8x7b"])
def test_the_chart_holds_the_numbers_of_the_library(model: str, chips: tuple[str, ...]) -> None:
    at = opened(Selection(model=model, hardware=chips, roof="datasheet", batch=32, context=4096), dp="1")
    shown = {(r["hardware"], r["name"], r["precision"]): r for r in layer(at, "share")}
    for chip in chips:
        whole = roofline.step(model, chip, batch=32, context=4096)
        expected = {r["name"]: r for r in whole["kernels"] if r["flops"] and r["bytes"]}
        mine = {name: r for (hardware, name, _), r in shown.items() if hardware == chip}
        assert mine.keys() == expected.keys()
        for name, r in mine.items():
            if sum(k["name"] == name for k in whole["kernels"]) == 1:
                assert r["x"] == pytest.approx(expected[name]["intensity_flop_per_byte"], rel=1e-12)
                assert r["share"] == pytest.approx(expected[name]["share"], rel=1e-12)


@pytest.mark.parametrize("chips", [("h800-sxm",), TWO])
def test_the_page_explains_the_kernel_of_the_address(chips: tuple[str, ...]) -> None:
    selection = Selection(hardware=chips)
    at = opened(selection, kernel="sparse core, MQA mode")
    answer = found("deepseek-v3.2", "decode", hardware=chips, roof="all", dp=16, ep=16)
    rows = [row for row in answer.rows if row["name"] == "sparse core, MQA mode"]
    shown = [x.value.replace(page_roofline.STRUT, "") for x in at.latex]
    expected = [*work_steps(rows[0], answer["inputs"]).formulas]
    for row in rows:
        expected += roof_steps(row, answer["rates"][row["hardware"]], answer["roofs"]).formulas
    assert [re.sub(r"^\$\$|\$\$$", "", text).strip() for text in shown] == expected
    assert [p["told"] for p in layer(at, "share")].count(True) == len(chips)
    assert at.selectbox(key="kernel").value == "sparse core, MQA mode"


def test_without_a_kernel_the_page_says_how_to_get_one() -> None:
    at = opened()
    assert not at.latex
    assert sum("Click a point" in c.value for c in at.caption) == 1


def test_a_kernel_that_the_model_does_not_have_gives_way() -> None:
    assert opened(kernel="head").selectbox(key="kernel").value == "head"
    at = opened(kernel="sparse core, MQA mode")
    at.session_state["model"] = "llama-3.1-8b"
    assert at.run().selectbox(key="kernel").value == "none"
    assert not at.session_state["told"], "the user chose a model, which is no mistake in the address"
    at = opened(kernel="<b>no such kernel</b>")
    assert at.selectbox(key="kernel").value == "none"
    assert any(note.startswith("kernel in the address") for note in at.session_state["told"])


@pytest.mark.parametrize("phase", ["decode", "oneshot", "chunked", "mixed"])
def test_every_phase_has_its_chart(phase: str) -> None:
    at = opened(phase=phase, dp="1")
    (alt,) = [c.proto.alt for c in at.get("vega_lite_chart")]
    assert f"{phase} step" in alt
    assert "Ridges in FLOP/B" in alt


def test_the_lines_of_the_page_make_its_chart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = opened(Selection(hardware=TWO), dp="8", kv_dtype="fp8")
    python, cli = [c.value for c in at.code][-2:]
    names: dict[str, Any] = {}
    exec(python.replace("roofline.plot(", "made = roofline.plot("), names)
    shown = layer(at, "share")
    assert {(p["name"], p["hardware"], p["x"], p["share"]) for p in shown} == {
        (p["name"], p["hardware"], p["intensity_flop_per_byte"], p["share"]) for p in names["made"]["points"]
    }
    (line,) = cli.splitlines()
    assert run([*line.split()[1:], "--json", "-o", str(tmp_path / "same.svg")]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["points"] == json.loads(names["made"].to_json())["points"]
    assert made["roofs"] == json.loads(names["made"].to_json())["roofs"]
    assert (tmp_path / "same.svg").stat().st_size > 10_000


@pytest.mark.parametrize("chips", [("h800-sxm",), TWO, ("b200-sxm", "v100-sxm-32gb")])
def test_labels_of_ridges_keep_their_distance(chips: tuple[str, ...]) -> None:
    """On each side of the roofs two labels are a line apart at least, whatever the width."""
    data = found("deepseek-v3.2", "decode", hardware=chips, roof="all").data
    drawn = charts.roofline_spec(data)
    low, high = drawn["layer"][0]["encoding"]["y"]["scale"]["domain"]
    marks = next(x["data"]["values"] for x in drawn["layer"] if "align" in x["data"]["values"][0])
    assert len(marks) == len(data["roofs"])
    for side in ("left", "right"):
        mine = [m for m in marks if m["align"] == side]
        heights = [math.log(m["y"] / low) / math.log(high / low) * charts.HEIGHT - m["dy"] for m in mine]
        by_chip = {m["roof"].split()[0]: [] for m in mine}
        for m, height in zip(mine, heights, strict=True):
            by_chip[m["roof"].split()[0]].append(height)
        for stack in by_chip.values():
            assert all(abs(a - b) >= charts.LINE - 0.2 for a, b in pairwise(stack))
            assert all(0 < h < charts.HEIGHT - 5 for h in stack)


def test_a_click_chooses_the_kernel_and_zooming_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    page: Any = page_roofline

    class Event:
        def __init__(self, visit: int, *names: str) -> None:
            self.selection = {"pick": [{"name": name, "visit": visit} for name in names], "zoom": {}}

    state: dict[str, Any] = {page.CHART: Event(0, "head")}
    monkeypatch.setattr(page.st, "session_state", state)
    page._clicked()
    assert state["kernel"] == "head"
    state["kernel"] = "norm"  # chosen in the box; a zoom then tells the old click again
    page._clicked()
    assert state["kernel"] == "norm"
    state[page.CHART] = Event(1, "head")  # the same point once more
    page._clicked()
    assert state["kernel"] == "head"
    state[page.CHART] = Event(2)  # beside the points
    page._clicked()
    assert state["kernel"] == "head"
