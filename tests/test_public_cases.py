"""Two public reports of wrong counts, as this project counts them."""

from __future__ import annotations

import pytest

from roofline.kernels import KERNELS
from roofline.models import load_model


@pytest.mark.parametrize(("tokens", "flops"), [(1, 37376), (2, 74752)])
def test_one_dense_layer_is_counted_in_full(tokens, flops):
    """github.com/jax-ml/jax issue 22249: a layer of 73 x 256, which a cost analysis reported as less."""
    assert KERNELS["linear"].bind(tokens=tokens, hidden=73, ffn=256).flops == flops


def test_grouped_queries_shrink_the_cache():
    """vllm-project/vllm pull request 29736: 2 x hidden a layer is four times too much for 32 heads in 8 groups."""
    model = load_model("llama-3.1-8b")
    assert 2 * model.hidden * 2 * len(model.layers) / model.kv("bf16").bytes_per_token == 4


def test_a_step_of_several_precisions_says_whose_ridge_is_meant():
    """DeepSeek-V3 runs most products in fp8; a batch at the bf16 ridge is not that of each product."""
    from roofline.answers.solve import solve

    numbers = {"q_len": 1, "context": 4096}
    told = solve("batch", model="deepseek-v3", hardware="h200-sxm", values=numbers).notes
    assert any("fp8" in note and "roofline step" in note for note in told)
    told = solve("batch", model="llama-3.1-8b", hardware="h200-sxm", values=numbers).notes
    assert not any("roofline step" in note for note in told)
