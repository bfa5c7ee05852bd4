"""WireLocation: the location of a worker that receives frames; the base of all transports.

A command whose results the client can infer is *told*: it is added to a batch, and the client does not wait for the
reply. A batch is sent immediately if none is in flight, soon if only one is, otherwise when it is full. A call that
waits for a reply first sends all buffered commands, also to other workers, so that they compute meanwhile. Replies
arrive in the order of the batches.
"""

from __future__ import annotations

import atexit
import contextlib
import sys
import threading
import weakref
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import Any, NamedTuple

from syft_core.exceptions import MessageSizeError, ObjectNotFoundError, SessionLostError, WorkerError
from syft_core.hook.forms import Form
from syft_core.hook.hook import FrameworkHook, find_line_of_program
from syft_core.location import Location, Party, raise_error
from syft_core.messages import Batch, Describe, Failure, Message, Release, Reply, Run
from syft_core.peer import Id, Peer, behalf
from syft_core.printing import printable
from syft_core.serde import Context, frames, from_frames
from syft_core.serde.layout import Frame
from syft_core.values import Outcome
from syft_core.workers.addresses.remote import TensorPlace
from syft_core.workers.addresses.results import from_named
from syft_core.workers.moving.transfer import attach_leases
from syft_core.workers.party.worker import MAX_POISONED
from syft_core.workers.seeing.tracing import record, traces

MAX_BUFFERED = 64
"""The number of buffered commands that are sent as one batch."""
REPLY_POLL = 0.001
"""The polling interval for replies, in seconds; polling costs more than buffering a command."""
LEAD = 0.0005
"""Seconds after which a second batch is sent while one is in flight, so that the worker need not wait for it."""
WINDOW = 64
"""The maximum number of batches in flight; another one waits for a reply."""


class Issued(NamedTuple):
    """The name of a command, and the line of the program that issued it."""

    what: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.what} was issued by {self.file}:{self.line}"


class PendingAnswer:
    """The answer to a command that the client will wait for later."""

    has_arrived = False
    is_abandoned = False
    """Whether the waiting call was interrupted."""
    value: Outcome = None

    def __init__(self, taken: tuple[Id, ...]) -> None:
        self.errors: list[Exception] = []
        """The error, if the answer is a failure."""
        self.taken = taken
        """The ids of the objects that leave the worker with the answer."""


class WireLocation(TensorPlace, Location):
    """The location of a worker reached by frames. A transport implements ``send_frames`` and ``receive_frames``.

    Thread-safe: the two methods are called by one thread at a time.
    """

    predicts = True
    is_parallel = True
    max_message = sys.maxsize
    """The maximum size in bytes of a message that the worker accepts."""

    def __init__(self, client: Party, id: Id) -> None:
        super().__init__(client, id)
        self.bytes_moved = 0
        self.waits = 0
        """How often a caller had to wait for a reply."""
        self._context = Context(worker=client, receiver=id)
        self._lock = threading.RLock()
        self._buffer: list[Message] = []
        self._issued: list[Issued] = []
        self._behalf: tuple[Peer, ...] = ()
        self._dropped: deque[tuple[Id, Id | None]] = deque()
        self._number = 0
        self._in_flight: deque[tuple[int, list[Issued], PendingAnswer | None]] = deque()
        self._looked = self._posted = 0.0
        self._errors: list[Exception] = []
        """The first failure of a told command, to be raised by the next call that waits."""
        self._value: Outcome = None
        self._unclaimed: dict[tuple[Id, ...], list[PendingAnswer]] = {}
        """The answers to interrupted calls that take objects from the worker, by the ids of the objects."""
        self._causes: dict[tuple[int, int], Issued] = {}
        self._last_epochs: tuple[int, int] | None = None
        _locations.add(self)

    # --- implemented by a transport

    @abstractmethod
    def send_frames(self, sent: Sequence[Frame]) -> None:
        """Send the frames of one message; they may be overwritten when this returns."""

    @abstractmethod
    def receive_frames(self, wait: bool) -> Sequence[Frame] | None:
        """Return the frames of the next message; without ``wait``, None when none has arrived."""

    def restrict_behalf(self, peers: tuple[Peer, ...]) -> tuple[Peer, ...]:
        """Return those of ``peers`` on whose behalf the worker must know that a command is sent."""
        return peers

    # --- used by clients

    def ask(self, message: Message) -> Outcome:
        """Send a message, wait for the reply and return its value."""
        return record(self, message, self._ask) if traces else self._ask(message)

    def submit(self, message: Message) -> Callable[[], Outcome]:
        """Send a message, and return a function that waits for the reply and returns its value."""
        answer = self._request(message)
        if traces:
            return partial(record, self, message, lambda _message: self._wait_for(answer))
        return partial(self._wait_for, answer)

    def tell(self, message: Message) -> None:
        """Send a message without waiting for the reply."""
        if traces:
            record(self, message, self._tell)
        else:
            self._tell(message)

    def flush(self) -> None:
        """Wait until all told commands have been executed; raise the first error.

        If a wait was necessary, release dropped objects without waiting again.
        """
        with self._lock:
            if self._in_flight and not (self._buffer or self._errors):
                self._await_replies()
                if not self._errors:
                    if self._dropped:
                        self._post(asks=False)
                    return
            self.confirm()

    def confirm(self) -> None:
        """Ask the worker whether all earlier commands have been executed; raise the first error."""
        with self._lock:
            self._put(Release(()))  # The call waits for this one, so all commands before it count as told.
            self._post(asks=True)
            self._wait()

    def drop(self, id: Id, lender: Id | None = None) -> None:
        """Queue the release of a dropped pointer's lease with the next message."""
        self._dropped.append((id, lender))

    def describe(self, ids: Sequence[Id], attr: str | None = None) -> list[Form | None]:
        """Ask the worker for the forms of objects."""
        forms: list[Form | None] = self.ask(Describe(tuple(ids), attr))
        return forms

    # --- batches

    def _ask(self, message: Message) -> Outcome:
        if message.facts.takes(message, self.id):
            return self._wait_for(self._request(message))
        self._prepare(message)
        with self._lock:
            self._put(message)
            self._post(asks=True)
            return self._wait()

    def _request(self, message: Message) -> PendingAnswer:
        self._prepare(message)
        answer = PendingAnswer(message.facts.takes(message, self.id))
        with self._lock:
            self._put(message)
            try:
                self._post(asks=True, answer=answer)
                self._limit_flight()
            except BaseException:  # It may have been sent.
                self._abandon()
                raise
        return answer

    def _abandon(self) -> None:
        """Keep answers in flight for later calls, because the waiting call is interrupted."""
        for _, _, answer in self._in_flight:
            if answer is not None and not answer.is_abandoned:
                answer.is_abandoned = True
                if answer.taken:
                    self._unclaimed.setdefault(answer.taken, []).append(answer)

    def _claim(self, answer: PendingAnswer) -> PendingAnswer:
        """Return an answer or, if the objects have left the worker, that of the interrupted call which took them."""
        if answer.errors and not isinstance(answer.errors[0], ObjectNotFoundError):
            return answer
        kept = [other for other in self._unclaimed.pop(answer.taken, ()) if other.has_arrived and not other.errors]
        return kept[0] if answer.errors and kept else answer

    def _tell(self, message: Message) -> None:
        self._prepare(message)
        with self._lock:
            self._put(message)
            # An urgent message is sent at once, even if others are in flight.
            now = monotonic()
            if self._in_flight and not message.facts.is_urgent and now > self._looked + REPLY_POLL:
                self._looked = now
                while self._in_flight and self._receive(wait=False):
                    pass
            is_awaited = not self._in_flight or (len(self._in_flight) == 1 and now > self._posted + LEAD)
            # An object that is being sent may change as soon as this returns.
            if is_awaited or message.facts.gives or message.facts.is_urgent or len(self._buffer) >= MAX_BUFFERED:
                self._posted = now
                self._post(asks=False)
            self._limit_flight()

    def _limit_flight(self) -> None:
        while len(self._in_flight) > WINDOW:
            self._receive(wait=True)

    def _prepare(self, message: Message) -> None:
        """Complete a message before sending: add leases for its pointers, or the caller's modes."""
        if given := message.facts.gives:
            setattr(message, given, attach_leases(getattr(message, given), self))
        elif type(message) is Run:
            message.modes = FrameworkHook._attached[message.framework].first.attributes.modes()

    def _put(self, message: Message) -> None:
        if (current := self.restrict_behalf(behalf.get())) != self._behalf:
            if self._buffer:
                self._post(asks=False)
            self._behalf = current
        self._buffer.append(message)
        self._issued.append(find_issuer(message))

    def _post(self, asks: bool, answer: PendingAnswer | None = None) -> None:
        """Send the buffered commands as one batch; ``answer`` gets the reply if the client waits for it later."""
        issued, self._issued = self._issued, []
        buffered, self._buffer = self._buffer, []
        # Releases follow the told commands, which may still use the objects; an asked command comes last.
        place = len(buffered) - asks
        releases = self._releases()
        issued[place:place] = [_RELEASE] * len(releases)
        commands = (*buffered[:place], *releases, *buffered[place:])
        try:
            sent = self._encode(Batch(self._number + 1, commands, asks, self._behalf))
        except Exception:
            if len(commands) > 1:
                self._send_singly(commands[: place + len(releases)], issued)
            raise
        self._send_batch(sent, issued, answer)

    def _send_batch(self, sent: Sequence[Frame], issued: list[Issued], answer: PendingAnswer | None = None) -> None:
        self._number += 1
        self._in_flight.append((self._number, issued, answer))
        self.send_frames(sent)

    def _send_singly(self, commands: Sequence[Message], issued: list[Issued]) -> None:
        """Send told commands in batches of one, except those that cannot be encoded."""
        for command, origin in zip(commands, issued, strict=False):
            with contextlib.suppress(Exception):
                sent = self._encode(Batch(self._number + 1, (command,), False, self._behalf))
                self._send_batch(sent, [origin])

    def _releases(self) -> tuple[Message, ...]:
        gone: dict[Id | None, list[Id]] = {}
        while self._dropped:
            id, lender = self._dropped.popleft()
            self._unclaimed.pop((id,), None)
            gone.setdefault(lender, []).append(id)
        return tuple([Release(tuple(ids), lender) for lender, ids in gone.items()])

    def _encode(self, batch: Batch) -> Sequence[Frame]:
        sent = frames(batch, self._context)
        self.bytes_moved += self.measure(sent)
        return sent

    def measure(self, sent: Sequence[Frame]) -> int:
        """Return the size of a message in bytes; raise if the worker would not accept it."""
        size = sum(map(len, sent))
        if size > self.max_message:
            raise MessageSizeError.too_large(f"{size:,}", self.id, f"{self.max_message:,}")
        return size

    def _decode(self, received: Sequence[Frame], number: int, issued: list[Issued], errors: list[Exception]) -> Outcome:
        """Return the value of a reply, or append the error of its failure to ``errors``; update the epochs."""
        self.bytes_moved += sum(map(len, received))
        reply = from_frames(received, self._context)
        if type(reply) is not Reply or reply.number not in (number, -1) or type(reply.failure) not in _FAILED:
            raise WorkerError(f"cannot read the reply of worker {self.id!r}: it answers another batch; connect again")
        epochs = reply.form_epoch, reply.gradient_epoch
        if self._last_epochs != epochs:
            if self._last_epochs is not None and self._last_epochs[0] != epochs[0]:
                self.forget_forms()
            if self._last_epochs is not None and self._last_epochs[1] != epochs[1]:
                self.forget_gradients()
            self._last_epochs = epochs
        if reply.failure is not None:
            self.failures += 1
            errors.append(self._make_error(reply.failure, issued, number))
        return None if reply.value is None else from_named(reply.value, self.client)

    def _make_error(self, failure: Failure, issued: list[Issued], number: int) -> Exception:
        """Return the exception of a failure; its first note names the program line that caused it.

        A failure is reported again whenever the program uses a result that is missing because of it.
        """
        error: Any = failure.error
        if not isinstance(error, Exception):
            error = WorkerError(f"cannot read a failure of worker {self.id!r}: it is malformed; connect again")
        if failure.number == number and 0 <= failure.place < len(issued):
            self._causes[number, failure.place] = issued[failure.place]
            if len(self._causes) > MAX_POISONED:
                del self._causes[next(iter(self._causes))]
        origin = self._causes.get((failure.number, failure.place))
        first = [] if origin is None else [str(origin)]
        notes = [str(note) for note in (*getattr(error, "__notes__", ()), f"on worker {self.id!r}:\n{failure.trace}")]
        error.__notes__ = [*first, *[printable(note, lines=True) for note in notes]]
        return error  # type: ignore[no-any-return]  # checked above

    def push(self) -> None:
        """Send the buffered commands, unless another thread uses this location.

        The caller may be waiting for another worker, so an error is kept for the next call that waits for this one.
        """
        if self._buffer and self._lock.acquire(blocking=False):
            try:
                if self._buffer:
                    self._post(asks=False)
            except Exception as error:  # noqa: BLE001  # raised by the next call that waits
                self._errors = self._errors or [error.with_traceback(None)]
            finally:
                self._lock.release()

    def _wait(self) -> Outcome:
        self._await_replies()
        if self._errors:
            raise_error(self._errors.pop())
        return self._value

    def _await_replies(self) -> None:
        self._begin_wait()
        while self._in_flight:
            self._receive(wait=True)

    def _wait_for(self, answer: PendingAnswer) -> Outcome:
        with self._lock:
            try:
                self._await_answer(answer)
            except BaseException:
                self._abandon()
                raise
            answer = self._claim(answer)
            found = (self._errors or answer.errors) if answer.errors else []
        if found:
            raise_error(found.pop())
        return answer.value

    def _await_answer(self, answer: PendingAnswer) -> None:
        if not answer.has_arrived:
            self._begin_wait()
        while not answer.has_arrived:
            if not self._in_flight:  # The session was lost meanwhile, and an earlier call got the error.
                raise SessionLostError.on(self.id)
            self._receive(wait=True)

    def _begin_wait(self) -> None:
        """Send buffered commands of other workers, so that they compute meanwhile."""
        for other in list(_locations):
            if other is not self:
                other.push()
        self.waits += 1

    def _receive(self, wait: bool) -> bool:
        received = self.receive_frames(wait)
        if received is None:
            return False
        number, issued, answer = self._in_flight.popleft()
        errors: list[Exception] = []
        value = self._decode(received, number, issued, errors)
        if answer is not None:
            answer.value, answer.errors, answer.has_arrived = value, errors, True
        else:
            self._value = value
        # A missing object may have been taken by an earlier call that was interrupted, too.
        if answer is None or (answer.is_abandoned and not any(isinstance(e, ObjectNotFoundError) for e in errors)):
            self._errors = self._errors or list(errors)
        return True


_locations: weakref.WeakSet[WireLocation] = weakref.WeakSet()
_FAILED = (type(None), Failure)


@atexit.register
def _push_all() -> None:
    for location in list(_locations):
        with contextlib.suppress(Exception):
            location.push()


_RELEASE = Issued("release", "", 0)


def find_issuer(message: Message) -> Issued:
    """Return the name of a command, and the line of the user's program that issued it."""
    return Issued(message.op if type(message) is Run else type(message).__name__, *find_line_of_program())
