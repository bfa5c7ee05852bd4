"""The surface of numpy: its op table, the samples of each operation, and how to compare arrays."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.testing import assert_array_equal

from syft_core.hook.attributes import Op
from syft_core.tensors.logging import LoggingTensor
from syft_numpy.attributes import NumpyAttributes
from syft_numpy.hook import NumpyHook
from syft_numpy.wrapper import Wrapper

from .checks import Case, DifferenceError, by_operation
from .exceptions import NUMPY, NUMPY_BEFORE_2_4
from .numpy_samples import hand_made, ufunc_cases
from .recording import record_operations


class NumpySurface:
    """Implements ``survey.Surface`` for numpy, which must be hooked.

    numpy returns scalars where torch returns tensors without dimensions; a chain always ends in an array.
    """

    name = "numpy"
    version = np.__version__
    exceptions: Mapping[str, str] = MappingProxyType(
        {**NUMPY, **(NUMPY_BEFORE_2_4 if np.lib.NumpyVersion(np.__version__) < "2.4.0" else {})}
    )
    arrives_as: Mapping[str, str] = MappingProxyType({})

    def __init__(self) -> None:
        self.ops = NumpyAttributes(np).ops

    @functools.cached_property
    def _hand_made(self) -> dict[str, list[Case]]:
        return by_operation(hand_made())

    def cases(self, op: Op) -> list[Case]:
        return [*ufunc_cases(op), *self._hand_made.get(op.name, [])]

    @contextlib.contextmanager
    def attach_hook(self) -> Iterator[None]:
        with NumpyHook(np), record_operations(Wrapper.ops) as self.reached:
            yield

    def is_tensor(self, x: Any) -> bool:
        return isinstance(x, (np.ndarray, np.generic, Wrapper))

    def copy(self, tensor: Any) -> Any:
        return tensor.copy()

    def other_values(self, tensor: Any) -> Any:
        """Return an array of the same form with different values; integers, which may be indices, stay the same."""
        if tensor.dtype == bool:
            return ~tensor
        if np.issubdtype(tensor.dtype, np.inexact):
            return tensor * 0.5 + 0.25
        return tensor

    def extreme_values(self, tensor: Any, extreme: float, number: int) -> Any:
        """Return an array of the same form filled with ``extreme``, or with ``number`` if it holds integers."""
        if tensor.dtype == bool:
            return ~tensor
        made = np.array(tensor)
        if tensor.dtype.kind in "iufcSU":
            made[...] = np.array(extreme if tensor.dtype.kind in "fc" else number).astype(tensor.dtype)
        return made

    def chain(self, tensor: Any) -> Any:
        return LoggingTensor().on(tensor)

    def end(self, chain: Any) -> Any:
        if type(chain) is not Wrapper or type(chain.child) is not LoggingTensor:
            raise DifferenceError(f"expected Wrapper > LoggingTensor > array, got {chain!r:.200}")
        end = chain.child.child
        if type(end) is not np.ndarray:
            raise DifferenceError(f"expected the chain to end in an array, got {type(end)}")
        return end

    def run(self, call: Callable[[], Any]) -> tuple[Any, set[str]]:
        self.reached.clear()
        return call(), set(self.reached)

    def compare(self, expected: Any, chain: Any, *, form_only: bool) -> None:
        actual = self.end(chain)
        for fact in ("shape", "dtype", "size", "ndim"):
            for array in (actual, chain):
                if getattr(array, fact) != getattr(expected, fact):
                    raise DifferenceError(f"{fact}: expected {getattr(expected, fact)}, got {getattr(array, fact)}")
        if not form_only:
            assert_array_equal(actual, expected)
