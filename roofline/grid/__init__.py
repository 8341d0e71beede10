"""Open grids: axes are kept apart and broadcast as late as possible; the mesh is walked in blocks that fit a cache.

`evaluate_grid` runs each sub-expression on the axes it depends on only, and the few that need the whole mesh block by
block into buffers that are used again, on two threads.  Memory grows by the output and at most 64 MiB.

>>> from roofline.symbols import sym
>>> table = evaluate_grid(2 * sym.heads * sym.latent, {"heads": [64, 128], "latent": [256, 512]})
>>> table.value
array([[ 32768.,  65536.],
       [ 65536., 131072.]])
>>> parse_grid("heads=8:64:log2")
('heads', array([ 8., 16., 32., 64.]))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roofline.errors import BadValue
from roofline.evaluate import as_array, expression, refuse_missing, refuse_unknown, scalars
from roofline.glossary import check, quantity
from roofline.grid.blocks import BLOCK, Mesh
from roofline.grid.fusion import Fusion
from roofline.units import UNITS, parse, show

Floats = NDArray[np.float64]
MIB = 1 << 20
MOST_VALUES = 10_000_000  # on one axis


@dataclass(frozen=True)
class Axis:
    """One axis: its name, a column for each quantity that varies along it, and labels where it has them."""

    name: str
    columns: Mapping[str, Floats]
    labels: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


@dataclass(frozen=True)
class Labelled:
    """Results of a grid: `values` by name, each of `shape`, one dimension an axis, in the order that was asked."""

    values: Mapping[str, Floats]
    axes: tuple[Axis, ...]

    @property
    def value(self) -> Floats:
        """The only result."""
        (one,) = self.values.values()
        return one

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(len(a) for a in self.axes)

    def blocks(self, rows: int = 65536) -> Iterator[dict[str, NDArray[Any]]]:
        """The mesh as a table, `rows` at a time: columns of the axes (labels under the axis' name), then the values."""
        flat = {name: v.reshape(-1) if v.flags.c_contiguous else None for name, v in self.values.items()}
        for low in range(0, prod(self.shape), rows):
            at = np.arange(low, min(low + rows, prod(self.shape)))
            places = np.unravel_index(at, self.shape)
            table: dict[str, NDArray[Any]] = {}
            for axis, place in zip(self.axes, places, strict=True):
                if axis.labels is not None:
                    table[axis.name] = np.array(axis.labels)[place]
                table |= {name: column[place] for name, column in axis.columns.items()}
            for name, v in self.values.items():
                whole = flat[name]
                table[name] = v[places] if whole is None else whole[low : low + rows]
            yield table


def evaluate_grid(
    exprs: Any,
    axes: Mapping[str, ArrayLike | Mapping[str, Any]],
    *,
    threads: int | None = None,
    block: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    **constants: float,
) -> Labelled:
    """Expressions over the whole mesh of some axes, float64.

    Parameters: exprs, an expression, or result names with one each; axes, in the order of the result's dimensions: a
    quantity's name with its values, or any name with several quantities that vary together (``{"chips": {"peak": ...,
    "bandwidth": ..., "label": [...]}}``); threads, 2 unless given; block, elements a block; progress, called with
    blocks done and blocks in all; constants, the remaining quantities.  All in SI.

    Raises BadValue where a name is missing or given twice, a value is outside its range, or the result needs more
    memory than the machine has, with the size.  Results of unequal axis order are views of one layout, not copies.
    """
    named = (
        {name: expression(e) for name, e in exprs.items()}
        if isinstance(exprs, Mapping)
        else {"value": expression(exprs)}
    )
    made = tuple(_axis(name, given) for name, given in axes.items())
    _refuse_memory(len(named), tuple(len(a) for a in made))
    order = sorted(range(len(made)), key=lambda i: len(made[i]))  # the largest last: the longest inner loops
    inner = [made[i] for i in order]
    columns = _columns(named.values(), inner, constants)
    fusion = _fused(tuple(named.values()), tuple((tuple(a.columns), len(a)) for a in inner))
    mesh = Mesh(fusion, columns, block or BLOCK)
    results = mesh.run(min(threads or 2, max(1, mesh.points // 100_000)), progress)
    back = [order.index(i) for i in range(len(made))]
    return Labelled(
        {n: out.transpose(back) if made else out.reshape(()) for n, out in zip(named, results, strict=True)}, made
    )


@lru_cache(maxsize=64)
def _fused(exprs: tuple[Any, ...], axes: tuple[tuple[tuple[str, ...], int], ...]) -> Fusion:
    """The steps of some expressions on axes of some lengths: a slider moves values and asks for the same again."""
    axis_of = {name: i for i, (names, _) in enumerate(axes) for name in names}
    return Fusion(exprs, axis_of, [length for _, length in axes] or [1])


def _axis(name: str, given: Any) -> Axis:
    """An axis with checked columns of one length."""
    table = dict(given) if isinstance(given, Mapping) else {name: given}
    labels = table.pop("label", None)
    columns = {key: as_array(key, values) for key, values in table.items()}
    for key, column in columns.items():
        if column.ndim != 1 or not len(column):
            raise BadValue(f"axis {name}.{key}", f"shape {column.shape}", "a list of at least one number")
    lengths = {key: len(column) for key, column in columns.items()} | (
        {"label": len(labels)} if labels is not None else {}
    )
    if len(set(lengths.values())) != 1 or not columns:
        raise BadValue(f"axis {name}", lengths, "columns of one length")
    return Axis(name, columns, None if labels is None else tuple(map(str, labels)))


def _columns(exprs: Any, axes: list[Axis], constants: Mapping[str, Any]) -> dict[str, Floats | float]:
    """Each quantity's values, shaped to broadcast over the mesh."""
    needed = {s.name for e in exprs for s in e.free_symbols}
    columns: dict[str, Floats | float] = dict(scalars(constants, needed))
    for i, axis in enumerate(axes):
        refuse_unknown(axis.columns, needed)
        for name, column in axis.columns.items():
            if name in columns:
                raise BadValue(name, "two values", "each quantity once, on an axis or as a constant")
            columns[name] = column.reshape([-1 if j == i else 1 for j in range(len(axes))])
    refuse_missing(needed, columns)
    return columns


def available_bytes() -> int:
    """Memory that can still be had: of the machine, or of the control group where that is less."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")]
        group = Path("/sys/fs/cgroup")
        found.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    except (OSError, ValueError):  # not Linux, or no limit ("max")
        pass
    if not found and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(found, default=8 << 30)


def _refuse_memory(results: int, shape: tuple[int, ...]) -> None:
    """Refuse a mesh that does not fit, before anything is allocated; Python integers, so no size overflows."""
    need, have = 8 * results * prod(shape) + 64 * MIB, available_bytes()
    if need > have:
        points = f"{' x '.join(map(str, shape))} points"
        raise BadValue("grid", points, f"at most {show(have, 'B')} of memory", f"it would need {show(need, 'B')}")


def parse_grid(text: str) -> tuple[str, Floats]:
    """One ``name=a,b,c``, ``name=lo:hi:log2``, ``name=lo:hi:lin:n`` or ``name=lo:hi:log:n`` of the command line.

    log2 doubles from lo up to hi at most; lin and log are n values with both ends.  Numbers are SI; one with a unit
    (``bandwidth=3.35TB/s,4.8TB/s``) is read as `roofline.units` does.  Text is never evaluated.

    >>> parse_grid("context=0:8:lin:3")[1]
    array([0., 4., 8.])
    """
    name, equals, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or not values.strip():
        raise BadValue("grid", text, "name=a,b,c or name=lo:hi:log2 or name=lo:hi:lin:n or name=lo:hi:log:n")
    quantity(name)
    if ":" not in values:
        return name, np.array([_parsed(name, item) for item in values.split(",")])
    low_text, high_text, *how = values.split(":")
    low, high = _parsed(name, low_text), _parsed(name, high_text)
    if low > high:
        raise BadValue(name, values, "lo:hi with lo at most hi")
    return name, _spread(name, values, low, high, how)


def _spread(name: str, text: str, low: float, high: float, how: list[str]) -> Floats:
    """Values from low to high."""
    match how:
        case ["log2"] if low > 0:
            steps = int(np.floor(np.log2(high) - np.log2(low) + 1e-12)) + 1
            return np.asarray(low * 2.0 ** np.arange(steps), dtype=np.float64)
        case ["lin", n]:
            return np.linspace(low, high, _count(name, n), dtype=np.float64)
        case ["log", n] if low > 0:
            return np.geomspace(low, high, _count(name, n), dtype=np.float64)
    if how and how[0] in ("log2", "log") and low <= 0:
        raise BadValue(name, text, "a lower end above 0 on a logarithmic grid")
    raise BadValue(name, text, "lo:hi:log2, lo:hi:lin:n or lo:hi:log:n")


def _count(name: str, text: str) -> int:
    if not (text.strip().isdecimal() and text.isascii() and len(text) < 12 and 2 <= int(text) <= MOST_VALUES):
        raise BadValue(f"{name}, number of values", text, f"a whole number from 2 to {MOST_VALUES:,}")
    return int(text)


def _parsed(name: str, text: str) -> float:
    """A number of a quantity, bare in SI or with a unit of the quantity."""
    record = quantity(name)
    try:
        value = parse(text, "1", name, zero=True)
    except BadValue:
        if record.unit in UNITS and record.unit != "1":
            return check(name, parse(text, record.unit, name, zero=not record.low_open))
        raise BadValue(name, text, f"{record.range_text}: {record.meaning}") from None
    return check(name, value)
