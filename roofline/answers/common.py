"""What the questions share: which accelerators are meant, and the roof that a time or a ridge is taken from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from roofline.accelerators import Accelerator, load_catalog, resolve
from roofline.accelerators.parts import GIVEN
from roofline.errors import BadValue, NoAnswer, UnknownName

if TYPE_CHECKING:
    from roofline.accelerators import Roof


class Parts(NamedTuple):
    """The accelerators asked for, the digest of the data they come from, and warnings about files of the user."""

    parts: list[Accelerator]
    digest: str
    warnings: tuple[str, ...]


def chosen(hardware: Any) -> Parts:
    """Accelerators from ids, files, comma-separated lists, "all", Accelerator objects, or a mix of them."""
    wanted = _listed(hardware)
    names = [w for w in wanted if isinstance(w, str)]
    given = [w for w in wanted if isinstance(w, Accelerator)]
    catalog = load_catalog()
    parts: list[Accelerator] = []
    if names or not given:
        parts, catalog = resolve(names, catalog)
    return Parts([*parts, *given], catalog.digest, catalog.warnings)


def _listed(hardware: Any) -> list[Any]:
    if isinstance(hardware, (str, Accelerator)):
        return [hardware]
    if not isinstance(hardware, Iterable):
        raise BadValue("hardware", hardware, "ids, files or Accelerators, or all")
    return list(hardware)


def with_adhoc(hardware: Any, peak: Any = None, bandwidth: Any = None, ridge: Any = None) -> Any:
    """The accelerators asked for and a part given by its numbers: text with units, or floats in SI.

    An ad hoc part stands alone where no accelerator was named.
    """
    if peak is None and bandwidth is None and ridge is None:
        return hardware
    from roofline.accelerators import adhoc

    part = adhoc(peak=peak, bandwidth=bandwidth, ridge=ridge)
    return [part] if hardware is None or hardware == "all" else [*_listed(hardware), part]


class Roofed(NamedTuple):
    """Each part with the roof asked for; where "all" was asked, the parts without it, with the reason."""

    pairs: list[tuple[Accelerator, Roof]]
    skipped: list[dict[str, str]]
    digest: str
    warnings: tuple[str, ...]


def roofed(hardware: Any, roof: str | None, precision: str = "bf16") -> Roofed:
    """The parts asked for with their named roof.  A part named by the caller must have it; of "all" those that do."""
    listed = _listed(hardware)
    asked = chosen(listed)
    names = [name for name in listed if isinstance(name, str)]
    everyone = any(piece.strip().lower() == "all" for name in names for piece in name.split(","))
    pairs, skipped = [], []
    for part in asked.parts:
        try:
            pairs.append((part, roof_for(part, roof, precision)))
        except (NoAnswer, UnknownName) as error:
            if not everyone:
                raise
            skipped.append({"hardware": part.id, "reason": part.skipped_reason or str(error)})
    if not pairs:
        raise UnknownName("roof", roof or "datasheet", sorted({r.name for part in asked.parts for r in part.roofs}))
    return Roofed(pairs, skipped, asked.digest, asked.warnings)


def digest_of(*used: Any) -> str:
    """Twelve digits that name the data an answer rests on."""
    from hashlib import sha256

    return sha256(repr(used).encode()).hexdigest()[:12]


def skipped_note(skipped: list[dict[str, str]]) -> tuple[str, ...]:
    """What to say of parts left out, if any."""
    told = "; ".join(f"{s['hardware']} ({s['reason']})" for s in skipped)
    return (f"Skipped {len(skipped)}: {told}.",) if skipped else ()


def usual_roofs(part: Accelerator, name: str | None) -> list[Roof]:
    """The roofs at the precision that decides (bf16, or fp16 where a part has no bf16), all or the one of a name."""
    return [r for r in part.roofs if r.precision in (part.ridge_precision, GIVEN) and name in (None, r.name)]


def roof_for(part: Accelerator, name: str | None, precision: str = "bf16") -> Roof:
    """The named roof (default datasheet) at a kernel's precision; fp16 stands in where a part has no bf16."""
    return part.roof(name or "datasheet", None if precision == "bf16" else precision)


def leg_rates(part: Accelerator, roof: Roof) -> dict[str, float]:
    """The rates that times are taken from: those of the roof, and of the other units where they are sourced."""
    if not roof.has_rates:
        return rates(roof)
    others = {"exp_rate": part.exp_rate, "vector_peak": part.vector_peaks.get("fp32")}
    return rates(roof) | {name: rate for name, rate in others.items() if rate}


def rates(roof: Roof) -> dict[str, float]:
    """Peak [FLOP/s] and bandwidth [B/s] of a roof; a bare ridge point stands as ridge over 1, which times "
    "only scale."""
    return (
        {"peak": roof.peak, "bandwidth": roof.bandwidth} if roof.has_rates else {"peak": roof.ridge, "bandwidth": 1.0}
    )
