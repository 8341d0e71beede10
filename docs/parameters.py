"""The page parameters.md, read off the dashboard itself: every page is drawn, in each of its phases, and the controls
that it shows are written down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamlit.testing.v1 import AppTest

from roofline.dashboard import controls, frame, visits
from roofline.dashboard.deployment import IN_FLIGHT
from roofline.dashboard.kv_requests import ARTICLE, EXPECTED
from roofline.dashboard.parameters import PARAMETERS
from roofline.dashboard.selection import Selection
from roofline.glossary import GLOSSARY
from roofline.units import number

MANY = 12  # options that are listed
ELSEWHERE = {  # what no control of the sweep below tells: a text field that the table of requests shares, and controls
    # that are there from a second tensor-parallel rank, a first draft, a second stage on
    "lengths": (EXPECTED, f"`{ARTICLE}`"),
    "acceptance": ("1 to 1 + drafts", "1 + drafts"),
    "micro_batches": ("; ".join(f"`{n}`" for n in IN_FLIGHT), "`1`"),
    "cp": ("a divisor of the copies of a cache that tensor-parallel ranks hold", "`1`"),
}
NOTE = "<!-- written by docs/generate.py; never edited by hand -->"
HEAD = ["| parameter | what it is | takes | default |", "|---|---|---|---|"]
TEXT = f"""# Parameters of the dashboard's address

{NOTE}

The address of a page holds whatever differs from the default, under the names that the command line and Python use, so
a link restores a view. The names are stable. A value that a page does not take leaves the default and a note. Of a file
that was uploaded the address holds the name alone: elsewhere the link shows the default and a note.

`model`, `hardware`, `hardware_2`, `roof`, `batch` and `context` are those of the sidebar and hold on every page. Which
of a page's own parameters are there depends on its phase.
"""


def parameters_page() -> str:
    """The sidebar's parameters, then each page's own."""
    lines, shared = [TEXT], {}
    for at, page in enumerate(frame.PAGES):
        module = page.module()
        seen = _seen(module)
        shared |= {name: seen[name] for name in visits.SHARED}
        own = [_row(name, seen.get(name)) for name in module.PARAMETERS]
        lines += [f"## {page.title} (`/{page.path if at else ''}`)", "", *HEAD, *own, ""]
    lines[1:1] = ["## Sidebar", "", *HEAD, *(_row(name, control) for name, control in shared.items()), ""]
    return "\n".join(lines)


def _seen(module: Any) -> dict[str, controls.Control]:
    """The controls of a page in every state that a choice of few options puts it into."""
    seen = _drawn(module)
    for control in [c for c in seen.values() if c.kind == "choice" and c.name in module.PARAMETERS]:
        for option in control.options if len(control.options) <= MANY else ():
            for name, more in _drawn(module, **{control.name: str(option)}).items():
                seen.setdefault(name, more)
    return seen


def _drawn(module: Any, **address: str) -> dict[str, controls.Control]:
    """The controls of one run of a page."""
    seen: dict[str, controls.Control] = {}
    given = controls.Control._given

    def noted(control: controls.Control, link: bool) -> tuple[Any, bool]:
        seen.setdefault(control.name, control)
        return given(control, link)

    def script(module, selection):  # its source alone is run, so no names of this file
        from importlib import import_module

        from roofline.dashboard import frame, kit

        frame.shared_selection()
        with kit.guarded():
            import_module(module).page(selection)

    at = AppTest.from_function(script, args=(module.__name__, Selection()), default_timeout=60)
    for name, value in address.items():
        at.query_params[name] = value
    controls.Control._given = noted  # type: ignore[method-assign]
    try:
        at.run()
    finally:
        controls.Control._given = given  # type: ignore[method-assign]
    return seen


def _row(name: str, control: controls.Control | None) -> str:
    words = PARAMETERS[name]
    unit = GLOSSARY[name].unit if name in GLOSSARY else "1"
    meaning = "; ".join(filter(None, (GLOSSARY[name].meaning if name in GLOSSARY else "", words.help))) or words.label
    told = meaning + (f" [{unit}]" if unit != "1" else "")
    takes, default = ELSEWHERE[name] if control is None else (_takes(control), _default(control))
    return f"| `{name}` | {told} | {takes} | {default} |"


def _takes(control: controls.Control) -> str:
    options = [f"`{option}`" for option in control.options]
    if len(options) > MANY:
        which = "some" if control.kind == "several" else "one"
        ordered = f"from {options[0]} to {options[-1]}" if control.kind == "steps" else f"such as {options[1]}"
        return f"{which} of {len(options)}, {ordered}"
    if options:
        return ("some of " if control.kind == "several" else "") + "; ".join(options)
    if control.kind == "slider":
        return f"{number(control.low)} to {number(control.high)}"
    return {"switch": "`true`; `false`", "text": f"text of at most {control.high:g} characters"}[control.kind]


def _default(control: controls.Control) -> str:
    values: Iterator[Any] = iter(control.default if control.kind == "several" else [control.default])
    return ", ".join(f"`{value}`" for value in values if value != "")
