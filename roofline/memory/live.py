"""A trace against a pool of pages with requests that overlap in time: occupancy, waiting and preemption.

A request takes the pages of its input at admission (those of its leading run that are in the pool for nothing), one
page more whenever its output fills one, and gives all up at its end; input pages then stay cached, the least recently
used first to go.  Where a growing request finds no page, the youngest running request is preempted: it loses its pages,
waits at the head of the queue, and computes its tokens again.  A request that waits holds up those behind it (first
come, first served), so no more than one arrival is read ahead and memory is that of the live pages.

Time: a request runs  prefill * input tokens that are no hit + decode * output tokens,  whatever else runs.  That is a
model of load, not of speed: batching, and how a full batch slows down, are left out.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from roofline.errors import BadValue
from roofline.memory.pages import whole
from roofline.memory.replay import Curve, fresh_ids
from roofline.memory.trace import Row


class Lived(NamedTuple):
    """What happened.  Times in seconds; occupancy: (time, pages held by running requests, at most 512 pairs)."""

    pages: int
    requests: int
    lookups: int
    hits: int
    completed: int
    preemptions: int
    delayed: int
    waited: float
    refused: int
    peak: int
    most_running: int
    occupancy: tuple[tuple[float, int], ...]

    @property
    def hit_ratio(self) -> float:
        """Hits over look-ups, first admissions only."""
        return self.hits / self.lookups if self.lookups else 0.0


class Job:
    """A request in the pool or on its way there."""

    __slots__ = ("arrival", "base", "done", "epoch", "ids", "private", "row", "started")

    def __init__(self, row: Row, ids: list[int]) -> None:
        self.row, self.ids, self.arrival = row, ids, row.timestamp / 1000.0
        self.private = self.done = self.base = self.epoch = 0  # output tokens so far, at admission; preemptions
        self.started = 0.0


class Live:
    """The pool, its running requests and the queue; `run` drives it."""

    def __init__(self, pages: int, page_size: int, decode: float, prefill: float) -> None:
        self.pages, self.page_size, self.decode, self.prefill = pages, page_size, decode, prefill
        self.owners: dict[int, int] = {}  # block -> running requests that hold it
        self.cached: OrderedDict[int, None] = OrderedDict()
        self.private = 0
        self.running: OrderedDict[int, Job] = OrderedDict()  # oldest admission first
        self.queue: deque[Job] = deque()
        self.events: list[tuple[float, int, int, Job]] = []
        self.serial = self.hits = self.lookups = self.completed = self.preemptions = 0
        self.delayed = self.refused = self.peak = self.most_running = self.requests = 0
        self.waited = self.now = 0.0
        self.curve = Curve()

    @property
    def used(self) -> int:
        """Pages that running requests hold."""
        return len(self.owners) + self.private

    def run(self, rows: Iterable[Row], tick: Callable[[], None] | None = None) -> None:
        """Take arrivals and events in order of time until both are at their end."""
        arrivals, unknown = iter(rows), 0
        coming = next(arrivals, None)
        while coming is not None or self.queue or self.events:
            due = self.events[0][0] if self.events else float("inf")
            if coming is not None and not self.queue and coming.timestamp / 1000.0 <= due:
                ids = coming.hash_ids
                if ids is None:
                    ids = fresh_ids(coming, self.page_size, unknown)
                    unknown += len(ids)
                self._arrive(Job(coming, ids))
                coming = next(arrivals, None)
                if tick and self.requests % 256 == 0:
                    tick()
            else:
                self._event()
            self.curve.add(self.now, self.used)
            self.peak = max(self.peak, self.used)

    def _arrive(self, job: Job) -> None:
        self.requests += 1
        self.now = max(self.now, job.arrival)
        pages = len(set(job.ids)) + self._private(job, job.row.output_length)
        if pages > self.pages:
            self.refused += 1
            return
        self.queue.append(job)
        self._admit()
        self.delayed += bool(self.queue)

    def _private(self, job: Job, output: int) -> int:
        """Pages behind the input's that `output` tokens need."""
        return max(-(-(job.row.input_length + output) // self.page_size) - len(job.ids), 0)

    def _admit(self) -> None:
        """Start the requests at the head of the queue that fit."""
        while self.queue:
            job = self.queue[0]
            ids = dict.fromkeys(job.ids)
            new = [block for block in ids if block not in self.owners and block not in self.cached]
            revived = sum(block in self.cached for block in ids)
            private = self._private(job, min(job.done + 1, job.row.output_length))
            if self.used + revived + len(new) + private > self.pages:
                return
            self.queue.popleft()
            self._start(job, list(ids), private)

    def _start(self, job: Job, ids: list[int], private: int) -> None:
        hits = 0
        for block in job.ids:
            if block not in self.owners and block not in self.cached:
                break
            hits += 1
        for block in ids:
            self.cached.pop(block, None)
            self.owners[block] = self.owners.get(block, 0) + 1
        job.private = private
        self.private += private
        self._shrink()
        if job.epoch == 0:
            self.lookups, self.hits = self.lookups + len(job.ids), self.hits + hits
            self.waited += self.now - job.arrival
        fresh = max(job.row.input_length - hits * self.page_size, 0) + job.done
        job.started, job.base = self.now + self.prefill * fresh, job.done
        self.running[id(job)] = job
        self.most_running = max(self.most_running, len(self.running))
        self._next(job)

    def _next(self, job: Job) -> None:
        """The time at which the request needs another page, or is done."""
        self.serial += 1
        at = job.started + self.decode * (self._reach(job) - job.base)
        heapq.heappush(self.events, (at, self.serial, job.epoch, job))

    def _reach(self, job: Job) -> int:
        """Output tokens for which the request has pages."""
        room = (len(job.ids) + job.private) * self.page_size - job.row.input_length
        return min(max(room, job.done), job.row.output_length)

    def _event(self) -> None:
        at, _, epoch, job = heapq.heappop(self.events)
        if job.epoch != epoch or id(job) not in self.running:
            return  # preempted since
        self.now = max(self.now, at)
        job.done = self._reach(job)
        if job.done == job.row.output_length:
            self._stop(job)
            self.completed += 1
            self._admit()
        elif self._page_for(job):
            job.private += 1
            self.private += 1
            self._shrink()
            self._next(job)
        else:
            self._admit()

    def _page_for(self, job: Job) -> bool:
        """Make room for one page; False where the request itself was preempted."""
        while self.used >= self.pages:
            youngest = next(reversed(self.running.values()))
            if self.decode and self.now > youngest.started:
                written = youngest.base + int((self.now - youngest.started) / self.decode)
                youngest.done = max(youngest.done, min(written, self._reach(youngest)))
            self._stop(youngest)
            self.preemptions += 1
            youngest.epoch += 1
            self.queue.appendleft(youngest)
            if youngest is job:
                return False
        return True

    def _stop(self, job: Job) -> None:
        """Take a request's pages away; those of its input stay cached."""
        del self.running[id(job)]
        self.private -= job.private
        job.private = 0
        for block in dict.fromkeys(job.ids):
            self.owners[block] -= 1
            if not self.owners[block]:
                del self.owners[block]
                self.cached[block] = None

    def _shrink(self) -> None:
        """Drop cached blocks that have no room beside the running requests."""
        over = self.used + len(self.cached) - self.pages
        for _ in range(over):
            self.cached.popitem(last=False)


def live(
    rows: Iterable[Row],
    pages: int,
    *,
    time_per_token: float,
    prefill_per_token: float = 0.0,
    page_size: int = 512,
    tick: Callable[[], None] | None = None,
) -> Lived:
    """Replay a trace against one pool with requests that overlap.

    pages: pool; time_per_token, prefill_per_token [s]: what an output token and an input token that is no hit take;
    page_size: tokens per page, which is the trace's block.

    >>> rows = [Row(0, 1024, 100, [0, 1]), Row(1, 1024, 600, [0, 2])]
    >>> found = live(rows, 4, time_per_token=0.02)
    >>> found.hits, found.completed, found.preemptions, found.peak
    (1, 2, 0, 4)
    """
    for name, value in (("time_per_token", time_per_token), ("prefill_per_token", prefill_per_token)):
        if not 0 <= value < 1e6:
            raise BadValue(name, value, "seconds per token from 0 to 10^6")
    pool = Live(whole("pages", pages, 1, 10**12), whole("page_size", page_size), time_per_token, prefill_per_token)
    pool.run(rows, tick)
    return Lived(pool.pages, pool.requests, pool.lookups, pool.hits, pool.completed, pool.preemptions, pool.delayed,
                 pool.waited, pool.refused, pool.peak, pool.most_running, pool.curve.pairs())  # fmt: skip
