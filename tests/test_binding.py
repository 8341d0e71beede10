"""What `Kernel.bind` does when a quantity is bound a second time: substitute, free, or refuse; never a silent mix."""

from __future__ import annotations

import pytest

from roofline import law
from roofline.errors import BadValue
from roofline.kernels import KERNELS
from roofline.symbols import sym
from roofline.visibility import dense

MQA = KERNELS["mla_mqa"]


def test_a_renaming_takes_numbers_later():
    """128 heads over 8 ranks are 16, in whatever order they are given."""
    per_rank = MQA.bind(kernel_heads=sym.heads).bind(heads=sym.heads / sym.tp)
    assert per_rank.bind(heads=128, tp=8).flops == MQA.bind(kernel_heads=16, heads=16).flops


def test_a_used_up_quantity_is_refused():
    """Pairs were computed for one new token: eight new tokens would mix the two."""
    decode = MQA.bind(**dense().bindings(), q_len=1)
    with pytest.raises(BadValue, match=r"q_len: got 8.*has it bound to 1"):
        decode.bind(q_len=8)
    assert decode.bind(q_len=1).flops == decode.flops


def test_a_default_gives_way_and_a_symbol_frees():
    assert MQA.bind(kv_row_bytes=656).bindings[sym.kv_row_bytes] == 656
    freed = KERNELS["dsa_mqa"].bind(pairs=sym.pairs)
    assert freed.flops == MQA.flops


def test_how_often_a_kernel_runs_is_bound_too():
    assert MQA.repeated(sym.layers).bind(layers=61).times == 61


def test_a_time_without_any_leg_is_refused():
    with pytest.raises(BadValue, match="at least one leg"):
        law.time_lower(KERNELS["dsa_topk"], ("memory",))
