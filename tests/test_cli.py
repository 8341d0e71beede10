"""The command line as a user meets it: exit codes, messages, documents.  In process; one subprocess checks "
"the entry."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from roofline.cli import run


def answered(capsys: pytest.CaptureFixture[str], *argv: str) -> dict:
    """The JSON document of a command that must succeed."""
    code = run([*argv, "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    document = json.loads(captured.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert document["schema"].startswith("roofline/")
    assert document["schema"].endswith("/1")
    assert captured.out == json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    return document


def failed(capsys: pytest.CaptureFixture[str], code: int, *argv: str) -> str:
    """The message of a command that must fail with `code`, one line, no traceback."""
    assert run(argv) == code
    message = capsys.readouterr().err
    assert "Traceback" not in message
    return message


# Heads on the ridge: design pins H1 and H2.  FlashMLA docs/20250422-new-kernel-deep-dive.md (865 TFLOP/s over
# 3.35 TB/s) with the exact quotient (2d + r)/(d + r) for the rounded 2; MTT S4000: 98.304 TFLOP/s over 0.768 TB/s.
@pytest.mark.parametrize(
    ("hardware", "roof", "exact", "heads", "bound"),
    [
        ("h800-sxm", "flashmla", 136.70, 128, "memory"),
        ("mtt-s4000", "datasheet", 67.76, 64, "memory"),
        ("h200-sxm", "datasheet", 109.13, 128, "compute"),
        ("b200-sxm", "datasheet", 154.70, 128, "memory"),
        ("b200-sxm", "inferencex", 148.90, 128, "memory"),
    ],
)
def test_heads_on_the_ridge(capsys, hardware, roof, exact, heads, bound):
    (row,) = answered(capsys, "heads", "--hardware", hardware, "--roof", roof)["rows"]
    assert row["heads_exact"] == pytest.approx(exact, abs=0.01)
    assert (row["heads"], row["bound"]) == (heads, bound)
    assert row["peak_flop_per_s"] / row["bandwidth_byte_per_s"] == row["ridge_flop_per_byte"]


def test_heads_covers_every_part_or_says_why_not(capsys):
    document = answered(capsys, "heads")
    from roofline.accelerators import load_catalog

    told = {r["hardware"] for r in document["rows"]} | {s["hardware"] for s in document["skipped"]}
    assert told == set(load_catalog(environ={}))
    assert all(s["reason"] for s in document["skipped"])
    assert {r["precision"] for r in document["rows"]} == {"bf16", "fp16"}


def test_fp8_row_moves_the_heads(capsys):
    """656-byte rows (FlashMLA README): 212.29 FLOP/B at 64 heads, design pin I4."""
    (row,) = answered(capsys, "heads", "--ridge", "212.29", "--kv-row-bytes", "656")["rows"]
    assert row["heads"] == 64
    assert row["intensity_flop_per_byte"] == pytest.approx(212.29, abs=0.005)
    assert row["peak_flop_per_s"] is None


def test_chips_are_sorted_by_distance(capsys):
    rows = answered(capsys, "chips", "--heads", "64")["rows"]
    distances = [abs(r["distance_log2"]) for r in rows]
    assert distances == sorted(distances)
    assert rows[0]["hardware"] == "ascend-950dt"  # facts: the closest ridge to GLM-5's 120.9 FLOP/B is 121.5


# One-shot crossings: design pins X1, X1b, X3 (vLLM pull request 48770: table limits 4,096 8,192 16,384 32,768).
@pytest.mark.parametrize(
    ("argv", "values"),
    [
        (["--model", "deepseek-v3.2,glm-5"], [12813, 7518]),
        (["--model", "deepseek-v3.2,glm-5", "--no-skip"], [13925.4, 8703]),
        (["--model", "deepseek-v3.2", "--tp", "2,4,8", "--kernel-heads", "128"], [26788, 54662, 110377]),
        (["--model", "deepseek-v3.2", "--tp", "1,2,4,8", "--engine", "vllm-flashmla-sm100", "--rate-ratio", "0.47"],
         [5274, 11971, 25114, 51318]),
        (["--model", "deepseek-v3.2", "--phase", "chunked", "--context", "4096"], [662, 5072]),
        (["--model", "deepseek-v3", "--phase", "chunked", "--context", "8192"], [168.9]),
        (["--model", "glm-5", "--topk", "none", "--phase", "chunked", "--context", "1000000000"], [398.22]),
        (["--model", "glm-5.3-flash", "--topk", "none", "--phase", "chunked", "--context", "1000000000"], [512]),
        (["--model", "deepseek-v3.2", "--between", "indexer", "--phase", "decode"], [34816]),
        (["--model", "deepseek-v3.2", "--between", "indexer"], [68592]),
        (["--model", "deepseek-v3.2", "--between", "indexer", "--phase", "decode", "--tp", "8"], [4352]),
    ],
)  # fmt: skip
def test_crossings_by_flops(capsys, argv, values):
    rows = answered(capsys, "crossover", *argv)["rows"]
    assert [r["value"] for r in rows] == pytest.approx(values, rel=5e-5, abs=0.5 if values[0] > 500 else 0.05)


# Time on B200, 2.25 PFLOP/s over 8 TB/s: design pin X4.  Cache rows only is w_act = 0.  The pins take L/2 for (L+1)/2,
# hence one token of tolerance.
@pytest.mark.parametrize(
    ("argv", "values"),
    [
        (["--kv-row-bytes", "656", "--no-skip", "--w-act", "0"], [13926, 73800]),
        (["--no-skip", "--w-act", "0"], [17131, 129600]),
        (["--kv-row-bytes", "656", "--no-skip"], [13926, 75712]),
        (["--kv-row-bytes", "656", "--w-act", "0"], [12813, 72761]),
    ],
)
def test_crossings_by_time(capsys, argv, values):
    command = [
        "crossover",
        "--model",
        "deepseek-v3.2",
        "--cost",
        "time",
        "--hardware",
        "b200",
        "--roof",
        "inferencex",
        "--tp",
        "1,8",
    ]
    rows = answered(capsys, *command, *argv)["rows"]
    got = [r["value"] for r in rows]
    assert got[1] == pytest.approx(values[1], abs=1.1)
    if "--kv-row-bytes" in argv:  # with bf16 rows one rank of 128 heads is bound by the gather, which X4 does not list
        assert got[0] == pytest.approx(values[0], abs=1.1)


# The article's 5K and 77K as rate ratios (design pin X2), V3.2 with heads padded to 128.
@pytest.mark.parametrize(("tp", "length", "ratio"), [("1", "5000", 0.4515), ("8", "77000", 0.7005)])
def test_rate_ratio_at_a_length(capsys, tp, length, ratio):
    argv = ["--model", "deepseek-v3.2", "--kernel-heads", "128", "--tp", tp, "--at-length", length]
    (row,) = answered(capsys, "crossover", *argv)["rows"]
    assert row["unknown"] == "rate_ratio"
    assert row["value"] == pytest.approx(ratio, abs=5e-5)


# TyphoonMLA, arXiv:2509.21081: 61 on a ridge of 207 with the rotary key per head (design pin X6).
@pytest.mark.parametrize(("ridge", "once", "per_head"), [("207", 48.80, 60.88), ("258.2089552238806", 60.87, 75.94)])
def test_shared_prefix(capsys, ridge, once, per_head):
    rows = answered(capsys, "crossover", "--model", "deepseek-v3", "--phase", "shared-prefix", "--ridge", ridge)["rows"]
    assert [r["value"] for r in rows] == pytest.approx([once, per_head], abs=0.01)
    assert [r["unknown"] for r in rows] == ["batch", "batch"]


def test_no_crossing_prints_the_document_and_exits_1(capsys):
    code = run(["crossover", "--model", "deepseek-v3.2", "--phase", "chunked", "--context", "4950", "--json"])
    captured = capsys.readouterr()
    (row,) = json.loads(captured.out)["rows"]
    assert code == 1
    assert row["value"] is None
    assert "never cost the same" in row["reason"]
    assert "no answer" in captured.err


def test_the_other_root_is_told_and_rejected(capsys):
    (row,) = answered(capsys, "crossover", "--model", "deepseek-v3.2")["rows"]
    (rejected,) = row["rejected"]
    assert rejected["value"] == pytest.approx(1112, abs=0.5)
    assert "2,048" in rejected["reason"]


def test_engine_voices_have_date_and_source(capsys):
    (row,) = answered(capsys, "crossover", "--model", "deepseek-v3.2")["rows"]
    told = {(v["engine"], v["seq_len"]) for v in row["engine_thresholds"]}
    assert {("vLLM", 4096), ("SGLang", 2048), ("TensorRT-LLM", 10240), ("TensorRT-LLM", 0)} <= told
    assert all(
        v["source"] and v["date"] and v["url"].startswith("https://")
        for v in row["engine_thresholds"] + row["measured"]
    )
    assert {m["hardware"]: m["seq_len"] and round(m["seq_len"], -3) for m in row["measured"]} == {
        "h200-sxm": 28000,
        "b200-sxm": None,
    }


@pytest.mark.parametrize(
    ("code", "argv", "words"),
    [
        (2, ["heads", "--hardware", "h900"], ["h900", "roofline hardware list"]),
        (2, ["heads", "--latent", "0"], ["latent", "0", "> 0"]),
        (2, ["heads", "--w-kv", "nan"], ["w_kv", "nan"]),
        (2, ["heads", "--rope", "-1"], ["rope", "-1"]),
        (2, ["heads", "--q-len", "inf"], ["q_len", "inf"]),
        (2, ["heads", "--peak", "989TB/s", "--bandwidth", "3TB/s"], ["peak", "FLOP/s"]),
        (2, ["heads", "--hardware", "h800-sxm", "--roof"], ["--roof"]),
        (2, ["heads", "--hardware", "h800-sxm", "--roof", "nope"], ["nope", "flashmla"]),
        (2, ["crossover", "--model", "deepseek-v9"], ["deepseek-v9", "roofline model list"]),
        (2, ["crossover", "--tp", "3"], ["tp", "3", "1, 2, 4, 8"]),
        (2, ["crossover", "--tp", "0"], ["tp", "0"]),
        (2, ["crossover", "--cost", "time"], ["--hardware"]),
        (2, ["crossover", "--kernel-heads", "16"], ["kernel_heads", "128"]),
        (2, ["crossover", "--gather", "some"], ["some", "perfect"]),
        (2, ["crossover", "--phase", "training"], ["training", "oneshot"]),
        (2, ["formula", "mla_mqb"], ["mla_mqb", "mla_mqa"]),
        (2, ["formula", "mla_mqa", "--quantity", "flop"], ["flop", "flops"]),
        (2, ["formula", "mla_mqa", "--set", "heads=__import__('os')"], ["heads", "__import__", "number"]),
        (2, ["formula", "mla_mqa", "--set", "hads=1"], ["hads", "heads"]),
        (2, ["formula", "mla_mqa", "--set", "heads=1e999"], ["heads", "inf"]),
        (2, ["heads", "-o", "x.pdf"], [".pdf", ".md"]),
        (2, ["hedas"], ["hedas", "heads"]),
        (3, ["heads", "--hardware", "/nonexistent.yaml"], ["/nonexistent.yaml"]),
        (3, ["heads", "--hardware", "h800-sxm", "-o", "/nonexistent/x.md"], ["/nonexistent/x.md"]),
    ],
)  # fmt: skip
def test_mistakes_get_a_clear_message(capsys, code, argv, words):
    message = failed(capsys, code, *argv)
    assert message.count("\n") <= 5
    for word in words:
        assert word in message


@pytest.mark.parametrize("suffix", [".md", ".csv", ".tex", ".json"])
def test_output_files(capsys, tmp_path, suffix):
    target = tmp_path / f"heads{suffix}"
    assert run(["heads", "--hardware", "h800-sxm", "-o", str(target)]) == 0
    text = target.read_text(encoding="utf-8")
    assert "flashmla" in text
    assert list(tmp_path.iterdir()) == [target]  # no partial file left


@pytest.mark.parametrize(
    "argv",
    [["heads", "--hardware", "h800-sxm"], ["crossover"], ["formula", "mla_mqa"], ["model", "show", "deepseek-v3"]],
)
def test_explain_tells_formula_sources_and_what_is_left_out(capsys, argv):
    assert run([*argv, "--explain"]) == 0
    text = capsys.readouterr().out
    assert "arXiv" in text or "Source" in text


def test_list_options_may_be_repeated_or_comma_separated(capsys):
    one = answered(capsys, "heads", "--hardware", "h800-sxm,h20")
    two = answered(capsys, "heads", "--hardware", "h800-sxm", "--hardware", "h20")
    assert one == two


def test_python_function_returns_the_same_document(capsys):
    import roofline

    assert json.loads(roofline.heads("h800-sxm").to_json()) == answered(capsys, "heads", "--hardware", "h800-sxm")
    assert json.loads(roofline.crossover("glm-5").to_json()) == answered(capsys, "crossover", "--model", "glm-5")


def test_module_entry_point():
    done = subprocess.run([sys.executable, "-m", "roofline", "--version"], capture_output=True, text=True, check=True)
    from roofline import __version__

    assert done.stdout == f"roofline {__version__}\n"


def test_step_of_a_model_as_ledger_and_equation(capsys):
    """The ledger adds up, and a root of the step put back into it gives equality (DeepSeek-V3 decode, FLOPs)."""
    found = answered(capsys, "solve", "context", "--model", "deepseek-v3", "--parts", "attention", "--equals-parts",
                     "experts,ffn", "--set", "batch=1", "--set", "q_len=1")  # fmt: skip
    (root,) = found["roots"]
    from roofline.models import load_model
    from roofline.plan import plan

    step = plan(load_model("deepseek-v3"))
    one, other = (
        step.cost(parts, batch=1, q_len=1, context=root["value"]) for parts in (("attention",), ("experts", "ffn"))
    )
    assert float(one.flops) == pytest.approx(float(other.flops))
    ledger = answered(
        capsys, "formula", "--model", "deepseek-v3", "--set", "batch=1", "--set", "q_len=1", "--set", "context=4096"
    )
    parts = sum(row["runs"] * float(row["flops"]) for row in ledger["rows"])
    assert parts == pytest.approx({t["quantity"]: t["value"] for t in ledger["totals"]}["flops"])
