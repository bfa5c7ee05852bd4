"""NumpyAttributes: numpy's op table, and the properties of arrays that the core uses."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from mmap import mmap
from typing import Any, NoReturn

import numpy as np
import numpy.fft
import numpy.lib.stride_tricks
import numpy.linalg

from syft_core.features import later
from syft_core.hook.attributes import FrameworkAttributes, Op, Spelling, describe_op, words
from syft_core.hook.dispatch import dispatch
from syft_core.hook.forms import Form, form
from syft_core.hook.guards import limit_integers
from syft_core.hook.operators import (
    COMPARATORS,
    INPLACE_OPERATORS,
    OPERATORS,
    REFLECTED_OPERATORS,
    SYNONYMS,
    UNARY_OPERATORS,
)
from syft_core.hook.overload import with_indices
from syft_core.hook.rules import leaves
from syft_core.values import Args, Function, Nested, Tensor
from syft_numpy.alternatives import ALTERNATIVES
from syft_numpy.facts import ACCUMULATES, LARGEST, NEEDS_FINITE, REDUCTIONS, describe
from syft_numpy.native import SyftArray
from syft_numpy.wrapper import wrap

EXCLUDE = words("save savez savez_compressed savetxt dump dumps tofile data ctypes base to_device")
"""Operations that must not run on a chain: they access files, pickles or raw memory."""

INPLACE_METHODS = words("fill itemset partition put resize setfield sort") | frozenset(INPLACE_OPERATORS)
"""The methods that change their array; their names do not show it."""

PROMOTES_BY_VALUE = np.lib.NumpyVersion(np.__version__) < "2.0.0"
"""Whether the dtype of a result depends on the values of 0-dimensional arrays."""

UFUNC_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")
_DUNDERS = words(
    "__getitem__ __setitem__ __len__ __contains__ __bool__ __float__ __int__ __index__ __complex__ "
    "__divmod__ __rdivmod__ __pow__"
)
_SYNONYMS = {
    **SYNONYMS,
    "concatenate": "cat",
    "concat": "cat",
    "equal": "eq",
    "conj": "conjugate",
    "max": "amax",
    "min": "amin",
    "row_stack": "vstack",
}
_OPERATIONS = {**_SYNONYMS, **OPERATORS, **INPLACE_OPERATORS, **REFLECTED_OPERATORS}
_Dispatched: type = type(np.concatenate)
_BUFFERS = (bytes, bytearray, mmap)
_KINDS = frozenset({np.ndarray, SyftArray, np.memmap, np.matrix, np.recarray})
"""The types of arrays that hold no other memory than that of their elements."""
_OWNERS = frozenset({np.ndarray, SyftArray, bytes, bytearray})
_STRINGS: object = getattr(np.dtypes, "StringDType", None) if hasattr(np, "dtypes") else None
"""The type of the dtype of strings of any length, which cannot be changed; older versions of numpy have none."""


def _result_types() -> dict[str, type]:
    """Return numpy's named tuples; numpy does not export them, so they come from functions that return them."""
    square, row = np.eye(1), np.ones(1)
    results = [
        *(getattr(np.linalg, name)(square) for name in ("svd", "eig", "eigh", "qr", "slogdet")),
        *(getattr(np, name)(row) for name in ("unique_all", "unique_counts", "unique_inverse") if hasattr(np, name)),
    ]
    return {type(result).__name__: type(result) for result in results if hasattr(result, "_fields")}


def _set(x: Tensor, index: Any, value: Tensor) -> Tensor:
    changed = x * 1
    changed[index] = value
    return changed


STRUCTURAL: Mapping[str, Function | None] = {
    **dict.fromkeys(
        words("""
        reshape ravel flatten transpose permute_dims T swapaxes moveaxis squeeze expand_dims broadcast_to cat stack
        hstack vstack dstack column_stack split array_split flip fliplr flipud roll rot90 tile diag diagonal tril triu
        atleast_1d atleast_2d diff
    """)
    ),
    "copy": lambda x, *_args, **_options: x * 1,
    "positive": lambda x: x * 1,
    "cumsum": lambda x, axis=None: x.cumsum(axis=axis, dtype=x.dtype),
    "trace": lambda x, *axes: x.trace(*axes, dtype=x.dtype),
    "take": with_indices(lambda x, indices, axis=None: x.take(indices, axis=axis)),
    "repeat": with_indices(lambda x, repeats, axis=None: x.repeat(repeats, axis=axis)),
    "__getitem__": with_indices(lambda x, index: x[index]),
    "__setitem__": with_indices(_set, 2),
}
"""The operations that only move or add elements."""


class NumpyAttributes(FrameworkAttributes):
    """The op table of numpy, and how to copy, describe and overwrite arrays.

    The table contains all ufuncs with their methods, all functions that support ``__array_function__``, and the methods
    and attributes of ``ndarray``, except those in ``EXCLUDE``.
    """

    ALIAS = "numpy"
    kernels = later("syft_mpc.numpy.kernels:KERNELS")
    structural = STRUCTURAL
    masking = words("cat stack __setitem__")
    transposing = words("transpose")
    selecting = words("take __getitem__")
    alternatives = ALTERNATIVES
    exclude = EXCLUDE
    inplace_methods = INPLACE_METHODS
    worker_methods = ("array", "arange", "ones", "zeros")
    result_types = _result_types()
    facts_of_form = words("shape ndim size dtype itemsize nbytes __len__")
    facts_of_layout = frozenset({"strides"})
    global_state_change_methods = frozenset({"seed", "seterr", "set_printoptions", "setbufsize", "seterrcall"})

    def __init__(self, numpy: object) -> None:
        super().__init__(numpy, wrap, wrap)

    def replace_in_place(self, tensor: Tensor, other: object) -> NoReturn:
        """Refuse: an array cannot turn into a chain, nor a chain into an array."""
        raise TypeError(
            "cannot encode, decode or share an array in place: an array cannot turn into a chain; assign the result, "
            "e.g. `x = x.fix_precision()`"
        )

    def expand(self, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Repeat an array along axes of length one, to a shape."""
        return dispatch(self.ops.of(np.broadcast_to), (tensor, shape), {})

    def permute(self, tensor: Tensor, axes: Sequence[int]) -> Tensor:
        """Reorder the axes of an array."""
        return tensor.transpose(tuple(axes))

    def join(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        """Join arrays along an axis."""
        return dispatch(self.ops.of(np.concatenate), (list(tensors), axis), {})

    def fact(self, op: Op, form: Form) -> object:
        """Return a fact about an array of this form."""
        return op.run(np.broadcast_to(np.zeros((), form.dtype), form.shape))

    def real_dtype(self, tensor: Tensor) -> object:
        """Return the dtype of the real numbers of an array: its own, or that of Python for integers."""
        return tensor.dtype if tensor.dtype.kind == "f" else np.dtype(np.float64)

    def copy(self, tensor: Tensor) -> Tensor:
        """Return a plain array with a copy of the data."""
        return np.array(tensor.copy() if isinstance(tensor, np.void) else tensor)  # numpy only wraps a record.

    def positions_of(self, mask: Tensor) -> tuple[Tensor, ...] | None:
        """Return the positions that a mask selects."""
        return mask.nonzero() if mask.dtype == bool and mask.ndim else None

    def is_integral(self, dtype: object) -> bool:
        """Return whether a dtype is one of integers or booleans."""
        return getattr(dtype, "kind", "") in ("b", "i", "u")

    def memory_of(self, tensor: Tensor) -> frozenset[int | str] | None:
        """Return the id of the object that owns the memory, and the name of the file that is mapped there.

        Nothing is known about arrays of Python objects, subclasses that may hold further arrays, and memory of other
        libraries.
        """
        owner = self.owner_of(tensor)
        if type(tensor) not in _KINDS and not isinstance(tensor, np.generic):
            return None
        if tensor.dtype.hasobject and type(tensor.dtype) is not _STRINGS:
            return None
        if type(owner) in _OWNERS or isinstance(owner, np.generic):
            return frozenset((id(owner),))
        return frozenset((id(owner), *_find_files(tensor))) if type(owner) is mmap else None

    def owner_of(self, tensor: Tensor) -> object:
        """Return the array or buffer that owns the memory; views of one array have the same owner."""
        owner: Any = tensor
        while (base := getattr(owner, "base", getattr(owner, "obj", None))) is not None:
            owner = base
        return owner

    def is_shared(self, *_tensors: Tensor) -> bool:
        """Return False: arrays that share memory have the same owner."""
        return False

    def bytes_of(self, tensor: Tensor) -> int:
        """Return the size of the array that owns the memory."""
        owner: Any = tensor
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return int(owner.nbytes)

    def is_partial_view(self, tensor: Tensor) -> bool:
        """Return whether an array does not fill its memory: that of another array, or of a message."""
        owner: Any = tensor
        while isinstance(owner, np.ndarray) and owner.base is not None:
            owner = owner.base
        owner = owner.obj if isinstance(owner, memoryview) else owner
        size = owner.nbytes if isinstance(owner, np.ndarray) else len(owner) if isinstance(owner, _BUFFERS) else None
        return not (tensor.flags.forc and tensor.nbytes == size)

    default_float = "float64"

    def form_of(self, tensor: Tensor) -> Form | None:
        """Return the form of an array, or None if it contains Python objects."""
        return None if tensor.dtype.hasobject else form(tensor.shape, tensor.strides, tensor.dtype)

    def form_of_copy(self, tensor: Tensor) -> Form | None:
        """Return the form of a copy, or None if the array is not C-contiguous."""
        return self.form_of(tensor) if tensor.flags.c_contiguous else None

    def answer_from_form(self, op: Op, form: Form, args: Args) -> Nested:
        """Run ``op`` on an array of this form that takes no memory."""
        return op.run(np.broadcast_to(np.empty((), form.dtype), form.shape), *args)

    def shadow(self, argument: object, device: object) -> Tensor:
        """Return an array with fixed values for a form, because numpy has no arrays without values."""
        return _example(argument) if type(argument) is Form else argument

    def example(self, form: Form, kind: int) -> Tensor | None:
        """Return an array of a form, unless it is large."""
        size = math.prod(form.shape) * form.dtype.itemsize
        return _fill(form, _values(form, kind)) if size <= _LARGEST_EXAMPLE else None

    def protect_rng(self, op: Op) -> AbstractContextManager[None]:
        """Prevent numpy 1 from choosing dtypes by value."""
        return _promote_by_type() if PROMOTES_BY_VALUE else nullcontext()

    def zeros(self, forms: Sequence[Form], operands: Sequence[Tensor]) -> list[Any]:
        """Return zeros of these forms."""
        return [_fill(known, np.zeros((), known.dtype)) for known in forms]

    def overwrite(self, target: Tensor, value: object) -> None:
        """Copy the values."""
        target[...] = value

    def _creator(self, name: str) -> Function:
        return partial(_run, super()._creator(name))

    def _collect(self) -> Iterator[Op]:
        for name, func, spelling in _numpy_functions():
            last = name.split(".")[-2] if spelling == "getter" else name.rsplit(".", 1)[-1]
            if last not in EXCLUDE:
                yield describe_op(
                    name,
                    func,
                    spelling,
                    inplace=spelling == "method" and last in INPLACE_METHODS,
                    synonyms=_SYNONYMS,
                    run=_runner(name, func),
                    describe=describe,
                )

    def _methods(self) -> dict[str, Op]:
        methods = {op.attr: op for op in self.ops if op.name.startswith("numpy.ndarray.")}
        by_operation = {op.operation: op for op in self.ops if op.name == f"numpy.{op.attr}"}
        for table in (OPERATORS, COMPARATORS, UNARY_OPERATORS):
            for operator, operation in table.items():
                # The power operator has its own method: for some exponents, its bits differ from those of the ufunc.
                methods.setdefault(operator, by_operation[_UFUNC_OF.get(operation, operation)])
        return methods


# Operations whose ufunc has another name.
_UFUNC_OF = {"bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift"}


def _runner(name: str, func: Function) -> Function:
    *_, owner, last = ("", *name.split("."))
    run = partial(_count if last == "count_nonzero" else _run, func)
    if last in ACCUMULATES:
        run = partial(_accumulate, func)
    elif last in NEEDS_FINITE:
        run = partial(_run_finite, func)
    operation = _OPERATIONS.get(last, last)
    if not isinstance(func, np.ufunc) and (operation not in REDUCTIONS or last == "outer"):
        run = partial(_run_everywhere, run)
    if last in UFUNC_METHODS:
        operation = _SYNONYMS.get(owner, owner)
    return limit_integers(run, LARGEST[operation]) if operation in LARGEST else run


def _accumulate(func: Function, *args: object, **kwargs: object) -> Nested:
    """Run a function that accumulates; refuse a 0-dimensional ``out``, on which numpy crashes."""
    for target in (*args[3:4], *leaves(kwargs.get("out"))):
        if isinstance(target, np.ndarray) and target.ndim == 0:
            raise ValueError("cannot accumulate into a 0-dimensional array: it has no room for the results")
    return _run(func, *args, **kwargs)


def _run_finite(func: Function, *args: object, **kwargs: object) -> Nested:
    """Run a function that decomposes a matrix; refuse values that are not finite, on which LAPACK may hang."""
    order = kwargs.get("ord", args[1] if len(args) > 1 else None)
    if "norm" in func.__name__ and (
        order is None or (type(order) in (int, float, str) and order not in (2, -2, "nuc"))
    ):
        return _run(func, *args, **kwargs)
    for given in map(np.asanyarray, args[:2]):
        if given.ndim > 1 and given.dtype.kind in "fc" and not np.isfinite(given).all():
            raise np.linalg.LinAlgError("cannot decompose a matrix that contains infinities or NaN")
    return _run(func, *args, **kwargs)


def _run(func: Function, *args: object, **kwargs: object) -> Nested:
    """Run a function of numpy, and convert scalars to arrays, so that a chain always ends in an array.

    Refuse arrays of Python objects: numpy would compute with ints and strings of any length.
    """
    data = _UFUNC_DATA if isinstance(func, np.ufunc) else _DATA
    if kwargs or not data.issuperset(map(type, args)):
        others = leaves(([arg for arg in args if type(arg) not in data], kwargs))
        if any(map(_is_object, others)):
            raise TypeError(f"cannot run {func.__name__!r} with Python objects or ints of more than 64 bits")
    result = func(*args, **kwargs)
    if kwargs and isinstance(func, np.ufunc):
        _clear_gaps(result, args, kwargs)
    if type(result) is not np.ndarray:
        return _as_arrays(result)
    if result.dtype.kind == "O":
        raise TypeError(f"cannot run {func.__name__!r}: its result is an array of Python objects")
    return result


_DATA = frozenset({np.ndarray})
_UFUNC_DATA = frozenset({np.ndarray, str})  # A ufunc takes dtypes by keyword.


def _run_everywhere(run: Function, *args: object, **kwargs: Any) -> Nested:
    """Run a function; set the elements that ``where`` leaves out to zero, because numpy does not initialize them."""
    result = run(*args, **kwargs)
    _clear_gaps(result, args, kwargs)
    return result


def _clear_gaps(result: Nested, args: object, kwargs: Any) -> None:
    if (where := kwargs.get("where", True)) is True:
        return
    given = {id(leaf) for leaf in leaves((args, kwargs))}
    for made in leaves(result):
        if isinstance(made, np.ndarray) and id(made) not in given:
            made[~np.broadcast_to(np.asarray(where, bool), made.shape)] = np.zeros((), made.dtype)


def _is_object(leaf: Tensor) -> bool:
    """Return whether a plain argument is an int too large for 64 bits, or names the object dtype."""
    if type(leaf) is int:
        return leaf.bit_length() > 64
    if type(leaf) is not str or not ("O" in leaf or "object" in leaf):
        return False
    try:
        return np.dtype(leaf).hasobject
    except TypeError:
        return "->" in leaf  # the signature of a ufunc


def _find_files(array: Tensor) -> Iterator[str]:
    """Yield the names of the files that an array, or an array of which it is a view, maps into memory."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            yield str(array.filename)
        array = array.base


def _count(func: Function, *args: object, **kwargs: object) -> Nested:
    """Run a function that counts values; numpy before 2.4 returns an int, which would count as a fact about form."""
    return np.asarray(func(*args, **kwargs))


def _example(known: Form) -> Tensor:
    """Return an array of a form: identity matrices or ones; zeros if the dtype is not floating-point."""
    is_matrix = len(known.shape) > 1 and known.shape[-1] == known.shape[-2]
    kind = 0 if known.dtype.kind not in "fc" else 2 if is_matrix else 1  # Integers may be indices.
    return _fill(known, _values(known, kind))


_LARGEST_EXAMPLE = 1 << 26
"""The largest example outside of a dry run, in bytes."""


def _values(known: Form, kind: int) -> Tensor:
    if kind == 0 or known.dtype.kind not in "fciu":
        return np.array(0).astype(known.dtype)
    if kind == 1:
        return np.ones((), known.dtype)
    if kind == 2 and len(known.shape) > 1 and known.shape[-1] == known.shape[-2]:
        return np.eye(known.shape[-1], dtype=known.dtype)
    numbers = np.arange(math.prod(known.shape)).reshape(known.shape)
    return numbers * 0.618 % 1 if known.dtype.kind in "fc" else numbers % 2


def _fill(known: Form, value: Any) -> Tensor:
    ends = [(size - 1) * stride for size, stride in zip(known.shape, known.strides, strict=True) if size]
    first = -sum(min(end, 0) for end in ends)
    memory = bytearray(first + sum(max(end, 0) for end in ends) + known.dtype.itemsize)
    array: Any = np.ndarray(known.shape, known.dtype, memory, first, known.strides)
    array[...] = value
    return array


@contextmanager
def _promote_by_type() -> Iterator[None]:
    """Make numpy 1 choose dtypes as numpy 2 does."""
    module: Any = np  # the names are not in numpy's stubs, and not in numpy 2.2
    before = module._get_promotion_state()
    module._set_promotion_state("weak")
    try:
        yield
    finally:
        module._set_promotion_state(before)


def _as_arrays(result: Nested) -> Nested:
    if type(result) is np.ndarray:
        return result
    if isinstance(result, np.generic):
        return np.asarray(result)
    if isinstance(result, tuple) and any(isinstance(item, np.generic) for item in result):
        items = [_as_arrays(item) for item in result]
        return type(result)(*items) if hasattr(result, "_fields") else tuple(items)
    return result


# Listed with their wire names, because the names and contents of modules depend on numpy's version.
_MODULES: Mapping[str, Mapping[str, Any]] = {
    "numpy": vars(np),
    "numpy.linalg": vars(numpy.linalg),
    "numpy.fft": vars(numpy.fft),
    # Since 2.5 its names are created on demand. The three left out are deprecated, and not functions on arrays.
    "numpy.char": {name: getattr(np.char, name) for name in {*np.char.__all__} - {"chararray", "array", "asarray"}},
    "numpy.lib.scimath": vars(np.emath),
    "numpy.lib.stride_tricks": vars(numpy.lib.stride_tricks),
}


def _has_method(ufunc: np.ufunc, method: str) -> bool:
    if ufunc.signature is not None:
        return False
    if method == "outer":
        return ufunc.nin == 2
    return ufunc.nout == 1 and (method == "at" or ufunc.nin == 2)


def _numpy_functions() -> Iterator[tuple[str, Function, Spelling]]:
    """Yield all functions that support the protocols, and the members of ``ndarray``, with their full names."""
    for path, members in _MODULES.items():
        for name, function in sorted(members.items()):
            if isinstance(function, np.ufunc):
                yield f"{path}.{name}", function, "function"
                for method in filter(partial(_has_method, function), UFUNC_METHODS):
                    yield f"{path}.{name}.{method}", getattr(function, method), "function"
            elif isinstance(function, _Dispatched) and not name.startswith("_"):
                yield f"{path}.{name}", function, "function"  # type: ignore[misc]  # callable, untyped
    for name in dir(np.ndarray):
        attribute = getattr(np.ndarray, name)
        if name.startswith("_") and name not in {*_DUNDERS, *INPLACE_OPERATORS, *REFLECTED_OPERATORS}:
            continue
        if inspect.isgetsetdescriptor(attribute):
            yield f"numpy.ndarray.{name}.__get__", attribute.__get__, "getter"
        else:
            yield f"numpy.ndarray.{name}", attribute, "method"
