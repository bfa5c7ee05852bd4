"""The stage that notes how a result is computed, and the derivations of stored objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from weakref import ref

from syft_core.hook.chain import plain_end
from syft_core.hook.rules import build_rule, leaves
from syft_core.hook.signatures import note
from syft_core.tensors.private import remove_restriction
from syft_core.values import Nested, Tensor
from syft_core.workers.party.derivations import (
    BACKWARD,
    Action,
    Data,
    Derivation,
    Maker,
    Rerun,
    Supplied,
    make_action,
    make_program_action,
    make_unknown,
)
from syft_core.workers.party.status import LAYERED
from syft_core.workers.party.store import Stored
from syft_core.workers.party.worker import Stage
from syft_core.workers.road.execution import Execution
from syft_core.workers.road.memory import change_count
from syft_core.workers.road.task import attribute


def derive(proceed: Stage, execution: Execution) -> Nested:
    """Run an operation on restricted operands, and note how its results and what it changes are computed.

    The operands are described first: the operation may change them.
    """
    execution.worker.object_store.has_derivations = True
    if execution.op.process is None:  # A process describes its program itself.
        execution.derivation = _describe(execution)
    return proceed(execution)


def derivation_of(entry: Stored) -> Derivation:
    """Return how an object was computed: for what was not, it is data of the worker, or supplied by a user."""
    known = entry.derivation
    if known is not None and not (type(known) is Supplied and known.version != _version(entry.value)):
        return known
    if entry.is_as_loaded:
        return Data(entry.id, entry.tags, entry.value, _finder(entry))
    return Supplied(entry.value, _finder(entry), _version(entry.value))


def _remember(entry: Stored) -> Derivation:
    """Return how an operand was computed; its digest is kept until it changes, which *track* looks for from now on."""
    found = entry.derivation = derivation_of(entry)
    return found


def derivation_of_attribute(entry: Stored, attr: str | None) -> Derivation:
    """Return how an object, or its gradient, was computed; the gradient of a leaf counts with its bytes."""
    if attr is None:
        return derivation_of(entry)
    known = entry.derivation
    return Supplied(attribute(entry.value, attr)) if known is None or known.is_leaf else known.gradient


def note_write(entry: Stored, derivation: Derivation | None) -> None:
    """Note that an operation has written into memory that an object shares.

    Only the derivation of a result says which part of the memory it is.
    """
    known = entry.derivation
    if known is not None and known.operands and known.operands[-1] is derivation:
        return  # The operation has noted it before.
    if derivation is None:
        entry.derivation = make_unknown(()) if entry.access is not None else None
    elif known is None or known.is_leaf:
        entry.derivation = make_unknown((derivation,))
    else:
        entry.derivation = known.written_by(derivation)


def note_backward(changed: Sequence[tuple[Stored, Derivation | None, bool]], backward: Derivation | None) -> None:
    """Note that a backward pass has changed gradients.

    ``changed`` has the objects, each with its derivation before the pass, and whether it had a gradient.
    """
    if backward is None:
        return
    for entry, before, had_gradient in changed:
        if had_gradient and (before is None or before.is_leaf):  # Nothing describes the gradient that it had.
            entry.derivation = make_unknown((backward,))
            continue
        entry.derivation = before
        entry.derivation = Derivation(BACKWARD, (derivation_of(entry), backward))


def derive_program(
    maker: Maker,
    operands: Sequence[Derivation],
    roles: Sequence[str] = (),
    is_named: bool = True,
    find_rerun: Callable[[], Rerun | None] = lambda: None,
) -> Derivation:
    """Return the derivation of what a protocol or a recorded program computes from operands.

    ``roles`` names the operands that a client supplies, such as "weights"; that of data is "". If ``is_named``, it is
    the maker of its results; ``find_rerun`` returns what can repeat it, if that is still known.
    """
    return Derivation(make_program_action(maker, roles, is_named, find_rerun), tuple(operands))


def _describe(execution: Execution) -> Derivation:
    action = execution.memo.get(_ACTION) or _find_action(execution)
    if not execution.is_in_order or len(execution.parents) != action.arity:
        return Derivation(action, tuple(describe_arguments(execution)))
    operands = []
    for entry in execution.parents:
        known = entry.derivation
        if known is None or (type(known) is Supplied and entry.access is None):
            known = _remember(entry)
        operands.append(known)
    return Derivation(action, tuple(operands))


def describe_arguments(execution: Execution) -> Iterator[Derivation]:
    """Yield the derivation of each tensor among the arguments of a call."""
    found = {id(operand): entry for entry, operand in zip(execution.parents, execution.operands, strict=True)}
    for tensor in filter(build_rule, leaves((execution.args, execution.kwargs))):
        entry = found.get(id(tensor))
        if entry is None:
            yield Supplied(tensor)
        elif _is_whole(entry, tensor):
            yield _remember(entry)
        else:
            known = entry.derivation
            yield Supplied(tensor) if known is None or known.is_leaf else known.gradient


def _is_whole(entry: Stored, operand: Tensor) -> bool:
    """Return whether an operand is an object itself, not its gradient."""
    value = entry.value
    return operand is value or bool(entry.status & LAYERED and remove_restriction(value) is operand)


def _find_action(execution: Execution) -> Action:
    """Return what a call does, which its memo has unless there are floats among its arguments."""
    args, kwargs = execution.args, execution.kwargs
    inexact = tuple([repr(leaf) for leaf in leaves((args, kwargs)) if type(leaf) in _INEXACT])
    actions: dict[tuple[str, ...], Action] = execution.memo.get(_ACTIONS) or note(execution.memo, _ACTIONS, {})
    if (known := actions.get(inexact)) is not None:
        return known
    made = make_action(execution.op, args, kwargs)
    if not inexact:
        return note(execution.memo, _ACTION, made)
    if len(actions) >= MAX_ACTIONS:
        actions.clear()
    actions[inexact] = made
    return made


_ACTION, _ACTIONS = "derivation", "derivations"
_INEXACT = frozenset({float, complex})
"""The types of arguments that differ between calls of one signature."""
MAX_ACTIONS = 16
"""The maximum number of calls of one signature whose floats are remembered."""


def _finder(entry: Stored) -> Callable[[], Stored | None]:
    """Return a function that returns an object while it exists and is what it was."""
    reference, version = ref(entry), _version(entry.value)

    def find() -> Stored | None:
        found = reference()
        is_same = found is not None and not found.touched and _version(found.value) == version
        return found if is_same else None

    return find


def _version(value: object) -> int | None:
    """Return how often a tensor was changed; None if that is not known."""
    end = plain_end(value)
    return None if end is None else change_count(end)
