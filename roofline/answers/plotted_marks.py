"""Thresholds of engines and measured crossings as marks on the axis of the figure `crossover`, each with its date."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roofline.units import number

Record = dict[str, Any]


def marks(rows: list[Any], unknown: str, context: float) -> list[Record]:
    """The engines' thresholds and the measured crossings, one record a source, one item a TP degree."""
    found: dict[tuple[str, ...], Record] = {}
    for row in {row["tp"]: row for row in rows}.values():
        for voice in row["engine_thresholds"]:
            item = _item(voice, row["tp"], unknown, context)
            who = " ".join(
                filter(None, (voice["engine"], voice["backend"], voice.get("architecture") if "q_len" in voice else ""))
            )
            mark = found.setdefault(
                (who, voice["what"]),
                {
                    "kind": "published",
                    "who": who,
                    "what": voice["what"],
                    "date": voice["date"],
                    "source": voice["source"],
                    "items": [],
                },
            )
            mark["items"] += [item] if item and item not in mark["items"] else []
        for voice in row["measured"] if unknown == "seq_len" else []:
            at = voice["seq_len"] or voice["measured_to"]
            mark = found.setdefault(
                (voice["hardware"], "measured"),
                {
                    "kind": "measured",
                    "who": voice["hardware"],
                    "what": voice["what"],
                    "date": voice["date"],
                    "source": voice["source"],
                    "items": [],
                },
            )
            mark["items"].append({"tp": row["tp"], "at": at, "beyond": voice["seq_len"] is None})
    several = len({row["tp"] for row in rows}) > 1
    for mark in found.values():
        if len({item["at"] for item in mark["items"]}) == 1 and mark["what"] != "measured" and _everywhere(mark, rows):
            mark["items"] = [{**mark["items"][0], "tp": None}]  # one length whatever the degree
        if not several:
            mark["items"] = [{**item, "tp": None} for item in mark["items"]]
        mark["label"] = _mark_label(mark)
    return sorted(found.values(), key=lambda mark: str(mark["kind"] == "measured"))


def _everywhere(mark: Mapping[str, Any], rows: list[Any]) -> bool:
    """Whether a source says something for every TP degree of the figure."""
    return {row["tp"] for row in rows} <= {item["tp"] for item in mark["items"]}


def _item(voice: Mapping[str, Any], tp: int, unknown: str, context: float) -> Record | None:
    """Where a threshold stands on the axis; None where it has no place there (0 is off)."""
    if unknown == "q_len" and "q_len" in voice:
        return {"tp": tp, "at": voice["q_len"]}
    if unknown == "q_len" and voice.get("ranges"):
        spans = [(least, longest - context) for longest, least in voice["ranges"] if longest - context >= max(least, 1)]
        return {"tp": tp, "from": max(1, spans[0][0]), "at": spans[-1][1]} if spans else None
    return {"tp": tp, "at": voice["seq_len"]} if unknown == "seq_len" and voice.get("seq_len") else None


def _mark_label(mark: Mapping[str, Any]) -> str:
    """One line for the key: who, when, what, the values and their TP degrees."""
    places: dict[str, list[str]] = {}
    for item in mark["items"]:
        value = number(round(item["at"]))
        text = (
            f"none up to {value}"
            if item.get("beyond")
            else f"{number(item['from'])} to {value}"
            if item.get("from")
            else value
        )
        places.setdefault(text, []).extend([str(item["tp"])] if item["tp"] else [])
    told = ", ".join(text + (f" at TP {'/'.join(degrees)}" if degrees else "") for text, degrees in places.items())
    if len(places) > 1 and all(len(d) == 1 for d in places.values()):
        told = f"{' / '.join(places)} at TP {'/'.join(d[0] for d in places.values())}"
    if mark["kind"] == "measured":
        return f"measured, whole modules, {mark['who']} ({mark['date']}): {told}"
    if not mark["items"]:
        return f"{mark['who']}, as merged ({mark['date']}): 0 = off" if "merged" in mark["what"] else ""
    ranged = any(item.get("from") for item in mark["items"])
    verb = (
        "decode (MQA mode) up to"
        if "decode" in mark["what"]
        else ("own table, " if "table" in mark["what"] else "") + ("MHA for" if ranged else "MHA up to")
    )
    return f"{mark['who']} ({mark['date']}): {verb} {told}"
