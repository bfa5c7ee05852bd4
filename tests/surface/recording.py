"""Record which operations reach the end of a chain."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from syft_core.hook.attributes import OpTable


@contextlib.contextmanager
def record_operations(table: OpTable) -> Iterator[set[str]]:
    """Collect the names of the operations in ``table`` that run on the end of a chain."""
    reached: set[str] = set()
    originals = {op: op.run for op in table}
    for op, run in originals.items():
        object.__setattr__(op, "run", _record(reached, op.name, run))
    try:
        yield reached
    finally:
        for op, run in originals.items():
            object.__setattr__(op, "run", run)


def _record(reached: set[str], name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    def recorded(*args: Any, **kwargs: Any) -> Any:
        reached.add(name)
        return run(*args, **kwargs)

    return recorded
