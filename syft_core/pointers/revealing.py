"""Revealing: consent to operations that implicitly read remote values, such as ``bool(p)`` and ``p.item()``.

Without consent they are refused. With consent, each value they read is fetched as with ``get``: its worker decides
whether it may leave, and records it in its ledger with the given reason. The worker does not see the consent, only
fetches.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from syft_core.exceptions import ValueRefusedError
from syft_core.hook.attributes import Op
from syft_core.hook.dispatch import dispatch
from syft_core.hook.hook import current_worker, find_line_of_program
from syft_core.hook.rules import map_leaves
from syft_core.pointers.object_pointer import ObjectPointer
from syft_core.values import Args, Kwargs, Nested, Tensor


class _Consent:
    """A reason, and whether its block has ended."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.over = False


# The open consents. Generators may leave their blocks in any order and in another context, so each block removes only
# its own consent, and marks it as over for copies of the context.
_consents: ContextVar[tuple[_Consent, ...]] = ContextVar("consents", default=())


@contextmanager
def revealing(reason: str) -> Iterator[None]:
    """Allow operations in this block to read remote values; the ledger of each worker records the reason.

    The innermost reason applies. The consent belongs to the current thread or task; like any context variable, it
    remains active for the caller of a generator that yields inside the block.
    """
    if not isinstance(reason, str) or not reason.strip():
        raise ValueRefusedError.without_reason()
    consent = _Consent(reason)
    _consents.set((*_consents.get(), consent))
    try:
        yield
    finally:
        consent.over = True
        _consents.set(tuple(other for other in _consents.get() if other is not consent))


def reveal(op: Op, pointer: Tensor, args: Args, kwargs: Kwargs) -> Nested:
    """Run an operation that reads values locally, on copies of the objects, if the user consents."""
    if op.local:
        raise ValueRefusedError.of(op.name, pointer.location.id, may_consent=False)
    reason = _find_reason(pointer.owner)

    def fetch(leaf: Tensor) -> Nested:
        if not isinstance(leaf, ObjectPointer):
            return leaf
        return _fetch_known(leaf) if reason is None else leaf.get(reason=reason, deregister_ptr=False)

    try:
        copied_args, copied_kwargs = map_leaves(fetch, (args, kwargs))
    except ValueRefusedError:
        raise _refusal(op, pointer, *find_line_of_program()) from None  # A variable would keep the pointer alive.
    return dispatch(op, copied_args, copied_kwargs)


def reveal_copies(name: str, values: Nested) -> Nested:
    """Replace wrappers of pointers by copies of the objects for a function called ``name``, if the user consents."""

    def fetch(leaf: Tensor) -> Nested:
        pointer = getattr(leaf, "child", None)
        if not isinstance(pointer, ObjectPointer):
            return leaf
        reason = None if pointer._location.records else _find_reason(pointer.owner)
        if reason is None:
            raise ValueRefusedError.of(name, pointer.location.id)
        return leaf.get(reason=reason, deregister_ptr=False)

    return map_leaves(fetch, values)


def _fetch_known(pointer: Tensor) -> Tensor:
    """Fetch a mask, index or length if the worker confirms that it depends only on what this client sent."""
    form = getattr(pointer, "known_form", None)
    if pointer._location.records or form is None or not pointer.framework.is_integral(form.dtype):
        raise ValueRefusedError.of("get", pointer.location.id)
    return pointer.get_known()


def _refusal(op: Op, pointer: Tensor, file: str, line: int) -> Exception:
    """Return the error, with a note that names the call if the program has a file."""
    error: Any = ValueRefusedError.of(op.name, pointer.location.id, instead=pointer.framework.explain_read())
    if not file.startswith("<"):
        error.__notes__ = [f"{op.attr!r} was called by {file}:{line}"]
    return error  # type: ignore[no-any-return]  # Python 3.10 has no `__notes__`


def _find_reason(owner: object) -> str | None:
    """Return the reason why ``owner`` may read values; only the local worker has the user's consent."""
    if owner is None or owner is not current_worker():
        return None
    return next((consent.reason for consent in reversed(_consents.get()) if not consent.over), None)
