"""`roofline split`: prefill on some devices, decode on others; what the link must carry and in which ratio they
work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roofline.answer import Answer, Column
from roofline.answers.step import step
from roofline.answers.step_report import CONVENTION, OMITS
from roofline.errors import BadValue
from roofline.models import load_model
from roofline.units import number, show

if TYPE_CHECKING:
    from roofline.accelerators import Accelerator
    from roofline.models import Model

COLUMNS = (
    Column("side", "side"),
    Column("hardware", "accelerator"),
    Column("gpus", "GPUs", "1"),
    Column("time_lower_s", "step at least", "ms", scale=1e-3),
    Column("busy_s_per_request", "busy per request", "ms", scale=1e-3),
    Column("requests_per_s", "requests/s", "1/s"),
    Column("requests_per_s_per_gpu", "per GPU", "1/s"),
)


def split(
    model: str | Model,
    prefill_hardware: str | Accelerator,
    decode_hardware: str | Accelerator,
    *,
    prompt: int,
    output: int,
    batch: float = 1,
    transfer_bandwidth: float | None = None,
    prefill: dict[str, Any] | None = None,
    decode: dict[str, Any] | None = None,
    **shared: Any,
) -> Answer:
    """Prefill and decode on devices of their own, at the bounds of both.

    Parameters: prompt, output, tokens of a request; batch, sequences in the decode step; transfer_bandwidth, of the
    link
    between both sides [B/s]; prefill, decode, arguments of `roofline.step` for one side ({"tp": 4}); shared, for both.
    The decode step stands at the mean context, prompt + output / 2.

    Returns GPUs of each side for equal request rates, the cache bytes of a request, and the least bandwidth that hides
    them behind the prefill that makes them: bytes over prefill time.

    >>> answer = split("llama-3.1-8b", "h100-sxm", "h200-sxm", prompt=8192, output=512, batch=32)
    >>> round(answer["kv_bytes_per_request"] / 1e9, 3), answer["gpu_ratio_prefill_to_decode"] > 0
    (1.074, True)
    """
    if prompt < 1 or output < 1:
        raise BadValue("prompt", f"{prompt} and {output} tokens", "at least one token in and one out")
    m = load_model(model)
    first = step(m, prefill_hardware, phase="oneshot", batch=1, q_len=prompt, **{**shared, **(prefill or {})})
    second = step(m, decode_hardware, batch=batch, context=prompt + output // 2, **{**shared, **(decode or {})})
    kv = m.kv(shared.get("kv_dtype", "auto"), index_dtype=shared.get("index_dtype", "fp8")).at(prompt)
    rows = [_side("prefill", first, first["ttft_s"]), _side("decode", second, output * second["tpot_s"] / batch)]
    ratio = rows[1]["requests_per_s_per_gpu"] / rows[0]["requests_per_s_per_gpu"]
    least = kv / first["ttft_s"]
    data: dict[str, Any] = {
        "rows": rows,
        "kv_bytes_per_request": kv,
        "least_bandwidth_byte_per_s": least,
        "gpu_ratio_prefill_to_decode": ratio,
        "ttft_s": first["ttft_s"] + (kv / transfer_bandwidth if transfer_bandwidth else 0.0),
        "tpot_s": second["tpot_s"],
        "transfer_s": kv / transfer_bandwidth if transfer_bandwidth else None,
        "hidden": None if transfer_bandwidth is None else transfer_bandwidth >= least,
    }
    notes = [
        f"Cache of a request: {show(kv, 'B')}; a link of at least {show(least, 'B/s')} carries it "
        "while the next prompt is taken in.",
        f"{number(ratio)} prefill GPUs for each decode GPU keep both busy at their bounds.",
    ]
    if transfer_bandwidth:
        hidden = "hidden behind prefill" if data["hidden"] else "the link binds"
        notes.append(
            f"Transfer at {show(transfer_bandwidth, 'B/s')}: {show(data['transfer_s'], 's')} a request; {hidden}; "
            "counted in full in TTFT."
        )
    return Answer(
        "split",
        data,
        COLUMNS,
        title=f"{m.name}: prefill and decode apart",
        notes=(*notes, CONVENTION, OMITS),
        digest=first.digest,
    )


def _side(name: str, found: Answer, busy: float) -> dict[str, Any]:
    """One side: how long a request keeps it busy, and how many it takes a second."""
    gpus = found["deployment"]["gpus"]
    return {
        "side": name,
        "hardware": found["hardware"],
        "gpus": gpus,
        "time_lower_s": found["time_lower_s"],
        "busy_s_per_request": busy,
        "requests_per_s": 1 / busy,
        "requests_per_s_per_gpu": 1 / busy / gpus,
        "bound": found["bound"],
    }
