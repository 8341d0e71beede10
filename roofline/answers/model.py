"""`roofline model`: the built-in models, and one model in full."""

from __future__ import annotations

from typing import Any

from roofline.answer import Answer, Column, Section
from roofline.models import list_models, load_model
from roofline.units import number

_LIST = (
    Column("model", "id"),
    Column("name", "name"),
    Column("kinds", "attention layers"),
    Column("heads", "heads", "1"),
    Column("latent", "latent", "1"),
    Column("rope", "rope", "1"),
    Column("nope", "nope", "1"),
    Column("value", "value", "1"),
    Column("topk", "top-k", "1"),
    Column("params_total", "parameters", "10^9", scale=1e9),
    Column("kv_bytes_per_token", "KV bf16", "B/token"),
)


def model(name: str | None = None) -> Answer:
    """All built-in models, or one (an id, or the path of a config.json) in full.

    >>> model("deepseek-v3").data["params"]["total"]
    671026419200
    """
    return _one(name) if name else _all()


def _all() -> Answer:
    rows = [_list_row(load_model(m)) for m in list_models()]
    return Answer(
        "models", {"rows": rows}, _LIST, title="Models", notes=("A path of a config.json works wherever an id does.",)
    )


def _list_row(m: Any) -> dict[str, Any]:
    shape = dict(m.shape)
    names = ("heads", "latent", "rope", "nope", "value", "topk")
    kinds = [f"{count} {kind}" for kind, count in m.kinds().items()]
    return {
        "model": m.id,
        "name": m.name,
        "model_type": m.model_type,
        "kinds": kinds,
        **{n: shape.get(n) for n in names},
        "params_total": m.params.total,
        "kv_bytes_per_token": m.kv("bf16").bytes_per_token,
        "source": m.source._asdict(),
    }


def _one(name: str) -> Answer:
    m = load_model(name)
    rows = [{"quantity": key, "value": value} for key, value in sorted(m.shape.items())]
    kinds: dict[str, int] = m.kinds()
    params, kv = m.params, m.kv("bf16")
    data = {
        "model": m.id,
        "name": m.name,
        "model_type": m.model_type,
        "architecture": m.architecture,
        "source": m.source._asdict(),
        "rows": rows,
        "kinds": kinds,
        "hidden": m.hidden,
        "vocab": m.vocab,
        "max_positions": m.max_positions,
        "params": {"total": params.total, "active": params.active, "embedding": params.embedding},
        "kv": {"bytes_per_token": kv.bytes_per_token, "fixed_bytes_per_sequence": kv.fixed_bytes_per_sequence},
        "weights": {"bytes": m.weight_bytes.total, "by_dtype": dict(m.weight_bytes.by_dtype)},
        "layers": [
            {"index": layer.index, "attention": layer.attention.kind, "ffn": layer.ffn.kind} for layer in m.layers
        ],
        "defaults_taken": [t._asdict() for t in m.defaults_taken],
    }
    columns = (Column("quantity", "quantity"), Column("value", "value", "1"))
    notes = (
        f"{len(m.layers)} layers: {', '.join(f'{count} {kind}' for kind, count in kinds.items())}.",
        f"{number(params.total)} parameters, {number(params.active)} active per token; KV cache in bf16 "
        f"{number(kv.bytes_per_token)} B per token"
        f" + {number(kv.fixed_bytes_per_sequence)} B per sequence.",
        f"Weights as stored: {number(m.weight_bytes.total)} B.",
        *m.notes,
        "Source: "
        + " ".join(
            filter(
                None, (m.source.repo, m.source.file, m.source.revision and f"at {m.source.revision}", m.source.address)
            )
        ),
    )
    defaults = tuple(f"{t.key} = {t.value}: {t.why}" for t in m.defaults_taken) or ("none",)
    return Answer(
        "model", data, columns, title=f"{m.name} ({m.id})", notes=notes, sections=(Section("Defaults taken", defaults),)
    )
