"""The list of requests of the page KV memory: presets, a table to edit and a text field that hold the same list, which
the address holds as text."""

from __future__ import annotations

from typing import Any

import streamlit as st

from roofline.dashboard import kit, visits
from roofline.dashboard.controls import NOTES, refuse, shorten
from roofline.dashboard.parameters import label
from roofline.memory.presets import PRESETS

ARTICLE = ",".join(map(str, PRESETS["article"].lengths))
# What the page starts with, and what a preset goes back to: the published numbers are for these sizes, without sharing.
START: dict[str, Any] = {
    "page_size": 16,
    "reserve": PRESETS["article"].reserve,
    "pool": "2GiB",
    "prefix": 0,
    "prefix_requests": 3,
    "bytes_per_token": "128KiB",
}
LONGEST, MOST, LARGEST = 4000, 200, 10**7  # characters of the list, requests in it, tokens of a request
EXPECTED = f"1 to {MOST} whole numbers from 1 to {LARGEST:,}, separated by commas"


def requests() -> tuple[int, ...]:
    """The editable list [tokens]."""
    st.header("Requests")
    row = st.container(horizontal=True)
    for name, preset in PRESETS.items():
        row.button(name, key=f"_preset_{name}", on_click=_use, args=(name,), help=preset.shows)
    held = st.session_state
    told = _told()
    if held.get("_kv_told") != told or "_kv_text" not in held:  # not by the table, or the page is entered anew
        held["_kv_told"], held["_kv_list"] = told, read_lengths(told)
        held["_kv_version"] = held.get("_kv_version", 0) + 1
    left, right = st.columns([2, 3])
    held["_kv_text"] = held["_kv_told"] = _edited(left) or told
    right.text_input(label("lengths"), key="_kv_text", max_chars=LONGEST, help=f"Tokens: {EXPECTED}")
    right.caption(
        "Add a row at the foot of the table, mark rows to delete them, or write the list as text: "
        "it is part of this page's address, so a link restores it."
    )
    _keep_in_address("lengths", held["_kv_told"], ARTICLE)
    return tuple(read_lengths(held["_kv_told"]))


def _edited(where: Any) -> str:
    """The table, and its list as text; nothing where it is empty."""
    held = st.session_state
    number = st.column_config.NumberColumn(min_value=1, max_value=LARGEST, step=1, required=True)
    edited = where.data_editor(
        {"tokens": held["_kv_list"]},
        key=f"_kv_requests_{held['_kv_version']}",
        num_rows="dynamic",
        height=260,
        column_config={"tokens": number},
        alt="Editable table of request lengths in tokens; the text field beside it holds the same list",
    )
    found = [int(tokens) for tokens in edited["tokens"] if tokens is not None and tokens == tokens]  # no NaN
    if not found:
        kit.error("The table is empty. The list before stays in use.")
    elif len(found) > MOST:
        kit.error(f"The table has {len(found)} requests, expected at most {MOST}. The first {MOST} are used.")
    return ",".join(map(str, found[:MOST]))


def _told() -> str:
    """The list as text: from the field, at first from the address; what cannot be read is told and not used."""
    visits.now().read.add("lengths")
    held = st.session_state
    before, typed = held.get("_kv_told", ARTICLE), "_kv_text" in held
    given = ",".join(st.query_params.get_all("lengths")) or before
    told = str(held["_kv_text"] if typed else given)
    found = read_lengths(told)
    if not found and typed:
        kit.error(f"lengths: got {shorten(told)!r}, expected {EXPECTED}. The list before stays in use.")
    elif not found:
        refuse("lengths", told, EXPECTED, before)
    elif told != before:
        held.get(NOTES, {}).pop("lengths", None)
    return ",".join(map(str, found)) or str(before)


def _keep_in_address(name: str, value: Any, default: Any) -> None:
    """Write a parameter that no bound widget holds; the default is left out."""
    if value != default:
        if st.query_params.get(name) != str(value):
            st.query_params[name] = str(value)
    elif name in st.query_params:
        del st.query_params[name]


def read_lengths(told: str) -> list[int]:
    """Request lengths from text, empty where it is no such list.

    >>> read_lengths("403, 96"), read_lengths("403,x"), read_lengths("0")
    ([403, 96], [], [])
    """
    words = [word.strip() for word in told.split(",") if word.strip()] if len(told) <= LONGEST else []
    if len(words) > MOST or not all(w.isascii() and w.isdigit() and len(w) <= 8 for w in words):
        return []
    found = [int(word) for word in words]
    return found if all(1 <= n <= LARGEST for n in found) else []


def _use(name: str) -> None:
    """Put a preset into the controls, and the other sizes back to what its numbers are for."""
    preset = PRESETS[name]
    st.session_state.update({**START, "reserve": preset.reserve, "_kv_text": ",".join(map(str, preset.lengths))})
