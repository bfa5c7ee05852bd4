"""FrameworkHook: the interface of a backend, and how a framework is hooked and unhooked."""

from __future__ import annotations

import contextlib
import gc
import logging
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, ClassVar, NamedTuple

from syft_core.exceptions import LocalWorkerConflictError, NotTheFrameworkError
from syft_core.hook.attributes import FrameworkAttributes
from syft_core.hook.dispatch import dispatch, forget_answers
from syft_core.packages import PACKAGES
from syft_core.values import Function, LocalWorker, Tensor

_log = logging.getLogger(__name__)
_MISSING = object()


class Patches:
    """Attributes set on objects of a framework, all of which can be restored."""

    def __init__(self) -> None:
        # (target, name, previous value), or (action, None, None); tuples, because there are thousands.
        self._undo: list[tuple[Any, str | None, Any]] = []

    def set(self, target: Tensor, name: str, value: object) -> None:
        """Set an attribute and remember its previous value."""
        before = vars(target).get(name, _MISSING)
        setattr(target, name, value)
        self._undo.append((target, name, before))

    def on_undo(self, action: Callable[[], None]) -> None:
        """Register an action to run on ``undo``."""
        self._undo.append((action, None, None))

    def undo(self) -> None:
        """Undo everything in reverse order."""
        while self._undo:
            target, name, before = self._undo.pop()
            if name is None:
                target()
            elif before is _MISSING:
                delattr(target, name)
            else:
                setattr(target, name, before)


class Reader(NamedTuple):
    """How a backend reads one kind of file."""

    read: Callable[[Path], Any]
    """Return a tensor, or tensors by name. Must never execute anything, whatever the file contains."""
    expects: str
    """The expected content, for the error about any other."""


class FrameworkHook(ABC):
    """Makes chains work on one framework; each backend has one subclass.

    The first hook on a framework patches it; later ones warn and share the patches. ``unhook()``, or the end of a
    ``with`` block, detaches a hook; after the last one the framework is exactly as it was.

    A process has one local worker. The first hook on any framework sets it, later hooks share it, and it stays until
    the last hook is detached. The options below are for the first hook.

    Args:
        framework: the framework's module.
        local_worker: the worker that owns local objects; by default a new one called "me". A later hook accepts only
            the worker that is in use; a different one raises ``LocalWorkerConflictError``.
        is_client: whether a new local worker is a client, which does not keep its objects alive.
            ``is_client=False`` for a later hook raises ``LocalWorkerConflictError`` if the worker in use is a client:
            ignoring it would lose objects.
        verbose: whether a new local worker logs what it does. ``verbose=False`` for a later hook has no effect on a
            verbose worker, and warns; call ``set_verbose(False)`` instead.

    """

    name: ClassVar[str]
    """The framework's import name."""
    worker_type: ClassVar[type[Any]]
    """The type of local worker to create for the first hook."""
    readers: ClassVar[Mapping[str, Reader]] = {}
    """How to load files of a worker's owner, by suffix."""
    attributes: FrameworkAttributes
    local_worker: LocalWorker
    _attached: ClassVar[dict[str, _Attachment]] = {}

    def __init__(
        self,
        framework: object,
        local_worker: LocalWorker = None,
        is_client: bool = True,
        verbose: bool = True,
    ) -> None:
        if getattr(framework, "__name__", None) != self.name or not hasattr(framework, "__path__"):
            raise NotTheFrameworkError.received(type(self).__name__, self.name, framework)
        self.local_worker = self._choose_local_worker(local_worker, is_client, verbose)
        self.framework = framework
        self.to_auto_overload: dict[type, set[str]] = {}
        self._hooked = True
        attachment = self._attached.get(self.name)
        if attachment is not None:
            self._share(attachment)
        else:
            self._attach()

    # --- implemented by a backend

    @abstractmethod
    def _make_attributes(self) -> FrameworkAttributes:
        """Return the attributes of the framework, with its op table."""

    @abstractmethod
    def _install(self, patches: Patches) -> None:
        """Patch the framework with the names that users of a hook expect."""

    @abstractmethod
    def create_shape(self, shape_dims: object) -> Any:
        """Return ``shape_dims`` as the framework's type of a shape."""

    @abstractmethod
    def create_wrapper(self, wrapper_type: object = None) -> Tensor:
        """Return an empty tensor of the given type."""

    @abstractmethod
    def create_tensor(self, data: object) -> Tensor:
        """Return a plain tensor with the numbers of a nested list."""

    @abstractmethod
    def create_zeros(self, *shape: int, dtype: object = None, **kwargs: object) -> Tensor:
        """Return a tensor of zeros."""

    def create_table(self, columns: Sequence[object]) -> Tensor:
        """Return a plain tensor with these columns of numbers, which support the buffer protocol."""
        return self.create_tensor([list(row) for row in zip(*columns, strict=True)])

    def make_taggable(self, tensor: object) -> Tensor:
        """Return a plain tensor with the methods ``tag`` and ``private_tensor``: itself, if the hook has added them."""
        return tensor

    # --- attaching and detaching

    def _choose_local_worker(self, given: Any, is_client: bool, verbose: bool) -> Any:
        shared = current_worker()
        if given is not None:
            if shared is not None and given is not shared:
                raise LocalWorkerConflictError.differs(self.name, given.id, shared.id, self._attached)
            return given
        if shared is None:
            return self.worker_type(self, id="me", is_client_worker=is_client, verbose=verbose)
        if shared.is_client_worker and not is_client:
            raise LocalWorkerConflictError.is_client(self.name, shared.id, self._attached)
        if shared.verbose and not verbose:
            warnings.warn(
                f"`verbose=False` has no effect: this {type(self).__name__} shares the local worker {shared.id!r}, "
                f"which is verbose; call `hook.set_verbose(False)`",
                stacklevel=_find_caller_level(self),
            )
        return shared

    def _attach(self) -> None:
        patches = Patches()
        with _pause_collector():
            self._patch_framework(patches)
        self._attached[self.name] = _Attachment(self, patches)
        self.attributes.is_attached = True
        self._update_worker_hook()
        forget_answers()
        for listener in _listeners:
            listener(self)
        _log.info("hooked %s: %d operations in the table", self.name, len(self.attributes.ops))

    def _patch_framework(self, patches: Patches) -> None:
        self.attributes = self._make_attributes()
        try:
            self._install(patches)
        except BaseException:
            patches.undo()
            raise

    def _update_worker_hook(self) -> None:
        """Point the local worker at the earliest attached hook; without hooks, leave the last one."""
        hooks = attached_hooks()
        if hooks:
            self.local_worker.hook = hooks[0]

    def _share(self, attachment: _Attachment) -> None:
        warnings.warn(
            f"{self.name} is hooked already: this {type(self).__name__} shares the first one's local worker "
            f"{self.local_worker.id!r}; keep one hook, or detach the other with `hook.unhook()`",
            stacklevel=_find_caller_level(self),
        )
        attachment.count += 1
        self.attributes = attachment.first.attributes
        self.to_auto_overload = attachment.first.to_auto_overload

    def unhook(self) -> None:
        """Detach this hook; calling it twice is harmless."""
        if not self._hooked:
            return
        self._hooked = False
        attachment = self._attached[self.name]
        attachment.count -= 1
        if attachment.count == 0:
            attachment.patches.undo()
            del self._attached[self.name]
            self.attributes.is_attached = False
            self._update_worker_hook()
            forget_answers()

    def __enter__(self) -> FrameworkHook:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.unhook()

    def __repr__(self) -> str:
        state = "on" if self._hooked else "off"
        return f"<{type(self).__name__} {state}, local worker {self.local_worker.id!r}>"

    # --- the local worker's options

    @property
    def is_client(self) -> bool:
        """Whether the local worker is a client, which does not keep its objects alive."""
        return bool(self.local_worker.is_client_worker)

    @property
    def verbose(self) -> bool:
        """Whether the local worker logs what it does."""
        return bool(self.local_worker.verbose)

    def set_verbose(self, flag: bool) -> None:
        """Set whether the local worker, and all workers that it knows, log what they do."""
        self.local_worker.verbose = flag
        for worker in self.local_worker._known_workers.values():
            worker.verbose = flag

    # --- hooked methods and functions

    def get_hooked_method(self, method_name: str) -> Function:
        """Return the method as a function that runs plain tensors natively and dispatches chains to their layers."""
        op = self.attributes.method(method_name)
        return lambda _self, *args, **kwargs: dispatch(op, (_self, *args), kwargs)

    def get_hooked_syft_method(self, attr: str) -> Function:
        """Return the result of ``get_hooked_method``: every layer type is dispatched in the same way."""
        return self.get_hooked_method(attr)

    # These names are kept from 0.1.
    get_hooked_pointer_method = get_hooked_syft_method
    get_hooked_multi_pointer_method = get_hooked_syft_method
    get_hooked_additive_shared_method = get_hooked_syft_method

    def get_hooked_func(self, attr: str) -> Function:
        """Return the function ``attr``, which runs plain tensors natively and dispatches chains to their layers."""
        op = self.attributes.ops.look_up(attr)
        return lambda *args, **kwargs: dispatch(op, args, kwargs)


_library_code: dict[CodeType, bool] = {}


def find_line_of_program() -> tuple[str, int]:
    """Return the file and line of the calling program: the innermost frame outside this library and frameworks."""
    frame: Any = sys._getframe(2)
    while frame.f_back is not None:
        code = frame.f_code
        library = _library_code.get(code)
        if library is None:
            library = _library_code[code] = is_library(str(frame.f_globals.get("__name__", "")))
        if not library:
            break
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def is_library(module: str) -> bool:
    """Return whether a module belongs to this library or to a hooked framework."""
    return module.partition(".")[0] in _library_packages()


def _library_packages() -> set[str]:
    hooks = attached_hooks()
    packages = {type(hook).__module__.partition(".")[0] for hook in hooks}
    return {*PACKAGES, *(hook.name for hook in hooks), *packages}


def _find_caller_level(hook: FrameworkHook) -> int:
    """Return the ``stacklevel`` for ``warnings.warn`` of the line that creates ``hook``."""
    count, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_locals.get("self") is hook:
        count, frame = count + 1, frame.f_back  # type: ignore[assignment]  # None ends the loop
    return count


@contextlib.contextmanager
def _pause_collector() -> Iterator[None]:
    """Pause garbage collection, which thousands of new objects would trigger repeatedly."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Attachment:
    """A hooked framework: the first hook, the number of hooks, and the patches."""

    def __init__(self, first: FrameworkHook, patches: Patches) -> None:
        self.first = first
        self.patches = patches
        self.count = 1


_listeners: list[Callable[[FrameworkHook], None]] = []


def on_attach(listener: Callable[[FrameworkHook], None]) -> None:
    """Call ``listener``, which must not raise, for every hook that is attached now or later."""
    _listeners.append(listener)
    for hook in attached_hooks():
        listener(hook)


def attached_hooks() -> list[FrameworkHook]:
    """Return the first hook on each framework, most recent last."""
    return [attachment.first for attachment in FrameworkHook._attached.values()]


def current_hook() -> FrameworkHook | None:
    """Return the hook that was attached last, or None."""
    attached = FrameworkHook._attached
    return attached[next(reversed(attached))].first if attached else None


def attached_hook(name: str) -> FrameworkHook | None:
    """Return the hook attached to the framework called ``name``, or None."""
    attachment = FrameworkHook._attached.get(name)
    return attachment.first if attachment else None


def current_worker() -> Any:
    """Return the local worker that all hooks of this process share, or None if there is no hook."""
    hook = current_hook()
    return hook.local_worker if hook is not None else None
