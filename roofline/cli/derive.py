"""`roofline derive`, the main job."""

from __future__ import annotations

import sys

import click

from roofline.cli.options import chosen_hardware, split


@click.command()
@click.option(
    "--model",
    metavar="ID|PATH",
    multiple=True,
    help="Model id or a config.json; repeat or separate by commas. Default deepseek-v3.2, glm-5.",
)
@click.option(
    "--hardware",
    metavar="ID|FILE",
    multiple=True,
    help="Accelerator id, or a YAML file of your own parts. Default all.",
)
@click.option("--roof", metavar="NAME", help="A named roof; default every roof a part has.")
@click.option("--peak", metavar="RATE", help="Peak of an ad hoc part, such as 989TFLOP/s.")
@click.option("--bandwidth", metavar="RATE", help="Bandwidth of an ad hoc part, such as 3.35TB/s.")
@click.option("--ridge", metavar="FLOP/B", help="An ad hoc ridge point, such as 128.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("-o", "--output", metavar="FILE", help="Write to FILE (.md .tex .html .txt .json).")
@click.option("--explain", is_flag=True, help="The document is the explanation: same as without.")
def derive(
    model: tuple[str, ...],
    hardware: tuple[str, ...],
    roof: str | None,
    peak: str | None,
    bandwidth: str | None,
    ridge: str | None,
    as_json: bool,
    output: str | None,
    explain: bool,
) -> int:
    """Head counts and crossing lengths, derived step by step: the main job.

    \b
    roofline derive
    roofline derive --model deepseek-v3.2 --hardware h800-sxm,h200-sxm -o report.html
    """
    from roofline.answers.derive import WRITERS
    from roofline.answers.derive import derive as answer

    found = answer(
        split(model) or ("deepseek-v3.2", "glm-5"), chosen_hardware(hardware, peak, bandwidth, ridge), roof=roof
    )
    if output:
        from roofline.tables import write

        write(found, output, WRITERS)
        click.echo(f"wrote {output}", err=True)
    else:
        sys.stdout.write(found.to_json() if as_json else str(found))
    return 0
