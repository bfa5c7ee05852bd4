from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
import torch

from syft_core.exceptions import (
    AlreadyRetrievedError,
)


@pytest.fixture
def x(hook: Any) -> Any:
    return torch.tensor([1.0, 2.0, 3.0])


def test_the_clone_of_a_pointer_is_a_second_pointer_to_the_same_object(x: Any, bob: Any) -> None:
    p = x.send(bob)
    second = p.child.clone()
    id = p.id_at_location

    del p

    assert second.id_at_location == id
    assert second.get().tolist() == [1.0, 2.0, 3.0]


def test_the_flag_can_be_read_and_set_under_all_its_names(x: Any, bob: Any) -> None:
    p = x.send(bob)
    assert (p.gc, p.garbage_collection) == (True, True)

    p.gc = False
    assert p.garbage_collection is False
    p.garbage_collection = True
    assert p.gc is True
    p.child.set_garbage_collect_data(False)
    assert p.gc is False
    p.gc = True
    assert p.disable_gc is p
    assert p.gc is False
    del p

    assert bob.objects_count == 1


def test_an_object_can_outlive_its_pointers(x: Any, bob: Any) -> None:
    x.send(bob, garbage_collect_data=False)

    assert bob.objects_count == 1


def test_a_pointer_to_an_attribute_has_its_form_or_is_none(x: Any, bob: Any) -> None:
    p = x.requires_grad_().send(bob)
    grad = p.attr("grad").child
    assert grad.is_none()

    p.sum().backward()

    assert not grad.is_none()
    assert (p.child.get_shape(), grad.get_shape()) == ((3,), (3,))


def test_the_pointer_to_a_gradient_holds_the_object(x: Any, bob: Any) -> None:
    p = x.requires_grad_().send(bob)
    (p * p).sum().backward()
    gradient, data = p.grad, p.data
    del p

    assert gradient.get().tolist() == [2.0, 4.0, 6.0]
    assert (data + 1).get().tolist() == [2.0, 3.0, 4.0]


def test_a_pointer_to_the_gradient_of_a_fetched_object_raises(x: Any, bob: Any) -> None:
    p = x.requires_grad_().send(bob)
    (p * p).sum().backward()
    gradient = p.grad
    p.get()

    with pytest.raises(AlreadyRetrievedError):
        gradient + 1


def test_only_gradients_can_be_pointed_to(x: Any, bob: Any) -> None:
    with pytest.raises(TypeError, match="cannot run \"reading '__class__'\""):
        x.send(bob).attr("__class__").get()
