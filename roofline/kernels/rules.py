r"""Rules: what stands for a quantity of a kernel's use in a step, as expressions of workload, shape and deployment.

A plan (`roofline.plan`) is plain data: it binds a quantity to a number or to the *name* of a rule below, or of a
visibility's pairs or rows (`dense.pairs`).  `python -m roofline.kernels.rules` prints the same rules as source, so that
a scalar answer needs no sympy.

Routing of T tokens to E_k of E_n routed experts (E_0 further ones pass a token through), spread over n_ep ranks:

    expected   each token picks at random: an expert is missed with (1 - E_k/(E_n + E_0))^T; a rank has T E_k/n_ep pairs
    balanced   picks are spread as evenly as they can be: min(E_n, T E_k) experts are visited
    worst      one rank is hit as hard as it can be: min(E_k, E_n/n_ep) picks of every token, all different

>>> one = {sym.step_tokens: 1, sym.experts: 256, sym.active_experts: 8, sym.zero_experts: 0, sym.ep: 1}
>>> RULES["distinct.expected"].xreplace(one)
8
>>> chunked().bind(q_len=1, context=8192, window=8192).rows_read           # a new chunk has just begun
1
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from roofline import visibility as vis
from roofline.kernels.mla import MLA_MHA
from roofline.symbols import Expr, minimum, sym
from roofline.visibility import Visibility


def chunked() -> Visibility:
    """Causal attention within aligned chunks of `window` keys: a query sees its own chunk up to itself (Llama 4)."""
    s, c, w = sym.q_len, sym.context, sym.window

    def seen(x: Expr) -> Expr:  # sum over keys j = 1..x of ((j - 1) mod w) + 1
        whole = sp.floor(x / w)
        rest = x - w * whole
        return whole * w * (w + 1) / 2 + rest * (rest + 1) / 2

    rows = c + s - w * sp.floor(c / w)
    return Visibility(
        "chunked", seen(c + s) - seen(c), rows, ("aligned chunks", "each row of the chunks in sight read once")
    )


def _visibilities() -> dict[str, Visibility]:
    pool = sym.index_pool
    dense = vis.dense()
    return {
        "dense": dense,
        "window": vis.window(),
        "chunked": chunked(),
        "topk": vis.topk(),
        "topk_perfect": vis.topk(gather="perfect"),
        "pooled": Visibility(
            "pooled", dense.pairs / pool, dense.rows_read / pool, ("keys pooled before they are scored",)
        ),
        "cross": Visibility(
            "cross", sym.q_len * sym.image_tokens, sym.image_tokens, ("every query sees all image tokens",)
        ),
    }


VISIBILITIES: Mapping[str, Visibility] = _visibilities()


def _split(sight: Visibility) -> dict[str, Expr]:
    """Pairs and rows of one of `cp` ranks that hold equal shares of every sequence."""
    return {"pairs": sight.pairs / sym.cp, "rows_read": sight.rows_read / sym.cp}


def _routing() -> dict[str, Expr]:
    t, n, k, zero, ep = sym.step_tokens, sym.experts, sym.active_experts, sym.zero_experts, sym.ep
    missed = (1 - k / (n + zero)) ** t
    pairs = t * k * n / (n + zero) / ep
    hot = t * minimum(k, n / ep)
    return {
        "distinct.expected": n / ep * (1 - missed),
        "distinct.balanced": minimum(n / ep, pairs),
        "distinct.worst": minimum(n / ep, hot),
        "routed.expected": pairs,
        "routed.balanced": pairs,
        "routed.worst": hot,
        "visiting_tokens": minimum(t, sym.routed_tokens),
        "destinations": (sym.ranks - 1) * (1 - (1 - 1 / ep) ** k),
    }


def _workload() -> dict[str, Expr]:
    verified = 1 + sym.drafts
    return {
        "tokens": sym.batch * sym.q_len,
        "mixed_tokens": sym.batch * verified + sym.prefill_batch * sym.q_len,
        "head_tokens": sym.batch,
        "mixed_head_tokens": sym.batch * verified + sym.prefill_batch,
        "verified": verified,
        "rank_batch": sp.ceiling(sym.batch / sym.dp),
        "rank_prefill_batch": sp.ceiling(sym.prefill_batch / sym.dp),
        "image_rows": sym.batch * sym.image_tokens,
        "tokens_split": sym.batch * sym.q_len / sym.tp,
        "mixed_tokens_split": (sym.batch * verified + sym.prefill_batch * sym.q_len) / sym.tp,
        "gathered_rows": sym.context * (sym.cp - 1) / sym.cp,
        "expanded_row": MLA_MHA.bindings[sym.expanded_row_bytes],
    }


RULES: Mapping[str, Expr] = {
    **{f"{name}.{q}": getattr(sight, q) for name, sight in VISIBILITIES.items() for q in ("pairs", "rows_read")},
    **{f"{name}.split.{q}": e for name, sight in VISIBILITIES.items() for q, e in _split(sight).items()},
    **_routing(),
    **_workload(),
}


def text() -> str:
    """Source of the generated module: one function a rule and a table of them."""
    from hashlib import sha256

    from roofline.codegen import source

    functions = {name: name.replace(".", "_") for name in RULES}
    made = [source(function, RULES[name]) for name, function in functions.items()]
    table = "".join(f'    "{name}": {function},\n' for name, function in functions.items())
    code = "\n\n".join(made) + f"\n\nRULES = {{\n{table}}}\n"
    told = "Rules of a step as functions, printed by `python -m roofline.kernels.rules`; never edited by hand."
    head = f'# mypy: ignore-errors\n"""{told}"""\n\n'
    return f'{head}DIGEST = "{sha256(code.encode()).hexdigest()[:16]}"  # sha256 of what follows\n\n\n{code}'


def main() -> None:
    """Write the generated module."""
    from pathlib import Path

    path = Path(__file__).parent.parent / "_generated" / "rules.py"
    path.write_text(text(), encoding="utf-8")
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
