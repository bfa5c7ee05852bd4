"""Predict the effect of a command, so that the client need not wait for it.

This applies to workers in other processes. If the structure and the forms of a result follow from the forms of the
operands, the client creates pointers to it and tells the command; otherwise it asks. The backend infers forms once per
signature (``FrameworkAttributes.infer``).

The client that calls ``backward`` predicts gradients, too: every pointer to a tensor inside a graph has a *history*,
nested tuples of the histories of its operands, with a weak reference to the pointer for each leaf.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from syft_core.exceptions import SyftError
from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.dispatch import framework_of
from syft_core.hook.forms import Form, is_constant, predictions, remember_prediction
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import is_flat, leaves, map_leaves
from syft_core.location import Histories, Location
from syft_core.messages import Run
from syft_core.values import Nested, Tensor

if TYPE_CHECKING:
    from syft_core.pointers.pointer_tensor import PointerTensor


class Prediction(NamedTuple):
    """The predicted effect of a call: its result with forms for tensors, and the operands whose form changes."""

    result: Nested
    tensors: int
    changed: tuple[tuple[int, Form], ...] = ()
    """The new forms of operands, by their position among the pointers of the call."""
    spreads: bool = False
    """Whether the target became part of a graph, which may affect tensors that share its memory."""
    plain: bool = True
    """Whether the history determines which leaves receive gradients through it."""
    shared: tuple[int, ...] = ()
    """The positions of operands that a result is, or shares memory with."""


UNCERTAIN: tuple[object, ...] = ("uncertain",)
"""The history of a tensor that may depend on unknown leaves."""


def predict(
    pointer_type: type[PointerTensor], op: Op, framework: FrameworkAttributes, args: Nested, kwargs: Nested
) -> Prediction | None:
    """Return the predicted effect of a call, or None if it cannot be predicted."""
    state = framework.state()
    if state is None:
        return None
    parts = _parts(pointer_type, op, (*args, *kwargs.values()) if kwargs else args)
    if parts is None:
        return None
    key = (op, state, *kwargs, *parts)
    known = predictions.get(key)
    if known is None:
        known = remember_prediction(key, _infer(pointer_type, op, framework, args, kwargs))
    return known or None


def _infer(
    pointer_type: type[PointerTensor], op: Op, framework: FrameworkAttributes, args: Nested, kwargs: Nested
) -> Prediction | Literal[False]:
    before = [leaf.known_form for leaf in leaves((args, kwargs)) if type(leaf) is pointer_type]
    with_forms = map_leaves(lambda leaf: leaf.known_form if type(leaf) is pointer_type else leaf, (args, kwargs))
    inferred = framework.infer(op, *with_forms)
    if inferred is None:
        return False
    result, after, plain, shared = inferred
    changed = tuple(
        [(place, new) for place, (old, new) in enumerate(zip(before, after, strict=True)) if new is not old]
    )
    spreads = any(new.requires_grad and not new.is_leaf for _, new in changed)
    if op.inplace or op.spelling == "setter" or kwargs.get("out") is not None:
        return Prediction(None, 0, changed, spreads, plain)
    parts = leaves(result)
    if not all(type(part) is Form or is_constant(part) for part in parts):
        return False
    count = sum(1 for part in parts if type(part) is Form)
    # Other results without tensors are answers, which only the worker can give.
    return Prediction(result, count, changed, spreads, plain, shared) if count or result is None else False


def run(
    pointer_type: type[PointerTensor], op: Op, pointer: PointerTensor, message: Run, args: Nested, kwargs: Nested
) -> tuple[Nested, bool, tuple[int, ...]]:
    """Send a command, and return its result with forms or placeholders for tensors.

    Tell the command if its result can be predicted, otherwise ask. Also return the prediction's ``plain`` and
    ``shared``.
    """
    location = pointer._location
    if op.accumulates:
        _run_backward(pointer_type, op, pointer, message, args, kwargs)
        return None, True, ()
    if op.retains:
        location.uncertain_gradients = True
    prediction = predict(pointer_type, op, pointer.framework, args, kwargs)
    if prediction is None and ask_forms(location, leaves((args, kwargs)), pointer_type):
        prediction = predict(pointer_type, op, pointer.framework, args, kwargs)
    if prediction is None:
        if op.targets(args, kwargs) and len(history_of(pointer_type, args, kwargs)) > 2:
            location.forget_histories()
        return location.ask(message), not any(leaf is True for leaf in leaves((args, kwargs))), ()
    message.count = prediction.tensors
    location.tell(message)
    if prediction.changed:
        _note_changes(pointer_type, prediction, location, args, kwargs)
    if len(args) > op.spare and (op.each or not prediction.changed) and _joins_graphs(pointer_type, op, args, kwargs):
        location.forget_histories()
    return prediction.result, prediction.plain, prediction.shared


def _joins_graphs(pointer_type: type[PointerTensor], op: Op, args: Nested, kwargs: Nested) -> bool:
    forms = [target.known_form for target in op.targets(args, kwargs) if type(target) is pointer_type]
    are_results = any(form is None or (form.requires_grad and not form.is_leaf) for form in forms)
    return are_results and len(history_of(pointer_type, args, kwargs)) > 2


def ask_forms(location: Location, operands: Sequence[object], pointer_type: type[PointerTensor]) -> bool:
    """Ask for unknown forms of operands, such as objects found by a search; return whether there were any.

    Otherwise this command, and every other one on these objects, would have to wait.
    """
    pointers = [leaf for leaf in operands if type(leaf) is pointer_type and leaf.whole is None]
    # Forgotten forms may have changed together with others, which the answer would not show.
    unknown = [leaf for leaf in pointers if leaf._known is None and leaf._aliases is None]
    unknown = [leaf for leaf in unknown if leaf._seen != location.form_epoch]
    if not unknown or unknown[0].framework.state() is None:
        return False
    try:
        forms = location.describe([leaf._id_at_location for leaf in unknown])
    except SyftError:  # The command fails for the same reason.
        return False
    for leaf, form in zip(unknown, forms, strict=True):
        is_certain = form is not None and form.strides is not None and not form.requires_grad
        leaf.remember_form(form if is_certain else None)  # A leaf of a graph has a history, which is not known.
    return True


def _note_changes(
    pointer_type: type[PointerTensor], prediction: Prediction, location: Location, args: Nested, kwargs: Nested
) -> None:
    operands = [leaf for leaf in leaves((args, kwargs)) if type(leaf) is pointer_type]
    targets = [(operands[place], new) for place, new in prediction.changed]
    if prediction.spreads or any(target.is_aliased for target, _ in targets):
        location.forget_forms()
    history = history_of(pointer_type, args, kwargs) if prediction.plain else UNCERTAIN
    for target, new in targets:
        if target.whole is None:
            target.forget_aliases()
            target.remember_form(new)
            target._history = history if new.requires_grad and not new.is_leaf else None


# --- gradients


def history_of(pointer_type: type[PointerTensor], args: Nested, kwargs: Nested) -> tuple[object, ...]:
    """Return the history of a call's results: the histories of all operands that are part of a graph.

    A history that is not empty starts with the ``Histories`` of the location.
    """
    found: list[object] = []
    for arg in (*args, *kwargs.values()) if kwargs else args:
        if type(arg) is pointer_type:
            _add_history(arg, found)
        elif not is_flat(type(arg)):
            for leaf in leaves(arg):
                if type(leaf) is pointer_type:
                    _add_history(leaf, found)
    return tuple(found)


def history_of_operand(
    pointer_type: type[PointerTensor], form: Form, args: Nested, kwargs: Nested
) -> tuple[object, ...]:
    """Return the history of the operand that a call returned; it is uncertain if several have this form."""
    alike = [leaf for leaf in leaves((args, kwargs)) if type(leaf) is pointer_type and leaf.known_form is form]
    return history_of(pointer_type, alike, {}) if len(set(map(id, alike))) == 1 else UNCERTAIN


def _add_history(pointer: PointerTensor, found: list[object]) -> None:
    is_known = pointer.whole is None and pointer._seen == pointer._location.form_epoch
    known = pointer._known if is_known else pointer.known_form
    if not found and (known is None or known.requires_grad):
        found.append(pointer._location.histories)
    if known is None:
        found.append(UNCERTAIN)
    elif known.requires_grad:
        if known.is_leaf:
            found.append(weakref.ref(pointer))
        if pointer.is_operand or not known.is_leaf:
            found.append(pointer._history or UNCERTAIN)


def _run_backward(
    pointer_type: type[PointerTensor], op: Op, pointer: PointerTensor, message: Run, args: Nested, kwargs: Nested
) -> None:
    """Run a backward pass, and remember which leaves have gradients afterwards.

    Wait for a pass that continues on other workers: only waiting guarantees the order of later commands there.
    """
    location, framework = pointer._location, pointer.framework
    roots, targets, plain = framework.parse_backward(op, args, kwargs)
    graph = _Graph()
    if targets is None:
        graph.follow(history_of(pointer_type, (roots,), {}))
    else:
        graph.leaves = [leaf for leaf in leaves(targets) if type(leaf) is pointer_type]
        graph.crosses = any(leaf._origin is not None for leaf in graph.leaves)
    if location.uncertain_gradients or not plain or any(leaf.is_aliased for leaf in graph.leaves):
        graph.is_certain = False
    if graph.crosses or not graph.is_certain:
        location.ask(message)
    else:
        message.count = 0
        location.tell(message)
    if not graph.is_certain:
        location.client.forget_gradients()
        return
    for leaf in graph.leaves:
        known = leaf.known_form
        if known is None or known.requires_grad:
            leaf.forget_aliases()
            leaf.remember_gradient(None if known is None else framework.form_of_gradient(known))


def link_aliases(pointer_type: type[PointerTensor], result: Nested, shared: tuple[int, ...], *given: Nested) -> None:
    """Connect the results of a call with the operands that they share memory with."""
    operands = [leaf for leaf in leaves(given) if type(leaf) is pointer_type]
    first, *others = [operands[place] for place in shared]
    for new in [leaf for leaf in leaves(result) if type(leaf) is pointer_type]:
        new._gradient_seen = -1  # It may be an operand that has a gradient.
        others.append(new)
    for other in others:
        first.join_aliases(other)


class _Graph:
    """The known leaves that a backward pass reaches."""

    def __init__(self) -> None:
        self.leaves: list[PointerTensor] = []
        self.is_certain = True
        """Whether these are all leaves."""
        self.crosses = False
        """Whether the pass continues on another worker, because a leaf is a copy that sends its gradient back."""

    def follow(self, history: tuple[object, ...]) -> None:
        """Collect the leaves of a history."""
        seen: set[int] = set()
        waiting: list[Any] = [history]
        while waiting:
            node = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if node is UNCERTAIN:
                self.is_certain = False
            elif type(node) is Histories:
                self.is_certain &= node.are_complete
            elif type(node) is tuple:
                waiting.extend(node)
            elif (leaf := node()) is not None:
                self.leaves.append(leaf)
                if leaf._origin is not None:
                    self.crosses = True
                    waiting.append(leaf._origin)


# --- signatures


def _parts(pointer_type: type[PointerTensor], op: Op, args: Iterable[Nested]) -> list[object] | None:
    """Return the parts of a signature: forms of tensors, types of floats, other arguments unchanged.

    Return None if one of them is unknown.
    """
    parts: list[object] = []
    for arg in args:
        cls = type(arg)
        part: object
        if cls is pointer_type:
            part = arg._known if arg.whole is None and arg._seen == arg._location.form_epoch else arg.known_form
        elif cls is int or arg is None:
            parts.append(arg)
            continue
        elif cls is float or cls is complex:
            part = (cls, arg) if op.shape_depends_on_floats else cls
        elif cls is bool or cls is str:
            part = (cls, arg)
        elif is_flat(cls):
            part = _leaf(arg)
        else:
            items = (arg.start, arg.stop, arg.step) if cls is slice else arg
            inner = None if isinstance(arg, dict) else _parts(pointer_type, op, items)
            part = None if inner is None else (cls, *inner)
        if part is None:
            return None
        parts.append(part)
    return parts


def _leaf(leaf: Tensor) -> object:
    cls = type(leaf)
    if is_framework_tensor(cls):
        return framework_of(leaf).form_of(leaf)
    return (cls, leaf) if is_constant(leaf) else None
