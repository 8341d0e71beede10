"""Inverse of functions over arrays: where does f(x) reach a target, between lo and hi, for millions of cases at once?

A logarithmic scan counts the sign changes of f - target, Chandrupatla's method (quadratic interpolation where it is
safe, else bisection) closes the bracket, and the result is verified: the sign changes within 1e-9 of x, and f does not
jump there.  A touch of the target without a change of sign is seen only where a scan point hits it exactly.
Source: T. R. Chandrupatla, Advances in Engineering Software 28(3), 145-149, 1997.

>>> found = invert(lambda x: x * x, [4.0, 9.0, -1.0], 1e-3, 1e3)
>>> found.x, found.sign_changes, found.verified
(array([ 2.,  3., nan]), array([1, 1, 0]), array([ True,  True, False]))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roofline.codegen import array_mode
from roofline.errors import BadValue

Floats = NDArray[np.float64]
CHUNK = 1 << 15  # cases solved together: long enough that two threads seldom wait for the interpreter
STEPS = 100  # bisection alone closes any bracket of floats in fewer
NEAR, FAR = 1e-9, 1e-6  # relative distances: the sign changes within the first; a jump is as high over both


class Inverse(NamedTuple):
    """x with f(x) = target, NaN where there is none; how often the sign changes between lo and hi; f(x) - target; and
    whether x was verified as a root.  0 changes mean: never reached at any point of the scan."""

    x: Floats
    sign_changes: NDArray[np.int64]
    residual: Floats
    verified: NDArray[np.bool_]


def invert(
    f: Callable[..., Any],
    target: ArrayLike,
    lo: ArrayLike,
    hi: ArrayLike,
    *,
    shape: tuple[int, ...] | None = None,
    scan: int = 33,
    all_roots: bool = False,
    threads: int | None = None,
    **columns: ArrayLike,
) -> Inverse:
    """Solve f(x, **columns) = target for x in [lo, hi], case by case.

    Parameters: f, of an array x > 0 and of the columns, element by element, so that it can be called on parts;
    target, lo, hi and columns, of any shapes that broadcast; shape, of the result where none of them has it;
    scan, points of the logarithmic scan; all_roots, whether the result gets a leading axis with every bracket found
    (NaN where a case has fewer), else the first bracket is solved; threads, 2 unless given.

    Where f closes over arrays of its own instead of taking columns, give shape and they are not cut into parts.
    """
    if scan < 2:
        raise BadValue("scan", scan, "at least 2 points")
    arrays = {k: np.asarray(v, dtype=float) for k, v in {"target": target, "lo": lo, "hi": hi, **columns}.items()}
    try:
        whole = np.broadcast_shapes(shape or (), *(a.shape for a in arrays.values()))
    except ValueError:
        told = ", ".join(f"{name} {a.shape}" for name, a in arrays.items())
        raise BadValue("shapes", told, "shapes that broadcast to one") from None
    low, high = arrays["lo"], arrays["hi"]
    if not (np.all(low > 0) and np.all(np.isfinite(high)) and np.all(low < high)):
        raise BadValue("lo, hi", f"{np.min(low):g}, {np.max(high):g}", "finite bounds with 0 < lo < hi")
    count = int(np.prod(whole, dtype=object))
    flat = {k: a if a.ndim == 0 else np.broadcast_to(a, whole).reshape(-1) for k, a in arrays.items()}
    step = CHUNK if shape is None else max(count, 1)

    def part(start: int) -> list[Inverse]:
        here = {k: a if a.ndim == 0 else a[start : start + step] for k, a in flat.items()}
        bounds = here.pop("lo"), here.pop("hi")
        cases = _Cases(f, here.pop("target"), here, min(step, count - start), None if shape is None else whole)
        with array_mode():
            return _solved(cases, *bounds, scan, all_roots)

    starts = range(0, max(count, 1), step)
    with ThreadPoolExecutor(min(threads or 2, len(starts))) as pool:
        return _joined(list(pool.map(part, starts)), whole, all_roots)


class _Cases:
    """Some cases with the columns they need; `whole` is the shape that f wants x in, where f has its own arrays."""

    def __init__(
        self,
        f: Callable[..., Any],
        target: Floats,
        columns: Mapping[str, Floats],
        n: int,
        whole: tuple[int, ...] | None,
    ) -> None:
        self.f, self.target, self.columns, self.n, self.whole = f, target, columns, n, whole

    def gap(self, x: Floats) -> Floats:
        """f(x) - target."""
        at = x if self.whole is None or np.ndim(x) == 0 else x.reshape(self.whole)
        y: Floats = np.asarray(self.f(at, **self.columns), dtype=float)
        if self.whole is not None and y.ndim:
            y = np.broadcast_to(y, self.whole).reshape(-1)
        return y - self.target

    def only(self, keep: NDArray[np.bool_]) -> _Cases:
        """These cases alone."""
        columns = {k: v if v.ndim == 0 else v[keep] for k, v in self.columns.items()}
        target = self.target if self.target.ndim == 0 else self.target[keep]
        return _Cases(self.f, target, columns, int(keep.sum()), None)


def _solved(cases: _Cases, lo: Floats, hi: Floats, scan: int, all_roots: bool) -> list[Inverse]:
    """Roots of one part, by rank: the first of every case, then the second, ..."""
    ratio, points = (hi / lo) ** (1 / (scan - 1)), [lo]
    for _ in range(scan - 2):
        points.append(points[-1] * ratio)
    points.append(hi)
    events = _events(cases, points)
    changes = np.zeros(cases.n, dtype=np.int64)
    for i in range(0, len(events), 255):
        changes += _count(events[i : i + 255]).astype(np.int64)
    ranks = max(1, int(changes.max(initial=0))) if all_roots else 1
    table = np.empty((scan, cases.n))
    for row, point in zip(table, points, strict=True):
        row[:] = point
    every = np.arange(cases.n)
    found = []
    for _ in range(ranks):
        event = _first(events)
        there = event < len(events)
        event[~there] = 0
        a, b = table[event // 2, every], table[(event + 1) // 2, every]
        x = np.where(there, _chandrupatla(cases, a, b), np.nan)
        found.append(Inverse(x, changes, *_verified(cases, x)))
        events[event, every] = False
    return found


def _count(events: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Events of each case; bytes, because numpy adds booleans into wide integers ten times slower."""
    counted: NDArray[np.uint8] = np.add.reduce(events.view(np.uint8), axis=0, dtype=np.uint8)
    return counted


def _first(events: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Row of each case's first event, or the number of rows; `argmax` along this axis is slower."""
    if len(events) > 255:  # beyond a byte
        return np.where(events.any(axis=0), np.argmax(events, axis=0), len(events))
    unseen = np.ones(events.shape[1], dtype=np.uint8)
    rows = np.zeros(events.shape[1], dtype=np.uint8)
    for row in events.view(np.uint8):
        np.greater(unseen, row, out=unseen.view(bool))
        rows += unseen
    return rows.astype(np.intp)


def _events(cases: _Cases, points: list[Floats]) -> NDArray[np.bool_]:
    """Row 2i: point i hits the target exactly.  Row 2i + 1: the sign changes between points i and i + 1."""
    events = np.zeros((2 * len(points) - 1, cases.n), dtype=bool)
    over, under = np.zeros((2, cases.n), dtype=bool)
    for i, point in enumerate(points):
        y = np.broadcast_to(cases.gap(point), (cases.n,))
        now_over, now_under = y > 0, y < 0
        events[2 * i] = y == 0
        if i:
            events[2 * i - 1] = (over & now_under) | (under & now_over)
        over, under = now_over, now_under
    return events


def _chandrupatla(cases: _Cases, a: Floats, b: Floats) -> Floats:
    """A root between a and b of each case; where a = b that is the root."""
    best = a.copy()
    left = np.arange(cases.n)
    c, t = a, np.full(cases.n, 0.5)
    fa, fb = (np.broadcast_to(cases.gap(x), a.shape) for x in (a, b))
    fc = fa
    for _ in range(STEPS):
        x = a + t * (b - a)
        fx = np.broadcast_to(cases.gap(x), x.shape)
        same = np.signbit(fx) == np.signbit(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        nearest, smallest = np.abs(fa) < np.abs(fb), np.minimum(np.abs(fa), np.abs(fb))
        root = np.where(nearest, a, b)
        limit = 2 * np.finfo(float).eps * np.abs(root) / np.abs(b - a)
        open_ = (limit <= 0.5) & (smallest != 0)
        best[left] = root
        if not open_.any():
            return best
        t = _next_step(a, b, c, fa, fb, fc, limit)
        if cases.whole is None and 2 * np.count_nonzero(open_) < len(open_):
            cases, left = cases.only(open_), left[open_]
            a, b, c, t, fa, fb, fc = (v[open_] for v in (a, b, c, t, fa, fb, fc))
    return best


def _next_step(a: Floats, b: Floats, c: Floats, fa: Floats, fb: Floats, fc: Floats, limit: Floats) -> Floats:
    """Fraction of the bracket at which to look next: inverse quadratic interpolation where it is safe, else half."""
    ab, ac, bc = fb - fa, fc - fa, fc - fb
    width, rest = b - a, c - a
    xi, phi = width / (b - c), ab / bc
    safe = (phi * phi < xi) & ((1 + phi) * (1 + phi) < 1 - xi)
    t = fa * (rest * fb / (width * ac) - fc / ab) / bc
    safe &= (t > 0) & (t < 1)  # not so where small numbers underflowed
    return np.minimum(np.maximum(np.where(safe, t, 0.5), limit), 1 - limit)


def _verified(cases: _Cases, x: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Residual, and whether the sign changes within NEAR by a step that shrinks with the distance, unlike a jump."""
    residual = np.broadcast_to(cases.gap(x), x.shape).copy()
    residual[np.isnan(x)] = np.nan
    low, high = cases.gap(x * (1 - NEAR)), cases.gap(x * (1 + NEAR))
    near, far = np.abs(high - low), np.abs(cases.gap(x * (1 + FAR)) - cases.gap(x * (1 - FAR)))
    crosses = (np.sign(low) * np.sign(high) < 0) | (residual == 0)
    return residual, np.isfinite(residual) & crosses & ((near <= 0.1 * far) | (near == 0))


def _joined(found: list[list[Inverse]], whole: tuple[int, ...], all_roots: bool) -> Inverse:
    """Parts side by side; ranks on a leading axis where they are asked for."""
    rows = []
    for rank in range(max(map(len, found))):
        parts = [part[rank] if rank < len(part) else _nothing(part[0]) for part in found]
        rows.append([np.concatenate(field).reshape(whole) for field in zip(*parts, strict=True)])
    x, changes, residual, verified = (np.stack(field) for field in zip(*rows, strict=True))
    return Inverse(x, np.asarray(changes[0]), residual, verified) if all_roots else Inverse(*rows[0])


def _nothing(like: Inverse) -> Inverse:
    nan = np.full(len(like.x), np.nan)
    return Inverse(nan, like.sign_changes, nan.copy(), np.zeros(len(nan), dtype=bool))
