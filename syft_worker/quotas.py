"""Quotas: limits what each user may use of a worker, before it is used.

Rates (messages, CPU seconds) slow a user down, and raise an error if the user would have to wait long. Amounts
(objects, bytes, leases) raise an error. Each command goes through four steps:

    require   what it stores or sends, by the facts about its kind, fits together with what others have reserved
    hold      what it needs stays reserved as long as it waits or gives turns
    run       of an operation, ``metering.py`` requires what the result needs, and compares that with the result
    settle    what it has stored is added, and dropped if it exceeds a quota
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from syft_core.messages import Message, Run, Search, Store
from syft_core.peer import Id, Peer
from syft_core.pictures.tables import one_line
from syft_core.values import Function, Outcome
from syft_core.workers.party.reservations import Amounts, Reservation
from syft_core.workers.party.store import Stored
from syft_core.workers.party.worker import Worker
from syft_worker.accounts import Account, Accounts
from syft_worker.activity import Activity
from syft_worker.allowances import Allowance
from syft_worker.errors import QuotaExceededError
from syft_worker.incidents import Ban, Incidents
from syft_worker.measures import bytes_beyond, bytes_of, bytes_of_copy, bytes_of_message, bytes_of_words
from syft_worker.metering import Meter
from syft_worker.recorder import UsageRecorder

MAX_DELAY = 10.0
"""The longest delay, in seconds, of a user who exceeds a rate; beyond it the command fails."""
MAX_COPIES = 1 << 30
"""Maximum bytes that leave with one message, unless the objects themselves take more memory."""


class QuotaGuard:
    """The guard of a served worker: quotas of users, refused signatures, and the record of running commands."""

    def __init__(
        self,
        worker: Worker,
        users: Mapping[str, Allowance],
        incidents: Incidents | None = None,
        activity: Activity | None = None,
    ) -> None:
        self._worker = worker
        self._accounts = Accounts(worker, users)
        self._incidents = Incidents(0) if incidents is None else incidents
        self._recorder = UsageRecorder(self._accounts, activity)
        self.watch, self.rest = self._recorder.watch, self._recorder.rest
        self.pause, self.resume = self._recorder.pause, self._recorder.resume
        self.meter = Meter(worker, self._accounts, self._recorder, self._incidents).run

    def configure(self, users: Mapping[str, Allowance]) -> None:
        """Use other quotas; users keep their holdings."""
        self._accounts.configure(users)

    def account_of(self, user: str) -> Account:
        """Return the account of a user."""
        return self._accounts.of(user)

    @property
    def accounts(self) -> list[Account]:
        """The accounts of all users, with exact amounts."""
        with self._worker.lock:
            self._accounts.count()
        return self._accounts.list_all()

    @property
    def bans(self) -> list[Ban]:
        """The bans of commands that have ended the process."""
        self._incidents.look_again()
        return self._incidents.list_bans(lambda user: self._accounts.allowance_of(user).crashes)

    def lift(self, ban: Ban) -> None:
        """Lift a ban in this process; the caller informs the supervisor, which keeps the record."""
        self._incidents.forget(ban)

    def forget(self, peer: Id) -> None:
        """Forget a client that has gone."""
        self._accounts.forget(peer)

    # --- connections and batches

    def refuse_connection(self, user: str, others: int) -> str | None:
        """Return why a user may not have one more connection, or None."""
        allowance = self.account_of(user).allowance
        if (ban := self._incidents.confirm(lambda: self._incidents.find_lockout(user, allowance.crashes))) is not None:
            return f"{ban.why}; the user may connect again after {ban.end}"
        if allowance.connections is not None and others >= allowance.connections:
            return f"user {user!r} has {others} connections, and the limit is {allowance.connections}"
        return None

    def limit_message(self, user: str) -> int | None:
        """Return how many bytes of objects one message may have: as many as the user may have on the worker."""
        return self.account_of(user).allowance.bytes

    def admit(self, peer: Peer, number: int) -> float:
        """Start the next batch; return the seconds that the client has to wait for its rates."""
        self._recorder.batch.number = number
        account, _ = self._accounts.find(peer)
        return min(max(account.cpu.wait(), account.messages.wait()), MAX_DELAY)

    # --- messages

    def handle(self, handler: Function, worker: Worker, message: Message, sender: Peer) -> Outcome:
        """Call the handler of a message, unless the sender has used up a quota."""
        if sender.id == worker.id and not sender.behalf:
            return handler(worker, message, sender)
        if self._accounts.has_rates:
            self._require_rates(message, sender)
        if type(message) is not Run:
            return self._handle(handler, worker, message, sender)
        return handler(worker, message, sender)  # ``meter`` does the rest, when the operands are known.

    def _handle(self, handler: Function, worker: Worker, message: Message, sender: Peer) -> Outcome:
        account, _ = self._accounts.known.get(sender) or self._accounts.find(sender)
        doing = self._name(message, account.user)
        self._require_amounts(account, message)
        answer = self._watch(doing, sender, handler, worker, message, sender)
        self._settle(account, message, answer)
        return answer

    def hold(self, message: Message, sender: Peer) -> Reservation:
        """Reserve the memory of a message that waits or gives turns, with the tensors in it; raise unless it fits."""
        account, _ = self._accounts.find(sender)
        needed = Amounts() if type(message) is Run else self._require_amounts(account, message)
        if given := bytes_of_message(message):
            needed = needed._replace(bytes=needed.bytes + given)
            self._accounts.require(account, _describe(message), needed.objects, needed.bytes)
        return Reservation(account.held, needed)

    def _watch(self, doing: bytes, sender: Peer, function: Function, *args: object) -> Outcome:
        """Run a command; also charge the objects it stored if it fails."""
        try:
            return self.watch(doing, sender, function, *args)
        except BaseException:
            self._accounts.add_stored()
            raise

    def _require_rates(self, message: Message, sender: Peer) -> None:
        account, _ = self._accounts.find(sender)
        allowance = account.allowance
        for bucket, limit, what in (
            (account.cpu, allowance.cpu_seconds, "CPU seconds per minute"),
            (account.messages, allowance.messages, "messages per second"),
        ):
            if limit is not None and (seconds := bucket.wait()) > MAX_DELAY:
                raise QuotaExceededError.rate(_describe(message), account.user, what, limit, seconds)
        account.messages.use(1)

    def _require_amounts(self, account: Account, message: Message) -> Amounts:
        """Raise unless a message fits the quotas; return the amounts it needs until its results are stored."""
        facts, here = message.facts, self._worker.id
        doing = f"store object {message.id!r}" if type(message) is Store else _describe(message)
        copied, sent = facts.copies(message, here), facts.sends(message, here)
        size = bytes_of_words(message) + (bytes_of(getattr(message, facts.gives)) if facts.gives else 0)
        size += self._measure(copied) if copied else 0
        objects = len(copied) or len(facts.creates(message, here))
        self._accounts.require(account, doing, objects, size, facts.leases(message))
        return Amounts(objects, size, self._require_departure(account, sent, doing) if sent else 0)

    def _require_departure(self, account: Account, ids: tuple[Id, ...], doing: str) -> int:
        """Raise if copies of leaving objects, together with those that are leaving already, exceed the quota.

        Larger objects may leave alone, but nothing may multiply them: a view may repeat elements, a message its
        objects.
        """
        size, limit, leaving = self._measure(ids), account.allowance.bytes, account.reserved.copies
        limit = MAX_COPIES if limit is None else min(limit, MAX_COPIES)
        if leaving + size > limit:
            kept = bytes_beyond([entry.value for entry in set(self._find_objects(ids))], ())
            if leaving or size > kept:
                raise QuotaExceededError.copies(doing, account.user, leaving + size, limit)
        return size

    def _settle(self, account: Account, message: Message, answer: Any) -> None:
        """Charge the objects that a message has created to its sender; drop them and raise if they exceed a quota."""
        facts, here = message.facts, self._worker.id
        account.leases += len(answer) if type(message) is Search and answer else facts.leases(message)
        copied, replaced = facts.copies(message, here), self._find_objects(facts.replaces(message, here))
        account.bytes += bytes_of_words(message)
        if copied and not facts.creates(message, here):  # Copies that are not stored under an id.
            account.objects += len(copied)
            account.bytes += self._measure(copied)
        if replaced:
            size = sum([bytes_of(entry.value) for entry in replaced])
            self._accounts.add(account, _describe(message), replaced, Amounts(0, size))
        self._accounts.add_stored(account, _describe(message))

    def reserve(self, sender: Peer, name: str, amounts: Amounts) -> Reservation:
        """Reserve the needs of a command while it runs, and of its results; raise unless they fit."""
        account, _ = self._accounts.find(sender)
        self._accounts.require(account, name, amounts.objects, amounts.bytes)
        return Reservation(account.held, amounts)

    def _name(self, message: Message, user: str) -> bytes:
        """Return the name of a message for the record; raise if it is the call of a function that is refused."""
        if not message.facts.stores_results:
            return type(message).__name__.encode()
        called = getattr(message, "name", None) or getattr(message, "id", "")
        name = f"{type(message).__name__}({called!a})"
        self._incidents.require_allowed(user, name)
        return name.encode()

    def _find_objects(self, ids: tuple[Id, ...]) -> list[Stored]:
        return [entry for entry in map(self._worker.object_store.get, ids) if entry is not None]

    def _measure(self, ids: tuple[Id, ...]) -> int:
        return sum([bytes_of_copy(entry.value) for entry in self._find_objects(ids)])


def _describe(message: Message) -> str:
    return f"run {one_line(message.op)!r}" if type(message) is Run else f"execute a {type(message).__name__}"
