"""The plan of a step: which kernels run, how often, at which precision and over which weights, as data.

>>> from roofline.models import load_model
>>> step = plan(load_model("deepseek-v3.2"), Workload("decode", batch=64, context=8192), Deployment(tp=1, dp=8, ep=8))
>>> [(use.name, use.count) for use in step.uses if use.part == "indexer"][-2:]
[('indexer scores', 61), ('top-k selection', 61)]
>>> round(step.totals()["flops"] / 1e9)
943
"""

from __future__ import annotations

from collections.abc import Iterator

from roofline.models import Layer, Model
from roofline.plan.blocks import feed_forward, first_end, head, last_end
from roofline.plan.maker import Maker
from roofline.plan.mixers import mixer
from roofline.plan.numbers import Bounds, Rates, UseCost
from roofline.plan.records import PHASES, Deployment, Options, Use, Workload
from roofline.plan.spread import check_deployment, rank_bytes, stage_layers
from roofline.plan.step import Step
from roofline.plan.weights import WEIGHT_DTYPES, with_weight_dtype

__all__ = [
    "PHASES",
    "WEIGHT_DTYPES",
    "Bounds",
    "Deployment",
    "Options",
    "Rates",
    "Step",
    "Use",
    "UseCost",
    "Workload",
    "check_deployment",
    "plan",
    "rank_bytes",
    "stage_layers",
    "with_weight_dtype",
]


def plan(
    model: Model,
    workload: Workload | None = None,
    deployment: Deployment | None = None,
    options: Options | None = None,
    *,
    stage: int | None = None,
) -> Step:
    """The step of a model under a workload, on one rank of a deployment.

    stage: only this pipeline stage (counted from 0); without it, a token's way through all of them, sends included.
    Quantities are per rank; `workload.batch` counts the sequences of all data-parallel ranks.  Raises BadValue for a
    degree that does not divide, UnknownName for a phase, mode or kind of attention that is not known.
    """
    load = (workload or Workload()).checked()
    spread = check_deployment(model, deployment or Deployment())
    chosen = (options or Options()).checked()
    model = with_weight_dtype(model, chosen.weight_dtype)
    make = Maker(model, load, spread, chosen)
    layers = model.layers if stage is None else stage_layers(model, spread.pp, stage)
    uses: list[Use] = []
    if not stage:
        uses += first_end(make)
    uses += _body(make, layers)
    if stage is None or stage == spread.pp - 1:
        uses += last_end(make)
        uses += _drafts(make)
    sends = spread.pp - 1 if stage is None else int(stage < spread.pp - 1)
    if sends:
        uses.append(
            make.use(
                "send to the next stage", "send", "communication", {**make.tokens, "hidden": model.hidden}, count=sends
            )
        )
    return Step(model, load, spread, chosen, uses)


def _body(make: Maker, layers: tuple[Layer, ...]) -> Iterator[Use]:
    """Every layer; equal ones are written once and counted."""
    rule = make.model.quantization
    plain = not rule.method or (not rule.skip and rule.mixed is None)
    counted: dict[tuple[int, ...], list[Layer]] = {}
    for layer in layers:
        key = (id(layer.weights), id(layer.attention), *map(id, layer.ffns))
        counted.setdefault(key if plain else (*key, *_formats(make, layer)), []).append(layer)
    for like in counted.values():
        for use in _layer(make, like[0]):
            yield use._replace(count=use.count * len(like))


def _formats(make: Maker, layer: Layer) -> tuple[int, ...]:
    """The bytes of each tensor of a layer: layers that are stored differently are written apart."""
    rule = make.model.quantization
    return tuple(rule.stored(layer.prefix + w.name, w, make.model.dtype)[1] for w in layer.all_weights())


def _layer(make: Maker, layer: Layer) -> Iterator[Use]:
    """One layer: its own norms and maps, the token mixer, the feed-forward blocks."""
    norms, rest = make.split(make.tensors(layer, layer.weights))
    yield from make.norms(norms)
    yield from make.plain(
        rest,
        "ffn",
        {"eh_proj": "join of embedding and hidden state", "fc": "join of embedding and hidden state"},
        "maps beside the layers",
    )
    yield from mixer(make, layer)
    yield from feed_forward(make, layer)


def _drafts(make: Maker) -> Iterator[Use]:
    """The prediction modules: in decode one pass of one token per draft, in a prefill one pass over the prompt."""
    load, modules = make.load, make.model.mtp
    if not load.drafts or not modules:
        return
    decodes = load.phase in ("decode", "mixed")
    pass_ = Maker(make.model, load, make.spread, make.options, draft=True) if decodes else make
    for n in range(int(load.drafts) if decodes else 1):
        yield from first_end(pass_)
        yield from _layer(pass_, modules[n % len(modules)])
        yield from head(pass_)
