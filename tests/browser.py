"""A dashboard in a real browser: one server of `roofline app`, Debian's Chromium through playwright, one tab a test.

`benchmarks/bench_dashboard.py` drives the same.  Nothing here waits a fixed time: a page is settled when Streamlit says
that its script is not running and every chart has been drawn.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

ROOT = Path(__file__).parent.parent
CHROMIUM = os.environ.get("ROOFLINE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PAGES = {"roofline": "", "heads": "heads", "crossover": "crossover", "step": "step", "kv": "kv", "hardware": "hardware"}
SETTLED = """() => {
  const app = document.querySelector('[data-testid="stApp"]');
  const each = (name, drawn) => [...document.querySelectorAll(`[data-testid="${name}"]`)].every(drawn);
  const still = app && app.dataset.testScriptState === 'notRunning' && document.querySelector('h1')
    && !document.querySelector('[data-testid="stSkeleton"]')
    && each('stBidiComponentIsolated', (c) => c.shadowRoot?.querySelector('.curve'))
    && each('stVegaLiteChart', (c) => !c.offsetParent || c.querySelector('svg, canvas'));
  window.stillSince = still ? window.stillSince ?? performance.now() : undefined;
  return still && performance.now() - window.stillSince > 100;
}"""
# Streamlit's page, opened by a deep link to a sub-page, first asks for these beside that page, then at the root.
STREAMLIT_404 = ("_stcore/health", "_stcore/host-config")


def finished(message: Any) -> bool:
    """Whether a message of the server tells that it has run the page."""
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

    return isinstance(message, bytes) and ForwardMsg.FromString(message).WhichOneof("type") == "script_finished"


def missing() -> str:
    """Why no browser can be had here, or nothing."""
    if CHROMIUM is None:
        return "no chromium on this machine (apt-get install chromium)"
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "playwright is not installed (pip install -e '.[e2e]')"
    return ""


@dataclass
class Server:
    """A running dashboard."""

    url: str
    log: Path
    healthy_s: float

    def address(self, page: str = "roofline", **parameters: Any) -> str:
        """The address of a page with parameters; a list gives a parameter several times."""
        query = urlencode({k: v for k, v in parameters.items() if v is not None}, doseq=True)
        return f"{self.url}/{PAGES[page]}" + (f"?{query}" if query else "")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(limit_s: float = 60) -> Iterator[Server]:
    """`roofline app` on a free port until the block ends."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "server.log"
        start = time.perf_counter()
        with log.open("wb") as told:
            process = subprocess.Popen(
                [sys.executable, "-m", "roofline", "app", f"--port={port}"], cwd=ROOT, stdout=told, stderr=told
            )
        try:
            url = f"http://127.0.0.1:{port}"
            while not _healthy(url):
                if process.poll() is not None or time.perf_counter() - start > limit_s:
                    raise RuntimeError(f"the dashboard did not start: {log.read_text()}")
                time.sleep(0.01)
            yield Server(url, log, time.perf_counter() - start)
        finally:
            process.terminate()
            process.wait(20)


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/_stcore/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextmanager
def browser() -> Iterator[Any]:
    """Headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield chromium
        finally:
            chromium.close()


@dataclass
class Tab:
    """A page in a browser of its own, with everything that it complained about or asked of other machines."""

    page: Any
    server: Server
    sockets: list[Any] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def open(self, page: str = "roofline", **parameters: Any) -> Tab:
        self.page.goto(self.server.address(page, **parameters))
        return self.settled()

    def opened_s(self, page: str) -> float:
        """Seconds until a page is drawn."""
        start = time.perf_counter()
        self.open(page)
        return time.perf_counter() - start

    def settled(self) -> Tab:
        self.page.wait_for_function(SETTLED, timeout=90_000)
        return self

    def rerun(self, act: Callable[[], Any]) -> Tab:
        """Do something that makes the server run the page, and wait until it has.

        The page itself does not tell: a run may be over before the browser has drawn that it began.
        """
        with self.sockets[-1].expect_event("framereceived", finished, timeout=90_000):
            act()
        return self.settled()

    def whole(self) -> None:
        """Make the window as high as the page, so that all of it is drawn."""
        high = self.page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
        self.page.set_viewport_size({"width": self.page.viewport_size["width"], "height": high + 40})
        self.settled()

    def metric(self, label: str) -> str:
        """The figure of a `st.metric`."""
        box = self.page.locator('[data-testid="stMetric"]').filter(
            has=self.page.locator('[data-testid="stMetricLabel"]', has_text=re.compile(f"^{re.escape(label)}$"))
        )
        return str(box.first.locator('[data-testid="stMetricValue"]').inner_text()).strip()

    def shows(self, label: str, value: str) -> None:
        """Wait until a `st.metric` has this figure."""
        text = re.compile(f"^{re.escape(label)}.*{re.escape(value)}$", re.DOTALL)
        self.page.locator('[data-testid="stMetric"]').filter(has_text=text).first.wait_for()

    def told(self, word: str) -> str:
        """The first message of the page that has a word in it, as soon as there is one."""
        message = self.page.locator('[data-testid="stAlert"]').filter(has_text=word).first
        message.wait_for()
        return str(message.inner_text())

    def download(self, name: str, suffix: str) -> bytes:
        """What a download button gives, made on the click."""
        button = self.page.locator(f".st-key-_download_{name}_{suffix} button").first
        if not button.count():
            self.unfold(f"download_{name}")
        with self.page.expect_download(timeout=90_000) as coming:
            button.click()
        return Path(coming.value.path()).read_bytes()

    def visit(self, title: str) -> None:
        """Go to another page by the navigation."""
        link = self.page.locator('[data-testid="stSidebarNavLink"]').filter(has_text=title)
        self.rerun(link.click)
        self.page.get_by_role("heading", name=title, exact=True, level=1).wait_for()

    def unfold(self, name: str) -> None:
        """Open a closed part of the page, whose content is made then."""
        self.rerun(lambda: self.page.locator(f".st-key-_{name} summary").first.click())

    def upload(self, name: str, content: bytes) -> None:
        """Give a file to the page's upload field."""
        field = self.page.locator('[data-testid="stFileUploaderDropzoneInput"]')
        field.set_input_files({"name": name, "mimeType": "application/octet-stream", "buffer": content})

    def slider(self, key: str) -> Any:
        """The handle of a Streamlit slider, by its key."""
        return self.page.locator(f".st-key-{key} input[type=range]").first

    def says(self, text: str) -> None:
        """Wait until the page shows a text."""
        self.page.locator('[data-testid="stMain"]').get_by_text(text).first.wait_for()

    def linked(self, *parameters: str) -> None:
        """Wait until the address holds these, such as batch=128; without any, until it holds none."""

        def holds(url: str) -> bool:
            given = urlsplit(url).query.split("&")
            return set(parameters) <= set(given) if parameters else given == [""]

        self.page.wait_for_url(holds)

    def query(self) -> str:
        return urlsplit(self.page.url).query


@contextmanager
def tab(chromium: Any, server: Server, width: int = 1280, height: int = 900, theme: str = "light") -> Iterator[Tab]:
    """A fresh browser context with one page."""
    context = chromium.new_context(
        viewport={"width": width, "height": height}, color_scheme=theme, accept_downloads=True
    )
    context.set_default_timeout(90_000)
    made = Tab(context.new_page(), server)

    def said(message: Any) -> None:
        source = (message.location or {}).get("url", "")
        if message.type == "error" and not source.endswith(STREAMLIT_404):
            made.complaints.append(f"{message.text} ({source})")

    def asked(request: Any) -> None:
        host = urlsplit(request.url).hostname
        if host not in ("127.0.0.1", "localhost", None):
            made.outside.append(request.url)

    made.page.on("websocket", lambda socket: made.sockets.append(socket))
    made.page.on("console", said)
    made.page.on("pageerror", lambda error: made.complaints.append(str(error)))
    made.page.on("request", asked)
    try:
        yield made
    finally:
        context.close()


@contextmanager
def tabs(chromium: Any, server: Server, count: int) -> Iterator[list[Tab]]:
    """Several browsers at once, which share nothing."""
    with ExitStack() as stack:
        yield [stack.enter_context(tab(chromium, server)) for _ in range(count)]
