"""Find answers in plain Python that depend on what the tensors hold."""

from __future__ import annotations

from functools import partial
from typing import Any

from syft_core.hook.attributes import Op

from .checks import Raised, attempt, map_tensors, parts_of, same_value
from .survey import Surface


def tells_values(surface: Surface, op: Op) -> bool:
    """Say whether a number, a string or the like in the results of ``op`` changes with the values of its tensors."""
    for case in surface.cases(op):
        first = map_tensors(surface, surface.copy, (case.args, case.kwargs))
        second = map_tensors(surface, surface.other_values, map_tensors(surface, surface.copy, first))
        results = [surface.run(partial(attempt, case.call, *given))[0] for given in (first, second)]
        if case.form_only or any(isinstance(result, Raised) for result in results):
            continue
        one, other = (list(_in_python(surface, result)) for result in results)
        if len(one) != len(other) or not all(map(same_value, one, other)):
            return True
    return False


def _in_python(surface: Surface, result: Any) -> Any:
    """Yield what is no tensor, and how many of what there are."""
    if surface.is_tensor(result):
        return
    parts = parts_of(result)
    if parts is None:
        yield result
    else:
        yield len(parts)
        for part in parts:
            yield from _in_python(surface, part)
