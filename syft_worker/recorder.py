"""Record what a worker is executing, and charge its user for the time."""

from __future__ import annotations

import threading
from time import sleep, thread_time

from syft_core.peer import Peer
from syft_core.values import Function, Outcome
from syft_core.workers.addresses.requests import Elsewhere, Request
from syft_core.workers.party.turns import let_others_go_first
from syft_worker.accounts import Account, Accounts
from syft_worker.activity import Activity


def rest(seconds: float) -> None:
    """Wait, unless nobody waits for the result."""
    let_others_go_first()
    sleep(seconds)


def is_waiting(request: Elsewhere) -> bool:
    """Return whether a command only waits for its next turn."""
    function = request.function
    return function is let_others_go_first or getattr(function, "func", None) is rest


class _Batch(threading.local):
    number = 0


class UsageRecorder:
    """Records the commands that a worker executes, which may be parts of each other."""

    def __init__(self, accounts: Accounts, activity: Activity | None) -> None:
        self._accounts, self.activity = accounts, activity
        self.depth = 0
        """How many commands are being executed, one inside the other."""
        self.batch = _Batch()
        """The number of the batch that this thread executes."""

    def watch(self, doing: bytes, sender: Peer, function: Function, *args: object) -> Outcome:
        """Call a function that does something with a message; record it, and charge the user for the time."""
        account, _ = self._accounts.known.get(sender) or self._accounts.find(sender)
        before = thread_time() if account.has_rates else 0.0
        self.depth += 1
        try:
            self.record(sender, doing)
            return function(*args)
        finally:
            self.depth -= 1
            self.end(account, before)

    def record(self, sender: Peer, operation: bytes) -> None:
        """Record what is executed next."""
        if operation:
            _, who = self._accounts.known.get(sender) or self._accounts.find(sender)
            self.begin(who, operation)

    def begin(self, who: bytes, operation: bytes) -> None:
        """Record what is executed next for somebody."""
        if self.activity is not None:
            self.activity.begin(who, self.batch.number, operation)

    def begin_apart(self, sender: Peer, operation: bytes, request: Request) -> int:
        """Record that a command computes without the lock of the worker; return where, or 0 if it only waits."""
        if self.activity is None or type(request) is not Elsewhere or is_waiting(request):
            return 0
        _, who = self._accounts.known.get(sender) or self._accounts.find(sender)
        return self.activity.begin_apart(who, self.batch.number, operation)

    def end_apart(self, place: int) -> None:
        """Record that such a command continues under the lock of the worker."""
        if place and self.activity is not None:
            self.activity.end_apart(place)

    def end(self, account: Account, before: float) -> None:
        """Charge a user for the time since ``before``; record that nothing is executed after the outermost block."""
        if account.has_rates:
            account.cpu.use(thread_time() - before)
        if self.activity is not None and not self.depth:
            self.activity.end()
