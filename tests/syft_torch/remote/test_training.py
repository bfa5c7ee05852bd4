from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

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
