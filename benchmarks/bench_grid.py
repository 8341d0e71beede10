"""Full mesh of 10 million design points for MLA decode with its projections, one float64 time bound a point.

Against: `sympy.lambdify` of the same formula on a dense mesh, and (with ``--peer-python PATH``, an interpreter that has
aiconfigurator 0.12.0) that tool's SOL mode, the analytic one, timed beside it.

    python benchmarks/bench_grid.py [--peer-python /tmp/venv/bin/python] [--rounds 7]
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

import numpy as np
import sympy as sp
from common import interleaved, machine, median, report

from roofline.grid import evaluate_grid
from roofline.kernels import KERNELS
from roofline.law import time_lower
from roofline.symbols import sym
from roofline.visibility import dense

STEP = (KERNELS["mla_absorption"] + KERNELS["mla_mqa"] + KERNELS["mla_unabsorption"]).bind(
    **dense().bindings(), kernel_heads=sym.heads
)
SHAPE = {"q_len": 1, "latent": 512, "rope": 64, "nope": 128, "value": 128, "w_act": 2, "w_kv": 2, "w_weight": 2}
CHIPS = {
    "peak": np.linspace(1e14, 5e15, 10),
    "bandwidth": np.linspace(1e12, 8e12, 10),
    "exp_rate": np.linspace(1e12, 1e13, 10),
}
AXES = {"chips": CHIPS, "heads": np.arange(1, 11) * 16, "batch": np.arange(1, 101), "context": np.arange(1, 1001) * 128}
POINTS = 10 * 10 * 100 * 1000


def dense_mesh() -> dict[str, np.ndarray]:
    """Every quantity as a full array, which is what lambdify is usually given."""
    shape = (10, 10, 100, 1000)
    columns = {name: column.reshape(-1, 1, 1, 1) for name, column in CHIPS.items()}
    columns |= {
        "heads": AXES["heads"].reshape(-1, 1, 1),
        "batch": AXES["batch"].reshape(-1, 1),
        "context": AXES["context"],
    }
    return {n: np.ascontiguousarray(np.broadcast_to(c.astype(float), shape)) for n, c in columns.items()}


def peer_rate(python: str) -> float:
    """Points a second of the fastest analytic path of aiconfigurator."""
    script = Path(__file__).with_name("peer_aiconfigurator.py")
    done = subprocess.run([python, str(script)], capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for row in rows:
        report(f"  aiconfigurator {row['version']} SOL, {row['path']}", f"{row['points_per_s'] / 1e6:.2f} M points/s")
    return max(row["points_per_s"] for row in rows)


def memory_growth(expr: sp.Expr) -> float:
    """Peak resident memory of one evaluation beyond its output [MiB] (Linux: the high-water mark is reset before)."""

    def status(field: str) -> int:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(field))

    evaluate_grid(expr, AXES | {"context": AXES["context"][:20]}, threads=2, **SHAPE)
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    evaluate_grid(expr, AXES, threads=2, **SHAPE)
    return (status("VmHWM") - before) / 1024 - 8 * POINTS / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--peer-python", help="interpreter with aiconfigurator 0.12.0; without it the peer is not measured"
    )
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    print(machine())
    expr = time_lower(STEP)
    growth = memory_growth(expr)
    arrays = dense_mesh()
    names = sorted(s.name for s in expr.free_symbols)
    general = sp.lambdify([getattr(sym, n) for n in names], expr, "numpy")
    bound = expr.subs({getattr(sym, n): v for n, v in SHAPE.items()})  # numbers put in before: a favour to lambdify
    special = sp.lambdify([getattr(sym, n) for n in arrays], bound, "numpy")
    every = [arrays.get(n, SHAPE.get(n)) for n in names]
    ours = evaluate_grid(expr, AXES, threads=2, **SHAPE).value
    worst = np.abs(ours / general(*every) - 1).max()
    seconds = interleaved(
        {
            "two": lambda: evaluate_grid(expr, AXES, threads=2, **SHAPE),
            "one": lambda: evaluate_grid(expr, AXES, threads=1, **SHAPE),
            "dense": lambda: general(*every),
            "special": lambda: special(*arrays.values()),
        },
        chosen.rounds,
    )
    rate = {name: POINTS / median(s) for name, s in seconds.items()}
    for name, label in (
        ("two", "grid, 2 threads"),
        ("one", "grid, 1 thread"),
        ("dense", "dense-mesh lambdify"),
        ("special", "the same, shape numbers put in first"),
    ):
        best = POINTS / min(seconds[name]) / 1e6
        report(f"{label} (median; best {best:.0f})", f"{rate[name] / 1e6:.1f} M points/s")
    report("grid, 2 threads", f"{rate['two'] / 1e6:.0f} M points/s", ">= 100", rate["two"] >= 1e8)
    report(
        "times dense-mesh lambdify", f"{rate['two'] / rate['dense']:.1f}", ">= 15", rate["two"] >= 15 * rate["dense"]
    )
    report("memory beyond the output", f"{growth:.1f} MiB", "<= 64", growth <= 64)
    report("largest relative difference from lambdify", f"{worst:.1e}", "<= 1e-14", bool(worst <= 1e-14))
    if chosen.peer_python:
        peer = peer_rate(chosen.peer_python)
        report("times aiconfigurator's SOL mode", f"{rate['two'] / peer:.0f}", ">= 60", rate["two"] >= 60 * peer)
    else:
        print("aiconfigurator was not measured: give --peer-python PATH of an interpreter that has it")


if __name__ == "__main__":
    main()
