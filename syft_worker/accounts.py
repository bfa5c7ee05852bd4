"""Accounts: what each user has on a worker, has used of it, and has reserved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from time import monotonic

from syft_core.hook.caches import remember
from syft_core.peer import Id, Peer
from syft_core.pictures.tables import one_line
from syft_core.workers.party.reservations import Amounts
from syft_core.workers.party.store import Stored
from syft_core.workers.party.worker import Worker
from syft_worker.allowances import Allowance, find_allowance
from syft_worker.desk.releases import releases_of
from syft_worker.errors import QuotaExceededError
from syft_worker.measures import Seen, bytes_of, bytes_of_words


@dataclass
class Bucket:
    """A rate limit: the use so far, minus the allowance for the elapsed time."""

    rate: float | None
    """Allowed use per second; None means no limit."""
    burst: float
    """Use allowed at once."""
    used: float = 0.0
    since: float = field(default_factory=monotonic)

    def use(self, amount: float) -> None:
        """Record use."""
        if self.rate is not None:
            now = monotonic()
            self.used = max(self.used - (now - self.since) * self.rate, 0.0) + amount
            self.since = now

    def wait(self) -> float:
        """Return how many seconds to wait until more may be used."""
        if self.rate is None or self.used <= self.burst:
            return 0.0
        return max((self.used - self.burst) / self.rate - (monotonic() - self.since), 0.0)


class Account:
    """The holdings and the use of one user.

    Objects, bytes and leases are at least what the user has: what is dropped is subtracted by the next exact count.
    They are infinite until the first one.
    """

    def __init__(self, user: str, allowance: Allowance) -> None:
        self.user = user
        self.objects = self.bytes = self.leases = inf
        self.held: dict[int, Amounts] = {}
        """Reservations of running commands."""
        self.configure(allowance)

    def configure(self, allowance: Allowance) -> None:
        """Use another allowance; rates start over."""
        self.allowance = allowance
        cpu, messages = allowance.cpu_seconds, allowance.messages
        self.cpu = Bucket(None if cpu is None else cpu / 60, cpu or 0.0)
        self.messages = Bucket(messages, messages or 0.0)
        self.has_rates = cpu is not None or messages is not None
        limits = allowance.objects, allowance.bytes, allowance.leases
        self.most_objects, self.most_bytes, self.most_leases = [inf if limit is None else limit for limit in limits]

    @property
    def reserved(self) -> Amounts:
        """The sum of the reservations of running commands."""
        held = list(self.held.values())  # Other threads release theirs meanwhile.
        return Amounts(*map(sum, zip(*held, strict=True))) if held else Amounts()

    def find_excess(self, objects: int = 0, size: int = 0, leases: int = 0) -> tuple[str, float, float] | None:
        """Return the first amount that would exceed its limit with this addition, its value and the limit; or None."""
        reserved = self.reserved if self.held else Amounts()
        for what, needed, limit in (
            ("objects", self.objects + reserved.objects + objects, self.most_objects),
            ("bytes", self.bytes + reserved.bytes + size, self.most_bytes),
            ("leases", self.leases + leases, self.most_leases),
        ):
            if needed > limit:
                return what, needed, limit
        return None


class Accounts:
    """The accounts of all users of a worker, and who pays for what."""

    def __init__(self, worker: Worker, users: Mapping[str, Allowance]) -> None:
        self._worker, self._users = worker, users
        self._by_user: dict[str, Account] = {}
        self.has_rates = False
        """Whether anybody has a limit for a rate."""
        self._holders: dict[Id, tuple[Account, bytes]] = {}
        """The account of each client, and its id and user for the record."""
        self.known: dict[Peer, tuple[Account, bytes]] = {}
        """Accounts by sender, for senders that were looked up since the last count."""
        self._newest, self._added = -1, 0
        """The number of the newest object that was added to an account, and how many the store had added then."""

    def configure(self, users: Mapping[str, Allowance]) -> None:
        """Use other allowances; users keep their holdings."""
        self._users = users
        for name, account in list(self._by_user.items()):
            if (allowance := find_allowance(users, name)) != account.allowance:
                account.configure(allowance)
                self.has_rates |= account.has_rates

    def of(self, user: str) -> Account:
        """Return the account of a user."""
        account = self._by_user.get(user)
        if account is None:
            account = self._by_user[user] = Account(user, find_allowance(self._users, user))
            self.has_rates |= account.has_rates
        return account

    def allowance_of(self, user: str) -> Allowance:
        """Return the allowance of a user, who may never have connected."""
        return find_allowance(self._users, user)

    def forget(self, peer: Id) -> None:
        """Forget a client that has gone, unless its user is charged for objects that it holds."""
        if all(entry.holder != peer for entry in self._worker.object_store.iter_all()):
            self._holders.pop(peer, None)
            for known in [known for known in list(self.known) if known.id == peer]:
                self.known.pop(known, None)

    def find(self, peer: Peer) -> tuple[Account, bytes]:
        """Return the account of a sender, and its id and user for the record."""
        found, user = self._holders.get(peer.id), peer.payer
        if found is None or found[0].user != user:
            who = f"{one_line(str(peer.id))}\n{one_line(user)}".encode(errors="replace")
            found = self._holders[peer.id] = self.of(user), who
        return remember(self.known, peer, found)

    def owner_of(self, entry: Stored) -> Account | None:
        """Return the user who is charged for an object, or None if it belongs to the worker's owner."""
        giver = entry.publisher or entry.giver
        if giver is not None and (user := giver.payer):
            return self.of(user)
        found = self._holders.get(entry.holder)
        return None if found is None else found[0]

    def require(self, account: Account, doing: str, objects: int = 0, size: int = 0, leases: int = 0) -> None:
        """Raise if this addition would exceed a user's quota; an operation is given by its name."""
        if account.find_excess(objects, size, leases) is not None:
            self.count()
            if (excess := account.find_excess(objects, size, leases)) is not None:
                what, needed, limit = excess
                doing = doing if " " in doing else f"run {doing!r}"
                raise QuotaExceededError.amount(doing, account.user, what, needed, limit)

    def add(self, account: Account, doing: str, entries: Sequence[Stored], amounts: Amounts) -> None:
        """Add new objects of known size to a user's account; drop them and raise if that exceeds a quota."""
        account.objects += amounts.objects
        account.bytes += amounts.bytes
        if account.find_excess() is not None:
            try:
                self.require(account, doing)
            except QuotaExceededError:
                get = self._worker.object_store.get
                own = [entry for entry in entries if get(entry.id) is entry]
                self._worker.object_store.remove_all(own, f"user {account.user!r} had too much with it")
                raise

    def add_stored(self, account: Account | None = None, doing: str = "") -> None:
        """Add all objects that were stored since the last time, each to the account of its owner.

        Views count like copies. Raise if ``account``, of the user whose command stored them, exceeds a quota.
        """
        store = self._worker.object_store
        if store.added == self._added:
            return
        new: dict[Account, list[Stored]] = {}
        for entry in store.iter_since(self._newest):
            if not entry.is_counted and (owner := self.owner_of(entry)) is not None:
                new.setdefault(owner, []).append(entry)
        self._note_newest()
        for owner, entries in new.items():
            size = sum([bytes_of(entry.value) + bytes_of_words(entry) for entry in entries])
            owner.leases += sum([entry.pointers for entry in entries])
            with nullcontext() if owner is account else suppress(QuotaExceededError):
                self.add(owner, doing, entries, Amounts(len(entries), size))

    def _note_newest(self) -> None:
        store = self._worker.object_store
        self._newest, self._added = (
            max([entry.number for entry in islice(store.iter_since(-1), 1)], default=-1),
            store.added,
        )

    def list_all(self) -> list[Account]:
        """Return the accounts of all users."""
        return list(self._by_user.values())

    def count(self) -> None:
        """Count objects, bytes and leases of all users; tensors that share memory count once for each user."""
        for account in self.list_all():  # Others connect meanwhile.
            account.objects = account.leases = account.bytes = 0
        seen, paid = Seen(), []
        holders: dict[Id, tuple[Account, bytes]] = {}
        for entry in self._worker.object_store.iter_all():
            for holder, leases in _leases_of(entry):
                if (found := self._holders.get(holder)) is not None:
                    found[0].leases += leases
                    holders[holder] = found
            owner = self.owner_of(entry)
            size = seen.add("" if owner is None else owner.user, entry.value)
            if owner is not None:
                owner.objects += 1
                owner.bytes += size + bytes_of_words(entry)
                paid.append((owner, entry.value))
        for owner, value in paid:
            owner.bytes += seen.add_graphs(owner.user, value)
        self._count_requests()
        self._holders = holders
        self.known.clear()
        self._note_newest()

    def _count_requests(self) -> None:
        for request in releases_of(self._worker).requests:
            for requested in request.objects:
                if requested.value is not None:
                    owner = self.of(request.peer.payer)
                    owner.objects += 1
                    owner.bytes += bytes_of(requested.value)


def _leases_of(entry: Stored) -> list[tuple[Id, int]]:
    """Return the clients charged for the leases on an object: those who took them, not a worker given a pointer."""
    payer = entry.holder if entry.giver is None else entry.giver.id
    found = [(payer, entry.leases)]
    for holder, leases in (entry.others or {}).items():
        found.append((holder[1] if type(holder) is tuple else holder, leases))
    return found
