from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("numpy")
pytest.importorskip("expecttest", reason="torch's own samples need it")
import torch

from syft_core.exceptions import IdNotUniqueError
from syft_core.messages import Run


def test_a_result_does_not_overwrite_another_object(bob: Any, me: Any) -> None:
    p, other = torch.ones(2).send(bob), torch.zeros(2).send(bob)

    with pytest.raises(IdNotUniqueError):
        me.location_of(bob).ask(Run("torch", "torch.Tensor.add", (p.child, 1), {}, other.id_at_location))

    assert other.get().tolist() == [0.0, 0.0]


def test_several_results_are_kept_all_or_none(bob: Any, me: Any) -> None:
    p, other = torch.arange(4.0).send(bob), torch.zeros(2).send(bob)
    second = other.id_at_location

    with pytest.raises(IdNotUniqueError):
        me.location_of(bob).ask(Run("torch", "torch.chunk", (p.child, 2), {}, second - 1))

    assert bob.objects_count == 2
