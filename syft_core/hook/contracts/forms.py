"""The contract about the forms of a framework's tensors: how to infer results without values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from syft_core.hook.forms import Form, Inferred
from syft_core.hook.ops import Op
from syft_core.values import Args, Nested, Tensor


class Forms:
    """How plain tensors are described without their values, and how the forms of results are inferred."""

    default_float: str = ""
    """The default dtype of floating-point numbers, such as "float32"; texts of forms omit it."""
    facts_of_form: frozenset[str] = frozenset()
    """The operations that can be answered from a form: ``shape``, ``size`` …"""
    facts_of_layout: frozenset[str] = frozenset()
    """The operations that describe a tensor's memory layout: ``stride``, ``is_contiguous`` …"""
    number_types: tuple[type, type] = (object, object)
    """Types, other than Python's numbers, that the framework accepts as integers and as floats."""

    def positions_of(self, mask: Tensor) -> tuple[Tensor, ...] | None:
        """Return the positions that a mask selects, one tensor for each dimension; None if it is not a mask."""
        return None

    def infers_on_device(self, modes: str | None) -> bool:
        """Return whether forms depend on the device in these modes, so that they are inferred with zeros on it."""
        return False

    def is_integral(self, dtype: object) -> bool:
        """Return whether a dtype is an integer or boolean type, as of masks, indices and lengths."""
        return False

    def name_storage(self, tensor: Tensor) -> str:
        """Return one word for the storage format of a plain tensor, or "" if it is dense."""
        return ""

    def read_numbers(self, tensor: Tensor) -> tuple[Tensor | None, str]:
        """Return a dense tensor with the numbers that a plain tensor stores, and a note that explains them.

        The note is empty if these are the elements of the tensor. Return None for the tensor if it has no numbers.
        """
        return tensor, ""

    def fact(self, op: Op, form: Form) -> Any:
        """Return a fact about a tensor of this form, such as its shape; ``op`` is one of ``facts_of_form``."""
        raise NotImplementedError

    def form_of(self, tensor: Tensor) -> Form | None:
        """Return the form of a plain tensor, or None if a form does not describe it completely."""
        return None

    def form_of_copy(self, tensor: Tensor) -> Form | None:
        """Return the form of the copy that ``transfer`` returns, or None if it is not certain."""
        return None

    def warm_up(self) -> None:
        """Prepare what ``infer`` needs, and wait until it is ready."""

    def state(self) -> Any:
        """Return the settings that affect the form of a result, or None if forms cannot be inferred."""
        return None

    def infer(self, op: Op, args: object, kwargs: object) -> Inferred | None:
        """Infer the result of ``op`` for arguments with forms in place of tensors, and the forms after the call.

        Return None if they depend on values.
        """
        return None

    def infer_size(self, op: Op, args: object, kwargs: object) -> tuple[int, int] | None:
        """Infer how many bytes of new memory a call needs for its results, and how many tensors it returns.

        Arguments have forms in place of tensors, as for ``infer``. Return None if the size depends on values.
        """
        return None

    def form_of_gradient(self, known: Form) -> Form | None:
        """Return the form of the gradient of a leaf with this form, or None if it is not certain."""
        return None

    def answer_from_form(self, op: Op, form: Form, args: Args) -> Nested:
        """Return the result of ``op``, one of ``facts_of_form``, for any tensor of this form."""
        raise NotImplementedError

    def shadow(self, argument: object, device: object) -> Tensor:
        """Replace an argument for a call without data, which finds the form of the result.

        Replace a ``Form`` with a plain tensor of that form that has no values, or public ones; replace ``device`` with
        the device of such tensors; return anything else unchanged. Without this method a worker refuses to compute on
        private tensors.
        """
        raise NotImplementedError("the backend has no shadows")

    def example(self, form: Form, kind: int) -> Tensor | None:
        """Return a plain tensor of a form: zeros, ones, identity matrices or different numbers, for kinds 0 to 3.

        Operations run on examples if a shadow does not show all errors. Return None if there is no such example, or if
        it would take too much memory.
        """
        return None

    def needs_data(self, error: Exception) -> bool:
        """Return whether a call failed only because shadows have no values."""
        return isinstance(error, NotImplementedError)

    def as_with_data(self, error: Exception) -> Exception:
        """Return the error that a call on real tensors would raise, given the error of that call on shadows."""
        return error

    def zeros(self, forms: Sequence[Form], operands: Sequence[Tensor]) -> list[Any]:
        """Return zeros of these forms on the device of ``operands``; in autograd, they depend on the operands."""
        raise NotImplementedError

    def stand_ins(self, twins: Sequence[Tensor], operands: Sequence[tuple[Tensor, Tensor]]) -> list[Tensor]:
        """Return zeros in place of the results of a failed call: only their values reveal the failure.

        ``twins`` are the results of the call on operands with other values; ``operands`` pairs these with the real
        operands. Memory and graph are like those of the twins.
        """
        forms = [self.form_of(twin) for twin in twins]
        return self.zeros(forms, [real for _, real in operands])  # type: ignore[arg-type]  # every twin has a form
