"""Generated pages of the documentation are what their generator writes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def generator():
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["glossary.md", "kernels.md", "parameters.md"])
def test_page_is_fresh(name):
    assert (DOCS / name).read_text(encoding="utf-8") == generator().PAGES[name](), "run: python docs/generate.py"


def test_links_between_pages_lead_somewhere():
    import re

    for page in [*DOCS.glob("*.md"), DOCS.parent / "README.md"]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
