"""What a plan is made of, as plain records: uses of kernels, the workload of a step, and how a model is spread.

Nothing here computes a cost: a `Use` names a kernel and says what stands for each of its quantities, a number or the
name of a rule (`roofline.kernels.rules`) or of a workload quantity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from roofline.errors import BadValue, UnknownName
from roofline.glossary import check

PHASES = ("decode", "oneshot", "chunked", "mixed")
ROUTINGS = ("expected", "balanced", "worst")
MODES = ("mqa", "mha")
GATHERS = ("perfect", "none")
Value = float | str


class Use(NamedTuple):
    """One kernel as a step uses it.

    name: what it is for; kernel: id in `roofline.kernels`; values: quantity -> number, rule or workload quantity;
    count: how often it runs in the step; part: what it is summed under; precision: of the tensor unit;
    weights: names of the tensors it reads.
    """

    name: str
    kernel: str
    values: Mapping[str, Value]
    part: str
    count: float = 1  # type: ignore[assignment]  # tuple.count is not needed
    precision: str = "bf16"
    weights: tuple[str, ...] = ()


class Workload(NamedTuple):
    """One step of the deployment.

    phase: decode, oneshot (a whole prompt), chunked (one chunk of a prompt over its cached part), or mixed (a decode
    batch and one prefill chunk in the same step); batch: sequences on all data-parallel ranks together; q_len: new
    tokens per sequence (in a mixed step: of the prefill part, the decode part has 1 + drafts); context: cached tokens;
    drafts: draft tokens from the model's prediction modules; image_tokens: what cross-attention sees.
    """

    phase: str = "decode"
    batch: float = 1
    q_len: float = 1
    context: float = 0
    drafts: float = 0
    prefill_batch: float = 1
    prefill_context: float = 0
    image_tokens: float = 0

    def checked(self) -> Workload:
        """Itself, or an error that names the value."""
        if self.phase not in PHASES:
            raise UnknownName("phase", self.phase, PHASES)
        for name in self._fields[1:]:
            check(name, getattr(self, name))
        if self.phase == "oneshot" and self.context:
            note = "q_len is the length of the prompt; a prompt over a cached part is phase chunked"
            raise BadValue("context", self.context, "0 in a one-shot prefill", note)
        if self.phase == "decode" and self.drafts and self.q_len != 1 + self.drafts:
            raise BadValue("q_len", self.q_len, f"1 + drafts = {1 + self.drafts:g}")
        if self.phase != "mixed" and (self.prefill_context or self.prefill_batch != 1):
            raise BadValue("phase", self.phase, "mixed", "prefill_batch and prefill_context belong to a mixed step")
        return self

    @property
    def prefills(self) -> bool:
        """Whether a prompt is taken in."""
        return self.phase != "decode"

    @property
    def seq_len(self) -> float:
        """Keys that the last query of a sequence sees (the longest sequence of the step)."""
        if self.phase == "mixed":
            return max(self.context + 1 + self.drafts, self.prefill_context + self.q_len)
        return self.context + self.q_len

    @property
    def tokens(self) -> float:
        """New tokens in the step, all ranks together."""
        if self.phase == "mixed":
            return self.batch * (1 + self.drafts) + self.prefill_batch * self.q_len
        return self.batch * self.q_len


class Deployment(NamedTuple):
    """How a model is spread over devices: tp x dp x pp of them.

    tp: tensor parallel, of attention heads and dense feed-forward blocks; dp: attention replicas that share the
    experts;
    ep: groups of ranks that hold different experts; the experts of a group are cut into tp * dp / ep slices; pp:
    pipeline stages; cp: ranks among the tp ones that split the cache of a sequence (decode context parallelism);
    micro_batches: batches in flight in the pipeline.
    """

    tp: int = 1
    dp: int = 1
    ep: int = 1
    pp: int = 1
    cp: int = 1
    micro_batches: int = 1

    @property
    def gpus(self) -> int:
        """Devices in all."""
        return self.tp * self.dp * self.pp

    @property
    def expert_ranks(self) -> int:
        """Devices of a stage: those that share the experts."""
        return self.tp * self.dp

    @property
    def expert_tp(self) -> int:
        """Slices that an expert is cut into."""
        return self.tp * self.dp // self.ep


class Options(NamedTuple):
    """How the step is run, and what is counted.

    kv_dtype, index_dtype: of the cache and of the indexer's keys; weight_dtype: "auto" is the checkpoint's; routing:
    expected, balanced or worst; mode: of the prefill part of latent attention (default mha, sparse attention mqa);
    gather: whether rows that sparse attention selects are shared by the queries of a prefill; kernel_heads: heads as
    the absorbed kernel runs them, where an engine pads; w_act: bytes per activation element.
    """

    kv_dtype: str = "auto"
    weight_dtype: str = "auto"
    index_dtype: str = "fp8"
    routing: str = "expected"
    mode: str | None = None
    gather: str = "perfect"
    kernel_heads: int | None = None
    w_act: float = 2

    def checked(self) -> Options:
        """Itself, or an error that names the value and the choices."""
        for name, choices in (("routing", ROUTINGS), ("gather", GATHERS)):
            if getattr(self, name) not in choices:
                raise UnknownName(name, getattr(self, name), choices)
        if self.mode not in (None, *MODES):
            raise UnknownName("mode", self.mode, MODES)
        check("w_act", self.w_act)
        if self.kernel_heads is not None:
            check("kernel_heads", self.kernel_heads)
        return self
