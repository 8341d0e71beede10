"""What serving engines do at the crossing of the two modes: dated, sourced data, read from `data/engines.yaml`.

Thresholds and paddings belong to an engine, a backend and an architecture; they are not properties of a chip, and
none of them is a formula.  `roofline.crossovers` sets them beside its own answer and says which is which.

>>> padded_heads("vllm-flashmla-sm100", 16)
128
>>> runs_mha("vLLM", "FLASHMLA_SPARSE", dict(nope=128, rope=64, value=128, heads=128), tp=1, q_len=4096, seq_len=4096)
True
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from roofline.errors import BadValue, UnknownName


@lru_cache(maxsize=1)
def data() -> dict[str, Any]:
    """The whole file."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with (Path(__file__).parent / "data" / "engines.yaml").open(encoding="utf-8") as file:
        return yaml.load(file, Loader=loader)  # type: ignore[no-any-return]


def paddings() -> Mapping[str, Mapping[str, Any]]:
    """Head paddings by id."""
    return data()["paddings"]  # type: ignore[no-any-return]


def padding(engine: str) -> Mapping[str, Any]:
    """One padding rule by id, e.g. "vllm-flashmla-sm100"."""
    try:
        return paddings()[engine]
    except KeyError:
        raise UnknownName("engine", engine, paddings()) from None


def padded_heads(engine: str, heads: int) -> int:
    """Heads as that engine's kernel runs `heads` heads of a rank."""
    if heads != int(heads) or heads < 1:
        raise BadValue("heads", heads, "a whole number of heads on the rank > 0")
    allowed = sorted(padding(engine)["heads"])
    fitting = [a for a in allowed if a >= heads]
    return int(fitting[0]) if fitting else allowed[-1] * math.ceil(heads / allowed[-1])


def _applies(entry: Mapping[str, Any], shape: Mapping[str, float]) -> bool:
    return all(shape.get(name) == value for name, value in entry["shape"].items())


def _largest(ranges: list[list[int]] | None) -> int | None:
    return max((r[0] for r in ranges), default=0) if ranges is not None else None


def thresholds(shape: Mapping[str, float], tp: int, *, cached: bool = False) -> list[dict[str, Any]]:
    """The engines' own lengths up to which they choose MHA mode, for a model shape (whole model) and TP degree.

    Each has `engine, backend, seq_len` (the largest length that may run in MHA mode, 0 = never), `next_seq_len` (the
    next longer length that was decided, and runs in MQA mode), `ranges` (largest length, smallest query length),
    `what, limit, source, url, date, kind`.
    """
    found = []
    for entry in data()["thresholds"]:
        if not _applies(entry, shape):
            continue
        table = entry.get("cached" if cached and "cached" in entry else "ranges")
        ranges = table.get(tp) if table is not None else None
        if table is not None and ranges is None:
            continue
        told = {k: str(entry[k]) for k in ("engine", "backend", "what", "kind", "source", "url", "date")}
        length = entry["length"] if ranges is None else _largest(ranges)
        beyond = None if cached and "cached" in entry else entry.get("next", {}).get(tp)
        own = {"ranges": deepcopy(ranges), "limit": deepcopy(entry.get("limit"))}  # the caller's, not the file's
        found.append({**told, "seq_len": length, "next_seq_len": beyond, **own, "tp": tp})
    return found


def runs_mha(
    engine: str, backend: str, shape: Mapping[str, float], *, tp: int, q_len: int, seq_len: int, cached: bool = False
) -> bool:
    """Whether the engine's table chooses MHA mode for a batch (table only; the mask workspace is another limit)."""
    for entry in thresholds(shape, tp, cached=cached):
        if (entry["engine"], entry["backend"]) == (engine, backend):
            for longest, shortest_query in entry["ranges"] or [[entry["seq_len"], 0]]:
                if seq_len <= longest:
                    return bool(q_len >= shortest_query)
            return False
    raise UnknownName(
        "engine table",
        f"{engine} {backend} at TP {tp}",
        {f"{e['engine']} {e['backend']}" for e in data()["thresholds"]},
    )


def query_gates(heads: int) -> list[dict[str, Any]]:
    """Query lengths up to which an engine treats a request as decode (MQA mode), for `heads` heads on the rank."""
    gates = []
    for entry in data()["query_gates"]:
        told = {k: str(entry[k]) for k in ("engine", "backend", "architecture", "source", "url", "date")}
        gates.append(
            {
                **told,
                "q_len": entry["heads"].get(heads, entry["heads"]["else"]),
                "kind": "published",
                "what": "largest query run as decode",
            }
        )
    return gates


def article_lengths() -> dict[str, Any]:
    """The two lengths that an article read off a plot (5K and 77K), with their source."""
    return data()["article"]  # type: ignore[no-any-return]


def measured_crossings(shape: Mapping[str, float], tp: int) -> list[dict[str, Any]]:
    """Crossings of whole attention modules as measured (projections, indexer and top-k included).

    `seq_len` is interpolated log-log between the two measured lengths around it, None where the modes do not cross
    up to `measured_to`.
    """
    block, found = data()["measured"], []
    if any(shape.get(name) != value for name, value in block["shape"].items()):
        return []
    for row in block["rows"]:
        if row["heads"] != shape.get("heads", 0) / tp:
            continue
        points = sorted((length, mha / mqa) for length, (mha, mqa) in row["latency_s"].items())
        told = {k: str(block[k]) for k in ("source", "url", "date")}
        what = "whole modules, measured: projections, indexer and top-k included"
        found.append(
            {
                **told,
                "hardware": row["hardware"],
                "kind": "measured",
                "what": what,
                "tp": tp,
                "seq_len": _log_crossing(points),
                "measured_to": points[-1][0],
            }
        )
    return found


def _log_crossing(points: list[tuple[int, float]]) -> float | None:
    """Length at which the ratio passes 1, log-log between neighbours."""
    for (x0, r0), (x1, r1) in pairwise(points):
        if r0 <= 1 < r1:
            share = math.log(r0) / (math.log(r0) - math.log(r1))
            return float(x0 * (x1 / x0) ** share)
    return None
