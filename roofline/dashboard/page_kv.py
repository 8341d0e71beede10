"""KV memory: reserving against pages for a list of requests, and what an engine's cards hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from roofline.answer import Answer, Column
from roofline.answers.kv import kv_pages
from roofline.answers.kv_capacity import OMITS as CAPACITY_OMITS
from roofline.dashboard import kit, kv_engines
from roofline.dashboard.controls import NOTES, choice, refuse, shorten, slider, steps
from roofline.dashboard.kv_charts import ROWS, grid_alt, grid_spec, sweep_alt, sweep_spec
from roofline.dashboard.parameters import label
from roofline.dashboard.selection import Selection
from roofline.errors import BadValue
from roofline.memory.presets import PAGE_SIZES, PRESETS
from roofline.units import number, parse, show

TITLE, PATH = "KV memory", "kv"
PARAMETERS = (
    "lengths",
    "page_size",
    "reserve",
    "pool",
    "bytes_per_token",
    "prefix",
    "prefix_requests",
    *kv_engines.PARAMETERS,
)
OMITS = "Pages: page tables, scattered reads and scheduling are not counted. Engines:"
ARTICLE = ",".join(map(str, PRESETS["article"].lengths))
RESERVES = tuple(2**k for k in range(4, 18))
POOLS = ("256MiB", "512MiB", "1GiB", "2GiB", "4GiB", "8GiB", "16GiB", "32GiB", "64GiB", "128GiB")
MODEL = "model"
WIDTHS = ("128KiB", MODEL)
LONGEST, MOST = 4000, 200  # characters of the list in the address, requests in it
EXPECTED = f"1 to {MOST} whole numbers from 1 to 10,000,000, separated by commas"


def page(selection: Selection) -> None:
    """The paged-KV account of an editable list of requests, then capacity by engine."""
    st.title(TITLE)
    st.markdown(
        "A server either reserves the longest possible cache for every request, or hands out pages as a request grows. "
        "Change the list and the sizes to see what each way leaves empty."
    )
    lengths = _requests()
    options = _controls(selection)
    with kit.guarded():
        _pages(lengths, options)
    st.header("Capacity by engine")
    with kit.guarded():
        kv_engines.capacity(selection)
    kit.footer("none: sizes and counts need no rates", f"{OMITS} {CAPACITY_OMITS}")


# --- the list of requests, which the address holds as text ---


def _requests() -> list[int]:
    """The editable list; table, text field and address always hold the same."""
    st.subheader("Requests")
    row = st.container(horizontal=True)
    for name, preset in PRESETS.items():
        row.button(name, key=f"_preset_{name}", on_click=_use, args=(name,), help=preset.shows)
    held = st.session_state
    told = _told()
    if held.get("_kv_told") != told or "_kv_text" not in held:  # not by the table, or the page is entered anew
        held["_kv_told"], held["_kv_list"] = told, read_lengths(told)
        held["_kv_version"] = held.get("_kv_version", 0) + 1
    left, right = st.columns([2, 3])
    edited = left.data_editor(
        {"tokens": held["_kv_list"]},
        key=f"_kv_requests_{held['_kv_version']}",
        num_rows="dynamic",
        height=260,
        column_config={"tokens": st.column_config.NumberColumn(min_value=1, max_value=10**7, step=1, required=True)},
        alt="Editable table of request lengths in tokens; the text field beside it holds the same list",
    )
    found = [int(tokens) for tokens in edited["tokens"] if tokens is not None and tokens == tokens][:MOST]
    held["_kv_text"] = held["_kv_told"] = ",".join(map(str, found)) or told
    right.text_input(label("lengths"), key="_kv_text", max_chars=LONGEST, help=f"Tokens: {EXPECTED}")
    right.caption(
        "Add a row at the foot of the table, mark rows to delete them, or write the list as text: "
        "it is part of this page's address, so a link restores it."
    )
    keep_in_address("lengths", held["_kv_told"], ARTICLE)
    return found or read_lengths(told)


def _told() -> str:
    """The list as text: from the field, at first from the address; what cannot be read is told and not used."""
    held = st.session_state
    before, typed = held.get("_kv_told", ARTICLE), "_kv_text" in held
    told = str(held["_kv_text"] if typed else st.query_params.get("lengths", before))
    found = read_lengths(told)
    if not found and typed:
        kit.error(f"lengths: got {shorten(told)!r}, expected {EXPECTED}. The list before stays in use.")
    elif not found:
        refuse("lengths", told, EXPECTED, before)
    elif told != before:
        held.get(NOTES, {}).pop("lengths", None)
    return ",".join(map(str, found)) or str(before)


def keep_in_address(name: str, value: Any, default: Any) -> None:
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
    return found if all(1 <= n <= 10**7 for n in found) else []


def _use(name: str) -> None:
    """Put a preset into the controls."""
    st.session_state["_kv_text"] = ",".join(map(str, PRESETS[name].lengths))
    st.session_state["_kv_reserve"] = PRESETS[name].reserve


def _reserve(where: Any) -> int:
    """The reservation; a preset sets it, so that it is kept in the address by hand as the list is."""
    held, default = st.session_state, PRESETS["article"].reserve
    if "_kv_reserve" not in held:
        told = st.query_params.get("reserve", str(held.get("_kv_reserved", default)))
        good = told in map(str, RESERVES)
        if not good:
            refuse("reserve", told, "one of " + ", ".join(map(str, RESERVES)), str(default))
        held["_kv_reserve"] = int(told) if good else default
    told, meaning = label("reserve"), kit.help_text("reserve")
    held["_kv_reserved"] = where.select_slider(told, RESERVES, key="_kv_reserve", help=meaning)
    keep_in_address("reserve", held["_kv_reserved"], default)
    return int(held["_kv_reserved"])


def _controls(selection: Selection) -> dict[str, Any]:
    """Page size, reservation, pool, shared prefix."""
    left, middle, right = st.columns(3)
    page_size = steps("page_size", PAGE_SIZES, 16).show(left)
    reserve = _reserve(middle)
    pool = steps("pool", POOLS, "2GiB").show(right)
    prefix = slider("prefix", 0, 512, 0).show(left)
    sharers = slider("prefix_requests", 2, 10, 3).show(middle)
    width = choice(
        "bytes_per_token",
        WIDTHS,
        WIDTHS[0],
    ).show(right)
    size = {"model": selection.model} if width == MODEL else {"bytes_per_token": parse(width, "B", "bytes_per_token")}
    return {
        "page_size": page_size,
        "reserve": reserve,
        "pool": pool,
        "pool_bytes": parse(pool, "B", "pool"),
        "shared_prefix": (prefix, sharers) if prefix else None,
        "width": width,
        **size,
    }


# --- pages against reserving ---


def _pages(lengths: Sequence[int], options: Mapping[str, Any]) -> None:
    """The account, the grid, the sweep over page sizes."""
    names = ("reserve", "pool_bytes", "shared_prefix", "model", "bytes_per_token")
    asked = {name: options[name] for name in names if options.get(name) is not None}
    found = _account(lengths, options["page_size"], asked)
    _headline(found)
    st.subheader("The pages")
    if found["grid"]:
        kit.chart(grid_spec(found), "kv_grid", grid_alt(found))
        if len(found["grid"]) > ROWS:
            st.caption(f"The first {ROWS} of {len(found['grid'])} requests.")
    else:
        st.caption("Too many pages to draw: take fewer requests or larger pages.")
    kit.table(found)
    kit.notes(found)
    kit.downloads("kv-pages", found, lambda: _figure("pages", found))
    st.subheader("What the page size costs")
    swept = kv_pages(lengths, page_size=PAGE_SIZES, **asked)
    kit.chart(sweep_spec(swept, found), "kv_sweep", sweep_alt(swept))
    percent = Column("waste", "waste", "%", scale=0.01)
    kit.table(replace(swept, columns=[percent if c.key == "waste" else c for c in swept.columns]))
    kit.downloads("kv-page-sizes", swept, lambda: _figure("waste", swept))
    with st.expander("Rules and exercises"):
        kit.explain(found)
    kit.reproduce(*_lines(lengths, options))


def _account(lengths: Sequence[int], page_size: int, asked: dict[str, Any]) -> Answer:
    """The answer; a prefix or a reservation that does not suit the list is told and left out."""
    try:
        return kv_pages(lengths, page_size=page_size, **asked)
    except BadValue as mistake:
        wrong = {"reserve": "reserve"}.get(mistake.name, "shared_prefix")
        if mistake.name not in ("reserve", "prefix", "prefix requests") or wrong not in asked:
            raise
        kit.error(f"{mistake}. The account below is without it.")
        del asked[wrong]
        return _account(lengths, page_size, asked)


def _headline(found: Answer) -> None:
    held, fit, reserved = show, found["fit"], found.data.get("reserved")
    row = st.container(horizontal=True)
    row.metric("Paged, empty", f"{found['waste']:.2%}", help="Slots in last pages that carry no token", width="content")
    if reserved:
        told = f"{number(reserved['waste_tokens'])} of {number(reserved['held_tokens'])} slots"
        row.metric("Reserved, empty", f"{reserved['waste']:.2%}", help=told, width="content")
    row.metric("Pages", number(found["pages"]), help=f"{number(found['held_tokens'])} token slots", width="content")
    row.metric("Held", held(found["held_bytes"], "B"), help="Bytes of all pages held", width="content")
    row.metric("Fit paged", number(fit["paged_requests"]), help="Requests, the list repeated in order", width="content")
    if fit["reserved_requests"] is not None:
        row.metric("Fit reserved", number(fit["reserved_requests"]), help="Requests of the same pool", width="content")


def _figure(kind: str, answer: Answer) -> Any:
    """The matplotlib figure of a download."""
    from roofline.figures import memory, styled

    draw = {
        "pages": memory.plot_pages,
        "waste": memory.plot_waste,
    }[kind]
    with styled("paper"):
        return draw(answer.document).figure


def _lines(lengths: Sequence[int], options: Mapping[str, Any]) -> tuple[str, str]:
    """The call in Python and on the command line, which spell sizes and the prefix differently."""
    prefix = options["shared_prefix"]
    common: dict[str, Any] = {"page_size": options["page_size"], "reserve": options["reserve"]}
    model: dict[str, Any] = {"model": options.get("model")}
    python = kit.call_lines(
        "kv_pages",
        list(lengths),
        **common,
        pool_bytes=options["pool_bytes"],
        bytes_per_token=options.get("bytes_per_token"),
        shared_prefix=prefix,
        **model,
    )[0]
    told = None if prefix is None else f"{prefix[0]}:{prefix[1]}"
    width = None if options["width"] == MODEL else options["width"]
    sizes: dict[str, Any] = {"pool": options["pool"], "bytes_per_token": width, "shared_prefix": told}
    cli = kit.call_lines("kv_pages", list(lengths), command="kv pages", named=("lengths",), **common, **sizes, **model)[
        1
    ]
    return python, cli
