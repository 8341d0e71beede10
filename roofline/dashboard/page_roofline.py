"""The roofline page: every kernel of a model's step under the roofs of one accelerator or two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from roofline.answer import Answer
from roofline.answers.formula import formula
from roofline.answers.plotted_step import step_roofline
from roofline.answers.step_report import OMITS
from roofline.dashboard import charts, kit
from roofline.dashboard.controls import choice, escape, steps
from roofline.dashboard.selection import Selection

TITLE, PATH = "Roofline", "roofline"
PARAMETERS = ("phase", "q_len", "tp", "kv_dtype", "weight_dtype", "kernel")
PHASES = ("decode", "oneshot", "chunked")
WIDTHS = ("auto", "bf16", "fp8", "int8")
WEIGHTS = ("auto", "bf16", "fp8", "nvfp4", "mxfp4", "int8", "int4")
NOTHING = "none"


def page(selection: Selection) -> None:
    """Chart, what was clicked on, table, downloads."""
    st.title("Roofline")
    options = _options(selection)
    found = step_roofline(selection.model, list(selection.hardware), roof=selection.roof_or_none, **options)
    st.markdown(f"**{escape(found.title)}**")
    event = kit.chart(charts.roofline_spec(found.data), "roofline_chart", _alt(found))
    _detail(found, event, options)
    kit.table(found, alt=f"Kernels: {found.title}")
    kit.notes(found)
    kit.downloads("roofline", found, lambda: _figure(found))
    kit.reproduce(*_lines(selection, options))
    kit.footer(", ".join(dict.fromkeys(r["short"] for r in found["roofs"])), OMITS)


def _options(selection: Selection) -> dict[str, Any]:
    row = st.columns(5)
    phase = choice("phase", PHASES, "decode").show(row[0])
    decode = phase == "decode"
    sizes = tuple(2**k for k in range(0 if decode else 4, 4 if decode else 18))
    q_len = steps("q_len", sizes, 1 if decode else 4096).show(row[1])
    tp = steps("tp", (1, 2, 4, 8, 16), 1).show(row[2])
    kv = choice("kv_dtype", WIDTHS, "auto").show(row[3])
    weight = choice("weight_dtype", WEIGHTS, "auto").show(row[4])
    context = 0 if phase == "oneshot" else selection.context
    return {"phase": phase, "batch": selection.batch, "q_len": q_len, "context": context, "tp": tp,
            "kv_dtype": kv, "weight_dtype": weight}  # fmt: skip


def _alt(found: Answer) -> str:
    top = found.rows[0]
    return (
        f"Log-log roofline. {found.title}. {len(found['points'])} kernels; the longest is {top['name']} with "
        f"{top['share']:.0%} of the time, bound by {top['bound']}. The table below has the same content."
    )


def _detail(found: Answer, event: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """The kernel clicked on, or chosen by name where there is no mouse."""
    picked = event.get("pick") or []
    names = (NOTHING, *dict.fromkeys(p["name"] for p in found["points"]))
    told = choice("kernel", names, NOTHING).show()
    name = picked[0]["name"] if picked else told
    rows = [r for r in found.rows if r["name"] == name]
    if not rows:
        return
    kernel = formula(rows[0]["kernel"])
    with st.container(border=True):
        st.markdown(f"**{escape(name)}** ({escape(kernel.title)})")
        for r in rows:
            st.markdown(escape(_sentence(r)))
        kit.explain(kernel, titles=("Formulas",))
        put_in = ", ".join(f"{k} = {v}" for k, v in rows[0]["values"].items())
        st.markdown(f"Numbers put in: {escape(put_in)}; batch = {options['batch']}, context = {options['context']}, "
                    f"q\\_len = {options['q_len']}.")  # fmt: skip
        st.markdown(f"Source: {escape(str(kernel['source']))}")
        st.markdown(f"Left out: {escape('; '.join(kernel['omits']) or 'nothing named')}")


def _sentence(r: Mapping[str, Any]) -> str:
    return (
        f"{r['hardware']}: {r['flops']:.4g} FLOP over {r['bytes']:.4g} B in {r['count']} runs, "
        f"intensity {r['intensity_flop_per_byte'] or 0:.4g} FLOP/B; "
        f"attainable bound {r['attainable_flop_per_s'] or 0:.4g} FLOP/s at {r['precision']}; "
        f"at least {r['time_lower_s']:.3g} s, {r['share']:.2%} of the step, {r['bound']} bound."
    )


def _figure(found: Answer) -> Any:
    from roofline.figures import draw

    return draw("roofline", found.data)


def _lines(selection: Selection, options: Mapping[str, Any]) -> tuple[str, str]:
    usual = {"tp": 1, "kv_dtype": "auto", "weight_dtype": "auto"}
    chips = selection.hardware if len(selection.hardware) > 1 else selection.chip
    python, _ = kit.call_lines("step_roofline", selection.model, chips, defaults=usual,
                               roof=selection.roof_or_none, **options)  # fmt: skip
    python = python.replace("import roofline\nroofline.", "from roofline.answers.plotted_step import step_roofline\n")
    lines = [
        kit.call_lines("step", selection.model, chip, named=("model", "hardware"), defaults=usual,
                       roof=selection.roof_or_none, **options)[1]
        for chip in selection.hardware
    ]  # fmt: skip
    return python, "\n".join(lines)
