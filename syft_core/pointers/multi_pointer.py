"""MultiPointerTensor: one tensor on each of several workers; operations run on all of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from syft_core.exceptions import MixedLayersError
from syft_core.hook import hook_args
from syft_core.hook.argument_plans import ArgumentPlan
from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.dispatch import dispatch, framework_of
from syft_core.hook.rules import leaves, map_leaves
from syft_core.pointers.fetches import complete_all
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.tensors.abstract import AbstractTensor
from syft_core.values import Args, Kwargs, Nested, Tensor


class Children(dict[Any, PointerTensor]):
    """Pointers by worker id, all to tensors of one framework."""

    @property
    def framework(self) -> FrameworkAttributes:
        """The framework of the tensors pointed to."""
        return next(iter(self.values())).framework


class MultiPointerTensor(AbstractTensor):
    """Points to tensors of one shape on several workers; every operation runs on each of them.

    Two operands must be on the same workers; a number is sent to all.
    """

    def __init__(self, children: Iterable[Tensor] = (), **identity: Any) -> None:
        super().__init__(**identity)
        pointers = [getattr(child, "child", None) or child for child in children]
        self.child = Children((pointer.location_id, pointer) for pointer in pointers)

    @classmethod
    def respond(cls, op: Op, _plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Nested:
        """Run an operation on every worker, and combine the results."""
        operands = [leaf for leaf in leaves((args, kwargs)) if type(leaf) is cls]
        workers = list(operands[0].child)
        for operand in operands:
            if operand.child.keys() != operands[0].child.keys():
                raise MixedLayersError.attributes(op.name, cls.__name__, ("workers",))
        results = []
        for worker in workers:
            worker_args, worker_kwargs = map_leaves(partial(_select, worker), (args, kwargs))
            results.append(dispatch(op, worker_args, worker_kwargs))
        if op.inplace:
            return args[0]
        return _combine(results)

    @property
    def location(self) -> list[Any]:
        """The workers, in the given order."""
        return [pointer.location for pointer in self.child.values()]

    @property
    def shape(self) -> Any:
        """The shape of each tensor."""
        return next(iter(self.child.values())).shape

    def get(self, sum_results: bool = False, user: str | None = None, reason: str = "") -> Tensor:
        """Fetch the tensors as a list in the order of the workers, or as their sum."""
        pointers: list[PointerTensor] = list(self.child.values())
        fetches = [pointer.fetch(user, reason) for pointer in pointers]
        results = complete_all(fetches, lambda place, value: pointers[place].keep_arrived(value))
        return _sum(results) if sum_results else results

    def virtual_get(self, sum_results: bool = False) -> Tensor:
        """Return the tensors of workers in this process without fetching them; for tests and simulations only."""
        results = [pointer.location.get_obj(pointer.id_at_location) for pointer in self.child.values()]
        return _sum(results) if sum_results else results

    def __str__(self) -> str:
        return f"{type(self).__name__}>" + "".join(f"\n\t-> {pointer}" for pointer in self.child.values())

    __repr__ = __str__


def combine_pointers(*pointers: Tensor) -> Tensor:
    """Return a multi-pointer to the objects of ``pointers``, each on a different worker."""
    ends: list[Tensor] = [getattr(pointer, "child", pointer) for pointer in pointers]
    if not ends or not all(isinstance(end, PointerTensor) for end in ends):
        raise ValueError("cannot combine these: each must be a pointer to a tensor; send them first")
    _require_distinct_workers(ends)
    _require_one_shape(ends)
    combined = MultiPointerTensor(ends)
    return ends[0].framework.wrapper(combined)


def _require_distinct_workers(pointers: list[PointerTensor]) -> None:
    seen = set()
    for pointer in pointers:
        if pointer.location_id in seen:
            raise ValueError(
                f"cannot combine two pointers to worker {pointer.location_id!r}: one of them would be lost; "
                f"move one to another worker, or add them first"
            )
        seen.add(pointer.location_id)


def _require_one_shape(pointers: list[PointerTensor]) -> None:
    shapes = [tuple(pointer.shape) for pointer in pointers]
    for pointer, shape in zip(pointers, shapes, strict=True):
        if shape != shapes[0]:
            raise ValueError(
                f"cannot combine a tensor of shape {shapes[0]} on {pointers[0].location_id!r} with one of shape "
                f"{shape} on {pointer.location_id!r}: the shapes must be equal; reshape one of them"
            )


def _select(worker: object, leaf: Tensor) -> Nested:
    return leaf.child[worker] if type(leaf) is MultiPointerTensor else leaf


def _combine(results: list[object]) -> Nested:
    """Combine results of equal structure: join pointers in a multi-pointer, require other values to be equal."""
    parts = [leaves(result) for result in results]
    if any(len(part) != len(parts[0]) for part in parts):
        raise ValueError(
            "cannot combine the results of several workers: they have different structures; run them one by one"
        )
    columns = iter(zip(*parts, strict=True))
    return map_leaves(lambda _leaf: _join(next(columns)), results[0])


def _join(column: tuple[object, ...]) -> Nested:
    if all(isinstance(part, PointerTensor) for part in column):
        return MultiPointerTensor(column)
    if any(part != column[0] for part in column):
        raise ValueError("cannot combine the results of several workers: they differ; run it on one at a time")
    return column[0]


def _sum(results: list[Tensor]) -> Tensor:
    total = results[0]
    for result in results[1:]:
        total = dispatch(framework_of(total).method("__add__"), (total, result), {})
    return total


hook_args.register_type_rule({MultiPointerTensor: hook_args.one})
hook_args.register_forward_func({MultiPointerTensor: hook_args.reject_pointer})
hook_args.register_backward_func({MultiPointerTensor: lambda pointer, **_attributes: pointer})
