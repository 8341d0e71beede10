"""Dense models with grouped-query attention: Llama, Mistral, Qwen2, Qwen3, MiMo, Phi-3.

Axes: query heads H, key/value heads H_kv, head width d_h (declared wins over hidden / heads).  A window that is present
but switched off (`use_sliding_window` false) does not count.  Sources: the families' configuration and model classes
in huggingface/transformers (src/transformers/models/<model_type>).
"""

from __future__ import annotations

from roofline.models.config import Config
from roofline.models.parts import (
    Built,
    assemble,
    dense_ffn,
    gqa,
    group_heads,
    head_width,
    layer_count,
    linear,
    norm,
)
from roofline.models.records import Attention, Layer

QKV_BIAS = ("qwen2", "qwen2_vl_text", "qwen2_5_vl_text")  # q, k and v have biases, without a key for them
QK_NORM = ("qwen3", "qwen3_vl_text")
SWITCHED = ("qwen", "mimo")  # families whose window is off unless `use_sliding_window` is true
WINDOWED = ("mistral", "phi3", "mixtral", "gpt_oss")  # families whose window is on where it is given
WINDOW_DEFAULT = {"mistral": 4096}  # what the family's configuration takes where the key is missing
OWN_PREFIX = {"qwen3_vl_text": "model.language_model."}


def attention(cfg: Config, hidden: int, *, kind: str = "gqa", window: int = 0) -> Attention:
    """Grouped-query attention by the usual keys."""
    family = cfg.family
    heads = cfg.count("num_attention_heads")
    kv_heads = group_heads(cfg, heads)
    bias = cfg.flag("attention_bias", False)
    out_bias = bias and family not in ("mimo",)
    return gqa(
        hidden,
        heads,
        kv_heads,
        head_width(cfg, hidden, heads),
        kind=kind,
        window=window,
        qkv_bias=bias or family in QKV_BIAS,
        out_bias=out_bias,
        qk_norm="head" if family in QK_NORM else "",
    )


def window_of(cfg: Config, family: str) -> int:
    """The sliding window in use, or 0.  A family without windows leaves the key unread: it is then refused."""
    on = cfg.flag("use_sliding_window", family.startswith(WINDOWED))
    if not on:
        if family.startswith(SWITCHED) or "use_sliding_window" in cfg.data:
            cfg.get("sliding_window")
            if cfg.has("sliding_window") and "use_sliding_window" not in cfg.data:
                cfg.default("use_sliding_window", False, "default of the family's configuration")
        return 0
    default = WINDOW_DEFAULT.get(family)
    if default and "sliding_window" not in cfg.data:
        cfg.default("sliding_window", default, "default of the family's configuration")
        return default
    window: int | None = cfg.count("sliding_window", default=None)
    return window or 0


def windowed_layers(cfg: Config, n: int, window: int, family: str) -> list[bool]:
    """For each layer, whether the window applies: a list of kinds, else the layers from `max_window_layers` on."""
    kinds = cfg.items("layer_types", n, ("full_attention", "sliding_attention"))
    switched = family.startswith(SWITCHED)
    if kinds is not None:
        if "sliding_attention" in kinds and not window:
            cfg.fail("sliding_window", "nothing", "a window, as layer_types has sliding_attention")
        return [kind == "sliding_attention" for kind in kinds]
    if not window:
        return [False] * n
    if not switched:
        return [True] * n
    first = cfg.count("max_window_layers", default=28, low=0, why="default of the family's configuration")
    return [i >= first for i in range(n)]


def read_dense(cfg: Config, top: Config) -> Built:
    """A dense model: every layer the same, but for windows."""
    family = cfg.family
    hidden, n = cfg.count("hidden_size"), layer_count(cfg)
    window = window_of(cfg, family)
    slides = windowed_layers(cfg, n, window, family)
    full = attention(cfg, hidden)
    local = attention(cfg, hidden, kind="window", window=window) if any(slides) else full
    ffn = dense_ffn(hidden, cfg.count("intermediate_size"), bias=cfg.flag("mlp_bias", False))
    place = OWN_PREFIX.get(family, "model.") if cfg.where else "model."
    built = assemble(cfg, top, [local if slide else full for slide in slides], [ffn] * n, place=place)
    modules = cfg.count("num_nextn_predict_layers", default=0, low=0, high=64) if family == "mimo" else 0
    return built._replace(mtp=mimo_modules(built.layers[-1], hidden, modules))


def mimo_modules(like: Layer, hidden: int, count: int) -> tuple[Layer, ...]:
    """MiMo's prediction modules: a layer fed by the hidden state and the embedding."""
    join = (
        *linear("input_proj", hidden, 2 * hidden, "mtp"),
        *norm("token_layernorm", hidden),
        *norm("hidden_layernorm", hidden),
        *norm("final_layernorm", hidden),
    )
    return tuple(
        like._replace(index=i, prefix=f"model.mtp_layers.{i}.", weights=(*like.weights, *join)) for i in range(count)
    )
