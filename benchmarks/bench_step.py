"""A whole DeepSeek-V3.2 decode step, one float64 time bound a point: over batch x context x chip x TP as a grid, one
point
at a time, and `roofline step --json` in a cold process.

Against (with ``--peer-python PATH``, an interpreter that has aiconfigurator 0.12.0) that tool's SOL mode on the chips
both
know, at TP 4 and 8, timed beside it in the same run.

    python benchmarks/bench_step.py [--peer-python /tmp/venv/bin/python] [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import timeit
from pathlib import Path
from typing import Any

import numpy as np
from common import ROOT, interleaved, machine, median, report

from roofline.accelerators import load_catalog
from roofline.codegen import compiled
from roofline.evaluate import parameters
from roofline.grid import evaluate_grid
from roofline.models import load_model
from roofline.plan import Deployment, Step, Workload, plan
from roofline.plan.chip import chip

CHIPS = ("h100-sxm", "h200-sxm", "b200-sxm", "gb200")
DEGREES = (4, 8)
BATCH, CONTEXT = np.arange(1, 513), np.arange(1, 2049) * 64
POINTS = len(CHIPS) * len(DEGREES) * len(BATCH) * len(CONTEXT)


def rates() -> dict[str, np.ndarray]:
    """One axis of chips: every rate a step uses."""
    found = [chip(load_catalog()[name]).rates for name in CHIPS]
    peaks = {"peak": "bf16", "peak_fp8": "fp8"}
    columns = {name: [r.peaks[precision] for r in found] for name, precision in peaks.items()}
    columns |= {
        name: [getattr(r, name) for r in found] for name in ("bandwidth", "vector_peak", "exp_rate", "link_bandwidth")
    }
    return {name: np.array(values, dtype=float) for name, values in columns.items()}


def steps() -> dict[int, tuple[Step, Any]]:
    """The step at each TP degree, and its lower time bound in symbols."""
    model, load = load_model("deepseek-v3.2"), Workload("decode", batch=8, context=4096)
    found = {tp: plan(model, load, Deployment(tp=tp)) for tp in DEGREES}
    return {tp: (step, step.time_lower(q_len=1)) for tp, step in found.items()}


def cold(rounds: int) -> float:
    """Milliseconds of `roofline step --json` in a new process, byte code cached."""
    call = "import sys; from roofline.cli import run; sys.exit(run(sys.argv[1:]))"
    words = [
        sys.executable,
        "-c",
        call,
        "step",
        "--model",
        "deepseek-v3.2",
        "--hardware",
        "h200-sxm",
        "--batch",
        "64",
        "--context",
        "8192",
        "--tp",
        "8",
        "--json",
    ]
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {
            "PYTHONPATH": str(ROOT),
            "PYTHONPYCACHEPREFIX": folder,
        }

        def once() -> None:
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=env)

        return median(interleaved({"cold": once}, rounds)["cold"]) * 1e3


def peer_rates(python: str) -> dict[str, float]:
    """Points a second of aiconfigurator's SOL decode of the same model on the same chips."""
    script = Path(__file__).with_name("peer_aiconfigurator_step.py")
    done = subprocess.run([python, str(script)], capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {f"{row['system']} TP {row['tp']}": row["points_per_s"] for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    print(machine())
    found, chips = steps(), rates()
    axes = {"chips": chips, "batch": BATCH, "context": CONTEXT}

    def grid() -> None:
        for tp, (_, expr) in found.items():
            evaluate_grid({"time": expr}, axes, tp=tp)

    seconds = interleaved({"grid": grid}, asked.rounds)["grid"]
    rate = POINTS / median(seconds)
    report(
        f"grid of {POINTS / 1e6:.1f} M points (batch x context x chip x TP)",
        f"{rate / 1e6:.1f} M points/s",
        ">= 50",
        rate >= 50e6,
    )
    step, expr = found[8]
    call = compiled(expr)
    values = {**{k: float(v[1]) for k, v in chips.items()}, **step.numbers, "batch": 64.0, "context": 8192.0}
    point = {name: float(values[name]) for name in parameters(call)}
    micros = median(timeit.repeat(lambda: call(**point), number=5000, repeat=7)) / 5000 * 1e6
    report("one scalar step, compiled", f"{micros:.1f} us", "<= 50", micros <= 50)
    here = chip(load_catalog()["h200-sxm"]).rates
    whole = median(timeit.repeat(lambda: step.bounds(here, batch=64.0), number=50, repeat=7)) / 50 * 1e6
    report("one step with every kernel's totals, no compilation", f"{whole:.0f} us")
    milliseconds = cold(asked.rounds)
    report("roofline step --json, cold", f"{milliseconds:.0f} ms", "<= 200", milliseconds <= 200)
    if asked.peer_python:
        peers = peer_rates(asked.peer_python)
        for name, value in peers.items():
            report(f"  aiconfigurator SOL, {name}", f"{value / 1e6:.2f} M points/s")
        factor = rate / max(peers.values())
        report("grid against the peer's fastest", f"{factor:.0f} x", ">= 30", factor >= 30)


if __name__ == "__main__":
    main()
