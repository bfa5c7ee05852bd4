"""The interpreter of recorded programs: it runs their steps in order, on slots that hold arguments and results.

The caller provides the function that runs a step, so plain tensors, tensors stacked by ``vmap``, shadows without
values, and the stored objects of a worker share one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import leaves, map_leaves
from syft_core.plans.program import ITEM, Operation, Program, Routine, Segment, Slot, count_error, read_gradient
from syft_core.values import Kwargs, Nested

RunStep: TypeAlias = Callable[[Operation, Sequence[Nested]], Nested]
"""Runs a step on the contents of the slots of its operands, in order, and returns its result."""
EnterModes: TypeAlias = Callable[[Segment, Sequence[Nested]], AbstractContextManager[Nested]]
"""Returns the context for consecutive steps with equal modes, given all slots."""


def read(operation: Operation, operands: Sequence[Nested]) -> Sequence[Nested]:
    """Return the operands of a step: some are gradients of what is in the slots."""
    if operation.attributes:
        operands = list(operands)
        for place, attr in operation.attributes:
            operands[place] = read_gradient(operands[place], attr)
    return operands


def fill(operation: Operation, operands: Sequence[Nested]) -> tuple[Sequence[Nested], Kwargs]:
    """Return the arguments of a step, given its operands as ``read`` returns them."""
    return operation.args(operands), operation.kwargs(operands) if operation.kwargs is not None else {}


def compute(operation: Operation, operands: Sequence[Nested]) -> Nested:
    """Run a step on tensors and numbers."""
    args, kwargs = fill(operation, read(operation, operands))
    if operation.op is None and operation.step.op == ITEM:
        return args[0].item()
    return clear(operation, operation.run(*args, **kwargs))


def clear(operation: Operation, result: Nested) -> Nested:
    """Zero the memory that a step has allocated, so that its previous contents cannot be read."""
    if operation.op is not None and operation.op.uninitialized and operation.framework is not None:
        operation.framework.clear(result)
    return result


def apply_modes(segment: Segment, slots: Sequence[Nested]) -> AbstractContextManager[Nested]:
    """Return a context with the modes in which the steps were recorded, if any."""
    framework, modes = segment.framework, segment.modes
    if framework is None or modes is None or modes == framework.modes():
        return nullcontext()
    return framework.apply_modes(modes, slots, {})


def replay(
    program: Program, values: Sequence[Nested], run: RunStep = compute, enter: EnterModes = apply_modes
) -> Nested:
    """Run the next routine of a program on the values of its inputs and its state, and return its answer."""
    routine = program.routine
    slots = [*values, *[None] * program.made_by_steps[id(routine)]]
    run_steps(program, routine, slots, run, enter)
    answer = routine.answer
    if type(answer) is Slot:
        return slots[answer.number]
    return map_leaves(lambda leaf: slots[leaf.number] if type(leaf) is Slot else leaf, answer)


def run_steps(
    program: Program,
    routine: Routine,
    slots: list[Nested],
    run: RunStep,
    enter: EnterModes,
    is_made: Callable[[type], object] = is_framework_tensor,
    drop: Callable[[Nested], object] | None = None,
) -> None:
    """Run the steps of a routine; leave its answer and its state in the slots.

    ``is_made`` returns whether a type counts as a result, in containers that steps return. ``drop`` receives values
    that no later step needs; with it, a step must return exactly the recorded results.
    """
    for segment in program.prepared[id(routine)]:
        with enter(segment, slots):
            for operation in segment.operations:
                result = run(operation, operation.pick(slots))
                count = operation.step.count
                if operation.op is None or (count == 1 and is_made(type(result))):
                    slots[operation.first : operation.first + count] = [result] * count
                elif count or drop is not None:
                    made = [leaf for leaf in leaves(result) if is_made(type(leaf))]
                    _require_count(made, count, drop)
                    slots[operation.first : operation.first + count] = made
                for number in operation.dead:
                    if drop is not None:
                        drop(slots[number])
                    slots[number] = None


def _require_count(made: Sequence[Nested], count: int, drop: Callable[[Nested], object] | None) -> None:
    if len(made) != count:
        for leaf in made:
            if drop is not None:
                drop(leaf)
        raise count_error(len(made), count)
