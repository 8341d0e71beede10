"""A file of the user: read once, its error shown in place, the last good one kept for this session alone."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from roofline.dashboard import kit
from roofline.errors import BadFile, RooflineError

LIMIT_MB = 1
FOLDER = "uploaded"  # a config.json is named after its folder


def uploaded(name: str, label: str, types: Sequence[str], read: Callable[[str], Any], told: str) -> Any:
    """What `read` made of the uploaded file, given its path; None where there is none, or none was ever good.

    A file that `read` refuses shows the same error as the command line and leaves what the last good file gave.
    """
    file = st.file_uploader(label, type=list(types), key=f"_upload_{name}", max_upload_size=LIMIT_MB, help=told)
    st.caption(f"At most {LIMIT_MB} MB. A file stays in this session and is no part of the address.")
    held = st.session_state.setdefault(f"_uploaded_{name}", {"mark": None, "good": None, "mistake": ""})
    if file is None:  # removed, or about to be replaced: a browser takes the old one away first
        held.update(mark=None, mistake="")
        return None
    if held["mark"] != file.file_id:
        held["mark"], held["mistake"] = file.file_id, ""
        try:
            held["good"] = _read(file.name, file.getvalue(), read)
        except RooflineError as mistake:
            held["mistake"] = str(mistake)
    if held["mistake"]:
        kit.error(held["mistake"] + (". The last good file stays in use." if held["good"] is not None else ""))
    return held["good"]


def _read(name: str, content: bytes, read: Callable[[str], Any]) -> Any:
    """Call `read` on a file that lives as long as the call; errors name it as the user does."""
    plain = "".join(c for c in os.path.basename(name.replace("\\", "/")) if c.isalnum() or c in "-_.")[-80:]
    if len(content) > LIMIT_MB << 20:  # the widget's own limit is the browser's to keep
        raise BadFile(plain or "file", "", f"{len(content)} bytes", f"at most {LIMIT_MB} MB")
    with tempfile.TemporaryDirectory() as outside:
        folder = os.path.join(outside, FOLDER)
        os.mkdir(folder)
        path = os.path.join(folder, plain.lstrip(".") or "file")
        with open(path, "wb") as file:
            file.write(content)
        try:
            return read(path)
        except RooflineError as mistake:
            mistake.args = (str(mistake).replace(folder + os.sep, ""),)
            raise
