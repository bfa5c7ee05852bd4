"""Follow the samples of a batch through a recorded loss, and refuse a loss in which they depend on each other.

Clipping bounds what one sample contributes only if the gradient of each is that of the loss on this sample alone. So
each step must be an operation of the table in ``rules.py``, which says where in its result the samples are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import torch

from syft_core.hook.attributes import Op
from syft_core.hook.rules import leaves, map_leaves
from syft_core.plans.interpreter import fill, read, replay
from syft_core.plans.program import CONSTANT, FACT, GUARD, ITEM, NUMBERS, Operation, Slot, Step
from syft_core.values import Nested, Tensor
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.losses import Loss, ModelForms
from syft_torch.federated.memory import uses_small_floats
from syft_torch.federated.private_steps.kernels import KERNELS
from syft_torch.federated.private_steps.marks import (
    LENGTH,
    LENGTH_OF_TRIAL,
    MIXED,
    SHARED,
    Batched,
    CoupledError,
    Mark,
    Reduced,
    is_number_mark,
)
from syft_torch.federated.private_steps.rules import FACTS, RULES, Rule, Use, find_advice


@dataclass
class Followed:
    """What is known of a loss in which samples do not depend on each other."""

    kind: str
    """Whether the loss is the "mean" or the "sum" over samples."""
    is_short: bool = True
    """Whether each parameter is used by one operation for which there is a kernel."""
    kernels: dict[int, list[tuple[str, int]]] = field(default_factory=dict)
    """The steps that have parameters: the name of each operand that is one, and its number."""
    guards: set[int] = field(default_factory=set)
    """The steps that could fail because of a value of a sample."""
    out_of_place: set[int] = field(default_factory=set)
    """The steps that were recorded with ``inplace=True``."""


def follow(losses: Sequence[Loss], shape: ModelForms) -> Followed:
    """Follow the samples; raise if they depend on each other, or if a step is not known to keep them apart."""
    if len(losses) != 1 or losses[0].lengths != {-1}:
        raise FederatedError.privacy(
            "the loss decides something by the length of a batch", "compute the same for batches of all lengths"
        )
    loss = losses[0]
    if len(shape.forms) > len(shape.parameters):
        advice = "replace batch norm, e.g. by `nn.GroupNorm`, or freeze it with `.eval()`"
        raise FederatedError.privacy("training changes a buffer, for instance running statistics", advice)
    if any(form.dtype not in (torch.float32, torch.float64) for form in shape.forms) or uses_small_floats(loss):
        raise FederatedError.privacy("the loss computes with floats of less than 32 bits", "use float32")
    return _Follower(loss, shape).run()


class _Follower:
    def __init__(self, loss: Loss, shape: ModelForms) -> None:
        self._loss, self._shape = loss, shape
        self._parameters = len(shape.parameters)
        inputs = loss.program.inputs
        self._marks: dict[int, Mark] = dict.fromkeys(range(len(inputs) - loss.batch), SHARED)
        self._marks |= dict.fromkeys(range(len(inputs) - loss.batch, len(inputs)), Batched(0))
        self._views: set[int] = set()
        self._found = Followed("mean")
        self._uses: dict[int, int] = dict.fromkeys(range(self._parameters), 0)

    def run(self) -> Followed:
        """Follow the samples."""
        program = self._loss.program
        shapes = [[LENGTH_OF_TRIAL if side == -1 else side for side in known.shape] for known in program.inputs]
        kinds = [known.dtype for known in program.inputs]
        shadows = [torch.empty(s, dtype=kind, device="meta") for s, kind in zip(shapes, kinds, strict=True)]
        try:
            with torch.device("meta"):
                replay(program, shadows, self._step)
        except FederatedError:
            raise
        except Exception as error:
            why = f"the loss cannot be computed without values ({type(error).__name__})"
            raise FederatedError.privacy(why, find_advice("")) from error
        answer = program.routine.answer
        mark = self._marks.get(answer.number) if type(answer) is Slot else None
        if not isinstance(mark, Reduced):
            raise FederatedError.privacy("the loss is not a mean over the samples", "end it with a mean")
        self._found.kind = mark.kind
        used = [step.args for step in program.routine.steps], [step.kwargs for step in program.routine.steps]
        for leaf in leaves(used):
            if type(leaf) is Slot and leaf.number in self._uses:
                self._uses[leaf.number] += 1
        matched = [number for uses in self._found.kernels.values() for _, number in uses]
        self._found.is_short = all(count == matched.count(number) <= 1 for number, count in self._uses.items())
        return self._found

    def _step(self, operation: Operation, operands: Sequence[Nested]) -> Nested:
        args, kwargs = fill(operation, read(operation, operands))
        if operation.op is None:
            return self._follow_number(operation, args)
        step = operation.step
        if step.modes is not None and not step.modes.startswith("True False"):
            raise FederatedError.privacy("a part of the loss runs without gradients", "use `.detach()` there")
        marks = map_leaves(self._mark_of, step.args), map_leaves(self._mark_of, step.kwargs)
        name = operation.op.name
        rule = _find_rule(operation.op, step, marks)
        self._require_separate(operation)
        place = partial(_place, torch.device("meta"))
        args, kwargs = map_leaves(place, (args, kwargs))
        if kwargs.get("inplace"):
            kwargs["inplace"] = False
            self._found.out_of_place.add(operation.place)
        result = operation.run(*args, **kwargs)
        use = Use(name, args, kwargs, *marks, result)
        try:
            mark = rule(use)
        except CoupledError as error:
            raise FederatedError.privacy(f"{name!r} {error.why}", error.advice) from None
        except Exception:  # noqa: BLE001  # A rule that does not know such arguments must not accept them.
            raise FederatedError.privacy(f"{name!r} has arguments that are not known here", find_advice(name)) from None
        if use.is_guarded:
            self._found.guards.add(operation.place)
        self._match_kernel(operation, use)
        given = mark if isinstance(mark, tuple) else (mark,) * step.count
        _require_lengths(name, given, use.results)
        self._marks.update(zip(range(operation.first, operation.first + step.count), given, strict=True))
        return result

    def _mark_of(self, leaf: Nested) -> Nested:
        return self._marks[leaf.number] if type(leaf) is Slot else SHARED

    def _require_separate(self, operation: Operation) -> None:
        """Raise if a step changes its operands in place, unless nothing can notice."""
        step = operation.step
        operands = [leaf for leaf in leaves((step.args, step.kwargs)) if type(leaf) is Slot]
        is_in_place = bool(step.kwargs.get("inplace"))
        makes_view = operation.op is not None and operation.op.name.rpartition(".")[2] in _VIEWS
        if is_in_place and not all(
            leaf.number in operation.dead and leaf.number not in self._views for leaf in operands
        ):
            raise FederatedError.privacy(
                f"{operation.step.op!r} changes a tensor in place, which is used again", "pass `inplace=False`"
            )
        if step.kwargs.get("out") is not None:
            raise FederatedError.privacy(f"{operation.step.op!r} writes to a tensor", "use what it returns")
        if makes_view:
            self._views |= {leaf.number for leaf in operands}
            self._views |= set(range(operation.first, operation.first + step.count))

    def _match_kernel(self, operation: Operation, use: Use) -> None:
        """Note a step that has parameters, if there is a kernel that finds their gradients."""
        step = operation.step
        if not any(type(leaf) is Slot and leaf.number < self._parameters for leaf in leaves((step.args, step.kwargs))):
            return
        kernel = KERNELS.get(use.name)
        if kernel is None:
            return
        slots = kernel.bind(step.args, step.kwargs)
        found = [
            (role, slots[role].number)
            for role in kernel.weights
            if type(slots.get(role)) is Slot and slots[role].number < self._parameters
        ]
        marks = kernel.bind(*use.marks)
        if kernel.fits({role: marks.get(role, SHARED) for role in slots}, kernel.bind(use.args, use.kwargs), found):
            self._found.kernels[operation.place] = found

    def _follow_number(self, operation: Operation, args: Sequence[Nested]) -> Nested:
        step = operation.step
        if step.op == ITEM:
            raise FederatedError.privacy("the loss reads a value", "compute with tensors")
        marks = [self._mark_of(arg) for arg in step.args]
        if step.op == CONSTANT:
            self._marks[operation.first] = SHARED
        elif step.op == FACT:
            self._marks[operation.first] = _mark_fact(step.args[1], step.args[2], marks[3], args[3], args[4:])
        elif step.op == GUARD:
            self._require_decided(args[0], marks[1], marks[2], args[3])
        elif step.op in NUMBERS:
            self._marks[operation.first] = MIXED if any(map(is_number_mark, marks)) else SHARED
        return operation.run(*args)

    @staticmethod
    def _require_decided(name: str, left: Mark, right: Mark, outcome: bool) -> None:
        """Raise if the outcome of a comparison depends on the length of the batch."""
        if left is LENGTH and right is LENGTH and outcome is (name in ("eq", "le", "ge")):
            return
        if is_number_mark(left) or is_number_mark(right):
            raise FederatedError.privacy(
                "the loss decides something by the length of a batch", "compute the same for batches of all lengths"
            )


_VIEWS = frozenset(
    [
        *("view", "reshape", "flatten", "unflatten", "transpose", "permute", "squeeze", "unsqueeze", "expand", "t"),
        *("__getitem__", "select", "narrow", "split", "chunk", "unbind", "T", "mT", "swapaxes", "detach"),
        *("contiguous", "to", "float", "double"),
    ]
)
"""Operations whose result may share memory with an operand."""


def _require_lengths(name: str, marks: Sequence[Mark], results: Sequence[Tensor]) -> None:
    """Raise if a result does not have the samples where a rule says: its arguments were not understood."""
    for mark, result in zip(marks, results, strict=True):
        if isinstance(mark, Batched) and result.shape[mark.dim] != LENGTH_OF_TRIAL * mark.count:
            raise FederatedError.privacy(f"{name!r} has arguments that are not known here", find_advice(name))


def _find_rule(op: Op, step: Step, marks: Nested) -> Rule:
    """Return the rule of an operation; what is computed from weights and constants alone concerns no sample."""
    rule = RULES.get(op.name)
    if rule is not None:
        return rule
    changes = op.accumulates or op.alters_autograd or op.targets(step.args, step.kwargs)
    if changes or not all(mark == SHARED for mark in leaves(marks)):
        raise FederatedError.privacy(f"{op.name!r} is not known to keep samples apart", find_advice(op.name))
    return lambda _use: SHARED


def _mark_fact(op: str, place: int | None, mark: Mark, tensor: Tensor, rest: Sequence[Nested]) -> Mark:
    """Return the mark of a number that follows from the form of a tensor."""
    if not isinstance(mark, Batched):
        return SHARED
    name, length = FACTS.get(op), LENGTH if mark.count == 1 else MIXED
    if name == "plain":
        return SHARED
    if name == "size":
        dims = [part for part in (place, *rest) if type(part) is int]
        if len(dims) == 1:
            return length if dims[0] % tensor.dim() == mark.dim else SHARED
    if name == "length":
        return length if mark.dim == 0 else SHARED
    return MIXED


def _place(device: torch.device, leaf: object) -> object:
    if isinstance(leaf, torch.Tensor) and leaf.device != device:
        return leaf.to(device)
    return device if isinstance(leaf, torch.device) else leaf
