"""Settings for every test: hypothesis draws the same examples each time and never looks at the clock."""

from __future__ import annotations

import os

from hypothesis import Phase, settings

settings.register_profile("roofline", deadline=None, derandomize=True, max_examples=30, database=None)
settings.register_profile(  # for `mutants`: the same examples, and the first failure ends the run
    "mutants", settings.get_profile("roofline"), phases=(Phase.explicit, Phase.generate), report_multiple_bugs=False
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "roofline"))
