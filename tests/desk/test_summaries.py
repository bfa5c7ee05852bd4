from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
import torch

from syft_core.desk.handlers import look_at
from syft_core.workers.party.virtual import VirtualWorker


def test_a_share_is_shown_with_its_parties_and_a_value_that_pretends_to_be_one_is_noticed(
    hook: Any, bob: Any, alice: Any, me: Any
) -> None:
    bob.load_data([torch.tensor([7, 2**40]).private_tensor([]).tag("#codes")])
    provider = VirtualWorker(hook, id="provider")
    shared = torch.tensor([1.0, 2.0]).fix_prec().share(bob, alice, crypto_provider=provider)

    (shared + shared).request("the sum")
    (share,) = look_at(bob, bob.requests[-1], "noor")
    assert "the sum of what bob and alice hold" in share["part_of"]
    assert "warning" not in share

    bob.search("#codes")[0].child.request("a share", ["bob", "alice"])
    (lie,) = look_at(bob, bob.requests[-1], "noor")
    assert lie["values"] == [7, 2**40]
    assert "may be the value itself" in lie["warning"]
