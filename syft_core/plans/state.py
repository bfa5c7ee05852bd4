"""The local state of a recorded plan: its tensors, their condition when recorded, and how they are sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from syft_core.hook.dispatch import framework_of
from syft_core.hook.hook import attached_hooks
from syft_core.location import Location
from syft_core.messages import Store
from syft_core.plans.capture import (
    CapturedSettings,
    Snapshot,
    find_captured,
    find_change,
    find_settings,
    is_other_value,
)
from syft_core.plans.errors import PlanError
from syft_core.plans.pointer import PointerPlan
from syft_core.plans.program import Program
from syft_core.plans.tapes import CodeLine
from syft_core.pointers.object_pointer import new_id
from syft_core.pointers.pointer_tensor import PointerTensor, pointer_at
from syft_core.pointers.travel import send_copy
from syft_core.serde import serialize
from syft_core.values import Args, Function, Tensor

if TYPE_CHECKING:
    from syft_core.workers.party.base import BaseWorker


@dataclass(eq=False, repr=False)
class Recording:
    """A recorded program, the local state it works on, and the condition of that state when recorded."""

    program: Program
    tensors: list[Tensor]
    """The state tensors that existed."""
    setters: list[Callable[[Tensor], None] | None]
    """Functions that store the state created by the first call locally."""
    examples: Args | None
    """The arguments of ``Plan._record``; None for a fetched plan, which cannot be recorded."""
    lines: list[CodeLine] = field(default_factory=list)
    """The line that makes each part of the state that the first call creates."""
    is_incomplete: bool = False
    """Whether calls on a worker have created tensors there that have no local counterpart."""

    def note(self, function: Function, state: object) -> None:
        """Remember the condition of the state."""
        self._objects = find_captured(function, state)
        self._condition = self._describe(self._objects)
        self._settings = _find_settings(self._objects)
        self._snapshot = Snapshot(self._objects, _find_stateful())
        self._flags = self._find_flags()

    def fits(self, function: Function, state: object) -> bool:
        """Return whether a new recording would have the same steps, as far as the state determines them."""
        objects = find_captured(function, state)
        return _find_settings(objects) == self._settings and self._describe(objects) == self._condition

    def is_current(self, function: Function, state: object) -> bool:
        """Return whether it fits; fast if no value was replaced."""
        if self._snapshot.is_current() and self._flags == self._find_flags():
            return True
        if not self.fits(function, state):
            return False
        self._snapshot, self._flags = Snapshot(self._objects, _find_stateful()), self._find_flags()
        return True

    def require_same_settings(self) -> None:
        """Raise if a setting of a model, an optimizer or the function that the steps depend on has changed."""
        if not self._snapshot.is_current():
            if (name := find_change(self._settings, _find_settings(self._objects))) is not None:
                raise PlanError.changed(self.program.name, name)
            self._snapshot = Snapshot(self._objects, _find_stateful())
        for name, before, now in zip(_FLAGS, self._flags, self._find_flags(), strict=True):
            if before != now:
                raise PlanError.changed(self.program.name, name)

    def _find_flags(self) -> list[list[bool]]:
        return [[not _is_remote(tensor) and test(tensor) for tensor in self.tensors] for test in _FLAGS.values()]

    def digest(self, function: Function, state: object) -> object:
        """Return a digest that differs if the local state, or its values, have changed."""
        objects = find_captured(function, state)
        owned = [*map(id, find_tensors(objects))]
        reachable = {*map(id, objects), *owned}
        known = [id(tensor) in reachable for tensor in self.tensors]
        local = [(tensor, tensor.requires_grad) for tensor in self.tensors if not _is_remote(tensor)]
        return owned, known, _find_settings(objects), hash(serialize(local))

    def _describe(self, objects: Sequence[object]) -> list[object]:
        owned = find_tensors(objects)
        found = {id(tensor): tensor for tensor in owned}
        reachable = set(map(id, objects))
        others = [tensor for tensor in self.tensors if id(tensor) not in found]
        return [
            *[_condition_of(tensor) for tensor in owned],
            *[_condition_of(tensor) if id(tensor) in reachable else None for tensor in others],
        ]

    def send(
        self, owner: BaseWorker, location: Location, tags: set[str] | None, description: str | None
    ) -> PointerPlan:
        """Send the program, with copies of the local state, and return a pointer to it."""
        program, state = self.program, []
        setters: list[Callable[[Tensor], None] | None] = []
        for tensor in self.tensors:
            remote = getattr(tensor, "child", None)
            if isinstance(remote, PointerTensor):
                if remote._location.id != location.id:
                    raise PlanError(
                        f"cannot send the plan {program.name!r} to worker {location.id!r}: a part of its state is on "
                        f"{remote._location.id!r}; move the model there, or fetch it"
                    )
                state.append(remote)
                setters.append(None)
            else:
                state.append(send_copy(tensor, owner, location))
                setters.append(partial(_replace, tensor))
        frameworks = [step.framework for step in program.routines[0].steps if step.framework]
        for setter in self.setters:
            state.append(pointer_at(location, new_id(), owner.attributes_of(frameworks[0]), owner))
            setters.append(setter or self._note_loss)
        pointer = PointerPlan(location, new_id(), owner=owner, tags=tags, description=description)
        bound = replace(program, state=tuple([part._id_at_location for part in state]))
        pointer.program, pointer.state, pointer.setters, pointer.recording = bound, tuple(state), tuple(setters), self
        pointer.before_call, pointer.after_fetch = self.require_same_settings, self.continue_from
        try:
            location.tell(Store(pointer._id_at_location, bound, tags=tuple(tags or ()), description=description))
        except BaseException:
            pointer.gone = "it could not be sent"
            raise
        return pointer

    def continue_from(self, pointer: PointerPlan) -> None:
        """Record that the state was fetched. Without the function, later calls continue with the recorded steps."""
        if self.examples is None and pointer.has_begun:
            self.program, self.setters = replace(self.program, begun=True), []
            self._flags = self._find_flags()

    def _note_loss(self, _value: Tensor) -> None:
        self.is_incomplete = True


class Counters:
    """The numbers and texts that a function keeps between calls, outside of tensors."""

    def __init__(self, objects: Sequence[object]) -> None:
        self._objects, self._before = objects, CapturedSettings()

    def note(self) -> None:
        """Remember the settings after a run."""
        self._before = _find_settings(self._objects)

    def find_changed(self) -> str | None:
        """Return the name of a number or text that the next run has changed again."""
        now = _find_settings(self._objects)
        return next((key[1] for key in now if is_other_value(self._before.get(key), now[key])), None)


def _replace(tensor: Tensor, value: Tensor) -> None:
    framework_of(value).replace_in_place(tensor, value)


def _is_remote(tensor: Tensor) -> bool:
    return isinstance(getattr(tensor, "child", None), PointerTensor)


def _condition_of(tensor: Tensor) -> object:
    """Return everything about a tensor, apart from values, that the steps of a function depend on."""
    pointer = getattr(tensor, "child", None)
    if isinstance(pointer, PointerTensor):
        known, has_gradient = pointer.look(), pointer.has_gradient()
        return id(tensor), pointer._location.id, known.shape, known.dtype, known.requires_grad, has_gradient
    flags = tensor.requires_grad, tensor.grad is not None, _has_hooks(tensor)
    return id(tensor), None, tensor.shape, tensor.dtype, *flags


def _requires_grad(tensor: Tensor) -> bool:
    return bool(tensor.requires_grad)


def _has_hooks(tensor: Tensor) -> bool:
    return framework_of(tensor).has_hooks(tensor)


_FLAGS: dict[str, Callable[[Tensor], bool]] = {"requires_grad": _requires_grad, "hooks of a tensor": _has_hooks}


def _find_settings(objects: Sequence[object]) -> CapturedSettings:
    return find_settings(objects, _find_stateful())


def _find_stateful() -> tuple[type, ...]:
    return tuple([cls for hook in attached_hooks() for cls in hook.attributes.stateful])


def find_tensors(objects: Sequence[object]) -> list[Tensor]:
    """Return the tensors of modules and optimizers."""
    return [tensor for hook in attached_hooks() for tensor in hook.attributes.find_state(objects)]
