"""Hooks for tests: attached once for tests that follow each other, with a local worker of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from syft_core.hook.hook import attached_hooks

_kept: list[tuple[str, Any]] = []
"""The hook that stays attached for the next test, with the fixture that needs it: at most one."""


def hook_for_test(request: pytest.FixtureRequest, framework: str, user: str | None = None) -> Iterator[Any]:
    """Yield a hook on a framework whose local worker is new, for a fixture; skip the test if the framework is missing.

    To attach a hook takes longer than a median test. So it stays attached while the next test of the same file uses the
    same fixture, nothing else is attached, and no operations have been added.
    """
    module = pytest.importorskip(framework)
    hook = take_kept(framework)
    if hook is None:
        made = import_module(f"syft_{framework}.hook")
        hook = (made.TorchHook if framework == "torch" else made.NumpyHook)(module)
        hook.attributes.warm_up()
    operations = len(hook.attributes.ops)
    if user is not None:
        hook.local_worker.user = user
    yield hook
    if attached_hooks() == [hook] and len(hook.attributes.ops) == operations:
        _kept.append((str(request.fixturename), hook))
    else:
        hook.unhook()


def take_kept(framework: str) -> Any:
    """Return the hook that was kept, with a new local worker; detach it if it cannot be used."""
    if not _kept:
        return None
    _name, hook = _kept.pop()
    if hook.name != framework or attached_hooks() != [hook]:
        hook.unhook()
        return None
    hook.local_worker = None
    hook.local_worker = hook.worker_type(hook, id="me", is_client_worker=True, verbose=True)
    return hook


def detach_before(item: pytest.Item, following: pytest.Item | None) -> None:
    """Detach the hook that was kept, unless the next test needs it."""
    if not _kept:
        return
    name, hook = _kept[0]
    if following is None or following.path != item.path or name not in getattr(following, "fixturenames", ()):
        _kept.clear()
        hook.unhook()
