"""The data of the charts that follow a slider, from the records of the library; nothing here computes a quantity.

Both are one dictionary of the same form, read by live.js:

    title; x, y         label, unit, domain; x also the name of its quantity
    curves              formula (names, source, values), label, side, a short name for its end, tint, dash
    levels              horizontal lines: y, label, name, dash, words for a value below and above
    points, pairs       marks that stand still; pairs of curves whose crossings are marked
    windows, lanes      stretches of the axis; what others say, one lane a source
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from string import ascii_uppercase
from typing import Any

from roofline.answers.live import crossover_axes, crossover_live, heads_axes, heads_live
from roofline.answers.plotted_crossover import SIDES, Variant, places, told
from roofline.crossovers import SUBJECTS, Case
from roofline.dashboard.charts import DASHES
from roofline.units import number

Chart = dict[str, Any]
TEXT = -1  # the tint of what belongs to no colour: that of text
TINTS = 10  # colours of the theme
UNITS = {"seq_len": "tokens", "q_len": "new tokens", "batch": "sequences"}
SOLID, DASHED = "none", "8 5"


def heads_live_chart(data: Mapping[str, Any], low: float, high: float) -> Chart:
    """The chart of ``plot("heads")`` over a slider from low to high heads."""
    axes = heads_axes(data, low, high)
    rows = {line["kv_row_bytes"]: i for i, line in enumerate(data["lines"])}
    shape = data["inputs"]
    curves = [
        {
            **heads_live({**shape, "kv_row_bytes": line["kv_row_bytes"]}),
            "label": line["label"],
            "side": line["label"],
            "short": "",
            "tint": i % TINTS,
            "dash": _dash(i),
        }
        for i, line in enumerate(data["lines"])
    ]
    points = [
        {
            "x": c["heads_exact"],
            "y": c["ridge_flop_per_byte"],
            "label": number(c["heads_exact"]),
            "tint": rows[c["kv_row_bytes"]] % TINTS,
        }
        for c in sorted(data["crossings"], key=lambda c: -c["ridge_flop_per_byte"])
    ]
    return {
        "title": data["title"],
        "x": {"name": "heads", "label": "query heads", "unit": "heads", "domain": axes["heads"]},
        "y": {"label": "intensity [FLOP/B]", "unit": "FLOP/B", "domain": axes["intensity_flop_per_byte"]},
        "curves": curves,
        "levels": [_ridge(level, at, data["crossings"]) for at, level in enumerate(data["ridges"])],
        "points": points,
        "pairs": [],
        "windows": [],
        "lanes": [],
    }


def _ridge(level: Mapping[str, Any], at: int, crossings: Iterable[Mapping[str, Any]]) -> Chart:
    """A ridge with the head counts on it, one a cached row."""
    own = (level["hardware"], level["roof"])
    met = [number(c["heads_exact"]) for c in crossings if (c["hardware"], c["roof"]) == own]
    return {
        "y": level["ridge_flop_per_byte"],
        "name": level["label"],
        "label": f"{level['label']}: ridge {number(level['ridge_flop_per_byte'])} FLOP/B, {' and '.join(met)} heads",
        "dash": _dash(at + 1),
        "tint": TEXT,
        "below": "memory bound",
        "above": "compute bound",
    }


def _dash(at: int) -> str:
    return " ".join(map(str, DASHES[at % len(DASHES)])) if at else SOLID


def crossover_live_chart(scene: Mapping[str, Any], ratios: tuple[float, ...]) -> Chart:
    """The chart of `crossover_scene`: both sides for each TP degree, at the rate ratios that the slider reaches."""
    cases, unknown, axis = scene["cases"], scene["unknown"], scene["axis"]
    lowest = {(row["tp"], row["convention"] or ""): row["valid_from"] or 0 for row in scene["rows"]}
    curves, pairs = _sides(cases, unknown, lowest)
    held = [*places([], scene["marks"]), *lowest.values()]
    axes = crossover_axes(cases.values(), unknown, ratios, held)
    degrees = list(dict.fromkeys(tp for tp, _ in cases))
    unit = {"flop": "FLOP", "relative": ""}.get(axis["unit"], axis["unit"])
    return {
        "title": scene["title"],
        "x": {"name": unknown, "label": axis["unknown"], "unit": UNITS[unknown], "domain": axes["unknown"]},
        "y": {"label": f"{axis['cost']} [{unit or 'relative'}]", "unit": unit, "domain": axes["cost"]},
        "curves": curves,
        "levels": [],
        "points": [],
        "pairs": pairs,
        "windows": [{k: w[k] for k in ("low", "high", "label")} for w in scene["windows"]],
        "lanes": _lanes(scene["marks"], degrees),
    }


def _sides(
    cases: Mapping[Variant, Case], unknown: str, lowest: Mapping[Variant, float]
) -> tuple[list[Chart], list[Chart]]:
    """A curve for each side and variant, variants with the same formula and numbers sharing one; the pairs of them."""
    found: dict[Any, Chart] = {}
    every, pairs = list(cases), []
    for series, (variant, case) in enumerate(cases.items()):
        own = []
        for at, (side, script) in enumerate(zip(SUBJECTS[case.subject], crossover_live(case, unknown), strict=True)):
            key = (at, script["source"], *sorted(script["values"].items()))
            tint = series % TINTS if len(every) > 1 else at
            look = {"side": SIDES[side], "dash": DASHED if at else SOLID, "tint": tint}
            curve = found.setdefault(key, {**script, **look, "variants": []})
            curve["variants"].append(variant)
            own.append(curve)
        name = told([variant], every)
        pairs.append({"first": own[0], "second": own[1], "label": name, "tint": TEXT, "from": lowest[variant]})
    curves = sorted(found.values(), key=lambda c: c["dash"] != SOLID)
    for curve in curves:
        variants = curve.pop("variants")
        words = told(variants, every)
        short = f"{curve['side'].split()[0]} {words}" if words else ""
        curve |= {"short": short, "label": ", ".join(filter(None, (curve["side"], words)))}
        curve["tint"] = TEXT if len(variants) > 1 else curve["tint"]
    for pair in pairs:
        pair |= {end: next(i for i, c in enumerate(curves) if c is pair[end]) for end in ("first", "second")}
    return curves, pairs


def _lanes(marks: Iterable[Mapping[str, Any]], degrees: list[int]) -> list[Chart]:
    """What others say: no result of this model, hence apart from the curves, a lane a source; one that says that it
    is off has no lane and no letter."""
    letters = iter(ascii_uppercase)
    return [
        {
            "letter": next(letters) if mark["items"] else "-",
            "label": mark["label"],
            "source": mark["source"],
            "items": _items(mark, degrees),
        }
        for mark in sorted(marks, key=lambda m: not m["items"])
    ]


def _items(mark: Mapping[str, Any], degrees: list[int]) -> list[Chart]:
    """The marks of one source, TP degrees with the same place sharing one."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for item in mark["items"]:
        found.setdefault((item.get("from"), item["at"], item.get("beyond")), []).append(item["tp"])
    return [
        {
            "from": start,
            "at": end,
            "open": mark["kind"] == "measured",
            "tint": degrees.index(tps[0]) % TINTS if len(tps) == 1 and tps[0] else TEXT,
            "text": " ".join(filter(None, [_degrees(tps), "none up to here" if beyond else ""])),
        }
        for (start, end, beyond), tps in found.items()
    ]


def _degrees(tps: list[Any]) -> str:
    return f"TP {'/'.join(map(str, tps))}" if all(tps) else ""
