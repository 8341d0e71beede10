"""Break the formulas one at a time and see whether the tests notice: ``python tests/mutants.py``.

Three groups:

    kernels        every term of every Kernel: dropped; an axis dropped, doubled or swapped (`h` for `H`); the width,
                   the resource or a default changed.  Checked in-process against the brute-force counters.
    visibilities   every node of the pairs and of the rows read: Min for Max, a constant moved by one, a part dropped, a
                   symbol swapped.  Checked in-process in the same way.
    source         law.py, visibility.py and the files of the solver, mutated in the syntax tree (operators,
                   comparisons, constants, Min and Max, and/or, if/else branches), in a copy of the tree; the test files
                   that cover the module run in a subprocess.  A run beyond the time limit counts as killed.

Prints killed/total a group and the survivors.  Exit code 1 where a group (the solver's files are one) is below 90 %.
`--group`, `--limit N` (of each source file; without it all of law.py and visibility.py and a fixed sample of the
solver), `--jobs`.
"""

# ruff: noqa: E402
from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import sympy as sp

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(HERE)]

import test_counts
from mutants_source import source_variants

from roofline.kernel import Kernel, Term
from roofline.kernels import KERNELS
from roofline.symbols import sym
from roofline.visibility import Visibility

SWAPS = {
    "h": "Hg", "H": "h", "n": "vr", "v": "nr", "d": "rv", "r": "dn", "p": "k", "k": "ps", "s": "kp", "i": "js",
    "j": "ie", "e": "d", "m": "f", "f": "m", "t": "s", "K": "s", "b": "s", "g": "h",
}  # fmt: skip
WIDTHS = {
    "w_act": "w_kv", "w_weight": "w_act", "w_expanded": "w_kv", "w_kv": "w_act", "w_index": "w_act",
    "w_logit": "w_index", "kv_row_bytes": "expanded_row_bytes", "expanded_row_bytes": "kv_row_bytes",
    "index_row_bytes": "kv_row_bytes",
}  # fmt: skip
SYMBOLS = WIDTHS | {
    "context": "q_len", "q_len": "context", "topk": "window", "window": "topk", "prefix": "context", "batch": "q_len",
    "latent": "rope", "rope": "nope", "nope": "value", "value": "nope", "heads": "kernel_heads", "kv_heads": "heads",
    "head_dim": "latent", "index_head_dim": "index_heads",
}  # fmt: skip
RESOURCES = {
    "tensor": "vector",
    "vector": "tensor",
    "exp": "vector",
    "read": "write",
    "write": "read",
}
SOLVING = ("test_solver*.py", "test_crossover*.py", "test_sensitivity*.py")
SOURCES: dict[str, tuple[str, ...]] = {  # module -> test files that cover it, the quickest first
    "law.py": ("test_law.py", "test_laws.py"),
    "visibility.py": ("test_laws.py", "test_visibility*.py", "test_counts.py"),
    "solver/__init__.py": SOLVING,
    "solver/numbers.py": SOLVING,
    "solver/symbolic.py": SOLVING,
    "solver/branches.py": SOLVING,
    "solver/rational.py": SOLVING,
    "solver/ordered.py": ("test_solver_ordered.py", *SOLVING),
    "solver/coefficients.py": SOLVING,
}
SAMPLE = {"law.py": None, "visibility.py": None}  # all of them; of the other files a fixed sample
USUAL_SAMPLE = 16
_CACHED, _SLOWER = "it is how many results are kept, which only time can tell", "the general way gives the same, slower"
_SURDS = "if one is not None and two is not None and (one.d == two.d or not one.d or not two.d):"
_COMMON = "common = _common(top, bottom) if len(bottom) > 1 and len(top) > 1 else [1]"
EQUIVALENT: dict[tuple[str, str], str] = {  # source mutants that change nothing, (file, description) -> why
    ("law.py", "256 + 1: @lru_cache(maxsize=256)"): _CACHED,
    ("solver/rational.py", "4096 + 1: @lru_cache(maxsize=4096)"): _CACHED,
    ("solver/rational.py", "Not dropped: if part is None or not all(part):"): _SLOWER,
    ("solver/rational.py", "all is any: if part is None or not all(part):"): "sympy leaves no zero under a power",
    (
        "solver/rational.py",
        "Gt is GtE: share = gcd(*coefficients) * (1 if coefficients[0] > 0 else -1) or 1",
    ): "the leading coefficient is zero for the zero polynomial alone, whose gcd is zero too",
    (
        "solver/rational.py",
        "0 + 1: return sign_of(_whole(poly), Surd(int(point.p), 0, 0, int(point.q)))",
    ): "a root of zero, and none of a root, are both zero",
    ("solver/ordered.py", "4096 + 1: @lru_cache(maxsize=4096)"): _CACHED,
    (
        "solver/ordered.py",
        "0 + 1: return left if square > 0 else right if square < 0 else 0",
    ): "the root of a whole number that is no square is never a rational",
    ("solver/ordered.py", f"and/or: {_SURDS}"): _SLOWER,
    (
        "solver/ordered.py",
        "GtE is Gt: part = root if at.q >= 0 else -root - (root * root != square)",
    ): "without a root both are zero",
    ("solver/coefficients.py", f"Gt is GtE: {_COMMON}"): "the common factor of a constant is a number, taken out below",
    (
        "solver/coefficients.py",
        "FloorDiv is Mult: a, b = b, [c // share for c in rest]",
    ): "the numbers grow, and are made primitive in the end",
    (
        "solver/numbers.py",
        "LtE is Lt: if order(piece.low, a) <= 0 and order(b, piece.high) <= 0:",
    ): _SLOWER,
    (
        "solver/numbers.py",
        "Gt is GtE: elif (residual := residual_at(problem, value)) > TOLERANCE:",
    ): "no residual is 1e-12 to the last digit",
}
TIME_LIMIT = 120


GRID = {
    "context": range(9),
    "q_len": range(1, 7),
    "topk": range(1, 11),
    "window": range(1, 11),
    "prefix": range(9),
    "batch": (1, 3),
}


class Mutant(NamedTuple):
    """One change: what, the check that must fail, and the expression before and after where there is one."""

    what: str
    check: Callable[[], Any]
    before: sp.Expr | None = None
    after: sp.Expr | None = None


def survives(mutant: Mutant) -> bool:
    """Whether the check passes all the same."""
    try:
        mutant.check()
    except Exception:
        return False
    return True


def equivalent(mutant: Mutant) -> bool:
    """Whether the changed visibility has the same value on every point of a dense grid of its domain."""
    if mutant.before is None or mutant.after is None:
        return False
    names = sorted(s.name for s in mutant.before.free_symbols | mutant.after.free_symbols)
    if not set(names) <= set(GRID):
        return False
    one, two = (sp.lambdify([getattr(sym, n) for n in names], e, "math") for e in (mutant.before, mutant.after))
    points = (dict(zip(names, values, strict=True)) for values in product(*(GRID[n] for n in names)))
    return all(one(**p) == two(**p) for p in points if p.get("prefix", 0) <= p.get("context", 9))


# Kernels and visibilities


def changed_terms(term: Term) -> Iterator[tuple[str, Term | None]]:
    """Every change of one term; None drops it."""
    yield "dropped", None
    letters = term.axes.split()
    for at, letter in enumerate(letters):
        rest = letters[:at] + letters[at + 1 :]
        yield f"axis {letter} dropped", term._replace(axes=" ".join(rest))
        yield f"axis {letter} doubled", term._replace(axes=" ".join([letter, *letters]))
        for other in SWAPS[letter]:
            yield f"axis {letter} is {other}", term._replace(axes=" ".join([*rest, other]))
    if isinstance(term.amount, int):
        yield "amount + 1", term._replace(amount=term.amount + 1)
        yield "amount doubled", term._replace(amount=2 * term.amount)
    else:
        yield (
            f"{term.amount} is {WIDTHS[term.amount.name]}",
            term._replace(amount=getattr(sym, WIDTHS[term.amount.name])),
        )
        yield f"{term.amount} halved", term._replace(amount=term.amount / 2)
    yield f"{term.resource} is {RESOURCES[term.resource]}", term._replace(resource=RESOURCES[term.resource])


def changed_nodes(expr: sp.Expr) -> Iterator[tuple[str, sp.Expr]]:
    """Every change of one node of an expression."""
    if isinstance(expr, (sp.Max, sp.Min)):
        other = sp.Min if isinstance(expr, sp.Max) else sp.Max
        yield f"{expr.func.__name__} is {other.__name__}", other(*expr.args, evaluate=False)
    if expr.is_Number:
        yield f"{expr} + 1", expr + 1
        yield f"{expr} - 1", expr - 1
    if expr.is_Symbol and expr.name in SYMBOLS:
        yield f"{expr} is {SYMBOLS[expr.name]}", getattr(sym, SYMBOLS[expr.name])
    keep = {"evaluate": False} if isinstance(expr, (sp.Max, sp.Min)) else {}
    for at, part in enumerate(expr.args):
        if len(expr.args) > 1 and not expr.is_Pow:
            yield f"{part} dropped from {expr}", expr.func(*expr.args[:at], *expr.args[at + 1 :], **keep)
        for what, new in changed_nodes(part):
            yield (
                f"{what} in {expr}" if len(str(expr)) < 50 else what,
                expr.func(*expr.args[:at], new, *expr.args[at + 1 :], **keep),
            )


def kernel_mutants() -> Iterator[Mutant]:
    """Changes of the terms, and of what is bound by default."""
    for name in test_counts.NAMES:
        kernel = KERNELS[name]
        for at, term in enumerate(kernel.terms):
            for what, new in changed_terms(term):
                terms = (*kernel.terms[:at], *([new] if new else []), *kernel.terms[at + 1 :])
                mutant = kernel.named(name, terms=terms)
                if not _same(mutant, kernel):
                    yield Mutant(
                        f"{name}, {term.resource} {term.axes!r}: {what}", lambda k=mutant: test_counts.check_kernel(k)
                    )
        for symbol, value in kernel.bindings.items():
            if symbol.name in ("w_index", "w_logit"):
                continue  # a plain number; the counters bind it anew, so that any width is checked
            for what, expr in changed_nodes(value):
                mutant = kernel.bind()
                mutant.bindings = kernel.bindings | {symbol: expr}
                yield Mutant(f"{name}, {symbol}: {what}", lambda k=mutant: test_counts.check_kernel(k), value, expr)


def _same(one: Kernel, other: Kernel) -> bool:
    return all(one.total(r) == other.total(r) for r in RESOURCES)


def visibility_mutants() -> Iterator[Mutant]:
    """Changes of the pairs and of the rows read."""
    for name, sight in test_counts.SIGHTS.items():
        law = sight.law
        for part in ("pairs", "rows_read"):
            for what, expr in changed_nodes(getattr(law, part)):
                bound = {"pairs": law.pairs, "rows_read": law.rows_read, part: expr}
                mutant = Visibility(law.name, bound["pairs"], bound["rows_read"])
                if expr != getattr(law, part):
                    check = lambda n=name, v=mutant: test_counts.check_visibility(n, v)  # noqa: E731
                    yield Mutant(f"{name}, {part}: {what}", check, getattr(law, part), expr)


# Source


def covering(module: str) -> list[str]:
    """The test files that cover a module, as far as they exist."""
    return [str(p.relative_to(ROOT)) for pattern in SOURCES[module] for p in sorted(HERE.glob(pattern))]


def passes(tree: Path, tests: list[str]) -> bool:
    """Whether the tests pass on a copy of the tree."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", *tests]
    env = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "HYPOTHESIS_PROFILE": "mutants"}
    try:
        done = subprocess.run(command, cwd=tree, env=env, capture_output=True, timeout=TIME_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def copies(count: int, folder: str) -> SimpleQueue[Path]:
    """Copies of what the tests need, one a worker."""
    queue: SimpleQueue[Path] = SimpleQueue()
    for number in range(count):
        tree = Path(folder) / str(number)
        tree.mkdir()
        for name in ("roofline", "tests"):
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "hardware.yaml"):
            if (ROOT / name).exists():
                shutil.copy(ROOT / name, tree / name)
        queue.put(tree)
    return queue


def run_source(module: str, limit: int | None, jobs: int) -> tuple[int, list[str]]:
    """(how many mutants, the survivors) of one source file."""
    tests, text = covering(module), (ROOT / "roofline" / module).read_text(encoding="utf-8")
    variants = list(source_variants(text))
    if limit and len(variants) > limit:
        variants = sorted(random.Random(0).sample(variants, limit), key=lambda v: int(v[0].split()[1][:-1]))
    with tempfile.TemporaryDirectory() as folder:
        queue = copies(jobs, folder)
        first = queue.get()
        if not passes(first, tests):
            raise SystemExit(f"{module}: {' '.join(tests)} fail before anything is changed")
        queue.put(first)

        def lives(variant: tuple[str, str]) -> bool:
            tree = queue.get()
            try:
                (tree / "roofline" / module).write_text(variant[1], encoding="utf-8")
                return passes(tree, tests)
            finally:
                queue.put(tree)

        with ThreadPoolExecutor(jobs) as pool:
            alive = list(pool.map(lives, variants))
    return len(variants), [what for (what, _), lived in zip(variants, alive, strict=True) if lived]


def main() -> int:
    """Run the groups and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", action="append", choices=("kernels", "visibilities", *SOURCES))
    parser.add_argument("--limit", type=int, help="at most N mutants of each source file")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    why, families = dict(EQUIVALENT), dict[str, list[int]]()
    for group in args.group or ("kernels", "visibilities", *SOURCES):
        if group in SOURCES:
            if not (ROOT / "roofline" / group).exists() or not covering(group):
                print(f"{group}: no such file or no tests for it, skipped")
                continue
            total, survivors = run_source(group, args.limit or SAMPLE.get(group, USUAL_SAMPLE), args.jobs)
        else:
            mutants = list({"kernels": kernel_mutants, "visibilities": visibility_mutants}[group]())
            alive = [m for m in mutants if survives(m)]
            total, survivors = len(mutants), [m.what for m in alive]
            why |= {(group, m.what): "it has the same value on the whole grid" for m in alive if equivalent(m)}
        known = {s: why.get((group, s)) or why.get((group, s.partition(": ")[2])) for s in survivors}
        equal = [s for s in survivors if known[s]]
        killed, counted = total - len(survivors), total - len(equal)
        family = families.setdefault("solver" if group.startswith("solver/") else group, [0, 0])
        family[0], family[1] = family[0] + killed, family[1] + counted
        print(
            f"{group}: {killed}/{counted} killed ({killed / counted:.1%})"
            + (f", {len(equal)} equivalent left out" if equal else "")
        )
        for what in survivors:
            print(f"    {'equivalent' if what in equal else 'survived'}: {what}")
            if what in equal:
                print(f"        because {known[what]}")
        sys.stdout.flush()
    for name, (killed, counted) in families.items():  # each by itself: the many kernel mutants would hide a weak file
        verdict = "" if killed >= 0.9 * counted else ", too few"
        print(f"{name}: {killed}/{counted} killed ({killed / counted:.1%}){verdict}")
    return 0 if all(killed >= 0.9 * counted for killed, counted in families.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
