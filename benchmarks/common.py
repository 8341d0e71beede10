"""What the benchmarks share: interleaved timing, the machine, one line a figure."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # measure this checkout, installed or not


def interleaved(work: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each piece of work, round by round, so that a noisy moment hits all of them; one warm-up first."""
    for function in work.values():
        function()
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, function in work.items():
            start = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def median(values: list[float]) -> float:
    return statistics.median(values)


def machine() -> str:
    """Processor, cores, load and versions: a figure without them says little."""
    model = platform.processor() or "unknown processor"
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    versions = [f"{name} {sys.modules[name].__version__}" for name in ("numpy", "sympy") if name in sys.modules]
    told = ", ".join([f"Python {platform.python_version()}", *versions])
    return f"# {model}, {os.cpu_count()} cores{load}; {told}"


def report(what: str, value: str, target: str = "", reached: bool | None = None) -> None:
    """One figure, and whether it reaches what the project promises."""
    verdict = "" if reached is None else ("  ok" if reached else "  MISSED")
    print(f"{what:<58} {value:>16}" + (f"   wanted {target}{verdict}" if target else ""), flush=True)
