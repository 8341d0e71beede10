"""The dashboard: every page with its defaults, at its edges and with a hostile address; charts hold the library's
numbers.  AppTest runs the script without a browser; what only a browser shows is not tested here."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import roofline
from roofline.answers.put_in import heads_steps, put_in
from roofline.cli import app as cli_app
from roofline.cli import run
from roofline.dashboard import controls, frame, kit, visits
from roofline.dashboard.parameters import PARAMETERS
from roofline.dashboard.selection import Selection

pytestmark = pytest.mark.usefixtures("unfolded")

PACKAGE = Path(roofline.__file__).parent
ENTRY = PACKAGE / "dashboard" / "entry.py"
ROOT = PACKAGE.parent
PAGES = frame.PAGES
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
    assert at.title[0].value == PAGES[0].title
    assert [s.key for s in at.sidebar.selectbox] == ["model", "hardware", "hardware_2", "roof"]
    assert not at.warning
    assert at.get("vega_lite_chart")[0].proto.alt.startswith("Log-log roofline.")


def test_the_parameters_that_have_words_are_those_of_the_sidebar_and_the_pages() -> None:
    own = [set(page.module().PARAMETERS) for page in PAGES]
    assert not any(names & set(visits.SHARED) for names in own)
    assert set().union(visits.SHARED, *own) == set(PARAMETERS)


@pytest.mark.parametrize("module", [page.module().__name__ for page in PAGES])
def test_every_page_draws_and_has_its_footer(module: str) -> None:
    at = fine(page_of(module, Selection()))
    assert any(c.value.startswith("Roof: ") for c in at.caption), "no footer"
    assert all(c.proto.alt for c in at.get("vega_lite_chart")), "a chart without alternative text"


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


@pytest.mark.parametrize("module", ["page_heads", "page_crossover", "page_roofline"])
def test_the_lines_of_a_page_run(
    module: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where the figures of `roofline plot` go
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
