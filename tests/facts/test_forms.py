"""The form of a result depends on floats among the arguments only where the table says so."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from syft_core.hook.attributes import Op
from syft_core.hook.rules import leaves, map_leaves

from ..surface.checks import map_tensors
from ..surface.survey import Surface

pytestmark = pytest.mark.filterwarnings("ignore")

RANGES = ((0.2, 0.5, 0.9), (1.5, 3.0, 1000.0), (-0.3, -0.9), (-1.5, -3.0, -1000.0))
"""Floats that have one signature where forms do not depend on them; see ``syft_core/hook/signatures.py``."""


def test_forms_depend_on_floats_only_where_the_table_says_so(surface: Any) -> None:
    """Replace each number in the samples of an operation by floats of one range."""
    undeclared, tried = {}, set()
    with surface.attach_hook():
        for op in surface.ops:
            if op.shape_depends_on_floats or op.spelling == "setter":
                continue
            for calls in _vary(surface, op):
                forms = {form for call in calls if (form := _run(surface, op, call)) is not None}
                tried.update([op.name] if forms else [])
                if len(forms) > 1:
                    undeclared[op.name] = forms

    assert undeclared == {}
    assert len(tried) > 50


def _vary(surface: Surface, op: Op) -> Iterator[list[Any]]:
    """Yield lists of calls that differ in one float."""
    for case in surface.cases(op):
        call = case.args, case.kwargs
        count = sum(1 for leaf in leaves(call) if type(leaf) in (int, float))
        for place in range(count):
            yield from ([_replace(call, place, number) for number in numbers] for numbers in RANGES)


def _replace(call: Any, place: int, number: float) -> Any:
    places = iter(range(len(leaves(call))))
    return map_leaves(lambda leaf: number if type(leaf) in (int, float) and next(places) == place else leaf, call)


def _run(surface: Surface, op: Op, call: Any) -> object:
    """Return the forms of the results and of the arguments after a call, or None if it fails."""
    args, kwargs = map_tensors(surface, surface.copy, call)
    with contextlib.suppress(Exception):
        result, _ = surface.run(lambda: op.run(*args, **kwargs))
        return tuple(_form_of(leaf) for leaf in leaves((result, args, kwargs)) if surface.is_tensor(leaf))
    return None


def _form_of(tensor: Any) -> object:
    strides = getattr(tensor, "strides", None)
    with contextlib.suppress(RuntimeError):  # Not every layout of torch has strides.
        strides = tensor.stride() if strides is None else strides
    return tuple(tensor.shape), str(tensor.dtype), strides
