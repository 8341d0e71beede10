"""`roofline plot roofline|heads|crossover|step`; pages, waste, hits and concurrency lie beside this file."""

from __future__ import annotations

from typing import Any

import click

from roofline.cli.crossover import degrees, heads_as_run, workload_options
from roofline.cli.figure import draw, figure_options
from roofline.cli.options import chosen_hardware, hardware_options, number, quantity_option, split
from roofline.cli.plot_memory import MEMORY
from roofline.cli.step import deployment_options, seconds
from roofline.cli.step import workload_options as step_options
from roofline.errors import BadValue


@click.group("plot")
def plot() -> None:
    """Figures: bytes are reproducible, colours are told apart by the colour-blind. Without -o the data are shown."""


@plot.command("roofline")
@hardware_options
@click.option("--precision", multiple=True, metavar="NAME", help="bf16, fp8, ...; default those of the kernels.")
@click.option(
    "--kernel",
    multiple=True,
    metavar="ID",
    help="Kernels drawn as points. Default attention, mla_mha, mla_mqa, dsa_indexer.",
)
@click.option(
    "--model",
    multiple=True,
    metavar="ID|PATH",
    help="Models that give the kernels their shapes. Default deepseek-v3.2, llama-3.1-70b.",
)
@click.option(
    "--phase", default="decode", show_default=True, metavar="PHASE", help="oneshot, chunked, decode or shared-prefix."
)
@click.option("--tp", metavar="N", multiple=True, help="Tensor-parallel degree. Default 1.")
@click.option("--kernel-heads", metavar="N|none", help="Heads as the MQA kernel runs them (padded). Default none.")
@workload_options
@figure_options
def roofline_(
    hardware: tuple[str, ...],
    roof: str | None,
    peak: str | None,
    bandwidth: str | None,
    ridge: str | None,
    precision: tuple[str, ...],
    kernel: tuple[str, ...],
    model: tuple[str, ...],
    tp: tuple[str, ...],
    kernel_heads: str | None,
    **options: Any,
) -> int:
    """Attainable performance over intensity, log-log.

    \b
    roofline plot roofline --hardware h800-sxm --roof flashmla -o roofline.pdf
    roofline plot roofline --hardware h200-sxm,b200-sxm --roof datasheet --width 3.3 -o roofline.svg
    """
    [degree] = _one_degree(tp)
    chosen: dict[str, Any] = {
        k: split(v) for k, v in (("precision", precision), ("kernel", kernel), ("model", model)) if v
    }
    return draw(
        "roofline",
        hardware=chosen_hardware(hardware, peak, bandwidth, ridge, default="h800-sxm"),
        roof=split([roof or ""]),
        tp=degree,
        kernel_heads=heads_as_run(kernel_heads),
        **chosen,
        **options,
    )


def _one_degree(tp: tuple[str, ...]) -> list[int]:
    found = degrees(tp)
    if len(found) > 1:
        raise BadValue("tp", ",".join(map(str, found)), "one degree: a roofline figure shows one rank")
    return found


@plot.command("heads")
@hardware_options
@quantity_option("latent", 512)
@quantity_option("rope", 64)
@quantity_option("w_kv", None, "; default 2")
@click.option(
    "--kv-row-bytes",
    metavar="N",
    multiple=True,
    help="Further row widths [B], one line each. Default 656, FlashMLA's fp8 row.",
)
@quantity_option("q_len", 1)
@figure_options
def heads_(
    hardware: tuple[str, ...],
    roof: str | None,
    peak: str | None,
    bandwidth: str | None,
    ridge: str | None,
    kv_row_bytes: tuple[str, ...],
    **options: Any,
) -> int:
    """Intensity against head count, with the ridges of several chips.

    \b
    roofline plot heads --hardware h800-sxm,h200-sxm,mtt-s4000 -o heads.pdf
    """
    rows = [number("kv_row_bytes", text) for text in split(kv_row_bytes)] or None
    chosen = chosen_hardware(hardware, peak, bandwidth, ridge, default=("h800-sxm", "h200-sxm", "mtt-s4000"))
    return draw("heads", hardware=chosen, roof=split([roof or ""]), kv_row_bytes=rows, **options)


@plot.command("crossover")
@click.option(
    "--model", default="deepseek-v3.2", show_default=True, metavar="ID|PATH", help="Built-in model id or a config.json."
)
@click.option(
    "--phase", default="oneshot", show_default=True, metavar="PHASE", help="oneshot, chunked, decode or shared-prefix."
)
@click.option(
    "--unknown",
    metavar="NAME",
    help="What the horizontal axis counts, where a phase has several (seq_len or batch in decode).",
)
@click.option(
    "--cost",
    metavar="COST",
    help="flops, or time on a chip. Default flops; time in shared-prefix, where FLOPs never cross.",
)
@click.option(
    "--between",
    default="modes",
    show_default=True,
    metavar="WHAT",
    help="modes; indexer (against attention); dense (against sparse).",
)
@hardware_options
@click.option("--tp", metavar="N", multiple=True, help="Tensor-parallel degrees; heads divide by them. Default 1.")
@click.option("--kernel-heads", metavar="N|none", help="Heads as the MQA kernel runs them (padded). Default none.")
@click.option("--engine", metavar="NAME", help="Padding of an engine's kernel, such as vllm-flashmla-sm100.")
@quantity_option("rate_ratio", 1)
@click.option(
    "--gather",
    default="none",
    show_default=True,
    metavar="REUSE",
    help="Reuse of gathered rows between queries: none or perfect.",
)
@click.option("--no-skip", is_flag=True, help="The kernel computes the keys that the first queries do not have.")
@click.option("--topk", metavar="N|none", help="Override of the model's top-k; none is dense attention.")
@workload_options
@figure_options
def crossover_(
    model: str,
    phase: str,
    cost: str | None,
    hardware: tuple[str, ...],
    peak: str | None,
    bandwidth: str | None,
    ridge: str | None,
    tp: tuple[str, ...],
    kernel_heads: str | None,
    no_skip: bool,
    topk: str | None,
    **options: Any,
) -> int:
    """Cost of both modes per query, their crossings, and the engines' own thresholds.

    \b
    roofline plot crossover --tp 1,2,4,8 --kernel-heads 128 --rate-ratio 0.47 -o crossover.pdf
    roofline plot crossover --phase chunked --context 4096 -o window.svg
    """
    keys = None if topk is None else 0 if topk == "none" else number("topk", topk)
    chosen = chosen_hardware(hardware, peak, bandwidth, ridge, default=None)
    return draw(
        "crossover",
        model=model,
        phase=phase,
        cost=cost or ("time" if phase == "shared-prefix" else "flops"),
        hardware=chosen,
        tp=degrees(tp),
        kernel_heads=heads_as_run(kernel_heads),
        skip=not no_skip,
        topk=keys,
        **options,
    )


@plot.command("step")
@click.option(
    "--model", default="deepseek-v3.2", show_default=True, metavar="ID|PATH", help="Built-in model id or a config.json."
)
@hardware_options
@click.option(
    "--color", default="part", show_default=True, metavar="WHAT", help="What colours tell: part of the model, or bound."
)
@deployment_options
@step_options
@figure_options
def step_(
    hardware: tuple[str, ...],
    peak: str | None,
    bandwidth: str | None,
    ridge: str | None,
    slo: str | None,
    **options: Any,
) -> int:
    """The kernels of a step on the roofline; the area of a dot is its share of the time.

    Several accelerators are drawn together. --roof all takes the times from the datasheet's and draws the others too.

    \b
    roofline plot step --model deepseek-v3.2 --hardware h200-sxm --batch 128 --context 8192 --dp 8 --ep 8 -o step.pdf
    """
    chosen = chosen_hardware(hardware, peak, bandwidth, ridge, default="h800-sxm")
    return draw("step", hardware=chosen, slo=seconds(slo), **options)


for _command in MEMORY:
    plot.add_command(_command)
