"""What `roofline kv pages` says in words: totals, fit, rules and exercises."""

from __future__ import annotations

from typing import Any

from roofline.answer import Section
from roofline.memory.pages import ORDERS, Prefix, Reserve
from roofline.memory.presets import exercises

ROWS = 1000  # requests up to which each one is listed
MIB = 2.0**20


def number(value: int) -> str:
    """A count with thousands separators, exact at any size."""
    return f"{value:,}"


def notes_of(
    data: dict[str, Any],
    naive: Reserve | None,
    told: list[str],
    prefix: Prefix | None,
    *,
    tables: int | None = None,
    reads: float | None = None,
) -> list[str]:
    """The totals in words; tables, reads: the bytes counted for a page table's entry and a scattered read."""
    notes = [
        f"Pages of {data['page_size']}: {number(data['pages'])} pages hold {number(data['held_tokens'])} tokens, "
        f"{number(data['slack_tokens'])} of them empty ({100 * data['waste']:.2f} %)."
    ]
    if naive is not None:
        held = data["reserved"]
        size = (
            ""
            if data["bytes_per_token"] is None
            else f" ({held['held_bytes'] / MIB:.2f} MiB, {held['waste_bytes'] / MIB:.2f} MiB of it wasted)"
        )
        notes.append(
            f"Reserving {number(naive.reserve)} each: {number(naive.held)} tokens{size}, "
            f"{number(naive.wasted)} of them empty ({100 * naive.waste:.2f} %)."
        )
    if prefix is not None:
        shared = data["sharing"]
        notes.append(
            f"Sharing {prefix.tokens} tokens between requests {', '.join(map(str, shared['members'][:20]))}: "
            f"{shared['saved_pages']} pages, "
            f"{number(shared['saved_tokens'])} tokens fewer; {shared['copied_tokens']} tokens copied on write."
        )
    found = data["fit"]
    if found is not None:
        notes.append(_fit_note(found, data["page_size"]) + (" Nothing is shared there." if prefix is not None else ""))
    if not data["rows"]:
        notes.append(f"More than {ROWS:,} requests: totals only.")
    if tables is not None:
        notes.append(f"Page tables of {tables} B an entry: {number(data['page_table_bytes'])} B.")
    if reads is not None:
        notes.append(f"Scattered reads, {reads:g} B at each page: {data['read_overhead_bytes']:,.0f} B a step.")
    omitted = ["page tables (--table-entry-bytes counts them)"] * (tables is None)
    omitted += ["scattered reads (--read-overhead-bytes)"] * (reads is None)
    return [*notes, *told, f"Left out: {', '.join([*omitted, 'scheduling'])}."]


def _fit_note(found: dict[str, Any], page: int) -> str:
    if found["pool_slots"] < page:
        return f"The pool holds {found['pool_slots']} tokens, less than one page of {page}: 0 requests fit."
    text = f"The pool holds {number(found['pool_slots'])} tokens: {number(found['paged_requests'])} requests fit paged"
    if found["reserved_requests"] is not None:
        text += f", {number(found['reserved_requests'])} reserved" + (
            f" ({found['ratio']:.2f} times)" if found["ratio"] else ""
        )
    text += f"; {number(found['rounds'])} rounds of the list leave {number(found['rest_slots'])} tokens"
    if "orders" in found:
        text += "; over all orders " + ", ".join(
            f"{requests} ({count} times)" for requests, count in found["orders"].items()
        )
    return text + "."


def sections_of() -> tuple[Section, ...]:
    rules = (
        "pages = sum ceil(length / page); used + slack = pages * page",
        "sharing saves (n - 1) * floor(prefix / page) pages; the page in which the prefix ends is copied on write",
        "members of a shared prefix: the first n requests of the list that are at least as long",
        "fit: the list arrives again and again in order, up to the first request that does not fit",
        f"all orders: up to {ORDERS} requests",
    )
    asked = tuple(f"{e['question']}: {e['answer']}" for e in exercises())
    return (
        Section("Rule", rules),
        Section("Exercises", asked),
        Section("Source", ("PagedAttention, arXiv:2309.06180 sec. 4",)),
    )
