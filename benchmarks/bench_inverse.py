"""Verified roots a second: crossings of one-shot sparse prefill, sparse MQA mode against masked MHA mode.

A sparse pair costs `rate_ratio` times a dense one (widths, padded heads and rates together); that and top-k vary from
case to case.  The function is compiled from the visibilities' formulas, the roots are compared with the closed form.

    python benchmarks/bench_inverse.py [--cases 1000000]
"""

from __future__ import annotations

import argparse

import numpy as np
from common import interleaved, machine, median, report

from roofline.codegen import compiled
from roofline.inverse import invert
from roofline.symbols import sym
from roofline.visibility import dense, oneshot, topk

GAP = compiled(sym.rate_ratio * oneshot(topk()).pairs - oneshot(dense()).pairs, arrays=True)


def gap(length: np.ndarray, **columns: np.ndarray) -> np.ndarray:
    """Cost of the sparse mode less that of the dense one, in dense pairs."""
    return GAP(seq_len=length, **columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    print(machine())
    draw = np.random.default_rng(1)
    columns = {
        "rate_ratio": draw.uniform(1.05, 40, chosen.cases),
        "topk": draw.integers(1024, 4097, chosen.cases).astype(float),
    }
    lowest = columns["topk"] + 1

    def solve(threads: int) -> object:
        return invert(gap, 0.0, lowest, 1e8, threads=threads, **columns)

    found = invert(gap, 0.0, lowest, 1e8, **columns)
    k, rho = columns["topk"], columns["rate_ratio"]
    exact = k * rho - 0.5 + 0.5 * np.sqrt(4 * k * k * rho * (rho - 1) + 1)
    worst = np.abs(found.x / exact - 1)[found.verified].max()
    seconds = interleaved({"2 threads": lambda: solve(2), "1 thread": lambda: solve(1)}, chosen.rounds)
    for name, times in seconds.items():
        rate = found.verified.sum() / median(times)
        wanted = (">= 1 M", bool(rate >= 1e6)) if name == "2 threads" else ("", None)
        report(
            f"verified roots, {name} (best {found.verified.sum() / min(times) / 1e6:.2f})",
            f"{rate / 1e6:.2f} M/s",
            *wanted,
        )
    report("cases verified", f"{found.verified.mean():.2%}", "100 %", bool(found.verified.all()))
    report("largest relative difference from the closed form", f"{worst:.1e}", "<= 1e-12", bool(worst <= 1e-12))


if __name__ == "__main__":
    main()
