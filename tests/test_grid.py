"""Open grids: equal to one point at a time, whatever the order of axes, block size and number of threads."""

from __future__ import annotations

import itertools
import threading
import tracemalloc

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline import grid
from roofline._generated import kernels
from roofline.codegen import compiled
from roofline.errors import BadValue, UnknownName
from roofline.evaluate import evaluate, expression, parameters
from roofline.grid import blocks, evaluate_grid, parse_grid
from roofline.grid.fusion import Fusion
from roofline.kernels import KERNELS
from roofline.law import time_lower, time_upper
from roofline.symbols import sym
from roofline.visibility import dense, topk

STEP = (KERNELS["mla_absorption"] + KERNELS["mla_mqa"] + KERNELS["mla_unabsorption"]).bind(
    **dense().bindings(), kernel_heads=sym.heads
)
FIXED = {"q_len": 1, "latent": 512, "rope": 64, "nope": 128, "value": 128, "w_act": 2, "w_kv": 2, "w_weight": 1}
CHIPS = {"peak": [1e15, 2.25e15, 5e14], "bandwidth": [3.35e12, 8e12, 1.5e12], "exp_rate": [4e12, 5e12, 1e12],
         "label": ["a", "b", "c"]}  # fmt: skip
AXES = {"chips": CHIPS, "heads": [16, 128], "batch": [1, 7, 32, 100, 300], "context": [0, 100, 8192, 10**6]}


def mesh(axes: dict[str, object]) -> dict[str, np.ndarray]:
    """Dense columns of a mesh by another way: itertools.product."""
    columns = [c if isinstance(c, dict) else {name: c} for name, c in axes.items()]
    rows = list(itertools.product(*(range(len(next(iter(c.values())))) for c in columns)))
    shape = [len(next(iter(c.values()))) for c in columns]
    return {
        name: np.array([column[row[i]] for row in rows], dtype=float).reshape(shape)
        for i, table in enumerate(columns)
        for name, column in table.items()
        if name != "label"
    }


CASES = [(k, q) for k, row in kernels.QUANTITIES.items() for q, f in row.items() if parameters(f)]


@pytest.mark.parametrize("kernel", KERNELS)
@settings(max_examples=2)
@given(data=st.data())
def test_every_kernel_on_a_grid_is_what_its_points_are(kernel: str, data: st.DataObject) -> None:
    exprs = {q: expression(kernel, q) for k, q in CASES if k == kernel}
    names = sorted({s.name for e in exprs.values() for s in e.free_symbols})
    axes = {
        n: data.draw(st.lists(st.integers(1, 9000), min_size=1, max_size=4), n)
        for n in data.draw(st.permutations(names))[:3]
    }
    constants = {n: data.draw(st.integers(1, 9000), n) for n in names if n not in axes}
    found = evaluate_grid(exprs, axes, block=data.draw(st.integers(1, 20)), **constants)
    points = mesh(axes)
    for quantity, e in exprs.items():
        values = {n: points.get(n, constants.get(n)) for n in parameters(compiled(e))}
        exact = np.vectorize(lambda *v, e=e, n=tuple(values): compiled(e)(**dict(zip(n, v, strict=True))))(
            *values.values()
        )
        assert found.values[quantity] == pytest.approx(np.broadcast_to(exact, found.shape), rel=1e-13)


@given(
    order=st.permutations(list(AXES)), block=st.sampled_from([1, 2, 3, 7, 40, 100, 1000]), threads=st.integers(1, 3),
    whole=st.sampled_from([0, 100, 1 << 20]),
)  # fmt: skip
def test_order_of_axes_blocks_and_threads_change_nothing(
    order: list[str], block: int, threads: int, whole: int
) -> None:
    base = evaluate_grid(time_lower(STEP), AXES, **FIXED)
    before, blocks.WHOLE = blocks.WHOLE, whole
    try:
        other = evaluate_grid(time_lower(STEP), {n: AXES[n] for n in order}, block=block, threads=threads, **FIXED)
    finally:
        blocks.WHOLE = before
    assert other.shape == tuple(len(CHIPS["peak"]) if n == "chips" else len(AXES[n]) for n in order)
    assert [a.name for a in other.axes] == list(order)
    back = other.value.transpose([list(order).index(n) for n in AXES])
    assert back == pytest.approx(base.value, rel=1e-14)
    assert base.value == pytest.approx(evaluate(time_lower(STEP), **mesh(AXES), **FIXED), rel=1e-14)


LEFT = sym.heads * sym.batch + sym.q_len * sym.context  # all on every axis: branches that live in buffers
RIGHT = sym.heads - sym.batch * sym.q_len / (sym.context + 1)
MIXED = sym.heads * sym.q_len > sym.batch + sym.context
EXOTIC = {
    "piecewise": sp.Piecewise(
        (sp.log(sym.heads) / sym.batch, sym.heads > sym.batch), (sym.q_len, sym.context < 5), (-1, True)
    ),
    "whole branches": sp.Piecewise((LEFT, MIXED), (RIGHT, True)),
    "swapped": sp.Piecewise((RIGHT, MIXED), (LEFT, True)),
    "inside": sp.Piecewise((LEFT, MIXED), (RIGHT, True)) * RIGHT - sp.Piecewise((RIGHT, MIXED), (LEFT, True)),
    "inside too": sp.Piecewise((LEFT, MIXED), (RIGHT, True)) * RIGHT
    - sp.Piecewise((LEFT, sym.batch > 6), (RIGHT, True)),
    "tiles": sp.ceiling(sym.batch * sym.q_len / 75) * 75 / sym.heads - sp.floor(sym.context / 3),
    "powers": sym.heads**2 + sym.batch**3 + sym.q_len**4 + sp.sqrt(sym.batch) ** 3 - sym.heads ** sp.Rational(-2, 3),
    "exp": sp.exp(-sym.heads / 100) - sp.Abs(sym.batch - sym.heads) + sp.Heaviside(sym.batch - sym.heads),
    "logic": sp.Piecewise((1, (sym.heads > 3) & ~(sym.batch > 9) | (sym.q_len > 2)), (0, True)),
    "constant": sp.Rational(1, 3),
    "only one axis": 2 * sym.batch,
    "the same": 2 * sym.batch,
    "minus": -sym.heads - sym.batch * sym.context,
    "inverse": 1 / (sym.heads * (sym.batch + sym.context)),
}


@settings(max_examples=12)
@given(block=st.integers(1, 200), threads=st.integers(1, 2), whole=st.sampled_from([0, 1 << 20]))
def test_every_operation_runs_in_blocks(block: int, threads: int, whole: int) -> None:
    axes = {"heads": [1, 2, 8, 17], "batch": [1, 5, 75, 150, 525], "q_len": [1, 3], "context": [0, 1, 4, 9, 11, 30]}
    before, blocks.WHOLE = blocks.WHOLE, whole
    try:
        found = evaluate_grid(EXOTIC, axes, block=block, threads=threads).values
        alone = {name: evaluate_grid(e, axes, block=block).value for name, e in EXOTIC.items()}  # nothing is shared
    finally:
        blocks.WHOLE = before
    points = mesh(axes)
    for name, e in EXOTIC.items():
        exact = np.broadcast_to(evaluate(e, **points), (4, 5, 2, 6))
        for values in (found[name], alone[name]):
            np.testing.assert_allclose(values, exact, rtol=1e-13, err_msg=name)
            assert values.dtype == np.float64


def test_steps_run_on_the_axes_they_depend_on_only() -> None:
    """Of the decode step on 4 axes, 6 operations need the whole mesh: 3 products, 2 maxima, 1 sum."""
    axis_of = {"peak": 0, "bandwidth": 0, "exp_rate": 0, "heads": 1, "batch": 2, "context": 3}
    fusion = Fusion([time_lower(STEP)], axis_of, [10, 11, 100, 1000])
    full = [s.op for s in fusion.steps if s.mask == 0b1111]
    assert sorted(full) == ["add", "maximum", "maximum", "multiply", "multiply", "multiply"]


def test_memory_grows_by_the_output_and_little_more() -> None:
    axes = AXES | {"batch": np.arange(1, 51), "context": np.arange(1, 2001)}
    expr = time_lower(STEP) + time_upper(STEP)
    evaluate_grid(expr, AXES, **FIXED)
    tracemalloc.start()
    try:
        found = evaluate_grid(expr, axes, **FIXED)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.value.nbytes == 8 * 3 * 2 * 50 * 2000
    assert peak < found.value.nbytes + (8 << 20)  # far below the 64 MiB promised: buffers are cache-sized


def test_a_grid_beyond_memory_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "available_bytes", lambda: 100 << 20)
    axes = {"heads": np.arange(1, 3001), "batch": np.arange(1, 2001)}
    with pytest.raises(
        BadValue,
        match=r"grid: got '3000 x 2000 points', expected at most 104.9 MB of memory \(it would need 115.1 MB\)",
    ):
        evaluate_grid(sym.heads * sym.batch, axes)
    with pytest.raises(BadValue, match="of memory"):
        evaluate_grid({str(i): sym.heads + i for i in range(7)}, {"heads": np.ones(1_000_000)})


def test_an_absurd_grid_is_refused_at_once() -> None:
    axes = {n: np.arange(1, 100_001) for n in ("heads", "batch", "latent", "rope", "topk", "context")}
    tracemalloc.start()
    try:
        with pytest.raises(BadValue, match="100000 x 100000"):  # 1e30 points overflow an int64
            evaluate_grid(sum(getattr(sym, n) for n in axes), axes)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_available_memory_is_a_plausible_number() -> None:
    assert 1 << 20 < grid.available_bytes() < 1 << 50


def test_progress_counts_up_to_all_blocks() -> None:
    seen: list[tuple[int, int]] = []
    evaluate_grid(
        time_lower(STEP), AXES, block=10, threads=1, progress=lambda done, of: seen.append((done, of)), **FIXED
    )
    assert len({of for _, of in seen}) == 1
    assert [done for done, _ in seen] == [*range(1, seen[0][1] + 1), seen[0][1]]


def test_an_interrupt_stops_every_thread_and_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    real = blocks.Mesh._bounds
    monkeypatch.setattr(blocks.Mesh, "_bounds", lambda self, number: taken.append(number) or real(self, number))

    def interrupt(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate_grid(
            time_lower(STEP),
            AXES | {"context": np.arange(1, 30_001)},
            block=100,
            threads=2,
            progress=interrupt,
            **FIXED,
        )
    assert len(taken) < 3 * 2 * 5 * 300 / 2  # of 9,000 blocks; the helper runs on for a moment
    assert not [t for t in threading.enumerate() if t.name.startswith("Thread-") and t.is_alive()]


def test_an_error_in_a_helper_thread_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    here = threading.current_thread()
    real = blocks.Mesh._bounds

    def fails(self: blocks.Mesh, number: int) -> object:
        if threading.current_thread() is not here:
            raise ValueError("in the helper")
        return real(self, number)

    monkeypatch.setattr(blocks.Mesh, "_bounds", fails)
    started = threading.Event()

    def wait(done: int, of: int) -> None:
        started.wait(5)  # gives the helper time to take a block

    class Waiting(threading.Thread):
        def run(self) -> None:
            super().run()
            started.set()

    monkeypatch.setattr(blocks.threading, "Thread", Waiting)
    with pytest.raises(ValueError, match="in the helper"):
        evaluate_grid(time_lower(STEP), AXES | {"context": np.arange(1, 30_001)}, threads=2, progress=wait, **FIXED)


def test_tables_come_in_the_order_of_the_axes() -> None:
    found = evaluate_grid({"t": time_lower(STEP)}, AXES, **FIXED)
    rows = list(found.blocks(17))
    table = {k: np.concatenate([b[k] for b in rows]) for k in rows[0]}
    assert list(table) == ["chips", "peak", "bandwidth", "exp_rate", "heads", "batch", "context", "t"]
    assert table["t"].tolist() == found.values["t"].ravel().tolist()
    assert table["chips"].tolist() == [c for c in "abc" for _ in range(40)]
    flat = {n: c.ravel() for n, c in mesh(AXES).items()}
    assert all(table[n].tolist() == flat[n].tolist() for n in flat)
    assert sum(len(b["t"]) for b in rows) == 120


def test_no_axes_is_one_point() -> None:
    found = evaluate_grid(2 * sym.heads, {}, heads=4)
    assert found.shape == found.value.shape == ()
    assert found.value == 8


@pytest.mark.parametrize(
    ("axes", "constants", "error", "told"),
    [
        ({"heads": [1, 2]}, {}, BadValue, r"got only heads, expected also batch \[1\] \(sequences in the step\)"),
        ({"head": [1, 2]}, {"batch": 1}, UnknownName, "heads"),
        ({"heads": [1, 0]}, {"batch": 1}, BadValue, r"heads\[1\]: got 0"),
        ({"heads": [1, float("nan")]}, {"batch": 1}, BadValue, "nan"),
        ({"heads": []}, {"batch": 1}, BadValue, "at least one"),
        ({"heads": 3}, {"batch": 1}, BadValue, "list"),
        ({"heads": [[1, 2]]}, {"batch": 1}, BadValue, "list"),
        ({"heads": ["a"]}, {"batch": 1}, BadValue, "numbers"),
        ({"heads": [1, 2]}, {"batch": 1, "heads": 3}, BadValue, "once"),
        ({"x": {"heads": [1, 2], "batch": [1]}}, {}, BadValue, "one length"),
        ({"x": {"heads": [1, 2], "label": ["a"]}}, {"batch": 1}, BadValue, "one length"),
        ({"x": {}}, {"batch": 1}, BadValue, "one length"),
        ({"heads": [1, 2]}, {"batch": -1}, BadValue, "batch: got -1"),
        ({"heads": [1, 2]}, {"batch": [1, 2]}, BadValue, "batch"),
    ],
)
def test_bad_grids_are_told(axes: dict[str, object], constants: dict[str, object], error: type, told: str) -> None:
    with pytest.raises(error, match=told):
        evaluate_grid(sym.heads * sym.batch, axes, **constants)  # type: ignore[arg-type]


def test_integer_axes_do_not_overflow() -> None:
    big = np.array([10**9, 2 * 10**9], dtype=np.int64)
    assert (
        evaluate_grid(sym.heads * sym.batch * sym.latent, {"heads": big, "batch": big}, latent=10**9).value[1, 1]
        == 4e27
    )


def test_sparse_pairs_on_a_grid_are_the_brute_count() -> None:
    s, c, k = [1, 2, 9], [0, 3, 8, 30], [1, 4, 10]
    found = evaluate_grid(topk().pairs, {"topk": k, "q_len": s, "context": c}, block=5).value
    for (i, top), (j, new), (n, old) in itertools.product(*map(enumerate, (k, s, c))):
        assert found[i, j, n] == sum(min(old + q, top) for q in range(1, new + 1))


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("heads=1,2,128", "heads", [1, 2, 128]),
        (" heads = 1e2 , 3_000", "heads", [100, 3000]),
        ("context=0,1", "context", [0, 1]),
        ("batch=1:512:log2", "batch", [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]),
        ("batch=3:20:log2", "batch", [3, 6, 12]),
        ("batch=5:5:log2", "batch", [5]),
        ("context=0:8:lin:5", "context", [0, 2, 4, 6, 8]),
        ("batch=1:1000:log:4", "batch", [1, 10, 100, 1000]),
        ("kv-row-bytes=656,1152", "kv_row_bytes", [656, 1152]),
        ("bandwidth=3.35TB/s,4.8 TB/s", "bandwidth", [3.35e12, 4.8e12]),
        ("bandwidth=1e12:4e12:log2", "bandwidth", [1e12, 2e12, 4e12]),
    ],
)
def test_grids_of_the_command_line(text: str, name: str, values: list[float]) -> None:
    found, array = parse_grid(text)
    assert found == name
    assert array.dtype == np.float64
    assert array.tolist() == pytest.approx(values, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("heads", "name=a,b,c"), ("heads=", "name=a,b,c"), ("=1,2", "unknown quantity"), ("haeds=1", "heads"),
        ("heads=0", "heads: got 0"), ("heads=-1,2", "heads: got '-1'"), ("heads=nan", "heads: got 'nan'"),
        ("heads=1e400", "heads"), ("heads=inf", "heads"), ("heads=1,,2", "heads: got ''"),
        ("heads=__import__('os')", "finite number > 0"), ("heads=2**9", "finite number"),
        ("heads=8:1:log2", "lo at most hi"),
        ("heads=1:8", "lo:hi:log2"), ("heads=1:8:log3", "lo:hi:log2"), ("heads=1:8:lin", "lo:hi:lin:n"),
        ("heads=1:8:lin:1", "from 2 to"), ("heads=1:8:lin:2.5", "whole number"), ("heads=1:8:log:-3", "whole number"),
        ("heads=1:8:lin:99999999999", "from 2 to 10,000,000"), ("context=0:8:log2", "above 0"),
        ("context=0:8:log:4", "above 0"), ("heads=1:8:log2:3", "lo:hi"), ("heads=1:8:lin:²", "whole number"),
        ("bandwidth=3TB", "B/s"), ("tp=1.5", "whole number"),
    ],
)  # fmt: skip
def test_bad_grids_of_the_command_line_are_told(text: str, told: str) -> None:
    with pytest.raises((BadValue, UnknownName), match=told):
        parse_grid(text)
