from __future__ import annotations

import functools
import re
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

import syft_core as sy

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402  # torch may be missing

from syft_torch import federated as fl  # noqa: E402

MASK = None
OPTIONS: dict[str, Any] = {}


@functools.lru_cache(maxsize=4)
def make_triangle(n: int) -> Any:
    return torch.ones(n, n).tril()


def keep_globally(x: Any) -> Any:
    global MASK  # noqa: PLW0603  # as programs do
    if MASK is None:
        MASK = torch.arange(4.0)
    return x * MASK


def keep_in_a_dict(x: Any) -> Any:
    if "mask" not in OPTIONS:
        OPTIONS["mask"] = torch.arange(4.0)
    return x * OPTIONS["mask"]


def keep_in_a_default(x: Any, known: Any = {}) -> Any:  # noqa: B006  # as programs do
    if x.shape[0] not in known:
        known[x.shape[0]] = torch.ones(x.shape[0], 1) * 3
    return x * known[x.shape[0]]


def make_closure() -> Callable[[Any], Any]:
    mask = None

    def keep(x: Any) -> Any:
        nonlocal mask
        if mask is None:
            mask = torch.arange(4.0)
        return x * mask

    return keep


class Rotary(nn.Module):
    """A model that computes a table for the longest input so far."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.longest, self.table = nn.Linear(4, 4), 0, (None, None)

    def forward(self, x: Any) -> Any:
        if x.shape[0] > self.longest:
            self.longest = int(x.shape[0])
            angles = torch.arange(self.longest).float()[:, None]
            self.table = angles.cos(), angles.sin()
        cos, sin = self.table
        return self.linear(x) * cos[: x.shape[0]] + sin[: x.shape[0]]


class Late(nn.Module):
    """A model that makes a layer and a buffer when it is first used."""

    def forward(self, x: Any) -> Any:
        if not hasattr(self, "norm"):
            self.norm = nn.LayerNorm(4)
            self.register_buffer("scale", torch.arange(4.0))
        return self.norm(x) * self.scale


class Log(nn.Module):
    """A model that keeps what it has computed."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []
        self.recent = {"means": deque(maxlen=2)}

    def forward(self, x: Any) -> Any:
        self.seen.append(x * 2)
        self.recent["means"].append(x.mean())
        self.last = x * 3
        return self.last


class Cached(nn.Module):
    """A model with a method that has a cache."""

    @functools.lru_cache(maxsize=4)  # noqa: B019  # as programs do
    def make_column(self, n: int) -> Any:
        return torch.arange(float(n))[:, None]

    def forward(self, x: Any) -> Any:
        return x * self.make_column(x.shape[0])


KEEPING: dict[str, Callable[[], Any]] = {
    "a global": lambda: keep_globally,
    "a dict": lambda: keep_in_a_dict,
    "a default": lambda: keep_in_a_default,
    "a closure": make_closure,
    "a cache": lambda: lambda x: make_triangle(x.shape[0]) @ x,
    "a cache of a method": Cached,
    "a table": Rotary,
    "a layer": Late,
    "a log": Log,
}


@pytest.mark.parametrize("name", KEEPING)
def test_a_function_that_keeps_tensors_can_be_run_and_recorded_again(hook: Any, bob: Any, name: str) -> None:
    function, x = KEEPING[name](), torch.randn(3, 4)

    for _ in range(2):
        there = sy.Plan(None, function).build(x).send(bob)
        answers = [there(x.send(bob)).get() for _ in range(2)]
        assert all(torch.equal(answer, function(x)) for answer in answers)


def test_a_recording_that_fails_leaves_no_tensors(hook: Any) -> None:
    function = make_closure()

    with pytest.raises(sy.exceptions.SyftError):
        sy.Plan(None, lambda x: function(x).sum().item()).build(torch.ones(3, 4))

    assert function(torch.ones(3, 4))[0].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_what_a_function_has_kept_before_stays(hook: Any) -> None:
    log, table = Log(), Rotary()
    log(torch.ones(2)), table(torch.ones(5, 4))
    before = log.seen[0], table.table

    sy.Plan(None, lambda x: table(log(x))).build(torch.ones(8, 4))

    assert len(log.seen) == 1
    assert log.seen[0] is before[0]
    assert (table.table, table.longest) == (before[1], 5)


@pytest.mark.parametrize("make", [Rotary, Log], ids=["a table", "a log"])
def test_a_trainer_names_a_tensor_that_is_kept_and_leaves_the_model_usable(hook: Any, bob: Any, make: Any) -> None:
    model, data = nn.Sequential(nn.Linear(4, 4), make()), fl.BaseDataset(torch.randn(9, 4), torch.randn(9, 4))
    federated = data.federate([bob])
    train = lambda: fl.FederatedTrainer(  # noqa: E731  # short
        model, nn.functional.mse_loss, lambda p: torch.optim.SGD(p, lr=0.1), federated, batch_size=4
    ).fit(1)

    if make is Log:
        assert not train()[0].left_out
    else:
        line = f"{__file__}:{Rotary.forward.__code__.co_firstlineno + 4} makes a tensor that is kept for the next call"
        with pytest.raises(fl.FederatedError, match=f"{re.escape(line)}; make it before training"):
            train()
        model(torch.ones(9, 4))  # As the error advises.
        assert not train()[0].left_out
    assert model(torch.ones(5, 4)).shape == (5, 4)
