"""Data flows one way: a module imports only from lower layers, heavy packages only where they belong, and a cold
start loads none of them.  The imports are read with `ast`, those inside functions included."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sympy as sp

import roofline
from roofline import derivations, law, visibility
from roofline.kernel import RESOURCES
from roofline.kernels import KERNELS
from roofline.symbols import SYMBOLS

ROOT = Path(roofline.__file__).parent
LAYERS = (  # from low to high; a package counts as one, and its modules may import one another
    ("errors",),
    ("files", "glossary", "headcount", "safe_yaml", "units"),
    ("symbols",),
    ("accelerators", "engines", "models"),  # what there is
    ("codegen", "kernel", "visibility"),  # what follows from it: the symbolic side
    ("kernels", "phases"),
    ("law",),
    ("derivations", "solver"),
    ("crossovers",),
    ("_generated",),  # numbers: the same formulas as source
    ("evaluate", "inverse"),
    ("grid",),
    ("plan",),
    ("sweep",),
    ("memory", "serving"),
    ("answer",),  # views
    ("tables",),
    ("figures", "report"),
    ("answers",),
    ("cli",),
    ("dashboard",),
    ("__main__",),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
UPWARD: dict[tuple[str, str], str] = {
    ("answer", "tables"): "an answer loads the writer of a format when it is asked for it",
    ("accelerators", "_generated"): "the ridge of a roof is the law's, printed as a function of numbers",
}
SYMBOLIC = {name for names in LAYERS[LEVEL["kernel"] : LEVEL["crossovers"] + 1] for name in names} | {
    "symbols",
}
HEAVY = {  # package -> who may import it
    "sympy": SYMBOLIC | {"evaluate", "sweep", "report", "answers"},
    "numpy": {
        "codegen",
        "evaluate",
        "grid",
        "inverse",
        "sweep",
        "figures",
        "_generated",
        "answers",
    },
    "yaml": {"accelerators", "engines", "safe_yaml"},
    "pydantic": {"accelerators"},
    "pyarrow": {"sweep", "tables", "answers", "dashboard"},
    "matplotlib": {"figures"},
    "streamlit": {"dashboard"},
    "click": {"cli"},
    "scipy": set[str](),
    "pandas": set[str](),
    "torch": set[str](),
}


def modules() -> dict[str, Path]:
    """Dotted name below the package -> file."""
    return {
        ".".join(p.relative_to(ROOT).with_suffix("").parts): p
        for p in sorted(ROOT.rglob("*.py"))
        if p != ROOT / "__init__.py"
    }


def imports(path: Path, *, run: bool = False) -> Iterator[str]:
    """Every module that a file imports, in full: `roofline.kernel`, `sympy`.  run: leave out what only types need."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typed = {id(n) for test in ast.walk(tree) if isinstance(test, ast.If) and ast.unparse(test.test) == "TYPE_CHECKING"
             for n in ast.walk(test)}  # fmt: skip
    for node in ast.walk(tree):
        if run and id(node) in typed:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import; the layers are read from full names"
            yield node.module or ""
            if node.module == "roofline":
                yield from (f"roofline.{alias.name}" for alias in node.names if not alias.name.startswith("__"))


def top(module: str) -> str:
    return module.split(".")[0]


MODULES = modules()


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_downwards(name: str) -> None:
    here = top(name)
    assert here in LEVEL, (
        f"roofline/{MODULES[name].relative_to(ROOT)} has no layer: give it one in {Path(__file__).name}"
    )
    for module in imports(MODULES[name]):
        if module.startswith("roofline."):
            there = top(module.removeprefix("roofline."))
            lower = LEVEL[there] < LEVEL[here] or here == there or (here, there) in UPWARD
            assert lower, f"roofline.{name} imports roofline.{there}, which is not below it"


@pytest.mark.parametrize("name", MODULES)
def test_heavy_packages_only_where_they_belong(name: str) -> None:
    for module in imports(MODULES[name], run=True):
        allowed = HEAVY.get(top(module))
        assert allowed is None or top(name) in allowed, (
            f"roofline.{name} imports {module}; only {sorted(allowed or ())} may"
        )


def test_the_exceptions_are_still_needed() -> None:
    found = {
        (top(n), top(m.removeprefix("roofline.")))
        for n, p in MODULES.items()
        for m in imports(p)
        if m.startswith("roofline.")
    }
    assert set(UPWARD) <= found


COLD = ((), ("--version",), ("--help",),
        ("heads", "--json"), ("chips", "--heads", "64"), ("hardware", "list", "--json"),
        ("hardware", "show", "h200-sxm"), ("model", "list"), ("model", "show", "deepseek-v3.2"))  # fmt: skip
UNWANTED = ("sympy", "numpy", "pydantic", "matplotlib", "streamlit", "pyarrow", "importlib.metadata")
PROBE = """
import sys
import roofline
code = 0
if sys.argv[1:]:
    from roofline.cli import run
    code = run(sys.argv[1:])
found = [name for name in {unwanted!r} if name in sys.modules]
print(*found, file=sys.stderr)
sys.exit(code or (9 if found else 0))
"""


@pytest.mark.parametrize("command", COLD, ids=lambda c: " ".join(c) or "import roofline")
def test_a_cold_start_loads_nothing_heavy(command: tuple[str, ...]) -> None:
    probe = [sys.executable, "-c", PROBE.format(unwanted=UNWANTED), *command]
    done = subprocess.run(probe, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, (
        f"{' '.join(command)} exits with {done.returncode} (9: it loaded a heavy package): {done.stderr[-1500:]}"
    )


def visibilities() -> list[visibility.Visibility]:
    plain = [
        visibility.dense(),
        visibility.full(),
        visibility.window(),
        visibility.shared_prefix(),
        visibility.prefix_part(),
    ]
    sparse = [visibility.topk(skip=skip, gather=gather) for skip in (True, False) for gather in visibility.GATHERS]
    return [*plain, *sparse, *(visibility.oneshot(v) for v in plain + sparse)]


def test_every_free_symbol_is_the_glossarys() -> None:
    """Two symbols of one name and other assumptions are different to sympy, so the objects are compared."""
    known, found = set(SYMBOLS.values()), set[sp.Symbol]()
    for kernel in KERNELS.values():
        found |= {s for resource in RESOURCES for s in kernel.total(resource).free_symbols}
        for time in (law.time_lower(kernel), law.time_upper(kernel), *law.legs(kernel).values()):
            found |= time.free_symbols
    for seen in visibilities():
        found |= seen.pairs.free_symbols | seen.rows_read.free_symbols
    for expr in (law.ridge(), law.attainable(), derivations.decode_intensity_limit(), derivations.heads_at_ridge()):
        found |= expr.free_symbols
    assert found <= known, f"not in the glossary: {found - known}"
    assert len(found) > 30
