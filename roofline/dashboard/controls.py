"""Input widgets that are at the same time documented parameters of the page's address.

A parameter from the address is user input.  Streamlit drops silently what a widget refuses, so it is read here before
the widget, and a note says what was refused, what was expected and which default stands instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import streamlit as st

from roofline.dashboard import visits
from roofline.dashboard.parameters import PARAMETERS, label
from roofline.glossary import GLOSSARY
from roofline.units import number as plain

NOTES = "_refused"  # in the session: parameter -> what was refused
WHOLE, DECIMAL = r"-?[0-9]{1,18}", r"-?[0-9]{1,18}(\.[0-9]{1,18})?(e[+-]?[0-9]{1,2})?"
SHOWN = 40  # characters of a refused value that are told
Kind = Literal["choice", "several", "slider", "steps", "switch", "text"]


@cache
def help_text(name: str) -> str:
    """Meaning, unit and letter of a quantity from the glossary, and what the parameter's own words add."""
    more = PARAMETERS[name].help if name in PARAMETERS else ""
    if name not in GLOSSARY:
        return escape(more)
    record = GLOSSARY[name]
    unit = "" if record.unit == "1" else f" [{record.unit}]"
    return f"{escape(record.meaning)}{unit}; ${record.latex}$" + (f"; {escape(more)}" if more else "")


def escape(text: str) -> str:
    """Text with every character that Markdown reads escaped, so that it is shown as it is."""
    return "".join("\\" + c if c in "\\`*_{}[]()#+-.!|<>$:~^=&" else c for c in text)


def shorten(text: str) -> str:
    """A value as it may be repeated to a user: on one line, printable, short."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}... ({len(text)} characters)"


@dataclass(frozen=True)
class Control:
    """One widget: `name` is its key and its parameter in the address; label and help are those of `parameters`.

    kind: "choice" (one of options), "several" (some of options), "slider" (a number from low to high), "steps" (one
    of ordered options), "switch" (on or off), "text" (at most `high` characters).
    """

    name: str
    kind: Kind
    default: Any
    options: tuple[Any, ...] = ()
    low: float = 0
    high: float = 0
    step: float = 1

    def show(self, where: Any = st) -> Any:
        """Draw the widget and return its value; a refused parameter of the address leaves a note."""
        common = {"key": self.name, "help": help_text(self.name), **self._ready()}
        value = getattr(self, f"_{self.kind}")(where, label(self.name), common)
        self._settle()
        if value != self._start():
            _notes().pop(self.name, None)
        return value

    def tabs(self) -> Any:
        """The options of a choice as tabs, a container each."""
        made = st.tabs(self.options, key=self.name, **self._ready())
        self._settle()
        return made

    def _ready(self) -> dict[str, Any]:
        """Set the widget where the address, another page or a new start ask for it; returns what it needs beside."""
        visit, held, start = visits.of(self.name), st.session_state, self._start()
        bound: dict[str, Any] = {"bind": "query-params"}
        if self.name in visit.mending:
            if self.name not in st.query_params:
                held[self.name] = visit.mending[self.name]
        elif self.name not in visit.drawn:
            given, as_it_is = self._given(visit.first)
            if not visit.first:
                left = visits.left(self.name) if given is None else given
                held[self.name] = visit.wanted[self.name] = left if self._takes(left) else start
            elif not as_it_is:
                # Streamlit would make something else of it, however the widget is set: bound in the next run only
                bound = {}
                held[self.name] = visit.mended[self.name] = start if given is None else given
                if given is not None:
                    st.query_params[self.name] = str(given)
        elif self.name in held and self._moves(held[self.name], visit.drawn[self.name]):
            held[self.name] = start
        visit.drawn[self.name] = start
        touched = {"on_change": partial(_notes().pop, self.name, None)} if self.name in _notes() else {}
        return bound | touched

    def _settle(self) -> None:
        """See whether the widget took what it was set to: on the browser's way back Streamlit goes by the address
        alone, and drops from it what another page has a control for."""
        wanted = visits.of(self.name).wanted
        if self.name in wanted and (value := wanted.pop(self.name)) != st.session_state[self.name]:
            visits.of(self.name).mended[self.name] = value

    def _moves(self, value: Any, before: Any) -> bool:
        """Whether a value gives way to the start: it is no longer on offer, or it stood at a start that has moved,
        which the address leaves out."""
        return not self._takes(value) or (value == before and value != self._start())

    def from_address(self) -> Any:
        """The value that the address gives, where no widget of Streamlit is drawn; refused values leave a note."""
        visit = visits.now()
        back = not visit.first and self.name not in visit.drawn
        value, _ = self._given(visit.first and self.name not in visit.drawn)
        if value is None and back and self._takes(left := visits.left(self.name)):
            self.to_address(value := left)
        visit.drawn[self.name] = self._start()
        visit.live[self.name] = self._start() if value is None else value
        return visit.live[self.name]

    def to_address(self, value: Any) -> None:
        """Put a value into the address, or take it out where it is the default or refused."""
        _notes().pop(self.name, None)
        new = self._number(value) if not self.refuses([str(value)]) else self._number(self.default)
        if new == self.default:
            st.query_params.pop(self.name, None)
        else:
            st.query_params[self.name] = str(new)

    @property
    def _whole(self) -> bool:
        """Whether the numbers of the slider are."""
        return all(float(x).is_integer() for x in (self.low, self.high, self.step))

    def _number(self, value: Any) -> float:
        """A number of the slider: whole where its steps are."""
        return round(float(value)) if self._whole else float(f"{float(value):.10g}")

    def _start(self) -> Any:
        if self.kind == "slider":
            return self._number(self.default)
        return list(self.default) if self.kind == "several" else self.default

    def _takes(self, value: Any) -> bool:
        """Whether the widget can be set to this."""
        if self.kind in ("choice", "steps"):
            return value in self.options
        if self.kind == "several":
            return isinstance(value, (list, tuple)) and all(one in self.options for one in value)
        if self.kind == "slider":
            return isinstance(value, (int, float)) and self.low <= value <= self.high
        return isinstance(value, bool if self.kind == "switch" else str)

    def _parsed(self, raw: Sequence[str]) -> Any:
        """What values of the address that are not refused stand for."""
        if self.kind in ("choice", "steps", "several"):
            found = [option for option in self.options if str(option) in raw]
            return found if self.kind == "several" else found[0]
        if self.kind == "switch":
            return raw[-1].lower() == "true"
        return self._number(raw[-1]) if self.kind == "slider" else raw[-1]

    def _given(self, link: bool) -> tuple[Any, bool]:
        """What the address gives, None where that is nothing or refused, and whether Streamlit reads it alike.

        link: whether somebody wrote or sent it, who is told of what is refused.
        """
        raw = st.query_params.get_all(self.name)
        spelled = self._spelled(raw)
        expected = self.refuses(spelled) if raw else ""
        if not expected:
            return (self._parsed(spelled) if raw else None), spelled == raw
        if link:
            start = "; ".join(map(str, self._start())) if self.kind == "several" else self._start()
            told = plain(start) if isinstance(start, float) else str(start)
            _notes()[self.name] = (shorten(", ".join(raw)), expected, told or "nothing")
            visits.forget(self.name)
        return None, False

    def _spelled(self, raw: list[str]) -> list[str]:
        """Numbers among options as these are written: 2 for 2.0."""
        numbers = {float(o): str(o) for o in self.options if isinstance(o, float)}
        return [numbers.get(float(r), r) if re.fullmatch(DECIMAL, r) else r for r in raw]

    def refuses(self, raw: Sequence[str]) -> str:
        """What was expected where the widget does not take these values of the address, else nothing."""
        if self.kind in ("choice", "steps", "several"):
            known = {str(o) for o in self.options}
            names = "; ".join(list(map(str, self.options))[:8]) + ("; ..." if len(self.options) > 8 else "")
            good = all(r in known for r in raw) and (self.kind == "several" or len(raw) == 1)
            return "" if good else f"{'some' if self.kind == 'several' else 'one'} of {names}"
        if self.kind == "switch":
            return "" if raw[-1].lower() in ("true", "false") and len(raw) == 1 else "true or false"
        if self.kind == "text":
            return "" if len(raw[-1]) <= self.high and len(raw) == 1 else f"at most {self.high:g} characters"
        number, pattern = ("a whole number", WHOLE) if self._whole else ("a number", DECIMAL)
        good = len(raw) == 1 and bool(re.fullmatch(pattern, raw[0])) and self.low <= float(raw[0]) <= self.high
        return "" if good else f"{number} from {plain(self.low)} to {plain(self.high)}"

    def _choice(self, where: Any, label: str, common: dict[str, Any]) -> Any:
        at = self.options.index(self.default) if self.default in self.options else 0
        return where.selectbox(label, self.options, index=at, **common)

    def _several(self, where: Any, label: str, common: dict[str, Any]) -> Any:
        return where.pills(label, self.options, selection_mode="multi", default=list(self.default), **common)

    def _steps(self, where: Any, label: str, common: dict[str, Any]) -> Any:
        return where.select_slider(label, self.options, value=self.default, **common)

    def _slider(self, where: Any, label: str, common: dict[str, Any]) -> Any:
        low, high, value, step = map(int if self._whole else float, (self.low, self.high, self.default, self.step))
        return where.slider(label, low, high, value, step, **common)

    def _switch(self, where: Any, label: str, common: dict[str, Any]) -> Any:
        return where.toggle(label, value=self.default, **common)

    def _text(self, where: Any, label: str, common: dict[str, Any]) -> Any:
        return where.text_input(label, value=self.default, max_chars=int(self.high), **common)


def choice(name: str, options: Sequence[Any], default: Any) -> Control:
    """One of several options."""
    return Control(name, "choice", default, options=tuple(options))


def several(name: str, options: Sequence[Any], default: Sequence[Any] = ()) -> Control:
    """Any number of options."""
    return Control(name, "several", tuple(default), options=tuple(options))


def slider(name: str, low: float, high: float, default: float, step: float = 1) -> Control:
    """A number in a range; whole where low, high and step are."""
    return Control(name, "slider", default, low=low, high=high, step=step)


def steps(name: str, options: Sequence[Any], default: Any) -> Control:
    """One of ordered values, such as powers of two."""
    return Control(name, "steps", default, options=tuple(options))


def switch(name: str, default: bool = False) -> Control:
    """On or off."""
    return Control(name, "switch", default)


def text(name: str, default: str = "", longest: int = 4000) -> Control:
    """Text of limited length."""
    return Control(name, "text", default, high=longest)


def refuse(name: str, value: str, expected: str, default: str) -> None:
    """Leave a note about a parameter that a page reads itself."""
    _notes()[name] = (shorten(value), expected, default)


def refusals() -> list[str]:
    """The notes about refused parameters, as text safe to show."""
    return [
        f"{escape(name)} in the address: got {escape(repr(got))}, expected {escape(expected)}; "
        f"{escape(told)} is used instead"
        for name, (got, expected, told) in _notes().items()
    ]


def forgive() -> None:
    """Drop all notes."""
    _notes().clear()


def _notes() -> dict[str, tuple[str, str, str]]:
    return st.session_state.setdefault(NOTES, {})  # type: ignore[no-any-return]
