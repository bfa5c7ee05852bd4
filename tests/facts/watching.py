"""Run samples on chains, and watch every operation that is reached."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from syft_core.hook.attributes import Op, OpTable
from syft_core.hook.rules import leaves

from ..surface.checks import Case, attempt, map_tensors
from ..surface.survey import Surface

Watcher = Callable[[Op, tuple[Any, ...], dict[str, Any]], contextlib.AbstractContextManager[Any]]


@contextlib.contextmanager
def watch(table: OpTable, watcher: Watcher) -> Iterator[None]:
    """Run every operation of ``table`` inside the context that ``watcher`` returns for the call."""
    originals = {op: op.run for op in table}
    for op, run in originals.items():
        object.__setattr__(op, "run", partial(_run_watched, watcher, op, run))
    try:
        yield
    finally:
        for op, run in originals.items():
            object.__setattr__(op, "run", run)


def _run_watched(watcher: Watcher, op: Op, run: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with watcher(op, args, kwargs):
        return run(*args, **kwargs)


def run_samples(surface: Surface, watcher: Watcher) -> None:
    """Run all samples of a framework on chains, watched by ``watcher``."""
    with surface.attach_hook():
        (table,) = {type(surface.chain(tensor)).ops for tensor in _any_tensor(surface)}
        with watch(table, watcher):
            for op in surface.ops:
                for case in surface.cases(op):
                    surface.run(partial(attempt, _run_on_chains, (surface, case), {}))


def _run_on_chains(surface: Surface, case: Case) -> None:
    args, kwargs = map_tensors(surface, surface.chain, map_tensors(surface, surface.copy, (case.args, case.kwargs)))
    case.call(*args, **kwargs)


def _any_tensor(surface: Surface) -> Iterator[Any]:
    for op in surface.ops:
        for case in surface.cases(op):
            for leaf in leaves((case.args, case.kwargs)):
                if surface.is_tensor(leaf):
                    yield surface.copy(leaf)
                    return
