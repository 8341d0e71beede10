"""The dashboard end to end in a real browser: what a person sees, drags, downloads, sends as a link, or uploads.

Skipped where there is no Chromium or no playwright (`pip install -e '.[e2e]'`).  With ROOFLINE_SCREENSHOTS=FOLDER every
page is kept as a picture, in both themes and at both widths.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import browser as real
import pytest
from own_part import PART

import roofline
from roofline.units import show

WHY_NOT = real.missing()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "-")
SHOTS = os.environ.get("ROOFLINE_SCREENSHOTS")
WIDE, NARROW = 1280, 400  # pixels
SIDEBAR = """(there) => {
  const right = document.querySelector('[data-testid="stSidebar"]')?.getBoundingClientRect().right ?? 0;
  return there ? right > 100 : right <= 1;
}"""
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]


@pytest.fixture(scope="session")
def server() -> Iterator[real.Server]:
    with real.serving() as running:
        yield running


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    with real.browser() as started:
        yield started


@pytest.fixture
def tab(chromium: Any, server: real.Server) -> Iterator[real.Tab]:
    with real.tab(chromium, server) as opened:
        yield opened
        assert opened.complaints == []
        assert opened.outside == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", real.PAGES)
def test_a_page_is_readable_by_everyone(chromium: Any, server: real.Server, page: str, theme: str) -> None:
    """Every view of a page, wide and narrow: no violation of WCAG 2.1 A and AA nor of axe's best practices, nothing
    wider than the window, no complaint, no request to another machine."""
    views = getattr(import_module(f"roofline.dashboard.page_{page}"), "VIEWS", (page,))
    with real.tab(chromium, server, theme=theme) as tab:
        tab.open(page)
        for width, order in (WIDE, views), (NARROW, views[::-1]):  # back again: a view less to open
            tab.page.set_viewport_size({"width": width, "height": 900})
            tab.page.wait_for_function(SIDEBAR, arg=width == WIDE)
            for view in order:
                if view != order[0]:
                    tab.rerun(tab.page.get_by_role("tab", name=view).click)
                name = page if view == views[0] else f"{page}-{view.lower().replace(' ', '-')}"
                _readable(tab, f"{name}-{theme}-{width}", width)
        assert tab.complaints == []
        assert tab.outside == []


def _readable(tab: real.Tab, name: str, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe

    tab.whole()
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        tab.page.screenshot(path=str(Path(SHOTS) / f"{name}.png"))
    found = Axe().run(tab.page, options={"runOnly": {"type": "tag", "values": RULES}})
    wrong = [(v["id"], [n["html"][:120] for n in v["nodes"][:3]]) for v in found.response["violations"]]
    assert wrong == []
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_key_moves_the_numbers_to_what_the_library_gives(tab: real.Tab) -> None:
    tab.open("step", model="llama-3.1-8b", hardware="h100-sxm", batch=64)
    tab.rerun(lambda: tab.slider("batch").press("ArrowRight"))
    found = roofline.step("llama-3.1-8b", "h100-sxm", batch=128, context=8192)
    tab.shows("TPOT at least", show(found["tpot_s"], "s"))
    tab.linked("batch=128")


def test_a_link_restores_the_view_in_another_browser(tab: real.Tab, chromium: Any, server: real.Server) -> None:
    tab.open("kv")
    field = tab.page.get_by_role("textbox", name="requests (lengths)")
    field.fill("1000,2000,17")
    tab.rerun(lambda: field.press("Enter"))
    tab.rerun(lambda: tab.slider("page_size").press("ArrowRight"))
    tab.rerun(lambda: tab.slider("reserve").press("ArrowRight"))
    tab.linked("lengths=1000%2C2000%2C17", "page_size=32", "reserve=1024")
    tab.shows("Pages", str(roofline.kv_pages([1000, 2000, 17], page_size=32)["pages"]))
    seen = {name: tab.metric(name) for name in ("Pages", "Held", "Fit paged")}
    with real.tab(chromium, server) as other:
        other.page.goto(tab.page.url)
        other.settled()
        assert {name: other.metric(name) for name in seen} == seen
        assert other.query() == tab.query()


def test_what_is_default_is_not_in_the_link(tab: real.Tab) -> None:
    tab.open("step", batch=128)
    tab.rerun(lambda: tab.slider("batch").press("ArrowLeft"))
    tab.linked()


def test_every_page_is_found_as_it_was_left(tab: real.Tab) -> None:
    """`tp` is one number here and several there, and each page keeps its own; so does the live slider."""
    tab.open("step", tp=2)
    tab.visit("MHA or MQA mode")
    assert tab.query() == ""
    tab.visit("Head count")
    tab.rerun(lambda: tab.page.locator(".live input[type=range]").press("ArrowRight"))
    tab.visit("Model step")
    tab.linked("tp=2")
    tab.visit("Head count")
    tab.linked("heads=65")
    tab.rerun(tab.page.go_back)
    tab.linked("tp=2")


def test_downloads_open_and_hold_the_numbers_shown(tab: real.Tab) -> None:
    tab.open("heads", hardware="h800-sxm", roof="flashmla")
    files = {suffix: tab.download("heads", suffix) for suffix in ("pdf", "svg", "png", "csv", "json", "tex")}
    assert files["pdf"].startswith(b"%PDF-")
    assert files["png"].startswith(b"\x89PNG\r\n")
    assert b"</svg>" in files["svg"]
    assert "136.7" in files["svg"].decode()
    every = roofline.chips(64, roof="flashmla").rows
    rows = list(csv.DictReader(io.StringIO(files["csv"].decode())))
    assert [row["hardware"] for row in rows] == [row["hardware"] for row in every]
    assert json.loads(files["json"])["rows"][0]["hardware"] == every[0]["hardware"]
    assert r"\frac" in files["tex"].decode()


@pytest.mark.parametrize(
    ("page", "unknown"), [("heads", "heads"), ("crossover", "rate_ratio")], ids=["heads", "crossover"]
)
def test_a_dragged_chart_moves_before_the_release(tab: real.Tab, page: str, unknown: str) -> None:
    """Curves and words follow the finger with no request; after the release Python has the same number."""
    tab.open(page)
    slider = tab.page.locator(".live input[type=range]")
    said = tab.page.locator(".live output")
    before, address = said.inner_text(), tab.page.url
    box = slider.bounding_box()
    assert box
    tab.page.mouse.move(box["x"] + box["width"] * 0.45, box["y"] + box["height"] / 2)
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] / 2, steps=8)
    dragged = said.inner_text()
    assert dragged != before
    assert tab.page.url == address, "the server was told before the release"
    tab.rerun(tab.page.mouse.up)
    value = float(slider.input_value())
    tab.linked(f"{unknown}={value:g}")
    assert said.inner_text() == dragged
    if page == "heads":
        intensity = 17 / 9 * value  # arXiv:2405.04434 sec. 2.1: 17/9 FLOP/B a head at latent 512, rope 64, bf16
        assert f"{intensity:.2f}" in dragged
        tab.says(f"Which chips suit {value:g} heads")
    else:
        found = roofline.crossover("deepseek-v3.2", rate_ratio=value).rows[0]["value"]
        told = float(re.search(r"([\d,]+) tokens", dragged).group(1).replace(",", ""))  # type: ignore[union-attr]
        assert told == pytest.approx(found, abs=0.51)


def test_a_live_slider_moves_by_key(tab: real.Tab) -> None:
    tab.open("heads")
    slider = tab.page.locator(".live input[type=range]")
    tab.rerun(lambda: slider.press("ArrowRight"))
    tab.linked("heads=65")
    tab.says("Which chips suit 65 heads")


def test_a_bad_upload_is_told_in_place_and_the_last_good_one_stays(tab: real.Tab) -> None:
    tab.open("step")
    good = (Path(roofline.__file__).parent / "data" / "models" / "llama-3.1-8b.json").read_bytes()
    tab.page.get_by_text("A model of your own").click()
    tab.rerun(lambda: tab.upload("config.json", good))
    tab.says("Read: config.json")
    bad = b'{"model_type": "llama", "hidden_size": -1}'
    tab.upload("config.json", bad)
    assert "config.json" in tab.told("expected")
    tab.settled()
    tab.says("Read: config.json")


def test_a_bad_hardware_file_is_told_with_its_place(tab: real.Tab) -> None:
    tab.open("hardware")
    tab.page.get_by_text("Parts of your own").click()
    tab.rerun(lambda: tab.upload("mine.yaml", PART.encode()))
    tab.says("Valid: my-part")
    wrong = PART.replace("4.0e+12", "fast").encode()
    tab.upload("mine.yaml", wrong)
    told = tab.told("expected")
    assert "mine.yaml" in told
    assert "bandwidth_byte_per_s" in told


def test_a_click_on_a_point_explains_its_kernel_every_time(tab: real.Tab) -> None:
    tab.open("roofline")
    tab.whole()
    point = tab.page.locator(".st-key-roofline_chart .mark-symbol path").first
    tab.rerun(lambda: point.click(force=True))
    tab.page.locator(".katex").first.wait_for()
    (chosen,) = [given for given in tab.query().split("&") if given.startswith("kernel=")]
    box = tab.page.locator(".st-key-kernel input").first
    tab.rerun(lambda: (box.click(), box.fill("none"), tab.page.keyboard.press("Enter")))
    tab.linked()
    tab.rerun(lambda: point.click(force=True))
    tab.linked(chosen)


def test_an_uploaded_model_goes_with_its_user_to_other_pages(tab: real.Tab) -> None:
    tab.open("step")
    good = (Path(roofline.__file__).parent / "data" / "models" / "llama-3.1-8b.json").read_bytes()
    tab.page.get_by_text("A model of your own").click()
    tab.rerun(lambda: tab.upload("mine.json", good))
    tab.shows("TPOT at least", show(roofline.step("llama-3.1-8b", "h800-sxm", batch=64, context=8192)["tpot_s"], "s"))
    tab.visit("Roofline")
    tab.says("mine, decode step")
    tab.linked("model=mine.json")


@pytest.mark.parametrize("value", ["../../etc/passwd", "<script>alert(1)</script>", "x" * 10_000])
def test_a_hostile_link_shows_the_default_and_a_note(tab: real.Tab, value: str) -> None:
    said: list[str] = []
    tab.page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    tab.open("roofline", model=value, batch=value, nonsense=value)
    told = tab.page.locator('[data-testid="stAlert"]').first.inner_text()
    assert "model in the address" in told
    assert "nonsense" in told
    assert len(told) < 1500
    assert said == []
    assert tab.page.locator("script", has_text="alert(1)").count() == 0
    tab.says("deepseek-v3.2, decode step")


def test_ten_browsers_at_once_share_nothing(chromium: Any, server: real.Server) -> None:
    """Ten open pages, each moved by one key before any is looked at."""
    batches = [2**k for k in range(10)]
    with real.tabs(chromium, server, len(batches)) as opened:
        for tab, batch in zip(opened, batches, strict=True):
            tab.page.goto(
                tab.server.address("step", model="llama-3.1-8b", hardware="h100-sxm", batch=batch), wait_until="commit"
            )
        for tab in opened:
            tab.settled()
        for tab in opened:
            tab.slider("batch").press("ArrowRight")
        for tab, batch in zip(opened, batches, strict=True):
            found = roofline.step("llama-3.1-8b", "h100-sxm", batch=2 * batch, context=8192)
            tab.shows("TPOT at least", show(found["tpot_s"], "s"))
            assert (f"batch={2 * batch}&" in f"{tab.query()}&") == (2 * batch != 64), "64 is the default"
