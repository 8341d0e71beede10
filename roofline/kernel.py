r"""A kernel is a short list of terms: a resource, the axes it runs over, and the amount per element.

FLOPs, bytes, exponentials, intensity, LaTeX, limits, head counts, crossovers, times and sweeps all follow from that
one list.  No FLOP or byte formula is written anywhere else.

>>> from roofline.symbols import sym
>>> dot = Kernel("dot", Mac("t m"), Read("t m", sym.w_act), title="row times vector", source="definition")
>>> dot.flops, dot.bytes, dot.intensity
(2*hidden*tokens, hidden*tokens*w_act, 2/w_act)
>>> dot.bind(w_act=2).intensity
1

Axes are letters; `AXES` says which quantity each one runs over.  `h` is a real head and `H` a head as the kernel runs
it (padded); `p` is a visible (query, key) pair and `k` a cache row read.  A `Visibility` binds the last two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import sympy as sp

from roofline.errors import BadValue, UnknownName
from roofline.symbols import SYMBOLS, Expr, exact, latex, replaced, symbol

AXES: Mapping[str, str] = {
    "b": "batch", "s": "q_len", "p": "pairs", "k": "rows_read", "t": "tokens", "K": "topk",
    "h": "heads", "H": "kernel_heads", "g": "kv_heads", "e": "head_dim",
    "d": "latent", "q": "q_latent", "r": "rope", "n": "nope", "v": "value",
    "i": "index_heads", "j": "index_head_dim", "m": "hidden", "f": "ffn",
    "a": "routed_tokens", "x": "distinct_experts", "z": "state_heads", "G": "state_groups", "y": "state_key",
    "u": "state_value", "c": "conv", "o": "conv_channels", "l": "chunk",
}  # fmt: skip
RESOURCES = ("tensor", "vector", "exp", "read", "write", "link")
SEEN = frozenset((symbol("pairs"), symbol("rows_read")))  # what a visibility binds; no other binding uses them
QUANTITIES = ("flops", "vector_flops", "exps", "bytes", "intensity")


@lru_cache(maxsize=1024)
def _factored(expr: Expr) -> Expr:
    """`sympy.factor_terms`, worked out once for an expression."""
    return sp.factor_terms(expr)


class Term(NamedTuple):
    """`amount` units of `resource` for each element of the product of `axes`.

    amount: a number, an expression, or the name of a quantity such as "w_kv".
    """

    resource: str
    axes: str
    amount: Any
    label: str = ""


def Mac(axes: str, label: str = "") -> Term:
    """One multiply-add (2 FLOP) of the tensor unit per element."""
    return Term("tensor", axes, 2, label)


def Vector(axes: str, amount: Any = 1, label: str = "") -> Term:
    """`amount` operations of the vector unit per element."""
    return Term("vector", axes, amount, label)


def Exp(axes: str, label: str = "softmax") -> Term:
    """One exponential of the special-function unit per element."""
    return Term("exp", axes, 1, label)


def Read(axes: str, width: Any, label: str = "") -> Term:
    """`width` bytes read from memory per element."""
    return Term("read", axes, width, label)


def Write(axes: str, width: Any, label: str = "") -> Term:
    """`width` bytes written to memory per element."""
    return Term("write", axes, width, label)


def per_byte(flops: Any, moved: Any) -> Any:
    """Arithmetic intensity, tensor FLOPs over bytes moved [FLOP/B], of expressions or numbers."""
    return flops / moved


class Cost:
    """What a kernel and a sequence of kernels have in common: totals, and how they are shown."""

    name: str
    title: str

    def total(self, *resources: str) -> Expr:
        """The sum of the terms that use these resources, as a plain sympy expression."""
        raise NotImplementedError

    def bind(self, **values: Any) -> Cost:
        """The same cost with quantities replaced by numbers or expressions."""
        raise NotImplementedError

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that run one after the other."""
        raise NotImplementedError

    @cached_property
    def flops(self) -> Expr:
        """Tensor-unit operations [FLOP]."""
        return self.total("tensor")

    @cached_property
    def vector_flops(self) -> Expr:
        """Vector-unit operations [FLOP]."""
        return self.total("vector")

    @cached_property
    def exps(self) -> Expr:
        """Exponentials [1]."""
        return self.total("exp")

    @cached_property
    def reads(self) -> Expr:
        """Bytes read [B]."""
        return self.total("read")

    @cached_property
    def bytes(self) -> Expr:
        """Bytes read and written [B]."""
        return self.total("read", "write")

    @cached_property
    def intensity(self) -> Expr:
        """Arithmetic intensity, tensor FLOPs over bytes [FLOP/B]."""
        if self.bytes == 0:
            raise BadValue(f"{self.name}.intensity", "0 bytes", "a kernel that moves bytes")
        return per_byte(self.flops, self.bytes)

    def quantity(self, name: str) -> Expr:
        """One of `QUANTITIES` by name."""
        if name not in QUANTITIES:
            raise UnknownName("kernel quantity", name, QUANTITIES)
        return getattr(self, name)

    def latex(self, name: str = "flops") -> str:
        """LaTeX of one quantity, with the glossary's symbols."""
        from roofline.glossary import GLOSSARY

        return f"{GLOSSARY[name].latex} = {latex(self.quantity(name))}"

    def _repr_latex_(self) -> str:
        shown = [self.latex(n) for n in QUANTITIES if self.quantity(n) != 0]
        return (
            "$\\displaystyle \\begin{aligned}"
            + r" \\ ".join(s.replace("=", "&=", 1) for s in shown)
            + "\\end{aligned}$"
        )

    @property
    def free_symbols(self) -> set[sp.Symbol]:
        """Every quantity that the totals still depend on."""
        return set().union(*(size.free_symbols for k in self.kernels for _, size in k.parts()))


class Kernel(Cost):
    """A fused kernel: terms, the defaults of the widths they use, what is assumed and left out, and the source.

    Parameters: name, the id; terms; title, one line; defaults, quantities that stand for an expression until they are
    bound (a cache row is ``w_kv * (latent + rope)`` unless 656 bytes are given); precision, of the tensor unit;
    axes, further letters (letter -> quantity name or expression) for a kernel of one's own.
    """

    def __init__(
        self,
        name: str,
        *terms: Term,
        title: str = "",
        defaults: Mapping[str, Any] | None = None,
        precision: str = "bf16",
        assumes: tuple[str, ...] = (),
        omits: tuple[str, ...] = (),
        source: str = "",
        axes: Mapping[str, Any] | None = None,
    ) -> None:
        self.name, self.terms, self.title, self.precision = name, terms, title or name, precision
        self.assumes, self.omits, self.source = assumes, omits, source
        self.axes = {letter: symbol(name) for letter, name in AXES.items()}
        self.axes |= {k: symbol(v) if isinstance(v, str) else exact(v) for k, v in (axes or {}).items()}
        self.bindings: dict[sp.Symbol, Expr] = {symbol(k): exact(v, k) for k, v in (defaults or {}).items()}
        self.fixed: frozenset[sp.Symbol] = frozenset()  # bound by hand, as against defaults
        self.times: Expr = sp.Integer(1)
        for term in terms:
            self._check(term)

    def _check(self, term: Term) -> None:
        if term.resource not in RESOURCES:
            raise UnknownName("resource", term.resource, RESOURCES)
        for letter in term.axes.split():
            if letter not in self.axes:
                raise UnknownName(f"axis in kernel {self.name!r}", letter, self.axes)
        if isinstance(term.amount, str):
            symbol(term.amount)
        else:
            exact(term.amount, f"amount of a term in kernel {self.name!r}")

    def size(self, term: Term) -> Expr:
        """Amount of one term over all its axes, before anything is bound."""
        amount = symbol(term.amount) if isinstance(term.amount, str) else exact(term.amount)
        return sp.Mul(amount, *(self.axes[letter] for letter in term.axes.split()))

    def total(self, *resources: str) -> Expr:
        """The sum of the terms that use these resources, with everything bound put in."""
        sizes = tuple(self.size(t) for t in self.terms if t.resource in resources)
        return _factored(replaced(_factored(sp.Add(*sizes)), self.bindings))

    def bind(self, **values: Any) -> Kernel:
        """A kernel with quantities replaced by numbers or expressions of other quantities.

        An expression given here sees the other quantities given here: ``bind(**dense().bindings(), q_len=1)`` puts 1
        into the pairs too.  A renaming, ``bind(heads=sym.heads / sym.tp)``, may be bound again: its heads are then the
        new ones.  Binding a quantity to its own symbol frees it, and a new visibility (pairs, rows_read) replaces the
        old one.  Raises BadValue for any other quantity that was bound already to something else, because expressions
        bound with it (the pairs of one new token) have used it up.

        >>> from roofline.kernels import KERNELS
        >>> one = KERNELS["mla_mqa"].bind(pairs=1, rows_read=1, kernel_heads=128, latent=512, rope=64)
        >>> one.bind(kv_row_bytes=656, w_act=0).intensity
        17408/41
        """
        given = {symbol(k): exact(v, k) for k, v in values.items() if v is not None}
        new = {k: replaced(v, {other: x for other, x in given.items() if other != k}) for k, v in given.items()}
        renamed = {k for k in self.fixed & given.keys() if self.bindings[k].has(k)}
        for k in (self.fixed & given.keys()) - renamed - SEEN:
            if new[k] not in (k, self.bindings[k]):  # its own symbol frees it
                raise BadValue(str(k), new[k], f"no value: {self.name} has it bound to {self.bindings[k]}")
        bound = object.__new__(Kernel)
        kept = {k: v for k, v in self.__dict__.items() if not isinstance(getattr(type(self), k, None), cached_property)}
        bound.__dict__.update(kept)
        own = {k: v for k, v in new.items() if k not in renamed}
        known: dict[Expr, Expr] = {}
        bound.bindings = {k: replaced(v, new, known) for k, v in self.bindings.items()} | own
        bound.fixed = (self.fixed | given.keys()) - {k for k, v in new.items() if v == k}
        bound.times = self.times.xreplace(new)
        return bound

    def repeated(self, times: Any) -> Kernel:
        """The kernel run `times` times in a sequence (once a layer); its own totals stay those of one run."""
        other = self.bind()
        other.times = exact(times, "times")
        return other

    def named(self, name: str, title: str = "", **changes: Any) -> Kernel:
        """The same terms under another name, for a use of its own."""
        other = self.bind()
        other.name, other.title = name, title or self.title
        other.__dict__.update(changes)
        return other

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Itself: a fused kernel is one."""
        return (self,)

    def parts(self) -> Iterator[tuple[Term, Expr]]:
        """Each term with its size, everything bound put in."""
        for term in self.terms:
            yield term, self.size(term).xreplace(self.bindings)

    def __add__(self, other: Cost) -> Sequence:
        return Sequence(f"{self.name}+{other.name}", *self.kernels, *other.kernels)

    def __repr__(self) -> str:
        return f"Kernel({self.name!r}: {self.title})"


class Sequence(Cost):
    """Kernels that run one after the other: totals add, and so do their times."""

    def __init__(self, name: str, *kernels: Kernel, title: str = "") -> None:
        self.name, self._kernels, self.title = name, kernels, title or " then ".join(k.title for k in kernels)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels in order."""
        return self._kernels

    def total(self, *resources: str) -> Expr:
        """The sum over the kernels, each as often as it runs."""
        return sp.Add(*(k.times * k.total(*resources) for k in self._kernels))

    def bind(self, **values: Any) -> Sequence:
        """The sequence with quantities replaced in every kernel."""
        return Sequence(self.name, *(k.bind(**values) for k in self._kernels), title=self.title)

    def __add__(self, other: Cost) -> Sequence:
        return Sequence(f"{self.name}+{other.name}", *self.kernels, *other.kernels)

    def __repr__(self) -> str:
        return f"Sequence({self.name!r}: {', '.join(k.name for k in self._kernels)})"


__all__ = [
    "AXES",
    "QUANTITIES",
    "RESOURCES",
    "SYMBOLS",
    "Cost",
    "Exp",
    "Kernel",
    "Mac",
    "Read",
    "Sequence",
    "Term",
    "Vector",
    "Write",
]
