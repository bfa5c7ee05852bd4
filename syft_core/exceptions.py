"""The tree of all errors that syft-core raises on purpose, and those of the kernel.

Each message reads ``cannot X: because Y; do Z`` and never contains a tensor's value.

::

    SyftError
    ├── RegistryError                     a write-once table refused a key
    │   ├── AlreadyRegisteredError
    │   └── NotRegisteredError            (also a LookupError)
    ├── BackendError                      a backend or another plugin cannot be used
    │   ├── DependencyError               (also an ImportError) a package that it needs is not installed
    │   ├── PluginError                   it is broken
    │   └── NotTheFrameworkError          (also a TypeError) something else was given to hook
    ├── HookError                         an operation cannot be dispatched
    │   ├── OperationNotAllowedError      (also a TypeError, RuntimeError) not in the op table
    │   ├── MixedLayersError              (also a TypeError) a call mixes incompatible layers
    │   ├── WrapperLeakError              (also a RuntimeError) a wrapper was used where data is needed
    │   ├── PlanMismatchError             (also an AssertionError) a signature plan does not match its arguments
    │   ├── PureFrameworkTensorFoundError no layer is left: the framework answers
    │   ├── RemoteObjectFoundError        a pointer was asked for its child
    │   └── ResponseSignatureError        a result has more tensors than ids
    ├── DomainError                       (also a ValueError) a value outside an approximation's domain
    ├── IdNotUniqueError                  (also a ValueError) an id is in use already
    ├── ColumnError                       (also a LookupError) a table does not have a column, or a mock
    ├── WorkerError                       workers and the objects they hold
    │   ├── ObjectNotFoundError           (also a LookupError) a worker does not hold an object
    │   ├── AlreadyRetrievedError         a pointer was used after its object was fetched or moved
    │   ├── WorkerNotFoundError           (also a LookupError) no worker with this id is known
    │   ├── WorkerIdTakenError            (also a ValueError) another worker has this id
    │   ├── WorkerNotPicklableError       (also a TypeError) a worker belongs to its process
    │   ├── LocalWorkerConflictError      (also a ValueError) hooks need one local worker, and another is in use
    │   ├── NotCollocatedError            (also a TypeError) the arguments of a call are in different places
    │   ├── GetNotPermittedError          (also a PermissionError) an object may not leave its worker
    │   ├── LedgerError                   a ledger on disk cannot be written, or was changed
    │   ├── StorageError                  an object cannot be kept on disk
    │   ├── TagNotPermittedError          (also a PermissionError) an object may not be tagged or described
    │   ├── WriteNotPermittedError        (also a PermissionError) an object may not be changed
    │   ├── SendNotPermittedError         (also a PermissionError) an object may not be sent
    │   ├── PolicyError                   (also a TypeError) not a policy
    │   ├── TooManyHopsError              a request was forwarded too often, or in a circle
    │   ├── OperationFailedError          (also a RuntimeError) an object is the result of a failed operation
    │   ├── OperandChangedError           another command changed what a running one uses
    │   ├── ConnectionLostError           (also a ConnectionError) a worker on the network cannot be reached
    │   │   └── SessionLostError          it has forgotten the session, and what is not published
    │   ├── MessageSizeError              (also a ValueError) a message is larger than a worker accepts
    │   ├── AuthenticationError           (also a PermissionError) a worker refused the connection
    │   ├── TicketError                   (also a PermissionError) a worker may not act for a peer on another one
    │   ├── InvalidTensorForRemoteGetError (also a TypeError) a worker was asked to fetch its own data
    │   └── ValueRefusedError             (also a TypeError, RuntimeError) it would implicitly reveal a remote value
    ├── ConfigurationError                (also a ValueError) a file or an option of a worker's operator is not usable
    └── SerdeError                        (also a ValueError) a value cannot be serialized or deserialized

The features have errors of their own, all of them below this tree::

    SyftError
    ├── PlanError                         (also a TypeError, RuntimeError) plans/errors.py: it cannot be recorded or run
    │   └── PlanShapesError               (also a ValueError) `args_shape` is not a list of shapes, or does not fit
    ├── PrecisionError                    (also a ValueError) crypto/errors.py: a number does not fit a fixed precision
    ├── SumError                          (also a ValueError) sums/errors.py: several workers cannot sum their results
    ├── WorkerError
    │   ├── ProtocolError                 crypto/errors.py: a protocol cannot run, or a party did not follow it
    │   │   ├── CheatingError             a party sent values that fail authentication
    │   │   └── PartyFailedError          another party of a protocol failed; its own error says why
    │   ├── GetNotPermittedError
    │   │   ├── ReleasePendingError       desk/errors.py: the owner has not decided yet
    │   │   └── ReleaseDeniedError        desk/errors.py: the owner has denied it
    │   ├── ReleaseError                  (also a ValueError) desk/errors.py: a release request is not valid
    │   ├── ApprovalError                 (also a ValueError) desk/errors.py: a rule cannot be used
    │   ├── SumRefusedError               (also a PermissionError) sums/errors.py: a worker takes no part in a sum
    │   ├── SumRuleError                  (also a ValueError) sums/errors.py: a rule about sums cannot be used
    │   ├── ConnectionLostError
    │   │   ├── AddressError              network/errors.py: the address or the protocol is wrong
    │   │   ├── ProxyError                network/errors.py: a proxy cannot reach the worker at the moment
    │   │   └── ActorLostError            ray/errors.py: the actor of Ray that hosts a worker is gone
    │   ├── RayStartError                 (also a RuntimeError) ray/errors.py: Ray or its actors cannot be started
    │   └── QuotaExceededError            operating/errors.py: a user would use more than the owner allows
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, requires
from string import Formatter
from typing import TypeVar

from syft_core.notebooks import render_in_notebook
from syft_core.printing import printable

E = TypeVar("E", bound="SyftError")


class Text:
    """The text of an error: ``NotCollocatedError.between(op, here, there)`` fills in the fields and returns the error.

    The arguments have the order in which the fields appear in the text, or ``order``; some have defaults.
    """

    def __init__(self, text: str, order: str = "", **defaults: str) -> None:
        self.text = text
        self.defaults = defaults
        self.fields = order.split() or list(dict.fromkeys(name for _, name, _, _ in Formatter().parse(text) if name))

    def __get__(self, error: E | None, cls: type[E]) -> Callable[..., E]:
        return partial(self._write, cls)

    def _write(self, cls: type[E], *args: object, **kwargs: object) -> E:
        fields = dict(zip(self.fields[: len(args)], args, strict=True))
        return cls(self.text.format_map({**self.defaults, **fields, **kwargs}))


class SyftError(Exception):
    """Base class of all errors that syft-core raises on purpose."""

    def __str__(self) -> str:
        return printable(super().__str__(), lines=True)

    def _render_traceback_(self) -> list[str]:
        return render_in_notebook(self)


class RegistryError(SyftError):
    """A write-once table refused a key."""


class AlreadyRegisteredError(RegistryError):
    """A key was registered a second time."""

    of = Text(
        "cannot register {key} in {table!r}: it is registered already; register it once, or use another type",
        order="table key",
    )


class NotRegisteredError(RegistryError, LookupError):
    """A key is not in the table."""

    @classmethod
    def of(cls, table: str, key: str, near: Iterable[str], advice: str) -> NotRegisteredError:
        """Name the missing key and the nearest entries, and explain how to add one."""
        return cls(f"cannot find {key} in {table!r}: it is not registered; {_suggest(near)}{advice}")


class BackendError(SyftError):
    """A backend or another plugin cannot be used."""


class DependencyError(BackendError, ImportError):
    """A package is not installed that a backend or a tool needs."""

    missing = Text("cannot load the {backend!r} backend: {framework!r} is not installed; run `{command}`")
    needed = Text("cannot use {name}: {package} is not installed; run `{command}`")


class PluginError(BackendError):
    """A plugin is broken."""

    broken = Text("cannot use the plugin {name!r}: {reason}; run `syft-core plugins` to list all plugins")


class NotTheFrameworkError(BackendError, TypeError):
    """Something that is not the framework was given to its hook."""

    @classmethod
    def received(cls, hook: str, framework: str, thing: object) -> NotTheFrameworkError:
        """Name what was expected and what was received."""
        name = getattr(thing, "__name__", None) or type(thing).__name__
        return cls(
            f"cannot hook {name!r}: {hook} takes the {framework} module itself; "
            f"write `import {framework}` and `{hook}({framework})`"
        )


class HookError(SyftError):
    """An operation cannot be dispatched."""


class OperationNotAllowedError(HookError, TypeError, RuntimeError):
    """The operation is not in the framework's op table, or a layer does not answer it."""

    @classmethod
    def not_in_table(cls, framework: str, name: str, near: Iterable[str]) -> OperationNotAllowedError:
        """Name the nearest operations, and explain how to allow one."""
        near = list(near)
        hint = f"use {' or '.join(near)}, or " if near else ""
        return cls(
            f"cannot run {name!r} on a pointer or another layer: it is not in the {framework} op table; "
            f"{hint}allow it for public data with `hook.attributes.allow(function)`"
        )

    reviewed_without_facts = Text(
        "cannot allow {name!r} on private data: what it discloses, writes and reads is not declared; if it has no side "
        'effects, pass `discloses="nothing", writes=frozenset(), reads_beyond=False`, otherwise leave out `tier`'
    )

    @classmethod
    def off(cls, name: str, instead: str = "") -> OperationNotAllowedError:
        """Explain why an operation never runs on a worker."""
        return cls(
            f"cannot run {name!r} on a worker: it is not memory-safe for all arguments; "
            f"{_use(instead)}fetch the tensor first: `p = p.get()`"
        )

    refused_by = Text("cannot run {name!r} on a {layer}: {why}", order="layer name why")

    @classmethod
    def without_rule(
        cls, layer: str, name: str, operation: str, reveals: bool, alternative: str | None = None
    ) -> OperationNotAllowedError:
        """Explain why a layer that encodes values does not run an operation on the encoding; name an alternative."""
        why = "it would reveal a value" if reveals else "the layer encodes its values and has no rule for it"
        advice = f"{alternative}, or " if alternative else ""
        advice = f"{advice}fetch the value and decode it first, for instance `x.get().float_precision()`"
        return cls.refused_by(layer, name, f"{why}; {advice}; to support it, give {layer} a rule called {operation!r}")

    no_kernels = Text(
        "cannot compute on shares with {framework}: its backend has no integer kernels; "
        "set `kernels` of its FrameworkAttributes"
    )
    no_numeric_wrapper = Text(
        "cannot wrap this layer: it encodes values, and the {framework} backend has no numeric wrapper; use it without "
        "a wrapper: `layer.on(x, wrap=False)`"
    )
    in_graph = Text(
        "cannot {verb} a result that requires a gradient: the graph would end here, and the tensors before it get no "
        "gradient; write `x.detach()` if this is what you want, or encode and share the parameters instead"
    )


class MixedLayersError(HookError, TypeError):
    """A call mixes incompatible layers."""

    between = Text(
        "cannot run {op!r}: it mixes a {one} with a {other}; put both operands under the same layers first, e.g. "
        "`{one}().on(x)`"
    )

    @classmethod
    def attributes(cls, op: str, layer: str, names: Iterable[str]) -> MixedLayersError:
        """Name the attributes in which two layers of one type differ."""
        listed = ", ".join(sorted(names))
        return cls(
            f"cannot run {op!r}: it mixes two {layer}s that differ in {listed}; "
            f"create both operands with the same {listed}"
        )

    parties = Text(
        "cannot compute on values shared among {one} and among {other}: the parties, their order or the "
        "crypto_provider differ; share both among the same workers"
    )
    rings = Text(
        "cannot compute on shared {one} and {other} numbers: a mask of one ring does not hide a number of the other; "
        "share both with the same dtype, or encode both with the same `field`"
    )
    plain = Text(
        "cannot mix a {layer} with a plain tensor: {layer} does not encode operands by itself; put the plain tensor "
        "under the same layers first"
    )
    wrappers = Text(
        "cannot run {op!r}: one operand is encoded by a numeric layer and another one is not; put both under the same "
        "layers first"
    )
    frameworks = Text(
        "cannot run {op!r}: it mixes a {one} wrapper with a {other} wrapper; convert one of them to the other "
        "framework first"
    )


class WrapperLeakError(HookError, RuntimeError):
    """A wrapper was used where data is needed."""

    at = Text("cannot run {place} on a wrapper: a wrapper holds no data of its own; {advice}")
    unseen = Text(
        "cannot use {what} on a pointer or another layer: the operations run on a worker, where it cannot see them; "
        "{advice}"
    )
    saving = Text(
        "cannot save or pickle a pointer: its data is on {location!r}; fetch it first: `p = p.get()`, or `model.get()` "
        "for a model"
    )


class PlanMismatchError(HookError, AssertionError):
    """A signature plan does not match its arguments."""

    arity = Text(
        "cannot apply a plan for {expected} argument(s) to {received}: a plan is for one signature only; build one for "
        "this signature"
    )
    slot = Text(
        "cannot apply a plan for a {expected} to a {received}: a plan is for one signature only; build one for this "
        "signature"
    )


class PureFrameworkTensorFoundError(HookError):
    """No layer is left in a call: the framework answers it."""

    in_call = Text(
        "cannot unwrap the arguments of {name!r}: none of them has a child; call the framework's own function"
    )


class RemoteObjectFoundError(HookError):
    """A pointer was asked for its child, which lives elsewhere."""

    def __init__(self, pointer: object) -> None:
        super().__init__("cannot unwrap a pointer: its object lives on another worker; send the command there")
        self.pointer = pointer


class ResponseSignatureError(HookError):
    """A result has more tensors than the caller gave ids for; none of them was stored."""

    def __init__(self, ids_generated: Iterable[int] = ()) -> None:
        super().__init__(
            "cannot register a response: it has more tensors than ids were given; give one id for each tensor"
        )
        self.ids_generated = list(ids_generated)


class DomainError(SyftError, ValueError):
    """A value lies outside the domain of an approximation."""

    outside = Text(
        "cannot approximate {name!r}: a value lies outside [{low:g}, {high:g}]; scale the input into that interval or "
        "add a piece for it"
    )


class IdNotUniqueError(SyftError, ValueError):
    """An id is in use already."""

    of = Text("cannot use the id {id!r}: it is in use; leave it out to get a new one")
    reserved = Text(
        "cannot use the id {id!r}: worker {worker!r} hides objects, and lets only its owner name them; leave it out to "
        "get a new one"
    )


class ColumnError(SyftError, LookupError):
    """A table does not have a column, or a mock."""

    repeated = Text("cannot describe a table: two of its columns have the same name; rename one")
    unnamed = Text(
        "cannot select columns by name: {what} has no column names; use numbers, or select columns of the table itself"
    )
    no_mock = Text("cannot use a mock: {what} has none; ask its owner to provide one")

    @classmethod
    def unknown(cls, name: str, known: Sequence[str]) -> ColumnError:
        """Name similar columns, or the first ones."""
        listed = ", ".join(known[:20]) + (f" and {len(known) - 20} more" if len(known) > 20 else "")
        advice = suggest(name, known[:1000], f"choose from {listed}")
        return cls(f"cannot select column {name!r}: there is none; {advice}")


class WorkerError(SyftError):
    """Base class of errors about workers and their objects."""


class ObjectNotFoundError(WorkerError, LookupError):
    """A worker does not hold an object."""

    id: object

    @classmethod
    def on(
        cls, id: object, worker: object, history: str = "it was never stored there, or was deleted"
    ) -> ObjectNotFoundError:
        """Name the object and the worker, and what happened to the object."""
        error = cls(
            f"cannot find object {id!r} on worker {worker!r}: {history}; "
            f"keep a pointer to every object that you still need"
        )
        error.id = id
        return error


class ConnectionLostError(WorkerError, ConnectionError):
    """A worker on the network cannot be reached, or the connection broke."""

    during = Text("cannot continue {doing}: the connection broke ({error!r}); connect again")
    closed = Text("cannot continue receiving: the other end closed the connection; connect again")
    stopping = Text(
        "cannot continue on worker {worker!r}: the worker is stopping; repeat the command when it is served again"
    )
    disconnected = Text("cannot use worker {worker!r}: the connection was closed; call `connect()` first")
    malformed = Text("cannot read a message: {why}; use the same release of syft-core at both ends, and connect again")
    unreachable = Text(
        "cannot reach the worker at {url}: no connection for {seconds:g} seconds ({why}); check the address, that the "
        "worker is running, and whether it uses TLS"
    )


class SessionLostError(ConnectionLostError):
    """A worker has forgotten the session of its client, and with it the objects that are not published."""

    worker: object

    @classmethod
    def on(cls, worker: object, why: str = "the worker has forgotten it") -> SessionLostError:
        """Name the worker and the reason."""
        error = cls(
            f"cannot continue the session on worker {worker!r}: {why}; unpublished objects are gone: find the "
            f"published ones with `search`, and send the others again"
        )
        error.worker = worker
        return error


class MessageSizeError(WorkerError, ValueError):
    """A message is larger than a worker accepts; the connection can be used as before."""

    too_large = Text(
        "cannot send a message of {size} bytes to worker {worker!r}: the limit is {limit}; send it in parts, or ask "
        "its owner for more (`bytes` of the user, or `limits.message_bytes`)"
    )
    too_many = Text(
        "cannot send this message to worker {worker!r}: with others of the user that are under way it has more bytes "
        "than the limit of {limit}; send it again when they have arrived"
    )
    no_memory = Text(
        "cannot send this message to worker {worker!r}: the worker has no memory for it at the moment; send it again "
        "later, or in parts"
    )


class AuthenticationError(WorkerError, PermissionError):
    """A worker on the network refused the connection."""

    refused = Text("cannot connect to {url}: {why}; {advice}", advice="ask the owner for a token: `token=...`")
    unusable = Text("cannot use {what}: {why}; copy it again, in one line")


class TicketError(WorkerError, PermissionError):
    """A worker may not act for a peer on another worker."""

    invalid = Text(
        "cannot accept the ticket of worker {bearer!r}: it was used before, has expired, or was issued for another "
        "worker; repeat the call to get a new one"
    )
    beyond = Text(
        "cannot execute {command} for worker {bearer!r}: its ticket does not cover it; a ticket is valid only for the "
        "objects that its client named",
        order="bearer command",
    )
    personal = Text(
        "cannot execute {command} for {sender!r}: it changes what the worker keeps for a client, and only the client "
        "itself may do that; send it for yourself",
        order="command sender",
    )
    claimed = Text(
        "cannot execute a batch of {sender!r} on behalf of {peer!r}: the sender has no ticket of that peer; send it "
        "yourself, or let the peer introduce you",
    )
    too_many = Text("cannot issue a ticket for {peer!r}: it has {limit} unused tickets; try again in a minute")
    missing = Text(
        "cannot reach worker {worker!r} on behalf of {peer!r}: there is no ticket for it; send the pointer again, or "
        "move the object"
    )


class AlreadyRetrievedError(WorkerError):
    """A pointer was used after its object was fetched or moved."""

    because = Text(
        "cannot use {pointer}: {why}; use the result of that call, or next time fetch a copy: `p.copy().get()`"
    )


class WorkerNotFoundError(WorkerError, LookupError):
    """No worker with this id is known."""

    @classmethod
    def named(cls, id: object, near: Iterable[str]) -> WorkerNotFoundError:
        """Name the nearest ids."""
        return cls(
            f"cannot find worker {id!r}: no worker here has this id; {_suggest(map(repr, near))}"
            f"create it first, e.g. `sy.VirtualWorker(hook, id={id!r})`"
        )


class WorkerIdTakenError(WorkerError, ValueError):
    """Another worker has this id."""

    by = Text("cannot create worker {id!r}: a {kind} has this id; choose another id")
    differs = Text(
        "cannot create worker {id!r}: a worker with this id exists, with another {option!r}; leave the option out to "
        "use that worker, or choose another id"
    )


class WorkerNotPicklableError(WorkerError, TypeError):
    """A worker belongs to its process, so it is neither pickled nor copied."""

    of = Text(
        "cannot pickle or copy the worker {id!r}: it belongs to this process; use its id, or connect to it from the "
        "other process (docs/networking.md)"
    )


class LocalWorkerConflictError(WorkerError, ValueError):
    """A hook asks for another local worker than the one that all hooks of this process share."""

    @classmethod
    def differs(cls, framework: str, given: object, shared: object, hooked: Iterable[str]) -> LocalWorkerConflictError:
        """Name both workers, and the frameworks to unhook."""
        return cls(
            f"cannot hook {framework} with the local worker {given!r}: all hooks of a process share one, and another "
            f"worker, {shared!r}, is in use; leave `local_worker` out, or unhook {' and '.join(hooked)} first"
        )

    @classmethod
    def is_client(cls, framework: str, shared: object, hooked: Iterable[str]) -> LocalWorkerConflictError:
        """Name the shared worker, and the frameworks to unhook."""
        return cls(
            f"cannot hook {framework} with `is_client=False`: all hooks of a process share the local worker "
            f"{shared!r}, which is a client; leave `is_client` out, or unhook {' and '.join(hooked)} and give "
            f"`is_client=False` to the first hook"
        )


class NotCollocatedError(WorkerError, TypeError):
    """The arguments of a call are on different workers, or on a worker and in this process."""

    between = Text(
        "cannot run {op!r}: its arguments live on {here!r} and {there!r}; move the first one, e.g. `p = "
        "p.move({there!r})`"
    )

    @classmethod
    def local(cls, op: str, there: object, of_model: bool = False) -> NotCollocatedError:
        """Refuse local data, or a local model, next to a pointer."""
        advice = f'local one: `y = y.send({there!r})`, or create it in a block "with p.location:"'
        advice = f"model: `model.send({there!r})`" if of_model else advice
        return cls(f"cannot run {op!r}: its arguments live on {there!r} and in this process; send the {advice}")

    foreign = Text(
        "cannot run {op!r}: it mixes a {framework} tensor on {there!r} with a local {kind}; convert and send it: `y = "
        "{framework}.asarray(y).send({there!r})`",
        order="op there kind framework",
    )
    change = Text(
        "cannot run {op!r}: it would implicitly reveal a value from {there!r} by writing it into a local tensor; fetch "
        "it first: `p = p.get()`"
    )
    draw = Text(
        "cannot run {op!r}: it would draw from a local generator, which worker {there!r} cannot advance; use the "
        "worker's own: `generator = None`, or draw the numbers here and send them"
    )


class GetNotPermittedError(WorkerError, PermissionError):
    """An object may not leave its worker."""

    @classmethod
    def to(cls, user: object, id: object, worker: object, why: str, verb: str = "get") -> GetNotPermittedError:
        """Name the user, the object and the reason."""
        place = "from" if verb == "get" else "on"
        return cls(
            f"cannot {verb} object {id!r} {place} worker {worker!r} as {user!r}: {why}; "
            f'ask its owner for it with `p.request("why")`'
        )


class LedgerError(WorkerError):
    """A ledger on disk cannot be written, or was changed."""

    unwritable = Text(
        "cannot let anything leave worker {worker!r}: its ledger cannot be written ({why}); ask its owner to repair "
        "it, then try again"
    )
    unusable = Text("cannot open the ledger {path}: {why}; check the path, its permissions and who else uses it")
    broken = Text(
        "cannot verify line {line} of {path}: its hash is wrong, so it was changed, or lines before it were inserted "
        "or removed; keep the file as evidence, and start a new one",
        order="path line",
    )
    cut = Text(
        "cannot find the hash {head} in {path}: the file was truncated or replaced since the hash was noted; keep the "
        "file as evidence, and look for a copy",
        order="path head",
    )
    later = Text(
        "cannot read {path}: it has format {format}, of a later release of syft-core; install that one, or use a "
        "backup from before the upgrade"
    )
    incomplete = Text(
        "cannot verify line {line} of {path}: it is incomplete, because of a crash or a change; start the worker "
        "again, which sets the line aside",
        order="path line",
    )


class StorageError(WorkerError):
    """An object cannot be kept on disk."""

    unwritable = Text(
        "cannot store object {id!r} on worker {worker!r}: it cannot be written to disk ({why}); ask its owner to "
        "repair the disk, then try again"
    )
    request = Text(
        "cannot keep {what} on worker {worker!r}: it cannot be written to disk ({why}); nothing has changed; ask its "
        "owner to repair the disk, then try again"
    )


class TagNotPermittedError(WorkerError, PermissionError):
    """An object may not be tagged or described."""

    to = Text(
        "cannot tag or describe object {id!r} on worker {worker!r} as {user!r}: {why}; tag a copy instead, e.g. `p = "
        'p.copy().tag("#mine")`',
        order="user id worker why",
    )
    reserved = Text(
        "cannot tag object {id!r} on worker {worker!r} as {user!r}: {tag!r} is reserved for data that its owner "
        "published; choose another tag",
        order="user id worker tag",
    )


class WriteNotPermittedError(WorkerError, PermissionError):
    """An object may not be changed."""

    to = Text(
        "cannot change object {id!r} on worker {worker!r} as {user!r}: {why}; change a copy instead, e.g. `p = "
        "p.copy()`",
        order="user id worker why",
    )


class PolicyError(WorkerError, TypeError):
    """Something that is not a policy was passed as one."""

    @classmethod
    def unknown(cls, name: str, known: Iterable[str]) -> PolicyError:
        """List the known policies."""
        return cls(
            f"cannot use the policy {name!r}: there is no such policy; use one of {', '.join(known)}, or a function"
        )

    signature = Text(
        "cannot use {policy!r} as a policy: it must take (verb, stored, peer, value); return None to allow, or the "
        "reason for a refusal"
    )


class TooManyHopsError(WorkerError):
    """A request was forwarded too often, or in a circle."""

    at = Text(
        "cannot answer on worker {worker!r}: the request was forwarded too often; use a pointer to the worker that "
        "holds the data"
    )
    itself = Text(
        "cannot send a pointer to {worker!r}: its data is there already; use the pointer, or copy it: `p.copy()`"
    )


class SendNotPermittedError(WorkerError, PermissionError):
    """An object may not be sent."""

    @classmethod
    def by(cls, user: object, allowed: Iterable[str]) -> SendNotPermittedError:
        """Name the users who may send it."""
        names = sorted(allowed)
        advice = (
            f"send it as one of them: `sy.local_worker.user = {names[0]!r}`"
            if names
            else "load it: `bob.load_data([y])`"
        )
        return cls(
            f"cannot send a private tensor as {user!r}: its owner allows {', '.join(names) or 'nobody'}; {advice}"
        )

    claimed = Text(
        "cannot send as {user!r}: the sender is {sender!r}, and a claimed user name is not authentication; leave "
        "`user` out, or set the `user` of the local worker"
    )
    stays = Text(
        "cannot {verb} a shared value: its shares stay with their parties; fetch it first: `x.get()`, or compute on it "
        "where it is"
    )


class ValueRefusedError(WorkerError, TypeError, RuntimeError):
    """The operation would implicitly reveal a remote value."""

    @classmethod
    def of(cls, op: str, location: str, may_consent: bool = True, instead: str = "") -> ValueRefusedError:
        """Name the ways to read a value explicitly; not every operation can run in a ``revealing`` block."""
        consent = ', or allow it: `with sy.revealing("why"):`' if may_consent else ""
        consent += f", or skip the check: `{instead}`" if instead else ""
        return cls(
            f"cannot run {op!r} on a pointer: it would implicitly reveal a value from {location!r}; "
            f"fetch it first: `p.get()`, or a copy: `p.copy().get()`{consent}"
        )

    without_reason = Text(
        "cannot reveal values: the ledger of each worker records a reason, and none was given; name one, e.g. `with "
        'sy.revealing("line search"):`'
    )
    only_local = Text(
        "cannot run {op!r} on a pointer to {location!r}: {why}; fetch the tensor first: `p = p.get()`",
        why="it only works in the process that holds the data",
    )
    foreign = Text(
        "cannot run {op!r} on a pointer: it would implicitly reveal a value from {location!r}; {use}fetch it first: "
        "`p = {fetch}`",
        order="op location use fetch",
    )

    @classmethod
    def form(cls, op: str, location: str, instead: str = "") -> ValueRefusedError:
        """Name an operation whose result has a fixed shape."""
        return _ask_owner(cls, f"{op!r} on a pointer: the shape of its result would reveal", location, instead)

    beyond = Text(
        "cannot run {op!r} on a pointer: the tensor on {location!r} is part of a larger one, which the operation could "
        "read; run it on a copy: `p = p.clone()`"
    )

    @classmethod
    def undecided(cls, op: str, location: str, instead: str = "") -> ValueRefusedError:
        """Name an operation whose kind of result does not depend on values."""
        return _ask_owner(cls, f"{op!r} on a pointer: its kind of result depends on", location, instead)

    @classmethod
    def unreviewed(cls, op: str, location: str, instead: str = "") -> ValueRefusedError:
        """Name a reviewed operation."""
        return _ask_owner(
            cls,
            f"{op!r} on a pointer: it has not been reviewed for private data (docs/security.md), and its operands have",
            location,
            instead,
        )

    failed = Text(
        "cannot run {op!r} on a pointer: it raised {kind} on {location!r}, and the text is withheld because it may "
        "quote private values; check shapes, dtypes and ranges",
        order="op location kind",
    )


class OperationFailedError(WorkerError, RuntimeError):
    """An object is the result of a failed operation."""

    @classmethod
    def on_the_way_to(cls, id: object, worker: object, failures: Iterable[str]) -> OperationFailedError:
        """Name the operations that failed, but never a value."""
        return cls(
            f"cannot get object {id!r} from worker {worker!r}: it was computed with {', '.join(sorted(failures))}; "
            f"compute it again from input for which the operation works"
        )


class OperandChangedError(WorkerError):
    """While a command waited, another one changed an object that it uses, or who may have that object."""

    during = Text(
        "cannot finish {name!r} on worker {worker!r}: meanwhile another command changed what it uses, or who may have "
        "that; run it again when nobody changes its operands"
    )


class InvalidTensorForRemoteGetError(WorkerError, TypeError):
    """A worker was asked to fetch what an object points to, but the object is not a pointer."""

    on = Text(
        "cannot get what object {id!r} on worker {worker!r} points to: it is not a pointer, the data is there; fetch "
        "it with `p.get()`"
    )


class ConfigurationError(SyftError, ValueError):
    """A file or an option of a worker's operator is not usable."""


class SerdeError(SyftError, ValueError):
    """A value cannot be serialized or deserialized."""


def suggest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return "did you mean ...?" for the most similar known name, or ``otherwise`` if none is similar."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else otherwise


def how_to_install(package: str) -> str:
    """Return the command that installs a package that a feature needs, in a compatible version.

    Name the package itself, never an extra of this project: the project's name belongs to another one on the public
    index.
    """
    try:
        needed = requires("syft-core") or []
    except PackageNotFoundError:
        needed = []
    versions = [each.partition(";")[0].strip() for each in needed]
    fitting = [each for each in versions if re.split(r"[^\w.-]", each)[0].lower() == package.lower()]
    return f"pip install {shlex.quote(fitting[0] if fitting else package)}"


def _ask_owner(cls: type[E], what: str, location: str, instead: str) -> E:
    """Refuse an operation on private values; name an alternative, or how to ask the owner."""
    return cls(
        f'cannot run {what} private values on {location!r}; {_use(instead)}ask the owner for them: `p.request("why")`'
    )


def _use(instead: str) -> str:
    return f"use `{instead}`, or " if instead else ""


def _suggest(near: Iterable[str]) -> str:
    names = " or ".join(near)
    return f"did you mean {names}? otherwise " if names else ""
