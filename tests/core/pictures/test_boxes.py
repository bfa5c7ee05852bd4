from __future__ import annotations

import re
from typing import Any

import pytest
import toy
from syft_toy.hook import ToyHook
from toy_layers import Watcher

from syft_core.hook.forms import form
from syft_core.pictures.boxes import chain_html, form_of
from syft_core.pointers.multi_pointer import MultiPointerTensor
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.private import PrivateTensor
from syft_core.workers.party.base import BaseWorker

SECRET = 8675309.0


class SilentWorker(BaseWorker):
    """Fails when it receives a message."""

    def handle(self, message: Any, sender: Any) -> Any:
        raise AssertionError(f"a picture sent a message: {message}")


class Reticent(AbstractTensor):
    """Does not show what is below it."""

    def __repr__(self) -> str:
        return "Reticent>(nothing to see)"


class Branching(AbstractTensor):
    """Has several children, by the name of their worker."""


@pytest.fixture
def bob(hook: ToyHook) -> SilentWorker:
    return SilentWorker(hook, id="bob")


def pointer_to(worker: BaseWorker, hook: ToyHook, id: int = 17) -> PointerTensor:
    return PointerTensor(worker, id, hook.attributes, owner=hook.local_worker, garbage_collect_data=False)


def texts(page: str) -> list[str]:
    """Return the visible text of each box."""
    return [text for text in re.split(r"<[^>]*>", page) if text]


def test_a_chain_is_drawn_link_by_link_with_its_local_values(hook: ToyHook) -> None:
    x = Watcher().on(toy.Vector([1.0, 2.0]))

    page = chain_html(x)

    assert page is not None
    assert texts(page) == ["Wrapper", "▸", "Watcher", "▸", "Vector([1.0, 2.0])", "Vector[2]"]


def test_a_layer_that_hides_its_child_hides_it_in_the_picture(hook: ToyHook) -> None:
    layer = Reticent()
    layer.child = toy.Vector([SECRET])

    page = chain_html(layer)

    assert page is not None
    assert texts(page) == ["Reticent&gt;(nothing to see)"]


def test_a_pointer_is_drawn_from_owner_to_location_without_a_message(hook: ToyHook, bob: SilentWorker) -> None:
    pointer = pointer_to(bob, hook)

    page = chain_html(pointer)

    assert page is not None
    assert texts(page)[:4] == ["PointerTensor", f"me:{pointer.id}", "⇢", "bob:17"]


def test_a_wrapped_pointer_is_drawn_without_a_message(hook: ToyHook, bob: SilentWorker) -> None:
    page = chain_html(hook.attributes.wrapper(pointer_to(bob, hook)))

    assert texts(str(page))[:3] == ["Wrapper", "▸", "PointerTensor"]


def test_a_pointer_to_a_deleted_object_is_marked(hook: ToyHook, bob: SilentWorker) -> None:
    pointer = pointer_to(bob, hook)
    pointer.gone = "it was fetched by 'me'"

    assert "gone: it was fetched" in str(chain_html(pointer))


def test_branches_are_drawn_one_below_the_other(hook: ToyHook, bob: SilentWorker) -> None:
    layer = Branching()
    layer.child = {"bob": pointer_to(bob, hook, 1), "here": toy.Vector([SECRET])}

    page = str(chain_html(layer))

    assert "bob:1" in page
    assert "Vector[1]" in page
    assert str(SECRET) not in page


def test_a_pointer_to_several_workers_is_drawn_with_all_of_them(hook: ToyHook, bob: SilentWorker) -> None:
    alice = SilentWorker(hook, id="alice")
    both = MultiPointerTensor([pointer_to(bob, hook, 1), pointer_to(alice, hook, 2)])

    page = str(chain_html(hook.attributes.wrapper(both)))

    assert texts(page)[:3] == ["Wrapper", "▸", "MultiPointerTensor"]
    assert {"bob:1", "alice:2"} <= set(texts(page))


def test_a_private_tensor_shows_no_values(hook: ToyHook) -> None:
    x = PrivateTensor(["bob"]).on(toy.Vector([SECRET]))

    page = str(chain_html(x))

    assert "PrivateTensor" in page
    assert str(SECRET) not in page


def test_the_form_of_a_remote_object_is_shown_if_known(hook: ToyHook, bob: SilentWorker) -> None:
    pointer = pointer_to(bob, hook)
    assert texts(str(chain_html(pointer)))[-1] == "bob:17"
    pointer.location.describe = lambda *_: [form((2, 3), (3, 1), float)]

    assert texts(str(chain_html(pointer)))[-1] == "[2, 3]"


def test_a_plain_tensor_has_no_picture() -> None:
    assert chain_html(toy.Vector([1.0])) is None


def test_the_picture_of_a_worker_names_its_objects_and_no_values(hook: ToyHook, bob: SilentWorker) -> None:
    bob.register_obj(Watcher().on(toy.Vector([SECRET, SECRET])), 5)
    bob.object_store.tag(5, ["#houses"], "Prices\nin thousands")
    bob.register_obj(pointer_to(SilentWorker(hook, id="alice"), hook), 6)

    page = bob._repr_html_()

    assert texts(page)[0] == "SilentWorker bob: 2 objects"
    assert {"5", "Watcher&gt;Vector[2]", "#houses", "Prices", "6", "→ alice:17"} <= set(texts(page))
    assert str(SECRET) not in page


def test_the_picture_of_a_worker_shows_who_may_receive_a_private_object(bob: SilentWorker) -> None:
    bob.register_obj(PrivateTensor(["alice", "carol"]).on(toy.Vector([1.0])), 5)
    bob.register_obj(PrivateTensor().on(toy.Vector([1.0])), 6)

    shown = texts(bob._repr_html_())

    assert "private to" in shown
    assert {"alice, carol", "nobody"} <= set(shown)


def test_a_worker_without_objects_shows_its_count(bob: SilentWorker) -> None:
    assert texts(bob._repr_html_()) == ["SilentWorker bob: 0 objects"]


def test_notebooks_find_the_pictures(hook: ToyHook) -> None:
    x = Watcher().on(toy.Vector([1.0]))

    assert x._repr_html_() == chain_html(x)


def test_the_form_of_a_chain_names_layers_and_the_shape_of_the_end(hook: ToyHook, bob: SilentWorker) -> None:
    assert form_of(Watcher().on(toy.Vector([1.0, 2.0]))) == "Watcher>Vector[2]"
    assert form_of(hook.attributes.wrapper(pointer_to(bob, hook))) == "→ bob:17"
    assert form_of(None) == "NoneType"
