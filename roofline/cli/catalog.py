"""`roofline hardware` and `roofline model`."""

from __future__ import annotations

import json
from typing import Any

import click

from roofline.cli.options import answer_options, emit, split

FILES = click.option(
    "--hardware", "files", metavar="FILE", multiple=True, help="A YAML file with parts of your own to add."
)


@click.group()
def hardware() -> None:
    """The accelerators: list, show one, compare two, validate a file of your own, print the schema."""


@hardware.command("list")
@FILES
@answer_options
def hardware_list(files: tuple[str, ...], as_json: bool, output: str | None, explain: bool) -> int:
    """All accelerators with their ridge points."""
    from roofline.answers.hardware import hardware as answer

    return emit(answer(files=files), as_json, output, explain)


@hardware.command("show")
@click.argument("name", metavar="ID")
@FILES
@answer_options
def hardware_show(name: str, files: tuple[str, ...], as_json: bool, output: str | None, explain: bool) -> int:
    """One accelerator: roofs, flags and, with --explain, the source of every number."""
    from roofline.answers.hardware import hardware as answer

    return emit(answer(name, files=files), as_json, output, explain)


@hardware.command("table")
@FILES
@click.option("--precision", default="bf16", show_default=True, metavar="NAME", help="bf16, fp8, fp4, ...")
@click.option("--roof", default="datasheet", show_default=True, metavar="NAME", help="A named roof, such as practical.")
@click.option("--vendor", multiple=True, metavar="NAME", help="Parts of these vendors; repeat or separate by commas.")
@click.option("--search", default="", metavar="WORD", help="Part of an id, a name, an architecture or a flag.")
@answer_options
def hardware_table(
    files: tuple[str, ...], vendor: tuple[str, ...], as_json: bool, output: str | None, explain: bool, **options: Any
) -> int:
    """Accelerators with the ridge point of a roof at a precision, and the source of each.

    \b
    roofline hardware table --precision fp8 --vendor AMD,NVIDIA -o table.csv
    """
    from roofline.answers.hardware_table import hardware_table as answer

    return emit(answer(files, vendor=split(vendor), **options), as_json, output, explain)


@hardware.command("compare")
@click.argument("first", metavar="ID")
@click.argument("second", metavar="ID")
@FILES
@answer_options
def hardware_compare(
    first: str, second: str, files: tuple[str, ...], as_json: bool, output: str | None, explain: bool
) -> int:
    """Two accelerators, number by number, and the second over the first.

    \b
    roofline hardware compare h100-sxm h200-sxm
    """
    from roofline.answers.hardware_table import hardware_compare as answer

    return emit(answer(first, second, files), as_json, output, explain)


@hardware.command("validate")
@click.argument("path", metavar="FILE")
@answer_options
def hardware_validate(path: str, as_json: bool, output: str | None, explain: bool) -> int:
    """Check a file of your own as --hardware FILE reads it; exit 3 says the place and what is wrong."""
    from roofline.answers.hardware import validate as answer

    return emit(answer(path), as_json, output, explain)


@hardware.command("schema")
def hardware_schema() -> int:
    """Print the JSON Schema of a hardware file."""
    from roofline.answers.hardware import schema

    click.echo(json.dumps(schema(), indent=2, sort_keys=True))
    return 0


@click.group()
def model() -> None:
    """The models: list, show one."""


@model.command("list")
@answer_options
def model_list(as_json: bool, output: str | None, explain: bool) -> int:
    """All built-in models."""
    from roofline.answers.model import model as answer

    return emit(answer(), as_json, output, explain)


@model.command("show")
@click.argument("name", metavar="ID|PATH")
@answer_options
def model_show(name: str, as_json: bool, output: str | None, explain: bool) -> int:
    """One model: a built-in id, or the path of a config.json."""
    from roofline.answers.model import model as answer

    return emit(answer(name), as_json, output, explain)
