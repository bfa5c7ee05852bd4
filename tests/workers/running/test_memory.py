from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")
import torch

from syft_core.exceptions import (
    ValueRefusedError,
    WriteNotPermittedError,
)

from ..secrets_of_others import store


@pytest.fixture
def secret(bob: Any) -> Any:
    """A pointer to data on bob that only alice may have."""
    return store(bob, ["alice"], [1.0, 2.0, 3.0])


@pytest.fixture
def public(bob: Any) -> Any:
    return torch.tensor([10.0, 20.0, 30.0]).send(bob)


def test_uninitialized_memory_is_not_shown(bob: Any) -> None:
    secret = store(bob, ["alice"], [7.0] * 3000)
    public = torch.zeros(3000).send(bob)

    for _ in range(20):
        secret * 1  # made and dropped: its memory is free
        sparse = public.new_empty_strided((2,), (2999,))
        for unset in (
            torch.empty_like(public),
            public.new_empty(3000),
            public.new_empty_strided((3000,), (1,)),
            sparse,
        ):
            assert unset.copy().get().eq(0).all()
            assert bob.get_obj(unset.id_at_location).untyped_storage().tolist() == [0] * 12000
        assert public.clone().resize_(6000).get().eq(0).all()


@pytest.mark.parametrize(
    "look",
    [
        lambda v: v.as_strided((5,), (1,), 10),
        lambda v: torch.as_strided(v, (5,), (1,), 10),
        lambda v: torch.as_strided_copy(v, (5,), (1,), 10),
        lambda v: v.resize_(100),
        lambda v: v.resize_as_(v.new_zeros(100)),
        lambda v: v.detach().as_strided((5,), (1,), 10),
    ],
)
def test_memory_outside_a_view_is_not_shown(bob: Any, look: Callable[[Any], Any]) -> None:
    whole = torch.arange(1000.0)
    bob.load_data([whole[:3].tag("#part")])
    (part,) = bob.search("#part")

    with pytest.raises((ValueRefusedError, WriteNotPermittedError), match="is part of a larger one|it is published"):
        look(part)
    assert part.clone().as_strided((2,), (2,)).get().tolist() == [0.0, 2.0]
