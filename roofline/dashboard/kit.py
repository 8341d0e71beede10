"""What a page is built from: charts, tables, explanations, downloads, lines that reproduce it, footer, errors."""

from __future__ import annotations

import logging
import secrets
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import streamlit as st

from roofline import tables
from roofline.answer import Answer, Column
from roofline.dashboard.controls import choice, escape, help_text
from roofline.errors import RooflineError

LOG = logging.getLogger("roofline.dashboard")
ZOOM = {"name": "zoom", "select": "interval", "bind": "scales"}
MIME = {
    "pdf": "application/pdf",
    "svg": "image/svg+xml",
    "png": "image/png",
    "csv": "text/csv",
    "json": "application/json",
    "tex": "application/x-tex",
}
Figure = Callable[[], Any]  # makes a matplotlib figure


@dataclass(frozen=True)
class Part:
    """A part of a page that may be closed: what is not seen is neither computed nor sent to the browser.

    Controls stand in it always, by `with part.box`: Streamlit forgets what is not drawn.
    """

    box: Any

    def show(self, content: Callable[[], Any]) -> None:
        """Make the content if the part is open."""
        if self.box.open:
            with self.box, guarded():
                content()


def views(*titles: str) -> tuple[Part, ...]:
    """Parts of a page of which one is open at a time; the address holds which (`view`)."""
    return tuple(map(Part, choice("view", titles, titles[0]).tabs()))


def folded(title: str, name: str, content: Callable[[], Any]) -> None:
    """A part behind a heading, closed at first; name: unique in the page."""
    Part(st.expander(title, key=f"_{name}", on_change="rerun")).show(content)


def chart(
    spec: Mapping[str, Any], key: str, alt: str, *, picked: Callable[[], None] | None = None
) -> Mapping[str, Any]:
    """A Vega-Lite chart; returns what is selected: {parameter: [record, ...]}.

    The spec needs at least one selection parameter (`ZOOM` will do, inside the first layer of a layered chart): with
    it, a key and `on_select`, zoom and legend outlive a slider's move.  Colours come from the theme; give none.
    picked: called before the page is drawn anew when the selection changes; it may set widgets.
    """
    event: Any = st.vega_lite_chart(dict(spec), key=key, on_select=picked or "rerun", alt=alt, width="stretch")
    return dict(getattr(event, "selection", None) or {})


def table(answer: Answer, *, height: Any = "auto", alt: str = "", **columns: Any) -> None:
    """The main table of an answer, sortable: numbers stay numbers, scaled to the unit of the heading, six digits.

    columns: settings of `st.column_config` for a column by its key, such as a link.  The table goes to the browser as
    Arrow, which spares the detour over pandas.
    """
    rows = answer.rows
    held = {c.title: _cells(c, rows) for c in answer.columns}
    plain = st.column_config.NumberColumn(format="%.6g")  # the browser writes 66.7 out in binary otherwise
    numbers = {title: plain for title, cells in held.items() if any(isinstance(cell, float) for cell in cells)}
    named = {c.title: columns[c.key] for c in answer.columns if c.key in columns}
    st.dataframe(
        pa.table(held),
        hide_index=True,
        height=height,
        placeholder="-",
        column_config={**numbers, **named},
        alt=alt or answer.title or None,
    )


def _cells(column: Column, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The cells of a column, of one kind: numbers where all are, by which a heading sorts, else texts; None where a
    value is missing."""
    values = [row.get(column.key) for row in rows]
    told = [v for v in values if v is not None]
    if any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in told):
        return [None if v is None else column.text(row) for v, row in zip(values, rows, strict=True)]
    if column.scale == 1 and all(isinstance(v, int) for v in told):
        return values  # counts, exact
    return [None if v is None else float(f"{v / column.scale:.6g}") for v in values]


def explain(answer: Answer) -> None:
    """The sections of an answer: derivation, numbers put in, sources."""
    for section in answer.sections:
        st.markdown(f"**{escape(section.title)}**")
        for formula in section.formulas:
            st.latex(formula)
        if section.lines:
            st.markdown("\n".join(f"- {prose(line)}" for line in section.lines))


def prose(text: str) -> str:
    """A line of the library as Markdown: what stands between backticks bold, as code is too pale in a caption."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return "".join(f"**{escape(part)}**" if at % 2 and part else escape(part) for at, part in enumerate(parts))


def notes(answer: Answer, *, besides: str = "") -> None:
    """The notes that go with any form of an answer, less the one that the footer tells."""
    st.caption("\n".join(f"- {prose(note)}" for note in answer.notes if note != besides))


def downloads(name: str, answer: Answer, figure: Figure | None = None) -> None:
    """Buttons for the data (CSV, JSON), the derivation (LaTeX) and the figure (PDF, SVG, PNG), each made on click."""
    forms: dict[str, Callable[[], str | bytes]] = {}
    if figure is not None:
        forms |= {suffix: _drawn(figure, f".{suffix}") for suffix in ("pdf", "svg", "png")}
    if answer.rows:
        forms["csv"] = lambda: tables.csv_text(answer)
    forms |= {"json": answer.to_json, "tex": lambda: tables.latex(answer)}
    names = {suffix: {"tex": "LaTeX"}.get(suffix, suffix.upper()) for suffix in forms}

    def buttons() -> None:
        row = st.container(horizontal=True)
        for suffix, made in forms.items():
            row.download_button(
                names[suffix],
                made,
                file_name=f"roofline-{name}.{suffix}",
                mime=MIME[suffix],
                key=f"_download_{name}_{suffix}",
                on_click="ignore",
            )

    folded(f"Download: {', '.join(names.values())}", f"download_{name}", buttons)


def _drawn(figure: Figure, suffix: str) -> Callable[[], bytes]:
    def made() -> bytes:
        from roofline.figures import to_bytes

        return to_bytes(figure(), suffix)

    return made


def reproduce(name: str, python: str, cli: str) -> None:
    """The Python and the command lines that give the same answer; `call_lines` writes both."""

    def lines() -> None:
        st.code(python, language="python")
        st.code(cli, language="bash")

    folded("The same in Python and on the command line", f"lines_{name}", lines)


class OwnPart(str):
    """The id of an accelerator of the user's file, as Python and the command line reach it."""

    file: str

    def __new__(cls, name: str, file: str) -> OwnPart:
        made = super().__new__(cls, name)
        made.file = file
        return made

    def __repr__(self) -> str:
        return f"roofline.load_catalog([{self.file!r}])[{str(self)!r}]"


def call_lines(
    function: str,
    *args: Any,
    command: str = "",
    named: Sequence[str] = (),
    defaults: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[str, str]:
    """The Python line and the command line of one call.

    function: a function of the package; command: its words on the command line where they differ; args: positional
    arguments, each an option of the name in `named` on the command line (an argument where the name is empty);
    options: keyword arguments, those that are None or equal to `defaults` left out.  An `OwnPart` among them is loaded
    from its file, which ROOFLINE_HARDWARE names to the command line.

    >>> call_lines("heads", "h800-sxm", named=("hardware",), roof="flashmla")[1]
    'roofline heads --hardware h800-sxm --roof flashmla'
    """
    kept = {k: v for k, v in options.items() if v is not None and v != (defaults or {}).get(k)}
    told = ", ".join([*map(repr, args), *(f"{k}={v!r}" for k, v in kept.items())])
    given = [*args, *kept.values()]
    every = [name for value in given for name in (value if isinstance(value, (list, tuple)) else [value])]
    files = dict.fromkeys(name.file for name in every if isinstance(name, OwnPart))
    words = [f"ROOFLINE_HARDWARE={shlex.quote(file)}" for file in files]
    words += ["roofline", *(command or function).split()]
    for option, value in [*zip([*named, *[""] * (len(args) - len(named))], args, strict=True), *kept.items()]:
        words += _option(option, value)
    return f"import roofline\nroofline.{function}({told})", " ".join(words)


def together(pairs: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Several pairs of `call_lines` as one: a call a line under one import, a command a line."""
    calls, commands = zip(*pairs, strict=True)
    return "\n".join(dict.fromkeys(line for call in calls for line in call.splitlines())), "\n".join(commands)


def _option(name: str, value: Any) -> list[str]:
    flag = "--" + name.replace("_", "-")
    if value is True or value is False:
        return [flag if value else "--no-" + name.replace("_", "-")]
    words = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return [shlex.quote(words)] if not name else [flag, shlex.quote(words)]


def footer(roof: str, omits: str) -> None:
    """Which roof was used and what is not modelled, below every page."""
    st.divider()
    st.caption(f"Roof: {escape(roof)}. Dense peaks, decimal units, bounds, not forecasts.")
    st.caption(prose(omits))


def error(problem: object) -> None:
    """A mistake told as plain text."""
    st.error(escape(str(problem)), icon=":material/error:")


@contextmanager
def guarded() -> Iterator[None]:
    """Errors inside become text: a user's mistake its message, an internal error an id whose trace is in the log."""
    try:
        yield
    except Exception as problem:
        error(message(problem))


def message(problem: Exception) -> str:
    """What a user is told of an error that is being handled."""
    if isinstance(problem, RooflineError):
        return str(problem)
    mark = secrets.token_hex(4)
    LOG.exception("internal error %s", mark)
    return f"Internal error {mark}: the answer could not be made; the server's log has the details under this id."


__all__ = [
    "ZOOM",
    "OwnPart",
    "Part",
    "call_lines",
    "chart",
    "downloads",
    "error",
    "escape",
    "explain",
    "folded",
    "footer",
    "guarded",
    "help_text",
    "message",
    "notes",
    "prose",
    "reproduce",
    "table",
    "together",
    "views",
]
