"""The accelerator catalogue: the built-in hardware.yaml, files of the user, and parts given ad hoc.

The built-in file is trusted, because the tests check every number of it (`roofline.accelerators.store`).  Files of a
user go through `roofline.accelerators.schema`, which validates them.

>>> catalog = load_catalog(environ={})
>>> round(catalog["h800-sxm"].ridge, 1), round(catalog["h800"].roof("flashmla").ridge, 1)
(295.3, 258.2)
>>> [a.id for a in select("b200,mtt-s4000", catalog)]
['b200-sxm', 'mtt-s4000']
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from roofline.accelerators.parts import GIVEN, Accelerator, RidgeOnly, Roof, build
from roofline.accelerators.sourcing import Source
from roofline.accelerators.store import builtin
from roofline.errors import BadFile, BadValue, UnknownName
from roofline.files import kept
from roofline.units import parse

__all__ = ["Accelerator", "Catalog", "Roof", "Source", "adhoc", "load_catalog", "resolve", "select"]

_LISTING = "roofline hardware list"
_RAISE: Any = object()
Entry = Mapping[str, Any]


class Catalog(Mapping[str, Accelerator]):
    """Accelerators by id, in file order; built when asked for.  `digest` names the data, `warnings` are for the user.

    Indexing and `get` accept the start of an id up to a dash where only one part has it ("h800"); `in` and iteration
    know full ids alone.  Both raise UnknownName with the nearest ids.
    """

    def __init__(self, entries: Mapping[str, tuple[Entry, str]], digest: str, warnings: Iterable[str] = ()) -> None:
        self._entries = dict(entries)  # id -> entry as written, and the file it came from
        self._built: dict[str, Accelerator] = {}
        self.digest = digest
        self.warnings = tuple(warnings)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, part_id: object) -> bool:
        return part_id in self._entries

    def __getitem__(self, part_id: str) -> Accelerator:
        full = self.full_id(part_id)
        if full not in self._built:
            self._built[full] = build(full, *self._entries[full])
        return self._built[full]

    def get(self, part_id: str, default: Any = _RAISE) -> Any:
        """The part of this id or unambiguous start of an id.  Raises UnknownName unless a default is given."""
        if default is not _RAISE and part_id not in self._entries:
            return default
        return self[part_id]

    def full_id(self, name: str) -> str:
        """The id that a name stands for.  Raises UnknownName, or BadValue where several parts share the start."""
        if name in self._entries:
            return name
        text = str(name).strip().lower().replace("_", "-").replace(" ", "-")
        if text in self._entries:
            return text
        starts = [i for i in self._entries if i.startswith(text + "-")] if text else []
        if len(starts) == 1:
            return starts[0]
        if starts:
            raise BadValue("hardware", name, "one part; the name fits " + ", ".join(starts))
        raise UnknownName("accelerator", name, self._entries, _LISTING)

    def extended(self, files: Iterable[str]) -> Catalog:
        """This catalogue with the parts of more files, in order.

        A part that is there already is replaced as a whole, and only by an entry that says `override: true`.
        Raises BadFile (exit code 3) for anything wrong in a file.
        """
        return self._with(files)[0]

    def _with(self, files: Iterable[str]) -> tuple[Catalog, dict[str, list[str]]]:
        """The extended catalogue and the ids that each file brought."""
        entries, warnings, brought = dict(self._entries), list(self.warnings), {}
        digests = [self.digest]
        for path in files:
            from roofline.accelerators.schema import read

            found = kept(read, path)
            for part_id, entry in found.entries.items():
                override = entry.get("override", False)
                if part_id in entries and not override:
                    wanted, note = "a new id, or `override: true` in the entry", f"it comes from {entries[part_id][1]}"
                    raise BadFile(path, f"accelerators.{part_id}", "an id that exists already", wanted, note)
                if part_id not in entries and override:
                    warnings.append(f"{path}: accelerators.{part_id}: override is true, but no part has this id")
                entries[part_id] = (entry, path)
            warnings += [f"{path}: {where}: {text}" for where, text in found.warnings]
            brought[path] = list(found.entries)
            digests.append(found.digest)
        catalog = Catalog(entries, _joined(digests), warnings)
        same = {part_id for part_id in self._built if entries[part_id] is self._entries[part_id]}
        catalog._built = {part_id: self._built[part_id] for part_id in same}
        return catalog, brought


def load_catalog(files: Iterable[str] = (), environ: Mapping[str, str] | None = None) -> Catalog:
    """All accelerators: built-in, the user's config folder, the files of ROOFLINE_HARDWARE, then `files`.

    `environ` replaces the environment (for tests); without HOME or XDG_CONFIG_HOME in it no config folder is read.
    Raises BadFile (exit code 3) for a file of the user that is missing, unreadable or invalid.
    """
    catalog = _builtin_parts()
    more = [*_user_files(os.environ if environ is None else environ), *files]
    return catalog.extended(more) if more else catalog


_builtin: tuple[Any, Catalog] | None = None  # what the file gave, and its catalogue with the parts built so far


def _builtin_parts() -> Catalog:
    """The built-in parts alone: one catalogue, and one frozen record a part, as long as the file is the same."""
    global _builtin
    read = builtin()
    last = _builtin
    if last is None or last[0] is not read:
        entries, digest = read
        last = read, Catalog({part_id: (entry, "built-in") for part_id, entry in entries.items()}, digest[:12])
        _builtin = last
    return last[1]


def _user_files(environ: Mapping[str, str]) -> Iterator[str]:
    """The config folder's file if there is one, then what ROOFLINE_HARDWARE lists."""
    folder = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):  # the XDG specification: a relative path is ignored
        home = environ.get("HOME") or environ.get("USERPROFILE")
        folder = os.path.join(home, ".config") if home else ""
    config = os.path.join(folder, "roofline", "hardware.yaml")
    if folder and os.path.exists(config):
        yield config
    yield from (path for path in environ.get("ROOFLINE_HARDWARE", "").split(os.pathsep) if path)


def _joined(digests: list[str]) -> str:
    if len(digests) == 1:
        return digests[0]
    from hashlib import sha256

    return sha256(" ".join(digests).encode()).hexdigest()[:12]


def select(names: str | Iterable[str], catalog: Catalog) -> list[Accelerator]:
    """The parts that `names` asks for: ids, comma-separated lists, "all", and paths to hardware files.

    A file adds its parts and selects them.  Order is kept, repeats are dropped.  Raises UnknownName, BadValue, BadFile.
    """
    return resolve(names, catalog)[0]


def resolve(names: str | Iterable[str], catalog: Catalog) -> tuple[list[Accelerator], Catalog]:
    """As `select`, with the catalogue that includes the files: its `digest` and `warnings` belong into the answer."""
    wanted = list(_split([names] if isinstance(names, str) else names))
    files = list(dict.fromkeys(text for text in wanted if _is_file(text)))
    brought: dict[str, list[str]] = {}
    if files:
        catalog, brought = catalog._with(files)
    ids: dict[str, None] = {}
    for text in wanted:
        more = list(catalog) if text.lower() == "all" else brought.get(text) or [catalog.full_id(text)]
        ids.update(dict.fromkeys(more))
    if not ids:
        raise BadValue("hardware", "nothing", "an accelerator id, a hardware file, or all")
    return [catalog[part_id] for part_id in ids], catalog


def _split(names: Iterable[str]) -> Iterator[str]:
    for text in names:
        pieces = [text] if os.path.isfile(text) else text.split(",")
        yield from (piece.strip() for piece in pieces if piece.strip())


def _is_file(text: str) -> bool:
    return text.lower().endswith((".yaml", ".yml", ".json")) or os.sep in text


def adhoc(
    peak: str | float | None = None,
    bandwidth: str | float | None = None,
    ridge: str | float | None = None,
    exp_rate: str | float | None = None,
) -> Accelerator:
    """A part from numbers alone, with one roof that serves every precision.

    Give peak and bandwidth; or ridge alone, which gives intensities but no times; or ridge and one of the two.
    Text carries its unit ("989TFLOP/s", "3.35TB/s", "3.86Texp/s"), floats are SI.  Raises BadValue.

    >>> adhoc("989TFLOP/s", "3.35TB/s").ridge
    295.2238805970149
    >>> adhoc(ridge=128).roof().peak
    Traceback (most recent call last):
    roofline.errors.NoAnswer: only the ridge point (128 FLOP/B) is given: no peak, so no time can be had
    """
    pi = None if peak is None else parse(peak, "FLOP/s", "peak")
    beta = None if bandwidth is None else parse(bandwidth, "B/s", "bandwidth")
    point = None if ridge is None else parse(ridge, "FLOP/B", "ridge")
    rate = None if exp_rate is None else parse(exp_rate, "exp/s", "exp_rate")
    if pi is not None and beta is not None and point is not None:
        raise BadValue("ridge", ridge, "peak and bandwidth, or ridge, not all three")
    if point is not None and beta is not None:
        pi = point * beta
    elif point is not None and pi is not None:
        beta = pi / point
    if pi is not None and beta is not None:
        return _given(Roof(GIVEN, GIVEN, pi, beta, GIVEN, "the caller"), pi, beta, rate)
    if point is None:
        missing = "bandwidth" if pi is not None else "peak"
        raise BadValue(missing, "nothing", "peak and bandwidth, or ridge, for an ad hoc part")
    return _given(RidgeOnly(point), None, None, rate)


def _given(roof: Roof, peak: float | None, bandwidth: float | None, rate: float | None) -> Accelerator:
    return Accelerator(
        id="ad-hoc",
        name="ad hoc part",
        vendor="",
        architecture="",
        peaks={} if peak is None else {GIVEN: peak},
        vector_peaks={},
        exp_rate=rate,
        bandwidth=bandwidth,
        capacity_bytes=None,
        link=None,
        roofs=(roof,),
        flags=(),
        sources=(),
        skipped_reason=None,
        achievable={},
        origin="the caller",
        raw={},
    )
