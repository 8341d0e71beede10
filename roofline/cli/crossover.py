"""`roofline crossover`."""

from __future__ import annotations

from typing import Any

import click

from roofline.cli.options import answer_options, chosen_hardware, emit, hardware_options, quantity_option, split
from roofline.errors import BadValue

WORKLOAD = ("batch", "q_len", "context", "prefix", "w_kv", "kv_row_bytes", "w_act")


def workload_options(command: Any) -> Any:
    """Batch, lengths and widths."""
    for name in reversed(WORKLOAD):
        command = quantity_option(name)(command)
    return command


def degrees(values: tuple[str, ...]) -> list[int]:
    """TP degrees from repeated or comma-separated options."""
    found = []
    for text in split(values):
        if not text.isdigit() or not 0 < int(text) <= 65536:
            raise BadValue("tp", text, "a whole number from 1 to 65,536")
        found.append(int(text))
    return found or [1]


def heads_as_run(text: str | None) -> int | None:
    """`--kernel-heads N|none`."""
    if text is None or text == "none":
        return None
    if not text.isdigit() or not 0 < int(text) <= 65536:
        raise BadValue("kernel_heads", text, "a whole number from 1 to 65,536, or none")
    return int(text)


@click.command()
@click.option(
    "--model",
    metavar="ID|PATH",
    multiple=True,
    help="Built-in model id or a config.json; repeat or separate by commas. Default deepseek-v3.2, glm-5.",
)
@click.option(
    "--phase", default="oneshot", show_default=True, metavar="PHASE", help="oneshot, chunked, decode or shared-prefix."
)
@click.option("--cost", metavar="COST", help="flops, or time on a chip. Default flops; time for shared-prefix.")
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
    "--at-length", metavar="N", help="Solve for the rate ratio that puts the one-shot crossing at this length."
)
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
@answer_options
def crossover(
    model: tuple[str, ...],
    hardware: tuple[str, ...],
    tp: tuple[str, ...],
    peak: str | None,
    bandwidth: str | None,
    ridge: str | None,
    kernel_heads: str | None,
    at_length: str | None,
    topk: str | None,
    no_skip: bool,
    as_json: bool,
    output: str | None,
    explain: bool,
    **options: Any,
) -> int:
    """Where MHA mode and MQA mode cost the same.

    \b
    roofline crossover --model deepseek-v3.2 --tp 1,2,4,8 --kernel-heads 128 --rate-ratio 0.47
    roofline crossover --model deepseek-v3.2 --kernel-heads 128 --at-length 5000
    roofline crossover --model deepseek-v3.2 --phase chunked --context 4096
    roofline crossover --model deepseek-v3 --phase shared-prefix --hardware h800 --roof flashmla --cost time
    """
    from roofline.answers.crossover import crossover as answer
    from roofline.cli.options import number

    options["at_length"] = None if at_length is None else number("seq_len", at_length)
    options["topk"] = None if topk is None else 0 if topk == "none" else number("topk", topk)
    chosen = chosen_hardware(hardware, peak, bandwidth, ridge, default=None)
    found = answer(
        split(model) or ("deepseek-v3.2", "glm-5"),
        chosen,
        tp=degrees(tp),
        kernel_heads=heads_as_run(kernel_heads),
        skip=not no_skip,
        **options,
    )
    return emit(found, as_json, output, explain)
