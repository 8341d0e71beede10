"""The plan of a step: its weights are the checkpoint's, its two faces agree, and the laws that hold for every model."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from roofline import law
from roofline._generated import rules as generated
from roofline.errors import BadValue, UnknownName
from roofline.kernels import rules
from roofline.models import Model, list_models, load_model
from roofline.plan import Deployment, Options, Rates, Step, Workload, plan, with_weight_dtype
from roofline.plan.numbers import BOUND
from roofline.plan.records import Use
from roofline.symbols import SYMBOLS, exact

H200 = Rates({"bf16": 989.4e12, "fp8": 1978.9e12}, 4.8e12, 67e12, 3.86e12, 450e9)
MODELS = list_models()
SOME = (
    "deepseek-v3.2",
    "llama-3.1-8b",
    "glm-5.3-flash",
    "qwen3.5-122b-a10b",
    "gpt-oss-120b",
    "llama-4-scout",
    "nemotron-3-nano-30b-a3b",
    "longcat-flash",
    "kimi-k3",
    "gemma-4-26b-a4b",
    "deepseek-v2-lite",
)
MATRIX = {"linear": 1, "gated_linear": 2, "moe_gated": 2, "moe_up": 1, "moe_down": 1}


@cache
def model(name: str) -> Model:
    return load_model(name)


def weights_of(use: Use) -> float:
    """Bytes of all weights that a use can read, every expert visited."""
    v: Any = use.values
    if "w_weight" not in v or use.kernel == "embedding":
        return 0.0
    if use.kernel in MATRIX:
        elements = MATRIX[use.kernel] * v["hidden"] * v["ffn"] * (v["experts"] / v["ep"] if "experts" in v else 1)
    else:
        names = {
            "norm": ("hidden",),
            "short_conv": ("conv_channels", "conv"),
            "mla_absorption": ("heads", "latent", "nope"),
            "mla_unabsorption": ("heads", "latent", "value"),
            "mla_up_projection": ("heads", "latent", "both"),
        }[use.kernel]
        sized = {**v, "both": v.get("nope", 0) + v.get("value", 0)}
        elements = 1.0
        for name in names:
            elements *= sized[name]
    return use.count * elements * v["w_weight"]


@pytest.mark.parametrize("name", MODELS)
def test_every_tensor_is_read_once_at_its_own_width(name: str) -> None:
    """Decode and (MHA mode) prefill read the checkpoint's bytes, scales and biases included: all but the embedding
    table,
    of which a token reads a row, and tensors that no token visits."""
    m = model(name)
    stored = m.weight_bytes.total
    idle = (
        sum(m.quantization.stored(w.name, w, m.dtype)[1] for w in m.ends if w.kind == "embedding")
        if not m.tied
        else sum(m.quantization.stored(w.name, w, m.dtype)[1] for w in m.ends[1:] if w.kind == "embedding")
    )
    for load in (Workload("decode", batch=4, context=1000), Workload("oneshot", q_len=64, image_tokens=9)):
        step = plan(m, load)
        assert sum(map(weights_of, step.uses)) + idle == pytest.approx(stored, rel=1e-12)
    named = {w for use in step.uses for w in use.weights}
    assert named >= {n for n, w in m.tensors(mtp=False) if w.active and n.startswith(m.layers[0].prefix)}


@pytest.mark.parametrize("name", SOME)
def test_ranks_share_the_weights(name: str) -> None:
    """Over tp ranks (experts over tp x dp) every divided tensor is there once, every other once a rank."""
    m = model(name)
    routed = sum(weights_of(u) for u in plan(m).uses if u.kernel.startswith("moe"))
    others = sum(map(weights_of, plan(m).uses)) - routed
    for spread in (Deployment(tp=2), Deployment(tp=2, dp=2, ep=4), Deployment(tp=2, dp=2, ep=2)):
        if spread.dp > 1 and not any(b.kind == "moe" for layer in m.layers for b in layer.ffns):
            continue
        if spread.ep > 1 and any(
            b.shape["experts"] % spread.ep for layer in m.layers for b in layer.ffns if b.kind == "moe"
        ):
            continue
        uses = plan(m, deployment=spread).uses
        experts = sum(weights_of(u) for u in uses if u.kernel.startswith("moe"))
        rest = sum(weights_of(u) for u in uses if not u.kernel.startswith("moe"))
        slack = 1.002 if name == "gpt-oss-120b" else 1 + 1e-9  # its down biases lie whole on every slice of an expert
        assert routed * (1 - 1e-9) <= experts * spread.expert_ranks <= routed * slack
        assert others / spread.tp < rest < others


def test_the_known_totals_of_one_llama_step() -> None:
    """Hand count, Llama-3.1-8B, one token at context 4,095: 2 FLOP a weight but the embedding's, 4 * 32 heads * 128 *
    4,096
    a layer of attention; 131,072 B a cached token read and one written."""
    step = plan(model("llama-3.1-8b"), Workload("decode", context=4095))
    totals = step.totals()
    body = 8_030_261_248 - 128_256 * 4096
    assert totals["flops"] == 2 * (body - 65 * 4096) + 32 * 4 * 32 * 128 * 4096
    core = next(c for c in step.costs() if c.use.kernel == "attention")
    assert core.bytes - 2 * 32 * 128 * 2 == 4096 * 4096
    assert totals["link_bytes"] == 0


LOADS = (
    Workload("decode", batch=8, context=5000),
    Workload("decode", batch=3, context=70, q_len=3, drafts=2),
    Workload("oneshot", batch=2, q_len=700),
    Workload("chunked", q_len=512, context=4096),
    Workload("mixed", batch=16, context=3000, q_len=256, prefill_context=900, drafts=1),
)
FULLY = ("deepseek-v3.2", "llama-3.1-8b", "glm-5.3-flash")


@pytest.mark.parametrize(
    ("name", "load"),
    [(n, w) for n in SOME for w in (LOADS if n in FULLY else LOADS[4:])],
    ids=lambda x: getattr(x, "phase", x),
)
def test_symbols_and_numbers_agree(name: str, load: Workload) -> None:
    """`Step.cost()` with the workload's numbers put in gives what the generated functions give, to the last bit or
    so."""
    spread = Deployment(tp=2, dp=2, ep=4) if name == "deepseek-v3.2" else Deployment()
    step = plan(model(name), load, spread)
    numbers = {SYMBOLS[k]: exact(v) for k, v in step.numbers.items()}
    cost, totals = step.cost(), step.totals()
    for quantity in ("flops", "vector_flops", "exps", "bytes"):
        assert float(getattr(cost, quantity).xreplace(numbers)) == pytest.approx(totals[quantity], rel=1e-12)
    assert float(cost.total("link").xreplace(numbers)) == pytest.approx(totals["link_bytes"], rel=1e-12)


def test_time_bounds_in_symbols_and_numbers_agree() -> None:
    names = ("bandwidth", "vector_peak", "exp_rate", "link_bandwidth")
    given = {SYMBOLS[n]: exact(getattr(H200, n)) for n in names} | {
        SYMBOLS["peak"]: exact(989.4e12),
        SYMBOLS["peak_fp8"]: exact(1978.9e12),
    }
    step = plan(model("deepseek-v3.2"), Workload("decode", batch=256, context=9000), Deployment(tp=2, dp=4, ep=8))
    given |= {SYMBOLS[k]: exact(v) for k, v in step.numbers.items()}
    bounds = step.bounds(H200)
    assert float(step.time_lower().xreplace(given)) == pytest.approx(bounds.lower, rel=1e-12)
    assert float(step.time_upper().xreplace(given)) == pytest.approx(bounds.upper, rel=1e-12)
    assert set(BOUND.items()) == set(law.BOUNDS.items())


def test_the_generated_rules_are_fresh() -> None:
    """`python -m roofline.kernels.rules` prints what lies there."""
    with open(generated.__file__, encoding="utf-8") as file:
        assert file.read() == rules.text()
    assert list(generated.RULES) == list(rules.RULES)


def totals_of(
    name: str, load: Workload, spread: Deployment | None = None, options: Options | None = None
) -> dict[str, float]:
    return plan(model(name), load, spread, options).totals()


def test_speculative_decode_runs_its_drafts() -> None:
    """DeepSeek-V3 has one prediction module: two drafts run it twice, with the join, the embedding and the head each
    time."""
    m = model("deepseek-v3")
    plain, spec = (
        plan(m, Workload("decode", batch=4, context=500)),
        plan(m, Workload("decode", batch=4, context=500, q_len=3, drafts=2)),
    )
    names = {u.name: u.count for u in spec.uses if u.name.startswith("draft")}
    assert (
        names["draft: join of embedding and hidden state"]
        == names["draft: head"]
        == names["draft: core, MQA mode"]
        == 2
    )
    verify = sum(
        c.flops * c.use.count
        for c in spec.costs()
        if not c.use.name.startswith("draft") and c.use.part in ("ffn", "head")
    )
    once = sum(c.flops * c.use.count for c in plain.costs() if c.use.part in ("ffn", "head"))
    assert verify == 3 * once


def test_layers_double_layer_flops() -> None:
    """Scanned layers counted once is a known mistake of counters (jax-ml/jax issue 18672)."""
    m = model("llama-3.1-8b")
    fields = {f: getattr(m, f) for f in m.__slots__}
    twice = Model(**{**fields, "layers": m.layers * 2})
    ends = sum(c.flops for c in plan(m).costs() if c.use.part == "head")
    assert plan(twice).totals()["flops"] - ends == 2 * (plan(m).totals()["flops"] - ends)


def test_index_sharing_runs_the_indexer_in_21_of_78_layers() -> None:
    """GLM-5.2: 21 of 78 layers score and select, all attend (vLLM docs/features/index_cache.md, freq 4, offset 3)."""
    counts = {u.name: u.count for u in plan(model("glm-5.2"), Workload("decode", context=9000)).uses}
    assert (counts["indexer scores"], counts["top-k selection"], counts["sparse core, MQA mode"]) == (21, 21, 78)


def test_hybrids_keep_a_state_in_their_recurrent_layers() -> None:
    """GLM-5.3-Flash: 34 KDA layers whose bytes do not grow with the context, 11 sparse ones whose indexer's do, over
    pooled keys."""

    def at(context: int) -> dict[str, Any]:
        return {c.use.name: c for c in plan(model("glm-5.3-flash"), Workload("decode", context=context)).costs()}

    short, long = at(4000), at(400_000)
    assert short["recurrence, step form"].use.count == 34
    assert short["recurrence, step form"].bytes == long["recurrence, step form"].bytes
    assert long["indexer scores"].flops == pytest.approx(2 * 32 * 128 * 400_001 / 4)
    assert long["sparse core, MQA mode"].flops == 2 * 64 * 2048 * (512 + 512)


def test_weight_dtype_changes_bytes_and_not_flops() -> None:
    """4-bit weights leave the cache's bytes as they are (a law that BLIS tests too)."""
    m = model("llama-3.1-70b")
    wide, narrow = (
        plan(m, Workload("decode", batch=2, context=999)),
        plan(m, Workload("decode", batch=2, context=999), None, Options(weight_dtype="int4")),
    )
    assert wide.totals()["flops"] == narrow.totals()["flops"]
    core = [next(c.bytes for c in s.costs() if c.use.kernel == "attention") for s in (wide, narrow)]
    assert core[0] == core[1]
    assert narrow.totals()["bytes"] < wide.totals()["bytes"] / 2
    assert (
        with_weight_dtype(m, "fp8").weight_bytes.total
        == m.weight_bytes.total - m.weight_bytes.by_class["attention"] / 2 - m.weight_bytes.by_class["dense_ffn"] / 2
    )


def test_sparse_core_in_mha_mode_computes_every_pair() -> None:
    """Masked MHA skips nothing: its pairs are the causal triangle, the sparse core's stop at top-k."""
    load = Workload("oneshot", q_len=8192)
    masked = next(
        c for c in plan(model("deepseek-v3.2"), load, None, Options(mode="mha")).costs() if c.use.kernel == "dsa_mha"
    )
    sparse = next(c for c in plan(model("deepseek-v3.2"), load).costs() if c.use.kernel == "dsa_mqa")
    assert masked.flops == 2 * 128 * 320 * 8192 * 8193 // 2
    assert sparse.flops == 2 * 128 * 1088 * (2048 * 2049 // 2 + (8192 - 2048) * 2048)


def test_zero_context_and_one_token_work() -> None:
    for name in SOME:
        totals = totals_of(name, Workload("decode", batch=1, context=0))
        assert totals["flops"] > 0
        assert totals["bytes"] > 0


@pytest.mark.parametrize(
    ("load", "what"),
    [
        ({"phase": "prefill"}, "phase"),
        ({"batch": 0}, "batch"),
        ({"q_len": -1}, "q_len"),
        ({"context": float("nan")}, "context"),
        ({"phase": "oneshot", "q_len": 8, "context": 4}, "context"),
        ({"drafts": 2}, "q_len"),
        ({"prefill_context": 5}, "phase"),
    ],
)
def test_a_workload_that_makes_no_sense_is_refused(load: dict[str, Any], what: str) -> None:
    with pytest.raises((BadValue, UnknownName), match=what):
        plan(model("llama-3.1-8b"), Workload(**load))


@pytest.mark.parametrize(
    "options",
    [{"routing": "lucky"}, {"mode": "dense"}, {"gather": "some"}, {"kv_dtype": "fp7"}, {"weight_dtype": "int3"}],
)
def test_an_option_that_is_not_known_lists_the_choices(options: dict[str, Any]) -> None:
    with pytest.raises((BadValue, UnknownName)) as error:
        plan(model("llama-3.1-8b"), options=Options(**options))
    assert next(iter(options)) in str(error.value)


def test_step_shows_itself() -> None:
    assert repr(plan(model("llama-3.1-8b"))) == "Step('llama-3.1-8b', decode, 11 uses)"
    assert isinstance(plan(model("llama-3.1-8b")), Step)
