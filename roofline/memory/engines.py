"""The engines by name, and a deployment: where the bytes for caches come from, and how an engine lays them out."""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from roofline.errors import BadValue
from roofline.memory.layouts import Layout, mixed, of_bytes, of_model, of_shape, weight_bytes
from roofline.memory.plan import GIB, Budget, Plan
from roofline.memory.sglang import SglangPlan

if TYPE_CHECKING:
    from roofline.accelerators import Accelerator
    from roofline.models.records import Model

ENGINES = ("vllm", "sglang", "trtllm", "llamacpp")
RULES = {"vllm": "of_total", "sglang": "of_total", "trtllm": "of_free", "llamacpp": "of_total"}

OWN: dict[str, dict[str, Any]] = {  # options that one engine has, and their defaults
    "vllm": {"prefix_caching": False, "max_num_batched_tokens": None},
    "llamacpp": {"slots": 1, "ubatch": None},
}


class Deployment(NamedTuple):
    """What is asked of an engine.  Sizes in GiB are per rank; text keeps its decimals, floats are exact.

    total_gib: memory of a card (default: the accelerator's); utilization: gpu_memory_utilization, mem_fraction_static
    or free_gpu_memory_fraction; weights_gib: measured weights of a rank (default: computed); activation_gib,
    non_torch_gib: measured peaks; available_gib: printed size for caches, one or one for each rank (the smallest
    decides); free_gib: printed free memory before the cache (trtllm); blocks, tokens: a printed count instead.
    """

    model: Model | None
    engine: str
    hardware: Accelerator | None = None
    total_gib: Any = None
    utilization: float | None = None
    weights_gib: Any = None
    activation_gib: Any = None
    non_torch_gib: Any = None
    available_gib: Any = None
    free_gib: Any = None
    blocks: int | None = None
    tokens: int | None = None
    block_size: int | None = None
    max_num_batched_tokens: int | None = None
    prefix_caching: bool = False
    speculative_tokens: int = 0
    hybrid: bool = True
    expert_parallel: bool = False
    v_dtype: str | None = None
    cp: int = 1
    slots: int = 1
    ubatch: int | None = None
    bytes_per_token: float | None = None
    layers: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    index_dtype: str = "fp8"
    state_dtype: str = "auto"

    @classmethod
    def of(cls, model: Model | None, part: Accelerator | None, engine: str, options: dict[str, Any]) -> Deployment:
        """From a user's options; unknown ones are refused by name."""
        unknown = [name for name in options if name not in cls._fields[3:]]
        if unknown:
            from roofline.errors import UnknownName

            raise UnknownName("option", unknown[0], cls._fields[3:])
        made = cls(model, engine, part, **options)
        ways = [made.model is not None, made.bytes_per_token is not None, made.layers is not None]
        if sum(ways) != 1:
            raise BadValue(
                "model",
                made.model.id if made.model else "nothing",
                "one of: a model; bytes per token; layers, kv_heads and head_dim",
            )
        if made.cp != 1 and engine != "vllm":
            raise BadValue("cp", made.cp, f"1 for {engine}: context parallelism is modelled for vllm alone")
        return made

    @property
    def name(self) -> str:
        """What is deployed, in words."""
        if self.model is not None:
            return self.model.name
        return (
            f"{self.bytes_per_token:g} B per token"
            if self.bytes_per_token
            else f"{self.layers} layers of {self.kv_heads} x {self.head_dim}"
        )

    def inputs(self) -> dict[str, Any]:
        """The options as given."""
        left = ("model", "hardware")
        given = {name: value for name, value in self._asdict().items() if name not in left and value is not None}
        return given | {"hardware": getattr(self.hardware, "id", None)}

    def length(self, max_model_len: int | None) -> int:
        """Tokens of a request: as given, else what the model was made for."""
        if max_model_len is not None:
            return max_model_len
        if self.model is None or not self.model.max_positions:
            raise BadValue(
                "max_model_len", "nothing", "a number of tokens: there is no model that says how long its context is"
            )
        return self.model.max_positions

    def layout(self, tp: int, dtype: str) -> Layout:
        """What one of `tp` ranks caches."""
        self._check_cp(tp)
        if self.v_dtype is not None:
            if self.engine != "llamacpp":
                raise BadValue("v_dtype", self.v_dtype, "llamacpp, whose values may have a type of their own")
            return mixed(self._layout(tp, dtype), self._layout(tp, self.v_dtype))
        return self._layout(tp, dtype)

    def _check_cp(self, tp: int) -> None:
        """Context parallelism splits what tensor-parallel ranks hold in common, and there must be that."""
        if self.cp == 1:
            return
        from roofline.plan.spread import replicas

        copies = tp if self.kv_heads is None else max(tp // self.kv_heads, 1)
        if self.model is not None:
            copies = replicas(self.model, tp)
        if _count("cp", self.cp) < 1 or copies % self.cp:
            good = ", ".join(str(n) for n in range(1, copies + 1) if copies % n == 0)
            note = f"{copies} of the {tp} tensor-parallel ranks hold the same cache; cp splits the copies"
            raise BadValue("cp", self.cp, f"one of {good}", note)

    def _layout(self, tp: int, dtype: str) -> Layout:
        if self.model is None and self.bytes_per_token is not None:
            return of_bytes(self.bytes_per_token, dtype, tp)
        if self.model is None:
            shape = {name: getattr(self, name) for name in ("layers", "kv_heads", "head_dim")}
            missing = [name for name, value in shape.items() if value is None]
            if missing:
                raise BadValue(missing[0], "nothing", "layers, kv_heads and head_dim together")
            return of_shape(**shape, dtype="bf16" if dtype == "auto" else dtype, tp=tp)
        states = {"state_dtype": self.state_dtype}
        if self.engine == "llamacpp":  # its states are float32 whatever the checkpoint says
            states = {"state_dtype": "float32", "conv_dtype": "float32"}
        drafts = self.speculative_tokens
        return of_model(
            self.model, dtype, tp=tp, index_dtype=self.index_dtype, drafts=drafts, hybrid=self.hybrid, **states
        )

    def available(self, plan: Plan, tp: int, dp: int) -> tuple[float, float, Budget | None]:
        """Bytes for caches on the rank that decides, half a unit of its last printed digit, and the budget if known."""
        sizes = ("blocks", "tokens", "available_gib", "free_gib")
        given = [name for name in sizes if getattr(self, name) is not None]
        if len(given) > 1:
            raise BadValue(given[1], getattr(self, given[1]), f"one of {', '.join(sizes)}", f"{given[0]} is given too")
        if self.blocks is not None or self.tokens is not None:
            return self._counted(plan), 0.0, None
        budget = self._budget(tp, dp) if self._can_budget() else None
        if self.available_gib is not None:
            size, half = smallest(self.available_gib, "available_gib")
            return size, half, budget
        if self.free_gib is not None:
            if RULES[self.engine] != "of_free":
                raise BadValue(
                    "free_gib",
                    self.free_gib,
                    f"available_gib for {self.engine}: a fraction of free memory is trtllm's rule",
                )
            size, half = smallest(self.free_gib, "free_gib")
            part = self._fraction()
            return size * part, half * part, Budget("of_free", size, part, 0.0, 0.0, 0.0)
        if budget is None:
            raise BadValue(
                "available_gib",
                "nothing",
                "a printed size for caches; or an accelerator or total_gib, with a model or weights_gib",
            )
        return budget.available, 0.0, budget

    def _counted(self, plan: Plan) -> float:
        """Bytes behind a printed number of blocks or tokens."""
        per_block = getattr(plan, "block_bytes", plan.layout.all_rows * plan.block_size)
        if self.blocks is not None:
            return per_block * _count("blocks", self.blocks)
        tokens = _count("tokens", self.tokens)
        groups = len(getattr(plan, "groups", (1,)))
        if isinstance(plan, SglangPlan):
            return plan.bytes_of(tokens)
        return per_block * math.ceil(tokens / plan.block_size / self.cp) * groups

    def _can_budget(self) -> bool:
        known = self.total_gib is not None or getattr(self.hardware, "visible_bytes", None)
        return bool(known and (self.weights_gib is not None or self.model is not None))

    def _budget(self, tp: int, dp: int) -> Budget:
        def given(name: str) -> float | None:
            value = getattr(self, name)
            size = None if value is None else smallest(value, name)[0]
            if size is not None and size < 0:
                raise BadValue(name, value, "a number of GiB >= 0")
            return size

        weights, total = given("weights_gib"), given("total_gib")
        if weights is None and self.model is not None:
            ranks = tp * dp if self.expert_parallel else tp
            weights = weight_bytes(self.model, tp=tp, expert_ranks=ranks, mtp=self.speculative_tokens > 0)
        if total is None and self.hardware is not None:
            total = self.hardware.visible_bytes
        rest = given("activation_gib") or 0.0, given("non_torch_gib") or 0.0
        return Budget(RULES[self.engine], total or 0.0, self._fraction(), weights or 0.0, *rest)

    def _fraction(self) -> float:
        """The engine's fraction, as given or its documented default."""
        value = self.utilization
        if value is None:
            value = {"vllm": 0.9, "trtllm": 0.9, "llamacpp": 1.0}.get(self.engine)
        if value is None:
            raise BadValue(
                "utilization",
                "nothing",
                "sglang's mem_fraction_static: the engine derives it from the card, so it must be given",
            )
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
            raise BadValue("utilization", value, "a fraction above 0, at most 1")
        return float(value)

    def notes(self, taken: list[str]) -> list[str]:
        """Defaults taken and what they mean, in words."""
        found = [f"Taken: {text}." for text in taken]
        for engine, defaults in OWN.items():
            idle = [name for name, value in defaults.items() if getattr(self, name) != value]
            if engine != self.engine and idle:
                found.append(f"{self.engine} has no {', '.join(idle)}: nothing changes; it is an option of {engine}.")
        if self.available_gib is None and self.free_gib is None and self.blocks is None and self.tokens is None:
            if self.utilization is None and self.engine != "llamacpp":
                found.append(f"Taken: utilization {self._fraction():g}, the engine's own default.")
            if self.activation_gib is None or self.non_torch_gib is None:
                found.append(
                    "Activation peak and non-torch memory that are not given count as 0, so this is an upper bound."
                )
            if self.weights_gib is None:
                found.append("Weights computed from the model; engines were seen to pad them by up to 7 %.")
            if (
                self.total_gib is None
                and self.hardware is not None
                and "capacity_visible_bytes" not in self.hardware.achievable
            ):
                found.append("Memory of the card as its datasheet prints it; drivers show somewhat less (--total-gib).")
        return found


def make_plan(deployment: Deployment, layout: Layout) -> Plan:
    """The engine's plan for a layout, with the options that the engine has."""
    d = deployment
    options: dict[str, dict[str, Any]] = {
        "vllm": {"block_size": d.block_size, "batched": d.max_num_batched_tokens, "prefix_caching": d.prefix_caching,
                 "drafts": d.speculative_tokens, "cp": d.cp},
        "sglang": {"page_size": d.block_size},
        "trtllm": {"block_size": d.block_size},
        "llamacpp": {"slots": d.slots, "ubatch": d.ubatch},
    }  # fmt: skip
    made: Plan = import_module(f"roofline.memory.{d.engine}").plan(layout, **options[d.engine])
    return made


def smallest(value: Any, name: str) -> tuple[float, float]:
    """The least of one or several sizes in GiB, in bytes, and half a unit of its last decimal (0 for a number).

    >>> smallest("8.11, 8.018", "available_gib")[0] / 2**30
    8.018
    >>> round(smallest("10.55", "available_gib")[1] / 2**30, 4), smallest(10.55, "available_gib")[1]
    (0.005, 0.0)
    """
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, (list, tuple)) else [value]
    sizes = [_size(part, name) for part in parts]
    if not sizes:
        raise BadValue(name, "nothing", "a number of GiB")
    return min(sizes)


def _size(value: Any, name: str) -> tuple[float, float]:
    expected = "a number of GiB (2^30 bytes), without unit, such as 10.55"
    half = 0.0
    number = value
    if isinstance(value, str):
        text = value.strip()
        try:
            number = float(text)
        except ValueError:
            raise BadValue(name, value, expected) from None
        decimals = text.partition(".")[2]
        half = 0.5 * 10.0 ** -len(decimals) * GIB if decimals.isdigit() else 0.0
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not abs(number) < 1e9:
        raise BadValue(name, value, expected)
    return number * GIB, half


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 10**15:
        raise BadValue(name, value, "a whole number from 0 to 10^15")
    return value
