"""One design point by keyword: the generated function of a kernel, a compiled step, and `evaluate` with its checks.

python benchmarks/bench_point.py
"""

from __future__ import annotations

import timeit

from bench_grid import SHAPE, STEP
from common import machine, median, report

from roofline.codegen import compiled
from roofline.evaluate import evaluate, parameters, scalar
from roofline.law import time_lower

KERNEL = {"batch": 8.0, "heads": 128.0, "latent": 512.0, "q_len": 1.0, "rope": 64.0, "rows_read": 8192.0, "w_act": 2.0,
          "kv_row_bytes": 656.0}  # fmt: skip
POINT = {k: float(v) for k, v in SHAPE.items()} | {
    "batch": 8.0, "heads": 128.0, "context": 8192.0, "peak": 1e15, "bandwidth": 3.35e12, "exp_rate": 4e12
}  # fmt: skip


def main() -> None:
    print(machine())
    expr = time_lower(STEP)
    step, one = compiled(expr), scalar("mla_mqa", "bytes")
    values = {name: POINT[name] for name in parameters(step)}
    for label, work, target in (
        ("generated mla_mqa bytes", lambda: one(**KERNEL), 5.0),
        ("compiled time bound of the decode step, 3 kernels", lambda: step(**values), 5.0),
        ("evaluate(expr, ...) with range checks", lambda: evaluate(expr, **values), None),
        ("evaluate('mla_mqa', 'bytes', ...) with range checks", lambda: evaluate("mla_mqa", "bytes", **KERNEL), None),
    ):
        work()
        micros = median(timeit.repeat(work, number=20_000, repeat=7)) / 20_000 * 1e6
        report(label, f"{micros:.2f} us", f"<= {target:g}" if target else "", micros <= target if target else None)


if __name__ == "__main__":
    main()
