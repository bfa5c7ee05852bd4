"""Large values: what a run uses of random numbers is limited, so functions are computed for parts of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from syft_mpc import group as groups
from syft_mpc.group import count
from syft_mpc.protocol import PROTOCOLS

from .settings import Setting, assert_close

X = np.random.default_rng(3).uniform(0.5, 3.0, (6, 5, 7))


@pytest.fixture(autouse=True)
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MAX_DEALT", 1 << 14)


@pytest.mark.parametrize("parties", [2, 3])
@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "reciprocal", "tanh"])
def test_a_function_of_a_large_value_is_computed_in_parts(any_hook: Any, name: str, parties: int) -> None:
    setting = Setting(any_hook, parties)
    x = setting.put(X)

    with count() as counted:
        found = getattr(setting.xp, name)(x)

    assert_close(setting.read(found), getattr(np, name)(X), 5e-3)
    assert counted.rounds > 20


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lines_that_belong_together_are_not_cut(torch_hook: Any, axis: int) -> None:
    torch, setting = torch_hook.torch, Setting(torch_hook)

    with count() as counted:
        found = torch.softmax(setting.put(X), axis)

    assert_close(setting.read(found), torch.softmax(torch.tensor(X), axis))
    assert counted.rounds > 60
    whole = np.random.default_rng(4).normal(size=40)  # It has no other axis.
    assert_close(setting.read(torch.softmax(setting.put(whole), 0)), torch.softmax(torch.tensor(whole), 0))


def test_large_values_are_trained_in_parts(torch_hook: Any) -> None:
    torch, setting = torch_hook.torch, Setting(torch_hook)
    x, plain = setting.put(X - 1.5).requires_grad_(), torch.tensor(X - 1.5, requires_grad=True)

    for each in (x, plain):
        (torch.relu(each) * torch.sigmoid(each)).sum().backward()

    assert_close(setting.read(x.grad), plain.grad)


def test_comparisons_and_quotients_of_large_values_are_exact(any_hook: Any) -> None:
    setting = Setting(any_hook)
    values = np.arange(-300, 300).reshape(3, 200) / 4

    assert (setting.read(setting.put(values) < 0) == (values < 0)).all()
    assert (setting.read(setting.put(values) < setting.put(-values)) == (values < -values)).all()
    assert (setting.read(setting.put(values) == 1) == (values == 1)).all()
    assert_close(setting.read(setting.put(values) / 4), values / 4, 1e-4)
    assert_close(setting.read(setting.put(values) ** 2), values**2)
    assert_close(
        setting.read(setting.put(values[0] / 10, field="int", precision_fractional=8) / 2), values[0] / 20, 0.02
    )


def test_a_large_value_needs_little_memory_at_a_time(any_hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Setting(any_hook)
    x, most = setting.put(np.linspace(1, 2, 300)), []
    ask = groups.Group._run

    def watch(group: Any, keys: Any, protocol: Any, operands: Any, options: Any) -> Any:
        with count() as counted:
            result = ask(group, keys, protocol, operands, options)
        most.append(counted.dealt)
        return result

    monkeypatch.setattr(groups.Group, "_run", watch)
    setting.xp.reciprocal(x)

    assert len(most) > 20
    assert max(most) <= groups.MAX_DEALT


def test_every_function_of_real_numbers_can_be_cut() -> None:
    names = {name for name, entry in PROTOCOLS.items() if entry.function.__module__ == "syft_mpc.functions"}

    assert all(PROTOCOLS[name].by_line for name in names)
