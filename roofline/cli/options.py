"""Options that several commands share, and how an answer is printed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from roofline.answer import Answer
from roofline.errors import BadValue
from roofline.glossary import GLOSSARY, check

Command = TypeVar("Command", bound=Callable[..., Any])


def answer_options(command: Command) -> Command:
    """--json, -o and --explain, which every command has."""
    command = click.option(
        "--explain", is_flag=True, help="Show the formula, the numbers put in, the sources and what is left out."
    )(command)
    command = click.option(
        "-o", "--output", metavar="FILE", help="Write to FILE; its suffix says the form (.md .csv .tex .json)."
    )(command)
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document, SI base units in the keys.")(
        command
    )


def hardware_options(command: Command) -> Command:
    """--hardware, --roof and an accelerator given ad hoc by its numbers."""
    command = click.option("--ridge", metavar="FLOP/B", help="An ad hoc ridge point, such as 128.")(command)
    command = click.option("--bandwidth", metavar="RATE", help="Bandwidth of an ad hoc part, such as 3.35TB/s.")(
        command
    )
    command = click.option("--peak", metavar="RATE", help="Peak of an ad hoc part, such as 989TFLOP/s.")(command)
    command = click.option(
        "--roof", metavar="NAME", help="A named roof: datasheet, practical, flashmla, inferencex, ..."
    )(command)
    return click.option(
        "--hardware",
        metavar="ID|FILE",
        multiple=True,
        help="Accelerator id, or a YAML file of your own parts; repeat or separate by commas; all.",
    )(command)


def quantity_option(name: str, default: Any = None, extra: str = "") -> Callable[[Command], Command]:
    """An option for a glossary quantity: its name with dashes, its meaning and unit as help, its range checked."""
    record = GLOSSARY[name]
    shown = f" [{record.unit}]" if record.unit != "1" else ""
    return click.option(
        f"--{name.replace('_', '-')}",
        name,
        type=Number(name),
        default=default,
        show_default=default is not None,
        metavar="N",
        help=f"{record.meaning}{shown}{extra}",
    )


class Number(click.ParamType[int | float]):
    """A number in the range of a glossary quantity, with or without a unit; whole numbers stay exact."""

    name = "number"

    def __init__(self, quantity: str) -> None:
        self.quantity = quantity

    def convert(self, value: Any, param: Any, ctx: Any) -> int | float:
        """Read and check."""
        return number(self.quantity, value) if isinstance(value, str) else value


def number(quantity: str, text: str) -> int | float:
    """A number typed by a user for a glossary quantity: 128, 0.5, 3.35e12 or 3.35TB/s; never evaluated as code."""
    from roofline.units import UNITS, parse

    record = GLOSSARY[quantity]
    try:
        value: int | float = int(text) if text.lstrip("+-").isdigit() and len(text) < 40 else float(text)
    except ValueError:
        if record.unit not in UNITS or record.unit == "1":
            raise BadValue(quantity, text, f"{record.range_text}: {record.meaning}") from None
        value = parse(text, record.unit, quantity, zero=not record.low_open)
    return check(quantity, value)


def split(values: Iterable[str]) -> list[str]:
    """Options that are repeated or comma-separated, as one list without blanks."""
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def assignments(pairs: Iterable[str]) -> dict[str, int | float]:
    """`--set name=value`, repeated: each name a glossary quantity, each value a number in its range."""
    from roofline.glossary import quantity

    values: dict[str, int | float] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise BadValue("--set", pair, "name=value")
        quantity(name)
        if name in values:
            raise BadValue("--set", pair, f"one value for {name}")
        values[name] = number(name, text.strip())
    return values


def chosen_hardware(
    hardware: Iterable[str], peak: str | None, bandwidth: str | None, ridge: str | None, default: Any = "all"
) -> Any:
    """The accelerators that the options name: ids and files, an ad hoc part, or the default."""
    given = list(hardware)
    names: list[Any] = [value for value in given if value.strip(" ,")]  # split where files are told from lists
    if given and not names:
        raise BadValue("--hardware", ", ".join(given), "an accelerator id, a hardware file, or all")
    if peak or bandwidth or ridge:
        from roofline.accelerators import adhoc

        names.append(adhoc(peak=peak, bandwidth=bandwidth, ridge=ridge))
    return names or default


def emit(answer: Answer, as_json: bool, output: str | None, explain: bool) -> int:
    """Print or write an answer; the exit code is 1 where no answer exists."""
    if output:
        from roofline.tables import write

        write(answer, output)
        click.echo(f"wrote {output}", err=True)
    elif as_json:
        sys.stdout.write(answer.to_json())
    else:
        from roofline.tables import terminal

        sys.stdout.write(terminal(answer, explain=explain))
    if answer.no_answer:
        click.echo(f"roofline: no answer: {answer.no_answer}", err=True)
        return 1
    return 0
