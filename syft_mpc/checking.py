"""Check encrypted programs during development: compare every result with the one that floats give.

Nobody can see an overflow of shared numbers. Virtual workers are in this process, so there all shares can be read. Each
operation is computed a second time, with floats of 64 bits, from the values of its operands: so an error is reported
where it first appears, also in a backward pass.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import prod

from syft_core.exceptions import OperationNotAllowedError
from syft_core.hook.attributes import Op
from syft_core.hook.chain import end_of
from syft_core.hook.dispatch import framework_of
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import leaves, map_leaves
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.values import Args, Kwargs, Nested, Tensor
from syft_mpc import integers
from syft_mpc.additive_shared import AdditiveSharingTensor
from syft_mpc.authenticated_tensor import is_authenticated
from syft_mpc.errors import PrecisionError, ProtocolError
from syft_mpc.kernels import Array, Kernels, dtype_name
from syft_mpc.secret_places import SecretPlaces
from syft_mpc.truncation import BITS

UNITS, PART = 64, 0.02
"""Tolerated difference from the result of floats: in units, and as a part of it. An overflow is much larger."""
FEW = 8
"""Results that are all below this many units are mostly rounding errors."""
_running: list[set[str]] = []
"""For each block that is open: the operations that it has warned about. Backward passes may run in other threads."""
_last: list[Reference] = []
"""The operation that runs."""


class PrecisionWarning(UserWarning):
    """Numbers are too small for the fixed precision."""


@contextmanager
def checking() -> Iterator[None]:
    """Compare every result on encoded or shared numbers with the one that floats give, in this block; for development.

    Raises ``PrecisionError`` at the first operation with a result that is out of range, and warns about operations
    whose results are too small for the precision. All shares are read, so all workers must be virtual ones.
    """
    seen: set[str] = set()
    _running.append(seen)
    integers.watchers[:] = [_require_range]
    try:
        yield
    finally:
        _running[:] = [other for other in _running if other is not seen]
        if not _running:
            integers.watchers.clear()
            _last.clear()


def begin(op: Op, args: Args, kwargs: Kwargs) -> Reference | None:
    """Return a check of an operation that is about to run; None outside of ``checking`` blocks."""
    if not _running or not op.is_deterministic:
        return None
    if any(isinstance(end_of(leaf), PointerTensor) for leaf in leaves((args, kwargs))):
        return None  # Encoded numbers at one worker are moved, and nothing is computed.
    _last[:] = [Reference(op, args, kwargs)]
    return _last[0]


def _require_range(x: integers.Integers, divisor: int) -> None:
    """Raise if a dividend is too large: shared numbers are then right or wrong at random."""
    if not _last:
        return
    _last[0].rounds = True
    value = _read(x)
    size = integers.kernels_of(value).to_floats(value) * divisor
    _last[0].require(abs(size) < 1 << (BITS[dtype_name(value)] - 2))


class Reference:
    """An operation with its operands as floats, before it runs."""

    def __init__(self, op: Op, args: Args, kwargs: Kwargs) -> None:
        self.op = op
        self.rounds = False
        """Whether it has divided numbers, so that small results are rounding errors."""
        self.layer = next(leaf for leaf in leaves((args, kwargs)) if _is_encoded(leaf))
        self.kernels: Kernels = framework_of(self.layer).kernels
        if op.reflected:  # The rule has its operands in the other order.
            args = (args[1], args[0], *args[2:])
        self.args, self.kwargs = map_leaves(self._to_floats, (args, kwargs))

    def compare(self, result: Nested, first_only: bool = False) -> None:
        """Raise if an element of a result, or of the first of several, differs from that of floats."""
        if not any(map(_has_numbers, leaves(result))):
            return
        expected = self._run()
        if expected is None:
            return
        parts = leaves(expected)[:1] if first_only else leaves(expected)
        for leaf, part in zip(leaves(result), parts, strict=False):
            if _has_numbers(leaf) and is_framework_tensor(type(part)):
                self._compare_part(_open(leaf), part)

    def _run(self) -> Nested:
        """Compute the operation with floats; None if it needs what encoded numbers do not have, such as indices.

        Some operations need booleans, such as masks: one of the operands that are all 0 or 1, or all of these.
        """
        tensors = [leaf for leaf in leaves((self.args, self.kwargs)) if self._is_mask(leaf)]
        for masks in ([], *[[leaf] for leaf in tensors], tensors):
            args, kwargs = map_leaves(partial(_to_boolean, {id(leaf) for leaf in masks}), (self.args, self.kwargs))
            try:
                return self.op.run(*args, **kwargs)
            except (TypeError, RuntimeError, ValueError, IndexError, OperationNotAllowedError):
                continue
        return None

    def _compare_part(self, found: Array, part: Array) -> None:
        if dtype_name(part).startswith(("int", "uint")) or tuple(found.shape) != tuple(part.shape):
            return  # Indices: among equal numbers, it may find another one.
        xp, unit = self.kernels.xp, 1 / self.layer.scale
        expected = self.kernels.to_floats(part)
        size = xp.abs(expected)
        most = UNITS * unit if self.layer.scale > 1 else unit  # Integers are at most rounded.
        self.require(xp.isfinite(expected) & (xp.abs(found - expected) <= most + PART * size))
        if self.rounds and prod(found.shape) and 0 < float(xp.max(size)) < FEW * unit:
            self._warn()

    def require(self, passed: Array) -> None:
        """Raise an error that names the first element that is not in range."""
        if not bool(passed.all()):
            place = self.kernels.reshape(passed, (-1,)).tolist().index(False)
            numbers = self.layer.numbers
            raise PrecisionError.differs(
                self.op.name, _unravel(place, tuple(passed.shape)), numbers.limit, numbers.limit / numbers.scale
            )

    def _warn(self) -> None:
        for seen in _running:
            if self.op.name not in seen:
                seen.add(self.op.name)
                text = (
                    f"the results of {self.op.name!r} are all smaller than {FEW} units of the precision: they are "
                    "mostly rounding errors; scale the numbers (for gradients: the loss), or use more fractional digits"
                )
                warnings.warn(text, PrecisionWarning, stacklevel=2)

    def _to_floats(self, leaf: Tensor) -> Tensor:
        if _has_numbers(leaf):
            return _open(leaf)
        if is_framework_tensor(type(leaf)):
            real = dtype_name(leaf).startswith(("float", "bfloat"))
            return self.kernels.to_floats(leaf) if real else framework_of(leaf).copy(leaf)
        double = self.kernels.dtype("float64")
        return double if type(leaf) is type(double) and "float" in str(leaf) else leaf

    def _is_mask(self, leaf: Tensor) -> bool:
        if not is_framework_tensor(type(leaf)) or not dtype_name(leaf).startswith("float"):
            return False
        return bool(((leaf == 0) | (leaf == 1)).all())


def _to_boolean(masks: set[int], leaf: Tensor) -> Tensor:
    return leaf != 0 if id(leaf) in masks else leaf


def _is_encoded(leaf: Tensor) -> bool:
    return isinstance(leaf, AdditiveSharingTensor.number_type)


def _has_numbers(leaf: Tensor) -> bool:
    """Return whether a part of a call is encoded and has values, unlike the places of the largest numbers."""
    return _is_encoded(leaf) and not isinstance(leaf.child, SecretPlaces)


def _open(layer: Tensor) -> Array:
    """Return the numbers of a layer as floats, in row-major order: some kernels of frameworks ignore other orders."""
    value = _read(layer.child)
    kernels = integers.kernels_of(value)
    numbers = kernels.decode(value, layer.scale, kernels.dtype("float64"))
    return kernels.reshape(kernels.reshape(numbers, (-1,)), tuple(numbers.shape))


def _read(value: integers.Integers) -> Array:
    """Return integers; read shares from workers of this process."""
    if is_authenticated(value):
        raise ProtocolError.cannot_check_authenticated()
    if not integers.is_shared(value):
        return value
    for location in value.locations:
        if not getattr(location, "is_virtual", False):
            raise ProtocolError.not_virtual(location.id)
    return value.virtual_get()


def _unravel(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of an element from its place in the order of memory.

    >>> _unravel(5, (2, 3))
    (1, 2)
    """
    index: list[int] = []
    for length in reversed(shape):
        place, rest = divmod(place, length)
        index.insert(0, rest)
    return tuple(index)
