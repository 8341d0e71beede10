"""The command line: a thin layer that reads options, calls the function of the same name, and prints its answer.

Exit codes: 0 answered, 1 no answer exists (the document is printed, the reason on standard error), 2 usage,
3 unreadable or invalid input, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from roofline import __version__
from roofline.errors import RooflineError

COMMANDS = {  # name -> module of roofline.cli; imported only when it runs, so that a cold start stays short
    "derive": "derive",
    "heads": "heads",
    "chips": "heads",
    "crossover": "crossover",
    "formula": "formula",
    "solve": "formula",
    "sweep": "sweep",
    "hardware": "catalog",
    "model": "catalog",
    "plot": "plot",
    "step": "step",
    "compare": "step",
    "split": "step",
    "codesign": "step",
    "kv": "kv",
    "app": "app",
}


class LazyGroup(click.Group):
    """A group whose commands are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from importlib import import_module

        if cmd_name not in COMMANDS:
            return None
        return getattr(import_module(f"roofline.cli.{COMMANDS[cmd_name]}"), cmd_name)  # type: ignore[no-any-return]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from roofline.errors import UnknownName

            raise UnknownName("command", args[0], COMMANDS, "roofline --help")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="roofline", message="%(prog)s %(version)s")
def cli() -> None:
    """What bounds LLM inference, on which chip, and what would move it.

    Symbolic FLOP and byte formulas, solved against each accelerator's ridge point. `roofline derive` is the main job.
    """


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(argv))


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; no traceback for a user's mistake."""
    try:
        result: Any = cli.main(
            args=list(argv) if argv is not None else None, prog_name="roofline", standalone_mode=False
        )
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except RooflineError as error:
        click.echo(f"roofline: error: {error}", err=True)
        return error.exit_code
    except (KeyboardInterrupt, click.exceptions.Abort):
        click.echo("roofline: interrupted, nothing written", err=True)
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
