"""``python -m roofline._generated`` prints every kernel's formulas as scalar Python into this folder.

A test compares the files with what is printed, so a formula and its source cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from roofline.codegen import source

Tables = Mapping[str, Mapping[str, Any]]  # name -> rows of a dict literal, its values printed or rows again
HEAD = """# mypy: ignore-errors
\"""Scalar functions printed from the formulas by `python -m roofline._generated`; never edited by hand.\"""

"""


def _identity(kernel: Any) -> Any:
    """The kernel with its own bindings undone, so that `pairs` or `kv_row_bytes` stay names that a caller may give."""
    return kernel.bind(**{s.name: s for s in kernel.bindings})


def _kernels() -> tuple[list[str], Tables]:
    """Functions of every kernel, and the tables that name them."""
    from roofline.kernel import QUANTITIES
    from roofline.kernels import KERNELS
    from roofline.law import LEGS, legs

    functions, quantities, defaults = [], {}, {}
    for kernel in KERNELS.values():
        raw = _identity(kernel)
        exprs = {q: raw.quantity(q) for q in QUANTITIES if not (q == "intensity" and raw.bytes == 0)} | legs(raw)
        quantities[kernel.name] = {q: f"{kernel.name}_{q}" for q in exprs}
        defaults[kernel.name] = {s.name: f"{kernel.name}_default_{s.name}" for s in kernel.bindings}
        functions += [source(quantities[kernel.name][q], e) for q, e in exprs.items()]
        functions += [source(defaults[kernel.name][s.name], e) for s, e in kernel.bindings.items()]
    return functions, {
        "QUANTITIES": quantities,
        "DEFAULTS": defaults,
        "LEGS": {leg: f'"{rate}"' for leg, (_, rate) in LEGS.items()},
    }


def _visibilities() -> tuple[list[str], Tables]:
    """Pairs and rows read of every visibility."""
    from roofline import visibility as v

    made = {name: getattr(v, name)() for name in ("dense", "full", "window", "shared_prefix", "prefix_part")}
    made |= {
        f"topk{'' if skip else '_no_skip'}{'_perfect' if gather == 'perfect' else ''}": v.topk(skip=skip, gather=gather)
        for skip in (True, False)
        for gather in v.GATHERS
    }
    table = {name: {q: f"{name}_{q}" for q in ("pairs", "rows_read")} for name in made}
    functions = [source(function, getattr(made[name], q)) for name, row in table.items() for q, function in row.items()]
    return functions, {"VISIBILITIES": table}


def _law() -> tuple[list[str], Tables]:
    """The law of the roofline."""
    from roofline import law

    exprs = {"ridge": law.ridge(), "intensity": law.intensity(), "attainable": law.attainable()}
    return [source(name, e) for name, e in exprs.items()], {}


def _closed_forms() -> tuple[list[str], Tables]:
    """The derived closed forms, with their LaTeX and text."""
    from roofline import derivations
    from roofline.symbols import latex

    exprs = {name: getattr(derivations, name)() for name in ("decode_intensity_limit", "heads_at_ridge")}
    tables = {
        "FORMS": {name: name for name in exprs},
        "LATEX": {name: repr(latex(e)) for name, e in exprs.items()},
        "TEXT": {name: repr(str(e)) for name, e in exprs.items()},
    }
    return [source(name, e) for name, e in exprs.items()], tables


def _table(name: str, rows: Mapping[str, Any]) -> str:
    """A dict literal; its values are names or literals already printed."""
    lines = []
    for key, row in rows.items():
        inner = row if isinstance(row, str) else "{" + ", ".join(f'"{q}": {f}' for q, f in row.items()) + "}"
        lines.append(f'    "{key}": {inner},\n')
    return f"{name} = {{\n{''.join(lines)}}}\n"


def modules() -> dict[str, str]:
    """File name -> text of everything in `roofline/_generated`."""
    texts = {}
    parts: dict[str, tuple[list[str], Tables]] = {
        "kernels": _kernels(), "visibilities": _visibilities(), "law": _law(), "closed_forms": _closed_forms(),
    }  # fmt: skip
    for name, (functions, tables) in parts.items():
        code = "\n\n".join(filter(None, [*functions, "\n".join(_table(n, rows) for n, rows in tables.items())]))
        digest = sha256(code.encode()).hexdigest()[:16]
        imports = "import math\n\n" if "math." in code else ""
        texts[f"{name}.py"] = f'{HEAD}{imports}DIGEST = "{digest}"  # sha256 of what follows\n\n\n{code}'
    return texts


def main() -> None:
    """Write the generated modules."""
    folder = Path(__file__).parent
    for name, text in modules().items():
        (folder / name).write_text(text, encoding="utf-8")
        print(f"{folder / name}: {len(text)} characters")


if __name__ == "__main__":
    main()
