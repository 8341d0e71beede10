"""Settings for every test: hypothesis draws the same examples each time and never looks at the clock."""

from __future__ import annotations

import os
from importlib import import_module

import pytest
from hypothesis import Phase, settings

settings.register_profile("roofline", deadline=None, derandomize=True, max_examples=30, database=None)
settings.register_profile(  # for `mutants`: the same examples, and the first failure ends the run
    "mutants", settings.get_profile("roofline"), phases=(Phase.explicit, Phase.generate), report_multiple_bugs=False
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "roofline"))


@pytest.fixture
def unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part of a page that may be closed is open, all at once."""
    lib = import_module("streamlit.elements.lib")
    always = property(lambda self: True, lambda self, value: None)
    for kind in (lib.mutable_expander_container.ExpanderContainer, lib.mutable_tab_container.TabContainer):
        monkeypatch.setattr(kind, "open", always)
