"""Numbers that others published, computed here from the kernels, the visibilities and the law, never by retyping a
formula.  A row says where the number stands, what goes in, and why the tolerance is what it is.

Rows marked "exact" are integers or rationals; a printed number gets half a unit of its last digit; everything wider
says why.  Numbers that a source prints wrongly are tested against the right value, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
import sympy as sp
from drawing import NAMES
from published import (
    FLASH,
    GLM5,
    GLM5_INDEX,
    K3,
    V3,
    V32_INDEX,
    at_keys,
    bind,
    break_even_at,
    chunk_window,
    gqa_row,
    index_row,
    indexer_equals_core,
    indexer_equals_core_prefill,
    latent_row,
    limit_intensity,
    long_crossing,
    matrices,
    oneshot_crossing,
    pair,
    put,
    queries_to_break_even,
    ratio,
    root,
    row,
    training,
    typhoon,
)

from roofline import law
from roofline.derivations import decode, decode_intensity_limit, heads_at_ridge
from roofline.kernels import KERNELS
from roofline.symbols import exact, sym
from roofline.visibility import dense, full

ARTICLE = "SemiAnalysis, 'Sparse savings, persistent demand: inside GLM-5.3' (newsletter.semianalysis.com)"
INSIGHTS = "arXiv:2505.09343 table 1"
V2_PAPER = "arXiv:2405.04434 sec. 2.1"
TYPHOON = "arXiv:2509.21081 sec. 3"
FLASHMLA = "deepseek-ai/FlashMLA at 9241ae3, docs/20250422-new-kernel-deep-dive.md"
FP8_DOC = "deepseek-ai/FlashMLA at 9241ae3, docs/20250929-hopper-fp8-sparse-deep-dive.md"
README = "deepseek-ai/FlashMLA at 9241ae3, README.md"
DATACRUNCH = "github.com/datacrunch-research/blogs, deepseek-mla-roofline"
SCALING = "github.com/aghyad-deeb/scaling-book-2026, attention.md (third party)"
PROFILE = "github.com/madsys-dev/deepseekv2-profile, README"
VLLM = "vllm-project/vllm #48770, mla_attention.py at 81be2e09a"
VLLM_GLM = "vllm-project/vllm #53785, table of masked-MHA thresholds"
DEEPGEMM = "deepseek-ai/DeepGEMM at 54e2261, README (fp8_mqa_logits)"
DERIVED = "arithmetic from the shapes above; stated in no source"


class Row(NamedTuple):
    """One published number."""

    id: str
    source: str
    expected: Any
    tolerance: float  # 0: exact
    why: str
    compute: Callable[[], Any]


ROWS = [
    # Intensity of decode in MQA mode
    Row("I1", ARTICLE + "; design id I1", Fraction(17, 9), 0, "exact", lambda: limit_intensity(**V3) / 128),
    Row("I1a M14", ARTICLE, 241.78, 0.05, "printed 241.8", lambda: limit_intensity(**V3)),
    Row("I1b M15", ARTICLE, 120.89, 0.005, "printed 120.8, which is 120.89 cut off", lambda: limit_intensity(**GLM5)),
    Row("I1c", ARTICLE, Fraction(1088, 9), 0, "exact, by way of the derivation",
        lambda: put(decode_intensity_limit(), heads=64, q_len=1, latent=512, rope=64, kv_row_bytes=1152)),
    Row("I2", DERIVED, 128, 0, "exact", lambda: limit_intensity(**FLASH)),
    Row("I3a", DERIVED, 238.06, 0.005, "printed", lambda: at_keys(lambda k: k.flops / k.reads, 8192, **V3)),
    Row("I3b", DERIVED, 119.95, 0.005, "printed", lambda: at_keys(lambda k: k.flops / k.reads, 8192, **GLM5)),
    Row("I3c M41", DATACRUNCH, 234.85, 0.005, "printed 235", lambda: at_keys(lambda k: k.intensity, 8192, **V3)),
    Row("M42", DATACRUNCH, 1394.0, 0.5, "989 TFLOP/s over 4.8 TB/s; the blog rounds",
        lambda: root(at_keys(lambda k: k.intensity, sym.seq_len, **V3), exact(989) / exact(4.8), sym.seq_len, 2, 1e5)),
    Row("I4a", README, 424.59, 0.005, "656-byte row", lambda: limit_intensity(**V3, kv_row_bytes=656)),
    Row("I4b", README, 212.29, 0.005, "656-byte row", lambda: limit_intensity(**GLM5, kv_row_bytes=656)),
    Row("M16", SCALING, 483.6, 0.5, "printed 484", lambda: limit_intensity(**V3, w_kv=1)),
    Row("M38", "arXiv:2505.21487 sec. 3.3", Fraction(1, 2), 0, "two latents where the paper leaves the rotary key out",
        lambda: limit_intensity(**FLASH, kv_row_bytes=2 * row("mla_mqa", **FLASH)) / limit_intensity(**FLASH)),
    # Heads on the ridge
    *(Row(name, source, value, 0.01, "printed to 0.01", lambda p=p, b=b: put(
        heads_at_ridge(), peak=p, bandwidth=b, q_len=1, latent=512, rope=64, kv_row_bytes=1152))
      for name, source, p, b, value in (
        ("H1a M19", FLASHMLA, 865, 3.35, 136.70), ("H1b", "MTT S4000 data sheet, mthreads.com", 98.304, 0.768, 67.76),
        ("H2a", "NVIDIA H200 data sheet", 989.4, 4.8, 109.13), ("M20a", "NVIDIA H200 data sheet", 989.5, 4.8, 109.14),
        ("H2b", "NVIDIA DGX B200 data sheet", 2250, 7.7, 154.70),
        ("H2c M20b", "SemiAnalysis InferenceX", 2250, 8.0, 148.90))),
    Row("M18", FLASHMLA, 129.1, 0.05, "the document takes d_v = d_k, hence rope = 0, and then prints 128",
        lambda: put(heads_at_ridge(), peak=865, bandwidth=3.35, q_len=1, latent=512, rope=0, kv_row_bytes=1024)),
    # Ridges
    *(Row(name, source, value, tol, "printed", lambda p=p, b=b: put(law.ridge(), peak=p, bandwidth=b))
      for name, source, p, b, value, tol in (
        ("M17", ARTICLE, 865, 3.35, 258.2, 0.05), ("M39a", "arXiv:2507.15465 table I, V100", 125, 0.9, 138.89, 0.005),
        ("M39b", "arXiv:2507.15465 table I, A100", 312, 2.039, 153.02, 0.005),
        ("M39c", "arXiv:2507.15465 table I, H200", 989.5, 4.8, 206.15, 0.005),
        ("M39d", "arXiv:2507.15465 table I, B200", 2250, 8, 281.25, 0.005),
        ("M39e", "arXiv:2507.15465 table I, MI325X", 1307.4, 6, 217.9, 0.05))),
    # One mode against the other
    Row("M1a M03", TYPHOON + "; " + ARTICLE, Fraction(17, 5), 0, "exact",
        lambda: ratio("mla_mqa", "mla_mha", pair, V3)),
    Row("M1b M03", ARTICLE, Fraction(17, 5), 0, "exact, Kimi K3", lambda: ratio("mla_mqa", "mla_mha", pair, K3)),
    Row("M1c M04", DERIVED, Fraction(17, 8), 0, "exact, GLM-5", lambda: ratio("mla_mqa", "mla_mha", pair, GLM5)),
    Row("M2a M11", ARTICLE, 42.78, 0.005, "rotary key counted once; printed 42x",
        lambda: ratio("mla_mha", "mla_mqa", row, K3)),
    Row("M2b", DERIVED, Fraction(57), 0, "rotary key counted once", lambda: ratio("mla_mha", "mla_mqa", row, V3)),
    Row("M2c", DERIVED, 49.89, 0.005, "rotary key counted once", lambda: ratio("mla_mha", "mla_mqa", row, GLM5)),
    Row("M12", TYPHOON, 71.11, 0.005, "rotary key in every head: one multiply-add an expanded element",
        lambda: pair("mla_mha", **V3) / 2 / (latent_row() / 2)),
    Row("M13", DERIVED, 56.89, 0.005, "the same, GLM-5", lambda: pair("mla_mha", **GLM5) / 2 / (latent_row() / 2)),
    Row("M54", ARTICLE + "; arXiv:2602.15763", 0.6667, 0.00005, "QK width of GLM-5 over V3 (-33 %)",
        lambda: pair("mla_mha", **(GLM5 | {"value": 0})) / pair("mla_mha", **(V3 | {"value": 0}))),
    # FLOPs
    Row("M01", SCALING, 278_528, 0, "exact", lambda: pair("mla_mqa", **V3)),
    Row("M02", PROFILE, 81_920, 0, "exact", lambda: pair("mla_mha", **V3)),
    Row("M05a", PROFILE, 33_554_432, 0, "exact; the page's 33.64 M adds 0.08 M",
        lambda: bind("mla_up_projection", rows_read=1, **V3).flops),
    Row("M05b", PROFILE, 33_554_432, 0, "exact",
        lambda: bind("mla_absorption", **V3).flops + bind("mla_unabsorption", **V3).flops),
    Row("M25", FP8_DOC, 34, 0, "cycles of a key for 64 heads at 4,096 FLOP a cycle, exact",
        lambda: pair("mla_mqa", **GLM5) / 4096),
    Row("M27", "vllm-project/vllm #33451 (time of this work)", 570_425_344, 0, "exact",
        lambda: bind("dsa_mqa", context=4096, topk=2048, **V3).flops),
    Row("M37a", TYPHOON, 40_960, 0, "MACs, exact", lambda: pair("mla_mha", **V3) / 2),
    Row("M37b", TYPHOON, 139_264, 0, "MACs, exact", lambda: pair("mla_mqa", **V3) / 2),
    Row("M37c", TYPHOON, 576, 0, "words of a row, exact", lambda: latent_row(w_kv=1)),
    Row("M44", "arXiv:2507.20534 sec. 2.3", 0.83, 0.01, "printed 83 %; 32.6 G active parameters",
        lambda: (core := 61 * bind("mla_mha", pairs=131072, **(V3 | {"heads": 64})).flops) / (core + 2 * 32.6e9)),
    Row("M45a", INSIGHTS, 250e9, 0.02 * 250e9, "2 %: parameters rounded, causal half", lambda: training(V3, 61, 37e9)),
    Row("M45b", INSIGHTS, 155e9, 0.02 * 155e9, "2 %: parameters rounded, causal half", lambda: training(V3, 60, 21e9)),
    Row("M46", SCALING, 187_105_280, 0, "exact (printed 187M)", lambda: matrices(
        (7168, 1536), (1536, 128 * 192), (7168, 576), (128 * 128, 7168))
        + bind("mla_up_projection", rows_read=0, w_weight=1, **V3).reads),
    Row("M47c", SCALING, 2.2e12, 0.05e12, "printed", lambda: 61 * bind("mla_mqa", pairs=131072, **V3).flops),
    Row("M58", DERIVED, 294_912, 0, "kv_b rows of a 65,536-token prompt in chunks of 8,192, exact", lambda: sum(
        bind("mla_up_projection", **dense().bindings(), **V3, context=c, q_len=8192).flops
        for c in range(0, 65536, 8192))
        / bind("mla_up_projection", rows_read=1, **V3).flops),
    Row("M32", "vllm-project/vllm, sparse_mla_attention.py at 81be2e09a", 128 * 2**20, 0,
        "mask bits of 32,768 by 32,768, exact",
        lambda: full().bind(context=0, q_len=32768).pairs / 8),
    # Bytes
    Row("K1a M06", INSIGHTS, 70_272, 0, "exact", lambda: 61 * latent_row()),
    Row("K1b M23", README, 40_016, 0, "exact, 656-byte rows", lambda: 61 * latent_row(kv_row_bytes=656)),
    Row("K1c M23", "vllm-project/vllm, mla/indexer.py", 8_052, 0, "exact, 132-byte rows", lambda: 61 * index_row()),
    Row("K1d M47", SCALING, 35_136, 0, "exact, plain fp8", lambda: 61 * latent_row(w_kv=1)),
    Row("K1e", "config.json of GLM-5.3: 78 layers, 21 with an indexer", 53_940, 0, "exact",
        lambda: 78 * row("mla_mqa", **GLM5, kv_row_bytes=656) + 21 * index_row()),
    Row("K1f", "config.json of Llama-3.1-8B", 131_072, 0, "exact", lambda: 32 * gqa_row(8)),
    Row("K1g M08", INSIGHTS, 516_096, 0, "exact", lambda: 126 * gqa_row(8)),
    Row("M07", INSIGHTS, 327_680, 0, "exact", lambda: 80 * gqa_row(8)),
    Row("M09", INSIGHTS, 4.66, 0.005, "printed", lambda: 80 * gqa_row(8) / (61 * latent_row())),
    Row("M10", INSIGHTS, 7.344, 0.0005, "printed 7.28, which its own bytes contradict",
        lambda: 126 * gqa_row(8) / (61 * latent_row())),
    Row("M21", FLASHMLA, 8.72, 0.005, "GiB; its count takes 62 layers",
        lambda: exact(62 * 131072) * latent_row() / 2**30),
    Row("M24a", "third-party note", 61_464, 0, "exact",
        lambda: 78 * (row("mla_mqa", **GLM5, kv_row_bytes=656) + index_row())),
    Row("M24b", "third-party note", 54_072, 0, "exact; it counts 22 indexer layers, the configuration has 21",
        lambda: 78 * row("mla_mqa", **GLM5, kv_row_bytes=656) + 22 * index_row()),
    Row("M40a", "arXiv:2507.15465 sec. 3", 68.6, 0.05, "KiB, printed", lambda: 61 * latent_row() / exact(1024)),
    Row("M40b", "arXiv:2507.15465 sec. 3", 4.5, 0, "MiB, GPT-3, exact", lambda: 96 * gqa_row(96) / exact(2**20)),
    Row("M40c", "arXiv:2507.15465 sec. 3", 67, 0.5, "printed", lambda: 96 * gqa_row(96) / (61 * latent_row())),
    Row("M47b", SCALING, 4.6e9, 0.05e9, "printed", lambda: 61 * 131072 * latent_row(w_kv=1)),
    Row("M48a", SCALING, 42_944, 0, "exact; leaves the scale of an indexer key out",
        lambda: 61 * (latent_row(w_kv=1) + index_row(index_row_bytes=128))),
    Row("M48b", SCALING, 47_616, 0, "exact; the same",
        lambda: 78 * row("mla_mqa", **GLM5, w_kv=1) + 21 * index_row(index_row_bytes=128)),
    Row("M50", "vllm-project/vllm, mla/indexer.py", 132, 0, "exact", index_row),
    Row("M53", V2_PAPER, 576, 0, "the row of 2.25 groups of 128, exact", lambda: gqa_row(Fraction(9, 4), w_kv=1)),
    Row("M53b", V2_PAPER, 1, 0, "and the row of MLA is the same", lambda: gqa_row(Fraction(9, 4)) / latent_row()),
    Row("M55a", DERIVED, 2_359_296, 0, "rows one query gathers, exact",
        lambda: bind("dsa_mqa", context=4096, topk=2048, **V3).bytes),
    Row("M55b", DERIVED, 0.2949e-6, 5e-11, "at 8 TB/s", lambda: put(
        law.legs(bind("dsa_mqa", context=4096, topk=2048, **V3))["memory"], bandwidth=8e12)),
    Row("M57", "dev.colaberry.ai, glm-5-744b (third party)", 87.75, 0, "KiB, exact; printed 87.8",
        lambda: 78 * row("mla_mqa", **GLM5) / exact(1024)),
    # Indexer
    Row("D1a M49", DEEPGEMM, 16_384, 0, "exact", lambda: pair("dsa_indexer", **V32_INDEX)),
    Row("D1b M49", DEEPGEMM, 8_192, 0, "exact", lambda: pair("dsa_indexer", **GLM5_INDEX)),
    Row("D1c M51", DERIVED, 34_816, 1e-6, "exact, by bisection", lambda: indexer_equals_core(V3, V32_INDEX)),
    Row("D1d M51", DERIVED, 34_816, 1e-6, "exact, by bisection", lambda: indexer_equals_core(GLM5, GLM5_INDEX)),
    Row("D1e", DERIVED, 4_352, 1e-6, "per rank at TP 8, indexer on every rank",
        lambda: indexer_equals_core(V3 | {"heads": 16}, V32_INDEX)),
    Row("D1f", DERIVED, 68_592, 0.5, "printed", indexer_equals_core_prefill),
    # Crossovers (the solver's closed forms have tests of their own; these are bisections on the kernels' totals)
    Row("X1a", DERIVED, 12_813, 0.5, "printed", lambda: oneshot_crossing(V3)),
    Row("X1b", DERIVED, 7_518, 0.5, "printed", lambda: oneshot_crossing(GLM5)),
    Row("X1c", DERIVED, 110_377, 0.5, "printed; 16 heads run as 128",
        lambda: oneshot_crossing(V3 | {"heads": 16}, kernel_heads=128)),
    Row("X1d", DERIVED, 13_925, 0.5, "printed; missing keys computed", lambda: oneshot_crossing(V3, skip=False)),
    Row("X1e", DERIVED, 8_703, 0.5, "printed; missing keys computed", lambda: oneshot_crossing(GLM5, skip=False)),
    Row("X2", ARTICLE, 5_000, 1, "the ratio is printed to four digits", lambda: oneshot_crossing(V3, ratio=0.4515)),
    Row("M56", "alibaba/InferSim at f2293da, bench_data (H800 tables)", 13_500, 1_350,
        "10 %: interpolated between measured lengths",
        lambda: oneshot_crossing(V3, skip=False)),
    *(Row(f"M28 TP{tp}", DERIVED, v, 1e-9, "exact", lambda tp=tp: long_crossing(V3, 128, tp))
      for tp, v in ((1, 13_926.4), (2, 27_852.8), (4, 55_705.6), (8, 111_411.2))),
    *(Row(f"M29 TP{tp}", DERIVED, v, 0, "exact", lambda tp=tp: long_crossing(GLM5, 128, tp))
      for tp, v in ((1, 17_408), (2, 34_816), (4, 69_632), (8, 139_264))),
    *(Row(f"M30 TP{tp}", ARTICLE, v, 0.05, "lengths read off a plot",
        lambda tp=tp, at=at: at / long_crossing(V3, 128, tp))
      for tp, at, v in ((1, 5_000, 0.37), (8, 77_000, 0.71))),
    *(Row(f"M31 TP{tp}", VLLM_GLM, v, 0.001, "printed", lambda tp=tp, at=at: at / long_crossing(GLM5, 128, tp))
      for tp, at, v in ((1, 8_192, 0.471), (2, 20_480, 0.588), (4, 49_152, 0.706), (8, 114_688, 0.824))),
    Row("X5a M33", DERIVED, Fraction(512, 3), 0, "170.67, exact", lambda: queries_to_break_even(V3)),
    Row("X5b M33", DERIVED, 398.22, 0.005, "printed", lambda: queries_to_break_even(GLM5)),
    Row("X5c M33", DERIVED, 512, 0, "exact", lambda: queries_to_break_even(FLASH)),
    Row("X5d", DERIVED, 168.9, 0.05, "printed", lambda: break_even_at(8192)),
    Row("X5e", DERIVED, 662, 0.5, "printed", lambda: chunk_window(1, 2000)),
    Row("X5f", DERIVED, 5_072, 0.5, "printed", lambda: chunk_window(2000, 1e5)),
    Row("X6a M36", TYPHOON, 60.88, 0.005, "printed 61; rotary key in every head",
        lambda: typhoon(207, expanded_row_bytes=pair("mla_mha", **V3))),
    Row("X6b", DERIVED, 48.80, 0.005, "rotary key once", lambda: typhoon(207)),
    Row("X6c", FLASHMLA, 75.94, 0.005, "printed", lambda: typhoon(258.2, expanded_row_bytes=pair("mla_mha", **V3))),
    Row("X6d", FLASHMLA, 60.87, 0.005, "printed", lambda: typhoon(258.2)),
]  # fmt: skip


@pytest.mark.parametrize("published", ROWS, ids=lambda r: r.id)
def test_published(published: Row) -> None:
    found = sp.sympify(published.compute())
    assert found.is_number, f"{published.id}: {found} still depends on {found.free_symbols}"
    if published.tolerance == 0:
        assert found == exact(published.expected), f"{published.id} ({published.source}): {found} = {float(found)}"
    else:
        gap = abs(float(found) - float(published.expected))
        assert gap <= published.tolerance, f"{published.id} ({published.source}): {float(found)}, {published.why}"


def test_every_row_has_its_source_and_its_own_id() -> None:
    assert all(r.source and r.why for r in ROWS)
    assert len({r.id for r in ROWS}) == len(ROWS)


def test_the_indexer_runs_in_fp8() -> None:
    """arXiv:2512.02556 sec. 2.1: the indexer is computed in FP8; the attention cores in the model's own precision."""
    assert {n: KERNELS[n].precision for n in NAMES if KERNELS[n].precision != "bf16"} == {"dsa_indexer": "fp8"}


def test_the_derivation_starts_from_the_kernel() -> None:
    """The closed form of the limit is the kernel's own limit, with the row width left open."""
    kernel = decode()
    at = {"batch": 3, "q_len": 2, "heads": 7, "latent": 5, "rope": 3, "kv_row_bytes": 11, "w_act": 2}
    far = float(kernel.bind(**at, context=10**9).intensity)
    assert far == pytest.approx(float(put(decode_intensity_limit(), **at)), rel=1e-6)
