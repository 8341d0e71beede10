"""`roofline kv pages`: reserve-to-maximum against pages, for a list of request lengths."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from roofline import units
from roofline.answer import Answer, Column
from roofline.answers.kv_pages_text import ROWS, notes_of, number, sections_of
from roofline.errors import BadValue
from roofline.memory.pages import (
    Paging,
    Prefix,
    Reserve,
    checked,
    fit,
    fit_reserved,
    orders,
    read_overhead_bytes,
    reserved,
    share,
    slots,
    split,
    table_bytes,
)
from roofline.memory.presets import preset

if TYPE_CHECKING:
    from roofline.models import Model

CELLS = 20_000  # grid cells up to which the grid is made


def _counts(*columns: tuple[str, str, str]) -> tuple[Column, ...]:
    """Columns of whole numbers: key, heading, unit."""
    return tuple(Column(key, heading, unit, show=number) for key, heading, unit in columns)


_REQUESTS = _counts(
    ("request", "request", "1"),
    ("tokens", "tokens", "1"),
    ("pages", "pages", "1"),
    ("held_tokens", "held", "tokens"),
    ("slack_tokens", "slack", "tokens"),
    ("last_page_tokens", "in last page", "tokens"),
    ("reserved_waste_tokens", "wasted by reserving", "tokens"),
    ("shared_pages", "shared pages", "1"),
)
_SWEEP = (
    *_counts(("page_size", "page", "tokens"), ("pages", "pages", "1"), ("held_tokens", "held", "tokens")),
    *_counts(("slack_tokens", "slack", "tokens")),
    Column("waste", "waste", "%", show=lambda v: f"{100 * v:.2f}"),
    *_counts(("fit_requests", "fit in pool", "1"), ("page_table_bytes", "page tables", "B")),
)


def kv_pages(
    lengths: Iterable[int] | None = None,
    *,
    page_size: int | Iterable[int] = 16,
    reserve: int | None = None,
    pool_bytes: float | None = None,
    bytes_per_token: float | None = None,
    model: str | Model | None = None,
    kv_dtype: str = "auto",
    tp: int = 1,
    shared_prefix: tuple[int, int] | None = None,
    preset_name: str | None = None,
    all_orders: bool = False,
    table_entry_bytes: int | None = None,
    read_overhead: float | None = None,
) -> Answer:
    """Pages, held tokens, slack and waste of a list of requests, against giving each `reserve` slots; exact.

    Parameters: lengths, tokens of each request, or preset_name; page_size, one or several (a sweep); reserve, slots per
    request of the naive way; pool_bytes with bytes_per_token or model, how many requests fit when the list repeats in
    order; shared_prefix, (tokens, requests); all_orders, how the fit depends on the order (up to 8 requests);
    table_entry_bytes and read_overhead, what the plain account leaves out.

    >>> a = kv_pages([403, 96, 241, 30, 176], reserve=512, pool_bytes=2 * 2**30, bytes_per_token=128 * 2**10)
    >>> a["pages"], a["slack_tokens"], a["fit"]["paged_requests"], a["fit"]["reserved_requests"]
    (61, 30, 83, 32)
    """
    if (lengths is None) == (preset_name is None):
        raise BadValue(
            "lengths", "nothing" if lengths is None else "a list and a preset", "request lengths, or a preset"
        )
    if preset_name is not None:
        chosen = preset(preset_name)
        lengths, reserve = chosen.lengths, reserve if reserve is not None else chosen.reserve
    found, sizes = checked(lengths or ()), [page_size] if isinstance(page_size, int) else list(page_size)
    if not sizes:
        raise BadValue("page_size", "nothing", "at least one page size")
    per_token, streams, told = _width(model, kv_dtype, tp, bytes_per_token)
    pool = None if pool_bytes is None else slots(pool_bytes, _needed(per_token))
    naive = reserved(found, reserve) if reserve is not None else None
    prefix = None if shared_prefix is None else Prefix(*shared_prefix)
    extra = {"entry": table_entry_bytes, "overhead": read_overhead, "streams": streams}
    sweep = [_sweep_row(found, size, prefix, pool, per_token, extra) for size in sizes]
    paging = split(found, sizes[0]) if prefix is None else share(split(found, sizes[0]), prefix)
    data: dict[str, Any] = {
        **sweep[0],
        "requests": len(found),
        "tokens": paging.used,
        "rows": _request_rows(paging, naive),
        "sweep": sweep,
    }
    data |= {"bytes_per_token": per_token, **_naive_data(naive, paging, per_token), **_shared_data(prefix, paging)}
    data["fit"] = _fit_data(paging, reserve, pool, pool_bytes, all_orders)
    data["grid"] = _grid(paging, reserve)
    data["inputs"] = {
        "lengths": list(found[:ROWS]),
        "page_size": sizes,
        "reserve": reserve,
        "pool_bytes": pool_bytes,
        "preset": preset_name,
    }
    single = len(sizes) == 1
    columns = [c for c in (_REQUESTS if single else _SWEEP) if single or any(r.get(c.key) is not None for r in sweep)]
    if single:
        columns = [c for c in columns if any(r.get(c.key) is not None for r in data["rows"])] or list(_REQUESTS[:1])
    title = f"{number(len(found))} requests, {number(paging.used)} tokens, pages of {', '.join(map(str, sizes))} tokens"
    return Answer(
        "kv-pages",
        data,
        columns,
        table="rows" if single else "sweep",
        title=title,
        notes=tuple(notes_of(data, naive, told, prefix, tables=table_entry_bytes, reads=read_overhead)),
        sections=sections_of(),
    )


def _width(
    model: str | Model | None, dtype: str, tp: int, given: float | None
) -> tuple[float | None, int | None, list[str]]:
    """Bytes per token, reads per page and step, and what must be said about them."""
    if model is None or given is not None:
        if model is not None:
            raise BadValue("bytes_per_token", given, "a model or bytes per token, not both")
        for name, value, default in (("kv_dtype", dtype, "auto"), ("tp", tp, 1)):
            if value != default:
                raise BadValue(name, value, "a model beside it, whose cache it changes")
        return given, None, []
    from roofline.memory.layouts import of_model
    from roofline.models import load_model

    found = load_model(model)
    layout = of_model(found, dtype, tp=tp)
    growing = [p for p in layout.cache.parts if p.row_bytes and p.span is None]
    streams = sum(p.layers * (1 if p.kind in ("mla", "dsa") else 2) for p in growing)
    told = [f"{units.number(layout.bytes_per_token)} B per token: {found.id}, {layout.cache.dtype}, one of {tp} ranks."]
    if layout.cache.fixed_bytes_per_sequence:
        told.append("Windows and recurrent states of the model are not paged here: `roofline kv capacity` counts them.")
    return layout.bytes_per_token, streams, told


def _needed(per_token: float | None) -> float:
    if per_token is None:
        raise BadValue(
            "bytes_per_token", "nothing", "bytes per token or a model, which the pool's size in tokens follows from"
        )
    return per_token


def _sweep_row(
    lengths: Any, size: int, prefix: Prefix | None, pool: int | None, per_token: float | None, extra: Any
) -> dict[str, Any]:
    """Totals at one page size."""
    plain = split(lengths, size)
    paging = plain if prefix is None else share(plain, prefix)
    row: dict[str, Any] = {
        "page_size": size,
        "pages": paging.pages,
        "held_tokens": paging.held,
        "stored_tokens": paging.stored,
        "slack_tokens": paging.slack,
        "waste": paging.waste,
        "full_last_pages": sum(fill == size for fill in paging.last_fill),
        "shared_pages": paging.shared_pages,
    }
    if per_token is not None:
        row |= {
            "held_bytes": paging.held * per_token,
            "slack_bytes": paging.slack * per_token,
            "used_bytes": paging.used * per_token,
        }
    if pool is not None:
        row["fit_requests"] = fit(plain, pool).requests
    if extra["entry"] is not None:
        row["page_table_bytes"] = table_bytes(paging, extra["entry"])
    if extra["overhead"] is not None:
        if extra["streams"] is None:
            raise BadValue(
                "read_overhead", extra["overhead"], "a model with it, which says how many reads a page takes"
            )
        row["read_overhead_bytes"] = read_overhead_bytes(paging, extra["overhead"], extra["streams"])
    return row


def _request_rows(paging: Paging, naive: Reserve | None) -> list[dict[str, Any]]:
    """Each request, where there are few enough to be read."""
    if len(paging.lengths) > ROWS:
        return []
    page, wastes = paging.page_size, naive.wastes if naive else [None] * len(paging.lengths)
    common = paging.shared_pages // max(len(paging.members) - 1, 1)
    columns = zip(paging.lengths, paging.sizes, paging.slacks, paging.last_fill, wastes, strict=True)
    return [
        {
            "request": at + 1,
            "tokens": tokens,
            "pages": pages,
            "held_tokens": pages * page,
            "slack_tokens": slack,
            "last_page_tokens": last,
            "reserved_waste_tokens": waste,
            "shared_pages": (common if at in paging.members else 0) if paging.members else None,
        }
        for at, (tokens, pages, slack, last, waste) in enumerate(columns)
    ]


def _naive_data(naive: Reserve | None, paging: Paging, per_token: float | None) -> dict[str, Any]:
    """The reservation's totals and what paging saves."""
    if naive is None:
        return {}
    found: dict[str, Any] = {
        "reserved": {
            "reserve_tokens": naive.reserve,
            "held_tokens": naive.held,
            "waste_tokens": naive.wasted,
            "waste": naive.waste,
        }
    }
    found["saved_tokens"] = naive.held - paging.held
    if per_token is not None:
        found["reserved"] |= {"held_bytes": naive.held * per_token, "waste_bytes": naive.wasted * per_token}
        found["saved_bytes"] = found["saved_tokens"] * per_token
    return found


def _shared_data(prefix: Prefix | None, paging: Paging) -> dict[str, Any]:
    """What a common prefix saves."""
    if prefix is None:
        return {}
    return {
        "sharing": {
            "prefix_tokens": prefix.tokens,
            "requests": prefix.requests,
            "members": [at + 1 for at in paging.members],
            "saved_pages": paging.shared_pages,
            "saved_tokens": paging.shared_pages * paging.page_size,
            "copied_tokens": paging.copied,
            "copied_pages": len(paging.members) - 1 if paging.copied else 0,
        }
    }


def _fit_data(
    paging: Paging, reserve: int | None, pool: int | None, pool_bytes: float | None, all_orders: bool
) -> dict[str, Any] | None:
    """How many requests fit into the pool; without sharing, which the list's repetition says nothing about."""
    if pool is None:
        if all_orders:
            raise BadValue("pool_bytes", "nothing", "a pool, whose fit depends on the order")
        return None
    found, mean = fit(paging, pool), sum(paging.sizes) * paging.page_size / len(paging.lengths)
    naive = fit_reserved(reserve, pool) if reserve is not None else None
    data: dict[str, Any] = {
        "pool_bytes": pool_bytes,
        "pool_slots": pool,
        "paged_requests": found.requests,
        "rounds": found.rounds,
        "rest_slots": found.rest,
        "left_slots": found.left,
        "average_slots": mean,
        "reserved_requests": naive,
        "ratio": found.requests / naive if naive else None,
    }
    if all_orders:
        data["orders"] = {str(requests): count for requests, count in orders(paging, pool).items()}
    return data


def _grid(paging: Paging, reserve: int | None) -> list[str] | None:
    """A text per request, a letter per page: F full, P partly full, S shared with an earlier one, . reserved only."""
    page = paging.page_size
    width = -(-(reserve or 0) // page)
    if max(width, max(paging.sizes)) * len(paging.sizes) > CELLS:
        return None
    common = paging.shared_pages // max(len(paging.members) - 1, 1)
    lines = []
    for at, (size, fill) in enumerate(zip(paging.sizes, paging.last_fill, strict=True)):
        cells = "F" * (size - 1) + ("F" if fill == page else "P")
        if at in paging.members[1:]:
            cells = "S" * common + cells[common:]
        lines.append(cells + "." * max(width - size, 0))
    return lines
