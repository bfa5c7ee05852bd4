"""PrivateTensor: the layer that restricts data, and everything computed from it, to some users."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from syft_core.exceptions import OperationNotAllowedError, SendNotPermittedError
from syft_core.hook import hook_args
from syft_core.hook.argument_plans import ArgumentPlan
from syft_core.hook.attributes import Op
from syft_core.hook.chain import below_wrapper, is_wrapper, iter_links
from syft_core.hook.dispatch import TRANSPARENT, dispatch, forward, framework_of
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import leaves, map_leaves
from syft_core.peer import Peer
from syft_core.printing import printable
from syft_core.serde import codecs
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.codecs import build_layer_codec
from syft_core.values import Args, Kwargs, Nested, Tensor


class PrivateTensor(AbstractTensor):
    """Restricts the data below it to ``allowed_users``.

    The result of an operation is restricted to the users whom every operand allows. A worker enforces this whenever
    data leaves, including for objects that do not have this layer, such as gradients.
    """

    rank = TRANSPARENT
    parents: tuple[Tensor, ...] = ()
    """The private tensors it was computed from, if the hook records them; this keeps them in memory."""
    command: str = ""

    def __init__(self, allowed_users: Iterable[str] = (), **identity: Any) -> None:
        super().__init__(**identity)
        self.allowed_users = frozenset(allowed_users)

    def get_class_attributes(self) -> Kwargs:
        """Return the allowed users."""
        return {"allowed_users": self.allowed_users}

    def allow(self, user: str) -> bool:
        """Return whether ``user`` may receive the data."""
        return user in self.allowed_users

    def register_credentials(self, users: Iterable[str]) -> PrivateTensor:
        """Replace the allowed users; existing results are not affected."""
        self.allowed_users = frozenset([users] if isinstance(users, str) else users)
        return self

    @classmethod
    def respond(cls, op: Op, plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Nested:
        """Run an operation below the layer; restrict its results to users whom every operand allows."""
        targets = op.targets(args, kwargs)
        _require_private_targets(op, targets)
        operands = [leaf for leaf in leaves((args, kwargs)) if type(leaf) is cls]
        users = frozenset.intersection(*[operand.allowed_users for operand in operands])
        if all(operand.allowed_users == users for operand in operands):
            return forward(op, plan, args, kwargs)
        new_args = map_leaves(lambda leaf: _with_users(leaf, users) if type(leaf) is cls else leaf, (args, kwargs))
        result = dispatch(op, *new_args)
        for target in targets:
            if isinstance(target, cls):
                target.allowed_users = users
        if kwargs.get("out") is not None:
            return kwargs["out"]
        return targets[0] if op.inplace else result

    def __str__(self) -> str:
        listed = printable(", ".join(sorted(self.allowed_users))) or "nobody"
        return f"{type(self).__name__}>(values for {listed})"

    __repr__ = __str__


def get_allowed_users(value: object) -> frozenset[str] | None:
    """Return the users whom the layers of a chain allow, or None if it is not restricted."""
    allowed: frozenset[str] | None = None
    for link in iter_links(value):
        if isinstance(link, PrivateTensor):
            allowed = link.allowed_users if allowed is None else allowed & link.allowed_users
    return allowed


def restrict(value: object, users: frozenset[str] | None) -> Tensor:
    """Return ``value`` with a PrivateTensor for ``users``, unless they are None or already its allowed users."""
    if users is None or get_allowed_users(value) == users:
        return value
    return framework_of(value).wrapper(PrivateTensor(users, child=below_wrapper(value)))


def remove_restriction(value: Tensor) -> Tensor:
    """Return a chain without its private layers, for a worker that restricts results itself."""
    if isinstance(value, PrivateTensor):
        return remove_restriction(value.child)
    below = getattr(value, "child", None)
    if below is None or (bare := remove_restriction(below)) is below:
        return value
    if is_framework_tensor(type(bare)) and is_wrapper(value):
        return bare
    return value.copy_onto(bare) if isinstance(value, AbstractTensor) else type(value)(bare)


def require_sendable(value: object, sender: Peer) -> None:
    """Raise unless ``sender`` may send the chain ``value``."""
    allowed = get_allowed_users(value)
    if allowed is not None and sender.user not in allowed:
        raise SendNotPermittedError.by(str(sender), allowed)


def _with_users(layer: PrivateTensor, users: frozenset[str]) -> PrivateTensor:
    restricted = PrivateTensor(users)
    restricted.child = layer.child
    return restricted


def _require_private_targets(op: Op, targets: list[Tensor]) -> None:
    """Refuse to write private data into an unrestricted plain tensor."""
    if any(is_framework_tensor(type(target)) for target in targets):
        raise OperationNotAllowedError.refused_by(
            "PrivateTensor",
            op.name,
            "a plain tensor cannot be changed in place into a private one; write `x = x + y` instead",
        )


def _valid_users(attributes: Kwargs) -> bool:
    users = attributes["allowed_users"]
    return type(users) is frozenset and all(type(user) is str for user in users)


hook_args.default_register_tensor(PrivateTensor)
codecs.register(build_layer_codec(PrivateTensor, code=254, accepts=_valid_users))
