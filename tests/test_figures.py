"""Figures: what is drawn is what was computed, no text on another, and the same bytes every time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from itertools import combinations

import matplotlib
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from roofline.answers.plot import figure, plot
from roofline.errors import BadValue, NoAnswer, UnknownName
from roofline.figures import canvas, draw, plot_crossover, plot_heads, plot_roofline, save, styled, to_bytes

OKABE_ITO = {"#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#FFFFFF"}
PADDED = {"tp": (1, 2, 4, 8), "kernel_heads": 128}
CASES = {
    "roofline": ("roofline", {}),
    "chips": ("roofline", {"hardware": ("h200-sxm", "b200-sxm"), "roof": "datasheet"}),
    "heads": ("heads", {}),
    "many": ("heads", {"hardware": ("h100-sxm", "h200-sxm", "h800-sxm", "b200-sxm", "mi300x", "mtt-s4000", "h20")}),
    "oneshot": ("crossover", {}),
    "padded": ("crossover", PADDED),
    "window": ("crossover", {"phase": "chunked", "context": 4096}),
    "windows": ("crossover", {"model": "glm-5", "phase": "chunked", "context": 2048, "tp": (1, 8)}),
    "prefix": ("crossover", {"model": "deepseek-v3", "phase": "shared-prefix", "cost": "time", "hardware": "h800-sxm"}),
    "step": ("step", {"hardware": "h200-sxm", "batch": 128, "context": 8192, "dp": 8, "ep": 8}),
    "prefill": ("step", {"model": "llama-3.1-8b", "hardware": "h100-sxm", "phase": "oneshot", "q_len": 8192}),
    "waste": ("waste", {"preset_name": "article", "page_size": (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)}),
    "hits": ("hits", {"trace": "sample", "blocks": (50, 100, 200, 400, None)}),
    "pages": ("pages", {"preset_name": "article", "shared_prefix": (64, 3)}),
    "concurrency": ("concurrency", {"model": "gpt-oss-120b", "available_gib": 40, "engine": ("vllm", "llamacpp")}),
}


@cache
def data(case: str) -> dict:
    kind, options = CASES[case]
    return dict(plot(kind, **options).data)


def drawn(case: str, **how) -> Figure:
    return draw(CASES[case][0], data(case), **how)


def texts(fig: Figure) -> list[tuple[str, object]]:
    """Every text that a reader sees, with its box in pixels."""
    renderer = FigureCanvasAgg(fig).get_renderer()
    fig.draw_without_rendering()
    seen = []
    for text in fig.findobj(Text):
        tick = text.get_text() and text in [t for a in fig.axes for t in (*a.get_xticklabels(), *a.get_yticklabels())]
        inside = not tick or any(
            low - 1 <= place <= high + 1
            for a in fig.axes
            for labels, (low, high), axis in (
                (a.get_xticklabels(), sorted(a.get_window_extent().intervalx), 0),
                (a.get_yticklabels(), sorted(a.get_window_extent().intervaly), 1),
            )
            if text in labels
            for place in [text.get_transform().transform(text.get_position())[axis]]
        )
        if text.get_text().strip() and text.get_visible() and inside:
            seen.append((text.get_text(), Text.get_window_extent(text, renderer)))
    return seen


@cache
def shared(case: str, width: float = 6.9) -> Figure:
    """A figure that tests only read."""
    return drawn(case, width=width)


WIDE = ("roofline", "padded", "step")


@pytest.mark.parametrize(("case", "width"), [*((c, 3.3) for c in CASES), *((c, 6.9) for c in WIDE)])
def test_no_text_lies_on_another_or_outside(case, width):
    fig = shared(case, width)
    found = texts(fig)
    assert len(found) > 8
    page = fig.bbox
    for text, box in found:
        assert box.x0 >= page.x0 - 1, text
        assert box.x1 <= page.x1 + 1, text
        assert box.y0 >= page.y0 - 1, text
        assert box.y1 <= page.y1 + 1, text
    for (a, first), (b, second) in combinations(found, 2):
        shrunk = (first.x0 + 1, first.x1 - 1, first.y0 + 1, first.y1 - 1)  # a pixel at 200 dpi is a third of a point
        apart = second.x0 >= shrunk[1] or second.x1 <= shrunk[0] or second.y0 >= shrunk[3] or second.y1 <= shrunk[2]
        assert apart, f"{a!r} on {b!r}"
    assert fig.axes[0].roofline_left_out == []
    assert fig.get_figwidth() == width


@pytest.mark.parametrize(("case", "style"), [("window", "dark"), ("roofline", "screen")])
def test_other_styles_keep_their_texts_apart_too(case, style):
    found = texts(drawn(case, width=6.9, style=style))
    clash = [(a, b) for (a, x), (b, y) in combinations(found, 2) if x.padded(-1).overlaps(y.padded(-1))]
    assert clash == []


def test_the_overlap_test_can_fail():
    fig = drawn("window", width=6.9)
    box = dict(texts(fig))["5,072"]
    place = fig.transFigure.inverted().transform(box.p0 + 3)
    fig.text(*place, "xx")
    found = texts(fig)
    assert any(x.padded(-1).overlaps(y.padded(-1)) for (_, x), (_, y) in combinations(found, 2))


def by_gid(ax) -> dict[str, object]:
    return {line.get_gid(): line for line in ax.get_lines() if line.get_gid()}


def test_roof_lines_are_the_law():
    """Each line is min(peak, bandwidth * intensity), the law of Williams et al., CACM 52(4), 2009, written out here."""
    ax = shared("roofline").axes[0]
    lines = by_gid(ax)
    roofs = data("roofline")["roofs"]
    assert {r["roof"] for r in roofs} == {"datasheet", "flashmla", "flashmla-kernel"}
    for r in roofs:
        line = lines[f"roof/{r['hardware']}/{r['roof']}/{r['precision']}"]
        for x, y in line.get_xydata():
            assert y * 1e12 == pytest.approx(min(r["peak_flop_per_s"], r["bandwidth_byte_per_s"] * x), rel=1e-12)
        [(x, y)] = lines[f"ridge/{r['hardware']}/{r['roof']}/{r['precision']}"].get_xydata()
        assert (x, y * 1e12) == pytest.approx((r["peak_flop_per_s"] / r["bandwidth_byte_per_s"], r["peak_flop_per_s"]))
    points = [line for gid, line in lines.items() if gid.startswith("point/")]
    assert len(points) == len(data("roofline")["points"]) > 4
    assert ax.get_xscale() == ax.get_yscale() == "log"


def test_head_lines_are_straight_and_cross_where_said():
    """2 H s (2d + r) / row bytes: 17/9 H for 1,152 B, 2 * 1088/656 H for FlashMLA's 656 B (design I1, I4)."""
    lines = by_gid(shared("heads").axes[0])
    for row, slope in ((1152, 17 / 9), (656, 2 * 1088 / 656)):
        for heads, intensity in lines[f"line/{row}"].get_xydata():
            assert intensity == pytest.approx(slope * heads, rel=1e-12)
    [(heads, ridge)] = lines["crossing/h800-sxm/flashmla/1152"].get_xydata()
    assert (heads, ridge) == pytest.approx((136.70, 865 / 3.35), rel=1e-4)  # FlashMLA deep-dive: 865 TFLOP/s, 3.35 TB/s


@pytest.mark.parametrize("case", ["oneshot", "padded", "window", "windows", "prefix"])
def test_curves_meet_at_every_crossing_and_are_those_of_the_answer(case):
    ax = shared(case).axes[0]
    found, key = data(case), data(case)["axis"]["key"]
    lines = by_gid(ax)
    assert found["crossings"]
    for line in found["lines"]:
        got = lines[f"line/{line['side']}/{'+'.join(map(str, line['series']))}"].get_xydata()
        scale = line[key][0] / got[0][1]
        assert [tuple(p) for p in got] == [
            (x, pytest.approx(y / scale, rel=1e-12)) for x, y in zip(line["unknown"], line[key], strict=True)
        ]
    for c in found["crossings"]:
        sides = [line for line in found["lines"] if c["series"] in line["series"]]
        first, second = (line[key][line["unknown"].index(c["value"])] for line in sides)
        assert first == pytest.approx(second, rel=1e-9) == pytest.approx(c[key], rel=1e-9)


def test_oneshot_curves_against_counts_written_out():
    """V3.2: MHA mode 2 (n + r + v) h (L + 1)/2, MQA mode 2 h (2d + r) (m(m + 1)/2 + (L - m) K)/L, m = min(L, K)."""
    lines = {line["side"]: line for line in data("oneshot")["lines"]}
    for length, mha, mqa in zip(
        lines["mha"]["unknown"], lines["mha"]["cost_flop"], lines["mqa"]["cost_flop"], strict=True
    ):
        m = min(length, 2048)
        assert mha == pytest.approx(2 * 320 * 128 * (length + 1) / 2, rel=1e-12)
        assert mqa == pytest.approx(2 * 128 * 1088 * (m * (m + 1) / 2 + (length - m) * 2048) / length, rel=1e-12)


def test_dots_of_a_step_lie_where_the_step_says_and_their_areas_are_shares():
    """Twice the share is twice the area, down to the smallest dot that can be seen; colour says the part."""
    ax, found = shared("step").axes[0], data("step")
    dots = [line for gid, line in by_gid(ax).items() if gid.startswith("point/")]
    rows = sorted(found["points"], key=lambda row: -row["share"])
    for dot, row in zip(dots, rows, strict=True):
        [(x, y)] = dot.get_xydata()
        assert dot.get_gid().endswith(row["name"])
        assert (x, y * 1e12) == pytest.approx((row["intensity_flop_per_byte"], row["attained_flop_per_s"]))
    area = {r["name"]: d.get_markersize() ** 2 for d, r in zip(dots, rows, strict=True)}
    share = {r["name"]: r["share"] for r in rows}
    for name in ("routed experts, down", "output projection", "queries from the latent"):
        big = "routed experts, gate and up"
        assert area[name] / area[big] == pytest.approx(share[name] / share[big])
    colors = {r["part"]: set() for r in rows}
    for dot, row in zip(dots, rows, strict=True):
        colors[row["part"]].add(dot.get_color())
        assert dot.get_marker() == "o", "marks of other shapes have other areas"
    assert all(len(c) == 1 for c in colors.values())
    assert len(set.union(*colors.values())) == len(colors)


def test_engines_measurements_and_window_are_marked():
    padded = [t.get_text().replace("\n", " ") for t in shared("padded").axes[0].get_legend().get_texts()]
    assert (
        "vLLM FLASHMLA_SPARSE (2026-07-31): own table, MHA up to 4,096 / 8,192 / 16,384 / 32,768 at TP 1/2/4/8"
        in padded
    )
    assert "SGLang nsa (2026-03-06): MHA up to 2,048" in padded
    assert "TensorRT-LLM (2026-02-24): MHA up to 10,240" in padded
    assert "TensorRT-LLM, as merged (2026-02-24): 0 = off" in padded
    assert any(t.startswith("measured, whole modules, h200-sxm") for t in padded)
    marks = by_gid(shared("padded").axes[0])
    assert marks["mark/0/4"].get_xdata()[0] == 16384
    window = shared("window").axes[0]
    assert [p.get_gid() for p in window.patches if p.get_gid()] == ["window/662"]
    assert "MHA mode cheaper: 662 to 5,072" in [t.get_text() for t in window.get_legend().get_texts()]


def test_axes_of_the_caller_are_used_and_returned():
    for case, function in (("roofline", plot_roofline), ("heads", plot_heads), ("padded", plot_crossover)):
        with styled():
            fig = Figure(figsize=(7, 5), layout="constrained")
            left, _ = fig.subplots(1, 2)
            assert function(data(case), ax=left) is left
        assert left.get_xlabel()
        assert re.search(r"\[.+\]", left.get_ylabel()), "quantity and unit"
        assert fig.get_figheight() == 5


def test_a_figure_is_its_json_document():
    answer = plot("heads", hardware="h800-sxm", roof="flashmla")
    read_back = json.loads(answer.to_json())
    assert to_bytes(draw("heads", answer.data), ".png") == to_bytes(draw("heads", read_back), ".png")


@pytest.mark.parametrize("suffix", [".pdf", ".svg", ".png"])
def test_equal_figures_are_equal_bytes_whatever_the_users_settings(suffix):
    first = to_bytes(shared("window", 3.3), suffix)
    with matplotlib.rc_context({"font.size": 23, "svg.hashsalt": None, "pdf.fonttype": 3, "text.hinting": "default"}):
        second = to_bytes(drawn("window", width=3.3), suffix)
    assert first == second
    for stamp in (b"CreationDate", b"<dc:date>", b"matplotlib.org", b"Software"):
        assert stamp not in first
    if suffix == ".pdf":
        assert b"/FontFile2" in first, "TrueType fonts, embedded"
        assert b"/Type3" not in first


def test_bytes_do_not_depend_on_the_hash_seed(tmp_path):
    code = "import sys, roofline; roofline.plot('heads', sys.argv[1], hardware='h800-sxm', width=3.3)"
    files = []
    for seed in ("1", "2"):
        files.append(tmp_path / f"{seed}.svg")
        subprocess.run(
            [sys.executable, "-c", code, files[-1]],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ".", "HOME": str(tmp_path)},
            check=True,
        )
    assert files[0].read_bytes() == files[1].read_bytes()


def test_pgf_needs_tex_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(canvas.shutil, "which", lambda name: None)
    with pytest.raises(NoAnswer, match="none of pdflatex, xelatex, lualatex is installed"):
        plot("heads", tmp_path / "a.pgf", hardware="h800-sxm")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not any(map(canvas.shutil.which, canvas.TEX_ENGINES)), reason="no TeX engine")
def test_pgf_escapes_names_and_puts_them_back(tmp_path):
    fig = drawn("oneshot", width=3.3)
    before = [t.get_text() for t in fig.findobj(Text)]
    save(fig, tmp_path / "a.pgf")
    assert r"FLASHMLA\_SPARSE" in (tmp_path / "a.pgf").read_text()
    assert [t.get_text() for t in fig.findobj(Text)] == before


def test_a_drawing_that_fails_leaves_no_file(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise KeyboardInterrupt

    fig = drawn("window")
    monkeypatch.setattr(Figure, "savefig", broken)
    with pytest.raises(KeyboardInterrupt):
        save(fig, tmp_path / "a.pdf")
    assert list(tmp_path.iterdir()) == []


def test_colours_are_okabe_ito_and_dashes_differ_as_well():
    for style in canvas.STYLES:
        with styled(style):
            cycle = list(matplotlib.rcParams["axes.prop_cycle"])
        colors, dashes = [c["color"] for c in cycle], [str(c["linestyle"]) for c in cycle]
        assert set(colors) <= OKABE_ITO
        assert len(set(colors)) == len(set(dashes)) == len(cycle) == 7


def test_wrong_names_and_sizes():
    with pytest.raises(UnknownName, match="paper, screen, dark"):
        figure("heads", style="sepia")
    with pytest.raises(UnknownName, match="roofline, heads, crossover"):
        figure("pie")
    with pytest.raises(BadValue, match=r"2\.5 to 20 inches"):
        figure("heads", width=0.1)
    with pytest.raises(BadValue, match=r"\.pdf, \.svg, \.png, \.pgf"):
        plot("heads", "a.gif")
