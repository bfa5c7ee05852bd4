"""The contract about the memory and the autograd graphs of a framework's tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from syft_core.hook.ops import Op
from syft_core.peer import Id
from syft_core.values import Args, Kwargs, Tensor


class Place(Protocol):
    """The address of a worker, as far as this contract needs it: a ``Location``."""

    id: Id


class Memory:
    """How plain tensors are copied, written, shared and differentiated."""

    owner_of: Callable[[Tensor], object] | None = None
    """Return the owner of a plain tensor's memory; None if tensors that share memory cannot be recognised by it."""
    is_form_only: Callable[[Tensor], bool] | None = None
    """Return whether a plain tensor has a form and no data; None if all tensors have data.

    A worker does not compute with such tensors and others: results could be memory that nothing has written.
    """
    stateful: tuple[type, ...] = ()
    """Types of objects that hold tensors, and settings that change the behaviour of functions: models."""

    def copy(self, tensor: Tensor) -> Tensor:
        """Return a plain tensor with a copy of the data."""
        raise NotImplementedError

    def alias(self, tensor: Tensor) -> Tensor:
        """Return another plain tensor with the same memory and autograd history."""
        return tensor

    def transfer(self, tensor: Tensor) -> Tensor:
        """Return a copy of a plain tensor for another worker, without autograd history."""
        return self.copy(tensor)

    def replace_in_place(self, tensor: Tensor, other: object) -> None:
        """Replace the contents of ``tensor`` with those of ``other``, keeping the Python object."""
        raise NotImplementedError

    def memory_of(self, tensor: Tensor) -> frozenset[int | str] | None:
        """Identify all memory that a plain tensor holds; tensors that share memory have an element in common.

        This includes memory besides its elements: the scales of a quantized tensor, the parts of a sparse one.
        Enumerate the kinds of tensors that you know, and return None for any other: a worker refuses to compute on
        private tensors of unknown memory, and assumes that they share it with every tensor of their framework.
        """
        return None

    def is_borrowed(self, tensor: Tensor) -> bool:
        """Return whether another library owns a plain tensor's memory, where ``memory_of`` may not see it.

        A worker copies the results of its owner's functions if they are in such memory.
        """
        return False

    def make_resizable(self, tensors: Sequence[Tensor]) -> None:
        """Move plain tensors that share memory to resizable memory; received memory often cannot be resized."""

    def clear_growth(self, tensor: Tensor) -> AbstractContextManager[None] | None:
        """Return a context that zeroes the memory that a block adds to a plain tensor, even if the block fails.

        Return None if that is not possible: then a worker does not resize the tensor.
        """
        return nullcontext()

    def restore_forms(self, tensors: Sequence[Tensor]) -> AbstractContextManager[None]:
        """Return a context that restores the sizes of plain tensors if a block fails after changing them."""
        return nullcontext()

    def is_partial_view(self, tensor: Tensor) -> bool:
        """Return whether a plain tensor is a view of part of a larger piece of memory."""
        return False

    def transfer_ownership(self, tensor: Tensor, references: int) -> Tensor:
        """Return the tensor that an in-process receiver may keep without a copy, or None if a copy is needed.

        The sender gives up ``tensor``; ``references`` is the number of other references to it.
        """
        return None

    def is_part_of_model(self, tensor: Tensor) -> bool:
        """Return whether a plain tensor is a parameter, to be sent with its model."""
        return False

    def detach(self, tensor: Tensor) -> Tensor:
        """Return a plain tensor outside of its autograd graph."""
        return tensor

    def is_shared(self, *tensors: Tensor) -> bool:
        """Return whether tensors with another owner (``owner_of``) may use the memory of one of these plain tensors."""
        return True

    def is_alone(self, tensor: Tensor) -> bool:
        """Return whether a plain tensor and its memory have no other reference, not even to a part."""
        return not self.is_shared(tensor)

    def place_new_tensors(self, location: Place) -> AbstractContextManager[Any]:
        """Return a context in which the framework creates new tensors at ``location``, if it supports that."""
        return nullcontext()

    def hold_state(
        self, objects: Sequence[object], location: Place, send: Callable[[Tensor], Tensor]
    ) -> AbstractContextManager[tuple[list[Tensor], Callable[[], dict[Any, Callable[[Tensor], None]]]]]:
        """Return a context in which the tensors of these objects lead to ``location``, where a plan is recorded.

        ``send`` returns a wrapper of a pointer there for each tensor. The context yields the tensors, and a function
        that finds state created by the objects meanwhile: a setter by the id of each pointer.
        """
        return nullcontext(([], dict))

    def find_state(self, objects: Sequence[object]) -> list[Tensor]:
        """Return the tensors of the ``stateful`` ones among these objects, without duplicates."""
        return []

    def has_hooks(self, tensor: Tensor) -> bool:
        """Return whether backward passes call user functions with the gradient of a tensor."""
        return False

    def bytes_of(self, tensor: Tensor) -> int:
        """Return how many bytes of memory a plain tensor keeps allocated."""
        return int(tensor.nbytes)

    def saved_by_graphs(self, tensors: Sequence[Tensor]) -> dict[int, int]:
        """Return how many bytes the graphs of plain tensors keep for backward passes, by element of ``memory_of``."""
        return {}

    def parse_backward(self, op: Op, args: Args, kwargs: Kwargs) -> tuple[Any, Any, bool]:
        """Return the roots of a backward pass, the inputs it is restricted to, and whether it creates no graph.

        Only for operations that accumulate gradients. If the inputs are None, all leaves get gradients.
        """
        raise NotImplementedError

    def find_leaves(self, roots: Sequence[Tensor]) -> list[Tensor] | None:
        """Return the leaves to which a backward pass from these plain tensors may add gradients.

        Return None if that is not certain; then every tensor that needs gradients may get one.
        """
        return None

    def explain_backward(self, error: Exception) -> Exception | None:
        """Return the error of a failed backward pass, limited to what does not depend on values or on other failures.

        Return None if that is not certain.
        """
        return None

    def clear(self, tensor: Tensor) -> None:
        """Set a plain tensor to zeros, outside of autograd."""
        tensor[...] = 0

    def overwrite(self, target: Tensor, value: object) -> None:
        """Copy the values and the shape of a plain tensor into another, as an in-place operation does."""
        raise NotImplementedError

    def note_write(self, tensor: Tensor) -> None:
        """Make backward passes fail that need the current values of a plain tensor, which are about to change."""
