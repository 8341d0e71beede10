# mypy: ignore-errors
"""Rules of a step as functions, printed by `python -m roofline.kernels.rules`; never edited by hand."""

DIGEST = "4eb45f3c42dddf1a"  # sha256 of what follows


def dense_pairs(*, context, q_len):
    return context * q_len + q_len * (q_len + 1) / 2


def dense_rows_read(*, context, q_len):
    return context + q_len


def window_pairs(*, context, q_len, window):
    t0_ = min(max(0, window - context), q_len)
    return context * t0_ + t0_ * (t0_ + 1) / 2 + (q_len - t0_) * window


def window_rows_read(*, context, q_len, window):
    return min(context + q_len, q_len + window - 1)


def chunked_pairs(*, context, q_len, window):
    t0_ = (context + q_len) // window
    t1_ = t0_ * window
    t2_ = window + 1
    t3_ = context // window
    t4_ = t3_ * window
    return (context + q_len + 1 - t1_) * (context + q_len - t1_) / 2 + t0_ * window * t2_ / 2 - (context + 1 - t4_) * (context - t4_) / 2 - t3_ * window * t2_ / 2


def chunked_rows_read(*, context, q_len, window):
    return context + q_len - (context // window) * window


def topk_pairs(*, context, q_len, topk):
    t0_ = min(max(0, topk - context), q_len)
    return context * t0_ + t0_ * (t0_ + 1) / 2 + (q_len - t0_) * topk


def topk_rows_read(*, context, q_len, topk):
    t0_ = min(max(0, topk - context), q_len)
    return context * t0_ + t0_ * (t0_ + 1) / 2 + (q_len - t0_) * topk


def topk_perfect_pairs(*, context, q_len, topk):
    t0_ = min(max(0, topk - context), q_len)
    return context * t0_ + t0_ * (t0_ + 1) / 2 + (q_len - t0_) * topk


def topk_perfect_rows_read(*, context, q_len, topk):
    t0_ = min(max(0, topk - context), q_len)
    return min(context * t0_ + t0_ * (t0_ + 1) / 2 + (q_len - t0_) * topk, context + q_len)


def pooled_pairs(*, context, index_pool, q_len):
    return (context * q_len + q_len * (q_len + 1) / 2) / index_pool


def pooled_rows_read(*, context, index_pool, q_len):
    return (context + q_len) / index_pool


def cross_pairs(*, image_tokens, q_len):
    return image_tokens * q_len


def cross_rows_read(*, image_tokens):
    return image_tokens


def dense_split_pairs(*, context, cp, q_len):
    return (context * q_len + q_len * (q_len + 1) / 2) / cp


def dense_split_rows_read(*, context, cp, q_len):
    return (context + q_len) / cp


def window_split_pairs(*, context, cp, q_len, window):
    t0_ = min(max(0, window - context), q_len)
    return (context * t0_ + t0_ * (t0_ + 1) / 2 + (q_len - t0_) * window) / cp


def window_split_rows_read(*, context, cp, q_len, window):
    return min(context + q_len, q_len + window - 1) / cp


def chunked_split_pairs(*, context, cp, q_len, window):
    t0_ = (context + q_len) // window
    t1_ = t0_ * window
    t2_ = window + 1
    t3_ = context // window
    t4_ = t3_ * window
    return ((context + q_len + 1 - t1_) * (context + q_len - t1_) / 2 + t0_ * window * t2_ / 2 - (context + 1 - t4_) * (context - t4_) / 2 - t3_ * window * t2_ / 2) / cp


def chunked_split_rows_read(*, context, cp, q_len, window):
    return (context + q_len - (context // window) * window) / cp


def topk_split_pairs(*, context, cp, q_len, topk):
    t0_ = min(max(0, topk - context), q_len)
    return (context * t0_ + t0_ * (t0_ + 1) / 2 + (q_len - t0_) * topk) / cp


def topk_split_rows_read(*, context, cp, q_len, topk):
    t0_ = min(max(0, topk - context), q_len)
    return (context * t0_ + t0_ * (t0_ + 1) / 2 + (q_len - t0_) * topk) / cp


def topk_perfect_split_pairs(*, context, cp, q_len, topk):
    t0_ = min(max(0, topk - context), q_len)
    return (context * t0_ + t0_ * (t0_ + 1) / 2 + (q_len - t0_) * topk) / cp


def topk_perfect_split_rows_read(*, context, cp, q_len, topk):
    t0_ = min(max(0, topk - context), q_len)
    return min(context * t0_ + t0_ * (t0_ + 1) / 2 + (q_len - t0_) * topk, context + q_len) / cp


def pooled_split_pairs(*, context, cp, index_pool, q_len):
    return (context * q_len + q_len * (q_len + 1) / 2) / cp / index_pool


def pooled_split_rows_read(*, context, cp, index_pool, q_len):
    return (context + q_len) / cp / index_pool


def cross_split_pairs(*, cp, image_tokens, q_len):
    return image_tokens * q_len / cp


def cross_split_rows_read(*, cp, image_tokens):
    return image_tokens / cp


def distinct_expected(*, active_experts, ep, experts, step_tokens, zero_experts):
    return (1 - (1 - active_experts / (experts + zero_experts))**step_tokens) * experts / ep


def distinct_balanced(*, active_experts, ep, experts, step_tokens, zero_experts):
    return min(active_experts * experts * step_tokens / ep / (experts + zero_experts), experts / ep)


def distinct_worst(*, active_experts, ep, experts, step_tokens):
    t0_ = experts / ep
    return min(t0_, min(active_experts, t0_) * step_tokens)


def routed_expected(*, active_experts, ep, experts, step_tokens, zero_experts):
    return active_experts * experts * step_tokens / ep / (experts + zero_experts)


def routed_balanced(*, active_experts, ep, experts, step_tokens, zero_experts):
    return active_experts * experts * step_tokens / ep / (experts + zero_experts)


def routed_worst(*, active_experts, ep, experts, step_tokens):
    return min(active_experts, experts / ep) * step_tokens


def visiting_tokens(*, routed_tokens, step_tokens):
    return min(routed_tokens, step_tokens)


def destinations(*, active_experts, ep, ranks):
    return (1 - (1 - 1 / ep)**active_experts) * (ranks - 1)


def tokens(*, batch, q_len):
    return batch * q_len


def mixed_tokens(*, batch, drafts, prefill_batch, q_len):
    return batch * (drafts + 1) + prefill_batch * q_len


def head_tokens(*, batch):
    return batch


def mixed_head_tokens(*, batch, drafts, prefill_batch):
    return batch * (drafts + 1) + prefill_batch


def verified(*, drafts):
    return drafts + 1


def rank_batch(*, batch, dp):
    return -(-batch // dp)


def rank_prefill_batch(*, dp, prefill_batch):
    return -(-prefill_batch // dp)


def image_rows(*, batch, image_tokens):
    return batch * image_tokens


def tokens_split(*, batch, q_len, tp):
    return batch * q_len / tp


def mixed_tokens_split(*, batch, drafts, prefill_batch, q_len, tp):
    return (batch * (drafts + 1) + prefill_batch * q_len) / tp


def gathered_rows(*, context, cp):
    return context * (cp - 1) / cp


def expanded_row(*, heads, nope, rope, value, w_expanded):
    return (heads * (nope + value) + rope) * w_expanded


RULES = {
    "dense.pairs": dense_pairs,
    "dense.rows_read": dense_rows_read,
    "window.pairs": window_pairs,
    "window.rows_read": window_rows_read,
    "chunked.pairs": chunked_pairs,
    "chunked.rows_read": chunked_rows_read,
    "topk.pairs": topk_pairs,
    "topk.rows_read": topk_rows_read,
    "topk_perfect.pairs": topk_perfect_pairs,
    "topk_perfect.rows_read": topk_perfect_rows_read,
    "pooled.pairs": pooled_pairs,
    "pooled.rows_read": pooled_rows_read,
    "cross.pairs": cross_pairs,
    "cross.rows_read": cross_rows_read,
    "dense.split.pairs": dense_split_pairs,
    "dense.split.rows_read": dense_split_rows_read,
    "window.split.pairs": window_split_pairs,
    "window.split.rows_read": window_split_rows_read,
    "chunked.split.pairs": chunked_split_pairs,
    "chunked.split.rows_read": chunked_split_rows_read,
    "topk.split.pairs": topk_split_pairs,
    "topk.split.rows_read": topk_split_rows_read,
    "topk_perfect.split.pairs": topk_perfect_split_pairs,
    "topk_perfect.split.rows_read": topk_perfect_split_rows_read,
    "pooled.split.pairs": pooled_split_pairs,
    "pooled.split.rows_read": pooled_split_rows_read,
    "cross.split.pairs": cross_split_pairs,
    "cross.split.rows_read": cross_split_rows_read,
    "distinct.expected": distinct_expected,
    "distinct.balanced": distinct_balanced,
    "distinct.worst": distinct_worst,
    "routed.expected": routed_expected,
    "routed.balanced": routed_balanced,
    "routed.worst": routed_worst,
    "visiting_tokens": visiting_tokens,
    "destinations": destinations,
    "tokens": tokens,
    "mixed_tokens": mixed_tokens,
    "head_tokens": head_tokens,
    "mixed_head_tokens": mixed_head_tokens,
    "verified": verified,
    "rank_batch": rank_batch,
    "rank_prefill_batch": rank_prefill_batch,
    "image_rows": image_rows,
    "tokens_split": tokens_split,
    "mixed_tokens_split": mixed_tokens_split,
    "gathered_rows": gathered_rows,
    "expanded_row": expanded_row,
}
