"""Files of the user: read once when they arrive, a mistake shown in place, the last good one kept for this session."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import streamlit as st

from roofline.dashboard import kit
from roofline.errors import BadFile

LIMIT_MB = 1
FOLDER = "uploaded"  # a config.json is named after its folder


class File(NamedTuple):
    """Its name, as far as it is harmless, and what was read from it."""

    name: str
    content: Any


def uploaded(
    kind: str,
    label: str,
    types: Sequence[str],
    read: Callable[[str], Any],
    told: str,
    then: Callable[[File], None] = lambda file: None,
) -> File | None:
    """The field for a file, its mistake, and the last good file; None where there was none.

    read: makes the content from a path; what it refuses is told with the error of the command line, and leaves the last
    good file.  then: called with a new good file before the page is drawn anew, so that it may set widgets.
    """
    st.file_uploader(
        label,
        type=list(types),
        key=f"_upload_{kind}",
        max_upload_size=LIMIT_MB,
        help=told,
        on_change=_take,
        args=(kind, read, then),
    )
    st.caption(f"At most {LIMIT_MB} MB. A file stays in this session: the address holds its name, not what is in it.")
    held = _held(kind)
    if held["mistake"]:
        kit.error(held["mistake"] + (". The last good file stays in use." if held["good"] is not None else ""))
    return good(kind)


def good(kind: str) -> File | None:
    """The last good file of this session, if there was one."""
    held: File | None = _held(kind)["good"]
    return held


def _held(kind: str) -> dict[str, Any]:
    return st.session_state.setdefault(f"_uploaded_{kind}", {"good": None, "mistake": ""})  # type: ignore[no-any-return]


def _take(kind: str, read: Callable[[str], Any], then: Callable[[File], None]) -> None:
    """Read a file that has just arrived; one that is taken away, as a browser does before it sends another, leaves what
    there is."""
    file, held = st.session_state[f"_upload_{kind}"], _held(kind)
    held["mistake"] = ""
    if file is None:
        return
    name = _plain(file.name)
    try:
        held["good"] = File(name, _read(name, file.getvalue(), read))
    except Exception as problem:
        held["mistake"] = kit.message(problem)
    else:
        then(held["good"])


def _plain(name: str) -> str:
    """The last part of a name as far as it is harmless, and short enough for a file of any system."""
    last = os.path.basename(name.replace("\\", "/"))
    plain = "".join(c for c in last if c.isalnum() or c in "-_.() ").encode()[-80:].decode(errors="ignore")
    return plain.strip().lstrip(".") or "file"


def _read(name: str, content: bytes, read: Callable[[str], Any]) -> Any:
    """Call `read` on a file that lives as long as the call; errors name it as the user does."""
    if len(content) > LIMIT_MB << 20:  # the widget's own limit is the browser's to keep
        raise BadFile(name, "", f"{len(content)} bytes", f"at most {LIMIT_MB} MB")
    with tempfile.TemporaryDirectory() as outside:
        folder = os.path.join(outside, FOLDER)
        os.mkdir(folder)
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(content)
        try:
            return read(path)
        except Exception as mistake:
            mistake.args = (str(mistake).replace(folder + os.sep, ""),)
            raise
