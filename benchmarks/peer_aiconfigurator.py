"""Times aiconfigurator 0.12.0's analytic mode (SOL) over 900 decode points, one call a point: it takes no arrays.

Runs under an interpreter that has that package; prints one JSON line a model.  Called by bench_grid.py.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import statistics
import time

logging.disable(logging.CRITICAL)

from aiconfigurator_core.sdk import engine, models, perf_database  # noqa: E402
from aiconfigurator_core.sdk.config_builders import build_model_config  # noqa: E402

SYSTEM, BACKEND, DATABASE = "h200_sxm", "trtllm", "1.3.0rc20"
POINTS = [(batch, 512 * i) for batch in (1, 2, 4, 8, 16, 32, 64, 128, 256) for i in range(1, 101)]
UNSET = ("gemm_quant_mode", "moe_quant_mode", "comm_quant_mode", "forward_model", "attention_backend")


def handle(model_path: str, **parallel: int) -> engine.EngineHandle:
    """An engine for one model in SOL mode."""
    sizes = dict.fromkeys(("tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size"), 1) | parallel
    config = build_model_config(
        **sizes, **dict.fromkeys(UNSET), kvcache_quant_mode="bfloat16", fmha_quant_mode="bfloat16"
    )
    database = perf_database.get_database_view(SYSTEM, BACKEND, DATABASE, database_mode="SOL")
    spec = engine.build_engine_spec_json(
        models.get_model(model_path, config, BACKEND), model_path=model_path, system=SYSTEM, backend=BACKEND,
        backend_version=DATABASE, kv_block_size=None, systems_path=None, nextn=0, database=database,
    )  # fmt: skip
    return engine.EngineHandle(bytes(engine.aiconfigurator_core.engine_spec_bincode_from_json(spec)))


for path, model, parallel in (
    ("llama-3.1-8b", "meta-llama/Meta-Llama-3.1-8B", {}),
    ("deepseek-v3", "deepseek-ai/DeepSeek-V3", {"attention_dp_size": 8, "moe_ep_size": 8}),
):
    call = handle(model, **parallel).predict_decode_latency
    seconds = []
    for _ in range(8):  # the first round warms up
        start = time.perf_counter()
        for batch, context in POINTS:
            call(batch, context)
        seconds.append(time.perf_counter() - start)
    rate = len(POINTS) / statistics.median(seconds[1:])
    print(
        json.dumps({"path": path, "points_per_s": rate, "version": importlib.metadata.version("aiconfigurator-core")})
    )
