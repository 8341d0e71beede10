"""Strict reading of a model's configuration: every value checked, every default listed, every layout key accounted for.

A `Config` remembers which keys were read.  What stays unread and would change the layout of the cache is an error
(`refuse_unread`), so that a model of an unknown kind is never taken for a dense one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from roofline.errors import BadFile
from roofline.models.records import Taken

REQUIRED: Any = object()
LIMIT = 2**31 - 1  # no width or count of a real model comes near it
LAYOUT_WORDS = (  # a key with one of these in its name decides what is cached
    "compress",
    "kv_shar",
    "share_factor",
    "sparse_attention",
    "kv_lora",
    "index_topk",
    "index_kpool",
    "index_n_heads",
    "window",
    "ssm_",
    "mamba",
    "linear_attn",
    "linear_num",
    "hybrid",
    "block_type",
    "block_config",
    "layer_type",
    "cross_attention_layers",
    "attention_chunk",
    "attn_layer",
    "full_attention_interval",
    "full_attn",
    "global_attn",
    "kv_channels",
    "latent_size",
    "no_rope_layer",
    "layers_block",
    "swa_",
    "local_layer",
    "attn_type",
    "use_cla",
    "sliding",
    "key_value_heads",
    "kda_",
    "kv_groups",
    "num_memory",
    "state_size",
    "token_shift",
    "n_hash",
)
BENIGN = frozenset(  # names that the words above catch although they say nothing about the cache
    {
        "index_kpool_always_select_tail",
        "index_kpool_compress",
        "index_share_for_mtp_iteration",
        "mamba_hidden_act",
        "mamba_proj_bias",
        "mamba_ssm_cache_dtype",
        "mamba_ssm_dtype",
        "max_window_layers",
        "swa_rope_theta",
        "use_mamba_kernels",
    }
)


class Config:
    """One object of a configuration file, read key by key."""

    def __init__(self, data: Mapping[str, Any], file: object, where: str = "", root: Config | None = None) -> None:
        self.data, self.file, self.where = data, file, where
        self.used: set[str] = set()
        self.family: str = root.family if root else ""
        self.taken: list[Taken] = root.taken if root else []
        self.notes: list[str] = root.notes if root else []

    def path(self, key: str) -> str:
        """The dotted path of a key."""
        return f"{self.where}.{key}" if self.where else key

    def fail(self, key: str, got: object, expected: str, note: str = "") -> NoReturn:
        """Refuse the file because of one key."""
        raise BadFile(self.file, self.path(key), _shown(got), expected, note)

    def get(self, key: str) -> Any:
        """The raw value, or None where it is missing or null."""
        self.used.add(key)
        return self.data.get(key)

    def has(self, key: str) -> bool:
        """Whether the key is there with a value other than null; does not count as reading it."""
        return self.data.get(key) is not None

    def note(self, text: str) -> None:
        """Remember a remark for the answer."""
        if text not in self.notes:
            self.notes.append(text)

    def default(self, key: str, value: object, why: str) -> None:
        """List a default that was taken."""
        taken = Taken(self.path(key), value, why)
        if taken not in self.taken:
            self.taken.append(taken)

    def _pick(self, keys: tuple[str, ...]) -> tuple[str, Any]:
        """The one value under several spellings of a key; two spellings that disagree are an error."""
        found = [(key, self.get(key)) for key in keys]
        given = [(key, value) for key, value in found if value is not None]
        for key, value in given[1:]:
            if value != given[0][1]:
                self.fail(key, value, f"the same as {given[0][0]} = {given[0][1]}", "two spellings of one quantity")
        return given[0] if given else (keys[0], None)

    def count(
        self, *keys: str, default: Any = REQUIRED, why: str = "", low: int = 1, high: int = LIMIT, null: bool = False
    ) -> Any:
        """A whole number; several names are spellings of one key.  `default` is listed; `null`: null is a value."""
        key, value = self._pick(keys)
        if value is None:
            if null and key in self.data:
                return None
            if default is REQUIRED:
                self.fail(key, "null" if key in self.data else "nothing", f"a whole number >= {low}")
            if default is not None:
                self.default(key, default, why)
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            limits = f"from {low} to {high}" if high < LIMIT else f">= {low}"
            self.fail(key, value, f"a whole number {limits}")
        return value

    def number(self, key: str) -> float | None:
        """A finite number, or None where it is missing."""
        value = self.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e300:
            self.fail(key, value, "a finite number")
        return float(value)

    def flag(self, key: str, default: bool, why: str = "") -> bool:
        """True or false."""
        value = self.get(key)
        if value is None:
            if why:
                self.default(key, default, why)
            return default
        if not isinstance(value, bool):
            self.fail(key, value, "true or false")
        return value

    def text(self, *keys: str, default: str = "") -> str:
        """A string."""
        key, value = self._pick(keys)
        if value is None:
            return default
        if not isinstance(value, str):
            self.fail(key, value, "a string")
        return value

    def section(self, key: str) -> Config | None:
        """A nested object, or None where it is missing or null."""
        return self.need(key) if self.get(key) is not None else None

    def need(self, key: str) -> Config:
        """A nested object that must be there."""
        value = self.get(key)
        if not isinstance(value, Mapping):
            self.fail(key, "nothing" if value is None else value, "an object")
        return Config(value, self.file, self.path(key), self)

    def items(self, key: str, length: int | None = None, choices: Sequence[object] = ()) -> list[Any] | None:
        """A list, of a given length and with entries from `choices` where given; None where missing."""
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, list):
            self.fail(key, value, "a list")
        if length is not None and len(value) != length:
            self.fail(key, f"a list of {len(value)}", f"one entry for each of {length} layers")
        for at, entry in enumerate(value):
            if choices and not any(entry is c or (entry == c and type(entry) is type(c)) for c in choices):
                self.fail(f"{key}[{at}]", entry, "one of " + ", ".join(str(c) for c in choices))
        return value

    def refuse_unread(self, family: str) -> None:
        """Raise where a key that decides what is cached was not read: guessing its meaning would be wrong."""
        for key, value in self.data.items():
            if key in self.used or key in BENIGN or value is None or value == 0 or value == []:
                continue
            if any(word in key for word in LAYOUT_WORDS):
                known = ", ".join(sorted(k for k in self.used if any(w in k for w in LAYOUT_WORDS))) or "none"
                self.fail(
                    key,
                    value,
                    f"no such key for a {family} model",
                    f"it may change what is cached; layout keys understood here: {known}",
                )


def _shown(value: object) -> str:
    """A value as the file spells it, shortened."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        text = str(value)
        return f"{'an object' if isinstance(value, dict) else 'a list'} {text[:60]}"
    if isinstance(value, str) and not value.startswith(("a list", "nothing", "null")):
        return repr(value)
    return str(value)
