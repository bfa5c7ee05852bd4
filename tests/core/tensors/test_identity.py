from __future__ import annotations

import pytest
import toy
from syft_toy.hook import ToyHook
from syft_toy.wrapper import Wrapper
from toy_layers import Scaled, Watcher

from syft_core.ids import IdProvider
from syft_core.tensors.identity import ID_PROVIDER
from syft_core.workers.party.base import BaseWorker


def test_everything_in_a_chain_has_its_own_stable_id() -> None:
    x = Watcher().on(toy.Vector([1.0]))

    ids = (x.id, x.child.id)

    assert ids == (x.id, x.child.id)
    assert x.id != x.child.id


def test_attributes_have_defaults(hook: ToyHook) -> None:
    layer = Watcher()

    assert isinstance(layer.id, int)
    assert layer.owner is hook.local_worker
    assert (layer.tags, layer.description, layer.child) == (set(), None, None)
    assert not layer.has_child()
    assert (layer.location, layer.id_at_location) == (None, None)


def test_id_owner_tags_and_description_can_be_set() -> None:
    layer, bob = Watcher(), BaseWorker(id="bob")

    layer.id, layer.owner, layer.tags, layer.description = 7, bob, ["#t"], "words"

    assert (layer.id, layer.owner, layer.tags, layer.description) == (7, bob, {"#t"}, "words")


def test_tag_and_describe_return_the_object() -> None:
    x = Watcher().on(toy.Vector([1.0]))

    assert x.tag("#a", "#b").describe("words") is x
    assert (x.tags, x.description) == ({"#a", "#b"}, "words")


def test_tags_are_not_shared_between_objects() -> None:
    first, second = Watcher().tag("#a"), Watcher()

    assert (first.tags, second.tags) == ({"#a"}, set())


def test_the_location_of_a_chain_is_that_of_its_pointer() -> None:
    class Remote:
        location, id_at_location, child = "bob", 9, None

    layer = Watcher(child=Remote())

    assert (layer.location, layer.id_at_location) == ("bob", 9)
    assert (Wrapper(layer).location, Wrapper(layer).id_at_location) == ("bob", 9)


def test_new_ids_come_from_the_id_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ID_PROVIDER, "pop", IdProvider([42]).pop)

    assert Watcher().id == 42


def test_the_repr_of_a_chain_shows_its_layers() -> None:
    x = Watcher().on(Scaled().on(toy.Vector([1.0])))

    assert str(x) == repr(x) == "(Wrapper)>Watcher>Scaled>Vector([1.0])"
    assert str(x.child) == repr(x.child) == "Watcher>Scaled>Vector([1.0])"


def test_tags_and_the_first_line_of_the_description_have_their_own_lines() -> None:
    x = Watcher().on(toy.Vector([1.0]))

    x.tag("#b", "#a").describe("a line\nanother line")

    assert str(x) == "(Wrapper)>Watcher>Vector([1.0])\n\tTags: #a #b\n\tDescription: a line"


def test_tags_are_shown_sorted_on_one_line() -> None:
    x = Watcher().on(toy.Vector([1.0])).tag(*"hgfedcba")

    assert str(x) == "(Wrapper)>Watcher>Vector([1.0])\n\tTags: a b c d e f g h"
