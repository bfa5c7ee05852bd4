"""The conformance suite for this backend: `syft-core plugins --check numpy` and the tests run it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import ClassVar

import numpy as np

from syft_core.testing import BackendConformance
from syft_core.values import Tensor
from syft_numpy.hook import NumpyHook


class NumpyConformance(BackendConformance):
    """What the suite must know about numpy."""

    framework: ClassVar[ModuleType] = np
    hook_class = NumpyHook

    def concatenate(self, tensors: Sequence[Tensor]) -> Tensor:
        return np.concatenate(tensors)

    def leaks(self, wrapper: Tensor) -> Sequence[Callable[[], object]]:
        return [
            lambda: pickle.dumps(wrapper),
            lambda: np.asarray(wrapper),
            lambda: np.array([wrapper]),
            lambda: np.ones(3)[wrapper > 0],
            lambda: np.full(3, wrapper),
            lambda: np.vectorize(abs)(wrapper),
        ]

    def patched_objects(self) -> Sequence[object]:
        return [np, np.linalg, np.ndarray]

    test_a_tensor_can_be_sent_and_fetched_in_place = None  # type: ignore[assignment]  # an array cannot turn into a pointer
