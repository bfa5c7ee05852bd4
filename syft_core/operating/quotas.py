"""Quotas: limits what each user may use of a worker, before it is used.

Rates (messages, CPU seconds) slow a user down, and raise an error if the user would have to wait long. Amounts
(objects, bytes, leases) raise an error. They are estimated, and counted exactly when an estimate exceeds a limit.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from time import monotonic, sleep, thread_time
from types import GeneratorType
from typing import Any, Literal

from syft_core.desk.releases import releases_of
from syft_core.exceptions import OperationNotAllowedError
from syft_core.hook.attributes import Op
from syft_core.hook.caches import remember
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.hook.forms import Form, is_constant
from syft_core.hook.rules import leaves, map_leaves
from syft_core.hook.signatures import note, signature_of
from syft_core.kinds import KINDS
from syft_core.messages import Message, Placed, Run, Search, Store
from syft_core.operating.activity import Activity
from syft_core.operating.errors import QuotaExceededError
from syft_core.peer import Id, Peer
from syft_core.pictures import one_line
from syft_core.values import Function, Nested, Outcome, Tensor
from syft_core.workers.addresses.requests import Elsewhere, Process
from syft_core.workers.party.status import OUT
from syft_core.workers.party.store import Stored, is_leaf
from syft_core.workers.party.worker import Stage, Worker
from syft_core.workers.running.execution import Execution
from syft_core.workers.seeing.permissions import POLICIES, Policy, hides_objects

PATIENCE = 10.0
"""How many seconds a user who exceeds a rate is made to wait; who would have to wait longer gets an error."""
DEFAULT = "default"
"""The name of the entry for users who have none of their own."""
MAX_COPIES = 1 << 30
"""How many bytes may leave with one message at most, if the objects do not take that much memory anyway."""
_MAX_SIGNATURE = 1024


@dataclass(frozen=True)
class Allowance:
    """What one user may do; None means no limit.

    The defaults are far above what a program needs. There is none for the rates: a user who is alone may use all of the
    processor, and the others take turns with whoever computes.
    """

    policy: Literal["unless_private", "only_published", "nothing"] | None = None
    """The policy for this user, instead of that of the worker."""
    tier: Literal["public", "reviewed"] = "public"
    """Which operations the user may run: all, or only those that were reviewed for private data."""
    objects: int | None = 100_000
    bytes: int | None = None
    """The memory of the user's objects, including that of a result before it is computed; ``syft-core worker`` limits
    it to half of the process's memory."""
    leases: int | None = 1_000_000
    """How many pointers the user may have."""
    cpu_seconds: float | None = None
    """Per minute; threads that the framework starts for one operation count once."""
    messages: float | None = None
    """Per second."""
    connections: int | None = 100
    crashes: int | None = 5
    """How often operations of the user may end the worker's process, until it accepts no more of them."""


@dataclass
class Bucket:
    """A rate limit: what was used, minus what is allowed for the time since."""

    rate: float | None
    """How much is allowed per second; None means no limit."""
    burst: float
    """How much may be used at once."""
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
    """What one user has used."""

    def __init__(self, user: str, allowance: Allowance) -> None:
        self.user, self.allowance = user, allowance
        self.objects = self.bytes = self.leases = 0
        cpu, messages = allowance.cpu_seconds, allowance.messages
        self.cpu = Bucket(None if cpu is None else cpu / 60, cpu or 0.0)
        self.messages = Bucket(messages, messages or 0.0)
        self.has_rates = cpu is not None or messages is not None


@dataclass(frozen=True)
class _Estimate:
    """What is known about all calls of one signature."""

    signature: str
    encoded: bytes
    size: tuple[int, int] | None
    """The bytes of new memory and the number of tensors of the result, or None if they cannot be inferred."""


class QuotaGuard:
    """The guard of a served worker: quotas of users, refused signatures, and the record of what is executing."""

    def __init__(
        self,
        worker: Worker,
        users: Mapping[str, Allowance],
        refused: Mapping[str, str] | None = None,
        crashes: Mapping[str, int] | None = None,
        activity: Activity | None = None,
    ) -> None:
        self._worker, self._users = worker, users
        self._refused = refused or {}
        """The signatures that ended the process, with the reason."""
        self._crashes = crashes or {}
        """How often operations of each user ended the process."""
        self._activity = activity
        self._accounts: dict[str, Account] = {}
        self._holders: dict[Id, tuple[Account, bytes]] = {}
        """The account of each client, and its id and user for the record."""
        self._payers: dict[Peer, tuple[Account, bytes]] = {}
        """The accounts by sender, as far as they were looked up since the last exact count."""
        self._inferred = False
        """Whether the size of the result of the operation that was checked last could be inferred."""
        self._depth = 0
        self._thread = threading.local()

    def configure(self, users: Mapping[str, Allowance]) -> None:
        """Use other quotas from now on; what users have stays."""
        self._users = users
        for name, account in list(self._accounts.items()):
            allowance = find_allowance(users, name)
            if allowance != account.allowance:
                new = Account(name, allowance)
                new.objects, new.bytes, new.leases = account.objects, account.bytes, account.leases
                self._accounts[name] = new
                for id, (holder, who) in list(self._holders.items()):
                    if holder is account:
                        self._holders[id] = new, who

    def account_of(self, user: str) -> Account:
        """Return the account of a user."""
        account = self._accounts.get(user)
        if account is None:
            account = Account(user, find_allowance(self._users, user))
            self._accounts[user] = account
        return account

    @property
    def accounts(self) -> list[Account]:
        """The accounts of all users, with exact amounts."""
        with self._worker.lock:
            self._count()
        return list(self._accounts.values())

    # --- connections and batches

    def refuse_connection(self, user: str, others: int) -> str | None:
        """Return why a user may not have one more connection, or None."""
        allowance = self.account_of(user).allowance
        crashes = self._crashes.get(user, 0)
        if allowance.crashes is not None and crashes >= allowance.crashes:
            return f"operations of user {user!r} ended the worker's process {crashes} times"
        if allowance.connections is not None and others >= allowance.connections:
            return f"user {user!r} has {others} connections, and the limit is {allowance.connections}"
        return None

    def limit_message(self, user: str) -> int | None:
        """Return how many bytes of objects one message may have: as many as the user may have on the worker."""
        return self.account_of(user).allowance.bytes

    def admit(self, peer: Peer, number: int) -> float:
        """Take note of the next batch; return how many seconds the client has to wait for its rates."""
        self._thread.batch = number
        account, _ = self._find(peer)
        return min(max(account.cpu.wait(), account.messages.wait()), PATIENCE)

    # --- messages

    def handle(self, handler: Function, worker: Worker, message: Message, sender: Peer) -> Outcome:
        """Call the handler of a message, unless the sender has used up a quota."""
        if sender.id == self._worker.id and not sender.behalf:
            return handler(worker, message, sender)
        account, _ = self._payers.get(sender) or self._find(sender)
        is_run = type(message) is Run  # ``meter`` checks and records an operation, when its operands are known.
        before = self._begin(account, message) if account.has_rates else 0.0
        if not is_run:
            self._require_amounts(account, message)
        doing = b"" if is_run else self._name(message)
        self._inferred = False
        self._depth += 1
        try:
            if not is_run:
                self._record(sender, doing)
            answer = handler(worker, message, sender)
        finally:
            self._depth -= 1
            if account.has_rates:
                self._end(account, before)
            elif self._activity is not None and not self._depth:
                self._activity.end()
        if type(answer) is Placed and is_run and self._inferred:
            account.leases += 1
            return answer
        if type(answer) is Elsewhere:
            answer = _make_process(answer)
        if type(answer) is GeneratorType:
            return self._follow(answer, account, message, sender, doing)
        self._charge(account, message, answer)
        return answer

    def _begin(self, account: Account, message: Message) -> float:
        """Raise if a rate is exceeded; return the processor time of this thread."""
        allowance = account.allowance
        for bucket, limit, what in (
            (account.cpu, allowance.cpu_seconds, "CPU seconds per minute"),
            (account.messages, allowance.messages, "messages per second"),
        ):
            if limit is not None and (seconds := bucket.wait()) > PATIENCE:
                raise QuotaExceededError.rate(_name(message), account.user, what, limit, seconds)
        account.messages.use(1)
        return thread_time()

    def _end(self, account: Account, before: float) -> None:
        """Charge a user for the time since ``before``; record that nothing is executed after the outermost block."""
        if account.has_rates:
            account.cpu.use(thread_time() - before)
        if self._activity is not None and not self._depth:
            self._activity.end()

    def watch(self, doing: bytes, sender: Peer, function: Function, *args: object) -> Outcome:
        """Call a function that does something with a message; record it, and charge the user for the time."""
        account, _ = self._payers.get(sender) or self._find(sender)
        before = thread_time() if account.has_rates else 0.0
        self._depth += 1
        try:
            self._record(sender, doing)
            return function(*args)
        finally:
            self._depth -= 1
            self._end(account, before)

    def _require_amounts(self, account: Account, message: Message) -> None:
        facts, here = message.facts, self._worker.id
        doing = f"store object {message.id!r}" if type(message) is Store else _name(message)
        copied, sent = facts.copies(message, here), facts.sends(message, here)
        given = _bytes_of(getattr(message, facts.gives)) if facts.gives else 0
        self._require(account, "objects", len(copied) or len(facts.creates(message, here)), doing)
        self._require(
            account, "bytes", given + _bytes_of_words(message) + (self._measure(copied) if copied else 0), doing
        )
        self._require(account, "leases", facts.leases(message), doing)
        if sent:
            self._require_departure(account, sent, doing)

    def _require_departure(self, account: Account, ids: tuple[Id, ...], doing: str) -> None:
        """Raise if a message makes more of objects than they are: a view may repeat elements, a message its objects."""
        size, limit = self._measure(ids), account.allowance.bytes
        limit = MAX_COPIES if limit is None else min(limit, MAX_COPIES)
        if size > limit:
            seen: set[tuple[str, object]] = set()
            kept = sum([_bytes_of(entry.value, account.user, seen) for entry in set(self._find_objects(ids))])
            if size > kept:
                raise QuotaExceededError.copies(doing, account.user, size, limit)

    def _follow(self, process: Process, account: Account, message: Message, sender: Peer, doing: bytes) -> Process:
        """Run a process that needs other parties; what it does counts, the waiting does not."""
        answer: Any = None
        resume: Callable[[Any], Any] = process.send
        while True:
            try:
                request = self.watch(doing, sender, resume, answer)
            except StopIteration as end:
                self._charge(account, message, end.value)
                return end.value
            before = thread_time() if account.has_rates else 0.0
            try:
                answer, resume = (yield request), process.send
            except Exception as error:  # noqa: BLE001  # the process handles it
                answer, resume = error, process.throw
            if account.has_rates:  # The thread also runs protocols; it uses no time while it waits.
                account.cpu.use(thread_time() - before)

    def _name(self, message: Message) -> bytes:
        """Return the name of a message for the record; raise if it is the call of a function that is refused."""
        if not message.facts.stores_results:
            return type(message).__name__.encode()
        called = getattr(message, "name", None) or getattr(message, "id", "")
        name = f"{type(message).__name__}({called!a})"
        if name in self._refused:
            raise OperationNotAllowedError.refused_by("worker", name, self._refused[name])
        return name.encode()

    def _record(self, sender: Peer, operation: bytes) -> None:
        if operation and self._activity is not None:
            _, who = self._payers.get(sender) or self._find(sender)
            self._activity.begin(who, getattr(self._thread, "batch", 0), operation)

    # --- operations

    def meter(self, proceed: Stage, execution: Execution) -> Nested:
        """Run an operation, unless its sender may not run it with these operands, or its result exceeds the quota."""
        op, sender = execution.op, execution.peer
        if sender.id == self._worker.id and not sender.behalf:
            return proceed(execution)
        account, who = self._payers.get(sender) or self._find(sender)
        allowance = account.allowance
        if op.tier != "reviewed" and allowance.tier == "reviewed":
            why = f"user {account.user!r} may run only reviewed operations; ask the owner"
            raise OperationNotAllowedError.refused_by("worker", op.name, why)
        known = execution.memo.get(_Estimate)
        if known is None:
            known = self._describe(execution)
        elif self._activity is not None:
            self._activity.begin(who, getattr(self._thread, "batch", 0), known.encoded)
        if known.signature in self._refused:
            why = f"{self._refused[known.signature]}; use another operation, or operands of another form"
            raise OperationNotAllowedError.refused_by("worker", known.signature, why)
        size, count = known.size or (0, 1 if execution.count < 0 else execution.count)
        if op.inplace or execution.status & OUT:
            count = 0
        if allowance.objects is not None and account.objects + count > allowance.objects:
            self._require(account, "objects", count, op.name)
        if allowance.bytes is not None and account.bytes + size > allowance.bytes:
            self._require(account, "bytes", size, op.name)
        account.objects += count  # At once: a plan runs many operations.
        account.bytes += size
        self._inferred = known.size is not None
        answer = proceed(execution)
        return self._take_turns(answer, account, sender, known.encoded) if type(answer) is GeneratorType else answer

    def _take_turns(self, process: Process, account: Account, sender: Peer, operation: bytes) -> Process:
        """Run an operation that lets others go first: record it in each turn, and make its user wait for the rates."""
        answer: Any = None
        resume: Callable[[Any], Any] = process.send
        while True:
            try:
                request = resume(answer)
            except StopIteration as end:
                return end.value
            try:
                answer, resume = (yield request), process.send
            except Exception as error:  # noqa: BLE001  # the process handles it
                answer, resume = error, process.throw
            while seconds := account.cpu.wait():
                yield Elsewhere(partial(sleep, min(seconds, 1.0)))
            self._record(sender, operation)

    def require_room(self, sender: Peer, name: str, objects: int, size: int) -> None:
        """Raise unless the results of a protocol, or what it needs to deal, fit the quota of the sender."""
        account, _ = self._find(sender)
        self._require(account, "objects", objects, name)
        self._require(account, "bytes", size, name)

    def _describe(self, execution: Execution) -> _Estimate:
        """Return what is known about a signature, after recording it: the inference itself may fail badly."""
        op = execution.op
        signature = write_signature(op, signature_of(op, execution.args, execution.kwargs))
        encoded = signature.encode(errors="replace")
        self._record(execution.peer, encoded)
        size = None
        if signature not in self._refused:
            call = map_leaves(_to_form, (execution.args, execution.kwargs))
            size = execution.framework.infer_size(op, *call)
        return note(execution.memo, _Estimate, _Estimate(signature, encoded, size))

    # --- amounts

    def _require(self, account: Account, what: str, more: int, doing: str) -> None:
        """Raise if a user would have too much with ``more``; an operation is given by its name."""
        limit: int | None = getattr(account.allowance, what)
        if limit is None or getattr(account, what) + more <= limit:
            return
        self._count()
        needed = getattr(account, what) + more
        if needed > limit:
            doing = doing if " " in doing else f"run {doing!r}"
            raise QuotaExceededError.amount(doing, account.user, what, needed, limit)

    def _charge(self, account: Account, message: Message, answer: Any) -> None:
        """Add what a message has created to the estimates, in which views count like copies."""
        facts, here = message.facts, self._worker.id
        if facts.stores_results:
            for leaf in (answer,) if type(answer) is Placed else leaves(answer):
                if type(leaf) is not Placed:
                    continue
                if self._inferred:  # ``check`` has added the rest.
                    account.leases += 1
                else:
                    self._add(account, leaf.id)
            return
        account.leases += len(answer) if type(message) is Search else facts.leases(message)
        stored = (*facts.creates(message, here), *facts.replaces(message, here))
        for id in stored:
            self._add(account, id)
        if not stored and (copied := facts.copies(message, here)):
            account.objects += len(copied)
            account.bytes += self._measure(copied)

    def _find_objects(self, ids: tuple[Id, ...]) -> list[Stored]:
        return [entry for entry in map(self._worker.object_store.get, ids) if entry is not None]

    def _measure(self, ids: tuple[Id, ...]) -> int:
        """Return how many bytes copies of objects have."""
        return sum([_bytes_of_copy(entry.value) for entry in self._find_objects(ids)])

    def _add(self, account: Account, id: Id) -> None:
        entry = self._worker.object_store.get(id)
        if entry is not None:
            account.objects += 1
            account.leases += 1
            if account.allowance.bytes is not None:
                account.bytes += _bytes_of(entry.value)

    def _count(self) -> None:
        """Count objects, bytes and leases of all users; tensors that share memory count once for each user."""
        for account in list(self._accounts.values()):  # Others connect meanwhile.
            account.objects = account.bytes = account.leases = 0
        seen: set[tuple[str, object]] = set()
        holders: dict[Id, tuple[Account, bytes]] = {}
        for entry in self._worker.object_store.iter_all():
            for holder, leases in _leases_of(entry):
                if (found := self._holders.get(holder)) is not None:
                    found[0].leases += leases
                    holders[holder] = found
            if (owner := self._owner_of(entry)) is not None:
                owner.objects += 1
                owner.bytes += _bytes_of(entry.value, owner.user, seen) + _bytes_of_words(entry)
        for request in releases_of(self._worker).requests:
            for requested in request.objects:
                if requested.value is not None:
                    owner = self.account_of(user_of(request.peer))
                    owner.objects += 1
                    owner.bytes += _bytes_of(requested.value)
        self._holders = holders
        self._payers.clear()

    def _owner_of(self, entry: Stored) -> Account | None:
        giver = entry.publisher or entry.giver
        if giver is not None and (user := user_of(giver)):
            return self.account_of(user)
        found = self._holders.get(entry.holder)
        return None if found is None else found[0]

    def _find(self, peer: Peer) -> tuple[Account, bytes]:
        """Return the account of a client, and its id and user for the record."""
        found = self._holders.get(peer.id)
        user = user_of(peer)
        if found is None or found[0].user != user:
            who = f"{one_line(str(peer.id))}\n{one_line(user)}".encode(errors="replace")
            found = self._holders[peer.id] = self.account_of(user), who
        return remember(self._payers, peer, found)


def _make_process(request: Elsewhere) -> Process:
    return (yield request)


def user_of(peer: Peer) -> str:
    """Return the user who pays: of the connection or, if a worker acts for somebody, of the first request."""
    return peer.user if peer.user is not None else peer.original.user or ""


def find_allowance(users: Mapping[str, Allowance], user: str) -> Allowance:
    """Return what a user may do: the entry of the user, or the default one."""
    return users.get(user) or users.get(DEFAULT) or Allowance()


def limit_bytes(users: Mapping[str, Allowance], limit: int) -> dict[str, Allowance]:
    """Return what users may do, with a limit for the memory of all who have none of their own."""
    known = {DEFAULT: Allowance(), **users}
    return {name: replace(user, bytes=limit) if user.bytes is None else user for name, user in known.items()}


def make_policy(users: Mapping[str, Allowance], otherwise: Policy) -> Policy:
    """Return a policy that asks the policy of each user; ``otherwise`` decides for users without one."""
    if not any(allowance.policy for allowance in users.values()):
        return otherwise
    chosen = {name: POLICIES[allowance.policy] for name, allowance in users.items() if allowance.policy}

    def by_user(verb: Any, stored: Stored, peer: Peer, value: Any) -> str | None:
        policy = chosen.get(peer.user or "") if peer.user in users else chosen.get(DEFAULT)
        return (policy or otherwise)(verb, stored, peer, value)

    hides = any(getattr(policy, "hides", False) for policy in (otherwise, *chosen.values()))
    return hides_objects(by_user) if hides else by_user


def _leases_of(entry: Stored) -> list[tuple[Id, int]]:
    """Return who pays for the leases on an object: whoever took them, not the worker that was given a pointer."""
    payer = entry.holder if entry.giver is None else entry.giver.id
    found = [(payer, entry.leases)]
    for holder, leases in (entry.others or {}).items():
        found.append((holder[1] if type(holder) is tuple else holder, leases))
    return found


def _bytes_of_words(tagged: Message | Stored) -> int:
    """Return about how many bytes tags and a description take."""
    return sum(map(len, getattr(tagged, "tags", ()))) + len(getattr(tagged, "description", None) or "")


def _bytes_of_copy(value: object) -> int:
    """Return the memory of a copy of a value, in which no elements share memory."""
    if (kind := KINDS.get(type(value))) is not None:
        return kind.bytes_of(value)
    total = 0
    for leaf in leaves(value):
        end = plain_end(leaf)
        if end is not None:
            known = framework_of(end).form_of(end)
            size = None if known is None or known.shape is None else prod(known.shape) * known.dtype.itemsize
            gradient = end.grad if is_leaf(end) else None
            total += framework_of(end).bytes_of(end) if size is None else size + _bytes_of_copy(gradient)
    return total


def _bytes_of(value: object, user: str = "", seen: set[tuple[str, object]] | None = None) -> int:
    """Return the memory of a plan, or of the tensors in a value, without what was ``seen`` before."""
    if (kind := KINDS.get(type(value))) is not None:
        return kind.bytes_of(value)
    total = 0
    for leaf in leaves(value):
        end = plain_end(leaf)
        if end is None:
            continue
        framework = framework_of(end)
        if seen is not None:
            memory = user, framework.memory_of(end)
            if memory[1] is not None and memory in seen:
                continue
            seen.add(memory)
        total += framework.bytes_of(end)
    return total


def _name(message: Message) -> str:
    return f"run {one_line(message.op)!r}" if type(message) is Run else f"execute a {type(message).__name__}"


# --- signatures


def write_signature(op: Op, key: tuple[object, ...]) -> str:
    """Return a signature as text that is the same in every process; a long one ends with its hash."""
    text = f"{op.name}({', '.join(map(_write, key[1:]))})"
    if len(text) <= _MAX_SIGNATURE:
        return text
    return f"{text[:_MAX_SIGNATURE]}... {hashlib.sha256(text.encode(errors='replace')).hexdigest()[:16]}"


def _write(part: object) -> str:
    if isinstance(part, Form):
        dtype, grad = str(part.dtype).rpartition(".")[2], " grad" if part.requires_grad else ""
        strides = "" if part.strides is None else f"/{','.join(map(str, part.strides))}"
        return f"{dtype}{list(part.shape)}{strides}{grad}"
    if isinstance(part, type):
        return part.__name__
    if type(part) is tuple:
        if isinstance(part[0], Form) or (len(part) == 2 and isinstance(part[0], type)):  # a chain, or a value
            return ascii(part[1]) if _is_text(part) else _write(part[0])
        if type(part[0]) is str:  # a named argument
            return f"{ascii(part[0])[1:-1]}={_write(part[1])}"
        return f"[{', '.join([_write(item) for item in part[1]])}]"
    return repr(part)


def _is_text(part: tuple[Any, ...]) -> bool:
    """Return whether a part is a type and a constant of it, which is written as it is."""
    return isinstance(part[0], type) and part[0] is not float and is_constant(part[1])


def _to_form(leaf: Tensor) -> Nested:
    end = plain_end(leaf)
    if end is None:
        return leaf
    return framework_of(end).form_of(end) or leaf
