"""Optimizers that read values need consent."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn, optim  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402

import syft_core as sy  # noqa: E402
from syft_core.exceptions import GetNotPermittedError, ValueRefusedError  # noqa: E402
from tests.syft_torch.remote.architectures import differences, twins  # noqa: E402
from tests.syft_torch.test_optim import OPTIMIZERS, SPARSE, data, train_on_a_journey  # noqa: E402

# torch warns about float(loss), even in its own optimizer.
pytestmark = pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad=True to a scalar")

READING: dict[str, Any] = {
    "LBFGS": partial(optim.LBFGS, lr=0.1, max_iter=6),
    "LBFGS with a short memory": partial(optim.LBFGS, lr=0.5, history_size=2, max_iter=5),
    "LBFGS with a line search": partial(optim.LBFGS, line_search_fn="strong_wolfe", max_iter=5),
    "LBFGS with a tensor as rate": partial(optim.LBFGS, lr=torch.tensor(0.1), max_iter=3),
}
if hasattr(optim, "Adafactor"):
    READING["Adafactor"] = partial(optim.Adafactor, lr=0.1)
    READING["Adafactor, maximizing"] = partial(optim.Adafactor, lr=0.1, weight_decay=0.1, maximize=True)
    READING["Adafactor, foreach"] = partial(optim.Adafactor, lr=0.1, foreach=True)

every_reading_optimizer = pytest.mark.parametrize(
    "make", [pytest.param(make, id=name) for name, make in READING.items()]
)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))


def train(model: Any, x: Any, y: Any, optimizer: Any, steps: int = 3) -> None:
    def closure() -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)


@every_reading_optimizer
def test_with_consent_they_give_the_same_bits_on_remote_parameters(make: Any, bob: Any) -> None:
    model, expected = twins(mlp)
    x, y = data()
    train(expected, x, y, make(expected.parameters()))

    optimizer = make(model.parameters())
    model.send(bob)
    with sy.revealing("training"):
        train(model, x.send(bob), y.send(bob), optimizer)

    reasons = {line.reason for line in bob.ledger}
    assert differences(model.get(), expected) == []
    assert reasons == {"training"}


@every_reading_optimizer
def test_their_state_follows_its_parameters_wherever_they_go(make: Any, bob: Any, alice: Any) -> None:
    model, expected = twins(mlp)
    train(expected, *data(), make(expected.parameters()), steps=4)

    with sy.revealing("training"):
        train_on_a_journey(train, model, make(model.parameters()), bob, alice, steps=1)

    assert differences(model, expected) == []
    assert (bob.objects_count, alice.objects_count) == (0, 0)


@every_reading_optimizer
def test_without_consent_they_are_refused_with_advice(make: Any, bob: Any) -> None:
    model = mlp()
    optimizer = make(model.parameters())
    model.send(bob)
    x, y = (part.send(bob) for part in data())

    with pytest.raises(ValueRefusedError, match=r'fetch it first: .* or allow it: `with sy.revealing\("why"\):`'):
        train(model, x, y, optimizer)
    assert len(bob.ledger) == 0


@every_reading_optimizer
def test_consent_does_not_reveal_private_data(make: Any, bob: Any) -> None:
    x, y = data()
    bob.load_data([x.private_tensor(["alice"]).tag("#x")])
    (x,) = bob.search("#x")
    model = mlp()
    optimizer = make(model.parameters())
    model.send(bob)

    with sy.revealing("training"), pytest.raises(GetNotPermittedError, match="it is private, or was computed from"):
        train(model, x, y.send(bob), optimizer)
    assert all(line.reason == "training" for line in bob.ledger)


def test_sparse_gradients_work(bob: Any) -> None:
    model, expected = twins(lambda: nn.Sequential(nn.Embedding(5, 2, sparse=True), nn.Flatten()))
    x, y = torch.tensor([[0], [3], [3], [1]]), torch.tensor([0, 1, 0, 1])
    train(expected, x, y, optim.LBFGS(expected.parameters(), max_iter=3))

    optimizer = optim.LBFGS(model.parameters(), max_iter=3)
    model.send(bob)
    with sy.revealing("training"):
        train(model, x.send(bob), y.send(bob), optimizer)

    assert torch.equal(model.get()[0].weight, expected[0].weight)


def test_every_optimizer_of_torch_is_tested_and_documented() -> None:
    classes = {cls for cls in vars(optim).values() if isinstance(cls, type) and issubclass(cls, optim.Optimizer)}
    makers = (*OPTIMIZERS.values(), *SPARSE.values(), *READING.values())
    page = (Path(__file__).parents[3] / "docs" / "remote-training.md").read_text(encoding="utf-8")
    table = page[page.index("| optimizer |") : page.index("By default, a step on remote parameters")]

    assert classes - {optim.Optimizer} == {make.func for make in makers}
    assert [cls.__name__ for cls in classes - {optim.Optimizer} if f"`{cls.__name__}`" not in table] == []


def test_parameters_on_two_workers_are_refused_in_one_list(bob: Any, alice: Any) -> None:
    if not hasattr(optim, "Adafactor"):
        pytest.skip("this torch has no Adafactor")
    layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
    optimizer = optim.Adafactor([p for layer in layers for p in layer.parameters()], foreach=True)
    for layer, worker in zip(layers, (bob, alice), strict=True):
        layer.send(worker)
        layer(torch.ones(1, 2).send(worker)).sum().backward()

    with sy.revealing("training"), pytest.raises(sy.exceptions.NotCollocatedError, match="live on 'bob' and 'alice'"):
        optimizer.step()


def test_other_code_that_reads_values_works_with_consent_too(bob: Any) -> None:
    model, expected = twins(lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4, momentum=None)))
    x, _ = data()
    model.send(bob)
    for given in (x, x * 2):
        expected(given).sum().backward()
        with sy.revealing("batches seen, and whether the norm is finite"):
            model(given.send(bob)).sum().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1, error_if_nonfinite=True)
        nn.utils.clip_grad_norm_(expected.parameters(), 0.1, error_if_nonfinite=True)

    assert differences(model.get(), expected) == []
