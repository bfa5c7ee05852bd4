"""SecretPlaces: the positions of the largest numbers, of which only the form is known."""

from __future__ import annotations

from typing import NoReturn

from syft_core.exceptions import OperationNotAllowedError
from syft_core.hook.argument_plans import ArgumentPlan
from syft_core.hook.attributes import Op
from syft_core.hook.dispatch import attributes_of, dispatch, framework_of, rewrap
from syft_core.tensors.numeric import NumericTensor
from syft_core.values import Args, Kwargs, Nested


class SecretPlaces(NumericTensor):
    """Indices that a framework expects as a result and passes on to the gradient: a form without values."""

    @property
    def dtype(self) -> Nested:
        """The dtype of integers."""
        return self.child.dtype

    @classmethod
    def respond(cls, op: Op, plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Nested:
        """Change the form; refuse everything else."""
        if op.operation not in framework_of(plan.leader(args, kwargs)).structural:
            cls.refuse(op.name)
        attributes = attributes_of(op.name, plan, args, kwargs)
        return rewrap(op.name, dispatch(op, *plan.unwrap(args, kwargs)), plan, attributes, (args, kwargs))

    @classmethod
    def refuse(cls, name: str) -> NoReturn:
        """Refuse to compute with the places."""
        why = "the places of the largest numbers are secret; leave out `return_indices`, or use `argmax`"
        raise OperationNotAllowedError.refused_by(cls.__name__, name, why)
