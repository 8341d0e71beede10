"""What the published numbers are about, computed from the kernels, the visibilities and the law: shapes, quantities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy as sp

from roofline import law
from roofline.kernel import Kernel
from roofline.kernels import KERNELS
from roofline.symbols import exact, sym, symbol
from roofline.visibility import dense, oneshot, prefix_part, topk

# Shapes as the configurations on Hugging Face have them (config.json of each repository).
V3 = {"heads": 128, "latent": 512, "rope": 64, "nope": 128, "value": 128}  # deepseek-ai/DeepSeek-V3, -V3.2-Exp
K3 = V3 | {"heads": 96}  # moonshotai/Kimi-K3
GLM5 = {"heads": 64, "latent": 512, "rope": 64, "nope": 192, "value": 256}  # zai-org/GLM-5
FLASH = {"heads": 64, "latent": 512, "rope": 0, "nope": 256, "value": 256}  # zai-org/GLM-5.3-Flash
V32_INDEX = {"index_heads": 64, "index_head_dim": 128, "topk": 2048}
GLM5_INDEX = {"index_heads": 32, "index_head_dim": 128, "topk": 2048}


def bind(name: str, **values: Any) -> Kernel:
    """One sequence, one query, heads not padded, Q/O traffic left out, two bytes an element, unless said."""
    usual: dict[str, Any] = {"batch": 1, "q_len": 1, "w_act": 0, "w_kv": 2, "w_expanded": 2, "w_weight": 2}
    usual["kernel_heads"] = values.get("heads", 1)
    return KERNELS[name].bind(**(usual | values))


def pair(name: str, **shape: Any) -> Any:
    """FLOPs of one (query, key) pair."""
    return bind(name, pairs=1, **shape).flops


def row(name: str, **shape: Any) -> Any:
    """Bytes of one cache row."""
    return bind(name, pairs=1, rows_read=1, **shape).reads


def put(expr: sp.Expr, **values: Any) -> Any:
    """An expression with numbers put in."""
    return expr.xreplace({symbol(k): exact(v) for k, v in values.items()})


def limit_intensity(**values: Any) -> Any:
    """MQA-mode decode intensity for a long context, from the kernel."""
    return sp.limit(bind("mla_mqa", **dense().bindings(), **values).intensity, sym.context, sp.oo)


def at_keys(quantity: Callable[[Kernel], Any], keys: int, **values: Any) -> Any:
    """A quantity of MQA-mode decode with `keys` keys, Q and O at two bytes."""
    bound = bind("mla_mqa", **dense().bindings(), **({"w_act": 2} | values)).bind(context=keys - 1)
    return quantity(bound)


def root(left: sp.Expr, right: sp.Expr, unknown: sp.Symbol, low: float, high: float) -> float:
    """Where the two cross, by bisection on the difference; there must be a change of sign."""
    gap = sp.lambdify(unknown, left - right, "math")
    rising = gap(high) > 0
    assert (gap(low) > 0) != rising, "no change of sign"
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if (gap(middle) > 0) == rising else (middle, high)
    return (low + high) / 2


def oneshot_crossing(shape: dict[str, int], *, skip: bool = True, ratio: Any = 1, **values: Any) -> float:
    """Length at which masked MHA costs as many FLOPs as sparse MQA, one-shot; MHA mode runs `ratio` times as fast."""
    mha = bind("mla_mha", **oneshot(dense()).bindings(), **shape)
    mqa = bind("mla_mqa", **oneshot(topk(skip=skip)).bindings(), topk=2048, **(shape | values))
    return root(mha.flops, exact(ratio) * mqa.flops, sym.seq_len, 2050, 1e6)


def long_crossing(shape: dict[str, int], padded: int, tp: int) -> Any:
    """The same to leading order in the length: S* of the FLOP model where S >> K."""
    shape = shape | {"heads": shape["heads"] // tp}
    mha = bind("mla_mha", **oneshot(dense()).bindings(), **shape).flops
    mqa = bind("mla_mqa", **oneshot(topk(skip=False)).bindings(), topk=2048, **(shape | {"kernel_heads": padded})).flops
    length = sym.seq_len
    return sp.limit(mqa / length, length, sp.oo) / sp.limit(mha / length**2, length, sp.oo)


def queries_to_break_even(shape: dict[str, int]) -> Any:
    """New tokens above which re-projecting a long dense context pays."""
    shape = shape | {"q_len": sym.q_len}
    total = {
        n: sp.expand(bind(n, **dense().bindings(), **shape).flops) for n in ("mla_up_projection", "mla_mqa", "mla_mha")
    }
    up = total["mla_up_projection"].coeff(sym.context, 1)
    return up / ((total["mla_mqa"] - total["mla_mha"]).coeff(sym.context, 1) / sym.q_len)


def break_even_at(context: int) -> float:
    """The same at a finite context, V3: MHA mode with kv_b on all rows against MQA mode with its two projections."""
    shape = V3 | {"q_len": sym.q_len, "context": context}
    cost = {n: bind(n, **dense().bindings(), **shape).flops for n in KERNELS if n.startswith("mla_")}
    mha = cost["mla_mha"] + cost["mla_up_projection"]
    mqa = cost["mla_mqa"] + cost["mla_absorption"] + cost["mla_unabsorption"]
    return root(mha, mqa, sym.q_len, 1, 4096)


def chunk_window(low: float, high: float) -> float:
    """Chunk over a sparse context of 4,096 tokens, V3.2: an end of the window in which MHA mode is cheaper."""
    shape = V3 | {"q_len": sym.q_len, "context": 4096, "topk": 2048}
    cost = {
        n: bind(n, **dense().bindings(), **shape).flops
        for n in ("mla_mha", "mla_up_projection", "mla_absorption", "mla_unabsorption")
    }
    sparse = (
        bind("mla_mqa", pairs=sym.q_len * 2048, rows_read=1, **(shape)).flops
        + cost["mla_absorption"]
        + cost["mla_unabsorption"]
    )
    return root(cost["mla_mha"] + cost["mla_up_projection"], sparse, sym.q_len, low, high)


def typhoon(balance: Any, **expanded: Any) -> Any:
    """Queries over a shared prefix above which expanded rows pay: MHA memory-bound against MQA compute-bound."""
    mha = bind("mla_mha", **prefix_part().bindings(), prefix=1, **V3, **expanded)
    mqa = bind("mla_mqa", **prefix_part().bindings(), prefix=1, **V3)
    times = law.legs(mha)["memory"] / law.legs(mqa)["tensor"]
    return put(times, peak=balance, bandwidth=1)


def indexer_equals_core(shape: dict[str, int], index: dict[str, int]) -> float:
    """Keys at which the indexer costs one query as many FLOPs as its sparse core."""
    indexer = bind("dsa_indexer", **dense().bindings(), **index, context=sym.seq_len - 1).flops
    core = bind("dsa_mqa", **(shape | index)).bind(context=2048).flops
    return root(indexer, core, sym.seq_len, 2049, 1e6)


def indexer_equals_core_prefill() -> float:
    """The same for a whole one-shot prefill."""
    indexer = bind("dsa_indexer", **oneshot(dense()).bindings(), **V32_INDEX).flops
    core = bind("mla_mqa", **oneshot(topk()).bindings(), **V3, **V32_INDEX).flops
    return root(indexer, core, sym.seq_len, 2050, 1e6)


def latent_row(**shape: Any) -> Any:
    """Bytes of a latent row of 512 + 64 elements."""
    return row("mla_mqa", **(V3 | shape))


def gqa_row(kv_heads: Any, **values: Any) -> Any:
    """Bytes of keys and values of `kv_heads` heads of 128."""
    return row("attention", kv_heads=kv_heads, head_dim=128, heads=1, **values)


def index_row(**values: Any) -> Any:
    """Bytes of one cached indexer key of 128 elements (no query, so nothing else is read)."""
    return KERNELS["dsa_indexer"].bind(batch=1, rows_read=1, q_len=0, index_head_dim=128, **values).reads


def ratio(first: str, second: str, quantity: Callable[..., Any], shape: dict[str, int]) -> Any:
    """One kernel over another."""
    return quantity(first, **shape) / quantity(second, **shape)


def matrices(*shapes: tuple[int, int]) -> Any:
    """Elements of weight matrices, as the linear kernel reads them at one byte each."""
    return sum(bind("linear", tokens=0, hidden=m, ffn=f, w_weight=1).reads for m, f in shapes)


def training(model: dict[str, int], layers: int, active: float, length: int = 4096) -> Any:
    """Training FLOPs per token: 6 per active parameter, and three times the causal attention core of one sequence."""
    core = bind("mla_mha", **oneshot(dense()).bindings(), **model).bind(seq_len=length).flops
    return 6 * active + 3 * layers * core / length
