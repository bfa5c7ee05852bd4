"""Facts about numpy's operations, from signatures where possible and otherwise from the lists below."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from syft_core.hook.attributes import Op, words
from syft_core.hook.chain import end_of
from syft_core.hook.facts import WRITES_FIRST, Discloses, Facts, Option, Places, Tier
from syft_core.hook.operators import INPLACE_OPERATORS, REFLECTED_OPERATORS, SYNONYMS
from syft_core.hook.rules import leaves
from syft_core.values import Tensor

# --- what a result reveals

REVEALS = words(
    "item tolist tobytes tostring __bool__ __float__ __int__ __index__ __complex__ __contains__ allclose array_equal "
    "array_equiv array_repr array_str array2string flat min_scalar_type"
)
"""Operations that return a plain value."""

FORM_DEPENDS = words(
    "nonzero argwhere flatnonzero unique unique_all unique_counts unique_inverse unique_values bincount compress "
    "extract trim_zeros intersect1d setdiff1d setxor1d union1d histogram histogramdd histogram2d histogram_bin_edges "
    "eig eigvals lstsq polyfit poly roots polymul polydiv real_if_close ix_ datetime_as_string repeat delete insert"
)
"""Operations whose results have a form that depends on values: the shape, the length of strings, the dtype."""
_TEXT_LENGTH = words(
    "expandtabs join replace multiply center ljust rjust zfill partition split rsplit splitlines mod "
    "decode encode translate"
)
"""Operations of ``numpy.char`` that return strings whose length depends on values."""

TAKES_WHOLE = words(
    "array append cat stack hstack vstack dstack column_stack block where select choose take take_along_axis "
    "__getitem__ __setitem__ copyto put putmask put_along_axis place dot inner outer tensordot kron vdot cross "
    "convolve correlate searchsorted digitize isin in1d interp lexsort cov corrcoef polyval clip full_like einsum "
    "multi_dot average isclose nan_to_num fill fill_diagonal solve"
)
"""Operations that use integers as data or indices, except in the arguments in ``NUMBERS``. For other operations, an
array of integers after the first argument may be a size or an axis, on whose values the form of the result depends."""
NUMBERS = words("axis axes axisa axisb axisc keepdims shape dtype")
"""The names of arguments that determine the form of a result."""

STATES_FACT = words(
    "shape ndim size dtype itemsize nbytes __len__ strides iscomplexobj isrealobj result_type common_type can_cast "
    "einsum_path device"
)
"""Operations that return a fact about form."""

# --- what a call reads and changes

LOCAL = words(
    "apply_along_axis apply_over_axes piecewise shares_memory may_share_memory flags flat setflags view array_repr "
    "array_str array2string"
)
"""Operations that only run locally."""

INDEXED = words("__getitem__ __setitem__ take take_along_axis")
"""Operations whose second argument is an index."""
INSTEAD = {
    **dict.fromkeys(
        ("nonzero", "argwhere", "flatnonzero", "extract", "compress", "piecewise", "__getitem__", "trim_zeros"),
        "numpy.where(p > 0, p, 0)",
    ),
    **dict.fromkeys(
        ("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "union1d", "intersect1d"),
        "numpy.sort(p, axis=None)",
    ),
    **dict.fromkeys(("lstsq", "polyfit"), "numpy.linalg.pinv(p) @ p"),
    **dict.fromkeys(("histogram", "histogram2d", "histogramdd", "bincount"), "numpy.percentile(p, [25, 50, 75])"),
    "sliding_window_view": "numpy.cumsum(p, axis=0)",
    "eig": "numpy.linalg.eigh(p)",
    "eigvals": "numpy.linalg.eigvalsh(p)",
    "flat": "p.ravel()",
    "view": "p.astype(float)",
}
"""Alternatives that refusals suggest: reviewed, with a form that does not depend on values."""
SELECTS = words(
    "min max amin amax nanmin nanmax ptp sort argsort lexsort partition argpartition median nanmedian percentile "
    "nanpercentile quantile nanquantile unique take take_along_axis choose compress extract"
)
"""Operations that return single elements of an operand."""
UNINITIALIZED = words("empty_like")
"""Operations that return uninitialized memory."""

WRITES_ITS_FIRST = words("__setitem__ copyto place putmask put put_along_axis fill_diagonal at")
"""Operations that change their first argument, although their names do not show it."""
OPTIONS = (
    Option(None, "overwrite_input", default=False),
    Option(None, "inplace", default=False),
    Option(None, "copy", default=True, off=(True,)),
)
"""Options that make an operation change its first argument; ``copy`` only in ``_COPIES_UNLESS_TOLD``."""
_COPIES_UNLESS_TOLD = words("nan_to_num")

OFF = words("busday_count busday_offset is_busday at reduceat unique_all unique_inverse numpy.ndarray.resize")
"""Operations that crash, hang, read foreign memory or take Python objects for some arguments. The last one frees memory
that views still show."""

LARGEST = {
    **dict.fromkeys(words("tile repeat diff trace round around"), 2**24),
    **dict.fromkeys(words("pow float_power left_shift bitwise_left_shift"), 2**63 - 1),
}
"""The largest integer argument of operations that crash or hang on larger ones. Beyond 64 bits, numpy computes with
Python ints of any length."""
ACCUMULATES = words("cumsum cumprod cumulative_sum cumulative_prod nancumsum nancumprod accumulate")
"""Operations that crash if ``out`` is 0-dimensional."""

NEEDS_FINITE = words("svd svdvals pinv cond matrix_rank norm matrix_norm lstsq polyfit")
"""Operations that may hang on infinite values."""

# --- reviewed operations, in all spellings: functions, methods, operators, in place

ARITHMETIC = words(
    "add sub mul div floor_divide remainder fmod divmod __divmod__ __rdivmod__ pow float_power neg positive abs fabs "
    "sign signbit reciprocal sqrt cbrt square exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2 sin cos tan "
    "arcsin arccos arctan arctan2 asin acos atan atan2 sinh cosh tanh arcsinh arccosh arctanh asinh acosh atanh hypot "
    "deg2rad rad2deg degrees radians ceil floor rint trunc fix round around clip maximum minimum fmax fmin copysign "
    "heaviside nan_to_num sinc i0 real imag angle conjugate bitwise_and bitwise_or bitwise_xor bitwise_not "
    "bitwise_invert bitwise_left_shift bitwise_right_shift left_shift right_shift modf frexp ldexp gcd lcm nextafter "
    "spacing"
)
COMPARISONS = words(
    "eq ne lt le gt ge isclose isnan isinf isfinite isneginf isposinf isreal iscomplex isin in1d logical_and "
    "logical_or logical_xor logical_not where select"
)
REDUCTIONS = words(
    "sum mean prod amax amin argmax argmin all any std var median ptp average percentile quantile count_nonzero cumsum "
    "cumprod cumulative_sum cumulative_prod diff ediff1d gradient trapezoid trapz interp nansum nanmean nanprod "
    "nanmax nanmin nanargmax nanargmin nanstd nanvar nanmedian nanpercentile nanquantile nancumsum nancumprod cov "
    "corrcoef reduce accumulate outer"
)
PRODUCTS = words(
    "matmul dot vdot inner tensordot einsum kron cross multi_dot vecdot matvec vecmat convolve correlate matrix_power "
    "polyval"
)
LINEAR_ALGEBRA = words(
    "inv det slogdet solve cholesky qr svd svdvals eigh eigvalsh pinv norm matrix_norm vector_norm matrix_rank cond "
    "trace tensorinv tensorsolve"
)
TRANSFORMS = words(
    "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn fftshift ifftshift unwrap"
)
SHAPES = words(
    "reshape ravel flatten squeeze expand_dims transpose T mT permute_dims matrix_transpose swapaxes moveaxis "
    "rollaxis broadcast_to broadcast_arrays tile cat stack hstack vstack dstack column_stack block append split "
    "array_split hsplit vsplit dsplit unstack diag diagonal diagflat tril triu flip fliplr flipud rot90 roll meshgrid "
    "atleast_1d atleast_2d atleast_3d vander pad"
)
INDEXING = words(
    "__getitem__ __setitem__ take take_along_axis choose put put_along_axis copyto fill_diagonal sort argsort "
    "partition argpartition lexsort searchsorted digitize"
)
CREATION = words("copy astype fill zeros_like ones_like full_like empty_like")
TEXTS = words(
    "upper lower title capitalize swapcase equal not_equal greater greater_equal less less_equal str_len isalnum "
    "isalpha isdecimal isdigit islower isnumeric isspace istitle isupper",
    prefix="numpy.char.",
)
"""Operations of ``numpy.char``, by full name, because other modules use the same names."""
PUBLIC = words(
    "argwhere bincount bitwise_count compress datetime_as_string delete diag_indices_from extract flatnonzero "
    "geomspace histogram histogram2d histogram_bin_edges histogramdd insert intersect1d isnat ix_ linspace logspace "
    "nonzero packbits place poly polyadd polyder polydiv polyfit polyint polymul polysub putmask ravel_multi_index "
    "real_if_close repeat resize roots setdiff1d setxor1d sort_complex tril_indices_from trim_zeros triu_indices_from "
    "union1d unique unique_counts unique_values unpackbits unravel_index eig eigvals lstsq byteswap getfield setfield"
)
PUBLIC_SPECIAL = words(
    "char.add char.add.reduce char.add.accumulate char.add.outer char.center char.decode char.encode char.expandtabs "
    "char.join char.ljust char.mod char.replace char.rjust char.rsplit char.split char.splitlines char.translate "
    "char.zfill lib.scimath.arccos lib.scimath.arcsin lib.scimath.arctanh lib.scimath.log lib.scimath.log10 "
    "lib.scimath.log2 lib.scimath.logn lib.scimath.power lib.scimath.sqrt lib.stride_tricks.sliding_window_view",
    prefix="numpy.",
)
"""The other operations that are memory-safe for all arguments, according to tests/facts. They may run on data
the sender may see. Unlisted operations are off."""
FAILS = words(
    "pow average percentile quantile nanpercentile nanquantile nanargmax nanargmin reduce accumulate outer "
    "matrix_power vecdot interp"
)
"""The operations in ``TOTAL``'s families that raise for some values."""
TOTAL = (ARITHMETIC | COMPARISONS | REDUCTIONS | PRODUCTS | TRANSFORMS | SHAPES) - FAILS
"""The operations that never raise because of values."""
REVIEWED = ARITHMETIC | COMPARISONS | REDUCTIONS | PRODUCTS | LINEAR_ALGEBRA | TRANSFORMS | SHAPES | INDEXING | CREATION
"""The operations that may run on data the sender may not see. tests/facts checks that their forms do not depend on
values, that they read only their arguments, and that no argument crashes the process."""


def describe(op: Op) -> Facts:
    """Return the facts about an operation of numpy."""
    tier = _tier(op)
    writes, writes_if = _writes(op)
    last, operation = op.attr, op.operation
    return Facts(
        writes=writes,
        writes_if=writes_if,
        discloses=_discloses(op, tier),
        form_depends=_form_depends(op),
        reads_beyond=False,
        uninitialized=operation in UNINITIALIZED,
        partial=tier != "reviewed" or operation not in TOTAL,
        tier=tier,
        indices=frozenset({1, "indices"}) if operation in INDEXED else frozenset(),
        states_fact=last in STATES_FACT,
        selects=operation in SELECTS,
        shape_depends_on_floats=operation not in ARITHMETIC,
        reveals=last in REVEALS,
        local=last in LOCAL,
        instead=INSTEAD.get(operation, ""),
    )


def _ufunc_of(op: Op) -> Any:
    found = getattr(op.func, "__self__", op.func)
    return found if isinstance(found, np.ufunc) else None


def _writes(op: Op) -> tuple[Places, Mapping[int | str, Option]]:
    """Return which arguments an operation may change, including the position of ``out``."""
    if op.spelling == "getter":
        return frozenset(), {}
    if op.inplace or op.operation in WRITES_ITS_FIRST:
        return _FIRST, {}
    if op.spelling == "method" and op.operation in _OUT_OF_ARRAY:
        return _OUT_OF_ARRAY[op.operation], {}
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
"""The position of ``out`` in the methods of ufuncs."""
_OUT_OF_ARRAY: Mapping[str, Places] = {"conjugate": frozenset({1}), "all": frozenset({2, 3}), "any": frozenset({2, 3})}
"""The position of ``out`` in methods of arrays whose signatures do not show it."""


def _parameters(op: Op) -> list[str]:
    """Return the names of the parameters in order; numpy before 2.4 has no signatures for functions written in C."""
    try:
        return [*inspect.signature(op.func).parameters]
    except (TypeError, ValueError):
        if op.attr in _SIGNATURES:
            return _SIGNATURES[op.attr].split()
        namesake = getattr(np, op.attr, None)
        return [*inspect.signature(namesake).parameters] if op.spelling == "method" and namesake is not None else []


_SIGNATURES: Mapping[str, str] = {
    "busday_count": "begindates enddates weekmask holidays busdaycal out",
    "busday_offset": "dates offsets roll weekmask holidays busdaycal out",
    "byteswap": "self inplace",
    "compress": "self condition axis out",
    "concat": "arrays axis out",
    "concatenate": "arrays axis out",
    "dot": "a b out",
    "is_busday": "dates weekmask holidays busdaycal out",
}
"""The parameters of the functions written in C that may write one of them."""


def _discloses(op: Op, tier: Tier) -> Discloses:
    if op.attr in REVEALS:
        return "values"
    length = op.name.startswith("numpy.char.") and op.attr in _TEXT_LENGTH
    if op.operation in FORM_DEPENDS or length or op.name.startswith("numpy.lib.scimath."):
        return "form"
    known = tier == "reviewed" or op.spelling == "getter" or _ufunc_of(op) is not None
    return "nothing" if known else "values"


def _tier(op: Op) -> Tier:
    if op.attr in REVEALS or op.attr in LOCAL or op.operation in OFF or op.name in OFF:
        return "off"
    if is_reviewed(op):
        return "reviewed"
    is_special = op.name.startswith(("numpy.char.", "numpy.lib."))
    return "public" if (op.name in PUBLIC_SPECIAL if is_special else op.operation in PUBLIC) else "off"


def is_reviewed(op: Op) -> bool:
    """Return whether an operation is reviewed; of a ufunc's methods, both the ufunc and the method must be."""
    if op.name.startswith(("numpy.char.", "numpy.lib.")):
        return op.name in TEXTS
    ufunc = _ufunc_of(op)
    if ufunc is not None and not isinstance(op.func, np.ufunc):
        name = {**SYNONYMS, "equal": "eq"}.get(ufunc.__name__, ufunc.__name__)
        return op.attr in REVIEWED and name in REVIEWED
    return op.operation in REVIEWED or op.attr in STATES_FACT


# --- forms that depend on values for some arguments only


def _is_mask_or_bound(args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    index = args[1] if len(args) > 1 else tuple(kwargs.values())
    return any(map(_selects_by_value, index if type(index) is tuple else (index,)))


def _selects_by_value(index: object) -> bool:
    if type(index) is slice:
        return any(hasattr(bound, "ndim") for bound in (index.start, index.stop, index.step))
    return any(str(getattr(leaf, "dtype", "")) == "bool" for leaf in leaves(index))


def _is_condition_alone(args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    return len(args) + len(kwargs) == 1


def _takes_number(args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    """Return whether an argument after the first is an array that numpy would read as one or more numbers."""
    named = {name: value for name, value in kwargs.items() if name not in ("out", "where")}
    return any(may_be_number(end_of(leaf)) for leaf in leaves((tuple(args[1:]), named)))


@dataclass(frozen=True)
class _TakesNumberAt:
    """Return whether one of the arguments at ``places``, which are numbers such as axes, is an array."""

    places: Places

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        given = [value for place, value in (*enumerate(args), *kwargs.items()) if place in self.places]
        return any(isinstance(end_of(leaf), np.ndarray) for leaf in leaves(given))


def may_be_number(end: Tensor) -> bool:
    """Return whether numpy would read an array as one or more numbers; this includes floats of size 1."""
    return isinstance(end, np.ndarray) and (end.dtype.kind in "iub" or end.size == 1)


def _form_depends(op: Op) -> Callable[[Sequence[Any], Mapping[str, Any]], bool] | None:
    if op.spelling == "getter" or op.attr in _OPERATORS:
        return None
    if op.operation in _FORM_DEPENDS_ON:
        return _FORM_DEPENDS_ON[op.operation]
    if _ufunc_of(op) is not None:
        return _TakesNumberAt(NUMBERS | ({1, 2, 4} if op.attr in ("reduce", "accumulate", "reduceat") else set()))
    if op.operation not in TAKES_WHOLE:
        return _takes_number
    parameters = _parameters(op)
    return _TakesNumberAt(NUMBERS | {parameters.index(name) for name in NUMBERS if name in parameters})


_OPERATORS = frozenset({*INPLACE_OPERATORS, *REFLECTED_OPERATORS, "__divmod__", "__rdivmod__", "__pow__"})
"""Methods whose arguments are all data."""


def _has_sublists(args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    return not (args and type(args[0]) is str)


_FORM_DEPENDS_ON = {"__getitem__": _is_mask_or_bound, "where": _is_condition_alone, "einsum": _has_sublists}
