"""Arithmetic on integers that are shared, or public: what layers that encode numbers build on.

Every function takes shared values, plain tensors of integers, or Python's integers, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from syft_core.exceptions import OperationNotAllowedError
from syft_core.hook.dispatch import framework_of
from syft_core.location import WorkerLike
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.pointers.travel import send_copy
from syft_core.values import Nested, Tensor
from syft_mpc import authenticated_tensor, comparison, securenn, spdz
from syft_mpc.additive_shared import FAST, SECURENN, AdditiveSharingTensor
from syft_mpc.authenticated import auth_truncate
from syft_mpc.authenticated_tensor import AUTHENTICATED, AuthenticatedTensor, is_authenticated
from syft_mpc.errors import PrecisionError, ProtocolError
from syft_mpc.kernels import Kernels, dtype_name
from syft_mpc.spdz import BILINEAR, ELEMENTS, IMAGES, MATRICES
from syft_mpc.truncation import truncate

Integers: TypeAlias = Any
"""A shared value, a plain tensor of integers, or an integer."""


watchers: list[Callable[[Integers, int], None]] = []
"""Called with dividends, or with quotients and their divisors: a dividend must be in range."""


def watch(x: Integers, divisor: int = 1) -> Integers:
    """Let watchers see a value that is divided, or a quotient and its divisor; return it."""
    for watcher in watchers:
        watcher(x, divisor)
    return x


def is_shared(x: Integers) -> bool:
    """Return whether a value is shared."""
    return type(x) is AdditiveSharingTensor


def is_small(x: Integers) -> bool:
    """Return whether values have 32 bits, instead of 64."""
    return is_authenticated(x) or dtype_name(x) != "int64"


def share(
    secret: Tensor, workers: Sequence[WorkerLike], provider: WorkerLike | None, owner: Any, protocol: str = FAST
) -> Integers:
    """Share integers that are in this process, or that a pointer points to, with a protocol."""
    if protocol == AUTHENTICATED:
        return AuthenticatedTensor.share(secret, workers, provider, owner)
    split = AdditiveSharingTensor.share_remotely if isinstance(secret, PointerTensor) else AdditiveSharingTensor.share
    return split(secret, workers, provider, owner, protocol)


def _is_tensor(x: Integers) -> bool:
    return hasattr(x, "shape") and not is_shared(x)


def shape_of(x: Integers) -> tuple[int, ...]:
    """Return the shape of a value."""
    return tuple(x.shape) if hasattr(x, "shape") else ()


def kernels_of(x: Integers) -> Kernels:
    """Return the integer arithmetic of the framework of a value."""
    if is_authenticated(x):
        raise ProtocolError.not_authenticated()
    kernels: Kernels | None = framework_of(x).kernels
    if kernels is None:
        raise OperationNotAllowedError.no_kernels(framework_of(x).ALIAS)
    return kernels


def _send(value: Integers, pointer: PointerTensor) -> Integers:
    return send_copy(value, pointer._syft_owner, pointer._location) if _is_tensor(value) else value


def _in_ring(value: Integers, like: AdditiveSharingTensor) -> Integers:
    """Return a public operand in the ring of a shared value: a wider one would widen shares before they wrap around."""
    if not _is_tensor(value) or dtype_name(value) == dtype_name(like):
        return value
    return kernels_of(value).cast(value, dtype_name(like))


def make_public(value: Tensor, like: AdditiveSharingTensor) -> AdditiveSharingTensor:
    """Return a public value as a shared one: the first party holds it, and the others zeros."""
    value = _in_ring(value, like)
    zeros = kernels_of(value).zeros(shape_of(value), dtype_name(value))
    shares = {id: _send(zeros if place else value, pointer) for place, (id, pointer) in enumerate(like.child.items())}
    return AdditiveSharingTensor(shares, like.group, like.protocol)


def overwrite(target: Integers, value: Integers) -> None:
    """Write integers in place, so that views of the target change too."""
    own, new = shape_of(target), shape_of(value)
    if own != new and spdz.broadcast(own, new) != own:
        raise ValueError(f"cannot write numbers of shape {new} to a tensor of shape {own}: they do not fit; reshape")
    if is_shared(target):
        value = value if is_shared(value) else make_public(value, target)
        target.assign(expand(value, own))
    elif is_shared(value):
        raise PrecisionError.shared_into_public()
    else:
        framework_of(target).overwrite(target, expand(value, own))


def expand(x: Integers, shape: Sequence[int]) -> Integers:
    """Repeat a value along axes of length one, to a shape."""
    if shape_of(x) == tuple(shape):
        return x
    framework = framework_of(x)
    return x.on_each(lambda p: framework.expand(p, tuple(shape))) if is_shared(x) else framework.expand(x, tuple(shape))


def permute(x: Integers, axes: Sequence[int]) -> Integers:
    """Reorder the axes."""
    framework = framework_of(x)
    return x.on_each(lambda p: framework.permute(p, axes)) if is_shared(x) else framework.permute(x, axes)


def reshape(x: Integers, shape: Sequence[int]) -> Integers:
    """Return the elements in another shape."""
    shape = tuple(shape)
    if shape == shape_of(x):
        return x
    return x.on_each(lambda p: p.reshape(shape)) if is_shared(x) else x.reshape(shape)


def flatten(x: Integers) -> Integers:
    """Return the elements along one axis."""
    return reshape(x, (-1,))


def take(x: Integers, part: slice) -> Integers:
    """Return a part along the last axis."""
    return x.on_each(lambda p: p[..., part]) if is_shared(x) else x[..., part]


def join(parts: Sequence[Integers]) -> Integers:
    """Join values along the last axis: all of them are shared, or none is."""
    first, axis = parts[0], len(shape_of(parts[0])) - 1
    if is_shared(first):
        return first.on_each(lambda *pointers: first.framework.join(pointers, axis), *parts[1:])
    return kernels_of(first).concat(parts, axis)


def unsqueeze(x: Integers, axis: int) -> Integers:
    """Insert an axis of length one."""
    shape = list(shape_of(x))
    shape.insert(axis % (len(shape) + 1), 1)
    return reshape(x, shape)


def find_axis(x: Integers, axis: int) -> int:
    """Return an axis counted from the first one; refuse axes that a value does not have."""
    rank = max(1, len(shape_of(x)))
    if not -rank <= axis < rank:
        raise IndexError(
            f"cannot use axis {axis}: the value has {rank} dimensions; use an axis from {-rank} to {rank - 1}"
        )
    return axis % rank


# --- linear operations


def add(x: Integers, y: Integers) -> Integers:
    """Add; a public value is added by the first party."""
    shape = spdz.broadcast(shape_of(x), shape_of(y))
    if is_shared(x) and is_shared(y):
        return x.on_each(lambda p, q: p + q, y)
    if is_shared(y):
        x, y = y, x
    if not is_shared(x):
        return x + y
    wide, y = expand(x, shape), _in_ring(y, x)
    places = {id: place for place, id in enumerate(wide.child)}
    # The others add 0: a result must not share the memory of an operand.
    shares = {id: p + (0 if places[id] else _send(y, p)) for id, p in wide.child.items()}
    return AdditiveSharingTensor(shares, x.group, x.protocol)


def neg(x: Integers) -> Integers:
    """Negate."""
    return x.on_each(lambda p: -p) if is_shared(x) else -x


def sub(x: Integers, y: Integers) -> Integers:
    """Subtract."""
    if is_shared(x) and is_shared(y):
        spdz.broadcast(shape_of(x), shape_of(y))
        return x.on_each(lambda p, q: p - q, y)
    if is_shared(x) or is_shared(y):
        return add(x, neg(y))
    return x - y


def total(x: Integers, axes: Any = None, keepdims: bool = False) -> Integers:
    """Add the elements, along some axes or all."""
    options: dict[str, Any] = {} if axes is None and not keepdims else {"axis": axes, "keepdims": keepdims}
    if dtype_name(x) != "int64":  # Frameworks add smaller integers in a larger ring.
        options["dtype"] = x.dtype
    if axes is None and keepdims:
        options["axis"] = tuple(range(len(shape_of(x))))
    return x.on_each(lambda p: p.sum(**options)) if is_shared(x) else x.sum(**options)


# --- products


def multiply_and_add(
    x: Integers, y: Integers, plus: Integers, divisor: int, op: str = MATRICES, **options: Any
) -> Integers:
    """Multiply as ``multiply`` does, and add ``plus``; to images, it adds one number for each channel."""
    if all(map(is_shared, (x, y, plus))) and not watchers:
        shared: AdditiveSharingTensor = x
        return shared.multiply(y, op, plus, **({"divisor": divisor} if divisor != 1 else {}), **options)
    added = plus if op == MATRICES else reshape(plus, (-1, 1, 1))
    return add(multiply(x, y, divisor, op, **options), added)


def multiply(x: Integers, y: Integers, divisor: int = 1, op: str = ELEMENTS, **options: Any) -> Integers:
    """Multiply with a bilinear operation of ``spdz.BILINEAR``, and divide by ``divisor``."""
    if is_authenticated(x) or is_authenticated(y):
        return authenticated_tensor.multiply(x, y, divisor, op, **options)
    if is_shared(x) and is_shared(y):
        scaled = {"divisor": divisor} if divisor != 1 else {}
        same = x is y and op == ELEMENTS
        product = x.run(spdz.square, **scaled) if same else x.multiply(y, op, **scaled, **options)
        return watch(product, divisor) if scaled else product
    if not is_shared(x) and not is_shared(y):
        known = x if _is_tensor(x) else y
        return divide(BILINEAR[op](kernels_of(known), x, y, **options), divisor)
    shared: AdditiveSharingTensor = x if is_shared(x) else y
    x, y = (value if is_shared(value) else _in_ring(value, shared) for value in (x, y))
    if op == ELEMENTS:
        spdz.broadcast(shape_of(x), shape_of(y))
    run = _find_product(shared.framework, op, options)
    if run is None:  # Its workers cannot compute it as one operation.
        one, other = [value if is_shared(value) else make_public(value, shared) for value in (x, y)]
        return multiply(one, other, divisor, op, **options)
    product = (lambda p: run(p, _send(y, p))) if is_shared(x) else (lambda p: run(_send(x, p), p))
    return divide(shared.on_each(product), divisor)


def _find_product(framework: Any, op: str, options: dict[str, Any]) -> Callable[[Any, Any], Any] | None:
    """Return a product of a pointer with a public value, as one operation of its framework, if there is one."""
    if op == ELEMENTS:
        return lambda p, q: p * q
    if op == MATRICES:
        return lambda p, q: p @ q
    function = framework.convolve if op == IMAGES else None
    return None if function is None else lambda p, q: function(p, q, **options)


def divide(x: Integers, divisor: int) -> Integers:
    """Divide by a positive integer: shared values are rounded at random to a neighbour, public ones to the nearest."""
    if divisor == 1:
        return x
    if is_authenticated(x):
        return x.run(auth_truncate, divisor=divisor)
    watch(x)
    if is_shared(x):
        return x.run(truncate, divisor=divisor)
    return (x + divisor // 2) // divisor


def floor_divide(x: Integers, divisor: int) -> Integers:
    """Divide by a positive integer, and round down: the quotient, rounded at random, is corrected if it is larger."""
    if divisor == 1:
        return x
    if not is_shared(x):
        return kernels_of(x).floor_divide(x, divisor)
    quotient = divide(x, divisor)
    return sub(quotient, less(x, multiply(quotient, divisor)))


# --- comparison


# Each comparison has two options: ``negated`` exchanges 0 and 1, and with ``scale`` it returns a multiple of its result
# too. Protocols do both at no extra cost.


def is_negative(x: Integers, **options: int) -> Nested:
    """Return 1 where a value is negative, and 0 elsewhere."""
    if not is_shared(x):
        return _report(kernels_of(x).cast(x < 0, dtype_name(x)), **options)
    if x.protocol == SECURENN:
        return _report(complement(x.run(securenn.relu_deriv)), **options)
    return x.run(comparison.is_negative, **options)


def is_zero(x: Integers, **options: int) -> Nested:
    """Return 1 where a value is zero, and 0 elsewhere."""
    if not is_shared(x):
        return _report(kernels_of(x).cast(x == 0, dtype_name(x)), **options)
    if x.protocol == SECURENN:
        return _report(multiply(x.run(securenn.relu_deriv), neg(x).run(securenn.relu_deriv)), **options)
    return x.run(comparison.is_zero, **options)


def _report(bit: Integers, negated: int = False, scale: int = 1) -> Nested:
    bit = complement(bit) if negated else bit
    return bit if scale == 1 else (bit, multiply(bit, scale))


def relu(x: Integers) -> Integers:
    """Return the value where it is positive, and 0 elsewhere."""
    if is_shared(x) and x.protocol == SECURENN:
        return multiply(x, x.run(securenn.relu_deriv))
    if is_shared(x):
        positive, x_derivative = x.run(comparison.relu, derivative=True)
        positive.derivative = x_derivative
        return positive
    return x * kernels_of(x).cast(x > 0, dtype_name(x))


def complement(bit: Integers) -> Integers:
    """Return 1 - bit."""
    return sub(1, bit)


def less(x: Integers, y: Integers, **options: int) -> Nested:
    """Return 1 where x < y, and 0 elsewhere."""
    if is_shared(x) and is_shared(y) and x.protocol == FAST and shape_of(x) == shape_of(y):
        return x.run(comparison.is_negative, y, **options)
    return is_negative(sub(x, y), **options)


def greater(x: Integers, y: Integers, **options: int) -> Nested:
    """Return 1 where x > y."""
    return less(y, x, **options)


def at_least(x: Integers, y: Integers, **options: int) -> Nested:
    """Return 1 where x >= y."""
    return less(x, y, negated=True, **options)


def at_most(x: Integers, y: Integers, **options: int) -> Nested:
    """Return 1 where x <= y."""
    return less(y, x, negated=True, **options)


def equal(x: Integers, y: Integers, **options: int) -> Nested:
    """Return 1 where x = y."""
    return is_zero(sub(x, y), **options)


def differ(x: Integers, y: Integers, **options: int) -> Nested:
    """Return 1 where x and y differ."""
    return equal(x, y, negated=True, **options)


def select(bit: Integers, x: Integers, y: Integers) -> Integers:
    """Return x where the bit is 1, and y where it is 0."""
    return add(multiply(bit, sub(x, y)), y)


def maximum(x: Integers, y: Integers) -> Integers:
    """Return the larger of two values."""
    return add(y, relu(sub(x, y)))


def minimum(x: Integers, y: Integers) -> Integers:
    """Return the smaller of two values."""
    return sub(y, relu(sub(y, x)))
