"""`python -m roofline.dashboard run SCRIPT ...`: the command of Streamlit, while what pages need is imported beside it.

A browser takes a second to open before it asks for the first page; by then the imports are done.
"""

from __future__ import annotations

import sys

from streamlit.web.cli import main

from roofline.dashboard.frame import warm

if __name__ == "__main__":
    warm()
    sys.exit(main(prog_name="streamlit"))
