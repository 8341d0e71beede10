"""The dashboard in headless Chromium: start, first page, key press to painted chart, server time, and dragging.

Needs Debian's chromium and `pip install playwright`.  Medians of 15 on one machine.  Key to paint is read from the
clock inside the page, from the event of the key to the frame after the last change of the page's chart; server time is
from the frame of the web socket that asks for a rerun to the last one that answers, as the browser's network layer
stamps them, hence without the browser's own work.

    python benchmarks/bench_dashboard.py [page ...]
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from common import ROOT, machine, median, report

sys.path.insert(0, str(ROOT / "tests"))
import browser as real

ROUNDS = 15
PAINT_MS, SERVER_MS, HEADS_MS, DRAG_MS, HEALTHY_S, FIRST_S = 250, 50, 15, 50, 3, 3


class Move(NamedTuple):
    """What is pressed on a page, and what is repainted for it."""

    key: str  # of the control
    press: tuple[str, str]  # one way and back, so that every press changes something
    chart: str
    address: tuple[tuple[str, str], ...] = ()


MOVES = {
    "roofline": Move("batch", ("ArrowRight", "ArrowLeft"), ".st-key-roofline_chart"),
    "heads": Move("latent", ("ArrowRight", "ArrowLeft"), ".live svg"),
    "crossover": Move("context", ("ArrowRight", "ArrowLeft"), ".live svg", (("phase", "chunked"),)),
    "step": Move("batch", ("ArrowRight", "ArrowLeft"), ".st-key-step_bars"),
    "kv": Move("page_size", ("ArrowRight", "ArrowLeft"), ".st-key-kv_grid"),
    "hardware": Move("vendor", (" ", " "), ".st-key-ridges"),
}
PAINTED = """([control, chart]) => {
  const app = document.querySelector('[data-testid="stApp"]');
  window.painted = null;
  let began = null, last = null, ran = false;
  document.addEventListener('keydown', () => { began = performance.now(); }, { capture: true, once: true });
  const seen = new MutationObserver(() => { last = performance.now(); });
  seen.observe(document.querySelector(chart), { subtree: true, childList: true, attributes: true });
  const frame = () => {
    const state = app.dataset.testScriptState;
    ran = ran || (began !== null && state === 'running');
    if (ran && state === 'notRunning' && last !== null && performance.now() - last > 150) {
      seen.disconnect(); window.painted = last - began;
    } else requestAnimationFrame(frame);
  };
  frame();
}"""
DRAG = """() => {
  window.frames_ms = [];
  document.querySelector('.live input[type=range]').addEventListener('input', (e) => {
    const start = e.timeStamp;
    requestAnimationFrame(() => setTimeout(() => window.frames_ms.push(performance.now() - start)));
  });
}"""


def pressed(tab: real.Tab, page: str) -> tuple[list[float], list[float]]:
    """Milliseconds from key to paint, and of the server, of a page's control."""
    move = MOVES[page]
    tab.open(page, **dict(move.address))
    frames: list[tuple[str, float]] = []
    session = tab.page.context.new_cdp_session(tab.page)
    session.send("Network.enable")
    for event in ("webSocketFrameSent", "webSocketFrameReceived"):
        session.on(f"Network.{event}", lambda told, event=event: frames.append((event, told["timestamp"])))
    control = tab.page.locator(f".st-key-{move.key}").locator("input[type=range], button[kind=pills]").first
    control.focus()
    paint, server = [], []
    for round_ in range(ROUNDS + 2):
        frames.clear()
        tab.page.evaluate(PAINTED, [move.key, move.chart])
        tab.page.keyboard.press(move.press[round_ % 2])
        tab.page.wait_for_function("window.painted !== null")
        asked = next(at for event, at in frames if event == "webSocketFrameSent")
        told = [at for event, at in frames if event == "webSocketFrameReceived" and at > asked]
        if round_ >= 2:  # the first two fill the caches of what does not change
            paint.append(tab.page.evaluate("window.painted"))
            server.append((told[-1] - asked) * 1e3)
    return paint, server


def dragged(tab: real.Tab, page: str) -> list[float]:
    """Milliseconds from each move of a real mouse to the frame that shows it."""
    tab.open(page)
    box = tab.page.locator(".live input[type=range]").bounding_box()
    middle = box["y"] + box["height"] / 2
    tab.page.evaluate(DRAG)
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
    with real.browser() as chromium, real.serving() as server:
        report("start to healthy", f"{server.healthy_s:.2f} s", f"{HEALTHY_S} s", server.healthy_s <= HEALTHY_S)
        with real.tab(chromium, server) as tab:
            first = tab.opened_s("roofline")
            report("healthy to the first page, all drawn", f"{first:.2f} s", f"{FIRST_S} s", first <= FIRST_S)
        for page in pages:
            with real.tab(chromium, server) as tab:
                paint, server_ms = pressed(tab, page)
                told(f"{page}: key press to painted chart", paint, PAINT_MS)
                told(f"{page}: server time of a rerun", server_ms, HEADS_MS if page == "heads" else SERVER_MS)
        for page in {"heads", "crossover"} & set(pages):
            with real.tab(chromium, server) as tab:
                told(f"{page}: a frame while dragging", dragged(tab, page), DRAG_MS)


if __name__ == "__main__":
    main(sys.argv[1:] or list(MOVES))
