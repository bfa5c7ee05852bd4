"""FixedPrecisionTensor: real numbers as scaled integers, which can be shared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import copysign
from typing import Any, ClassVar, Literal, TypeAlias

from syft_core.exceptions import OperationNotAllowedError
from syft_core.hook.argument_plans import ArgumentPlan
from syft_core.hook.attributes import Op
from syft_core.hook.dispatch import Respond, attributes_of, forget_answers, framework_of, rewrap
from syft_core.hook.hook_args import get_plan, is_framework_tensor
from syft_core.hook.overload import OverloadedMethod, encode_plain, value_places, with_indices
from syft_core.hook.rules import leaves, map_leaves
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.tensors.codecs import build_layer_codec
from syft_core.tensors.numeric import NumericTensor
from syft_core.values import Args, Function, Kwargs, Nested, Tensor
from syft_mpc import checking, integers
from syft_mpc.additive_shared import FAST, FIELDS, AdditiveSharingTensor, restructure
from syft_mpc.arithmetic import BOUNDED, EXACT, MASKED, TRUTH, deviation, div, variance
from syft_mpc.authenticated_tensor import is_authenticated
from syft_mpc.errors import PrecisionError, ProtocolError
from syft_mpc.integers import Integers
from syft_mpc.kernels import dtype_name
from syft_mpc.numbers import Numbers
from syft_mpc.order import ROUNDING
from syft_mpc.real_functions import REAL
from syft_mpc.secret_places import SecretPlaces
from syft_mpc.truncation import BITS

PlainOperands: TypeAlias = Literal["encoded", "kept", "public"]
Infinity: TypeAlias = Literal["refused", "largest", "mask"]
"""What happens to plain and to infinite operands; see ``add_rules``."""
RINGS = {field: dtype for dtype, field in FIELDS.items()}
"""The dtypes of the rings, by their names."""
_SIZES = {1 << 64: "long", 1 << 32: "int"}


def find_ring(name: object) -> str:
    """Return the name of a ring: "long" or "int", or how many elements it has."""
    found = _SIZES.get(name, name) if isinstance(name, int) else name
    if not isinstance(found, str) or found not in RINGS:
        raise PrecisionError.unknown_field(name)
    return found


class FixedPrecisionTensor(NumericTensor):
    """Real numbers x as the integers nearest to x · base ** precision_fractional.

    The wrapper above has the dtype of the real numbers, so torch's own autograd and optimizers work on it, also when
    the integers are shared. Operands of different precision are refused: convert one with ``fix_precision``. Its rules
    are functions, which ``add_rules`` registers; the tables of the operations that every framework has are in
    ``arithmetic.py``, ``order.py`` and ``real_functions.py``, and backends have their own.
    """

    functions: ClassVar[dict[str, Function]] = {}
    exact: ClassVar[set[str]] = {"detach", "alias", "copy"}
    """The operations on integers whose results are integers; quotients are rounded up or down at random."""

    def __init__(
        self,
        base: int = 10,
        precision_fractional: int = 3,
        field: str | int = "long",
        dtype: Any = None,
        **identity: Any,
    ) -> None:
        super().__init__(**identity)
        if isinstance(dtype, str) and dtype in RINGS:  # as in PySyft 0.2
            field, dtype = dtype, None
        field = find_ring(field)
        if not _is_precision(base, precision_fractional):
            raise PrecisionError.not_a_precision(base, precision_fractional)
        self.base, self.precision_fractional, self.field, self.dtype = base, precision_fractional, field, dtype
        self.numbers = Numbers(base**precision_fractional, BITS[RINGS[field]])

    @property
    def scale(self) -> int:
        """The integer that means 1."""
        return self.numbers.scale

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

    def on(self, tensor: Tensor, wrap: bool = True) -> Tensor:
        """Put this layer on ``tensor``: on the integers that encode it, if it has real numbers."""
        if is_framework_tensor(type(tensor)) and dtype_name(tensor) != RINGS[self.field]:
            self.dtype = self.dtype or framework_of(tensor).real_dtype(tensor)
            tensor = self.encode(tensor)
        return super().on(tensor, wrap)

    # --- encoding

    def encode(self, plain: Tensor) -> Tensor:
        """Return the integers of plain numbers; refuse numbers that are not finite, or too large for the ring."""
        return self.numbers.encode(plain)

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
        if type(self.child) is SecretPlaces:
            SecretPlaces.refuse("float_precision")
        return self.decode(self.child)

    float_prec = float_precision

    def share(self, *workers: Any, crypto_provider: Any = None, protocol: str = FAST) -> FixedPrecisionTensor:
        """Return the same numbers, shared among workers."""
        shared = integers.share(self.child, workers, crypto_provider, self.owner, protocol)
        return self.copy_onto(shared)  # type: ignore[no-any-return]  # the same layer

    # --- operations that move elements

    @classmethod
    def respond(cls, op: Op, plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Nested:
        """Run an operation that only moves or adds elements on the integers; refuse others without a rule."""
        layer = plan.leader(args, kwargs)
        framework = framework_of(layer)
        if op.reveals:
            raise PrecisionError.reveals()
        if op.operation not in framework.structural:
            return super().respond(op, plan, args, kwargs)
        places = value_places(framework.structural[op.operation])
        if op.operation in framework.masking:
            args, kwargs = replace_infinity("mask", layer.numbers, args, kwargs)
        changes, target = op.inplace or op.operation == "__setitem__", args[0] if args else None
        if places is None:
            args, kwargs = encode_plain(layer, args, kwargs)
        else:
            _require_public_indices(args, kwargs, places)
            args = tuple([layer.as_operand(arg) if k in (0, *places) else arg for k, arg in enumerate(args)])
        args, kwargs = _share_all(args, kwargs)
        if changes and (args[0] is not target or not isinstance(target, FixedPrecisionTensor)):
            raise PrecisionError.shared_into_public()
        plan = get_plan(op.name, args, kwargs)
        attributes = attributes_of(op.name, plan, args, kwargs)
        check = checking.begin(op, args, kwargs)
        result = restructure(framework, op, *plan.unwrap(args, kwargs))
        moved = rewrap(op.name, result, plan, attributes, (args, kwargs))
        if check is not None:
            check.compare(moved)
        if not changes:
            return moved
        args[0].assign(result)
        return args[0] if op.inplace else None

    def assign(self, child: Integers) -> None:
        """Overwrite the integers in place, so that their views change too."""
        integers.overwrite(self.child, child)

    def as_operand(self, x: Any) -> FixedPrecisionTensor:
        """Return a number or a plain tensor as a layer of the same kind."""
        if isinstance(x, FixedPrecisionTensor):
            return x
        is_number = isinstance(x, int | float)
        return self.copy_onto(self.numbers.constant(x, self.child) if is_number else self.encode(x))  # type: ignore[no-any-return]  # the same layer

    # --- rules

    @classmethod
    def add_rules(
        cls,
        functions: Mapping[str, Function],
        *,
        exact: bool = False,
        plain: PlainOperands = "encoded",
        infinity: Infinity = "refused",
        first_only: bool = False,
        around: Callable[[Respond], Respond] | None = None,
    ) -> None:
        """Register functions by operation. Each takes ``Numbers``, then the arguments with integers in place of layers.

        Args:
            functions: they return the integers of the result, or several of them.
            exact: whether integers have integer results; then they apply to shared integers too.
            plain: whether plain operands are encoded, kept as they are, or public indices, which must not be secret.
            infinity: what an infinite public operand becomes: the largest number, or one with room for sums.
            first_only: whether the other results are kept for gradients alone, and may have another form than the
                framework's.
            around: changes the answer to a call, which has layers as arguments.

        """
        for name, function in functions.items():
            answer = _unwrapped(name, function, plain)
            checked = _check(around(answer) if around else answer, plain == "public", infinity, first_only)
            cls.add_answers({name: checked})
            cls.functions[name] = function
        cls.exact |= functions.keys() if exact else set()

    @classmethod
    def add_answers(cls, answers: Mapping[str, Respond]) -> None:
        """Register functions of an operation, the plan of a call and its arguments, by operation."""
        cls.rules = {**cls.rules, **answers}
        forget_answers()

    def __str__(self) -> str:
        return f"{type(self).__name__}>{self.child!r}" if self.child is not None else type(self).__name__

    __repr__ = __str__


def _is_precision(base: object, digits: object) -> bool:
    """Return whether numbers can have this precision: their scale must fit into a ring."""
    are_integers = type(base) is int and type(digits) is int
    return are_integers and 2 <= base < 1 << 62 and 0 <= digits < 62 and base**digits < 1 << 62  # type: ignore[operator]  # integers


def _is_valid(attributes: Kwargs) -> bool:
    field, dtype = attributes["field"], attributes["dtype"]
    is_dtype = dtype is None or isinstance(dtype, type) or "dtype" in type(dtype).__name__.lower()
    is_ring = type(field) is str and field in RINGS
    return is_dtype and is_ring and _is_precision(attributes["base"], attributes["precision_fractional"])


def _share_all(args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    layers = [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, FixedPrecisionTensor)]
    shared = next((layer.child for layer in layers if integers.is_shared(layer.child)), None)
    if shared is None or all(integers.is_shared(layer.child) for layer in layers):
        return args, kwargs

    def convert(leaf: Any) -> Any:
        if isinstance(leaf, FixedPrecisionTensor) and not integers.is_shared(leaf.child):
            return leaf.copy_onto(integers.make_public(leaf.child, shared))
        return leaf

    return map_leaves(convert, args), map_leaves(convert, kwargs)


def convert(_op: Op, plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> FixedPrecisionTensor:
    """Handle ``x.to(dtype)``: copy the integers; the numbers are decoded to the new type."""
    layer = plan.leader(args, kwargs)
    dtype = kwargs.get("dtype", args[1] if len(args) > 1 else None) or layer.dtype
    if "float" not in str(dtype):
        raise PrecisionError.not_real(dtype)
    converted = FixedPrecisionTensor(layer.base, layer.precision_fractional, layer.field, dtype)
    converted.child = integers.multiply(layer.child, 1)
    return converted


def _divide(answer: Respond) -> Respond:
    """Handle division: a plain divisor is used as it is, not rounded to the fixed precision."""

    def divide(op: Op, plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Nested:
        if len(args) != 2 or kwargs or not is_framework_tensor(type(args[1])):
            return answer(op, plan, args, kwargs)
        layer, divisors = args
        if dtype_name(divisors).startswith("complex"):
            raise PrecisionError.complex_number()
        return layer.copy_onto(layer.numbers.over_each(layer.child, integers.kernels_of(divisors).to_floats(divisors)))

    return divide


def _combine_bits(answer: Respond) -> Respond:
    """Handle ``&``, ``|``, ``^`` and ``~``: they combine truth values here, but the digits of integers."""

    def combine(op: Op, plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Nested:
        layer = plan.leader(args, kwargs)
        if "int" in str(layer.dtype) and any(
            getattr(x.child, "bit", None) is None for x in args if type(x) is type(layer)
        ):
            raise PrecisionError.digits(op.operation)
        return answer(op, plan, args, kwargs)

    return combine


def _is_nan(op: Op, plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Tensor:
    """Handle ``isnan``, ``isinf`` and the like: every integer means a finite number, so the answer is public."""
    layer = plan.leader(args, kwargs)
    zeros = integers.kernels_of(layer.child).zeros(integers.shape_of(layer.child), "int64")
    return zeros == 0 if op.operation == "isfinite" else zeros != 0


def _require_public_indices(args: Args, kwargs: Kwargs, places: Sequence[int]) -> None:
    """Raise if an argument is encoded that is neither the first one nor at the places of values."""
    indices = [arg for k, arg in enumerate(args) if k not in (0, *places)]
    if any(isinstance(leaf, FixedPrecisionTensor) for leaf in leaves((indices, kwargs))):
        raise ProtocolError.secret_index()


HUGE = 1e30
"""Public numbers from this size on, such as the smallest float, mean infinity, like it."""


def replace_infinity(by: Infinity, numbers: Numbers, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """Replace infinite public operands: fixed precision has no infinity.

    In a comparison, it becomes the largest number that can be compared. As a mask, it becomes a number with room for
    sums and products: its power of e is 0, and it is larger than any number of a model.
    """
    if by == "refused":
        return args, kwargs
    largest = numbers.infinity if by == "mask" else numbers.limit * (1 - 2**-20)

    def replace(leaf: Nested) -> Nested:
        if isinstance(leaf, float):
            return copysign(largest, leaf) if abs(leaf) >= HUGE else leaf
        if not is_framework_tensor(type(leaf)) or not dtype_name(leaf).startswith(("float", "bfloat")):
            return leaf
        kernels = integers.kernels_of(leaf)
        floats = kernels.to_floats(leaf)
        huge = kernels.xp.abs(floats) >= HUGE
        return kernels.xp.where(huge, kernels.xp.sign(floats) * largest, floats) if bool(huge.any()) else leaf

    return map_leaves(replace, args), map_leaves(replace, kwargs)


def _require_computable(op: Op, plan: ArgumentPlan, args: Args, kwargs: Kwargs, operands: Sequence[Integers]) -> None:
    """Raise if a rule cannot compute with its operands, or has no such option."""
    if any(isinstance(operand, PointerTensor) for operand in operands):
        raise PrecisionError.not_shared_yet()
    if any(type(operand) is SecretPlaces for operand in operands):
        SecretPlaces.refuse(op.name)
    if any(isinstance(arg, complex) for arg in args):
        raise PrecisionError.complex_number()
    for name in ("out", "where", "initial", "weights"):
        if kwargs.get(name) is not None and kwargs[name] is not True:
            raise OperationNotAllowedError.refused_by(
                plan.layer.__name__, op.name, f"it has no rule for the option {name!r}; leave it out"
            )


def _unwrapped(name: str, function: Function, plain: PlainOperands) -> Respond:
    def call(layer: FixedPrecisionTensor, *args: Nested, **kwargs: Nested) -> Nested:
        return function(layer.numbers, *args, **kwargs)

    call.__name__ = name
    return OverloadedMethod(call if plain == "encoded" else with_indices(call)).answer


def _check(answer: Respond, takes_indices: bool, infinity: Infinity, first_only: bool) -> Respond:
    """Check the operands of a rule, and its result in a ``checking`` block; make the result independent of them.

    Otherwise, in-place operations on the result would change the operands.
    """

    def checked(op: Op, plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Nested:
        operands = [leaf.child for leaf in leaves((args, kwargs)) if isinstance(leaf, FixedPrecisionTensor)]
        args, kwargs = replace_infinity(infinity, plan.leader(args, kwargs).numbers, args, kwargs)
        _require_computable(op, plan, args, kwargs, operands)
        if takes_indices:
            _require_public_indices(args, kwargs, ())
        check = checking.begin(op, args, kwargs)
        result = answer(op, plan, args, kwargs)
        if check is not None:
            check.compare(result, first_only)
        for leaf in leaves(result):
            if not isinstance(leaf, FixedPrecisionTensor):
                continue
            if integers.is_shared(leaf.child):
                leaf.child = leaf.child.separate(list(filter(integers.is_shared, operands)))
            elif any(leaf.child is operand for operand in operands):
                leaf.child = framework_of(leaf.child).copy(leaf.child)
        return result

    return checked


FixedPrecisionTensor.add_rules(BOUNDED, exact=True, infinity="largest")
FixedPrecisionTensor.add_rules(MASKED, exact=True, infinity="mask")
FixedPrecisionTensor.add_rules({**EXACT, **ROUNDING}, exact=True)
FixedPrecisionTensor.add_rules({"div": div}, exact=True, around=_divide)
FixedPrecisionTensor.add_rules(
    {f"bitwise_{name}": rule for name, rule in TRUTH.items()}, exact=True, around=_combine_bits
)
FixedPrecisionTensor.add_rules({**REAL, "var": variance, "std": deviation})
FixedPrecisionTensor.add_answers(dict.fromkeys(("isnan", "isinf", "isposinf", "isneginf", "isfinite"), _is_nan))
AdditiveSharingTensor.number_type = FixedPrecisionTensor
CODEC = build_layer_codec(FixedPrecisionTensor, code=255, accepts=_is_valid)
