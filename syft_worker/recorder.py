"""Record the command that a worker is executing, and charge its user for the time."""

from __future__ import annotations

import threading
from time import sleep, thread_time
from typing import NamedTuple

from syft_core.peer import Peer
from syft_core.values import Function, Outcome
from syft_core.workers.party.turns import yield_turn
from syft_worker.accounts import Account, Accounts
from syft_worker.activity import Activity


class _Batch(threading.local):
    number = 0


class Paused(NamedTuple):
    """A command that does not have the lock of the worker."""

    depth: int
    """Nesting depth: the number of commands being executed, one inside the other."""
    doing: tuple[bytes, bytes]
    """Who executes what."""
    since: float
    """The processor time of this thread until which its user was charged."""
    place: int
    """Where it is recorded meanwhile, or 0 if it only waits."""


class UsageRecorder:
    """Records the commands that a worker executes, which may be parts of each other."""

    def __init__(self, accounts: Accounts, activity: Activity | None) -> None:
        self._accounts, self.activity = accounts, activity
        self.depth = 0
        """Number of commands that are being executed, one inside the other."""
        self.since = 0.0
        """The processor time of this thread up to which it has been charged, if rates are limited."""
        self.batch = _Batch()
        """The number of the batch that this thread executes."""
        self._doing = b"", b""

    def watch(self, doing: bytes, sender: Peer, function: Function, *args: object) -> Outcome:
        """Call a function that does something with a message; record it, and charge the user for the time."""
        account, _ = self._accounts.known.get(sender) or self._accounts.find(sender)
        if account.has_rates:
            self.since = thread_time()
        self.depth += 1
        try:
            self.record(sender, doing)
            return function(*args)
        finally:
            self.depth -= 1
            self.end(account)

    def record(self, sender: Peer, operation: bytes) -> None:
        """Record the next command."""
        if operation:
            _, who = self._accounts.known.get(sender) or self._accounts.find(sender)
            self.begin(who, operation)

    def begin(self, who: bytes, operation: bytes) -> None:
        """Record the next command, for a user."""
        if self.activity is not None:
            self._doing = who, operation
            self.activity.begin(who, self.batch.number, operation)

    def end(self, account: Account) -> None:
        """Charge a user for the time until now; record that nothing is executed after the outermost block."""
        if account.has_rates:
            now = thread_time()
            account.cpu.use(now - self.since)
            self.since = now
        if self.activity is not None and not self.depth:
            self.activity.end()

    def pause(self, sender: Peer, is_idle: bool) -> Paused:
        """Record that a command releases the lock of the worker; unless it is idle, it computes without the lock."""
        account, _ = self._accounts.known.get(sender) or self._accounts.find(sender)
        depth, doing, self.depth, self._doing = self.depth, self._doing, 0, (b"", b"")
        self.end(account)
        place = 0
        if self.activity is not None and not is_idle and any(doing):
            place = self.activity.begin_apart(doing[0], self.batch.number, doing[1])
        return Paused(depth, doing, self.since, place)

    def resume(self, paused: Paused) -> None:
        """Record that a paused command continues. Processor time of the pause counts: this thread may run protocols."""
        self.depth, doing, self.since, place = paused
        if self.activity is not None and any(doing):
            self.activity.end_apart(place)
            self.begin(*doing)

    def rest(self, sender: Peer) -> None:
        """Wait as long as a user exceeds a rate, unless no client waits for the result."""
        account, _ = self._accounts.find(sender)
        while seconds := account.cpu.wait():
            sleep(min(seconds, 1.0))
            yield_turn()
