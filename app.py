"""`streamlit run app.py`: the dashboard from a checkout; `roofline app` starts the same one where installed."""

from roofline.dashboard.frame import main

main()
