"""What was read of a file, kept as long as the file is the same."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
Stamp = tuple[str, int, int, int]
_FRESH_NS = 10**8  # a file younger than this may change again within one tick of its clock: it is not kept
_KEPT = 128  # readings that are kept
_known: dict[Any, Any] = {}


def stamp(path: str) -> Stamp | None:
    """Path, inode, time of the last change [ns] and size of a file, which tell that it is the same (zeros: no file).

    None where they do not: for what is no plain file, and for a file that was written a moment ago.
    """
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return path, 0, 0, 0
    told = path, found.st_ino, found.st_mtime_ns, found.st_size
    return told if stat.S_ISREG(found.st_mode) and time.time_ns() - found.st_mtime_ns > _FRESH_NS else None


def kept(read: Callable[..., T], *paths: str) -> T:
    """`read(*paths)`, or what it gave before where no file has changed since.  The result must not be changed."""
    stamps = tuple(stamp(path) for path in paths)
    if None in stamps:
        return read(*paths)
    found: T | None = _known.get((read, stamps))
    if found is None:
        found = read(*paths)
        while len(_known) >= _KEPT:
            _known.pop(next(iter(_known), None), None)
        _known[read, stamps] = found
    return found
