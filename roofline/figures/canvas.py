"""A blank figure in one of the styles, and a finished figure as reproducible bytes.

Figures are `matplotlib.figure.Figure` objects and never pyplot state.  Styles start from matplotlib's own defaults, so
that a user's matplotlibrc changes nothing; rcParams are global to the process, hence the lock.
"""

from __future__ import annotations

import io
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib import rc_context, style
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure

from roofline.errors import BadValue, NoAnswer, UnknownName
from roofline.tables import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

STYLES = ("paper", "screen", "dark")
SUFFIXES = (".pdf", ".svg", ".png", ".pgf")
TEX_ENGINES = ("pdflatex", "xelatex", "lualatex")
WIDTHS = (2.5, 20.0)
TALL = 12.0  # height while a figure is built: everything has room
_LOCK = threading.RLock()
_FIXED: Any = {
    "text.hinting": "none",
    "pdf.fonttype": 42,
    "svg.hashsalt": "roofline",
    "svg.fonttype": "path",
    "pgf.rcfonts": False,
    "pgf.preamble": r"\def\mathdefault#1{#1}\usepackage[utf8]{inputenc}",
}
_METADATA: dict[str, dict[str, Any]] = {
    ".pdf": {"metadata": {"Creator": "roofline", "Producer": None, "CreationDate": None}},
    ".svg": {"metadata": {"Creator": "roofline", "Date": None}},
    ".png": {"metadata": {"Software": None}},
    ".pgf": {},
}


@contextmanager
def styled(name: str = "paper") -> Iterator[None]:
    """Draw in a style: "paper", "screen" or "dark"."""
    if name not in STYLES:
        raise UnknownName("style", name, STYLES)
    sheet = Path(__file__).parent.parent / "styles" / f"{name}.mplstyle"
    with _LOCK, style.context(["default", str(sheet)]), rc_context(_FIXED):
        yield


def blank(width: float = 6.9) -> Axes:
    """Axes of a new figure `width` inches wide; `roofline.figures.parts.finish` gives it its height."""
    if not WIDTHS[0] <= width <= WIDTHS[1]:
        raise BadValue("width", width, f"{WIDTHS[0]:g} to {WIDTHS[1]:g} inches")
    figure = Figure(figsize=(width, TALL), layout="constrained")
    return figure.add_subplot()


def check_suffix(path: str | os.PathLike[str]) -> str:
    """The suffix of a figure file, or an error that lists the forms; PGF without a TeX engine has no answer."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise BadValue("-o", str(path), "a file name that ends in " + ", ".join(SUFFIXES))
    if suffix == ".pgf" and not any(map(shutil.which, TEX_ENGINES)):
        engines = ", ".join(TEX_ENGINES)
        raise NoAnswer(f"{path}: PGF measures its text with TeX, and none of {engines} is installed; .pdf needs none")
    return suffix


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure; the suffix says the form, the file appears whole or not at all, equal figures are equal bytes."""
    suffix = check_suffix(path)
    write_bytes(path, to_bytes(figure, suffix))


def to_bytes(figure: Figure, suffix: str) -> bytes:
    """A figure as a file's content: ".pdf", ".svg", ".png" or ".pgf"; no date, no version, embedded fonts."""
    extra: Any = {}
    if suffix == ".pgf":
        extra = {"pgf.texsystem": next(e for e in TEX_ENGINES if shutil.which(e)), "font.family": "sans-serif"}
    buffer = io.BytesIO()
    with _LOCK, rc_context({**_FIXED, **extra}), _tex_safe(figure, suffix == ".pgf"):
        FigureCanvasBase(
            figure
        )  # a fresh canvas: text sizes that an earlier drawing measured are cached with the old one
        figure.savefig(buffer, format=suffix[1:], **_METADATA[suffix])
    return buffer.getvalue()


@contextmanager
def _tex_safe(figure: Figure, needed: bool) -> Iterator[None]:
    """For PGF: names such as mla_mqa with their underscore escaped, and put back afterwards."""
    from matplotlib.text import Text

    texts: list[tuple[Text, str]] = [(t, t.get_text()) for t in figure.findobj(Text)] if needed else []
    for text, plain in texts:
        text.set_text(plain.replace("_", r"\_").replace("&", r"\&").replace("#", r"\#"))
    yield
    for text, plain in texts:
        text.set_text(plain)
