"""From a name or a path to a `Model`: find the file, read it strictly, hand it to the reader of its family.

A family is chosen by `model_type` alone.  An unknown one is refused with the list of the known ones; keys that decide
what is cached and that the family does not know are refused by name (`Config.refuse_unread`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from roofline.errors import BadFile, UnknownName
from roofline.files import kept
from roofline.models.config import Config
from roofline.models.parts import Built
from roofline.models.quant import model_dtype, read_quantization
from roofline.models.records import Model, Source

BUILTIN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "models")
FAMILIES: Mapping[str, str] = {  # model_type -> module:function
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "glm_moe_dsa"), "deepseek:read_deepseek"),
    "longcat_flash": "deepseek:read_longcat",
    "glm4_moe_lite": "deepseek:read_deepseek",
    "kimi_linear": "hybrid:read_kimi_linear",
    "glm5_next_text": "hybrid:read_glm5_next",
    **dict.fromkeys(("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"), "hybrid:read_qwen_hybrid"),
    **dict.fromkeys(
        ("llama", "mistral", "qwen2", "qwen3", "mimo", "phi3", "qwen2_vl_text", "qwen2_5_vl_text", "qwen3_vl_text"),
        "dense:read_dense",
    ),
    **dict.fromkeys(("qwen2_moe", "qwen3_moe", "qwen3_vl_moe_text"), "moe:read_qwen_moe"),
    "mixtral": "moe:read_mixtral",
    "minimax_m2": "moe:read_minimax_m2",
    "gpt_oss": "moe:read_gpt_oss",
    "glm4_moe": "moe:read_glm4_moe",
    "step3p7": "mixed:read_step",
    "step3p5": "mixed:read_step",
    "mimo_v2_flash": "mixed:read_mimo_v2",
    "llama4_text": "mixed:read_llama4",
    **dict.fromkeys(("gemma2", "gemma3_text", "gemma3n_text", "gemma4_text"), "gemma:read_gemma"),
    "nemotron_h": "blocks:read_nemotron_h",
    "nemotron-nas": "blocks:read_nemotron_nas",
    "mllama_text_model": "blocks:read_mllama",
    "hunyuan": "blocks:read_hunyuan",
}
OUTER: Mapping[str, str] = {  # a model around a language model -> the language model's type where it names none
    "kimi_k25": "kimi_k2",
    "kimi_k3": "kimi_linear",
    "qwen2_vl": "qwen2_vl_text",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "gemma3n": "gemma3n_text",
    "llama4": "llama4_text",
    "mllama": "mllama_text_model",
    "glm5_next": "glm5_next_text",
    "mistral3": "mistral",
    "step3p7": "step3p5",
}


def list_models() -> tuple[str, ...]:
    """The ids of the built-in models.

    >>> "deepseek-v3.2" in list_models()
    True
    """
    return tuple(sorted(name[:-5] for name in os.listdir(BUILTIN) if name.endswith(".json")))


def load_model(model: str | os.PathLike[str] | Model) -> Model:
    """A built-in model by its id, or the model of a `config.json` (or of a folder that holds one); a Model is itself.

    Raises UnknownName for a name that is neither, BadFile (exit code 3) for a file that cannot be read, is not valid
    JSON, has a value of the wrong kind, or describes a model of an unknown kind.

    >>> load_model("Kimi-K2").shape["heads"]
    64
    """
    if isinstance(model, Model):
        return model
    name = os.fspath(model)
    if not name or "\0" in name:
        raise UnknownName("model", name, list_models(), "roofline model list")
    ident = name.rpartition("/")[2].lower() if name.count("/") == 1 and not os.path.exists(name) else name.lower()
    if ident in list_models():
        path = os.path.join(BUILTIN, f"{ident}.json")
        other = kept(_alias, path)
        return kept(_builtin, path, *([os.path.join(BUILTIN, f"{other}.json")] if other else []))
    if os.path.isdir(name):
        inner = os.path.join(name, "config.json")
        if not os.path.isfile(inner):
            raise BadFile(name, "", "a folder without config.json", "a config.json, or a folder that holds one")
        return _from_file(inner, os.path.basename(os.path.normpath(name)))
    if os.path.lexists(name):
        return _from_file(name, _stem(name))
    if name.endswith(".json") or name.count(os.sep) > 1:
        raise BadFile(name, "", "no such file", "a config.json, or a folder that holds one")
    raise UnknownName("model", name, list_models(), "roofline model list")


def _stem(path: str) -> str:
    """A short name for a file: its own, or its folder's where it is called config.json."""
    base = os.path.basename(path)
    if base == "config.json":
        return os.path.basename(os.path.dirname(os.path.abspath(path))) or "config"
    return base.removesuffix(".json").removesuffix("_config")


def _alias(path: str) -> str:
    """The model that a file of the package is another name of, if it is one."""
    return str(_load(path).get("_alias_of") or "")


def _builtin(path: str, whole: str = "") -> Model:
    """A model of the package's own data, or another name of the one in `whole`."""
    data = _load(path)
    if whole:
        data = {**_load(whole), **{key: value for key, value in data.items() if key != "_alias_of"}}
    return read_config(data, path, os.path.basename(path).removesuffix(".json"))


def _from_file(path: str, ident: str) -> Model:
    """A model from a user's file, with the second file beside it where there is one."""
    data = _load(path)
    second = None
    if path.endswith("config.json"):
        beside = path.removesuffix("config.json") + "hf_quant_config.json"
        if os.path.isfile(beside):
            second = Config(_load(beside), beside)
    return read_config(data, path, ident, second)


def _load(path: str) -> dict[str, Any]:
    """The object in a JSON file.  Infinity may stand in keys that are not used (a vendor's file has one)."""
    from roofline.safe_yaml import load_json

    data = load_json(path, allow_infinity=True)
    if not isinstance(data, dict):
        raise BadFile(path, "", f"a {type(data).__name__}", "a JSON object, as config.json is")
    return data


def read_config(data: Mapping[str, Any], file: object, ident: str, second: Config | None = None) -> Model:
    """The model that a configuration describes; `file` is named in errors, `second` is hf_quant_config.json."""
    top = Config(data, file)
    text = top.need("text_config") if top.has("text_config") else top
    text.family = top.family = _family(top, text)
    module, _, function = FAMILIES[text.family].partition(":")
    reader: Callable[[Config, Config], Built] = getattr(import_module(f"roofline.models.{module}"), function)
    built = reader(text, top)
    own = {"quantization": read_quantization(top, text, second), "dtype": model_dtype(top, text)}
    own["state_dtype"] = _state_dtype(text) or built.state_dtype
    own["max_positions"] = text.count("max_position_embeddings", default=0, low=0)
    _note_towers(top, text)
    text.refuse_unread(text.family)
    names = top.items("architectures") or text.items("architectures") or [""]
    fields = {key: getattr(built, key) for key in ("hidden", "vocab", "layers", "mtp", "ends", "tied")}
    return Model(
        id=ident,
        name=str(data.get("_name") or ident),
        model_type=top.text("model_type") or text.family,
        architecture=str(names[0]),
        source=_source(data, file),
        defaults_taken=tuple(top.taken),
        notes=tuple(top.notes),
        **fields,
        **own,
    )


def _family(top: Config, text: Config) -> str:
    """The model_type that decides how the file is read."""
    outer = top.text("model_type")
    kind = text.text("model_type") or outer
    kind = kind if kind in FAMILIES else OUTER.get(kind, kind)
    if kind not in FAMILIES:
        note = "" if kind else "the key decides how the rest is read"
        text.fail("model_type", kind or "nothing", "one of " + ", ".join(sorted({*FAMILIES, *OUTER})), note)
    if text is not top and outer not in OUTER:
        known = "one of " + ", ".join(sorted(OUTER))
        top.fail("model_type", outer or "nothing", known, "the types of a model around a language model")
    return kind


def _state_dtype(text: Config) -> str:
    """The dtype a configuration asks for in recurrent states, if it does."""
    name = text.text("mamba_ssm_cache_dtype", "mamba_ssm_dtype")
    if name not in ("", "float32", "bfloat16", "float16"):
        text.fail("mamba_ssm_dtype", name, "float32, bfloat16 or float16")
    return name


def _note_towers(top: Config, text: Config) -> None:
    """Say that encoders beside the language model are not counted."""
    towers = [key for key in ("vision_config", "audio_config") if top is not text and top.has(key)]
    if towers:
        top.note(f"only the language model is counted, not what {' and '.join(towers)} describes")


def _source(data: Mapping[str, Any], file: object) -> Source:
    """Where a built-in configuration was taken from; a user's file is its own source."""
    given = data.get("_source")
    if isinstance(given, Mapping):
        return Source(*(str(given.get(key, "")) for key in ("repo", "file", "revision", "address")))
    return Source("", str(file), "", "")
