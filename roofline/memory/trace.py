"""Request traces as streams of rows: JSON lines (Mooncake's fields) or CSV, plain or gzipped, checked line by line.

Fields: `timestamp` [ms], `input_length`, `output_length` [tokens], and `hash_ids`, one number per block of the input,
equal for equal content *and* equal prefix.  Without `hash_ids` nothing is known to be shared.  In CSV they stand in one
cell, separated by spaces.  A line is held in memory, never the file.

Format: Mooncake, FAST'25, github.com/kvcache-ai/Mooncake, FAST25-release/traces.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

from roofline.errors import BadFile

MAX_BLANK = 100_000  # a bomb of line ends would take minutes to pass over
MAX_LINE = 16 * 2**20  # bytes: 1.6 million block numbers
MAX_RATIO = 200  # a gzip file that grows more than this is no trace (the published ones grow 4 times)
FREE_BYTES = 64 * 2**20  # what may be unpacked before the ratio is looked at
LARGEST = 10**12  # tokens of a request, and ms of a timestamp (31 years)
FIELDS = ("timestamp", "input_length", "output_length", "hash_ids")


class Row(NamedTuple):
    """One request: arrival [ms], tokens in and out, block numbers (None: not given)."""

    timestamp: float
    input_length: int
    output_length: int
    hash_ids: list[int] | None


class Wrong(Exception):
    """What is wrong with a line, and what was expected."""

    def __init__(self, got: object, expected: str) -> None:
        super().__init__(got, expected)
        self.got, self.expected = got, expected


class Trace:
    """The rows of a file, to be read once.

    `skipped` counts the lines that were passed over, `problems` holds the first few of them as texts, `fraction` how
    much of the file has been read, `truncated` whether a gzip file stopped in the middle.
    """

    def __init__(self, path: str | os.PathLike[str], *, skip_bad: bool = False, block_size: int | None = None) -> None:
        self.path, self.skip_bad, self.block_size = os.fspath(path), skip_bad, block_size
        self.skipped, self.lines, self.truncated = 0, 0, False
        self.problems: list[str] = []
        self._size, self._raw = 1, None

    @property
    def fraction(self) -> float:
        """Share of the file read so far."""
        raw: Any = self._raw
        return 1.0 if raw is None or raw.closed else min(raw.tell() / max(self._size, 1), 1.0)

    def __iter__(self) -> Iterator[Row]:
        try:
            with open(self.path, "rb") as raw:
                self._raw, self._size = raw, os.fstat(raw.fileno()).st_size  # type: ignore[assignment]
                yield from self._rows(raw)
        except OSError as error:
            raise BadFile(self.path, "", error.strerror or error, "a trace that can be read") from None

    def _rows(self, raw: BinaryIO) -> Iterator[Row]:
        lines = _Lines(self, raw)
        parse: Callable[[bytes], Row] = _json_row
        before, first, blank = -1.0, True, 0
        for line in lines:
            self.lines += 1
            if not line.strip():
                blank += 1
                if blank > MAX_BLANK:
                    got = f"over {MAX_BLANK:,} blank lines"
                    raise BadFile(self.path, f"line {self.lines}", got, "JSON lines or CSV, blank lines the exception")
                continue
            try:
                if first and not line.lstrip().startswith(b"{"):
                    parse, first = _csv_parser(line), False
                    continue
                first = False
                row = parse(line)
                self._check(row, before)
            except Wrong as wrong:
                self._refuse(wrong)
            else:
                before = row.timestamp
                yield row
        if first:
            raise BadFile(self.path, "", "no rows", "JSON lines or CSV with " + ", ".join(FIELDS[:3]))

    def _check(self, row: Row, before: float) -> None:
        """What needs more than the line itself: time goes forward, and there is one number per block."""
        if row.timestamp < before:
            raise Wrong(f"timestamp {row.timestamp:g} after {before:g}", "timestamps in order")
        ids = row.hash_ids
        if ids is not None and self.block_size:
            blocks = -(-row.input_length // self.block_size)
            if len(ids) != blocks:
                got = f"{len(ids)} hash_ids for {row.input_length} tokens"
                raise Wrong(got, f"{blocks}, one per block of {self.block_size}")

    def _refuse(self, wrong: Wrong) -> None:
        """Stop at a bad line, or pass over it and count it."""
        if not self.skip_bad:
            note = "--skip-bad passes over such lines and counts them"
            raise BadFile(self.path, f"line {self.lines}", wrong.got, wrong.expected, note)
        self.skipped += 1
        if len(self.problems) < 5:
            self.problems.append(f"line {self.lines}: got {str(wrong.got)[:80]}, expected {wrong.expected}")


class _Lines:
    """Lines of a plain or gzipped file, none longer than MAX_LINE; a file that unpacks to gigabytes is refused."""

    def __init__(self, trace: Trace, raw: BinaryIO) -> None:
        self.trace, self.raw = trace, raw

    def __iter__(self) -> Iterator[bytes]:
        import zlib
        from gzip import BadGzipFile

        try:
            yield from self._read()
        except EOFError:
            self.trace.truncated = True
            self.trace.lines += 1
            self.trace._refuse(Wrong("the end of the file", "the rest of a gzip stream that stops in the middle"))
        except (BadGzipFile, zlib.error) as error:
            where = f"after line {self.trace.lines}"
            raise BadFile(self.trace.path, where, f"a broken gzip stream ({error})", "a whole gzip file") from None

    def _read(self) -> Iterator[bytes]:
        packed = self.raw.read(2) == b"\x1f\x8b"
        self.raw.seek(0)
        stream: Any = self.raw
        if packed:
            from gzip import GzipFile

            stream = GzipFile(fileobj=self.raw)
        read, raw = 0, self.raw
        while line := stream.readline(MAX_LINE + 1):
            read += len(line)
            if len(line) > MAX_LINE:
                raise BadFile(self.trace.path, self._place(), f"over {MAX_LINE:,} bytes", "lines of at most 16 MiB")
            if packed and read > FREE_BYTES and read > MAX_RATIO * raw.tell():
                got = f"{read:,} bytes out of {raw.tell():,}"
                raise BadFile(self.trace.path, self._place(), got, f"a gzip file that grows at most {MAX_RATIO} times")
            yield line

    def _place(self) -> str:
        return f"line {self.trace.lines + 1}"


def read_trace(path: str | os.PathLike[str], *, skip_bad: bool = False, block_size: int | None = None) -> Trace:
    """The rows of a trace file as a stream.

    skip_bad: pass over bad lines and count them instead of stopping; block_size: tokens per block, to check that each
    row has one block number per block.  Raises BadFile (exit code 3) with the line number, while rows are taken.
    """
    return Trace(path, skip_bad=skip_bad, block_size=block_size)


def _json_row(line: bytes) -> Row:
    from json import loads

    try:
        found = loads(line.decode())
    except (ValueError, RecursionError) as error:
        ended = "" if line.endswith(b"\n") else ", where the file ends"
        raise Wrong(f"{_short(line)}{ended} ({str(error)[:40]})", "a JSON object") from None
    if type(found) is not dict:
        raise Wrong(_short(line), "a JSON object")
    try:
        row = Row(found["timestamp"], found["input_length"], found["output_length"], found.get("hash_ids"))
    except KeyError as missing:
        raise Wrong(f"no {missing.args[0]}", "the fields " + ", ".join(FIELDS[:3])) from None
    return _typed(row)


def _csv_parser(header: bytes) -> Callable[[bytes], Row]:
    """A parser for the columns that the first line names."""
    text = header.decode("utf-8", "replace").strip().lstrip("\ufeff")
    names = [cell.strip().strip('"').lower() for cell in text.split(",")]
    missing = [name for name in FIELDS[:3] if name not in names]
    if missing:
        got = f"no {', '.join(missing)} in the first line {_short(header)}"
        raise Wrong(got, "JSON lines, or a CSV header with " + ", ".join(FIELDS[:3]))
    places = [names.index(name) for name in FIELDS[:3]]
    ids_at = names.index("hash_ids") if "hash_ids" in names else None

    def parse(line: bytes) -> Row:
        cells = [cell.strip().strip('"') for cell in line.decode("utf-8", "replace").strip().split(",")]
        if len(cells) != len(names):
            raise Wrong(f"{len(cells)} columns", f"{len(names)}, as the header has")
        try:
            time, into, out = _decimal(cells[places[0]]), int(cells[places[1]]), int(cells[places[2]])
            ids = None if ids_at is None or not cells[ids_at] else [int(text) for text in cells[ids_at].split()]
        except ValueError:
            raise Wrong(_short(line), "numbers in " + ", ".join(FIELDS)) from None
        return _typed(Row(time, into, out, ids))

    return parse


def _decimal(text: str) -> float:
    return int(text) if text.isdigit() and len(text) < 19 else float(text)


def _typed(row: Row) -> Row:
    """Check kinds and ranges of the four fields."""
    time, into, out, ids = row
    if type(time) not in (int, float) or not 0 <= time <= LARGEST:
        raise Wrong(f"timestamp {str(time)[:40]}", "a number of ms from 0 to 10^12")
    if type(into) is not int or not 1 <= into <= LARGEST:
        raise Wrong(f"input_length {str(into)[:40]}", "a whole number of tokens from 1 to 10^12")
    if type(out) is not int or not 0 <= out <= LARGEST:
        raise Wrong(f"output_length {str(out)[:40]}", "a whole number of tokens from 0 to 10^12")
    if ids is not None:
        if type(ids) is not list or not ids or len(ids) > into:
            raise Wrong(f"hash_ids {str(ids)[:40]}", f"a list of 1 to {into} block numbers")
        if set(map(type, ids)) != {int} or min(ids) < 0 or max(ids) >= 2**64:
            raise Wrong(f"hash_ids {str(ids)[:40]}", "whole numbers from 0 to 2^64 - 1")
    return row


def _short(line: bytes) -> str:
    text = line[:40].decode("utf-8", "replace").strip()
    return repr(text + ("..." if len(line) > 40 else ""))
