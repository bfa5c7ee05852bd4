"""Workers for every test, once with messages handed over as they are and once through the wire format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ..hooks import hook_for_test


@pytest.fixture(params=[False, True], ids=["in_process", "by_wire"])
def serialize(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def hook(request: pytest.FixtureRequest) -> Iterator[Any]:
    yield from hook_for_test(request, "torch", user="me")


@pytest.fixture
def me(hook: Any) -> Any:
    return hook.local_worker


@pytest.fixture
def bob(hook: Any, serialize: bool) -> Any:
    return worker(hook, "bob", serialize)


@pytest.fixture
def alice(hook: Any, serialize: bool) -> Any:
    return worker(hook, "alice", serialize)


@pytest.fixture
def numpy_hook(request: pytest.FixtureRequest) -> Iterator[Any]:
    yield from hook_for_test(request, "numpy", user="me")


@pytest.fixture(scope="module", params=["torch", "numpy"])
def operations(request: pytest.FixtureRequest) -> Any:
    """All operations of a framework."""
    from ..surface.numpy_surface import NumpySurface  # noqa: PLC0415  # the frameworks may be missing
    from ..surface.torch_surface import TorchSurface  # noqa: PLC0415  # the same

    return {"torch": TorchSurface, "numpy": NumpySurface}[request.param]()


@pytest.fixture
def surface(operations: Any) -> Iterator[Any]:
    """All operations of a framework, which is hooked for one test: a hook that stayed would share its local worker."""
    with operations.attach_hook():
        yield operations


@pytest.fixture
def carol(numpy_hook: Any, serialize: bool) -> Any:
    """A worker that knows numpy."""
    return worker(numpy_hook, "carol", serialize)


@pytest.fixture
def dave(numpy_hook: Any, serialize: bool) -> Any:
    """A second worker that knows numpy."""
    return worker(numpy_hook, "dave", serialize)


def worker(hook: Any, id: str, serialize: bool) -> Any:
    from syft_core.workers.party.virtual import VirtualWorker  # noqa: PLC0415  # the frameworks may be missing

    hook.local_worker.serialize = serialize
    made = VirtualWorker(hook, id=id, serialize=serialize)
    made.user = id
    return made
