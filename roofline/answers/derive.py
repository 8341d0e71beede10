"""`roofline derive`: the main job.  From the formulas to a head count for each accelerator and the crossing lengths,
with every step shown, as a document that stands alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sympy as sp

from roofline import derivations, engines
from roofline.answer import Answer
from roofline.answers.crossover import crossover
from roofline.answers.crossover_text import bracket
from roofline.answers.heads import heads
from roofline.glossary import GLOSSARY
from roofline.kernels.mla import MLA_MHA, MLA_MQA
from roofline.models import Model, load_model
from roofline.report import Block, Bullets, Document, Formula, Heading, Table, Text, Verbatim, plain_letter
from roofline.symbols import sym
from roofline.units import number
from roofline.visibility import dense

REFERENCES = (
    "williams2009roofline",
    "deepseek2024v2",
    "deepseek2025v32",
    "flashmla2025",
    "deepgemm2025",
    "dao2022flashattention",
    "typhoonmla2026",
    "vllm48770",
    "vllm53785",
    "semianalysis2026sparse",
)
SYMBOLS = (
    "heads",
    "kernel_heads",
    "latent",
    "rope",
    "nope",
    "value",
    "topk",
    "q_len",
    "context",
    "seq_len",
    "pairs",
    "kv_row_bytes",
    "expanded_row_bytes",
    "w_act",
    "intensity",
    "peak",
    "bandwidth",
    "rate_ratio",
)


Rows = list[Any]


@dataclass(frozen=True, repr=False)
class Derivation(Answer):
    """An answer that is a whole document."""

    document_: Document = field(default_factory=lambda: Document("", ()))

    def __str__(self) -> str:
        return self.document_.terminal()

    __repr__ = __str__

    def _repr_markdown_(self) -> str:
        return self.document_.markdown()


def derive(
    model: str | Model | Iterable[str | Model] = ("deepseek-v3.2", "glm-5"),
    hardware: Any = "all",
    *,
    roof: str | None = None,
    peak: str | float | None = None,
    bandwidth: str | float | None = None,
    ridge: str | float | None = None,
) -> Derivation:
    """The head count on each accelerator's ridge and the lengths at which MHA and MQA mode cross, derived step by step.

    Parameters: model, ids or paths of config.json files with latent attention; hardware and roof as for `heads`.
    Returns an Answer whose data hold the answers of `heads` and `crossover`; str() of it is the document.
    """
    counted = heads(hardware, roof=roof, peak=peak, bandwidth=bandwidth, ridge=ridge)
    models = [model] if isinstance(model, (str, Model)) else list(model)
    plain = crossover(models, tp=1).rows
    padded, one_ratio = _padded(models, 1), _padded(models, 0.47)
    chunked = crossover(models, phase="chunked", context=4096).rows
    blocks: list[Block] = [*_heads_part(counted), *_crossing_part(plain, padded, one_ratio, chunked), *_sources()]
    document = Document("Head counts on the ridge, and where MHA mode and MQA mode cross", tuple(blocks))
    data = {
        "heads": dict(counted.data),
        "crossover": {
            "unpadded": plain,
            "padded_128": padded,
            "padded_128_rate_ratio_0.47": one_ratio,
            "chunked_context_4096": chunked,
        },
        "bibtex": bibtex(REFERENCES),
    }
    return Derivation("derive", data, title=document.title, digest=counted.digest, document_=document)


def _padded(models: Iterable[Any], rate_ratio: float) -> list[Any]:
    """Rows with heads padded to 128, at the degrees that divide a model's heads and leave a rank at most 128."""
    rows: list[Any] = []
    for name in models:
        heads_ = (load_model(name) if isinstance(name, str) else name).shape["heads"]
        tp = [d for d in (1, 2, 4, 8) if heads_ % d == 0 and heads_ // d <= 128]
        rows += crossover(name, tp=tp, kernel_heads=128, rate_ratio=rate_ratio).rows if tp else []
    return rows


def bibtex(keys: Iterable[str]) -> str:
    """BibTeX entries of `data/references.bib` by key."""
    text = (Path(__file__).parents[1] / "data" / "references.bib").read_text(encoding="utf-8")
    entries = {e[e.index("{") + 1 : e.index(",")]: "@" + e.strip() for e in text.split("\n@") if "{" in e}
    return "\n".join(entries[key].replace("@@", "@") for key in keys)


def _heads_part(counted: Answer) -> list[Block]:
    decode = derivations.decode()
    limit, solved = derivations.decode_intensity_limit(), derivations.heads_at_ridge()
    rows = [
        [
            r["hardware"],
            r["roof"],
            r["precision"],
            number(r["ridge_flop_per_byte"]),
            f"{r['heads_exact']:.2f}",
            str(r["heads"]),
            number(r["intensity_flop_per_byte"]),
            r["bound"],
        ]
        for r in counted.rows
    ]
    return [
        Heading("1. Which head count sits on the ridge?"),
        Text(
            "MQA-mode decode of latent attention: every head reads the same cached row, as key and as value. "
            "What runs, term by term (b sequence, p visible pair, k cache row, s new token, H head, d "
            "latent, r rotary part):"
        ),
        _terms(MLA_MQA),
        Text("Rule: arithmetic intensity is tensor FLOP over bytes moved."),
        Formula("intensity", decode.bind(batch=1, q_len=1).intensity, "one new token"),
        Text("Limit: for a long context the traffic of queries and output vanishes beside the cached rows."),
        Formula("intensity", limit),
        Text("On the ridge this equals peak / bandwidth; solved for the heads:"),
        Formula("heads", solved),
        Text(
            f"Numbers: latent {number(counted.data['inputs']['latent'])}, rope "
            f"{number(counted.data['inputs']['rope'])}, row of "
            f"{number(counted.data['inputs']['kv_row_bytes'])} bytes, one query token. `heads` is the "
            "nearest power of two in log2, "
            "the last two columns are at that count."
        ),
        Table(
            (
                "accelerator",
                "roof",
                "precision",
                "ridge [FLOP/B]",
                "heads exact",
                "heads",
                "intensity [FLOP/B]",
                "bound",
            ),
            rows,
            (False, False, False, True, True, True, True, False),
        ),
        Text(_takeaway(counted)),
        Bullets(
            [f"Skipped {s['hardware']}: {s['reason']}" for s in counted.data["skipped"]] or ["No part was skipped."]
        ),
    ]


def _takeaway(counted: Answer) -> str:
    by = {(r["hardware"], r["roof"]): r for r in counted.rows}
    said = []
    for key, text in (
        (("h800-sxm", "flashmla"), "H800 as throttled in practice"),
        (("mtt-s4000", "datasheet"), "MTT S4000"),
    ):
        if key in by:
            r = by[key]
            said.append(
                f"{text}: ridge {r['ridge_flop_per_byte']:.1f} FLOP/B, {r['heads_exact']:.2f} heads, nearest "
                f"power of two {r['heads']}"
            )
    tail = "A second reading of 64 heads: two query tokens per step (one drafted) put half the heads on the same ridge."
    return "Takeaway. " + ("; ".join(said) + ". " if said else "") + tail


def _terms(kernel: Any) -> Table:
    rows = [[t.resource, t.axes, str(t.amount), t.label] for t in kernel.terms]
    return Table(("resource", "runs over", "per element", "what"), rows, (False, False, False, False))


def _crossing_part(plain: Rows, padded: Rows, one_ratio: Rows, chunked: Rows) -> list[Block]:
    rho = sp.Symbol("rho", positive=True)
    length, k = sym.seq_len, sym.topk
    per_pair = MLA_MQA.bind(batch=1, pairs=1).flops / MLA_MHA.bind(batch=1, pairs=1).flops * sym.rate_ratio
    return [
        Heading("2. At which length do MHA mode and MQA mode cross?"),
        Text(
            "One-shot prefill of a sparse model. MHA mode computes all causal pairs and masks; MQA mode "
            "computes the top-k keys of each query. "
            "Up-projection in the one mode and absorption in the other cost the same FLOPs, so the attention "
            "cores decide:"
        ),
        _terms(MLA_MHA),
        Formula("pairs", dense().pairs.subs({sym.context: 0, sym.q_len: length}), "MHA mode, causal"),
        Formula("pairs", sp.expand(k * length - k * (k - 1) / 2), "MQA mode, beyond top-k, missing keys skipped"),
        Text("Cost per pair, MQA over MHA, with padded heads and m, the FLOP rate of MHA mode over that of MQA mode:"),
        Formula("rho", per_pair),
        Text(
            "Setting both sides equal is a quadratic; the root above top-k is the answer, the other lies "
            "below top-k and is rejected:"
        ),
        Formula("seq_len", derivations.crossing_length(rho)),
        Text(
            "MHA mode is cheaper below it and MQA mode above; for rho < 1 MQA mode is cheaper at every "
            "length above top-k."
        ),
        Text("Attention core, FLOPs only, heads not padded:"),
        _crossing_table(plain),
        Text(
            "With heads padded to 128, as vLLM's sparse kernel on Blackwell runs them, and vLLM's own "
            "empirical table beside it:"
        ),
        _crossing_table(padded),
        Text(
            "One rate ratio for all degrees (0.47; anything from 0.3922 to 0.6072 does) lands in all four of "
            "vLLM's V3.2 brackets, to which alone it is fitted:"
        ),
        _crossing_table(one_ratio),
        Text(_article_text()),
        Text(
            "Chunked prefill over 4,096 cached tokens, where MHA mode expands the context again in every "
            "chunk: with sparse attention there is a window, not one length."
        ),
        _crossing_table(chunked),
        Bullets(
            ["Measured, whole modules: " + _measured(r) for r in plain if r["measured"]]
            or ["No measured module for these models."]
        ),
        Bullets(_reasons([*plain, *padded, *one_ratio, *chunked]) or ["Every question above has an answer."]),
        Text(
            "Left out here: indexer and top-k selection (both modes run them), bits of the mask, fixed cost "
            "per call, gather reuse (see --cost time), achieved rates."
        ),
    ]


def _reasons(rows: Rows) -> list[str]:
    """Why a row has no crossing, once a model and phase."""
    found: dict[tuple[str, str], str] = {}
    for r in rows:
        if r["value"] is None:
            found.setdefault((r["model"], r["phase"]), str(r["reason"]))
    return [f"No crossing, {model}, {phase}: {reason}" for (model, phase), reason in found.items()]


def _crossing_table(found: Rows) -> Table:
    rows = [
        [
            r["model"],
            str(r["tp"]),
            str(r["heads"] or "-"),
            str(r["kernel_heads"] or "-"),
            r["unknown"] or "-",
            "none" if r["value"] is None else number(r["value"]),
            r["cheaper_below"] or "-",
            r["cheaper_above"] or "-",
            _vllm(r),
        ]
        for r in found
    ]
    heads_ = ("model", "TP", "heads", "run as", "unknown", "crossing", "cheaper below", "cheaper above", "vLLM's table")
    return Table(heads_, rows, (False, True, True, True, False, True, False, False, False))


def _vllm(row: Any) -> str:
    own = [
        v
        for v in row["engine_thresholds"]
        if v["engine"] == "vLLM" and v.get("backend") == "FLASHMLA_SPARSE" and "seq_len" in v
    ]
    return ", ".join(map(bracket, own)) or "-"


def _measured(row: Any) -> str:
    told = [
        f"{m['hardware']} {number(m['seq_len'])}"
        if m["seq_len"]
        else f"{m['hardware']} no crossing up to {number(m['measured_to'])}"
        for m in row["measured"]
    ]
    return (
        f"{row['model']} {row['heads']} heads, indexer and top-k included: "
        + "; ".join(told)
        + " (aiconfigurator, vLLM 0.24)"
    )


def _article_text() -> str:
    lengths = engines.article_lengths()["rows"]
    asked = [
        crossover("deepseek-v3.2", tp=r["tp"], kernel_heads=128, at_length=r["length"]).rows[0]["value"]
        for r in lengths
    ]
    pairs = " and ".join(
        f"{number(r['length'])} at TP {r['tp']} is a rate ratio of {v:.4f}" for r, v in zip(lengths, asked, strict=True)
    )
    told = (
        "An article reads two crossings off a plot of vLLM's measurements. As what they are, with heads padded to 128"
    )
    return f"{told}: {pairs}."


def _sources() -> list[Block]:
    return [
        Heading("3. Symbols"),
        Table(
            ("symbol", "name", "unit", "meaning"),
            [[plain_letter(GLOSSARY[n].latex), n, GLOSSARY[n].unit, GLOSSARY[n].meaning] for n in SYMBOLS],
            (False, False, False, False),
        ),
        Heading("4. Assumptions"),
        Bullets(
            [
                "1 multiply-add is 2 FLOP; dense peaks; decimal rates; causal pairs counted exactly.",
                "Scores stay on chip; a fused kernel is bounded by its longest leg; each cached row is read "
                "once per sequence.",
                "Every number is a bound from the roof named beside it, not a prediction.",
                "Query heads divide by TP, the latent cache does not; padded heads do real work.",
            ]
        ),
        Heading("5. Sources"),
        Verbatim(bibtex(REFERENCES)),
    ]


WRITERS = {
    ".md": lambda a: a.document_.markdown(),
    ".tex": lambda a: a.document_.latex(),
    ".html": lambda a: a.document_.html(),
    ".txt": lambda a: a.document_.terminal(),
    ".json": Answer.to_json,
}
