"""FixedPrecisionTensor: real numbers as scaled integers, which can be shared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, log, prod
from typing import Any, TypeAlias

from syft_core.crypto import integers, spdz
from syft_core.crypto.additive_shared import FAST, FIELDS, AdditiveSharingTensor, restructure
from syft_core.crypto.authenticated_tensor import is_authenticated
from syft_core.crypto.integers import Integers
from syft_core.crypto.kernels import dtype_name
from syft_core.crypto.layers import find_largest
from syft_core.crypto.numbers import Numbers
from syft_core.crypto.order import OrderedNumbers
from syft_core.crypto.spdz import MATRICES
from syft_core.crypto.truncation import BITS
from syft_core.exceptions import OperationNotAllowedError, PrecisionError, ProtocolError
from syft_core.hook import hook_args
from syft_core.hook.attributes import Op
from syft_core.hook.dispatch import Answer, attributes_of, framework_of, rewrap
from syft_core.hook.hook_args import get_plan, is_framework_tensor
from syft_core.hook.overload import encode_plain, overloaded, value_places
from syft_core.hook.plans import Plan
from syft_core.hook.rules import leaves, map_leaves
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.values import Args, Kwargs, Nested, Tensor

Axes: TypeAlias = Any
"""An axis, several, or None for all."""
RINGS = {field: dtype for dtype, field in FIELDS.items()}
"""The dtypes of the rings, by their names."""


class FixedPrecisionTensor(OrderedNumbers):
    """Real numbers x as the integers nearest to x · base ** precision_fractional.

    The wrapper above has the dtype of the real numbers, so torch's own autograd and optimizers work on it, also when
    the integers are shared. Operands of different precision are refused: convert one with ``fix_precision``.
    """

    def __init__(
        self, base: int = 10, precision_fractional: int = 3, field: str = "long", dtype: Any = None, **identity: Any
    ) -> None:
        super().__init__(**identity)
        if field not in RINGS:
            raise PrecisionError.unknown_field(field)
        if type(base) is not int or type(precision_fractional) is not int or base < 2 or precision_fractional < 0:
            raise PrecisionError.not_a_precision(base, precision_fractional)
        self.base, self.precision_fractional, self.field, self.dtype = base, precision_fractional, field, dtype
        self.numbers = Numbers(base**precision_fractional, BITS[RINGS[field]])

    def get_class_attributes(self) -> Kwargs:
        """Return base, precision, ring and dtype."""
        return {
            "base": self.base,
            "precision_fractional": self.precision_fractional,
            "field": self.field,
            "dtype": self.dtype,
        }

    def has_child(self) -> bool:
        """Return whether it is on a tensor."""
        return self.child is not None

    # --- encoding

    def encode(self, plain: Tensor) -> Tensor:
        """Return the integers of plain numbers; refuse numbers that are not finite, or too large for the ring."""
        kernels, ring, dtype = integers.kernels_of(plain), RINGS[self.field], dtype_name(plain)
        if dtype.startswith("complex"):
            raise PrecisionError.complex_number()
        if (self.scale > 1 or dtype != ring) and not kernels.is_within(kernels.to_floats(plain), self.numbers.limit):
            raise PrecisionError.out_of_range(self.numbers.limit)
        if dtype.startswith(("float", "bfloat")):
            return kernels.encode(plain, self.scale, ring)
        return kernels.cast(plain, ring) * self.scale

    def encode_remotely(self, pointer: PointerTensor) -> PointerTensor:
        """Let a worker encode its numbers; those that do not fit become the nearest that do, and NaN becomes 0."""
        kernels = integers.kernels_of(pointer)
        limit = self.numbers.limit * (1 - 2**-20)
        return kernels.encode(kernels.saturate(pointer, limit), self.scale, RINGS[self.field])  # type: ignore[no-any-return]

    @classmethod
    def lift(cls, plain: Tensor, **_kwargs: object) -> Tensor:
        """Return a plain operand as it is: it is encoded already, or an index."""
        return plain

    def decode(self, value: Tensor) -> Tensor:
        """Return plain integers as real numbers."""
        return integers.kernels_of(value).decode(value, self.scale, self.dtype)

    def float_precision(self) -> Tensor:
        """Return the real numbers; a shared value must be fetched first."""
        if integers.is_shared(self.child) or is_authenticated(self.child):
            raise PrecisionError.still_shared()
        return self.decode(self.child)

    float_prec = float_precision

    def share(self, *workers: Any, crypto_provider: Any = None, protocol: str = FAST) -> FixedPrecisionTensor:
        """Return the same numbers, shared among workers."""
        shared = integers.share(self.child, workers, crypto_provider, self.owner, protocol)
        return self.copy_onto(shared)  # type: ignore[no-any-return]  # the same layer

    # --- operations that move elements

    @classmethod
    def respond(cls, op: Op, plan: Plan, args: Args, kwargs: Kwargs) -> Nested:
        """Run an operation that only moves or adds elements on the integers; refuse others without a rule."""
        layer = plan.leader(args, kwargs)
        framework = framework_of(layer)
        if op.reveals:
            raise PrecisionError.reveals()
        if op.operation not in framework.structural:
            return super().respond(op, plan, args, kwargs)
        places = value_places(framework.structural[op.operation])
        if op.operation == "scatter" and len(args) == 4 and isinstance(args[2], FixedPrecisionTensor):
            return layer._put_secretly(*args)
        changes, target = op.inplace or op.operation == "__setitem__", args[0] if args else None
        if places is None:
            args, kwargs = encode_plain(layer, args, kwargs)
        else:
            _require_public_indices(args, kwargs, places)
            args = tuple([layer._as_operand(arg) if k in (0, *places) else arg for k, arg in enumerate(args)])
        args, kwargs = _share_all(args, kwargs)
        if changes and (args[0] is not target or not isinstance(target, FixedPrecisionTensor)):
            raise PrecisionError.shared_into_public()
        plan = get_plan(op.name, args, kwargs)
        attributes = attributes_of(op.name, plan, args, kwargs)
        result = restructure(framework, op, *plan.unwrap(args, kwargs))
        if changes:
            args[0].assign(result)
            return args[0] if op.inplace else None
        return rewrap(op.name, result, plan, attributes, (args, kwargs))

    def _put_secretly(self, target: Tensor, axis: int, index: Tensor, values: Tensor) -> FixedPrecisionTensor:
        """Return the target with values along an axis replaced, at secret indices: the gradient of ``x.sort(axis)``.

        All indices are compared with the secret ones, which must differ, and the results are multiplied by the values.
        """
        whole, place, new = (self._as_operand(x).child for x in (target, index, values))
        shape, few = list(integers.shape_of(whole)), integers.shape_of(place)
        axis = integers.find_axis(whole, axis)
        if len(few) != len(shape) or integers.shape_of(new) != few:
            raise ProtocolError.secret_index()
        length, shape[axis] = shape[axis], few[axis]
        if tuple(shape) != few:
            raise ProtocolError.secret_index()
        kernels, next_axis = integers.kernels_of(whole), axis + 1
        line = kernels.arange(length).reshape((-1, *(1,) * (len(shape) - next_axis)))
        place, new = integers.unsqueeze(place, next_axis), integers.unsqueeze(new, next_axis)
        marks = integers.equal(place, kernels.cast(line, RINGS[self.field]) * self.scale)
        chosen = integers.multiply(marks, integers.sub(new, integers.unsqueeze(whole, axis)))
        return self.copy_onto(integers.add(whole, integers.total(chosen, axis)))  # type: ignore[no-any-return]  # the same layer

    def assign(self, child: Integers) -> None:
        """Overwrite the integers in place, so that their views change too."""
        own, new = integers.shape_of(self.child), integers.shape_of(child)
        if own != new and spdz.broadcast(own, new) != own:
            raise ValueError(
                f"cannot write numbers of shape {new} to a tensor of shape {own}: they do not fit; reshape"
            )
        if integers.is_shared(self.child):
            child = child if integers.is_shared(child) else integers.make_public(child, self.child)
            self.child.assign(integers.expand(child, own))
        elif integers.is_shared(child):
            raise PrecisionError.shared_into_public()
        else:
            super().assign(integers.expand(child, own))

    def _as_operand(self, x: Any) -> FixedPrecisionTensor:
        """Return a number or a plain tensor as a layer of the same kind."""
        if isinstance(x, FixedPrecisionTensor):
            return x
        if isinstance(x, int | float):
            x = integers.kernels_of(self.child).zeros((), RINGS[self.field]) + self._value(x)
            return self.copy_onto(x)  # type: ignore[no-any-return]  # the same layer
        return self.copy_onto(self.encode(x))  # type: ignore[no-any-return]  # the same layer

    def _value(self, x: Integers) -> Integers:
        """Return an operand as integers: a child as it is, a Python number encoded."""
        return self.numbers.of(x) if isinstance(x, int | float) else x

    # --- arithmetic

    @overloaded.method
    def add(self, _self: Integers, other: Integers, *, alpha: float = 1) -> Integers:
        """Add."""
        other = self._value(other)
        return integers.add(self._value(_self), self.numbers.times(other, alpha) if alpha != 1 else other)

    @overloaded.method
    def sub(self, _self: Integers, other: Integers, *, alpha: float = 1) -> Integers:
        """Subtract."""
        other = self._value(other)
        return integers.sub(self._value(_self), self.numbers.times(other, alpha) if alpha != 1 else other)

    @overloaded.method
    def neg(self, _self: Integers) -> Integers:
        """Negate."""
        return integers.neg(_self)

    @overloaded.method
    def mul(self, _self: Integers, other: Integers) -> Integers:
        """Multiply."""
        if isinstance(other, int | float):
            return self.numbers.times(_self, other)
        if isinstance(_self, int | float):
            return self.numbers.times(other, _self)
        return self.numbers.mul(_self, other)

    @overloaded.method
    def div(self, _self: Integers, other: Integers, *, rounding_mode: str | None = None) -> Integers:
        """Divide: by a public number, or by the approximate reciprocal of a shared one."""
        if rounding_mode is not None:
            return self._quotient(_self, other, rounding_mode)
        if isinstance(other, int | float):
            return self.numbers.over(_self, other)
        if integers.is_shared(other):
            return self.numbers.mul(self._value(_self), self.compute("reciprocal", other))
        return self._over_each(self._value(_self), other)

    def _over_each(self, x: Integers, divisors: Integers) -> Integers:
        """Divide by public numbers that are encoded."""
        kernels = integers.kernels_of(divisors)
        return self.numbers.over_each(x, kernels.decode(divisors, self.scale, kernels.dtype("float64")))

    @overloaded.method
    def square(self, _self: Integers) -> Integers:
        """Square."""
        return self.numbers.square(_self)

    @overloaded.method
    def pow(self, _self: Integers, exponent: Integers) -> Integers:
        """Raise to a multiple of 1/2, by squaring, for negative ones the reciprocal; or raise a public number."""
        if isinstance(_self, int | float) and _self > 0:
            return self.compute("exp", self.numbers.times(exponent, log(_self)))
        if not isinstance(exponent, int | float) or 2 * exponent != int(2 * exponent):
            raise PrecisionError.fractional_power()
        power, base, result = int(abs(exponent)), _self, None
        if exponent != int(exponent):
            result = self.compute("sqrt" if exponent > 0 else "rsqrt", _self)
        if exponent < 0 and power:
            base = self.compute("reciprocal", _self)
        while power:
            if power & 1:
                result = base if result is None else self.numbers.mul(result, base)
            power >>= 1
            base = self.numbers.square(base) if power else base
        return integers.add(integers.sub(base, base), self.scale) if result is None else result

    @overloaded.method
    def matmul(self, _self: Integers, other: Integers) -> Integers:
        """Multiply matrices."""
        return integers.multiply(_self, other, self.scale, MATRICES)

    mm = bmm = mv = dot = matmul

    @overloaded.method
    def addmm(self, _self: Integers, one: Integers, other: Integers, *, beta: float = 1, alpha: float = 1) -> Integers:
        """Add a matrix product."""
        added = self.numbers.times(_self, beta) if beta != 1 else _self
        if alpha == 1:
            return integers.multiply_and_add(one, other, added, self.scale)
        product = integers.multiply(one, other, self.scale, MATRICES)
        return integers.add(added, self.numbers.times(product, alpha))

    @overloaded.method
    def sum(
        self,
        _self: Integers,
        dim: Axes = None,
        keepdim: bool = False,
        *,
        axis: Axes = None,
        keepdims: bool = False,
        **_: object,
    ) -> Integers:
        """Add elements."""
        return integers.total(_self, _axes(dim if axis is None else axis), keepdim or keepdims)

    @overloaded.method
    def mean(
        self,
        _self: Integers,
        dim: Axes = None,
        keepdim: bool = False,
        *,
        axis: Axes = None,
        keepdims: bool = False,
        **_: object,
    ) -> Integers:
        """Average elements."""
        axes = _axes(dim if axis is None else axis)
        shape = integers.shape_of(_self)
        places = range(len(shape)) if axes is None else (axes if isinstance(axes, tuple) else (axes,))
        count = prod(shape[integers.find_axis(_self, place)] for place in places) if shape else 1
        return self.numbers.over(integers.total(_self, axes, keepdim or keepdims), count)

    average = mean

    @overloaded.method
    def outer(self, _self: Integers, other: Integers) -> Integers:
        """Multiply each element by each element of another value."""
        return self.numbers.mul(integers.reshape(_self, (-1, 1)), integers.reshape(other, (1, -1)))

    @overloaded.method
    def prod(self, _self: Integers, dim: Axes = None, keepdim: bool = False, **options: Axes) -> Integers:
        """Multiply elements, along axes or all."""
        return _reduce(_self, dim, keepdim, options, self._multiply_all)

    def _multiply_all(self, x: Integers) -> Integers:
        """Multiply the elements along the last axis: halves with each other."""
        length = integers.shape_of(x)[-1]
        if not length:
            return integers.add(integers.total(x, -1), self.scale)
        while length > 1:
            half = length // 2
            parts = [integers.take(x, part) for part in (slice(half), slice(half, 2 * half), slice(2 * half, None))]
            product = self.numbers.mul(parts[0], parts[1])
            x = product if length == 2 * half else integers.join([product, parts[2]])
            length -= half
        return integers.total(x, -1)

    # --- comparison

    @overloaded.method
    def lt(self, _self: Integers, other: Integers) -> Integers:
        """Return 1 where the first is smaller."""
        return self.numbers.compare(integers.less, self._value(_self), self._value(other))

    @overloaded.method
    def gt(self, _self: Integers, other: Integers) -> Integers:
        """Return 1 where the first is larger."""
        return self.numbers.compare(integers.greater, self._value(_self), self._value(other))

    @overloaded.method
    def le(self, _self: Integers, other: Integers) -> Integers:
        """Return 1 where the first is not larger."""
        return self.numbers.compare(integers.at_most, self._value(_self), self._value(other))

    @overloaded.method
    def ge(self, _self: Integers, other: Integers) -> Integers:
        """Return 1 where the first is not smaller."""
        return self.numbers.compare(integers.at_least, self._value(_self), self._value(other))

    @overloaded.method
    def eq(self, _self: Integers, other: Integers) -> Integers:
        """Return 1 where both are equal."""
        return self.numbers.compare(integers.equal, self._value(_self), self._value(other))

    @overloaded.method
    def ne(self, _self: Integers, other: Integers) -> Integers:
        """Return 1 where they differ."""
        return self.numbers.compare(integers.differ, self._value(_self), self._value(other))

    @overloaded.method
    def where(self, condition: Integers, one: Integers, other: Integers) -> Integers:
        """Return elements of the first where the condition is 1, and of the second where it is 0."""
        one, other = self._value(one), self._value(other)
        if integers.is_shared(condition):
            return integers.add(self.numbers.mul(condition, integers.sub(one, other)), other)
        return integers.select(integers.differ(condition, 0), one, other)

    @overloaded.method
    def masked_fill(self, _self: Integers, mask: Integers, value: Integers) -> Integers:
        """Set numbers to a constant where the mask is 1."""
        difference = integers.sub(self._value(value), _self)
        if integers.is_shared(mask):
            return integers.add(_self, self.numbers.mul(mask, difference))
        return integers.add(_self, integers.multiply(integers.differ(mask, 0), difference))

    @overloaded.method
    def logical_not(self, _self: Integers) -> Integers:
        """Return 1 where the number is 0."""
        return self.numbers.from_bit(integers.complement(self._truth(_self)))

    @overloaded.method
    def logical_and(self, _self: Integers, other: Integers) -> Integers:
        """Return 1 where both numbers are not 0."""
        return self.numbers.from_bit(integers.multiply(self._truth(_self), self._truth(other)))

    @overloaded.method
    def logical_or(self, _self: Integers, other: Integers) -> Integers:
        """Return 1 where one of the numbers is not 0."""
        one, two = self._truth(_self), self._truth(other)
        return self.numbers.from_bit(integers.sub(integers.add(one, two), integers.multiply(one, two)))

    @overloaded.method
    def logical_xor(self, _self: Integers, other: Integers) -> Integers:
        """Return 1 where one of the numbers is not 0, and the other is."""
        one, two = self._truth(_self), self._truth(other)
        both = integers.multiply(integers.multiply(one, two), 2)
        return self.numbers.from_bit(integers.sub(integers.add(one, two), both))

    bitwise_and, bitwise_or, bitwise_not, bitwise_xor = logical_and, logical_or, logical_not, logical_xor
    """As on booleans; ``_combine_bits`` refuses integers."""

    @overloaded.method
    def any(self, _self: Integers, dim: Axes = None, keepdim: bool = False, **options: Axes) -> Integers:
        """Return 1 if a number is not 0, along axes or of all."""
        found = _reduce(self._truth(_self), dim, keepdim, options, lambda x: integers.total(x, -1))
        return self.numbers.compare(integers.differ, found, 0)

    @overloaded.method
    def all(self, _self: Integers, dim: Axes = None, keepdim: bool = False, **options: Axes) -> Integers:
        """Return 1 if no number is 0, along axes or of all."""
        zeros = integers.complement(self._truth(_self))
        found = _reduce(zeros, dim, keepdim, options, lambda x: integers.total(x, -1))
        return self.numbers.compare(integers.equal, found, 0)

    def _truth(self, x: Integers) -> Integers:
        """Return 1 where a number is not 0, as an integer."""
        bit = getattr(x, "bit", None)
        return integers.differ(self._value(x), 0) if bit is None else bit

    @overloaded.method
    def maximum(self, _self: Integers, other: Integers) -> Integers:
        """Return the larger."""
        return integers.maximum(self._value(_self), self._value(other))

    @overloaded.method
    def minimum(self, _self: Integers, other: Integers) -> Integers:
        """Return the smaller."""
        return integers.minimum(self._value(_self), self._value(other))

    @overloaded.method
    def clamp(self, _self: Integers, min: float | None = None, max: float | None = None) -> Integers:
        """Limit to a range."""
        if min is not None:
            _self = integers.maximum(_self, self._value(min))
        return _self if max is None else integers.minimum(_self, self._value(max))

    clamp_min = clip = clamp

    @overloaded.method
    def clamp_max(self, _self: Integers, max: float) -> Integers:
        """Limit to numbers that are not larger."""
        return integers.minimum(_self, self._value(max))

    @overloaded.method
    def abs(self, _self: Integers) -> Integers:
        """Return the size: x - 2·min(x, 0)."""
        return _find_size(_self)

    fabs = abs

    @overloaded.method
    def sign(self, _self: Integers) -> Integers:
        """Return -1, 0 or 1."""
        return integers.multiply(integers.sub(integers.greater(_self, 0), integers.less(_self, 0)), self.scale)

    sgn = sign

    @overloaded.method
    def amax(self, _self: Integers, dim: Axes = (), keepdim: bool = False, **options: Axes) -> Integers:
        """Return the largest number, along axes or of all."""
        return _reduce(_self, dim, keepdim, options, lambda x: find_largest(x, -1))

    @overloaded.method
    def amin(self, _self: Integers, dim: Axes = (), keepdim: bool = False, **options: Axes) -> Integers:
        """Return the smallest number, along axes or of all."""
        smallest = _reduce(integers.neg(_self), dim, keepdim, options, lambda x: find_largest(x, -1))
        return integers.neg(smallest)

    max, min = amax, amin

    @overloaded.method
    def linalg_vector_norm(
        self, _self: Integers, ord: float = 2, dim: Axes = None, keepdim: bool = False, **_options: object
    ) -> Integers:
        """Compute the Euclidean norm, or the sum (1), the largest (inf) or the smallest (-inf) of the sizes."""
        axes = _axes(dim)
        if ord == 2:
            return self.compute("sqrt", integers.total(self.numbers.square(_self), axes, keepdim))
        if ord not in (1, inf, -inf):
            raise PrecisionError.unknown_norm(ord)
        size = _find_size(_self)
        if ord == 1:
            return integers.total(size, axes, keepdim)
        sign = 1 if ord > 0 else -1
        found = _reduce(integers.multiply(size, sign), axes, keepdim, {}, lambda x: find_largest(x, -1))
        return integers.multiply(found, sign)

    @overloaded.method
    def max_dim(self, _self: Integers, dim: int, keepdim: bool = False) -> tuple[Integers, Integers]:
        """Return the largest numbers along an axis, and where the first of them are."""
        return self._find_extreme(_self, dim, keepdim)

    @overloaded.method
    def min_dim(self, _self: Integers, dim: int, keepdim: bool = False) -> tuple[Integers, Integers]:
        """Return the smallest numbers along an axis, and where the first of them are."""
        smallest, place = self._find_extreme(integers.neg(_self), dim, keepdim)
        return integers.neg(smallest), place

    def _find_extreme(self, x: Integers, axis: Axes, keepdim: bool) -> tuple[Integers, Integers]:
        largest, marks = find_largest(x, axis, positions=True)
        place = self._place_of(marks, axis)
        if keepdim:
            largest, place = integers.unsqueeze(largest, axis), integers.unsqueeze(place, axis)
        return largest, place

    def _place_of(self, marks: Integers, axis: Axes) -> Integers:
        """Return the index of the mark along an axis, as a number."""
        shape = integers.shape_of(marks)
        axis %= len(shape)
        line = integers.kernels_of(marks).arange(shape[axis]).reshape((-1, *(1,) * (len(shape) - axis - 1)))
        return integers.multiply(integers.total(integers.multiply(marks, line), axis), self.scale)

    @overloaded.method
    def argmax(self, _self: Integers, dim: int | None = None, keepdim: bool = False, **options: Axes) -> Integers:
        """Return the index of the first of the largest numbers, as a number."""
        axis = options.get("axis", dim)
        x = integers.flatten(_self) if axis is None else _self
        place = self._place_of(find_largest(x, axis or 0, positions=True)[1], axis or 0)
        return integers.unsqueeze(place, axis) if keepdim and axis is not None else place

    @overloaded.method
    def argmin(self, _self: Integers, dim: int | None = None, keepdim: bool = False, **options: Axes) -> Integers:
        """Return the index of the first of the smallest numbers, as a number."""
        axis = options.get("axis", dim)
        x = integers.neg(integers.flatten(_self) if axis is None else _self)
        place = self._place_of(find_largest(x, axis or 0, positions=True)[1], axis or 0)
        return integers.unsqueeze(place, axis) if keepdim and axis is not None else place

    @overloaded.method
    def relu(self, _self: Integers) -> Integers:
        """Return the number where it is positive, and 0 elsewhere."""
        return integers.relu(_self)

    @overloaded.method
    def threshold_backward(self, gradient: Integers, result: Integers, threshold: float) -> Integers:
        """Return the gradient where the result of relu is positive; its forward pass has kept where that is."""
        known = getattr(result, "derivative", None)
        if threshold == 0 and known is not None:
            return integers.multiply(known, gradient)
        return self.numbers.mul(self.numbers.compare(integers.greater, result, self._value(threshold)), gradient)

    # --- constants

    @overloaded.method
    def zeros_like(self, _self: Integers, **_options: object) -> Integers:
        """Return zeros of the same shape."""
        return integers.sub(_self, _self)

    @overloaded.method
    def ones_like(self, _self: Integers, **_options: object) -> Integers:
        """Return ones of the same shape."""
        return integers.add(integers.sub(_self, _self), self.scale)

    @overloaded.method
    def new_ones(self, _self: Integers, size: Sequence[int], **_options: object) -> Integers:
        """Return ones of a shape; they are public."""
        return integers.kernels_of(_self).zeros(tuple(size), RINGS[self.field]) + self.scale

    @overloaded.method
    def new_full(self, _self: Integers, size: Sequence[int], fill_value: float, **_options: object) -> Integers:
        """Return a constant of a shape; it is public."""
        return integers.kernels_of(_self).zeros(tuple(size), RINGS[self.field]) + self._value(fill_value)

    @overloaded.method
    def full_like(self, _self: Integers, fill_value: float, **_options: object) -> Integers:
        """Return a constant of the same shape."""
        return integers.add(integers.sub(_self, _self), self._value(fill_value))

    @overloaded.method
    def zero(self, _self: Integers) -> Integers:
        """Set to zeros."""
        return integers.sub(_self, _self)

    @overloaded.method
    def fill(self, _self: Integers, value: Integers) -> Integers:
        """Set to a constant."""
        return integers.add(integers.sub(_self, _self), self._value(value))

    def __str__(self) -> str:
        return f"{type(self).__name__}>{self.child!r}" if self.child is not None else type(self).__name__

    __repr__ = __str__


def _find_size(x: Integers) -> Integers:
    return integers.add(x, integers.multiply(integers.relu(integers.neg(x)), 2))


def _reduce(x: Integers, dim: Axes, keepdim: bool, options: Kwargs, reduce: Any) -> Integers:
    """Reduce along axes, or over all elements, with a function that reduces the last axis."""
    shape = integers.shape_of(x)
    axes = options.get("axis", dim)
    axes = tuple(range(len(shape))) if axes is None or axes == () else axes
    axes = tuple(integers.find_axis(x, axis) for axis in (axes if isinstance(axes, Sequence) else (axes,)))
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    moved = integers.permute(x, (*rest, *axes))
    kept = tuple(shape[axis] for axis in rest)
    result = reduce(integers.reshape(moved, (*kept, -1)))
    if keepdim or options.get("keepdims"):
        return integers.reshape(result, tuple(1 if axis in axes else length for axis, length in enumerate(shape)))
    return result


def _axes(axes: Axes) -> Any:
    if isinstance(axes, Sequence):
        return tuple(axes) or None
    return axes


def _share_all(args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """Turn public operands of a call with shared ones into shared ones."""
    layers = [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, FixedPrecisionTensor)]
    shared = next((layer.child for layer in layers if integers.is_shared(layer.child)), None)
    if shared is None or all(integers.is_shared(layer.child) for layer in layers):
        return args, kwargs

    def convert(leaf: Any) -> Any:
        if isinstance(leaf, FixedPrecisionTensor) and not integers.is_shared(leaf.child):
            return leaf.copy_onto(integers.make_public(leaf.child, shared))
        return leaf

    return map_leaves(convert, args), map_leaves(convert, kwargs)


def _convert(_op: Op, plan: Plan, args: Args, kwargs: Kwargs) -> FixedPrecisionTensor:
    """Handle ``x.to(dtype)``: copy the integers; the numbers are decoded to the new type."""
    layer = plan.leader(args, kwargs)
    dtype = kwargs.get("dtype", args[1] if len(args) > 1 else None) or layer.dtype
    if "float" not in str(dtype):
        raise PrecisionError.not_real(dtype)
    converted = FixedPrecisionTensor(layer.base, layer.precision_fractional, layer.field, dtype)
    converted.child = integers.multiply(layer.child, 1)
    return converted


def _divide(answer: Answer) -> Answer:
    """Handle division: a plain divisor is used as it is, not rounded to the fixed precision."""

    def divide(op: Op, plan: Plan, args: Args, kwargs: Kwargs) -> Nested:
        if len(args) != 2 or kwargs or not is_framework_tensor(type(args[1])):
            return answer(op, plan, args, kwargs)
        layer, divisors = args
        if dtype_name(divisors).startswith("complex"):
            raise PrecisionError.complex_number()
        return layer.copy_onto(layer.numbers.over_each(layer.child, integers.kernels_of(divisors).to_floats(divisors)))

    return divide


def _combine_bits(answer: Answer) -> Answer:
    """Handle ``&``, ``|``, ``^`` and ``~``: they combine truth values here, but the digits of integers."""

    def combine(op: Op, plan: Plan, args: Args, kwargs: Kwargs) -> Nested:
        layer = plan.leader(args, kwargs)
        if "int" in str(layer.dtype) and any(
            getattr(x.child, "bit", None) is None for x in args if type(x) is type(layer)
        ):
            raise PrecisionError.digits(op.operation)
        return answer(op, plan, args, kwargs)

    return combine


def _is_nan(_op: Op, plan: Plan, args: Args, kwargs: Kwargs) -> Tensor:
    """Handle ``isnan`` and ``isinf``: every integer means a number, so the answer is public."""
    layer = plan.leader(args, kwargs)
    return integers.kernels_of(layer.child).zeros(integers.shape_of(layer.child), "int64") != 0


def _require_public_indices(args: Args, kwargs: Kwargs, places: Sequence[int]) -> None:
    """Raise if there are encoded numbers other than in the first argument and at the places of values."""
    indices = [arg for k, arg in enumerate(args) if k not in (0, *places)]
    if any(isinstance(leaf, FixedPrecisionTensor) for leaf in leaves((indices, kwargs))):
        raise ProtocolError.secret_index()


def _require_computable(op: Op, plan: Plan, args: Args, kwargs: Kwargs, operands: Sequence[Integers]) -> None:
    """Raise if a rule cannot compute with its operands, or has no such option."""
    if any(isinstance(operand, PointerTensor) for operand in operands):
        raise PrecisionError.not_shared_yet()
    if any(isinstance(arg, complex) for arg in args):
        raise PrecisionError.complex_number()
    for name in ("out", "where", "initial", "weights"):
        if kwargs.get(name) is not None and kwargs[name] is not True:
            raise OperationNotAllowedError.refused_by(
                plan.layer.__name__, op.name, f"it has no rule for the option {name!r}; leave it out"
            )
    if op.operation == "embedding":
        _require_public_indices(args, kwargs, ())


def _separate(answer: Answer) -> Answer:
    """Make the result of a rule independent of its operands, which operations in place would change too."""

    def separated(op: Op, plan: Plan, args: Args, kwargs: Kwargs) -> Nested:
        operands = [leaf.child for leaf in leaves((args, kwargs)) if isinstance(leaf, FixedPrecisionTensor)]
        _require_computable(op, plan, args, kwargs, operands)
        result = answer(op, plan, args, kwargs)
        for leaf in leaves(result):
            if not isinstance(leaf, FixedPrecisionTensor):
                continue
            if integers.is_shared(leaf.child):
                leaf.child = leaf.child.separate(list(filter(integers.is_shared, operands)))
            elif any(leaf.child is operand for operand in operands):
                leaf.child = framework_of(leaf.child).copy(leaf.child)
        return result

    return separated


_CHECKS: dict[str, Callable[[Answer], Answer]] = {
    "div": _divide,
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"), _combine_bits),
}
"""What some rules do before they unwrap their operands."""
FixedPrecisionTensor.rules = {
    name: answer
    if name in ("detach", "alias", "copy_")
    else _separate(_CHECKS[name](answer) if name in _CHECKS else answer)
    for name, answer in FixedPrecisionTensor.rules.items()
}
FixedPrecisionTensor.rules |= {
    "_to_copy": _convert,
    "astype": _convert,
    "isnan": _is_nan,
    "isinf": _is_nan,
    # A rule for an operation that writes several arguments has its full name.
    "aten._native_batch_norm_legit.default": FixedPrecisionTensor.rules["_native_batch_norm_legit"],
}
AdditiveSharingTensor.number_type = FixedPrecisionTensor
hook_args.default_register_tensor(FixedPrecisionTensor)
