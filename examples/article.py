"""Regenerates the numbers and figures of an article on sparse attention in GLM-5.3 and its neighbours.

    python examples/article.py [FOLDER]

prints each statement beside what the formulas give, with the reason where the two differ, and writes the three figures
into FOLDER (default ./out).  Source: newsletter.semianalysis.com, "Sparse Savings, Persistent Demand" (2026-09-28), and
for the shared prefix arXiv:2509.21081.
"""

from __future__ import annotations

import sys
from pathlib import Path

import sympy as sp

import roofline
from roofline.derivations import decode_intensity_limit
from roofline.kernels import KERNELS
from roofline.models import load_model
from roofline.symbols import sym


def intensity(heads: int, rope: int = 64) -> float:
    """Long-context decode intensity in MQA mode with a bf16 row [FLOP/B]."""
    row = KERNELS["mla_mqa"].bindings[sym.kv_row_bytes]
    limit = decode_intensity_limit().subs({sym.kv_row_bytes: row})
    return float(limit.subs({sym.heads: heads, sym.q_len: 1, sym.latent: 512, sym.rope: rope, sym.w_kv: 2}))


def mode_ratios(model: str) -> tuple[float, float]:
    """FLOPs of MQA mode over MHA mode per pair, and bytes of an expanded row over a cached one."""
    shape = {k: v for k, v in load_model(model).shape.items() if k in ("heads", "latent", "rope", "nope", "value")}
    mha, mqa = (
        KERNELS[k].bind(batch=1, pairs=1, w_kv=2, w_expanded=2, kernel_heads=shape["heads"], **shape)
        for k in ("mla_mha", "mla_mqa")
    )
    expanded, cached = mha.bindings[sym.expanded_row_bytes], mqa.bindings[sym.kv_row_bytes]
    return float(mqa.flops / mha.flops), float(sp.Rational(expanded, cached))


def crossing(**options: object) -> float:
    """The crossing of the first row."""
    return float(roofline.crossover(**options).rows[0]["value"])  # type: ignore[arg-type]


def statements() -> list[tuple[str, str, str, str]]:
    """Statement, as printed, as computed, remark."""
    (h800,) = roofline.heads("h800-sxm", roof="flashmla").rows
    k3 = mode_ratios("kimi-k3")
    at = [crossing(model="deepseek-v3.2", tp=tp, kernel_heads=128, at_length=n) for tp, n in ((1, 5000), (8, 77000))]
    return [
        ("intensity at 128 heads [FLOP/B]", "241.8", f"{intensity(128):.2f}", "long-context limit"),
        ("intensity at 64 heads [FLOP/B]", "120.8", f"{intensity(64):.2f}", "the article truncates"),
        ("GLM-5.3-Flash, 64 heads, rope 0 [FLOP/B]", "-", f"{intensity(64, rope=0):.2f}", "exactly 2H"),
        ("H800 ridge, practical [FLOP/B]", "258.2", f"{h800['ridge_flop_per_byte']:.2f}", "865 TFLOP/s over 3.35 TB/s"),
        ("heads on that ridge", "about 128", f"{h800['heads_exact']:.2f}", "129.1 with 2H for the exact 17/9 H"),
        ("Kimi K3, MHA over MQA mode, memory", "42x", f"{k3[1]:.2f}", "shared rotary row counted once"),
        ("Kimi K3, MQA over MHA mode, FLOPs", "3.4x", f"{k3[0]:.2f}", "exactly 17/5"),
        ("V3.2 crossing, data parallel", "5K", f"{crossing(model='deepseek-v3.2'):,.0f}", "5K read off a "
        f"plot: rate ratio {at[0]:.4f}"),
        ("V3.2 crossing, TP 8", "77K", f"{crossing(model='deepseek-v3.2', tp=8, kernel_heads=128):,.0f}",
         f"heads padded to 128; 77K is a rate ratio of {at[1]:.4f}"),
        ("GLM-5 crossing, data parallel", "-", f"{crossing(model='glm-5'):,.0f}", "FLOPs of the attention cores"),
    ]  # fmt: skip


def main(folder: str = "out") -> None:
    """Print the table and write the figures."""
    rows = statements()
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        print("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    roofline.plot("roofline", str(target / "roofline.pdf"), hardware="h800-sxm", roof="flashmla")
    roofline.plot("heads", str(target / "heads.pdf"), hardware="h800-sxm,h200-sxm,b200-sxm,mtt-s4000,h20")
    roofline.plot("crossover", str(target / "crossover.pdf"), model="deepseek-v3.2", tp=(1, 8), kernel_heads=128)
    print("wrote", ", ".join(str(target / f"{name}.pdf") for name in ("roofline", "heads", "crossover")))


if __name__ == "__main__":
    main(*sys.argv[1:2])
