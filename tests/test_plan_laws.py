"""Laws of a step that hold for every model: phases, degrees, rates, routing, and the sum of the parts."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.errors import BadValue
from roofline.models import Model, list_models, load_model
from roofline.plan import Deployment, Options, Rates, Workload, plan

H200 = Rates({"bf16": 989.4e12, "fp8": 1978.9e12}, 4.8e12, 67e12, 3.86e12, 450e9)
MODELS = list_models()
SOME = ("deepseek-v3.2", "llama-3.1-8b", "glm-5.3-flash", "qwen3.5-122b-a10b", "gpt-oss-120b", "llama-4-scout")


@cache
def model(name: str) -> Model:
    return load_model(name)


def totals_of(
    name: str, load: Workload, spread: Deployment | None = None, options: Options | None = None
) -> dict[str, float]:
    return plan(model(name), load, spread, options).totals()


PREFILL = {
    "llama-3.1-8b": None,
    "deepseek-v3": "mqa",
    "deepseek-v3.2": "mqa",
    "gpt-oss-120b": None,
    "llama-4-scout": None,
    "gemma-4-26b-a4b": None,
}


@pytest.mark.parametrize("name", PREFILL)
def test_causal_prefill_is_the_sum_of_its_decode_steps(name: str) -> None:
    """FLOPs of a prefill of S tokens = those of S decode steps in the same mode; the head runs once instead of S
    times."""
    s, m = 9, model(name)
    whole = plan(m, Workload("oneshot", q_len=s), None, Options(mode=PREFILL[name]))
    flops = sum(c.flops * c.use.count for c in whole.costs() if c.use.part != "head")
    steps = 0.0
    for context in range(s):
        costs = plan(m, Workload("decode", context=context)).costs()
        steps += sum(c.flops * c.use.count for c in costs if c.use.part != "head")
    assert flops == pytest.approx(steps, rel=1e-12)


@pytest.mark.parametrize("mode", ["mqa", "mha"])
def test_chunks_of_a_prompt_cost_its_pairs_and_the_context_again(mode: str) -> None:
    """FLOPs of the chunks of a prompt = those of one piece; in MHA mode plus the re-projection of what was cached:
    rows S^2/(2c) + S/2 in all (facts of vLLM's chunked prefill, `mla_attention.py`, context chunks)."""
    m, s, c = model("deepseek-v3"), 4096, 1024
    options = Options(mode=mode)

    def flops(load: Workload) -> float:
        return sum(x.flops * x.use.count for x in plan(m, load, None, options).costs() if x.use.part != "head")

    chunks = sum(flops(Workload("chunked", q_len=c, context=done)) for done in range(0, s, c))
    again = (s * s / (2 * c) + s / 2) - s if mode == "mha" else 0
    assert chunks == pytest.approx(flops(Workload("oneshot", q_len=s)) + again * 61 * 2 * 512 * 128 * 256, rel=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_flops_a_token_are_two_a_visited_weight_and_attention(name: str) -> None:
    """At context 0 attention is nearly nothing: FLOPs a token = 2 x active parameters, but for tensors that do not
    multiply
    (norms, biases, convolutions), the absorbed kv_b (used twice in no way: once), and experts that pass a token
    through."""
    m = model(name)
    costs = plan(m, Workload("decode", batch=1)).costs()
    found = sum(
        c.flops * c.use.count
        for c in costs
        if c.use.kernel not in ("attention", "mla_mqa", "dsa_mqa", "dsa_indexer", "mla_mha", "delta_step", "ssm_step")
    )
    active = sum(w.elements * w.active * (w.kind != "embedding") for _, w in m.tensors(mtp=False) if len(w.shape) == 2)
    if m.tied:
        active += m.vocab * m.hidden
    zero = [b.shape for layer in m.layers for b in layer.ffns if b.kind == "moe" and b.shape["zero_experts"]]
    real = sum(
        3 * b["expert_hidden"] * b["ffn"] * b["active_experts"] * b["zero_experts"] / (b["experts"] + b["zero_experts"])
        for b in zero
    )
    cross = sum(
        w.elements
        for layer in m.layers
        if layer.attention.kind == "cross"
        for w in layer.attention.weights
        if w.name[-13:-7] in ("k_proj", "v_proj")
    )
    assert found == pytest.approx(2 * (active - real - cross), rel=1e-9)
    assert found == pytest.approx(2 * m.params.active, rel=0.02 if not zero else 0.5)


sizes = st.fixed_dictionaries({"batch": st.integers(1, 400), "context": st.integers(0, 60_000)})
some = st.sampled_from(SOME)


@settings(deadline=None, max_examples=60)
@given(some, sizes, st.integers(1, 3), st.integers(1, 40))
def test_more_tokens_are_never_less_work(name: str, size: dict[str, int], q_len: int, more: int) -> None:
    """More sequences, more context or more tokens a sequence: no total falls (chunked attention apart: a new chunk
    begins)."""
    base = totals_of(name, Workload("decode", q_len=q_len, **size))
    for change in ({"batch": size["batch"] + more}, {"context": size["context"] + more}, {"q_len": q_len + more}):
        if name == "llama-4-scout" and "context" in change:
            continue
        bigger = totals_of(name, Workload("decode", **{"q_len": q_len, **size, **change}))
        for quantity, value in base.items():
            assert bigger[quantity] >= value * (1 - 1e-12), (quantity, change)


@settings(deadline=None, max_examples=40)
@given(some, sizes, st.sampled_from(["decode", "chunked", "mixed"]), st.integers(1, 3000))
def test_tensor_parallelism_never_adds_work_to_a_rank(name: str, size: dict[str, int], phase: str, q_len: int) -> None:
    """FLOPs, vector operations and exponentials of a rank fall or stay as tp grows; the cache does not need to."""
    load = Workload(phase, q_len=1 if phase == "decode" else q_len, **size)
    degrees = [d for d in (1, 2, 4, 8) if fits(model(name), Deployment(tp=d))]
    found = [totals_of(name, load, Deployment(tp=d)) for d in degrees]
    for less, more in zip(found[1:], found, strict=False):
        for quantity in ("flops", "vector_flops", "exps", "bytes"):
            assert less[quantity] <= more[quantity] * (1 + 1e-12), quantity


def fits(m: Model, spread: Deployment) -> bool:
    try:
        plan(m, deployment=spread)
    except BadValue:
        return False
    return True


@settings(deadline=None, max_examples=40)
@given(some, sizes, st.integers(1, 2000), st.integers(0, 20_000), st.floats(0.1, 10), st.floats(0.1, 10))
def test_a_mixed_step_lies_between_its_phases(
    name: str, size: dict[str, int], q_len: int, prefix: int, fast: float, wide: float
) -> None:
    """Never slower than its phases one after the other, never faster than each alone; on any chip, with collectives
    too."""
    rates = Rates({"bf16": 1e15 * fast, "fp8": 2e15 * fast}, 4e12 * wide, 67e12, 4e12, 450e9)
    for spread in (Deployment(), Deployment(tp=2)):
        both = plan(model(name), Workload("mixed", q_len=q_len, prefill_context=prefix, **size), spread).bounds(rates)
        first = plan(model(name), Workload("decode", **size), spread).bounds(rates)
        second = plan(model(name), Workload("chunked", q_len=q_len, context=prefix), spread).bounds(rates)
        for part in ("compute_lower", "compute_upper", "link"):
            one, two, mixed = getattr(first, part), getattr(second, part), getattr(both, part)
            assert max(one, two) * (1 - 1e-12) <= mixed <= (one + two) * (1 + 1e-12), part


@settings(deadline=None, max_examples=40)
@given(
    some,
    sizes,
    st.sampled_from(["peaks", "bandwidth", "vector_peak", "exp_rate", "link_bandwidth"]),
    st.floats(1.01, 50),
)
def test_the_bound_falls_with_every_rate(name: str, size: dict[str, int], rate: str, factor: float) -> None:
    step = plan(model(name), Workload("decode", **size), Deployment(tp=2))
    old = getattr(H200, rate)
    better = H200._replace(**{rate: {k: v * factor for k, v in old.items()} if isinstance(old, dict) else old * factor})
    assert step.bounds(better).lower <= step.bounds(H200).lower * (1 + 1e-12)
    assert step.bounds(better).upper <= step.bounds(H200).upper * (1 + 1e-12)


@settings(deadline=None, max_examples=30)
@given(some, sizes)
def test_total_is_the_sum_of_the_parts_and_lies_over_every_leg(name: str, size: dict[str, int]) -> None:
    step = plan(model(name), Workload("decode", **size))
    costs, totals, bounds = step.costs(H200), step.totals(), step.bounds(H200)
    assert totals["flops"] == pytest.approx(sum(c.flops * c.use.count for c in costs))
    assert bounds.lower == pytest.approx(sum(c.lower * c.use.count for c in costs))
    assert bounds.lower * (1 + 1e-12) >= max(
        totals["bytes"] / 4.8e12, totals["flops"] / 1978.9e12, totals["exps"] / 3.86e12
    )
    assert bounds.lower <= bounds.upper


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(["deepseek-v3.2", "gpt-oss-120b", "longcat-flash", "qwen3.5-122b-a10b"]), st.integers(1, 5000))
def test_routing_cases_are_ordered(name: str, batch: int) -> None:
    """Expected routing visits no more experts than the balanced one, and neither loads a rank more than the worst."""
    found = {
        way: totals_of(name, Workload("decode", batch=batch), Deployment(tp=2, ep=2), Options(routing=way))
        for way in ("expected", "balanced", "worst")
    }
    for quantity in ("bytes", "flops"):
        assert (
            found["expected"][quantity]
            <= found["balanced"][quantity] * (1 + 1e-12)
            <= found["worst"][quantity] * (1 + 2e-12)
        )


def test_expected_experts_of_one_token_and_of_many() -> None:
    """One token visits exactly its experts; a large batch visits all."""
    m = model("deepseek-v3")
    for batch, distinct in ((1, 8), (1e6, 256)):
        step = plan(m, Workload("decode", batch=batch))
        (use,) = (u for u in step.uses if u.kernel == "moe_gated")
        assert step.value(use, "distinct_experts") == pytest.approx(distinct, rel=1e-12)


@pytest.mark.parametrize(("ep", "tp"), [(1, 8), (2, 8), (4, 8), (8, 8)])
def test_how_experts_are_cut_does_not_change_a_ranks_work(ep: int, tp: int) -> None:
    """With all experts visited, whole experts on a rank or slices of all: the same FLOPs and bytes of weights."""
    load = Workload("oneshot", q_len=20_000)
    costs = [
        c
        for c in plan(model("deepseek-v3"), load, Deployment(tp=tp, ep=ep)).costs()
        if c.use.kernel.startswith("moe_") and c.flops
    ]
    reference = [
        c
        for c in plan(model("deepseek-v3"), load, Deployment(tp=8)).costs()
        if c.use.kernel.startswith("moe_") and c.flops
    ]
    for one, two in zip(costs, reference, strict=True):
        assert one.flops == two.flops
        assert one.bytes == pytest.approx(two.bytes, rel=0.02)  # activations are divided differently
