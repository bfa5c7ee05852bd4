"""The surface of torch: its op table, the samples of each operation, and how to compare tensors."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing import assert_close

from syft_core.hook.attributes import Op
from syft_core.tensors.logging import LoggingTensor
from syft_numpy import hook_args  # noqa: F401  # torch must behave the same if numpy's types are registered too
from syft_torch.attributes import TorchAttributes
from syft_torch.hook import TorchHook
from syft_torch.wrapper import Wrapper

from .checks import Case, DifferenceError, by_operation
from .exceptions import TORCH
from .recording import record_operations
from .torch_opinfo import opinfo_cases
from .torch_samples import ARRIVES_AS, hand_made

SEED = 7


class TorchSurface:
    """Implements ``survey.Surface`` for torch, which must be hooked."""

    name = "torch"
    version = torch.__version__.split("+")[0]
    arrives_as = ARRIVES_AS

    def __init__(self) -> None:
        self.ops = TorchAttributes(torch).ops
        self.exceptions = TORCH

    @functools.cached_property
    def _hand_made(self) -> dict[str, list[Case]]:
        return by_operation(hand_made())

    def cases(self, op: Op) -> list[Case]:
        return [*opinfo_cases(op), *self._hand_made.get(op.name, [])]

    @contextlib.contextmanager
    def attach_hook(self) -> Iterator[None]:
        with TorchHook(torch), record_operations(Wrapper.ops) as self.reached:
            yield

    def is_tensor(self, x: Any) -> bool:
        return isinstance(x, torch.Tensor)

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode(tensor.is_inference()):
            twin = tensor.detach().clone()
            if isinstance(tensor, torch.nn.Parameter):
                return torch.nn.Parameter(twin, tensor.requires_grad)
            return twin.requires_grad_() if tensor.requires_grad else twin

    def other_values(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the same form with different values; integers, which may be indices, stay the same."""
        if tensor.layout is not torch.strided or tensor.is_quantized:
            return tensor
        if tensor.dtype is torch.bool:
            return ~tensor
        if tensor.is_floating_point() or tensor.is_complex():
            return (tensor.detach() * 0.5 + 0.25).to(tensor.dtype).requires_grad_(tensor.requires_grad)
        return tensor

    def extreme_values(self, tensor: torch.Tensor, extreme: float, number: int) -> torch.Tensor:
        """Return a tensor of the same form filled with ``extreme``, or with ``number`` if it holds integers."""
        if tensor.layout is not torch.strided or tensor.is_quantized:
            return tensor
        if tensor.dtype is torch.bool:
            return ~tensor
        made = tensor.detach().clone()
        if tensor.is_floating_point() or tensor.is_complex():
            return made.fill_(extreme).requires_grad_(tensor.requires_grad)
        return made.fill_(min(number, torch.iinfo(tensor.dtype).max) if tensor.dtype.is_signed else abs(number) % 128)

    def chain(self, tensor: torch.Tensor) -> torch.Tensor:
        return LoggingTensor().on(tensor)

    def end(self, chain: Any) -> torch.Tensor:
        kinds = []
        while (child := getattr(chain, "child", None)) is not None:
            kinds.append(type(chain))
            chain = child
        if kinds != [Wrapper, LoggingTensor] or isinstance(chain, Wrapper):
            raise DifferenceError(f"expected Wrapper > LoggingTensor > tensor, got {[k.__name__ for k in kinds]}")
        return chain

    def run(self, call: Callable[[], Any]) -> tuple[Any, set[str]]:
        torch.default_generator.manual_seed(SEED)  # `torch.manual_seed` would also store a traceback for each GPU
        self.reached.clear()
        return call(), set(self.reached)

    def compare(self, expected: torch.Tensor, chain: Any, *, form_only: bool) -> None:
        actual = self.end(chain)
        for fact in ("shape", "dtype", "layout", "device", "requires_grad", "is_leaf"):
            for tensor in (actual, chain):
                if getattr(tensor, fact) != getattr(expected, fact):
                    raise DifferenceError(f"{fact}: expected {getattr(expected, fact)}, got {getattr(tensor, fact)}")
        if (expected.is_leaf and expected.grad is None) != (actual.is_leaf and actual.grad is None):
            raise DifferenceError("only one of the two has a gradient")
        if not form_only:
            same_values(expected, actual)
            if expected.is_leaf and expected.grad is not None:
                same_values(expected.grad, actual.grad)


def same_values(expected: torch.Tensor, actual: torch.Tensor) -> None:
    """Fail unless the two are equal, NaN like NaN; kernels round the last bits by where in memory their input lies."""
    if expected.is_quantized:
        expected, actual = expected.int_repr(), actual.int_repr()
    if expected.is_mkldnn:
        expected, actual = expected.to_dense(), actual.to_dense()
    assert_close(actual.detach(), expected.detach(), equal_nan=True)
