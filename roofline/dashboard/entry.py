"""The file that `roofline app` gives to Streamlit; it only starts the frame."""

from roofline.dashboard.frame import main

main()
