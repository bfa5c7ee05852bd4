from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import GetNotPermittedError  # noqa: E402
from tests.syft_torch.remote.architectures import ARCHITECTURES, differences, train, twins  # noqa: E402


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_remote_training_gives_the_same_bits_as_local_training(name: str, bob: Any) -> None:
    architecture = ARCHITECTURES[name]
    model, expected = twins(architecture.make)
    x, y = architecture.data()
    train(expected, x, y, torch.optim.SGD(expected.parameters(), lr=0.1, momentum=0.9), architecture.loss)

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model.send(bob)
    train(model, x.send(bob), y.send(bob), optimizer, architecture.loss)
    model.get()

    assert differences(model, expected) == []


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_training_on_private_data_gives_the_same_bits_to_permitted_users(name: str, bob: Any) -> None:
    architecture = ARCHITECTURES[name]
    model, expected = twins(architecture.make)
    x, y = architecture.data()
    train(expected, x, y, torch.optim.SGD(expected.parameters(), lr=0.1), architecture.loss)
    bob.load_data([data.clone().private_tensor(["alice"]).tag(tag) for data, tag in ((x, "#x"), (y, "#y"))])
    (private_x,), (private_y,) = bob.search("#x"), bob.search("#y")
    model.send(bob)

    train(model, private_x, private_y, torch.optim.SGD(model.parameters(), lr=0.1), architecture.loss)

    with pytest.raises(GetNotPermittedError):
        model.get()
    bob.hook.local_worker.user = "alice"
    model.get()
    draws = any(isinstance(layer, torch.nn.Dropout) and layer.p for layer in model.modules())
    assert draws or differences(model, expected) == []
