"""roofline: what bounds LLM inference, on which chip, and what would move it.

The functions below are the command line's commands, with the same names and arguments; each returns an `Answer`,
which is a mapping of the data that `--json` prints.  The symbolic layer is in `roofline.kernels`, `roofline.law`,
`roofline.visibility` and `roofline.solver`.

>>> import roofline
>>> roofline.heads("h800-sxm", roof="flashmla")["rows"][0]["heads"]
128
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 pip refuses already; this is for a checkout on PYTHONPATH
    raise ImportError("roofline needs Python 3.11 or newer; this is Python {}.{}".format(*sys.version_info[:2]))

__version__ = "0.1.0"

_ANSWERS = {
    "chips": "heads",
    "codesign": "codesign",
    "compare": "compare",
    "crossover": "crossover",
    "derive": "derive",
    "formula": "formula",
    "hardware": "hardware",
    "hardware_compare": "hardware_table",
    "hardware_table": "hardware_table",
    "heads": "heads",
    "kv_capacity": "kv",
    "kv_pages": "kv",
    "kv_replay": "kv",
    "kv_show": "kv",
    "model": "model",
    "plot": "plot",
    "solve": "solve",
    "split": "split",
    "step": "step",
    "sweep": "sweep",
}
_OBJECTS = {
    "Kernel": "roofline.kernel",
    "KERNELS": "roofline.kernels",
    "load_catalog": "roofline.accelerators",
    "load_model": "roofline.models",
}
__all__ = ["__version__", *_ANSWERS, *_OBJECTS]


def __getattr__(name: str) -> object:
    """Import a public name on first use, so that `import roofline` costs nothing (PEP 562)."""
    from importlib import import_module

    if name in _ANSWERS:
        return getattr(import_module(f"roofline.answers.{_ANSWERS[name]}"), name)
    if name in _OBJECTS:
        return getattr(import_module(_OBJECTS[name]), name)
    raise AttributeError(f"module 'roofline' has no attribute {name!r}")
