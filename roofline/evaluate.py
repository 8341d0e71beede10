"""Numbers put into formulas: floats or arrays, float64 always, missing names told with meaning and unit.

`evaluate` takes an expression, a Kernel with a quantity, or a kernel id with a quantity.  The last needs neither sympy
nor numpy for one point: it runs source that `roofline.codegen` printed ahead of time, as do `scalar`, `visible`,
`leg_times` and `closed_form`.

>>> evaluate("mla_mqa", "intensity", heads=128, kernel_heads=128, latent=512, rope=64, w_kv=2, w_act=0,
...          q_len=1, **visible("dense", q_len=1, context=8191))
241.77777777777777
>>> evaluate("mla_mqa", "flops", batch=1)                              # doctest: +NORMALIZE_WHITESPACE
Traceback (most recent call last):
roofline.errors.BadValue: values: got only batch, expected also kernel_heads [1] (query heads as the kernel runs them
(padded heads do real work)), latent [1] (rank of the KV latent), pairs [1] (visible (query, key) pairs per sequence
and head), rope [1] (width of the shared rotary key)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

from roofline.errors import BadValue, UnknownName
from roofline.glossary import GLOSSARY, check

Function = Callable[..., Any]


def scalar(kernel: str, quantity: str) -> Function:
    """The generated function of one kernel quantity: flops, vector_flops, exps, bytes, intensity, or the time of a leg.

    Its keyword-only parameters are the kernel's own names: `pairs`, `rows_read` and `kv_row_bytes` are given, not
    worked out.  Nothing is checked; whole numbers stay exact.  Legs are tensor, vector, exp, memory and link [s].

    >>> scalar("mla_mqa", "flops")(batch=1, kernel_heads=128, latent=512, pairs=8192, rope=64)
    2281701376
    """
    table = _generated().QUANTITIES
    if kernel not in table:
        raise UnknownName("kernel", kernel, table, "roofline formula")
    if quantity not in table[kernel]:
        raise UnknownName(f"quantity of kernel {kernel!r}", quantity, table[kernel])
    return table[kernel][quantity]  # type: ignore[no-any-return]


def closed_form(name: str) -> Function:
    """The generated function of a derived closed form.

    >>> heads = closed_form("heads_at_ridge")
    >>> round(heads(kv_row_bytes=1152, latent=512, rope=64, peak=865e12, bandwidth=3.35e12, q_len=1), 2)
    136.7
    """
    from roofline._generated import closed_forms

    table: Any = closed_forms.FORMS
    if name not in table:
        raise UnknownName("closed form", name, table)
    return table[name]  # type: ignore[no-any-return]


def parameters(function: Function) -> tuple[str, ...]:
    """Names that a generated or compiled function takes."""
    code = function.__code__
    return code.co_varnames[: code.co_kwonlyargcount]


def visible(name: str, **values: Any) -> dict[str, float]:
    """`pairs` and `rows_read` of a visibility at one point, as keywords for `evaluate`.

    Names: dense, full, window, shared_prefix, prefix_part, topk; topk_perfect reads each row once, topk_no_skip counts
    the keys that the first queries do not have, topk_no_skip_perfect does both.

    >>> visible("topk", q_len=4, context=1, topk=3)
    {'pairs': 11.0, 'rows_read': 11.0}
    """
    from roofline._generated import visibilities

    table: Any = visibilities.VISIBILITIES
    if name not in table:
        raise UnknownName("visibility", name, table)
    return {quantity: _call(function, scalars(values)) for quantity, function in table[name].items()}


def leg_times(kernel: str, without: Collection[str] = (), **values: Any) -> dict[str, float]:
    """Time of each leg that a kernel uses [s] at one point; `without` names legs whose rate is not known.

    The lower time bound is the longest, the upper one their sum; kernels that run one after the other add.
    """
    scalar(kernel, "flops")  # refuses an unknown kernel
    table = _generated().QUANTITIES[kernel]
    functions = {leg: table[leg] for leg in _generated().LEGS if leg in table and leg not in without}
    given = _with_defaults(kernel, scalars(values), functions.values())
    return {leg: _call(function, given) for leg, function in functions.items()}


def evaluate(what: Any, quantity: str | None = None, /, **values: Any) -> Any:
    """The value of an expression or of a kernel's quantity.

    Parameters: what, a sympy expression, a Kernel or Sequence, or a kernel id; quantity, which of a kernel's; values,
    by glossary name, floats or arrays of any shapes that broadcast, in SI.  Returns a float where all values are
    scalars, else a float64 array of their common shape.  Integers are cast to float64 first, so nothing overflows.

    Raises BadValue for a missing name, a value outside its range, or shapes that do not broadcast; UnknownName for a
    name that neither the glossary nor the expression has.

    >>> from roofline.symbols import sym
    >>> evaluate(2 * sym.heads * sym.latent, heads=[64, 128], latent=512)
    array([ 65536., 131072.])
    """
    if isinstance(what, str) and quantity is not None and all(isinstance(v, (int, float)) for v in values.values()):
        function = scalar(what, quantity)
        return _call(function, _with_defaults(what, scalars(values), [function]))
    return evaluate_expression(expression(what, quantity, values), values)


def expression(what: Any, quantity: str | None = None, given: Collection[str] = ()) -> Any:
    """The sympy expression that `evaluate` is asked for; `given` names stand instead of a kernel's own defaults."""
    import sympy as sp

    if isinstance(what, tuple) and len(what) == 2:
        what, quantity = what
    if isinstance(what, sp.Basic):
        return what
    if isinstance(what, (int, float)):
        from roofline.symbols import exact

        return exact(what)
    from roofline.kernel import QUANTITIES, Cost
    from roofline.kernels import kernel
    from roofline.law import LEGS, legs

    cost = what if isinstance(what, Cost) else kernel(what)
    if quantity is None:
        raise BadValue("quantity", "none", f"one of {', '.join((*QUANTITIES, *LEGS))}")
    bound = {s.name for k in cost.kernels for s in k.bindings}
    cost = cost.bind(**{name: _own(cost, name) for name in given if name in bound})
    if quantity not in LEGS:
        return cost.quantity(quantity)
    return sp.Add(*(legs(k).get(quantity, sp.S.Zero) for k in cost.kernels))


def _own(cost: Any, name: str) -> Any:
    """The symbol of a name that a kernel has bound, if it is a default; a value bound by hand is not overruled."""
    from roofline.kernels import KERNELS
    from roofline.symbols import symbol

    one = symbol(name)
    for kernel in cost.kernels:
        default = KERNELS[kernel.name].bindings.get(one) if kernel.name in KERNELS else None
        if one in kernel.bindings and kernel.bindings[one] != default:
            raise BadValue(name, "a value", f"none: {kernel.name} has it bound to {kernel.bindings[one]}", "bind anew")
    return one


def evaluate_expression(expr: Any, values: Mapping[str, Any]) -> Any:
    """`evaluate` for a sympy expression."""
    from roofline.codegen import array_mode, compiled

    names = set(parameters(compiled(expr)))
    refuse_unknown(values, names)
    if not any(_is_array(v) for v in values.values()):
        return _call(compiled(expr), scalars(values, names))
    import numpy as np

    arrays = {name: as_array(name, value) for name, value in values.items()}
    refuse_missing(names, arrays)
    try:
        shape = np.broadcast_shapes(*(a.shape for a in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {a.shape}" for name, a in arrays.items() if a.ndim)
        raise BadValue("values", f"shapes {shapes}", "shapes that broadcast to one") from None
    with array_mode():
        result = np.asarray(compiled(expr, arrays=True)(**{n: arrays[n] for n in names}), dtype=float)
    return result if result.shape == shape else np.broadcast_to(result, shape).copy()


def scalars(values: Mapping[str, Any], names: Collection[str] = ()) -> dict[str, float]:
    """Values as floats, each in the range of its quantity; names outside the glossary are allowed where listed."""
    refuse_unknown(values, names)
    return {name: _number(name, value) for name, value in values.items()}


def _number(name: str, value: Any) -> float:
    """A float in the range of its quantity; the words of an error are made only where there is one."""
    if type(value) is not float:
        value = _cast(value)
    record = GLOSSARY.get(name)
    if type(value) is not float or not math.isfinite(value):
        raise BadValue(name, value, f"{record.range_text}: {record.meaning}" if record else "a finite number")
    if record is not None and (value <= record.low or record.integer):
        check(name, value)
    return value


def _cast(value: Any) -> Any:
    """Integers, numpy scalars and arrays without axes as floats; what is no number comes back as it is."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _is_array(value: Any) -> bool:
    return bool(getattr(value, "ndim", 0)) or isinstance(value, (list, tuple, range))


def as_array(name: str, value: Any) -> Any:
    """A float64 array of a quantity's values, checked against its range all at once."""
    import numpy as np

    try:
        raw = np.asarray(value)
        array = raw.astype(np.float64, copy=False) if raw.dtype.kind in "iufO" else None
    except (TypeError, ValueError, OverflowError):
        array = None
    if array is None:
        raise BadValue(name, value, "a number or an array of numbers")
    record = GLOSSARY.get(name)
    bad = ~np.isfinite(array)
    if record is not None:
        bad |= (array <= record.low) if record.low_open else (array < record.low)
        bad |= (array != np.floor(array)) if record.integer else False
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        expected = f"{record.range_text}: {record.meaning}" if record else "finite numbers"
        raise BadValue(f"{name}[{', '.join(map(str, place))}]" if place else name, float(array[place]), expected)
    return array


def refuse_unknown(values: Collection[str], names: Collection[str]) -> None:
    """Raise UnknownName for a name that neither the glossary nor the expression has."""
    for name in values:
        if name not in GLOSSARY and name not in names:
            raise UnknownName("quantity", name, [*GLOSSARY, *sorted(set(names) - set(GLOSSARY))])


def refuse_missing(names: Collection[str], values: Collection[str]) -> None:
    """Raise BadValue that lists every missing name with its unit and meaning."""
    missing = [name for name in sorted(names) if name not in values]
    if missing:
        told = [f"{n} [{GLOSSARY[n].unit}] ({GLOSSARY[n].meaning})" if n in GLOSSARY else n for n in missing]
        given = f"only {', '.join(sorted(values))}" if values else "none"
        raise BadValue("values", _Told(given), "also " + ", ".join(told))


class _Told(str):
    """Text that an error shows as it stands, without quotes."""

    __repr__ = str.__str__


def _call(function: Function, values: Mapping[str, float]) -> float:
    names = parameters(function)
    refuse_missing(names, values)
    return float(function(**{name: values[name] for name in names}))


def _generated() -> Any:
    """The module of kernel functions, read on first use."""
    from roofline._generated import kernels

    return kernels


def _with_defaults(kernel: str, values: dict[str, float], functions: Collection[Function]) -> dict[str, float]:
    """Values, and what is needed and not given but has a default in the kernel (a cache row of 2 (d + r) bytes)."""
    needed = {name for function in functions for name in parameters(function)}
    stand_in = {n: f for n, f in _generated().DEFAULTS[kernel].items() if n in needed and n not in values}
    refuse_missing({n for f in stand_in.values() for n in parameters(f)} | (needed - set(stand_in)), values)
    return values | {name: _call(function, values) for name, function in stand_in.items()}
