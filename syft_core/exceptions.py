"""Every error that syft-core raises on purpose.

Each message reads ``cannot X: because Y; do Z`` and never contains a tensor's value.

::

    SyftError
    ├── RegistryError                     a write-once table was asked for what it cannot do
    │   ├── AlreadyRegisteredError
    │   └── NotRegisteredError            (also a LookupError)
    ├── BackendError                      a backend or another plugin cannot be used
    │   ├── DependencyError               (also an ImportError) its framework is not installed
    │   ├── PluginError                   it is broken
    │   └── NotTheFrameworkError          (also a TypeError) something else was given to hook
    ├── HookError                         the road of one operation ends early
    │   ├── OperationNotAllowedError      (also a TypeError, RuntimeError) not in the op table
    │   ├── MixedLayersError              (also a TypeError) layers that do not belong together met
    │   ├── WrapperLeakError              (also a RuntimeError) a wrapper reached a kernel of its framework
    │   ├── PlanMismatchError             (also an AssertionError) a plan met arguments of another shape
    │   ├── PureFrameworkTensorFoundError no layer is left: the framework itself must answer
    │   ├── RemoteObjectFoundError        a pointer was asked for its child
    │   └── ResponseSignatureError        a result has more tensors than ids were given
    ├── DomainError                       (also a ValueError) a value outside an approximation's domain
    ├── IdNotUniqueError                  (also a ValueError) an id was given out twice
    ├── WorkerError                       workers and the objects they hold
    │   ├── ObjectNotFoundError           (also a LookupError) a worker does not hold an object
    │   ├── AlreadyRetrievedError         a pointer was used after its object was taken away
    │   ├── WorkerNotFoundError           (also a LookupError) nobody is known under this id
    │   ├── WorkerIdTakenError            (also a ValueError) two workers want one id
    │   ├── LocalWorkerConflictError      (also a ValueError) a hook asks for another local worker than the one in use
    │   ├── NotCollocatedError            (also a TypeError) one call met two workers, or a worker and local data
    │   ├── GetNotPermittedError          (also a PermissionError) an object may not leave its worker
    │   ├── ReleaseError                  (also a ValueError) a release cannot be asked for, or decided on
    │   ├── TagNotPermittedError          (also a PermissionError) an object may not be tagged or described
    │   ├── WriteNotPermittedError        (also a PermissionError) an object may not be changed
    │   ├── SendNotPermittedError         (also a PermissionError) an object may not be sent
    │   ├── PolicyError                   (also a TypeError) something that is not a policy was given as one
    │   ├── TooManyHopsError              a request went through too many workers, or in a circle
    │   ├── OperationFailedError          (also a RuntimeError) an operation failed on the way to an object
    │   ├── InvalidTensorForRemoteGetError (also a TypeError) a worker was asked to fetch what it has itself
    │   └── ValueRefusedError             (also a TypeError, RuntimeError) it would reveal a remote value implicitly
    └── SerdeError                        (also a ValueError) bytes that cannot be read, values that cannot be written
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class SyftError(Exception):
    """The root of all errors raised on purpose."""


class RegistryError(SyftError):
    """A write-once table was asked for what it cannot do."""


class AlreadyRegisteredError(RegistryError):
    """A key was registered a second time."""

    @classmethod
    def of(cls, table: str, key: str) -> AlreadyRegisteredError:
        """Name the table, the key and the way out."""
        return cls(
            f"cannot register {key} in {table!r}: it is registered already and entries are written once; "
            f"register it in one place only, or use another type"
        )


class NotRegisteredError(RegistryError, LookupError):
    """A key is not in the table."""

    @classmethod
    def of(cls, table: str, key: str, near: Iterable[str], advice: str) -> NotRegisteredError:
        """Name what is lacking, the nearest entries and the way to add one."""
        near = list(near)
        hint = f"did you mean {' or '.join(near)}? otherwise " if near else ""
        return cls(f"cannot find {key} in {table!r}: it is not registered; {hint}{advice}")


class BackendError(SyftError):
    """A backend or another plugin cannot be used."""


class DependencyError(BackendError, ImportError):
    """The framework that a backend serves is not installed."""

    @classmethod
    def missing(cls, backend: str, framework: str, command: str) -> DependencyError:
        """Give the command that installs the framework."""
        return cls(f"cannot load the {backend!r} backend: {framework!r} is not installed; run `{command}`")


class PluginError(BackendError):
    """A plugin is broken."""

    @classmethod
    def broken(cls, name: str, reason: str) -> PluginError:
        """Name the plugin and what it did."""
        return cls(
            f"cannot use the plugin {name!r}: {reason}; `syft-core plugins` lists all of them, the others keep working"
        )


class NotTheFrameworkError(BackendError, TypeError):
    """Something that is not the framework was given to its hook."""

    @classmethod
    def received(cls, hook: str, framework: str, thing: object) -> NotTheFrameworkError:
        """Say what was expected and what came."""
        name = getattr(thing, "__name__", None) or type(thing).__name__
        return cls(
            f"cannot hook {name!r}: {hook} takes the {framework} module itself; "
            f"write `import {framework}` and `{hook}({framework})`"
        )


class HookError(SyftError):
    """The road of one operation ends early."""


class OperationNotAllowedError(HookError, TypeError, RuntimeError):
    """The operation is not in the framework's op table, or a layer does not answer it."""

    @classmethod
    def not_in_table(cls, framework: str, name: str, near: Iterable[str]) -> OperationNotAllowedError:
        """Name the nearest operations and the way to allow this one."""
        near = list(near)
        hint = f"use {' or '.join(near)}, or " if near else ""
        return cls(
            f"cannot run {name!r} on a chain: it is not in the {framework} op table, which lists what may run; "
            f"{hint}add it with `hook.attributes.allow(function)`, for public data only unless you describe what it "
            "does"
        )

    @classmethod
    def reviewed_without_facts(cls, name: str) -> OperationNotAllowedError:
        """Say what must be known about an operation before it may run on private data."""
        return cls(
            f"cannot allow {name!r} on private data: nobody said that it discloses nothing, which arguments it changes "
            'and that it reads nothing else; pass `discloses="nothing"`, `writes=frozenset()` (or the arguments) and '
            "`reads_beyond=False` if that is so, or leave out `tier`"
        )

    @classmethod
    def off(cls, name: str) -> OperationNotAllowedError:
        """Say why an operation runs on no worker, and what to do."""
        return cls(
            f"cannot run {name!r} on a worker: with some arguments it crashes the process, or reads memory that is not "
            f"its own; use another operation (for a fused optimizer, its list form: `foreach=True`)"
        )

    @classmethod
    def refused_by(cls, layer: str, name: str, why: str) -> OperationNotAllowedError:
        """Say which layer refuses and why."""
        return cls(f"cannot run {name!r} on a {layer}: {why}")

    @classmethod
    def without_rule(cls, layer: str, name: str, operation: str, reveals: bool) -> OperationNotAllowedError:
        """Say why a layer that encodes values does not run an operation on the encoding."""
        why = (
            "it would reveal a value" if reveals else "the layer has no rule for it and its encoding is not the values"
        )
        return cls.refused_by(
            layer, name, f"{why}; decode the tensor first, or give {layer} a rule called {operation!r}"
        )

    @classmethod
    def no_numeric_wrapper(cls, framework: str) -> OperationNotAllowedError:
        """Say that a backend cannot hold layers that encode values."""
        return cls(
            f"cannot wrap this chain: a layer in it encodes values, and the {framework} backend has no numeric "
            f"wrapper; use the layer without a wrapper, `layer.on(x, wrap=False)`, or another backend"
        )


class MixedLayersError(HookError, TypeError):
    """Layers that do not belong together met in one call."""

    @classmethod
    def between(cls, op: str, one: str, other: str) -> MixedLayersError:
        """Name both layers and the way out."""
        return cls(
            f"cannot run {op!r}: it mixes a {one} with a {other}, and neither may look into the other; "
            f"put both operands under the same layers first, e.g. `{one}().on(x)` for the other operand"
        )

    @classmethod
    def attributes(cls, op: str, layer: str, names: Iterable[str]) -> MixedLayersError:
        """Name the attributes in which two layers of one type differ."""
        listed = ", ".join(sorted(names))
        return cls(
            f"cannot run {op!r}: it mixes two {layer}s that differ in {listed}; "
            f"create both operands with the same {listed}"
        )

    @classmethod
    def plain(cls, layer: str) -> MixedLayersError:
        """Say that a plain tensor has to be encoded first."""
        return cls(
            f"cannot mix a {layer} with a plain tensor: {layer} does not encode operands by itself; "
            f"put the plain tensor under the same layers first"
        )

    @classmethod
    def wrappers(cls, op: str) -> MixedLayersError:
        """Say that one operand is encoded and the other is not."""
        return cls(
            f"cannot run {op!r}: one operand is encoded by a numeric layer and another one is not; "
            f"put both under the same layers first"
        )

    @classmethod
    def frameworks(cls, op: str, one: str, other: str) -> MixedLayersError:
        """Name the two frameworks whose wrappers met."""
        return cls(
            f"cannot run {op!r}: it mixes a {one} wrapper with a {other} wrapper, and no framework computes with both; "
            f"convert one of them to the other framework first"
        )


class WrapperLeakError(HookError, RuntimeError):
    """A wrapper, which holds no data of its own, reached a place that wants data."""

    @classmethod
    def at(cls, place: str, advice: str) -> WrapperLeakError:
        """Name the place and the way around it."""
        return cls(f"cannot run {place} on a wrapper: a wrapper holds no data of its own; {advice}")


class PlanMismatchError(HookError, AssertionError):
    """A plan met arguments of another shape than it was built for."""

    @classmethod
    def arity(cls, expected: int, received: int) -> PlanMismatchError:
        """Say how many were expected and how many came."""
        return cls(
            f"cannot apply a plan for {expected} argument(s) to {received}: "
            f"plans are exact; build one for this signature"
        )

    @classmethod
    def slot(cls, expected: str, received: str) -> PlanMismatchError:
        """Say which types differ."""
        return cls(
            f"cannot apply a plan for a {expected} to a {received}: plans are exact; build one for this signature"
        )


class PureFrameworkTensorFoundError(HookError):
    """No layer is left in a call: the framework itself must answer it."""

    @classmethod
    def in_call(cls, name: str) -> PureFrameworkTensorFoundError:
        """Name the call."""
        return cls(
            f"cannot unwrap the arguments of {name!r}: none of them has a child; call the framework's own function"
        )


class RemoteObjectFoundError(HookError):
    """A pointer was asked for its child, which lives elsewhere."""

    def __init__(self, pointer: Any) -> None:
        super().__init__("cannot unwrap a pointer: its object lives on another worker; send the command there")
        self.pointer = pointer


class ResponseSignatureError(HookError):
    """A result has more tensors than the caller gave ids for; nothing of it was stored."""

    def __init__(self, ids_generated: Iterable[int] = ()) -> None:
        super().__init__(
            "cannot register a response: it has more tensors than ids were given; give one id for each tensor"
        )
        self.ids_generated = list(ids_generated)


class DomainError(SyftError, ValueError):
    """A value lies outside the domain of an approximation."""

    @classmethod
    def outside(cls, name: str, low: float, high: float) -> DomainError:
        """Name the domain; never the value."""
        return cls(
            f"cannot approximate {name!r}: a value lies outside [{low:g}, {high:g}]; "
            f"scale the input into that interval or add a piece for it"
        )


class IdNotUniqueError(SyftError, ValueError):
    """An id was given out twice."""

    @classmethod
    def of(cls, id: object) -> IdNotUniqueError:
        """Name the id."""
        return cls(f"cannot use the id {id!r}: it is taken; leave it out to get a fresh one")


class WorkerError(SyftError):
    """Something about workers and the objects they hold."""


class ObjectNotFoundError(WorkerError, LookupError):
    """A worker does not hold the object asked for."""

    @classmethod
    def on(
        cls, id: object, worker: object, history: str = "it was never stored there or is gone"
    ) -> ObjectNotFoundError:
        """Name the object, the worker and what became of it."""
        return cls(f"cannot find object {id!r} on worker {worker!r}: {history}; keep a pointer to what you still need")


class AlreadyRetrievedError(WorkerError):
    """A pointer was used after its object was taken away."""

    @classmethod
    def because(cls, pointer: str, why: str) -> AlreadyRetrievedError:
        """Say who took it."""
        return cls(f"cannot use {pointer}: {why}; use what it returned, or fetch a copy with `.copy().get()` next time")


class WorkerNotFoundError(WorkerError, LookupError):
    """Nobody is known under this id."""

    @classmethod
    def named(cls, id: object, near: Iterable[str]) -> WorkerNotFoundError:
        """Name the nearest ids."""
        near = list(near)
        hint = f"did you mean {' or '.join(map(repr, near))}? otherwise " if near else ""
        return cls(f"cannot find worker {id!r}: nobody here knows it; {hint}create it first, or pass the worker itself")


class WorkerIdTakenError(WorkerError, ValueError):
    """Two workers want one id."""

    @classmethod
    def by(cls, id: object, kind: str) -> WorkerIdTakenError:
        """Say who has it."""
        return cls(f"cannot create worker {id!r}: a {kind} has this id; choose another id")

    @classmethod
    def differs(cls, id: object, option: str) -> WorkerIdTakenError:
        """Name the option in which the worker that has the id differs."""
        return cls(
            f"cannot create worker {id!r}: there is one with this id and another {option!r}; leave the option out to "
            f"use that worker, or choose another id"
        )


class LocalWorkerConflictError(WorkerError, ValueError):
    """A hook asks for another local worker than the one that the hooks of this process share."""

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
    """One call met objects of two workers, or of a worker and of this process."""

    @classmethod
    def between(cls, op: str, here: object, there: object) -> NotCollocatedError:
        """Name both workers and the way out."""
        return cls(
            f"cannot run {op!r}: its arguments live on {here!r} and {there!r}; "
            f"bring them together first, e.g. `x.move({here})`"
        )

    @classmethod
    def local(cls, op: str, there: object, of_model: bool = False) -> NotCollocatedError:
        """Say that plain data, or a parameter of a model that is here, met a pointer."""
        advice = f"send the model, `model.send({there})`" if of_model else f"send the local one, e.g. `y.send({there})`"
        return cls(
            f"cannot run {op!r}: its arguments live on {there!r} and in this process; {advice}, or fetch the other"
        )

    @classmethod
    def change(cls, op: str, there: object) -> NotCollocatedError:
        """Say that a local tensor cannot be changed with what is elsewhere."""
        return cls(
            f"cannot run {op!r}: it would change a tensor of this process with one on {there!r}, which would bring "
            f"values here unnoticed; fetch that one with `.get()` first, or send the local one"
        )


class GetNotPermittedError(WorkerError, PermissionError):
    """An object may not leave its worker."""

    @classmethod
    def to(cls, user: object, id: object, worker: object, why: str, verb: str = "get") -> GetNotPermittedError:
        """Say who was refused what, and why."""
        place = "from" if verb == "get" else "on"
        return cls(
            f"cannot {verb} object {id!r} {place} worker {worker!r} as {user!r}: {why}; "
            f'ask its owner for it with `p.request("why")`'
        )

    @classmethod
    def by_request(
        cls, user: object, id: object, worker: object, number: int, state: str, answer: str
    ) -> GetNotPermittedError:
        """Say that the owner has not decided yet, or has denied it."""
        start = f"cannot get object {id!r} from worker {worker!r} as {user!r}: "
        if state == "open":
            return cls(f"{start}request {number} is waiting for its owner to decide; try again later")
        reason = f" ({answer})" if answer else ""
        return cls(f"{start}its owner denied request {number}{reason}; ask again with another reason, or for less")


class ReleaseError(WorkerError, ValueError):
    """A release cannot be asked for, or decided on."""

    @classmethod
    def unknown(cls, request: object, worker: object) -> ReleaseError:
        """Name the request."""
        return cls(f"cannot decide on request {request!r}: worker {worker!r} has none such; see `worker.requests`")

    @classmethod
    def decided(cls, number: int, worker: object, state: str) -> ReleaseError:
        """Say what was decided."""
        return cls(
            f"cannot decide on request {number} of worker {worker!r}: it was {state} already; wait for another one"
        )

    @classmethod
    def too_many(cls, user: object, worker: object, most: int) -> ReleaseError:
        """Give the limit."""
        return cls(
            f"cannot ask worker {worker!r} for another release as {user!r}: {most} requests are waiting for its owner; "
            f"wait until some are decided"
        )

    @classmethod
    def on_behalf(cls, user: object, worker: object) -> ReleaseError:
        """Say that a worker cannot ask for others."""
        return cls(f"cannot ask worker {worker!r} for a release as {user!r}: only the one who will get it may; ask it")

    @classmethod
    def elsewhere(cls, id: object, worker: object) -> ReleaseError:
        """Say that the object is not there."""
        return cls(
            f"cannot ask worker {worker!r} to release object {id!r}: it holds no data, or only a pointer; "
            f"ask the worker that has the data"
        )


class TagNotPermittedError(WorkerError, PermissionError):
    """An object may not be tagged or described."""

    @classmethod
    def to(cls, user: object, id: object, worker: object, why: str) -> TagNotPermittedError:
        """Say who was refused what, and the way around it."""
        return cls(
            f"cannot tag or describe object {id!r} on worker {worker!r} as {user!r}: {why}; "
            f"tag a copy, e.g. `p.copy().tag(...)`, or ask its owner"
        )

    @classmethod
    def reserved(cls, user: object, id: object, worker: object, tag: str) -> TagNotPermittedError:
        """Name the tag that the worker keeps for itself."""
        return cls(
            f"cannot tag object {id!r} on worker {worker!r} as {user!r}: its owner has published data under {tag!r}, "
            f"and others would take this for it; choose another tag"
        )


class WriteNotPermittedError(WorkerError, PermissionError):
    """An object may not be changed."""

    @classmethod
    def to(cls, user: object, id: object, worker: object, why: str) -> WriteNotPermittedError:
        """Say who was refused what, and the way around it."""
        return cls(
            f"cannot change object {id!r} on worker {worker!r} as {user!r}: {why}; "
            f"change a copy instead, e.g. `p = p.copy()`"
        )


class PolicyError(WorkerError, TypeError):
    """Something that is not a policy was given as one."""

    @classmethod
    def unknown(cls, name: str, known: Iterable[str]) -> PolicyError:
        """Name the policies that there are."""
        return cls(f"cannot use the policy {name!r}: it is not known; use one of {', '.join(known)}, or a function")

    @classmethod
    def signature(cls, policy: object) -> PolicyError:
        """Say what a policy takes and returns."""
        return cls(
            f"cannot use {policy!r} as a policy: it must take (verb, stored, peer, value); "
            f"return None to allow, or the reason for a refusal"
        )


class TooManyHopsError(WorkerError):
    """A request went through too many workers, or in a circle."""

    @classmethod
    def at(cls, worker: object) -> TooManyHopsError:
        """Name the worker that refused to pass it on."""
        return cls(
            f"cannot answer on worker {worker!r}: the request was passed on from worker to worker too often, or in a "
            f"circle; point to the data itself"
        )

    @classmethod
    def itself(cls, worker: object) -> TooManyHopsError:
        """Refuse a pointer from a worker to itself."""
        return cls(f"cannot keep a pointer to {worker!r} on {worker!r} itself: the data is there; use `p.copy()`")


class SendNotPermittedError(WorkerError, PermissionError):
    """An object may not be sent."""

    @classmethod
    def by(cls, user: object, allowed: Iterable[str]) -> SendNotPermittedError:
        """Say who may."""
        listed = ", ".join(sorted(allowed)) or "nobody"
        return cls(f"cannot send a private tensor as {user!r}: its owner allows {listed}; send it as one of them")

    @classmethod
    def claimed(cls, user: object, sender: object) -> SendNotPermittedError:
        """Name the user that was claimed, and the sender."""
        return cls(
            f"cannot send as {user!r}: the sender is {sender!r}, and a claimed user name is not authentication; "
            f"leave `user` out, or set the `user` of the local worker"
        )


class ValueRefusedError(WorkerError, TypeError, RuntimeError):
    """A remote value was asked for in passing."""

    @classmethod
    def of(cls, op: str, location: str) -> ValueRefusedError:
        """Say what to do instead."""
        return cls(
            f"cannot run {op!r} on a pointer: it would bring a value from {location!r} here unnoticed; "
            f'fetch it with `.get()`, or a copy with `.copy().get()`, or consent with `with sy.revealing("why"):`; '
            f"the worker decides and records it"
        )

    @classmethod
    def without_reason(cls) -> ValueRefusedError:
        """Say that a consent must be explained."""
        return cls(
            "cannot reveal values: no reason was given, and the ledger of each worker keeps one for every value; "
            'say what you read them for, e.g. `with sy.revealing("line search"):`'
        )

    @classmethod
    def only_local(cls, op: str, location: str) -> ValueRefusedError:
        """Say that an operation makes sense only beside the data."""
        return cls(
            f"cannot run {op!r} on a pointer: it takes code, shares memory or hands out objects of the process at "
            f"{location!r}; fetch the tensor with `.get()` first"
        )

    @classmethod
    def form(cls, op: str, location: str) -> ValueRefusedError:
        """Say that the shape of a result would tell values."""
        return cls(
            f"cannot run {op!r} on a pointer: the shape of its result depends on values at {location!r} that you may "
            f"not have; use an operation with a fixed shape, e.g. `torch.where(mask, x, 0)` instead of `x[mask]`"
        )

    @classmethod
    def beyond(cls, op: str, location: str) -> ValueRefusedError:
        """Say that an operation would look into memory that it was not given."""
        return cls(
            f"cannot run {op!r} on a pointer: the tensor at {location!r} is a part of a larger one, into which the "
            f"operation could look; run it on a copy, e.g. `p.clone()`"
        )

    @classmethod
    def undecided(cls, op: str, location: str) -> ValueRefusedError:
        """Say that what an operation gives cannot be known without values."""
        return cls(
            f"cannot run {op!r} on a pointer: without values at {location!r} that you may not have, nobody can say "
            f"what it gives; use another operation, or ask the owner to run it"
        )

    @classmethod
    def unreviewed(cls, op: str, location: str) -> ValueRefusedError:
        """Say that an operation was not reviewed, and what to do."""
        return cls(
            f"cannot run {op!r} on {location!r}: it was not reviewed for use next to data that you may not have, and "
            f"there is some; use a reviewed operation (docs/security.md), or ask the owner of the data"
        )

    @classmethod
    def failed(cls, op: str, location: str, kind: str) -> ValueRefusedError:
        """Say that an operation failed, without the text, which may quote values."""
        return cls(
            f"cannot run {op!r} on a pointer: it raised a {kind} at {location!r}, whose text may quote values that you "
            f"may not have; check shapes, dtypes and ranges, or ask the owner"
        )


class OperationFailedError(WorkerError, RuntimeError):
    """An object does not hold what it was meant to: an operation failed on the way to it."""

    @classmethod
    def on_the_way_to(cls, id: object, worker: object, failures: Iterable[str]) -> OperationFailedError:
        """Name the operations, whose failure was not told to the one who ran them; never a value."""
        return cls(
            f"cannot get object {id!r} from worker {worker!r}: it was computed with {', '.join(sorted(failures))}, "
            f"which whoever ran it was not told, because that tells of private values; compute it anew from values for "
            f"which the operation works"
        )


class InvalidTensorForRemoteGetError(WorkerError, TypeError):
    """A worker was asked to fetch what an object points to, and the object is no pointer."""

    @classmethod
    def on(cls, id: object, worker: object) -> InvalidTensorForRemoteGetError:
        """Name the object and its worker."""
        return cls(
            f"cannot get what object {id!r} on worker {worker!r} points to: it is no pointer, the data is there; "
            f"fetch it with `.get()`"
        )


class SerdeError(SyftError, ValueError):
    """Bytes that cannot be read, or a value that cannot be written."""
