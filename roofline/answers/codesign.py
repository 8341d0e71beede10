"""`roofline codesign`: which heads, groups and query lengths sit on the ridges of several chips at once.

Weights of grouped-query latent attention run in two ways (GQLA, arXiv:2605.15250): *absorbed*, all heads over one
latent row, and *grouped*, over cached keys and values of `kv_heads` groups.  Each chip takes the way and the query
length that lie nearest to its ridge.  With one way fixed per chip, heads and groups follow in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from roofline import glossary
from roofline.answer import Answer, Column, Section
from roofline.answers.common import chosen
from roofline.errors import BadValue
from roofline.evaluate import evaluate
from roofline.units import number

if TYPE_CHECKING:
    from roofline.accelerators import Accelerator

PATHS = {"absorbed": "mla_mqa", "grouped": "gqla_grouped"}
COLUMNS = (
    Column("heads", "heads", "1"),
    Column("kv_heads", "groups", "1"),
    Column("uses", "per chip: way, query length, intensity / ridge"),
    Column("distance_log2", "farthest", "log2", show=lambda v: f"{v:.3f}"),
)


class Way(NamedTuple):
    """How one chip runs the attention: path, query length, intensity over ridge in powers of two."""

    path: str
    q_len: int
    distance: float


def codesign(
    hardware: str | Iterable[str | Accelerator] = "h100-sxm,h20",
    *,
    roof: str | None = None,
    latent: float = 512,
    rope: float = 64,
    nope: float = 128,
    value: float = 128,
    w_kv: float = 2,
    heads: Sequence[int] = (16, 32, 48, 64, 96, 128, 160, 192, 256),
    q_lens: Sequence[int] = (1, 2, 3, 4),
    best: int = 12,
) -> Answer:
    """The (heads, groups) whose decode lies nearest to the ridge on every chip, each in its better way.

    Parameters: hardware, two or more parts; roof, a name (default each part's datasheet); latent, rope, nope, value,
    widths
    [1]; w_kv, bytes per cached element [B]; heads, q_lens, what is tried (groups: every divisor of the heads); best,
    rows
    given.  Intensities are long-context limits (cache rows only).

    >>> answer = codesign("h100-sxm,h20")
    >>> {name: round(value, 2) for name, value in answer["closed_form"].items()}
    {'heads': 156.36, 'kv_heads': 10.31}
    """
    shape = {"latent": latent, "rope": rope, "nope": nope, "value": value, "w_kv": w_kv}
    for name, size in shape.items():
        glossary.check(name, size)
    parts = chosen(hardware)
    if len(parts.parts) < 2:
        raise BadValue("hardware", ", ".join(p.id for p in parts.parts), "two or more parts")
    ridges = {p.id: p.roof(roof).ridge if roof else p.ridge for p in parts.parts}
    rows = [_row(h, g, ridges, shape, q_lens) for h in heads for g in range(1, h + 1) if h % g == 0]
    rows.sort(key=lambda r: (r["distance_log2"], r["heads"], r["kv_heads"]))
    form = _closed_form(list(ridges.values())[:2], shape)
    data = {
        "rows": rows[:best],
        "ridges": ridges,
        "tried": len(rows),
        "closed_form": form,
        "inputs": shape,
    }
    notes = (
        "Farthest: the chip whose intensity is farthest from its ridge, in powers of two; 0 sits on every ridge.",
        f"Closed form: absorbed with one query on {next(iter(ridges))}, grouped with two on the next: "
        f"{number(form['heads'])} heads, {number(form['kv_heads'])} groups.",
        "Left out: query and output traffic, everything beside the attention core; long contexts.",
    )
    return Answer(
        "codesign",
        data,
        COLUMNS,
        title="Attention shapes on the ridges of several chips",
        notes=(*parts.warnings, *notes),
        sections=_sections(),
        digest=parts.digest,
    )


def _row(
    heads: int, groups: int, ridges: dict[str, float], shape: dict[str, float], q_lens: Sequence[int]
) -> dict[str, Any]:
    ways = {part: _nearest(heads, groups, ridge, shape, q_lens) for part, ridge in ridges.items()}
    told = [f"{part}: {w.path}, {w.q_len}, {2**w.distance:.2f}" for part, w in ways.items()]
    return {
        "heads": heads,
        "kv_heads": groups,
        "uses": told,
        "ways": {p: w._asdict() for p, w in ways.items()},
        "distance_log2": max(abs(w.distance) for w in ways.values()),
    }


def _nearest(heads: int, groups: int, ridge: float, shape: dict[str, float], q_lens: Sequence[int]) -> Way:
    """The way and query length nearest to a ridge."""
    found = [
        Way(path, s, math.log2(intensity(path, heads, groups, s, shape) / ridge)) for path in PATHS for s in q_lens
    ]
    return min(found, key=lambda w: (abs(w.distance), w.q_len, w.path))


def intensity(path: str, heads: float, groups: float, q_len: float, shape: dict[str, float]) -> float:
    """Decode intensity over a long context [FLOP/B]: pairs a row = queries, no query or output traffic."""
    values = {
        **shape,
        "kv_heads": groups,
        "heads": heads,
        "kernel_heads": heads,
        "q_len": q_len,
        "pairs": q_len,
        "rows_read": 1,
        "batch": 1,
        "w_act": 0,
    }
    return float(evaluate(PATHS[path], "intensity", **values))


def _closed_form(ridges: list[float], shape: dict[str, float]) -> dict[str, float]:
    """Heads on the first ridge (absorbed, one query), then groups on the second (grouped, two queries)."""
    heads = ridges[0] / intensity("absorbed", 1, 1, 1, shape)  # the intensity is proportional to the heads
    one, two = (intensity("grouped", heads, g, 2, shape) for g in (1, 2))  # its inverse is linear in the groups
    slope = 1 / two - 1 / one
    return {"heads": heads, "kv_heads": 1 + (1 / ridges[1] - 1 / one) / slope}


def formulas() -> dict[str, Any]:
    """The two closed forms in symbols: heads from the first ridge, groups from the second and the heads."""
    import sympy as sp

    from roofline.kernels import KERNELS
    from roofline.symbols import sym

    limit = {"w_act": 0, "pairs": sym.q_len, "rows_read": 1}
    absorbed = KERNELS["mla_mqa"].bind(**limit, kernel_heads=sym.heads).intensity
    grouped = KERNELS["gqla_grouped"].bind(**limit).intensity
    (heads,) = sp.solve(absorbed - sym.ridge, sym.heads)
    (groups,) = sp.solve(grouped - sym.ridge, sym.kv_heads)
    return {"heads": sp.factor(heads), "kv_heads": sp.simplify(groups)}


def _sections() -> tuple[Section, ...]:
    steps = (
        "Absorbed: 2 H s (2d + r) FLOP a row of w (d + r) bytes.",
        "Grouped: 2 H s (n + r + v) FLOP a row of w (g (n + v) + r) bytes.",
        "The first equal to one chip's ridge gives the heads, the second with them, equal to the other's, the groups.",
    )
    return (
        Section("Derivation", steps),
        Section("Source", ("arXiv:2605.15250 (GQLA), arXiv:2405.04434 sec. 2.1 (MLA)",)),
    )
