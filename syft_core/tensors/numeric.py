"""NumericTensor: the base class of layers that encode values, such as fixed precision and secret shares."""

from __future__ import annotations

from typing import Any, ClassVar

from syft_core.exceptions import MixedLayersError, OperationNotAllowedError
from syft_core.hook.argument_plans import ArgumentPlan
from syft_core.hook.attributes import Op
from syft_core.hook.chain import end_of, iter_links
from syft_core.hook.dispatch import framework_of
from syft_core.hook.forms import Form, form
from syft_core.hook.overload import OverloadedMethod, overloaded
from syft_core.tensors.abstract import AbstractTensor
from syft_core.values import Args, Kwargs, Nested, Tensor


class NumericTensor(AbstractTensor):
    """A layer whose child encodes values, for instance real numbers as scaled integers.

    The wrapper has the dtype of the values, not of the encoding, so that the framework's own autograd and optimizers
    work on it. An operation without a rule is refused, because running it on the encoding would give a wrong result. A
    subclass sets ``dtype``, defines its rules with ``overloaded.method``, and overrides ``encode`` if plain tensors may
    be operands. A rule also applies to the in-place variant of its operation.
    """

    numeric: ClassVar[bool] = True
    dtype: Any
    """The dtype of the values."""

    @property
    def form(self) -> Form:
        """The form of the values: by default the form of the encoding with ``dtype``."""
        encoding = _form_below(self.child)
        return form(encoding.shape, encoding.strides, self.dtype, encoding.device)

    @property
    def shape(self) -> Any:
        """The shape of the values."""
        return self.form.shape

    @property
    def device(self) -> Any:
        """The device of the values."""
        return self.form.device

    def encode(self, plain: Tensor) -> Tensor:
        """Encode a plain operand as a child of this layer; refused by default."""
        raise MixedLayersError.plain(type(self).__name__)

    @classmethod
    def lift(cls, plain: Tensor, **_kwargs: object) -> Tensor:  # noqa: ARG003  # by contract
        """Refuse: encoding a plain tensor needs an instance, see ``encode``."""
        raise MixedLayersError.plain(cls.__name__)

    def assign(self, child: Tensor) -> None:
        """Overwrite the encoding in place, so that its views change too."""
        framework_of(self.child).overwrite(self.child, child)

    @classmethod
    def respond(cls, op: Op, plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Nested:
        """Answer what follows from the form; refuse any other operation without a rule."""
        layer = plan.leader(args, kwargs)
        framework = framework_of(layer)
        if op.attr in framework.facts_of_form:
            return framework.fact(op, layer.form)
        alternative = framework.alternatives.get(op.operation)
        raise OperationNotAllowedError.without_rule(cls.__name__, op.name, op.operation, op.reveals, alternative)

    @overloaded.method
    def detach(self, _self: Tensor) -> Tensor:
        """Share the encoding; autograd works on the wrapper above."""
        return _self

    @overloaded.method
    def alias(self, _self: Tensor) -> Tensor:
        """Share the encoding."""
        return _self

    def __str__(self) -> str:
        if not self.has_child():
            return type(self).__name__
        return f"{type(self).__name__}>({self.dtype} values of shape {tuple(self.shape)})"

    __repr__ = __str__


def _copy_(self: Tensor, _self: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """Handle ``x.copy_(y)``: return the encoding for ``assign`` to write, like every in-place rule."""
    return source


# Not a method: calling it on a layer directly would have no effect.
NumericTensor.rules = {**NumericTensor.rules, "copy_": OverloadedMethod(_copy_).answer}


def _form_below(value: Tensor) -> Form:
    for link in iter_links(value):
        if isinstance(link, NumericTensor):
            return link.form
    end = end_of(value)
    # A pointer may already know the form of its object; otherwise these attributes ask its worker.
    known = end.known_form if isinstance(end, AbstractTensor) else framework_of(end).form_of(end)
    return known or form(end.shape, None, end.dtype, end.device)
