"""Visits of pages: every page finds its own controls as it was left, whatever others did under the same names.

Streamlit knows a control by its name alone, so a value follows a name from page to page, where it may stand for
something else.  A visit notes which names its page has drawn; at the first draw a control is set to what its page was
left with.  Roofline and Model step ask for the same step, and share what they ask.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException

from roofline.dashboard.parameters import PARAMETERS

SHARED = ("model", "hardware", "hardware_2", "roof", "batch", "context")  # of the sidebar, for all pages
TOGETHER = {"roofline": "step"}  # pages that keep their values with another's
VISIT, LEFT = "_visit", "_left"  # in the session


def enter(page: str) -> bool:
    """Tell that a page is about to be drawn; True where it is another than in the run before."""
    before = _visit()
    if before and before["page"] == page:
        return False
    if before:
        _leave(before)
    st.session_state[VISIT] = {
        "page": page,
        "first": not before,
        "drawn": set(),
        "read": set(),
        "wrong": set(),
        "live": {},
    }
    return bool(before)


def _leave(visit: dict[str, Any]) -> None:
    """Keep the values of the page's controls."""
    held: Any = st.session_state
    kept = held.setdefault(LEFT, {}).setdefault(_home(visit["page"]), {})
    kept |= {name: held[name] for name in visit["drawn"] if name in held} | visit["live"]


def arrives(name: str) -> bool:
    """Whether a control is drawn for the first time since its page was come back to."""
    visit = _visit()
    if not visit or name in SHARED or name in visit["drawn"]:
        return False
    visit["drawn"].add(name)
    return not visit["first"]


def wrong(name: str) -> None:
    """Tell that Streamlit makes something else of a value that a link gave: the widget is set in a run of its own."""
    if visit := _visit():
        visit["wrong"].add(name)


def is_wrong(name: str) -> bool:
    """Whether a control is such a one, in this run."""
    return name in _visit().get("wrong", ())


def mended() -> bool:
    """Whether there are such controls; the next run then sets them to their defaults."""
    visit = _visit()
    visit["mending"], visit["wrong"] = visit["wrong"], set()
    return bool(visit["mending"])


def mends(name: str) -> bool:
    """Whether a control has to be set to its default, whatever the address says."""
    return name in _visit().get("mending", ())


def left(name: str) -> Any:
    """The value that this page left a control with, None where it never had it."""
    if not _visit():
        return None
    return st.session_state.get(LEFT, {}).get(_home(_visit()["page"]), {}).get(name)


def keep(name: str, value: Any) -> None:
    """Remember a value that no widget of Streamlit holds."""
    if visit := _visit():
        visit["live"][name] = value


def page() -> str:
    """The page that is drawn, nothing outside the frame."""
    return str(_visit().get("page", ""))


def read(name: str) -> None:
    """Tell that the page has looked at a parameter for which it has no control now."""
    if visit := _visit():
        visit["read"].add(name)


def idle() -> Iterator[tuple[str, str]]:
    """What the address gives and the page did not look at, name and value; taken out of the address.

    Told only where a link brought it: later it is what a control that has gone left behind.
    """
    visit = _visit()
    seen = {*SHARED, *visit["drawn"], *visit["read"], *visit["live"]}
    for name in [name for name in st.query_params if name in PARAMETERS and name not in seen]:
        value = ", ".join(st.query_params.get_all(name))
        forget(name)
        if visit["first"]:
            yield name, value


def forget(name: str) -> None:
    """Take a parameter out of the address, unless a control holds it."""
    with suppress(KeyError, StreamlitAPIException):
        del st.query_params[name]


def _visit() -> dict[str, Any]:
    return st.session_state.get(VISIT, {})  # type: ignore[no-any-return]


def _home(page: str) -> str:
    return TOGETHER.get(page, page)
