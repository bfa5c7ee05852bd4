"""Plan: a function whose operations are recorded once, sent to workers, and run there with one message per call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from syft_core.exceptions import PlanError, ValueRefusedError
from syft_core.hook.dispatch import framework_of
from syft_core.hook.forms import Form, form
from syft_core.hook.hook import attached_hook, attached_hooks, current_hook, is_library
from syft_core.hook.rules import leaves, map_leaves
from syft_core.location import WorkerLike
from syft_core.messages import Store
from syft_core.plans.capture import find_captured
from syft_core.plans.pointer import MultiPointerPlan, PointerPlan, find_place
from syft_core.plans.program import Program
from syft_core.plans.recording import Recorder, assemble, is_settled
from syft_core.pointers.meeting import copy_if_plain
from syft_core.pointers.object_pointer import ObjectPointer, new_id
from syft_core.pointers.pointer_tensor import PointerTensor, pointer_at
from syft_core.pointers.travel import send_copy
from syft_core.values import Function, Nested, Tensor

ANY_LENGTHS = (3, 2)
"""The lengths with which a dimension of any length, -1, is recorded: the steps must not depend on it."""


class State(tuple[Any, ...]):
    """The tensors given as ``state`` to ``func2plan``; a function that has an argument ``state`` gets them."""

    __slots__ = ()

    def read(self) -> tuple[Any, ...]:
        """Return the tensors."""
        return tuple(self)


class Plan:
    """A function of tensors that is recorded with ``build`` and sent with ``send``.

    Pass the function, or write a subclass with the method ``forward``. Models, optimizers and tensors that the function
    refers to are the *state* of the plan. ``state`` lists those that it cannot find by itself.
    """

    def __init__(
        self,
        name: str | None = None,
        forward: Function | None = None,
        *,
        state: Sequence[object] = (),
        args_shape: Sequence[Sequence[int]] | None = None,
        args_dtypes: Sequence[object] = (),
    ) -> None:
        if forward is not None:
            vars(self)["forward"] = forward
        self.name: str = name or str(getattr(forward, "__name__", type(self).__name__))
        self.state = State(state)
        self.program: Program | None = None
        self._shapes = args_shape
        self._dtypes = args_dtypes
        self._tensors: list[Tensor] = []
        self._setters: list[Callable[[Tensor], None] | None] = []
        self._known: dict[Any, list[Form]] = {}
        self._pointers: dict[Any, PointerPlan] = {}
        self.copied: set[int] = set()
        """The positions of the state that is sent as a copy, because it is here and not on a worker."""

    def forward(self, *args: object) -> Nested:
        """Compute the result; defined by a subclass, or given to the constructor."""
        raise NotImplementedError("cannot run a plan without a function: pass one, or define `forward` in a subclass")

    # --- recording

    def build(self, *args: object) -> Plan:
        """Record the function on copies of ``args``, or on zeros of ``args_shape``; the function runs 2 or 3 times."""
        hook = current_hook()
        if hook is None:
            raise PlanError(f"cannot record the plan {self.name!r}: no framework is hooked; hook one first")
        self._pointers = {}
        code = getattr(inspect.unwrap(self.forward), "__code__", None)
        where = (code.co_filename, code.co_firstlineno) if code else (self.name, 0)
        recorder = Recorder(hook, self.name, where)
        varies = not args and any(-1 in shape for shape in self._shapes or ())
        examples = map_leaves(_example_of, args) if args else tuple(self._make_examples(ANY_LENGTHS[0]))
        others = tuple(self._make_examples(ANY_LENGTHS[1])) if varies else map_leaves(_nudge, examples)
        with ExitStack() as stack:
            objects = find_captured(self.forward, self.state)
            held = [
                stack.enter_context(each.attributes.hold_state(objects, recorder, partial(_send_state, recorder)))
                for each in attached_hooks()
            ]
            self._tensors = [tensor for tensors, _ in held for tensor in tensors]
            for each in attached_hooks():
                stack.enter_context(each.attributes.place_new_tensors(recorder))
            self._run(recorder, examples)
            self._run(recorder, examples)
            if varies or not is_settled(recorder) or any(type(leaf) is float for leaf in leaves(examples)):
                self._run(recorder, others)
            self.program, used, made = assemble(recorder, self._find_forms(examples, varies))
            self._tensors = [self._tensors[place] for place in used]
            found = {id: setter for _, find in held for id, setter in find().items()}
            self._setters = [found.get(id) for id in made]
        return self

    def _find_forms(self, examples: tuple[object, ...], varies: bool) -> tuple[Form | None, ...]:
        """Return the forms of the arguments, with -1 for any length; None for numbers."""
        forms = [_form_of(leaf) for leaf in leaves(examples)]
        if not varies:
            return tuple(forms)
        shapes = self._shapes or ()
        return tuple(
            [form(tuple(shape), None, known.dtype) for known, shape in zip(forms, shapes, strict=True) if known]
        )

    def _run(self, recorder: Recorder, examples: tuple[object, ...]) -> None:
        recorder.begin()
        places = iter(range(len(leaves(examples))))
        args = map_leaves(lambda leaf: recorder.send_input(leaf, next(places)), examples)
        try:
            answer = self._call(args)
        except ValueRefusedError as error:
            problem = f"reads a value ({str(error).partition(':')[0]})"
            advice = "a plan would keep what it decides for all calls; return the tensor instead"
            recorder.refuse(problem, advice, _find_line(error) or recorder.where)
        inputs = tuple([leaf.child.known_form if hasattr(leaf, "child") else type(leaf) for leaf in leaves(args)])
        recorder.end(answer)
        results = [leaf.child.known_form for leaf in _tensors_in(answer, recorder)]
        if None not in results and len(recorder.tapes) > 1:
            self._known[inputs] = results

    def _call(self, args: tuple[object, ...]) -> Nested:
        if self.state and "state" in inspect.signature(self.forward).parameters:
            args = (*args, self.state)
        return self.forward(*args)

    def _make_examples(self, length: int) -> Iterator[Any]:
        if self._shapes is None:
            raise PlanError(f"cannot record the plan {self.name!r}: it needs examples; pass tensors or `args_shape`")
        hook: Any = current_hook()
        dtypes = [*self._dtypes, *[None] * (len(self._shapes) - len(self._dtypes))]
        for shape, dtype in zip(self._shapes, dtypes, strict=True):
            yield hook.create_zeros(*[length if side == -1 else side for side in shape], dtype=dtype)

    @property
    def is_built(self) -> bool:
        """Whether the plan is recorded."""
        return self.program is not None

    @property
    def code(self) -> str:
        """The recorded operations, one per line."""
        return "" if self.program is None else self.program.text

    @property
    def actions(self) -> list[str]:
        """The recorded operations of a call as lines of code."""
        if self.program is None:
            return []
        routine = self.program.routines[-1]
        return [self.program.describe(routine, place) for place in range(len(routine.steps))]

    def parameters(self) -> list[Tensor]:
        """Return the tensors of the state."""
        return list(self._tensors)

    # --- sending and calling

    def send(self, *workers: WorkerLike) -> Any:
        """Send the plan, with copies of its local state, and return a pointer; to several workers, one for all."""
        if self.program is None:
            raise PlanError.not_built(self.name)
        if not workers:
            raise TypeError("cannot send without a worker: pass one, e.g. `plan.send(bob)`")
        pointers = [self._send(worker) for worker in workers]
        return pointers[0] if len(pointers) == 1 else MultiPointerPlan(pointers)

    def _send(self, worker: WorkerLike) -> PointerPlan:
        hook: Any = current_hook()
        program: Any = self.program
        owner = hook.local_worker
        location = owner.location_of(worker)
        sent = self._pointers.get(location.id)
        if sent is not None and sent.gone is None:
            return sent
        state: list[PointerTensor] = []
        for place, tensor in enumerate(self._tensors):
            remote = getattr(tensor, "child", None)
            if isinstance(remote, PointerTensor):
                if remote._location.id != location.id:
                    raise PlanError(
                        f"cannot send the plan {self.name!r} to worker {location.id!r}: a part of its state is on "
                        f"{remote._location.id!r}; move the model there, or fetch it"
                    )
                state.append(remote)
            else:
                self.copied.add(place)
                state.append(send_copy(tensor, owner, location))
        frameworks = [step.framework for step in program.routines[0].steps if step.framework]
        for place in range(program.made):
            self.copied.add(len(self._tensors) + place)
            state.append(pointer_at(location, new_id(), owner.attributes_of(frameworks[0]), owner))
        pointer = PointerPlan(location, new_id(), owner=owner)
        bound = replace(program, state=tuple([part._id_at_location for part in state]))
        pointer.program, pointer.state, pointer.plan = bound, tuple(state), self
        pointer.known.update(self._known)
        try:
            location.tell(Store(pointer._id_at_location, bound))
        except BaseException:
            pointer.gone = "it could not be sent"
            raise
        self._pointers[location.id] = pointer
        return pointer

    def put_state(self, place: int, value: Tensor) -> None:
        """Put a tensor that was fetched into its place in the state."""
        if place < len(self._tensors):
            framework_of(value).replace_in_place(self._tensors[place], value)
        elif (setter := self._setters[place - len(self._tensors)]) is not None:
            setter(value)

    def __call__(self, *args: Any) -> Nested:
        """Run the plan: on the worker of pointers among the arguments, otherwise here, with the function itself."""
        if self._pointers and any(isinstance(getattr(leaf, "child", None), ObjectPointer) for leaf in leaves(args)):
            return find_place(self._pointers, args)(*args)
        return self._call(args)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}{'' if self.is_built else ', not built'}>"

    def __str__(self) -> str:
        return self.code or repr(self)


def func2plan(
    args_shape: Sequence[Sequence[int]] | None = None,
    state: Sequence[object] | None = None,
    trace_autograd: bool = False,
    args_dtypes: Sequence[object] = (),
) -> Callable[[Function], Plan]:
    """Turn a function into a plan, and record it immediately if ``args_shape`` is given.

    ``trace_autograd`` has no effect: backward passes are always recorded.
    """

    def decorate(function: Function) -> Plan:
        plan = Plan(None, function, state=state or (), args_shape=args_shape, args_dtypes=args_dtypes)
        return plan.build() if args_shape is not None else plan

    return decorate


def _find_line(error: Exception) -> tuple[str, int] | None:
    """Return the innermost line of the user's program in a traceback."""
    found, trace = None, error.__traceback__
    while trace is not None:
        if not is_library(trace.tb_frame.f_globals.get("__name__", "")):
            found = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return found


def _send_state(recorder: Recorder, tensor: Tensor) -> Tensor:
    return recorder.send_state(_example_of(tensor))


def _example_of(leaf: object) -> Nested:
    """Return what the function is recorded with in place of a tensor: a copy or, for a pointer, zeros of its form."""
    pointer = getattr(leaf, "child", None)
    return make_zeros(pointer) if isinstance(pointer, PointerTensor) else copy_if_plain(leaf)


def make_zeros(pointer: PointerTensor) -> Tensor:
    """Return a local tensor with the form of a remote one; recording needs no values."""
    known, hook = pointer.look(), attached_hook(pointer.framework.ALIAS)
    if hook is None or known is None or known.shape is None or known.dtype is None:
        raise PlanError("cannot record a plan: the form of a remote tensor is unknown; use one that you may describe")
    example = hook.create_zeros(*known.shape, dtype=known.dtype)
    if getattr(known, "requires_grad", False):
        example.requires_grad = True
        if pointer.has_gradient():
            example.grad = hook.create_zeros(*known.shape, dtype=known.dtype)
    return example


def _nudge(leaf: object) -> Nested:
    """Change a float slightly, so that a step which has kept its value is noticed."""
    return (0.999 * leaf or 0.001) if type(leaf) is float else leaf


def _form_of(leaf: Tensor) -> Form | None:
    if type(leaf) is float:
        return None
    pointer = getattr(leaf, "child", None)
    seen = pointer.look() if isinstance(pointer, PointerTensor) else leaf
    return form(seen.shape, None, seen.dtype)


def _tensors_in(answer: Nested, recorder: Recorder) -> list[Tensor]:
    """Return the tensors of an answer that are results, each once, in the order of their ids in a call."""
    found: dict[Any, Tensor] = {}
    for leaf in leaves(answer):
        pointer = getattr(leaf, "child", None)
        if isinstance(pointer, PointerTensor) and pointer._id_at_location not in recorder.tape.inputs:
            found.setdefault(pointer._id_at_location, leaf)
    return list(found.values())
