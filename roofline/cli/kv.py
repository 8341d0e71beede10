"""`roofline kv`: show, pages, capacity, replay."""

from __future__ import annotations

from typing import Any

import click

from roofline.cli.kv_options import (
    Bar,
    Whole,
    card_arguments,
    card_options,
    pages_arguments,
    pages_options,
    replay_arguments,
    replay_options,
    whole_number,
)
from roofline.cli.options import answer_options, emit, split


@click.group()
def kv() -> None:
    """KV-cache memory: layouts, paging, capacity as engines compute it, replay of traces."""


@kv.command("show")
@click.argument("model", metavar="ID|PATH")
@click.option(
    "--kv-dtype",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="bf16, fp16, fp8, fp8_row, q8_0, ...; auto follows the checkpoint.",
)
@click.option("--tp", type=Whole(), default=1, show_default=True, metavar="N", help="Tensor-parallel ranks.")
@click.option("--context", type=Whole(), default=32768, show_default=True, metavar="N", help="Tokens of a sequence.")
@click.option("--requests", type=Whole(), default=1, show_default=True, metavar="N", help="Sequences.")
@click.option("--index-dtype", default="fp8", show_default=True, metavar="NAME", help="Indexer keys: fp8, fp4 or bf16.")
@click.option(
    "--state-dtype", default="auto", show_default=True, metavar="NAME", help="Recurrent states: float32 or bfloat16."
)
@click.option(
    "--speculative-tokens", type=Whole(), default=0, metavar="N", help="Drafts per step, which widen recurrent states."
)
@answer_options
def kv_show(model: str, as_json: bool, output: str | None, explain: bool, **options: Any) -> int:
    """What a model caches, by kind of layer.

    \b
    roofline kv show deepseek-v3.2 --kv-dtype fp8_row --context 131072
    """
    from roofline.answers.kv import kv_show as answer

    return emit(answer(model, **options), as_json, output, explain)


@kv.command("pages")
@pages_options
@answer_options
def kv_pages(as_json: bool, output: str | None, explain: bool, **options: Any) -> int:
    """Reserving against paging for a list of request lengths.

    \b
    roofline kv pages --lengths 403,96,241,30,176 --page-size 16 --reserve 512 --pool 2GiB --bytes-per-token 128KiB
    roofline kv pages --preset article --page-size all --pool 2GiB --model llama-3.1-8b --kv-dtype bf16
    """
    from roofline.answers.kv import kv_pages as answer

    return emit(answer(**pages_arguments(**options)), as_json, output, explain)


@kv.command("capacity")
@card_options
@click.option(
    "--tp", default="1", show_default=True, metavar="N[,N...]", help="Tensor-parallel ranks; each makes a row."
)
@click.option("--dp", type=Whole(), default=1, show_default=True, metavar="N", help="Replicas.")
@click.option("--gpus", type=Whole(), metavar="N", help="All layouts TP x DP of so many GPUs.")
@click.option(
    "--kv-dtype",
    default="auto",
    show_default=True,
    metavar="NAME[,NAME...]",
    help="bf16, fp8, fp8_row, q8_0, ...; each makes a row.",
)
@click.option("--max-model-len", type=Whole(), metavar="N", help="Tokens of a request. Default: the model's own.")
@click.option("--requests", type=Whole(), default=1, metavar="N", help="Requests for the inverse questions.")
@answer_options
def kv_capacity(tp: str, kv_dtype: str, as_json: bool, output: str | None, explain: bool, **options: Any) -> int:
    """How many tokens and requests fit, as an engine counts them, and whether it starts.

    \b
    roofline kv capacity --model llama-3.1-8b --hardware h100-sxm --max-model-len 8192 --activation-gib 4.76
    roofline kv capacity --model gemma-4-26b-a4b --kv-dtype fp8 --available-gib 51.62 --max-model-len 131072
    roofline kv capacity --model deepseek-v3.2 --kv-dtype fp8_row --hardware h200-sxm --gpus 8 --expert-parallel
    """
    from roofline.answers.kv import kv_capacity as answer

    degrees = [whole_number("tp", text) for text in split([tp])]
    found = answer(tp=degrees, kv_dtype=split([kv_dtype]), **card_arguments(**options))
    return emit(found, as_json, output, explain)


@kv.command("replay")
@replay_options
@answer_options
def kv_replay(as_json: bool, output: str | None, explain: bool, **options: Any) -> int:
    """Hit ratio of prefix caching by pool size, from a trace of requests.

    \b
    roofline kv replay sample --blocks 100,400,unlimited
    roofline kv replay conversation_trace.jsonl.gz --blocks 10000 --time-per-token 20ms
    """
    from roofline.answers.kv import kv_replay as answer

    given, bar = replay_arguments(**options), Bar()
    try:
        found = answer(**given, progress=bar)
    finally:
        bar.close()
    return emit(found, as_json, output, explain)
