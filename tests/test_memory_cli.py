"""`roofline kv` as typed, and the figures of its answers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roofline.answers.kv import kv_pages, kv_replay
from roofline.answers.kv_curve import kv_curve
from roofline.cli.kv import Bar, kv
from roofline.errors import BadFile, BadValue, NoAnswer
from roofline.memory.presets import PAGE_SIZES

ARTICLE = ["pages", "--lengths", "403,96,241,30,176", "--page-size", "16", "--reserve", "512"]
POOL = ["--pool", "2GiB", "--bytes-per-token", "128KiB"]


def typed(capsys: pytest.CaptureFixture[str], *args: str) -> Any:
    """The JSON document of a command."""
    assert kv.main([*args, "--json"], standalone_mode=False) == 0
    return json.loads(capsys.readouterr().out)


def told(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """What a command prints."""
    assert kv.main(list(args), standalone_mode=False) == 0
    return capsys.readouterr().out


def refused(*args: str) -> str:
    """The error of a command."""
    with pytest.raises((BadValue, BadFile)) as error:
        kv.main(list(args), standalone_mode=False)
    return str(error.value)


def test_the_article_as_typed(capsys: pytest.CaptureFixture[str]) -> None:
    found = typed(capsys, *ARTICLE, *POOL, "--shared-prefix", "64:3", "--all-orders", "--table-entry-bytes", "4")
    assert (found["pages"], found["held_tokens"], found["slack_tokens"]) == (53, 848, 30)
    assert found["sharing"]["saved_tokens"] == 128
    assert (found["fit"]["paged_requests"], found["fit"]["reserved_requests"]) == (83, 32)
    assert found["fit"]["orders"] == {"82": 12, "83": 60, "84": 48}
    assert found["page_table_bytes"] == 244
    assert found["schema"] == "roofline/kv-pages/1"
    text = told(capsys, *ARTICLE, *POOL, "--explain")
    assert "320.00 MiB, 201.75 MiB of it wasted" in text
    assert "7 pages, 12 empty slots" in text
    assert "Left out: page tables" in text


def test_a_sweep_and_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--model", "llama-3.1-8b", "--kv-dtype", "bf16", "--pool", "2GiB", "--read-overhead-bytes", "64B"]
    found = typed(capsys, "pages", "--preset", "article", "--page-size", "all", *options)
    assert [row["fit_requests"] for row in found["sweep"]] == [85, 85, 85, 85, 83, 82, 75, 64, 53, 32]
    assert found["sweep"][4]["read_overhead_bytes"] == 61 * 64 * 64
    assert found["bytes_per_token"] == 131072


def test_lengths_from_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "lengths.txt"
    path.write_text("403 96\n241, 30\n176\n")
    assert typed(capsys, "pages", "--lengths", f"@{path}")["pages"] == 61
    path.write_text("403\nx\n")
    assert "lengths, line 2: got 'x'" in refused("pages", "--lengths", f"@{path}")
    assert "No such file" in refused("pages", "--lengths", "@/none/of/these")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["pages", "--lengths", "0"], "lengths[0]: got 0, expected a whole number from 1 to 10^18"),
        (["pages", "--lengths", "5,-3"], "lengths[1]: got -3"),
        (["pages", "--lengths", "1.5"], "lengths: got '1.5', expected a whole number"),
        (["pages", "--lengths", "5", "--page-size", "0"], "page_size: got 0"),
        (["pages", "--lengths", "5", "--pool", "2", "--bytes-per-token", "1KiB"], "pool: got '2'"),
        (["pages", "--lengths", "5", "--pool", "2GiB"], "bytes_per_token: got 'nothing'"),
        (["pages", "--lengths", "5", "--pool", "2Gb", "--bytes-per-token", "1KiB"], "1 GB or 1 GiB"),
        (["pages", "--lengths", "5,9", "--shared-prefix", "6:2"], "it is longer than a member"),
        (["pages", "--lengths", "5,9", "--shared-prefix", "6"], "TOKENS:REQUESTS"),
        (["pages"], "request lengths, or a preset"),
        (
            ["capacity", "--model", "llama-3.1-8b", "--available-gib", "10GB"],
            "a number of GiB (2^30 bytes), without unit",
        ),
        (["capacity", "--model", "llama-3.1-8b", "--available-gib", "nan"], "available_gib"),
        (["capacity", "--model", "llama-3.1-8b", "--available-gib", "1", "--tp", "x"], "tp: got 'x'"),
        (["replay", "sample", "--blocks", "many"], "blocks: got 'many'"),
        (["replay", "sample", "--time-per-token", "20"], "time_per_token: got '20'"),
        (["replay", "/none/of/these"], "No such file"),
    ],
)
def test_mistakes_are_named(args: list[str], said: str) -> None:
    assert said in refused(*args)


def test_huge_lengths_and_a_small_pool(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "pages", "--lengths", "1000000000000000000,5")
    assert "1,000,000,000,000,000,005 tokens" in text
    text = told(capsys, "pages", "--lengths", "5", "--pool", "15KiB", "--bytes-per-token", "1KiB")
    assert "0 requests fit" in text
    text = told(capsys, "pages", "--lengths", "5", "--pool", "0B", "--bytes-per-token", "1KiB")
    assert "0 requests fit" in text


def test_capacity_as_typed(capsys: pytest.CaptureFixture[str]) -> None:
    options = [
        "--model",
        "gemma-4-26b-a4b",
        "--kv-dtype",
        "fp8",
        "--available-gib",
        "51.62",
        "--max-model-len",
        "131072",
    ]
    found = typed(capsys, "capacity", *options)
    for key in ("bytes_per_token_per_rank", "blocks", "tokens", "concurrency", "starts", "missing_bytes"):
        assert key in found
    assert found["tokens_low"] <= 451040 <= found["tokens_high"]
    text = told(capsys, "capacity", *options, "--explain")
    assert "25 groups" not in text
    assert "5 window layers: blocks of 16 tokens, 193 a request" in text
    options = ["--layers", "48", "--kv-heads", "8", "--head-dim", "128", "--tp", "2", "--max-model-len", "131072"]
    text = told(capsys, "capacity", *options, "--available-gib", "8.69,7.465")
    assert "Does not start: 12.00 GiB needed for one request" in text
    assert "Longest context that fits: 81,536 tokens" in text


def test_show_as_typed(capsys: pytest.CaptureFixture[str]) -> None:
    found = typed(capsys, "show", "deepseek-v3.2", "--kv-dtype", "fp8_row", "--tp", "8", "--context", "1048576")
    assert found["bytes_per_token"] == 48068
    assert found["bytes_per_sequence"] == 48068 * 2**20
    assert "every rank keeps all of them" in told(capsys, "show", "deepseek-v3", "--tp", "8", "--explain")


def test_replay_as_typed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = typed(capsys, "replay", "sample", "--blocks", "100,unlimited")
    assert [row["blocks"] for row in found["rows"]] == [100, None]
    busy = typed(
        capsys, "replay", "sample", "--blocks", "80", "--time-per-token", "20ms", "--prefill-per-token", "50us"
    )
    assert busy["time_per_token_s"] == 0.02
    path = tmp_path / "t.jsonl"
    path.write_text('{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [1]}\nbad\n')
    assert "line 2" in refused("replay", str(path))
    text = told(capsys, "replay", str(path), "--skip-bad")
    assert "1 bad lines were skipped: line 2" in text


def test_the_bar_shows_itself_only_after_a_while(capsys: pytest.CaptureFixture[str]) -> None:
    bar = Bar()
    bar(0.5)
    assert bar.shown is None
    bar.started -= 2  # as if two seconds had passed
    bar(0.5)
    bar(1.0)
    bar.close()
    found = capsys.readouterr()
    assert bar.at == 1000
    assert found.out == ""


def test_written_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for suffix in (".json", ".md", ".csv", ".tex"):
        target = tmp_path / f"out{suffix}"
        assert kv.main([*ARTICLE, "-o", str(target)], standalone_mode=False) == 0
        assert "403" in target.read_text()


def test_cold_answers_load_no_heavy_package() -> None:
    code = (
        "import sys; from roofline.cli.kv import kv\n"
        "for a in (['pages', '--preset', 'article', '--pool', '2GiB', '--bytes-per-token', '1KiB'],\n"
        "          ['replay', 'sample'],\n"
        "          ['capacity', '--model', 'llama-3.1-8b', '--available-gib', '10.5'], ['show', 'llama-3.1-8b']):\n"
        "    kv.main(a, standalone_mode=False)\n"
        "sys.exit(len({'numpy', 'sympy', 'matplotlib', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def style() -> Iterator[None]:
    from roofline.figures.canvas import styled

    with styled("paper"):
        yield


@pytest.mark.usefixtures("style")
def test_figures_draw_what_the_answers_say() -> None:
    from matplotlib.figure import Figure

    from roofline.figures.memory import plot_concurrency, plot_hits, plot_pages, plot_waste

    shared = kv_pages(preset_name="article", shared_prefix=(64, 3))
    ax = plot_pages(json.loads(shared.to_json()))
    cells = [patch for patch in ax.patches if (patch.get_gid() or "").startswith("page/")]
    assert len(cells) == 160
    assert sum(patch.get_hatch() is not None for patch in cells) == 8
    assert isinstance(ax.figure, Figure)
    ax = plot_waste(kv_pages(preset_name="article", page_size=PAGE_SIZES))
    assert max(ax.lines[0].get_ydata()) == pytest.approx(63.05, abs=0.01)
    ax = plot_hits(kv_replay("sample", [50, 100, 400, None]))
    assert ax.roofline_left_out == []  # type: ignore[attr-defined]
    assert len(ax.lines[0].get_xdata()) == 3
    found = kv_curve("gpt-oss-120b", engine=("vllm", "llamacpp"), kv_dtype="bf16", available_gib=10)
    ax = plot_concurrency(found)
    assert [line["engine"] for line in found["lines"]] == ["vllm", "llamacpp", "ideal"]
    for line in found["lines"]:
        assert line["concurrency"] == sorted(line["concurrency"], reverse=True)
    for reserved, exact in zip(found["lines"][0]["concurrency"], found["lines"][2]["concurrency"], strict=True):
        assert reserved <= exact * (1 + 1e-9)
    with pytest.raises(NoAnswer, match="grid"):
        plot_pages({"grid": None})
    with pytest.raises(NoAnswer, match="pools of a given size"):
        plot_hits(kv_replay("sample"))
