"""The building blocks of plans: folds apply one function per slot, getters index into nested arguments.

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


def zero_fold(*_a: object, **_k: object) -> tuple[()]:
    """Return the empty tuple."""
    return ()


def one_fold(return_tuple: bool, **_k: object) -> Function:
    """Return a fold of one slot; its result is a 1-tuple or the value itself."""
    return _one_fold_to_tuple if return_tuple else _one_fold_to_value


def _one_fold_to_tuple(lambdas: Sequence[FoldSlot], args: Sequence[object], **kwargs: object) -> tuple[Nested]:
    if len(args) > 1:
        raise PlanMismatchError.arity(1, len(args))
    return (lambdas[0](args[0], **kwargs),)


def _one_fold_to_value(lambdas: Sequence[FoldSlot], args: Sequence[object], **kwargs: object) -> Nested:
    return _one_fold_to_tuple(lambdas, args, **kwargs)[0]


def two_fold(lambdas: Sequence[FoldSlot], args: Sequence[object], **kwargs: object) -> tuple[object, ...]:
    """Apply two functions to two arguments."""
    if len(args) > 2:
        raise PlanMismatchError.arity(2, len(args))
    return lambdas[0](args[0], **kwargs), lambdas[1](args[1], **kwargs)


def three_fold(lambdas: Sequence[FoldSlot], args: Sequence[object], **kwargs: object) -> tuple[object, ...]:
    """Apply three functions to three arguments."""
    if len(args) > 3:
        raise PlanMismatchError.arity(3, len(args))
    return lambdas[0](args[0], **kwargs), lambdas[1](args[1], **kwargs), lambdas[2](args[2], **kwargs)


def _exact_fold(n: int) -> Callable[..., tuple[object, ...]]:
    def fold(lambdas: Sequence[FoldSlot], args: Sequence[object], **kwargs: object) -> tuple[object, ...]:
        if len(args) > n:
            raise PlanMismatchError.arity(n, len(args))
        return tuple([lambdas[i](args[i], **kwargs) for i in range(n)])

    fold.__doc__ = f"Apply {n} functions to {n} arguments."
    return fold


four_fold = _exact_fold(4)
five_fold = _exact_fold(5)
six_fold = _exact_fold(6)
seven_fold = _exact_fold(7)
eight_fold = _exact_fold(8)


def many_fold(lambdas: Sequence[FoldSlot], args: Sequence[object], **kwargs: object) -> tuple[object, ...]:
    """Apply any number of functions to as many arguments."""
    if len(args) > len(lambdas):
        raise PlanMismatchError.arity(len(lambdas), len(args))
    return tuple([f(args[i], **kwargs) for i, f in enumerate(lambdas)])


_FOLDS: tuple[Function, ...] = (
    *(zero_fold, one_fold(return_tuple=True), two_fold, three_fold),
    *(four_fold, five_fold, six_fold, seven_fold, eight_fold),
)


def get_fold(n: int) -> Function:
    """Return the fold that applies ``n`` functions and returns a tuple."""
    return _FOLDS[n] if n < len(_FOLDS) else many_fold


def check_type(expected: type, f: FoldSlot) -> FoldSlot:
    """Wrap ``f`` with a check that its argument has exactly the type ``expected``."""

    def slot(x: object, **kwargs: object) -> Nested:
        if type(x) is expected:
            return f(x, **kwargs)
        raise PlanMismatchError.slot(expected.__name__, type(x).__name__)

    return slot


def skip_check(_expected: type, f: FoldSlot) -> FoldSlot:
    """Return ``f`` unchanged; used where the cache key guarantees the type."""
    return f


def fold_exactly(fold: Function, slots: list[FoldSlot], args: Nested, **kwargs: object) -> Nested:
    """Apply ``fold``; raise unless there are as many arguments as slots."""
    if len(args) != len(slots):
        raise PlanMismatchError.arity(len(slots), len(args))
    return fold(slots, args, **kwargs)


def fold_into(container: Callable[[Nested], Nested], slots: list[FoldSlot], items: object, **kwargs: object) -> Nested:
    """Apply ``slots`` to ``items`` and put the results into a ``container``."""
    return container(fold_exactly(get_fold(len(slots)), slots, items, **kwargs))


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
