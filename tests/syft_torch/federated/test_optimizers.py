from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from .settings import Setting  # noqa: E402


def test_parameters_may_have_groups_with_other_numbers(setting: Setting) -> None:
    first, last = setting.model[0], setting.model[2]
    groups = [{"params": [*last.parameters()], "lr": 0.5}, {"params": [*first.parameters()]}]
    setting.make = lambda _p: torch.optim.SGD(groups, lr=0.1)

    difference, _ = setting.train()

    assert torch.equal(difference, setting.train_here()[0])
