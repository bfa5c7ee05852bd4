"""The stages of an operation: those that its status requires, and no others.

From the outermost to the innermost:

    authorize   refuse what the sender may not run, use or change        ``authorization.py``
    data        refuse operands without data next to others              ``memory.py``
    meter       count what it uses against the sender's quota            ``syft_worker/metering.py``
    keep        store the tensors of the result                          ``keeping.py``
    conceal     run it without disclosing private values                 ``concealment.py``
    confine     prevent it from reading memory beyond its operands       ``memory.py``
    track       update the lineage of what it changes                    ``changes.py``, ``gradients.py``
    run         run it

An operation on plain objects of the sender, on a worker without restrictions, has only the stages *keep* and *run*.
"""

from __future__ import annotations

from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.dispatch import dispatch
from syft_core.hook.hook import FrameworkHook
from syft_core.messages import Run
from syft_core.peer import Peer
from syft_core.values import Nested
from syft_core.workers.addresses.relay import relay
from syft_core.workers.party.status import (
    FORM_ONLY,
    LAYERED,
    MODES,
    OTHERS,
    OUT,
    POLICY,
    QUOTA,
    REMOTE,
    RESTRICTED,
    WRITES,
)
from syft_core.workers.party.worker import Stage, Worker
from syft_core.workers.road.authorization import authorize, is_always_allowed
from syft_core.workers.road.changes import track
from syft_core.workers.road.concealment import conceal
from syft_core.workers.road.derivation import derive
from syft_core.workers.road.execution import Execution
from syft_core.workers.road.gradients import track_gradients
from syft_core.workers.road.keeping import keep
from syft_core.workers.road.memory import confine, require_data
from syft_core.workers.road.procedure import execute, register_stages


def run(worker: Worker, message: Run, sender: Peer) -> Nested:
    """Run an operation of the op table on stored objects, and store the tensors of its result: the handler of ``Run``.

    Modes of a caller in the same process must not see the worker's tensors.
    """
    attached = FrameworkHook._attached.get(message.framework)
    framework = worker.attributes_of(message.framework) if attached is None else attached.first.attributes
    for is_watched in framework.watchers:
        if is_watched() and (isolated := framework.isolate()) is not None:
            with isolated:
                return run(worker, message, sender)
    op = framework.ops.by_name.get(message.op) or framework.command(message.op)
    execution = Execution(worker, framework, op, sender)
    execution.read(message)
    worker.stats.operations += 1
    return execute(execution)


def list_stages(op: Op, status: int, framework: FrameworkAttributes) -> list[Stage | None]:
    """Return the stages of an operation, outermost first; None for *authorize* where it is not needed."""
    changes = bool(op.spare < 0 or status & (OUT | WRITES) or op.alters_autograd or op.retains)
    may_change = changes or op.differentiates or op.tier != "reviewed"
    may_be_refused = status & POLICY or (status & OTHERS and changes) or not is_always_allowed(op, framework)
    needed: dict[Stage, object] = {
        require_data: status & FORM_ONLY and not status & REMOTE,
        meter: status & QUOTA,
        relay: status & REMOTE,
        keep: not status & REMOTE,
        derive: status & RESTRICTED and not status & REMOTE,
        conceal: status & RESTRICTED and not status & REMOTE,
        confine: (op.uninitialized or op.reads_beyond) and not status & REMOTE,
        track_gradients: op.accumulates and not status & REMOTE,
        track: may_change and not op.accumulates and not status & REMOTE,
        _run_process: op.process is not None,
        _run_with_modes: op.process is None and status & MODES,
        _run_layers: op.process is None and status & LAYERED and not status & MODES,
        _run_plain: op.process is None and not status & (LAYERED | MODES),
    }
    return [authorize if may_be_refused else None, *[stage for stage, is_needed in needed.items() if is_needed]]


def meter(proceed: Stage, execution: Execution) -> Nested:
    """Run an operation if its results fit the quota of the sender."""
    return execution.worker.guard.meter(proceed, execution)


def _run_plain(execution: Execution) -> Nested:
    return execution.op.run(*execution.args, **execution.kwargs)


def _run_process(execution: Execution) -> Nested:
    return execution.op.process(execution)  # type: ignore[misc]  # the stage of operations that have one


def _run_layers(execution: Execution) -> Nested:
    return dispatch(execution.op, execution.args, execution.kwargs)


def _run_with_modes(execution: Execution) -> Nested:
    args, kwargs = execution.args, execution.kwargs
    with execution.framework.apply_modes(execution.modes or "", args, kwargs):
        return _run_layers(execution) if execution.status & LAYERED else _run_plain(execution)


register_stages("run", list_stages)
register_stages("train", list_stages)
