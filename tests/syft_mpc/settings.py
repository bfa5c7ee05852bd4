"""Workers that compute on shares: with torch or numpy, with two or three parties, and numbers that are not shared."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from syft_core.workers.party.virtual import VirtualWorker

BASE, DIGITS = 2, 16


class Setting:
    """A framework, its workers, and how many of them hold shares: none, two or three."""

    def __init__(self, hook: Any, parties: int = 2, serialize: bool = False) -> None:
        self.hook, self.name = hook, hook.name
        names = ("bob", "alice", "dave")
        self.everybody = [VirtualWorker(hook, id=name, serialize=serialize) for name in names]
        self.workers = self.everybody[:parties]
        self.carol = VirtualWorker(hook, id="carol", serialize=serialize)
        self.xp: Any = hook.torch if self.name == "torch" else np

    def plain(self, values: Any) -> Any:
        """Return numbers as a tensor of the framework."""
        return self.hook.torch.tensor(np.asarray(values)) if self.name == "torch" else self.hook.array(values)

    def encode(self, values: Any, **options: Any) -> Any:
        """Return numbers with fixed precision."""
        options = {"base": BASE, "precision_fractional": DIGITS, **options}
        return self.plain(values).fix_precision(**options)

    def put(self, values: Any, **options: Any) -> Any:
        """Return numbers with fixed precision, shared if there are parties."""
        encoded = self.encode(values, **options)
        return self.share(encoded) if self.workers else encoded

    def share(self, x: Any) -> Any:
        """Share a tensor."""
        return x.share(*self.workers, crypto_provider=self.carol)

    def read(self, x: Any) -> np.ndarray:
        """Return the numbers of a result, which stays as it is."""
        if self.workers and "AdditiveSharing" in repr(x):
            x = x.copy().get()
        return np.asarray(x.float_precision())

    def count(self) -> list[int]:
        """Return how many objects each worker holds."""
        gc.collect()
        counts = []
        for worker in (*self.everybody, self.carol):
            self.hook.local_worker.location_of(worker).flush()
            counts.append(worker.objects_count)
        return counts


@contextmanager
def attach(name: str) -> Iterator[Any]:
    """Hook a framework, or skip the test if it is missing."""
    framework = pytest.importorskip(name)
    if name == "torch":
        from syft_torch.hook import TorchHook as Hook  # noqa: PLC0415  # torch may be missing
    else:
        from syft_numpy.hook import NumpyHook as Hook  # type: ignore[assignment]  # noqa: PLC0415  # the same
    with Hook(framework) as hook:
        hook.attributes.warm_up()
        hook.local_worker.user = "me"
        yield hook


def assert_close(found: np.ndarray, expected: Any, tolerance: float = 2e-3) -> None:
    """Assert that numbers have the expected shape, and are close to the expected ones."""
    wanted = np.asarray(expected, dtype=np.float64)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(np.asarray(found, np.float64), wanted, rtol=tolerance, atol=tolerance)
