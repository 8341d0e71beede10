"""What the questions share: which accelerators are meant, and the roof that a time or a ridge is taken from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from roofline.accelerators import Accelerator, load_catalog, resolve
from roofline.accelerators.parts import GIVEN

if TYPE_CHECKING:
    from roofline.accelerators import Roof


class Parts(NamedTuple):
    """The accelerators asked for, the digest of the data they come from, and warnings about files of the user."""

    parts: list[Accelerator]
    digest: str
    warnings: tuple[str, ...]


def chosen(hardware: Any) -> Parts:
    """Accelerators from ids, files, comma-separated lists, "all", Accelerator objects, or a mix of them."""
    wanted = [hardware] if isinstance(hardware, (str, Accelerator)) else list(hardware)
    names = [w for w in wanted if isinstance(w, str)]
    given = [w for w in wanted if isinstance(w, Accelerator)]
    catalog = load_catalog()
    parts: list[Accelerator] = []
    if names or not given:
        parts, catalog = resolve(names, catalog)
    return Parts([*parts, *given], catalog.digest, catalog.warnings)


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
