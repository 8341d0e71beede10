"""Concurrency against context: what an engine holds at each length, beside the exact bytes.  The data of a figure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from roofline.answer import Answer, Column
from roofline.answers.kv_capacity import OMITS, _part, positive
from roofline.memory.engines import ENGINES, Deployment, make_plan
from roofline.memory.plan import GIB
from roofline.models import Model, load_model
from roofline.units import number

LENGTHS = tuple(2**k for k in range(10, 21))
_COLUMNS = (
    Column("label", "line"),
    Column("context", "context", "tokens"),
    Column("concurrency", "requests", "1", show=lambda v: f"{v:.2f}"),
)


def kv_curve(
    model: str | Model | None = None,
    hardware: Any = None,
    *,
    engine: str | Iterable[str] = "vllm",
    tp: int = 1,
    kv_dtype: str | Iterable[str] = "auto",
    lengths: Iterable[int] = LENGTHS,
    **options: Any,
) -> Answer:
    """Requests that fit on a rank, by their length: one line for each engine and dtype, and one of the exact bytes.

    Parameters: as `kv_capacity`; lengths, tokens of a request.

    >>> kv_curve("llama-3.1-8b", kv_dtype="bf16", available_gib=10, lengths=[8192])["lines"][0]["concurrency"]
    [10.0]
    """
    contexts = [positive("lengths", length) for length in lengths]
    engines = [engine] if isinstance(engine, str) else list(engine)
    dtypes = [kv_dtype] if isinstance(kv_dtype, str) else list(kv_dtype)
    part, digest = _part(hardware)
    found = load_model(model) if model else None
    lines: list[dict[str, Any]] = []
    notes: list[str] = []
    for dtype in dtypes:
        for name in engines:
            if name not in ENGINES:
                from roofline.errors import UnknownName

                raise UnknownName("engine", name, ENGINES)
            deployment = Deployment.of(found, part, name, options)
            plan = make_plan(deployment, deployment.layout(tp, dtype))
            size = max(deployment.available(plan, tp, 1)[0], 0.0)
            label = f"{name}, {plan.layout.cache.dtype}"
            lines.append(_line(label, name, contexts, [plan.concurrency(size, n) for n in contexts], size))
            notes += [note for note in deployment.notes(list(plan.taken)) if note not in notes]
        cache = plan.layout.cache
        exact = [size / cache.at(n) if cache.at(n) else None for n in contexts]
        lines.append(_line(f"exact bytes, {cache.dtype}", "ideal", contexts, exact, size))
    rows = [
        {"label": line["label"], "context": n, "concurrency": value}
        for line in lines
        for n, value in zip(contexts, line["concurrency"], strict=True)
    ]
    name = found.name if found else "the given shape"
    title = f"Requests that fit on a rank, {name}, {number(lines[0]['available_bytes'] / GIB)} GiB for caches"
    data = {"lines": lines, "rows": rows, "title": title}
    return Answer("kv-curve", data, _COLUMNS, title=title, notes=(*notes, OMITS), digest=digest)


def _line(label: str, engine: str, contexts: list[int], values: list[Any], size: float) -> dict[str, Any]:
    return {"label": label, "engine": engine, "context": contexts, "concurrency": values, "available_bytes": size}
