"""Token mixers with a state instead of a growing cache: Mamba-2, gated delta net, Kimi delta attention (KDA).

Each keeps, per sequence and layer, a state of `state_heads` x `state_key` x `state_value` elements and the last
conv - 1 inputs of a short convolution over `state_heads` * `state_value` + 2 * `state_groups` * `state_key` channels.
KDA states are float32 in every implementation read; the others follow the configuration.
Sources: arXiv:2405.21060 (Mamba-2), arXiv:2412.06464 (gated delta net), arXiv:2510.26692 sec. 3 (KDA).
"""

from __future__ import annotations

from types import MappingProxyType

from roofline.models.config import Config
from roofline.models.parts import FP32, linear, norm
from roofline.models.records import Attention, Weight

R = "linear_attention"


def _shape(heads: int, groups: int, key: int, value: int, conv: int, hidden: int) -> MappingProxyType[str, int]:
    return MappingProxyType(
        {
            "heads": heads,
            "state_heads": heads,
            "state_groups": groups,
            "state_key": key,
            "state_value": value,
            "conv": conv,
            "hidden": hidden,
        }
    )


def kda(
    hidden: int, heads: int, width: int, conv: int, *, full_gate: bool = False, base: str = "self_attn."
) -> Attention:
    """Kimi delta attention: keys and values of one width, a decay per channel, an output gate of full or low rank."""
    base, all_heads = "self_attn.", heads * width
    weights: list[Weight] = []
    for name in ("q", "k", "v"):
        weights += linear(f"{base}{name}_proj", all_heads, hidden, R, shard="heads")
        weights.append(Weight(f"{base}{name}_conv1d.weight", (all_heads, 1, conv), R, shard="heads", dtype=FP32))
    weights += linear(f"{base}f_a_proj", width, hidden, R)
    weights += linear(f"{base}f_b_proj", all_heads, width, R, shard="heads")
    weights += linear(f"{base}b_proj", heads, hidden, R, shard="heads")
    if full_gate:  # these checkpoints store A_log with one entry a channel of a head
        weights += linear(f"{base}g_proj", all_heads, hidden, R, shard="heads")
    else:
        weights += linear(f"{base}g_a_proj", width, hidden, R)
        weights += linear(f"{base}g_b_proj", all_heads, width, R, shard="heads")
    weights.append(Weight(f"{base}A_log", (width if full_gate else heads,), R, dtype=FP32))
    weights.append(Weight(f"{base}dt_bias", (all_heads,), R, shard="heads", dtype=FP32))
    weights += norm(f"{base}o_norm", width, dtype=FP32 if full_gate else "")
    weights += linear(f"{base}o_proj", hidden, all_heads, R, shard="heads")
    return Attention("kda", _shape(heads, heads, width, width, conv, hidden), tuple(weights))


def gated_delta(cfg: Config, hidden: int, *, split: bool, base: str = "linear_attn.") -> Attention:
    """Gated delta net: key heads are shared by groups of value heads; `split`: separate input projections."""
    keys, values = cfg.count("linear_num_key_heads"), cfg.count("linear_num_value_heads")
    key, value = cfg.count("linear_key_head_dim"), cfg.count("linear_value_head_dim")
    conv = cfg.count("linear_conv_kernel_dim")
    if values % keys:
        cfg.fail("linear_num_value_heads", values, f"a multiple of linear_num_key_heads {keys}")
    qkv, z = 2 * keys * key + values * value, values * value
    weights: list[Weight] = []
    if split:
        weights += linear(f"{base}in_proj_qkv", qkv, hidden, R, shard="heads")
        weights += linear(f"{base}in_proj_z", z, hidden, R, shard="heads")
        for name in ("b", "a"):
            weights += linear(f"{base}in_proj_{name}", values, hidden, R, shard="heads")
    else:
        weights += linear(f"{base}in_proj_qkvz", qkv + z, hidden, R, shard="heads")
        weights += linear(f"{base}in_proj_ba", 2 * values, hidden, R, shard="heads")
    weights.append(Weight(f"{base}conv1d.weight", (qkv, 1, conv), R, shard="heads"))
    weights += [Weight(f"{base}{name}", (values,), R, shard="heads") for name in ("dt_bias", "A_log")]
    weights += norm(f"{base}norm", value)
    weights += linear(f"{base}out_proj", hidden, z, R, shard="heads")
    return Attention("gated_delta", _shape(values, keys, key, value, conv, hidden), tuple(weights))


def mamba2(cfg: Config, hidden: int, *, base: str = "mixer.") -> Attention:
    """Mamba-2: heads share input and output maps by groups.  The inner width is heads x head width, whatever `expand`
    says (a checkpoint of this family declares an `expand` that its tensors do not follow)."""
    heads, width, state = cfg.count("mamba_num_heads"), cfg.count("mamba_head_dim"), cfg.count("ssm_state_size")
    groups, conv = cfg.count("n_groups"), cfg.count("conv_kernel")
    if heads % groups:
        cfg.fail("n_groups", groups, f"a divisor of mamba_num_heads {heads}")
    inner, channels = heads * width, heads * width + 2 * groups * state
    cfg.get("expand")
    bias = cfg.flag("use_bias", False) or cfg.flag("mamba_proj_bias", False)
    weights = [*linear(f"{base}in_proj", inner + channels + heads, hidden, R, bias=bias, shard="heads")]
    weights.append(Weight(f"{base}conv1d.weight", (channels, 1, conv), R, shard="heads"))
    if cfg.flag("use_conv_bias", True):
        weights.append(Weight(f"{base}conv1d.bias", (channels,), R, shard="heads"))
    weights += [Weight(f"{base}{name}", (heads,), R, shard="heads") for name in ("dt_bias", "A_log", "D")]
    weights += norm(f"{base}norm", inner)
    weights += linear(f"{base}out_proj", hidden, inner, R, bias=bias, shard="heads")
    return Attention("mamba2", _shape(heads, groups, state, width, conv, hidden), tuple(weights))
