"""`roofline kv show`: what a model caches.  Capacity, pages and replay lie beside this file and are exported here."""

from __future__ import annotations

from roofline.answer import Answer, Column, Section
from roofline.answers.kv_capacity import kv_capacity, positive
from roofline.answers.kv_pages import kv_pages
from roofline.answers.kv_replay import kv_replay
from roofline.memory.layouts import Layout, of_model
from roofline.memory.plan import GIB
from roofline.models import Model, fits_positions, load_model
from roofline.units import number

__all__ = ["kv_capacity", "kv_pages", "kv_replay", "kv_show"]

_PARTS = (
    Column("kind", "layers"),
    Column("layers", "number", "1"),
    Column("row_bytes", "row", "B/token/layer"),
    Column("span_tokens", "span", "tokens"),
    Column("state_bytes", "state", "B/layer"),
    Column("bytes_per_token", "all layers", "B/token"),
    Column("bytes_at_context", "at context", "GiB", scale=GIB),
)


def kv_show(
    model: str | Model,
    *,
    kv_dtype: str = "auto",
    tp: int = 1,
    context: int = 32768,
    requests: int = 1,
    index_dtype: str = "fp8",
    state_dtype: str = "auto",
    speculative_tokens: int = 0,
) -> Answer:
    """What one rank caches for a model: bytes per token and per sequence, by kind of layer, exact, no page rounding.

    Parameters: model, an id, a config.json or a Model; kv_dtype, tp, index_dtype, state_dtype, as
    `roofline.memory.layouts`; context, tokens of a sequence; requests, how many of them; speculative_tokens, drafts
    per step.

    >>> kv_show("llama-3.1-8b", kv_dtype="bf16")["bytes_per_token"]
    131072.0
    """
    positive("context", context)
    positive("requests", requests)
    found = load_model(model)
    options = {"tp": tp, "index_dtype": index_dtype, "state_dtype": state_dtype, "drafts": speculative_tokens}
    layout = of_model(found, kv_dtype, **options)  # type: ignore[arg-type]
    cache = layout.cache
    rows = [
        {
            "kind": p.kind,
            "layers": p.layers,
            "row_bytes": p.row_bytes,
            "span_tokens": p.span,
            "state_bytes": p.state_bytes,
            "bytes_per_token": p.layers * p.row_bytes,
            "bytes_at_context": p.at(context),
        }
        for p in cache.parts
    ]
    at, every = cache.at(context), layout.all_rows * context
    data = {
        "model": found.id,
        "kv_dtype": cache.dtype,
        "tp": tp,
        "context": context,
        "requests": requests,
        "rows": rows,
        "bytes_per_token": layout.bytes_per_token,
        "fixed_bytes_per_sequence": cache.fixed_bytes_per_sequence,
        "bytes_per_token_short": layout.all_rows,
        "image_token_bytes": cache.image_token_bytes,
        "keys_bytes_per_token": layout.keys,
        "values_bytes_per_token": layout.values,
        "latent_bytes_per_token": layout.latent,
        "rope_bytes_per_token": layout.rope,
        "bytes_per_sequence": at,
        "bytes_all": at * requests,
        "bytes_if_every_layer_kept_all": every,
        "source": found.source._asdict(),
    }
    title = f"KV cache of {found.name}, {cache.dtype}, one of {tp} tensor-parallel rank{'s' if tp > 1 else ''}"
    return Answer(
        "kv-show",
        data,
        _PARTS,
        title=title,
        notes=_show_notes(found, layout, context, at, every),
        sections=_show_sections(found),
    )


def _show_notes(model: Model, layout: Layout, context: int, at: float, every: float) -> tuple[str, ...]:
    cache = layout.cache
    notes = [
        f"{number(layout.bytes_per_token)} B per token of a long sequence "
        f"+ {number(cache.fixed_bytes_per_sequence)} B per sequence; "
        f"{number(context)} tokens take {at / GIB:.4f} GiB on this rank."
    ]
    if every != at:
        notes.append(f"If every layer kept every token: {every / GIB:.4f} GiB.")
    if any(p.kind in ("mla", "dsa") for p in cache.parts) and cache.tp > 1:
        notes.append("Latent rows are not divided by tensor parallelism: every rank keeps all of them.")
    if cache.image_token_bytes:
        notes.append(f"Cross attention keeps {number(cache.image_token_bytes)} B per image token besides.")
    notes += [text for text in (fits_positions(model, context), *model.notes) if text]
    return (*notes, "Exact bytes; page rounding and engine reserves are in `roofline kv capacity`.")


def _show_sections(model: Model) -> tuple[Section, ...]:
    rules = (
        "bytes(L) = sum over layers of row * min(L, span) + state",
        "keys and values: KV heads / TP (at least 1) * (head width + value width) * bytes per element",
        "latent rows: (d + r) * bytes per element, on every rank; fp8_row: d + 4 d/128 + 2 r; indexer key: d_I + 4",
    )
    taken = tuple(f"{t.key} = {t.value}: {t.why}" for t in model.defaults_taken) or ("none",)
    where = f"{model.source.repo} {model.source.file} at {model.source.revision} {model.source.address}".strip()
    return Section("Rule", rules), Section("Defaults taken", taken), Section("Source", (where,))
