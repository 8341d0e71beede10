"""The exception family.  Every mistake of a user ends in one of these, never in a traceback.

Each class carries the process exit code that the command line returns for it:

    1  no answer exists (the message says why)      NoAnswer
    2  usage: unknown name, bad option value         UnknownName, BadValue
    3  unreadable or invalid input file              BadFile
"""

from __future__ import annotations

from collections.abc import Iterable


class RooflineError(Exception):
    """Base of all errors that this package raises on purpose."""

    exit_code = 2


class NoAnswer(RooflineError):
    """The question is well posed and has no answer, for the reason given."""

    exit_code = 1


class UnknownName(RooflineError):
    """A name (accelerator, model, kernel, quantity, ...) that is not in its registry.

    >>> raise UnknownName("accelerator", "h100", ["h100-sxm", "h200-sxm"])
    Traceback (most recent call last):
    roofline.errors.UnknownName: unknown accelerator 'h100': nearest are h100-sxm, h200-sxm
    """

    def __init__(self, kind: str, name: object, choices: Iterable[str], listing: str | None = None) -> None:
        from difflib import get_close_matches  # only on the way to an error: keeps a cold start short

        self.kind, self.name, self.choices = kind, name, list(choices)
        text = str(name)[:80]
        near = get_close_matches(text.lower(), self.choices, n=4, cutoff=0.5)
        near = near or [c for c in self.choices if text and text.lower() in c.lower()][:4]
        few = len(self.choices) <= 12 or sum(map(len, self.choices)) <= 200  # they can all be told
        if few:
            hint = "the choices are " + (", ".join(self.choices) or "(none)")
        else:
            hint = "nearest are " + ", ".join(near) if near else f"none of {len(self.choices)} is close"
        if near and few:
            hint = (
                "nearest are " + ", ".join(near)
                if len(near) == len(self.choices)
                else f"did you mean {near[0]}? {hint}"
            )
        tail = f"; all are listed by `{listing}`" if listing else ""
        super().__init__(f"unknown {kind} {text!r}: {hint}{tail}")


class BadValue(RooflineError):
    """A value outside its range or of the wrong kind or unit.

    >>> raise BadValue("heads", 0, "a positive count")
    Traceback (most recent call last):
    roofline.errors.BadValue: heads: got 0, expected a positive count
    """

    def __init__(self, name: str, value: object, expected: str, note: str = "") -> None:
        self.name, self.value, self.expected = name, value, expected
        shown = repr(value) if isinstance(value, str) else str(value)
        super().__init__(f"{name}: got {_short(shown)}, expected {expected}" + (f" ({note})" if note else ""))


class BadFile(RooflineError):
    """A file that cannot be read or does not say what it must, with the dotted path to the place.

    >>> raise BadFile("my.yaml", "accelerators.x.bandwidth_byte_per_s", "'3.35e12'", "a number")
    Traceback (most recent call last):
    roofline.errors.BadFile: my.yaml: accelerators.x.bandwidth_byte_per_s: got '3.35e12', expected a number
    """

    exit_code = 3

    def __init__(self, file: object, where: str, got: object, expected: str, note: str = "") -> None:
        self.file, self.where = str(file), where
        place = f"{file}: {where}: " if where else f"{file}: "
        super().__init__(f"{place}got {_short(str(got))}, expected {expected}" + (f" ({note})" if note else ""))


def _short(text: str, limit: int = 120) -> str:
    """Shorten what a user typed, so that a hostile value cannot flood a message."""
    return text if len(text) <= limit else text[:limit] + f"... ({len(text)} characters)"
