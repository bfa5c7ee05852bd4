from __future__ import annotations

import copy
import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")
from torch import nn  # noqa: E402

import syft_core as sy  # noqa: E402
from syft_core.exceptions import NotCollocatedError  # noqa: E402
from syft_core.plans.errors import PlanError  # noqa: E402


class Positions(nn.Module):
    """Creates tensors in its forward, as models do."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4)
        self.norm = nn.LayerNorm(4)

    def forward(self, x: Any) -> Any:
        n = x.shape[1]
        x = x + self.table(torch.arange(n, device=x.device)) + torch.zeros(n, 4).to(x) + torch.randn(n, 4)
        mask = torch.full((n, n), float("-inf"), device=x.device).triu(1) + torch.ones(n, n) - torch.eye(n)
        x = (mask.softmax(-1) @ x) * torch.tensor([1.0, 2.0, 3.0, 4.0]) + torch.linspace(0, 1, 4)
        if torch.rand([]) < 2.0:  # A single number is local.
            x = x[:, torch.randperm(n)] * torch.tensor(0.5)
        return self.norm(x + torch.empty(4).fill_(1.0) + torch.as_tensor([1.0, 2.0, 3.0, 4.0]))


def test_tensors_created_in_a_forward_are_on_the_modules_worker(bob: Any) -> None:
    torch.manual_seed(0)
    model, data = Positions(), torch.randn(2, 5, 4)
    remote = copy.deepcopy(model).send(bob)

    for module, x in ((model, data), (remote, data.send(bob))):
        torch.manual_seed(1)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            module(x).square().sum().backward()
            optimizer.step()

    found = remote.get().state_dict()
    assert all(torch.equal(value, found[name]) for name, value in model.state_dict().items())


def test_a_copy_of_a_remote_module_creates_its_tensors_remotely_too(bob: Any) -> None:
    remote = Positions().send(bob)

    result = copy.deepcopy(remote)(torch.zeros(2, 5, 4).send(bob))

    assert result.location is bob


def test_code_outside_of_a_forward_creates_local_tensors(bob: Any) -> None:
    remote = Positions().send(bob)
    remote(torch.zeros(2, 5, 4).send(bob))
    with pytest.raises(NotCollocatedError):
        remote(torch.zeros(2, 5, 4))

    assert type(torch.zeros(3)) is torch.Tensor
    home = remote.get()
    assert type(home(torch.zeros(2, 5, 4))) is torch.Tensor
    assert not [name for name in home.__dict__ if "compiled" in name]


def test_an_interrupted_forward_leaves_nothing_behind(bob: Any) -> None:
    class Interrupted(nn.Linear):
        def forward(self, x: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Interrupted(2, 2).send(bob)(torch.zeros(2, 2).send(bob))

    assert type(torch.zeros(3)) is torch.Tensor


def test_tensors_are_created_on_a_worker_in_a_with_block(bob: Any, alice: Any) -> None:
    x = torch.ones(3).send(bob)

    with bob:
        made = torch.arange(3.0)
        with alice:
            other = torch.zeros(2)
        result = x + made + torch.zeros(3).to(x)

    assert made.location is bob
    assert other.location is alice
    assert result.get().tolist() == [1, 2, 3]
    assert type(torch.zeros(3)) is torch.Tensor


def test_similar_arguments_create_tensors_of_their_own_forms(bob: Any) -> None:
    for make in (
        lambda: torch.arange(0.0, 1.0, 0.1, device="cpu"),
        lambda: torch.arange(0.0, 1.0, 0.2, device="cpu"),
        lambda: torch.full((2,), 1, device="cpu"),
        lambda: torch.full((2,), 1.0, device="cpu"),
        lambda: torch.full((2,), True, device="cpu"),
    ):
        with bob:
            made = make()
        expected = make()
        assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
        assert made.get().equal(expected)


NUMPY = {
    "an array": lambda: torch.tensor(numpy.arange(3.0)),
    "a list of numbers": lambda: torch.tensor([numpy.float32(3), 2.0]),
    "a size": lambda: torch.zeros(numpy.int64(3)),
    "a range": lambda: torch.arange(numpy.int64(3)),
    "a number": lambda: torch.full((2,), numpy.float64(0.5)),
}


@pytest.mark.parametrize("serialize", [False, True])
@pytest.mark.parametrize("name", NUMPY)
def test_tensors_are_created_on_a_worker_from_values_of_numpy(hook: Any, name: str, serialize: bool) -> None:
    worker, make = sy.VirtualWorker(hook, id="far", serialize=serialize), NUMPY[name]

    with worker:
        made = make()
    computed = sy.Plan(None, lambda x: make() * x).build(torch.ones(1)).send(worker)(torch.ones(1).send(worker))

    assert made.location.id == "far"
    expected = make()
    assert made.get().dtype == expected.dtype
    assert torch.equal(computed.get(), expected * 1.0)


def test_an_array_of_numpy_is_a_constant_of_a_plan(hook: Any, bob: Any) -> None:
    weights = numpy.array([1.0, 3.0], dtype="float32")

    there = sy.Plan(None, lambda x: x * weights).build(torch.ones(2)).send(bob)

    assert there(torch.ones(2).send(bob)).get().tolist() == [1.0, 3.0]


def test_uninitialized_memory_is_cleared_on_a_worker(bob: Any) -> None:
    with bob:
        assert not torch.empty(1000).get().any()


class Masked(torch.nn.Module):
    """An attention with a mask, which is not used if it hides nothing, as models of libraries do it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: Any, mask: Any) -> Any:
        if not torch.compiler.is_compiling() and mask.all():
            mask = None
        seen = None if mask is None else mask[:, None, :].expand(x.shape[0], x.shape[1], -1)
        return torch.nn.functional.scaled_dot_product_attention(self.linear(x), x, x, attn_mask=seen)


@pytest.mark.parametrize("args_shape", [None, [(-1, 3, 4), (-1, 3)]])
def test_a_model_that_decides_by_values_unless_it_is_compiled_is_recorded(hook: Any, bob: Any, args_shape: Any) -> None:
    model, x = Masked(), torch.randn(2, 3, 4)
    plan = sy.Plan("masked", lambda x, mask: model(x, mask), args_shape=args_shape, args_dtypes=[None, torch.bool])
    there = plan.build(*[] if args_shape else [x, torch.ones(2, 3, dtype=torch.bool)]).send(bob)

    for mask in (torch.ones(2, 3, dtype=torch.bool), torch.tensor([[True, True, False], [True, False, True]])):
        torch.testing.assert_close(there(x.send(bob), mask.send(bob)).get(), model(x, mask).detach())


def test_only_libraries_of_models_are_told_that_they_are_compiled(hook: Any) -> None:
    seen = []

    def function(x: Any) -> Any:
        seen.append(torch.compiler.is_compiling())
        return x * 2

    sy.Plan(None, function).build(torch.ones(2))

    assert all(seen)
    assert not torch.compiler.is_compiling()


def test_recordings_of_several_threads_leave_torch_as_it_was(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)
    native = torch.compiler.is_compiling, torch.distributions.Distribution.__init__
    inside, ended = threading.Event(), threading.Event()

    def outlast(x: Any) -> Any:
        inside.set()
        assert ended.wait(60)
        return x * torch.distributions.Normal(x, x.exp()).log_prob(x).mean()

    other = threading.Thread(target=lambda: sy.Plan(None, outlast).build(torch.ones(2)))

    def begin(x: Any) -> Any:
        if not other.is_alive() and not ended.is_set():
            other.start()
            assert inside.wait(60)
        return x * 2

    sy.Plan(None, begin).build(torch.ones(2))
    try:
        assert not torch.compiler.is_compiling()  # The other thread still records.
        with pytest.raises(ValueError, match="to satisfy the constraint"):
            torch.distributions.Normal(torch.zeros(1), -torch.ones(1))
    finally:
        ended.set()
        other.join(60)

    assert not other.is_alive()
    assert (torch.compiler.is_compiling, torch.distributions.Distribution.__init__) == native


@pytest.mark.parametrize("args", [(), (None,)])
def test_distributions_in_a_plan_do_not_check_values_unless_they_are_asked(hook: Any, bob: Any, args: Any) -> None:
    normal, x = torch.distributions.Normal, torch.ones(2)

    plan = sy.Plan(None, lambda x: normal(x, x.exp(), *args).log_prob(x)).build(x)

    assert torch.equal(plan.send(bob)(x.send(bob)).get(), normal(x, x.exp()).log_prob(x))
    with pytest.raises(PlanError, match="reads a value"):
        sy.Plan(None, lambda x: normal(x, x.exp(), validate_args=True).log_prob(x)).build(x)
