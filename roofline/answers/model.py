"""`roofline model`: the built-in models, and one model in full."""

from __future__ import annotations

from typing import Any

from roofline.answer import Answer, Column, Section
from roofline.answers.common import digest_of
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
    notes = ("A path of a config.json works wherever an id does.",)
    return Answer("models", {"rows": rows}, _LIST, title="Models", notes=notes, digest=digest_of(rows))


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
    params, kv, bytes_ = m.params, m.kv(), m.weight_bytes
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
        "params": {**params._asdict(), "by_class": dict(params.by_class)},
        "kv": {
            "dtype": kv.dtype,
            "bytes_per_token": kv.bytes_per_token,
            "fixed_bytes_per_sequence": kv.fixed_bytes_per_sequence,
            "by_kind": [{**part._asdict(), "slope": part.slope, "fixed": part.fixed} for part in kv.parts],
        },
        "weights": {
            "bytes": bytes_.total,
            "mtp_bytes": bytes_.mtp,
            "by_class": dict(bytes_.by_class),
            "by_dtype": dict(bytes_.by_dtype),
        },
        "layers": [
            {"index": layer.index, "attention": layer.attention.kind, "ffn": layer.ffn.kind} for layer in m.layers
        ],
        "defaults_taken": [t._asdict() for t in m.defaults_taken],
    }
    columns = (Column("quantity", "quantity"), Column("value", "value", "1"))
    by_dtype = bytes_.by_dtype
    notes = (
        f"{len(m.layers)} layers: {', '.join(f'{count} {kind}' for kind, count in kinds.items())}.",
        f"{number(params.total)} parameters, {number(params.active)} active per token; KV cache in {kv.dtype} "
        f"{number(kv.bytes_per_token)} B per token"
        f" + {number(kv.fixed_bytes_per_sequence)} B per sequence.",
        f"Weights as stored: {number(bytes_.total)} B ({', '.join(f'{k} {number(v)}' for k, v in by_dtype.items())}).",
        *_mtp_note(params.mtp, bytes_.mtp),
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
        "model",
        data,
        columns,
        title=f"{m.name} ({m.id})",
        notes=notes,
        sections=(*_sections(m), Section("Defaults taken", defaults)),
        digest=digest_of(data),
    )


def _mtp_note(params: int, size: int) -> list[str]:
    if not params:
        return []
    return [f"Prediction modules besides, in neither count: {number(params)} parameters, {number(size)} B."]


def _sections(m: Any) -> tuple[Section, ...]:
    """What --explain adds: each class of tensors, each kind of cache."""
    params, sizes = m.params.by_class, m.weight_bytes.by_class
    classes = tuple(f"{name}: {number(n)} parameters, {number(sizes[name])} B" for name, n in params.items())
    caches = tuple(
        f"{p.layers} {p.kind} layers: {number(p.row_bytes)} B a token and layer"
        + (f", at most {number(p.span)} tokens" if p.span else "")
        + (f", {number(p.state_bytes)} B of state a layer" if p.state_bytes else "")
        for p in m.kv().parts
    )
    return Section("Parameters by class of tensor", classes), Section("Cache of one sequence, one rank", caches)
