"""A hardware file with one part, as a user would upload it."""

PART = """
accelerators:
  my-part:
    vendor: Me
    peak_flop_per_s: {bf16: 1.0e+15}
    bandwidth_byte_per_s: 4.0e+12
    sources:
      - {field: "peak_flop_per_s.bf16, bandwidth_byte_per_s", value: "1 PFLOP/s, 4 TB/s",
         url: "https://example.org/part", kind: datasheet}
"""
