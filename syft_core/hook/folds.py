"""Small functions of the published interface: rules for one slot, folds, and getters for nested elements.

A fold of n takes n functions and exactly n arguments. Too few arguments raise ``IndexError``, too many
``PlanMismatchError``, so no argument is dropped silently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from syft_core.exceptions import PlanMismatchError
from syft_core.values import Function, Nested, Tensor

FoldSlot = Function
Getter = Callable[[Nested], Nested]


def one(_args: Nested) -> int:
    """Return 1, the rule of a tensor."""
    return 1


def zero(_args: Nested) -> int:
    """Return 0, the rule of any other value."""
    return 0


def get_child(tensor: Tensor, **_kwargs: object) -> Tensor:
    """Return the child of ``tensor``."""
    return tensor.child


def typed_identity(a: object) -> FoldSlot:
    """Return an identity function that only accepts the type of ``a``.

    >>> typed_identity(1)(2)
    2
    >>> typed_identity(None)(2)
    Traceback (most recent call last):
    ...
    syft_core.exceptions.PlanMismatchError: cannot apply a plan for a NoneType to a int: a plan is for one signature \
only; build one for this signature
    """
    expected = type(a)

    def identity(x: object, **_kwargs: object) -> Nested:
        if isinstance(x, expected):
            return x
        raise PlanMismatchError.slot(expected.__name__, type(x).__name__)

    return identity


def many_fold(lambdas: Sequence[FoldSlot], args: Sequence[object], **kwargs: object) -> tuple[object, ...]:
    """Apply any number of functions to as many arguments."""
    if len(args) > len(lambdas):
        raise PlanMismatchError.arity(len(lambdas), len(args))
    return tuple([f(args[i], **kwargs) for i, f in enumerate(lambdas)])


def _exact_fold(n: int) -> Function:
    def fold(lambdas: Sequence[FoldSlot], args: Sequence[object], **kwargs: object) -> tuple[object, ...]:
        return many_fold(lambdas[:n], args, **kwargs)

    fold.__doc__ = f"Apply {n} functions to {n} arguments."
    return fold


def zero_fold(*_a: object, **_k: object) -> tuple[()]:
    """Return the empty tuple."""
    return ()


def one_fold(return_tuple: bool, **_k: object) -> Function:
    """Return a fold of one slot; its result is a 1-tuple or the value itself."""
    fold = _exact_fold(1)
    return fold if return_tuple else lambda lambdas, args, **kwargs: fold(lambdas, args, **kwargs)[0]


two_fold, three_fold, four_fold, five_fold, six_fold, seven_fold, eight_fold = map(_exact_fold, range(2, 9))


def one_layer(idx1: int) -> Getter:
    """Return a getter for one level of nesting."""
    return lambda x: x[idx1]


def two_layers(idx1: int, idx2: int) -> Getter:
    """Return a getter for two levels of nesting.

    >>> two_layers(1, 0)([0, [5]])
    5
    """
    return lambda x: x[idx1][idx2]


def deep_layers(idx1: int, *ids: int) -> Getter:
    """Return a getter for as many levels of nesting as there are indices."""
    if not ids:
        return one_layer(idx1)
    inner = deep_layers(*ids)
    return lambda x: inner(x[idx1])


three_layers = four_layers = deep_layers
get_element_at: dict[int, Callable[..., Getter]] = {1: one_layer, 2: two_layers, 3: three_layers, 4: four_layers}
