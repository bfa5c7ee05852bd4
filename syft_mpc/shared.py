"""SharedTensor: the base class of integers of which each party of a group holds a share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from syft_core.exceptions import MixedLayersError
from syft_core.hook.attributes import FrameworkAttributes
from syft_core.location import WorkerLike
from syft_core.pointers.multi_pointer import Children
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.printing import printable
from syft_core.tensors.numeric import NumericTensor
from syft_core.values import Tensor
from syft_mpc.group import Group, Shares

S = TypeVar("S", bound="SharedTensor")


class SharedTensor(NumericTensor):
    """Integers that are shared among the parties of a group; ``child`` maps each worker to a pointer to its share."""

    unsendable: ClassVar[str] = "its shares stay with their parties; fetch it first: `x.get()`"
    """Why it has no codec."""
    protocol: str
    """How the parties compute on it, as an option of ``share``."""

    def __init__(self, shares: Shares | None, group: Group | None, **identity: Tensor) -> None:
        super().__init__(**identity)
        if shares is not None:
            self.child = Children(shares)
        self.group: Group = group  # type: ignore[assignment]  # only None if there are no shares

    @property
    def framework(self) -> FrameworkAttributes:
        """The framework of the shares."""
        framework: FrameworkAttributes = self.child.framework
        return framework

    @property
    def pointer(self) -> PointerTensor:
        """The pointer to the share of the first party."""
        return next(iter(self.child.values()))  # type: ignore[no-any-return]  # pointers

    @property
    def dtype(self) -> Any:
        """The dtype of the shares."""
        return self.form.dtype

    @property
    def locations(self) -> list[WorkerLike]:
        """The workers that hold the shares."""
        return [pointer.location for pointer in self.child.values()]

    @property
    def crypto_provider(self) -> Any:
        """The worker that supplies correlated random numbers, or None."""
        return None if self.group.provider is None else self.group.provider.face

    def has_child(self) -> bool:
        """Return True: the shares."""
        return True

    def require_same_group(self, other: SharedTensor) -> None:
        """Raise unless another value is shared in the same way, so that both can be operands of one call."""
        if self.group is not other.group or self.protocol != other.protocol:
            raise MixedLayersError.parties(", ".join(map(str, self.group.ids)), ", ".join(map(str, other.group.ids)))

    def on_each(self: S, function: Callable[..., Tensor], *others: S) -> S:
        """Return the value whose shares are a function of the shares of these values, at each party."""
        for other in others:
            self.require_same_group(other)
        shares = {id: function(*[value.child[id] for value in (self, *others)]) for id in self.child}
        return type(self)(shares, **self.get_class_attributes())

    def __str__(self) -> str:
        shares = "".join(f"\n\t-> {pointer}" for pointer in self.child.values())
        provider = self.group.provider
        text = f"[{type(self).__name__}]{shares}\n\t*crypto provider: {None if provider is None else provider.id}*"
        return printable(text, lines=True)

    __repr__ = __str__
