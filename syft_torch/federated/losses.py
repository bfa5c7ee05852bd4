"""A recorded loss: a plan of the model's tensors and a batch, which every worker replays; data, not code.

The inputs of its program are the tensors that training changes (parameters, and buffers such as running means), then
tensors that stay as they are, then the parts of a batch. A form of the program that requires gradients is a parameter.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from weakref import WeakKeyDictionary

import torch
from torch import nn

from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.forms import Form, form
from syft_core.hook.rules import leaves, map_leaves
from syft_core.plans.errors import PlanError
from syft_core.plans.interpreter import clear, fill, read, replay
from syft_core.plans.plan import ANY_LENGTHS, Plan
from syft_core.plans.program import ITEM, Operation, Program, Slot, Step, attributes_of, look_up
from syft_core.serde import serialize
from syft_core.values import Args, Function, Kwargs, Nested, Tensor
from syft_torch import links
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.layout import MAX_COUNT, Layout

# --- recording


@dataclass
class Recorded:
    """A recorded loss, and the local tensors that it was recorded with."""

    programs: Programs
    trained: list[Tensor]
    """The parameters, then the buffers that training changes: first those that are real, then counts."""
    parameters: int
    """Number of these that are parameters."""
    fixed: list[Tensor]
    """The tensors that stay as they are."""
    answer: list[Form]
    """The forms of the result."""
    digest: int = 0
    """The digest of the values of the fixed tensors."""

    def has_changed(self) -> bool:
        """Return whether a new recording would differ: a setting, a part of the model or a fixed tensor has changed."""
        return not all(plan.is_current for plan in self.programs.plans) or self.digest != _digest(self.fixed)


class Programs:
    """The programs of a loss: one for all lengths of batches, or one for all lengths for which it does the same."""

    def __init__(self, programs: list[Program], cover: Cover | None = None, rewrite: Function | None = None) -> None:
        self.all = programs
        self._cover, self._rewrite = cover, rewrite
        self._of_length: dict[int, Program] = {}
        self._lock, self._thread = threading.Lock(), threading.get_ident()

    @property
    def plans(self) -> list[Plan]:
        """The plans of these programs; empty outside the process that recorded them."""
        return [] if self._cover is None else self._cover.plans

    def find(self, lengths: Sequence[int]) -> list[Program]:
        """Return the programs for batches of these lengths: one for all of them, or one for each."""
        with self._lock:
            places = [self._find_place(length) for length in lengths]
            if len(set(places)) < 2:
                return [self.all[place] for place in places[:1]]
            return [self._set_length(length, self.all[place]) for length, place in zip(lengths, places, strict=True)]

    @property
    def known(self) -> list[Program]:
        """The programs for all lengths that were recorded, for a process that cannot record others."""
        return self.all[:1] if len(self.all) == 1 or self._cover is None else self.find(self._cover.lengths)

    def _find_place(self, length: int) -> int:
        can_record = threading.get_ident() == self._thread  # Others may read the model meanwhile.
        if self._cover is None or not (can_record or length in self._cover.lengths):
            fitting = (-1, length) if self._cover is None else (length,)
            known = (place for place, program in enumerate(self.all) if program.inputs[-1].shape[0] in fitting)
            if (place := next(known, None)) is None:
                raise FederatedError.plan("loss", f"it was not recorded for batches of {length} samples")
            return place
        place = self._cover.find(length)
        if place == len(self.all) and self._rewrite is not None:
            self.all.append(self._rewrite(self._cover.plans[place]))
        return place

    def _set_length(self, length: int, program: Program) -> Program:
        found = self._of_length.get(length)
        if found is None:
            inputs = [
                form((length, *known.shape[1:]), None, known.dtype) if -1 in known.shape else known
                for known in program.inputs
            ]
            found = self._of_length[length] = replace(program, inputs=tuple(inputs))
        return found


def record(
    model: nn.Module,
    function: Function,
    parts: Sequence[Form],
    lengths: Sequence[int],
    captured: tuple[object, ...] = (),
    weights: Recorded | None = None,
) -> Recorded:
    """Record ``function(model, *batch)`` for batches of parts with these forms, whose first lengths may differ.

    One recording serves all ``lengths`` if the steps do not depend on the length, or compute with it. If they decide
    something by it, there is one for all lengths for which the same is decided. ``captured`` has further functions and
    models that ``function`` uses. With ``weights``, the first inputs are those of another recording.
    """
    _require_momentum(model)
    shapes, dtypes = [(-1, *(part.shape or ())[1:]) for part in parts], [part.dtype for part in parts]

    def build(compute: Function, of: tuple[int, ...]) -> Plan:
        def loss(*batch: Tensor) -> Nested:
            return compute(model, *batch)

        state = (model, function, *captured)
        return Plan("loss", loss, state=state, args_shape=shapes, args_dtypes=dtypes, lengths=of).build()

    cover = Cover.make(partial(build, function), lengths)
    if weights is None and any(map(_runs_backward_here, cover.plans)):
        cover = Cover.make(partial(build, partial(_differentiate, function)), lengths)
    return _combine(model, cover, weights)


def _runs_backward_here(plan: Plan) -> bool:
    """Return whether a part of the backward pass is user code: of an autograd function, or of a hook."""
    program, _ = _require_stateless(plan)
    return any(step.framework and look_up(step).func is links.link for step in program.routines[-1].steps)


def _differentiate(function: Function, model: nn.Module, *batch: Tensor) -> Nested:
    """Return a loss with the same value and the same gradients, whose backward pass needs no code of the user.

    The gradients are computed here, so that they are recorded: the loss is a number plus a sum that is zero, and linear
    in the parameters.
    """
    value = function(model, *batch)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    found = torch.autograd.grad(value, trained, allow_unused=True)
    pairs = [(parameter, gradient) for parameter, gradient in zip(trained, found, strict=True) if gradient is not None]
    return value.detach() + sum([((p - p.detach()) * gradient).sum() for p, gradient in pairs])


MAX_RECORDINGS = 64
"""Maximum number of recordings of a loss that decides something by the length of a batch."""


class Cover:
    """Plans of one function that together serve all lengths of batches that occur."""

    def __init__(self, build: Callable[[tuple[int, ...]], Plan]) -> None:
        self._build = build
        self.plans: list[Plan] = []
        self._served: dict[int, int] = {}
        """The number of the plan that serves each length."""
        self._why = "it decides something by the length of a batch"

    @classmethod
    def make(cls, build: Callable[[tuple[int, ...]], Plan], lengths: Sequence[int]) -> Cover:
        """Record a function for these lengths, at first so that one plan may serve all of them."""
        found = cls(build)
        try:
            found.plans.append(build(ANY_LENGTHS))
        except Exception as error:
            if not lengths:
                raise
            found._why = str(error)
        if found.plans and lengths and not any(_serves(found.plans[0], length) for length in lengths):
            found.plans.clear()
        for length in lengths:
            found.find(length)
        return found

    @property
    def lengths(self) -> list[int]:
        """All lengths that were asked for."""
        return list(self._served)

    def find_length(self, plan: Plan) -> int:
        """Return a length of batches that a plan serves."""
        served = (length for length, place in self._served.items() if self.plans[place] is plan)
        return next(served, ANY_LENGTHS[0])

    def find(self, length: int) -> int:
        """Return the number of the plan that serves a length; record the function for it if there is none."""
        known = self._served.get(length)
        if known is None:
            known = next((place for place, plan in enumerate(self.plans) if _serves(plan, length)), None)
            if known is None:
                if len(self.plans) == MAX_RECORDINGS:
                    raise FederatedError.many_lengths(MAX_RECORDINGS, self._why)
                known = self._add(length)
            self._served[length] = known
        return known

    def _add(self, length: int) -> int:
        """Record the function for a length; if it fails, any plan will do, because it fails on the workers too."""
        try:
            self.plans.append(self._build_for(length))
        except PlanError:
            raise
        except Exception:  # an error of the user's function, for instance of batch norm for one sample
            if not self.plans:
                raise
            return 0
        return len(self.plans) - 1

    def _build_for(self, length: int) -> Plan:
        """Record the function so that it may serve other lengths too, or else with the length as a number."""
        try:
            return self._build((length, length))
        except PlanError:
            return self._build((length,))


def _require_momentum(model: nn.Module) -> None:
    """Raise if a layer reads how many batches it has had, which decides what the step computes."""
    for name, layer in model.named_modules():
        is_counted = getattr(layer, "track_running_stats", False) and getattr(layer, "momentum", 0) is None
        if is_counted and layer.training:
            why = f"the layer {name!r} ({type(layer).__name__}) has momentum=None, and reads its count of batches"
            raise FederatedError.trainer(why, "give it a momentum, e.g. 0.1")


def _serves(plan: Plan, length: int) -> bool:
    """Return whether the steps of a plan can be replayed for batches of a length; uses tensors without values."""
    program, _ = _require_stateless(plan)
    if not all(known.shape[0] in (-1, length) for known in program.inputs):
        return False
    try:
        _rehearse_plan(plan, length, lambda _operation, _args, _kwargs: None)
    except Exception:  # noqa: BLE001  # it is recorded for this length, which shows the errors of the function itself
        return False
    return True


def _rehearse_plan(plan: Plan, length: int, watch: Watcher) -> list[Tensor]:
    """Replay the steps of a plan without values, for batches of a length; return the stand-ins of its state."""
    program, tensors = _require_stateless(plan)
    forms = [_form_of(tensor, is_parameter=False) for tensor in tensors]
    moved = _rewrite(plan, forms, {id(tensor): place for place, tensor in enumerate(tensors)})
    shapes = [[length if side == -1 else side for side in known.shape] for known in moved.inputs]
    kinds = [known.dtype for known in moved.inputs]
    shadows = [torch.empty(shape, dtype=kind, device="meta") for shape, kind in zip(shapes, kinds, strict=True)]
    Loss(moved, len(program.inputs)).rehearse(shadows, watch)
    return shadows[: len(tensors)]


def _digest(tensors: Sequence[Tensor]) -> int:
    return hash(serialize([tensor.detach() for tensor in tensors]))


def _combine(model: nn.Module, cover: Cover, weights: Recorded | None) -> Recorded:
    """Give all plans the same inputs: trained tensors, fixed tensors, batch."""
    used: dict[int, Tensor] = {}
    written: set[int] = set()
    for plan in cover.plans:
        _, tensors = _require_stateless(plan)
        used.update({id(tensor): tensor for tensor in tensors})
        if weights is None:
            written |= {id(tensors[place]) for place in _find_written(plan, cover.find_length(plan))}
    if weights is None:
        parameters = _find_parameters(model, used)
        frozen = [parameter for parameter in model.parameters() if not parameter.requires_grad]
        moving = [tensor for tensor in (*model.buffers(), *frozen) if id(tensor) in used and id(tensor) in written]
        _require_numbers(moving)
        _require_part_of_model(written - set(map(id, (*parameters, *moving))))
        trained = [*parameters, *sorted(moving, key=lambda tensor: not tensor.is_floating_point())]
        count = len(parameters)
    else:
        trained, count = weights.trained, weights.parameters
    owned = set(map(id, trained))
    fixed = [tensor for key, tensor in used.items() if key not in owned]
    order = [*trained, *fixed]
    places = {id(tensor): place for place, tensor in enumerate(order)}
    forms = [_form_of(tensor, place < count) for place, tensor in enumerate(order)]
    answers = [answer for plan in cover.plans for answer in plan._known.values()]

    def rewrite(plan: Plan) -> Program:
        program = _rewrite(plan, forms, places)
        if (fault := _find_problem(program, attributes_of("torch"), len(program.inputs) - len(forms))) is not None:
            raise FederatedError.step(*fault)
        return program

    programs = Programs([rewrite(plan) for plan in cover.plans], cover, rewrite)
    return Recorded(programs, trained, count, fixed, answers[0] if answers else [], _digest(fixed))


def _find_parameters(model: nn.Module, used: dict[int, Tensor]) -> list[Tensor]:
    found = [tensor for tensor in model.parameters() if tensor.requires_grad]
    if not any(id(tensor) in used for tensor in found):
        raise FederatedError.trainer(
            "the loss uses no parameter of the model that needs gradients", "pass a model to train"
        )
    if not all(tensor.is_floating_point() for tensor in found):
        raise FederatedError.trainer("a parameter is not real", "use real floating-point parameters")
    return found


def _require_numbers(moving: Sequence[Tensor]) -> None:
    """Raise unless buffers that training changes can be combined: they are real, or count something."""
    for buffer in moving:
        if buffer.is_complex():
            raise FederatedError.trainer("training changes a complex buffer", "keep its real and its imaginary part")
        if not buffer.is_floating_point() and bool((buffer.double().abs() > MAX_COUNT).any()):
            why = f"training changes a buffer with whole numbers above {MAX_COUNT}"
            raise FederatedError.trainer(why, "use real numbers, which are averaged")


def _require_part_of_model(others: set[int]) -> None:
    """Raise if training changes other tensors, which each worker would forget after a round."""
    if others:
        raise FederatedError.trainer(
            "the model or the loss changes a tensor that is neither a parameter nor a buffer of the model",
            "register it as a buffer there, which workers combine and keep, or do not change it, e.g. `teacher.eval()`",
        )


def _require_stateless(plan: Plan) -> tuple[Program, list[Tensor]]:
    recording = plan.recording
    if recording is None or len(recording.program.routines) > 1 or recording.program.made:
        file, line = recording.lines[0] if recording is not None and recording.lines else ("the model or the loss", "")
        raise FederatedError.trainer(
            f"{file}{line and f':{line}'} makes a tensor that is kept for the next call",
            "make it before training: in `__init__`, or by a call of the model on the largest batch, e.g. `model(x)`; "
            "keep what changes in a buffer, and change it in place",
        )
    return recording.program, recording.tensors


def _find_written(plan: Plan, length: int) -> set[int]:
    """Return the places of the state that the steps change, also through views."""
    program, _ = _require_stateless(plan)
    found: set[int] = set()
    for step in program.routines[-1].steps:
        for target in look_up(step).targets(step.args, step.kwargs) if step.framework else ():
            place = target.number - len(program.inputs) if type(target) is Slot else -1
            if 0 <= place < len(program.state):
                found.add(place)
    memory: set[int] = set()

    def watch(operation: Operation, args: Args, kwargs: Kwargs) -> None:
        targets = () if operation.op is None else operation.op.targets(args, kwargs)
        memory.update([_memory_of(target) for target in targets if isinstance(target, torch.Tensor)])

    with suppress(Exception):  # Some operations do not run without values.
        shadows = _rehearse_plan(plan, length, watch)
        found.update([place for place, shadow in enumerate(shadows) if _memory_of(shadow) in memory])
    return found


def _memory_of(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _form_of(tensor: Tensor, is_parameter: bool) -> Form:
    return form(tuple(tensor.shape), None, tensor.dtype, None, is_parameter)


def _rewrite(plan: Plan, forms: list[Form], places: dict[int, int]) -> Program:
    """Return the program of a plan with its state among the inputs, before the batch."""
    program, tensors = _require_stateless(plan)
    if not all(id(tensor) in places for tensor in tensors):
        raise FederatedError.plan("loss", "it uses other tensors for some lengths of batches")
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


Watcher = Callable[[Operation, Args, Kwargs], None]


class Loss:
    """A program that a worker has checked, ready to be replayed on tensors."""

    def __init__(self, program: Program, batch: int) -> None:
        self.program = program
        self.batch = batch
        """Number of inputs that are parts of a batch."""
        self.lengths = {known.shape[0] for known in program.inputs[len(program.inputs) - batch :]}
        steps = program.routine.steps
        ops = [look_up(step) for step in steps if step.framework]
        self.is_random = any(op.random for op in ops)
        self.differentiates = any(op.differentiates or op.alters_autograd for op in ops)
        self.unreviewed = [op for op in ops if op.tier != "reviewed"]
        self.writes = any(op.writes for op in ops) or any("out" in step.kwargs for step in steps)

    def fits(self, length: int) -> bool:
        """Return whether it was recorded for batches of this length."""
        return self.lengths in ({-1}, {length})

    def __call__(self, tensors: Sequence[Nested]) -> Nested:
        """Replay the steps, and return the answer."""
        return replay(self.program, tensors)

    def rehearse(self, tensors: Sequence[Nested], watch: Watcher | None = None) -> Nested:
        """Replay the steps where the tensors are, on any device; raise if the form of a result depends on values.

        ``watch`` receives each operation with its arguments.
        """
        device = tensors[0].device
        with device:
            return replay(self.program, tensors, partial(self._rehearse, device, watch))

    def run_stacked(self, tensors: Sequence[Nested]) -> Nested:
        """Replay the steps within ``vmap``, with kernels that are faster there."""
        return replay(self.program, tensors, _run_stacked)

    def _rehearse(
        self, device: torch.device, watch: Watcher | None, operation: Operation, operands: Sequence[Nested]
    ) -> Nested:
        args, kwargs = fill(operation, read(operation, operands))
        if operation.op is not None and operation.op.disclosure(args, kwargs) != "nothing":
            raise FederatedError.plan(self.program.name, f"the form of {operation.op.name!r} depends on values")
        place = partial(_place, device)
        args, kwargs = map_leaves(place, (args, kwargs))
        if watch is not None:
            watch(operation, args, kwargs)
        return clear(operation, map_leaves(place, operation.run(*args, **kwargs)))


def _run_stacked(operation: Operation, operands: Sequence[Nested]) -> Nested:
    args, kwargs = fill(operation, read(operation, operands))
    return clear(operation, _STACKED.get(operation.step.op, operation.run)(*args, **kwargs))


def _place(device: torch.device, leaf: object) -> object:
    """Replace the device on which a step creates a tensor, and move a constant there."""
    if isinstance(leaf, torch.Tensor) and leaf.device != device:
        return leaf.to(device)
    return device if isinstance(leaf, torch.device) else leaf


def _apply_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute ``linear`` with a contiguous stacked gradient of the weight, which makes updates much faster."""
    if input.dim() != 2:
        return torch.nn.functional.linear(input, weight, bias)
    product = torch.matmul(weight, input.mT).mT
    return product if bias is None else product + bias


_STACKED: dict[str, Callable[..., Tensor]] = {"torch.nn.functional.linear": _apply_linear}
"""Kernels for several models at once, by operation."""


def compile_loss(program: Program, batch: int, framework: FrameworkAttributes) -> Loss:
    """Return a program as a loss; raise if it does anything but compute on its inputs."""
    fault = _find_problem(program, framework, batch)
    if fault is not None:
        raise FederatedError.plan(program.name, fault[0])
    return Loss(program, batch)


Fault = tuple[str, str]
"""Why a program is not a loss, and what to do instead."""


def _find_problem(program: Program, framework: FrameworkAttributes, batch: int) -> Fault | None:
    if program.state or len(program.routines) > 1 or program.routines[0].carry:
        return "it has a state of its own", _COMPUTE
    if not all(type(known) is Form for known in program.inputs):
        return "one of its inputs is a number", _COMPUTE
    of_model = len(program.inputs) - batch
    return next(filter(None, [_find_fault(step, framework, of_model) for step in program.routines[0].steps]), None)


def _find_fault(step: Step, framework: FrameworkAttributes, of_model: int) -> Fault | None:
    """Return why a step cannot be part of a loss; the first slots are those of the model."""
    if any(type(leaf) is Slot and leaf.attr is not None for leaf in leaves((step.args, step.kwargs))):
        return "it reads a gradient", _DIFFERENTIATE
    if not step.framework:
        return ("it reads a value", _COMPUTE) if step.op == ITEM else None
    if step.framework != framework.ALIAS:
        return f"it uses {step.framework!r}", _COMPUTE
    op = look_up(step)
    if (op.attr, op.spelling) == ("data", "setter"):
        return f"{op.name!r} replaces a tensor", "change it in place, e.g. `p.data.copy_(new)`"
    if op.accumulates or op.retains or (op.alters_autograd and not _requires_gradient(op, step, of_model)):
        return f"{op.name!r} changes gradients", _DIFFERENTIATE
    return (f"{op.name!r} may read other memory", f"use `{op.instead}`") if op.reads_beyond else None


_DIFFERENTIATE = "use `torch.autograd.grad`, and checkpoints with `use_reentrant=False`"
_COMPUTE = "compute it from the batch and from the model's output"


def _requires_gradient(op: Op, step: Step, of_model: int) -> bool:
    """Return whether a step allows a gradient with respect to the batch or a result."""
    first = step.args[0] if step.args else None
    return op.attr in ("requires_grad_", "requires_grad") and type(first) is Slot and first.number >= of_model


class Digests:
    """Identifies programs by content, so that equal ones of several workers share a memo."""

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
        return Layout(self.forms, len(self.parameters))
