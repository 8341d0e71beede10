"""Measured kernels and decode speeds of others: each lies on the right side of the bound, with the efficiency they
print.

Every number has its source beside it.  Bounds of kernels count query and output traffic, as FlashMLA's own tests do.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from roofline.accelerators import adhoc
from roofline.evaluate import closed_form, evaluate, visible
from roofline.models import Model, load_model, read_config
from roofline.plan import Deployment, Options, Rates, Use, Workload, plan, with_weight_dtype
from roofline.plan.chip import chip
from roofline.plan.numbers import cost

CORE = {"latent": 512, "rope": 64, "w_act": 2, "kv_row_bytes": 1152}
H100, H200 = Rates({"bf16": 989e12, "fp8": 1979e12}, 3.35e12), Rates({"bf16": 989e12, "fp8": 1979e12}, 4.8e12)
B200 = Rates({"bf16": 2250e12, "fp8": 4500e12}, 8.0e12)


def mla(quantity: str, batch: float, keys: float, heads: int, q_len: int = 1, **more: float) -> float:
    """A total of the MLA core in MQA mode over `keys` rows, none of them masked."""
    given = {
        **CORE,
        "heads": heads,
        "kernel_heads": heads,
        "batch": batch,
        "q_len": q_len,
        "pairs": q_len * keys,
        "rows_read": keys,
        **more,
    }
    needs = {
        "flops": ("batch", "kernel_heads", "latent", "pairs", "rope"),
        "bytes": ("batch", "heads", "kv_row_bytes", "latent", "q_len", "rope", "rows_read", "w_act"),
    }
    return float(evaluate("mla_mqa", quantity, **{k: given[k] for k in needs[quantity]}))


@pytest.mark.parametrize(
    ("q_len", "heads", "ms", "tflops", "gbps", "intensity", "efficiency"),
    [
        (1, 16, 0.215, 85, 2826, 30.0, 0.84),
        (2, 32, 0.223, 327, 2788, 117.4, 0.83),
        (1, 64, 0.223, 328, 2789, 117.4, 0.83),
    ],
)
def test_k01_flashmla_dense_decode_on_h100(
    q_len: int, heads: int, ms: float, tflops: float, gbps: float, intensity: float, efficiency: float
) -> None:
    """ai-bot-pro/achatbot PR 123: b 128, 4,096 keys, bf16; times have three decimals, so 0.5 %."""
    flops, moved = (mla(q, 128, 4096, heads, q_len) for q in ("flops", "bytes"))
    assert flops / ms * 1e3 / 1e12 == pytest.approx(tflops, rel=5e-3)
    assert moved / ms * 1e3 / 1e9 == pytest.approx(gbps, rel=5e-3)
    assert flops / moved == pytest.approx(intensity, rel=5e-3)
    bound = max(flops / 989e12, moved / 3.35e12)
    assert bound == moved / 3.35e12
    assert bound / (ms * 1e-3) == pytest.approx(efficiency, abs=6e-3)


def test_k03_query_rows_at_the_crossover() -> None:
    """FlashMLA docs/20250422: printed 128 by 2 h; exact 136.7 throttled (865 TFLOP/s) and 156.4 nominal (990)."""
    shape = {"kv_row_bytes": 1152, "latent": 512, "rope": 64, "q_len": 1, "bandwidth": 3.35e12}
    assert closed_form("heads_at_ridge")(peak=865e12, **shape) == pytest.approx(136.7, abs=0.5)
    assert closed_form("heads_at_ridge")(peak=990e12, **shape) == pytest.approx(156.4, abs=0.5)
    assert 128 <= 865e12 / 3.35e12 / 2 <= 129.2


def test_k05_four_uneven_prompts() -> None:
    """hazyresearch ThunderMLA: lengths add, nothing is padded to the longest; 16 heads, 4 queries; times rounded to 1
    us."""
    lengths = (4641, 45118, 1730, 1696)
    flops, moved = (sum(mla(q, 1, n, 16, 4) for n in lengths) for q in ("flops", "bytes"))
    for micros, tflops, gbps in ((52, 144, 1199), (41, 183, 1520)):
        assert flops / micros / 1e6 == pytest.approx(tflops, rel=0.015)
        assert moved / micros / 1e3 == pytest.approx(gbps, rel=0.015)
    assert flops / moved == pytest.approx(119.8, rel=0.015)
    assert flops / moved < 989 / 3.35


@pytest.mark.parametrize(
    ("batch", "keys", "micros", "tflops", "tbps", "row"),
    [
        (16, 4096, 34.7793, 131.21, 2.20279, 1152),
        (128, 131072, 3246.21, 359.875, 5.95656, 1152),
        (128, 4096, 78.1666, 467.044, 3.94725, 576),
    ],
)
def test_k07_aiter_table(batch: int, keys: int, micros: float, tflops: float, tbps: float, row: int) -> None:
    """ROCm/aiter PR 5456, 32 heads.  The fp8 row reads queries in one byte and writes the output in two."""
    assert mla("flops", batch, keys, 32) / micros / 1e6 == pytest.approx(tflops, rel=5e-4)
    moved = mla("bytes", batch, keys, 32, kv_row_bytes=row, w_act=2 if row == 1152 else 1)
    if row == 576:
        moved += batch * 32 * 512
    assert moved / micros / 1e6 == pytest.approx(tbps, rel=5e-4)


@pytest.mark.parametrize(
    ("dim", "heads", "causal", "ms", "tflops"),
    [(64, 32, False, 0.572, 120.1), (128, 16, False, 0.545, 126.2), (64, 32, True, 0.342, 100.3)],
)
def test_k09_causal_convention_on_h20(dim: int, heads: int, causal: bool, ms: float, tflops: float) -> None:
    """Dao-AILab/flash-attention issue 1310: counted in full the causal run would reach 200.9 of 148 TFLOP/s.  The exact
    triangle is 0.05 % above the half square that is printed."""
    seen = visible("dense" if causal else "full", q_len=2048, context=0)
    flops = evaluate("attention", "flops", batch=2, heads=heads, head_dim=dim, pairs=seen["pairs"])
    assert flops / ms / 1e9 == pytest.approx(tflops, rel=3e-3)
    assert flops / ms / 1e9 < 148
    if causal:
        assert 2 * flops / ms / 1e9 > 148


def test_k11_full_square_puts_a_run_above_its_peak() -> None:
    """flash-attention issue 573: 322 of 312 TFLOP/s on A800 at 65,536 tokens.  With the triangle the attention
    halves."""
    causal, full = (visible(name, q_len=65536, context=0)["pairs"] for name in ("dense", "full"))
    assert 322 > 312
    assert causal / full == pytest.approx(0.5, rel=1e-4)


@pytest.mark.parametrize(
    ("heads", "ms", "bound_ms", "efficiency"),
    [(16, 0.1592, 0.12628, 0.793), (64, 0.17429, 0.12767, 0.733), (128, 0.24113, 0.14764, 0.612)],
)
def test_k12_measured_decode_on_h200(heads: int, ms: float, bound_ms: float, efficiency: float) -> None:
    """ai-dynamo/aiconfigurator at 095f58a, h200_sxm/mla/sglang/0.5.10/generation_mla_perf, batch 64, 8,191 keys,
    bf16."""
    flops, moved = (mla(q, 64, 8191, heads) for q in ("flops", "bytes"))
    bound = max(flops / 989e12, moved / 4.8e12) * 1e3
    assert bound == pytest.approx(bound_ms, rel=1e-3)
    assert bound / ms == pytest.approx(efficiency, abs=2e-3)


def test_k15_a_file_that_cannot_be_true() -> None:
    """h100_sxm/attention/trtllm generation_attention_perf: 1.3.0rc10 reads 5.8 TB/s from a 3.35 TB/s memory, rc20
    90.6 %."""
    moved = evaluate(
        "attention", "bytes", batch=32, heads=16, head_dim=128, q_len=1, rows_read=32767, kv_row_bytes=4096, w_act=2
    )
    wrong, right = (moved / ms * 1e3 for ms in (0.741115, 1.415211))
    assert wrong / 1e9 == pytest.approx(5795, rel=3e-3)
    assert wrong / 3.35e12 == pytest.approx(1.73, abs=0.01)
    assert right / 3.35e12 == pytest.approx(0.906, abs=3e-3)


def test_k16_a_product_whose_operand_fits_the_cache() -> None:
    """h100_sxm/gemm/vllm/0.19.0, 32768 x 32 x 512: faster than DRAM, below the compute roof; 33.6 MB lie in 50 MB of
    L2."""
    sizes = {"tokens": 32768, "ffn": 32, "hidden": 512}
    moved, flops = evaluate("linear", "bytes", **sizes, w_act=2, w_weight=2), evaluate("linear", "flops", **sizes)
    assert moved == 35_684_352
    assert moved / 3.35e6 == pytest.approx(10.65, rel=3e-3)
    assert moved / 7.561e-6 / 1e9 == pytest.approx(4720, rel=3e-3)
    assert flops / 7.561e-6 < 989e12


@pytest.mark.parametrize(
    ("m", "ms", "tflops", "bound_ms", "leg", "efficiency"),
    [
        (64, 0.19, 101.7, 0.1498, "memory", 0.79),
        (128, 0.2003, 193.0, 0.1512, "memory", 0.75),
        (256, 0.3185, 242.7, 0.2478, "compute", 0.78),
        (4096, 4.4576, 277.5, 3.965, "compute", 0.89),
        (16384, 17.0307, 290.5, 15.86, "compute", 0.93),
    ],
)
def test_k17_gemm_sweep_on_a100(m: int, ms: float, tflops: float, bound_ms: float, leg: str, efficiency: float) -> None:
    """PrincetonUniversity/LLMCompass at 2e015fd, ae/figure5/ab/real_hardware/matmul_A100.csv, K = N = 12,288, fp16."""
    use = Use("gemm", "linear", {"tokens": m, "hidden": 12288, "ffn": 12288, "w_act": 2, "w_weight": 2}, "core")
    found = cost(use, {}, Rates({"bf16": 312e12}, 2.039e12))
    assert found.flops / ms / 1e9 == pytest.approx(tflops, rel=1e-3)
    assert found.lower * 1e3 == pytest.approx(bound_ms, rel=1.5e-3)  # 0.1498 is printed for 0.14965
    assert found.bound == leg
    assert found.lower * 1e3 / ms == pytest.approx(efficiency, abs=0.01)


def test_k20_random_lengths_taken_as_the_longest() -> None:
    """flashinfer issue 1638: uniform lengths 1..S counted as S each inflate the FLOPs twofold."""
    lengths = range(1, 4097)
    real = sum(mla("flops", 1, n, 128) for n in lengths)
    assert len(lengths) * mla("flops", 1, 4096, 128) / real == pytest.approx(2.0, abs=0.1)


def decode_rate(
    model: Model,
    bandwidth: float,
    context: float,
    options: Options | None = None,
    spread: Deployment | None = None,
    batch: float = 1,
) -> float:
    """Steps a second at the bound, on a part of which only the bandwidth binds."""
    rates = chip(adhoc(peak=1e18, bandwidth=bandwidth)).rates
    return 1 / plan(model, Workload("decode", batch=batch, context=context - 1), spread, options).bounds(rates).lower


LLAMA3 = "llama-3.1-8b"  # Llama-3-8B has the same shapes


@pytest.mark.parametrize(
    ("bandwidth", "measured", "bound", "efficiency"),
    [
        (1008, 54.34, 66.9, 0.81),
        (936.2, 46.51, 62.1, 0.75),
        (960, 51.97, 63.7, 0.82),
        (768, 40.25, 50.9, 0.79),
        (360, 20.85, 23.9, 0.87),
        (400, 18.43, 26.5, 0.69),
        (800, 36.25, 53.1, 0.68),
        (400, 22.39, 26.5, 0.84),
    ],
)
def test_l01_l03_llama_on_one_card(bandwidth: float, measured: float, bound: float, efficiency: float) -> None:
    """XiongjieDai/GPU-Benchmarks-on-LLM-Inference at aa72e0e: Llama-3-8B F16, llama.cpp, about 512 tokens of context:
    RTX 4090,
    3090, 6000 Ada, A6000, 4000 Ada, M1 Max, M2 Ultra, M3 Max (40 cores).  The embedding table is not streamed."""
    found = decode_rate(load_model(LLAMA3), bandwidth * 1e9, 512)
    assert found == pytest.approx(bound, rel=5e-3)
    assert measured < found
    assert measured / found == pytest.approx(efficiency, abs=0.01)


def streamed(model: Model) -> float:
    """Bytes of a decode step of one sequence without context, activations left out."""
    return plan(model, Workload("decode"), None, Options(w_act=0)).totals()["bytes"]


def llama2_7b() -> Model:
    """meta-llama/Llama-2-7b config.json."""
    shape: dict[str, Any] = {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "vocab_size": 32000,
        "torch_dtype": "float16",
        "tie_word_embeddings": False,
    }
    return read_config(shape, "llama-2-7b", "llama-2-7b")


def test_l05_gpt_fast_streams_what_we_say() -> None:
    """pytorch-labs gpt-fast README, A100-80GB: GB/s over tokens/s gives 15.03, 7.49 (int8, head too) and 13.32 GB a
    token."""
    eight = load_model(LLAMA3)
    assert streamed(eight) == pytest.approx(1410.76 / 93.89 * 1e9, rel=0.01)
    assert streamed(with_weight_dtype(eight, "int8", head=True)) == pytest.approx(1030.89 / 137.64 * 1e9, rel=0.01)
    assert streamed(llama2_7b()) == pytest.approx(1397.31 / 104.9 * 1e9, rel=0.01)
    assert eight.weight_bytes.total > 1.06 * streamed(eight)


@pytest.mark.parametrize(
    ("tp", "measured", "bound", "efficiency"),
    [(1, 93.83, 135.8, 0.69), (2, 149.1, 271.7, 0.55), (4, 217.21, 543.4, 0.4), (8, 276.01, 1086.7, 0.25)],
)
def test_l07_gpt_fast_tensor_parallel(tp: int, measured: float, bound: float, efficiency: float) -> None:
    """Same README: the bound falls with 1/TP, the measurement does not."""
    found = decode_rate(load_model(LLAMA3), 2039e9, 1, spread=Deployment(tp=tp))
    assert found == pytest.approx(bound, rel=0.01)
    assert measured / found == pytest.approx(efficiency, abs=0.01)


@pytest.mark.parametrize(
    ("tp", "ms", "bound_ms", "efficiency"),
    [(1, 20.11, 15.12, 0.75), (2, 12.02, 7.56, 0.63), (4, 7.98, 3.78, 0.47), (8, 6.26, 1.89, 0.3)],
)
def test_l09_llama_70b_fp8_on_h200(tp: int, ms: float, bound_ms: float, efficiency: float) -> None:
    """aiconfigurator at 095f58a, silicon_sample.csv: 4 users, 1,024 in and out, so 1,536 keys on average; fp8 body,
    bf16 head."""
    found = 1e3 / decode_rate(
        load_model("llama-3.1-70b"), 4.8e12, 1536, Options(weight_dtype="fp8"), Deployment(tp=tp), 4
    )
    assert found == pytest.approx(bound_ms, rel=0.01)
    assert found / ms == pytest.approx(efficiency, abs=0.01)


def test_l11_active_weights_not_all_of_them() -> None:
    """AlexsJones/llmfit issue 474: an A3B mixture at 77.6 tokens/s on 512 GB/s beats the bound of all its 13 GB.
    Ours, on
    a mixture of the same size class (Qwen3-30B-A3B in 4 bits): all weights would give 30 tokens/s, the step gives
    more."""
    assert 512 / 13 < 77.6
    m = with_weight_dtype(load_model("qwen3-30b-a3b"), "int4")
    assert (
        512e9 / m.weight_bytes.total
        < 77.6
        < decode_rate(load_model("qwen3-30b-a3b"), 512e9, 512, Options(weight_dtype="int4"))
    )


def test_l12_streamed_bytes_leave_out_embedding_and_prediction_modules() -> None:
    """Qwen3.8-27B NVFP4 on RTX 5090 (public text, address not recorded): 21.9 GB of file, 17.608 streamed, 101.8
    tokens/s at
    1,792 GB/s, 64.8 measured.  The same rule on a built-in checkpoint with prediction modules."""
    assert pytest.approx(101.8, rel=5e-3) == 1792 / (16.893 + 0.715)
    assert pytest.approx(0.637, abs=3e-3) == 64.8 / (1792 / 17.608)
    m = load_model("mimo-7b")
    table = m.weight_bytes.by_class["embedding"]
    assert m.weight_bytes.mtp > 0
    assert streamed(m) == pytest.approx(m.weight_bytes.total - table, rel=1e-3)


@pytest.mark.parametrize(
    ("rates", "heads", "batch", "isl", "step", "row", "ms", "verdict"),
    [
        ("H200", 128, 128, 1, 16383, 1152, 0.924, "under"),
        ("H200", 8, 128, 1, 16383, 1152, 0.560, "under"),
        ("H100", 128, 128, 1, 16383, 1152, 0.995, "under"),
        ("B200", 128, 128, 1, 16383, 1152, 0.4437, "under"),
        ("B200", 128, 128, 1, 16383, 576, 0.2363, "fp8 math"),
        ("B200", 16, 128, 1, 16383, 576, 0.1944, "under"),
    ],
)
def test_published_decode_rows_lie_under_their_bound(
    rates: str, heads: int, batch: int, isl: int, step: int, row: int, ms: float, verdict: str
) -> None:
    """aiconfigurator at 095f58a, generation_mla_perf of TensorRT-LLM 1.3.0rc15/rc20 and SGLang 0.5.14, b 128, 16,384
    keys: the
    fp8-cache row of 128 heads on B200 beats the 16-bit bound and lies under the fp8 one: fp8 math under a bf16
    label."""
    chip_rates = {"H100": H100, "H200": H200, "B200": B200}[rates]
    values = {
        "heads": heads,
        "kernel_heads": heads,
        "latent": 512,
        "rope": 64,
        "kv_row_bytes": row,
        "w_act": 2,
        "pairs": "dense.pairs",
        "rows_read": "dense.rows_read",
    }
    numbers = {"batch": batch, "q_len": 1, "context": isl + step - 1}
    use = Use("core", "mla_mqa", values, "core")
    plain, fp8 = (
        cost(use, numbers, chip_rates).lower * 1e3,
        cost(use._replace(precision="fp8"), numbers, chip_rates).lower * 1e3,
    )
    assert (plain <= ms) is (verdict == "under")
    assert fp8 <= ms


@pytest.mark.parametrize(
    ("name", "heads", "length", "ms", "least"),
    [
        ("deepseek-v3", 128, 32768, 74.0, 0.7),
        ("deepseek-v3", 64, 32768, 38.8, 0.7),
        ("deepseek-v3", 16, 32768, 10.8, 0.7),
        ("deepseek-v3.2", 128, 32768, 67.7, 0.4),
        ("deepseek-v3.2", 16, 16384, 15.1, 0.1),
    ],
)
def test_whole_attention_modules_on_h200(name: str, heads: int, length: int, ms: float, least: float) -> None:
    """aiconfigurator at 095f58a, h200_sxm vLLM 0.24.0 mla_ and dsa_context_module_perf, batch 1, bf16: a module with
    its
    projections (and, sparse, indexer and top-k) of one layer takes longer than the bound of its kernels, but not by
    orders of magnitude."""
    m = load_model(name)
    step = plan(
        m, Workload("oneshot", q_len=length), Deployment(tp=128 // heads), Options(weight_dtype="bf16", kv_dtype="bf16")
    )
    parts = [c for c in step.costs(H200) if c.use.part in ("attention", "indexer")]
    bound = sum(c.lower * c.use.count for c in parts) / 61 * 1e3
    assert least * ms < bound < ms


FILES = Path(__file__).parent.parent / "benchmarks" / "check_measured.py"
COLUMNS = (
    "op_name,device,latency,batch_size,isl,step,num_heads,num_key_value_heads,head_dim,kv_cache_dtype,m,n,k,gemm_dtype"
)


@pytest.mark.skipif(not FILES.exists(), reason="a source distribution leaves the benchmarks out")
def test_the_script_names_what_cannot_be_true(tmp_path: Path) -> None:
    """The rows of K15, K16 and an fp8-cache row of TensorRT-LLM on B200, in files of their own, with their verdicts."""
    h100, b200 = "NVIDIA H100 80GB HBM3", "NVIDIA B200"
    rows = {
        "impossible": f"generation_attention,{h100},0.741115,32,1,32766,16,8,128,bfloat16,,,,",
        "under the bound": f"generation_attention,{h100},1.415211,32,1,32766,16,8,128,bfloat16,,,,",
        "operands fit the last-level cache": f"gemm,{h100},0.007561,,,,,,,,32768,32,512,bfloat16",
        "fp8 math under a bf16 label": f"mla_generation,{b200},0.2363,128,1,16383,128,,,fp8,,,,",
    }
    for verdict, row in rows.items():
        path = tmp_path / f"{verdict.replace(' ', '_')}.csv"
        path.write_text(f"{COLUMNS}\n{row}\n", encoding="utf-8")
        words = [sys.executable, str(FILES), str(path), "--json"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=FILES.parent.parent, timeout=60)
        assert done.stdout, done.stderr
        assert json.loads(done.stdout)[0]["verdicts"] == {verdict: 1}
        assert done.returncode == (1 if verdict == "impossible" else 0)
