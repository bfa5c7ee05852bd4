"""Facts about numpy's operations: from its signatures where they say something, from the lists below where not."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from syft_core.hook.attributes import Op, words
from syft_core.hook.facts import WRITES_FIRST, Discloses, Facts, Option, Places, Tier
from syft_core.hook.rules import leaves

# --- what an answer reveals

REVEALS = words(
    "item tolist tobytes tostring __bool__ __float__ __int__ __index__ __complex__ __contains__ allclose array_equal "
    "array_equiv array_repr array_str array2string flat min_scalar_type"
)
"""Operations that answer with a plain value."""

FORM_DEPENDS = words(
    "nonzero argwhere flatnonzero unique unique_all unique_counts unique_inverse unique_values bincount compress "
    "extract trim_zeros intersect1d setdiff1d setxor1d union1d histogram histogramdd histogram2d histogram_bin_edges "
    "eig eigvals lstsq polyfit poly roots polymul polydiv real_if_close ix_ datetime_as_string repeat delete insert"
)
"""Operations whose results have a form that depends on values: their number, the length of a text, the dtype."""
_TEXT_LENGTH = words(
    "expandtabs join replace multiply center ljust rjust zfill partition rpartition split rsplit splitlines mod "
    "decode encode translate"
)
"""Operations of ``numpy.char`` that give texts as long as the values ask for."""

SIZES = words(
    "repeat tile split array_split hsplit vsplit dsplit delete insert reshape resize pad full_like expand_dims roll "
    "rollaxis moveaxis swapaxes squeeze broadcast_to diagonal diag eye tri rot90 flip diff unwrap gradient linspace "
    "logspace geomspace zeros_like ones_like empty_like full trace take_along_axis"
)
"""Operations whose form depends on values when an argument after the first, a size or a position, is an array."""

STATES_FACT = words(
    "shape ndim size dtype itemsize nbytes __len__ strides iscomplexobj isrealobj result_type common_type can_cast "
    "einsum_path device isfortran broadcast_shapes"
)
"""Operations whose plain answer is a fact about form."""

# --- what a call reads and changes

LOCAL = words(
    "apply_along_axis apply_over_axes piecewise shares_memory may_share_memory flags flat setflags view "
    "array_repr array_str array2string"
)
"""Operations that make sense only where the data is."""

BEYOND = words("as_strided resize sliding_window_view getfield setfield")
"""Operations that reach beyond an array into the memory of which it may be a part."""
UNINITIALIZED = words("empty_like")
"""Operations that return memory as they find it."""

WRITES_ITS_FIRST = words(
    "__setitem__ copyto place putmask put put_along_axis fill_diagonal at"
)
"""Operations that change their first argument though their names do not say so."""
OPTIONS = (
    Option(None, "overwrite_input", default=False),
    Option(None, "inplace", default=False),
    Option(None, "copy", default=True, off=(True,)),
)
"""The options that make an operation change its first argument; ``copy`` only of those that otherwise copy."""
_COPIES_UNLESS_TOLD = words("nan_to_num")

OFF = words("")
"""Operations that crash, hang or read foreign memory for some arguments, whatever the data."""


def describe(op: Op) -> Facts:
    """Return the facts about an operation of numpy."""
    tier = _tier(op)
    writes, writes_if = _writes(op)
    last, operation = op.attr, op.operation
    return Facts(
        writes=writes,
        writes_if=writes_if,
        discloses=_discloses(op, tier),
        form_depends=_FORM_DEPENDS_ON.get(operation, _is_size_an_array if operation in SIZES else None),
        reads_beyond=operation in BEYOND or not (tier == "reviewed" or _ufunc_of(op) is not None),
        uninitialized=operation in UNINITIALIZED,
        partial=tier != "reviewed",
        tier=tier,
        states_fact=last in STATES_FACT,
        reveals=last in REVEALS,
        local=last in LOCAL,
    )


def _ufunc_of(op: Op) -> Any:
    """Return the ufunc that an operation is, or is a method of."""
    found = getattr(op.func, "__self__", op.func)
    return found if isinstance(found, np.ufunc) else None


def _writes(op: Op) -> tuple[Places, Mapping[int | str, Option]]:
    """Return which arguments an operation may change; ``out`` by its position is one of them."""
    if op.spelling == "getter":
        return frozenset(), {}
    if op.inplace or op.operation in WRITES_ITS_FIRST:
        return _FIRST, {}
    if (ufunc := _ufunc_of(op)) is not None:
        first = ufunc.nin if isinstance(op.func, np.ufunc) else _OUT_OF_METHOD[op.attr]
        return frozenset(range(first, first + ufunc.nout)), {}
    parameters = _parameters(op)
    out: Places = frozenset({parameters.index("out")}) if "out" in parameters else frozenset()
    for option in OPTIONS:
        if option.name in parameters and (option.name != "copy" or op.operation in _COPIES_UNLESS_TOLD):
            known = Option(parameters.index(option.name), option.name, option.default, option.off)
            return _FIRST | out, dict.fromkeys(_FIRST, known)
    return out, {}


_FIRST = WRITES_FIRST | {"a", "arr", "dst", "x"}
_OUT_OF_METHOD = {"reduce": 3, "accumulate": 3, "reduceat": 4, "outer": 2}
"""Where the methods of ufuncs take ``out``."""


def _parameters(op: Op) -> list[str]:
    """Return the names of the arguments in their order; numpy before 2.4 has none for methods."""
    try:
        return [*inspect.signature(op.func).parameters]
    except (TypeError, ValueError):
        namesake = getattr(np, op.attr, None)
        if op.spelling != "method" or namesake is None or op.attr == "compress":
            return ["self", "condition", "axis", "out"] if op.attr == "compress" else []
        return [*inspect.signature(namesake).parameters]


def _discloses(op: Op, tier: Tier) -> Discloses:
    if op.attr in REVEALS:
        return "values"
    length = op.name.startswith("numpy.char.") and op.attr in _TEXT_LENGTH
    if op.operation in FORM_DEPENDS or length or op.name.startswith("numpy.lib.scimath."):
        return "form"
    known = tier == "reviewed" or op.spelling == "getter" or _ufunc_of(op) is not None
    return "nothing" if known or op.operation in SIZES or op.operation in _FORM_DEPENDS_ON else "values"


def _tier(op: Op) -> Tier:
    if op.attr in REVEALS or op.attr in LOCAL or op.operation in OFF:
        return "off"
    return "reviewed" if is_reviewed(op) else "public"


def is_reviewed(op: Op) -> bool:
    """Return whether an operation is on the reviewed list."""
    return False


# --- forms that depend on values in some calls only


def _is_mask_or_bound(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether an index has a mask in it, or a slice with an array for a bound."""
    index = args[1] if len(args) > 1 else tuple(kwargs.values())
    return any(map(_selects_by_value, index if type(index) is tuple else (index,)))


def _selects_by_value(index: Any) -> bool:
    if type(index) is slice:
        return any(hasattr(bound, "ndim") for bound in (index.start, index.stop, index.step))
    return any(str(getattr(leaf, "dtype", "")) == "bool" for leaf in leaves(index))


def _is_condition_alone(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    return len(args) + len(kwargs) == 1


def _is_size_an_array(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    return any(hasattr(leaf, "ndim") for leaf in leaves((tuple(args[1:]), dict(kwargs))))


_FORM_DEPENDS_ON = {"__getitem__": _is_mask_or_bound, "where": _is_condition_alone}
