"""Note which operations reach the end of a chain."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from syft_core.hook.attributes import OpTable


@contextlib.contextmanager
def recording(table: OpTable) -> Iterator[set[str]]:
    """Collect the names of the operations in ``table`` that are run on what chains end in."""
    reached: set[str] = set()
    originals = {op: op.run for op in table}
    for op, run in originals.items():
        object.__setattr__(op, "run", _noting(reached, op.name, run))
    try:
        yield reached
    finally:
        for op, run in originals.items():
            object.__setattr__(op, "run", run)


def _noting(reached: set[str], name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    def noting(*args: Any, **kwargs: Any) -> Any:
        reached.add(name)
        return run(*args, **kwargs)

    return noting
