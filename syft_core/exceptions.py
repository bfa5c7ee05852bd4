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
    ├── IdNotUniqueError                  (also a ValueError) an id is in use already
    ├── WorkerError                       workers and the objects they hold
    │   ├── ObjectNotFoundError           (also a LookupError) a worker does not hold an object
    │   ├── AlreadyRetrievedError         a pointer was used after its object was fetched or moved
    │   ├── WorkerNotFoundError           (also a LookupError) no worker with this id is known
    │   ├── WorkerIdTakenError            (also a ValueError) another worker has this id
    │   ├── LocalWorkerConflictError      (also a ValueError) hooks need one local worker, and another is in use
    │   ├── NotCollocatedError            (also a TypeError) the arguments of a call are in different places
    │   ├── GetNotPermittedError          (also a PermissionError) an object may not leave its worker
    │   ├── ReleaseError                  (also a ValueError) a release request is not valid
    │   ├── TagNotPermittedError          (also a PermissionError) an object may not be tagged or described
    │   ├── WriteNotPermittedError        (also a PermissionError) an object may not be changed
    │   ├── SendNotPermittedError         (also a PermissionError) an object may not be sent
    │   ├── PolicyError                   (also a TypeError) not a policy
    │   ├── TooManyHopsError              a request was forwarded too often, or in a circle
    │   ├── OperationFailedError          (also a RuntimeError) an object is the result of a failed operation
    │   ├── InvalidTensorForRemoteGetError (also a TypeError) a worker was asked to fetch its own data
    │   └── ValueRefusedError             (also a TypeError, RuntimeError) it would implicitly reveal a remote value
    └── SerdeError                        (also a ValueError) a value cannot be serialized or deserialized
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from syft_core.notebooks import render_in_notebook


class SyftError(Exception):
    """The base class of all errors raised on purpose."""

    def _render_traceback_(self) -> list[str]:
        return render_in_notebook(self)


class RegistryError(SyftError):
    """A write-once table refused a key."""


class AlreadyRegisteredError(RegistryError):
    """A key was registered a second time."""

    @classmethod
    def of(cls, table: str, key: str) -> AlreadyRegisteredError:
        """Name the table and the key."""
        return cls(
            f"cannot register {key} in {table!r}: it is registered already; register it once, or use another type"
        )


class NotRegisteredError(RegistryError, LookupError):
    """A key is not in the table."""

    @classmethod
    def of(cls, table: str, key: str, near: Iterable[str], advice: str) -> NotRegisteredError:
        """Name the missing key and the nearest entries, and explain how to add one."""
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
        """Name the plugin and what is wrong with it."""
        return cls(f"cannot use the plugin {name!r}: {reason}; run `syft-core plugins` to list all plugins")


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

    @classmethod
    def reviewed_without_facts(cls, name: str) -> OperationNotAllowedError:
        """List the facts that are needed before an operation may run on private data."""
        return cls(
            f"cannot allow {name!r} on private data: what it discloses, writes and reads is not declared; "
            'if it has no side effects, pass `discloses="nothing", writes=frozenset(), reads_beyond=False`, '
            "otherwise leave out `tier`"
        )

    @classmethod
    def off(cls, name: str) -> OperationNotAllowedError:
        """Explain why an operation never runs on a worker."""
        return cls(
            f"cannot run {name!r} on a worker: it is not memory-safe for all arguments; use another operation (for an "
            f"optimizer, `foreach=True` instead of `fused=True`)"
        )

    @classmethod
    def refused_by(cls, layer: str, name: str, why: str) -> OperationNotAllowedError:
        """Name the layer that refuses, and its reason."""
        return cls(f"cannot run {name!r} on a {layer}: {why}")

    @classmethod
    def without_rule(cls, layer: str, name: str, operation: str, reveals: bool) -> OperationNotAllowedError:
        """Explain why a layer that encodes values does not run an operation on the encoding."""
        why = "it would reveal a value" if reveals else "the layer encodes its values and has no rule for it"
        return cls.refused_by(
            layer, name, f"{why}; decode the tensor first, or give {layer} a rule called {operation!r}"
        )

    @classmethod
    def no_numeric_wrapper(cls, framework: str) -> OperationNotAllowedError:
        """Refuse a layer that encodes values on a backend without a numeric wrapper."""
        return cls(
            f"cannot wrap this layer: it encodes values, and the {framework} backend has no numeric wrapper; "
            f"use it without a wrapper: `layer.on(x, wrap=False)`"
        )


class MixedLayersError(HookError, TypeError):
    """A call mixes incompatible layers."""

    @classmethod
    def between(cls, op: str, one: str, other: str) -> MixedLayersError:
        """Name both layers."""
        return cls(
            f"cannot run {op!r}: it mixes a {one} with a {other}; "
            f"put both operands under the same layers first, e.g. `{one}().on(x)`"
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
        """Refuse a plain tensor next to an encoded one."""
        return cls(
            f"cannot mix a {layer} with a plain tensor: {layer} does not encode operands by itself; "
            f"put the plain tensor under the same layers first"
        )

    @classmethod
    def wrappers(cls, op: str) -> MixedLayersError:
        """Refuse a call with encoded and other operands."""
        return cls(
            f"cannot run {op!r}: one operand is encoded by a numeric layer and another one is not; "
            f"put both under the same layers first"
        )

    @classmethod
    def frameworks(cls, op: str, one: str, other: str) -> MixedLayersError:
        """Name both frameworks."""
        return cls(
            f"cannot run {op!r}: it mixes a {one} wrapper with a {other} wrapper; "
            f"convert one of them to the other framework first"
        )


class WrapperLeakError(HookError, RuntimeError):
    """A wrapper was used where data is needed."""

    @classmethod
    def at(cls, place: str, advice: str) -> WrapperLeakError:
        """Name the function that needs data, and what to do instead."""
        return cls(f"cannot run {place} on a wrapper: a wrapper holds no data of its own; {advice}")

    @classmethod
    def saving(cls, location: object) -> WrapperLeakError:
        """Refuse to pickle a pointer, or a model with pointers as parameters."""
        return cls(
            f"cannot save or pickle a pointer: its data is on {location!r}; "
            f"fetch it first: `p = p.get()`, or `model.get()` for a model"
        )


class PlanMismatchError(HookError, AssertionError):
    """A signature plan does not match its arguments."""

    @classmethod
    def arity(cls, expected: int, received: int) -> PlanMismatchError:
        """Name the number of arguments expected and received."""
        return cls(
            f"cannot apply a plan for {expected} argument(s) to {received}: "
            f"a plan is for one signature only; build one for this signature"
        )

    @classmethod
    def slot(cls, expected: str, received: str) -> PlanMismatchError:
        """Name the types expected and received."""
        return cls(
            f"cannot apply a plan for a {expected} to a {received}: "
            f"a plan is for one signature only; build one for this signature"
        )


class PureFrameworkTensorFoundError(HookError):
    """No layer is left in a call: the framework answers it."""

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
    """A result has more tensors than the caller gave ids for; none of them was stored."""

    def __init__(self, ids_generated: Iterable[int] = ()) -> None:
        super().__init__(
            "cannot register a response: it has more tensors than ids were given; give one id for each tensor"
        )
        self.ids_generated = list(ids_generated)


class DomainError(SyftError, ValueError):
    """A value lies outside the domain of an approximation."""

    @classmethod
    def outside(cls, name: str, low: float, high: float) -> DomainError:
        """Name the domain, but never the value."""
        return cls(
            f"cannot approximate {name!r}: a value lies outside [{low:g}, {high:g}]; "
            f"scale the input into that interval or add a piece for it"
        )


class IdNotUniqueError(SyftError, ValueError):
    """An id is in use already."""

    @classmethod
    def of(cls, id: object) -> IdNotUniqueError:
        """Name the id."""
        return cls(f"cannot use the id {id!r}: it is in use; leave it out to get a new one")


class WorkerError(SyftError):
    """Base class of errors about workers and their objects."""


class ObjectNotFoundError(WorkerError, LookupError):
    """A worker does not hold an object."""

    @classmethod
    def on(
        cls, id: object, worker: object, history: str = "it was never stored there, or was deleted"
    ) -> ObjectNotFoundError:
        """Name the object and the worker, and what happened to the object."""
        return cls(
            f"cannot find object {id!r} on worker {worker!r}: {history}; "
            f"keep a pointer to every object that you still need"
        )


class AlreadyRetrievedError(WorkerError):
    """A pointer was used after its object was fetched or moved."""

    @classmethod
    def because(cls, pointer: str, why: str) -> AlreadyRetrievedError:
        """Name the pointer, and what happened to its object."""
        return cls(
            f"cannot use {pointer}: {why}; use the result of that call, or next time fetch a copy: `p.copy().get()`"
        )


class WorkerNotFoundError(WorkerError, LookupError):
    """No worker with this id is known."""

    @classmethod
    def named(cls, id: object, near: Iterable[str]) -> WorkerNotFoundError:
        """Name the nearest ids."""
        near = list(near)
        hint = f"did you mean {' or '.join(map(repr, near))}? otherwise " if near else ""
        return cls(
            f"cannot find worker {id!r}: no worker here has this id; "
            f"{hint}create it first, e.g. `sy.VirtualWorker(hook, id={id!r})`"
        )


class WorkerIdTakenError(WorkerError, ValueError):
    """Another worker has this id."""

    @classmethod
    def by(cls, id: object, kind: str) -> WorkerIdTakenError:
        """Name the kind of worker that has the id."""
        return cls(f"cannot create worker {id!r}: a {kind} has this id; choose another id")

    @classmethod
    def differs(cls, id: object, option: str) -> WorkerIdTakenError:
        """Name the option in which the worker that has the id differs."""
        return cls(
            f"cannot create worker {id!r}: a worker with this id exists, with another {option!r}; leave the option out "
            f"to use that worker, or choose another id"
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

    @classmethod
    def between(cls, op: str, here: object, there: object) -> NotCollocatedError:
        """Name both workers."""
        return cls(
            f"cannot run {op!r}: its arguments live on {here!r} and {there!r}; "
            f"move the first one, e.g. `p = p.move({there!r})`"
        )

    @classmethod
    def local(cls, op: str, there: object, of_model: bool = False) -> NotCollocatedError:
        """Refuse local data, or a local model, next to a pointer."""
        advice = f"model: `model.send({there!r})`" if of_model else f"local one: `y = y.send({there!r})`"
        return cls(f"cannot run {op!r}: its arguments live on {there!r} and in this process; send the {advice}")

    @classmethod
    def foreign(cls, op: str, there: object, kind: str, framework: str) -> NotCollocatedError:
        """Refuse an array of another framework next to a pointer."""
        return cls(
            f"cannot run {op!r}: it mixes a {framework} tensor on {there!r} with a local {kind}; "
            f"convert and send it: `y = {framework}.asarray(y).send({there!r})`"
        )

    @classmethod
    def change(cls, op: str, there: object) -> NotCollocatedError:
        """Refuse to write remote values into a local tensor."""
        return cls(
            f"cannot run {op!r}: it would implicitly reveal a value from {there!r} by writing it into a local tensor; "
            f"fetch it first: `p = p.get()`"
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

    @classmethod
    def by_request(
        cls, user: object, id: object, worker: object, number: int, state: str, answer: str
    ) -> GetNotPermittedError:
        """Refuse a request that is open or denied."""
        start = f"cannot get object {id!r} from worker {worker!r} as {user!r}: "
        if state == "open":
            return cls(f"{start}request {number} is waiting for its owner; try again later")
        reason = f" ({answer})" if answer else ""
        return cls(f"{start}its owner denied request {number}{reason}; ask again with another reason, or for less")


class ReleaseError(WorkerError, ValueError):
    """A release request is not valid."""

    @classmethod
    def unknown(cls, request: object, worker: object) -> ReleaseError:
        """Name the request."""
        return cls(
            f"cannot decide on request {request!r}: worker {worker!r} has no such request; "
            f"list them with `worker.requests`"
        )

    @classmethod
    def decided(cls, number: int, worker: object, state: str) -> ReleaseError:
        """Name the earlier decision."""
        return cls(
            f"cannot decide on request {number} of worker {worker!r}: it was {state} already; wait for a new request"
        )

    @classmethod
    def nothing(cls, worker: object) -> ReleaseError:
        """Say that the request names no object."""
        return cls(f"cannot ask worker {worker!r} for a release: the request names no object; name at least one")

    @classmethod
    def too_many(cls, user: object, worker: object, most: int) -> ReleaseError:
        """Give the limit."""
        return cls(
            f"cannot ask worker {worker!r} for another release as {user!r}: {most} requests are waiting for its owner; "
            f"wait until some are decided"
        )

    @classmethod
    def on_behalf(cls, user: object, worker: object) -> ReleaseError:
        """Refuse a request that a worker makes for another peer."""
        return cls(
            f"cannot ask worker {worker!r} for a release as {user!r}: "
            f"a release is for the peer who asks; let that peer ask"
        )

    @classmethod
    def elsewhere(cls, id: object, worker: object) -> ReleaseError:
        """Refuse a request for an object whose data is on another worker."""
        return cls(
            f"cannot ask worker {worker!r} to release object {id!r}: its data is on another worker; ask that worker"
        )


class TagNotPermittedError(WorkerError, PermissionError):
    """An object may not be tagged or described."""

    @classmethod
    def to(cls, user: object, id: object, worker: object, why: str) -> TagNotPermittedError:
        """Name the user, the object and the reason."""
        return cls(
            f"cannot tag or describe object {id!r} on worker {worker!r} as {user!r}: {why}; "
            f'tag a copy instead, e.g. `p = p.copy().tag("#mine")`'
        )

    @classmethod
    def reserved(cls, user: object, id: object, worker: object, tag: str) -> TagNotPermittedError:
        """Name the tag that is reserved for published data."""
        return cls(
            f"cannot tag object {id!r} on worker {worker!r} as {user!r}: {tag!r} is reserved for data that its owner "
            f"published; choose another tag"
        )


class WriteNotPermittedError(WorkerError, PermissionError):
    """An object may not be changed."""

    @classmethod
    def to(cls, user: object, id: object, worker: object, why: str) -> WriteNotPermittedError:
        """Name the user, the object and the reason."""
        return cls(
            f"cannot change object {id!r} on worker {worker!r} as {user!r}: {why}; "
            f"change a copy instead, e.g. `p = p.copy()`"
        )


class PolicyError(WorkerError, TypeError):
    """Something that is not a policy was passed as one."""

    @classmethod
    def unknown(cls, name: str, known: Iterable[str]) -> PolicyError:
        """List the known policies."""
        return cls(
            f"cannot use the policy {name!r}: there is no such policy; use one of {', '.join(known)}, or a function"
        )

    @classmethod
    def signature(cls, policy: object) -> PolicyError:
        """Explain what a policy takes and returns."""
        return cls(
            f"cannot use {policy!r} as a policy: it must take (verb, stored, peer, value); "
            f"return None to allow, or the reason for a refusal"
        )


class TooManyHopsError(WorkerError):
    """A request was forwarded too often, or in a circle."""

    @classmethod
    def at(cls, worker: object) -> TooManyHopsError:
        """Name the worker that refused to forward it."""
        return cls(
            f"cannot answer on worker {worker!r}: the request was forwarded too often; "
            f"use a pointer to the worker that holds the data"
        )

    @classmethod
    def itself(cls, worker: object) -> TooManyHopsError:
        """Refuse to send a pointer to the worker that holds its data."""
        return cls(
            f"cannot send a pointer to {worker!r}: its data is there already; use the pointer, or copy it: `p.copy()`"
        )


class SendNotPermittedError(WorkerError, PermissionError):
    """An object may not be sent."""

    @classmethod
    def by(cls, user: object, allowed: Iterable[str]) -> SendNotPermittedError:
        """Name the users who may send it."""
        listed = ", ".join(sorted(allowed)) or "nobody"
        return cls(f"cannot send a private tensor as {user!r}: its owner allows {listed}; send it as one of them")

    @classmethod
    def claimed(cls, user: object, sender: object) -> SendNotPermittedError:
        """Name the claimed user and the sender."""
        return cls(
            f"cannot send as {user!r}: the sender is {sender!r}, and a claimed user name is not authentication; "
            f"leave `user` out, or set the `user` of the local worker"
        )


class ValueRefusedError(WorkerError, TypeError, RuntimeError):
    """The operation would implicitly reveal a remote value."""

    @classmethod
    def of(cls, op: str, location: str, may_consent: bool = True) -> ValueRefusedError:
        """Name the ways to read a value explicitly; not every operation can run in a ``revealing`` block."""
        consent = ', or allow it: `with sy.revealing("why"):`' if may_consent else ""
        return cls(
            f"cannot run {op!r} on a pointer: it would implicitly reveal a value from {location!r}; "
            f"fetch it first: `p.get()`, or a copy: `p.copy().get()`{consent}"
        )

    @classmethod
    def without_reason(cls) -> ValueRefusedError:
        """Refuse an empty reason."""
        return cls(
            "cannot reveal values: the ledger of each worker records a reason, and none was given; "
            'name one, e.g. `with sy.revealing("line search"):`'
        )

    @classmethod
    def only_local(
        cls, op: str, location: str, why: str = "it only works in the process that holds the data"
    ) -> ValueRefusedError:
        """Refuse an operation that makes sense only where the data is."""
        return cls(f"cannot run {op!r} on a pointer to {location!r}: {why}; fetch the tensor first: `p = p.get()`")

    @classmethod
    def form(cls, op: str, location: str) -> ValueRefusedError:
        """Refuse an operation whose result shape reveals values."""
        return cls(
            f"cannot run {op!r} on a pointer: the shape of its result would reveal private values on {location!r}; "
            f"use an operation with a fixed shape, e.g. `torch.where(mask, p, 0)` instead of `p[mask]`"
        )

    @classmethod
    def beyond(cls, op: str, location: str) -> ValueRefusedError:
        """Refuse an operation that could read memory outside of its tensor."""
        return cls(
            f"cannot run {op!r} on a pointer: the tensor on {location!r} is part of a larger one, which the operation "
            f"could read; run it on a copy: `p = p.clone()`"
        )

    @classmethod
    def undecided(cls, op: str, location: str) -> ValueRefusedError:
        """Refuse an operation whose kind of result depends on values."""
        return cls(
            f"cannot run {op!r} on a pointer: its kind of result depends on private values on {location!r}; "
            f"use another operation, or ask the owner to run it"
        )

    @classmethod
    def unreviewed(cls, op: str, location: str) -> ValueRefusedError:
        """Refuse an operation that has not been reviewed for use with private data."""
        return cls(
            f"cannot run {op!r} on {location!r}: it has not been reviewed for use on a worker with private data; "
            f"use a reviewed operation (docs/security.md), or ask the owner to run it"
        )

    @classmethod
    def failed(cls, op: str, location: str, kind: str) -> ValueRefusedError:
        """Report a failure without its text, which may quote values."""
        return cls(
            f"cannot run {op!r} on a pointer: it raised {kind} on {location!r}, and the text is withheld because it "
            f"may quote private values; check shapes, dtypes and ranges"
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

    @classmethod
    def on(cls, id: object, worker: object) -> InvalidTensorForRemoteGetError:
        """Name the object and its worker."""
        return cls(
            f"cannot get what object {id!r} on worker {worker!r} points to: it is not a pointer, the data is there; "
            f"fetch it with `p.get()`"
        )


class SerdeError(SyftError, ValueError):
    """A value cannot be serialized or deserialized."""
