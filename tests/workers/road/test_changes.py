"""The ledger names what an object was computed from, also if it was changed through memory that it shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import syft_core as sy

torch = pytest.importorskip("torch")

PATHS = {"in process": (False, False), "logged": (False, True), "by wire": (True, False)}


@pytest.fixture(params=PATHS)
def bob(hook: Any, request: Any) -> Any:
    serialize, log = PATHS[request.param]
    bob = sy.VirtualWorker(hook, id="bob", serialize=serialize)
    bob.log_msgs = log
    return bob


def send(bob: Any, name: str, *values: float, requires_grad: bool = False) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), requires_grad=requires_grad).tag(name).send(bob)


def left(bob: Any, pointer: Any) -> set[str]:
    """Fetch an object; return the tags of its sources, according to the ledger."""
    pointer.get()
    return set(bob.ledger[-1].names)


def write_to_list(x: Any, d: Any) -> None:
    torch._foreach_add_([x[:2], x[2:]], [d[:2], d[2:]])


def write_by_index(x: Any, d: Any) -> None:
    x[:2][0] = d[0]


def write_by_optimizer(x: Any, d: Any) -> None:
    view = x.detach().requires_grad_()
    (view * d).sum().backward()
    torch.optim.SGD([view], lr=1.0).step()


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "slice": lambda x, d: x[:2].add_(d[:2]),
    "slice of a slice": lambda x, d: x[:2][:1].add_(d[:1]),
    "copy": lambda x, d: x[1:].copy_(d[1:]),
    "item": write_by_index,
    "view": lambda x, d: x.view(3, 1).mul_(d.view(3, 1)),
    "transpose": lambda x, d: x.view(1, 3).t().add_(d.view(3, 1)),
    "detach": lambda x, d: x.detach().add_(d),
    "data": lambda x, d: x.data.add_(d),
    "alias": lambda x, d: x.contiguous().add_(d),
    "numbers of one list": write_to_list,
    "out": lambda x, d: torch.add(d[:2], 1, out=x[:2]),
    "view with two sources": lambda x, d: x.expand_as(d).add_(d),
    "masked": lambda x, d: x[:2].masked_fill_(d[:2] > 0, 5.0),
    "optimizer": write_by_optimizer,
    "function": lambda x, d: torch.nn.functional.relu(x[:2].add_(d[:2]), inplace=True),
}


@pytest.mark.parametrize("write", WRITES)
def test_the_ledger_names_what_was_written_through_shared_memory(bob: Any, write: str) -> None:
    x, d = send(bob, "#x"), send(bob, "#d")
    WRITES[write](x, d)
    assert left(bob, x) == {"#x", "#d"}


@pytest.mark.parametrize("write", WRITES)
def test_results_that_are_computed_after_a_write_through_shared_memory_name_it_too(bob: Any, write: str) -> None:
    x, d = send(bob, "#x"), send(bob, "#d")
    before = x * 2
    WRITES[write](x, d)
    assert left(bob, before) == {"#x"}
    assert left(bob, x * 2) == {"#x", "#d"}


def test_a_view_names_what_was_written_to_its_base(bob: Any) -> None:
    x, d = send(bob, "#x"), send(bob, "#d")
    view = x[:2]
    x.add_(d)
    assert left(bob, view) == {"#x", "#d"}


def test_one_view_names_what_was_written_through_another(bob: Any) -> None:
    x, d = send(bob, "#x"), send(bob, "#d")
    first, second = x[:2], x[1:]
    del x
    first.add_(d[:2])
    assert left(bob, second) == {"#x", "#d"}


def test_an_object_does_not_name_what_was_written_to_a_copy(bob: Any) -> None:
    x, d = send(bob, "#x"), send(bob, "#d")
    x[:2].clone().add_(d[:2])
    (x * 1).add_(d)
    assert left(bob, x) == {"#x"}
    assert left(bob, d) == {"#d"}


def test_a_write_from_a_view_does_not_change_the_sources_of_what_was_read(bob: Any) -> None:
    x, d = send(bob, "#x"), send(bob, "#d")
    x[:2].add_(d[:2])
    assert left(bob, d) == {"#d"}


def test_a_gradient_names_what_a_later_pass_added(bob: Any) -> None:
    w, d, e = send(bob, "#w", requires_grad=True), send(bob, "#d"), send(bob, "#e")
    (w * d).sum().backward()
    gradient = w.grad.detach()
    (w * e).sum().backward()
    assert left(bob, gradient) == {"#w", "#d", "#e"}


def test_an_object_names_what_was_written_to_its_gradient_through_an_alias(bob: Any) -> None:
    w, d, e = send(bob, "#w", requires_grad=True), send(bob, "#d"), send(bob, "#e")
    (w * d).sum().backward()
    w.grad.detach().add_(e)
    assert left(bob, w.grad) == {"#w", "#d", "#e"}


def test_an_alias_of_a_gradient_names_what_was_written_to_the_gradient(bob: Any) -> None:
    w, d, e = send(bob, "#w", requires_grad=True), send(bob, "#d"), send(bob, "#e")
    (w * d).sum().backward()
    alias = w.grad.detach()
    w.grad.add_(e)
    assert left(bob, alias) == {"#w", "#d", "#e"}


def test_a_sparse_tensor_names_what_was_written_to_its_values(bob: Any) -> None:
    x, d = torch.eye(3).to_sparse().tag("#x").send(bob), send(bob, "#d")
    x.detach().div_(d.sum())
    x.get()
    assert set(bob.ledger[-1].names) == {"#x", "#d"}


@pytest.mark.parametrize("write", ["slice", "view", "detach", "data", "alias", "item"])
def test_an_object_names_what_a_plan_wrote_to_it_through_shared_memory(bob: Any, write: str) -> None:
    x, d = send(bob, "#x"), send(bob, "#d")

    @sy.func2plan(args_shape=[(3,), (3,)])
    def change(x: Any, d: Any) -> Any:
        WRITES[write](x, d)
        return d * 2

    change.send(bob)(x, d)
    assert left(bob, x) == {"#x", "#d"}


NUMPY_WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "slice": lambda np, x, d: np.add(x[:2], d[:2], out=x[:2]),
    "operator": lambda np, x, d: x.reshape(3, 1).__iadd__(d.reshape(3, 1)),
    "copy": lambda np, x, d: np.copyto(x[1:], d[1:]),
    "transpose": lambda np, x, d: np.multiply(x.reshape(1, 3).T, 2, out=x.reshape(3, 1), where=d.reshape(3, 1) > 0),
    "alias": lambda np, x, d: np.atleast_1d(x).__iadd__(d),
}


@pytest.mark.parametrize("write", NUMPY_WRITES)
def test_the_ledger_names_what_was_written_through_shared_memory_of_arrays(bob: Any, write: str) -> None:
    np = pytest.importorskip("numpy")
    with sy.NumpyHook(np) as hook:
        x, d = (hook.array(np.arange(3.0)).tag(tag).send(bob) for tag in ("#x", "#d"))
        NUMPY_WRITES[write](np, x, d)
        assert left(bob, x) == {"#x", "#d"}


def test_a_gradient_that_was_set_names_what_was_written_to_it_later(bob: Any) -> None:
    w, d, e = send(bob, "#w", requires_grad=True), send(bob, "#d"), send(bob, "#e")
    w.grad = d
    d.add_(e)
    assert left(bob, w.grad) == {"#w", "#d", "#e"}


def test_an_object_that_became_a_gradient_names_what_a_backward_pass_added(bob: Any) -> None:
    w, d, e = send(bob, "#w", requires_grad=True), send(bob, "#d"), send(bob, "#e")
    w.grad = d
    (w * e).sum().backward()
    assert left(bob, d) == {"#w", "#d", "#e"}


def test_an_object_names_what_was_written_before_a_failure(bob: Any) -> None:
    x, d = send(bob, "#x"), send(bob, "#d")
    views, others = [x[:2], x[2:]], [d[:2], d[:2].view(2, 1)]
    with pytest.raises(RuntimeError):
        torch._foreach_add_(views, others)
    assert left(bob, x) == {"#x", "#d"}
