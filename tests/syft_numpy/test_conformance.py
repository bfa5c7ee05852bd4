from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from syft_core.testing import BackendConformance  # noqa: E402
from syft_numpy.hook import NumpyHook  # noqa: E402


class TestNumpy(BackendConformance):
    framework = np
    hook_class = NumpyHook

    def concatenate(self, tensors: Sequence[Any]) -> Any:
        return np.concatenate(tensors)

    def leaks(self, wrapper: Any) -> Sequence[Callable[[], Any]]:
        return [
            lambda: pickle.dumps(wrapper),
            lambda: np.asarray(wrapper),
            lambda: np.array([wrapper]),
            lambda: np.ones(3)[wrapper > 0],
            lambda: np.full(3, wrapper),
            lambda: np.vectorize(abs)(wrapper),
        ]

    def patched_objects(self) -> Sequence[Any]:
        return [np, np.linalg, np.ndarray]

    test_a_tensor_can_be_sent_and_fetched_in_place = None  # an array cannot turn into a pointer
