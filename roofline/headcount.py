"""A head count as hardware wants it: the nearest power of two, and the side of the ridge it falls on.

Only the standard library, so that `roofline heads` starts cold in a tenth of a second.
"""

from __future__ import annotations

import math

from roofline.errors import BadValue


def nearest_power_of_two(exact: float) -> int:
    """The power of two nearest to `exact` in log2; exactly half way goes up; never below 1.

    >>> nearest_power_of_two(136.70), nearest_power_of_two(67.76), nearest_power_of_two(181.1)
    (128, 64, 256)
    """
    if not (isinstance(exact, (int, float)) and math.isfinite(exact) and exact > 0):
        raise BadValue("heads_exact", exact, "a finite number > 0")
    return int(2 ** max(0, math.floor(math.log2(exact) + 0.5)))


def side(heads: float, exact: float) -> str:
    """Where `heads` heads fall when `exact` heads sit on the ridge.

    >>> side(128, 136.7), side(64, 64.0)
    ('memory', 'ridge')
    """
    if math.isclose(heads, exact, rel_tol=1e-12):
        return "ridge"
    return "memory" if heads < exact else "compute"
