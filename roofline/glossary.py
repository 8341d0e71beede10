"""Every quantity once: name, LaTeX, unit, meaning, HF config key, range.  Plain records, no sympy.

The name is at the same time the Python variable, the sympy symbol, the keyword, the CLI option (with dashes) and the
URL parameter.  Query-side Latin letters stay free for shapes, so hardware gets Greek ones.

>>> GLOSSARY["latent"].latex, GLOSSARY["latent"].hf_key
('d', 'kv_lora_rank')
>>> check("heads", 0)
Traceback (most recent call last):
roofline.errors.BadValue: heads: got 0, expected a finite number > 0 [1]: query heads on the rank
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from roofline.errors import BadValue, UnknownName


class Quantity(NamedTuple):
    """One quantity.  `low` is the smallest value allowed, or the open lower end where `low_open`."""

    name: str
    latex: str
    unit: str
    meaning: str
    hf_key: str = ""
    low: float = 0.0
    low_open: bool = True
    integer: bool = False
    group: str = ""

    @property
    def range_text(self) -> str:
        """The range in words, as used in error messages and help texts."""
        kind = "a whole number" if self.integer else "a finite number"
        return f"{kind} {'>' if self.low_open else '>='} {self.low:g} [{self.unit}]"


def _group(group: str, *rows: tuple[object, ...], integer: bool = False) -> list[Quantity]:
    """Rows of one group: (name, latex, unit, meaning[, hf_key[, zero allowed]])."""
    made = []
    for name, latex, unit, meaning, *rest in rows:
        hf_key, zero = (*rest, "", False)[:2] if len(rest) < 2 else rest
        made.append(Quantity(name, latex, unit, meaning, hf_key, 0.0, not zero, integer, group))  # type: ignore[arg-type]
    return made


_ROWS = [
    *_group(
        "result",
        ("flops", "F", "FLOP", "tensor-unit floating-point operations, 2 a multiply-add", "", True),
        ("vector_flops", "F_v", "FLOP", "operations on the vector unit", "", True),
        ("exps", "E", "1", "exponentials on the special-function unit", "", True),
        ("bytes", "Q", "B", "bytes moved between memory and the chip", "", True),
        ("link_bytes", "Q_l", "B", "bytes that one device sends to others", "", True),
        ("intensity", "I", "FLOP/B", "arithmetic intensity F/Q", "", True),
        ("attainable", r"\Phi", "FLOP/s", r"attainable performance min(peak, bandwidth * intensity)"),
        ("time_lower", r"t_{\downarrow}", "s", "lower time bound: the longest leg, all others hidden behind it"),
        ("time_upper", r"t_{\uparrow}", "s", "upper time bound of the roofs: the sum of the legs, nothing overlapped"),
    ),
    *_group(
        "hardware",
        ("peak", r"\pi", "FLOP/s", "dense tensor-unit rate at the precision of the kernel"),
        ("peak_fp8", r"\pi_8", "FLOP/s", "dense tensor-unit rate at fp8, where a step mixes precisions"),
        ("peak_fp4", r"\pi_4", "FLOP/s", "dense tensor-unit rate at fp4, where a step mixes precisions"),
        ("vector_peak", r"\pi_v", "FLOP/s", "vector-unit rate"),
        ("exp_rate", r"\pi_e", "exp/s", "exponentials per second of the special-function unit"),
        ("bandwidth", r"\beta", "B/s", "memory bandwidth"),
        ("ridge", "I^*", "FLOP/B", "ridge point (machine balance): peak / bandwidth"),
        ("link_bandwidth", r"\beta_l", "B/s", "link bandwidth of one device, one direction"),
        ("launch_gap", "t_g", "s", "idle gap before a kernel starts", "", True),
    ),
    *_group(
        "workload",
        ("batch", "B", "1", "sequences in the step"),
        ("q_len", "s", "1", "new tokens per sequence: 1 in decode, 1 + drafts in speculative decode"),
        ("context", "C", "1", "cached tokens per sequence before this step", "", True),
        ("seq_len", "L", "1", "keys the last query sees: context + q_len"),
        ("prefix", "P", "1", "cached tokens that all sequences of the batch share", "", True),
        ("pairs", "N_p", "1", "visible (query, key) pairs per sequence and head"),
        ("rows_read", "N_r", "1", "cache rows read per sequence"),
        ("window", "W", "1", "keys a sliding window lets a query see", "sliding_window"),
        ("topk", "K", "1", "keys that sparse attention selects per query", "index_topk"),
        ("tokens", "T", "1", "tokens that a linear layer processes: batch * q_len"),
        ("step_tokens", r"T_{\Sigma}", "1", "tokens of a step on all data-parallel ranks together"),
        ("drafts", "n_d", "1", "draft tokens per sequence that speculative decode verifies", "", True),
        ("prefill_batch", "B_p", "1", "sequences in the prefill part of a mixed step"),
        ("prefill_context", "C_p", "1", "cached tokens per sequence in the prefill part of a mixed step", "", True),
        ("image_tokens", "N_i", "1", "tokens that cross-attention sees", "", True),
    ),
    *_group(
        "shape",
        ("heads", "H", "1", "query heads on the rank", "num_attention_heads"),
        ("kernel_heads", "H_k", "1", "query heads as the kernel runs them (padded heads do real work)"),
        ("kv_heads", r"H_{kv}", "1", "key/value heads on the rank", "num_key_value_heads"),
        ("head_dim", "d_h", "1", "width of a head", "head_dim"),
        ("latent", "d", "1", "rank of the KV latent", "kv_lora_rank"),
        ("q_latent", "d_q", "1", "rank of the query latent", "q_lora_rank"),
        ("rope", "r", "1", "width of the shared rotary key", "qk_rope_head_dim", True),
        ("nope", "n", "1", "width of a head's key without rotary part", "qk_nope_head_dim"),
        ("value", "v", "1", "width of a head's value", "v_head_dim"),
        ("index_heads", "H_I", "1", "heads of the lightning indexer", "index_n_heads"),
        ("index_head_dim", "d_I", "1", "width of an indexer head", "index_head_dim"),
        ("index_pool", "n_I", "1", "keys pooled into one indexer key", "index_kpool"),
        ("hidden", "D", "1", "model width", "hidden_size"),
        ("ffn", r"D_{f\!f}", "1", "width of the feed-forward layer", "intermediate_size"),
        ("layers", "N_l", "1", "layers", "num_hidden_layers"),
        ("vocab", "V", "1", "vocabulary", "vocab_size"),
        ("experts", "E_n", "1", "routed experts", "n_routed_experts"),
        ("active_experts", "E_k", "1", "experts a token is routed to", "num_experts_per_tok"),
        ("shared_experts", "E_s", "1", "experts every token visits", "n_shared_experts", True),
        ("zero_experts", "E_0", "1", "experts that pass the token through", "zero_expert_num", True),
        ("distinct_experts", "E_d", "1", "different routed experts that a step visits on the rank", "", True),
        ("routed_tokens", "T_e", "1", "(token, routed expert) pairs on the rank", "", True),
        ("destinations", "n_r", "1", "other ranks that a token is sent to", "", True),
        ("state_heads", "H_s", "1", "heads of a recurrent state on the rank"),
        ("state_groups", "G_s", "1", "groups of heads that share a recurrent layer's keys on the rank"),
        ("state_key", "d_k", "1", "rows of a head's recurrent state (key width)"),
        ("state_value", "d_v", "1", "columns of a head's recurrent state (value width)"),
        ("conv", "n_c", "1", "taps of the short convolution"),
        ("conv_channels", "D_c", "1", "channels of the short convolution on the rank"),
        ("chunk", "n_b", "1", "tokens that a recurrent layer's prefill takes as one block"),
    ),
    *_group(
        "width",
        ("w_kv", "b", "B", "bytes per cached element"),
        ("w_weight", "w", "B", "bytes per weight element"),
        ("w_act", "a", "B", "bytes per activation element (0 leaves activation traffic out)", "", True),
        ("w_expanded", "a_x", "B", "bytes per element of keys and values expanded to heads"),
        ("kv_row_bytes", r"\kappa", "B", "bytes per cached token and layer"),
        ("expanded_row_bytes", r"\kappa_x", "B", "bytes per token of keys and values expanded to heads"),
        ("index_row_bytes", r"\kappa_I", "B", "bytes per cached indexer key"),
        ("w_index", "a_I", "B", "bytes per element of the indexer's queries"),
        ("w_logit", "b_I", "B", "bytes per indexer logit"),
        ("w_state", "b_s", "B", "bytes per element of a recurrent state"),
        ("w_dispatch", "a_d", "B", "bytes per element of a token on its way to the experts"),
    ),
    *_group(
        "deployment",
        ("tp", r"n_{tp}", "1", "tensor-parallel degree"),
        ("dp", r"n_{dp}", "1", "data-parallel degree"),
        ("ep", r"n_{ep}", "1", "expert-parallel degree"),
        ("pp", r"n_{pp}", "1", "pipeline-parallel degree"),
        ("cp", r"n_{cp}", "1", "context-parallel degree"),
        ("n_kernels", "N_k", "1", "kernels launched", "", True),
        ("ranks", "n", "1", "devices that take part in a collective"),
        integer=True,
    ),
    *_group(
        "calibration",
        ("efficiency", r"\eta", "1", "achieved rate over the bound"),
        ("rate_ratio", "m", "1", "MHA-mode FLOP rate over MQA-mode FLOP rate"),
    ),
    *_group(
        "memory",
        ("page_size", "p", "tokens", "tokens per KV page"),
        ("pool_bytes", "M", "B", "memory set aside for KV pages"),
        ("pages", "N_{pg}", "1", "KV pages", "", True),
    ),
]

GLOSSARY: Mapping[str, Quantity] = {row.name: row for row in _ROWS}

SYNONYMS: Mapping[str, tuple[str, ...]] = {  # what the sources call the same thing
    "mla_mha": ("naive", "expanded", "compute friendly (vLLM)", "forward_mha"),
    "mla_mqa": ("absorbed", "weight absorption", "data-movement friendly (vLLM)", "forward_mqa"),
    "ridge": ("machine balance", "critical intensity", "turning point"),
    "context": ("past length", "num_computed_tokens"),
    "seq_len": ("KV length", "S_kv"),
    "latent": ("kv_lora_rank", "d_c"),
}


def quantity(name: str) -> Quantity:
    """The record of a quantity, or an error that names the nearest ones."""
    try:
        return GLOSSARY[name]
    except KeyError:
        raise UnknownName("quantity", name, GLOSSARY, "roofline formula --glossary") from None


def check(name: str, value: float) -> float:
    """Return `value` as given if it lies in the range of quantity `name`, else raise BadValue.

    >>> check("context", 0)
    0
    """
    record = quantity(name)
    expected = f"{record.range_text}: {record.meaning}"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadValue(name, value, expected)
    if not math.isfinite(value) or value < record.low or (record.low_open and value == record.low):
        raise BadValue(name, value, expected)
    if record.integer and value != int(value):
        raise BadValue(name, value, expected)
    return value
