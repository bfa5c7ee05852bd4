"""Regression tests for programs written for PySyft 0.2."""

from __future__ import annotations

import copy
import gc
import io
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402
from syft_core.exceptions import ValueRefusedError  # noqa: E402
from syft_torch.hook import TorchHook  # noqa: E402


def test_a_tensor_that_a_worker_owns_can_be_copied_and_saved(bob: Any) -> None:
    data = torch.ones(3)
    bob.load_data([data])

    twin = copy.deepcopy(data)
    file = io.BytesIO()
    torch.save(data, file)
    file.seek(0)

    assert (data.owner is bob, twin.tolist()) == (True, [1.0] * 3)
    assert torch.load(file, weights_only=True).tolist() == [1.0] * 3


def test_a_model_of_a_worker_that_keeps_what_it_makes_can_be_averaged() -> None:
    with TorchHook(torch, is_client=False):
        net = torch.nn.Linear(2, 1)
        net.weight.tag("#weight")

        averaged = torch.optim.swa_utils.AveragedModel(net)

        assert averaged.module.weight.equal(net.weight)


def test_a_result_knows_its_id_and_its_owner(bob: Any) -> None:
    q = torch.ones(2).send(bob) + 1

    v = bob.get_obj(q.id_at_location)
    v.tag("#m")

    assert (v.id, v.owner) == (q.id_at_location, bob)
    assert [found.id_at_location for found in bob.search("#m")] == [q.id_at_location]


def test_a_pointer_to_several_workers_can_be_sent(bob: Any, alice: Any, me: Any, hook: Any, serialize: bool) -> None:
    carol = sy.VirtualWorker(hook, id="carol", serialize=serialize)
    both = torch.ones(2).send(bob, alice)

    p = both.send(carol)

    assert (p + 1).get().get(sum_results=True).tolist() == [4.0, 4.0]


def test_the_frameworks_of_a_worker_can_be_listed_and_tried(bob: Any) -> None:
    assert "torch" in dir(bob.remote)
    assert hasattr(bob.remote, "torch")
    assert not hasattr(bob.remote, "x")
    with pytest.raises(AttributeError, match="cannot create tensors of 'jax' on worker 'bob'"):
        bob.remote.jax  # noqa: B018


def test_an_object_sent_without_a_pointer_has_an_id(bob: Any, alice: Any) -> None:
    id = bob.send(torch.ones(1), alice, create_pointer=False)

    assert alice.get_obj(id).tolist() == [1.0]


def test_a_refused_value_is_an_error_of_the_framework_too(bob: Any) -> None:
    p = torch.ones(2).send(bob)

    for call in (p.item, p.tolist, lambda: bool(p.sum())):
        with pytest.raises(RuntimeError) as caught:
            call()
        assert isinstance(caught.value, ValueRefusedError)


def test_a_send_that_fails_leaves_no_lease_behind(bob: Any, alice: Any) -> None:
    p, x = torch.ones(2).send(bob), torch.ones(2, requires_grad=True)
    held = bob.object_store.entry(p.id_at_location)
    alice.object_store.put = refuse

    for call in (lambda: p.send(alice), lambda: x.send(alice, requires_grad=True)):
        with pytest.raises(RuntimeError, match="the disk is full"):
            call()

    gc.collect()
    assert (bob.objects_count, alice.objects_count, held.pointers) == (1, 0, 1)
    assert x.owner.objects_count == 0


def refuse(*_args: Any) -> None:
    raise RuntimeError("the disk is full")


def test_frameworks_are_known_without_a_worker(hook: Any) -> None:
    assert sy.VirtualWorker.is_framework_supported("torch")
    assert not sy.VirtualWorker.is_framework_supported("jax")


def test_a_worker_and_a_user_of_the_same_name_are_different(bob: Any, me: Any) -> None:
    bob.load_data([torch.ones(2).private_tensor(["board"]).tag("#minutes")])
    (minutes,) = bob.search("#minutes")
    me.user = None

    with pytest.raises(PermissionError):
        minutes.copy().get()
    me.user = "board"
    assert minutes.copy().get().child.allowed_users == {"board"}
