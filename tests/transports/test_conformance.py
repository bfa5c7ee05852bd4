"""Every transport passes the same suite: workers in this process, in both modes, and one in a second process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from syft_core.testing.transport import TransportConformance, equip
from syft_core.workers.party.virtual import VirtualWorker

from . import pipe

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from syft_numpy.hook import NumpyHook  # noqa: E402
from syft_torch.hook import TorchHook  # noqa: E402


class Torch:
    framework, hook_class, backend = torch, TorchHook, "torch syft_torch.hook TorchHook"


class Numpy:
    framework, hook_class, backend = numpy, NumpyHook, "numpy syft_numpy.hook NumpyHook"


class InProcess(TransportConformance):
    serialize = False

    @classmethod
    @contextmanager
    def start_worker(cls, hook: Any, near: Any, eve: Any) -> Iterator[Any]:
        far = VirtualWorker(hook, id="far", serialize=cls.serialize)
        equip(far, hook)
        yield hook.local_worker.location_of(far), eve.location_of(far)


class ByWire(InProcess):
    serialize = True


class OverAPipe(TransportConformance):
    backend: str

    @classmethod
    @contextmanager
    def start_worker(cls, hook: Any, near: Any, eve: Any) -> Iterator[Any]:
        with pipe.start_far_worker(cls.backend, hook.local_worker, near, eve) as (process, far, far_of_eve):
            yield far, far_of_eve
        assert process.exitcode == 0


class TestTorchInProcess(Torch, InProcess): ...


class TestTorchByWire(Torch, ByWire): ...


class TestTorchOverAPipe(Torch, OverAPipe): ...


class TestNumpyInProcess(Numpy, InProcess): ...


class TestNumpyByWire(Numpy, ByWire): ...


class TestNumpyOverAPipe(Numpy, OverAPipe): ...
