"""Revealing: the consent to operations that read remote values in passing, such as ``bool(p)`` and ``p.item()``.

Without it they are refused. With it each value that one of them reads is fetched, like with ``get``: its worker decides
whether it may leave, and writes it into its ledger together with the reason that was given here. A worker does not know
of the consent and need not: on the wire there is nothing but a fetch.
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
    """A reason, and whether the block that it was given for has been left."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.over = False


# All that are open here. Blocks of generators need not be left in the order in which they were entered, nor in the
# context in which they were: so each is taken out for itself, and whatever copy of the context is left is void.
_consents: ContextVar[tuple[_Consent, ...]] = ContextVar("consents", default=())


@contextmanager
def revealing(reason: str) -> Iterator[None]:
    """Let operations read remote values within this block, for a reason that the ledger of each worker keeps.

    The innermost reason holds. The consent is this thread's or task's own; a generator that pauses inside of such a
    block leaves it open for its caller, as it does with any context.
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
    """Run an operation that reads values here, on copies of what its pointers point to, if the user consents."""
    if op.local:
        raise ValueRefusedError.of(op.name, pointer.location.id, may_consent=False)
    reason = _reason_of(pointer.owner)
    if reason is None:
        raise _refusal(op, pointer, *find_line_of_program())  # A variable would keep the pointer alive.

    def fetch(leaf: Tensor) -> Nested:
        return leaf.get(reason=reason, deregister_ptr=False) if isinstance(leaf, ObjectPointer) else leaf

    copied_args, copied_kwargs = map_leaves(fetch, (args, kwargs))
    return dispatch(op, copied_args, copied_kwargs)


def _refusal(op: Op, pointer: Tensor, file: str, line: int) -> Exception:
    """Return the error that names the call; of a program that was typed in there is no file to name."""
    error: Any = ValueRefusedError.of(op.name, pointer.location.id)
    if not file.startswith("<"):
        error.__notes__ = [f"{op.attr!r} was called by {file}:{line}"]
    return error  # type: ignore[no-any-return]  # notes are not known to the types of Python 3.10


def _reason_of(owner: object) -> str | None:
    """Return why ``owner`` may read values: the consent is the user's, not that of workers which compute for her."""
    if owner is None or owner is not current_worker():
        return None
    return next((consent.reason for consent in reversed(_consents.get()) if not consent.over), None)
