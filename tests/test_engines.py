"""Engine tables as published: routing (M34, M35), head padding and query gates."""

from __future__ import annotations

import pytest

from roofline.engines import padded_heads, query_gates, runs_mha, thresholds
from roofline.errors import BadValue, UnknownName

V32 = {"nope": 128, "rope": 64, "value": 128, "heads": 128}
GLM5 = {"nope": 192, "rope": 64, "value": 256, "heads": 64}


# vllm/model_executor/layers/attention/mla_attention.py at 81be2e09a, _DSV32_MASKED_MHA_THRESHOLDS (exact: a table)
@pytest.mark.parametrize(
    ("tp", "q_len", "seq_len", "mha"),
    [(1, 4096, 4096, True), (1, 4095, 4096, False), (8, 2048, 16384, True), (8, 32769, 32769, False)],
)
def test_v32_routing(tp, q_len, seq_len, mha):
    assert runs_mha("vLLM", "FLASHMLA_SPARSE", V32, tp=tp, q_len=q_len, seq_len=seq_len) is mha


# tests/v1/attention/test_mla_backends.py at 1474286e: lengths that run in MHA mode and the next that do not
@pytest.mark.parametrize(
    ("backend", "tp", "last", "beyond"),
    [
        ("FLASHMLA_SPARSE", 1, 8192, 9216),
        ("FLASHMLA_SPARSE", 2, 20480, 24576),
        ("FLASHMLA_SPARSE", 4, 49152, 57344),
        ("FLASHMLA_SPARSE", 8, 114688, 131072),
        ("FLASHINFER_MLA_SPARSE", 4, 36864, 40960),
        ("FLASHINFER_MLA_SPARSE", 8, 65536, 69632),
    ],
)
def test_glm5_routing(backend, tp, last, beyond):
    assert runs_mha("vLLM", backend, GLM5, tp=tp, q_len=last, seq_len=last)
    assert not runs_mha("vLLM", backend, GLM5, tp=tp, q_len=beyond, seq_len=beyond)
    (voice,) = [v for v in thresholds(GLM5, tp) if v["backend"] == backend]
    assert (voice["seq_len"], voice["next_seq_len"]) == (last, beyond)


def test_cached_context_has_ranges_of_its_own():
    """The same tree: none at TP 1; at TP 2 up to 10,240 with at least 8,192 new tokens."""
    assert not runs_mha("vLLM", "FLASHMLA_SPARSE", GLM5, tp=1, q_len=4096, seq_len=8192, cached=True)
    assert runs_mha("vLLM", "FLASHMLA_SPARSE", GLM5, tp=2, q_len=8192, seq_len=10240, cached=True)
    assert not runs_mha("vLLM", "FLASHMLA_SPARSE", GLM5, tp=2, q_len=8191, seq_len=10240, cached=True)


@pytest.mark.parametrize(
    ("engine", "heads", "run"),
    [("vllm-flashmla-sm100", 16, 128), ("vllm-flashmla-sm90", 16, 64), ("vllm-flashmla-sm90", 128, 128),
     ("vllm-flashinfer", 16, 16), ("vllm-flashinfer", 6, 8), ("vllm-flashmla-decode-fp8", 65, 128)],
)  # fmt: skip
def test_padding(engine, heads, run):
    assert padded_heads(engine, heads) == run


def test_query_gates_by_heads():
    assert [g["q_len"] for g in query_gates(64)] == [256, 256, 128, 512]


def test_unknown_names_and_bad_heads():
    with pytest.raises(UnknownName):
        padded_heads("vllm", 16)
    with pytest.raises(UnknownName):
        runs_mha("vLLM", "NOPE", V32, tp=1, q_len=1, seq_len=1)
    with pytest.raises(BadValue):
        padded_heads("vllm-flashmla-sm90", 0)


def test_the_articles_lengths_are_solved_not_typed():
    """0.4515 at TP 1 and 0.7005 at TP 8, design pin X2, from the solver."""
    import roofline

    rows = roofline.crossover("glm-5")["article"]["rows"]
    assert [(r["tp"], round(r["rate_ratio"], 4)) for r in rows] == [(1, 0.4515), (8, 0.7005)]
