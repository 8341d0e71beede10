# mypy: ignore-errors
"""Scalar functions printed from the formulas by `python -m roofline._generated`; never edited by hand."""

DIGEST = "b9c7cc0827322e97"  # sha256 of what follows


def ridge(*, bandwidth, peak):
    return peak / bandwidth


def intensity(*, bytes, flops):
    return flops / bytes


def attainable(*, bandwidth, intensity, peak):
    return min(bandwidth * intensity, peak)
