"""A worker in an actor passes the suite for transports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import syft_core as sy
from syft_core.testing.transport import TransportConformance, equip

pytest.importorskip("ray")
torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from syft_numpy.hook import NumpyHook  # noqa: E402
from syft_torch.hook import TorchHook  # noqa: E402


class Ray(TransportConformance):
    @classmethod
    @contextmanager
    def start_worker(cls, hook: Any, near: Any, eve: Any) -> Iterator[Any]:
        with sy.RayWorkers(hook, ids=["far"], setup=lambda worker: equip(worker, worker.hook)) as workers:
            workers.connect(near)
            yield workers[0], workers.connect(eve)[0]


class TestTorchOnRay(Ray):
    framework, hook_class = torch, TorchHook


class TestNumpyOnRay(Ray):
    framework, hook_class = numpy, NumpyHook
