"""How the answer of `roofline step` is told: columns, notes, and what --explain adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from roofline.answer import Column, Section
from roofline.models import fits_positions
from roofline.units import number, show

if TYPE_CHECKING:
    from roofline.answers.step_asked import Asked

COLUMNS = (
    Column("name", "kernel"),
    Column("count", "runs", "1"),
    Column("precision", "precision"),
    Column("flops", "FLOPs", "GFLOP", scale=1e9),
    Column("bytes", "bytes", "MB", scale=1e6),
    Column("link_bytes", "sent", "MB", scale=1e6),
    Column("intensity_flop_per_byte", "intensity", "FLOP/B"),
    Column("time_lower_s", "time at least", "µs", scale=1e-6),
    Column("share", "share", "%", scale=1e-2),
    Column("bound", "bound"),
)
OMITS = (
    "Bounds, not predictions: launch gaps only where given, no scheduling, sampling, rotary embedding, residual sums, "
    "dequantisation, hop latency or activation memory; each tensor read once per kernel that uses it."
)
CONVENTION = (
    "1 multiply-add = 2 FLOP, dense peaks, causal pairs counted exactly; "
    "a row sums all runs of its kernel on one device."
)


def notes(asked: Asked, data: Mapping[str, Any], warnings: tuple[str, ...]) -> tuple[str, ...]:
    """What has to be said with the answer."""
    load, options = asked.step.workload, asked.step.options
    rate = "ttft_s" if "ttft_s" in data else "tpot_s"
    weights = "as stored" if options.weight_dtype == "auto" else options.weight_dtype
    told = [
        f"Step at least {show(data['time_lower_s'], 's')} (collectives hidden), "
        f"at most {show(data['time_upper_s'], 's')} by the roofs (nothing overlapped); "
        f"{rate[:4].upper()} bound {show(data[rate], 's')}; "
        f"{number(data['tokens_per_s_per_gpu'])} tokens/s per GPU; {data['bound']} bound.",
        f"Roof: {asked.chip.roof}. Cache {data['dtypes']['kv']}, weights {weights}, routing {options.routing}.",
    ]
    best = data["helps_most"]
    if best:
        told.append(
            f"One percent more {best.replace('_', ' ')} gives {data['elasticities'][best]:.2f} percent less time."
        )
    told += [_fit_note(data), *asked.chip.notes, *asked.model.notes, *said(asked)]
    warning = fits_positions(asked.model, max(int(load.seq_len), 1))
    return (*warnings, *([f"Warning: {warning}."] if warning else []), *told, CONVENTION, OMITS)


def _fit_note(data: Mapping[str, Any]) -> str:
    held = data["memory"]
    text = f"Fullest device: {show(held['weights_bytes'], 'B')} weights + {show(held['kv_bytes'], 'B')} cache"
    if data["fits"] is None:
        return f"{text}; capacity not sourced."
    verdict = "fits" if data["fits"] else "does not fit"
    most = f"at most {held['max_batch']} sequences of this length, no reserve kept"
    return f"{text}: {verdict} in {show(held['capacity_bytes'], 'B')}; {most}."


def said(asked: Asked) -> list[str]:
    """Choices that the caller may not have made."""
    load, options, kinds = asked.step.workload, asked.step.options, asked.model.kinds()
    told = []
    if load.phase == "mixed":
        told.append(
            "Mixed step: q_len is the prefill part's, the decode part has 1 + drafts tokens a sequence; "
            "both share one read of the weights."
        )
    if load.phase == "decode" and load.q_len > 1:
        told.append("Speculative decode: tokens a step as given by acceptance, by default all drafts accepted.")
    if load.drafts and not asked.model.mtp:
        told.append(
            f"{asked.model.id} has no prediction modules: drafts cost nothing here, only their verification is counted."
        )
    if load.prefills and ("mla" in kinds or "dsa" in kinds):
        used = options.mode or ("mha" if "mla" in kinds else "mqa")
        told.append(
            f"Prefill of latent attention in {used.upper()} mode (--mode); MHA mode re-projects the cached context."
        )
    latent = "mla" in kinds or "dsa" in kinds
    if options.kernel_heads is not None and not latent:
        told.append(f"kernel_heads changes nothing: {asked.model.id} has no latent attention.")
    if options.mode is not None and not (latent and load.prefills):
        told.append("mode changes nothing: it chooses how a prefill of latent attention runs.")
    if load.image_tokens and "cross" not in kinds:
        told.append(f"image_tokens changes nothing: {asked.model.id} has no cross-attention.")
    if "cross" in kinds and not load.image_tokens:
        told.append("image_tokens is 0: cross-attention reads nothing.")
    return told


def sections(asked: Asked, data: Mapping[str, Any]) -> tuple[Section, ...]:
    """What --explain adds: what stands for what in each use, the rates, the sums."""
    uses = tuple(
        f"{u.count:g} x {u.name} [{u.kernel}, {u.precision}]: " + ", ".join(f"{k}={v}" for k, v in u.values.items())
        for u in asked.step.uses
    )
    rates = asked.chip.rates
    peaks = (f"{name} {show(rate, 'FLOP/s')}" for name, rate in rates.peaks.items())
    used = (*peaks, f"bandwidth {show(rates.bandwidth, 'B/s')}")
    parts = tuple(
        f"{name}: {show(p['flops'], 'FLOP')}, {show(p['bytes'], 'B')}, {show(p['time_lower_s'], 's')}"
        for name, p in data["parts"].items()
    )
    law = (
        "time of a kernel: its longest leg of FLOPs/peak, bytes/bandwidth, exps/rate; kernels add",
        "collectives: hidden behind the kernels (lower bound) or added to them (upper bound)",
    )
    defaults = tuple(f"{t['key']} = {t['value']}: {t['why']}" for t in data["defaults_taken"]) or ("none",)
    return (
        Section("Law", law),
        Section("Uses of kernels and what is put in", uses),
        Section("Rates", used),
        Section("By part", parts),
        Section("Defaults taken", defaults),
    )
