"""Cold starts: fresh processes of the command line, median of five, bytecode already written.

python benchmarks/bench_cold.py [--runs 5]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

from common import ROOT, machine, median, report

ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}  # as an installed package starts
COMMANDS = (  # arguments, what is promised [ms]
    (("--version",), 60),
    (("heads", "--json", "--hardware", "all"), 150),
    (("formula", "mla_mqa", "--quantity", "intensity", "--latex"), 700),
    (("derive",), 3000),
)


def run(arguments: tuple[str, ...]) -> tuple[float, int]:
    """Milliseconds and exit status of one process."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return (time.perf_counter() - start) * 1e3, done.returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    print(machine())
    bare = median([run(("-c", "pass"))[0] for _ in range(runs)])
    report("python -c pass", f"{bare:.0f} ms")
    for arguments, limit in COMMANDS:
        command = ("-m", "roofline", *arguments)
        status = run(command)[1]  # also writes the bytecode
        if status:
            report(f"roofline {' '.join(arguments)}", f"exit {status}", f"<= {limit} ms", False)
            continue
        took = median([run(command)[0] for _ in range(runs)])
        report(f"roofline {' '.join(arguments)}", f"{took:.0f} ms", f"<= {limit} ms", took <= limit)


if __name__ == "__main__":
    main()
