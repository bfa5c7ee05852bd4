from __future__ import annotations

from typing import Any

import pytest
import toy
from syft_toy.attributes import ToyAttributes
from syft_toy.hook import ToyHook

from syft_core.workers.addresses.remote import Remote


@pytest.mark.parametrize("serialize", [False, True])
def test_a_tensor_is_created_where_it_is_needed(bob: Any, serialize: bool) -> None:
    bob.serialize = serialize

    x = bob.remote.toy.zeros((3,))

    assert x.location is bob
    assert list(bob.object_store) == [x.id_at_location]
    assert x.shape == (3,)
    assert (x + 1.0).get().tolist() == [1.0, 1.0, 1.0]


def test_the_frameworks_and_their_functions_are_listed(bob: Any) -> None:
    assert dir(bob.remote) == ["toy"]
    assert dir(bob.remote.toy) == ["arange", "zeros"]


def test_a_function_that_creates_nothing_is_refused_with_those_that_do(bob: Any) -> None:
    with pytest.raises(AttributeError, match="on worker 'bob' with 'cat': use one of arange, zeros, or create it here"):
        bob.remote.toy.cat([])


def test_a_framework_that_is_not_hooked_is_refused_with_the_line_to_write(bob: Any) -> None:
    with pytest.raises(AttributeError, match=r"tensors of 'jax' on worker 'bob': .* write `bob.remote.toy.zeros\(3\)`"):
        bob.remote.jax.zeros(3)


def test_without_a_hook_there_is_no_framework(hook: ToyHook, bob: Any) -> None:
    hook.unhook()

    assert dir(Remote(bob, bob)) == []
    with pytest.raises(AttributeError, match="no framework is hooked"):
        Remote(bob, bob).toy  # noqa: B018  # reading it is the act


def test_a_block_tells_the_framework_where_to_create_tensors(
    bob: Any, alice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[str] = []

    class Place:
        def __init__(self, location: Any) -> None:
            self._id = location.id

        def __enter__(self) -> None:
            places.append(self._id)

        def __exit__(self, *_error: object) -> None:
            places.remove(self._id)

    monkeypatch.setattr(ToyAttributes, "place_new_tensors", lambda _self, location: Place(location))

    with bob as entered:
        assert entered is bob
        assert places == ["bob"]
        with alice:
            assert places == ["bob", "alice"]
        assert places == ["bob"]
    assert places == []
    with pytest.raises(ValueError, match="mine"), bob:
        raise ValueError("mine")
    assert places == []


def test_a_framework_that_cannot_place_tensors_creates_them_here(bob: Any) -> None:
    with bob:
        assert toy.zeros((2,)).tolist() == [0.0, 0.0]
