# mypy: ignore-errors
"""Scalar functions printed from the formulas by `python -m roofline._generated`; never edited by hand."""

DIGEST = "c63f132037368598"  # sha256 of what follows


def decode_intensity_limit(*, heads, kv_row_bytes, latent, q_len, rope):
    return 2 * (2 * latent + rope) * heads * q_len / kv_row_bytes


def heads_at_ridge(*, bandwidth, kv_row_bytes, latent, peak, q_len, rope):
    return kv_row_bytes * peak / 2 / (2 * latent + rope) / bandwidth / q_len


FORMS = {
    "decode_intensity_limit": decode_intensity_limit,
    "heads_at_ridge": heads_at_ridge,
}

LATEX = {
    "decode_intensity_limit": '\\frac{2 H s \\left(2 d + r\\right)}{\\kappa}',
    "heads_at_ridge": '\\frac{\\kappa \\pi}{2 \\beta s \\left(2 d + r\\right)}',
}

TEXT = {
    "decode_intensity_limit": '2*heads*q_len*(2*latent + rope)/kv_row_bytes',
    "heads_at_ridge": 'kv_row_bytes*peak/(2*bandwidth*q_len*(2*latent + rope))',
}
