"""The kernel definitions.  `KERNELS` is the only registry; each file opens with axes, assumptions and source."""

from __future__ import annotations

from collections.abc import Mapping

from roofline.errors import UnknownName
from roofline.kernel import Kernel
from roofline.kernels import attention, collective, elementwise, linear, mla, moe, recurrent, sparse, variants

_MODULES = (attention, mla, sparse, linear, moe, recurrent, variants, elementwise, collective)
KERNELS: Mapping[str, Kernel] = {k.name: k for m in _MODULES for k in m.KERNELS}


def kernel(name: str | Kernel) -> Kernel:
    """A kernel by id; a Kernel of one's own passes through."""
    if isinstance(name, Kernel):
        return name
    try:
        return KERNELS[name]
    except KeyError:
        raise UnknownName("kernel", name, KERNELS, "roofline formula") from None
