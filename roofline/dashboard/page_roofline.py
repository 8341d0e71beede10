"""The roofline page: every kernel of a model's step under the roofs of one accelerator or two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import streamlit as st

from roofline.accelerators import Accelerator
from roofline.answer import Answer, Section
from roofline.answers.plotted_step import step_data
from roofline.answers.step import step
from roofline.answers.step_report import OMITS
from roofline.dashboard import charts, kit, step_controls, visits
from roofline.dashboard.controls import choice, escape
from roofline.dashboard.selection import ALL_ROOFS, Selection
from roofline.dashboard.step_controls import workload_and_deployment
from roofline.models import Model
from roofline.units import show

PARAMETERS = (*step_controls.PARAMETERS, "kernel")
DEFAULTS = step.__kwdefaults__ or {}  # of the library
CHART, NOTHING = "roofline_chart", "none"
VISIT = "_roofline_visit"  # in the session: clicks on the chart so far
FIRST, STRUT = r"\begin{aligned} ", r"\rule{0pt}{1.7em} "  # the browser cuts the top of a fraction in the first line
HOW = "Click a point of the chart, or choose a kernel here, for its formulas with the numbers put in and its sources."


def page(selection: Selection) -> None:
    """Chart, what was clicked on, table, downloads."""
    options = workload_and_deployment(selection.loaded)
    with kit.guarded():
        _answered(selection, options)
    others = "datasheet, for times, shares and bounds; the other roofs are only drawn"
    kit.footer(others if selection.roof == ALL_ROOFS else selection.roof, OMITS)


@lru_cache(maxsize=128)
def _found(model: Model, parts: tuple[Accelerator, ...], **options: Any) -> Answer:
    return step_data(model, parts, color="bound", **options)


def _answered(selection: Selection, options: Mapping[str, Any]) -> None:
    """Everything that follows from the choices."""
    visits.now().read.add("kernel")  # of which a step that has no answer has none
    context = 0 if options["phase"] == "oneshot" else selection.context
    asked = {**options, "batch": selection.batch, "context": context, "roof": selection.roof}
    found = _found(selection.loaded, selection.parts, **asked)
    st.markdown(f"**{escape(found.title)}**")
    above = st.container()
    name = _kernel(found)
    with above:
        kit.chart(
            charts.roofline_spec(found.data, name, st.session_state.get(VISIT, 0)), CHART, _alt(found), picked=_clicked
        )
    told = _explanation(found, name)
    _detail(told)
    kit.table(found, alt=f"Kernels: {found.title}")
    kit.notes(found, besides=OMITS)
    derived = replace(found, sections=(*told, *found.sections))
    kit.downloads("roofline", derived, lambda: _figure(found))
    chips = selection.spelled[0] if len(selection.spelled) == 1 else list(selection.spelled)
    asked |= {"hardware": chips, "color": "bound"}
    kit.reproduce(
        "roofline", *kit.call_lines("plot", "step", named=("",), defaults=DEFAULTS, model=selection.model, **asked)
    )


def _clicked() -> None:
    """A new click on a point chooses the kernel; zooming and the legend, which tell the last click again, do not."""
    visit = st.session_state.get(VISIT, 0)
    for point in st.session_state[CHART].selection.get("pick") or []:
        if point.get("visit") == visit:
            st.session_state["kernel"], st.session_state[VISIT] = point["name"], visit + 1


def _kernel(found: Answer) -> str:
    """The kernel to explain, by name."""
    names = (NOTHING, *dict.fromkeys(row["name"] for row in found.rows))
    return str(choice("kernel", names, NOTHING).show())


def _explanation(found: Answer, name: str) -> tuple[Section, ...]:
    """Each way in which the kernel runs, and what each accelerator makes of it."""
    if name == NOTHING:
        return ()
    from roofline.answers.put_in_kernel import roof_steps, work_steps  # symbolic: not needed before a kernel is chosen

    told: dict[Section, list[Section]] = {}
    for row in found.rows:
        if row["name"] == name:
            on = roof_steps(row, found["rates"][row["hardware"]], found["roofs"])
            told.setdefault(work_steps(row, found["inputs"]), []).append(on)
    return tuple(section for work, roofs in told.items() for section in (work, *roofs))


def _detail(told: tuple[Section, ...]) -> None:
    """The explanation, or how to get one."""
    if not told:
        st.caption(HOW)
        return
    with st.container(border=True):
        for section in told:
            st.markdown(f"**{escape(section.title)}**")
            row = st.container(horizontal=True, gap="medium")  # side by side where there is room
            for formula in section.formulas:
                row.latex(formula.replace(FIRST, FIRST + STRUT, 1), width="content")
            st.caption("\n".join(f"- {kit.prose(line)}" for line in section.lines))


def _alt(found: Answer) -> str:
    top = found.rows[0]
    roofs = ", ".join(f"{r['short']} {r['ridge_flop_per_byte']:.4g}" for r in found["roofs"])
    return (
        f"Log-log roofline. {found.title}. {len(found['points'])} kernels; the longest is {top['name']} with "
        f"{top['share']:.0%} of the time, at least {show(top['time_lower_s'], 's')}, bound by {top['bound']}. "
        f"Ridges in FLOP/B: {roofs}. The table below has the same content."
    )


def _figure(found: Answer) -> Any:
    from roofline.figures import draw

    return draw("step", found.data)
