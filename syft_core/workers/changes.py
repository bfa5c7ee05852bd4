"""What an operation does besides making results: it changes targets, gradients, running statistics, shared memory.

Restrictions and lineage must follow the data there too. The common operation does nothing of the kind, and does not
come here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from syft_core.exceptions import SyftError, ValueRefusedError
from syft_core.hook.attributes import FrameworkAttributes, Op, words
from syft_core.hook.dispatch import framework_of
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import is_flat, leaves
from syft_core.messages import Run
from syft_core.pointers.meeting import CHANGES_FIRST
from syft_core.pointers.object_pointer import ObjectPointer, new_id
from syft_core.tensors.private import restricted
from syft_core.workers.ledger import record
from syft_core.workers.permissions import may_leave, require_permission, unless_private
from syft_core.workers.store import Lineage, Stored, lineage_of

CHANGES_UNCOUNTED = words(
    "batch_norm native_batch_norm cudnn_batch_norm miopen_batch_norm instance_norm batch_norm_update_stats "
    "batch_norm_gather_stats batch_norm_gather_stats_with_counts fused_moving_avg_obs_fake_quant"
)
"""Operations that change running statistics among their arguments, which torch does not count as a change."""
CHANGES_SOME = CHANGES_UNCOUNTED | words("embedding embedding_bag")
"""Operations that may change one of their arguments on the way: running statistics, renormed weights."""
CHANGES_SEVERAL = words("_amp_update_scale")
"""Operations in place that change more than their first argument."""
TELLS_FORM = words(
    "nonzero argwhere flatnonzero masked_select unique unique_consecutive unique_dim unique_all unique_counts "
    "unique_inverse unique_values bincount one_hot compress extract trim_zeros intersect1d setdiff1d setxor1d union1d "
    "to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc coalesce _nnz indices values "
    "histogram histogramdd histogram2d histogram_bin_edges _pack_padded_sequence _pad_packed_sequence"
)
"""Operations whose results have a form that depends on values."""
TELLS_BY_TENSOR = words(
    "repeat_interleave repeat tile tensor_split split split_with_sizes array_split hsplit vsplit dsplit delete insert "
    "view reshape expand narrow unflatten resize new_zeros new_ones new_full new_empty new_tensor interpolate pad "
    "combinations full select_scatter slice_scatter"
)
"""The same, where one of the arguments that are sizes or positions is itself a tensor."""
UNSET = words("empty_like new_empty new_empty_strided")
"""Operations that give memory as they find it: what others have left there."""
BEYOND = words("as_strided as_strided_copy as_strided_scatter resize resize_as _resize_output")
"""Operations that look beyond a tensor into the memory of which it may be a part."""
WATCHED = (
    UNSET
    | BEYOND
    | words("backward where __getitem__ retain_grad")
    | CHANGES_FIRST
    | CHANGES_SOME
    | TELLS_FORM
    | TELLS_BY_TENSOR
)
"""Operations that need a closer look even where nothing is private."""

Compute = Callable[[], Any]


def run_watched(
    worker: Any, op: Op, message: Run, sender: Any, args: Any, kwargs: Any, parents: list[Stored], compute: Compute
) -> Any:
    """Run an operation, and let restrictions and lineage follow whatever it changes."""
    if op.operation == "grad" and len(args) == 2 and args[1] is None:  # A gradient that is taken away changes neither.
        result = compute()
        _note_autograd(worker, op, message, parents)
        return result
    if not may_leave(worker, parents, sender):
        compute = _unread(worker, op, message, sender, args, kwargs, parents, compute)
    if op.operation in UNSET:
        return _zeroed(compute())
    if op.operation == "backward":
        return _run_backward(worker, parents, compute)
    if op.operation in BEYOND:
        compute = _within(worker, op, parents, compute)
    result = _run_noting(worker, op, message, parents, compute)
    if op.operation in _OF_AUTOGRAD:
        _note_autograd(worker, op, message, parents)
    return result


_OF_AUTOGRAD = words("requires_grad retain_grad grad data")


def _note_autograd(worker: Any, op: Op, message: Run, parents: list[Stored]) -> None:
    """Note that an object may get gradients from now on, or that something about it was set."""
    for arg in message.args:  # A gradient that is set is among them: a backward pass may add to it.
        if isinstance(arg, ObjectPointer):
            worker.object_store.learning[arg._id_at_location] = worker.object_store.entry(arg._id_at_location)
    if op.spelling != "setter":
        return
    if op.operation != "grad":
        worker.forms_changed += 1
    elif parents[0].pointers > 1:  # The only pointer there is knows what it has set.
        worker.gradients_changed += 1


def _run_noting(worker: Any, op: Op, message: Run, parents: list[Stored], compute: Compute) -> Any:
    """Run an operation, and find out which of its arguments it changes."""
    access, _ = lineage = lineage_of(parents)
    alike = worker.policy is unless_private and all(parent.access is access for parent in parents)
    if alike and op.operation not in CHANGES_SOME:
        result = compute()
        if op.operation in CHANGES_FIRST:
            note_changes(worker, op, message, parents, lineage)
        return result
    before = [_version(parent.value) for parent in parents]
    uncounted = parents[1:] if op.operation in CHANGES_UNCOUNTED else ()
    copies = [(parent, _copy_of_statistics(parent.value)) for parent in uncounted]
    training = any(leaf is True for leaf in leaves((message.args, message.kwargs)))
    results: list[Any] = []
    started = True
    try:
        result = compute()
        results += [end for leaf in leaves(result) if (end := _end(leaf)) is not None]
    except SyftError:
        started = False
        raise
    finally:  # What fails may have changed something before.
        for parent, version in zip(parents, before, strict=True):
            if version is None or _version(parent.value) != version or _is_uncounted_target(parent, results):
                _change(worker, parent, lineage)
        for parent, copy in copies:
            # Statistics may change to what they were: to tell that apart would tell what they are.
            if copy is not None and (training or not (copy == _end(parent.value)).all()):
                _change(worker, parent, lineage)
        changes = op.inplace or op.operation in CHANGES_FIRST or message.kwargs.get("out") is not None
        if started and changes:
            note_changes(worker, op, message, parents, lineage)
    return result


def note_changes(worker: Any, op: Op, message: Run, parents: list[Stored], lineage: Lineage) -> None:
    """Let what an operation changed take over the lineage of all its operands."""
    for target in _targets(worker, op, message, parents):
        _change(worker, target, lineage)


def run_marking(worker: Any, op: Op, message: Run, parents: list[Stored], lineage: Lineage, compute: Compute) -> Any:
    """Run an operation in the place of one that failed, and let all that it changes, or was to change, show it."""
    before = [_version(parent.value) for parent in parents]
    result = compute()
    changed = [parent for parent, old in zip(parents, before, strict=True) if _version(parent.value) != old]
    if op.inplace or op.operation in CHANGES_FIRST or message.kwargs.get("out") is not None:
        changed += _targets(worker, op, message, parents)
    for entry in changed:
        _change(worker, entry, lineage)
        _spread(worker, entry)
    return result


def _targets(worker: Any, op: Op, message: Run, parents: list[Stored]) -> list[Stored]:
    """Return the objects that an operation changes."""
    if message.kwargs.get("out") is not None:
        return [
            worker.object_store.entry(leaf._id_at_location)
            for leaf in leaves(message.kwargs["out"])
            if isinstance(leaf, ObjectPointer)
        ]
    if message.args and isinstance(message.args[0], ObjectPointer) and op.operation not in CHANGES_SEVERAL:
        return parents[:1]
    return parents  # Among others lists of tensors, of which an optimizer's step changes several.


def _change(worker: Any, target: Stored, lineage: Lineage) -> None:
    access, sources = lineage
    before, target.access, target.sources = target.access, access, sources
    target.touched = True
    if access != before or worker.policy is not unless_private:
        _spread(worker, target)


def _spread(worker: Any, changed: Stored) -> None:
    """Let everything that shares memory with an object that was changed be as private."""
    memory = set(_memory(changed.value))
    for entry in worker.object_store.entries():
        if entry is not changed and not memory.isdisjoint(_memory(entry.value)):
            entry.access, entry.sources = lineage_of([entry, changed])
            entry.touched = True


def _memory(value: Any) -> Iterator[Any]:
    end = _end(value)
    if end is None:
        return
    framework = framework_of(end)
    yield framework.memory_of(end)
    if _keeps_gradient(end) and end.grad is not None:
        yield framework.memory_of(end.grad)


def _end(value: Any) -> Any:
    """Return what a chain ends in, or None when that is elsewhere, or no tensor."""
    if is_framework_tensor(type(value)):
        return value
    while (child := getattr(value, "child", None)) is not None:
        value = child
    return value if is_framework_tensor(type(value)) else None


def _version(value: Any) -> int | None:
    """Return how often a tensor was changed, or None where that is not counted though it may have been."""
    end = _end(value)
    return 0 if end is None else _count(end)


def _count(end: Any) -> int | None:
    """Return how often a plain tensor was changed.

    Tensors of inference mode do not count; numpy does not either, but changes nothing without saying so.
    """
    try:
        return end._version  # type: ignore[no-any-return]  # torch's own count
    except RuntimeError:
        return None
    except AttributeError:
        return 0


def _is_uncounted_target(parent: Stored, results: list[Any]) -> bool:
    """Say whether an operation returned an argument itself: that is how numpy treats an ``out`` given by position."""
    end = _end(parent.value)
    return not hasattr(end, "_version") and any(end is result for result in results)


def _copy_of_statistics(value: Any) -> Any:
    end = _end(value)
    return None if end is None or getattr(end, "requires_grad", False) else framework_of(end).copy(end)


def _unread(
    worker: Any, op: Op, message: Run, sender: Any, args: Any, kwargs: Any, parents: list[Stored], compute: Compute
) -> Compute:
    """Keep an operation from telling, by the form of its result or by failing, values that the sender may not have."""
    if _tells_form(op, args, kwargs):
        raise ValueRefusedError.form(op.name, str(worker.id))
    elsewhere = any(_end(stored.value) is None and not may_leave(worker, [stored], sender) for stored in parents)
    if elsewhere or worker.attributes_of(message.framework).needs_values(op, args, kwargs):
        raise ValueRefusedError.undecided(op.name, str(worker.id))
    readable = readable_by(worker, message, sender, parents)

    def compute_unread() -> Any:
        with unread(worker, op, message, args, kwargs, readable):
            return compute()

    return compute_unread


def readable_by(worker: Any, message: Run, sender: Any, parents: list[Stored]) -> set[Any]:
    """Return the memory of all tensors in a call that the sender may have."""
    own = [stored.value for stored in parents if may_leave(worker, [stored], sender)]
    readable = {memory for value in [*own, *leaves((message.args, message.kwargs))] for memory in _memory(value)}
    readable -= {
        memory for stored in parents if not may_leave(worker, [stored], sender) for memory in _memory(stored.value)
    }
    return readable


def unread(
    worker: Any, op: Op, message: Run, args: Any, kwargs: Any, readable: set[Any]
) -> AbstractContextManager[Any]:
    """Return a context in which an operation is refused if it reads anything else to decide on a form."""
    framework: FrameworkAttributes = worker.attributes_of(message.framework)
    return framework.unread(op, args, kwargs, readable, ValueRefusedError.form(op.name, str(worker.id)))


# --- memory


def _zeroed(result: Any) -> Any:
    """Return memory without what others have left in it."""
    end = _end(result)
    (end.detach() if hasattr(end, "detach") else end)[...] = 0
    return result


def _within(worker: Any, op: Op, parents: list[Stored], compute: Compute) -> Compute:
    """Keep an operation from looking into memory that its operand is a part of, or that others have left."""
    ends = [end for parent in parents if (end := _end(parent.value)) is not None]
    if any(framework_of(end).is_part(end) for end in ends):
        raise ValueRefusedError.beyond(op.name, str(worker.id))
    if not (op.inplace and ends):
        return compute
    shown = ends[0].numel()
    framework_of(ends[0]).own_memory(_sharing(worker, ends[0]))

    def compute_and_clear() -> Any:
        result = compute()
        ends[0].view(-1)[shown:] = 0
        return result

    return compute_and_clear


def _sharing(worker: Any, end: Any) -> list[Any]:
    """Return the tensors on a worker that share the memory of ``end``, itself among them."""
    ends = [found for entry in worker.object_store.entries() if (found := _end(entry.value)) is not None]
    memory = framework_of(end).memory_of(end)
    return [found for found in ends if framework_of(found).memory_of(found) == memory]


# --- gradients


class _Learner(NamedTuple):
    """An object before a backward pass, with its gradient, if it keeps one."""

    entry: Stored
    end: Any
    version: int | None
    grad: Any
    grad_version: int | None
    copy: Any

    def got_gradient(self) -> bool:
        """Say whether it has another gradient now, or the same one was changed."""
        grad = self.end.grad if self.keeps_gradient else None
        return grad is not self.grad or (grad is not None and _count(grad) != self.grad_version)

    @property
    def keeps_gradient(self) -> bool:
        """Whether a backward pass may give it a gradient."""
        return _keeps_gradient(self.end)


def _run_backward(worker: Any, parents: list[Stored], compute: Compute) -> Any:
    before = [found for entry in worker.object_store.learners() if (found := _learner(entry)) is not None]
    changed: list[_Learner] = []
    try:
        result = compute()
    finally:  # What fails may have changed some gradients before.
        worker.gradients_changed += 1
        for old in before:
            if old.got_gradient():
                changed.append(old)
            elif _count(old.end) == old.version:  # It is no gradient itself either, of a tensor that is gone.
                continue
            _change(worker, old.entry, lineage_of([old.entry, *parents]))
    for old in changed:
        if old.entry.origin is not None:
            _give_back(worker, old)
    return result


def _keeps_gradient(end: Any) -> bool:
    return getattr(end, "requires_grad", False) is True and (end.is_leaf or end.retains_grad)


def _learner(entry: Stored) -> _Learner | None:
    end = _end(entry.value)
    if end is None:
        return None
    grad = end.grad if _keeps_gradient(end) else None
    if grad is None:
        return _Learner(entry, end, _count(end), None, None, None)
    copy = framework_of(end).copy(grad) if entry.origin is not None else None
    return _Learner(entry, end, _count(end), grad, _count(grad), copy)


def _give_back(worker: Any, old: _Learner) -> None:
    """Send the gradient that an object just got to the object that it is a copy of; backward goes on there."""
    origin = old.entry.origin
    receiver = origin.location
    gradient = old.end.grad if old.copy is None else old.end.grad - old.copy
    user = worker.identity_of(receiver, None)
    require_permission(worker.policy, old.entry, user, old.end.id, str(worker.id))
    record(worker, old.entry, old.end.id, user, str(receiver.id), "its gradient went back")
    framework = origin.framework
    # What failed is not told to who started the pass, so what came of it goes on, but is for nobody there.
    users = frozenset() if old.entry.failures and old.entry.access is not None else old.entry.access
    sent = restricted(worker.hand_over(gradient.detach(), receiver), users)
    receiver.ask(Run(framework.ALIAS, framework.method("backward").name, (origin, sent), {}, new_id()), worker)


# --- forms


def marks(target: Any) -> Any:
    """Return something that differs when an operation has changed the form of its target."""
    if is_framework_tensor(type(target)):
        return target.shape, getattr(target, "requires_grad", False)
    if not is_flat(type(target)):
        return [marks(leaf) for leaf in leaves(target)]
    return None if (end := _end(target)) is None else marks(end)


def _tells_form(op: Op, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Say whether the form of the result may depend on values."""
    operation = op.operation
    if operation in TELLS_FORM:
        return True
    if operation == "where":
        return len(args) + len(kwargs) == 1
    if operation == "__getitem__":
        return any(map(_is_mask_or_bound, args[1] if type(args[1]) is tuple else args[1:]))
    return operation in TELLS_BY_TENSOR and any(hasattr(leaf, "ndim") for leaf in leaves((args[1:], kwargs)))


def _is_mask_or_bound(index: Any) -> bool:
    if type(index) is slice:
        return any(hasattr(bound, "ndim") for bound in (index.start, index.stop, index.step))
    return any(str(getattr(leaf, "dtype", "")).rpartition(".")[2] in ("bool", "uint8") for leaf in leaves(index))
