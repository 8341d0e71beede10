"""The dashboard: every page with its defaults, at its edges and with a hostile address; charts hold the library's
numbers.  AppTest runs the script without a browser; what only a browser shows is not tested here."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import roofline
from roofline.answers.crossover import crossover
from roofline.answers.live import crossover_live, heads_live
from roofline.answers.plotted_step import step_roofline
from roofline.answers.put_in import heads_steps, put_in
from roofline.cli import app as cli_app
from roofline.cli import run
from roofline.dashboard import controls, crossover_chart, frame, kit
from roofline.dashboard.selection import Selection

PACKAGE = Path(roofline.__file__).parent
ENTRY = PACKAGE / "dashboard" / "entry.py"
ROOT = PACKAGE.parent
PAGES = tuple(frame.page_modules())
HOSTILE = (
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "![x](http://example.org/x.png)",
    "9" * 10_000,
    "-1",
    "NaN",
    "",
)


def draw(**address: Any) -> AppTest:
    """A page as a fresh browser gets it from an address."""
    at = AppTest.from_file(str(ENTRY), default_timeout=60)
    for name, value in address.items():
        at.query_params[name] = value
    return at.run()


def page_of(module: str, selection: Selection, **address: Any) -> AppTest:
    """One page without the frame."""

    def script(module, selection):  # its source alone is run, so no names of this file
        from importlib import import_module

        import streamlit as st

        from roofline.dashboard import controls, kit

        with kit.guarded():
            import_module(module).page(selection)
        st.session_state["told"] = controls.refusals()

    at = AppTest.from_function(script, args=(module, selection), default_timeout=60)
    for name, value in address.items():
        at.query_params[name] = value
    return at.run()


def specs(at: AppTest) -> list[dict[str, Any]]:
    return [json.loads(c.proto.spec) for c in at.get("vega_lite_chart")]


def records(spec: dict[str, Any], field: str) -> list[dict[str, Any]]:
    """The records of the first layer whose data have a field; Streamlit may have moved them to named datasets."""
    for layer in spec["layer"]:
        rows = layer["data"].get("values") or spec.get("datasets", {}).get(layer["data"].get("name"), [])
        if rows and field in rows[0]:
            return rows
    raise AssertionError(f"no layer with {field}")


def fine(at: AppTest) -> AppTest:
    assert not at.exception, [e.message for e in at.exception]
    assert not at.error, [e.value for e in at.error]
    return at


def test_the_frame_draws_its_first_page_with_the_shared_choices() -> None:
    at = fine(draw())
    assert at.title[0].value == PAGES[0].TITLE
    assert [s.key for s in at.sidebar.selectbox] == ["model", "hardware", "hardware_2", "roof"]
    assert not at.warning
    assert at.get("vega_lite_chart")[0].proto.alt.startswith("Log-log roofline.")


@pytest.mark.parametrize("module", PAGES, ids=lambda m: m.PATH)
def test_every_page_keeps_the_contract(module: Any) -> None:
    assert module.TITLE
    assert module.PATH.isidentifier()
    assert not set(module.PARAMETERS) & set(frame.SHARED)


@pytest.mark.parametrize("module", [m.__name__ for m in PAGES])
def test_every_page_draws_and_has_its_footer(module: str) -> None:
    at = fine(page_of(module, Selection()))
    assert any(c.value.startswith("Roof: ") for c in at.caption), "no footer"
    assert all(c.proto.alt for c in at.get("vega_lite_chart")), "a chart without alternative text"


@pytest.mark.parametrize("chips", [("h200-sxm", "b200-sxm"), ("v100-sxm-32gb",)])
@pytest.mark.parametrize("model", ["llama-3.1-8b", "glm-5", "mixtral-8x7b"])
def test_the_roofline_chart_holds_the_numbers_of_the_library(model: str, chips: tuple[str, ...]) -> None:
    chosen = Selection(model=model, hardware=chips, roof="datasheet", batch=32, context=4096)
    (spec,) = specs(fine(page_of("roofline.dashboard.page_roofline", chosen)))
    shown = {(r["hardware"], r["name"], r["precision"]): r for r in records(spec, "share")}
    for chip in chips:
        step = roofline.step(model, chip, batch=32, context=4096)
        expected = {r["name"]: r for r in step["kernels"] if r["flops"] and r["bytes"]}
        mine = {name: r for (hardware, name, _), r in shown.items() if hardware == chip}
        assert mine.keys() == expected.keys()
        for name, r in mine.items():
            if sum(k["name"] == name for k in step["kernels"]) == 1:
                assert r["x"] == pytest.approx(expected[name]["intensity_flop_per_byte"], rel=1e-12)
                assert r["share"] == pytest.approx(expected[name]["share"], rel=1e-12)


def test_the_points_of_a_step_lie_on_the_roof_of_their_precision() -> None:
    found = step_roofline("deepseek-v3.2", ["h800-sxm", "b200-sxm"], batch=64, context=8192)
    roofs = {(r["hardware"], r["roof"], r["precision"]): r for r in found["roofs"]}
    assert len(found["points"]) > 20
    for p in found["points"]:
        r = roofs[p["hardware"], p["roof"], p["precision"]]
        on_slope = r["bandwidth_byte_per_s"] * p["intensity_flop_per_byte"]
        assert p["attainable_flop_per_s"] == pytest.approx(min(r["peak_flop_per_s"], on_slope), rel=1e-12)
        assert p["roof_fraction"] == pytest.approx(p["attainable_flop_per_s"] / r["peak_flop_per_s"], rel=1e-12)
    for chip in ("h800-sxm", "b200-sxm"):  # shares are of the time of the kernels, so they add to one
        assert math.fsum(r["share"] for r in found.rows if r["hardware"] == chip) == pytest.approx(1, rel=1e-9)


def test_the_head_count_page_shows_the_head_count_of_flashmla() -> None:
    """136.70: 865 TFLOP/s over 3.35 TB/s, FlashMLA docs/20250422-new-kernel-deep-dive.md; two decimals are shown."""
    at = fine(page_of("roofline.dashboard.page_headcount", Selection(hardware=("h800-sxm",), roof="flashmla")))
    (spec,) = specs(at)
    assert [round(r["x"], 2) for r in records(spec, "told")] == [136.70]
    assert any(r"= 136.70" in m.value for m in at.latex)


def test_a_slider_moves_the_number_to_what_the_library_gives() -> None:
    at = fine(page_of("roofline.dashboard.page_headcount", Selection(roof="datasheet")))
    at.slider(key="latent").set_value(256)
    fine(at.run())
    expected = roofline.heads("h800-sxm", roof="datasheet", latent=256).rows[0]["heads_exact"]
    assert records(specs(at)[0], "told")[0]["x"] == pytest.approx(expected, rel=1e-12)
    at.query_params["heads"] = "16"  # what the dragged slider leaves in the address on release
    fine(at.run())
    nearest = roofline.chips(16, roof="datasheet", latent=256).rows[0]["hardware"]
    assert at.dataframe[0].value.iloc[0, 0] == nearest


@pytest.mark.parametrize("heads", [1, 256])
@pytest.mark.parametrize(("latent", "rope"), [(64, 0), (2048, 256)])
def test_the_head_count_page_at_its_edges(heads: int, latent: int, rope: int) -> None:
    fine(page_of("roofline.dashboard.page_headcount", Selection(), heads=heads, latent=latent, rope=rope, q_len=16))


def test_the_crossover_page_shows_the_published_lengths() -> None:
    """5,274 and 51,318: one rate ratio, 0.47, puts the crossings inside the limits of vLLM's table at TP 1 and at TP 8
    (pull request 48770); the chart holds the exact roots, hence the tight tolerance."""
    at = page_of("roofline.dashboard.page_crossover", Selection(), rate_ratio="0.47", kernel_heads="128", tp=["1", "8"])
    (spec,) = specs(fine(at))
    assert [round(r["x"]) for r in records(spec, "sides")] == [5274, 51318]
    shown = records(spec, "curve")
    at_root = [r["y"] for r in shown if r["x"] == records(spec, "sides")[0]["x"]]
    assert min(abs(y / records(spec, "sides")[0]["y"] - 1) for y in at_root) < 1e-9


@pytest.mark.parametrize("phase", ["oneshot", "chunked", "decode", "shared-prefix"])
@pytest.mark.parametrize("cost", ["flops", "time"])
def test_the_crossover_page_in_every_phase(phase: str, cost: str) -> None:
    at = fine(page_of("roofline.dashboard.page_crossover", Selection(context=4096), phase=phase, cost=cost))
    assert specs(at)


def test_a_model_without_a_latent_gets_the_reason_and_no_trace() -> None:
    at = page_of("roofline.dashboard.page_crossover", Selection(model="llama-3.1-8b"))
    assert not at.exception
    assert len(at.error) == 1
    assert "no latent" in at.error[0].value.replace("\\", "")


def test_a_deep_link_restores_the_view() -> None:
    at = fine(
        draw(model="glm-5", hardware="b200-sxm", hardware_2="h200-sxm", roof="datasheet", batch="8", context="65536")
    )
    assert not at.warning
    assert at.sidebar.selectbox(key="model").value == "glm-5"
    assert at.sidebar.select_slider(key="context").value == 65536
    assert {r["hardware"] for r in records(specs(at)[0], "share")} == {"b200-sxm", "h200-sxm"}


@pytest.mark.parametrize("value", HOSTILE, ids=lambda v: v[:12] or "empty")
@pytest.mark.parametrize("name", ["model", "hardware", "roof", "batch", "q_len"])
def test_a_refused_parameter_leaves_the_default_and_a_note(name: str, value: str) -> None:
    at = fine(draw(**{name: value}))
    assert at.sidebar.selectbox(key="model").value == Selection().model
    (note,) = at.warning
    assert f"{name} in the address".replace("_", "\\_") in note.value
    assert len(note.value) < 600
    assert not re.search(r"(?<!\\)[<>!\[\]()*_`$:]", note.value.replace("address: got", "", 1)), (
        "Markdown is not escaped"
    )


def test_an_unknown_parameter_is_named_and_ignored() -> None:
    at = fine(draw(frobnicate="1"))
    assert "frobnicate" in at.warning[0].value


def test_a_note_goes_when_the_user_chooses() -> None:
    at = draw(batch="many")
    assert at.warning
    at.sidebar.select_slider(key="batch").set_value(128)
    assert not fine(at.run()).warning


def test_an_internal_error_shows_an_id_and_no_trace(caplog: pytest.LogCaptureFixture) -> None:
    def script() -> None:
        from roofline.dashboard import kit

        with kit.guarded():
            raise ZeroDivisionError("secret place")

    at = AppTest.from_function(script).run()
    (shown,) = at.error
    assert "secret" not in shown.value
    assert not at.exception
    mark = shown.value.split("Internal error ")[1][:8]
    assert mark in caplog.text
    assert "secret place" in caplog.text


def test_ten_sessions_share_nothing() -> None:
    several = [draw(batch=str(2**k)) for k in range(10)]
    assert [fine(at.run()).sidebar.select_slider(key="batch").value for at in several] == [2**k for k in range(10)]


@pytest.mark.parametrize(
    ("control", "good", "bad"),
    [
        (controls.slider("latent", 64, 2048, 512, 64), "512", "513000"),
        (controls.slider("rate_ratio", 0.1, 2, 1, 0.01), "0.47", "nan"),
        (controls.steps("batch", (1, 2, 4), 1), "4", "3"),
        (controls.choice("phase", ("decode", "oneshot"), "decode"), "oneshot", "Decode"),
        (controls.switch("skip"), "true", "1"),
        (controls.text("requests", longest=5), "12345", "123456"),
    ],
    ids=lambda x: getattr(x, "kind", None),
)
def test_a_control_knows_what_it_takes(control: controls.Control, good: str, bad: str) -> None:
    assert control.refuses([good]) == ""
    assert control.refuses([bad])


def test_the_lines_that_reproduce_a_view_do() -> None:
    python, cli = kit.call_lines(
        "chips", 64, named=("heads",), roof="datasheet", latent=512, w_kv=None, defaults={"latent": 512}
    )
    assert python == "import roofline\nroofline.chips(64, roof='datasheet')"
    assert cli == "roofline chips --heads 64 --roof datasheet"
    assert run(cli.split()[1:]) == 0


@pytest.mark.parametrize("module", ["page_headcount", "page_crossover", "page_roofline"])
def test_the_lines_of_a_page_run(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    at = fine(page_of(f"roofline.dashboard.{module}", Selection(hardware=("h200-sxm",), roof="datasheet")))
    python, cli = [c.value for c in at.code][-2:]
    exec(python, {})
    for line in cli.splitlines():
        assert run(line.split()[1:]) == 0, capsys.readouterr().err


def test_numbers_are_put_into_the_formula() -> None:
    row = roofline.heads("h800-sxm", roof="flashmla")
    told = heads_steps(row.rows[0], row["inputs"], 128).formulas
    assert told[0].endswith(r"= 241.778\ \text{FLOP/B}"), "17/9 of 128 heads, the long-context limit"
    assert r"\frac{2 \cdot 128 \cdot 1 \cdot \left(2 \cdot 512 + 64\right)}{1\,152}" in told[0]
    from roofline.symbols import sym

    assert put_in(sym.peak, {"peak": 8.65e14}) == r"8.65 \cdot 10^{14}"


def test_the_crossover_chart_keeps_outside_marks_below_its_curves() -> None:
    data = roofline.plot("crossover", model="deepseek-v3.2").data
    spec = crossover_chart.crossover_spec(data)
    low, high = spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    lanes = [layer["encoding"]["y"]["value"] for layer in spec["layer"] if "value" in layer["encoding"]["y"]]
    least = min(data["domain"]["cost_flop"])
    at = spec["height"] * (math.log(high / least) / math.log(high / low))  # pixel of the lowest cost
    assert len(lanes) == len([m for m in data["marks"] if m["items"]])
    assert min(lanes) > at


def test_both_configurations_are_the_same() -> None:
    """`streamlit run app.py` reads the one beside app.py, `roofline app` the one in the package."""
    own = PACKAGE / "dashboard" / ".streamlit" / "config.toml"
    beside = ROOT / ".streamlit" / "config.toml"
    if not (ROOT / "app.py").exists():
        pytest.skip("an installed package has no app.py beside it")
    assert own.read_text() == beside.read_text()


def test_the_server_listens_on_this_machine_only_and_tells_nobody() -> None:
    told = cli_app.command("8501", "127.0.0.1")
    assert "--server.address=127.0.0.1" in told
    assert "--browser.gatherUsageStats=false" in told
    assert Path(told[told.index("run") + 1]).is_file()


@pytest.mark.parametrize("port", ["0", "65536", "x", "-1", "80.5", "9" * 30])
def test_a_bad_port_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["app", f"--port={port}"]) == 2
    assert "port" in capsys.readouterr().err


class Math:
    """The functions of JavaScript that the generated source calls, so that Python can run it."""

    min, max, sqrt, pow = staticmethod(min), staticmethod(max), staticmethod(math.sqrt), staticmethod(pow)


def called(script: dict[str, Any], **free: float) -> float:
    """What a browser computes from a generated formula."""
    value = eval(script["source"], {"Math": Math}, {**script["values"], **free})
    assert isinstance(value, (int, float))
    return value


@pytest.mark.parametrize("heads", [1, 64, 128, 200])
def test_the_script_of_the_head_count_is_the_formula(heads: int) -> None:
    """17/9 FLOP/B a head at latent 512, rope 64 and two bytes an element: arXiv:2405.04434 sec. 2.1, exact."""
    shape = roofline.heads("h800-sxm", roof="flashmla")["inputs"]
    assert called(heads_live(shape, ""), heads=heads) == pytest.approx(17 / 9 * heads, rel=1e-12)


@pytest.mark.parametrize("options", [
    {"phase": "oneshot"},
    {"phase": "oneshot", "kernel_heads": 128, "tp": 8},
    {"phase": "oneshot", "cost": "time", "hardware": "h800-sxm", "roof": "datasheet"},
    {"phase": "chunked", "context": 4096},
], ids=lambda o: " ".join(map(str, o.values())))  # fmt: skip
@pytest.mark.parametrize("ratio", [0.47, 1.0, 1.3])
def test_the_dragged_curves_meet_where_the_library_says(options: dict[str, Any], ratio: float) -> None:
    found = crossover("deepseek-v3.2", rate_ratio=ratio, **options)
    for row, case in zip(found.rows, found.cases, strict=True):
        if row["value"] is None:
            continue
        first, second = crossover_live(case, row["unknown"])
        at = {row["unknown"]: row["value"], "rate_ratio": ratio}
        assert called(first, **at) == pytest.approx(called(second, **at), rel=1e-9)
        off = {**at, row["unknown"]: row["value"] * 1.5}
        assert called(first, **off) != pytest.approx(called(second, **off), rel=1e-3), "equal everywhere proves nothing"
