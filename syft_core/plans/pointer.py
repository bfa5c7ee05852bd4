"""PointerPlan: a plan on a worker; calling it sends one message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from syft_core.exceptions import NotCollocatedError, ObjectNotFoundError
from syft_core.hook.forms import Form
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import is_flat, leaves, map_leaves
from syft_core.messages import FetchAll, Placed, Tag
from syft_core.plans.errors import PlanError
from syft_core.plans.messages import RunPlan
from syft_core.plans.program import Program, Slot
from syft_core.pointers.fetches import FetchSteps
from syft_core.pointers.multi_pointer import MultiPointerTensor
from syft_core.pointers.object_pointer import ObjectPointer, new_id
from syft_core.pointers.pointer_tensor import PointerTensor, keep_gradients, pointer_at
from syft_core.pointers.prediction import UNCERTAIN, ask_forms
from syft_core.pointers.travel import pointer_types, send_copy, wrap
from syft_core.values import Function, Nested, Tensor

PLAN = "plan"
"""The kind of a plan in search results."""


class PointerPlan(ObjectPointer):
    """Points to a plan on a worker. The client that sent the plan also has pointers to its state."""

    program: Program | None = None
    """The program, if this client recorded it; otherwise every call waits for the forms of its results."""
    state: tuple[PointerTensor, ...] = ()
    """Pointers to the plan's state, in the order of its slots."""
    setters: tuple[Callable[[Tensor], None] | None, ...] = ()
    """Functions that store the fetched state locally; None for state that stays on the worker."""
    plan: Any = None
    """The plan that was sent, whose state ``get`` updates; None for a plan found by a search."""
    make_plan: ClassVar[Function]
    """Creates a plan from a program and its state; set by the module of plans, which imports this one."""
    recording: object = None
    before_call: Function | None = None
    """Raises if the recording no longer fits its models."""
    after_fetch: Function | None = None
    """Records that the state has been fetched."""
    digest: object = None
    """The digest of the local state at that time."""
    calls = 0

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.known: dict[Any, list[Form]] = {}
        """The forms of results, by the forms of arguments."""

    def __call__(self, *args: Any) -> Nested:
        """Run the plan on its worker, on pointers and numbers; return pointers to the results."""
        self.require_alive()
        if self.before_call is not None:
            self.before_call()
        given = leaves(args)
        sent = tuple([self._prepare(leaf) for leaf in given])
        if self.program is not None and self._location.predicts:
            require_arguments(self.program, [_look(leaf) for leaf in sent])
        if self.program is not None and self.program.changes_gradients:
            keep_gradients(self._location)
        message = RunPlan(self._id_at_location, sent, new_id())
        forms = self._predict(sent)
        answer = self._tell(message, forms) if forms is not None else self._ask(message, sent)
        self.calls += 1
        if self.program is not None and self.program.changes_gradients:
            self._location.forget_gradients()
        made: dict[int, Any] = {}

        def point(leaf: object) -> Nested:
            if type(leaf) is Slot:
                return given[leaf.number]
            if type(leaf) is not Placed:
                return leaf
            if leaf.id not in made:
                made[leaf.id] = self._point_to(leaf)
            return made[leaf.id]

        return point(answer) if is_flat(type(answer)) else map_leaves(point, answer)

    def fetch(self, user: str | None = None, reason: str = "", deregister_ptr: bool = True) -> FetchSteps:
        """Fetch the state of the plan into the tensors it was recorded with, and return the plan.

        A plan found by a search has none: it is fetched together with its state, and can be called and sent.
        """
        if self.has_arrived:
            return self._arrived
        if self.plan is None:
            program = yield from super().fetch(user, reason, deregister_ptr)
            ids = program.state if program.begun else program.state[: len(program.state) - program.made]
            tensors = (yield self._location, FetchAll(ids, user, reason)) if ids else []
            self.plan = PointerPlan.make_plan(program, list(tensors))
            return self.plan
        self.require_alive()
        state = self._find_state()
        own = [place for place, part in enumerate(state) if part.gone is None and self.setters[place] is not None]
        values = yield self._location, FetchAll(tuple([state[place]._id_at_location for place in own]), user, reason)
        for place, value in zip(own, values, strict=True):
            state[place].gone = f"it was fetched by {self.owner.id!r}"
            self.setters[place](value)  # type: ignore[misc]  # checked above
        if self.after_fetch is not None:
            self.after_fetch(self)
        self.gone = f"it was fetched by {self.owner.id!r}"
        self._location.drop(self._id_at_location)
        return self.plan

    def keep_arrived(self, value: object) -> None:
        """Keep the plan, whose state has been fetched."""
        super().keep_arrived(value if self.plan is None else self.plan)

    def parameters(self) -> list[Tensor]:
        """Return pointers to the state of the plan."""
        self.require_alive()
        if self.program is None:
            raise PlanError(
                f"cannot list the parameters of {self._name()}: only the client that sent a plan knows them; fetch it "
                f"with `get()`"
            )
        return [wrap(pointer) for pointer in self._find_state()]

    def publish(self) -> PointerPlan:
        """Make the worker keep the plan and its state permanently, including state that the first call creates."""
        self.require_alive()
        for pointer in self._find_state():
            self._location.tell(Tag(pointer._id_at_location, publish=True))
        return super().publish()

    def _find_state(self) -> tuple[PointerTensor, ...]:
        """Return pointers to the existing state; another pointer to the plan may have created some of it."""
        made = self.program.made if self.program is not None and not self.has_begun else 0
        if made:
            try:
                self._location.describe([part._id_at_location for part in self.state[-made:]])
            except ObjectNotFoundError:
                return self.state[:-made]
            self.calls += 1
        return self.state

    @property
    def has_begun(self) -> bool:
        """Whether the first call has been made."""
        return bool(self.calls) or (self.program is not None and self.program.begun)

    def _prepare(self, leaf: Tensor) -> Nested:
        if type(leaf) in (int, float):
            return float(leaf)
        pointer = getattr(leaf, "child", None)
        if isinstance(pointer, PointerTensor):
            if pointer._location.id != self._location.id:
                raise NotCollocatedError.between("plan", self._location.id, pointer._location.id)
            return pointer
        return send_copy(leaf, self.owner, self._location) if is_framework_tensor(type(leaf)) else leaf

    def _predict(self, sent: tuple[object, ...]) -> list[Form] | None:
        first = self.program is not None and len(self.program.routines) > 1 and not self.has_begun
        if first or not self._location.predicts or not self._find_framework():
            return None
        signature = _signature(sent)
        if None in signature and ask_forms(self._location, sent, PointerTensor):
            signature = _signature(sent)
        return self.known.get(signature)

    def _find_framework(self) -> str:
        """Return the framework of the results; empty if the plan calls no operation."""
        steps = () if self.program is None else self.program.routines[-1].steps
        return next((step.framework for step in steps if step.framework), "")

    def _tell(self, message: RunPlan, forms: list[Form]) -> Nested:
        program: Any = self.program
        message.count = len(forms)
        self._location.tell(message)
        routine = program.routines[-1]
        framework = self._find_framework()
        placed = {
            number: Placed(message.result + place, forms[place], framework)
            for place, number in enumerate(program.find_returned(routine))
        }
        return map_leaves(lambda leaf: placed.get(leaf.number, leaf) if type(leaf) is Slot else leaf, routine.answer)

    def _ask(self, message: RunPlan, sent: tuple[object, ...]) -> Nested:
        answer = self._location.ask(message)
        if not self._location.predicts:
            return answer
        placed = {leaf.id: leaf.form for leaf in leaves(answer) if type(leaf) is Placed}
        is_complete = all(type(form) is Form and form.strides is not None for form in placed.values())
        signature = _signature(sent)
        if self.program is not None and self.calls and is_complete and None not in signature:
            self.known[signature] = list(placed.values())
        return answer

    def _point_to(self, placed: Placed) -> Tensor:
        framework = self.owner.attributes_of(placed.framework)
        pointer = pointer_at(self._location, placed.id, framework, self._syft_owner)
        form = placed.form
        if self._location.predicts and type(form) is Form and form.strides is not None:
            pointer.remember_form(form)
            if form.requires_grad:
                pointer.is_operand, pointer._history = form.is_leaf, UNCERTAIN
            else:
                pointer.remember_gradient(None, exists=False)
        return framework.wrapper(pointer)


class MultiPointerPlan:
    """A plan on several workers; a call runs on the worker of its arguments."""

    def __init__(self, pointers: list[PointerPlan]) -> None:
        self.child = {pointer.location_id: pointer for pointer in pointers}

    @property
    def location(self) -> list[Any]:
        """The workers."""
        return [pointer.location for pointer in self.child.values()]

    def __call__(self, *args: Any) -> Nested:
        """Run the plan on the worker of its arguments."""
        return find_place(self.child, args)(*args)

    def get(self, **options: Any) -> Any:
        """Fetch the state of the plan from the first worker."""
        return next(iter(self.child.values())).get(**options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}>" + "".join(f"\n\t-> {pointer}" for pointer in self.child.values())


def find_place(places: dict[Any, PointerPlan], args: Nested) -> PointerPlan:
    """Return the plan on the worker of the arguments."""
    for leaf in leaves(args):
        pointer = getattr(leaf, "child", None)
        if isinstance(pointer, MultiPointerTensor):
            raise PlanError("cannot run a plan on a multi-pointer: call it once per worker, with the pointers in it")
        if isinstance(pointer, PointerTensor):
            found = places.get(pointer._location.id)
            if found is None:
                where = pointer._location.id
                raise PlanError(
                    f"cannot run the plan on worker {where!r}: it is not there; send it with `plan.send(…)`"
                )
            return found
    return next(iter(places.values()))


def require_arguments(program: Program, found: list[Tensor]) -> None:
    """Raise unless arguments have the number, shapes and dtypes that a plan was recorded with.

    ``found`` contains a form for each tensor, None if its form is unknown, and a float for each number.
    """
    fits = len(found) == len(program.inputs) and all(map(_fits, program.inputs, found))
    if not fits:
        raise PlanError.arguments(program.name, _text(program.inputs), _text(found))


def _fits(expected: Form | None, found: Any) -> bool:
    if expected is None or found is None:
        return type(found) is float or found is None
    if not hasattr(found, "shape") or len(found.shape) != len(expected.shape):
        return False
    lengths = zip(expected.shape, found.shape, strict=True)
    return found.dtype == expected.dtype and all(wanted in (-1, given) for wanted, given in lengths)


def _text(parts: Any) -> str:
    shown = ["a number" if part is None or type(part) is float else _text_of_form(part) for part in parts]
    return ", ".join(shown) or "nothing"


def _text_of_form(form: Any) -> str:
    return f"{form.dtype}{list(form.shape)}" if hasattr(form, "shape") else type(form).__name__


def _look(leaf: object) -> Nested:
    return leaf.known_form if isinstance(leaf, PointerTensor) else leaf


def _signature(sent: tuple[object, ...]) -> tuple[Any, ...]:
    return tuple([leaf.known_form if isinstance(leaf, PointerTensor) else type(leaf) for leaf in sent])


pointer_types[PLAN] = PointerPlan
