"""What the command line promises of every answer: inputs that are used, roofs and defaults that are told, one document
that names its data, the same arguments in Python, and an error instead of a traceback for numbers no float holds."""

from __future__ import annotations

import json
import re

import pytest

import roofline
from roofline.cli import run
from roofline.errors import BadValue, UnknownName
from roofline.kernel import Kernel, Mac, Read, Write
from roofline.symbols import sym
from roofline.units import number

VALUES = ("q_len=1", "latent=512", "rope=64", "w_kv=2", "w_act=2", "batch=1")
DECODE = ["--phase", "decode", *(word for value in VALUES for word in ("--set", value))]
SOLVE = ["solve", "heads", "--kernel", "mla_mqa", *DECODE, "--set", "context=8191"]
SWEEP = ["sweep", "--kernel", "mla_mqa", *DECODE, "--grid", "heads=64,128", "--grid", "context=8191"]
SPARSE = """accelerators:
  mine:
    name: Mine
    vendor: Me
    peak_flop_per_s: {bf16: 1.9788e+15}
    bandwidth_byte_per_s: 2.0e+12
    sources:
      - {field: "peak_flop_per_s.*", value: x, url: "https://example.com", kind: datasheet}
      - {field: bandwidth_byte_per_s, value: x, url: "https://example.com", kind: datasheet}
"""


def document(capsys, *argv: str, code: int = 0) -> dict:
    assert run([*argv, "--json"]) == code
    return json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


def message(capsys, *argv: str) -> str:
    assert run(argv) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["--context", "4096"], "context"),
        (["--q-len", "7"], "q_len"),
        (["--prefix", "9"], "prefix"),
        (["--phase", "chunked", "--q-len", "3"], "q_len"),
        (["--phase", "shared-prefix", "--ridge", "200", "--batch", "3"], "batch"),
        (["--at-length", "5000", "--rate-ratio", "0.5"], "rate_ratio"),
        (["--between", "indexer", "--rate-ratio", "0.5"], "rate_ratio"),
    ],
)
def test_a_workload_that_a_crossing_does_not_use_is_refused(capsys, argv, name):
    """It stood among the inputs of an answer that did not depend on it."""
    assert f"error: {name}: got" in message(capsys, "crossover", "--model", "deepseek-v3.2", *argv)


def test_engine_tables_of_sparse_attention_do_not_speak_of_a_dense_model(capsys):
    """DeepSeek-V3 has V3.2's widths but no top-k: vLLM's masked-MHA table and the DSA modules are not about it."""
    (dense,) = document(capsys, "crossover", "--model", "deepseek-v3", code=1)["rows"]
    (sparse,) = document(capsys, "crossover", "--model", "deepseek-v3.2")["rows"]
    assert (dense["engine_thresholds"], dense["measured"]) == ([], [])
    assert sparse["engine_thresholds"]
    assert sparse["measured"]


def test_a_time_tells_its_roof_and_the_defaults_it_used(capsys):
    argv = ["crossover", "--model", "deepseek-v3.2", "--cost", "time", "--hardware", "b200", "--roof", "inferencex"]
    assert run([*argv, "--explain"]) == 0
    text = capsys.readouterr().out
    for word in ("inferencex", "batch = 1", "w_kv = 2", "w_act = 2", "tp = 1", "not padded", "peak = 2,250,000"):
        assert word in text
    assert run([*argv, "--kv-row-bytes", "656"]) == 0
    assert "w_kv" not in capsys.readouterr().out


def test_the_rate_ratio_that_is_solved_for_is_no_input(capsys):
    (row,) = document(capsys, "crossover", "--model", "deepseek-v3.2", "--at-length", "5000")["rows"]
    assert (row["unknown"], row["rate_ratio"]) == ("rate_ratio", None)


def test_left_out_says_nothing_of_what_is_compared(capsys):
    assert run(["crossover", "--between", "indexer"]) == 0
    assert "Left out: indexer" not in capsys.readouterr().out


def test_a_crossing_beyond_floats_is_an_error(capsys):
    assert "finite result" in message(capsys, "crossover", "--model", "deepseek-v3.2", "--rate-ratio", "1e308")


def test_the_largest_context_has_an_answer(capsys):
    """Whole numbers do not overflow: nothing crosses there, and the reason is told."""
    argv = ["crossover", "--model", "deepseek-v3.2", "--phase", "chunked", "--context", "1e308", "--json"]
    assert run(argv) == 1
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["value"] is None
    assert "never cost the same" in row["reason"]


def test_a_root_beyond_floats_is_an_error_not_null(capsys):
    argv = [*DECODE, "--set", "heads=128", "--hardware", "b200", "--quantity", "time", "--target", "1e308"]
    assert "finite result" in message(capsys, "solve", "context", "--kernel", "mla_mqa", *argv)


def test_large_numbers_are_not_printed_digit_by_digit():
    """300 digits of a float are noise, and they push the table off the screen."""
    assert number(1e308) == "1e+308"
    assert number(9.99e14) == "999,000,000,000,000"


def test_validate_has_a_document(capsys, tmp_path):
    (tmp_path / "mine.yaml").write_text(SPARSE)
    assert document(capsys, "hardware", "validate", str(tmp_path / "mine.yaml"))["accelerators"] == ["mine"]


@pytest.mark.parametrize("argv", [["heads"], ["crossover"], SOLVE, SWEEP], ids=lambda argv: argv[0])
def test_every_answer_names_its_data_and_repeats_the_warnings_of_a_file(capsys, tmp_path, argv):
    (tmp_path / "mine.yaml").write_text(SPARSE)
    found = document(capsys, *argv, "--hardware", str(tmp_path / "mine.yaml"))
    assert re.fullmatch("[0-9a-f]{12}", found["data_digest"])
    assert any("twice the dense bf16 peak" in note for note in found["notes"])


@pytest.mark.parametrize("argv", [["crossover", "--cost", "time"], SOLVE, SWEEP], ids=lambda argv: argv[0])
def test_all_means_the_parts_that_have_the_roof_and_the_others_are_named(capsys, argv):
    found = document(capsys, *argv, "--hardware", "all")
    assert {"hardware": "cerebras-wse-3", "reason": "no sourced dense bf16 or fp16 peak"} in found["skipped"]
    assert run([*argv, "--hardware", "cerebras-wse-3"]) in (1, 2)


@pytest.mark.parametrize("argv", [SOLVE, SWEEP], ids=lambda argv: argv[0])
def test_explain_shows_the_formula_and_where_kernel_and_roof_come_from(capsys, argv):
    assert run([*argv, "--hardware", "h800-sxm", "--explain"]) == 0
    text = capsys.readouterr().out
    assert "I = \\frac" in text
    assert "arXiv:2405.04434" in text
    assert "https://" in text


def test_notes_of_a_kernel_without_heads_do_not_speak_of_heads(capsys):
    argv = ["--set", "hidden=4096", "--set", "ffn=4096", "--set", "w_weight=2", "--set", "w_act=2"]
    notes = document(capsys, "solve", "tokens", "--kernel", "linear", "--hardware", "h100-sxm", *argv)["notes"]
    assert not any("kernel_heads" in note or "pairs" in note for note in notes)


def test_legs_without_a_rate_are_named(capsys):
    """MI300X has no sourced exponential rate, H200 has one: side by side the leg is left out for both, and said so."""
    notes = document(capsys, *SWEEP, "--hardware", "h200-sxm,mi300x")["notes"]
    assert any("No leg of exp" in note for note in notes)
    assert not any("No leg of" in note for note in document(capsys, *SWEEP, "--hardware", "h200-sxm")["notes"])


def test_chips_without_a_ridge_are_no_answer(capsys):
    document(capsys, "chips", "--hardware", "cerebras-wse-3", code=1)


def test_an_empty_list_is_not_every_accelerator(capsys):
    assert "--hardware" in message(capsys, "heads", "--hardware", ",")


def test_a_file_name_may_hold_a_comma(capsys, tmp_path):
    (tmp_path / "a,b.yaml").write_text(SPARSE)
    (row,) = document(capsys, "heads", "--hardware", str(tmp_path / "a,b.yaml"))["rows"]
    assert row["hardware"] == "mine"


def test_small_sweeps_are_tables_and_large_ones_are_not(capsys, tmp_path):
    assert run([*SWEEP, "-o", str(tmp_path / "s.md")]) == 0
    assert "| heads |" in (tmp_path / "s.md").read_text()
    capsys.readouterr()
    assert ".csv" in message(capsys, *SWEEP[:-2], "--grid", "context=1:64:lin:64", "-o", str(tmp_path / "t.md"))


def test_python_takes_the_arguments_of_the_command_line(capsys):
    """Every command's function has the command's arguments: an ad hoc part too."""
    rates = {"peak": "865TFLOP/s", "bandwidth": "3.35TB/s"}
    argv = ["--peak", rates["peak"], "--bandwidth", rates["bandwidth"]]
    assert json.loads(roofline.heads(**rates).to_json()) == document(capsys, "heads", *argv)
    assert json.loads(roofline.crossover("glm-5", cost="time", **rates).to_json()) == document(
        capsys, "crossover", "--model", "glm-5", "--cost", "time", *argv
    )
    shared = roofline.crossover("deepseek-v3", phase="shared-prefix", ridge=207)  # counted in time, as on the command
    assert [round(row["value"], 2) for row in shared.rows] == [48.80, 60.88]  # line; design pin X6
    values = {"q_len": 1, "latent": 512, "rope": 64, "w_kv": 2, "w_act": 0, "batch": 1, "context": 8191}
    assert roofline.solve("heads", "mla_mqa", phase="decode", values=values, **rates).rows[0]["value"] == pytest.approx(
        136.70, abs=0.005
    )


@pytest.mark.parametrize(
    "options",
    [
        {"tp": 2.5},
        {"tp": "2"},
        {"kernel_heads": 128.5},
        {"kernel_heads": "none"},
        {"at_length": -5},
        {"topk": -1},
        {"hardware": 5},
        {"heads": 3},
        {"seq_len": 100},
    ],
    ids=str,
)
def test_wrong_arguments_in_python_are_named(options):
    with pytest.raises((BadValue, UnknownName), match=next(iter(options))):
        roofline.crossover("deepseek-v3.2", **options)


def test_widths_of_a_kernel_of_ones_own_may_be_names():
    named = Kernel("mine", Mac("b h p e"), Read("b k e", "w_kv"), Write("b s h e", "w_act"))
    symbols = Kernel("mine", Mac("b h p e"), Read("b k e", sym.w_kv), Write("b s h e", sym.w_act))
    assert (named.flops, named.bytes) == (symbols.flops, symbols.bytes)
    with pytest.raises(UnknownName, match="w_kb"):
        Kernel("mine", Read("b k e", "w_kb"))


def test_derive_says_why_a_model_has_no_crossing_and_takes_odd_head_counts(tmp_path):
    found = str(roofline.derive(["deepseek-v3", "llama-3.1-8b"], "h800-sxm"))
    assert "None" not in found
    assert "llama-3.1-8b has no latent" in found
    assert "does not depend on seq_len" in found


def test_the_ratios_that_derive_names_as_ends_lie_in_all_four_brackets():
    """X3: vLLM's V3.2 table switches in 4-8K, 8-16K, 16-32K and beyond 32K at TP 1, 2, 4, 8."""
    text = str(roofline.derive("deepseek-v3.2", "h800-sxm"))
    ends = [float(x) for x in re.search(r"anything from ([0-9.]+) to ([0-9.]+) does", text).groups()]
    for ratio in ends:
        rows = roofline.crossover("deepseek-v3.2", tp=(1, 2, 4, 8), kernel_heads=128, rate_ratio=ratio).rows
        for row, low, high in zip(rows, (4096, 8192, 16384, 32768), (8192, 16384, 32768, 1e9), strict=True):
            assert low <= row["value"] <= high


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("step", {"hardware": "h100-sxm", "batch": 8, "context": 4096}),
        ("kv_show", {}),
        ("kv_capacity", {"hardware": "h100-sxm"}),
        ("kv_pages", {"lengths": [100, 200], "pool_bytes": 2**30}),
    ],
)
def test_a_model_itself_is_taken_where_its_id_is(name, options):
    """Every question about a model answers the same for `load_model(...)`, such as one from a file read elsewhere."""
    ask = getattr(roofline, name)
    assert (
        ask(model=roofline.load_model("llama-3.1-8b"), **options).document
        == ask(model="llama-3.1-8b", **options).document
    )
