"""`roofline plot pages|waste|hits|concurrency`: figures of the memory answers, with the options of `roofline kv`."""

from __future__ import annotations

from typing import Any

import click

from roofline.cli.figure import draw, figure_options
from roofline.cli.kv_options import (
    Whole,
    card_arguments,
    card_options,
    pages_arguments,
    pages_options,
    replay_arguments,
    replay_options,
    whole_number,
)
from roofline.cli.options import split

SHOWN = ("output", "width", "style", "as_json", "explain")


def _draw(kind: str, options: dict[str, Any], arguments: Any) -> int:
    figure = {name: options.pop(name) for name in SHOWN}
    return draw(kind, **figure, **arguments(**options))


@click.command("pages")
@pages_options
@figure_options
def pages_(**options: Any) -> int:
    """The page grid: a row a request, a cell a page, full, partly full, shared or reserved only.

    \b
    roofline plot pages --preset article --shared-prefix 64:3 -o pages.svg
    """
    return _draw("pages", options, pages_arguments)


@click.command("waste")
@pages_options
@figure_options
def waste_(**options: Any) -> int:
    """Empty slots against page size, beside those of a reservation.

    \b
    roofline plot waste --preset article --page-size all -o waste.pdf
    """
    if options["page_size"] == "16":  # the default of one page size has no curve
        options["page_size"] = "all"
    return _draw("waste", options, pages_arguments)


@click.command("hits")
@replay_options
@figure_options
def hits_(**options: Any) -> int:
    """Hit ratio of prefix caching against the size of the pool.

    \b
    roofline plot hits sample --blocks 50,100,200,400,unlimited -o hits.svg
    """
    return _draw("hits", options, replay_arguments)


@click.command("concurrency")
@card_options
@click.option("--tp", type=Whole(), default=1, show_default=True, metavar="N", help="Tensor-parallel ranks.")
@click.option(
    "--kv-dtype", default="auto", show_default=True, metavar="NAME[,NAME...]", help="bf16, fp8, ...; each has a line."
)
@click.option("--lengths", metavar="N,N,...", help="Tokens of a request.  [default: 1,024, 2,048, ... 1,048,576]")
@figure_options
def concurrency_(engine: str, kv_dtype: str, lengths: str | None, **options: Any) -> int:
    """Requests that fit at once against their length, as engines hold them and by exact bytes.

    \b
    roofline plot concurrency --model gpt-oss-120b --hardware h200-sxm --engine vllm,llamacpp -o concurrency.pdf
    """
    options |= {"engine": split([engine]), "kv_dtype": split([kv_dtype])}
    if lengths is not None:
        options["lengths"] = [whole_number("lengths", text) for text in split([lengths])]
    return _draw("concurrency", options, card_arguments)


MEMORY = (pages_, waste_, hits_, concurrency_)
