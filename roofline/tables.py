"""An `Answer` as text: terminal, Markdown, CSV, LaTeX, HTML and JSON, and as a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from roofline.answer import Answer, Section
from roofline.errors import BadFile, BadValue


def cells(answer: Answer) -> tuple[list[str], list[list[str]]]:
    """Headings and cells of the main table."""
    return [c.title for c in answer.columns], [[c.text(row) for c in answer.columns] for row in answer.rows]


def terminal(answer: Answer, *, explain: bool = False) -> str:
    """Title, aligned table, notes; with `explain` also the formula, the numbers put in and the sources."""
    parts = [answer.title] if answer.title else []
    if answer.columns and answer.rows:
        parts.append(_aligned(answer))
    if explain:
        parts += [_section_text(s) for s in answer.sections]
    if answer.notes:
        parts.append("\n".join(f"  {note}" for note in answer.notes))
    return "\n\n".join(parts) + "\n"


def _aligned(answer: Answer) -> str:
    """Columns padded to the same width, numbers flush right."""
    heads, body = cells(answer)
    widths = [max(len(line[i]) for line in [heads, *body]) for i in range(len(heads))]
    right = [c.numeric for c in answer.columns]

    def line(texts: Sequence[str]) -> str:
        padded = (t.rjust(w) if r else t.ljust(w) for t, w, r in zip(texts, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join([line(heads), line(["-" * w for w in widths]), *map(line, body)])


def _section_text(section: Section) -> str:
    lines = [section.title, *(f"  {line}" for line in section.lines), *(f"    {tex}" for tex in section.formulas)]
    return "\n".join(lines)


def markdown(answer: Answer) -> str:
    """A Markdown document: heading, derivation, table, notes."""
    parts = [f"# {answer.title}"] if answer.title else []
    for section in answer.sections:
        parts.append(f"## {section.title}")
        parts += list(section.lines)
        parts += [f"$$\n{tex}\n$$" for tex in section.formulas]
    if answer.columns and answer.rows:
        heads, body = cells(answer)
        rule = ["---:" if c.numeric else "---" for c in answer.columns]
        rows = [heads, rule, *([cell.replace("|", r"\|") for cell in row] for row in body)]
        parts.append("\n".join("| " + " | ".join(row) + " |" for row in rows))
    if answer.notes:
        parts.append("\n".join(f"- {note}" for note in answer.notes))
    return "\n\n".join(parts) + "\n"


def csv_text(answer: Answer) -> str:
    """The rows as CSV with the JSON keys as header: SI numbers, not the rounded ones of the table."""
    import csv
    import io

    keys = list(dict.fromkeys(k for row in answer.rows for k in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(keys)
    for row in answer.rows:
        writer.writerow([_flat(row.get(k)) for k in keys])
    return out.getvalue()


def _flat(value: Any) -> Any:
    if isinstance(value, (list, tuple, dict)):
        import json

        return json.dumps(value, sort_keys=True)
    return "" if value is None else value


_TEX = str.maketrans(
    {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
     "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "<": r"\textless{}", ">": r"\textgreater{}",
     "κ": r"$\kappa$", "π": r"$\pi$", "β": r"$\beta$", "η": r"$\eta$", "Φ": r"$\Phi$", "µ": r"$\mu$",
     "↓": r"$\downarrow$", "↑": r"$\uparrow$", "→": r"$\to$"}
)  # fmt: skip


def tex_escape(text: str) -> str:
    """Text safe inside LaTeX."""
    return text.translate(_TEX)


def latex(answer: Answer) -> str:
    """A LaTeX fragment: sections with displayed formulas, a booktabs-free tabular, notes."""
    parts = [rf"\section*{{{tex_escape(answer.title)}}}"] if answer.title else []
    for section in answer.sections:
        parts.append(rf"\subsection*{{{tex_escape(section.title)}}}")
        parts += [tex_escape(line) for line in section.lines]
        parts += [f"\\[\n{tex}\n\\]" for tex in section.formulas]
    if answer.columns and answer.rows:
        heads, body = cells(answer)
        spec = "".join("r" if c.numeric else "l" for c in answer.columns)
        lines = [
            rf"\begin{{tabular}}{{{spec}}}",
            r"\hline",
            _tex_row(heads),
            r"\hline",
            *map(_tex_row, body),
            r"\hline",
            r"\end{tabular}",
        ]
        parts.append("\n".join(lines))
    if answer.notes:
        parts.append(
            "\\begin{itemize}\n" + "\n".join(rf"\item {tex_escape(n)}" for n in answer.notes) + "\n\\end{itemize}"
        )
    return "\n\n".join(parts) + "\n"


def _tex_row(texts: Sequence[str]) -> str:
    return " & ".join(map(tex_escape, texts)) + r" \\"


WRITERS: dict[str, Callable[[Answer], str]] = {
    ".json": Answer.to_json,
    ".md": markdown,
    ".csv": csv_text,
    ".tex": latex,
}


def write(
    answer: Answer, path: str | os.PathLike[str], writers: dict[str, Callable[[Answer], str]] | None = None
) -> None:
    """Write an answer to a file whose suffix says the form; the file appears whole or not at all."""
    writers = writers or WRITERS
    suffix = Path(path).suffix.lower()
    if suffix not in writers:
        raise BadValue("-o", str(path), "a file name that ends in " + ", ".join(writers))
    if suffix == ".csv" and not answer.rows:
        raise BadValue("-o", str(path), "a form other than .csv, because this answer has no rows")
    write_text(path, writers[suffix](answer))


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write to a temporary name beside the target and rename, so that an interruption leaves no half file."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """As `write_text`, for bytes."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        os.replace(partial, target)
    except OSError as error:
        raise BadFile(path, "", error.strerror or error, "a file that can be written") from None
    finally:
        partial.unlink(missing_ok=True)
