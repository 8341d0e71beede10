"""`roofline sweep`."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from roofline.cli.formula import PHASE, SET
from roofline.cli.options import assignments, chosen_hardware, emit, hardware_options


class Bar:
    """A progress bar on standard error that appears only when the work takes longer than a second."""

    def __init__(self) -> None:
        self.start, self.done = time.monotonic(), 0
        self.bar: Any = None

    def __call__(self, done: int, total: int) -> None:
        if self.bar is None and time.monotonic() - self.start > 1 and sys.stderr.isatty():
            self.bar = click.progressbar(length=total, label="sweep", file=sys.stderr)
        if self.bar is not None:
            self.bar.update(done - self.done)
            self.done = done
            if done >= total:
                self.bar.render_finish()


@click.command()
@click.option("--kernel", required=True, metavar="ID", help="The kernel; `roofline formula` lists them.")
@click.option(
    "--grid",
    multiple=True,
    required=True,
    metavar="NAME=...",
    help="An axis: a,b,c or lo:hi:log2 or lo:hi:lin:n or lo:hi:log:n; repeat.",
)
@PHASE
@hardware_options
@SET
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document (the first rows and the axes).")
@click.option(
    "-o", "--output", metavar="FILE", help="Write the whole mesh to FILE (.csv .npz .parquet; .md .tex .json if short)."
)
@click.option("--explain", is_flag=True, help="Show the formula, the numbers put in and what is left out.")
def sweep(
    kernel: str,
    grid: tuple[str, ...],
    phase: str | None,
    hardware: tuple[str, ...],
    roof: str | None,
    peak: str | None,
    bandwidth: str | None,
    ridge: str | None,
    sets: tuple[str, ...],
    as_json: bool,
    output: str | None,
    explain: bool,
) -> int:
    """A kernel over a grid, to a table or a file.

    \b
    roofline sweep --kernel mla_mqa --phase decode --grid heads=8:256:log2 --grid context=1024:131072:log2 \\
      --hardware h800-sxm,b200-sxm --set batch=1 --set q_len=1 --set latent=512 --set rope=64 --set w_kv=2 \\
      --set w_act=2 -o out.csv
    """
    from roofline.answers.sweep import sweep as answer
    from roofline.answers.sweep import write_sweep

    chosen: Any = chosen_hardware(hardware, peak, bandwidth, ridge, default=None)
    found = answer(kernel, grid, hardware=chosen, roof=roof, phase=phase, values=assignments(sets), progress=Bar())
    if output:
        write_sweep(found, output)
        click.echo(f"wrote {output}: {found.data['points']:,} points", err=True)
        return 0
    return emit(found, as_json, None, explain)
