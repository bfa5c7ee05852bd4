"""Every error that syft-core raises on purpose.

Each message reads ``cannot X: because Y; do Z`` and never contains a tensor's value.

::

    SyftError
    ├── RegistryError                     a write-once table refused a key
    │   ├── AlreadyRegisteredError
    │   └── NotRegisteredError            (also a LookupError)
    ├── BackendError                      a backend or another plugin cannot be used
    │   ├── DependencyError               (also an ImportError) its framework is not installed
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
    ├── PrecisionError                    (also a ValueError) a number does not fit a fixed precision
    ├── PlanError                         (also a TypeError, RuntimeError) a plan cannot be recorded, sent or called
    ├── IdNotUniqueError                  (also a ValueError) an id is in use already
    ├── WorkerError                       workers and the objects they hold
    │   ├── ObjectNotFoundError           (also a LookupError) a worker does not hold an object
    │   ├── AlreadyRetrievedError         a pointer was used after its object was fetched or moved
    │   ├── WorkerNotFoundError           (also a LookupError) no worker with this id is known
    │   ├── WorkerIdTakenError            (also a ValueError) another worker has this id
    │   ├── WorkerNotPicklableError       (also a TypeError) a worker belongs to its process
    │   ├── LocalWorkerConflictError      (also a ValueError) hooks need one local worker, and another is in use
    │   ├── NotCollocatedError            (also a TypeError) the arguments of a call are in different places
    │   ├── GetNotPermittedError          (also a PermissionError) an object may not leave its worker
    │   │   ├── ReleasePendingError       its owner has not decided yet
    │   │   └── ReleaseDeniedError        its owner has denied it
    │   ├── ReleaseError                  (also a ValueError) a release request is not valid
    │   ├── ApprovalError                 (also a ValueError) a standing approval cannot be used
    │   ├── LedgerError                   a ledger on disk cannot be written, or was changed
    │   ├── StorageError                  an object cannot be kept on disk
    │   ├── TagNotPermittedError          (also a PermissionError) an object may not be tagged or described
    │   ├── WriteNotPermittedError        (also a PermissionError) an object may not be changed
    │   ├── SendNotPermittedError         (also a PermissionError) an object may not be sent
    │   ├── PolicyError                   (also a TypeError) not a policy
    │   ├── TooManyHopsError              a request was forwarded too often, or in a circle
    │   ├── OperationFailedError          (also a RuntimeError) an object is the result of a failed operation
    │   ├── ConnectionLostError           (also a ConnectionError) a worker on the network cannot be reached
    │   │   ├── AddressError              the address or the protocol is wrong, so connecting again does not help
    │   │   └── ActorLostError            the actor of Ray that hosts a worker is gone
    │   ├── RayStartError                 (also a RuntimeError) Ray or its actors cannot be started
    │   ├── AuthenticationError           (also a PermissionError) a worker on the network refused the connection
    │   ├── TicketError                   (also a PermissionError) a worker may not act for a peer on another one
    │   ├── ProtocolError                 a protocol on shared values cannot run, or a party did not follow it
    │   │   ├── CheatingError             a party sent values that fail authentication
    │   │   └── PartyFailedError          another party of a protocol failed; its own error says why
    │   ├── QuotaExceededError            a user would use more of a worker than its owner allows
    │   ├── InvalidTensorForRemoteGetError (also a TypeError) a worker was asked to fetch its own data
    │   └── ValueRefusedError             (also a TypeError, RuntimeError) it would implicitly reveal a remote value
    ├── ConfigurationError                (also a ValueError) a file or an option of a worker's operator is not usable
    └── SerdeError                        (also a ValueError) a value cannot be serialized or deserialized
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from string import Formatter
from typing import TypeVar

from syft_core.notebooks import render_in_notebook

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
    """The base class of all errors raised on purpose."""

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
    """The framework that a backend serves is not installed."""

    missing = Text("cannot load the {backend!r} backend: {framework!r} is not installed; run `{command}`")


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
        """Name the nearest operations, and explain how to allow this one."""
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
        """Explain why a layer that encodes values does not run an operation on the encoding, and what does the same."""
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


class PlanError(SyftError, TypeError, RuntimeError):
    """A plan cannot be recorded, sent or called."""

    at = Text("cannot record the plan {plan!r}: {file}:{line} {problem}; {advice}")
    arguments = Text(
        "cannot run the plan {plan!r}: it was recorded for {expected}, but was called with {found}; record it for "
        "these arguments, or for any length with -1 in `args_shape`"
    )
    replaced = Text(
        "cannot run the plan {plan!r}: object {id!r}, a part of its state, is not the one it was sent with; send the "
        "plan again"
    )
    other_state = Text(
        "cannot run the plan {plan!r}: part {place} of its state {problem} when the plan was recorded; record it again "
        "with `plan.build(...)`, and send it"
    )
    changed = Text(
        "cannot run the plan {plan!r}: {setting!r}, a setting of its models or a variable that it reads, changed after "
        "it was recorded; undo the change, or fetch the plan with `get()` and send it again"
    )
    trained = Text(
        "cannot send the plan {plan!r} to worker {worker!r} again: its state has changed both here and there; fetch it "
        "with `get()` first, or record it again to send what is here"
    )
    not_built = Text(
        "cannot send the plan {plan!r}: it is not recorded yet; call `plan.build(...)` with example tensors"
    )


class IdNotUniqueError(SyftError, ValueError):
    """An id is in use already."""

    of = Text("cannot use the id {id!r}: it is in use; leave it out to get a new one")
    reserved = Text(
        "cannot use the id {id!r}: worker {worker!r} hides objects, and lets only its owner name them; leave it out to "
        "get a new one"
    )


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
    disconnected = Text("cannot use worker {worker!r}: the connection was closed; call `connect()` first")
    malformed = Text("cannot read a message: {why}; use the same release of syft-core at both ends, and connect again")
    unreachable = Text(
        "cannot reach the worker at {url}: no connection for {seconds:g} seconds ({why}); check the address, that the "
        "worker is running, and whether it uses TLS"
    )
    restarted = Text(
        "cannot continue the session on worker {worker!r}: {why}; unpublished objects are gone: find the published "
        "ones with `search`, and send the others again"
    )


class AddressError(ConnectionLostError):
    """There is no worker at an address, or it is reached in another way: connecting again does not help."""

    wrong = Text("cannot connect to {url}: {why}; {advice}")


class ActorLostError(ConnectionLostError):
    """The actor of Ray that hosts a worker is gone, and with it all objects of its workers."""

    of = Text("cannot reach {what}: {actor} {why}; {advice}")


class RayStartError(WorkerError, RuntimeError):
    """Ray, or the actors that host workers, cannot be started."""

    missing = Text("cannot start workers on Ray: Ray is not installed; run `pip install 'syft-core[ray]'`")
    local = Text(
        "cannot start Ray on this machine: {why}. Ray does not say more: on a busy machine, one of its processes, the "
        "raylet, ends if others are not ready within 15 seconds, a limit that cannot be changed. Stop other programs "
        'and try again, or start Ray yourself (`ray start --head`) and pass `address="auto"`; its logs are in {logs}'
    )
    cluster = Text(
        "cannot connect to Ray at {address!r}: {why}; check the address, that `ray status` works there, and that both "
        "ends have the same versions of Python and Ray"
    )
    actors = Text(
        "cannot start {count} actors on Ray: after {seconds:g} seconds, {started} run; each needs one free CPU and "
        "the packages of this program: look at `ray status`, or pass a smaller number, `actors=...`"
    )
    failed = Text("cannot start workers on Ray: {why}; see the traceback above")
    wrong = Text("cannot start workers on Ray: {why}; {advice}")


class AuthenticationError(WorkerError, PermissionError):
    """A worker on the network refused the connection."""

    refused = Text("cannot connect to {url}: {why}; {advice}", advice="ask the owner for a token: `token=...`")


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


class PrecisionError(SyftError, ValueError):
    """A number cannot be represented, or an operation not computed, with fixed precision."""

    out_of_range = Text(
        "cannot encode a number: it is not finite, or not smaller than {limit:.3g} in size, and does not fit into the "
        "ring; scale the data, or use fewer fractional digits; to mask numbers, add -inf, or write it with `where` or "
        "`masked_fill`"
    )
    complex_number = Text("cannot encode complex numbers: fixed precision is for real ones; encode the parts of each")
    not_shared_yet = Text(
        "cannot compute on fixed-precision numbers at one worker: computing needs shares; share them first: "
        "`x.share(bob, alice, crypto_provider=carol)`, or compute before `fix_precision()`"
    )
    not_real = Text(
        "cannot convert fixed-precision numbers to {dtype}: only fetched numbers can be rounded; fetch and decode them "
        "first: `x.get().float_precision()`"
    )
    reveals = Text(
        "cannot read the values of shared or encoded numbers (item, bool, if, tolist, numpy, save): they are not here; "
        "fetch shared ones with `x.get()`, and decode fixed precision with `x.float_precision()`"
    )
    no_fractions = Text(
        "cannot compute {function!r} of shared integers: its results are fractions; encode the numbers first: "
        "`x.fix_precision().share(...)`"
    )
    division_by_zero = Text(
        "cannot divide by 0: fixed-precision numbers have no infinity; add a small number to the divisor"
    )
    shared_into_public = Text(
        "cannot write shared numbers into a tensor that is not shared: it would reveal them; share the tensor first, "
        "or write `x = x + y` instead of `x += y`"
    )
    unknown_field = Text(
        "cannot use the field {field!r}: there is none of this name; use 'long' (64 bits) or 'int' (32 bits)"
    )
    another_ring = Text(
        "cannot share with dtype={ring!r}: the numbers have the ring {own!r}; leave it out, or name the ring before: "
        "`x.fix_precision(field={ring!r})`",
        order="ring own",
    )
    not_here = Text(
        "cannot convert to floats: what the pointer points to is on its worker; fetch it first: "
        "`x.get().float_precision()`"
    )
    not_plain = Text(
        "cannot encode this tensor: it is a chain already; call `get()` or `float_precision()` first, or encode before "
        "the tensor is sent or shared"
    )
    differs = Text(
        "cannot trust {operation!r}: element {position} of its result is out of range, or not the one that floats "
        "give; at this precision, numbers must be smaller than {limit:.3g}, and products smaller than {products:.3g}, "
        "in size; scale the data, normalize between layers, or use fewer fractional digits"
    )
    in_graph = Text(
        "cannot {verb} a result that requires a gradient: the graph would end here, and the tensors before it get no "
        "gradient; write `x.detach()` if this is what you want, or encode and share the parameters instead"
    )
    not_fixed = Text(
        "cannot convert to floats: the tensor has no fixed precision; use it as it is, or call `x.fix_precision()`"
    )
    still_shared = Text(
        "cannot convert a shared number to a float: no worker knows it; fetch it first: `x.get().float_precision()`"
    )
    unknown_method = Text(
        "cannot compute {function} with the method {method!r}: there is none of this name; leave it out",
        order="function method",
    )
    not_a_precision = Text(
        "cannot use base={base!r}, precision_fractional={precision!r}: expected integers, the base from 2 on and the "
        "precision from 0 on; write `x.fix_precision(base=2, precision_fractional=16)`",
        order="base precision",
    )
    digits = Text(
        "cannot run {operation!r} on shared integers: their binary digits are secret; use it on results of "
        "comparisons, such as `x != 0`, or use `torch.logical_and` and the like"
    )
    unknown_norm = Text(
        "cannot compute the norm {ord}: there is no protocol for it; use 1, 2, inf or -inf, or compute it from powers"
    )
    fractional_power = Text(
        "cannot raise a fixed-precision number to this power: the exponent must be a multiple of 1/2; for positive "
        "numbers, use `(y * x.log()).exp()`"
    )


class ProtocolError(WorkerError):
    """A protocol on shared values cannot run, or a party did not follow it."""

    not_virtual = Text(
        "cannot check results: worker {id!r} is not a virtual worker, and all shares would be read; develop with "
        "virtual workers, and leave `sy.checking()` out of programs for others"
    )
    cannot_check_authenticated = Text(
        "cannot check results of authenticated shares: nobody reads them without their keys; check the program with "
        'the default protocol, and `field="int"` for the same range'
    )
    needs_parties = Text(
        "cannot run {name!r} with {count} parties: it needs {needed}; share the values among {needed} workers",
        order="name needed count",
    )
    mixed_locations = Text(
        "cannot share among workers of this process and others: they cannot wait for each other; "
        "use virtual workers only, or workers on the network only, the crypto_provider included"
    )
    too_few_parties = Text(
        "cannot share among {count} workers: at least two are needed; "
        "write `x.share(bob, alice, crypto_provider=carol)`"
    )
    a_list = Text("cannot share: expected workers, got a list; unpack it: `x.share(*workers, crypto_provider=carol)`")
    not_a_list = Text("cannot encrypt: expected a list of workers; write `x.encrypt(workers=[bob, alice])`")
    same_worker_twice = Text(
        "cannot share: a worker is given twice, or is the crypto_provider too, and would learn the values; "
        "use different workers"
    )
    no_provider = Text(
        "cannot compute this without a crypto_provider: products, divisions and comparisons need its random numbers; "
        "write `x.share(bob, alice, crypto_provider=carol)`"
    )
    not_shared = Text(
        "cannot do this: the tensor is not shared; write `x.share(bob, alice, crypto_provider=carol)` first"
    )
    data_elsewhere = Text(
        "cannot share data of worker {home!r} among other workers: it would have to leave its worker; share it with "
        "{home!r} as one of the workers"
    )
    stays = Text(
        "cannot {verb} a shared value: its shares stay with their parties; fetch it first: `x.get()`, or compute on it "
        "where it is"
    )
    shared_already = Text(
        "cannot share this tensor: it is shared already; call `refresh()` for new shares, or `get()` it first"
    )
    secret_index = Text(
        "cannot index with shared or encoded numbers: the choice would reveal them; multiply by a mask, e.g. "
        "`torch.where(x > 0, x, 0)`, or index with plain integers"
    )
    not_an_integer = Text("cannot share {dtype} numbers: shares are integers; write `x.fix_precision().share(...)`")
    not_a_ring = Text(
        "cannot share {dtype} numbers: shares are integers of 64 or 32 bits; convert them first, e.g. `x.long()`"
    )
    unknown_protocol = Text(
        "cannot share with the protocol {protocol!r}: it is not known; use 'fast', the default, 'snn' for SecureNN, or "
        "'authenticated' if parties may cheat"
    )
    not_a_word = Text(
        "cannot compute on authenticated shares with {dtype} numbers: expected int64; convert integers, and share real "
        "numbers with fixed precision: `x.fix_precision(base=2, precision_fractional=8).share(...)`"
    )
    beyond_authentication = Text(
        "cannot use integers of {limit:,} or more in size with authenticated shares: values have 32 bits, and products "
        "that are divided by a scale must be smaller than 2^30; scale the data, or use fewer fractional digits"
    )
    only_local = Text(
        "cannot share what a pointer points to with protocol='authenticated': only values of this process can be; "
        "leave the protocol out, or let the worker input it with `auth_input` of syft_core.crypto.authenticated"
    )
    not_authenticated = Text(
        "cannot compute this on authenticated shares: only sums, products, and operations that move elements are "
        "possible; share the values without protocol='authenticated' if no party cheats"
    )
    reopened = Text(
        "cannot use these authenticated shares: since they were created, a party has cheated or a worker has lost its "
        "keys, and the parties have new ones; share the values again"
    )
    malformed = Text(
        "cannot continue the protocol: party {party!r} sent arrays of another form (malformed message); "
        "use the same release of syft-core at all workers"
    )
    foreign = Text(
        "cannot continue the protocol: what came in the name of party {party!r} does not belong to this run; the "
        "client started another one there, somebody else sent it, or the party cheats: repeat the operation"
    )
    unusable = Text("cannot finish the protocol: what party {party!r} sent was refused ({error}); share again")
    unreachable = Text(
        "cannot finish the protocol: party {party!r} cannot be reached ({error}); "
        "share the values again when it is back",
    )
    refused = Text("cannot finish the protocol: party {party!r} refused a message ({error}); share again")
    silent = Text(
        "cannot finish the protocol: party {party!r} has sent nothing for {seconds:.0f} seconds; "
        "call the operation again"
    )
    too_many_masks = Text(
        "cannot keep a mask of {size:,} bytes: masks of the client take {kept:,} bytes here already, and the limit is "
        "{limit:,}; use fewer or smaller weights at once"
    )
    unknown_mask = Text("cannot multiply by a kept value: its mask {number!r} is unknown here; repeat the operation")
    changed_operand = Text(
        "cannot multiply by a kept value: another value was masked, or it has changed since; repeat the operation"
    )
    checks_private = Text(
        "cannot run {name!r} on private values: whether their tags are right would reveal something about them; ask "
        "their owner to allow you to read them, or share them without protocol='authenticated'"
    )
    channel_failed = Text(
        "cannot start run {number}: an earlier run failed, and the parties may have used different random numbers; "
        "open a new channel, which the next operation does"
    )
    too_many_runs = Text(
        "cannot start a run: {count} runs of this channel wait for the other parties; start those there first"
    )
    too_many_prepared = Text(
        "cannot prepare more correlations: {count:,} are prepared and not used, and the limit is {limit:,}; "
        "use them first",
        order="count limit",
    )
    too_many_bytes = Text(
        "cannot accept a deposit of {size:,} bytes: {held:,} bytes of the client wait here already, and the limit is "
        "{limit:,}; share fewer values at once"
    )
    unknown_channel = Text(
        "cannot find channel {id!r}: it was not opened by this client, or the worker was restarted; "
        "share the values again"
    )
    untrusted = Text(
        "cannot compute on private shares of worker {worker!r} together with {others}: its owner does not trust them; "
        "ask the owner to call `{worker}.trust({others})`",
        order="worker others",
    )
    mixed_rings = Text(
        "cannot run {name!r} on shares of different dtypes: a mask of one ring does not hide a number of the other; "
        "share all values with the same dtype"
    )
    not_a_share = Text(
        "cannot run {name!r} on a {kind}: expected a share, an integer tensor; share the value first: "
        "`x.fix_precision().share(bob, alice, crypto_provider=carol)`"
    )


class CheatingError(ProtocolError):
    """A party sent values that fail authentication."""

    by = Text(
        "cannot finish the protocol: worker {worker!r} sent values that fail authentication, and there is no result; "
        "it cheats, or the client used shares that do not belong together, or the provider dealt wrong ones: "
        "share the values again, without this worker"
    )
    disagree = Text(
        "cannot get the value: the workers {workers} returned different ones, so at least one of them cheats; "
        "share the values again, among other workers"
    )


class PartyFailedError(ProtocolError):
    """Another party of a protocol failed; its own error says why."""

    by = Text("cannot finish the protocol: party {party!r} failed; see the error of that worker")


class QuotaExceededError(WorkerError):
    """A user would use more of a worker than its owner allows."""

    amount = Text(
        "cannot {command}: user {user!r} would then have {needed:,} {what} on the worker, and the limit is {limit:,}; "
        "delete pointers that you no longer need and call `flush()`, or ask the owner for more",
        order="command user what needed limit",
    )
    copies = Text(
        "cannot {command}: the objects would have {size:,} bytes when they leave, and the limit for user {user!r} is "
        "{limit:,}; fetch fewer at once, and instead of a view that repeats elements, what it is a view of",
        order="command user size limit",
    )
    rate = Text(
        "cannot {command}: user {user!r} has used up the {limit:g} {what}; wait {seconds:.0f} seconds, or ask the "
        "owner for more",
        order="command user what limit seconds",
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


class ReleasePendingError(GetNotPermittedError):
    """The owner of a worker has not decided on a release request yet."""

    to_fetch = Text(
        "cannot get object {id!r} from worker {worker!r} as {user!r}: request {request} is waiting for its owner; try "
        "again later, or wait with `request.wait()`",
        order="user id worker request",
    )
    still = Text(
        "cannot go on: request {request} to worker {worker!r} is waiting for its owner; wait longer, or look again "
        "with `request.state`",
        order="request worker",
    )


class ReleaseDeniedError(GetNotPermittedError):
    """The owner of a worker has denied a release request, or it can no longer be decided."""

    to_fetch = Text(
        "cannot get object {id!r} from worker {worker!r} as {user!r}: its owner denied request {request}{why}; ask "
        "again with another reason, or for less",
        order="user id worker request why",
    )
    denied = Text(
        "cannot go on: the owner of worker {worker!r} denied request {request}{why}; ask again with another reason, or "
        "for less",
        order="request worker why",
    )
    lapsed = Text(
        "cannot go on: request {request} lapsed, because worker {worker!r} was started again and has no store; ask "
        "again",
        order="request worker",
    )
    used = Text(
        "cannot fetch request {request} from worker {worker!r}: it was fetched already, and an approval is good for "
        "one fetch; ask again",
        order="request worker",
    )


class ReleaseError(WorkerError, ValueError):
    """A release request is not valid."""

    unknown = Text(
        "cannot find request {request!r}: worker {worker!r} has no such request of yours; list them with "
        "`worker.requests()`"
    )
    being_fetched = Text(
        "cannot take back the approval of request {request} of worker {worker!r}: it is being fetched; deny the next "
        "request"
    )
    decision = Text("cannot make the decision {decision!r}: it is not one of {known}; choose one of them")
    not_owner = Text(
        "cannot decide on worker {worker!r} as {user!r}: only its owner may; connect with the token of an "
        "administrator",
        order="user worker",
    )
    decided = Text(
        "cannot decide on request {request} of worker {worker!r}: it was {state} already; wait for a new request"
    )
    differs = Text(
        "cannot decide on request {request} of worker {worker!r}: it is not what was reviewed, because the digest "
        "differs; review it again"
    )
    nothing = Text("cannot ask worker {worker!r} for a release: the request names no object; name at least one")
    too_many = Text(
        "cannot ask worker {worker!r} for another release as {user!r}: {most} requests are waiting for its owner; "
        "wait until some are decided",
        order="user worker most",
    )
    on_behalf = Text(
        "cannot ask worker {worker!r} for a release as {user!r}: a release is for the peer who asks; let that peer ask",
        order="user worker",
    )
    elsewhere = Text(
        "cannot ask worker {worker!r} to release object {id!r}: its data is on another worker; ask that worker",
        order="id worker",
    )


class ApprovalError(WorkerError, ValueError):
    """A standing approval cannot be used."""

    condition = Text(
        "cannot use the standing approval {name!r}: {why}; see `[approvals.NAME]` in `syft-core worker --example`"
    )
    unknown = Text("cannot find the standing approval {name!r}: worker {worker!r} has none of that name{near}")
    taken = Text(
        "cannot add the standing approval {name!r}: there is one of that name; choose another name, or revoke that one"
    )
    contradicts = Text(
        "cannot add the standing approval {name!r}: {other!r} is for the same user, form and data, so it would not be "
        "clear which limits apply; revoke {other!r} first"
    )
    matches_nothing = Text(
        "cannot add the standing approval {name!r}: it could never be used, because {why}; correct it"
    )
    revoked = Text("cannot revoke the standing approval {name!r}: it was revoked already; nothing is left to do")


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


def _ask_owner(cls: type[E], what: str, location: str, instead: str) -> E:
    """Refuse an operation on private values, and name another one, or how to ask for them."""
    return cls(
        f'cannot run {what} private values on {location!r}; {_use(instead)}ask the owner for them: `p.request("why")`'
    )


def _use(instead: str) -> str:
    """Return the start of an advice that names another operation, if there is one."""
    return f"use `{instead}`, or " if instead else ""


def _suggest(near: Iterable[str]) -> str:
    """Return the start of an advice that names the nearest entries, if there are any."""
    names = " or ".join(near)
    return f"did you mean {names}? otherwise " if names else ""
