"""KV memory: reserving against pages for a list of requests, and what an engine's cards hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import streamlit as st

from roofline.answer import Answer, Column
from roofline.answers.kv import kv_pages
from roofline.answers.kv_capacity import OMITS as CAPACITY_OMITS
from roofline.dashboard import kit, known, kv_engines
from roofline.dashboard.controls import choice, slider, steps
from roofline.dashboard.kv_charts import ROWS, grid_alt, grid_spec, sweep_alt, sweep_spec
from roofline.dashboard.kv_requests import START, requests
from roofline.dashboard.selection import Selection
from roofline.errors import BadValue
from roofline.memory.presets import PAGE_SIZES
from roofline.units import number, parse

PARAMETERS = ("lengths", *START, *kv_engines.PARAMETERS, "view")
VIEWS = ("Pages", "Page size", "Capacity by engine")
OMITS = "Pages: page tables, scattered reads and scheduling are not counted. Engines:"
RESERVES = tuple(2**k for k in range(4, 18))
POOLS = ("256MiB", "512MiB", "1GiB", "2GiB", "4GiB", "8GiB", "16GiB", "32GiB", "64GiB", "128GiB")
MODEL = "model"
WIDTHS = ("128KiB", MODEL)
MIB = 2**20  # pools are binary, and so is what is held of them


def page(selection: Selection) -> None:
    """The paged-KV account of an editable list of requests, then capacity by engine."""
    st.markdown(
        "A server either reserves the longest possible cache for every request, or hands out pages as a request grows. "
        "Change the list and the sizes to see what each way leaves empty."
    )
    lengths = requests()
    asked = _controls(selection)
    pages, sizes, engines = kit.views(*VIEWS)
    pages.show(lambda: _pages(lengths, asked))
    sizes.show(lambda: _sizes(lengths, asked))
    with engines.box:
        options = kv_engines.controls(selection)
    engines.show(lambda: kv_engines.capacity(selection, options))
    kit.footer("none: sizes and counts need no rates", f"{OMITS} {CAPACITY_OMITS}")


def _controls(selection: Selection) -> dict[str, Any]:
    """Page size, reservation, pool, shared prefix: sizes as text, as the command line takes them."""
    left, middle, right = st.columns(3)
    chosen = {
        "page_size": steps("page_size", PAGE_SIZES, START["page_size"]).show(left),
        "reserve": steps("reserve", RESERVES, START["reserve"]).show(middle),
        "pool": steps("pool", POOLS, START["pool"]).show(right),
    }
    prefix = slider("prefix", 0, 512, START["prefix"]).show(left)
    sharers = slider("prefix_requests", 2, 10, START["prefix_requests"]).show(middle)
    width = choice("bytes_per_token", WIDTHS, START["bytes_per_token"]).show(right)
    chosen |= {"model": selection.model} if width == MODEL else {"bytes_per_token": width}
    return chosen | ({"shared_prefix": (prefix, sharers)} if prefix else {})


# --- pages against reserving ---


def _answer(lengths: tuple[int, ...], **asked: Any) -> Answer:
    """The account of `kv_pages`, its waste as a share."""
    return _kept(lengths, **asked | ({"model": known.model(asked["model"])} if "model" in asked else {}))


@lru_cache(maxsize=128)
def _kept(lengths: tuple[int, ...], **options: Any) -> Answer:
    pool = parse(options.pop("pool"), "B", "pool")
    if "bytes_per_token" in options:
        options["bytes_per_token"] = parse(options["bytes_per_token"], "B", "bytes_per_token")
    found = kv_pages(lengths, pool_bytes=pool, **options)
    percent = Column("waste", "empty", "%", scale=0.01)
    return replace(found, columns=[percent if c.key == "waste" else c for c in found.columns])


def _pages(lengths: tuple[int, ...], chosen: Mapping[str, Any]) -> None:
    """The account and its grid."""
    found, asked = _account(lengths, dict(chosen))
    _headline(found)
    _grid(found)
    kit.folded("Rules and exercises", "explain_kv", lambda: kit.explain(found))
    kit.reproduce("kv", *_lines(lengths, asked, asked["page_size"]))


def _sizes(lengths: tuple[int, ...], chosen: Mapping[str, Any]) -> None:
    """The same over all page sizes."""
    found, asked = _account(lengths, dict(chosen))
    swept = _answer(lengths, **{**asked, "page_size": PAGE_SIZES})
    kit.chart(sweep_spec(swept, found), "kv_sweep", sweep_alt(swept))
    kit.table(swept)
    kit.downloads("kv-page-sizes", swept, lambda: _figure("waste", swept))
    kit.reproduce("kv-page-sizes", *_lines(lengths, asked, list(PAGE_SIZES), told="all"))


def _grid(found: Answer) -> None:
    """Every page as a rectangle, the table of the requests, downloads."""
    if found["grid"]:
        kit.chart(grid_spec(found), "kv_grid", grid_alt(found))
        if len(found["grid"]) > ROWS:
            st.caption(f"The first {ROWS} of {len(found['grid'])} requests.")
    else:
        st.caption("Too many pages to draw: take fewer requests or larger pages.")
    kit.table(found)
    kit.notes(found)
    kit.downloads("kv-pages", found, lambda: _figure("pages", found))


def _account(lengths: tuple[int, ...], asked: dict[str, Any]) -> tuple[Answer, dict[str, Any]]:
    """The answer, and what it answers: a prefix or a reservation that does not suit the list is told and left out."""
    try:
        return _answer(lengths, **asked), asked
    except BadValue as mistake:
        wrong = "reserve" if mistake.name == "reserve" else "shared_prefix"
        if mistake.name not in ("reserve", "prefix", "prefix requests") or wrong not in asked:
            raise
        kit.error(f"{mistake}. The account below is without it.")
        return _account(lengths, {name: value for name, value in asked.items() if name != wrong})


def _headline(found: Answer) -> None:
    fit, reserved = found["fit"], found.data.get("reserved")
    row = st.container(horizontal=True)
    row.metric("Paged, empty", f"{found['waste']:.2%}", help="Slots in last pages that carry no token", width="content")
    if reserved:
        told = f"{number(reserved['waste_tokens'])} of {number(reserved['held_tokens'])} slots"
        row.metric("Reserved, empty", f"{reserved['waste']:.2%}", help=told, width="content")
    row.metric("Pages", number(found["pages"]), help=f"{number(found['held_tokens'])} token slots", width="content")
    row.metric("Held", f"{number(found['held_bytes'] / MIB)} MiB", help="Bytes of all pages held", width="content")
    row.metric("Fit paged", number(fit["paged_requests"]), help="Requests, the list repeated in order", width="content")
    if fit["reserved_requests"] is not None:
        row.metric("Fit reserved", number(fit["reserved_requests"]), help="Requests of the same pool", width="content")


def _figure(kind: str, answer: Answer) -> Any:
    """The matplotlib figure of a download."""
    from roofline.figures import memory, styled

    draw = {"pages": memory.plot_pages, "waste": memory.plot_waste}[kind]
    with styled("paper"):
        return draw(answer.document).figure


def _lines(lengths: Sequence[int], asked: Mapping[str, Any], size: Any, told: str = "") -> tuple[str, str]:
    """The call of an account in Python and on the command line, which spell sizes, the prefix and all page sizes
    (`told`) differently."""
    sizes = {"pool": "pool_bytes", "bytes_per_token": "bytes_per_token"}
    python: dict[str, Any] = {sizes.get(k, k): int(parse(v, "B", k)) if k in sizes else v for k, v in asked.items()}
    command = dict(asked)
    if "shared_prefix" in asked:
        command["shared_prefix"] = "{}:{}".format(*asked["shared_prefix"])
    call, _ = kit.call_lines("kv_pages", list(lengths), **{**python, "page_size": size})
    line = {**command, "page_size": told or size}
    _, words = kit.call_lines("kv_pages", list(lengths), command="kv pages", named=("lengths",), **line)
    return call, words
