"""The procedure for every task that a message requests of a worker: the stages that its status requires, and no others.

A *stage* is a function ``stage(proceed, task)`` that does its part before and after the stages inside it, which it runs
with ``proceed(task)``. The innermost one takes the task alone. Each kind of task has stages of its own:

    run, train   an operation of the op table, or a loop of the worker's own     ``operations.py``
    call         a function of the owner                                         ``calls.py``
    protocol     the part of this worker in a protocol                           ``syft_mpc/tasks.py``
    leave        objects, or something computed from them, leave the worker      ``workers/moving/departure.py``

A restriction that a feature adds is one bit of the status and one stage, which all kinds of tasks pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, TypeAlias, get_args

from syft_core.exceptions import RegistryError
from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.caches import remember
from syft_core.registry import takes
from syft_core.values import Nested
from syft_core.workers.party.status import DECISIVE, RESTRICTIONS, WRITES
from syft_core.workers.party.worker import Stage
from syft_core.workers.road.task import Kind, Task

ListStages: TypeAlias = "Callable[[Any, int, Any], list[Stage | None]]"
"""A function of an operation or None, a status, and an op table or None. It returns stages, outermost first; the first
one authorizes the task, or is None if that is not needed.
"""


def execute(task: Task) -> Nested:
    """Run a task through all stages that its status requires, and return the answer."""
    op = task.op
    if op is not None and 0 <= op.spare < len(task.args):  # type: ignore[attr-defined]  # of an `Execution`
        task.status |= WRITES
    key = task.kind, op, task.status & DECISIVE
    procedure = _procedures.get(key)
    if procedure is None:
        *outer, procedure = find_stages(task.kind, op, task.status, task.framework)
        for stage in reversed(outer):
            procedure = partial(stage, procedure)
        if op is None or op.process is None:  # Otherwise a peer has sent it, and it is soon forgotten.
            remember(_procedures, key, procedure)
    return procedure(task)


_procedures: dict[tuple[Kind, Op | None, int], Stage] = {}


def find_stages(kind: Kind, op: Op | None, status: int, framework: FrameworkAttributes | None) -> list[Stage]:
    """Return the stages of a task, outermost first: those that features add come after its authorization."""
    is_operation = kind in ("run", "train")
    first, *rest = _by_kind[kind](op, status, framework) if op or not is_operation else [None, run_function]
    added = [stage for bit, stage, kinds in _added if status & bit and (kinds is None or kind in kinds)]
    return [*([] if first is None else [first]), *added, *[stage for stage in rest if stage is not None]]


_by_kind: dict[Kind, ListStages] = {}


def register_stages(kind: Kind, list_stages: ListStages) -> None:
    """Set the stages of a kind of task. Tasks without an operation run their function."""
    _by_kind[kind] = list_stages


def add_stage(bit: int, stage: Stage, kinds: Collection[Kind] | None = None) -> None:
    """Add a stage for tasks with objects that have a bit of ``status.add_bit``: for all kinds, or for some."""
    if bit not in RESTRICTIONS.values():
        raise RegistryError(f"cannot add a stage for {bit!r}: it is not a bit of a restriction; use `add_bit(name)`")
    known = get_args(Kind)
    if kinds is not None and (isinstance(kinds, str) or not set(kinds).issubset(known)):
        raise RegistryError(f"cannot add a stage for {kinds!r}: it is not a set of {', '.join(known)}; correct it")
    if not takes(stage, 2):
        raise RegistryError("cannot add a stage: it cannot be called; write `def stage(proceed, task)`")
    _added.append((bit, stage, kinds))
    _procedures.clear()


_added: list[tuple[int, Stage, Collection[Kind] | None]] = []


def run_function(task: Task) -> Nested:
    """Call the function of a task: its innermost stage, if it has no operation."""
    return task.function(task)  # type: ignore[misc]  # it has one
