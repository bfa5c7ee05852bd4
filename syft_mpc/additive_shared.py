"""AdditiveSharingTensor: integers of which each party holds a share; the shares add up to the value."""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Sequence
from functools import partial, reduce
from operator import add, itemgetter, sub
from typing import Any, ClassVar, TypeAlias

from syft_core.exceptions import MixedLayersError
from syft_core.hook.argument_plans import ArgumentPlan
from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.dispatch import dispatch, framework_of
from syft_core.hook.forms import Form, form
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import leaves, map_leaves
from syft_core.location import WorkerLike
from syft_core.pointers.multi_pointer import MultiPointerTensor
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.pointers.travel import send_copy
from syft_core.values import Args, Function, Kwargs, Nested, Tensor
from syft_mpc.errors import PartyFailedError, PrecisionError, ProtocolError
from syft_mpc.group import Group, Masked, PastRun, Shares, find_group, last_call
from syft_mpc.kernels import RINGS, dtype_name, size_of
from syft_mpc.protocol import MASK
from syft_mpc.shared import SharedTensor
from syft_mpc.spdz import ELEMENTS, reconstruct, spdz_mul, spdz_mul_masked, zero

Path: TypeAlias = tuple[Any, ...]
"""Names of operations with their arguments."""
FAST, SECURENN = "fast", "snn"
"""Comparison protocols: those of ``comparison.py``, or those of the SecureNN paper."""


class _Known:
    """An attribute derived from the value; it becomes None when the value is changed in place."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"_{name}"

    def __get__(self, shared: Any, owner: type) -> Any:
        value, writes = getattr(shared, self.name, (None, 0))
        return value if value is not None and writes == shared.memory.writes else None

    def __set__(self, shared: Any, value: AdditiveSharingTensor) -> None:
        setattr(shared, self.name, (value, shared.memory.writes))


class SharedViews:
    """State shared by a value and its possible views."""

    __slots__ = ("__weakref__", "masked", "owner", "writes")

    def __init__(self, owner: AdditiveSharingTensor) -> None:
        self.owner = weakref.ref(owner)
        """The value from which the others were computed, by moving elements."""
        self.writes = 0
        """Number of in-place changes to the shares."""
        self.masked: dict[Path, Masked | None] = {}
        """Views used as factors of a product since then: None after the first use, later opened under a kept mask."""

    def note_write(self) -> None:
        """Record an in-place change of the shares."""
        self.writes += 1
        self.masked.clear()


class AdditiveSharingTensor(SharedTensor):
    """Integers modulo 2^64 (or 2^32), shared among the parties of a group.

    ``child`` maps each worker to a pointer to its share. No worker can compute the value alone, nor can all but one of
    them together. Sums and products with public numbers are computed by each party on its own share; products of shared
    values and comparisons are protocols, for which the crypto_provider supplies correlated random numbers.
    """

    number_type: ClassVar[Any]
    """FixedPrecisionTensor, whose rules apply to integers too."""
    _form: Form | None = None
    derivative = _Known()
    """For a result of relu: 1 where the operand was positive, and 0 elsewhere."""
    bit = _Known()
    """For numbers that are 0 or 1: the same as integers, without a scale."""

    def __init__(
        self, shares: Shares | None = None, group: Group | None = None, protocol: str = FAST, **identity: Any
    ) -> None:
        super().__init__(shares, group, **identity)
        if protocol not in (FAST, SECURENN):
            raise ProtocolError.unknown_protocol(protocol)
        self.protocol = protocol
        self.memory = SharedViews(self)
        self.path: Path | None = ()
        """Operations that compute this value from the owner of its memory; None if it depends on anything else."""
        self.transposed: dict[Path, AdditiveSharingTensor] = {}
        """Cached transposed views; a model needs those of its weights in every call."""

    def get_class_attributes(self) -> Kwargs:
        """Return the group and the protocol of comparisons."""
        return {"group": self.group, "protocol": self.protocol}

    @property
    def form(self) -> Form:
        """The form of the value, which is that of each share."""
        if self._form is None:
            pointer = self.pointer
            self._form = pointer.known_form or form(pointer.shape, None, pointer.dtype, pointer.device)
        return self._form

    @property
    def location(self) -> list[Any]:
        """Alias of ``locations``."""
        return self.locations

    # --- creating and opening

    @classmethod
    def share(
        cls,
        secret: Tensor,
        workers: Sequence[WorkerLike],
        provider: WorkerLike | None,
        owner: Any,
        protocol: str = FAST,
    ) -> AdditiveSharingTensor:
        """Share integers that are in this process: send a random share to each worker."""
        framework = framework_of(secret)
        _require_ring(dtype_name(secret))
        group = find_group(owner, workers, provider, framework)
        shares = generate_shares(secret, len(group.parties), framework.kernels)
        pointers = [send_copy(share, owner, location) for share, location in zip(shares, group.parties, strict=True)]
        return cls(dict(zip(group.ids, pointers, strict=True)), group, protocol)

    @classmethod
    def share_remotely(
        cls,
        secret: PointerTensor,
        workers: Sequence[WorkerLike],
        provider: WorkerLike | None,
        owner: Any,
        protocol: str = FAST,
    ) -> Any:
        """Share integers that are at one of the workers: it adds them to its share of random shares of zeros."""
        framework, home, dtype = secret.framework, secret.location_id, dtype_name(secret)
        _require_ring(dtype)
        group = find_group(owner, workers, provider, framework)
        if home not in group.ids:
            raise ProtocolError.data_elsewhere(home)
        shape, number = tuple(secret.shape), framework.kernels.zeros((), dtype)
        forms = {
            location.id: secret if location.id == home else framework.expand(send_copy(number, owner, location), shape)
            for location in group.parties
        }
        (shares,) = group.run(zero, forms)
        own: Any = shares[home]
        return cls({**shares, home: own + secret}, group, protocol)

    def get(self, user: str | None = None, reason: str = "", deregister_ptr: bool = True) -> Tensor:
        """Fetch all shares and return the value; every party's policy decides, and every ledger records it.

        With ``deregister_ptr=False`` the shares stay.
        """
        pointers = list(self.child.values())
        try:  # Copies: if one party refuses, no share is lost.
            shares = [pointer.get(user=user, reason=reason, deregister_ptr=False) for pointer in pointers]
        except PartyFailedError as error:
            raise self.group.find_cause(error) from None
        for pointer in pointers if deregister_ptr else ():
            pointer.drop(f"it was fetched by {self.owner.id!r}")
        return self._add(shares)

    def request(self, reason: str) -> dict[Any, Any]:
        """Ask the owners of all parties to release the shares; after all have approved, ``get`` works."""
        return {id: pointer.request(reason, tuple(self.child)) for id, pointer in self.child.items()}

    def virtual_get(self, _sum_results: bool = False) -> Tensor:
        """Return the value without fetching the shares, if the workers are in this process; for tests only."""
        return self._add([pointer.location.get_obj(pointer.id_at_location) for pointer in self.child.values()])

    def _add(self, shares: Sequence[Tensor]) -> Tensor:
        with self.group.framework.kernels.wrapping_around():
            return reduce(add, shares)

    def zero(self) -> AdditiveSharingTensor:
        """Return random shares of zeros of the same shape."""
        (shares,) = self.group.run(zero, self.child)
        return AdditiveSharingTensor(shares, self.group, self.protocol)

    def reconstruct(self) -> MultiPointerTensor:
        """Open the value at every party, if their policies allow it, without showing it to this client."""
        opened = self.group.run(reconstruct, self.child)[0]
        return MultiPointerTensor(list(opened.values()))

    # --- operations

    def require_same_group(self, other: SharedTensor) -> None:
        """Raise unless another value has the same group, protocol and ring."""
        super().require_same_group(other)
        if self.dtype != other.dtype:
            raise MixedLayersError.rings(dtype_name(self), dtype_name(other))

    def run(self, protocol: Function, *others: AdditiveSharingTensor, **options: Any) -> Any:
        """Run a protocol; return its result, or a tuple of results."""
        for other in others:
            self.require_same_group(other)
        # A part of all operands is a part of the result only if they have the same shape.
        same = all(other.shape == self.shape for other in others)
        axis, cuts = self.group.cut(protocol, self.child, 1 + len(others), options) if same else (0, [])
        if cuts:
            parts = [[value.on_each(itemgetter(place)) for value in (self, *others)] for place in cuts]
            return self._join([first.run(protocol, *rest, **options) for first, *rest in parts], axis)
        results = self.group.run(protocol, self.child, *[other.child for other in others], **options)
        values = tuple([AdditiveSharingTensor(shares, self.group, self.protocol) for shares in results])
        return values[0] if len(values) == 1 else values

    def _join(self, results: Sequence[Nested], axis: int) -> Nested:
        if type(results[0]) is tuple:
            return tuple([self._join(parts, axis) for parts in zip(*results, strict=True)])
        first, *others = results
        return first.on_each(lambda *parts: self.framework.join(parts, axis), *others)

    def multiply(
        self, other: AdditiveSharingTensor, op: str, *plus: AdditiveSharingTensor, **options: Any
    ) -> AdditiveSharingTensor:
        """Multiply with a bilinear operation, and optionally add a third value; open a reused operand once."""
        masked = other.find_mask() if op != ELEMENTS else None
        scaled = {**options, **({"op": op} if op != ELEMENTS else {})}
        if masked is not None:
            product: AdditiveSharingTensor = self.run(spdz_mul_masked, other, *plus, mask=masked.number, **scaled)
            return product
        product = self.run(spdz_mul, other, *plus, **scaled)
        call = last_call()
        if call is not None and op != ELEMENTS:
            view = other if other.path else None
            call.repeat = partial(_mask_call, call, weakref.ref(other), view)
        return product

    def find_mask(self) -> Masked | None:
        """Return the value as opened under a kept mask; None if it is used only once, which does not pay."""
        masked, path = self.memory.masked, self.path
        if path is None:
            return None
        if path not in masked:
            if len(masked) >= MAX_VIEWS:
                masked.clear()
            masked[path] = None
            return None
        found = masked[path]
        if found is None or not self.group.has_mask(found):
            found = masked[path] = self.group.mask(self.child)
        return found

    @classmethod
    def respond(cls, op: Op, plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Any:
        """Answer an operation on integers as one on numbers without fractional digits, where that is exact."""
        leader = next(leaf for leaf in leaves((args, kwargs)) if type(leaf) is cls)
        if op.reveals:
            raise PrecisionError.reveals()
        if op.operation not in leader.framework.structural and op.operation not in cls.number_type.exact:
            if op.operation in cls.number_type.rules:
                raise PrecisionError.no_fractions(op.operation)
            return super().respond(op, plan, args, kwargs)
        layer = cls.number_type(10, 0, FIELDS[dtype_name(leader)], leader.dtype)
        result = dispatch(op, *map_leaves(partial(leader._make_number, layer), (args, kwargs)))
        return map_leaves(lambda leaf: leaf.child if type(leaf) is type(layer) else leaf, result)

    def _make_number(self, layer: Tensor, leaf: Tensor) -> Tensor:
        """Return shared integers under a layer for numbers; refuse operands that are not integers."""
        if type(leaf) is AdditiveSharingTensor:
            return layer.copy_onto(leaf)
        dtype = dtype_name(leaf) if is_framework_tensor(type(leaf)) else type(leaf).__name__
        if dtype.startswith(("float", "bfloat", "complex")):
            raise ProtocolError.not_an_integer(dtype)
        return leaf

    def assign(self, child: AdditiveSharingTensor) -> None:
        """Overwrite the shares in place, so that their views change too."""
        self.require_same_group(child)
        self.memory.note_write()
        for id, pointer in self.child.items():
            self.framework.overwrite(pointer, child.child[id])

    def copy(self) -> AdditiveSharingTensor:
        """Return a copy with its own shares."""
        return self.separate([self])

    def __deepcopy__(self, _memo: object) -> AdditiveSharingTensor:
        return self.copy()

    def separate(self, others: Sequence[AdditiveSharingTensor]) -> AdditiveSharingTensor:
        """Return the same value with its own shares: operations in place on it must not change the others."""
        used = {id(pointer) for other in others for pointer in other.child.values()}
        if used.isdisjoint(map(id, self.child.values())):
            return self
        shares = {party: pointer * 1 if id(pointer) in used else pointer for party, pointer in self.child.items()}
        return AdditiveSharingTensor(shares, self.group, self.protocol)


MAX_VIEWS = 64
"""Maximum number of views of a value that are remembered as factors."""
FIELDS = {"int64": "long", "int32": "int"}
"""The rings, with the ancestor's names."""


def restructure(framework: FrameworkAttributes, op: Op, args: Args, kwargs: Kwargs) -> Nested:
    """Run an operation that only moves or adds elements on plain integers, or on the shares of each party."""
    function = framework.structural[op.operation]
    shared = [leaf for leaf in leaves((args, kwargs)) if type(leaf) is AdditiveSharingTensor]
    if not shared:
        return function(*args, **kwargs) if function else dispatch(op, args, kwargs)
    first = shared[0]
    for other in shared[1:]:
        first.require_same_group(other)
    path = _extend(first.path, op, args, kwargs)
    known = None if path is None else first.transposed.get(path)
    if known is not None and known.pointer.gone is None:  # It was not fetched.
        return known
    parts = []
    for id in first.child:
        own_args, own_kwargs = map_leaves(partial(_select, id), (args, kwargs))
        parts.append(function(*own_args, **own_kwargs) if function else dispatch(op, own_args, own_kwargs))
    result = _combine(parts, first)
    if type(result) is AdditiveSharingTensor:
        result.path = path
        if path is not None and op.operation in framework.transposing:
            first.transposed[path] = result
    return result


def _extend(path: Path | None, op: Op, args: Args, kwargs: Kwargs) -> Path | None:
    """Return the path of the result of an operation; None if it depends on anything but one value and numbers."""
    settings = (*args[1:], *kwargs.values())
    if path is None or type(args[0]) is not AdditiveSharingTensor or not all(map(_is_setting, settings)):
        return None
    step = (op.operation, *[tuple(part) if type(part) is list else part for part in args[1:]], *sorted(kwargs.items()))
    return (*path, step)


def _is_setting(part: Nested) -> bool:
    if type(part) in (list, tuple):
        return all(type(item) is int for item in part)
    return part is None or type(part) is int


def _mask_call(
    call: PastRun, reference: weakref.ref[AdditiveSharingTensor], view: AdditiveSharingTensor | None
) -> PastRun | None:
    """Return the equivalent product with a kept mask, if its second factor still exists."""
    other = reference() if view is None else view
    masked = None if other is None or other.memory.owner() is None else other.find_mask()
    if other is None or masked is None:
        return None
    return PastRun(call.group, spdz_mul_masked.__name__, call.forms, {**call.options, MASK: masked.number})


def generate_shares(secret: Tensor, n_workers: int, kernels: Any) -> list[Tensor]:
    """Split integers into ``n_workers`` shares, all but one of which are random numbers of the operating system."""
    if n_workers < 2:
        raise ProtocolError.too_few_parties(n_workers)
    shape, dtype = tuple(secret.shape), dtype_name(secret)
    shares = [
        kernels.from_bytes(bytearray(secrets.token_bytes(size_of(shape, dtype))), dtype, shape)
        for _ in range(n_workers - 1)
    ]
    with kernels.wrapping_around():
        return [*shares, reduce(sub, shares, secret)]


def _require_ring(dtype: str) -> None:
    if dtype not in RINGS:
        real = dtype.startswith(("float", "bfloat", "complex"))
        raise (ProtocolError.not_an_integer if real else ProtocolError.not_a_ring)(dtype)


def _select(id: Any, leaf: Tensor) -> Tensor:
    return leaf.child[id] if type(leaf) is AdditiveSharingTensor else leaf


def _combine(parts: Sequence[Nested], first: AdditiveSharingTensor) -> Nested:
    if isinstance(parts[0], PointerTensor):
        result = AdditiveSharingTensor(dict(zip(first.child, parts, strict=True)), first.group, first.protocol)
        result.memory, result.path = first.memory, None  # It may be a view.
        return result
    if isinstance(parts[0], list | tuple):
        return [_combine(items, first) for items in zip(*parts, strict=True)]
    return parts[0]


AdditiveSharingTensor.rules = {}  # Shares are not children of one framework tensor: ``respond`` handles everything.
