"""What a first reading of the memory commands found wanting: silent options and slow hostile files.  Each test failed
before its fix."""

from __future__ import annotations

import gzip

import pytest

import roofline
from roofline.answers.kv import kv_capacity, kv_pages, kv_replay, kv_show
from roofline.cli import run
from roofline.errors import BadFile, BadValue

LLAMA = {"model": "llama-3.1-8b", "max_model_len": 8192}


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({**LLAMA, "hardware": "h100-sxm", "weights_gib": -3}, "weights_gib"),
        ({**LLAMA, "hardware": "h100-sxm", "activation_gib": "-1"}, "activation_gib"),
        ({**LLAMA, "tokens": 1000, "blocks": 10}, "tokens"),
        ({**LLAMA, "available_gib": "5", "blocks": 10}, "available_gib"),
        ({**LLAMA, "available_gib": "5", "cp": 2, "tp": 2}, "cp"),  # 8 heads on 2 ranks: nothing is held twice
        ({**LLAMA, "available_gib": "5", "cp": 0}, "cp"),
        ({"model": "deepseek-v3", "available_gib": "5", "cp": 8, "tp": 4}, "cp"),
    ],
)
def test_capacity_refuses(options, name):
    with pytest.raises(BadValue) as caught:
        kv_capacity(**options)
    assert caught.value.name == name


def test_context_parallel_ranks_split_copies_only():
    """A latent cache lies whole on all 8 ranks, which may split it; 8 key/value heads on 16 ranks lie twice."""
    one = kv_capacity("deepseek-v3", available_gib=5, tp=8, max_model_len=8192)
    eight = kv_capacity("deepseek-v3", available_gib=5, tp=8, cp=8, max_model_len=8192)
    assert eight["concurrency"] == pytest.approx(8 * one["concurrency"], rel=0.02)
    assert kv_capacity("llama-3.1-8b", available_gib=5, tp=16, cp=2, max_model_len=8192)["concurrency"] > 0


def test_options_of_another_engine_are_said():
    notes = kv_capacity(**LLAMA, available_gib=5, slots=4)["notes"]
    assert any("vllm has no slots" in note for note in notes)
    assert not any("has no" in note for note in kv_capacity(**LLAMA, available_gib=5, prefix_caching=True)["notes"])


def test_dtype_and_degree_without_a_model_are_refused():
    for extra in ({"kv_dtype": "fp8"}, {"tp": 4}):
        with pytest.raises(BadValue, match="a model beside it"):
            kv_pages([403], bytes_per_token=1024.0, **extra)


def test_page_notes_say_what_was_counted():
    """61 pages with 4 bytes an entry; what is counted is not left out."""
    plain = kv_pages(preset_name="article")["notes"]
    counted = kv_pages(preset_name="article", table_entry_bytes=4)["notes"]
    assert any("page tables (--table-entry-bytes" in n for n in plain)
    assert not any("--table-entry-bytes" in n for n in counted)
    assert any(n == "Page tables of 4 B an entry: 244 B." for n in counted)
    told = kv_pages(preset_name="article", model="llama-3.1-8b", kv_dtype="bf16")["notes"]
    assert any(n.startswith("131,072 B per token") for n in told)


def test_drafts_below_zero_are_refused():
    for model in ("llama-3.1-8b", "qwen3.5-122b-a10b"):
        with pytest.raises(BadValue, match="speculative_tokens"):
            kv_show(model, speculative_tokens=-1)


def test_a_bomb_of_line_ends_is_refused_at_once(tmp_path, capsys):
    """60 MB of line ends in 60 kB: passing over them line by line took minutes."""
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n" * 60_000_000))
    with pytest.raises(BadFile, match="line 100001: got over 100,000 blank lines"):
        kv_replay(path, [10])
    assert run(["kv", "replay", str(path)]) == 3
    assert "Traceback" not in capsys.readouterr().err


def test_a_pace_of_prefill_needs_the_pace_of_decode():
    with pytest.raises(BadValue, match="time_per_token"):
        roofline.kv_replay("sample", [100], prefill_per_token=1e-5)
