"""Sending, fetching and moving: who owns the object afterwards, and the state of the pointer."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from syft_core.exceptions import (
    AlreadyRetrievedError,
    ObjectNotFoundError,
    WorkerNotFoundError,
)
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.tensors.logging import LoggingTensor


@pytest.fixture
def x(hook: Any) -> Any:
    return torch.tensor([1.0, 2.0, 3.0])


# --- send


def test_a_pointer_knows_where_its_object_is(x: Any, bob: Any, me: Any) -> None:
    p = x.send(bob)

    assert (p.location, p.owner, p.child.owner) == (bob, me, me)
    assert p.id_at_location in bob._objects
    assert isinstance(p.child, PointerTensor)
    assert (
        repr(p)
        == f"(Wrapper)>[PointerTensor | me:{p.child.id} -> bob:{p.id_at_location}] shape (3,), torch.float32, on bob"
    )


def test_a_worker_may_be_named_by_its_id(x: Any, bob: Any) -> None:
    assert x.send("bob").location is bob


def test_each_send_creates_a_new_object(x: Any, bob: Any) -> None:
    one, other = x.send(bob), x.send(bob)

    one.add_(1)

    assert one.id_at_location != other.id_at_location
    assert other.get().tolist() == [1.0, 2.0, 3.0]


def test_sending_without_a_worker_is_refused(x: Any) -> None:
    with pytest.raises(TypeError, match="cannot send without a worker: pass one"):
        x.send()


def test_an_unknown_worker_is_named_with_the_nearest(x: Any, bob: Any) -> None:
    with pytest.raises(WorkerNotFoundError, match="cannot find worker 'bop': .* did you mean 'bob'"):
        x.send("bop")


def test_a_tensor_can_be_sent_in_place(x: Any, bob: Any) -> None:
    x.id = "x"

    result = x.send_(bob)

    assert result is x
    assert (x.id, x.location) == ("x", bob)
    assert x.get_() is x
    assert (x.id, x.tolist()) == ("x", [1.0, 2.0, 3.0])
    assert type(x) is torch.Tensor


def test_send_accepts_inplace(x: Any, bob: Any) -> None:
    assert x.send(bob, inplace=True) is x
    assert x.location is bob


def test_several_workers_in_place_are_refused(x: Any, bob: Any, alice: Any) -> None:
    with pytest.raises(TypeError, match="cannot send in place to 2 workers"):
        x.send_(bob, alice)


def test_without_a_wrapper_the_pointer_itself_is_returned(x: Any, bob: Any) -> None:
    assert type(x.send(bob, no_wrap=True)) is PointerTensor


def test_gradients_requires_grad_tags_and_description_travel_there_and_back(x: Any, bob: Any) -> None:
    x = x.requires_grad_().tag("#x", "#y").describe("three numbers")
    (x * x).sum().backward()

    p = x.send(bob)
    back = p.get()

    assert (p.tags, p.description) == ({"#x", "#y"}, "three numbers")
    assert "\tTags: #x #y\n\tDescription: three numbers" in repr(p)
    assert (back.requires_grad, back.grad.tolist()) == (True, [2.0, 4.0, 6.0])
    assert (back.tags, back.description) == ({"#x", "#y"}, "three numbers")


def test_a_chain_arrives_as_a_chain(x: Any, bob: Any) -> None:
    p = LoggingTensor().on(x).send(bob)

    assert isinstance(bob.get_obj(p.id_at_location).child, LoggingTensor)
    assert repr((p + p).get()) == "(Wrapper)>LoggingTensor>tensor([2., 4., 6.])"


def test_a_layer_above_a_pointer_stays_above_what_is_fetched(x: Any, bob: Any) -> None:
    p = LoggingTensor().on(x.send(bob))

    assert repr((p + p).get()) == "(Wrapper)>LoggingTensor>tensor([2., 4., 6.])"


def test_a_copy_that_needs_a_gradient_can_start_with_zeros(x: Any, bob: Any, alice: Any) -> None:
    w = x.clone().requires_grad_()

    p = w.send(bob, preinitialize_grad=True)

    assert (p.grad.get().tolist(), p.grad.requires_grad, w.grad) == ([0.0, 0.0, 0.0], False, None)
    (p * 2).sum().backward()
    assert p.grad.get().tolist() == [2.0, 2.0, 2.0]
    both = w.send(bob, alice, preinitialize_grad=True)
    assert [gradient.tolist() for gradient in both.grad.get()] == [[0.0] * 3] * 2
    assert w.send_(bob, preinitialize_grad=True).grad is not None


def test_a_gradient_that_is_there_is_not_replaced_and_none_is_made_where_none_is_needed(x: Any, bob: Any) -> None:
    w = x.clone().requires_grad_()
    (w * w).sum().backward()

    assert w.send(bob, preinitialize_grad=True).grad.get().tolist() == [2.0, 4.0, 6.0]
    assert x.send(bob, preinitialize_grad=True).grad is None


def test_local_autograd_is_refused(x: Any, bob: Any) -> None:
    with pytest.raises(NotImplementedError, match="the graph is kept on the worker of the data"):
        x.send(bob, local_autograd=True)


def test_a_tensor_can_be_resized_where_it_arrived_and_its_views_follow(x: Any, bob: Any) -> None:
    p = x.send(bob)
    alias = p.detach()

    p.resize_(5)
    p.fill_(7)

    assert (p.shape, alias.get().tolist()) == ((5,), [7.0, 7.0, 7.0])
    assert p.resize_(2).get().tolist() == [7.0, 7.0]


# --- get


def test_get_removes_the_object_from_its_worker(x: Any, bob: Any) -> None:
    p = x.send(bob)

    back = p.get()

    assert back.tolist() == [1.0, 2.0, 3.0]
    assert bob.objects_count == 0


def test_copy_then_get_leaves_the_object_there(x: Any, bob: Any) -> None:
    p = x.send(bob)

    assert p.copy().get().tolist() == [1.0, 2.0, 3.0]
    assert bob.objects_count == 1


def test_get_without_deregistering_fetches_a_copy(x: Any, bob: Any) -> None:
    p = x.send(bob)

    assert p.get(deregister_ptr=False).tolist() == p.get().tolist()


def test_what_was_fetched_shares_no_memory_with_a_second_pointer(x: Any, bob: Any) -> None:
    p = x.send(bob)
    alias = p.contiguous()

    p.get().add_(1)

    assert alias.get().tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "use",
    [
        lambda p: p.get(),
        lambda p: p + 1,
        lambda p: p.shape,
        lambda p: p.tag("#x"),
        lambda p: p.move("alice"),
        lambda p: p.grad,
        lambda p: p.copy(),
        lambda p: p.send("alice"),
        lambda p: torch.stack([p, p]),
    ],
)
def test_a_pointer_whose_object_was_fetched_says_so_and_can_be_printed(x: Any, bob: Any, alice: Any, use: Any) -> None:
    p = x.send(bob)
    p.get()

    with pytest.raises(AlreadyRetrievedError, match="it was fetched by 'me'; use the result of that call"):
        use(p)
    assert "it was fetched by 'me'" in repr(p)


def test_a_tensor_that_is_here_cannot_be_fetched(x: Any) -> None:
    with pytest.raises(TypeError, match="cannot get a tensor: it is not a pointer"):
        x.get()


def test_a_dead_pointer_says_who_deleted_the_object_and_when(x: Any, bob: Any) -> None:
    p = x.send(bob)
    second = p.child.clone()
    p.get()

    with pytest.raises(ObjectNotFoundError, match=r"it was fetched by 'me' at \d\d:\d\d:\d\d"):
        second.shape  # noqa: B018  # asking is the act
    bob.clear_objects()
    q = x.send(bob)
    bob.clear_objects()
    with pytest.raises(ObjectNotFoundError, match=r"the worker was cleared at \d\d:\d\d:\d\d"):
        q.get()


def test_a_pointer_to_what_was_collected_says_so(x: Any, bob: Any) -> None:
    p = x.send(bob)
    weak = p.child.sibling(garbage_collect_data=False)
    del p

    with pytest.raises(ObjectNotFoundError, match=r"its last pointer was dropped at \d\d:\d\d:\d\d"):
        weak.get()


# --- publish


def test_what_is_published_stays_whoever_fetches_or_drops_it(x: Any, bob: Any) -> None:
    p = x.tag("#data").publish(bob)
    p.get()
    del p

    (found,) = bob.search("#data")

    assert found.get().tolist() == [1.0, 2.0, 3.0]
    assert bob.objects_count == 1


def test_a_pointer_can_be_published_later(x: Any, bob: Any) -> None:
    p = x.send(bob)

    assert p.publish() is p
    del p

    assert bob.objects_count == 1


def test_a_tagged_object_is_kept_by_its_pointers_only(x: Any, bob: Any) -> None:
    p = x.send(bob).tag("#x")

    (found,) = bob.search("#x")
    del p

    assert (found.tags, bob.objects_count) == ({"#x"}, 1)
    del found
    assert bob.search("#x") == []


# --- words


def test_tags_and_descriptions_given_to_a_pointer_reach_the_object(x: Any, bob: Any) -> None:
    p = x.send(bob)

    assert p.tag("#a", "#b") is p
    assert p.describe("three numbers") is p

    (found,) = bob.search(["#a", "three"])
    assert (found.id_at_location, found.tags, found.description) == (p.id_at_location, {"#a", "#b"}, "three numbers")
    assert (p.tags, p.description) == ({"#a", "#b"}, "three numbers")
    assert p.get().tags == {"#a", "#b"}


# --- move


def test_move_goes_from_worker_to_worker(x: Any, bob: Any, alice: Any, me: Any) -> None:
    p = x.send(bob)
    seen = me.stats.bytes_in

    q = p.move(alice)

    assert (q.location, bob.objects_count, alice.objects_count) == (alice, 0, 1)
    assert (p.location, me.stats.bytes_in) == (bob, seen)
    with pytest.raises(AlreadyRetrievedError, match="it was moved to 'alice'"):
        p + 1
    assert q.get().tolist() == [1.0, 2.0, 3.0]


def test_moving_to_where_it_is_changes_nothing(x: Any, bob: Any) -> None:
    p = x.send(bob)

    assert p.move(bob) is p


def test_moving_here_is_fetching(x: Any, bob: Any, me: Any) -> None:
    assert x.send(bob).move(me).tolist() == [1.0, 2.0, 3.0]
    assert bob.objects_count == 0


def test_a_failed_move_leaves_everything_where_it_was(x: Any, bob: Any) -> None:
    p = x.send(bob)

    with pytest.raises(WorkerNotFoundError):
        p.move("nobody")

    assert p.get().tolist() == [1.0, 2.0, 3.0]


# --- pointers to pointers


def test_a_pointer_can_be_sent_and_computed_with(x: Any, bob: Any, alice: Any) -> None:
    p = x.send(bob)

    pp = p.send(alice)

    assert (pp.location, pp.shape, pp.dtype) == (alice, (3,), torch.float32)
    assert (pp + pp).get().get().tolist() == [2.0, 4.0, 6.0]
    inner = pp.get()
    assert (inner.location, inner.owner.id) == (bob, "me")
    assert inner.get().tolist() == [1.0, 2.0, 3.0]


def test_both_ends_of_a_pointer_that_was_sent_hold_the_object(x: Any, bob: Any, alice: Any) -> None:
    p = x.send(bob)
    pp = p.send(alice)

    del pp
    assert (bob.objects_count, alice.objects_count) == (1, 0)
    assert (p + 1).get().tolist() == [2.0, 3.0, 4.0]

    pp = p.send(alice)
    del p
    assert pp.get().get().tolist() == [1.0, 2.0, 3.0]


def test_dropping_a_pointer_to_a_pointer_collects_both(x: Any, bob: Any, alice: Any) -> None:
    pp = x.send(bob).send(alice)
    del pp

    assert (alice.objects_count, bob.objects_count) == (0, 0)


# --- copies and second pointers


def test_a_shallow_copy_of_a_wrapper_shares_its_pointer(x: Any, bob: Any) -> None:
    p = x.send(bob)

    q = copy.copy(p)
    del p

    assert q.get().tolist() == [1.0, 2.0, 3.0]


# --- user and reason


def test_the_reason_is_written_into_the_ledger(x: Any, bob: Any) -> None:
    p = x.send(bob)
    source = p.id_at_location

    (p * 2).get(reason="for the report")

    (line,) = bob.ledger
    assert (line.user, line.to, line.reason, line.sources) == ("me", "me", "for the report", (source,))
    assert "for the report" in str(bob.ledger)
    assert "for the report" in bob.ledger._repr_html_()
