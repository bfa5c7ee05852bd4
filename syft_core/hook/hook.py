"""FrameworkHook: what a backend provides, and how it is put on a framework and taken off again."""

from __future__ import annotations

import contextlib
import gc
import logging
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from types import CodeType, TracebackType
from typing import Any, ClassVar

from syft_core.exceptions import LocalWorkerConflictError, NotTheFrameworkError
from syft_core.hook.attributes import FrameworkAttributes
from syft_core.hook.dispatch import dispatch, forget_answers

_log = logging.getLogger(__name__)
_MISSING = object()


class Patches:
    """Attributes set on somebody else's objects, which can all be taken back."""

    def __init__(self) -> None:
        # (target, name, what was there), or (action, None, None); tuples, because there are thousands.
        self._undo: list[tuple[Any, str | None, Any]] = []

    def set(self, target: Any, name: str, value: Any) -> None:
        """Set an attribute and remember what was there."""
        before = vars(target).get(name, _MISSING)
        setattr(target, name, value)
        self._undo.append((target, name, before))

    def on_undo(self, action: Callable[[], None]) -> None:
        """Remember one more thing to take back."""
        self._undo.append((action, None, None))

    def undo(self) -> None:
        """Take everything back, the last thing first."""
        while self._undo:
            target, name, before = self._undo.pop()
            if name is None:
                target()
            elif before is _MISSING:
                delattr(target, name)
            else:
                setattr(target, name, before)


class FrameworkHook(ABC):
    """Makes chains work on one framework; each backend has one subclass.

    The first hook on a framework attaches it; a further one warns and shares the attachment. ``unhook()``, or leaving a
    ``with`` block, takes a hook off; with the last one the framework is exactly as it was.

    A process has one local worker. The first hook, on any framework, sets it; later hooks share it, and it stays until
    the last hook is off. The options below are for the first hook.

    Args:
        framework: the framework's module.
        local_worker: the worker that owns what is on this machine; by default a new one called "me". A later hook may
            be given the worker that is in use; a different one raises ``LocalWorkerConflictError``.
        is_client: whether a new local worker leaves it to Python to keep objects alive. A worker that serves others
            keeps what it registers, so ``is_client=False`` for a later hook raises ``LocalWorkerConflictError`` if the
            worker in use is a client: ignoring it would lose objects.
        verbose: whether a new local worker reports what it does. ``verbose=False`` for a later hook has no effect on a
            worker that reports, and warns; call ``set_verbose(False)`` instead.

    """

    name: ClassVar[str]
    """The framework's import name."""
    worker_type: ClassVar[type[Any]]
    """The type of the local worker that this hook creates when it is the first one."""
    attributes: FrameworkAttributes
    local_worker: Any
    _attached: ClassVar[dict[str, _Attachment]] = {}

    def __init__(
        self,
        framework: Any,
        local_worker: Any = None,
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

    # --- what a backend provides

    @abstractmethod
    def _make_attributes(self) -> FrameworkAttributes:
        """Return the framework's op table and names."""

    @abstractmethod
    def _install(self, patches: Patches) -> None:
        """Put on the framework what users of a hook may expect there."""

    @abstractmethod
    def create_shape(self, shape_dims: Any) -> Any:
        """Return ``shape_dims`` as the framework's type of a shape."""

    @abstractmethod
    def create_wrapper(self, wrapper_type: Any = None) -> Any:
        """Return an empty tensor of the given type."""

    @abstractmethod
    def create_tensor(self, data: Any) -> Any:
        """Return a plain tensor with the numbers of a nested list."""

    @abstractmethod
    def create_zeros(self, *shape: int, dtype: Any = None, **kwargs: Any) -> Any:
        """Return a tensor of zeros."""

    # --- putting it on and taking it off

    def _choose_local_worker(self, given: Any, is_client: bool, verbose: bool) -> Any:
        """Return the worker that the hooks share or, for the first hook, the given one or a new one."""
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
                stacklevel=_level_of_caller(self),
            )
        return shared

    def _attach(self) -> None:
        patches = Patches()
        with _collector_paused():
            self._put_on(patches)
        self._attached[self.name] = _Attachment(self, patches)
        self._set_hook_of_worker()
        forget_answers()
        for listener in _listeners:
            listener(self)
        _log.info("hooked %s: %d operations in the table", self.name, len(self.attributes.ops))

    def _put_on(self, patches: Patches) -> None:
        self.attributes = self._make_attributes()
        try:
            self._install(patches)
        except BaseException:
            patches.undo()
            raise

    def _set_hook_of_worker(self) -> None:
        """Let the local worker refer to the earliest hook that is on; with none left, it keeps the last one."""
        hooks = attached_hooks()
        if hooks:
            self.local_worker.hook = hooks[0]

    def _share(self, attachment: _Attachment) -> None:
        warnings.warn(
            f"{self.name} is hooked already: this {type(self).__name__} shares the first one's local worker "
            f"{self.local_worker.id!r}; keep one hook, or take the other off with `hook.unhook()`",
            stacklevel=_level_of_caller(self),
        )
        attachment.count += 1
        self.attributes = attachment.first.attributes
        self.to_auto_overload = attachment.first.to_auto_overload

    def unhook(self) -> None:
        """Take this hook off; calling it twice is harmless."""
        if not self._hooked:
            return
        self._hooked = False
        attachment = self._attached[self.name]
        attachment.count -= 1
        if attachment.count == 0:
            attachment.patches.undo()
            del self._attached[self.name]
            self._set_hook_of_worker()
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
        """Whether the local worker leaves it to Python to keep objects alive."""
        return bool(self.local_worker.is_client_worker)

    @property
    def verbose(self) -> bool:
        """Whether the local worker reports what it does."""
        return bool(self.local_worker.verbose)

    def set_verbose(self, flag: bool) -> None:
        """Set whether the local worker, and all workers that it knows, report what they do."""
        self.local_worker.verbose = flag
        for worker in self.local_worker._known_workers.values():
            worker.verbose = flag

    # --- one road for every method and function

    def get_hooked_method(self, method_name: str) -> Callable[..., Any]:
        """Return the method as a function: plain tensors run natively, chains are answered by their layers."""
        op = self.attributes.method(method_name)
        return lambda _self, *args, **kwargs: dispatch(op, (_self, *args), kwargs)

    # A pointer, a multi-pointer, a shared or any other layer answers for itself: the names differ, the road does not.
    get_hooked_syft_method = get_hooked_method
    get_hooked_pointer_method = get_hooked_method
    get_hooked_multi_pointer_method = get_hooked_method
    get_hooked_additive_shared_method = get_hooked_method

    def get_hooked_func(self, attr: str) -> Callable[..., Any]:
        """Return the function called ``attr``: plain tensors run natively, chains are answered by their layers."""
        op = self.attributes.ops.named(attr)
        return lambda *args, **kwargs: dispatch(op, args, kwargs)


_library_code: dict[CodeType, bool] = {}


def find_line_of_program() -> tuple[str, int]:
    """Return the file and the line that is running of the user's program, to which libraries of others belong."""
    frame: Any = sys._getframe(2)
    while frame.f_back is not None:
        code = frame.f_code
        library = _library_code.get(code)
        if library is None:
            package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
            library = _library_code[code] = package in _library_packages()
        if not library:
            break
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _library_packages() -> set[str]:
    """Return the packages whose lines are not the user's: this one, and the frameworks with their backends."""
    hooks = attached_hooks()
    packages = {type(hook).__module__.partition(".")[0] for hook in hooks}
    return {__name__.partition(".")[0], *(hook.name for hook in hooks), *packages}


def _level_of_caller(hook: FrameworkHook) -> int:
    """Return the stack level, as ``warnings.warn`` counts it, of the line that is making ``hook``."""
    count, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_locals.get("self") is hook:
        count, frame = count + 1, frame.f_back  # type: ignore[assignment]  # None ends the loop
    return count


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep the garbage collector from walking a whole framework because of a few thousand new entries."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Attachment:
    """One framework that is hooked: the first hook, how many share it, and what to take back."""

    def __init__(self, first: FrameworkHook, patches: Patches) -> None:
        self.first = first
        self.patches = patches
        self.count = 1


_listeners: list[Callable[[FrameworkHook], None]] = []


def on_attach(listener: Callable[[FrameworkHook], None]) -> None:
    """Call ``listener``, which must not raise, with every hook that is on a framework, now or later."""
    _listeners.append(listener)
    for hook in attached_hooks():
        listener(hook)


def attached_hooks() -> list[FrameworkHook]:
    """Return the first hook on each framework that is hooked, the latest last."""
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
    """Return the local worker of this process, which all hooks share, or None when no hook is on."""
    hook = current_hook()
    return hook.local_worker if hook is not None else None
