"""The controls of the page Model step: what the step does, and the deployment; nothing that a phase or a model does not
take is on offer."""

from __future__ import annotations

from typing import Any

import streamlit as st

from roofline.dashboard.controls import choice, slider, steps
from roofline.dashboard.deployment import MORE, NAMES, deployment, more_deployment, not_asked
from roofline.models import Model
from roofline.plan import PHASES

LATENCY = "acceptance"  # moves the latency alone
PARAMETERS = ("phase", "q_len", "drafts", "prefill_batch", "prefill_context", "kv_dtype", *NAMES, *MORE)
NEW_TOKENS = tuple(2**k for k in range(7, 21))
DRAFTS = tuple(range(9))
PREFILLS = tuple(2**k for k in range(9))
CACHED = (0, *(2**k for k in range(8, 21)))
KV_DTYPES = ("auto", "bf16", "fp8", "fp8_row", "int8")
LATENT = {"mla", "dsa"}  # attention whose cached row has a format of its own


def workload_and_deployment(model: Model, *, latency: bool = False) -> dict[str, Any]:
    """Keyword arguments of `roofline.step`, batch and context excepted, which are the sidebar's.

    latency: ask for `acceptance` too, where there are drafts.
    """
    chosen = _workload(latency)
    *degrees, cache = st.columns(4)
    chosen |= deployment(model, *degrees)
    kinds = KV_DTYPES if LATENT & set(model.kinds()) else tuple(name for name in KV_DTYPES if name != "fp8_row")
    chosen["kv_dtype"] = choice("kv_dtype", kinds, "auto").show(cache)
    opened = st.session_state.setdefault("_more_open", any(name in st.query_params for name in MORE))
    with st.expander("More of the deployment", expanded=opened):
        return chosen | more_deployment(model, chosen, *st.columns(4))


def _workload(latency: bool) -> dict[str, Any]:
    """Phase and tokens; what the phase does not take stands at the library's defaults."""
    row = st.container(horizontal=True)  # one for all: a control that moves to another container loses its address
    phase = choice("phase", PHASES, "decode").show(row)
    chosen: dict[str, Any] = {"phase": phase, "q_len": None, "drafts": 0, "prefill_batch": 1, "prefill_context": 0}
    if phase == "decode":
        not_asked("q_len", "1 + drafts", " in decode")
    else:
        chosen["q_len"] = steps("q_len", NEW_TOKENS, 2048).show(row)
    if phase == "oneshot":
        st.caption("A one-shot prefill has nothing cached: the context of the sidebar has no part in it.")
    if phase in ("oneshot", "chunked"):
        not_asked("drafts", "0", f" in phase {phase}")
    else:
        chosen["drafts"] = int(steps("drafts", DRAFTS, 0).show(row))
        most = 1 + chosen["drafts"]
        if latency and most > 1:
            accepted = slider(LATENCY, 1, most, most, 0.05).show(row)
            chosen[LATENCY] = None if accepted == most else accepted
    if latency and not chosen["drafts"]:
        not_asked(LATENCY, "1", " without drafts")
    if phase == "mixed":
        chosen["prefill_batch"] = steps("prefill_batch", PREFILLS, 1).show(row)
        chosen["prefill_context"] = steps("prefill_context", CACHED, 0).show(row)
    else:
        not_asked("prefill_batch", "1", f" in phase {phase}")
        not_asked("prefill_context", "0", f" in phase {phase}")
    return chosen
