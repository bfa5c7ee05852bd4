"""What all layers of shared integers have in common."""

from __future__ import annotations

from typing import Any

import pytest

from syft_core.exceptions import MixedLayersError

torch = pytest.importorskip("torch")

from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402  # torch may be missing


@pytest.fixture
def parties() -> Any:
    from syft_torch.hook import TorchHook  # noqa: PLC0415  # torch may be missing

    with TorchHook(torch) as hook:
        yield [VirtualWorker(hook, id=name) for name in ("bob", "alice", "carol")]


@pytest.fixture(params=["fast", "authenticated"])
def shared(request: pytest.FixtureRequest, parties: Any) -> Any:
    bob, alice, carol = parties
    return torch.tensor([1, 2]).share(bob, alice, crypto_provider=carol, protocol=request.param).child


def test_it_names_its_parties_and_its_provider(shared: Any, parties: Any) -> None:
    bob, alice, carol = parties

    assert shared.locations == [bob, alice]
    assert shared.crypto_provider is carol
    assert "*crypto provider: carol*" in str(shared)
    assert shared.pointer.location is bob
    assert shared.dtype == torch.int64


def test_values_of_other_groups_are_refused(shared: Any, parties: Any) -> None:
    bob, alice, carol = parties
    other = torch.tensor([1, 2]).share(bob, carol, crypto_provider=alice).child

    with pytest.raises(MixedLayersError, match="bob, alice"):
        shared.require_same_group(other)


def test_a_function_of_shares_stays_in_the_group(shared: Any) -> None:
    moved = shared.on_each(lambda share: share.flip(0))

    assert type(moved) is type(shared)
    assert moved.group is shared.group
