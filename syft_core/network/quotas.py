"""Quotas: limits what each user may use of a worker, before it is used.

Rates (messages, CPU seconds) slow a user down, and raise an error if the user would have to wait long. Amounts
(objects, bytes, leases) raise an error. They are estimated, and counted exactly when an estimate exceeds a limit.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from math import prod
from time import monotonic, thread_time
from types import GeneratorType
from typing import Any, Literal

from syft_core.exceptions import OperationNotAllowedError, QuotaExceededError
from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.caches import remember
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.hook.forms import Form, is_constant
from syft_core.hook.ranks import framework_types
from syft_core.hook.rules import is_flat, leaves, map_leaves
from syft_core.messages import (
    COMMANDS,
    AskRelease,
    Fetch,
    FetchAll,
    Forward,
    GetBack,
    Lease,
    Message,
    Placed,
    Run,
    Search,
    SendOn,
    Store,
    Tag,
)
from syft_core.network.activity import Activity
from syft_core.peer import Id, Peer
from syft_core.pictures import one_line
from syft_core.plans.program import Program
from syft_core.values import Args, Function, Kwargs, Nested, Outcome, Tensor
from syft_core.workers.permissions import POLICIES, Policy
from syft_core.workers.requests import Elsewhere, Process
from syft_core.workers.store import Stored, is_leaf
from syft_core.workers.worker import Worker

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
class _Known:
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
        self._known: dict[object, _Known] = {}
        self._inferred = False
        """Whether the size of the result of the operation that was checked last could be inferred."""
        self._depth = 0
        self._thread = threading.local()

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
        account, _ = self._find(sender)
        if account.has_rates:
            self._require_rates(account, message)
            account.messages.use(1)
        if type(message) is not Run:  # ``check`` does it for operations.
            self._require_amounts(account, message)
        self._inferred = False
        answer = self._execute(partial(handler, worker, message, sender), account, message, sender)
        if type(answer) is Elsewhere:
            answer = _make_process(answer)
        if type(answer) is GeneratorType:
            return self._follow(answer, account, message, sender)
        self._charge(account, message, answer)
        return answer

    @contextmanager
    def watch(self, doing: bytes, sender: Peer) -> Iterator[None]:
        """Record what is done with a message, and charge its user for the time."""
        account, _ = self._find(sender)
        with self._measure_time(account):
            self._record(sender, doing)
            yield

    @contextmanager
    def _measure_time(self, account: Account) -> Iterator[None]:
        """Charge a user for the time of a block, and record that nothing is being executed after the outermost one."""
        self._depth += 1
        before = thread_time() if account.has_rates else 0.0
        try:
            yield
        finally:
            self._depth -= 1
            if account.has_rates:
                account.cpu.use(thread_time() - before)
            if self._activity is not None and not self._depth:
                self._activity.end()

    def _require_amounts(self, account: Account, message: Message) -> None:
        doing = f"store object {message.id!r}" if type(message) is Store else _name(message)
        if type(message) is Store:
            self._require(account, "objects", 1, doing)
            self._require(account, "bytes", _bytes_of(message.value) + _bytes_of_words(message), doing)
        elif type(message) is Tag:
            self._require(account, "bytes", _bytes_of_words(message), doing)
        elif type(message) in _CALLS:
            self._require(account, "objects", 1, doing)
        elif type(message) in (Lease, Search):
            self._require(account, "leases", len(message.ids) if type(message) is Lease else 1, doing)
        elif type(message) is AskRelease or (type(message) is Forward and message.destination == self._worker.id):
            self._require(account, "objects", len(_ids_of(message)), doing)
            self._require(account, "bytes", self._measure(message), doing)
        elif type(message) in (Fetch, FetchAll, Forward, SendOn):
            self._require_departure(account, message, doing)

    def _require_departure(self, account: Account, message: Message, doing: str) -> None:
        """Raise if a message makes more of objects than they are: a view may repeat elements, a message its objects."""
        size, limit = self._measure(message), account.allowance.bytes
        limit = MAX_COPIES if limit is None else min(limit, MAX_COPIES)
        if size > limit:
            seen: set[tuple[str, object]] = set()
            kept = sum([_bytes_of(entry.value, account.user, seen) for entry in set(self._find_objects(message))])
            if size > kept:
                raise QuotaExceededError.copies(doing, account.user, size, limit)

    def _execute(self, function: Callable[[], Any], account: Account, message: Message, sender: Peer) -> Outcome:
        """Run a part of the execution of a message, under the lock of the worker."""
        with self._measure_time(account):
            if type(message) is not Run:  # ``check`` records an operation, when its operands are known.
                self._record(sender, self._name(message))
            return function()

    def _follow(self, process: Process, account: Account, message: Message, sender: Peer) -> Process:
        """Run a process that needs other parties; what it does counts, the waiting does not."""
        answer: Any = None
        resume: Callable[[Any], Any] = process.send
        while True:
            try:
                request = self._execute(partial(resume, answer), account, message, sender)
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
        if type(message) not in _CALLS:
            return _NAMES[type(message)]
        called = getattr(message, "name", message.id)  # type: ignore[attr-defined]  # they have an id
        name = f"{type(message).__name__}({called!a})"
        if name in self._refused:
            raise OperationNotAllowedError.refused_by("worker", name, self._refused[name])
        return name.encode()

    def _record(self, sender: Peer, operation: bytes) -> None:
        if self._activity is not None:
            self._activity.begin(self._find(sender)[1], getattr(self._thread, "batch", 0), operation)

    # --- operations

    def check(self, message: Run, op: Op, args: Args, kwargs: Kwargs, sender: Peer) -> None:
        """Raise unless the sender may run an operation with these operands; its result must fit the quota."""
        if sender.id == self._worker.id and not sender.behalf:
            return
        account, _ = self._find(sender)
        if op.tier != "reviewed" and account.allowance.tier == "reviewed":
            why = f"user {account.user!r} may run only reviewed operations; ask the owner"
            raise OperationNotAllowedError.refused_by("worker", op.name, why)
        key: tuple[object, ...] = (op, *map(_part, args))
        if kwargs:
            key += tuple([(name, _part(arg)) for name, arg in kwargs.items()])
        known = self._known.get(key)
        if known is None:
            framework = self._worker.attributes_of(message.framework)
            known = self._describe(key, framework, op, args, kwargs, sender)
        else:
            self._record(sender, known.encoded)
        if known.signature in self._refused:
            why = f"{self._refused[known.signature]}; use another operation, or operands of another form"
            raise OperationNotAllowedError.refused_by("worker", known.signature, why)
        size, count = known.size or (0, 1 if message.count < 0 else message.count)
        if op.inplace or (kwargs and kwargs.get("out") is not None):
            count = 0
        self._require(account, "objects", count, op.name)
        self._require(account, "bytes", size, op.name)
        account.objects += count  # At once: a plan runs many operations.
        account.bytes += size
        self._inferred = known.size is not None

    def require_room(self, sender: Peer, name: str, objects: int, size: int) -> None:
        """Raise unless the results of a protocol, or what it needs to deal, fit the quota of the sender."""
        account, _ = self._find(sender)
        self._require(account, "objects", objects, name)
        self._require(account, "bytes", size, name)

    def _describe(
        self, key: tuple[object, ...], framework: FrameworkAttributes, op: Op, args: Args, kwargs: Kwargs, sender: Peer
    ) -> _Known:
        """Return what is known about a signature, after recording it: the inference itself may fail badly."""
        signature = write_signature(op, key)
        encoded = signature.encode(errors="replace")
        self._record(sender, encoded)
        size = None
        if signature not in self._refused:
            size = framework.infer_size(op, *map_leaves(_to_form, (args, kwargs)))
        return remember(self._known, key, _Known(signature, encoded, size))

    # --- amounts

    def _require_rates(self, account: Account, message: Message) -> None:
        allowance = account.allowance
        for bucket, limit, what in (
            (account.cpu, allowance.cpu_seconds, "CPU seconds per minute"),
            (account.messages, allowance.messages, "messages per second"),
        ):
            if limit is not None and (seconds := bucket.wait()) > PATIENCE:
                raise QuotaExceededError.rate(_name(message), account.user, what, limit, seconds)

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
        if type(message) is Search:
            account.leases += len(answer)
        elif type(message) is Lease:
            account.leases += len(message.ids)
        elif type(message) in (Store, GetBack):
            self._add(account, message.id)  # type: ignore[attr-defined]  # both have an id
        elif type(message) is Forward:
            self._add(account, message.new_id)
        elif type(message) is AskRelease:
            account.objects += len(message.ids)
            account.bytes += self._measure(message)
        elif type(message) is Run or type(message) in _CALLS:
            for leaf in (answer,) if type(answer) is Placed else leaves(answer):
                if type(leaf) is not Placed:
                    continue
                if self._inferred:  # ``check`` has added the rest.
                    account.leases += 1
                else:
                    self._add(account, leaf.id)

    def _find_objects(self, message: Message) -> list[Stored]:
        found = map(self._worker.object_store.get, _ids_of(message))
        return [entry for entry in found if entry is not None]

    def _measure(self, message: Message) -> int:
        """Return how many bytes copies of the objects of a message have."""
        return sum([_bytes_of_copy(entry.value) for entry in self._find_objects(message)])

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
        for entry in self._worker.object_store.entries():
            for holder, leases in _leases_of(entry):
                if (found := self._holders.get(holder)) is not None:
                    found[0].leases += leases
                    holders[holder] = found
            if (owner := self._owner_of(entry)) is not None:
                owner.objects += 1
                owner.bytes += _bytes_of(entry.value, owner.user, seen) + _bytes_of_words(entry)
        for request in self._worker.requests:
            for requested in request.objects:
                if requested.value is not None:
                    owner = self.account_of(user_of(request.peer))
                    owner.objects += 1
                    owner.bytes += _bytes_of(requested.value)
        self._holders = holders

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
        return found


_CALLS = frozenset([kind for kind in COMMANDS if {"id", "result"} <= {part.name for part in fields(kind)}])
"""The messages that call something stored, and store its results."""
_NAMES: dict[type, bytes] = {kind: kind.__name__.encode() for kind in COMMANDS}


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

    return by_user


def _leases_of(entry: Stored) -> list[tuple[Id, int]]:
    """Return who pays for the leases on an object: whoever took them, not the worker that was given a pointer."""
    payer = entry.holder if entry.giver is None else entry.giver.id
    found = [(payer, entry.leases)]
    for holder, leases in (entry.others or {}).items():
        found.append((holder[1] if type(holder) is tuple else holder, leases))
    return found


def _ids_of(message: Any) -> tuple[Id, ...]:
    return message.ids if hasattr(message, "ids") else (message.id,)


def _bytes_of_words(tagged: Store | Tag | Stored) -> int:
    """Return about how many bytes tags and a description take."""
    return sum(map(len, tagged.tags)) + len(tagged.description or "")


def _bytes_of_copy(value: object) -> int:
    """Return the memory of a copy of a value, in which no elements share memory."""
    if isinstance(value, Program):
        return value.bytes
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
    if isinstance(value, Program):
        return value.bytes
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
        return f"{dtype}{list(part.shape)}{'' if part.strides is None else '/' + _digits(part.strides)}{grad}"
    if isinstance(part, type):
        return part.__name__
    if type(part) is tuple:
        if len(part) == 2 and isinstance(part[0], type):  # a constant
            return ascii(part[1])
        if len(part) == 2 and type(part[0]) is str:  # a named argument
            return f"{ascii(part[0])[1:-1]}={_write(part[1])}"
        return f"[{', '.join([_write(item) for item in part[1]])}]" if len(part) == 3 else repr(part)
    return repr(part)


def _digits(strides: Any) -> str:
    return ",".join(map(str, strides))


def _part(arg: Any) -> object:
    """Return what of an argument belongs to the signature: forms, constants, and types of anything else."""
    cls = type(arg)
    if framework_types.get(cls):
        return framework_of(arg).form_of(arg) or cls
    if cls is int or arg is None or cls is bool or cls is str:
        return (cls, arg)
    if not is_flat(cls):
        if isinstance(arg, dict):
            return (cls, tuple([(str(name), _part(item)) for name, item in arg.items()]), "items")
        items = (arg.start, arg.stop, arg.step) if cls is slice else arg
        return (cls, tuple(map(_part, items)), "items")
    if (end := plain_end(arg)) is not None:
        return framework_of(end).form_of(end) or cls
    return (cls, arg) if is_constant(arg) else cls


def _to_form(leaf: Tensor) -> Nested:
    end = plain_end(leaf)
    if end is None:
        return leaf
    return framework_of(end).form_of(end) or leaf
