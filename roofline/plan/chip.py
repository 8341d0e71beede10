"""The rates of an accelerator under a named roof, as a step needs them: one peak a precision, and the links it uses."""

from __future__ import annotations

from typing import NamedTuple

from roofline.accelerators import Accelerator, Roof
from roofline.plan.numbers import Rates
from roofline.plan.records import Deployment


class Chip(NamedTuple):
    """The rates, the roof's name, and what has to be said about them."""

    rates: Rates
    roof: str
    notes: tuple[str, ...]


def chip(
    part: Accelerator, roof: str | None = None, spread: Deployment | None = None, link: float | None = None
) -> Chip:
    """The rates of a part under a roof ("datasheet" unless it has none).

    A named roof gives the peaks and the bandwidth that its source pairs; precisions that it does not name keep the
    datasheet's peak.  link: bandwidth of one device in one direction [B/s], in place of the part's own.
    Raises UnknownName for a roof that the part does not have, NoAnswer where only a ridge point is known.
    """
    spread = spread or Deployment()
    chosen = _roof(part, roof)
    sheet = {r.precision: r.peak for r in part.roofs if r.name == "datasheet" and chosen.name != "given"}
    peaks = sheet | {r.precision: r.peak for r in part.roofs if r.name == chosen.name}
    notes = []
    if chosen.name not in ("datasheet", "given"):
        own = ", ".join(r.precision for r in part.roofs if r.name == chosen.name)
        notes.append(f"Roof {chosen.name} names {own} only; other precisions keep the datasheet peak.")
    notes += _missing(part)
    up, wide, told = _links(part, spread, link)
    vector = max(part.vector_peaks.values(), default=None)
    rates = Rates(peaks, chosen.bandwidth, vector, part.exp_rate, up, wide)
    return Chip(rates, chosen.name, (*notes, *told))


def _roof(part: Accelerator, name: str | None) -> Roof:
    """The roof of a name, or the datasheet's, or the only one of an ad hoc part."""
    if name:
        return part.roof(name)
    if not part.roofs:
        return part.roof()
    return next((r for r in part.roofs if r.name == "datasheet"), part.roofs[0])


def _missing(part: Accelerator) -> list[str]:
    """Legs that are left out because the part has no sourced rate for them."""
    units = (("vector unit", part.vector_peaks), ("special-function unit", part.exp_rate))
    found = [name for name, rate in units if not rate]
    return [f"Left out, rate not sourced: {' and '.join(found)}."] if found else []


def _links(part: Accelerator, spread: Deployment, link: float | None) -> tuple[float | None, float | None, list[str]]:
    """(rate within tensor parallelism, rate of expert and stage traffic, notes): per device and direction.

    Beyond the scale-up domain the network of the nodes binds: of an all-to-all over n ranks in domains of g, a share of
    (n - g)/(n - 1) crosses it; a hierarchical all-reduce sends 1/g of its message through each device's port.
    """
    if link is not None:
        return link, link, [f"Link bandwidth as given: {link / 1e9:g} GB/s per device and direction."]
    ranks, up = spread.gpus, part.link
    if ranks == 1 or up is None:
        return up, up, [] if ranks == 1 else ["Collectives left out: no sourced link bandwidth (--link-bandwidth)."]
    domain = int(part.raw.get("scale_up", {}).get("domain_size") or ranks)
    port = part.raw.get("scale_out", {}).get("per_direction_byte_per_s")
    if ranks <= domain:
        return up, up, []
    if port is None:
        return up, up, [f"{ranks} devices in domains of {domain}, no scale-out rate sourced: scale-up rate taken."]
    n = spread.expert_ranks
    inner = up if spread.tp <= domain else min(up, port * domain)
    wide = up if n <= domain else min(up, port * (n - 1) / (n - domain))
    told = f"Beyond the scale-up domain of {domain} devices: {port / 1e9:g} GB/s a device, shared as in an all-to-all."
    return inner, wide, [told]
