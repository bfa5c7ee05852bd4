from __future__ import annotations

from typing import Any

import pytest
import toy
from syft_toy.hook import ToyHook
from syft_toy.wrapper import Wrapper

from syft_core.exceptions import ObjectNotFoundError
from syft_core.messages import Fetch, Run, Store, Tag
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.workers.party.base import BaseWorker


@pytest.fixture
def bob() -> BaseWorker:
    return BaseWorker(id="bob")


def test_an_object_is_kept_under_the_given_id_and_becomes_the_workers(bob: BaseWorker) -> None:
    x = Wrapper(toy.Vector([1.0]))

    bob.register_obj(x, 7)

    assert bob.get_obj(7) is x
    assert (x.id, x.owner) == (7, bob)


def test_an_object_is_kept_under_its_own_id(bob: BaseWorker) -> None:
    x = Wrapper(toy.Vector([1.0]))
    x.id = "mine"

    bob.register_obj(x)

    assert bob.get_obj("mine") is x


def test_an_object_without_an_id_gets_a_fresh_one(bob: BaseWorker) -> None:
    x = Wrapper(toy.Vector([1.0]))

    bob.register_obj(x)

    assert bob.get_obj(x.id) is x


def test_a_new_id_replaces_the_old_one(bob: BaseWorker) -> None:
    x = Wrapper(toy.Vector([1.0]))
    bob.register_obj(x, 1)

    bob.register_obj(x, 2)

    assert repr(bob) == "<BaseWorker id:bob #objects:1>"
    assert bob.get_obj(2) is x


@pytest.mark.parametrize("thing", [Wrapper(toy.Vector([1.0])), toy.Vector([1.0]), "anything"])
def test_removing_an_object_twice_is_harmless(hook: Any, bob: BaseWorker, thing: object) -> None:
    bob.register_obj(thing, 5)

    bob.de_register_obj(thing)
    bob.de_register_obj(thing)

    with pytest.raises(ObjectNotFoundError):
        bob.get_obj(5)


def test_removing_an_object_keeps_another_with_the_same_id(bob: BaseWorker) -> None:
    kept, other = Wrapper(toy.Vector([1.0])), Wrapper(toy.Vector([1.0]))
    bob.register_obj(kept, 5)
    other.id = 5

    bob.de_register_obj(other)

    assert bob.get_obj(5) is kept


def test_the_error_for_a_missing_object_names_the_worker(bob: BaseWorker) -> None:
    with pytest.raises(LookupError) as caught:
        bob.get_obj(9)

    assert str(caught.value) == (
        "cannot find object 9 on worker 'bob': it was never stored there, or was deleted; "
        "keep a pointer to every object that you still need"
    )


def test_a_worker_has_the_defaults_of_the_published_interface() -> None:
    worker = BaseWorker()

    assert (worker.hook, worker.id, worker.is_client_worker, worker.verbose) == (None, 0, False, False)


def test_the_ledger_names_sources_by_the_tags_that_they_had(hook: ToyHook, bob: BaseWorker) -> None:
    hook.local_worker.location_of(bob).ask(Store(1, toy.Vector([1.0])))
    hook.local_worker.location_of(bob).ask(Store(2, toy.Vector([2.0])))
    hook.local_worker.location_of(bob).ask(Tag(1, ("#a", "#b")))
    pointers = tuple([PointerTensor(bob, id, hook.attributes, garbage_collect_data=False) for id in (1, 2)])
    hook.local_worker.location_of(bob).ask(Run("toy", "toy.Vector.__add__", pointers, {}, 3))

    hook.local_worker.location_of(bob).ask(Fetch(3))
    bob.clear_objects()

    assert bob.ledger[0].sources == (1, 2)
    assert bob.ledger[0].names == ("#a #b", "")
    assert bob.ledger.kinds() == [("1", "worker me", "Vector[1] float", "#a #b and others", "me", "")]
