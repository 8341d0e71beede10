"""`roofline heads` and `roofline chips`: the head count that sits on each accelerator's ridge point."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from roofline import glossary
from roofline._generated import closed_forms
from roofline.answer import Answer, Column, Section
from roofline.answers.common import chosen, rates, usual_roofs, with_adhoc
from roofline.errors import BadValue, UnknownName
from roofline.evaluate import closed_form
from roofline.headcount import nearest_power_of_two, side
from roofline.units import number

if TYPE_CHECKING:
    from roofline.accelerators import Accelerator, Roof

OMITS = (
    "Left out: query and output traffic (the long-context limit; `roofline formula mla_mqa` has it), launch gaps, "
    "dequantisation, achieved rates below the roof."
)
_COLUMNS = (
    Column("hardware", "accelerator"),
    Column("roof", "roof"),
    Column("precision", "precision"),
    Column("peak_flop_per_s", "peak", "TFLOP/s", scale=1e12),
    Column("bandwidth_byte_per_s", "bandwidth", "TB/s", scale=1e12),
    Column("ridge_flop_per_byte", "ridge", "FLOP/B"),
    Column("heads_exact", "heads on the ridge", "1", show=lambda v: f"{v:.2f}" if 0.01 <= v < 1e9 else number(v)),
    Column("heads", "nearest 2^k", "1"),
    Column("intensity_flop_per_byte", "intensity there", "FLOP/B"),
    Column("bound", "bound there"),
)


def heads(
    hardware: str | Iterable[str | Accelerator] = "all",
    *,
    roof: str | None = None,
    latent: float = 512,
    rope: float = 64,
    w_kv: float = 2,
    kv_row_bytes: float | None = None,
    q_len: float = 1,
    peak: str | float | None = None,
    bandwidth: str | float | None = None,
    ridge: str | float | None = None,
) -> Answer:
    """Which head count puts MQA-mode decode on the ridge point, for each accelerator and roof.

    Parameters: hardware, ids, files or Accelerators ("all" = every part); roof, one name such as "datasheet" (default
    every roof that a part has); latent, rope, widths of the cached row [1]; w_kv, bytes per cached element [B], or
    kv_row_bytes, bytes of the whole row [B] (656 for FlashMLA's fp8 row); q_len, query tokens per sequence [1];
    peak [FLOP/s] and bandwidth [B/s], or ridge [FLOP/B], an ad hoc part, as text with units or floats in SI.

    Returns rows as `--json` does.  Intensity is the long-context limit 2 H s (2d + r) / row bytes.
    Source: arXiv:2405.04434 sec. 2.1; FlashMLA docs/20250422-new-kernel-deep-dive.md.

    >>> round(heads("h800-sxm", roof="flashmla").rows[0]["heads_exact"], 2)
    136.7
    >>> heads(peak="989TFLOP/s", bandwidth="3.35TB/s").rows[0]["heads"]
    128
    """
    values = {"latent": latent, "rope": rope, "q_len": q_len}
    for name, value in values.items():
        glossary.check(name, value)
    row = glossary.check("kv_row_bytes", kv_row_bytes) if kv_row_bytes is not None else _row_bytes(w_kv, latent, rope)
    shape = {**values, "kv_row_bytes": row}
    asked = chosen(with_adhoc(hardware, peak, bandwidth, ridge))
    rows, skipped = [], []
    for part in asked.parts:
        found = usual_roofs(part, roof)
        rows += [_row(part, r, shape) for r in found]
        if not found:
            skipped.append({"hardware": part.id, "reason": part.skipped_reason or _no_roof(part, roof)})
    if roof is not None and not rows:
        names = sorted({r.name for part in asked.parts for r in part.roofs})
        if roof not in names:
            raise UnknownName("roof", roof, names, "roofline hardware show ID")
    data = {
        "rows": rows,
        "skipped": skipped,
        "formula": {"latex": closed_forms.LATEX["heads_at_ridge"], "text": closed_forms.TEXT["heads_at_ridge"]},
        "inputs": {**shape, "w_kv": w_kv if kv_row_bytes is None else None, "roof": roof},
    }
    title = "Head count on the ridge point: MQA-mode MLA decode over a long context"
    return Answer(
        "heads",
        data,
        _COLUMNS,
        title=title,
        notes=asked.warnings + _notes(shape, kv_row_bytes, w_kv, roof, skipped),
        sections=_sections(rows, shape),
        digest=asked.digest,
        no_answer="" if rows else "no part has a sourced ridge",
    )


def chips(heads: float = 64, hardware: str | Iterable[str | Accelerator] = "all", **options: Any) -> Answer:
    """The accelerators sorted by their distance from a head count, in powers of two.

    Parameters: heads, the head count asked about; hardware and options as for `heads`.

    >>> chips(64, roof="datasheet").rows[0]["hardware"]
    'ascend-950dt'
    """
    glossary.check("heads", heads)
    answer = _heads(hardware, **options)
    intensity = answer.data["inputs"]
    rows = [{**r, "distance_log2": math.log2(r["heads_exact"] / heads), "asked_heads": heads} for r in answer.rows]
    for r in rows:
        r["asked_bound"] = side(heads, r["heads_exact"])
        r["asked_intensity_flop_per_byte"] = r["ridge_flop_per_byte"] * heads / r["heads_exact"]
    rows.sort(key=lambda r: (abs(r["distance_log2"]), r["hardware"], r["roof"]))
    data = {**answer.data, "rows": rows, "inputs": {**intensity, "heads": heads}}
    columns = (
        *_COLUMNS[:3],
        _COLUMNS[5],
        _COLUMNS[6],
        Column("distance_log2", "distance", "log2", show=lambda v: f"{v:+.3f}"),
        Column("asked_bound", f"bound with {number(heads)} {'head' if heads == 1 else 'heads'}"),
    )
    title = f"Accelerators by their distance from {number(heads)} heads"
    return Answer(
        "chips",
        data,
        columns,
        title=title,
        notes=answer.notes,
        sections=answer.sections,
        digest=answer.digest,
        no_answer=answer.no_answer,
    )


_heads = heads  # `chips` has an argument of that name


def _row_bytes(w_kv: float, latent: float, rope: float) -> float:
    """Bytes of a cached row as the kernel itself has it."""
    from roofline._generated import kernels

    defaults: Any = kernels.DEFAULTS
    return float(defaults["mla_mqa"]["kv_row_bytes"](w_kv=glossary.check("w_kv", w_kv), latent=latent, rope=rope))


def _no_roof(part: Accelerator, roof: str | None) -> str:
    names = sorted({r.name for r in part.roofs})
    return f"has no roof {roof!r}; it has {', '.join(names)}" if names else "no sourced peak or bandwidth"


def _row(part: Accelerator, roof: Roof, shape: dict[str, float]) -> dict[str, Any]:
    exact = closed_form("heads_at_ridge")(**rates(roof), **shape)
    if not (math.isfinite(exact) and exact > 0):
        raise BadValue(
            "heads_exact", exact, "a finite head count", f"{part.id}: the numbers given are too large or too small"
        )
    count = nearest_power_of_two(exact)
    return {
        "hardware": part.id,
        "roof": roof.name,
        "precision": roof.precision,
        "peak_flop_per_s": roof.peak if roof.has_rates else None,
        "bandwidth_byte_per_s": roof.bandwidth if roof.has_rates else None,
        "ridge_flop_per_byte": roof.ridge,
        "heads_exact": exact,
        "heads": count,
        "intensity_flop_per_byte": closed_form("decode_intensity_limit")(heads=count, **shape),
        "bound": side(count, exact),
        "kind": roof.kind,
        "source": roof.source,
    }


def _notes(
    shape: dict[str, float], kv_row_bytes: float | None, w_kv: float, roof: str | None, skipped: list[Any]
) -> tuple[str, ...]:
    width = f"kv_row_bytes = {number(shape['kv_row_bytes'])} B" + (
        "" if kv_row_bytes else f" (w_kv = {number(w_kv)} B)"
    )
    inputs = (
        f"latent = {number(shape['latent'])}, rope = {number(shape['rope'])}, q_len = {number(shape['q_len'])}, {width}"
    )
    notes = [
        f"Inputs: {inputs}. Roof: {roof or 'every roof a part has'}; dense peaks, bf16 (fp16 where a part has no bf16)."
    ]
    notes.append("Nearest power of two in log2; `bound there` is the side of the ridge on which it falls.")
    if skipped:
        notes.append(f"Skipped {len(skipped)}: " + "; ".join(f"{s['hardware']} ({s['reason']})" for s in skipped))
    return (*notes, OMITS)


def _sections(rows: list[dict[str, Any]], shape: dict[str, float]) -> tuple[Section, ...]:
    steps = (
        "Shape: one cached row of kappa bytes per key serves every head, as key and as value (MQA mode).",
        "Rule: intensity = tensor FLOP over bytes moved; limit for a long context; set equal to the ridge "
        "peak / bandwidth.",
    )
    derivation = Section(
        "Derivation",
        steps,
        (f"I = {closed_forms.LATEX['decode_intensity_limit']}", f"H = {closed_forms.LATEX['heads_at_ridge']}"),
    )
    put_in = tuple(
        f"{r['hardware']} [{r['roof']}]: {number(r['ridge_flop_per_byte'], 6)} FLOP/B * "
        f"{number(shape['kv_row_bytes'])} B"
        f" / (2 * {number(shape['q_len'])} * (2 * {number(shape['latent'])} + {number(shape['rope'])})) = "
        f"{r['heads_exact']:.2f} heads"
        for r in rows
    )
    sources = tuple(f"{r['hardware']} [{r['roof']}, {r['kind']}]: {r['source']}" for r in rows)
    papers = (
        "arXiv:2405.04434 sec. 2.1 (MLA)",
        "FlashMLA docs/20250422-new-kernel-deep-dive.md (H800: 865 TFLOP/s over 3.35 TB/s)",
    )
    return (derivation, Section("Numbers put in", put_in), Section("Sources", (*papers, *sources)))
