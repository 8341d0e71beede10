"""`roofline formula` and `roofline solve`."""

from __future__ import annotations

from typing import Any

import click

from roofline.cli.options import answer_options, assignments, chosen_hardware, emit, hardware_options, split

SET = click.option(
    "--set",
    "sets",
    metavar="NAME=VALUE",
    multiple=True,
    help="Put a number in for a quantity; repeat. Numbers only, with or without unit.",
)
PHASE = click.option(
    "--phase", metavar="PHASE", help="oneshot, chunked, decode or shared-prefix: puts pairs and rows in."
)


@click.command()
@click.argument("kernel", required=False)
@click.option(
    "--quantity",
    metavar="NAME",
    help="flops, vector_flops, exps, bytes, intensity, time_lower or time_upper; default all totals.",
)
@click.option("--model", metavar="ID|PATH", help="Instead of a kernel: the ledger of a model's whole step.")
@PHASE
@SET
@click.option("--latex", "as_latex", is_flag=True, help="Print LaTeX only.")
@click.option("--glossary", "as_glossary", is_flag=True, help="List every quantity with LaTeX, unit and meaning.")
@answer_options
def formula(
    kernel: str | None,
    model: str | None,
    quantity: str | None,
    phase: str | None,
    sets: tuple[str, ...],
    as_latex: bool,
    as_glossary: bool,
    as_json: bool,
    output: str | None,
    explain: bool,
) -> int:
    """The formulas of a kernel; without a name, the kernels.

    \b
    roofline formula mla_mqa --phase decode --set q_len=1 --latex
    roofline formula mla_mqa --quantity intensity --set heads=128 --explain
    """
    from roofline.answers import formula as module

    values = assignments(sets)
    answer = (
        module.glossary()
        if as_glossary
        else module.formula(kernel, model=model, quantity=quantity, phase=phase, values=values)
    )
    if as_latex and (kernel or model) and not as_json and not output:
        click.echo("\n".join(row["latex"] for row in answer.data["quantities"]))
        return 0
    return emit(answer, as_json, output, explain)


@click.command()
@click.argument("unknown")
@click.option("--kernel", metavar="ID", help="The kernel whose quantity is solved for.")
@click.option("--model", metavar="ID|PATH", help="Instead of a kernel: the whole step of a model.")
@click.option("--parts", metavar="NAME", multiple=True, help="Of a step only these parts: attention, experts, ffn, ...")
@click.option("--equals-parts", metavar="NAME", multiple=True, help="Solve for equality with these parts of the step.")
@click.option("--equals-kernel", metavar="ID", help="Solve for equality with this kernel.")
@click.option(
    "--quantity",
    metavar="NAME",
    help="intensity, time, flops, bytes, ... (default intensity; flops with --equals-kernel).",
)
@click.option("--target", metavar="ridge|NUMBER", help="What the quantity shall be, in its SI unit; default ridge.")
@PHASE
@hardware_options
@SET
@answer_options
def solve(
    unknown: str,
    kernel: str | None,
    model: str | None,
    parts: tuple[str, ...],
    equals_parts: tuple[str, ...],
    equals_kernel: str | None,
    quantity: str | None,
    target: str | None,
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
    """Solve for any quantity of any kernel: on the ridge, at a target, or equal to another kernel.

    \b
    roofline solve heads --kernel mla_mqa --phase decode --hardware h800-sxm --roof flashmla --set context=8191 ...
    roofline solve context --model deepseek-v3 --parts attention --equals-parts experts,ffn --set batch=1 --set q_len=1
    roofline solve seq_len --kernel dsa_mha --equals-kernel dsa_mqa --phase oneshot --set heads=128 ...
    """
    from roofline.answers.solve import solve as answer

    chosen: Any = chosen_hardware(hardware, peak, bandwidth, ridge, default=None)
    found = answer(
        unknown.replace("-", "_"),
        kernel=kernel,
        model=model,
        parts=split(parts),
        equals_parts=split(equals_parts),
        equals_kernel=equals_kernel,
        quantity=quantity,
        target=target,
        phase=phase,
        hardware=chosen,
        roof=roof,
        values=assignments(sets),
    )
    return emit(found, as_json, output, explain)
