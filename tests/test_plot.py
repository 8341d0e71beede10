"""`roofline plot` and `roofline.plot`: the data of figures, the command, and what bad input gets."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import roofline
from roofline.accelerators import adhoc
from roofline.answers.plot import plot
from roofline.cli import run
from roofline.errors import BadValue, NoAnswer, UnknownName


def values(answer) -> list[float]:
    return [c["value"] for c in answer["crossings"]]


def test_points_of_the_roofline_figure():
    """FlashMLA's count with query and output at 8,192 keys: 234.85 FLOP/B (design I3); GQA decode: the group of 8."""
    answer = plot("roofline", hardware="h800-sxm", roof="flashmla", context=8191)
    points = {p["kernel"]: p for p in answer["points"]}
    assert points["mla_mqa"]["intensity_flop_per_byte"] == pytest.approx(234.85, abs=0.005)
    assert points["mla_mqa"]["attainable_flop_per_s"] == pytest.approx(234.85 * 3.35e12, rel=1e-4)
    assert points["mla_mqa"]["bound"] == "memory"  # 234.85 < 865/3.35 = 258.2
    assert points["attention"]["intensity_flop_per_byte"] == pytest.approx(8, rel=0.002)  # 64 heads over 8, cache only
    assert points["attention"]["model"] == "llama-3.1-70b"
    assert "dsa_indexer" not in points  # fp8, and this roof is bf16
    assert any("dsa_indexer" in note and "Not drawn" in note for note in answer["notes"])
    assert answer["inputs"]["context"] == 8191


def test_fp16_stands_in_and_the_indexer_sits_on_the_fp8_roof():
    answer = plot(
        "roofline", hardware=("v100-sxm-32gb", "h800-sxm"), roof="datasheet", kernel=("mla_mqa", "dsa_indexer")
    )
    on = {(p["hardware"], p["kernel"]): p["precision"] for p in answer["points"]}
    assert on == {
        ("v100-sxm-32gb", "mla_mqa"): "fp16",
        ("h800-sxm", "mla_mqa"): "bf16",
        ("h800-sxm", "dsa_indexer"): "fp8",
    }


def test_tp_divides_query_heads_and_leaves_one_kv_head():
    def intensity(tp):
        return {
            p["kernel"]: p["intensity_flop_per_byte"]
            for p in plot("roofline", roof="datasheet", tp=tp, w_act=0)["points"]
        }

    one, eight, sixteen = intensity(1), intensity(8), intensity(16)
    assert eight["mla_mqa"] == pytest.approx(one["mla_mqa"] / 8)  # the latent cache does not divide
    assert eight["attention"] == pytest.approx(one["attention"])  # 64 over 8 and 8 over 1: the same group
    assert sixteen["attention"] == pytest.approx(one["attention"] / 2)  # 4 heads share the one that is left


def test_heads_figure_has_the_rows_of_the_heads_command():
    answer = plot("heads", hardware="all", kv_row_bytes=(1152, 656))
    exact = [roofline.heads("all", kv_row_bytes=b).rows for b in (1152, 656)]
    assert [c["heads_exact"] for c in answer["crossings"]] == [r["heads_exact"] for rows in exact for r in rows]
    assert {s["hardware"] for s in answer["skipped"]} == {s["hardware"] for s in roofline.heads("all")["skipped"]}


def test_heads_figure_takes_several_roofs_and_drops_the_row_that_does_not_fit():
    answer = plot("heads", hardware="h800-sxm,mtt-s4000", roof="datasheet,flashmla", rope=0)
    assert {(r["hardware"], r["roof"]) for r in answer["ridges"]} == {
        ("h800-sxm", "datasheet"),
        ("h800-sxm", "flashmla"),
        ("mtt-s4000", "datasheet"),
    }
    assert [line["kv_row_bytes"] for line in answer["lines"]] == [1024]  # 656 bytes are of 512 + 64
    assert answer["skipped"] == []


def test_oneshot_crossings_at_four_degrees():
    """Design section 4, X1: V3.2, kernel heads 128, TP 1/2/4/8."""
    answer = plot("crossover", tp=(1, 2, 4, 8), kernel_heads=128)
    assert values(answer) == pytest.approx([12813, 26788, 54662, 110377], abs=0.6)
    shared = [line for line in answer["lines"] if line["side"] == "mqa"]
    assert [line["tp"] for line in shared] == [[1, 2, 4, 8]]  # padded to 128 on every rank: one curve


def test_time_crossing_skipped_with_b200_inferencex():
    """Design section 4, X4: skipped, cache rows only, 656-byte rows, 128 and 16 heads: 12,813 and 72,761."""
    answer = plot(
        "crossover", hardware="b200-sxm", roof="inferencex", cost="time", tp=(1, 8), kv_row_bytes=656, w_act=0
    )
    assert values(answer) == pytest.approx([12813, 72761], rel=2e-4)
    assert "time bound from the roof inferencex of B200" in answer["title"]


def test_chunk_window_and_shared_prefix():
    """Design section 4, X5b: 662 to 5,072 at C = 4,096; X6: 60.87 with the rotary key stored once, 75.94 per head."""
    window = plot("crossover", phase="chunked", context=4096)
    assert [(round(w["low"]), round(w["high"]), w["cheaper"]) for w in window["windows"]] == [(662, 5072, "mha")]
    prefix = plot(
        "crossover", model="deepseek-v3", phase="shared-prefix", cost="time", hardware="h800-sxm", roof="flashmla"
    )
    assert values(prefix) == pytest.approx([60.87, 75.94], abs=0.01)
    assert prefix["windows"] == []  # two conventions, not two ends of one window


def test_marks_carry_engine_date_and_value():
    """vLLM pull requests 48770 and 53785; GLM-5's second table where the chunk follows 2,048 cached tokens."""
    marks = {m["who"]: m for m in plot("crossover", tp=(1, 8))["marks"] if m["items"]}
    assert [(i["tp"], i["at"]) for i in marks["vLLM FLASHMLA_SPARSE"]["items"]] == [(1, 4096), (8, 32768)]
    assert marks["SGLang nsa"]["items"] == [{"tp": None, "at": 2048}]
    assert marks["TensorRT-LLM"]["date"] == "2026-02-24"
    assert marks["h200-sxm"]["kind"] == "measured"
    chunk = {m["who"]: m for m in plot("crossover", model="glm-5", phase="chunked", context=2048, tp=8)["marks"]}
    assert chunk["vLLM FLASHMLA_SPARSE"]["items"] == [{"tp": None, "from": 4096, "at": 49152 - 2048}]


def test_no_crossing_is_drawn_and_said(tmp_path):
    answer = plot("crossover", tmp_path / "a.png", phase="decode", unknown="batch", context=8192)
    assert answer["crossings"] == []
    assert len(answer["lines"]) == 2
    assert any("never cost the same" in note for note in answer["notes"])
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_a_bare_ridge_gives_relative_times():
    answer = plot(
        "crossover",
        hardware=adhoc(ridge=281.25),
        cost="time",
    )
    assert answer["axis"]["unit"] == "relative"
    assert values(answer) == pytest.approx(
        values(plot("crossover", hardware="b200-sxm", roof="inferencex", cost="time")), rel=0.2
    )


def test_points_of_a_step_are_its_kernels_under_their_roofs():
    """The rows of `roofline.step`; 989.4 and 1,979 TFLOP/s over 4.8 TB/s are NVIDIA's H200 datasheet, dense."""
    options = {"model": "deepseek-v3.2", "batch": 128, "context": 8192, "dp": 8, "ep": 8}
    answer = plot("step", hardware="h200-sxm", **options)
    whole = roofline.step(hardware="h200-sxm", **options)
    kernels = [k for k in whole["kernels"] if k["flops"]]
    assert [p["name"] for p in answer["points"]] == [k["name"] for k in kernels]
    peaks = {"bf16": 989.4e12, "fp8": 1978.9e12}
    for point, k in zip(answer["points"], kernels, strict=True):
        roof = min(peaks[point["precision"]], 4.8e12 * k["flops"] / k["bytes"])
        assert point["attained_flop_per_s"] == pytest.approx(roof, rel=1e-3)  # no kernel here waits for exponentials
        assert point["share"] == k["share"]
    shares = sum(p["share"] for p in answer["points"])
    shares += sum(r["share"] for r in answer["not_shown"] if r["bound"] != "link")
    assert shares == pytest.approx(1)
    assert {r["name"] for r in answer["not_shown"] if r["bound"] == "link"} == {"expert dispatch", "expert combine"}
    assert answer["whole"][0]["attained_flop_per_s"] == pytest.approx(whole["totals"]["flops"] / whole["time_lower_s"])
    assert {(r["precision"], round(r["ridge_flop_per_byte"], 1)) for r in answer["roofs"]} == {
        ("bf16", 206.1),
        ("fp8", 412.3),
    }


def test_a_kernel_that_waits_for_exponentials_lies_below_its_roof(tmp_path):
    """A pair of a head of width 32 costs 4 * 32 FLOP and one exponential.  FlashAttention-3 (arXiv:2407.08608, section
    3.1) gives H100 989 TFLOP/s and 3.9 T exponentials/s: the matrices would be done twice as fast as the softmax."""
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 32,
        "num_hidden_layers": 2,
        "intermediate_size": 8192,
        "vocab_size": 1000,
        "max_position_embeddings": 65536,
        "torch_dtype": "bfloat16",
        "tie_word_embeddings": False,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    model = str(tmp_path / "config.json")
    answer = plot("step", model=model, hardware="h100-sxm", phase="oneshot", q_len=32768)
    core = next(p for p in answer["points"] if p["name"] == "attention core")
    assert core["bound"] == "special-function unit"
    assert core["attained_flop_per_s"] == pytest.approx(4 * 32 * 3.9e12, rel=0.1)


def test_figures_of_memory_are_the_documents_of_their_commands():
    pages = plot("pages", preset_name="article", shared_prefix=(64, 3))
    assert pages["grid"] == roofline.kv_pages(preset_name="article", shared_prefix=(64, 3))["grid"]
    assert pages["schema"] == "roofline/plot-pages/1"
    hits = plot("hits", trace="sample", blocks=(100, None))
    assert [round(r["hit_ratio"], 4) for r in hits["rows"]] == [0.48, 0.6733]  # as the doctest of kv_replay
    curve = plot("concurrency", model="llama-3.1-8b", kv_dtype="bf16", available_gib=10, lengths=[8192])
    assert curve["lines"][0]["concurrency"] == [10.0]  # 131,072 B a token, 1 GiB a request


@pytest.mark.parametrize("suffix", [".pdf", ".svg", ".png"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["step", "--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--batch", "8", "--context", "1024"],
        ["pages", "--preset", "article"],
        ["waste", "--preset", "article"],
        ["hits", "sample", "--blocks", "100,400,unlimited"],
        ["concurrency", "--model", "llama-3.1-8b", "--available-gib", "10", "--lengths", "1024,8192"],
    ],
)
def test_commands_write_every_form(tmp_path, arguments, suffix, capsys):
    out = tmp_path / f"a{suffix}"
    assert run(["plot", *arguments, "--width", "3.3", "-o", str(out)]) == 0
    head = {".pdf": b"%PDF", ".svg": b"<?xml", ".png": b"\x89PNG"}[suffix]
    assert out.read_bytes().startswith(head)
    assert f"wrote {out}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kind": "step", "hardware": "h200-sxm", "color": "share"}, UnknownName, "part, bound"),
        ({"kind": "step", "model": "llama-3.1-8b", "hardware": "h100-sxm", "tp": 3}, BadValue, "tp"),
        ({"kind": "roofline", "kernel": "dsa_indexer", "model": "llama-3.1-8b"}, BadValue, "index_heads"),
        ({"kind": "roofline", "kernel": "flash"}, UnknownName, "unknown kernel 'flash'"),
        ({"kind": "roofline", "kv_row_bytes": 656}, BadValue, "one model"),
        ({"kind": "roofline", "tp": 3}, BadValue, "tp: got 3"),
        ({"kind": "roofline", "roof": "flashmla", "hardware": "h200-sxm"}, UnknownName, "roof of h200-sxm"),
        ({"kind": "crossover", "hardware": "h200-sxm,b200-sxm", "cost": "time"}, BadValue, "one accelerator"),
        ({"kind": "crossover", "unknown": "q_len"}, UnknownName, "unknown axis of phase oneshot .*seq_len"),
        ({"kind": "crossover", "model": "llama-3.1-8b"}, NoAnswer, "no latent"),
        ({"kind": "crossover", "at_length": 5000}, BadValue, "at_length"),
    ],
)
def test_bad_input(options, error, message):
    with pytest.raises(error, match=message):
        plot(**options)


def test_command_writes_the_file_and_the_document(tmp_path, capsys):
    out = tmp_path / "h.svg"
    assert (
        run(
            [
                "plot",
                "heads",
                "--hardware",
                "h800-sxm",
                "--roof",
                "flashmla",
                "--json",
                "-o",
                str(out),
                "--width",
                "3.3",
                "--style",
                "dark",
            ]
        )
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "roofline/plot-heads/1"
    assert [round(c["heads_exact"], 2) for c in document["crossings"]] == [136.7, 77.84]
    assert out.read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["heads", "-o", "x.gif"], 2, ".pdf, .svg, .png, .pgf"),
        (["heads", "--hardware", "h8000"], 2, "h800-sxm"),
        (["heads", "--width", "wide", "-o", "x.pdf"], 2, "width"),
        (["hits", "sample", "-o", "x.pdf"], 1, "pools of a given size"),
        (["pages", "--lengths", "400000", "--page-size", "1", "-o", "x.pdf"], 1, "too many pages"),
        (["step", "--hardware", "h100-sxm,h20", "--color", "share"], 2, "color"),
        (["roofline", "--ridge", "128"], 1, "only the ridge point"),
        (["roofline", "--tp", "1,2"], 2, "one degree"),
        (["crossover", "--cost", "time"], 2, "needs --hardware"),
        (["crossover", "--tp", "3"], 2, "a divisor of the 128 heads"),
    ],
)
def test_command_errors(arguments, code, message, capsys):
    assert run(["plot", *arguments]) == code
    assert message in capsys.readouterr().err


def test_commands_without_output_print_the_data(capsys):
    assert run(["plot", "crossover", "--tp", "1,8", "--kernel-heads", "128", "--rate-ratio", "0.47"]) == 0
    told = capsys.readouterr().out
    assert "5,274" in told  # design section 4, X3
    assert run(["plot", "roofline", "--hardware", "h800", "--roof", "flashmla"]) == 0
    assert "mla_mqa" in capsys.readouterr().out


def test_neither_import_nor_data_need_matplotlib():
    def loaded(code: str) -> str:
        told = "print([m for m in sys.modules if m in ('matplotlib', 'matplotlib.pyplot')])"
        code = f"import sys, roofline; {code}; {told}"
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()

    assert loaded("roofline.plot('heads', hardware='h800-sxm')") == "[]"
    assert loaded("import roofline.figures") == "['matplotlib']"
