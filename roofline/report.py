"""A document of blocks (headings, text, formulas, tables) and its four forms: terminal, Markdown, LaTeX, HTML.

`roofline derive` is one such document.  A formula is a plain sympy expression, so that each form is printed from it.
HTML carries MathML, which browsers show by themselves: no script, no outside request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import fill
from typing import Any, NamedTuple

from roofline import __version__
from roofline.glossary import GLOSSARY
from roofline.tables import tex_escape


class Heading(NamedTuple):
    """A section title."""

    text: str
    level: int = 2


class Text(NamedTuple):
    """A paragraph."""

    text: str


class Bullets(NamedTuple):
    """A list of short lines."""

    lines: Sequence[str]


class Formula(NamedTuple):
    """`left = expr`; left is a quantity of the glossary or plain text."""

    left: str
    expr: Any
    note: str = ""


class Table(NamedTuple):
    """Headings, rows of text, and which columns are flush right."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[bool]


class Verbatim(NamedTuple):
    """Text kept as it is, such as BibTeX."""

    text: str


Block = Heading | Text | Bullets | Formula | Table | Verbatim


@dataclass(frozen=True)
class Document:
    """A title and its blocks."""

    title: str
    blocks: tuple[Block, ...]

    def terminal(self, width: int = 110) -> str:
        """Plain text for a terminal."""
        return "\n\n".join([self.title + "\n" + "=" * len(self.title), *(_plain(b, width) for b in self.blocks)]) + "\n"

    def markdown(self) -> str:
        """Markdown with LaTeX formulas."""
        return "\n\n".join([f"# {self.title}", *(_markdown(b) for b in self.blocks)]) + "\n"

    def latex(self) -> str:
        """A complete LaTeX document (article, amsmath, longtable)."""
        body = "\n\n".join(_tex(b) for b in self.blocks)
        return _TEX.replace("%TITLE%", tex_escape(self.title)).replace("%VERSION%", __version__).replace("%BODY%", body)

    def html(self) -> str:
        """A complete HTML document with MathML."""
        body = "\n".join(_html(b) for b in self.blocks)
        return _HTML.replace("%TITLE%", escape(self.title)).replace("%VERSION%", __version__).replace("%BODY%", body)


def _name(left: str, tex: bool = False) -> str:
    record = GLOSSARY.get(left)
    if tex:
        return record.latex if record else {"rho": r"\rho"}.get(left, rf"\text{{{tex_escape(left)}}}")
    return left


def _plain(block: Block, width: int) -> str:
    match block:
        case Heading(text, level):
            return f"{text}\n{('-' if level == 2 else '.') * len(text)}"
        case Text(text):
            return fill(text, width, break_long_words=False, break_on_hyphens=False)
        case Bullets(lines):
            return "\n".join(
                fill(line, width, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False)
                for line in lines
            )
        case Formula(left, expr, note):
            return f"    {left} = {expr}" + (f"      {note}" if note else "")
        case Table(heads, rows, right):
            return _columns(heads, rows, right)
        case Verbatim(text):
            return text


def _columns(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    widths = [max(len(line[i]) for line in [heads, *rows]) for i in range(len(heads))]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True)).rstrip()

    return "\n".join([line(heads), line(["-" * w for w in widths]), *map(line, rows)])


def _markdown(block: Block) -> str:
    match block:
        case Heading(text, level):
            return "#" * level + " " + text
        case Text(text):
            return text
        case Bullets(lines):
            return "\n".join(f"- {line}" for line in lines)
        case Formula():
            return f"$$\n{_formula_tex(block)}\n$$"
        case Table(heads, rows, right):
            rule = ["---:" if r else "---" for r in right]
            return "\n".join(
                "| " + " | ".join(c.replace("|", r"\|") for c in row) + " |" for row in [heads, rule, *rows]
            )
        case Verbatim(text):
            return f"```bibtex\n{text}\n```"


def _formula_tex(block: Formula) -> str:
    from roofline.symbols import latex

    note = rf"\qquad \text{{{tex_escape(block.note)}}}" if block.note else ""
    return f"{_name(block.left, tex=True)} = {latex(block.expr)}{note}"


def _tex(block: Block) -> str:
    match block:
        case Heading(text, level):
            return rf"\{'sub' * (level - 2)}section*{{{tex_escape(text)}}}"
        case Text(text):
            return tex_escape(text)
        case Bullets(lines):
            return "\\begin{itemize}\n" + "\n".join(rf"\item {tex_escape(line)}" for line in lines) + "\n\\end{itemize}"
        case Formula():
            return f"\\[\n{_formula_tex(block)}\n\\]"
        case Table(heads, rows, right):
            spec = "".join("r" if r else "l" for r in right)
            lines = [" & ".join(map(tex_escape, row)) + r" \\" for row in rows]
            head = " & ".join(map(tex_escape, heads)) + r" \\ \hline \endhead"
            return "\n".join(
                [
                    rf"{{\footnotesize\setlength{{\tabcolsep}}{{4pt}}\begin{{longtable}}{{{spec}}}",
                    r"\hline",
                    head,
                    *lines,
                    r"\hline",
                    r"\end{longtable}}",
                ]
            )
        case Verbatim(text):
            wrapped = "\n".join(
                fill(line, 100, subsequent_indent="      ", break_long_words=False) for line in text.splitlines()
            )
            return f"{{\\footnotesize\n\\begin{{verbatim}}\n{wrapped}\n\\end{{verbatim}}}}"


def _html(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Text(text):
            return f"<p>{escape(text)}</p>"
        case Bullets(lines):
            return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
        case Formula():
            return _mathml(block)
        case Table(heads, rows, right):
            cells = [[(c, ' class="r"' if r else "") for c, r in zip(row, right, strict=True)] for row in rows]
            head = "".join(f'<th scope="col">{escape(h)}</th>' for h in heads)
            body = "".join("<tr>" + "".join(f"<td{k}>{escape(c)}</td>" for c, k in row) + "</tr>\n" for row in cells)
            table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"
            return f'<div class="wide" tabindex="0">{table}</div>'
        case Verbatim(text):
            return f"<pre>{escape(text)}</pre>"


def _mathml(block: Formula) -> str:
    import sympy as sp
    from sympy.printing.mathml import mathml

    from roofline.symbols import SYMBOLS

    # the printer takes no names of ours, so the symbols themselves are exchanged for their letters
    letters = {SYMBOLS[name]: sp.Symbol(_sympy_letter(record.latex)) for name, record in GLOSSARY.items()}
    left = mathml(
        letters[SYMBOLS[block.left]] if block.left in GLOSSARY else sp.Symbol(block.left), printer="presentation"
    )
    right = mathml(block.expr.xreplace(letters), printer="presentation")
    note = f'<p class="note">{escape(block.note)}</p>' if block.note else ""
    return f'<div class="wide"><math display="block"><mrow>{left}<mo>=</mo>{right}</mrow></math></div>{note}'


def _sympy_letter(tex: str) -> str:
    """A glossary letter as sympy names it: \\kappa_x -> kappa_x, H_{kv} -> H_kv."""
    return tex.replace(r"f\!f", "ff").replace("\\", "").replace("{", "").replace("}", "").replace("^*", "")


_GREEK = {
    r"\pi": "π",
    r"\beta": "β",
    r"\kappa": "κ",
    r"\eta": "η",
    r"\Phi": "Φ",
    r"\downarrow": "↓",
    r"\uparrow": "↑",
    r"f\!f": "ff",
}


def plain_letter(tex: str) -> str:
    """A glossary letter as plain text: H_{kv} -> H_kv."""
    for code, letter in _GREEK.items():
        tex = tex.replace(code, letter)
    return tex.replace("{", "").replace("}", "").replace("^*", "*")


_TEX = r"""\documentclass[11pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp}
\usepackage{amsmath}
\usepackage{longtable}
\usepackage[margin=2cm]{geometry}
\sloppy
\title{%TITLE%}
\author{roofline %VERSION%}
\date{}
\begin{document}
\maketitle
%BODY%
\end{document}
"""

_HTML = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>%TITLE%</title>
<style>
:root { color-scheme: light dark; --line: #8888; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .88rem; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
td.r { text-align: right; font-variant-numeric: tabular-nums; }
math { margin: .8rem 0; font-size: 1.1rem; } .note { text-align: center; margin: -.4rem 0 1rem; font-size: .9rem; }
pre { overflow-x: auto; font-size: .8rem; border: 1px solid var(--line); padding: .8rem; }
footer { margin-top: 3rem; font-size: .85rem; border-top: 1px solid var(--line); padding-top: .6rem; }
</style></head><body>
<h1>%TITLE%</h1>
%BODY%
<footer>roofline %VERSION%. Bounds from the roofs named above; what they leave out is said in each section.</footer>
</body></html>
"""
