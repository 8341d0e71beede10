"""The charts that follow a slider: what is sent to the browser holds the library's numbers, and the formulas there,
printed as JavaScript, give what Python gives."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import roofline
from roofline.accelerators import load_catalog
from roofline.answers.crossover import crossover
from roofline.answers.live import crossover_live, heads_live
from roofline.answers.plotted_crossover import crossover_scene
from roofline.cli import run
from roofline.dashboard import page_crossover
from roofline.dashboard.live_charts import crossover_live_chart, heads_live_chart
from roofline.dashboard.selection import Selection

pytestmark = pytest.mark.usefixtures("unfolded")

HEADS, CROSSOVER = "page_heads", "page_crossover"
RATIOS = page_crossover.RATIOS


def page_of(name: str, selection: Selection, **address: Any) -> AppTest:
    """One page without the frame, as a fresh browser gets it from an address."""

    def script(name, selection):  # its source alone is run, so no names of this file
        from importlib import import_module

        from roofline.dashboard import kit

        with kit.guarded():
            import_module(f"roofline.dashboard.{name}").page(selection)

    at = AppTest.from_function(script, args=(name, selection), default_timeout=60)
    for parameter, value in address.items():
        at.query_params[parameter] = str(value) if isinstance(value, int) else value
    return at.run()


def fine(at: AppTest) -> AppTest:
    assert not at.exception, [e.message for e in at.exception]
    assert not at.error, [e.value for e in at.error]
    return at


class Math:
    """The functions of JavaScript that the generated source calls, so that Python can run it."""

    min, max, sqrt, pow = staticmethod(min), staticmethod(max), staticmethod(math.sqrt), staticmethod(pow)


def called(script: dict[str, Any], **free: float) -> float:
    """What a browser computes from a generated formula."""
    value = eval(script["source"], {"Math": Math}, {**script["values"], **free})
    assert isinstance(value, (int, float))
    return value


def sent(at: AppTest) -> dict[str, Any]:
    """The data of the chart on a page, as the browser gets them."""
    (component,) = at.get("bidi_component")
    return json.loads(component.proto.json)


def crossover_chart(unknown: str | None = None, **options: Any) -> tuple[Any, dict[str, Any]]:
    """An answer for V3.2 and its chart."""
    part = load_catalog()[options["hardware"]] if "hardware" in options else None
    found = crossover("deepseek-v3.2", **options)
    roof = part.roof(options["roof"]) if part else None
    return found, crossover_live_chart(crossover_scene(found, unknown, part, roof), RATIOS)


@pytest.mark.parametrize("heads", [1, 64, 128, 200])
def test_the_script_of_the_head_count_is_the_formula(heads: int) -> None:
    """17/9 FLOP/B a head at latent 512, rope 64 and two bytes an element: arXiv:2405.04434 sec. 2.1, exact."""
    shape = roofline.heads("h800-sxm", roof="flashmla")["inputs"]
    assert called(heads_live(shape), heads=heads) == pytest.approx(17 / 9 * heads, rel=1e-12)


def test_the_head_count_chart_holds_every_ridge_and_its_head_count() -> None:
    """136.70: 865 TFLOP/s over 3.35 TB/s, FlashMLA docs/20250422-new-kernel-deep-dive.md; two decimals are told."""
    own = roofline.plot("heads", hardware=["h800-sxm", "b200-sxm"], kv_row_bytes=[656, 1152])
    chart = heads_live_chart(own.data, 1, 256)
    assert {c["x"] for c in chart["points"]} == {c["heads_exact"] for c in own["crossings"]}
    assert 136.70 in [round(p["x"], 2) for p in chart["points"]]
    assert [level["y"] for level in chart["levels"]] == [r["ridge_flop_per_byte"] for r in own["ridges"]]
    assert "h800-sxm flashmla: ridge 258.2 FLOP/B, 77.84 and 136.7 heads" in [x["label"] for x in chart["levels"]]
    for point in chart["points"]:  # every mark lies on one of the curves, and inside the axes
        assert min(abs(called(c, heads=point["x"]) / point["y"] - 1) for c in chart["curves"]) < 1e-12
        assert chart["x"]["domain"][0] <= point["x"] <= chart["x"]["domain"][1]
        assert chart["y"]["domain"][0] <= point["y"] <= chart["y"]["domain"][1]
    assert len({level["dash"] for level in chart["levels"]}) == len(chart["levels"]), "told apart by colour alone"


@pytest.mark.parametrize("hardware", ["groq-lpu-v1", "jetson-agx-thor"])
def test_the_head_count_chart_reaches_far_ridges_and_the_whole_slider(hardware: str) -> None:
    """1.24 and 501 heads lie outside what a slider of 1 to 256 heads marks out."""
    own = roofline.plot("heads", hardware=hardware)
    chart = heads_live_chart(own.data, 1, 256)
    assert chart["x"]["domain"][0] <= min(1, *(p["x"] for p in chart["points"]))
    assert chart["x"]["domain"][1] >= max(256, *(p["x"] for p in chart["points"]))
    low, high = chart["y"]["domain"]
    assert all(low < level["y"] < high for level in chart["levels"])


CASES = [
    {"phase": "oneshot"},
    {"phase": "oneshot", "kernel_heads": 128, "tp": (1, 8)},
    {"phase": "oneshot", "cost": "time", "hardware": "h800-sxm", "roof": "datasheet"},
    {"phase": "oneshot", "cost": "time", "hardware": "b200-sxm", "roof": "inferencex", "gather": "perfect"},
    {"phase": "oneshot", "skip": False},
    {"phase": "oneshot", "topk": 4096},
    {"phase": "chunked", "context": 4096},
    {"phase": "chunked", "context": 4096, "cost": "time", "hardware": "h800-sxm", "roof": "datasheet"},
    {"phase": "decode", "q_len": 4},
    {"phase": "shared-prefix", "cost": "time", "hardware": "h800-sxm", "roof": "flashmla", "prefix": 4096},
]


@pytest.mark.parametrize("options", CASES, ids=lambda o: " ".join(map(str, o.values())))
@pytest.mark.parametrize("ratio", [0.47, 1.0, 1.3])
def test_the_dragged_curves_meet_where_the_library_says(options: dict[str, Any], ratio: float) -> None:
    found = crossover("deepseek-v3.2", rate_ratio=ratio, **options)
    for row, case in zip(found.rows, found.cases, strict=True):
        if row["value"] is None:
            continue
        first, second = crossover_live(case, row["unknown"])
        at = {row["unknown"]: row["value"], "rate_ratio": ratio}
        assert called(first, **at) == pytest.approx(called(second, **at), rel=1e-9)
        off = {**at, row["unknown"]: row["value"] * 1.5}
        assert called(first, **off) != pytest.approx(called(second, **off), rel=1e-3), "equal everywhere proves nothing"


@pytest.mark.parametrize("between", ["indexer", "dense"])
def test_the_curves_of_the_indexer_meet_too(between: str) -> None:
    """68,592 keys: a whole one-shot prefill of V3.2's indexer costs as much as its sparse core, by the closed form."""
    found = crossover("deepseek-v3.2", between=between)
    first, second = crossover_live(found.cases[0], "seq_len")
    where = found.rows[0]["value"]
    assert called(first, seq_len=where) == pytest.approx(called(second, seq_len=where), rel=1e-9)
    assert between == "dense" or round(where) == 68592


def test_the_scripts_are_in_letters_so_that_one_serves_every_model() -> None:
    scripts = [
        crossover_live(crossover(m, tp=tp).cases[0], "seq_len") for m, tp in [("glm-5", 1), ("deepseek-v3.2", 8)]
    ]
    assert [s["source"] for s in scripts[0]] == [s["source"] for s in scripts[1]]
    assert scripts[0][0]["values"] != scripts[1][0]["values"]


@pytest.mark.parametrize("options", CASES, ids=lambda o: " ".join(map(str, o.values())))
def test_the_crossover_chart_pairs_the_curves_of_each_degree(options: dict[str, Any]) -> None:
    found, chart = crossover_chart(**options)
    unknown = chart["x"]["name"]
    rows = [row for row in found.rows if row["unknown"] == unknown]
    assert len(chart["pairs"]) == len({(row["tp"], row["convention"]) for row in rows})
    for row in rows:
        if row["value"] is None:
            continue
        at = {unknown: row["value"], "rate_ratio": 1.0}
        gaps = [
            called(chart["curves"][p["first"]], **at) / called(chart["curves"][p["second"]], **at) - 1
            for p in chart["pairs"]
            if p["from"] <= row["value"]
        ]
        assert min(map(abs, gaps)) < 1e-9
        assert chart["x"]["domain"][0] < row["value"] < chart["x"]["domain"][1]
    looks = [(c["tint"], c["dash"], c["short"]) for c in chart["curves"]]
    assert len(set(looks)) == len(looks)


def test_the_axes_do_not_depend_on_the_rate_ratio() -> None:
    """A chart that jumps on release would be another one than that dragged."""
    options = {"kernel_heads": 128, "tp": (1, 8)}
    charts = [crossover_chart(rate_ratio=ratio, **options) for ratio in (0.47, 1.0, 2.0)]
    assert len({(*c["x"]["domain"], *c["y"]["domain"]) for _, c in charts}) == 1
    for found, chart in charts:
        assert all(chart["x"]["domain"][0] < r["value"] < chart["x"]["domain"][1] for r in found.rows)


def test_windows_and_outside_marks_are_those_of_the_figure() -> None:
    """662 to 5,072 new tokens on 4,096 cached ones: the roots of the quadratic for V3.2, arithmetic in the docs."""
    found, chart = crossover_chart(phase="chunked", context=4096)
    assert [(round(w["low"]), round(w["high"])) for w in chart["windows"]] == [(662, 5072)]
    data = roofline.plot("crossover", model="deepseek-v3.2", tp=(1, 2, 4, 8)).data
    _, chart = crossover_chart(tp=(1, 2, 4, 8))
    assert {lane["label"] for lane in chart["lanes"]} == {m["label"] for m in data["marks"]}
    for lane in chart["lanes"]:
        (mark,) = [m for m in data["marks"] if m["label"] == lane["label"]]
        assert {i["at"] for i in lane["items"]} == {i["at"] for i in mark["items"]}
        assert mark["date"] in lane["label"]
        assert lane["source"] == mark["source"]
        assert lane["letter"].isalpha() == bool(lane["items"])
    assert found.rows


def test_the_head_count_page_sends_the_numbers_that_it_tells() -> None:
    at = fine(page_of(HEADS, Selection(hardware=("h800-sxm",), roof="flashmla")))
    assert [round(p["x"], 2) for p in sent(at)["points"]] == [136.70]
    assert any("&= 136.70" in m.value for m in at.markdown)


def test_a_slider_moves_the_number_to_what_the_library_gives() -> None:
    at = fine(page_of(HEADS, Selection(roof="datasheet")))
    at.slider(key="latent").set_value(256)
    fine(at.run())
    expected = roofline.heads("h800-sxm", roof="datasheet", latent=256).rows[0]["heads_exact"]
    assert sent(at)["points"][0]["x"] == pytest.approx(expected, rel=1e-12)
    at.query_params["heads"] = "16"  # what the dragged slider leaves in the address on release
    fine(at.run())
    assert sent(at)["slider"]["value"] == 16
    nearest = roofline.chips(16, roof="datasheet", latent=256).rows[0]["hardware"]
    assert at.dataframe[0].value.iloc[0, 0] == nearest


@pytest.mark.parametrize("heads", [1, 256])
@pytest.mark.parametrize(("latent", "rope"), [(64, 0), (2048, 256)])
def test_the_head_count_page_at_its_edges(heads: int, latent: int, rope: int) -> None:
    fine(page_of(HEADS, Selection(), heads=heads, latent=latent, rope=rope, q_len=16))


def test_the_derivation_is_that_of_the_roof_chosen() -> None:
    """152.65: 865 TFLOP/s over 3.0 TB/s, the pair of FlashMLA's own kernel."""
    at = fine(page_of(HEADS, Selection(), explain="h800-sxm flashmla-kernel"))
    assert any("&= 152.65" in m.value for m in at.markdown)


def test_the_crossover_page_sends_the_published_lengths() -> None:
    """5,274 and 51,318: one rate ratio, 0.47, puts the crossings inside the limits of vLLM's table at TP 1 and at TP 8
    (pull request 48770); the browser solves for the roots itself, hence the check of both sides there."""
    at = fine(page_of(CROSSOVER, Selection(), rate_ratio="0.47", kernel_heads="128", tp=["1", "8"]))
    chart = sent(at)
    assert chart["slider"]["value"] == 0.47
    for pair, length in zip(chart["pairs"], (5274, 51318), strict=True):
        first, second = (chart["curves"][pair[end]] for end in ("first", "second"))
        ratios = [
            called(first, seq_len=x, rate_ratio=0.47) / called(second, seq_len=x, rate_ratio=0.47)
            for x in (length - 1, length + 1)
        ]
        assert ratios[0] < 1 < ratios[1]
    shown = at.dataframe[0].value["crossing"]
    assert [round(x) for x in shown] == [5274, 51318]


@pytest.mark.parametrize("phase", ["oneshot", "chunked", "decode", "shared-prefix"])
@pytest.mark.parametrize("cost", ["flops", "time"])
@pytest.mark.parametrize("between", ["modes", "indexer", "dense"])
def test_the_crossover_page_in_every_phase(phase: str, cost: str, between: str) -> None:
    at = page_of(CROSSOVER, Selection(context=4096), phase=phase, cost=cost, between=between)
    chart = sent(fine(at))
    assert len(chart["curves"]) in (2, 3)
    assert chart["slider"]["disabled"] == (between != "modes" and phase != "shared-prefix")


def test_decode_has_two_axes() -> None:
    for unknown in ("seq_len", "batch"):
        assert sent(fine(page_of(CROSSOVER, Selection(), phase="decode", unknown=unknown)))["x"]["name"] == unknown


def test_a_model_without_a_latent_gets_the_reason_and_the_models_that_have_one() -> None:
    at = page_of(CROSSOVER, Selection(model="llama-3.1-8b"))
    assert not at.exception
    assert len(at.error) == 1
    assert "no latent" in at.error[0].value.replace("\\", "")
    named = next(m.value for m in at.markdown if "with a latent" in m.value).replace("\\", "")
    assert "deepseek-v3.2" in named
    assert "llama" not in named
    assert any(c.value.startswith("Roof: ") for c in at.caption), "no footer"


def test_a_combination_with_no_answer_says_why_in_place() -> None:
    at = page_of(CROSSOVER, Selection(), kernel_heads="64")  # fewer than the 128 heads of the rank
    assert not at.exception
    assert "at least the 128 heads" in at.error[0].value.replace("\\", "")
    at = page_of(CROSSOVER, Selection(model="deepseek-v3"), between="indexer")
    assert "no indexer" in at.error[0].value.replace("\\", "")


@pytest.mark.parametrize("address", [
    {},
    {"rate_ratio": "0.47", "kernel_heads": "128", "tp": ["1", "8"], "skip": "false"},
    {"phase": "decode", "topk": "none", "unknown": "batch"},
    {"phase": "shared-prefix"},
    {"between": "dense", "cost": "time", "gather": "perfect"},
], ids=str)  # fmt: skip
def test_the_lines_of_the_crossover_page_give_its_numbers(
    address: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    at = fine(page_of(CROSSOVER, Selection(hardware=("h200-sxm",), roof="datasheet"), **address))
    python, cli = [c.value for c in at.code][-2:]
    known: dict[str, Any] = {}
    exec(python.replace("\nroofline.", "\nfound = roofline."), known)
    shown = at.dataframe[0].value["crossing"]
    told = [None if row["value"] is None else float(f"{row['value']:.6g}") for row in known["found"].rows]
    assert [None if x is None or x != x else float(x) for x in shown] == told
    numbers = cli.splitlines()[0]
    assert run([*numbers.split()[1:], "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["value"] for row in rows] == pytest.approx([row["value"] for row in known["found"].rows])


def test_the_figure_line_of_the_crossover_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = fine(page_of(CROSSOVER, Selection(hardware=("h200-sxm",)), phase="decode", cost="time", unknown="batch"))
    monkeypatch.chdir(tmp_path)
    assert run(at.code[-1].value.splitlines()[1].split()[1:]) == 0
    assert (tmp_path / "crossover.pdf").stat().st_size > 1000


def test_the_script_of_the_charts_computes_no_formula() -> None:
    """It knows no quantity of the domain, and puts no text where markup would be read."""
    script = (Path(roofline.__file__).parent / "dashboard" / "live.js").read_text()
    from roofline.glossary import GLOSSARY

    words = set(script.replace("_", " ").split()) | set(script.split())
    assert not {name for name in GLOSSARY if "_" in name} & words
    assert "innerHTML" not in script
