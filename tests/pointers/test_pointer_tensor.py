from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("torch")
import torch

from syft_core.exceptions import (
    InvalidTensorForRemoteGetError,
)
from syft_core.pointers.pointer_tensor import PointerTensor


@pytest.fixture
def x(hook: Any) -> Any:
    return torch.tensor([1.0, 2.0, 3.0])


def test_remote_send_leaves_a_pointer_behind_and_remote_get_undoes_it(x: Any, bob: Any, alice: Any) -> None:
    p = x.send(bob)

    assert p.remote_send(alice) is p
    assert (p.location, bob.objects_count, alice.objects_count) == (bob, 1, 1)
    assert bob.get_obj(p.id_at_location).location is alice
    doubled = (p + p).get()
    assert doubled.location is alice
    assert doubled.get().tolist() == [2.0, 4.0, 6.0]

    assert p.remote_get() is p
    assert (bob.objects_count, alice.objects_count) == (1, 0)
    assert p.get().tolist() == [1.0, 2.0, 3.0]


def test_remote_get_of_data_is_refused(x: Any, bob: Any) -> None:
    with pytest.raises(InvalidTensorForRemoteGetError, match="it is not a pointer, the data is there"):
        x.send(bob).mid_get()


def test_a_pointer_to_a_pointer_can_be_copied(x: Any, bob: Any, alice: Any) -> None:
    pp = x.send(bob).send(alice)

    twin = copy.deepcopy(pp)
    twin.add_(1)
    del twin

    assert pp.get().get().tolist() == [1.0, 2.0, 3.0]


def test_copy_and_clone_and_deepcopy_make_another_object_there(x: Any, bob: Any) -> None:
    p = x.send(bob)

    for twin in (p.copy(), p.clone(), copy.deepcopy(p)):
        twin.add_(1)
        assert twin.get().tolist() == [2.0, 3.0, 4.0]

    assert p.get().tolist() == [1.0, 2.0, 3.0]


def test_a_gradient_is_a_pointer_that_can_be_read_as_often_as_wanted(x: Any, bob: Any) -> None:
    p = x.requires_grad_().send(bob)
    assert p.grad is None
    (p * p).sum().backward()

    assert "::grad] shape (3,)" in repr(p.grad)
    assert p.attr("grad").get().tolist() == [2.0, 4.0, 6.0]
    assert p.grad.get().tolist() == p.grad.clone().get().tolist() == p.grad.copy().get().tolist() == [2.0, 4.0, 6.0]
    assert p.get().grad.tolist() == [2.0, 4.0, 6.0]


def test_a_bare_pointer_has_the_api_of_a_tensor(x: Any, bob: Any) -> None:
    pointer = x.requires_grad_().send(bob).child

    (pointer * 2).sum().backward()

    assert type(pointer.sum()) is PointerTensor
    assert (pointer.numel(), pointer.size(), pointer.requires_grad, pointer.dim()) == (3, (3,), True, 1)
    assert pointer.grad.get().tolist() == [2.0, 2.0, 2.0]
    assert (pointer.data + 1).get().tolist() == [2.0, 3.0, 4.0]
    assert [type(row) for row in pointer] == [PointerTensor] * 3
    assert "matmul" in dir(pointer)
    with pytest.raises(TypeError, match="it would implicitly reveal a value"):
        pointer.item()
