"""The data behind the figure `roofline`: evaluated lines and points, as plain records in SI units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from roofline import glossary, law
from roofline.answers.common import Parts, chosen
from roofline.errors import BadValue, NoAnswer, UnknownName
from roofline.evaluate import evaluate
from roofline.headcount import side
from roofline.models import Model, load_model
from roofline.units import number, show

if TYPE_CHECKING:
    from roofline.accelerators import Accelerator, Roof
    from roofline.kernel import Kernel

KERNELS = ("attention", "mla_mha", "mla_mqa", "dsa_indexer")
MODELS = ("deepseek-v3.2", "llama-3.1-70b")
WORKLOAD: Mapping[str, float] = {
    "batch": 1,
    "q_len": 1,
    "context": 8192,
    "prefix": 4096,
    "w_kv": 2,
    "w_act": 2,
    "w_weight": 2,
    "w_expanded": 2,
}
Record = dict[str, Any]


def many(value: Any) -> list[Any]:
    """One thing or several, as a list; text is split at commas."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return list(value) if isinstance(value, Iterable) else [value]


def roofs_of(parts: Parts, names: list[str], precisions: list[str]) -> list[tuple[Accelerator, Roof]]:
    """The roofs of the parts with these names (all where none is given) at these precisions.

    "bf16" stands for fp16 where a part has no bf16, and for whatever an ad hoc part gives.
    """
    found = []
    for part in parts.parts:
        wanted = {part.ridge_precision if p == "bf16" else p for p in precisions} | {"given"}
        mine = [r for r in part.roofs if r.precision in wanted and (not names or r.name in names)]
        if not mine and names:
            raise UnknownName(f"roof of {part.id}", ", ".join(names), dict.fromkeys(r.name for r in part.roofs))
        if not mine:
            raise NoAnswer(
                f"{part.id}: no sourced roof at {', '.join(precisions)}"
                + (f": {part.skipped_reason}" if part.skipped_reason else "")
            )
        found += [(part, r) for r in mine]
    return found


def roofline_data(
    hardware: Any = "h800-sxm",
    *,
    roof: Any = (),
    precision: Any = None,
    kernel: Any = None,
    model: Any = MODELS,
    phase: str = "decode",
    tp: int = 1,
    kernel_heads: float | None = None,
    **given: Any,
) -> tuple[Record, Parts]:
    """Roofs with their lines, and each kernel of each model as a point on every roof of its precision."""
    workload = {**WORKLOAD, **{k: glossary.check(k, v) for k, v in given.items() if v is not None}}
    uses = _uses(kernel, [load_model(m) for m in many(model)], phase, tp, kernel_heads, workload)
    parts = chosen(hardware)
    wanted = many(precision) if precision else list(dict.fromkeys(u["precision"] for u in uses))
    roofs = roofs_of(parts, many(roof) if roof else [], wanted)
    points = [_point(use, part, r) for use in uses for part, r in roofs if _fits(use["precision"], part, r)]
    shown = [use["label"] for use in uses if use["label"] not in {p["label"] for p in points}]
    domain = _roofline_domain([r for _, r in roofs], points)
    lines = [_roof(part, r, domain["intensity_flop_per_byte"]) for part, r in roofs]
    used = {s for use in uses for s in use.pop("names")}
    inputs: Record = {
        "phase": phase,
        "tp": tp,
        "kernel_heads": kernel_heads,
        **{k: v for k, v in workload.items() if k in used},
    }
    names = "; ".join(f"{p.name}: {', '.join(dict.fromkeys(r.name for q, r in roofs if q is p))}" for p in parts.parts)
    said = ", ".join(f"{k} {number(inputs[k])}" for k in ("batch", "q_len", "context", "prefix") if k in inputs)
    title = f"Bound from the roof ({names}), attention in {phase}, {said}" + (f", TP {tp}" if tp != 1 else "")
    return {
        "rows": points,
        "points": points,
        "roofs": lines,
        "domain": domain,
        "inputs": inputs,
        "title": title,
        "not_shown": shown,
    }, parts


def _uses(
    kernel: Any, models: list[Model], phase: str, tp: int, kernel_heads: float | None, workload: Mapping[str, Any]
) -> list[Record]:
    """Every kernel with every model that has the shape for it: label, precision, intensity [FLOP/B]."""
    from roofline.kernels import kernel as find

    if "kv_row_bytes" in workload and len(models) > 1:
        raise BadValue(
            "kv_row_bytes", workload["kv_row_bytes"], "one model", "the row of each model has a width of its own"
        )
    asked = [find(k) for k in (many(kernel) if kernel else KERNELS)]
    found: list[Record] = []
    why: dict[str, str] = {}
    for one in asked:
        for m in models:
            missing, use = _use(one, m, phase, tp, kernel_heads, workload)
            if use:
                found.append(use)
            else:
                why.setdefault(one.name, f"{one.name} needs {', '.join(missing)}, which {m.id} has not")
    drawn = {u["kernel"] for u in found}
    if (kernel and (lost := [k.name for k in asked if k.name not in drawn])) or not drawn:
        raise BadValue(
            "kernel",
            lost[0] if kernel else "all",
            "a kernel that fits one of the models",
            why[lost[0] if kernel else asked[0].name],
        )
    return found


def _use(
    kernel: Kernel, model: Model, phase: str, tp: int, kernel_heads: float | None, workload: Mapping[str, Any]
) -> tuple[list[str], Record | None]:
    from roofline.phases import on_phase

    bound = on_phase(kernel, phase)
    if "kv_row_bytes" in workload:
        bound = bound.bind(kv_row_bytes=workload["kv_row_bytes"])
    shape = rank_shape(model, tp)
    values = {
        **workload,
        **shape,
        "kernel_heads": kernel_heads or shape.get("heads"),
        "seq_len": workload["context"] + workload["q_len"],
    }
    names = {s.name for s in bound.intensity.free_symbols}
    missing = sorted(n for n in names if values.get(n) is None)
    if missing:
        return missing, None
    intensity = evaluate(bound.intensity, **{n: values[n] for n in names})
    label = (
        f"{kernel.name}, {model.id}"
        + (f", {kernel.precision}" if kernel.precision != "bf16" else "")
        + (f", TP {tp}" if tp > 1 else "")
    )
    if "kernel_heads" in names or "heads" in names:
        label += f"\n{number(values['kernel_heads' if 'kernel_heads' in names else 'heads'])} heads"
    return [], {
        "kernel": kernel.name,
        "model": model.id,
        "precision": kernel.precision,
        "label": label,
        "intensity_flop_per_byte": intensity,
        "names": names,
    }


def rank_shape(model: Model, tp: int) -> Record:
    """Shape of one rank: query heads divide by TP, key/value heads do not go below one, the rest is replicated."""
    glossary.check("tp", tp)
    shape: Record = dict(model.shape)
    for name in ("heads", "kv_heads"):
        if name in shape and shape[name] % tp and not (name == "kv_heads" and tp % shape[name] == 0):
            raise BadValue("tp", tp, f"a divisor of the {shape[name]} {name} of {model.id}")
        if name in shape:
            shape[name] = max(1, shape[name] // tp)
    return shape


def _fits(precision: str, part: Accelerator, roof: Roof) -> bool:
    return roof.precision in (part.ridge_precision if precision == "bf16" else precision, "given")


def _attainable(roof: Roof, intensity: Any) -> Any:
    return evaluate(law.attainable(), peak=roof.peak, bandwidth=roof.bandwidth, intensity=intensity)


def _roof_name(part: Accelerator, roof: Roof) -> Record:
    return {
        "hardware": part.id,
        "roof": roof.name,
        "precision": roof.precision,
        "ridge_flop_per_byte": roof.ridge,
        "kind": roof.kind,
        "source": roof.source,
    }


def _point(use: Record, part: Accelerator, roof: Roof) -> Record:
    x = use["intensity_flop_per_byte"]
    told = {k: v for k, v in use.items() if k != "names"}
    return {
        **told,
        **_roof_name(part, roof),
        "attainable_flop_per_s": _attainable(roof, x),
        "bound": side(x, roof.ridge),
    }


def _roof(part: Accelerator, roof: Roof, domain: list[float]) -> Record:
    at = sorted({domain[0], roof.ridge, domain[1]})
    return {
        **_roof_name(part, roof),
        "peak_flop_per_s": roof.peak,
        "bandwidth_byte_per_s": roof.bandwidth,
        "label": f"{part.name} {roof.name}, {roof.precision}: {number(roof.peak / 1e12)} TFLOP/s over "
        f"{show(roof.bandwidth, 'B/s')}, ridge {show(roof.ridge, 'FLOP/B')}",
        "line": {"intensity_flop_per_byte": at, "attainable_flop_per_s": [_attainable(roof, x) for x in at]},
    }


def _roofline_domain(roofs: list[Roof], points: list[Record]) -> dict[str, list[float]]:
    intensities = [*(r.ridge for r in roofs), *(p["intensity_flop_per_byte"] for p in points)]
    left, right = min(intensities) / 3, max(intensities) * 16
    lowest = min([p["attainable_flop_per_s"] for p in points] or [_attainable(r, left) for r in roofs])
    return {
        "intensity_flop_per_byte": [left, right],
        "attainable_flop_per_s": [lowest / 4, 2.2 * max(r.peak for r in roofs)],
    }
