"""Samples for the operations of numpy: generated for ufuncs and their methods, handwritten for the rest."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from syft_core.hook.attributes import Op

from .checks import Case

ARBITRARY = frozenset({"numpy.empty_like"})
"""Operations that return uninitialized memory: only the form of the results is compared."""

UFUNC_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")


def ufunc_cases(op: Op) -> Iterator[Case]:
    """Yield cases for a ufunc or one of its methods, with arguments of the types that it accepts."""
    ufunc = op.func if isinstance(op.func, np.ufunc) else getattr(op.func, "__self__", None)
    if not isinstance(ufunc, np.ufunc):
        return
    arrays = _arguments(ufunc)
    if op.func is ufunc:
        yield Case(op.name, ufunc, arrays)
        yield Case(op.name, ufunc, (*arrays[:-1], arrays[-1].tolist()), guess=True)
        yield Case(op.name, _with_out, (ufunc, *arrays), guess=ufunc.signature is not None)
        yield Case(op.name, ufunc, arrays, {"where": np.array([True, False, True])}, form_only=True, guess=True)
        return
    first = arrays[0]
    calls = {
        "reduce": [((first,), {}), ((first,), {"axis": None, "keepdims": True})],
        "accumulate": [((first,), {"axis": 0})],
        "reduceat": [((first, [0, 2]), {}), ((first, np.array([0, 1])), {})],
        "outer": [((first, arrays[-1]), {})],
        "at": [((first, [0, 2], *[a[[0, 1]] for a in arrays[1:]]), {}), ((first, np.array([0, 0]), *arrays[1:]), {})],
    }
    for args, kwargs in calls[op.attr]:
        yield Case(op.name, op.func, args, kwargs)
    if op.attr in ("reduce", "accumulate", "reduceat"):
        truths = np.array([True, False, True])
        yield Case(op.name, op.func, (truths, [0, 2]) if op.attr == "reduceat" else (truths,), guess=True)


def _with_out(ufunc: np.ufunc, *arrays: Any) -> Any:
    """Call ``ufunc`` a second time, into its own results."""
    results = ufunc(*arrays)
    return ufunc(*arrays, out=results if isinstance(results, tuple) else (results,))


def _arguments(ufunc: np.ufunc) -> tuple[np.ndarray, ...]:
    floats = np.array([0.25, 0.5, 0.75])
    if ufunc.signature is not None:
        vector, matrix = floats, np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]])
        shapes = [part.count(",") for part in ufunc.signature.split("->")[0].split("),")]
        return tuple(matrix if commas else vector for commas in shapes)
    for kind, array in {"d": floats, "l": np.array([3, 5, 7]), "M": np.array(["2020", "NaT", "2021"], "M8[D]")}.items():
        for types in ufunc.types:
            inputs = types.split("->")[0]
            if inputs[0] == kind and set(inputs) <= {"d", "l", "M"}:
                return tuple(array if char == kind else np.array([3, 5, 7]) for char in inputs)
    return (np.array(["a1", "B c", "7"]),) * ufunc.nin


def hand_made() -> Iterator[Case]:
    """Yield the samples of everything that is not a ufunc."""
    for group in (
        facts,
        reductions,
        shapes,
        joining,
        choosing,
        sorting,
        sets,
        calculations,
        beyond_the_domain,
        polynomials,
        windows_and_bins,
        linear_algebra,
        transforms,
        strings,
        dates,
        in_place,
        array_operators,
        array_methods,
        of_older_numpys,
    ):
        yield from group()


def each(names: str, *args: Any, **kwargs: Any) -> Iterator[Case]:
    """Yield one case for each of ``names`` (without "numpy."): the operation itself, called with the arguments."""
    for name in names.split():
        yield Case(f"numpy.{name}", _function(name), args, kwargs, form_only=f"numpy.{name}" in ARBITRARY)


def do(names: str, call: Callable[..., Any], *args: Any) -> Iterator[Case]:
    """Yield one case for each of ``names``; ``call`` must reach the operation."""
    for name in names.split():
        yield Case(f"numpy.{name}", call, args, form_only=f"numpy.{name}" in ARBITRARY)


def _function(name: str) -> Callable[..., Any]:
    """Return the operation as users spell it: a method is called on its array."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if name.startswith("ndarray."):
            return getattr(args[0], name[8:])(*args[1:], **kwargs)
        function = functools.reduce(getattr, name.split("."), np)
        return function(*args, **kwargs)

    return call


def floats() -> np.ndarray:
    return np.array([[1.5, -2.0, 0.25], [3.0, 4.0, -1.0]])


def square() -> np.ndarray:
    return np.array([[4.0, 1.0], [1.0, 3.0]])


def vector() -> np.ndarray:
    return np.array([3.0, 1.0, 2.0])


def integers() -> np.ndarray:
    return np.array([5, 2, 7])


def facts() -> Iterator[Case]:
    yield from each("ndim shape size iscomplexobj isrealobj min_scalar_type common_type result_type", floats())
    yield from each("can_cast", floats(), np.float32)
    yield from each("result_type common_type", floats(), vector())
    yield from each("shares_memory may_share_memory", floats(), floats())
    yield from each("allclose array_equal array_equiv isclose", floats(), floats())
    yield from each("array2string array_repr array_str", floats())
    yield from each("isreal iscomplex isneginf isposinf real imag angle real_if_close", floats())
    yield from each("isreal iscomplex real imag angle real_if_close", np.array([1 + 2j, 3]))
    yield from each("einsum_path", "ij,jk->ik", square(), square())


def reductions() -> Iterator[Case]:
    plain = "all any amax amin argmax argmin count_nonzero max mean median min prod ptp std sum var average"
    careful = "argmax argmin cumprod cumsum max mean median min prod std sum var"
    names = f"{plain} cumprod cumsum {' '.join(f'nan{name}' for name in careful.split())}"
    yield from each(names, floats())
    yield from each(names, floats(), axis=1)
    yield from each("percentile nanpercentile", floats(), 40)
    yield from each("quantile nanquantile", floats(), np.array([0.25, 0.5]), axis=0)
    yield from each("average", floats(), weights=floats() ** 2)
    yield from each("cumulative_sum cumulative_prod", vector())
    yield from each("sum mean", floats(), axis=0, keepdims=True, out=np.zeros((1, 3)))
    yield from each("sum", floats(), where=floats() > 0)
    yield from each("apply_along_axis", np.sum, 0, floats())
    yield from each("apply_over_axes", np.sum, floats(), [0, 1])
    yield from each("trace linalg.trace", square())


def shapes() -> Iterator[Case]:
    yield from each("atleast_1d atleast_2d atleast_3d ravel squeeze transpose permute_dims matrix_transpose", floats())
    yield from each("atleast_1d atleast_2d atleast_3d", floats(), vector())
    yield from each("linalg.matrix_transpose linalg.diagonal diagonal copy flip fliplr flipud rot90", floats())
    yield from each("reshape resize", floats(), (3, 2))
    yield from each("broadcast_to", vector(), (2, 3))
    yield from each("broadcast_arrays", vector(), floats())
    yield from each("expand_dims roll repeat", floats(), 1)
    yield from each("squeeze", floats()[None], axis=0)
    yield from each("moveaxis swapaxes rollaxis", floats(), 1, 0)
    yield from each("tile", floats(), 2)
    yield from each("lib.stride_tricks.sliding_window_view", vector(), 2)
    yield from each("pad", floats(), 1)
    yield from each("astype", floats(), np.float32)
    yield from each("empty_like ones_like zeros_like", floats())
    yield from each("full_like", floats(), 7)
    yield from each("diag diagflat tril triu", vector())
    yield from each("diag tril triu diag_indices_from tril_indices_from triu_indices_from", square())
    yield from each("ix_", integers(), integers())
    yield from each("meshgrid", vector(), integers())


def joining() -> Iterator[Case]:
    lists = "block column_stack concat concatenate dstack hstack stack vstack"
    yield from each(lists, [vector(), vector()])
    yield from each(lists, (vector(), vector() * 2))
    yield from each("concatenate stack", [floats(), floats()], axis=1)
    yield from each("split array_split vsplit", floats(), 2)
    yield from each("hsplit", floats(), 3)
    yield from each("dsplit", floats()[None], 3)
    yield from each("split", vector(), [1])
    yield from each("unstack", floats())
    yield from each("append", floats(), vector())
    yield from each("insert", vector(), 1, 9.0)
    yield from each("delete", vector(), 1)


def choosing() -> Iterator[Case]:
    yield from each("where", floats() > 0, floats(), 0.0)
    yield from each("where argwhere flatnonzero nonzero", floats() > 0)
    yield from each("choose", np.array([0, 1, 0]), [vector(), vector() * 2])
    yield from each("compress extract", np.array([True, False, True]), vector())
    yield from each("select", [vector() > 2, vector() > 1], [vector(), vector() * 10])
    yield from each("take", vector(), np.array([0, 2]))
    yield from each("take_along_axis", floats(), np.array([[0, 1, 0]]), axis=0)
    yield from each("piecewise", vector(), [vector() < 2, vector() >= 2], [-1.0, 1.0])
    yield from each("clip", floats(), -1, 2)
    yield from each("unravel_index", np.array([1, 3]), (2, 3))
    yield from each("ravel_multi_index", (np.array([0, 1]), np.array([1, 2])), (2, 3))
    yield from each("trim_zeros", np.array([0.0, 1.0, 0.0]))


def sorting() -> Iterator[Case]:
    yield from each("argsort sort sort_complex", vector())
    yield from each("sort argsort", floats(), axis=0)
    yield from each("partition argpartition", vector(), 1)
    yield from each("lexsort", (vector(), integers()))
    yield from each("searchsorted", np.array([1.0, 2.0, 3.0]), vector())
    yield from each("digitize", vector(), np.array([1.0, 2.0]))


def sets() -> Iterator[Case]:
    yield from each("intersect1d setdiff1d setxor1d union1d isin", integers(), np.array([2, 9]))
    yield from each("unique unique_all unique_counts unique_inverse unique_values", np.array([2, 1, 2]))
    yield from each("unique", np.array([2, 1, 2]), return_index=True, return_counts=True)


def calculations() -> Iterator[Case]:
    yield from each("around round fix i0 nan_to_num sinc unwrap ediff1d diff gradient", vector())
    yield from each("diff gradient unwrap", floats(), axis=1)
    yield from each("dot inner outer vdot convolve correlate cross kron", vector(), vector())
    yield from each("linalg.cross linalg.outer", vector(), vector())
    yield from each("corrcoef cov", floats())
    yield from each("tensordot linalg.tensordot", square(), square())
    yield from each("dot linalg.matmul", square(), square())
    yield from each("einsum", "ij,jk->ik", square(), square())
    yield from each("interp", vector(), np.array([1.0, 3.0]), np.array([10.0, 30.0]))
    yield from each("trapezoid", vector())
    yield from each("linspace logspace geomspace", np.array([1.0, 2.0]), np.array([3.0, 4.0]), 4)
    yield from each("packbits", np.array([1, 0, 1, 1]))
    yield from each("unpackbits", np.array([5], dtype=np.uint8))


def beyond_the_domain() -> Iterator[Case]:
    one = "arccos arcsin arctanh log log10 log2 sqrt"
    yield from each(" ".join(f"lib.scimath.{name}" for name in one.split()), floats())
    yield from each("lib.scimath.logn", 2.0, floats())
    yield from each("lib.scimath.power", floats(), 0.5)


def polynomials() -> Iterator[Case]:
    yield from each("poly roots polyder polyint vander", vector())
    yield from each("polyadd polysub polymul polydiv polyval", vector(), np.array([1.0, 2.0]))
    yield from each("polyfit", np.arange(4.0), np.array([1.0, 3.0, 5.0, 7.0]), 1)


def windows_and_bins() -> Iterator[Case]:
    yield from each("histogram histogram_bin_edges", vector(), 3)
    yield from each("histogram", vector(), np.array([0.0, 2.0, 4.0]))
    yield from each("histogram2d", vector(), vector(), 2)
    yield from each("histogramdd", floats(), 2)
    yield from each("bincount", integers())


def linear_algebra() -> Iterator[Case]:
    yield from each(
        "linalg.cholesky linalg.cond linalg.det linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.inv "
        "linalg.matrix_norm linalg.matrix_rank linalg.norm linalg.pinv linalg.qr linalg.slogdet linalg.svd "
        "linalg.svdvals linalg.vector_norm",
        square(),
    )
    yield from each("linalg.matrix_power", square(), 3)
    yield from each("linalg.multi_dot", [square(), square(), square()])
    yield from each("linalg.solve linalg.tensorsolve", square(), np.array([1.0, 2.0]))
    yield from each("linalg.lstsq", square(), np.array([1.0, 2.0]), rcond=None)
    yield from each("linalg.tensorinv", square(), ind=1)
    yield from each("linalg.vecdot", vector(), vector())


def transforms() -> Iterator[Case]:
    one = "fft ifft hfft ihfft rfft irfft fftshift ifftshift"
    yield from each(" ".join(f"fft.{name}" for name in one.split()), vector())
    two = "fft2 ifft2 fftn ifftn rfft2 irfft2 rfftn irfftn"
    yield from each(" ".join(f"fft.{name}" for name in two.split()), floats())


def strings() -> Iterator[Case]:
    words = np.array(["one two", "Three"])
    yield from each("char.capitalize char.expandtabs char.lower char.rsplit char.split char.splitlines", words)
    yield from each("char.swapcase char.title char.upper char.encode", words)
    yield from each("char.decode", np.array([b"one", b"two"]))
    yield from each("char.center char.ljust char.rjust char.zfill", words, 9)
    yield from each("char.equal char.not_equal char.less char.less_equal char.greater char.greater_equal", words, words)
    yield from each("char.join", np.array(["-", "+"]), words)
    yield from each("char.mod", np.array(["%d", "n%d"]), np.array([1, 2]))
    yield from each("char.replace", words, "o", "0")
    yield from each("char.translate", words, str.maketrans("o", "0"))


def dates() -> Iterator[Case]:
    days = np.array(["2020-01-03", "2020-01-06"], dtype="M8[D]")
    yield from each("busday_offset", days, 1, roll="forward")
    yield from each("busday_count", days, days + np.timedelta64(7, "D"))
    yield from each("is_busday datetime_as_string", days)


def in_place() -> Iterator[Case]:
    yield from each("copyto", floats(), vector())
    yield from each("fill_diagonal", square(), 9.0)
    yield from each("place putmask", floats(), floats() > 0, np.array([7.0, 8.0]))
    yield from each("put", floats(), [0, 2], vector())
    yield from each("put_along_axis", floats(), np.array([[0, 1, 0]]), 9.0, axis=0)


def array_operators() -> Iterator[Case]:
    arithmetic = "add sub mul truediv floordiv mod pow matmul"
    bits = "and or xor lshift rshift"
    for name in arithmetic.split():
        other = square() if name == "matmul" else 2.0
        yield from each(f"ndarray.__r{name}__ ndarray.__i{name}__", square(), other)
        yield from each(f"ndarray.__i{name}__", square(), square())
    for name in bits.split():
        yield from each(f"ndarray.__r{name}__ ndarray.__i{name}__", integers(), 2)
    yield from each("ndarray.__pow__", square(), 2.0)
    yield from each("ndarray.__divmod__ ndarray.__rdivmod__", vector(), 2.0)
    yield from do("ndarray.__divmod__", divmod, vector(), 2.0)
    yield from do("ndarray.__rdivmod__", lambda x: divmod(7.0, x), vector())
    one = np.array(2.0)
    yield from each("ndarray.__bool__ ndarray.__float__ ndarray.__int__ ndarray.__complex__", one)
    yield from each("ndarray.__index__", np.array(3))
    yield from each("ndarray.__contains__", vector(), 2.0)
    yield from each("ndarray.__len__", floats())
    for index in (0, -1, slice(0, 1), (slice(None), 1), ..., None, [1, 0], np.array([1]), floats() > 0, (0, 1)):
        yield from each("ndarray.__getitem__", floats(), index)
        yield from each("ndarray.__setitem__", floats(), index, 7.0)


def array_methods() -> Iterator[Case]:
    for name in "T device dtype flags flat imag itemsize mT nbytes ndim real shape size strides".split():
        yield from do(f"ndarray.{name}.__get__", lambda x, name=name: getattr(x, name), floats())
    alone = (
        "all any argmax argmin argsort byteswap conj conjugate copy cumprod cumsum diagonal flatten max mean min "
        "nonzero prod ravel round squeeze std sum tobytes tolist trace transpose var sort"
    )
    yield from each(" ".join(f"ndarray.{name}" for name in alone.split()), floats())
    axes = "all any argmax argmin argsort cumprod cumsum max mean min prod std sum var sort"
    yield from each(" ".join(f"ndarray.{name}" for name in axes.split()), floats(), axis=0)
    yield from each("ndarray.argpartition ndarray.partition", vector(), 1)
    yield from each("ndarray.astype ndarray.view", floats(), np.int64)
    yield from each("ndarray.choose", np.array([0, 1, 0]), [vector(), vector() * 2])
    yield from each("ndarray.clip", floats(), -1, 2)
    yield from each("ndarray.compress", vector(), [True, False, True])
    yield from each("ndarray.dot", square(), square())
    yield from each("ndarray.fill", floats(), 3.0)
    yield from each("ndarray.getfield", floats(), np.int32, 4)
    yield from each("ndarray.setfield", floats(), 3, np.int32)
    yield from each("ndarray.item", floats(), 0, 1)
    yield from each("ndarray.put", floats(), [0, 2], vector())
    yield from each("ndarray.repeat", floats(), 2)
    yield from each("ndarray.reshape", floats(), 3, 2)
    yield from each("ndarray.reshape", floats(), (3, 2))
    yield from each("ndarray.resize", floats(), (3, 1), refcheck=False)
    yield from each("ndarray.searchsorted", np.array([1.0, 2.0, 3.0]), vector())
    yield from each("ndarray.setflags", floats(), write=False)
    yield from each("ndarray.swapaxes", floats(), 0, 1)
    yield from each("ndarray.take", vector(), np.array([0, 2]))
    yield from each("ndarray.transpose", floats(), 1, 0)


def of_older_numpys() -> Iterator[Case]:
    """Yield samples for numpy 1.26 and 2.0."""
    yield from each("alltrue asfarray cumproduct msort product round_ sometrue trapz ndarray.ptp", vector())
    yield from each("lib.scimath.any lib.scimath.isreal ndarray.newbyteorder ndarray.tostring", vector())
    yield from each("in1d", integers(), np.array([2, 9]))
    yield from each("row_stack", [vector(), vector()])
    yield from each("lib.stride_tricks.broadcast_arrays", vector(), floats())
    yield from each("lib.stride_tricks.broadcast_to", vector(), (2, 3))
    yield from each("ndarray.itemset", vector(), 1, 9.0)
    for name in "itemset newbyteorder ptp".split():
        yield from do(f"ndarray.{name}.__get__", lambda x, name=name: getattr(x, name), vector())
    words = np.array(["one two", " Two"])
    truths = "isalnum isalpha isdecimal isdigit islower isnumeric isspace istitle isupper"
    yield from each(" ".join(f"char.{name}" for name in f"{truths} str_len lstrip rstrip strip".split()), words)
    searches = "count endswith find index partition rfind rindex rpartition startswith"
    yield from each(" ".join(f"char.{name}" for name in searches.split()), words, "w")
    yield from each("char.add", words, words)
    yield from each("char.multiply", words, np.array([2, 3]))
