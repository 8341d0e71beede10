"""Hardware: the accelerators with their sources, ridge points, two of them compared, and files of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import streamlit as st

from roofline.accelerators import Accelerator
from roofline.answer import Answer
from roofline.answers import hardware as answers
from roofline.answers.common import chosen
from roofline.answers.hardware_table import choices, compare_parts, hardware_table
from roofline.dashboard import kit
from roofline.dashboard.controls import choice, several, text
from roofline.dashboard.selection import Selection
from roofline.dashboard.uploads import uploaded
from roofline.units import number

TITLE, PATH = "Hardware", "hardware"
PARAMETERS = ("precision", "table_roof", "vendor", "search", "part", "first", "second")
NAMES = {"grid": True, "labelOverlap": False, "labelFontSize": 11, "labelLimit": 190}
OMITS = (
    "Dense peaks as the sources print them; what a chip reaches in practice is the roof `practical`, where a matmul "
    "and a stream were both measured. Clocks under load, power limits and prices are not modelled."
)


class Own(NamedTuple):
    """A file of the user: its parts, and what was warned about."""

    parts: tuple[Accelerator, ...]
    warnings: tuple[str, ...]


def page(selection: Selection) -> None:
    """The table with its filters, the ridge chart, one part in full, two side by side."""
    st.title(TITLE)
    own = _own()
    asked = _asked(own)
    with kit.guarded():
        _table(asked, own)
    with kit.guarded():
        _one(selection, own)
    with kit.guarded():
        _two(selection, own)
    kit.footer(f"{asked['table_roof']} at {asked['precision']}", OMITS)


# --- a file of the user ---


def _own() -> tuple[Accelerator, ...]:
    """Parts of an uploaded YAML, with its warnings; errors are those of `roofline hardware validate`."""
    with st.expander("Parts of your own: upload a hardware YAML"):
        own: Own | None = uploaded(
            "hardware", "hardware.yaml", ["yaml", "yml", "json"], _read, "The form of docs/hardware.schema.json"
        )
        if own is not None:
            names = ", ".join(part.id for part in own.parts)
            st.success(kit.escape(f"Valid: {names}. The parts are in the table and in the lists below."))
            for warning in own.warnings:
                st.warning(kit.escape(warning))
    return own.parts if own else ()


def _read(path: str) -> Own:
    """Validate a file as the command line does, and refuse ids that are taken unless the entry overrides."""
    found, parts = answers.validate(path), chosen([path]).parts
    return Own(tuple(parts), tuple(f"{row['where']}: {row['warning']}" for row in found.rows))


# --- the table and its chart ---


@lru_cache(maxsize=64)
def _rows(precision: str, roof: str, own: tuple[Accelerator, ...]) -> Answer:
    return hardware_table(own, precision=precision, roof=roof)


@lru_cache(maxsize=8)
def _choices(own: tuple[Accelerator, ...]) -> Mapping[str, list[str]]:
    return choices(own)


def _asked(own: tuple[Accelerator, ...]) -> dict[str, Any]:
    """What the table shows."""
    known = _choices(own)
    left, middle, right = st.columns(3)
    precision = choice("precision", known["precision"], "bf16")
    roof = choice("table_roof", known["roof"], "datasheet")
    search = text("search", "", 80)
    return {
        "precision": precision.show(left),
        "table_roof": roof.show(middle),
        "search": search.show(right),
        "vendor": several("vendor", known["vendor"]).show(),
    }


def kept(rows: Sequence[Mapping[str, Any]], vendors: Sequence[str], search: str) -> list[Mapping[str, Any]]:
    """The rows that the filters leave."""
    word = search.strip().lower()
    return [
        row
        for row in rows
        if (not vendors or row["vendor"] in vendors)
        and (not word or word in " ".join((row["hardware"], row["name"], row["architecture"], *row["flags"])).lower())
    ]


def _table(asked: Mapping[str, Any], own: tuple[Accelerator, ...]) -> None:
    """The filtered table, its chart, downloads."""
    everything = _rows(asked["precision"], asked["table_roof"], own)
    rows = kept(everything.rows, asked["vendor"], asked["search"])
    found = replace(everything, data={**everything.data, "rows": rows})
    st.caption(f"{len(rows)} of {len(everything.rows)} parts. A click on a heading sorts.")
    if not rows:
        st.info("No part passes these filters.", icon=":material/filter_alt_off:")
        return
    _frame(found)
    kit.notes(found)
    ridges = [row for row in rows if row["ridge_flop_per_byte"] is not None]
    st.subheader("Ridge points")
    if ridges:
        kit.chart(_ridge_spec(ridges), "ridges", _ridge_alt(ridges))
    else:
        st.info("None of these parts has such a roof with sourced numbers.", icon=":material/info:")
    kit.downloads("hardware", found, (lambda: _figure(found)) if ridges else None)
    kit.reproduce("import roofline\nroofline.hardware()", "roofline hardware list")


def _frame(found: Answer) -> None:
    """The rows with sources as links; numbers stay numbers, so that headings sort."""
    data: dict[str, list[Any]] = {}
    for column in found.columns:
        values = [row.get(column.key) for row in found.rows]
        if column.unit:
            data[column.title] = [None if v is None else float(f"{v / column.scale:.6g}") for v in values]
        else:
            data[column.title] = ["; ".join(v) if isinstance(v, list) else v for v in values]
    link = st.column_config.LinkColumn("source", display_text=r"https?://(?:www\.)?([^/]+)", width="medium")
    st.dataframe(
        data,
        hide_index=True,
        height=420,
        column_config={"source": link, "id": st.column_config.TextColumn(pinned=True)},
        alt=found.title,
    )


def _ridge_spec(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A mark a part on a logarithmic axis, sorted; colour and shape say how its numbers were had."""
    names = ("hardware", "name", "kind", "ridge_flop_per_byte", "peak_flop_per_s", "bandwidth_byte_per_s")
    kind = {"field": "kind", "type": "nominal"}
    x = {"field": "ridge_flop_per_byte", "type": "quantitative", "scale": {"type": "log"}}
    return {
        "data": {"values": [{name: row[name] for name in names} for row in rows]},
        "height": {"step": 14},
        "params": [{"name": "kind", "select": {"type": "point", "fields": ["kind"]}, "bind": "legend"}],
        "mark": {"type": "point", "filled": True, "size": 70},
        "encoding": {
            "y": {"field": "hardware", "type": "nominal", "sort": "-x", "title": None, "axis": NAMES},
            "x": {**x, "title": "ridge point [FLOP/B]", "axis": {"format": "~s", "orient": "top"}},
            "color": {**kind, "legend": {"orient": "top", "title": "how the numbers were had"}},
            "shape": kind,
            "opacity": {"condition": {"param": "kind", "value": 1}, "value": 0.15},
            "tooltip": [
                *({"field": name, "type": "nominal"} for name in names[:3]),
                {"field": names[3], "type": "quantitative", "title": "ridge [FLOP/B]", "format": ".1f"},
                {"field": names[4], "type": "quantitative", "title": "peak [FLOP/s]", "format": ".4~s"},
                {"field": names[5], "type": "quantitative", "title": "bandwidth [B/s]", "format": ".4~s"},
            ],
        },
    }


def _ridge_alt(rows: Sequence[Mapping[str, Any]]) -> str:
    ordered = sorted(rows, key=lambda row: row["ridge_flop_per_byte"])
    ends = [f"{row['hardware']} at {number(row['ridge_flop_per_byte'])} FLOP/B" for row in (ordered[0], ordered[-1])]
    return f"Ridge points of {len(rows)} parts, from {ends[0]} to {ends[1]}. The table above has every number."


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
    return compare_parts(first, second)


def _named(own: tuple[Accelerator, ...]) -> dict[str, str | Accelerator]:
    """Every id, with the part itself where it came from a file."""
    known: dict[str, str | Accelerator] = {
        row["hardware"]: row["hardware"] for row in _rows("bf16", "datasheet", ()).rows
    }
    return {**known, **{part.id: part for part in own}}


def _one(selection: Selection, own: tuple[Accelerator, ...]) -> None:
    """One part in full: every roof, every flag, the source of every number."""
    st.subheader("One part in full")
    known = _named(own)
    name = choice("part", tuple(known), selection.chip).show()
    found = _part(known[name])
    kit.table(found)
    kit.notes(found)
    with st.expander("The source of every number"):
        sources = [{k: line[k] or None for k in ("field", "value", "kind", "url", "via")} for line in found["sources"]]
        columns = {key: [line[key] for line in sources] for key in ("field", "value", "kind", "url", "via")}
        link = {"url": st.column_config.LinkColumn("url", width="large")}
        st.dataframe(columns, hide_index=True, column_config=link, alt=f"Sources of {found['name']}")
    kit.downloads("hardware-part", found)
    kit.reproduce(f"import roofline\nroofline.hardware({name!r})", f"roofline hardware show {name} --explain")


def _two(selection: Selection, own: tuple[Accelerator, ...]) -> None:
    """Two parts side by side."""
    st.subheader("Two compared")
    known = _named(own)
    ids = tuple(known)
    left, right = st.columns(2)
    other = selection.hardware[1] if len(selection.hardware) > 1 else next(i for i in ids if i != selection.chip)
    first = choice("first", ids, selection.chip).show(left)
    second = choice("second", ids, other).show(right)
    found = _pair(known[first], known[second])
    kit.table(found)
    kit.notes(found)
    kit.downloads("hardware-compare", found)
    told = f"from roofline.answers.hardware_table import compare_parts\ncompare_parts({first!r}, {second!r})"
    kit.reproduce(told, f"roofline hardware show {first}\nroofline hardware show {second}")
