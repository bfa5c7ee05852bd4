"""Guards: refuse arguments that would crash or hang a framework."""

from __future__ import annotations

import operator
from functools import partial

from syft_core.hook.rules import leaves
from syft_core.values import Function, Nested, Tensor


def limit_integers(func: Function, largest: int) -> Function:
    """Return ``func`` with a check that refuses integers of a magnitude above ``largest``."""
    return partial(_check_and_run, func, largest)


def _check_and_run(func: Function, largest: int, *args: object, **kwargs: object) -> Nested:
    for leaf in leaves((args, kwargs)):
        number = integer_of(leaf)
        if not -largest <= number <= largest:
            name = getattr(func, "__name__", "an operation")
            raise OverflowError(f"cannot run {name!r} with an integer above {largest}: use a smaller one")
    return func(*args, **kwargs)


def integer_of(leaf: Tensor) -> int:
    """Return ``leaf`` as an integer, as a framework would read it; 0 if it is not an integer."""
    if type(leaf) is not int and getattr(leaf, "ndim", None) != 0:
        return 0
    try:
        return operator.index(leaf)
    except (TypeError, ValueError):
        return 0
