"""Modes of the caller's thread do not see the tensors of a worker in the same process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from syft_core.exceptions import WrapperLeakError  # noqa: E402
from syft_core.hook.attributes import FrameworkAttributes  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_torch.versions import saving_hooks  # noqa: E402


class FunctionSpy(TorchFunctionMode):  # type: ignore[misc]  # torch's types are Any here
    def __init__(self, seen: list[Any]) -> None:
        super().__init__()
        self.seen = seen

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


class DispatchSpy(TorchDispatchMode):  # type: ignore[misc]  # the same
    def __init__(self, seen: list[Any]) -> None:
        super().__init__()
        self.seen = seen

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


def test_without_modes_there_is_nothing_to_isolate(hook: Any) -> None:
    assert hook.attributes.isolate() is None
    assert FrameworkAttributes.isolate() is None


@pytest.mark.parametrize("spies", [[FunctionSpy], [DispatchSpy], [FunctionSpy, DispatchSpy, FunctionSpy, DispatchSpy]])
def test_a_mode_is_disabled_inside_and_restored_afterwards(hook: Any, spies: list[Any]) -> None:
    seen: list[Any] = []
    modes = [spy(seen) for spy in spies]
    for mode in modes:
        mode.__enter__()
    try:
        isolated = hook.attributes.isolate()
        with isolated:
            torch.ones(3) + 1
        assert seen == []
        torch.ones(3) + 1
        assert seen
    finally:
        for mode in reversed(modes):
            mode.__exit__(None, None, None)
    assert hook.attributes.isolate() is None


def test_modes_are_restored_in_order_after_an_error(hook: Any) -> None:
    outer: list[Any] = []
    inner: list[Any] = []
    with DispatchSpy(outer), DispatchSpy(inner) as innermost:
        with pytest.raises(ValueError, match="no"), hook.attributes.isolate():
            raise ValueError("no")
        torch.ones(1)
        assert torch._C._get_dispatch_stack_at(1) is innermost
    assert outer
    assert inner


def test_saved_tensor_hooks_of_torch_are_disabled_inside_and_restored_afterwards(hook: Any) -> None:
    with torch.autograd.graph.save_on_cpu():
        before = saving_hooks(False)
        with hook.attributes.isolate():
            assert saving_hooks(False) is None
        assert saving_hooks(False) == before
    assert hook.attributes.isolate() is None


def test_saved_tensor_hooks_of_a_user_are_refused(hook: Any) -> None:
    with (
        torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
        pytest.raises(WrapperLeakError, match="cannot use saved_tensors_hooks"),
    ):
        hook.attributes.isolate()


def test_the_default_device_stays_active(hook: Any) -> None:
    with torch.device("meta"):
        assert hook.attributes.isolate() is None
        with FunctionSpy([]), hook.attributes.isolate():
            assert torch.ones(1).device.type == "meta"


# --- torch.jit.trace

TRACED: dict[str, Callable[[Any, Any], Any]] = {
    "a module": lambda model, x: (model, x),
    "a function": lambda model, x: (lambda x: torch.nn.functional.linear(x, model.weight), x),
    "a function of a local tensor": lambda model, x: (lambda y: model(x).sum() + y.sum(), torch.ones(1)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("serialize", [False, True], ids=["in_process", "by_wire"])
@pytest.mark.parametrize("case", TRACED.values(), ids=TRACED)
def test_tracing_a_remote_model_does_not_reveal_weights(hook: Any, case: Any, serialize: bool) -> None:
    bob = VirtualWorker(hook, id="bob", serialize=serialize)
    model = torch.nn.Linear(2, 1)
    weight = f"{model.weight[0, 0].item():.4f}"
    model.send(bob)

    with pytest.raises(WrapperLeakError, match=r"torch\.jit\.trace.*fetch the model first") as caught:
        torch.jit.trace(*case(model, torch.ones(2, 2).send(bob)))

    shown = [str(error) for error in (caught.value, caught.value.__cause__, caught.value.__context__)]
    assert not any(weight in text or "Tensor:" in text for text in shown)
    assert not torch._C._is_tracing()


@pytest.mark.filterwarnings("ignore")
def test_a_worker_is_not_part_of_a_trace(hook: Any) -> None:
    def traced(x: Any) -> Any:
        with pytest.raises(WrapperLeakError, match=r"torch\.jit\.trace"):
            hook.attributes.isolate()
        return x + 1

    torch.jit.trace(traced, torch.ones(1), check_trace=False)
