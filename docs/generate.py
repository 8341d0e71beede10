"""Writes the generated pages of the documentation: `python docs/generate.py`.  A test says that they are fresh.

glossary.md   from roofline.glossary
kernels.md    from roofline.kernels
parameters.md from the pages of the dashboard
figures/      the figure of the README
"""

from __future__ import annotations

import sys
from pathlib import Path

from roofline.answers.plot import plot
from roofline.glossary import GLOSSARY, SYNONYMS
from roofline.kernel import QUANTITIES
from roofline.kernels import KERNELS
from roofline.tables import write_text

HERE = Path(__file__).parent
NOTE = "<!-- written by docs/generate.py; never edited by hand -->"


def glossary_page() -> str:
    """Every quantity, by group."""
    lines = [
        "# Glossary",
        "",
        NOTE,
        "",
        "One name a quantity: Python variable, symbol, keyword, option (with dashes) and URL parameter.",
        "",
    ]
    for group in dict.fromkeys(q.group for q in GLOSSARY.values()):
        lines += [
            f"## {group.capitalize()}",
            "",
            "| name | symbol | unit | meaning | HF config key |",
            "|---|---|---|---|---|",
        ]
        for q in GLOSSARY.values():
            if q.group == group:
                also = f" (also: {', '.join(SYNONYMS[q.name])})" if q.name in SYNONYMS else ""
                lines.append(
                    f"| `{q.name}` | ${q.latex}$ | {q.unit} | {q.meaning}{also} | "
                    f"{f'`{q.hf_key}`' if q.hf_key else ''} |"
                )
        lines.append("")
    return "\n".join(lines)


def kernels_page() -> str:
    """Every kernel with its terms and formulas."""
    lines = ["# Kernels", "", NOTE, ""]
    for kernel in KERNELS.values():
        lines += [f"## {kernel.name}", "", f"{kernel.title}. Source: {kernel.source}.", ""]
        if kernel.name in SYNONYMS:
            lines += [f"Also called: {', '.join(SYNONYMS[kernel.name])}.", ""]
        lines += ["| resource | runs over | per element | what |", "|---|---|---|---|"]
        lines += [f"| {t.resource} | `{t.axes}` | `{t.amount}` | {t.label} |" for t in kernel.terms]
        shown = [name for name in QUANTITIES if name != "intensity" and kernel.quantity(name) != 0]
        lines += ["", *(f"$$ {kernel.latex(name)} $$\n" for name in shown)]
        lines += [f"Assumed: {'; '.join(kernel.assumes)}.", ""] if kernel.assumes else []
        lines += [f"Left out: {'; '.join(kernel.omits)}.", ""] if kernel.omits else []
    return "\n".join(lines)


def parameters_page() -> str:
    """The parameters of the dashboard's address; imported here, since it draws every page."""
    if str(HERE) not in sys.path:
        sys.path.insert(0, str(HERE))
    from parameters import parameters_page as drawn

    return drawn()


PAGES = {"glossary.md": glossary_page, "kernels.md": kernels_page, "parameters.md": parameters_page}


if __name__ == "__main__":
    for name, page in PAGES.items():
        write_text(HERE / name, page())
        print("wrote", name)
    (HERE / "figures").mkdir(exist_ok=True)
    plot(
        "heads",
        str(HERE / "figures" / "heads.svg"),
        hardware="h20,mtt-s4000,h200-sxm,h800-sxm",
        kv_row_bytes=(1152, 656),
    )
    print("wrote figures/heads.svg")
