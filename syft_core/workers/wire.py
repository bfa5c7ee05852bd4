"""WireLocation: the way to a worker that is reached by frames; what every transport has in common.

A command whose results the client can work out is *told*: it is put into a batch, and nobody waits for the reply. A
batch goes out at once when none is on its way, otherwise when it is full; whoever waits for a reply sends all that is
left first, also to other workers, so that they compute meanwhile. Replies come in the order of the batches.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import weakref
from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from syft_core.exceptions import WorkerError
from syft_core.hook.forms import Form
from syft_core.hook.hook import FrameworkHook, find_line_of_program
from syft_core.location import Location, Party
from syft_core.messages import Batch, Describe, Failure, Message, Release, Reply, Run
from syft_core.peer import Id, Peer, behalf
from syft_core.serde import Context, frames, from_frames
from syft_core.workers.remote import Place
from syft_core.workers.results import from_named
from syft_core.workers.trace import record, traces
from syft_core.workers.transfer import with_leases

MOST_TOLD = 32
"""How many commands wait to be sent together."""
WINDOW = 64
"""How many batches may be on their way; one more waits for a reply."""


class Issued(NamedTuple):
    """What a command was, and the line of the program that issued it."""

    what: str
    file: str
    line: int


class WireLocation(Place, Location):
    """Leads to a worker by frames. A transport provides ``send_frames`` and ``receive_frames``.

    Safe to use from several threads; each call of the two methods is made by one thread at a time.
    """

    predicts = True

    def __init__(self, client: Party, id: Id) -> None:
        super().__init__(client, id)
        self.bytes_moved = 0
        self.waits = 0
        """How often a caller had to wait for a reply."""
        self._context = Context(worker=client, receiver=id)
        self._lock = threading.RLock()
        self._told: list[Message] = []
        self._issued: list[Issued] = []
        self._behalf: tuple[Peer, ...] = ()
        """For whom what was told is asked."""
        self._dropped: deque[tuple[Id, Id | None]] = deque()
        self._number = 0
        self._on_its_way: deque[tuple[int, list[Issued]]] = deque()
        self._errors: list[Exception] = []
        """The first failure of what was told, for the next caller that waits."""
        self._value: Any = None
        self._theirs: tuple[int, int] | None = None
        """The epochs of the last reply."""
        _locations.add(self)

    # --- what a transport provides

    @abstractmethod
    def send_frames(self, sent: Sequence[Any]) -> None:
        """Send the frames of one message; they may be overwritten when this returns."""

    @abstractmethod
    def receive_frames(self, wait: bool) -> Sequence[Any] | None:
        """Return the frames of the next message; without ``wait``, None when none has arrived."""

    # --- what clients use

    def ask(self, message: Message) -> Any:
        """Send a message, wait for the reply and return its value."""
        return record(self, message, self._ask) if traces else self._ask(message)

    def tell(self, message: Message) -> None:
        """Send a message without waiting for the reply."""
        if traces:
            record(self, message, self._tell)
        else:
            self._tell(message)

    def flush(self) -> None:
        """Wait until everything that was told has been done; raise the first error."""
        with self._lock:
            self._put(Release(()))  # It is what is waited for, so that everything before it counts as told.
            self._post(asks=True)
            self._wait()

    def drop(self, id: Id, lender: Id | None = None) -> None:
        """Note that a pointer is gone; the next message says so."""
        self._dropped.append((id, lender))

    def describe(self, ids: Sequence[Id], attr: str | None = None) -> list[Form | None]:
        """Ask the worker."""
        forms: list[Form | None] = self.ask(Describe(tuple(ids), attr))
        return forms

    # --- how it works

    def _ask(self, message: Message) -> Any:
        self._prepare(message)
        with self._lock:
            self._put(message)
            self._post(asks=True)
            return self._wait()

    def _tell(self, message: Message) -> None:
        self._prepare(message)
        with self._lock:
            self._put(message)
            while self._on_its_way and self._receive(wait=False):
                pass
            # An object that is being sent may change as soon as this returns.
            if not self._on_its_way or message.gives or len(self._told) >= MOST_TOLD:
                self._post(asks=False)
            while len(self._on_its_way) > WINDOW:
                self._receive(wait=True)

    def _prepare(self, message: Message) -> None:
        """Give a message what the worker must know of its sender: leases for pointers in it, and modes."""
        if message.gives:
            setattr(message, message.gives, with_leases(getattr(message, message.gives), self.id))
        elif type(message) is Run:
            message.modes = FrameworkHook._attached[message.framework].first.attributes.modes()

    def _put(self, message: Message) -> None:
        if (asked_for := behalf.get()) != self._behalf:
            if self._told:
                self._post(asks=False)
            self._behalf = asked_for
        self._told.append(message)
        self._issued.append(_issuer(message))

    def _post(self, asks: bool) -> None:
        """Send what was told so far as one batch."""
        issued, self._issued = self._issued, []
        told, self._told = self._told, []
        # After what was told, which may name an object only by its id; before what is asked, which comes last.
        place = len(told) - asks
        releases = self._releases()
        issued[place:place] = [_NOBODY] * len(releases)
        self._number += 1
        self._on_its_way.append((self._number, issued))
        commands = (*told[:place], *releases, *told[place:])
        self.send_frames(self._encode(Batch(self._number, commands, asks, self._behalf)))

    def _releases(self) -> tuple[Message, ...]:
        """Return what tells the worker which pointers are gone."""
        gone: dict[Id | None, list[Id]] = {}
        while self._dropped:
            id, lender = self._dropped.popleft()
            gone.setdefault(lender, []).append(id)
        return tuple([Release(tuple(ids), lender) for lender, ids in gone.items()])

    def _encode(self, batch: Batch) -> Sequence[Any]:
        sent = frames(batch, self._context)
        self.bytes_moved += sum(map(len, sent))
        return sent

    def _decode(self, received: Sequence[Any], number: int, issued: list[Issued]) -> Any:
        """Return the value of a reply; learn from it what others have changed, and keep the first failure."""
        self.bytes_moved += sum(map(len, received))
        reply = from_frames(received, self._context)
        if type(reply) is not Reply or reply.number not in (number, -1) or type(reply.failure) not in _FAILED:
            raise WorkerError(f"cannot understand worker {self.id!r}: it answered out of turn; connect again")
        epochs = reply.form_epoch, reply.gradient_epoch
        if self._theirs != epochs:
            if self._theirs is not None and self._theirs[0] != epochs[0]:
                self.forget_forms()
            if self._theirs is not None and self._theirs[1] != epochs[1]:
                self.forget_gradients()
            self._theirs = epochs
        if reply.failure is not None and not self._errors:
            self._errors.append(_error(reply.failure, issued, number, self.id))
        return None if reply.value is None else from_named(reply.value, self.client)

    def push(self) -> None:
        """Send what waits to be sent, unless another thread is busy here."""
        if self._told and self._lock.acquire(blocking=False):
            try:
                if self._told:
                    self._post(asks=False)
            finally:
                self._lock.release()

    def _wait(self) -> Any:
        """Wait for all replies, and return the value of the last."""
        for other in list(_locations):
            if other is not self:
                other.push()
        self.waits += 1
        while self._on_its_way:
            self._receive(wait=True)
        if self._errors:
            raise_error(self._errors.pop())
        return self._value

    def _receive(self, wait: bool) -> bool:
        """Take the next reply, if there is one."""
        received = self.receive_frames(wait)
        if received is None:
            return False
        self._value = self._decode(received, *self._on_its_way.popleft())
        return True


_locations: weakref.WeakSet[WireLocation] = weakref.WeakSet()
_FAILED = (type(None), Failure)


@atexit.register
def _push_all() -> None:
    """Send what still waits to be sent when a program ends."""
    for location in list(_locations):
        with contextlib.suppress(Exception):
            location.push()


_NOBODY = Issued("release", "", 0)


def _issuer(message: Message) -> Issued:
    """Return what a message asks for, and the line of the user's program that it comes from."""
    return Issued(message.op if type(message) is Run else type(message).__name__, *find_line_of_program())


def raise_error(error: Exception) -> NoReturn:
    """Raise an error without keeping it: it would keep alive what its caller has at hand."""
    try:
        raise error
    finally:
        del error


def _error(failure: Failure, issued: list[Issued], number: int, worker: Id) -> Exception:
    """Return the exception that a failure describes, with notes on where it comes from."""
    error: Any = failure.error
    if not isinstance(error, Exception):
        error = WorkerError(f"cannot say what failed on worker {worker!r}: its answer is malformed; connect again")
    notes = [f"on worker {worker!r}:\n{failure.trace}"]
    if failure.number == number and 0 <= failure.place < len(issued):
        origin = issued[failure.place]
        notes.insert(0, f"{origin.what} was issued by {origin.file}:{origin.line}")
    error.__notes__ = [*getattr(error, "__notes__", ()), *notes]
    return error  # type: ignore[no-any-return]  # an Exception, as was just made sure
