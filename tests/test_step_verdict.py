"""Verdicts and refusals of a step that a first reading found wanting: each test failed before its fix."""

from __future__ import annotations

import json

import pytest

import roofline
from roofline.answers.step_degree import link_binds
from roofline.cli import run
from roofline.errors import BadValue
from roofline.models import load_model
from roofline.plan import Deployment, Workload, plan

LLAMA = {"model": "llama-3.1-8b", "hardware": "h100-sxm"}
V32 = {"model": "deepseek-v3.2", "hardware": "h200-sxm"}


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({**LLAMA, "n_kernels": -1, "launch_gap": 1e-6}, "n_kernels"),
        ({**LLAMA, "n_kernels": float("nan")}, "n_kernels"),
        ({**V32, "kernel_heads": 64}, "kernel_heads"),  # 128 heads on the one rank
        ({**V32, "kernel_heads": 0}, "kernel_heads"),
        ({**V32, "kernel_heads": -5, "tp": 8}, "kernel_heads"),
        ({**LLAMA, "phase": "oneshot", "q_len": 128, "acceptance": 2}, "acceptance"),
    ],
)
def test_values_without_meaning_are_refused(options, name):
    with pytest.raises(BadValue) as caught:
        roofline.step(**options)
    assert caught.value.name == name


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({**LLAMA, "mode": "mqa"}, "mode changes nothing"),
        ({**V32, "mode": "mha"}, "mode changes nothing"),  # decode runs absorbed
        ({**LLAMA, "kernel_heads": 64}, "kernel_heads changes nothing"),
        ({**LLAMA, "image_tokens": 64}, "image_tokens changes nothing"),
    ],
)
def test_options_that_change_nothing_are_said(options, word):
    assert any(word in note for note in roofline.step(**options)["notes"])
    used = {k: options[k] for k in ("model", "hardware")}
    assert not any("changes nothing" in note for note in roofline.step(**used)["notes"])


def test_degrees_beside_deployments_are_refused(capsys):
    arguments = ["compare", "--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--deployment", "tp=2"]
    assert run([*arguments, "--deployment", "tp=4", "--tp", "8"]) == 2
    assert "either --deployment or single degrees" in capsys.readouterr().err


def test_what_the_reader_said_of_a_model_is_said_with_its_step(tmp_path):
    """Declared head_dim wins over hidden / heads and the answer says so, in `step` as in `model show`."""
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 8192,
        "vocab_size": 1000,
        "max_position_embeddings": 4096,
        "torch_dtype": "bfloat16",
        "tie_word_embeddings": False,
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    assert any("head_dim 64 is declared" in n for n in roofline.step(str(path), "h100-sxm")["notes"])


def test_model_show_counts_the_cache_as_the_checkpoint_asks(tmp_path):
    """ModelOpt's second file switches the cache to fp8 on "auto": 80 * 2 * 8 * 128 * 1 = 163,840 B a token, not twice
    that (vllm.cpp issue 415)."""
    config = {
        "model_type": "llama",
        "hidden_size": 8192,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "num_hidden_layers": 80,
        "intermediate_size": 28672,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        "torch_dtype": "bfloat16",
        "tie_word_embeddings": False,
    }
    second = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(second))
    shown = roofline.model(str(tmp_path))
    assert (shown["kv"]["dtype"], shown["kv"]["bytes_per_token"]) == ("fp8", 163840)
    assert shown["params"]["total"] == sum(shown["params"]["by_class"].values()) == 70553706496
    assert shown["weights"]["bytes"] == sum(shown["weights"]["by_class"].values())
    assert roofline.model("deepseek-v3")["params"]["mtp"] == 11610068224  # case C02, without the shared embedding


def test_parts_of_the_cache_add_up_in_model_show():
    """gpt-oss-120b: 18 full layers grow, 18 windows of 128 tokens stay: 2 * 8 * 64 * 2 = 2,048 B a token and layer."""
    kinds = {p["kind"]: p for p in roofline.model("gpt-oss-120b")["kv"]["by_kind"]}
    assert kinds["gqa"]["slope"] == 18 * 2048
    assert kinds["window"]["fixed"] == 18 * 2048 * 128


def test_a_time_limit_counts_every_batch_in_flight():
    """Two stages and eight batches in flight: the next token of a sequence waits for eight turns of the slowest stage,
    so the largest batch that keeps a limit is the one whose answer keeps it."""
    options = {**LLAMA, "context": 4096, "pp": 2, "micro_batches": 8}
    most = roofline.step(**options, slo=0.05)["slo"]["max_batch"]
    assert roofline.step(**options, batch=most)["tpot_s"] <= 0.05
    assert roofline.step(**options, batch=most + 1)["tpot_s"] > 0.05


def test_a_given_number_of_launches_is_shared_by_the_stages():
    """Ten gaps of 1 ms in all: both stages together idle 10 ms, as the whole step does."""
    options = {**LLAMA, "pp": 2, "context": 4096}
    plain = roofline.step(**options)
    gaps = roofline.step(**options, n_kernels=10, launch_gap=1e-3)
    assert gaps["time_lower_s"] - plain["time_lower_s"] == pytest.approx(0.01)
    added = [b - a for a, b in zip(plain["pipeline"]["stages_s"], gaps["pipeline"]["stages_s"], strict=True)]
    assert sum(added) == pytest.approx(0.01, rel=0.01)  # the send between stages is in one of them only


def test_prompts_of_a_mixed_step_take_room_from_the_largest_batch():
    """At the largest batch everything fits, with one more it does not."""
    options = {**LLAMA, "phase": "mixed", "context": 4096, "q_len": 1024, "prefill_batch": 8, "prefill_context": 8192}
    most = roofline.step(**options)["memory"]["max_batch"]
    assert roofline.step(**options, batch=most)["fits"]
    assert not roofline.step(**options, batch=most + 1)["fits"]


def test_bytes_in_symbols_are_whole_bytes():
    """DeepSeek-V3.2's first projection: 2,112 x 7,168 fp8 elements and a float32 scale for each block of 128 x 128:
    15,138,816 + 4 * 17 * 56 bytes, not a decimal close to it."""
    cost = plan(load_model("deepseek-v3.2")).cost(batch=0, q_len=0, context=0)
    first = next(k for k in cost.kernels if k.name == "query and KV latents")
    assert first.bytes == 15_138_816 + 4 * 17 * 56


def test_degree_at_which_the_links_bind():
    """The first degree in the map whose collectives outlast its kernels; with a boundless link there is none."""
    values = {"q_len": 16384, "link_bandwidth": 50e9}
    found = link_binds("llama-3.1-8b", "h100-sxm", phase="oneshot", values=values)
    (root,) = found["roots"]
    for row in found["rows"]:
        step = plan(load_model("llama-3.1-8b"), Workload("oneshot", q_len=16384), Deployment(tp=row["tp"]))
        sent = step.totals()["link_bytes"]
        assert row["link_s"] == pytest.approx(sent / 50e9)
        assert row["binds"] == (row["link_s"] > row["compute_lower_s"])
        assert row["binds"] == (row["tp"] >= root["value"])
    none = link_binds("llama-3.1-8b", "h100-sxm", phase="oneshot", values={**values, "link_bandwidth": 1e18})
    assert none["roots"] == []
    assert "longer at every degree" in none.no_answer
    with pytest.raises(BadValue, match="heads"):
        link_binds("llama-3.1-8b", "h100-sxm", values={"heads": 3})


def test_solve_tp_of_a_model_asks_for_its_links(capsys):
    arguments = ["solve", "tp", "--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--phase", "oneshot"]
    assert run([*arguments, "--set", "q_len=16384", "--set", "link_bandwidth=50e9"]) == 0
    assert "h100-sxm: the links bind from TP 2 on." in capsys.readouterr().out
    assert run([*arguments, "--set", "q_len=16384", "--set", "link_bandwidth=1e18"]) == 1
    assert run(["solve", "tp", "--model", "llama-3.1-8b"]) == 2
