"""The accelerator data: every number of hardware.yaml against somebody else's, and the roofs made from it.

A ridge table worked out once from the same public sources by another hand, vendors' formulas (units x operations x
clock), vendors' wording of link rates, and the sparse numbers that datasheets print.  Laws: every number has a source,
every source a number, and a number without an address makes no roof.
"""

from __future__ import annotations

import math
import re

import pytest
import yaml

from roofline.accelerators import Catalog, load_catalog
from roofline.accelerators import store as builtin
from roofline.accelerators.parts import build
from roofline.accelerators.sourcing import KINDS, Lines, Source, matches, numbers
from roofline.errors import NoAnswer

# id, precision of the ridge, ridge [FLOP/B], peak [TFLOP/s], bandwidth [TB/s], best published matmul and stream as a
# share of them [%], fp8 ridge [FLOP/B]; "-" where there is none.  Printed digits, so half a last digit is allowed.
RIDGE_TABLE = """
groq-lpu-v1 fp16 2.4 188 80.000 - - -
apple-m4-max bf16 33.7 18.4 0.546 - - -
apple-m2-ultra bf16 34.0 27.2 0.800 - - -
apple-m3-ultra bf16 34.7 28.4 0.819 - - -
h20 bf16 37.0 148 4.000 - - 74
apple-m5-max bf16 37.1 22.8 0.614 - - -
rtx-3090 bf16 75.9 71 0.936 110 - -
meta-mtia-300 bf16 98.4 600 6.100 - - 197
mi210 bf16 110.5 181 1.638 79 94 -
mi250x bf16 116.9 383 3.277 - - -
rtx-5090 bf16 116.9 209.5 1.792 - - 234
ascend-950dt bf16 121.5 486 4.000 - - 230
mtt-s4000 bf16 128.0 98.3 0.768 - - -
trainium3 bf16 136.9 671 4.900 - - 514
v100-sxm-32gb fp16 138.9 125 0.900 75 100 -
a100-sxm-80gb bf16 153.0 312 2.039 87 94 -
a800-sxm-80gb bf16 153.0 312 2.039 - - -
metax-c500-oam bf16 155.6 280 1.800 - - -
cambricon-mlu370-x8 bf16 156.2 96 0.614 - - -
a100-pcie-80gb bf16 161.2 312 1.935 81 - -
rtx-4090 bf16 163.9 165.2 1.008 108 - 328
tpu-v5p bf16 166.0 459 2.765 - - -
gaudi2 bf16 176.3 432 2.450 97 - 353
a30 bf16 176.8 165 0.933 - - -
rubin-vr200 bf16 181.8 4000 22.000 - - 795
mi300a bf16 185.0 980.6 5.300 - 58 370
ascend-910b3 bf16 195.6 313 1.600 97 - -
a100-pcie-40gb bf16 200.6 312 1.555 - - -
a100-sxm-40gb bf16 200.6 312 1.555 94 99 -
gh200-144gb bf16 201.9 989.4 4.900 86 - 404
t4 fp16 203.1 65 0.320 - - -
h200-sxm bf16 206.1 989.4 4.800 80 90 412
jetson-agx-orin-64gb bf16 207.5 42.5 0.205 - - -
a10 bf16 208.3 125 0.600 - - -
h100-nvl bf16 212.2 835.5 3.938 58 - 424
mi455x bf16 214.6 5000 23.300 - - 429
inferentia2 bf16 215.8 190 0.880 - - 216
trainium1 bf16 215.8 190 0.880 - - 216
mi325x bf16 217.9 1307.4 6.000 60 - 436
b100-sxm bf16 218.8 1750 8.000 - - 438
tenstorrent-wormhole-n300 bf16 227.4 131 0.576 - - 809
tpu-v4 bf16 229.2 275 1.200 - - -
trainium2 bf16 230.0 667 2.900 - - 448
strix-halo bf16 232.0 59.4 0.256 - 86 -
ascend-910b2 bf16 235.0 376 1.600 - - -
ascend-910c bf16 235.0 752 3.200 - - -
tpu-v5e bf16 240.5 197 0.819 - - -
mi300x bf16 246.7 1307.4 5.300 60 91 493
gh200-96gb bf16 247.3 989.4 4.000 86 99 495
arc-b580 bf16 255.5 116.5 0.456 - - -
max-1550 bf16 256.0 838.9 3.277 - - -
tenstorrent-wormhole-n150 bf16 256.9 74 0.288 - - 910
rtx-pro-6000-blackwell bf16 279.0 500 1.792 - - 558
mi350x bf16 288.4 2306.9 8.000 - - 577
b200-sxm bf16 292.2 2250 7.700 78 - 584
b300-sxm bf16 292.2 2250 7.700 79 - 584
h100-sxm bf16 295.3 989.4 3.350 80 - 591
h800-sxm bf16 295.3 989.4 3.350 - - 591
hygon-bw1000 fp16 300.0 480 1.600 - - -
xeon-6980p bf16 310.3 262.1 0.845 - - -
gb200-nvl72 bf16 312.5 2500 8.000 73 - 625
gb300-nvl72 bf16 312.5 2500 8.000 - - 625
tpu-v7-ironwood bf16 312.6 2307 7.380 - - 625
mi355x bf16 314.6 2516.6 8.000 62 - 629
mtt-s5000 bf16 320.0 512 1.600 - - 640
ascend-910b4 bf16 350.0 280 0.800 - - -
h100-pcie bf16 370.8 756.5 2.040 66 99 742
sambanova-sn40l bf16 398.8 638 1.600 - - -
l4 bf16 403.3 121 0.300 76 - 807
l40s bf16 419.0 362.1 0.864 70 - 848
gaudi3 bf16 456.9 1677 3.670 74 - 457
tpu-v6e bf16 560.4 918 1.638 - - -
biren-br100 bf16 624.4 1024 1.640 - - -
biren-br104 bf16 625.2 512 0.819 - - -
meta-mtia-v2 bf16 864.3 177 0.205 - - -
jetson-agx-thor bf16 946.9 258.5 0.273 - - 1894
"""
# The table gives h200-sxm a stream share of 90 %, but no address for the measurement: the data leaves it out.
NO_ADDRESS = {("h200-sxm", "stream")}
NO_RIDGE = {
    "dgx-spark-gb10", "grace-cpu", "epyc-9965", "ascend-950pr", "cambricon-mlu590", "hygon-k100-ai",
    "iluvatar-bi-v150", "kunlun-p800", "enflame-t20", "cerebras-wse-3", "tenstorrent-blackhole-p150",
}  # fmt: skip
UNSOURCED = {
    ("b200-sxm", "achievable.nvfp4_matmul_flop_per_s"),
    ("gb300-nvl72", "achievable.allreduce_busbw_72gpu_byte_per_s"),
    ("hygon-k100-ai", "capacity_bytes"),
    ("hygon-k100-ai", "peak_flop_per_s.fp16"),
    ("iluvatar-bi-v150", "compute_units.count"),
    ("kunlun-p800", "peak_flop_per_s.fp16"),
}
PRACTICAL_RIDGES = {  # best matmul / best stream, worked out by hand from the printed measurements
    ("v100-sxm-32gb", "fp16"): 94.0 / 0.897,
    ("a100-sxm-40gb", "bf16"): 291.77 / 1.539,
    ("a100-sxm-40gb", "fp16"): 298.34 / 1.539,
    ("a100-sxm-80gb", "bf16"): 271.2 / 1.908,
    ("h100-pcie", "bf16"): 499.5 / 2.018,
    ("gh200-96gb", "bf16"): 852.5 / 3.944,
    ("mi210", "bf16"): 142.8 / 1.533,
    ("mi300x", "bf16"): 788.2 / 4.849,
    ("iluvatar-bi-v150", "bf16"): 196.8 / 0.590,
    ("iluvatar-bi-v150", "fp32"): 38.7 / 0.590,
}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog(environ={})


@pytest.fixture(scope="module")
def entries() -> dict:
    with open(builtin.builtin_path(), "rb") as file:
        return yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))["accelerators"]


def within(value: float, printed: str) -> bool:
    """Whether a value rounds to the printed digits (half of the last one, plus float noise)."""
    digits = len(printed.partition(".")[2])
    return abs(value - float(printed)) <= 0.5000001 * 10.0**-digits


# --- the data -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", RIDGE_TABLE.split("\n")[1:-1])
def test_ridge_table(row: str, catalog: Catalog) -> None:
    part_id, precision, ridge, peak, bandwidth, matmul, stream, fp8 = row.split()
    part = catalog[part_id]
    roof = part.roof()
    assert roof.precision == precision
    assert part.fp16_for_bf16 == (precision == "fp16")
    assert within(roof.ridge, ridge)
    assert within(roof.peak / 1e12, peak)
    assert within(roof.bandwidth / 1e12, bandwidth)
    assert ("fp8" in part.peaks) == (fp8 != "-")
    if fp8 != "-":
        assert within(part.roof(precision="fp8").ridge, fp8)
    best = {
        "matmul": [v / roof.peak for k, v in part.achievable.items() if re.match(r"(bf16|fp16)_matmul", k)],
        "stream": [v / roof.bandwidth for k, v in part.achievable.items() if re.match(r"stream|copy", k)],
    }
    for name, printed in (("matmul", matmul), ("stream", stream)):
        if printed != "-" and (part_id, name) not in NO_ADDRESS:
            assert any(within(100 * share, printed) for share in best[name]), (name, best[name])


def test_parts_are_the_table_and_those_without_a_ridge(catalog: Catalog) -> None:
    with_ridge = [row.split()[0] for row in RIDGE_TABLE.split("\n")[1:-1]]
    assert len(catalog) == 87
    assert set(with_ridge) | NO_RIDGE == set(catalog)
    assert {part.id for part in catalog.values() if part.skipped_reason} == NO_RIDGE
    for part_id in NO_RIDGE:
        assert "peak" in catalog[part_id].skipped_reason or "bandwidth" in catalog[part_id].skipped_reason
        with pytest.raises(NoAnswer, match=part_id):
            catalog[part_id].roof()


FACTS = [  # what, computed, expected, relative tolerance (digits as printed by the vendor)
    ("H800 datasheet", lambda c: c["h800-sxm"].ridge, 295.34, 2e-5),
    ("H800 FlashMLA", lambda c: c["h800-sxm"].roof("flashmla").ridge, 258.21, 2e-5),
    ("H800 FlashMLA, one kernel", lambda c: c["h800-sxm"].roof("flashmla-kernel").ridge, 288.33, 2e-5),
    ("B200 InferenceX", lambda c: c["b200-sxm"].roof("inferencex").ridge, 281.25, 1e-12),
    ("B200 datasheet", lambda c: c["b200-sxm"].ridge, 2250 / 7.7, 1e-12),
    ("MTT S4000, exactly", lambda c: c["mtt-s4000"].ridge, 128.0, 0),
    ("H20", lambda c: c["h20"].ridge, 37.0, 1e-12),
    ("A100 40 GB", lambda c: c["a100-sxm-40gb"].ridge, 312 / 1.555, 1e-12),
    ("A100 80 GB", lambda c: c["a100-sxm-80gb"].ridge, 312 / 2.039, 1e-12),
    # 2 x multiply-adds per clock x clock
    ("Gaudi 2 bf16", lambda c: c["gaudi2"].peaks["bf16"], 1.650e9 * 65536 * 2 * 2, 2e-3),
    ("Gaudi 3 bf16", lambda c: c["gaudi3"].peaks["bf16"], 1.600e9 * 65536 * 8 * 2, 5e-4),
    ("MI300X bf16", lambda c: c["mi300x"].peaks["bf16"], 1216 * 256 * 2 * 2.1e9, 5e-5),
    ("MI355X bf16", lambda c: c["mi355x"].peaks["bf16"], 1024 * 512 * 2 * 2.4e9, 5e-5),
    ("MI350X bf16", lambda c: c["mi350x"].peaks["bf16"], 1024 * 512 * 2 * 2.2e9, 5e-5),
    ("RTX 5090 bf16", lambda c: c["rtx-5090"].peaks["bf16"], 512 * 170 * 2.407e9, 5e-4),
    ("Xeon 6980P bf16", lambda c: c["xeon-6980p"].peaks["bf16"], 128 * 1024 * 2.0e9, 5e-4),
    ("Strix Halo bf16", lambda c: c["strix-halo"].peaks["bf16"], 512 * 40 * 2.9e9, 5e-4),
    ("Max 1550 bf16", lambda c: c["max-1550"].peaks["bf16"], 1024 * 512 * 1.6e9, 5e-5),
    ("MTT S4000 bf16", lambda c: c["mtt-s4000"].peaks["bf16"], 4 * 24.576e12, 1e-12),
    # bus width x data rate
    ("Orin", lambda c: c["jetson-agx-orin-64gb"].bandwidth, 256 * 6400e6 / 8, 1e-3),
    ("Xeon", lambda c: c["xeon-6980p"].bandwidth, 12 * 8800e6 * 8, 1e-12),
    ("EPYC", lambda c: c["epyc-9965"].bandwidth, 12 * 6400e6 * 8, 1e-12),
    ("MTT S5000", lambda c: c["mtt-s5000"].bandwidth, 640 * 20e9 / 8, 1e-12),
    ("Strix Halo", lambda c: c["strix-halo"].bandwidth, 256 * 8000e6 / 8, 1e-12),
    ("SN40L: 25.6 TB/s of 16 sockets", lambda c: c["sambanova-sn40l"].bandwidth, 25.6e12 / 16, 1e-12),
    # 16 exp2 per SM and clock; Blackwell's rate is printed
    ("A100 exp", lambda c: c["a100-sxm-80gb"].exp_rate, 16 * 108 * 1.410e9, 1e-12),
    ("H100 exp", lambda c: c["h100-sxm"].exp_rate, 16 * 132 * 1.830e9, 1e-12),
    ("B200 exp", lambda c: c["b200-sxm"].exp_rate, 5.0e12, 0),
    ("B300 exp", lambda c: c["b300-sxm"].exp_rate, 10.7e12, 0),
    # one direction; the vendor prints the sum of both
    ("NVLink 5, 1.8 TB/s bidirectional", lambda c: c["b200-sxm"].link, 900e9, 0),
    ("NVLink 4, 900 GB/s bidirectional", lambda c: c["h100-sxm"].link, 450e9, 0),
    ("C2C, 900 GB/s bidirectional", lambda c: c["gh200-96gb"].raw["host_link"]["per_direction_byte_per_s"], 450e9, 0),
]


@pytest.mark.parametrize("fact", FACTS, ids=[fact[0] for fact in FACTS])
def test_facts(fact, catalog: Catalog) -> None:
    _, compute, expected, tolerance = fact
    assert compute(catalog) == pytest.approx(expected, rel=tolerance, abs=0)


def test_the_dense_number_is_stored_where_the_sparse_one_is_printed(catalog: Catalog) -> None:
    # Printed "with sparsity" [TFLOP/s]: the headline of each datasheet.  Blackwell Ultra's fp4 headline is dense.
    printed = {
        ("h100-sxm", "bf16"): 1979, ("h100-sxm", "fp8"): 3958, ("h200-sxm", "bf16"): 1979, ("h800-sxm", "bf16"): 1979,
        ("h20", "bf16"): 296, ("h20", "fp8"): 592, ("b200-sxm", "fp4"): 18000, ("b200-sxm", "fp8"): 9000,
        ("b200-sxm", "bf16"): 4500, ("gb200-nvl72", "bf16"): 5000, ("rtx-5090", "fp4"): 3352,
        ("jetson-agx-thor", "fp4"): 2070, ("mi300x", "bf16"): 2615, ("a100-sxm-80gb", "bf16"): 624,
        ("a10", "bf16"): 250, ("a30", "bf16"): 330, ("l4", "bf16"): 242, ("l40s", "bf16"): 724.1,
        ("mi455x", "fp8"): 20100, ("mi455x", "fp4"): 40300,
    }  # fmt: skip
    for (part_id, precision), sparse in printed.items():
        # rounded headlines (40.3 PFLOP/s against 2 x 20) allow 1 %
        assert catalog[part_id].peaks[precision] * 2 == pytest.approx(sparse * 1e12, rel=0.01), (part_id, precision)
    assert catalog["gb300-nvl72"].peaks["fp4"] == 15e15
    assert catalog["b300-sxm"].peaks["fp4"] == 14e15
    assert catalog["trainium2"].peaks["bf16"] * 4 == pytest.approx(2563e12, rel=0.05)  # 16:4, not 2:4
    assert catalog["tpu-v7-ironwood"].peaks["bf16"] * 2 == catalog["tpu-v7-ironwood"].peaks["fp8"] == 4614e12


# Steps of the precision ladder that are not between 1 and 2, each checked: legacy int8 on Blackwell Ultra and Rubin,
# fp4 raised there, FP32 accumulation halved on GeForce, and parts with ladders of their own.
ODD_STEPS = {
    "b300-sxm", "gb300-nvl72", "rubin-vr200", "rtx-3090", "rtx-4090", "rtx-5090", "trainium3", "cambricon-mlu370-x8",
    "tenstorrent-wormhole-n150", "tenstorrent-wormhole-n300", "groq-lpu-v1",
}  # fmt: skip


def test_precision_ladders(catalog: Catalog) -> None:
    odd = set()
    for part in catalog.values():
        wide = part.peaks.get("bf16", part.peaks.get("fp16"))
        fp8, fp4, int8 = (part.peaks.get(precision) for precision in ("fp8", "fp4", "int8"))
        steps = ((wide, fp8), (fp8, fp4), (wide, int8))
        # 2.03: the L40S datasheet rounds bf16 and fp8 apart (362.05 and 733)
        if any(low and high and not 1 <= high / low <= 2.03 for low, high in steps):
            odd.add(part.id)
    assert odd == ODD_STEPS


def test_every_number_is_a_number(entries: dict) -> None:
    suffixes = ("_per_s", "_bytes", "_watts", "_mfu", "_hour", "_per_cu", "_year", "count", "_size", "per_device")

    def leaves(node, path):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(value, (dict, list)):
                yield from leaves(value, (*path, key))
            else:
                yield (*path, key), value

    rates = {"peak_flop_per_s", "vector_peak_flop_per_s", "vendor_sparse_flop_per_s", "achievable"}
    checked = 0
    for path, value in leaves(entries, ()):
        if "sources" not in path and (str(path[-1]).endswith(suffixes) or path[1] in rates):
            assert isinstance(value, (int, float)), path
            assert not isinstance(value, bool)
            assert math.isfinite(value)
            assert value > 0, path
            checked += 1
    assert checked > 1250


def test_every_number_has_a_source_and_every_source_a_number(entries: dict) -> None:
    unsourced = set()
    for part_id, entry in entries.items():
        fields = dict(numbers(entry))
        lines = Lines(build(part_id, entry).sources)
        for field in fields:
            best = lines.best(field)
            assert best is not None, (part_id, field)
            assert best.kind in KINDS
            if not best.url:
                unsourced.add((part_id, field))
        for line in entry["sources"]:
            assert (line["url"] is None) == (line.get("unsourced") is True)
            for pattern in line["field"].split(","):
                assert any(matches(field, pattern.strip()) for field in fields), (part_id, pattern)
        assert all(price["url"] and price["as_of"] for price in entry.get("price", ()))
        assert all(pair["url"] and pair["kind"] in KINDS for pair in entry.get("roofs", {}).values())
    assert unsourced == UNSOURCED


def test_an_unsourced_number_makes_no_roof_and_no_peak(catalog: Catalog) -> None:
    assert {(part.id, field) for part in catalog.values() for field in part.unsourced} == UNSOURCED
    for part_id in ("hygon-k100-ai", "kunlun-p800"):
        part = catalog[part_id]
        assert part.peaks == {}
        assert part.roofs == ()
        assert part.raw["peak_flop_per_s"]
        assert "fp16 peak has no address" in part.skipped_reason
    assert catalog["hygon-k100-ai"].capacity_bytes is None
    assert all(roof.source.startswith("http") for part in catalog.values() for roof in part.roofs)


def test_which_source_line_speaks_for_a_number() -> None:
    wide = Source("peak_flop_per_s.*", "wide", "https://example.org", "reported")
    nameless = Source("peak_flop_per_s.bf16, tdp_watts", "exact", "", "datasheet")
    exact = Source("peak_flop_per_s.bf16", "exact", "https://example.org", "derived")
    longer = Source("peak_flop_per_s.bf*", "longer", "https://example.org", "derived")
    unknown = Source("peak*", "wide", "", "reported")
    assert Lines([nameless, wide]).best("peak_flop_per_s.bf16") is wide  # an address beats an exact field
    assert Lines([wide, nameless, exact]).best("peak_flop_per_s.bf16") is exact
    assert Lines([wide, longer]).best("peak_flop_per_s.bf16") is longer
    assert Lines([unknown, wide]).best("peak_flop_per_s.fp8") is wide
    assert Lines([unknown, nameless]).best("peak_flop_per_s.bf16") is nameless
    assert Lines([nameless]).best("tdp_watts") is nameless
    assert Lines([wide]).best("bandwidth_byte_per_s") is None
    assert matches("achievable.bf16_matmul_flop_per_s", "achievable.*_flop_per_s")
    assert not matches("achievable.copy_byte_per_s", "achievable.*_flop_per_s")
    assert not matches("ab", "ab*b")


def test_practical_roofs_exist_only_where_both_sides_are_measured(catalog: Catalog) -> None:
    found = {(p.id, r.precision): r for p in catalog.values() for r in p.roofs if r.name == "practical"}
    assert set(found) == set(PRACTICAL_RIDGES)
    for key, ridge in PRACTICAL_RIDGES.items():
        assert found[key].ridge == pytest.approx(ridge, rel=1e-3), key  # the data keeps four digits of some
        assert found[key].kind == "measured"
    assert "practical" not in {roof.name for roof in catalog["h100-sxm"].roofs}  # matmul alone
    assert "practical" not in {roof.name for roof in catalog["mi300a"].roofs}  # streams alone


def test_a_reported_matmul_makes_no_practical_roof() -> None:
    line = {"value": "x", "url": "https://example.org", "kind": "measured"}
    entry = {
        "achievable": {
            "bf16_matmul_flop_per_s": 2e14,
            "stream_best_byte_per_s": 1e12,
            "a10g_bf16_matmul_flop_per_s": 9e14,
        },
        "sources": [{**line, "field": "achievable.*"}],
    }
    assert [roof.ridge for roof in build("x", entry).roofs] == [200.0]  # another bin's 900 is not taken
    entry["sources"].insert(0, {**line, "field": "achievable.bf16_matmul_flop_per_s", "kind": "reported"})
    assert build("x", entry).roofs == ()


def test_named_pairs_of_sources(catalog: Catalog) -> None:
    named = {(p.id, r.name) for p in catalog.values() for r in p.roofs if r.name not in ("datasheet", "practical")}
    assert named == {("h800-sxm", "flashmla"), ("h800-sxm", "flashmla-kernel"), ("b200-sxm", "inferencex")}
    roof = catalog["h800-sxm"].roof("flashmla")
    assert (roof.peak, roof.bandwidth, roof.precision) == (865e12, 3.35e12, "bf16")
    roof = catalog["b200-sxm"].roof("inferencex")
    assert (roof.peak, roof.bandwidth) == (2250e12, 8e12)


def test_the_kind_of_a_roof_is_that_of_its_weaker_number(catalog: Catalog) -> None:
    assert catalog["b200-sxm"].roof().kind == "datasheet"
    h100 = catalog["h100-sxm"].roof()  # dense peak from a third party, bandwidth from the datasheet
    assert h100.kind == "reported"
    assert h100.note == "peak reported, bandwidth datasheet"
    assert h100.source.count("http") == 2
