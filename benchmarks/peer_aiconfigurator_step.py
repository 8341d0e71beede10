"""Times aiconfigurator 0.12.0's analytic mode (SOL) over 900 decode points of DeepSeek-V3.2, one call a point.

Runs under an interpreter that has that package; prints one JSON line a system and TP degree.  Called by bench_step.py.
"""

from __future__ import annotations

import json
import logging
import statistics
import sys
import time

logging.disable(logging.CRITICAL)

from aiconfigurator_core.sdk import engine, models, perf_database  # noqa: E402
from aiconfigurator_core.sdk.config_builders import build_model_config  # noqa: E402

BACKENDS = {"h100_sxm": "trtllm", "h200_sxm": "trtllm", "b200_sxm": "trtllm", "gb200": "trtllm"}
POINTS = [(batch, 512 * i) for batch in (1, 2, 4, 8, 16, 32, 64, 128, 256) for i in range(1, 101)]
UNSET = ("gemm_quant_mode", "moe_quant_mode", "comm_quant_mode", "forward_model", "attention_backend")
MODEL = "deepseek-ai/DeepSeek-V3.2"


def handle(system: str, backend: str, tp: int) -> engine.EngineHandle:
    """An engine in SOL mode, with the newest table version the package has for the system."""
    sizes = {"tp_size": tp, "pp_size": 1, "attention_dp_size": 1, "moe_tp_size": tp, "moe_ep_size": 1}
    config = build_model_config(
        **sizes, **dict.fromkeys(UNSET), kvcache_quant_mode="bfloat16", fmha_quant_mode="bfloat16"
    )
    version = perf_database.get_latest_database_version(system=system, backend=backend)
    database = perf_database.get_database_view(system, backend, version, database_mode="SOL")
    spec = engine.build_engine_spec_json(
        models.get_model(MODEL, config, backend),
        model_path=MODEL,
        system=system,
        backend=backend,
        backend_version=version,
        kv_block_size=None,
        systems_path=None,
        nextn=0,
        database=database,
    )
    return engine.EngineHandle(bytes(engine.aiconfigurator_core.engine_spec_bincode_from_json(spec)))


for system, backend in BACKENDS.items():
    for tp in (4, 8):
        try:
            call = handle(system, backend, tp).predict_decode_latency
            seconds = []
            for _ in range(6):  # the first round warms up
                start = time.perf_counter()
                for batch, context in POINTS:
                    call(batch, context)
                seconds.append(time.perf_counter() - start)
        except Exception as error:  # a system or degree that the package does not know is told, not hidden
            print(f"{system} TP {tp}: {error}", file=sys.stderr)
            continue
        rate = len(POINTS) / statistics.median(seconds[1:])
        print(json.dumps({"system": system, "tp": tp, "points_per_s": rate}))
