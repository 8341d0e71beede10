"""Laws that hold for every shape: each is checked on random sizes, exactly (rationals, no tolerance unless said)."""

from __future__ import annotations

from typing import Any

from drawing import (
    CORES,
    PROJECTIONS,
    RATES,
    SIZES,
    WIDTHS,
    bounds,
    expression,
    factors,
    names,
    put,
    rates,
    shapes,
    sights,
    total,
)
from hypothesis import assume, given
from hypothesis import strategies as st

from roofline import law
from roofline import visibility as vis
from roofline.kernel import Kernel
from roofline.kernels import KERNELS
from roofline.symbols import exact, sym
from roofline.visibility import Visibility

# Scaling


@given(shapes(), factors, st.sampled_from([*CORES, *PROJECTIONS, "linear"]), sights)
def test_bytes_scale_with_the_widths_and_flops_do_not_see_them(
    size: dict[str, Any], f: Any, name: str, sight: Visibility
) -> None:
    wider = size | {w: size[w] * f for w in WIDTHS}
    assert total(name, "bytes", wider, sight) == exact(f) * total(name, "bytes", size, sight) > 0
    assert total(name, "flops", wider, sight) == total(name, "flops", size, sight) > 0
    assert total(name, "exps", wider, sight) == total(name, "exps", size, sight)


@given(shapes(), rates, factors, names)
def test_times_scale_with_all_rates_and_the_ridge_does_not(
    size: dict[str, Any], rate: dict[str, Any], f: Any, name: str
) -> None:
    faster = {k: v * f for k, v in rate.items()}
    for bound in bounds(name):
        assert put(bound, **size, **rate) == exact(f) * put(bound, **size, **faster) > 0
    assert put(law.ridge(), **rate) == put(law.ridge(), **faster)


@given(shapes(), rates, factors, names, st.sampled_from(RATES))
def test_a_faster_unit_never_costs_time(
    size: dict[str, Any], rate: dict[str, Any], f: Any, name: str, unit: str
) -> None:
    faster = rate | {unit: rate[unit] * max(f, 1)}
    for bound in bounds(name):
        assert put(bound, **size, **faster) <= put(bound, **size, **rate)


@given(
    shapes(),
    names,
    sights,
    st.sampled_from([n for n in SIZES if n != "context"] + ["kv_heads", "kernel_heads", "context", *WIDTHS]),
)
def test_more_of_anything_is_never_less_work(size: dict[str, Any], name: str, sight: Visibility, grown: str) -> None:
    larger = size | {grown: size[grown] + 1}
    assume(not (grown == "heads" and larger["heads"] > larger["kernel_heads"]))
    for quantity in ("flops", "vector_flops", "exps", "bytes"):
        assert total(name, quantity, larger, sight) >= total(name, quantity, size, sight)


@given(shapes(), st.integers(2, 5), names.filter(lambda n: n != "linear"))
def test_sequences_of_a_batch_add_up(size: dict[str, Any], times: int, name: str) -> None:
    """All but the weights, which are read once."""
    for quantity in ("flops", "vector_flops", "exps", "bytes"):
        one, many = (total(name, quantity, size | {"batch": b, "w_weight": 0}) for b in (1, times))
        assert many == times * one


# Visibilities


@given(shapes(60))
def test_causal_and_strictly_upper_make_full(size: dict[str, Any]) -> None:
    upper = sum(1 for i in range(size["q_len"]) for key in range(size["q_len"]) if key > i)
    assert put(vis.dense().pairs, **size) + upper == put(vis.full().pairs, **size)
    assert put(vis.dense().rows_read, **size) == put(vis.full().rows_read, **size) == size["context"] + size["q_len"]


@given(shapes(60), st.integers(1, 150))
def test_clipped_pairs_are_the_sum_of_minima(size: dict[str, Any], k: int) -> None:
    """Design id P1: sum over i = 1..s of min(C + i, K), for top-k and for a window alike."""
    wanted = sum(min(size["context"] + i, k) for i in range(1, size["q_len"] + 1))
    assert put(vis.topk().pairs, **size | {"topk": k}) == put(vis.window().pairs, **size | {"window": k}) == wanted


@given(shapes(60), st.integers(0, 5))
def test_as_many_keys_as_there_are_is_dense(size: dict[str, Any], beyond: int) -> None:
    length = size["context"] + size["q_len"]
    size = size | {"topk": length + beyond, "window": length + beyond}
    for sight in (vis.window(), vis.topk(gather="perfect")):
        assert put(sight.pairs, **size) == put(vis.dense().pairs, **size)
        assert put(sight.rows_read, **size) == put(vis.dense().rows_read, **size)
    assert total("dsa_mqa", "flops", size) == total("mla_mqa", "flops", size)
    assert total("dsa_mqa", "exps", size) == total("mla_mqa", "exps", size)


@given(shapes(60))
def test_skipping_and_reuse_only_save(size: dict[str, Any]) -> None:
    skip, padded, reused = (
        put(v.pairs, **size) for v in (vis.topk(), vis.topk(skip=False), vis.topk(gather="perfect"))
    )
    assert skip == reused <= padded
    assert skip <= put(vis.dense().pairs, **size)
    none, perfect = (put(vis.topk(gather=g).rows_read, **size) for g in vis.GATHERS)
    assert perfect <= none
    assert perfect <= size["context"] + size["q_len"]
    if size["context"] >= size["topk"]:
        assert skip == padded == size["q_len"] * size["topk"]


def test_a_visibility_says_what_it_assumes() -> None:
    """The words an answer prints belong to the formula beside them."""
    assert "skipped" in vis.topk(skip=True).assumes[0]
    assert "computed" in vis.topk(skip=False).assumes[0]
    assert [vis.topk(gather=g).assumes[1].endswith(g) for g in vis.GATHERS] == [True, True]


@given(shapes(60))
def test_a_prefix_shared_by_one_or_of_no_length_is_dense(size: dict[str, Any]) -> None:
    for changed in ({"batch": 1}, {"prefix": 0}):
        for part in ("pairs", "rows_read"):
            assert put(getattr(vis.shared_prefix(), part), **size | changed) == put(
                getattr(vis.dense(), part), **size | changed
            )
    saved = put(vis.dense().rows_read - vis.shared_prefix().rows_read, **size)
    assert size["batch"] * saved == (size["batch"] - 1) * size["prefix"]


@given(shapes(60))
def test_the_prefix_and_the_rest_make_the_whole(size: dict[str, Any]) -> None:
    """The part over the prefix, and what is left of the sequence as a context of its own."""
    rest = size | {"context": size["context"] - size["prefix"]}
    for part in ("pairs", "rows_read"):
        parts = put(getattr(vis.prefix_part(), part), **size) + put(getattr(vis.dense(), part), **rest)
        assert parts == put(getattr(vis.shared_prefix(), part), **size)


@given(shapes(60), st.sampled_from([vis.dense(), vis.topk(), vis.window()]))
def test_one_shot_is_a_prefill_without_context(size: dict[str, Any], sight: Visibility) -> None:
    bare, once = size | {"context": 0}, vis.oneshot(sight)
    assert put(once.pairs, seq_len=size["q_len"], **size) == put(sight.pairs, **bare)
    assert put(once.rows_read, seq_len=size["q_len"], **size) == put(sight.rows_read, **bare)


# Phases


@given(shapes(12), st.sampled_from(CORES))
def test_decode_steps_add_up_to_the_causal_prefill(size: dict[str, Any], name: str) -> None:
    """FLOPs and exponentials of the steps, one token each, equal those of the prefill; the cache is read more often."""
    steps = [size | {"q_len": 1, "context": size["context"] + i} for i in range(size["q_len"])]
    for quantity in ("flops", "exps"):
        assert sum(total(name, quantity, s) for s in steps) == total(name, quantity, size)
    assert sum(total(name, "bytes", s) for s in steps) >= total(name, "bytes", size)


@given(shapes())
def test_absorb_and_unabsorb_equal_up_projection_for_one_shot(size: dict[str, Any]) -> None:
    bare = size | {"context": 0}
    both = total("mla_absorption", "flops", bare) + total("mla_unabsorption", "flops", bare)
    assert both == total("mla_up_projection", "flops", bare)
    extra = total("mla_up_projection", "flops", size) - both  # with context: 2 C d h (n + v) more, whatever q_len
    assert extra == 2 * size["batch"] * size["context"] * size["latent"] * size["heads"] * (
        size["nope"] + size["value"]
    )


@given(shapes(), st.integers(1, 40))
def test_beyond_topk_the_core_is_flat_and_the_indexer_grows_by_one_key_a_key(size: dict[str, Any], more: int) -> None:
    near = size | {"context": size["topk"], "q_len": 1}
    far = near | {"context": near["context"] + more}
    for quantity in ("flops", "bytes", "exps"):
        assert total("dsa_mqa", quantity, far) == total("dsa_mqa", quantity, near)
    grown = total("dsa_indexer", "flops", far) - total("dsa_indexer", "flops", near)
    assert grown == more * total("dsa_indexer", "flops", near) / (near["context"] + 1) > 0


# Heads, ranks, widths


@given(shapes(), sights)
def test_only_kernel_heads_are_padded(size: dict[str, Any], sight: Visibility) -> None:
    """Padding to the head count itself changes nothing; padded heads cost FLOPs and exponentials, and no byte."""
    same = size | {"kernel_heads": size["heads"]}
    flops, exps, moved = (total("mla_mqa", q, same, sight) for q in ("flops", "exps", "bytes"))
    unpadded = expression("mla_mqa", "flops", sight).xreplace({sym.kernel_heads: sym.heads})
    assert put(unpadded, **size) == flops
    assert total("mla_mqa", "flops", size, sight) * size["heads"] == flops * size["kernel_heads"]
    assert total("mla_mqa", "exps", size, sight) * size["heads"] == exps * size["kernel_heads"]
    assert total("mla_mqa", "bytes", size, sight) == moved


@given(shapes(), st.sampled_from([2, 4, 8]))
def test_tensor_parallelism_leaves_the_latent_cache_alone(size: dict[str, Any], tp: int) -> None:
    whole = size | {k: size[k] * tp for k in ("heads", "kv_heads", "kernel_heads")} | {"w_act": 0}
    rank = whole | {k: whole[k] // tp for k in ("heads", "kv_heads", "kernel_heads")}
    assert total("mla_mqa", "bytes", rank) == total("mla_mqa", "bytes", whole)
    assert total("mla_mqa", "flops", rank) * tp == total("mla_mqa", "flops", whole)
    assert total("attention", "bytes", rank) * tp == total("attention", "bytes", whole)
    shared = (
        size["batch"] * (size["context"] + size["q_len"]) * size["w_expanded"] * size["rope"]
    )  # rotary key on each rank
    assert (total("mla_mha", "bytes", rank) - shared) * tp == total("mla_mha", "bytes", whole) - shared


@given(shapes(), sights)
def test_fewer_kv_heads_move_fewer_bytes_and_compute_the_same(size: dict[str, Any], sight: Visibility) -> None:
    mha = size | {"kv_heads": size["heads"]}
    assert total("attention", "flops", size, sight) == total("attention", "flops", mha, sight)
    gap = total("attention", "bytes", mha, sight) - total("attention", "bytes", size, sight)
    assert (gap > 0) == (size["heads"] > size["kv_heads"])


@given(shapes(), sights)
def test_as_many_kv_heads_as_heads_is_multi_head_attention(size: dict[str, Any], sight: Visibility) -> None:
    """MLA in MHA mode without a rotary part, its key and value as wide as the head, is plain MHA."""
    e = size["head_dim"]
    plain = size | {"kv_heads": size["heads"], "rope": 0, "nope": e, "value": e, "w_expanded": size["w_kv"]}
    for quantity in ("flops", "exps", "bytes"):
        assert total("attention", quantity, plain, sight) == total("mla_mha", quantity, plain, sight)


@given(shapes(), sights)
def test_mqa_mode_is_one_wide_head_shared_by_all(size: dict[str, Any], sight: Visibility) -> None:
    """Without rope: as MHA mode with key and value as wide as the latent, and one row serves as both."""
    wide = size | {"rope": 0, "nope": size["latent"], "value": size["latent"], "kernel_heads": size["heads"]}
    assert total("mla_mqa", "flops", wide, sight) == total("mla_mha", "flops", wide, sight)
    one = wide | {"kv_heads": 1, "head_dim": size["latent"], "w_act": 0}
    assert 2 * total("mla_mqa", "bytes", one, sight) == total("attention", "bytes", one, sight)


@given(shapes(), st.integers(1, 50))
def test_fp8_halves_the_payload_and_not_the_scales(size: dict[str, Any], width: int) -> None:
    bare = {"batch": 1, "q_len": 0, "rows_read": 1, "pairs": 0}
    row = {w: KERNELS["dsa_indexer"].bind(**bare, index_head_dim=w).reads for w in (width, 2 * width)}
    assert row[2 * width] - row[width] == width
    assert row[width] - width == 4
    latent = {w: total("mla_mqa", "bytes", size | {"w_kv": w, "w_act": 0}) for w in (1, 2)}
    assert latent[2] == 2 * latent[1]


@given(shapes(), shapes(), sights)
def test_the_flop_ratio_of_the_modes_does_not_see_the_workload(
    size: dict[str, Any], other: dict[str, Any], sight: Visibility
) -> None:
    """Batch, length, context, prefix, top-k and head count cancel (without padding)."""
    fixed = {k: size[k] for k in ("latent", "rope", "nope", "value")}

    def ratio(at: dict[str, Any]) -> Any:
        at = at | fixed | {"kernel_heads": at["heads"]}
        return total("mla_mqa", "flops", at, sight) / total("mla_mha", "flops", at, sight)

    assert ratio(size) == ratio(other)


# Sums and bookkeeping


@given(shapes(), names, names, names)
def test_the_total_is_the_sum_of_its_parts(size: dict[str, Any], one: str, two: str, three: str) -> None:
    a, b, c = (KERNELS[n].bind(**vis.dense().bindings(), **size) for n in (one, two, three))
    assert a.bytes == sum(x for t, x in a.parts() if t.resource in ("read", "write"))
    assert a.flops == sum(x for t, x in a.parts() if t.resource == "tensor")
    for quantity in ("flops", "vector_flops", "exps", "bytes", "reads"):
        apart = sum(getattr(k, quantity) for k in (a, b, c))
        assert getattr(a + b + c, quantity) == getattr(a + (b + c), quantity) == apart
    assert [k.name for k in (a + b + c).kernels] == [k.name for k in (a + (b + c)).kernels] == [one, two, three]


@given(shapes(), names, st.randoms(use_true_random=False))
def test_the_order_of_axes_and_terms_changes_nothing(size: dict[str, Any], name: str, random: Any) -> None:
    kernel = KERNELS[name]
    terms = [t._replace(axes=" ".join(random.sample(t.axes.split(), len(t.axes.split())))) for t in kernel.terms]
    shuffled = kernel.named(name, terms=tuple(random.sample(terms, len(terms))))
    for quantity in ("flops", "vector_flops", "exps", "bytes"):
        assert getattr(shuffled, quantity) == getattr(kernel, quantity)


@given(shapes(), names, st.randoms(use_true_random=False))
def test_binding_in_steps_is_binding_at_once(size: dict[str, Any], name: str, random: Any) -> None:
    order = random.sample(sorted(size), len(size))
    kernel: Kernel = KERNELS[name].bind(**vis.dense().bindings())
    at_once = kernel.bind(**size)
    for key in order:
        kernel = kernel.bind(**{key: size[key]})
    for quantity in ("flops", "vector_flops", "exps", "bytes"):
        assert getattr(kernel, quantity) == getattr(at_once, quantity)
    assert not at_once.free_symbols
