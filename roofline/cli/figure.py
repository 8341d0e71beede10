"""Options that the commands of `roofline plot` share, and how a figure is written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from roofline.errors import BadValue

Command = TypeVar("Command", bound=Callable[..., Any])


def figure_options(command: Command) -> Command:
    """-o, --width, --style, --json and --explain."""
    command = click.option("--explain", is_flag=True, help="Show the formula, the sources and what is left out.")(
        command
    )
    command = click.option(
        "--json", "as_json", is_flag=True, help="Print the lines and points drawn as one JSON document."
    )(command)
    command = click.option(
        "--style", default="paper", show_default=True, metavar="NAME", help="paper, screen or dark."
    )(command)
    command = click.option(
        "--width", default="6.9", show_default=True, metavar="INCHES", help="Width of the figure; 3.3 is a column."
    )(command)
    return click.option(
        "-o", "--output", metavar="FILE", help="The figure; its suffix says the form (.pdf .svg .png .pgf)."
    )(command)


def draw(kind: str, output: str | None, width: str, style: str, as_json: bool, explain: bool, **options: Any) -> int:
    """Compute, draw into the file, and print the data or the table."""
    from roofline.answers.plot import plot as answer

    found = answer(kind, output, width=_inches(width), style=style, **options)
    if output:
        click.echo(f"wrote {output}", err=True)
    if as_json:
        sys.stdout.write(found.to_json())
    elif explain or not output:
        from roofline.tables import terminal

        sys.stdout.write(terminal(found, explain=explain))
    return 0


def _inches(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadValue("width", text, "a number of inches") from None
