"""What the documentation says is run: docstrings of every module, and the code blocks of README.md and docs/*.md.

In a Markdown file, ```python blocks with ``>>>`` are doctests, those without are executed (all blocks of a file share
their names), and in ```console blocks every line ``$ roofline ...`` must exit with 0, or with N where its comment says
``exit N``; output that follows must be what is printed (``...`` stands for anything).  Other blocks, such as ```sh for
set-up, are not run.
"""

from __future__ import annotations

import doctest
import os
import pkgutil
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import roofline

ROOT = Path(roofline.__file__).parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NOT_RUN = (
    "roofline.__main__",
    "roofline._generated",
    "roofline.dashboard",
)  # entry point; written by a machine; needs streamlit
MODULES = ["roofline"] + [
    m.name
    for m in pkgutil.walk_packages(roofline.__path__, "roofline.", onerror=lambda name: None)
    if not m.name.startswith(NOT_RUN)
]
PAGES = [p for p in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if p.exists()]
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str
    line: int


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    failed, _ = doctest.testmod(import_module(name))
    assert failed == 0, f"{failed} examples of {name} fail; see the output above"


def test_most_modules_have_an_example() -> None:
    """A finder that found nothing would pass everything."""
    examples = {
        name: sum(len(t.examples) for t in doctest.DocTestFinder().find(import_module(name))) for name in MODULES
    }
    assert all(
        examples[f"roofline.{name}"]
        for name in ("kernel", "visibility", "symbols", "law", "derivations", "glossary", "units")
    )


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        yield Block(found[1], found[2], text[: found.start()].count("\n") + 2)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": page.stem}
    for block in blocks(page):
        where = f"{page.name}:{block.line}"
        if block.language == "python" and ">>>" in block.text:
            _doctest(block, names, where)
        elif block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
        elif block.language == "console":
            for command, wanted in commands(block.text):
                _console(command, wanted, where, capsys)


def _doctest(block: Block, names: dict[str, Any], where: str) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, names, where, where, block.line)
    out: list[str] = []
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=out.append, clear_globs=False)
    names.update(test.globs)
    assert result.failed == 0, f"{where}\n{''.join(out)}"


def commands(text: str) -> Iterator[tuple[str, str]]:
    """(command, expected output) of a console block; a trailing backslash continues a command."""
    for part in re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, _, wanted = part.partition("\n")
        yield command, wanted


def _console(command: str, wanted: str, where: str, capsys: pytest.CaptureFixture[str]) -> None:
    from roofline.cli import run

    words = shlex.split(command, comments=True)
    plain = words[:1] == ["roofline"] and not set("|<>;&") & set(command.split("#")[0])
    assert plain, f"{where}: cannot run {command!r} here"
    said = re.search(r"#.*\bexit (\d)\b", command)
    wanted_code, code = int(said[1]) if said else 0, run(words[1:])
    printed = capsys.readouterr()
    assert code == wanted_code, f"{where}: {command} exits with {code}: {printed.err}"
    if wanted.strip():
        same = doctest.OutputChecker().check_output(wanted, printed.out, FLAGS)
        assert same, f"{where}: {command} prints\n{printed.out}{os.linesep}expected\n{wanted}"


def test_blocks_are_found_and_can_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "text\n```python\n>>> x = 1\n>>> x\n2\n```\n\n```console\n$ roofline --version \\\n    # a\nroofline 9\n```\n",
        encoding="utf-8",
    )
    python, console = blocks(page)
    assert (python.language, python.line, console.language) == ("python", 3, "console")
    with pytest.raises(AssertionError, match=r"page\.md:3"):
        _doctest(python, {}, "page.md:3")
    ((command, wanted),) = commands(console.text)
    with pytest.raises(AssertionError, match="prints"):
        _console(command, wanted, "here", capsys)
