from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_torch.native import TorchTensor  # noqa: E402


@pytest.fixture
def x(hook: Any) -> Any:
    return torch.tensor([1.0, 2.0]).tag("#x").describe("two")


def test_a_copy_has_its_own_memory_and_id_and_the_words(x: Any) -> None:
    made = x.copy()
    made[0] = 5.0

    assert x.tolist() == [1.0, 2.0]
    assert made.id != x.id
    assert (made.tags, made.description) == ({"#x"}, "two")


def test_a_copy_on_a_worker_has_no_tags(x: Any, bob: Any) -> None:
    sent = x.send(bob)

    made = sent.copy()

    assert made.location is bob
    assert made.tags == set()
    assert bob.objects_count == 2


def test_a_tensor_tells_its_form_under_the_names_of_the_ancestor(x: Any, bob: Any) -> None:
    assert x.native_shape == torch.Size([2])
    assert x.get_class_attributes() == {"type": torch.float32}
    assert x.torch_type() == "torch.FloatTensor"
    assert x.send(bob).torch_type() == "torch.FloatTensor"


def test_a_gradient_is_set_and_the_tensor_returned(x: Any) -> None:
    x.requires_grad_()

    assert x.set_grad(torch.ones(2)) is x
    assert x.grad.tolist() == [1.0, 1.0]
    assert x.set_grad(None).grad is None


def test_an_array_shares_the_memory(x: Any) -> None:
    numpy = pytest.importorskip("numpy")
    from syft_numpy.hook import NumpyHook  # noqa: PLC0415  # numpy may be missing

    with NumpyHook(numpy):
        array = x.numpy_tensor()
        array[0] = 9.0

    assert x[0].item() == 9.0


def test_no_method_of_torch_is_replaced(hook: Any) -> None:
    hook.unhook()

    own = {name for name in vars(TorchTensor) if not name.startswith("__")}
    assert not own & set(dir(torch.Tensor))
