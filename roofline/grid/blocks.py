"""The steps of an expression run over a mesh: small ones once and whole, the rest block by block into a few buffers.

A block is a stretch of one axis with everything inside it whole, so that it is contiguous in the result.  Threads take
the next block from a shared counter; each has buffers of its own.  numpy lets go of the interpreter lock inside a
ufunc, so two threads run at nearly twice the speed of one.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from math import prod
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofline.codegen import array_mode
from roofline.grid.fusion import BOOLEAN, Fusion, Step

Floats = NDArray[np.float64]
BLOCK = 1 << 16  # elements: two buffers of this size stay in an L2 cache of 1 to 2 MiB
LINE = 64  # bytes
EVERYTHING = slice(None)
TILE = 1024  # elements that the innermost axis should have: shorter inner loops cost more than their work
WHOLE = 24 << 20  # bytes of sub-expressions that are evaluated once, before the blocks; as much again to spread them
Progress = Callable[[int, int], None]


def select(condition: Any, a: Any, b: Any, out: Any) -> None:
    """`where` with an output buffer, which is none of the operands."""
    np.copyto(out, b)
    np.copyto(out, a, where=condition)


def aligned(shape: tuple[int, ...], kind: str = "float") -> Any:
    """An empty array that starts on a cache line: numpy's own do not, which halves the speed of wide vector stores."""
    size = np.dtype(kind).itemsize
    raw = np.empty(prod(shape) * size + LINE, dtype=np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + prod(shape) * size].view(kind).reshape(shape)


class Mesh:
    """One evaluation: what is computed whole, what block by block, and which buffer each step writes to."""

    def __init__(self, fusion: Fusion, columns: Mapping[str, Floats | float], block: int = BLOCK) -> None:
        self.fusion, self.steps, self.sizes, self.roots = fusion, fusion.steps, fusion.sizes, fusion.roots
        self.points = prod(self.sizes)
        self.outputs = [aligned(self.sizes) for _ in self.roots]
        self.whole: dict[int, Any] = {}
        self._prepare(columns)
        self._merge(block)
        self._divide(block)
        self._assign()

    def _prepare(self, columns: Mapping[str, Floats | float]) -> None:
        """Evaluate steps much smaller than the mesh once, while they fit the budget; the others are pending."""
        left = WHOLE
        with array_mode():
            for i, (op, args, mask) in enumerate(self.steps):
                size = self.fusion.size(mask)
                if op in ("number", "name"):
                    self.whole[i] = np.asarray(columns[args[0]] if op == "name" else args[0], dtype=float)
                elif all(a in self.whole for a in args) and (
                    size == 1 or (4 * size <= self.points and 8 * size <= left)
                ):
                    operands = [self.whole[a] for a in args]
                    self.whole[i] = np.where(*operands) if op == "select" else getattr(np, op)(*operands)
                    left -= 8 * size
        self.pending = self._ordered()
        used = {a for i in self.pending for a in self.steps[i].args} | set(self.roots)
        self.read = {a: array for a, array in self.whole.items() if a in used}

    def _ordered(self) -> list[int]:
        """Steps left for the blocks, each after its operands, the operand that needs more of them first."""
        order: list[int] = []
        needs = [0] * len(self.steps)
        for i, step in enumerate(self.steps):
            needs[i] = 0 if i in self.whole else 1 + sum(needs[a] for a in step.args)
        todo = [(root, False) for root in reversed(self.roots)]
        seen: set[int] = set()
        while todo:
            i, ready = todo.pop()
            if ready:
                order.append(i)
            elif i not in self.whole and i not in seen:
                seen.add(i)
                todo.append((i, True))
                todo += [(a, False) for a in sorted(self.steps[i].args, key=lambda a: needs[a])]
        return order

    def _merge(self, block: int) -> None:
        """Make the innermost axes one where each alone is short; what varies along any of them is spread over all."""
        keep = len(self.sizes) - 1
        while keep > 0 and prod(self.sizes[keep:]) < TILE and prod(self.sizes[keep - 1 :]) <= block:
            if 8 * sum(prod(self._spread(a.shape, keep - 1)) for a in self.read.values() if a.ndim) > WHOLE:
                break
            keep -= 1
        self.steps = [Step(s.op, s.args, s.mask & ~(-1 << keep) | (s.mask >> keep > 0) << keep) for s in self.steps]
        for i, array in self.read.items():
            if array.ndim:
                shape = self._spread(array.shape, keep)
                self.read[i] = aligned((*shape[:keep], prod(shape[keep:])), array.dtype.name)
                self.read[i].reshape(shape)[...] = array
        self.sizes = (*self.sizes[:keep], prod(self.sizes[keep:]))
        self.views = [out.reshape(self.sizes) for out in self.outputs]

    def _spread(self, shape: tuple[int, ...], keep: int) -> tuple[int, ...]:
        """Shape of an array once its axes from `keep` on are all there, if one of them is."""
        return shape if max(shape[keep:]) == 1 else (*shape[:keep], *self.sizes[keep:])

    def _divide(self, block: int) -> None:
        """Find the axis that is cut: everything inside it is whole, everything outside it one index at a time."""
        self.cut = 0
        while self.cut < len(self.sizes) - 1 and prod(self.sizes[self.cut + 1 :]) > block:
            self.cut += 1
        length = self.sizes[self.cut] if self.sizes else 1
        most = max(1, block // prod(self.sizes[self.cut + 1 :]))
        self.stretch = -(-length // -(-length // most))  # even stretches, none longer than `most`
        self.stretches = -(-length // self.stretch)
        self.blocks = prod(self.sizes[: self.cut]) * self.stretches

    def _assign(self) -> None:
        """A place for each pending step: ("out", result) or (kind, number of a buffer); buffers are used again."""
        last = {a: i for i in self.pending for a in self.steps[i].args}
        self.place = self._accumulated()
        self.buffers = {"float": 0, "bool": 0}
        free: dict[str, list[int]] = {"float": [], "bool": []}
        for i in self.pending:
            op, args, mask = self.steps[i]
            kind = "bool" if op in BOOLEAN else "float"
            dying = {self.place[a] for a in args if last[a] == i and self.place.get(a, ("out",))[0] != "out"}
            same = {self.place[a] for a in args if a in self.place and self.steps[a].mask == mask and op != "select"}
            for owner, number in sorted(dying & same):  # may be written in place
                free[owner].append(number)
            if i not in self.place:
                if not free[kind]:
                    free[kind].append(self.buffers[kind])
                    self.buffers[kind] += 1
                self.place[i] = (kind, free[kind].pop())
            for owner, number in sorted(dying - same):
                free[owner].append(number)

    def _accumulated(self) -> dict[int, tuple[str, int]]:
        """Steps that write to a result: the last one, and the chain of operands before it that nothing else uses."""
        uses = Counter(a for i in self.pending for a in self.steps[i].args)
        uses.update(self.roots)
        rank = {i: n for n, i in enumerate(self.pending)}
        place: dict[int, tuple[str, int]] = {}
        for n, root in enumerate(self.roots):
            i: int | None = root
            while i in rank and i not in place:
                place[i] = ("out", n)
                op, args, mask = self.steps[i]
                fits = [a for a in args if a in rank and uses[a] == 1 and self.steps[a].mask == mask]
                first = min(fits, key=lambda a: rank[a], default=None)
                i = first if first is not None and op != "select" and self.steps[first].op not in BOOLEAN else None
        return place

    def run(self, threads: int = 2, progress: Progress | None = None) -> list[Floats]:
        """Fill the results and return them.  An interrupt or error in any thread stops all and is raised."""
        counter, failures = count(), list[BaseException]()
        self.stopped = False

        def help_out() -> None:
            try:
                self._work(counter, None)
            except BaseException as error:  # raised again in the caller's thread
                failures.append(error)
                self.stopped = True

        helpers = [threading.Thread(target=help_out, daemon=True) for _ in range(min(threads, self.blocks) - 1)]
        try:
            for helper in helpers:
                helper.start()
            self._work(counter, progress)
            for helper in helpers:
                helper.join()
        except BaseException:
            self.stopped = True
            for helper in helpers:
                helper.join()
            raise
        if failures:
            raise failures[0]
        if progress is not None:
            progress(self.blocks, self.blocks)
        return self.outputs

    def _work(self, counter: Iterator[int], progress: Progress | None) -> None:
        """Take blocks until none is left."""
        largest = self.stretch * prod(self.sizes[self.cut + 1 :])
        memory = {kind: [aligned((largest,), kind) for _ in range(n)] for kind, n in self.buffers.items()}
        program: list[tuple[Callable[..., Any], tuple[int, ...], int]] = [
            (select if self.steps[i].op == "select" else getattr(np, self.steps[i].op), self.steps[i].args, i)
            for i in self.pending
        ]
        writes = [(i, n) for i, (kind, n) in self.place.items() if kind == "out"]
        copies = [(n, root) for n, root in enumerate(self.roots) if self.place.get(root) != ("out", n)]
        moving = [(a, array, *self._moves(array)) for a, array in self.read.items() if array.ndim]
        results = [(array, *self._moves(array)) for array in self.views]
        views: dict[int, Any] = {a: array for a, array in self.read.items() if not array.ndim}
        height = 0
        with array_mode():
            for number in counter:
                if number >= self.blocks or self.stopped:
                    return
                outer, low, high = self._bounds(number)
                if high - low != height:
                    height = high - low
                    views |= self._buffer_views(memory, height)
                piece = (EVERYTHING, slice(low, high))
                for a, array, flags, cut in moving:
                    views[a] = array[(*map(mul, outer, flags), piece[cut])]
                outs = [array[(*map(mul, outer, flags), piece[cut])] for array, flags, cut in results]
                for i, n in writes:
                    views[i] = outs[n]
                for function, args, i in program:
                    function(*[views[a] for a in args], out=views[i])
                for n, source in copies:
                    np.copyto(outs[n], views[source])
                if progress is not None:
                    progress(min(number + 1, self.blocks), self.blocks)

    def _bounds(self, number: int) -> tuple[list[int], int, int]:
        """Indices on the axes outside the cut, and the stretch on the cut axis."""
        number, stretch = divmod(number, self.stretches)
        outer: list[int] = []
        for size in reversed(self.sizes[: self.cut]):
            number, index = divmod(number, size)
            outer.insert(0, index)
        low = stretch * self.stretch
        return outer, low, min(low + self.stretch, self.sizes[self.cut])

    def _moves(self, array: Any) -> tuple[tuple[bool, ...], bool]:
        """On which of the outer axes an array has more than one element, and whether on the axis that is cut."""
        return tuple(n > 1 for n in array.shape[: self.cut]), array.shape[self.cut] > 1

    def _buffer_views(self, memory: dict[str, list[Any]], height: int) -> dict[int, Any]:
        """Each pending step's buffer in the shape of its own axes within a block."""
        extent = [height, *self.sizes[self.cut + 1 :]]
        views = {}
        for i, (kind, number) in self.place.items():
            if kind != "out":
                shape = [n if self.steps[i].mask >> (self.cut + d) & 1 else 1 for d, n in enumerate(extent)]
                views[i] = memory[kind][number][: prod(shape)].reshape(shape)
        return views
