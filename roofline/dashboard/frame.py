"""The frame around the pages: settings, the shared selection in the sidebar, navigation, and what errors look like."""

from __future__ import annotations

from functools import cache, partial
from importlib import import_module
from threading import Thread
from typing import Any, NamedTuple

import streamlit as st

from roofline.dashboard import kit, known, visits
from roofline.dashboard.controls import choice, escape, forgive, refusals, refuse, shorten, steps
from roofline.dashboard.parameters import PARAMETERS
from roofline.dashboard.selection import ALL_ROOFS, Selection


class Page(NamedTuple):
    """A page: its heading in the navigation and on the page, its path in the address, and its module.

    The module is imported when the page is drawn: what one page needs is no reason for another to wait.
    """

    title: str
    path: str

    def module(self) -> Any:
        return import_module(f"roofline.dashboard.page_{self.path}")

    def draw(self, chosen: list[Selection]) -> None:
        st.title(self.title)
        with kit.guarded():
            self.module().page(chosen[0])


PAGES = (  # in the order of the navigation
    Page("Roofline", "roofline"),
    Page("Head count", "heads"),
    Page("MHA or MQA mode", "crossover"),
    Page("Model step", "step"),
    Page("KV memory", "kv"),
    Page("Hardware", "hardware"),
)
NONE = "none"
BATCHES = tuple(2**k for k in range(13))
CONTEXTS = tuple(2**k for k in range(8, 21))
DEFAULT = Selection()


def main() -> None:
    """Draw the dashboard once; Streamlit calls this for every change."""
    st.set_page_config(page_title="roofline", layout="wide")
    with kit.guarded():
        chosen: list[Selection] = []
        pages = {
            page.path: st.Page(
                partial(page.draw, chosen), title=page.title, url_path=page.path, default=page is PAGES[0]
            )
            for page in PAGES
        }
        now = st.navigation(list(pages.values()))
        if visits.enter(next(path for path, page in pages.items() if page is now)):
            forgive()
        warnings = st.empty()
        chosen.append(shared_selection())
        now.run()
        for name, value in visits.idle():
            refuse(name, value, "nothing in this view", "the default")
        if visits.mend():
            st.rerun()
        _tell(warnings, [*refusals(), *(_unknown(name) for name in st.query_params if name not in PARAMETERS)])
    warm()


@cache
def warm() -> None:
    """Import what the pages need, once in a server and beside whatever else it does."""

    def imports() -> None:
        PAGES[0].module()
        import_module("pandas")  # which Streamlit imports with the first table
        for page in PAGES:
            page.module()

    Thread(target=imports, daemon=True).start()


def shared_selection() -> Selection:
    """The widgets of the sidebar, which keep their values from page to page."""
    bar = st.sidebar
    model = choice("model", known.model_names(), DEFAULT.model).show(bar)
    ids = tuple(known.parts())
    first = choice("hardware", ids, DEFAULT.chip).show(bar)
    others = (NONE, *(i for i in ids if i != first))
    second = choice("hardware_2", others, NONE).show(bar)
    chips = (first,) if second == NONE else (first, second)
    roofs = choice("roof", roof_names(chips), ALL_ROOFS).show(bar)
    batch = steps("batch", BATCHES, DEFAULT.batch).show(bar)
    context = steps("context", CONTEXTS, DEFAULT.context).show(bar)
    return Selection(model, chips, roofs, batch, context)


def roof_names(chips: tuple[str, ...]) -> tuple[str, ...]:
    """Names of roofs that all of these accelerators have."""
    found = [dict.fromkeys(roof.name for roof in known.parts()[chip].roofs) for chip in chips]
    return (ALL_ROOFS, *(name for name in found[0] if all(name in other for other in found)))


def _unknown(name: str) -> str:
    return f"{escape(repr(shorten(name)))} in the address is no parameter of the dashboard and is ignored"


def _tell(place: Any, told: list[str]) -> None:
    if told:
        place.warning("\n".join(f"- {line}" for line in told[:12]), icon=":material/info:")
