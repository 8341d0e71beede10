"""Hardware: the accelerators with their sources, ridge points, two of them compared, and files of one's own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
import streamlit as st

from roofline.accelerators import Accelerator
from roofline.answer import Answer
from roofline.answers import hardware as answers
from roofline.answers.common import chosen
from roofline.answers.hardware_table import choices, hardware_compare, hardware_table
from roofline.dashboard import kit, known
from roofline.dashboard.controls import choice, several, text
from roofline.dashboard.ridge_chart import ridge_alt, ridge_spec
from roofline.dashboard.selection import Selection
from roofline.dashboard.uploads import uploaded

PARAMETERS = ("precision", "table_roof", "vendor", "search", "part", "first", "second", "view")
VIEWS = ("All parts", "One part in full", "Two compared")
USUAL = {"precision": "bf16", "roof": "datasheet", "vendor": (), "search": ""}
SOURCE = ("field", "value", "kind", "url", "via")
LINK = r"https?://(?:www\.)?([^/]+)"  # of an address only the host is shown
OMITS = (
    "Dense peaks as the sources print them; what a chip reaches in practice is the roof practical, where a matmul "
    "and a stream were both measured. Clocks under load, power limits and prices are not modelled."
)


class Own(NamedTuple):
    """A file of the user: its name, its parts, and what was warned about."""

    name: str = ""
    parts: tuple[Accelerator, ...] = ()
    warnings: tuple[str, ...] = ()


def page(selection: Selection) -> None:
    """The table with its filters, the ridge chart, one part in full, two side by side."""
    own = _own()
    offered = _named(own)
    every, one, two = kit.views(*VIEWS)
    with every.box:
        asked = _asked(own)
    every.show(lambda: _table(asked, own))
    with one.box:
        name = choice("part", tuple(offered), selection.chip).show()
    one.show(lambda: _one(offered[name], own))
    with two.box:
        pair = [offered[which] for which in _pair_of(selection, tuple(offered))]
    two.show(lambda: _two(pair, own))
    kit.footer(f"{asked['roof']} at {asked['precision']}", OMITS)


# --- a file of the user ---


def _own() -> Own:
    """Parts of an uploaded YAML, with its warnings; errors are those of `roofline hardware validate`."""
    with st.expander("Parts of your own: upload a hardware YAML"):
        file = uploaded(
            known.HARDWARE, "hardware.yaml", ["yaml", "yml", "json"], _read, "The form of docs/hardware.schema.json"
        )
        own: Own = file.content if file else Own()
        if file:
            names = ", ".join(part.id for part in own.parts)
            roofed = ", ".join(part.id for part in known.own_parts()) or "none, as none has a roof"
            told = f"Valid: {names}. In the table; in the lists of accelerators of every page: {roofed}."
            st.success(kit.escape(f"{told} On the command line every question takes --hardware {file.name}."))
            for warning in own.warnings:
                st.warning(kit.escape(warning))
    return own


def _read(path: str) -> Own:
    """Validate a file as the command line does, and refuse ids that are taken unless the entry overrides."""
    found, parts = answers.validate(path), chosen([path]).parts
    return Own(os.path.basename(path), tuple(parts), tuple(f"{r['where']}: {r['warning']}" for r in found.rows))


# --- the table and its chart ---


@lru_cache(maxsize=64)
def _rows(own: tuple[Accelerator, ...], **asked: Any) -> Answer:
    return hardware_table(own, **asked)


@lru_cache(maxsize=8)
def _choices(own: tuple[Accelerator, ...]) -> Mapping[str, list[str]]:
    return choices(own)


def _asked(own: Own) -> dict[str, Any]:
    """What the table shows, in the words of `hardware_table`."""
    offered = _choices(own.parts)
    left, middle, right = st.columns(3)
    return {
        "precision": choice("precision", offered["precision"], USUAL["precision"]).show(left),
        "roof": choice("table_roof", offered["roof"], USUAL["roof"]).show(middle),
        "search": text("search", "", 80).show(right),
        "vendor": tuple(several("vendor", offered["vendor"]).show()),
    }


def _table(asked: Mapping[str, Any], own: Own) -> None:
    """The filtered table, its chart, downloads."""
    found = _rows(own.parts, **asked)
    st.caption(f"{len(found.rows)} of {found['parts']} parts. A click on a heading sorts.")
    if not found.rows:
        st.info("No part passes these filters.", icon=":material/filter_alt_off:")
        return
    link = st.column_config.LinkColumn(display_text=LINK, width="medium")
    kit.table(found, height=420, hardware=st.column_config.TextColumn(pinned=True), source=link)
    kit.notes(found)
    st.header("Ridge points")
    if found["with_ridge"]:
        kit.chart(ridge_spec(found), "ridges", ridge_alt(found))
    else:
        st.info("None of these parts has such a roof with sourced numbers.", icon=":material/info:")
    kit.downloads("hardware", found, (lambda: _figure(found)) if found["with_ridge"] else None)
    shown = {**asked, "vendor": list(asked["vendor"])}
    kit.reproduce("hardware", *_lines(own, "hardware_table", "hardware table", **shown))


def _lines(own: Own, function: str, command: str, *args: str, explain: bool | None = None, **options: Any) -> Any:
    """A call and its command, with the file of the user, which the two spell differently."""
    usual = {**USUAL, "vendor": []}
    files, file = ([own.name], own.name) if own.name else (None, None)
    python = kit.call_lines(function, *args, files=files, defaults=usual, **options)[0]
    told = {**options, "hardware": file, "explain": explain}
    return python, kit.call_lines(function, *args, command=command, defaults=usual, **told)[1]


def _figure(found: Answer) -> Any:
    from roofline.figures import styled
    from roofline.figures.ridges import plot_ridges

    with styled("paper"):
        return plot_ridges(found.document).figure


# --- one part, and two ---


@lru_cache(maxsize=128)
def _part(part: str | Accelerator) -> Answer:
    asked: Any = part  # a part itself is answered for as an id is
    return answers.hardware(asked)


@lru_cache(maxsize=128)
def _pair(first: str | Accelerator, second: str | Accelerator) -> Answer:
    return hardware_compare(first, second)


def _named(own: Own) -> dict[str, str | Accelerator]:
    """Every id, with the part itself where it came from a file."""
    found: dict[str, str | Accelerator] = {row["hardware"]: row["hardware"] for row in _rows(()).rows}
    return {**found, **{part.id: part for part in own.parts}}


def _one(part: str | Accelerator, own: Own) -> None:
    """One part in full: every roof, every flag, the source of every number."""
    found = _part(part)
    kit.table(found, source=st.column_config.LinkColumn(display_text=LINK))
    kit.notes(found)
    kit.folded("The source of every number", "sources", lambda: _sources(found))
    kit.downloads("hardware-part", found)
    brought = own if isinstance(part, Accelerator) else Own()
    kit.reproduce("hardware-part", *_lines(brought, "hardware", "hardware show", _id(part), explain=True))


def _sources(found: Answer) -> None:
    lines = {key: [str(line[key]) if line[key] else None for line in found["sources"]] for key in SOURCE}
    link = {"url": st.column_config.LinkColumn(width="large")}
    table = pa.table(lines)
    st.dataframe(table, hide_index=True, placeholder="-", column_config=link, alt=f"Sources of {found['name']}")


def _id(part: str | Accelerator) -> str:
    return part if isinstance(part, str) else part.id


def _pair_of(selection: Selection, ids: tuple[str, ...]) -> tuple[str, str]:
    """The ids of the parts to compare; at first those of the sidebar."""
    left, right = st.columns(2)
    other = selection.hardware[1] if len(selection.hardware) > 1 else next(i for i in ids if i != selection.chip)
    return choice("first", ids, selection.chip).show(left), choice("second", ids, other).show(right)


def _two(pair: Sequence[str | Accelerator], own: Own) -> None:
    """Two parts side by side."""
    found = _pair(*pair)
    kit.table(found, quantity=st.column_config.TextColumn(pinned=True))
    kit.notes(found)
    kit.downloads("hardware-compare", found)
    brought = own if any(isinstance(part, Accelerator) for part in pair) else Own()
    kit.reproduce("hardware-compare", *_lines(brought, "hardware_compare", "hardware compare", *map(_id, pair)))
