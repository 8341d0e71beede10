# mypy: ignore-errors
"""Scalar functions printed from the formulas by `python -m roofline._generated`; never edited by hand."""

DIGEST = "6fb8944f64004fd6"  # sha256 of what follows


def ridge(*, bandwidth, peak):
    return peak / bandwidth


def attainable(*, bandwidth, intensity, peak):
    return min(bandwidth * intensity, peak)
