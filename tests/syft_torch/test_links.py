"""``torch.autograd.Function`` and reentrant checkpoints are part of the graph of remote tensors, as locally."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.autograd.function import once_differentiable  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from syft_core.exceptions import NotCollocatedError, OperationNotAllowedError  # noqa: E402
from syft_torch import links  # noqa: E402


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Any) -> Any:
        (result,) = ctx.saved_tensors
        return gradient * result


class SumAndProduct(torch.autograd.Function):
    """Two results, a plain argument, and a context that is set up separately."""

    @staticmethod
    def forward(x: Any, y: Any, scale: float = 2.0) -> Any:
        return (x + y) * scale, x * y

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, y, ctx.scale = inputs
        ctx.save_for_backward(x, y)

    @staticmethod
    def backward(ctx: Any, of_sum: Any, of_product: Any) -> Any:
        x, y = ctx.saved_tensors
        return of_sum * ctx.scale + of_product * y, of_sum * ctx.scale + of_product * x, None


class Top(torch.autograd.Function):
    """One of the results has no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        values, indices = x.sort()
        ctx.mark_non_differentiable(indices)
        ctx.save_for_backward(indices)
        return values, indices

    @staticmethod
    def backward(ctx: Any, of_values: Any, of_indices: Any) -> Any:
        (indices,) = ctx.saved_tensors
        return torch.zeros_like(of_values).scatter(0, indices, of_values)


class Outer(torch.autograd.Function):
    """A function that uses another one in its backward."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            (found,) = torch.autograd.grad((Square.apply(inner) * inner).sum(), inner)
        return found * gradient


def residual(x: Any) -> Any:
    hidden = x.sin()
    for _ in range(4):
        hidden = hidden + Square.apply(hidden.tanh()) * Exp.apply(hidden)
    return (hidden * x).sum()


def change_in_place(x: Any) -> Any:
    y = Square.apply(x * 1)
    y.mul_(3)
    return (y + x).sum()


def use_twice(x: Any) -> Any:
    y = Square.apply(x)
    return (y * x + y.exp()).sum()


def two_results(x: Any) -> Any:
    total, product = SumAndProduct.apply(x, x.cos(), 3.0)
    return (total * product + x).sum()


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "twice the same tensor": lambda x: (Square.apply(x) + x).sum(),
    "nested": lambda x: Square.apply(Square.apply(x) * x).sum(),
    "used twice": use_twice,
    "two results": two_results,
    "one result unused": lambda x: SumAndProduct.apply(x, x.cos())[1].sum(),
    "a result without gradient": lambda x: (Top.apply(x)[0] * x).sum(),
    "a function in backward": lambda x: (Outer.apply(x.sin()) + x).sum(),
    "a residual stream": residual,
    "a result changed in place": change_in_place,
    "an unused link": lambda x: (Square.apply(x).detach() * x).sum(),
    "a reentrant checkpoint": lambda x: (checkpoint(lambda z: z.sin() * z, x * 2, use_reentrant=True) + x).sum(),
    "nested checkpoints": lambda x: (
        checkpoint(lambda z: checkpoint(torch.tanh, z * 2, use_reentrant=True) * z, x * 2, use_reentrant=True) * x
    ).sum(),
    "a checkpoint that is not reentrant": lambda x: (
        checkpoint(lambda z: z.sin() * z, x * 2, use_reentrant=False) + x
    ).sum(),
}


@pytest.fixture
def x() -> Any:
    return torch.tensor([0.3, -1.2, 0.7], requires_grad=True)


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_user_function_gives_the_same_gradients_as_locally(name: str, bob: Any, x: Any) -> None:
    remote = x.send(bob)

    PROGRAMS[name](x).backward()
    PROGRAMS[name](remote).backward()

    assert torch.equal(remote.grad.copy().get(), x.grad)


@pytest.mark.parametrize("name", ["nested", "two results", "a residual stream"])
def test_gradients_are_returned_too(name: str, bob: Any, x: Any) -> None:
    remote = x.send(bob)

    (local,) = torch.autograd.grad(PROGRAMS[name](x), x)
    (there,) = torch.autograd.grad(PROGRAMS[name](remote), remote)

    assert torch.equal(there.get(), local)


def test_a_gradient_can_be_differentiated_again(bob: Any, x: Any) -> None:
    remote = x.send(bob)

    for leaf in (x, remote):
        (first,) = torch.autograd.grad((Square.apply(Square.apply(leaf)) + leaf).sum(), leaf, create_graph=True)
        first.sum().backward()

    assert torch.equal(remote.grad.copy().get(), x.grad)


def test_a_retained_graph_can_be_used_twice(bob: Any, x: Any) -> None:
    remote = x.send(bob)

    for leaf in (x, remote):
        loss = residual(leaf)
        loss.backward(retain_graph=True)
        loss.backward()

    assert torch.equal(remote.grad.copy().get(), x.grad)


def test_a_checkpointed_model_trains_as_locally(bob: Any) -> None:
    torch.manual_seed(0)
    model = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(3)])
    remote, data, drop = copy.deepcopy(model).send(bob), torch.randn(5, 4), torch.nn.Dropout(0.3)

    for layers, x in ((model, data), (remote, data.send(bob))):
        torch.manual_seed(1)
        optimizer = torch.optim.AdamW(layers.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            hidden = x.clone().requires_grad_()
            for layer in layers:
                hidden = hidden + checkpoint(lambda z, layer=layer: drop(layer(z)), hidden, use_reentrant=True)
            hidden.square().mean().backward()
            optimizer.step()

    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), remote.get().parameters(), strict=True))


def test_a_freed_graph_leaves_nothing_behind(bob: Any, x: Any) -> None:
    remote = x.send(bob)
    before = len(bob.object_store)

    residual(remote)
    residual(remote).backward()
    gc.collect()
    remote.sum()  # Dropped pointers are released with the next message.

    assert not links.live
    assert len(bob.object_store) <= before + 1


def test_without_gradients_a_function_is_not_linked(bob: Any, x: Any) -> None:
    with torch.no_grad():
        result = Square.apply(x.send(bob))

    assert not result.requires_grad
    assert torch.equal(result.get(), x.detach() ** 2)


def test_a_saved_tensor_that_was_changed_is_refused_as_locally(bob: Any, x: Any) -> None:
    for leaf in (x, x.send(bob)):
        hidden = leaf * 1
        loss = Square.apply(hidden).sum()
        hidden.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_a_pass_from_a_tensor_without_the_link_is_refused(bob: Any, x: Any) -> None:
    """A view of a tensor that is changed later becomes part of the graph without any operation on it."""
    base = torch.zeros(3).send(bob)
    view = base[:]
    base.add_(Square.apply(x.send(bob)))

    with pytest.raises(RuntimeError, match="cannot run backward"):
        view.sum().backward()


def test_a_function_that_changes_its_input_is_refused(bob: Any, x: Any) -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return 2 * gradient

    with pytest.raises(OperationNotAllowedError, match="return a new tensor"):
        Double.apply(x.send(bob) * 1)


def test_a_local_parameter_of_a_function_is_refused_before_it_runs(bob: Any, x: Any) -> None:
    with pytest.raises(NotCollocatedError, match="send"):
        SumAndProduct.apply(x.send(bob), torch.ones(3, requires_grad=True))


def test_plain_tensors_use_torchs_own_functions(hook: Any, x: Any) -> None:
    y = Square.apply(x)

    assert type(y.grad_fn).__name__ == "SquareBackward"
    assert torch.equal(torch.func.vmap(torch.sin)(x), x.sin())


class Normalized(torch.nn.Module):
    """A block that changes its buffers, and calls a function that changes a tensor in place."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU(inplace=True))
        self.drop = torch.nn.Dropout(0.3)

    def forward(self, x: Any) -> Any:
        return self.drop(self.layers(x)), x


def test_a_checkpoint_that_is_not_reentrant_changes_buffers_twice_as_locally(bob: Any) -> None:
    torch.manual_seed(0)
    model = torch.nn.ModuleList([Normalized(), Normalized()])
    remote, data = copy.deepcopy(model).send(bob), torch.randn(5, 4)

    for blocks, x in ((model, data), (remote, data.send(bob))):
        torch.manual_seed(1)
        for _ in range(2):
            hidden = x
            for block in blocks:
                hidden = hidden + checkpoint(block, hidden, use_reentrant=False)[0]
            hidden.square().mean().backward()

    assert model[0].layers[1].num_batches_tracked == 4
    gradients = [parameter.grad for parameter in model.parameters()]
    found = [parameter.grad.copy().get() for parameter in remote.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(gradients, found, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(model.buffers(), remote.get().buffers(), strict=True))


def test_a_checkpoint_without_changes_in_place_is_not_repeated(bob: Any, x: Any) -> None:
    calls = []

    def square(z: Any) -> Any:
        calls.append(z)
        return z * z

    remote = x.send(bob)
    checkpoint(square, remote, use_reentrant=False).sum().backward()

    assert len(calls) == 1
    assert torch.equal(remote.grad.get(), 2 * x.detach())


def test_a_failed_checkpoint_leaves_nothing_behind(bob: Any, x: Any) -> None:
    def fail(z: Any) -> Any:
        raise ValueError(z.shape)

    with pytest.raises(ValueError, match="torch.Size"):
        checkpoint(fail, x.send(bob), use_reentrant=False)

    assert torch._C._len_torch_function_stack() == 0
