"""Section: what every part of the conformance suite starts from, and what a backend tells it."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

import pytest

from syft_core.hook.chain import end_of
from syft_core.hook.hook import FrameworkHook
from syft_core.testing.calls import Call, collect_calls
from syft_core.values import Tensor
from syft_core.workers.virtual import VirtualWorker

VALUES = [1.0, 2.0, 4.0]
OTHERS = [3.0, 5.0, 2.0]
Check = TypeVar("Check", bound=Callable[..., None])


class ConformanceError(AssertionError):
    """A backend breaks a promise of the contract."""


def fix(*methods: str) -> Callable[[Check], Check]:
    """Name the methods of a backend that a check is about: whatever fails in it is reported with them."""

    def decorate(check: Check) -> Check:
        @functools.wraps(check)
        def report(*args: Any, **kwargs: Any) -> None:
            try:
                check(*args, **kwargs)
            except (Exception, pytest.fail.Exception) as error:
                promise = check.__name__.removeprefix("test_").replace("_", " ")
                names = " or ".join(f"`{method}`" for method in methods)
                raise ConformanceError(
                    f"it does not hold that {promise}: {type(error).__name__}: {error}; fix {names} (docs/backends.md)"
                ) from error

        report.fixes = methods  # type: ignore[attr-defined]  # for those who ask what a check is about
        return report  # type: ignore[return-value]  # the same signature, as functools.wraps says

    return decorate


class Section:
    """A part of the contract of a backend. What stands first is for a backend to set or override."""

    pytestmark = pytest.mark.filterwarnings("ignore")  # of operations that are called with strange values
    framework: ClassVar[Any]
    """The framework's module."""
    hook_class: ClassVar[type[FrameworkHook]]
    """The backend's hook."""
    mutable: ClassVar[bool] = True
    """Whether the framework can change a tensor. If not, no operation in the table may, and ``x += 1`` must make a new
    tensor."""

    def concatenate(self, tensors: Sequence[Tensor]) -> Tensor:
        """Join tensors with a function of the framework that takes a list."""
        raise NotImplementedError("override `concatenate` with your framework's function")

    def numbers(self, tensor: Tensor) -> Any:
        """Return a plain tensor's content as a number or a nested list."""
        return tensor.tolist()

    def leaks(self, wrapper: Tensor) -> Sequence[Callable[[], object]]:
        """Return calls that go around the framework's protocol; each must raise ``WrapperLeakError``."""
        return [lambda: pickle.dumps(wrapper)]

    def patched(self) -> Sequence[Any]:
        """Return the objects of the framework on which the hook sets attributes."""
        return [self.framework]

    # --- the tools of the checks

    @pytest.fixture
    def hook(self) -> Iterator[FrameworkHook]:
        """Put the hook on for one check."""
        with self.hooked() as hook:
            yield hook

    @classmethod
    @contextmanager
    def hooked(cls) -> Iterator[FrameworkHook]:
        """Put the hook on, ready to infer forms."""
        with cls.hook_class(cls.framework) as hook:
            hook.attributes.warm_up()
            yield hook

    @pytest.fixture
    def plain(self, hook: FrameworkHook) -> Tensor:
        """Return a plain tensor."""
        return hook.create_tensor(VALUES)

    @pytest.fixture
    def other(self, hook: FrameworkHook) -> Tensor:
        """Return another plain tensor of the same shape."""
        return hook.create_tensor(OTHERS)

    @pytest.fixture(params=[False, True], ids=["in_process", "by_wire"])
    def by_wire(self, request: pytest.FixtureRequest) -> bool:
        """Return whether messages go through the wire format."""
        return bool(request.param)

    @pytest.fixture(scope="class")
    @classmethod
    def calls(cls) -> Sequence[Call]:
        """Return calls of the operations in the table on plain tensors, with what became of them."""
        with cls.hooked() as hook:
            return collect_calls(hook)

    def worker(self, hook: FrameworkHook, by_wire: bool) -> VirtualWorker:
        """Return a worker in this process."""
        return VirtualWorker(hook, id="bob", serialize=by_wire)

    def tensor(self, hook: FrameworkHook, plain: Any) -> Tensor:
        """Return a tensor that can be sent: a framework whose tensors take no methods has wrappers for that."""
        made = hook.create_tensor(plain) if isinstance(plain, list) else plain
        return made if hasattr(made, "send") else hook.attributes.wrapper(made)

    def fetch(self, pointer: Tensor) -> Any:
        """Return the numbers of a copy of what a pointer points to."""
        return self.numbers(end_of(pointer.get(deregister_ptr=False)))

    def same(self, chain: Tensor, expected: Tensor, *layers: Any) -> None:
        """Assert that ``chain`` is a wrapper on exactly ``layers`` with the numbers of ``expected``."""
        assert getattr(chain, "is_wrapper", False), f"expected a wrapper, got a {type(chain).__name__}"
        below: Any = chain.child
        for layer in layers:
            assert type(below) is layer, f"expected a {layer.__name__}, got a {type(below).__name__}"
            below = below.child
        assert type(below) is type(expected) or tuple(below.shape) == ()
        assert self.numbers(below) == self.numbers(expected), "the chain computes other numbers than the framework"
