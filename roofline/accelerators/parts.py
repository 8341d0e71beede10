"""One accelerator as plain frozen records: its dense peaks, bandwidth, named roofs, and where every number comes from.

`build` turns one entry of hardware.yaml into an `Accelerator`.  Three rules decide what becomes a roof:

* `datasheet`: a dense matrix-engine peak over the memory bandwidth, for every precision where both have a source with
  an address.
* `practical`: the best *measured* `{precision}_matmul*` over the best *measured* `stream_*` or `copy_*` under
  `achievable`, only where a part has both.
* every pair under `roofs`, as its source uses it.

A missing number means "not sourced", never zero.  Measured ceilings are roofs of their own and change no peak.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from roofline._generated import law
from roofline.accelerators.sourcing import KINDS, Lines, Source, numbers
from roofline.errors import NoAnswer, UnknownName

PRECISIONS = ("fp64", "fp64_matrix", "fp32", "tf32", "bf16", "fp16", "fp8", "bfp8", "fp6", "fp4", "int8", "int4")
RIDGE_PRECISIONS = ("bf16", "fp16")  # the precision of a ridge point: bf16, or fp16 where a part has no bf16
GIVEN = "given"  # precision of an ad hoc part: whatever the caller's peak is for


@dataclass(frozen=True)
class Roof:
    """A named pair of a compute peak [FLOP/s] and a memory bandwidth [B/s] at one precision.

    >>> Roof("flashmla", "bf16", 865e12, 3.35e12, "measured", "https://...").ridge
    258.2089552238806
    """

    name: str
    precision: str
    peak: float
    bandwidth: float
    kind: str
    source: str
    note: str = ""

    @property
    def ridge(self) -> float:
        """Ridge point peak / bandwidth [FLOP/B]."""
        return float(law.ridge(peak=self.peak, bandwidth=self.bandwidth))

    @property
    def has_rates(self) -> bool:
        """False for an ad hoc roof that is only a ridge point: no time can be had from it."""
        return True


class RidgeOnly(Roof):
    """An ad hoc roof of which only the ridge point is known."""

    def __init__(self, ridge: float) -> None:
        known = {"name": GIVEN, "precision": GIVEN, "kind": GIVEN, "source": "the caller", "note": "", "_ridge": ridge}
        self.__dict__.update(known)  # past the frozen __setattr__; peak and bandwidth stay unset

    def __getattr__(self, name: str) -> float:  # reached only for what was never set
        if name in ("peak", "bandwidth"):
            raise NoAnswer(f"only the ridge point ({self.ridge:g} FLOP/B) is given: no {name}, so no time can be had")
        raise AttributeError(name)

    @property
    def ridge(self) -> float:
        value: float = self.__dict__["_ridge"]
        return value

    @property
    def has_rates(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"RidgeOnly({self.ridge:g})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RidgeOnly) and other.ridge == self.ridge

    def __hash__(self) -> int:
        return hash(self.ridge)


@dataclass(frozen=True, eq=False, repr=False)  # identity is enough, and a cold start pays for every generated method
class Accelerator:
    """One part.  Rates in FLOP/s, B/s and exp/s, sizes in bytes; None or a missing key means "not sourced".

    `peaks` holds dense matrix-engine rates by precision, `vector_peaks` the other units, `link` the scale-up bandwidth
    of one device in one direction, `achievable` published best-case measurements (never an efficiency).
    `skipped_reason` says why a part has no datasheet ridge.  `raw` is the entry as written.
    """

    id: str
    name: str
    vendor: str
    architecture: str
    peaks: Mapping[str, float]
    vector_peaks: Mapping[str, float]
    exp_rate: float | None
    bandwidth: float | None
    capacity_bytes: float | None
    link: float | None
    roofs: tuple[Roof, ...]
    flags: tuple[str, ...]
    sources: tuple[Source, ...]
    skipped_reason: str | None
    achievable: Mapping[str, float]
    origin: str
    raw: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"Accelerator({self.id!r})"

    @property
    def ridge_precision(self) -> str:
        """bf16, or fp16 where a part has no bf16 peak, or "given" for an ad hoc part."""
        return next((p for p in (*RIDGE_PRECISIONS, GIVEN) if p in self.peaks), RIDGE_PRECISIONS[0])

    @property
    def fp16_for_bf16(self) -> bool:
        """True where fp16 stands in because the part has no bf16 peak."""
        return "fp16" in self.peaks and "bf16" not in self.peaks

    @property
    def ridge(self) -> float:
        """Ridge point of the datasheet roof [FLOP/B].  Raises NoAnswer where it is not sourced."""
        return self.roof().ridge

    @property
    def visible_bytes(self) -> float | None:
        """The capacity that the driver shows where it is known, else the printed one [B]."""
        return self.achievable.get("capacity_visible_bytes", self.capacity_bytes)

    @property
    def unsourced(self) -> tuple[str, ...]:
        """The fields whose source has no known address: they are in `raw` alone and make no roof."""
        lines = Lines(self.sources)
        found = ((field, lines.best(field)) for field, _ in numbers(self.raw))
        return tuple(field for field, source in found if source is None or not source.url)

    def roof(self, name: str = "datasheet", precision: str | None = None) -> Roof:
        """The roof of this name; precision None means bf16, or fp16 where the part has no bf16.

        An ad hoc part has one roof and answers with it.  Raises UnknownName for a name or precision that the part
        does not have, NoAnswer where a datasheet roof is not sourced.
        """
        if self.roofs and self.roofs[0].precision == GIVEN and name in ("datasheet", GIVEN):
            return self.roofs[0]
        wanted = precision or self.ridge_precision
        for roof in self.roofs:
            if roof.name == name and roof.precision == wanted:
                return roof
        if name == "datasheet" and precision is None and self.skipped_reason:
            raise NoAnswer(f"{self.id}: no datasheet roof: {self.skipped_reason}{self._others()}")
        choices = [r.name if r.precision == wanted else f"{r.name} ({r.precision})" for r in self.roofs]
        raise UnknownName(f"roof of {self.id}", f"{name} ({precision})" if precision else name, choices)

    def _others(self) -> str:
        return "; it has " + ", ".join(f"{r.name} ({r.precision})" for r in self.roofs) if self.roofs else ""

    def source_of(self, field: str) -> Source | None:
        """The source line of a dotted field such as "bandwidth_byte_per_s", the most specific with an address first."""
        return Lines(self.sources).best(field)


def _source(line: Mapping[str, Any]) -> Source:
    return Source(line["field"], line["value"], line.get("url") or "", line["kind"], line.get("via", ""))


def build(part_id: str, entry: Mapping[str, Any], origin: str = "built-in") -> Accelerator:
    """An `Accelerator` from one valid entry.  Numbers without a source address are left out."""
    sources = tuple(_source(line) for line in entry.get("sources", ()))
    lines = Lines(sources)

    def sourced(field: str, value: Any) -> Any:
        source = lines.best(field)
        return value if source is not None and source.url else None

    def group(name: str) -> dict[str, float]:
        return {k: v for k, v in entry.get(name, {}).items() if sourced(f"{name}.{k}", v) is not None}

    def single(name: str) -> float | None:
        value = entry.get(name)
        return None if value is None else sourced(name, value)

    peaks, bandwidth = group("peak_flop_per_s"), single("bandwidth_byte_per_s")
    achievable, link = group("achievable"), entry.get("scale_up", {}).get("per_direction_byte_per_s")
    return Accelerator(
        id=part_id,
        name=entry.get("name", part_id),
        vendor=entry.get("vendor", ""),
        architecture=entry.get("architecture", ""),
        peaks=peaks,
        vector_peaks=group("vector_peak_flop_per_s"),
        exp_rate=single("exp_rate_per_s"),
        bandwidth=bandwidth,
        capacity_bytes=single("capacity_bytes"),
        link=None if link is None else sourced("scale_up.per_direction_byte_per_s", link),
        roofs=(*_datasheet(peaks, bandwidth, lines), *_practical(achievable, lines), *_used(entry.get("roofs", {}))),
        flags=tuple(entry.get("flags", ())),
        sources=sources,
        skipped_reason=_skipped(entry, peaks, bandwidth),
        achievable=achievable,
        origin=origin,
        raw=entry,
    )


def _datasheet(peaks: Mapping[str, float], bandwidth: float | None, lines: Lines) -> Iterator[Roof]:
    below = lines.best("bandwidth_byte_per_s")
    if bandwidth is None or below is None:
        return
    for precision, peak in peaks.items():
        above = lines.best(f"peak_flop_per_s.{precision}")
        if above is not None:
            yield _pair("datasheet", precision, (peak, above), (bandwidth, below), "")


def _practical(achievable: Mapping[str, float], lines: Lines) -> Iterator[Roof]:
    measured = []
    for key, value in achievable.items():
        source = lines.best(f"achievable.{key}")
        if source is not None and source.kind == "measured":
            measured.append((value, key, source))
    streams = [m for m in measured if m[1].startswith(("stream_", "copy_")) and m[1].endswith("byte_per_s")]
    if not streams:
        return
    bandwidth, stream, below = max(streams, key=lambda m: m[0])
    for precision in PRECISIONS:
        matmuls = [m for m in measured if m[1].startswith(f"{precision}_matmul_")]
        if matmuls:
            peak, matmul, above = max(matmuls, key=lambda m: m[0])
            yield _pair("practical", precision, (peak, above), (bandwidth, below), f"{matmul} over {stream}")


def _pair(name: str, precision: str, peak: tuple[float, Source], bandwidth: tuple[float, Source], note: str) -> Roof:
    """A roof of two sourced numbers; its kind is that of the weaker one, the note says both."""
    kinds = (peak[1].kind, bandwidth[1].kind)
    if kinds[0] != kinds[1]:
        note = f"peak {kinds[0]}, bandwidth {kinds[1]}"
    addresses = " ; ".join(dict.fromkeys((peak[1].url, bandwidth[1].url)))
    return Roof(name, precision, float(peak[0]), float(bandwidth[0]), max(kinds, key=KINDS.index), addresses, note)


def _used(roofs: Mapping[str, Any]) -> Iterator[Roof]:
    for name, pair in roofs.items():
        rates = float(pair["peak_flop_per_s"]), float(pair["bandwidth_byte_per_s"])
        yield Roof(name, pair["precision"], *rates, pair["kind"], pair["url"], pair.get("note", ""))


def _skipped(entry: Mapping[str, Any], peaks: Mapping[str, float], bandwidth: float | None) -> str | None:
    """Why a part has no datasheet ridge at bf16 or fp16, or None where it has one."""
    why = []
    if not any(p in peaks for p in RIDGE_PRECISIONS):
        listed = [p for p in RIDGE_PRECISIONS if p in entry.get("peak_flop_per_s", {})]
        absent = "no sourced dense bf16 or fp16 peak"
        why.append(f"the source of its {listed[0]} peak has no address" if listed else absent)
    if bandwidth is None:
        listed_too = "bandwidth_byte_per_s" in entry
        why.append("the source of its memory bandwidth has no address" if listed_too else "no sourced memory bandwidth")
    return "; ".join(why) or None
