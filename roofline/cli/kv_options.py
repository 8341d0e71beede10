"""Options of `roofline kv` that figures take too, and how what a user types becomes arguments."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import click

from roofline.cli.options import split
from roofline.errors import BadFile, BadValue

Command = Callable[..., Any]


def whole_number(name: str, text: str) -> int:
    """A whole number typed by a user, with or without thousands separators."""
    plain = text.strip().replace("_", "")
    if not plain.removeprefix("-").isdigit() or not plain.isascii() or len(plain) > 40:
        raise BadValue(name, text, "a whole number")
    return int(plain)


class Whole(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A whole number; the answer checks its range."""

    name = "number"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Read."""
        return whole_number(param.name, value) if isinstance(value, str) else value


def sized(name: str, text: str | None) -> float | None:
    """Bytes with their unit, GB or GiB."""
    from roofline.units import parse

    return None if text is None else parse(text, "B", name, zero=True)


def lengths_of(text: str | None) -> list[int] | None:
    """Request lengths: separated by commas, or @FILE with one or more on each line."""
    if text is None:
        return None
    if not text.startswith("@"):
        return [whole_number("lengths", part) for part in text.split(",") if part.strip()]
    try:
        with open(text[1:], encoding="utf-8") as file:
            return [
                whole_number(f"lengths, line {n}", part)
                for n, line in enumerate(file, 1)
                for part in line.replace(",", " ").split()
            ]
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(
            text[1:], "", getattr(error, "strerror", None) or error, "a text file of request lengths"
        ) from None


def pages_options(command: Command) -> Command:
    """Requests, pages, pool, and what the plain account leaves out."""
    options = (
        click.option("--lengths", metavar="N,N,...|@FILE", help="Tokens of each request."),
        click.option(
            "--preset", "preset_name", metavar="NAME", help="article, one-long or near-reserve, instead of --lengths."
        ),
        click.option(
            "--page-size",
            default="16",
            show_default=True,
            metavar="N[,N...]",
            help="Tokens per page; several make a sweep; all is 1, 2, 4, ... 512.",
        ),
        click.option("--reserve", type=Whole(), metavar="N", help="Slots that the naive way gives each request."),
        click.option("--pool", metavar="SIZE", help="Memory for pages, such as 2GiB."),
        click.option("--bytes-per-token", metavar="SIZE", help="Such as 128KiB; or --model."),
        click.option("--model", metavar="ID|PATH", help="Where the bytes per token come from."),
        click.option("--kv-dtype", default="auto", metavar="NAME", help="With --model."),
        click.option("--tp", type=Whole(), default=1, metavar="N", help="With --model."),
        click.option(
            "--shared-prefix", metavar="TOKENS:REQUESTS", help="A prefix that several requests have in common."
        ),
        click.option("--all-orders", is_flag=True, help="How the fit depends on the order (up to 8 requests)."),
        click.option(
            "--table-entry-bytes", type=Whole(), metavar="N", help="Count page tables, such as 4 bytes an entry."
        ),
        click.option(
            "--read-overhead-bytes", metavar="SIZE", help="Count scattered reads, such as 64B wasted at each page."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def pages_arguments(
    lengths: str | None,
    page_size: str,
    pool: str | None,
    bytes_per_token: str | None,
    shared_prefix: str | None,
    read_overhead_bytes: str | None,
    **options: Any,
) -> dict[str, Any]:
    """The arguments of `kv_pages`."""
    from roofline.memory.presets import PAGE_SIZES

    sizes = list(PAGE_SIZES) if page_size == "all" else [whole_number("page_size", text) for text in split([page_size])]
    prefix = None
    if shared_prefix is not None:
        tokens, colon, count = shared_prefix.partition(":")
        if not colon:
            raise BadValue("shared_prefix", shared_prefix, "TOKENS:REQUESTS, such as 64:3")
        prefix = whole_number("shared_prefix tokens", tokens), whole_number("shared_prefix requests", count)
    return options | {
        "lengths": lengths_of(lengths),
        "page_size": sizes,
        "pool_bytes": sized("pool", pool),
        "bytes_per_token": sized("bytes_per_token", bytes_per_token),
        "shared_prefix": prefix,
        "read_overhead": sized("read_overhead_bytes", read_overhead_bytes),
    }


def card_options(command: Command) -> Command:
    """What is cached, the card, and what the engine says it has."""
    options = (
        click.option("--model", metavar="ID|PATH", help="A built-in id or a config.json."),
        click.option(
            "--bytes-per-token", metavar="SIZE", help="Instead of a model: bytes per token on the rank, such as 128KiB."
        ),
        click.option("--layers", type=Whole(), metavar="N", help="Instead of a model: plain attention of this shape."),
        click.option("--kv-heads", type=Whole(), metavar="N", help="With --layers."),
        click.option("--head-dim", type=Whole(), metavar="N", help="With --layers."),
        click.option("--hardware", metavar="ID|FILE", help="The card; not needed with --available-gib or --total-gib."),
        click.option(
            "--engine", default="vllm", show_default=True, metavar="NAME", help="vllm, sglang, trtllm or llamacpp."
        ),
        click.option("--expert-parallel", is_flag=True, help="Routed experts spread over all TP x DP ranks."),
        click.option("--cp", type=Whole(), default=1, metavar="N", help="Context-parallel ranks (vllm)."),
        click.option("--index-dtype", default="fp8", metavar="NAME", help="Indexer keys: fp8, fp4 or bf16."),
        click.option("--state-dtype", default="auto", metavar="NAME", help="Recurrent states: float32 or bfloat16."),
        click.option(
            "--utilization",
            type=float,
            metavar="X",
            help="gpu_memory_utilization, mem_fraction_static or free_gpu_memory_fraction.",
        ),
        click.option("--total-gib", metavar="X", help="Memory of the card, as the engine prints it."),
        click.option("--weights-gib", metavar="X", help="Weights of a rank. Default: computed from the model."),
        click.option("--activation-gib", metavar="X", help="Activation peak of the profiling run."),
        click.option("--non-torch-gib", metavar="X", help="Memory outside the engine's allocator."),
        click.option(
            "--available-gib",
            metavar="X[,X...]",
            help="Printed size for caches, of one rank or of each: the smallest decides.",
        ),
        click.option("--free-gib", metavar="X", help="Printed free memory before the cache (trtllm)."),
        click.option("--blocks", type=Whole(), metavar="N", help="A printed number of blocks instead of a size."),
        click.option("--tokens", type=Whole(), metavar="N", help="A printed number of tokens instead of a size."),
        click.option("--block-size", type=Whole(), metavar="N", help="Tokens per block. Default: the engine's."),
        click.option(
            "--max-num-batched-tokens",
            type=Whole(),
            metavar="N",
            help="What windowed layers hold besides their window (vllm).",
        ),
        click.option("--prefix-caching", is_flag=True, help="Recurrent layers keep two states a request (vllm)."),
        click.option("--speculative-tokens", type=Whole(), default=0, metavar="N", help="Drafts per step."),
        click.option("--no-hybrid", is_flag=True, help="Windowed layers keep every token."),
        click.option("--slots", type=Whole(), default=1, metavar="N", help="Parallel sequences (llamacpp)."),
        click.option(
            "--v-dtype", metavar="NAME", help="Type of the values where it differs from the keys' (llamacpp)."
        ),
        click.option("--ubatch", type=Whole(), metavar="N", help="Micro-batch (llamacpp). Default 512."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def card_arguments(bytes_per_token: str | None, no_hybrid: bool, **options: Any) -> dict[str, Any]:
    """The fields of an engine's deployment."""
    if bytes_per_token is not None:
        options["bytes_per_token"] = sized("bytes_per_token", bytes_per_token)
    return options | {"hybrid": not no_hybrid}


def replay_options(command: Command) -> Command:
    """A trace, pools, and the pace of overlapping requests."""
    options = (
        click.argument("trace", metavar="FILE|sample"),
        click.option(
            "--blocks",
            default="unlimited",
            show_default=True,
            metavar="N[,N...]",
            help="Pool sizes in blocks; unlimited is one.",
        ),
        click.option(
            "--block-size",
            type=Whole(),
            default=512,
            show_default=True,
            metavar="N",
            help="Tokens per block of the trace.",
        ),
        click.option("--skip-bad", is_flag=True, help="Pass over bad lines and count them instead of stopping."),
        click.option(
            "--time-per-token", metavar="TIME", help="Let requests overlap: time of an output token, such as 20ms."
        ),
        click.option(
            "--prefill-per-token", metavar="TIME", help="With it: time of an input token that is no hit, such as 50us."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def replay_arguments(
    blocks: str, time_per_token: str | None, prefill_per_token: str | None, **options: Any
) -> dict[str, Any]:
    """The arguments of `kv_replay`."""
    from roofline.units import parse

    pace = [
        None if text is None else parse(text, "s", name, zero=True)
        for name, text in (("time_per_token", time_per_token), ("prefill_per_token", prefill_per_token))
    ]
    return options | {
        "blocks": [None if text == "unlimited" else whole_number("blocks", text) for text in split([blocks])],
        "time_per_token": pace[0],
        "prefill_per_token": pace[1] or 0.0,
    }


class Bar:
    """A progress bar on standard error that shows itself once a job has taken a second."""

    def __init__(self) -> None:
        self.started, self.at = time.monotonic(), 0
        self.shown: Any = None

    def __call__(self, fraction: float) -> None:
        if self.shown is None:
            if time.monotonic() - self.started < 1.0:
                return
            self.shown = click.progressbar(length=1000, label="replay", file=sys.stderr)
            self.shown.__enter__()
        step = int(1000 * fraction) - self.at
        if step > 0:
            self.shown.update(step)
            self.at += step

    def close(self) -> None:
        """End the line."""
        if self.shown is not None:
            self.shown.__exit__(None, None, None)
