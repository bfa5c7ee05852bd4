"""The methods of workers that users call directly."""

from __future__ import annotations

import logging
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import syft_core as sy
from syft_core.exceptions import (
    GetNotPermittedError,
    ObjectNotFoundError,
    SerdeError,
    WorkerError,
    WorkerIdTakenError,
    WorkerNotFoundError,
)
from syft_core.pointers.callable_pointer import CallablePointer, ObjectWrapper
from syft_core.pointers.object_pointer import ObjectPointer
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.tensors.abstract import initialize_tensor
from syft_core.workers.seeing.permissions import nothing, only_published


@pytest.fixture
def x(hook: Any) -> Any:
    return torch.tensor([1.0, 2.0, 3.0])


# --- sending and asking, worker to worker


def test_a_worker_sends_a_tensor_to_another(x: Any, bob: Any, alice: Any) -> None:
    pointer = bob.send(x, alice, ptr_id="mine")

    assert type(pointer) is PointerTensor
    assert (pointer.id, pointer.owner, pointer.location, alice.objects_count) == ("mine", bob, alice, 1)
    assert pointer.get().tolist() == [1.0, 2.0, 3.0]
    assert [line.user for line in alice.ledger] == ["bob"]


def test_an_object_sent_without_a_pointer_is_kept_by_the_receiver(x: Any, bob: Any, alice: Any) -> None:
    id = bob.send(x.tag("#x"), "alice", create_pointer=False)

    assert alice.get_obj(id).tolist() == x.tolist()
    assert (alice.objects_count, len(alice.search("#x"))) == (1, 1)


def test_garbage_collection_can_be_disabled_when_sending(x: Any, bob: Any, alice: Any) -> None:
    bob.send(x, alice, garbage_collect_data=False)

    assert alice.objects_count == 1


def test_a_worker_sends_a_private_tensor_only_if_it_may(x: Any, me: Any, bob: Any, alice: Any) -> None:
    private = x.private_tensor(["bob"])

    with pytest.raises(PermissionError, match="cannot send a private tensor as 'me'"):
        me.send(private, alice)
    assert bob.send(private, alice).location is alice


def test_a_gradient_comes_back_to_the_worker_that_sent(bob: Any, alice: Any) -> None:
    w = torch.ones(2, requires_grad=True)
    pointer = bob.send(w, alice, requires_grad=True)

    (pointer * 3).sum().backward()

    assert w.grad.tolist() == [3.0, 3.0]


def test_an_object_is_requested_by_its_id(x: Any, bob: Any, alice: Any) -> None:
    bob.load_data([x])

    assert alice.request_obj(x.id, bob, reason="a test").tolist() == [1.0, 2.0, 3.0]
    assert [(line.user, line.reason) for line in bob.ledger] == [("alice", "a test")]
    with pytest.raises(GetNotPermittedError, match="a claimed user name is not authentication"):
        alice.request_obj(x.id, bob, user="somebody")
    with pytest.raises(ObjectNotFoundError, match="cannot find object 'none' on worker 'bob'"):
        alice.request_obj("none", "bob")


def test_a_worker_searches_on_another_and_owns_what_it_finds(x: Any, bob: Any, alice: Any) -> None:
    bob.load_data([x.tag("#x")])

    (found,) = alice.request_search(["#x"], "bob")

    assert (found.child.owner, found.location) == (alice, bob)
    assert alice.request_search("#none", bob) == []


def test_local_objects_are_found_before_another_worker_is_asked(x: Any, bob: Any, alice: Any) -> None:
    bob.load_data([x.tag("#x")])
    (pointer,) = alice.find_or_request("#x", bob)
    assert pointer.location is bob

    alice.load_data([torch.ones(1).tag("#x")])

    assert [found.tolist() for found in alice.find_or_request("#x", bob)] == [[1.0]]


# --- knowing others


def test_workers_know_each_other_until_one_is_removed(hook: Any, me: Any, bob: Any, alice: Any) -> None:
    zoe, ann = (sy.VirtualWorker(hook, id=name, auto_add=False) for name in ("zoe", "ann"))

    assert me.add_workers([zoe, ann]) is me
    assert (bob.get_worker("zoe"), zoe.get_worker("ann"), me.get_worker("me")) == (zoe, ann, me)

    me.remove_worker_from_registry("zoe")

    for worker in (me, bob, ann):
        with pytest.raises(WorkerNotFoundError, match="cannot find worker 'zoe'"):
            worker.get_worker("zoe")
    assert sy.VirtualWorker(hook, id="zoe") is not zoe
    with pytest.raises(WorkerNotFoundError):
        me.remove_worker_from_registry("nobody")
    with pytest.raises(WorkerError, match="cannot remove worker 'me' from its own registry"):
        me.remove_worker_from_registry("me")


def test_a_worker_reports_which_frameworks_it_supports(hook: Any, bob: Any) -> None:
    assert bob.is_framework_supported("torch")
    assert not bob.is_framework_supported("a framework that nobody has")


@pytest.mark.parametrize(
    ("option", "other"),
    [
        ({"serialize": True}, {"serialize": False}),
        ({"log_msgs": True}, {"log_msgs": False}),
        ({"message_pending_time": 0.001}, {"message_pending_time": 0}),
        ({"policy": nothing}, {"policy": only_published}),
        ({"is_client_worker": True}, {"is_client_worker": False}),
        ({}, {"auto_add": False}),
    ],
)
def test_a_worker_created_again_with_another_option_is_refused(
    hook: Any, option: dict[str, Any], other: dict[str, Any]
) -> None:
    zoe = sy.VirtualWorker(hook, id="zoe", **option)

    assert sy.VirtualWorker(hook, id="zoe") is zoe
    assert sy.VirtualWorker(hook, id="zoe", **option) is zoe
    with pytest.raises(WorkerIdTakenError, match=f"cannot create worker 'zoe': .* another '{next(iter(other))}'"):
        sy.VirtualWorker(hook, id="zoe", **other)
    assert hook.local_worker.get_worker("zoe") is zoe


def test_a_worker_created_again_with_its_data_stores_it_once(hook: Any, x: Any) -> None:
    zoe = sy.VirtualWorker(hook, "zoe", [x])

    assert sy.VirtualWorker(hook, "zoe", [x]) is zoe
    assert zoe.objects_count == 1
    with pytest.raises(WorkerIdTakenError, match="another 'data'"):
        sy.VirtualWorker(hook, "zoe", [x, torch.ones(1)])


# --- what it holds


def test_any_object_can_be_loaded_found_and_counted(x: Any, bob: Any) -> None:
    table = {"a": torch.ones(2), "b": [1, 2]}
    bob.load_data([x.tag("#x"), nn.Linear(2, 1), "a text", table, ObjectWrapper(len, tags={"#x"})])
    ids = {type(value): id for id, value in bob._objects.items()}

    assert {type(found) for found in bob.search("#x")} == {type(x.send(bob)), CallablePointer}
    (module,) = bob.search(ids[nn.Linear])
    assert type(module) is ObjectPointer
    assert "ObjectPointer" in repr(module)
    (text,) = bob.search(ids[str])
    assert text.get() == "a text"
    (found,) = bob.search(ids[dict])
    fetched = found.get()
    fetched["a"].add_(1)
    assert (fetched["b"], table["a"].tolist()) == ([1, 2], [1.0, 1.0])
    assert (bob.objects_count, bob.tensors_count) == (5, 1)


def test_any_object_with_a_codec_can_be_tagged_described_and_fetched(bob: Any) -> None:
    class Table:
        """Something that nobody knows how to write."""

    model = nn.Linear(2, 1)
    bob.load_data([model, Table()])
    ids = {type(value): id for id, value in bob._objects.items()}
    (table,) = bob.search(ids[Table])

    (pointer,) = bob.request_search(ids[nn.Linear], bob)  # only bob may tag his own objects
    pointer.tag("#model").describe("a linear model")

    (found,) = bob.search(["#model", "linear"])
    assert (found.tags, found.description) == ({"#model"}, "a linear model")
    fetched = found.get()
    fetched.weight.data.zero_()
    assert model.weight.any()
    with pytest.raises(SerdeError, match="cannot serialize a"):
        table.get()
    assert bob.objects_count == 2


def test_objects_other_than_tensors_do_not_disturb_operations(bob: Any) -> None:
    class Table:
        shape = (2, 2)

    bob.load_data([Table(), nn.Linear(2, 1)])
    secret, shared = (torch.ones(2).private_tensor(users).send(bob) for users in (["me"], ["me", "ann"]))
    w = torch.ones(2, requires_grad=True).send(bob)

    shared.add_(secret)
    (w * secret).sum().backward()

    assert shared.get().child.child.tolist() == [2.0, 2.0]
    assert w.grad.shape == (2,)


def test_a_client_stores_tensors_created_while_registration_is_enabled(me: Any) -> None:
    torch.ones(1).tag("#early")

    with me.registration_enabled() as worker:
        assert worker is me
        kept = torch.tensor([1.0])
        torch.tensor([2.0], register=False)
    torch.tensor([3.0])

    assert (list(me._objects), me.is_client_worker) == ([kept.id], True)
    me.clear_objects()


def test_tagged_tensors_of_a_serving_worker_can_be_found(x: Any, bob: Any, me: Any) -> None:
    bob.register_obj(x)
    x.tag("#late").describe("tagged after it was stored")
    y = torch.ones(2)
    y.owner = bob
    y.tag("#late")
    here = torch.ones(3).tag("#late")

    assert {found.id_at_location for found in bob.search("#late")} == {x.id, y.id}
    assert [found.id_at_location for found in bob.search("after")] == [x.id]
    assert here.tags == {"#late"}
    assert me.objects_count == 0


# --- words


def test_a_verbose_worker_logs_what_it_is_asked_and_no_values(
    hook: Any, x: Any, bob: Any, alice: Any, caplog: pytest.LogCaptureFixture
) -> None:
    hook.set_verbose(True)
    with caplog.at_level(logging.INFO, logger="syft_core.workers"):
        p = (x * 12345).send(bob)
        (p + 1).get()
        alice.search("#none")
    hook.set_verbose(False)

    lines = [record.getMessage() for record in caplog.records]
    assert any(line == f"worker 'bob': me requests add {p.id_at_location}" for line in lines)
    assert any(line.startswith("worker 'alice': me requests search") for line in lines)
    assert "12345" not in "".join(lines).replace(str(p.id_at_location), "")
    assert not bob.verbose


def test_messages_are_kept_if_requested(hook: Any, x: Any) -> None:
    zoe = sy.VirtualWorker(hook, id="zoe", log_msgs=True)

    x.send(zoe).get()

    assert [type(message).__name__ for message in zoe.msg_history] == ["Store", "Fetch"]


# --- names of tensors and layers


def test_a_tensor_is_given_its_owner_and_id(hook: Any, me: Any, bob: Any, x: Any) -> None:
    assert initialize_tensor(hook, x, owner=bob, id="x") is x
    assert (x.owner, x.id) == (bob, "x")
    assert initialize_tensor(hook, torch.ones(1)).owner is me


def test_the_type_and_the_gradient_of_what_a_pointer_points_to(x: Any, bob: Any) -> None:
    p = x.requires_grad_().send(bob)

    assert p.torch_type() == x.torch_type() == "torch.FloatTensor"
    assert p.set_grad(torch.zeros(3).send(bob)) is p
    assert p.grad.get().tolist() == [0.0, 0.0, 0.0]


def test_a_tensor_becomes_an_array_that_can_be_sent(x: Any, bob: Any, numpy_hook: Any) -> None:
    array = x.numpy_tensor()

    assert (array.tolist(), str(array.dtype)) == ([1.0, 2.0, 3.0], "float32")
    assert (array + 1).send(bob).get().tolist() == [2.0, 3.0, 4.0]
    assert (sy.LoggingTensor().on(array) + 1).child.child.tolist() == [2.0, 3.0, 4.0]
    with pytest.raises(TypeError, match="fetch it first"):
        x.send(bob).numpy_tensor()


def test_an_array_needs_its_hook(x: Any) -> None:
    with pytest.raises(WorkerNotFoundError, match="cannot run numpy on worker 'me': it is not hooked there"):
        x.numpy_tensor()


def test_a_bare_layer_above_a_pointer_fetches_too(x: Any, bob: Any, alice: Any) -> None:
    layer = sy.LoggingTensor().on(x.send(bob).send(alice).child, wrap=False)

    assert layer.mid_get() is layer
    assert repr(layer.get()) == "LoggingTensor>tensor([1., 2., 3.])"
    with pytest.raises(AttributeError, match="cannot read 'get' of a LoggingTensor: it has no child"):
        sy.LoggingTensor().get()


def test_a_chain_serializes_itself(x: Any) -> None:
    for link in (x, sy.LoggingTensor().on(x), sy.LoggingTensor().on(x).child):
        assert repr(sy.serde.deserialize(link.serialize())) == repr(sy.serde.deserialize(link.ser())) == repr(link)
