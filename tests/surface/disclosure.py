"""Find operations whose plain results depend on values."""

from __future__ import annotations

from functools import partial
from typing import Any

from syft_core.hook.attributes import Op

from .checks import Raised, attempt, map_tensors, parts_of, same_value
from .survey import Surface


def returns_values(surface: Surface, op: Op) -> bool:
    """Return whether a plain part of the results of ``op`` depends on the values of its tensors."""
    for case in surface.cases(op):
        first = map_tensors(surface, surface.copy, (case.args, case.kwargs))
        second = map_tensors(surface, surface.other_values, map_tensors(surface, surface.copy, first))
        results = [surface.run(partial(attempt, case.call, *given))[0] for given in (first, second)]
        if case.form_only or any(isinstance(result, Raised) for result in results):
            continue
        one, other = (list(_plain_parts(surface, result)) for result in results)
        if len(one) != len(other) or not all(map(same_value, one, other)):
            return True
    return False


def _plain_parts(surface: Surface, result: Any) -> Any:
    """Yield the parts of ``result`` that are not tensors, and the lengths of its containers."""
    if surface.is_tensor(result):
        return
    parts = parts_of(result)
    if parts is None:
        yield result
    else:
        yield len(parts)
        for part in parts:
            yield from _plain_parts(surface, part)
