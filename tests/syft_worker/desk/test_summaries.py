from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
import torch

from syft_core.messages import Store
from syft_core.workers.party.virtual import VirtualWorker
from syft_worker.desk.handlers import look_at
from syft_worker.desk.messages import AskRelease


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


def test_labels_are_shown_with_their_objects_whatever_the_ids_contain(bob: Any, me: Any) -> None:
    me.user = "eve"
    ids, location = ("a, b", "b", "a", "c,d"), me.location_of(bob)
    for id in ids:
        location.tell(Store(id, torch.ones(2)))

    location.ask(AskRelease(ids, None, "why", ("first", "second", "third", "fourth")))

    shown = look_at(bob, bob.requests[-1], "noor")
    assert [(part["object"], part["label"]) for part in shown] == [
        (r"a\x2c b", "first"),
        ("b", "second"),
        ("a", "third"),
        (r"c\x2cd", "fourth"),
    ]
    assert bob.requests[-1].names == r"a\x2c b, b, a, c\x2cd"


def test_an_owner_sees_that_the_numbers_of_a_failed_operation_are_a_stand_in(bob: Any, me: Any) -> None:
    me.user = "eve"
    bob.load_data([torch.tensor([7.0]).private_tensor([]).tag("#x")])

    torch.bernoulli(bob.search("#x")[0]).request("why")

    (shown,) = look_at(bob, bob.requests[-1], "noor")
    assert shown["failed"] == "computed with 1 failed operation: it is a stand-in, and not a result"
    assert shown["values"] == [0.0]
