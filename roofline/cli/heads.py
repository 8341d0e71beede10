"""`roofline heads` and `roofline chips`."""

from __future__ import annotations

from typing import Any

import click

from roofline.cli.options import answer_options, chosen_hardware, emit, hardware_options, quantity_option


def _shape_options(command: Any) -> Any:
    for option in (
        quantity_option("q_len", 1),
        quantity_option("kv_row_bytes", None, "; 656 is FlashMLA's fp8 row"),
        quantity_option("w_kv", 2),
        quantity_option("rope", 64),
        quantity_option("latent", 512),
    ):
        command = option(command)
    return command


@click.command()
@hardware_options
@_shape_options
@answer_options
def heads(
    hardware: tuple[str, ...],
    roof: str | None,
    peak: str | None,
    bandwidth: str | None,
    ridge: str | None,
    as_json: bool,
    output: str | None,
    explain: bool,
    **shape: Any,
) -> int:
    """Head count on each accelerator's ridge point.

    \b
    roofline heads --hardware h800-sxm --roof flashmla --explain
    roofline heads --peak 989TFLOP/s --bandwidth 3.35TB/s --kv-row-bytes 656
    """
    from roofline.answers.heads import heads as answer

    chosen = chosen_hardware(hardware, peak, bandwidth, ridge)
    return emit(answer(chosen, roof=roof, **shape), as_json, output, explain)


@click.command()
@quantity_option("heads", 64)
@hardware_options
@_shape_options
@answer_options
def chips(
    heads: float,
    hardware: tuple[str, ...],
    roof: str | None,
    peak: str | None,
    bandwidth: str | None,
    ridge: str | None,
    as_json: bool,
    output: str | None,
    explain: bool,
    **shape: Any,
) -> int:
    """Accelerators sorted by their distance from a head count.

    \b
    roofline chips --heads 64
    """
    from roofline.answers.heads import chips as answer

    chosen = chosen_hardware(hardware, peak, bandwidth, ridge)
    return emit(answer(heads, chosen, roof=roof, **shape), as_json, output, explain)
