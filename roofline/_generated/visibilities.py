# mypy: ignore-errors
"""Scalar functions printed from the formulas by `python -m roofline._generated`; never edited by hand."""

DIGEST = "24274c1965efd3e5"  # sha256 of what follows


def dense_pairs(*, context, q_len):
    return context * q_len + q_len * (q_len + 1) / 2


def dense_rows_read(*, context, q_len):
    return context + q_len


def full_pairs(*, context, q_len):
    return (context + q_len) * q_len


def full_rows_read(*, context, q_len):
    return context + q_len


def window_pairs(*, context, q_len, window):
    t0_ = min(max(0, window - context), q_len)
    return context * t0_ + t0_ * (t0_ + 1) / 2 + (q_len - t0_) * window


def window_rows_read(*, context, q_len, window):
    return min(context + q_len, q_len + window - 1)


def shared_prefix_pairs(*, context, q_len):
    return context * q_len + q_len * (q_len + 1) / 2


def shared_prefix_rows_read(*, batch, context, prefix, q_len):
    return context + prefix / batch + q_len - prefix


def prefix_part_pairs(*, prefix, q_len):
    return prefix * q_len


def prefix_part_rows_read(*, batch, prefix):
    return prefix / batch


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


def topk_no_skip_pairs(*, q_len, topk):
    return q_len * topk


def topk_no_skip_rows_read(*, q_len, topk):
    return q_len * topk


def topk_no_skip_perfect_pairs(*, q_len, topk):
    return q_len * topk


def topk_no_skip_perfect_rows_read(*, context, q_len, topk):
    return min(context + q_len, q_len * topk)


VISIBILITIES = {
    "dense": {"pairs": dense_pairs, "rows_read": dense_rows_read},
    "full": {"pairs": full_pairs, "rows_read": full_rows_read},
    "window": {"pairs": window_pairs, "rows_read": window_rows_read},
    "shared_prefix": {"pairs": shared_prefix_pairs, "rows_read": shared_prefix_rows_read},
    "prefix_part": {"pairs": prefix_part_pairs, "rows_read": prefix_part_rows_read},
    "topk": {"pairs": topk_pairs, "rows_read": topk_rows_read},
    "topk_perfect": {"pairs": topk_perfect_pairs, "rows_read": topk_perfect_rows_read},
    "topk_no_skip": {"pairs": topk_no_skip_pairs, "rows_read": topk_no_skip_rows_read},
    "topk_no_skip_perfect": {"pairs": topk_no_skip_perfect_pairs, "rows_read": topk_no_skip_perfect_rows_read},
}
