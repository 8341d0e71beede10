r"""DeepSeek Sparse Attention (DSA): lightning indexer, selection of the top-k keys, and the two attention cores.

    b sequence   s new token   p visible (query, key) pair   k indexer row read
    i indexer head   j indexer width   K selected key

The indexer scores *all* causal pairs; its ReLU and the weighting over heads run on the vector unit.  The sparse core
is `mla_mqa` over `topk` keys; the masked core is `mla_mha` over all causal pairs, because no block is skipped.

Assumed: indexer keys are fp8 with one fp32 scale (128 + 4 = 132 bytes); logits are written by the indexer and read
once by the selection, which writes `topk` 4-byte indices per query.
Not counted: the selection's comparisons, the mask's bits, reading the indices back, indexer projections.
Source: DeepSeek-V3.2, arXiv:2512.02556 sec. 2; DeepGEMM README (fp8_mqa_logits).

>>> DSA_INDEXER.bind(batch=1, pairs=1, index_heads=64, index_head_dim=128).flops
16384
>>> DSA_INDEXER.bind(batch=0, pairs=0, index_head_dim=128).bindings[sym.index_row_bytes]
132
"""

from __future__ import annotations

from roofline.kernel import Kernel, Mac, Read, Vector, Write
from roofline.kernels.mla import MLA_MHA, MLA_MQA
from roofline.symbols import sym
from roofline.visibility import dense, topk

_SOURCE = "arXiv:2512.02556 sec. 2; github.com/deepseek-ai/DeepGEMM at 54e2261, README"

DSA_INDEXER = Kernel(
    "dsa_indexer",
    Mac("b p i j", "scores of every indexer head"),
    Vector("b p i", 2, "ReLU and weighting"),
    Read("b k", sym.index_row_bytes, "indexer keys"),
    Read("b s i j", sym.w_index, "indexer queries"),
    Read("b s i", 4, "head weights, fp32"),
    Write("b p", sym.w_logit, "logits"),
    title="DSA lightning indexer",
    defaults={"index_row_bytes": sym.index_head_dim + 4, "w_index": 1, "w_logit": 4},
    precision="fp8",
    assumes=("all causal pairs are scored", "one fp32 scale per key"),
    omits=("projections of the indexer",),
    source=_SOURCE,
)

DSA_TOPK = Kernel(
    "dsa_topk",
    Read("b p", sym.w_logit, "logits"),
    Write("b s K", 4, "indices of the selected keys"),
    title="DSA top-k selection traffic",
    defaults={"w_logit": 4},
    assumes=("logits are read once",),
    omits=("comparisons of the selection",),
    source=_SOURCE,
)

DSA_MQA = MLA_MQA.bind(**topk().bindings()).named(
    "dsa_mqa", "DSA sparse core, MQA mode over top-k keys", assumes=MLA_MQA.assumes + topk().assumes, source=_SOURCE
)
DSA_MHA = MLA_MHA.bind(**dense().bindings()).named(
    "dsa_mha",
    "DSA masked core, MHA mode over all causal pairs",
    assumes=(*MLA_MHA.assumes, "no masked block is skipped"),
    omits=(*MLA_MHA.omits, "bits of the mask"),
    source=_SOURCE,
)

KERNELS = (DSA_INDEXER, DSA_TOPK, DSA_MQA, DSA_MHA)
