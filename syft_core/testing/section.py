"""Section: the base class of all sections of the conformance suite."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

import pytest

from syft_core.hook.chain import end_of
from syft_core.hook.hook import FrameworkHook
from syft_core.testing.calls import SampleCall, collect_sample
from syft_core.values import Tensor
from syft_core.workers.party.virtual import VirtualWorker

VALUES = [1.0, 2.0, 4.0]
OTHERS = [3.0, 5.0, 2.0]
Check = TypeVar("Check", bound=Callable[..., object])


class ConformanceError(AssertionError):
    """A backend violates its contract."""


class MissingOverrideError(NotImplementedError):
    """The test class of a backend does not override a method that has no default."""


def fix(*methods: str) -> Callable[[Check], Check]:
    """Name the methods that a check is about; its failure message tells the author to fix them."""

    def decorate(check: Check) -> Check:
        @functools.wraps(check)
        def report(*args: object, **kwargs: object) -> None:
            try:
                check(*args, **kwargs)
            except MissingOverrideError:
                raise
            except (Exception, pytest.fail.Exception) as error:
                promise = check.__name__.removeprefix("test_").replace("_", " ")
                names = " or ".join(f"`{method}`" for method in methods)
                raise ConformanceError(
                    f"it does not hold that {promise}: {type(error).__name__}: {error}; fix {names} (docs/backends.md)"
                ) from error

        report.fixes = methods  # type: ignore[attr-defined]  # read by the tests of the suite
        return report  # type: ignore[return-value]  # functools.wraps keeps the signature

    return decorate


class Bob(VirtualWorker):
    """A worker in this process whose hook is attached."""

    hook: FrameworkHook


class Section:
    """A part of the contract of a backend. Backends set or override the first group of attributes."""

    pytestmark = pytest.mark.filterwarnings("ignore")  # operations warn about unusual values
    framework: ClassVar[Any]
    """The framework's module."""
    hook_class: ClassVar[type[FrameworkHook]]
    """The backend's hook."""
    mutable: ClassVar[bool] = True
    """Whether tensors are mutable. If not, the table must not contain in-place operations, and ``x += 1`` must create
    a new tensor."""
    seconds: ClassVar[float | None] = None
    """How long to try operations, in a random order; by default all are tried."""
    seed: ClassVar[int] = 0
    """The seed of that order."""
    untried: ClassVar[int] = 0
    """The number of operations for which no time was left."""

    def concatenate(self, tensors: Sequence[Tensor]) -> Tensor:
        """Concatenate tensors with a function of the framework that takes a list."""
        raise MissingOverrideError(
            "cannot run this check: the test class has no `concatenate`; add "
            "`def concatenate(self, tensors): return my_framework.cat(tensors)` with your framework's function"
        )

    def numbers(self, tensor: Tensor) -> Tensor:
        """Return the values of a plain tensor as a number or a nested list."""
        return tensor.tolist()

    def leaks(self, wrapper: Tensor) -> Sequence[Callable[[], object]]:
        """Return calls that bypass the framework's protocol; each must raise ``WrapperLeakError``."""
        return [lambda: pickle.dumps(wrapper)]

    def patched_objects(self) -> Sequence[Any]:
        """Return the objects of the framework on which the hook sets attributes."""
        return [self.framework]

    # --- helpers for the checks

    @pytest.fixture
    def hook(self) -> Iterator[FrameworkHook]:
        """Return a hook that is attached for one check."""
        with self.attach_hook() as hook:
            yield hook

    @classmethod
    @contextmanager
    def attach_hook(cls) -> Iterator[FrameworkHook]:
        """Attach the hook, ready to infer forms."""
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
    def bob(self, request: pytest.FixtureRequest, hook: FrameworkHook) -> Bob:
        """Return a worker in this process, with and without serialized messages."""
        return Bob(hook, id="bob", serialize=request.param)

    @pytest.fixture(scope="class")
    @classmethod
    def calls(cls) -> Sequence[SampleCall]:
        """Return calls of the operations in the table on plain tensors, with their outcomes."""
        with cls.attach_hook() as hook:
            calls, cls.untried = collect_sample(hook, cls.seconds, cls.seed)
            return calls

    def tensor(self, hook: FrameworkHook, plain: object) -> Tensor:
        """Return a tensor that can be sent; if the hook adds no methods to tensors, this is a wrapper."""
        made = hook.create_tensor(plain) if isinstance(plain, list) else plain
        return made if hasattr(made, "send") else hook.attributes.wrapper(made)

    def send(self, bob: Bob, plain: object) -> Tensor:
        """Send a tensor or a list of numbers to a worker."""
        return self.tensor(bob.hook, plain).send(bob)

    def fetch(self, pointer: Tensor) -> Any:
        """Fetch a copy of the remote object, and return its values."""
        return self.numbers(end_of(pointer.get(deregister_ptr=False)))

    def assert_chain(self, chain: Tensor, expected: Tensor, *layers: Any) -> None:
        """Assert that ``chain`` is a wrapper on exactly ``layers`` with the numbers of ``expected``."""
        assert getattr(chain, "is_wrapper", False), f"expected a wrapper, got a {type(chain).__name__}"
        below: Any = chain.child
        for layer in layers:
            assert type(below) is layer, f"expected a {layer.__name__}, got a {type(below).__name__}"
            below = below.child
        assert type(below) is type(expected) or tuple(below.shape) == ()
        assert self.numbers(below) == self.numbers(expected), "the chain computes different numbers than the framework"
