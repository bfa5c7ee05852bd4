"""Guards: keep arguments from a framework that would crash it or keep it busy for ever."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from syft_core.hook.rules import leaves


def bounded(func: Callable[..., Any], largest: int) -> Callable[..., Any]:
    """Return ``func`` with a check that refuses plain whole numbers beyond ``largest``."""
    return partial(_run_bounded, func, largest)


def _run_bounded(func: Callable[..., Any], largest: int, *args: Any, **kwargs: Any) -> Any:
    for leaf in leaves((args, kwargs)):
        number = _number(leaf)
        if not -largest <= number <= largest:
            name = getattr(func, "__name__", "an operation")
            raise OverflowError(f"cannot run {name!r} with the number {number}: at most {largest} is supported")
    return func(*args, **kwargs)


def _number(leaf: Any) -> int:
    """Return the whole number that a framework would take for ``leaf``, or 0 if it is none."""
    if type(leaf) is not int and getattr(leaf, "ndim", None) != 0:
        return 0
    try:
        return operator.index(leaf)
    except (TypeError, ValueError):
        return 0
