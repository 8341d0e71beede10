"""`roofline step`, `roofline compare`, `roofline split` and `roofline codesign`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from roofline.cli.options import answer_options, chosen_hardware, emit, hardware_options, quantity_option
from roofline.errors import BadValue

Command = Callable[..., Any]
DEGREES = ("tp", "dp", "ep", "pp", "cp")


def _degree(name: str) -> Any:
    from roofline.glossary import GLOSSARY

    return click.option(
        f"--{name}", type=int, default=1, show_default=True, metavar="N", help=GLOSSARY[name].meaning + "."
    )


def workload_options(command: Command) -> Command:
    """Phase, sizes and widths of a step."""
    options = (
        click.option(
            "--phase", default="decode", show_default=True, metavar="NAME", help="decode, oneshot, chunked or mixed."
        ),
        quantity_option("batch", 1, ", all data-parallel ranks together"),
        quantity_option("q_len", None, "; oneshot: the prompt; mixed: the prefill part"),
        quantity_option("context", 0),
        quantity_option("drafts", 0),
        click.option(
            "--acceptance",
            type=float,
            metavar="N",
            help="Tokens a sequence gains per decode step.  [default: 1 + drafts]",
        ),
        quantity_option("prefill_batch", 1),
        quantity_option("prefill_context", 0),
        quantity_option("image_tokens", 0),
        click.option(
            "--kv-dtype",
            default="auto",
            show_default=True,
            metavar="NAME",
            help="Cache: auto, bf16, fp16, fp8, fp8_row, int8, ...",
        ),
        click.option(
            "--weight-dtype",
            default="auto",
            show_default=True,
            metavar="NAME",
            help="Matrices of the layers: auto (as stored), bf16, fp8, nvfp4, mxfp4, int8, int4, ...",
        ),
        click.option(
            "--index-dtype", default="fp8", show_default=True, metavar="NAME", help="Indexer keys: fp8, fp4 or bf16."
        ),
        click.option(
            "--routing",
            default="expected",
            show_default=True,
            metavar="NAME",
            help="Experts visited: expected, balanced or worst.",
        ),
        click.option(
            "--mode",
            metavar="NAME",
            help="Prefill of latent attention: mha or mqa.  [default: mha; sparse attention: mqa]",
        ),
        click.option(
            "--gather",
            default="perfect",
            show_default=True,
            metavar="NAME",
            help="Rows of sparse attention shared by the queries of a prefill: perfect or none.",
        ),
        click.option(
            "--kernel-heads",
            type=int,
            metavar="N",
            help="Heads as the absorbed kernel runs them, where an engine pads.",
        ),
        quantity_option("w_act", 2),
        quantity_option("link_bandwidth", None),
        quantity_option("launch_gap", 0),
        click.option(
            "--n-kernels", type=float, metavar="N", help="Kernels that pay the launch gap.  [default: all of the step]"
        ),
        click.option(
            "--slo",
            metavar="TIME",
            help="Time per token (decode) or of the step to keep, such as 50ms: gives the largest batch.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def deployment_options(command: Command) -> Command:
    """Degrees of parallelism and batches in flight."""
    command = click.option(
        "--micro-batches",
        type=int,
        default=1,
        show_default=True,
        metavar="N",
        help="Batches (in a prefill: chunks) in flight in the pipeline.",
    )(command)
    return degree_options(command)


def degree_options(command: Command) -> Command:
    """--tp, --dp, --ep, --pp and --cp."""
    for name in reversed(DEGREES):
        command = _degree(name)(command)
    return command


def seconds(slo: str | None) -> float | None:
    """A time typed by a user."""
    from roofline.units import parse

    return None if slo is None else parse(slo, "s", "slo")


@click.command()
@click.option("--model", required=True, metavar="ID|PATH", help="A built-in id, or the path of a config.json.")
@hardware_options
@deployment_options
@workload_options
@answer_options
def step(
    model: str,
    hardware: tuple[str, ...],
    roof: str | None,
    peak: str | None,
    bandwidth: str | None,
    ridge: str | None,
    slo: str | None,
    as_json: bool,
    output: str | None,
    explain: bool,
    **given: Any,
) -> int:
    """One decode or prefill step of a model: kernels, bounds, what binds, whether it fits.

    \b
    roofline step --model deepseek-v3.2 --hardware h200-sxm --batch 128 --context 8192 --dp 8 --ep 8
    roofline step --model llama-3.1-70b --hardware b200-sxm --phase oneshot --q-len 8192 --tp 4 --json
    """
    from roofline.answers.step import step as answer

    chosen = chosen_hardware(hardware, peak, bandwidth, ridge, default=())
    return emit(answer(model, chosen, roof=roof, slo=seconds(slo), **given), as_json, output, explain)


@click.command()
@click.option(
    "--model",
    "models",
    required=True,
    multiple=True,
    metavar="ID|PATH",
    help="A built-in id or the path of a config.json; repeat.",
)
@click.option(
    "--deployment",
    "deployments",
    multiple=True,
    metavar="TP=N,...",
    help="Degrees such as tp=8 or dp=8,ep=8; repeat for several rows.",
)
@hardware_options
@degree_options
@workload_options
@answer_options
def compare(
    models: tuple[str, ...],
    deployments: tuple[str, ...],
    hardware: tuple[str, ...],
    roof: str | None,
    peak: str | None,
    bandwidth: str | None,
    ridge: str | None,
    slo: str | None,
    as_json: bool,
    output: str | None,
    explain: bool,
    **given: Any,
) -> int:
    """Two or more chips, models or deployments side by side, under one workload.

    \b
    roofline compare --model deepseek-v3.2 --hardware h200-sxm,b200-sxm --deployment tp=8 --deployment dp=8,ep=8
    --batch 64 --context 8192
    """
    from roofline.answers.compare import compare as answer
    from roofline.answers.compare import degrees
    from roofline.cli.options import split

    chosen = chosen_hardware(hardware, peak, bandwidth, ridge, default=())
    own = {name: given[name] for name in DEGREES if given[name] != 1}
    if own and deployments:
        raise BadValue("deployment", deployments[0], "either --deployment or single degrees", f"--{next(iter(own))}")
    spreads = [degrees(text) for text in deployments] or [own]
    rest = {k: v for k, v in given.items() if k not in DEGREES}
    return emit(answer(split(models), chosen, spreads, roof=roof, slo=seconds(slo), **rest), as_json, output, explain)


@click.command()
@click.option("--model", required=True, metavar="ID|PATH", help="A built-in id, or the path of a config.json.")
@click.option("--prefill-hardware", required=True, metavar="ID|FILE", help="Accelerator of the prefill side.")
@click.option("--decode-hardware", required=True, metavar="ID|FILE", help="Accelerator of the decode side.")
@click.option("--prompt", type=int, required=True, metavar="N", help="Tokens of a prompt.")
@click.option("--output-tokens", "output_len", type=int, required=True, metavar="N", help="Tokens of an answer.")
@click.option("--prefill-deployment", default="", metavar="TP=N,...", help="Degrees of the prefill side, such as tp=8.")
@click.option(
    "--decode-deployment", default="", metavar="TP=N,...", help="Degrees of the decode side, such as dp=8,ep=8."
)
@click.option("--transfer-bandwidth", metavar="RATE", help="Link between both sides, such as 50GB/s.")
@quantity_option("batch", 1, " of the decode side")
@click.option(
    "--kv-dtype", default="auto", show_default=True, metavar="NAME", help="Cache: auto, bf16, fp8, fp8_row, ..."
)
@click.option("--weight-dtype", default="auto", show_default=True, metavar="NAME", help="Matrices of the layers.")
@answer_options
def split(
    model: str,
    prefill_hardware: str,
    decode_hardware: str,
    prompt: int,
    output_len: int,
    prefill_deployment: str,
    decode_deployment: str,
    transfer_bandwidth: str | None,
    as_json: bool,
    output: str | None,
    explain: bool,
    **shared: Any,
) -> int:
    """Prefill and decode on devices of their own: the link they need, and how many of each.

    \b
    roofline split --model deepseek-v3.2 --prefill-hardware h200-sxm --decode-hardware b200-sxm --prompt 32768
    --output-tokens 1024
    """
    from roofline.answers.compare import degrees
    from roofline.answers.split import split as answer
    from roofline.units import parse

    link = None if transfer_bandwidth is None else parse(transfer_bandwidth, "B/s", "transfer_bandwidth")
    sides = {"prefill": prefill_deployment, "decode": decode_deployment}
    spreads: dict[str, Any] = {name: degrees(text) if text else {} for name, text in sides.items()}
    found = answer(
        model,
        prefill_hardware,
        decode_hardware,
        prompt=prompt,
        output=output_len,
        transfer_bandwidth=link,
        **spreads,
        **shared,
    )
    return emit(found, as_json, output, explain)


@click.command()
@click.option(
    "--hardware",
    multiple=True,
    default=("h100-sxm", "h20"),
    show_default=True,
    metavar="ID",
    help="Two or more accelerators; repeat or separate by commas.",
)
@click.option("--roof", metavar="NAME", help="A named roof.")
@quantity_option("latent", 512)
@quantity_option("rope", 64)
@quantity_option("nope", 128)
@quantity_option("value", 128)
@quantity_option("w_kv", 2)
@answer_options
def codesign(
    hardware: tuple[str, ...], roof: str | None, as_json: bool, output: str | None, explain: bool, **shape: Any
) -> int:
    """Heads, groups and query lengths that sit on the ridges of several chips at once.

    \b
    roofline codesign --hardware h100-sxm,h20
    """
    from roofline.answers.codesign import codesign as answer
    from roofline.cli.options import split as parted

    return emit(answer(parted(hardware), roof=roof, **shape), as_json, output, explain)
