"""Compare files of measured kernel and module latencies with the bound of each row.

    python benchmarks/check_measured.py FILE.parquet [FILE ...] [--roof NAME] [--hardware ID] [--json]

Kinds, by the column `op_name` (as the public tables of ai-dynamo/aiconfigurator, Apache-2.0, write them; latency in
milliseconds, `num_heads` per rank, `isl` new tokens over `step` cached ones, in a decode row one query over isl +
step):

    mla_generation         attention core in MQA mode      mla_context            causal core in MHA mode
    generation_attention   GQA decode core                 context_attention      causal GQA core
    mla_context_module     MLA with its projections        dsa_context_module     DSA with projections, indexer, top-k
    glm5_*_module          sparse core, indexer logits, top-k apart               gemm    one matrix product

A row faster than its bound is named and sorted: under the fp8 bound ("fp8 math under a bf16 label"), a matrix product
whose operands fit the last-level cache, or impossible.  Exit code 1 if any row is impossible.
The roof is the datasheet's, for B200 the usual 2,250 TFLOP/s over 8.0 TB/s (`inferencex`), the wider of its two.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from common import ROOT

from roofline.accelerators import load_catalog
from roofline.models import read_config
from roofline.plan import Options, Rates, Step, Use, UseCost, Workload, plan
from roofline.plan.chip import chip
from roofline.plan.numbers import cost

Row = Mapping[str, Any]
DEVICES = {
    "B200": "b200-sxm",
    "H200": "h200-sxm",
    "H100": "h100-sxm",
    "GB200": "gb200",
    "GB300": "gb300",
    "B300": "b300-sxm",
    "A100": "a100-sxm-80gb",
}
ROOFS = {"b200-sxm": "inferencex"}
CACHE_BYTES = {
    "h100-sxm": 50e6,
    "h200-sxm": 50e6,
    "b200-sxm": 126e6,
    "a100-sxm-80gb": 40e6,
}  # last-level caches, vendors' pages
DTYPES = {"bfloat16": "bf16", "float16": "bf16", "fp8_e4m3": "fp8", "fp8_block": "fp8_block"}
MODELS = {
    "deepseek-ai/DeepSeek-V3": "deepseek-v3",
    "deepseek-ai/DeepSeek-R1": "deepseek-v3",
    "deepseek-ai/DeepSeek-V3.2": "deepseek-v3.2",
    "zai-org/GLM-5": "glm-5",
    "nvidia/GLM-5.2-NVFP4": "glm-5.2",
}
V3 = {"latent": 512, "rope": 64, "nope": 128, "value": 128}  # the shape of the *_mla files


class Checked(NamedTuple):
    """One row: its time, its bound [s], the bound with fp8 math, and the verdict."""

    row: Row
    time: float
    bound: float
    fp8: float
    verdict: str

    @property
    def efficiency(self) -> float:
        """Bound over time, at most 1 where the row can be true."""
        return self.bound / self.time


def use(kernel: str, **values: Any) -> Use:
    """A kernel alone."""
    return Use(kernel, kernel, {"w_act": 2, **values}, "core")


def cost_of(one: Use, rates: Rates, numbers: Mapping[str, float]) -> UseCost:
    """The cost of a kernel alone."""
    return cost(one, numbers, rates)


def kv_width(row: Row) -> float:
    """Bytes per cached element."""
    return 1 if "fp8" in row["kv_cache_dtype"] else 2


def mla_decode(row: Row) -> Use:
    """One query over isl + step rows, absorbed."""
    return use(
        "mla_mqa",
        heads=row["num_heads"],
        kernel_heads=row["num_heads"],
        kv_row_bytes=576 * kv_width(row),
        pairs="dense.pairs",
        rows_read="dense.rows_read",
        **V3,
    )


def mla_prefill(row: Row) -> Use:
    """Causal core on expanded keys and values, stored per group of all heads."""
    return use(
        "mla_mha",
        heads=row["num_heads"],
        expanded_row_bytes="expanded_row",
        w_expanded=kv_width(row),
        pairs="dense.pairs",
        rows_read="dense.rows_read",
        **V3,
    )


def grouped(row: Row) -> Use:
    """GQA core; a window where the row has one."""
    span = int(row.get("window_size") or 0)
    sight = "window" if span > 0 else "dense"
    heads, dim = int(row["num_heads"]), int(row["head_dim"])
    groups = int(row.get("num_key_value_heads") or 0) or heads
    more = {"window": span} if span > 0 else {}
    return use(
        "attention",
        heads=heads,
        head_dim=dim,
        kv_row_bytes=2 * groups * dim * kv_width(row),
        pairs=f"{sight}.pairs",
        rows_read=f"{sight}.rows_read",
        **more,
    )


def sparse_core(row: Row) -> Use:
    """Sparse core over top-k keys; the bf16 kernel gathers rows of 1,152 B, each once at best."""
    return use(
        "dsa_mqa",
        heads=row["num_heads"],
        kernel_heads=row["num_heads"],
        latent=512,
        rope=64,
        topk=2048,
        kv_row_bytes=576 * kv_width(row),
        pairs="topk_perfect.pairs",
        rows_read="topk_perfect.rows_read",
    )


def logits(row: Row) -> Use:
    """Indexer scores of GLM-5.2: 32 heads of 128."""
    made = use(
        "dsa_indexer",
        index_heads=32,
        index_head_dim=128,
        index_row_bytes=132,
        w_index=1,
        w_logit=2,
        pairs="dense.pairs",
        rows_read="dense.rows_read",
    )
    return made._replace(precision="fp8")


def selection(row: Row) -> Use:
    """Top-k over the logits of every query's keys."""
    return use("dsa_topk", topk=0, w_logit=2, pairs="dense.pairs")


def gemm(row: Row) -> Use:
    """One matrix product."""
    width = {"bfloat16": 2, "float16": 2, "fp8": 1, "fp8_block": 1, "nvfp4": 0.5625, "mxfp4": 0.53125}.get(
        str(row["gemm_dtype"]), 2
    )
    precision = "fp4" if width < 1 else "fp8" if width == 1 else "bf16"
    return use(
        "linear",
        tokens=row["m"],
        ffn=row["n"],
        hidden=row["k"],
        w_weight=width,
        w_act=min(width, 2) if width == 2 else 1,
    )._replace(precision=precision)


KERNELS: Mapping[str, Callable[[Row], Use]] = {
    "mla_generation": mla_decode,
    "mla_context": mla_prefill,
    "generation_attention": grouped,
    "context_attention": grouped,
    "glm5_dsa_attn_module": sparse_core,
    "glm5_mqa_logits_module": logits,
    "glm5_topk_module": selection,
    "gemm": gemm,
}
MODULES = ("mla_context_module", "dsa_context_module")


def numbers(row: Row) -> dict[str, float]:
    """Workload of a row: a decode row's keys include the query's own."""
    batch, new, cached = (float(row.get(k) or 0) for k in ("batch_size", "isl", "step"))
    if "generation" in row["op_name"]:
        return {"batch": batch, "q_len": 1, "context": new + cached - 1}
    return {"batch": batch, "q_len": new, "context": cached}


@lru_cache(maxsize=256)
def module(name: str, heads: int, weights: str, cache: str, mode: str) -> tuple[int, Step]:
    """Layers, and the attention part of the step, of a model with so many heads: those of one rank, whatever the
    model has in all."""
    path = ROOT / "roofline" / "data" / "models" / f"{name}.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    model = read_config({**data, "num_attention_heads": heads, "num_key_value_heads": heads}, path, name)
    options = Options(kv_dtype=cache, weight_dtype=weights, mode=mode)
    step = plan(model, Workload("chunked", q_len=1, context=1), None, options)
    step.uses = tuple(u for u in step.uses if u.part in ("attention", "indexer"))
    return len(model.layers), step


def module_bound(row: Row, rates: Rates) -> tuple[float, float]:
    """(bound, bound with fp8 cores) of one layer's attention module, in the cheaper of both modes."""
    name, heads, weights = MODELS[row["model"]], int(row["num_heads"]), DTYPES.get(row["gemm_type"], row["gemm_type"])
    cache = "fp8" if kv_width(row) == 1 else "bf16"
    fast = rates._replace(peaks={**rates.peaks, "bf16": rates.peaks["fp8"]})
    found: list[list[float]] = [[], []]
    for mode in ("mha", "mqa"):
        layers, step = module(name, heads, weights, cache, mode)
        for at, speeds in enumerate((rates, fast)):
            found[at].append(step.bounds(speeds, **numbers(row)).lower / layers)
    return min(found[0]), min(found[1])


def check(row: Row, rates: Rates, cache: float) -> Checked:
    """The verdict on a row."""
    time = row["latency"] * 1e-3
    if row["op_name"] in MODULES:
        bound, fp8 = module_bound(row, rates)
    else:
        one, values = KERNELS[row["op_name"]](row), numbers(row)
        asked = cost_of(
            one._replace(precision="fp8") if "fp8" in str(row.get("mla_dtype", row.get("attn_dtype", ""))) else one,
            rates,
            values,
        )
        bound, fp8 = asked.lower, cost_of(one._replace(precision="fp8"), rates, values).lower
    if time >= bound:
        verdict = "under the bound"
    elif time >= fp8 and kv_width(row) == 1:
        verdict = "fp8 math under a bf16 label"
    elif row["op_name"] == "gemm" and asked.bytes < 2 * cache and time >= asked.legs["tensor"]:
        verdict = "operands fit the last-level cache"
    else:
        verdict = "impossible"
    return Checked(row, time, bound, fp8, verdict)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a parquet or csv file, counts as whole numbers."""
    if path.suffix == ".parquet":
        import pyarrow.parquet

        return pyarrow.parquet.read_table(path).to_pylist()
    import csv

    with path.open(encoding="utf-8", newline="") as file:
        found: list[dict[str, Any]] = list(csv.DictReader(file))
    for row in found:
        row.update(
            {
                k: float(v)
                for k, v in row.items()
                if v and k not in ("op_name", "version") and v.replace(".", "", 1).replace("e-", "", 1).isdigit()
            }
        )
    return found


def part_of(row: Row, given: str | None) -> str:
    """The accelerator id of a row's device."""
    if given:
        return given
    words = str(row["device"]).replace("-", " ").split()
    found = [DEVICES[w] for w in words if w in DEVICES]
    if not found:
        raise SystemExit(f"device {row['device']!r}: give --hardware")
    return found[0]


def by_heads(checked: list[Checked]) -> Iterator[dict[str, Any]]:
    """Best and median efficiency of a module by heads and length, at the largest batch of each."""
    groups: dict[tuple[str, int, int], list[Checked]] = {}
    for c in checked:
        if c.row["isl"] in (512, 2048, 8192, 16384, 32768) and not c.row["step"]:
            groups.setdefault((c.row["model"], c.row["num_heads"], c.row["isl"]), []).append(c)
    for (model, heads, length), members in sorted(groups.items()):
        efficiencies = [c.efficiency for c in members]
        yield {
            "model": model,
            "heads": heads,
            "isl": length,
            "best": max(efficiencies),
            "median": statistics.median(efficiencies),
        }


def report(path: Path, hardware: str | None, roof: str | None) -> dict[str, Any]:
    """One file: how many rows lie under the bound, which do not, and efficiencies."""
    rows = rows_of(path)
    timed = [row for row in rows if row["latency"] > 0]
    unknown = {row["op_name"] for row in timed} - {*KERNELS, *MODULES}
    if unknown:
        raise SystemExit(
            f"{path.name}: op_name {sorted(unknown)} is not known; known are {sorted({*KERNELS, *MODULES})}"
        )
    part_id = part_of(timed[0], hardware)
    rates = chip(load_catalog()[part_id], roof or ROOFS.get(part_id)).rates
    checked = [check(row, rates, CACHE_BYTES.get(part_id, 0.0)) for row in timed]
    counts: dict[str, int] = {}
    for c in checked:
        counts[c.verdict] = counts.get(c.verdict, 0) + 1
    over = [c for c in checked if c.verdict != "under the bound"]
    valid = [c for c in checked if c.verdict == "under the bound"]
    dtypes = sorted({str(c.row.get("kv_cache_dtype", "")) for c in checked})
    best = {
        d: max((c.efficiency for c in valid if str(c.row.get("kv_cache_dtype", "")) == d), default=None) for d in dtypes
    }
    return {
        "file": path.name,
        "hardware": part_id,
        "rows": len(rows),
        "without_latency": len(rows) - len(timed),
        "verdicts": counts,
        "best_efficiency": best,
        "best_efficiency_fp8_math": max((c.fp8 / c.time for c in checked if kv_width(c.row) == 1), default=None)
        if "kv_cache_dtype" in timed[0]
        else None,
        "median_efficiency": statistics.median(c.efficiency for c in valid) if valid else None,
        "named": [
            {
                **{
                    k: v
                    for k, v in c.row.items()
                    if k in ("kv_cache_dtype", "num_heads", "batch_size", "isl", "step", "m", "n", "k")
                },
                "over": c.efficiency,
                "verdict": c.verdict,
            }
            for c in sorted(over, key=lambda c: -c.efficiency)
        ],
        "by_heads": list(by_heads(checked)) if timed[0]["op_name"] in MODULES else [],
    }


def told(found: Mapping[str, Any]) -> str:
    """A report as text."""
    if found["without_latency"]:
        found = {**found, "verdicts": {**found["verdicts"], "without a latency": found["without_latency"]}}
    best = ", ".join(f"{d or 'all'} {v:.3f}" for d, v in found["best_efficiency"].items() if v)
    counted = "; ".join(f"{n} {verdict}" for verdict, n in found["verdicts"].items())
    lines = [f"{found['file']} ({found['hardware']}): {found['rows']} rows; {counted}"]
    fp8 = found["best_efficiency_fp8_math"]
    more = f"; fp8 cache with the fp8 peak {fp8:.3f}" if fp8 else ""
    lines.append(f"    best efficiency {best}; median {found['median_efficiency']:.3f}{more}")
    for row in found["named"][:30]:
        lines.append(
            "    over by "
            + f"{row['over']:.3f}: "
            + ", ".join(f"{k} {v}" for k, v in row.items() if k not in ("over",))
        )
    for row in found["by_heads"]:
        place = f"    {row['model']:<28} {row['heads']:>4} heads, {row['isl']:>6} tokens"
        lines.append(f"{place}: best {row['best']:.3f}, median {row['median']:.3f}")
    return "\n".join(lines)


def main() -> int:
    """Read the command line, print a report a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--roof")
    parser.add_argument("--hardware")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = [report(path, asked.hardware, asked.roof) for path in asked.files]
    print(json.dumps(found, indent=2) if asked.json else "\n".join(map(told, found)))
    return 1 if any("impossible" in f["verdicts"] for f in found) else 0


if __name__ == "__main__":
    sys.exit(main())
