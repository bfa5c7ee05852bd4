from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402
from syft_core.plans.errors import PlanError  # noqa: E402
from syft_torch.recording import find_state  # noqa: E402


class Counting(torch.nn.Module):
    """Counts its calls, in place or by assigning to its buffer."""

    def __init__(self, in_place: bool) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.register_buffer("calls", torch.zeros(1))
        self._in_place = in_place

    def forward(self, x: Any) -> Any:
        if self._in_place:
            self.calls.add_(1)
        else:
            self.calls = self.calls + 1
        return x * self.weight


def test_the_state_is_each_tensor_of_modules_and_optimizers_once() -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD([*model.parameters()], lr=0.1, momentum=0.9)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()

    found = find_state([model, optimizer, model, "text", torch.ones(1)])

    buffers = [state["momentum_buffer"] for state in optimizer.state.values()]
    assert {id(tensor) for tensor in found} == {id(tensor) for tensor in (*model.parameters(), *buffers)}
    assert len(found) == 4


def test_recording_restores_parameters_state_and_random_numbers(hook: Any, bob: Any) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    numbers = torch.get_rng_state()

    @sy.func2plan(args_shape=[(4, 2)])
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.dropout(model(x), 0.5).sum()
        loss.backward()
        optimizer.step()
        return loss

    assert {name: value.tolist() for name, value in model.state_dict().items()} == {
        name: value.tolist() for name, value in before.items()
    }
    assert not optimizer.state
    assert torch.equal(torch.get_rng_state(), numbers)
    assert all(type(parameter) is torch.nn.Parameter for parameter in model.parameters())


def test_a_buffer_is_changed_in_place_or_refused(hook: Any) -> None:
    right, wrong = Counting(True), Counting(False)

    with pytest.raises(PlanError, match="assigns a new tensor to the buffer 'calls' of a Counting"):
        sy.func2plan(args_shape=[(1,)])(lambda x: wrong(x))
    assert wrong.calls.tolist() == [0.0]
    sy.func2plan(args_shape=[(1,)])(lambda x: right(x))
    assert right.calls.tolist() == [0.0]
