"""Visits of pages: every page finds its own controls as it was left, whatever others did under the same names.

Streamlit knows a control by its name alone, so a value follows a name from page to page, where it may stand for
something else.  A visit notes which controls its page has drawn and what each starts with; at the first draw a control
is set to what its page was left with.  Roofline and Model step ask for the same step, and share what they ask.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException

from roofline.dashboard.parameters import PARAMETERS

SHARED = ("model", "hardware", "hardware_2", "roof", "batch", "context")  # of the sidebar, for all pages
TOGETHER = {"roofline": "step"}  # pages that keep their values with another's
VISIT, SIDEBAR, LEFT = "_visit", "_visit_sidebar", "_left"  # in the session


@dataclass
class Visit:
    """One visit of a page.

    drawn: what each control that it has drawn starts with; live: values that no widget of Streamlit holds; read:
    parameters that it has looked at without a control for them; wanted: what controls are set to as they are drawn;
    mended, mending: what controls have to be set to past what the address says, found in this run, and in the one
    before.
    """

    page: str = ""
    first: bool = True  # of the session: only then the address comes from a link
    drawn: dict[str, Any] = field(default_factory=dict)
    live: dict[str, Any] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    wanted: dict[str, Any] = field(default_factory=dict)
    mended: dict[str, Any] = field(default_factory=dict)
    mending: dict[str, Any] = field(default_factory=dict)


def now() -> Visit:
    """The visit of the page that is drawn."""
    return st.session_state.setdefault(VISIT, Visit())  # type: ignore[no-any-return]


def of(name: str) -> Visit:
    """The visit that a control belongs to; that of the sidebar lasts as long as the session."""
    return st.session_state.setdefault(SIDEBAR, Visit()) if name in SHARED else now()


def enter(page: str) -> bool:
    """Tell that a page is about to be drawn; True where it is another than in the run before."""
    before = st.session_state.get(VISIT)
    if before is not None and before.page == page:
        return False
    if before is not None:
        _leave(before)
    st.session_state[VISIT] = Visit(page, first=before is None)
    return before is not None


def _leave(visit: Visit) -> None:
    """Keep the values of the page's controls that do not stand at their start, as the address does."""
    held: Any = st.session_state
    kept = held.setdefault(LEFT, {}).setdefault(_home(visit.page), {})
    for name, start in visit.drawn.items():
        value = visit.live.get(name, held.get(name, start))
        kept.pop(name, None)
        if value != start:
            kept[name] = value


def left(name: str) -> Any:
    """The value that the page left a control with, None where it stood at its start."""
    return st.session_state.get(LEFT, {}).get(_home(now().page), {}).get(name)


def mend() -> bool:
    """Whether controls have been mended, which takes another run to bind them to the address."""
    again = False
    for visit in (now(), st.session_state.get(SIDEBAR, Visit())):
        visit.mending, visit.mended = visit.mended, {}
        again = again or bool(visit.mending)
    return again


def idle() -> Iterator[tuple[str, str]]:
    """What the address gives and the page did not look at, name and value; taken out of the address.

    Told only where a link brought it: later it is what a control that has gone left behind.
    """
    visit = now()
    seen = {*SHARED, *visit.drawn, *visit.read}
    for name in [name for name in st.query_params if name in PARAMETERS and name not in seen]:
        value = ", ".join(st.query_params.get_all(name))
        forget(name)
        if visit.first:
            yield name, value


def forget(name: str) -> None:
    """Take a parameter out of the address, unless a control holds it."""
    with suppress(KeyError, StreamlitAPIException):
        del st.query_params[name]


def _home(page: str) -> str:
    return TOGETHER.get(page, page)
