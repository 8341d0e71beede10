"""The accelerator catalogue: names, files of the user and what bad ones get, ad hoc parts, and the cold start."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from hashlib import sha256

import pytest
import yaml

from roofline.accelerators import Catalog, adhoc, load_catalog, resolve, select
from roofline.accelerators import schema as hardware_schema
from roofline.accelerators import store as builtin
from roofline.accelerators.parts import PRECISIONS, Accelerator, Roof
from roofline.accelerators.schema import validate
from roofline.errors import BadFile, BadValue, NoAnswer, UnknownName
from roofline.safe_yaml import load_yaml, read_text


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog(environ={})


@pytest.fixture(scope="module")
def entries() -> dict:
    with open(builtin.builtin_path(), "rb") as file:
        return yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))["accelerators"]


# --- names --------------------------------------------------------------------------------------------------------


def test_roof_names_and_precisions(catalog: Catalog) -> None:
    h800 = catalog["h800-sxm"]
    assert h800.roof().precision == "bf16"
    assert h800.roof(precision="fp8").peak == h800.peaks["fp8"]
    assert catalog["v100-sxm-32gb"].roof().precision == "fp16"
    with pytest.raises(UnknownName, match="flashmla-kernel"):
        h800.roof("practical")
    with pytest.raises(UnknownName, match="fp4"):
        h800.roof(precision="fp4")
    bi_v150 = catalog["iluvatar-bi-v150"]  # measured on both sides, though no peak is printed
    assert bi_v150.roof("practical").precision == "bf16"
    with pytest.raises(NoAnswer, match=r"no sourced dense bf16 or fp16 peak.*practical"):
        bi_v150.roof()


def test_ids_short_names_and_mistakes(catalog: Catalog) -> None:
    assert catalog.get("H800").id == catalog["h800"].id == "h800-sxm"
    assert catalog["B200 SXM"].id == "b200-sxm"
    assert "h800" not in catalog
    assert catalog.get("h9000", None) is None
    with pytest.raises(BadValue, match="h100-sxm, h100-pcie, h100-nvl"):
        catalog.get("h100")
    with pytest.raises(UnknownName, match=r"h800-sxm.*roofline hardware list") as error:
        catalog.get("h800-sxn")
    assert error.value.exit_code == 2
    for empty in ("", "-", "  "):
        with pytest.raises(UnknownName):
            catalog.get(empty)


def test_select(catalog: Catalog) -> None:
    assert [part.id for part in select("b200,h800-sxm, b200-sxm", catalog)] == ["b200-sxm", "h800-sxm"]
    assert [part.id for part in select(["mi210", "h20,t4"], catalog)] == ["mi210", "h20", "t4"]
    assert [part.id for part in select("all", catalog)] == list(catalog)
    for nothing in ("", ",", []):
        with pytest.raises(BadValue, match="an accelerator id"):
            select(nothing, catalog)


# --- files of the user --------------------------------------------------------------------------------------------

PART = """accelerators:
  {id}:
    name: Mine
    bandwidth_byte_per_s: 2.0e+12
    peak_flop_per_s: {{bf16: {bf16}}}
    {extra}
    sources:
      - {{field: 'bandwidth_byte_per_s,peak_flop_per_s.*', value: seen, url: 'https://example.org/x', kind: datasheet}}
"""


def part_text(part_id: str = "mine", bf16: str = "4.0e+14", extra: str = "status: announced") -> str:
    return PART.format(id=part_id, bf16=bf16, extra=extra)


@pytest.fixture
def write(tmp_path):
    def make(text: str, name: str = "my.yaml") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    return make


def test_a_file_adds_its_parts_and_selects_them(write, catalog: Catalog) -> None:
    path = write(part_text())
    parts, extended = resolve(f"{path},h20", catalog)
    assert [part.id for part in parts] == ["mine", "h20"]
    assert parts[0].ridge == 200.0
    assert parts[0].origin == path
    assert len(extended) == 88
    assert "mine" not in catalog
    assert extended.digest != catalog.digest
    assert list(load_catalog([path], environ={}))[-1] == "mine"
    assert load_catalog([path], environ={}).digest == extended.digest
    as_json = write(json.dumps(yaml.safe_load(part_text())), "my.json")
    assert select(as_json, catalog)[0].ridge == 200.0


def test_a_built_in_part_is_replaced_only_on_request(write) -> None:
    with pytest.raises(BadFile, match=r"accelerators\.h20: got an id that exists already.*override: true"):
        load_catalog([write(part_text("h20"))], environ={})
    catalog = load_catalog([write(part_text("h20", extra="override: true"))], environ={})
    assert catalog["h20"].ridge == 200.0
    assert catalog["h20"].capacity_bytes is None  # replaced as a whole, nothing mixed in
    assert len(catalog) == 87
    catalog = load_catalog([write(part_text("h21", extra="override: true"))], environ={})
    assert any("h21" in text and "override" in text for text in catalog.warnings)


def test_two_files_of_the_user_may_not_disagree_silently(write) -> None:
    first, second = write(part_text(), "a.yaml"), write(part_text(bf16="6.0e+14"), "b.yaml")
    with pytest.raises(BadFile, match=r"b\.yaml: accelerators\.mine.*a\.yaml"):
        load_catalog([first, second], environ={})


def test_environment_and_config_folder(write, tmp_path) -> None:
    one, two = write(part_text("one"), "one.yaml"), write(part_text("two"), "two.yaml")
    write(part_text("three"), "config/roofline/hardware.yaml")
    write(part_text("four"), "home/.config/roofline/hardware.yaml")
    environ = {"ROOFLINE_HARDWARE": os.pathsep.join([one, "", two]), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert list(load_catalog(environ=environ))[87:] == ["three", "one", "two"]
    assert list(load_catalog(environ={"HOME": str(tmp_path / "home")}))[87:] == ["four"]
    relative = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": "config"}  # the XDG rule: relative is ignored
    assert list(load_catalog(environ=relative))[87:] == ["four"]
    assert len(load_catalog(environ={"HOME": str(tmp_path / "nobody")})) == 87
    with pytest.raises(BadFile, match=r"none\.yaml: got no such file"):
        load_catalog(environ={"ROOFLINE_HARDWARE": str(tmp_path / "none.yaml")})


BAD = {  # name -> (text, dotted path, words of the message)
    "quoted number": (part_text(bf16="'3.35e12'"), "peak_flop_per_s.bf16", "write 3.35e+12 without quotes"),
    "number YAML takes for text": (part_text(bf16="989e12"), "peak_flop_per_s.bf16", "write 9.89e+14"),
    "with a unit": (part_text(bf16="989 TFLOP/s"), "peak_flop_per_s.bf16", "expected a number"),
    "null": (part_text(bf16="null"), "peak_flop_per_s.bf16", "expected a number"),
    "true": (part_text(bf16="true"), "peak_flop_per_s.bf16", "expected a number"),
    "zero": (part_text(bf16="0.0"), "peak_flop_per_s.bf16", "above 0"),
    "negative": (part_text(bf16="-1.0e+12"), "peak_flop_per_s.bf16", "above 0"),
    "infinite": (part_text(bf16=".inf"), "peak_flop_per_s.bf16", "finite"),
    "not a number": (part_text(bf16=".nan"), "peak_flop_per_s.bf16", "finite"),
    "unknown key": (part_text(extra="bandwith_bytes_per_s: 3.0e+12"), "bandwith_bytes_per_s", "bandwidth_byte_per_s"),
    "unknown key inside": (part_text(extra="cache: {l3_bytes: 1.0e+6}"), "cache.l3_bytes", "nearest: l2_bytes"),
    "no source for a number": (part_text(extra="capacity_bytes: 8.0e+10"), "capacity_bytes", "field: capacity_bytes"),
    "no sources": (part_text().partition("    sources:")[0], "bandwidth_byte_per_s", "without a source"),
    "no url": (part_text().replace("url: 'https://example.org/x', ", ""), "sources[0]", "without url"),
    "url that is none": (part_text().replace("https://example.org/x", "a friend"), "sources[0].url", "an address"),
    "url and unsourced": (part_text().replace("kind: data", "unsourced: true, kind: data"), "sources[0]", "unsourced"),
    "unknown kind": (part_text().replace("datasheet", "rumour"), "sources[0].kind", "'datasheet', 'measured'"),
    "no kind": (part_text().replace(", kind: datasheet", ""), "sources[0].kind", "this key"),
    "source of nothing": (part_text().replace("'band", "'tdp_watts,band"), "sources[0].field", "tdp_watts"),
    "bad id": (part_text("My Part"), "", "text of the form"),
    "a list of parts": ("accelerators: [1]", "accelerators", "a mapping"),
    "duplicate part": (part_text() + part_text().partition("\n")[2], "", "twice"),
    "no parts": ("accelerators: {}", "accelerators", "at least one"),
    "other document": ("models: {}", "models", "a key that is not known"),
    "text": ("hello", "", "a mapping"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name: str, write) -> None:
    text, where, words = BAD[name]
    path = write(text)
    with pytest.raises(BadFile) as error:
        validate(path)
    assert error.value.exit_code == 3
    assert error.value.where.endswith(where)
    assert words in str(error.value)
    if where and where not in ("accelerators", "models"):
        assert error.value.where == f"accelerators.mine.{where}"
    with pytest.raises(BadFile):
        load_catalog([path], environ={})


@pytest.mark.parametrize(
    ("peak", "extra", "warns"),
    [
        ("1.979e+15", "status: announced", True),  # the sparse bf16 rate of Hopper, as printed
        ("1.9788e+15", "vendor: NVIDIA", True),  # exactly twice 989.4
        ("1.979e+15", "vendor: Someone Else", True),  # a vendor we do not know: compared with all
        ("1.979e+15", "vendor: Apple", False),  # a known vendor: compared with its own parts
        ("1.1e+15", "status: announced", False),
    ],
)
def test_a_sparse_peak_warns(peak: str, extra: str, warns: bool, write) -> None:
    path = write(part_text(bf16=peak, extra=extra))
    report = validate(path)
    assert [part.id for part in report.accelerators] == ["mine"]
    assert len(report.warnings) == warns
    if warns:
        where, text = report.warnings[0]
        assert where == "accelerators.mine.peak_flop_per_s.bf16"
        assert "h100-sxm" in text
        assert "9.894e+14" in text
        assert "sparsity" in text
        assert any(where in warning for warning in load_catalog([path], environ={}).warnings)


def test_an_unsourced_number_of_the_user_makes_no_roof(write) -> None:
    text = part_text().replace("url: 'https://example.org/x'", "url: null, unsourced: true")
    part = validate(write(text)).accelerators[0]
    assert part.roofs == ()
    assert "its bf16 peak has no address" in part.skipped_reason
    assert "its memory bandwidth has no address" in part.skipped_reason


# --- ad hoc -------------------------------------------------------------------------------------------------------


def test_adhoc() -> None:
    part = adhoc("989TFLOP/s", "3.35TB/s", exp_rate="3.86 Texp/s")
    assert part.ridge == pytest.approx(989 / 3.35)
    assert part.exp_rate == pytest.approx(3.86e12)
    assert part.roof("datasheet", "fp8") is part.roof()  # one roof, whatever the precision
    assert part.skipped_reason is None
    assert adhoc(ridge="128", bandwidth="768GB/s").roof().peak == pytest.approx(98.304e12)
    assert adhoc(ridge=128, peak=98.304e12).roof().bandwidth == pytest.approx(768e9)


def test_adhoc_with_only_a_ridge_has_no_rates() -> None:
    roof = adhoc(ridge="128 FLOP/B").roof()
    assert roof.ridge == 128.0
    assert not roof.has_rates
    assert adhoc(peak=1e12, bandwidth=1e12).roof().has_rates
    for name in ("peak", "bandwidth"):
        with pytest.raises(NoAnswer, match=f"no {name}"):
            getattr(roof, name)
    with pytest.raises(AttributeError):
        roof.speed  # noqa: B018
    assert repr(roof) == "RidgeOnly(128)"
    assert roof == adhoc(ridge=128).roof()
    with pytest.raises(AttributeError):
        roof.name = "x"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"peak": "989TFLOP/s"}, "bandwidth"),
        ({"bandwidth": "3TB/s"}, "peak"),
        ({}, "peak"),
        ({"peak": "989", "bandwidth": "3TB/s"}, "peak"),
        ({"peak": "989TFLOP/s", "bandwidth": "3TFLOP/s"}, "bandwidth"),
        ({"peak": "0TFLOP/s", "bandwidth": "3TB/s"}, "peak"),
        ({"ridge": "-1"}, "ridge"),
        ({"ridge": math.nan}, "ridge"),
        ({"ridge": math.inf}, "ridge"),
        ({"ridge": 128, "peak": 1e12, "bandwidth": 1e12}, "ridge"),
        ({"ridge": 128, "exp_rate": "1"}, "exp_rate"),
    ],
)
def test_adhoc_mistakes(given: dict, name: str) -> None:
    with pytest.raises(BadValue) as error:
        adhoc(**given)
    assert error.value.name == name


# --- what is derived from the data --------------------------------------------------------------------------------


def test_the_built_in_file_passes_its_own_schema(entries: dict) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    document = load_yaml(builtin.builtin_path())
    assert document["accelerators"] == entries  # our reader and PyYAML agree on every value
    assert hardware_schema.checked(document, "hardware.yaml") == entries
    schema = hardware_schema.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(document)
    for text in ("accelerators: {}", part_text(bf16="'3'"), part_text(bf16="null"), part_text(extra="speed: 1.0")):
        assert not validator.is_valid(yaml.safe_load(text))
    no_address = yaml.safe_load(part_text().replace("url: 'https://example.org/x', ", ""))
    assert not validator.is_valid(no_address)


def test_generated_files_are_fresh() -> None:
    # `python -m roofline.accelerators.schema` rewrites both.
    with open(hardware_schema.schema_path(), encoding="utf-8") as file:
        assert file.read() == hardware_schema.schema_text()
    with open(builtin.CACHE, encoding="utf-8") as file:
        assert file.read() == hardware_schema.cache_text()


def test_the_yaml_is_read_when_the_copy_is_stale(tmp_path, monkeypatch, entries: dict) -> None:
    fresh = builtin.builtin()
    assert fresh[0] == entries
    edited = tmp_path / "hardware.yaml"
    text = read_text(builtin.builtin_path())
    edited.write_text(text.replace("_per_s: 3.35e+12", "_per_s: 3.36e+12"), encoding="utf-8")
    monkeypatch.setattr(builtin, "builtin_path", lambda: str(edited))
    catalog = load_catalog(environ={})
    assert catalog["h800-sxm"].bandwidth == 3.36e12
    assert catalog.digest != fresh[1][:12]


def test_the_digest_names_the_text_of_the_data(catalog: Catalog) -> None:
    with open(builtin.builtin_path(), "rb") as file:
        assert catalog.digest == sha256(file.read()).hexdigest()[:12]


def test_a_cold_start_imports_nothing_heavy() -> None:
    heavy = ["yaml", "pydantic", "numpy", "sympy", "hashlib", "importlib.metadata"]
    code = (
        "import sys; from roofline.accelerators import load_catalog;"
        "[part.roofs for part in load_catalog(environ={}).values()];"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_records_are_frozen(catalog: Catalog) -> None:
    part = catalog["h20"]
    assert isinstance(part, Accelerator)
    assert isinstance(part.roof(), Roof)
    for target, name in ((part, "bandwidth"), (part.roof(), "peak")):
        with pytest.raises(AttributeError):
            setattr(target, name, 1.0)
    assert all(roof.precision in PRECISIONS for entry in catalog.values() for roof in entry.roofs)
