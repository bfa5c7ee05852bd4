"""A recorded loss: a plan of the model's tensors and a batch, which every worker replays; data, not code.

The inputs of its program are the tensors that training changes (parameters, and buffers such as running means), then
tensors that stay as they are, then the parts of a batch. A form of the program that requires gradients is a parameter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from weakref import WeakKeyDictionary

import torch
from torch import nn

from syft_core.hook.attributes import FrameworkAttributes
from syft_core.hook.forms import Form, form
from syft_core.hook.rules import leaves, map_leaves
from syft_core.plans.errors import PlanError
from syft_core.plans.plan import Plan
from syft_core.plans.program import CONSTANT, NUMBERS, Operation, Program, Slot, Step, look_up
from syft_core.serde import serialize
from syft_core.values import Function, Nested, Tensor
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.layout import Layout

# --- recording


@dataclass
class Recorded:
    """A recorded loss, and the local tensors that it was recorded with."""

    programs: list[Program]
    """One for all batch lengths, or one for each length if the steps depend on it."""
    trained: list[Tensor]
    """The parameters, then the buffers that training changes."""
    parameters: int
    """How many of them are parameters."""
    fixed: list[Tensor]
    """The tensors that stay as they are."""
    answer: list[Form]
    """The forms of what it returns."""


def record(
    model: nn.Module,
    function: Function,
    parts: Sequence[Form],
    lengths: Sequence[int],
    captured: tuple[object, ...] = (),
    weights: Recorded | None = None,
) -> Recorded:
    """Record ``function(model, *batch)`` for batches of parts with these forms, whose first lengths may differ.

    If the steps depend on the length of a batch, they are recorded for each of ``lengths``. ``captured`` has further
    functions and models that ``function`` uses. With ``weights``, the first inputs are those of another recording.
    """

    def loss(*batch: Tensor) -> Nested:
        return function(model, *batch)

    plans, state = [], (model, function, *captured)
    try:
        shapes, dtypes = [(-1, *(part.shape or ())[1:]) for part in parts], [part.dtype for part in parts]
        plans.append(Plan("loss", loss, state=state, args_shape=shapes, args_dtypes=dtypes).build())
    except PlanError as error:
        if not _depends_on_length(error) or not lengths:
            raise
        for length in lengths:
            examples = [torch.zeros(length, *(part.shape or ())[1:], dtype=part.dtype) for part in parts]
            plans.append(Plan("loss", loss, state=state).build(*examples))
    return _combine(model, plans, weights)


def _depends_on_length(error: PlanError) -> bool:
    return "in each run" in str(error) or "some runs only" in str(error) or "in another" in str(error)


def _combine(model: nn.Module, plans: list[Plan], weights: Recorded | None) -> Recorded:
    """Give all plans the same inputs: trained tensors, fixed tensors, batch."""
    used: dict[int, Tensor] = {}
    written: set[int] = set()
    for plan in plans:
        program, tensors = _require_stateless(plan)
        used.update({id(tensor): tensor for tensor in tensors})
        written |= {id(tensors[place]) for place in _find_written(program)}
    if weights is None:
        parameters = _find_parameters(model, used)
        moving = [
            tensor
            for tensor in model.buffers()
            if id(tensor) in used and id(tensor) in written and tensor.is_floating_point()
        ]
        trained, count = [*parameters, *moving], len(parameters)
    else:
        trained, count = weights.trained, weights.parameters
    owned = set(map(id, trained))
    fixed = [tensor for key, tensor in used.items() if key not in owned]
    order = [*trained, *fixed]
    places = {id(tensor): place for place, tensor in enumerate(order)}
    forms = [_form_of(tensor, place < count) for place, tensor in enumerate(order)]
    answers = [answer for plan in plans for answer in plan._known.values()]
    return Recorded(
        [_rewrite(plan, forms, places) for plan in plans], trained, count, fixed, answers[0] if answers else []
    )


def _find_parameters(model: nn.Module, used: dict[int, Tensor]) -> list[Tensor]:
    found = [tensor for tensor in model.parameters() if tensor.requires_grad]
    if not any(id(tensor) in used for tensor in found):
        raise FederatedError.trainer(
            "the loss uses no parameter of the model that needs gradients", "pass a model to train"
        )
    if not all(tensor.is_floating_point() for tensor in found):
        raise FederatedError.trainer("a parameter is not real", "use real floating-point parameters")
    return found


def _require_stateless(plan: Plan) -> tuple[Program, list[Tensor]]:
    recording = plan.recording
    if recording is None or len(recording.program.routines) > 1 or recording.program.made:
        raise FederatedError.trainer(
            "the model or the loss keeps a tensor from one call for the next", "keep it in a buffer, changed in place"
        )
    return recording.program, recording.tensors


def _find_written(program: Program) -> set[int]:
    """Return the parts of the state that a step changes."""
    found = set()
    for step in program.routines[-1].steps:
        if step.framework:
            for target in look_up(step).targets(step.args, step.kwargs):
                place = target.number - len(program.inputs) if type(target) is Slot else -1
                if 0 <= place < len(program.state):
                    found.add(place)
    return found


def _form_of(tensor: Tensor, is_parameter: bool) -> Form:
    return form(tuple(tensor.shape), None, tensor.dtype, None, is_parameter)


def _rewrite(plan: Plan, forms: list[Form], places: dict[int, int]) -> Program:
    """Return the program of a plan with its state among the inputs, before the batch."""
    program, tensors = _require_stateless(plan)
    batch, routine = len(program.inputs), program.routines[-1]
    start = batch + len(program.state)

    def move(leaf: object) -> Nested:
        if type(leaf) is not Slot:
            return leaf
        if leaf.number < batch:
            return replace(leaf, number=len(forms) + leaf.number)
        if leaf.number < start:
            return replace(leaf, number=places[id(tensors[leaf.number - batch])])
        return replace(leaf, number=leaf.number - start + len(forms) + batch)

    steps = [
        replace(step, args=map_leaves(move, step.args), kwargs=map_leaves(move, step.kwargs)) for step in routine.steps
    ]
    moved = replace(routine, steps=tuple(steps), answer=map_leaves(move, routine.answer), before=(), gradients=())
    return Program(program.name, (*forms, *program.inputs), (), 0, (moved,))


# --- replaying


class Loss:
    """A program that a worker has checked, ready to be replayed on tensors."""

    def __init__(self, program: Program, batch: int) -> None:
        self.program = program
        self.batch = batch
        """How many inputs are parts of a batch."""
        self.lengths = {known.shape[0] for known in program.inputs[len(program.inputs) - batch :]}
        self._routine = program.routines[0]
        made = sum(step.count for step in self._routine.steps)
        self._empty = [None] * made
        ops = [look_up(step) for step in self._routine.steps if step.framework]
        self.is_random = any(op.random for op in ops)
        self.unreviewed = [op.name for op in ops if op.tier != "reviewed"]
        self.writes = any(op.writes for op in ops) or any("out" in step.kwargs for step in self._routine.steps)

    def fits(self, length: int) -> bool:
        """Return whether it was recorded for batches of this length."""
        return self.lengths in ({-1}, {length})

    def __call__(self, tensors: Sequence[Nested]) -> Nested:
        """Replay the steps, and return the answer."""
        return self._replay(tensors, self._run)

    def rehearse(self, tensors: Sequence[Nested]) -> Nested:
        """Replay the steps where the tensors are, on any device; raise if the form of a result depends on values."""
        device = tensors[0].device
        with device:
            return self._replay(tensors, partial(self._run, device=device))

    def run_stacked(self, tensors: Sequence[Nested]) -> Nested:
        """Replay the steps within ``vmap``, with kernels that are faster there."""
        return self._replay(tensors, self._run_stacked)

    def _replay(self, tensors: Sequence[Nested], run: Callable[[Sequence[Operation], list[Nested]], None]) -> Nested:
        slots = [*tensors, *self._empty]
        for segment in self.program.prepared[id(self._routine)]:
            framework = segment.framework
            if framework is None or segment.modes == framework.modes():
                run(segment.operations, slots)
            else:
                with framework.apply_modes(segment.modes or "", slots, {}):
                    run(segment.operations, slots)
        answer = self._routine.answer
        if type(answer) is Slot:
            return slots[answer.number]
        return map_leaves(lambda leaf: slots[leaf.number] if type(leaf) is Slot else leaf, answer)

    def _run(self, operations: Sequence[Operation], slots: list[Nested], device: torch.device | None = None) -> None:
        for operation in operations:
            operands = operation.pick(slots)
            args = operation.args(operands)
            kwargs = operation.kwargs(operands) if operation.kwargs is not None else {}
            if device is not None:
                if operation.op is not None and operation.op.disclosure(args, kwargs) != "nothing":
                    raise FederatedError.plan(self.program.name, f"the form of {operation.op.name!r} depends on values")
                args, kwargs = map_leaves(partial(_place, device), (args, kwargs))
            self._put(operation, operation.run(*args, **kwargs), slots)

    def _run_stacked(self, operations: Sequence[Operation], slots: list[Nested]) -> None:
        for operation in operations:
            run = _STACKED.get(operation.step.op, operation.run)
            operands = operation.pick(slots)
            kwargs = operation.kwargs(operands) if operation.kwargs is not None else {}
            self._put(operation, run(*operation.args(operands), **kwargs), slots)

    def _put(self, operation: Operation, result: Nested, slots: list[Nested]) -> None:
        """Put the results of a step into their slots, and clear the slots that are no longer needed."""
        count = operation.step.count
        if count == 1 and isinstance(result, torch.Tensor | float):
            slots[operation.first] = result
        elif count:
            made = [leaf for leaf in leaves(result) if isinstance(leaf, torch.Tensor)]
            if len(made) != count:
                raise FederatedError.plan(self.program.name, "a step returns another number of tensors")
            slots[operation.first : operation.first + count] = made
        for number in operation.dead:
            slots[number] = None


def _place(device: torch.device, leaf: object) -> object:
    """Replace the device on which a step creates a tensor."""
    return device if isinstance(leaf, torch.device) else leaf


def _apply_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute ``linear`` such that a stacked gradient of the weight is contiguous: an update then takes a fraction."""
    if input.dim() != 2:
        return torch.nn.functional.linear(input, weight, bias)
    product = torch.matmul(weight, input.mT).mT
    return product if bias is None else product + bias


_STACKED: dict[str, Callable[..., Tensor]] = {"torch.nn.functional.linear": _apply_linear}
"""Kernels for several models at once, by operation."""


def compile_loss(program: Program, batch: int, framework: FrameworkAttributes) -> Loss:
    """Return a program as a loss; raise if it does anything but compute on its inputs."""
    problem = _find_problem(program, framework)
    if problem is not None:
        raise FederatedError.plan(program.name, problem)
    return Loss(program, batch)


def _find_problem(program: Program, framework: FrameworkAttributes) -> str | None:
    """Return why a program is not a loss."""
    if program.state or len(program.routines) > 1 or program.routines[0].carry:
        return "it has a state of its own"
    if not all(type(known) is Form for known in program.inputs):
        return "one of its inputs is a number"
    return next(filter(None, [_find_fault(step, framework) for step in program.routines[0].steps]), None)


def _find_fault(step: Step, framework: FrameworkAttributes) -> str | None:
    """Return why a step cannot be part of a loss."""
    if any(type(leaf) is Slot and leaf.attr is not None for leaf in leaves((step.args, step.kwargs))):
        return "it reads a gradient"
    if not step.framework:
        return None if step.op == CONSTANT or step.op in NUMBERS else "it reads a value"
    if step.framework != framework.ALIAS:
        return f"it uses {step.framework!r}"
    op = look_up(step)
    if op.differentiates or op.accumulates or op.retains or op.alters_autograd:
        return f"{op.name!r} changes or computes gradients"
    return f"{op.name!r} may read other memory" if op.reads_beyond or op.uninitialized else None


class Digests:
    """Identifies programs by content, so that equal ones of several workers share what is known about them."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Program, str] = WeakKeyDictionary()

    def of(self, program: Program) -> str:
        """Return the digest of a program."""
        known = self._known.get(program)
        if known is None:
            known = self._known[program] = hashlib.sha256(serialize(program)).hexdigest()
        return known


digests = Digests()


class ModelForms:
    """The tensors that a loss needs besides its batch, as its program describes them."""

    def __init__(self, program: Program, fixed: int, batch: int) -> None:
        self.forms = program.inputs[: len(program.inputs) - fixed - batch]
        self.fixed = program.inputs[len(self.forms) : len(self.forms) + fixed]
        self.parts = program.inputs[len(self.forms) + fixed :]
        self.parameters = [place for place, known in enumerate(self.forms) if known.requires_grad]

    @cached_property
    def layout(self) -> Layout:
        """The layout of the flat weights."""
        return Layout(self.forms)
