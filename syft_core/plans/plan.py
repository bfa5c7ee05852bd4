"""Plan: a function whose operations are recorded once, sent to workers, and run there with one message per call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from syft_core.exceptions import SerdeError, ValueRefusedError
from syft_core.hook.chain import end_of
from syft_core.hook.forms import Form, form
from syft_core.hook.hook import FrameworkHook, attached_hook, attached_hooks, current_hook, is_library
from syft_core.hook.rules import build_rule, leaves, map_leaves
from syft_core.location import WorkerLike
from syft_core.plans.capture import find_captured
from syft_core.plans.errors import PlanError, PlanShapesError
from syft_core.plans.leftovers import Leftovers
from syft_core.plans.pointer import MultiPointerPlan, PointerPlan, find_place
from syft_core.plans.program import Program
from syft_core.plans.randomness import Generators
from syft_core.plans.recording import LENGTHS, Recorder, assemble, is_settled
from syft_core.plans.state import Counters, Recording, find_tensors
from syft_core.pointers.meeting import copy_if_plain
from syft_core.pointers.object_pointer import ObjectPointer
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.pointers.travel import Travelling
from syft_core.serde import Codec, Context, codecs
from syft_core.tensors.identity import Identified
from syft_core.values import Args, Function, Nested, Payload, Tensor

ANY_LENGTHS = (3, 2)
"""The default pair of lengths for recording a dimension of any length, -1."""


class State(tuple[Any, ...]):
    """The tensors given as ``state`` to ``func2plan``; a function with an argument ``state`` receives them."""

    __slots__ = ()

    def read(self) -> tuple[Any, ...]:
        """Return the tensors."""
        return tuple(self)


class Plan(Identified):
    """A function of tensors that is recorded with ``build`` and sent with ``send``; ``get`` fetches its state.

    Pass the function, or write a subclass with the method ``forward``. Models, optimizers and tensors that the function
    refers to are the *state* of the plan. ``state`` lists those that it cannot find by itself. ``lengths`` are the two
    lengths for recording a dimension of any length, -1; with a single one, the plan is for this length only.
    """

    def __init__(
        self,
        name: str | None = None,
        forward: Function | None = None,
        *,
        state: Sequence[object] = (),
        args_shape: Sequence[Sequence[int]] | None = None,
        args_dtypes: Sequence[object] = (),
        lengths: tuple[int, ...] = ANY_LENGTHS,
    ) -> None:
        if forward is not None:
            vars(self)["forward"] = forward
        _require_shapes(args_shape, args_dtypes)
        self.name: str = name or str(getattr(forward, "__name__", type(self).__name__))
        self.state = State(state)
        self.recording: Recording | None = None
        self._shapes = args_shape
        self._dtypes = args_dtypes
        self._lengths = lengths
        self._known: dict[Any, list[Form]] = {}
        self._pointers: dict[Any, PointerPlan] = {}
        self._has_values = False
        """Whether it was recorded with values of the user, and not with zeros."""

    def forward(self, *args: object) -> Nested:
        """Compute the result; defined by a subclass, or given to the constructor."""
        raise NotImplementedError("cannot run a plan without a function: pass one, or define `forward` in a subclass")

    # --- recording

    def build(self, *args: object, trace_autograd: bool = False) -> Plan:
        """Record the function on copies of ``args``, or on zeros of ``args_shape``; the function runs 2 or 3 times.

        ``trace_autograd`` has no effect: backward passes are always recorded.
        """
        if self.recording is not None and self.recording.examples is None:
            raise PlanError(
                f"cannot record the plan {self.name!r}: it was fetched from a worker, without its function; call or "
                f"send it as it is"
            )
        self._require_hook()
        varies = not args and len(self._lengths) > 1 and any(-1 in shape for shape in self._shapes or ())
        examples = map_leaves(_example_of, args) if args else tuple(self._make_examples(self._lengths[0]))
        others = tuple(self._make_examples(self._lengths[1])) if varies else map_leaves(_nudge, examples)
        self._pointers = {}
        self._has_values = bool(args) and not any(_is_remote(leaf) for leaf in leaves(args))
        self._record(examples, others, varies)
        return self

    def _require_hook(self) -> FrameworkHook:
        if (hook := current_hook()) is None:
            raise PlanError(f"cannot use the plan {self.name!r}: no framework is hooked; hook one first")
        return hook

    def _record(self, examples: tuple[object, ...], others: tuple[object, ...], varies: bool) -> None:
        hook = self._require_hook()
        self._known = {}
        code = getattr(inspect.unwrap(self.forward), "__code__", None)
        where = (code.co_filename, code.co_firstlineno) if code else (self.name, 0)
        recorder = Recorder(hook, self.name, where, self._find_any_length() if varies else None, not self._has_values)
        with ExitStack() as stack:
            objects = find_captured(self.forward, self.state)
            stack.callback(Leftovers(objects).remove, recorder)
            stack.callback(recorder.finish)
            held = [
                stack.enter_context(each.attributes.hold_state(objects, recorder, partial(_send_state, recorder)))
                for each in attached_hooks()
            ]
            tensors = [tensor for tensors, _ in held for tensor in tensors]
            generators, counters = Generators(objects), Counters(objects)
            self._run(recorder, examples)
            if (drawn := generators.find_used()) is not None:
                recorder.refuse(f"draws random numbers from {drawn}", _DRAW, where)
            counters.note()
            self._run(recorder, examples)
            counter = counters.find_changed()
            if varies or not is_settled(recorder) or any(type(leaf) is float for leaf in leaves(examples)):
                self._run(recorder, others)
            if varies:
                self._compare_with_plain_lengths(recorder, others)
            program, used, made = assemble(recorder, self._find_forms(examples, varies))
            if counter is not None:
                recorder.refuse(f"changes {counter!r} in each run", _COUNT, where)
            found = {id: setter for _, find in held for id, setter in find().items()}
        recording = Recording(
            program, [tensors[place] for place in used], [found.get(id) for id in made], (examples, others, varies)
        )
        recording.note(self.forward, self.state)
        self.recording = recording

    def _find_any_length(self) -> list[frozenset[int]]:
        return [frozenset([place for place, side in enumerate(shape) if side == -1]) for shape in self._shapes or ()]

    def _find_forms(self, examples: tuple[object, ...], varies: bool) -> tuple[Form | None, ...]:
        forms = [_form_of(leaf) for leaf in leaves(examples)]
        if not varies:
            return tuple(forms)
        shapes = self._shapes or ()
        return tuple(
            [form(tuple(shape), None, known.dtype) for known, shape in zip(forms, shapes, strict=True) if known]
        )

    def _run(self, recorder: Recorder, examples: tuple[object, ...]) -> None:
        """Run the function; refuse a failure that only traced lengths cause, naming its line."""
        try:
            self._run_once(recorder, examples)
        except PlanError:
            raise
        except Exception as error:
            if recorder.traces_lengths:
                with recorder.plain_lengths():
                    self._run_once(recorder, examples)  # It raises the function's own error, if it has one.
                problem = f"needs the length of an argument as a number of Python ({type(error).__name__}: {error})"
                recorder.refuse(problem, LENGTHS, _find_line(error) or recorder.where)
            raise

    def _compare_with_plain_lengths(self, recorder: Recorder, examples: tuple[object, ...]) -> None:
        """Run the function with plain lengths; raise if it behaves differently, as code that tests types does."""
        with recorder.plain_lengths():
            self._run_once(recorder, examples)
        recorder.require_same_without_tracing()

    def _run_once(self, recorder: Recorder, examples: tuple[object, ...]) -> None:
        recorder.begin()
        places = iter(range(len(leaves(examples))))
        args = map_leaves(lambda leaf: recorder.send_input(leaf, next(places)), examples)
        try:
            with ExitStack() as stack:  # Only the function: features that are loaded meanwhile may create tensors.
                for each in attached_hooks():
                    stack.enter_context(each.attributes.place_new_tensors(recorder))
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
        self._require_fitting_shapes(self._shapes)
        captured = find_captured(self.forward, self.state)
        # The framework of the function's own tensors first, then the one that was hooked last.
        latest_first = attached_hooks()[::-1]
        hooks = sorted(latest_first, key=lambda hook: not hook.attributes.find_state(captured))
        dtypes = [*self._dtypes, *[None] * (len(self._shapes) - len(self._dtypes))]
        for shape, dtype in zip(self._shapes, dtypes, strict=True):
            yield self._make_zeros(hooks, [length if side == -1 else side for side in shape], dtype)

    def _require_fitting_shapes(self, shapes: Sequence[Sequence[int]]) -> None:
        try:
            signature = inspect.signature(self.forward)
            takes_state = self.state and "state" in signature.parameters
            signature.bind(*[None] * (len(shapes) + (1 if takes_state else 0)))
        except TypeError as error:
            raise PlanShapesError.count(self.name, len(shapes), str(error)) from None

    def _make_zeros(self, hooks: list[FrameworkHook], shape: list[int], dtype: object) -> Tensor:
        for hook in hooks:
            with suppress(TypeError):
                return hook.create_zeros(*shape, dtype=dtype)
        raise PlanError(
            f"cannot record the plan {self.name!r}: {dtype!r} in `args_dtypes` is not a dtype; pass dtypes, "
            f"e.g. `args_dtypes=[{hooks[0].name}.float32]`"
        )

    @property
    def program(self) -> Program | None:
        """The recorded operations, as they are sent; None before recording."""
        return None if self.recording is None else self.recording.program

    @property
    def is_built(self) -> bool:
        """Whether the plan is recorded."""
        return self.recording is not None

    @property
    def is_current(self) -> bool:
        """Whether a new recording would have the same steps, as far as settings and state determine them."""
        return self.recording is not None and self.recording.is_current(self.forward, self.state)

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
        """Return the tensors of the state; before recording, those that the function can reach."""
        if self.recording is not None:
            return list(self.recording.tensors)
        return find_tensors(find_captured(self.forward, self.state))

    @classmethod
    def from_program(cls, program: Program, tensors: list[Tensor]) -> Plan:
        """Return a plan fetched from a worker: it has no function, so calls run the recorded steps."""
        plan = cls(program.name)
        vars(plan)["forward"] = plan._run_steps
        missing = len(program.state) - len(tensors)
        setters: list[Callable[[Tensor], None] | None] = [tensors.append] * missing
        plan.recording = Recording(replace(program), tensors, setters, None)
        plan.recording.note(plan.forward, ())
        return plan

    def _run_steps(self, *args: object) -> Nested:
        there = self._send(self._require_hook().local_worker)
        answer = there(*args)
        there.get()
        return map_leaves(lambda leaf: leaf.get() if isinstance(leaf, Travelling) else leaf, answer)

    # --- sending and calling

    def send(self, *workers: WorkerLike) -> Any:
        """Send the plan, with copies of its local state, and return a pointer; to several workers, one for all.

        The plan is recorded again if gradients, settings or parts of the state have changed since the last recording.
        """
        self._require_recording()
        if not workers:
            raise TypeError("cannot send without a worker: pass one, e.g. `plan.send(bob)`")
        pointers = [self._send(worker) for worker in workers]
        return pointers[0] if len(pointers) == 1 else MultiPointerPlan(pointers)

    def get(self, user: str | None = None, reason: str = "") -> Plan:
        """Fetch the state from the worker that has the plan, and return the plan."""
        places = [pointer for pointer in self._pointers.values() if pointer.gone is None]
        if len(places) != 1:
            where = ", ".join([repr(pointer.location_id) for pointer in places]) or "no worker"
            raise PlanError(
                f"cannot get the plan {self.name!r}: it is on {where}; call `get` of the pointer that `send` returned"
            )
        places[0].get(user=user, reason=reason)
        return self

    def _refresh(self, recording: Recording) -> Recording:
        if recording.is_incomplete:
            raise PlanError(
                f"cannot send the plan {self.name!r} again: a tensor that one call leaves for the next is not part of "
                f"a module or an optimizer, so `get()` did not return it; keep it in a buffer, and change it in place"
            )
        if recording.examples is not None and not recording.fits(self.forward, self.state):
            self._record_again(recording.examples)
        return self._require_recording()

    def _record_again(self, examples: Args) -> None:
        try:
            self._record(*examples)
        except Exception as error:
            note = (
                f"the plan {self.name!r} was recorded again, because its state has changed: build it with new examples"
            )
            vars(error)["__notes__"] = [note, *getattr(error, "__notes__", ())]  # Python 3.10 has no `add_note`.
            raise

    def _require_recording(self) -> Recording:
        if self.recording is None:
            raise PlanError.not_built(self.name)
        return self.recording

    def _send(self, worker: WorkerLike) -> PointerPlan:
        hook = self._require_hook()
        recording = self._require_recording()
        location = hook.local_worker.location_of(worker)
        sent = self._pointers.get(location.id)
        if sent is not None and sent.gone is None:
            self._name_again(sent)
            if sent.recording is recording and sent.digest == recording.digest(self.forward, self.state):
                return sent
            if sent.calls:
                raise PlanError.trained(self.name, location.id)
        recording = self._refresh(recording)
        pointer = recording.send(hook.local_worker, location, self._syft_tags, self._syft_description)
        pointer.plan = self
        pointer.digest = recording.digest(self.forward, self.state)
        pointer.known.update(self._known)
        self._pointers[location.id] = pointer
        return pointer

    def _name_again(self, sent: PointerPlan) -> None:
        """Give a plan that was sent earlier the tags and the description added since."""
        if missing := self.tags - sent.tags:
            sent.tag(*missing)
        if self.description not in (None, sent.description):
            sent.describe(str(self.description))

    def __call__(self, *args: Any) -> Nested:
        """Run the plan on the worker of its pointer arguments; without pointers, call the function here."""
        pointers = [leaf.child for leaf in leaves(args) if isinstance(getattr(leaf, "child", None), ObjectPointer)]
        for recorder in [pointer.location for pointer in pointers if isinstance(pointer.location, Recorder)]:
            self._require_function(recorder)
            return self._call(args)
        return find_place(self._pointers, args)(*args) if self._pointers and pointers else self._call(args)

    def _require_function(self, recorder: Recorder) -> None:
        """Raise if a function that is being recorded calls this plan, which has steps but no function."""
        if self.recording is not None and self.recording.examples is None:
            problem = f"calls the plan {self.name!r}, of which there are only the recorded steps"
            recorder.refuse(problem, "call the function that it was made of, or call the plan outside", recorder.where)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}{'' if self.is_built else ', not built'}>"

    def __str__(self) -> str:
        return self.code or repr(self)


def _require_shapes(shapes: Sequence[Nested] | None, dtypes: Sequence[object]) -> None:
    if shapes is None:
        return
    is_list = isinstance(shapes, list | tuple)
    if not is_list or not all(isinstance(shape, list | tuple) and all(map(_is_length, shape)) for shape in shapes):
        raise PlanShapesError(
            f"cannot record a plan with args_shape={shapes!r}: it must be a list with the shape of each argument; -1 "
            f"means any length, e.g. `args_shape=[(-1, 2), (1,)]`"
        )
    if len(dtypes) > len(shapes):
        raise PlanError(
            f"cannot record a plan with {len(dtypes)} dtypes for {len(shapes)} shapes: `args_dtypes` must not be "
            f"longer than `args_shape`"
        )


def _is_length(side: object) -> bool:
    return type(side) is int and side >= -1


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
    found, trace = None, error.__traceback__
    while trace is not None:
        if not is_library(trace.tb_frame.f_globals.get("__name__", "")):
            found = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return found


_DRAW = (
    "a plan would keep them for all calls; draw them with the framework, e.g. `torch.rand(())`, and choose with "
    "`torch.where`, or pass them as arguments"
)

_COUNT = "a plan would not count: it runs the recorded steps only; keep it in a tensor, e.g. a buffer, changed in place"


def _is_remote(leaf: object) -> bool:
    return isinstance(getattr(leaf, "child", None), PointerTensor)


def _send_state(recorder: Recorder, tensor: Tensor) -> Tensor:
    pointer = getattr(tensor, "child", None)
    return recorder.send_state(make_zeros(pointer) if isinstance(pointer, PointerTensor) else tensor)


def _example_of(leaf: object) -> Nested:
    """Return what to record in place of a tensor: a copy or, for a pointer, zeros of its form."""
    pointer = getattr(leaf, "child", None)
    return make_zeros(pointer) if isinstance(pointer, PointerTensor) else copy_if_plain(leaf)


def make_zeros(pointer: PointerTensor) -> Tensor:
    """Return a local tensor with the form of a remote one; recording does not need its values."""
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
    """Change a float slightly, to detect a step that has kept its value."""
    return (0.999 * leaf or 0.001) if type(leaf) is float else leaf


def _form_of(leaf: Tensor) -> Form | None:
    if type(leaf) is float:
        return None
    pointer = getattr(leaf, "child", None)
    seen = pointer.look() if isinstance(pointer, PointerTensor) else leaf
    return form(seen.shape, None, seen.dtype)


def _tensors_in(answer: Nested, recorder: Recorder) -> list[Tensor]:
    """Return the result tensors in an answer, each once, in the order of their ids in a call."""
    found: dict[Any, Tensor] = {}
    for leaf in leaves(answer):
        pointer = getattr(leaf, "child", None)
        if isinstance(pointer, PointerTensor) and pointer._id_at_location not in recorder.tape.inputs:
            found.setdefault(pointer._id_at_location, leaf)
    return list(found.values())


def _simplify_plan(plan: Plan, _context: Context) -> tuple[object, ...]:
    recording = plan._refresh(plan._require_recording())
    if any(isinstance(end_of(tensor), ObjectPointer) for tensor in recording.tensors):
        raise PlanError.elsewhere(plan.name)
    return recording.program, list(recording.tensors), plan._syft_tags, plan._syft_description


def _detail_plan(payload: Payload, _context: Context) -> Plan:
    program, tensors, tags, description = payload
    words = tags is None or (type(tags) is set and all(type(tag) is str for tag in tags))
    is_program = type(program) is Program and type(tensors) is list and len(tensors) <= len(program.state)
    if not (is_program and words and isinstance(description, str | None) and all(map(build_rule, tensors))):
        raise SerdeError("cannot read a plan: it needs a program, state, tags and a description (malformed message)")
    plan = Plan.from_program(program, tensors)
    plan._syft_tags, plan._syft_description = tags, description
    return plan


PointerPlan.make_plan = Plan.from_program
codecs.register(Codec(Plan, 335, _simplify_plan, _detail_plan, subclasses=True))
