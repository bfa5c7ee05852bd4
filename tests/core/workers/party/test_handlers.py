from __future__ import annotations

from typing import Any

import pytest
import toy
from syft_toy.hook import ToyHook

from syft_core.exceptions import (
    GetNotPermittedError,
    InvalidTensorForRemoteGetError,
    ObjectNotFoundError,
    SyftError,
    TagNotPermittedError,
    ValueRefusedError,
)
from syft_core.messages import (
    AskSchema,
    Call,
    Describe,
    Forward,
    GetBack,
    GetTicket,
    Lease,
    Message,
    Release,
    Search,
    SendOn,
    Store,
    Tag,
)
from syft_core.peer import Peer
from syft_core.pointers.callable_pointer import ObjectWrapper
from syft_core.pointers.object_pointer import Here
from syft_core.tensors.private import PrivateTensor
from syft_core.tensors.schema import Column, Schema

ANN, EVE = Peer("ann"), Peer("eve")


def ask(worker: Any, message: Message, sender: Peer = ANN) -> Any:
    with worker.lock:
        return worker.handle(message, sender)


def vector(*values: Any) -> toy.Vector:
    return toy.Vector(values)


def here(id: Any) -> Here:
    return Here(_id_at_location=id, point_to_attr=None)


# --- storing


def test_an_object_is_stored_for_its_sender(bob: Any) -> None:
    ask(bob, Store(1, vector(1.0), tags=("#x",), description="ages"))

    entry = bob.object_store.entry(1)
    assert entry.value.tolist() == [1.0]
    assert (entry.holder, entry.giver, entry.tags, entry.description) == ("ann", ANN, {"#x"}, "ages")
    assert not entry.published


def test_a_published_object_has_a_publisher_unless_it_is_the_workers_own(bob: Any) -> None:
    ask(bob, Store(1, vector(1.0), publish=True))
    ask(bob, Store(2, vector(1.0), publish=True), bob.peer)

    assert bob.object_store.entry(1).publisher == ANN
    assert bob.object_store.entry(2).publisher is None


def test_an_object_is_held_only_for_those_on_whose_behalf_it_is_sent(bob: Any) -> None:
    ask(bob, Store(1, vector(1.0), holder="ann"), Peer("alice", None, (ANN,)))
    assert bob.object_store.entry(1).holder == "ann"

    with pytest.raises(GetNotPermittedError, match="does not act on behalf of 'ann'"):
        ask(bob, Store(2, vector(1.0), holder="ann"), EVE)
    assert 2 not in bob.object_store


@pytest.mark.parametrize("value", [ObjectWrapper(print), "text", [1], object()])
def test_functions_and_other_objects_of_peers_are_not_stored(bob: Any, value: Any) -> None:
    with pytest.raises((SyftError, TypeError)):
        ask(bob, Store(1, value))
    assert len(bob.object_store) == 0


# --- copying and moving


def test_a_copy_here_has_an_id_of_its_own_and_shares_no_memory(bob: Any) -> None:
    ask(bob, Store(1, vector(1.0)))

    ask(bob, Forward(1, None, "bob", 2, keep=True))
    bob.get_obj(2)[0] = 5.0

    assert bob.get_obj(1).tolist() == [1.0]
    assert bob.object_store.entry(2).holder == "ann"


@pytest.mark.parametrize("keep", [False, True])
def test_an_object_moves_to_another_worker_with_its_tags(bob: Any, alice: Any, keep: bool) -> None:
    ask(bob, Store(1, vector(1.0), tags=("#x",)))

    ask(bob, Forward(1, None, "alice", 2, keep=keep))

    assert alice.get_obj(2).tolist() == [1.0]
    assert alice.object_store.entry(2).tags == {"#x"}
    assert (1 in bob.object_store) is keep
    assert [(entry.id, entry.to) for entry in bob.ledger] == [(1, "alice")]


def test_an_object_that_is_sent_on_leaves_a_pointer_and_comes_back(bob: Any, alice: Any) -> None:
    ask(bob, Store(1, vector(1.0)))

    ask(bob, SendOn(1, "alice", 2))
    assert bob.get_obj(1).location is alice
    ask(bob, GetBack(1))

    assert bob.get_obj(1).tolist() == [1.0]
    assert 2 not in alice.object_store


def test_only_a_pointer_is_fetched_back(bob: Any) -> None:
    ask(bob, Store(1, vector(1.0)))

    with pytest.raises(InvalidTensorForRemoteGetError):
        ask(bob, GetBack(1))


def test_sending_an_object_on_to_where_it_is_changes_nothing(bob: Any) -> None:
    ask(bob, Store(1, vector(1.0)))

    assert ask(bob, SendOn(1, "bob", 2)) is None
    assert list(bob.object_store) == [1]


# --- leases


def test_an_object_lives_as_long_as_somebody_has_a_lease(bob: Any) -> None:
    ask(bob, Store(1, vector(1.0), tags=("#x",)))
    ask(bob, Lease((1,)), EVE)

    ask(bob, Release((1,)))
    assert 1 in bob.object_store
    ask(bob, Release((1,)), EVE)
    assert 1 not in bob.object_store


def test_leases_are_taken_on_all_objects_or_on_none(bob: Any) -> None:
    ask(bob, Store(1, vector(1.0), tags=("#x",)))

    with pytest.raises(ObjectNotFoundError):
        ask(bob, Lease((1, 9)), EVE)

    ask(bob, Release((1,)))
    assert 1 not in bob.object_store


def test_an_object_that_cannot_be_found_is_not_leased(bob: Any) -> None:
    ask(bob, Store(1, vector(1.0)))

    with pytest.raises(GetNotPermittedError, match="it belongs to someone else, who has not given you a pointer"):
        ask(bob, Lease((1,)), EVE)


# --- asking


def test_forms_are_described_without_values(hook: ToyHook, bob: Any) -> None:
    ask(bob, Store(1, vector(1.0, 2.0)))

    assert ask(bob, Describe((1, 1))) == [hook.attributes.form_of(vector(0.0, 0.0))] * 2


def test_no_attribute_but_the_gradient_is_described(bob: Any) -> None:
    ask(bob, Store(1, vector(1.0)))

    with pytest.raises(ValueRefusedError, match="reading '_values'"):
        ask(bob, Describe((1,), "_values"))


def test_a_table_without_a_schema_has_an_empty_one(bob: Any) -> None:
    ask(bob, Store(1, vector(1.0)))

    assert ask(bob, AskSchema(1)) == Schema()


def test_columns_that_do_not_fit_the_object_are_left_out(bob: Any) -> None:
    ask(bob, Store(1, vector(1.0)))
    bob.object_store.entry(1).schema = Schema((Column("age"), Column("sex")))

    assert ask(bob, AskSchema(1)).columns == ()


def test_a_search_finds_tagged_objects_and_takes_a_lease(bob: Any) -> None:
    ask(bob, Store(1, vector(1.0), tags=("#x", "#a"), description="ages"))
    ask(bob, Store(2, vector(1.0)))

    assert ask(bob, Search(("#x",)), EVE) == [(1, ("#a", "#x"), "ages", "toy", None)]
    assert bob.object_store.entry(1).is_leased_to("eve")
    assert ask(bob, Search(("#none",)), EVE) == []


# --- tagging


def test_an_object_is_tagged_and_published_by_its_sender_only(bob: Any) -> None:
    ask(bob, Store(1, vector(1.0)))

    with pytest.raises(TagNotPermittedError, match="it belongs to someone else"):
        ask(bob, Tag(1, ("#x",)), EVE)
    ask(bob, Tag(1, ("#x",), "ages", publish=True))

    entry = bob.object_store.entry(1)
    assert (entry.tags, entry.description, entry.publisher) == ({"#x"}, "ages", ANN)


# --- calling


def test_a_function_of_the_owner_is_called_on_stored_objects(bob: Any) -> None:
    bob.register_obj(ObjectWrapper(lambda x, times: x * times), "double")
    ask(bob, Store(1, vector(1.0)))

    placed = ask(bob, Call("double", (here(1),), {"times": 2}, 10))

    assert (placed.id, placed.framework) == (10, "toy")
    assert bob.get_obj(10).tolist() == [2.0]
    assert len(bob.ledger) == 0


def test_an_object_that_is_not_a_function_is_not_called(bob: Any) -> None:
    ask(bob, Store(1, vector(1.0)))

    with pytest.raises(ValueRefusedError, match="object 1 is not a function"):
        ask(bob, Call(1, (), {}, 10))


def test_numbers_of_private_objects_do_not_leave_through_a_function(bob: Any) -> None:
    bob.register_obj(ObjectWrapper(lambda x: x.tolist()), "read")
    bob.register_obj(PrivateTensor(["alice"]).on(vector(77.0)), "secret")

    with pytest.raises(ValueRefusedError) as caught:
        ask(bob, Call("read", (here("secret"),), {}, 10))

    assert "77" not in str(caught.value)


def test_the_error_of_a_function_does_not_quote_private_values(bob: Any) -> None:
    def fail(x: Any) -> None:
        raise ValueError(f"bad value {x.tolist()}")

    bob.register_obj(ObjectWrapper(fail), "fail")
    bob.register_obj(PrivateTensor(["alice"]).on(vector(77.0)), "secret")
    ask(bob, Store(1, vector(78.0)))

    with pytest.raises(ValueRefusedError) as caught:
        ask(bob, Call("fail", (here("secret"),), {}, 10))
    assert "77" not in str(caught.value)
    with pytest.raises(ValueError, match="bad value \\[78.0\\]"):
        ask(bob, Call("fail", (here(1),), {}, 10))


# --- tickets


def test_a_ticket_is_for_objects_to_which_the_sender_has_pointers(bob: Any) -> None:
    ask(bob, Store(1, vector(1.0)))

    secret = ask(bob, GetTicket("alice", (1, 50)))

    assert bob.tickets.redeem(secret, "alice").peer == ANN
    with pytest.raises(GetNotPermittedError):
        ask(bob, GetTicket("alice", (1,)), EVE)
