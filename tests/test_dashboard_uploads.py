"""A model or an accelerator of one's own: read on the page that takes the file, on offer on every page of the session,
gone in no other way than by choosing another."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from own_part import PART
from streamlit.testing.v1 import AppTest

import roofline
from roofline.cli import run
from roofline.errors import BadFile
from roofline.models import load_model
from roofline.units import show

pytestmark = pytest.mark.usefixtures("unfolded")

GOOD = (Path(roofline.__file__).parent / "data" / "models" / "llama-3.1-8b.json").read_bytes()
TPOT = "TPOT at least"


def open_page(page: str = "step", **address: Any) -> AppTest:
    """A page beside the sidebar; `at.session_state["page"]` is the page of the next run."""

    def app(page: str) -> None:  # its source alone is run
        from importlib import import_module

        import streamlit as st

        from roofline.dashboard import frame, kit

        selection = frame.shared_selection()
        with kit.guarded():
            import_module(f"roofline.dashboard.page_{st.session_state.get('page', page)}").page(selection)

    at = AppTest.from_function(app, args=(page,), default_timeout=60)
    for name, value in address.items():
        at.query_params[name] = str(value)
    return fine(at.run())


def fine(at: AppTest) -> AppTest:
    assert not at.exception
    assert not at.error, [e.value for e in at.error]
    return at


def go(at: AppTest, page: str) -> AppTest:
    at.session_state["page"] = page
    return fine(at.run())


def upload(at: AppTest, name: str, content: bytes) -> AppTest:
    return at.file_uploader[0].set_value((name, content, "application/octet-stream")).run()


def metrics(at: AppTest) -> dict[str, str]:
    return {m.label: m.value for m in at.metric}


def errors(at: AppTest) -> str:
    return " ".join(e.value for e in at.error).replace("\\", "")


def tpot(model: str = "llama-3.1-8b", part: Any = "h800-sxm", **options: Any) -> str:
    return show(roofline.step(model, part, batch=64, context=8192, **options)["tpot_s"], "s")


def lines(at: AppTest) -> tuple[str, list[str]]:
    """The Python text, and the command line's words after the program."""
    python, cli = [code.value for code in at.code][-2:]
    return python, cli.splitlines()[0].split()


# --- a model ---


def test_an_uploaded_model_is_shown_at_once_and_on_every_page() -> None:
    at = upload(open_page(), "config.json", GOOD)
    assert metrics(fine(at))[TPOT] == tpot()
    assert at.sidebar.selectbox(key="model").value == "config.json"
    assert "config.json" in at.success[0].value.replace("\\", "")
    go(at, "roofline")
    assert any("uploaded, decode step" in text.value.replace("\\", "") for text in at.markdown)
    go(at, "kv")
    tp = at.select_slider(key="tp").value
    rows = next(frame.value for frame in at.dataframe if "tokens held" in frame.value)
    alone = roofline.kv_capacity("llama-3.1-8b", "h800-sxm", tp=tp, max_model_len=8192, utilization=0.9)
    assert rows["tokens held"][0] == alone["tokens"]
    at.sidebar.selectbox(key="model").set_value("deepseek-v3.2").run()
    go(at, "step")
    assert metrics(at)[TPOT] != tpot()
    at.sidebar.selectbox(key="model").set_value("config.json").run()
    assert metrics(at)[TPOT] == tpot(), "the file is still on offer"


def test_the_lines_name_the_uploaded_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = upload(open_page(), "config.json", GOOD)
    (tmp_path / "config.json").write_bytes(GOOD)
    monkeypatch.chdir(tmp_path)
    python, words = lines(at)
    assert show(eval(python.splitlines()[1], {"roofline": roofline})["tpot_s"], "s") == metrics(at)[TPOT]
    assert run(words[1:]) == 0


def test_a_bad_file_in_place_of_a_good_one_leaves_the_good_one() -> None:
    """A browser takes the old file away before it sends the new one."""
    at = upload(open_page(), "config.json", GOOD)
    shown = metrics(at)
    at.file_uploader[0].set_value(None).run()
    assert metrics(fine(at)) == shown
    upload(at, "../../config.json", b'{"model_type": "llama", "x": ')
    assert "config.json: " in errors(at)
    assert "The last good file stays in use" in errors(at)
    assert "/tmp" not in errors(at)
    assert metrics(at) == shown
    at.file_uploader[0].set_value(None).run()
    fine(at)


def test_a_link_to_an_uploaded_model_says_that_it_is_not_here() -> None:
    at = open_page(model="config.json")
    assert at.sidebar.selectbox(key="model").value == "deepseek-v3.2"
    assert "model" in at.session_state["_refused"]


def test_a_file_that_is_too_large_is_refused_by_the_server_too() -> None:
    """The widget's limit is the browser's; what is sent past it meets the same one here."""
    at = open_page()
    before = metrics(at)
    upload(at, "config.json", b" " * (1 << 20) + b"{}")
    assert "config.json: got 1048578 bytes, expected at most 1 MB" in errors(at)
    assert metrics(at) == before


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"[" * 100_000, b"\xff\xfe{}", b'{"hidden_size": NaN}', bytes(range(256))]
)
def test_a_file_that_is_no_config_is_told_and_changes_nothing(content: bytes, tmp_path: Path) -> None:
    """The error of the command line, word for word."""
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(BadFile) as known:
        load_model(str(path))
    at = open_page()
    before = metrics(at)
    upload(at, "config.json", content)
    assert str(known.value).replace(f"{tmp_path}{os.sep}", "") in errors(at)
    assert metrics(at) == before


def test_an_internal_error_in_a_file_is_an_id_and_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    from roofline.dashboard import page_step

    def breaks(path: str) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(page_step, "load_model", breaks)
    at = upload(open_page(), "config.json", GOOD)
    assert not at.exception
    assert "Internal error" in errors(at)
    assert "secret" not in errors(at)


def test_sessions_do_not_share_files() -> None:
    upload(open_page(), "config.json", GOOD)
    assert "config.json" not in open_page().sidebar.selectbox(key="model").options


# --- accelerators ---


@pytest.mark.parametrize("page", ["roofline", "heads", "crossover", "step", "kv", "hardware"])
def test_an_uploaded_accelerator_is_on_offer_on_every_page(page: str) -> None:
    at = upload(open_page("hardware"), "mine.yaml", PART.encode())
    at.sidebar.selectbox(key="hardware").set_value("my-part").run()
    go(at, page)
    at.sidebar.selectbox(key="hardware_2").set_value("h200-sxm").run()
    fine(at)
    assert at.sidebar.selectbox(key="hardware").value == "my-part"


def test_an_uploaded_accelerator_gives_its_numbers_and_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = upload(open_page("hardware", model="llama-3.1-8b"), "mine.yaml", PART.encode())
    at.sidebar.selectbox(key="hardware").set_value("my-part").run()
    go(at, "step")
    (tmp_path / "mine.yaml").write_text(PART)
    monkeypatch.chdir(tmp_path)
    mine = roofline.load_catalog(["mine.yaml"])["my-part"]
    assert metrics(at)[TPOT] == tpot(part=mine)
    python, words = lines(at)
    assert show(eval(python.splitlines()[1], {"roofline": roofline})["tpot_s"], "s") == metrics(at)[TPOT]
    assert words[0] == "ROOFLINE_HARDWARE=mine.yaml"
    monkeypatch.setenv("ROOFLINE_HARDWARE", "mine.yaml")
    assert run(words[2:]) == 0
    monkeypatch.delenv("ROOFLINE_HARDWARE")
    go(at, "heads")
    python, words = lines(at)
    assert "my-part" in {row["hardware"] for row in eval(python.splitlines()[1], {"roofline": roofline}).rows}
    assert "my-part" in set(at.dataframe[0].value["accelerator"])
    assert run(words[1:]) == 0
