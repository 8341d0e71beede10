"""The dashboard: server time of a rerun; in headless Chromium start, first page, key press to painted chart, dragging.

Needs Debian's chromium and `pip install playwright`.  Medians of 15 on one machine.  Server time is that of a whole run
of a page for a new value, sidebar included, without a browser.  Key to paint is read from the clock inside the page:
from the event of the key to the last change of the page's chart.

    python benchmarks/bench_dashboard.py [page ...]
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import NamedTuple

from common import ROOT, machine, median, report

sys.path.insert(0, str(ROOT / "tests"))
import browser as real

ROUNDS = 15
PAINT_MS, SERVER_MS, HEADS_MS, DRAG_MS, HEALTHY_S, FIRST_S = 250, 50, 15, 50, 3, 3


class Move(NamedTuple):
    """What is moved on a page, and what is repainted for it."""

    key: str  # of the control
    values: tuple[float, ...]  # that it takes one after the other where the server alone is timed; none: its options
    chart: str
    press: tuple[str, str] = ("ArrowRight", "ArrowLeft")  # one way and back, so that every press changes something
    address: tuple[tuple[str, str], ...] = ()


POWERS = tuple(2**k for k in range(13))
MOVES = {
    "roofline": Move("batch", POWERS, ".st-key-roofline_chart [data-testid=stVegaLiteChart]"),
    "heads": Move("latent", tuple(range(64, 64 * 20, 64)), ".live svg"),
    "crossover": Move("context", tuple(256 * n for n in POWERS), ".live svg", address=(("phase", "chunked"),)),
    "step": Move("batch", POWERS, ".st-key-step_bars [data-testid=stVegaLiteChart]"),
    "kv": Move("page_size", (16, 32, 64, 128, 8, 4), ".st-key-kv_grid [data-testid=stVegaLiteChart]"),
    "hardware": Move("vendor", (), ".st-key-ridges [data-testid=stVegaLiteChart]", press=(" ", " ")),
}


PAINTED = """(chart) => {
  const app = document.querySelector('[data-testid="stApp"]');
  window.painted = null;
  let began = null, last = null;
  document.addEventListener('keydown', (e) => { began = e.timeStamp; }, { capture: true, once: true });
  const drawn = new MutationObserver(() => { if (began !== null) last = performance.now(); });
  drawn.observe(chart, { subtree: true, childList: true, attributes: true });
  const frame = () => {
    if (last !== null && app.dataset.testScriptState === 'notRunning' && performance.now() - last > 200) {
      drawn.disconnect();
      window.painted = last - began;
    } else requestAnimationFrame(frame);
  };
  frame();
}"""
DRAG = """(slider) => {
  window.frames_ms = [];
  slider.addEventListener('input', (e) => {
    requestAnimationFrame(() => setTimeout(() => window.frames_ms.push(performance.now() - e.timeStamp)));
  });
}"""


def painted(tab: real.Tab, page: str) -> list[float]:
    """Milliseconds from a key press to the last change of the page's chart."""
    from playwright.sync_api import TimeoutError

    move = MOVES[page]
    tab.open(page, **dict(move.address))
    control = tab.page.locator(f".st-key-{move.key}").locator("input[type=range], button[data-variant=pills]").first
    control.focus()
    found: list[float] = []
    for round_ in range(3 * ROUNDS):
        tab.page.locator(move.chart).first.evaluate(PAINTED)
        tab.page.keyboard.press(move.press[round_ % 2])
        with suppress(TimeoutError):  # a press that paints nothing new is told below
            tab.page.wait_for_function("window.painted !== null", timeout=4000)
            found.append(tab.page.evaluate("window.painted"))
        if len(found) == ROUNDS + 2:
            break
        tab.page.wait_for_timeout(400)
    if round_ + 1 > len(found):
        print(f"# {page}: {round_ + 1 - len(found)} of {round_ + 1} presses painted nothing new")
    return found[2:]  # the first two fill the caches of what does not change


def served(page: str) -> list[float]:
    """Milliseconds of the server for a rerun with a new value of the page's control, without a browser."""
    from streamlit.testing.v1 import AppTest

    def script(module):  # its source alone is run, so no names of this file
        from importlib import import_module

        from roofline.dashboard import frame, kit

        selection = frame.shared_selection()
        with kit.guarded():
            import_module(module).page(selection)

    move = MOVES[page]
    at = AppTest.from_function(script, args=(f"roofline.dashboard.page_{page}",), default_timeout=60)
    for name, value in move.address:
        at.query_params[name] = value
    at.run()
    found = []
    for round_ in range(ROUNDS + 2):
        widget = next(w for w in [*at.select_slider, *at.slider, *at.button_group] if w.key == move.key)
        if move.values:
            widget.set_value(move.values[round_ % len(move.values)])
        else:
            widget.set_value(widget.options[round_ % len(widget.options)])
        start = time.perf_counter()
        at.run()
        found.append((time.perf_counter() - start) * 1e3)
    return found[2:]


def dragged(tab: real.Tab, page: str) -> list[float]:
    """Milliseconds from each move of a real mouse to the frame that shows it."""
    tab.open(page)
    slider = tab.page.locator(".live input[type=range]")
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    slider.evaluate(DRAG)
    tab.page.mouse.move(box["x"] + box["width"] * 0.2, middle)
    tab.page.mouse.down()
    for at in range(60):
        tab.page.mouse.move(box["x"] + box["width"] * (0.2 + at / 100), middle)
    tab.page.mouse.up()
    tab.settled()
    return list(tab.page.evaluate("window.frames_ms"))


def told(what: str, milliseconds: list[float], limit: float) -> None:
    middle = median(milliseconds)
    spread = f"{middle:.0f} ms ({min(milliseconds):.0f}-{max(milliseconds):.0f})"
    report(what, spread, f"{limit:g} ms", middle <= limit)


def main(pages: list[str]) -> None:
    if why := real.missing():
        sys.exit(why)
    print(machine())
    for page in pages:
        told(f"{page}: server time of a rerun", served(page), HEADS_MS if page == "heads" else SERVER_MS)
    with real.browser() as chromium, real.serving() as server:
        report("start to healthy", f"{server.healthy_s:.2f} s", f"{HEALTHY_S} s", server.healthy_s <= HEALTHY_S)
        with real.tab(chromium, server) as tab:
            first = tab.opened_s("roofline")
            report("healthy to the first page, all drawn", f"{first:.2f} s", f"{FIRST_S} s", first <= FIRST_S)
        for page in pages:
            with real.tab(chromium, server) as tab:
                told(f"{page}: key press to painted chart", painted(tab, page), PAINT_MS)
        for page in [page for page in ("heads", "crossover") if page in pages]:
            with real.tab(chromium, server) as tab:
                told(f"{page}: a frame while dragging", dragged(tab, page), DRAG_MS)


if __name__ == "__main__":
    main(sys.argv[1:] or list(MOVES))
