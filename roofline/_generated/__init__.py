"""Source generated from the formulas by ``python -m roofline._generated``; see `roofline.codegen`."""
