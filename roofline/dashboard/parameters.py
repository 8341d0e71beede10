"""Every parameter of the address in words: the label of its control, and what to know beyond the glossary.

A parameter has the name that the command line and Python use, the same on every page.  What a page takes and what it
starts with stand with its controls; docs/dashboard.md lists both, read off the pages.

>>> label("tp"), label("batch")
('tensor parallel (tp)', 'batch')
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Words(NamedTuple):
    """label: what stands over the control; help: follows meaning and unit of the glossary, or stands alone."""

    label: str
    help: str = ""


PARAMETERS: Mapping[str, Words] = {
    # the sidebar
    "model": Words("model", "Gives the shapes: a built-in model (roofline model list), or the file of yours"),
    "hardware": Words(
        "accelerator", "Gives peaks and bandwidths: a built-in part (roofline hardware list), or one of your file"
    ),
    "hardware_2": Words("compare with", "A second accelerator, drawn beside the first"),
    "roof": Words("roof", "The pair of peak and bandwidth that bounds are taken from"),
    "batch": Words("batch", "all data-parallel ranks together"),
    "context": Words("context"),
    "view": Words("view", "The part of the page that is seen"),
    # a step and its deployment
    "phase": Words("phase", "What the step does: decode, one-shot or chunked prefill, or a mixture"),
    "q_len": Words("new tokens", "in a prefill the prompt or the chunk"),
    "drafts": Words("draft tokens"),
    "prefill_batch": Words("prefill batch"),
    "prefill_context": Words("prefill context"),
    "tp": Words("tensor parallel"),
    "dp": Words("data parallel"),
    "ep": Words("expert parallel"),
    "acceptance": Words("acceptance", "Tokens a sequence gains per decode step; the most is every draft accepted"),
    "pp": Words("pipeline parallel"),
    "cp": Words("context parallel"),
    "kv_dtype": Words("cache type", "Number format of the cache; auto: as the model has it"),
    "micro_batches": Words("batches in flight", "Batches in flight in the pipeline; in a prefill its chunks"),
    "weight_dtype": Words("weight type", "Number format of the matrices; auto: as stored"),
    "kernel": Words("explain a kernel", "Or click on a point of the chart"),
    # head count
    "heads": Words("query heads"),
    "latent": Words("latent"),
    "rope": Words("rotary width"),
    "w_kv": Words("element bytes"),
    "kv_row_bytes": Words("row bytes", "0: as the element bytes give it"),
    "explain": Words("derivation for", "The accelerator and the roof whose ridge is put in"),
    # MHA or MQA mode
    "cost": Words("cost", "FLOPs, or the time bound on the accelerator of the sidebar"),
    "between": Words("between", "What is compared: both modes, the indexer or dense attention against a mode"),
    "kernel_heads": Words("kernel heads", "0: as many as the rank has, unpadded"),
    "rate_ratio": Words("rate ratio"),
    "gather": Words("gather reuse", "Reuse of gathered rows between queries"),
    "skip": Words("skip absent keys", "Count no keys that the first queries do not have"),
    "unknown": Words("axis", "What the axis of the chart counts"),
    "prefix": Words("shared prefix", "0: nothing is shared"),
    "topk": Words("top-k", "model: as the model has it; none: dense attention"),
    # KV memory
    "lengths": Words("requests", "Lengths in tokens, separated by commas"),
    "page_size": Words("page size"),
    "reserve": Words("reservation", "Token slots that the naive way gives each request"),
    "pool": Words("pool", "Memory set aside for KV pages [B]"),
    "bytes_per_token": Words("bytes per token", "128KiB: Llama-3.1-8B in bf16; model: that of the sidebar"),
    "prefix_requests": Words("requests that share it", "The first of the list that are long enough"),
    "utilization": Words("utilization", "gpu_memory_utilization, mem_fraction_static, free_gpu_memory_fraction"),
    # hardware
    "precision": Words("precision", "bf16: fp16 stands in where a part has none"),
    "table_roof": Words("roof of the table", "Pair of peak and bandwidth"),
    "vendor": Words("vendor", "None marked: all vendors"),
    "search": Words("search", "Part of an id, a name, an architecture or a flag"),
    "part": Words("part", "Shown in full (roofline hardware show ID --explain)"),
    "first": Words("first", "The part that the other is divided by"),
    "second": Words("second", "The part that is compared with the first"),
}


def label(name: str) -> str:
    """What stands over a control: its words, and its name where that is another."""
    words = PARAMETERS[name].label
    return words if words == name else f"{words} ({name})"
