"""Departure: the only way for objects to leave a worker, whatever the message.

    permit    the policy decides, then the rules about objects it withholds; a failed operation is an error
    record    the ledger: at once, or when the answer with which the objects leave is ready
    detach    without the graph, with the restrictions unless the owner lifted them

Then the caller hands over what ``leave`` returns: in the answer to a message, or to another worker with ``hand_to``.
``finish`` uses up the rules' permissions once the objects have left; ``undo`` gives them back otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from syft_core.departures import RULES, find_rules
from syft_core.exceptions import GetNotPermittedError
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of, frameworks_of_types
from syft_core.hook.rules import leaves
from syft_core.ledgers.entry import Entry
from syft_core.location import Location
from syft_core.messages import Message
from syft_core.peer import Id, Peer
from syft_core.tensors.private import restrict
from syft_core.values import Nested, Table, Tensor
from syft_core.workers.moving.transfer import ends_elsewhere, hand_over, is_tensor, rebuild
from syft_core.workers.party.status import FAILED, PRIVATE, RESTRICTED
from syft_core.workers.party.store import Stored, is_leaf
from syft_core.workers.party.worker import Stage
from syft_core.workers.road.failures import require_success
from syft_core.workers.road.procedure import execute, register_stages
from syft_core.workers.road.task import Task, attribute
from syft_core.workers.seeing.ledger import Departure, describe_departure
from syft_core.workers.seeing.permissions import Verb, refusal

if TYPE_CHECKING:
    from syft_core.workers.party.worker import Worker


class Leaving(Task):
    """The task of letting objects, their attributes, or values computed from them leave.

    Args:
        worker: the worker that they leave.
        verb: the verb for the policy: "read", "move" to another worker, or "sum" with results of other workers.
        message: the message that causes them to leave, possibly with its answer.
        peer: the peer that receives them, or has them sent.
        objects: the objects, each with the value that leaves.
        attrs: the attribute names of values that are attributes; an empty list means none.
        to: the worker that they are sent to; None if they leave with the answer, and are recorded when it is ready.
        reason: the reason for the ledger.
        shown: the ledger's description of a value computed from the objects; None if they leave themselves.
        kept: why an object may only leave by a rule, by position, whatever the policy says.
        asks_rules: whether rules may release objects that the policy withholds.
        error: raised on refusal, instead of an error with the reasons.
        named: the receivers for the ledger, if not the peer alone.
        hides_failures: whether a failed operation is not an error, because the receiver must not learn of it.
        sum: the facts for the ledger of a sum of several workers.

    """

    __slots__ = (
        "asks_rules", "attrs", "error", "hides_failures", "kept", "left", "message", "named", "objects", "reason",
        "reasons", "shown", "sum", "to", "verb",
    )  # fmt: skip

    def __init__(
        self,
        worker: Worker,
        verb: Verb,
        message: Message,
        peer: Peer,
        objects: Iterable[Departure],
        *,
        attrs: Sequence[str | None] = (),
        to: Id | None = None,
        reason: str = "",
        shown: Sequence[Departure] | None = None,
        kept: dict[int, str] | None = None,
        asks_rules: bool = True,
        error: Exception | None = None,
        named: Peer | None = None,
        hides_failures: bool = False,
        sum: Table | None = None,
    ) -> None:
        self.objects = list(objects)
        super().__init__(worker, peer, "leave", [departure.entry for departure in self.objects])
        self.verb, self.message, self.to, self.reason, self.shown = verb, message, to, reason, shown
        self.attrs = attrs or [None] * len(self.objects)
        self.kept = kept or {}
        self.status |= PRIVATE if kept else 0  # Rules are asked, whatever the policy says now.
        self.reasons: list[str] = []
        """Why rules do not cover the withheld objects."""
        self.named = peer if named is None else named
        self.asks_rules, self.error, self.hides_failures = asks_rules, error, hides_failures
        self.sum = sum
        self.left: list[Entry] = []
        """The recorded entries, if the objects are sent to another worker."""

    def cover(self, place: int, departure: Departure) -> None:
        """Let an object leave that the policy withholds."""
        self.objects[place] = departure
        del self.kept[place]


def find_leaving(worker: Worker, wanted: Iterable[tuple[Id, str | None]]) -> list[Departure]:
    """Return stored objects, or an attribute of each, as they would leave."""
    found = []
    for id, attr in wanted:
        entry = worker.object_store.entry(id)
        found.append(Departure(entry, entry.value if attr is None else attribute(entry.value, attr)))
    return found


def leave(leaving: Leaving) -> list[Any]:
    """Return the departing values, recorded and detached; raise unless all of them may leave."""
    return execute(leaving)  # type: ignore[no-any-return]  # the result of `_detach_all`


def hand_to(destination: Location, message: Message, leaving: Leaving) -> Nested:
    """Send departing objects to another worker; if it fails, record that they may not have arrived."""
    has_arrived = False
    try:
        with leaving.worker.waiting():
            answer = destination.ask(message)
            has_arrived = True
        return answer
    except BaseException as error:
        if not has_arrived:
            withdraw(leaving, error)
        raise


def withdraw(leaving: Leaving, error: BaseException) -> None:
    """Record that objects recorded as departed may not have arrived."""
    leaving.worker.ledger.withdraw(leaving.left, type(error).__name__)


# --- permit


def permit(proceed: Stage, leaving: Leaving) -> Nested:
    """Ask the policy about each object, and the rules about those it withholds."""
    worker, verb, peer = leaving.worker, leaving.verb, leaving.peer
    for place, departure in enumerate(leaving.objects):
        entry, value = departure.entry, departure.value
        if place in leaving.kept:
            continue
        if (why := refusal(worker, verb, entry, peer, value)) is not None:
            leaving.kept[place] = why
            continue
        _require_success(leaving, entry)
        if leaving.shown is None:
            value = drop_refused_gradient(worker, verb, entry, peer, value)
        leaving.objects[place] = departure._replace(value=value)
    if leaving.kept:
        _ask_rules(leaving)
    return proceed(leaving)


def _require_whole(proceed: Stage, leaving: Leaving) -> Nested:
    for departure in leaving.objects:
        _require_success(leaving, departure.entry)
    return proceed(leaving)


def _require_success(leaving: Leaving, entry: Stored) -> None:
    if not leaving.hides_failures:
        require_success(entry, entry.id, leaving.worker)


def _ask_rules(leaving: Leaving) -> None:
    """Ask the rules about everything the policy withholds; raise unless they cover all of it."""
    if leaving.asks_rules:
        leaving.worker.covered.add(id(leaving.message))
        for rule in find_rules():
            rule.cover(leaving)
            if not leaving.kept:
                return
    if leaving.error is not None:
        raise leaving.error
    place, why = next(iter(leaving.kept.items()))
    why = "; ".join([why, *leaving.reasons])
    raise GetNotPermittedError.to(str(leaving.peer), leaving.objects[place].entry.id, str(leaving.worker.id), why)


# --- record


def record(proceed: Stage, leaving: Leaving) -> Nested:
    """Write departures to the ledger, or hold them until the answer is ready, which may still fail."""
    worker, shown = leaving.worker, leaving.objects if leaving.shown is None else leaving.shown
    if leaving.to is not None:
        left = describe_departure(shown, leaving.named, str(leaving.to), leaving.reason)
        leaving.left = [entry._replace(sum=leaving.sum) for entry in left] if leaving.sum is not None else left
        worker.ledger.record(*leaving.left)
        return proceed(leaving)
    if worker.is_handing_over and not is_frozen([departure.value for departure in leaving.objects]):
        worker.is_handing_over = False  # Other workers may now lend or copy objects.
    left = describe_departure(shown, leaving.named, str(leaving.peer.id), leaving.reason)
    worker.ledger.hold(leaving.message, left)
    return proceed(leaving)


def record_failure(worker: Worker, entry: Stored, peer: Peer, reason: str) -> None:
    """Record that a peer learned of a failure computed from private objects."""
    worker.ledger.record(*describe_departure([Departure(entry, None)], peer, str(peer.id), reason))


# --- detach


def _detach_all(leaving: Leaving) -> list[Any]:
    return [_detach(leaving, departure) for departure in leaving.objects]


def _detach(leaving: Leaving, departure: Departure) -> Tensor:
    """Return a value without its graph, and with its restrictions unless the owner lifted them."""
    worker, (entry, value, grant, _) = leaving.worker, departure
    if grant is not None or value is None or leaving.shown is not None:
        return value
    outside = freeze(worker, value if leaving.verb == "move" else leave_graph(value))
    return outside if entry.access is None else restrict(outside, entry.access)


def drop_refused_gradient(worker: Worker, verb: Verb, entry: Stored, sender: Peer, value: Tensor) -> Tensor:
    """Return a departing value, or a copy without its gradient if the policy withholds that."""
    gradient = None if worker.custom_policy is None else _gradient_of(value)
    if gradient is None or refusal(worker, verb, entry, sender, gradient) is None:
        return value
    return copy_without_gradient(worker, value)


def _gradient_of(value: object) -> Tensor:
    end = plain_end(value)
    return end.grad if end is not None and is_leaf(end) else None


def copy_without_gradient(worker: Worker, value: object) -> Tensor:
    """Return a copy of a value without its gradient."""
    copy = hand_over(value, worker)
    if _gradient_of(copy) is not None:
        plain_end(copy).grad = None
    return copy


def leave_graph(value: object) -> Tensor:
    """Return a value without its graph, which stays on the worker."""
    framework = frameworks_of_types.get(type(value))
    if framework is not None:
        return framework.detach(value)
    end = plain_end(value)
    if end is None:
        return value
    outside = framework_of(end).detach
    if end is value:
        return outside(value)
    return value if outside(end) is end else rebuild(value, outside)


def freeze(worker: Worker, value: Tensor) -> Tensor:
    """Copy a departing value: private values could be written into it before it is encoded.

    Unless it is handed over at once, the worker's lock is not held during encoding. Another connection of the same
    client may change the object, and others may store the first private object of the worker.
    """
    return hand_over(value, worker) if not worker.is_handing_over and is_frozen(value) else value


def is_frozen(value: Tensor) -> bool:
    """Return whether ``freeze`` copies a value, or all values of a list; it copies tensors, but not pointers."""
    values = value if type(value) is list else [value]
    return all(is_tensor(part) and not ends_elsewhere(part) for part in values)


# --- hand over


def require_departed(worker: Worker, message: Message, answer: object) -> None:
    """Raise if an answer contains objects, and the handler has not let them leave."""
    if answer is None or id(message) in worker.ledger.held:
        return
    if any(is_tensor(leaf) or ends_elsewhere(leaf) for leaf in leaves(answer)):
        kind = type(message).__name__
        raise TypeError(f"cannot answer {kind}: its handler returns an object without `leave`; return what it returns")


def finish(worker: Worker, message: Message) -> None:
    """Use up the permissions of objects that left with the answer to a message."""
    if id(message) in worker.covered:
        worker.covered.discard(id(message))
        for rule in RULES.values():
            rule.finish(worker, message)


def undo(worker: Worker, messages: Iterable[Message]) -> None:
    """Cancel the departure of objects that did not leave with the answers to messages."""
    covered = [message for message in messages if id(message) in worker.covered]
    worker.covered.difference_update(map(id, covered))
    for rule in RULES.values() if covered else ():
        rule.undo(worker, covered)
    worker.ledger.forget(messages)


def _list_stages(_op: None, status: int, _framework: None) -> list[Stage | None]:
    whole = _require_whole if status & FAILED else None
    return [permit if status & RESTRICTED else whole, record, _detach_all]


register_stages("leave", _list_stages)
