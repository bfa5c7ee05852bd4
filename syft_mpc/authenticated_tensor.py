"""AuthenticatedTensor: integers that are shared with tags, so that a party that cheats is detected and named."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import ClassVar

from syft_core.exceptions import OperationNotAllowedError
from syft_core.hook.argument_plans import ArgumentPlan
from syft_core.hook.attributes import Op
from syft_core.hook.dispatch import dispatch, framework_of
from syft_core.hook.forms import Form, form
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import leaves, map_leaves
from syft_core.location import Party, WorkerLike
from syft_core.peer import Id
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.pointers.travel import send_copy
from syft_core.values import Args, Function, Kwargs, Nested, Tensor
from syft_mpc.authenticated import BITS, auth_add_public, auth_mul, auth_open, auth_random, auth_truncate
from syft_mpc.errors import CheatingError, PartyFailedError, ProtocolError
from syft_mpc.group import Group, Shares, find_group
from syft_mpc.kernels import dtype_name
from syft_mpc.shared import SharedTensor
from syft_mpc.spdz import ELEMENTS, MATRICES, bilinear_shape

AUTHENTICATED = "authenticated"
"""The name of the protocol, as an option of ``share``."""


class AuthenticatedTensor(SharedTensor):
    """Integers of 32 bits, shared with tags among the parties of a group; see ``authenticated.py``.

    ``child`` maps each worker to a pointer to its authenticated share: 2n - 1 rows of the shape of the value. Sums and
    products with public integers are computed on all rows alike. The keys of the tags belong to the group. If a party
    has cheated, or a worker has lost its keys, the group gets new ones, and the value cannot be used any more.
    """

    protocol = AUTHENTICATED
    functions: ClassVar[dict[str, Function]]
    """The rules, by operation; backends add their own names."""

    def __init__(
        self, shares: Shares | None = None, group: Group | None = None, keys: Id = 0, **identity: Tensor
    ) -> None:
        super().__init__(shares, group, **identity)
        self.keys = keys

    def get_class_attributes(self) -> Kwargs:
        """Return the group and its keys."""
        return {"group": self.group, "keys": self.keys}

    @property
    def form(self) -> Form:
        """The form of the value: that of a row of the shares."""
        shape, pointer = self.pointer.shape, self.pointer
        return form(type(shape)(shape[1:]), None, pointer.dtype, pointer.device)

    def require_same_group(self, other: Tensor) -> None:
        """Raise unless another value has the same group and keys."""
        super().require_same_group(other)
        if self.keys != other.keys:
            raise ProtocolError.reopened()

    # --- creating and opening

    @classmethod
    def share(
        cls, secret: Tensor, workers: Sequence[WorkerLike], provider: WorkerLike | None, owner: Party
    ) -> AuthenticatedTensor:
        """Share integers that are in this process, without showing them to anyone.

        The provider deals a random r and tells it to this client, which publishes ``secret - r`` to the parties.
        """
        framework = framework_of(secret)
        if isinstance(secret, PointerTensor):
            raise ProtocolError.only_local()
        _require_value(secret)
        group = find_group(owner, workers, provider, framework)
        if group.provider is None:
            raise ProtocolError.no_provider()
        keys = group.keys
        (masks,) = group.run(auth_random, keys=keys, shape=tuple(secret.shape))
        r = masks.pop(group.provider.id).get()
        with group.kernels.wrapping_around():
            masked = secret - r
        return cls(masks, group, keys)._add_public(masked)

    def get(self, user: str | None = None, reason: str = "", **_options: bool) -> Tensor:
        """Open the value at all parties, which check the tags, and fetch it from all of them.

        Every party's policy decides, and every ledger records it. If a party has cheated, the error names it.
        """
        try:
            (opened,) = self.group.run(auth_open, self.child, keys=self.keys)
            values = [pointer.get(user=user, reason=reason) for pointer in opened.values()]
        except PartyFailedError as error:
            raise self.group.find_cause(error) from None
        if any(bool((value != values[0]).any()) for value in values[1:]):
            raise CheatingError.disagree(", ".join(map(str, self.group.ids)))
        for pointer in self.child.values():
            pointer.drop(f"it was fetched by {self.owner.id!r}")
        return values[0]

    # --- operations

    def run(self, protocol: Function, *others: Shares, **options: Nested) -> AuthenticatedTensor:
        """Run a protocol on the shares of this value and others."""
        (shares,) = self.group.run(protocol, self.child, *others, keys=self.keys, **options)
        return AuthenticatedTensor(shares, self.group, self.keys)

    def reshape_to(self, shape: Sequence[int]) -> AuthenticatedTensor:
        """Return the elements in another shape."""
        if tuple(shape) == tuple(self.shape):
            return self
        return self.on_each(lambda p: p.reshape((self.rows, *shape)))

    def expand_to(self, shape: Sequence[int]) -> AuthenticatedTensor:
        """Repeat the value along axes of length one."""
        if tuple(shape) == tuple(self.shape):
            return self
        own = (1,) * (len(shape) - len(self.shape)) + tuple(self.shape)
        wide = self.reshape_to(own)
        return wide.on_each(lambda p: self.framework.expand(p, (self.rows, *shape)))

    @property
    def rows(self) -> int:
        """The number of words that a party has for each element."""
        return 2 * len(self.group.ids) - 1

    def _add_public(self, value: Tensor) -> AuthenticatedTensor:
        return self.run(auth_add_public, {id: send_at(value, pointer) for id, pointer in self.child.items()})

    @classmethod
    def respond(cls, op: Op, plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Nested:
        """Answer an operation with a rule, or one that only moves elements; refuse all others."""
        own = [leaf for leaf in leaves((args, kwargs)) if type(leaf) is cls]
        for other in own[1:]:
            own[0].require_same_group(other)
        if op.reflected:
            args = (args[1], args[0], *args[2:])
        rule = None if op.inplace else cls.functions.get(op.operation)
        if rule is not None:
            return rule(*args, **kwargs)
        moved = None if op.inplace or len(own) > 1 else _move(own[0], op, args, kwargs)
        return super().respond(op, plan, args, kwargs) if moved is None else moved

    def encode(self, plain: Tensor) -> Tensor:
        """Return a public operand as it is."""
        return plain


def is_authenticated(x: Tensor) -> bool:
    """Return whether a value is shared with tags."""
    return type(x) is AuthenticatedTensor


def send_at(value: Tensor, pointer: PointerTensor) -> PointerTensor:
    """Send a public value to the worker of a pointer."""
    return send_copy(value, pointer._syft_owner, pointer._location)


def _require_value(x: Tensor) -> None:
    if isinstance(x, int):
        fits = abs(x) < 1 << (BITS - 1)
    else:
        kind = dtype_name(x) if hasattr(x, "dtype") else type(x).__name__
        if kind != "int64":
            raise ProtocolError.not_a_word(kind)
        kernels = framework_of(x).kernels
        if kernels is None:
            raise OperationNotAllowedError.no_kernels(framework_of(x).ALIAS)
        fits = kernels.is_within(x, 1 << (BITS - 1))
    if not fits:
        raise ProtocolError.beyond_authentication(1 << (BITS - 1))


# --- rules: operands are authenticated values, plain tensors of integers, or integers


def _shape_of(x: Tensor) -> tuple[int, ...]:
    return () if isinstance(x, int) else tuple(x.shape)


def _add(x: Tensor, y: Tensor, alpha: int = 1) -> AuthenticatedTensor:
    if alpha != 1:
        y = multiply(y, alpha) if is_authenticated(y) else y * alpha
    if not is_authenticated(x):
        x, y = y, x
    if not is_authenticated(y):
        _require_value(y)
    shape = bilinear_shape(ELEMENTS, _shape_of(x), _shape_of(y), {})
    wide: AuthenticatedTensor = x.expand_to(shape)
    if is_authenticated(y):
        return wide.on_each(lambda p, q: p + q, y.expand_to(shape))
    if isinstance(y, int):
        y = x.group.kernels.zeros((), "int64") + y
    return wide._add_public(y)


def multiply(x: Tensor, y: Tensor, divisor: int = 1, op: str = ELEMENTS, **options: Nested) -> AuthenticatedTensor:
    """Multiply with a bilinear operation, of one or two authenticated values, and divide by ``divisor``."""
    scaled = {"divisor": divisor} if divisor != 1 else {}
    if is_authenticated(x) and is_authenticated(y):
        x.require_same_group(y)
        named = {"op": op} if op != ELEMENTS else {}
        result: AuthenticatedTensor = x.run(auth_mul, y.child, **scaled, **named, **options)
        return result
    if op not in (ELEMENTS, MATRICES):
        raise OperationNotAllowedError.without_rule(AuthenticatedTensor.__name__, f"product of {op}", op, False)
    secret, public = (x, y) if is_authenticated(x) else (y, x)
    _require_value(public)
    shape = bilinear_shape(op, _shape_of(x), _shape_of(y), {})
    product = _times(secret, public, secret is x, op).reshape_to(shape)
    return product.run(auth_truncate, divisor=divisor) if divisor != 1 else product


def _power(x: AuthenticatedTensor, exponent: int) -> AuthenticatedTensor:
    if not isinstance(exponent, int) or exponent < 1:
        raise OperationNotAllowedError.without_rule(AuthenticatedTensor.__name__, f"power of {exponent}", "pow", False)
    result = x
    for bit in bin(exponent)[3:]:
        result = multiply(result, result)
        result = multiply(result, x) if bit == "1" else result
    return result


def _times(secret: AuthenticatedTensor, public: Tensor, is_left: bool, op: str) -> AuthenticatedTensor:
    """Multiply all rows by a public operand; the result may have additional axes of length one."""
    if isinstance(public, int):
        return secret.on_each(lambda p: p * public)
    own = tuple(secret.shape)
    if op == MATRICES and len(own) == 1:
        own = (1, *own) if is_left else (*own, 1)
    missing = len(public.shape) - len(own)
    aligned = secret.reshape_to((1,) * missing + own)
    if op == ELEMENTS:
        return aligned.on_each(lambda p: p * send_at(public, p))
    if is_left:
        return aligned.on_each(lambda p: p @ send_at(public, p))
    return aligned.on_each(lambda p: send_at(public, p) @ p)


def _sum(
    x: AuthenticatedTensor,
    dim: Nested = None,
    keepdim: bool = False,
    *,
    axis: Nested = None,
    keepdims: bool = False,
    dtype: Nested = None,
) -> AuthenticatedTensor:
    if dtype not in (None, x.dtype):
        raise ProtocolError.not_a_word(str(dtype).rpartition(".")[2])
    axes, rank = dim if axis is None else axis, len(x.shape)
    axes = range(rank) if axes is None or axes in ((), []) else [axes] if isinstance(axes, int) else axes
    shifted = tuple(axis % rank + 1 for axis in axes)
    return x.on_each(lambda p: p.sum(axis=shifted, keepdims=keepdim or keepdims) if shifted else p * 1)


def _move(x: AuthenticatedTensor, op: Op, args: Args, kwargs: Kwargs) -> Nested:
    """Run an operation that only moves elements; return None for one that does something else too.

    It runs here, on the numbers of the elements, and the parties select those from each row.
    """
    framework, kernels, count = x.framework, x.group.kernels, prod(x.shape)
    has_tensors = any(is_framework_tensor(type(leaf)) for leaf in leaves((args, kwargs)))
    is_slice = op.operation == "__getitem__"
    if not is_slice and op.operation not in framework.structural:
        return None
    if has_tensors and not is_slice and op.operation not in framework.selecting:
        return None
    if kwargs.get("dtype") not in (None, x.dtype):
        return None
    places = (kernels.arange(count) + 1).reshape(tuple(x.shape))
    args, kwargs = map_leaves(lambda leaf: places if leaf is x else leaf, (args, kwargs))
    function = framework.structural.get(op.operation)
    moved = function(*args, **kwargs) if function else dispatch(op, args, kwargs)
    if any(bool(((part < 1) | (part > count)).any()) for part in leaves(moved) if hasattr(part, "shape")):
        return None
    return map_leaves(partial(_select, x), moved)


def _select(x: AuthenticatedTensor, places: Tensor) -> Tensor:
    if not hasattr(places, "shape"):
        return places
    flat, shape, count = places.reshape((-1,)) - 1, tuple(places.shape), prod(x.shape)
    if prod(shape) == count and bool((flat == x.group.kernels.arange(count)).all()):
        return x.on_each(lambda p: p.reshape((x.rows, *shape)))
    rows = x.reshape_to((count,))
    return rows.on_each(lambda p: p[:, flat].reshape((x.rows, *shape)))


AuthenticatedTensor.functions = {
    "add": _add,
    "sub": lambda x, y, alpha=1: _add(x, -y, alpha),
    "neg": lambda x: x.on_each(lambda p: -p),
    "mul": multiply,
    "square": lambda x: multiply(x, x),
    "pow": _power,
    **dict.fromkeys(("matmul", "dot"), partial(multiply, op=MATRICES)),
    "sum": _sum,
    "detach": lambda x: x,
    "alias": lambda x: x,
}
AuthenticatedTensor.rules = {}  # Shares are not children of one framework tensor: ``respond`` handles everything.
