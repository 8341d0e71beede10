"""`roofline step`, `compare`, `split` and `codesign`: what they answer, and the mistakes of others that they must not
repeat."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from roofline.accelerators import adhoc
from roofline.answers.codesign import codesign, formulas
from roofline.answers.compare import compare, degrees
from roofline.answers.split import split
from roofline.answers.step import step
from roofline.cli import step as commands
from roofline.errors import BadValue, NoAnswer, RooflineError, UnknownName
from roofline.models import load_model

V32 = {"batch": 128, "context": 8192, "dp": 8, "ep": 8}


def run(command: str, *words: str) -> Any:
    return CliRunner().invoke(getattr(commands, command), words, standalone_mode=False)


def test_the_document_holds_what_it_promises() -> None:
    answer = step("deepseek-v3.2", "h200-sxm", **V32)
    for key in (
        "kernels",
        "totals",
        "time_lower_s",
        "time_upper_s",
        "bound",
        "tokens_per_s",
        "tpot_s",
        "fits",
        "memory",
        "elasticities",
        "batch_at_ridge",
    ):
        assert key in answer, key
    assert answer["schema"] == "roofline/step/1"
    assert "ttft_s" in step("deepseek-v3.2", "h200-sxm", phase="oneshot", q_len=1000)
    assert json.loads(answer.to_json())["roof"] == "datasheet"


@pytest.mark.parametrize(
    "arguments",
    [
        V32,
        {"phase": "oneshot", "q_len": 4096, "tp": 8},
        {"phase": "mixed", "batch": 64, "context": 4096, "q_len": 512, "tp": 8},
        {"phase": "chunked", "q_len": 2048, "context": 30_000, "tp": 4, "pp": 2},
    ],
)
def test_totals_are_the_sums_of_the_rows(arguments: dict[str, Any]) -> None:
    answer = step("deepseek-v3.2", "h200-sxm", **arguments)
    for quantity in ("flops", "vector_flops", "exps", "bytes", "link_bytes"):
        assert answer["totals"][quantity] == pytest.approx(sum(r[quantity] for r in answer["kernels"]))
        if quantity in ("flops", "bytes", "link_bytes"):
            assert answer["totals"][quantity] == pytest.approx(sum(p[quantity] for p in answer["parts"].values()))
    compute = sum(r["time_lower_s"] for r in answer["kernels"] if r["bound"] != "link")
    link = sum(r["time_lower_s"] for r in answer["kernels"] if r["bound"] == "link")
    assert answer["time_lower_s"] == pytest.approx(max(compute, link))
    assert answer["time_upper_s"] >= compute + link
    assert sum(r["share"] for r in answer["kernels"] if r["bound"] != "link") == pytest.approx(1)


def test_elasticities_are_what_one_percent_does() -> None:
    """Percent of time saved by one percent more of a rate: against the step with that rate raised by 0.001 %."""
    part = adhoc(peak=9.9e14, bandwidth=3.35e12)
    answer = step("llama-3.1-8b", part, batch=800, context=64)
    for name, faster in (
        ("bandwidth", adhoc(peak=9.9e14, bandwidth=3.35e12 * 1.00001)),
        ("peak", adhoc(peak=9.9e14 * 1.00001, bandwidth=3.35e12)),
    ):
        saved = 1 - step("llama-3.1-8b", faster, batch=800, context=64)["time_lower_s"] / answer["time_lower_s"]
        assert saved / 1e-5 == pytest.approx(answer["elasticities"][name], abs=1e-3)
    assert 0 < answer["elasticities"]["bandwidth"] < answer["elasticities"]["peak"]
    assert answer["helps_most"] == "peak"


def test_batch_at_the_ridge_counts_the_cache() -> None:
    """Weights alone: a batch near the ridge, 295 on H100.  With 4,096 tokens of cache a sequence, bytes grow with the
    batch and
    Llama-3.1-8B never gets there (its attention has 4 FLOP/B)."""
    part = adhoc(peak=989.4e12, bandwidth=3.35e12)
    none = step("llama-3.1-8b", part, w_act=0)["batch_at_ridge"]
    assert none == pytest.approx(989.4 / 3.35, abs=2)
    assert step("llama-3.1-8b", part, context=4096)["batch_at_ridge"] is None
    few = step("llama-3.1-8b", part, context=64)["batch_at_ridge"]
    assert few > none


def test_the_ridge_batch_is_tight() -> None:
    found = step("deepseek-v3.2", "h200-sxm", **V32)["batch_at_ridge"]

    def legs(batch: int) -> tuple[float, float]:
        kernels = step("deepseek-v3.2", "h200-sxm", **{**V32, "batch": batch})["kernels"]
        rates = {"fp8": 1978.9e12, "bf16": 989.4e12}
        return sum(k["flops"] / rates[k["precision"]] for k in kernels if k["flops"]), sum(
            k["bytes"] for k in kernels
        ) / 4.8e12

    assert legs(found)[0] >= legs(found)[1]
    assert legs(found - 8)[0] < legs(found - 8)[1]


def test_an_slo_gives_the_largest_batch_that_keeps_it() -> None:
    answer = step("llama-3.1-8b", "h100-sxm", context=2000, slo=0.02)
    most = answer["slo"]["max_batch"]
    times = [step("llama-3.1-8b", "h100-sxm", context=2000, batch=b)["tpot_s"] for b in (most, most + 1)]
    assert times[0] <= 0.02 < times[1]
    assert step("llama-3.1-8b", "h100-sxm", slo=1e-6)["slo"]["max_batch"] == 0


def test_launch_gaps_are_a_leg_of_their_own() -> None:
    """291 kernels of Llama-3.1-8B (9 a layer and 3 at the ends) with 5 us each; a persistent kernel pays once."""
    plain = step("llama-3.1-8b", "h100-sxm")
    assert plain["totals"]["n_kernels"] == 32 * 8 + 3
    gaps = step("llama-3.1-8b", "h100-sxm", launch_gap=5e-6)
    assert gaps["time_lower_s"] - plain["time_lower_s"] == pytest.approx(259 * 5e-6)
    once = step("llama-3.1-8b", "h100-sxm", launch_gap=5e-6, n_kernels=1)
    assert once["time_lower_s"] - plain["time_lower_s"] == pytest.approx(5e-6)


@pytest.mark.parametrize(("stages", "chunks", "bubble"), [(4, 4, 0.4286), (4, 16, 0.1579), (1, 1, 0.0)])
def test_pipeline_bubble(stages: int, chunks: int, bubble: float) -> None:
    """(P - 1)/(P - 1 + M): the figures of SGLang's chunked-pipeline-prefill post (facts of lmsys.org, E01)."""
    answer = step("llama-3.1-8b", "h100-sxm", phase="chunked", q_len=512, context=1024, pp=stages, micro_batches=chunks)
    assert answer["pipeline"]["bubble"] == pytest.approx(bubble, abs=5e-5)
    slowest = max(answer["pipeline"]["stages_s"])
    assert answer["ttft_s"] == pytest.approx(answer["time_lower_s"] + (chunks - 1) * slowest)


def test_pipeline_in_decode_trades_latency_for_throughput() -> None:
    one = step("llama-3.1-70b", "h100-sxm", batch=8, context=1000, tp=4)
    two = step("llama-3.1-70b", "h100-sxm", batch=8, context=1000, tp=4, pp=2, micro_batches=2)
    assert two["tpot_s"] >= one["tpot_s"]
    assert two["tokens_per_s"] > 1.8 * one["tokens_per_s"]
    assert two["memory"]["weights_bytes"] < 0.55 * one["memory"]["weights_bytes"]


def test_speculative_decode_gains_what_is_accepted() -> None:
    """GLM-5.2's reference acceptance at three drafts is 2.99 tokens a step (InferenceX AgentX)."""
    most = step("glm-5.2", "b200-sxm", batch=32, context=8000, drafts=3, tp=8)
    real = step("glm-5.2", "b200-sxm", batch=32, context=8000, drafts=3, acceptance=2.99, tp=8)
    assert most["acceptance"] == 4
    assert real["tpot_s"] == pytest.approx(most["tpot_s"] * 4 / 2.99)
    with pytest.raises(BadValue, match="acceptance"):
        step("glm-5.2", "b200-sxm", drafts=3, acceptance=5)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"model": "deepseek-v9"}, UnknownName, "deepseek-v3"),
        ({"hardware": "h900"}, UnknownName, "accelerator"),
        ({"hardware": "h100-sxm,h200-sxm"}, BadValue, "one part"),
        ({"roof": "gold"}, UnknownName, "roof"),
        ({"phase": "train"}, UnknownName, "decode"),
        ({"phase": "oneshot"}, BadValue, "q_len"),
        ({"tp": 7}, BadValue, "1, 2, 4, 8"),
        ({"batch": -4}, BadValue, "batch"),
        ({"launch_gap": -1}, BadValue, "launch_gap"),
        ({"hardware": adhoc(ridge=128)}, NoAnswer, "no time"),
        ({"hardware": "h100-sxm", "tp": 8, "dp": 32, "model": "deepseek-v3", "ep": 7}, BadValue, "ep"),
    ],
)
def test_a_mistake_is_told_by_name(arguments: dict[str, Any], error: type[RooflineError], words: str) -> None:
    given = {"model": "llama-3.1-8b", "hardware": "h100-sxm", **arguments}
    with pytest.raises(error, match=words):
        step(given.pop("model"), given.pop("hardware"), **given)


def test_beyond_the_positions_it_warns() -> None:
    notes = step("llama-3.1-8b", "h100-sxm", context=200_000).notes
    assert any("max_position_embeddings 131072" in note for note in notes)


def test_collectives_without_a_sourced_link_are_left_out_and_said() -> None:
    answer = step("llama-3.1-8b", "rtx-4090", tp=2)
    assert answer["link_s"] == 0
    assert any("--link-bandwidth" in note for note in answer.notes)
    assert step("llama-3.1-8b", "rtx-4090", tp=2, link_bandwidth=25e9)["link_s"] > 0


def test_a_long_link_binds() -> None:
    """At 1 GB/s a device, the collectives of TP 8 take longer than everything else, and the verdict says so."""
    answer = step("llama-3.1-70b", "h100-sxm", batch=64, context=100, tp=8, link_bandwidth=1e9)
    assert answer["bound"] == "link"
    assert answer["helps_most"] == "link_bandwidth"
    assert answer["time_lower_s"] == answer["link_s"]


def test_compare_sets_chips_models_and_deployments_side_by_side() -> None:
    answer = compare(
        ["deepseek-v3.2", "kimi-k2"],
        "h200-sxm,b200-sxm",
        [{"tp": 8}, {"dp": 8, "ep": 8}, {"tp": 3}],
        batch=64,
        context=8192,
    )
    assert len(answer.rows) == 12
    assert answer.rows[0]["speedup"] == 1
    assert all("tp: got 3" in r["refused"] for r in answer.rows if r["deployment"] == "tp=3")
    by = {(r["model"], r["hardware"], r["deployment"]): r for r in answer.rows}
    one = step("kimi-k2", "b200-sxm", batch=64, context=8192, tp=8)
    assert by["kimi-k2", "b200-sxm", "tp=8"]["time_lower_s"] == one["time_lower_s"]
    assert by["deepseek-v3.2", "b200-sxm", "tp=8"]["speedup"] > 1.5


def test_compare_needs_something_to_compare() -> None:
    with pytest.raises(BadValue, match="two or more"):
        compare("llama-3.1-8b", "h100-sxm", batch=1)
    refused = compare("llama-3.1-8b", "h100-sxm", [{"tp": 3}, {"tp": 5}])
    assert "refused" in refused.no_answer
    for text in ("tp", "tp=x", "xx=2", "tp=2,tp=4", ""):
        with pytest.raises(BadValue, match="deployment"):
            degrees(text)


def test_split_ratio_and_link() -> None:
    """The least link is cache bytes over prefill time (SemiAnalysis on Kimi K3: KV throughput); equal request rates
    give the ratio."""
    answer = split("llama-3.1-8b", "h100-sxm", "h200-sxm", prompt=8192, output=512, batch=32, transfer_bandwidth=25e9)
    assert answer["kv_bytes_per_request"] == 8192 * 131_072
    first, second = answer.rows
    assert answer["least_bandwidth_byte_per_s"] == pytest.approx(8192 * 131_072 / first["time_lower_s"])
    assert second["busy_s_per_request"] == pytest.approx(512 * second["time_lower_s"] / 32)
    assert answer["gpu_ratio_prefill_to_decode"] == pytest.approx(
        first["busy_s_per_request"] / second["busy_s_per_request"]
    )
    assert answer["transfer_s"] == pytest.approx(8192 * 131_072 / 25e9)
    with pytest.raises(BadValue, match="prompt"):
        split("llama-3.1-8b", "h100-sxm", "h200-sxm", prompt=0, output=1)


def test_codesign_finds_the_published_pair() -> None:
    """GQLA (arXiv:2605.15250): 128 heads absorbed with one query on H100's ridge, 8 groups with two queries on H20's:
    the
    intensities are 0.82 and 1.05 of the ridges (156 heads would sit on H100's exactly)."""
    answer = codesign("h100-sxm,h20", heads=(128,), best=99)
    row = next(r for r in answer.rows if r["kv_heads"] == 8)
    assert (row["ways"]["h100-sxm"]["path"], row["ways"]["h100-sxm"]["q_len"]) == ("absorbed", 1)
    assert (row["ways"]["h20"]["path"], row["ways"]["h20"]["q_len"]) == ("grouped", 2)
    assert 2 ** row["ways"]["h20"]["distance"] == pytest.approx(163_840 / 4224 / 37, rel=1e-6)
    assert 2 ** row["ways"]["h100-sxm"]["distance"] == pytest.approx(128 * 17 / 9 / (989.4 / 3.35), rel=1e-6)
    with pytest.raises(BadValue, match="two or more"):
        codesign("h100-sxm")


def test_codesign_in_closed_form() -> None:
    """The symbolic forms give the numbers, and put back they sit on both ridges."""
    from roofline.symbols import sym

    found, forms = codesign("h100-sxm,h20")["closed_form"], formulas()
    shape = {sym.latent: 512, sym.rope: 64, sym.nope: 128, sym.value: 128, sym.w_kv: 2}
    heads = float(forms["heads"].subs({**shape, sym.q_len: 1, sym.ridge: 989.4 / 3.35}))
    groups = float(forms["kv_heads"].subs({**shape, sym.q_len: 2, sym.ridge: 37, sym.heads: heads}))
    assert (heads, groups) == (pytest.approx(found["heads"]), pytest.approx(found["kv_heads"]))
    assert 2 * heads * 2 * 320 / (2 * (groups * 256 + 64)) == pytest.approx(37)


def test_command_line() -> None:
    done = run(
        "step",
        "--model",
        "deepseek-v3.2",
        "--hardware",
        "h200-sxm",
        "--batch",
        "128",
        "--context",
        "8192",
        "--dp",
        "8",
        "--ep",
        "8",
        "--json",
    )
    assert done.return_value == 0, done.output
    assert json.loads(done.output)["time_lower_s"] == step("deepseek-v3.2", "h200-sxm", **V32)["time_lower_s"]
    table = run(
        "compare", "--model", "llama-3.1-8b", "--hardware", "h100-sxm,h200-sxm", "--batch", "4", "--slo", "50ms"
    )
    assert "speed-up" in table.output
    words = (
        "--model",
        "llama-3.1-8b",
        "--prefill-hardware",
        "h100-sxm",
        "--decode-hardware",
        "h200-sxm",
        "--prompt",
        "1000",
        "--output-tokens",
        "100",
    )
    assert (
        "prefill GPUs for each decode GPU"
        in run("split", *words, "--transfer-bandwidth", "50GB/s", "--decode-deployment", "tp=2").output
    )
    assert "groups" in run("codesign", "--hardware", "b200-sxm,mi355x").output
    assert "Uses of kernels" in run("step", "--model", "glm-5.3-flash", "--hardware", "b200-sxm", "--explain").output


@pytest.mark.parametrize(
    "words",
    [
        ("--tp", "3"),
        ("--slo", "50"),
        ("--phase", "mixed"),
        ("--batch", "nan"),
        ("--kv-dtype", "fp3"),
        ("--peak", "1PFLOP/s"),
    ],
)
def test_command_line_refuses(words: tuple[str, ...]) -> None:
    done = run("step", "--model", "llama-3.1-8b", "--hardware", "h100-sxm", *words)
    assert isinstance(done.exception, RooflineError), done


def test_a_cold_answer_loads_nothing_heavy() -> None:
    code = (
        "import sys; from roofline.answers.step import step;"
        "step('deepseek-v3.2', 'h200-sxm', batch=8, tp=8).to_json();"
        "print([n for n in ('sympy', 'numpy', 'pydantic', 'matplotlib', 'yaml') if n in sys.modules])"
    )
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_a_path_of_a_config_works_as_an_id_does(tmp_path: Path) -> None:
    shape = {
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 100,
        "torch_dtype": "bfloat16",
        "tie_word_embeddings": False,
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(shape), encoding="utf-8")
    answer = step(str(path), "h100-sxm", context=10)
    params = load_model(str(path)).params
    assert answer["totals"]["flops"] == 2 * (params.active - 5 * 64) + 2 * 4 * 4 * 16 * 11


@pytest.mark.parametrize("pp", [1, 2, 3, 4])
@pytest.mark.parametrize("model", ["nemotron-h-56b", "llama-3.1-70b"])
def test_the_largest_batch_fits_every_stage_of_a_pipeline_and_one_more_does_not(model: str, pp: int) -> None:
    """The stage that is fullest at this batch need not be the first to be full: stages differ in caches and weights."""
    asked = {"model": model, "hardware": "h100-sxm", "context": 65536, "pp": pp, "tp": 2}
    most = step(**asked, batch=1)["memory"]["max_batch"]
    if most == 0:
        assert not step(**asked, batch=1)["fits"]
        return
    assert [step(**asked, batch=batch)["fits"] for batch in (most, most + 1)] == [True, False]
    assert step(**asked, batch=most)["memory"]["max_batch"] == most
