"""Input widgets that are at the same time documented parameters of the page's address.

A parameter from the address is user input.  Streamlit drops silently what a widget refuses, so it is read here before
the widget, and a note says what was refused, what was expected and which default stands instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import streamlit as st

from roofline.dashboard.parameters import PARAMETERS, label
from roofline.glossary import GLOSSARY
from roofline.units import number as plain

NOTES = "_refused"  # in the session: parameter -> what was refused
SHOWN = 40  # characters of a refused value that are told
Kind = Literal["choice", "several", "slider", "steps", "switch", "text"]


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
        self._check_address()
        common = {"key": self.name, "help": help_text(self.name), "bind": "query-params"}
        value = getattr(self, f"_{self.kind}")(where, label(self.name), common)
        if value != self._plain_default():
            _notes().pop(self.name, None)
        return value

    def from_address(self) -> Any:
        """The value that the address gives, where no widget of Streamlit is drawn; refused values leave a note."""
        self._check_address()
        raw = st.query_params.get_all(self.name)
        return self._number(raw[-1]) if raw and not self.refuses(raw) else self._number(self.default)

    def to_address(self, value: Any) -> None:
        """Put a value into the address, or take it out where it is the default or refused."""
        _notes().pop(self.name, None)
        new = self._number(value) if not self.refuses([str(value)]) else self._number(self.default)
        if new == self.default:
            st.query_params.pop(self.name, None)
        else:
            st.query_params[self.name] = str(new)

    def _number(self, value: Any) -> float:
        """A number of the slider: whole where its steps are."""
        whole = all(float(x).is_integer() for x in (self.low, self.high, self.step))
        return round(float(value)) if whole else float(f"{float(value):.10g}")

    def _plain_default(self) -> Any:
        return list(self.default) if self.kind == "several" else self.default

    def _check_address(self) -> None:
        raw = st.query_params.get_all(self.name)
        if raw and (expected := self.refuses(raw)):
            if self.kind == "several":
                told = "; ".join(str(d) for d in self.default) or "none"
            else:
                told = plain(self.default) if isinstance(self.default, float) else str(self.default)
            _notes()[self.name] = (shorten(", ".join(raw)), expected, told)

    def refuses(self, raw: Sequence[str]) -> str:
        """What was expected where the widget does not take these values of the address, else nothing."""
        if self.kind in ("choice", "steps", "several"):
            known = {str(o) for o in self.options}
            names = ", ".join(list(map(str, self.options))[:8]) + (", ..." if len(self.options) > 8 else "")
            good = all(r in known for r in raw) and (self.kind == "several" or len(raw) == 1)
            return "" if good else f"{'some' if self.kind == 'several' else 'one'} of {names}"
        if self.kind == "switch":
            return "" if raw[-1].lower() in ("true", "false") else "true or false"
        if self.kind == "text":
            return "" if len(raw[-1]) <= self.high else f"at most {self.high:g} characters"
        expected = f"a number from {plain(self.low)} to {plain(self.high)}"
        try:
            value = float(raw[-1])
        except ValueError:
            return expected
        return "" if self.low <= value <= self.high else expected

    def tabs(self) -> Any:
        """The options of a choice as tabs, a container each."""
        self._check_address()
        return st.tabs(self.options, key=self.name, bind="query-params")

    def _choice(self, where: Any, label: str, common: dict[str, Any]) -> Any:
        at = self.options.index(self.default) if self.default in self.options else 0
        return where.selectbox(label, self.options, index=at, **common)

    def _several(self, where: Any, label: str, common: dict[str, Any]) -> Any:
        return where.pills(label, self.options, selection_mode="multi", default=list(self.default), **common)

    def _steps(self, where: Any, label: str, common: dict[str, Any]) -> Any:
        return where.select_slider(label, self.options, value=self.default, **common)

    def _slider(self, where: Any, label: str, common: dict[str, Any]) -> Any:
        kind: Any = int if all(float(x).is_integer() for x in (self.low, self.high, self.step)) else float
        low, high, value, step = map(kind, (self.low, self.high, self.default, self.step))
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
    """Text of limited length, for state that no widget holds, such as an encoded list."""
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


def _notes() -> dict[str, tuple[str, str, str]]:
    return st.session_state.setdefault(NOTES, {})  # type: ignore[no-any-return]
