"""`python -m roofline` is the command line."""

from roofline.cli import main

main()
