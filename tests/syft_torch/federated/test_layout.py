from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from syft_torch.federated.layout import MAX_COUNT, Layout, Remade  # noqa: E402  # torch may be missing


def make_tensors(dtype: Any) -> list[Any]:
    return [torch.randn(2, 3).to(dtype), torch.randn(4).to(dtype), torch.tensor(MAX_COUNT), torch.tensor([True, False])]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_tensors_come_back_with_all_bits(dtype: Any) -> None:
    tensors = make_tensors(dtype)
    layout = Layout(tensors, 1)

    found = layout.split(layout.join(tensors))

    assert all(map(torch.equal, found, tensors))
    assert [tensor.dtype for tensor in found] == [tensor.dtype for tensor in tensors]
    assert layout.dtype == torch.promote_types(dtype, torch.float32)


def test_parameters_come_first_then_statistics_then_counts() -> None:
    tensors = make_tensors(torch.float32)
    layout = Layout(tensors, 1)
    flat = layout.join(tensors)

    assert torch.equal(flat[: layout.parameters], tensors[0].reshape(-1))
    assert torch.equal(flat[layout.statistics], tensors[1])
    assert flat[layout.counts].tolist() == [MAX_COUNT, 1, 0]


def test_without_a_number_all_tensors_are_parameters() -> None:
    layout = Layout([torch.zeros(2), torch.zeros(())])

    assert (layout.parameters, layout.statistics, layout.counts) == (3, slice(3, 3), slice(3, 3))


def test_tensors_of_one_dtype_are_views() -> None:
    layout = Layout([torch.zeros(2), torch.zeros(3)])
    flat = torch.zeros(5)

    layout.split(flat)[1].fill_(1)

    assert flat.tolist() == [0, 0, 1, 1, 1]


def test_a_change_of_one_tensor_is_no_change_of_another_for_autograd() -> None:
    weight, mean = Layout([torch.zeros(2), torch.zeros(3)], 1).split_apart(torch.ones(5))
    weight.requires_grad_()
    loss = (weight * weight).sum()

    mean.mul_(2)
    loss.backward()

    assert weight.grad.tolist() == [2, 2]


def test_a_change_of_a_tensor_is_a_change_of_the_flat_one() -> None:
    flat = torch.zeros(5)

    Layout([torch.zeros(2), torch.zeros(3)], 1).split_apart(flat)[1].fill_(1)

    assert flat.tolist() == [0, 0, 1, 1, 1]


def test_a_tensor_is_shared_while_somebody_has_it_and_made_again_later() -> None:
    made = []

    def make() -> Any:
        made.append(1)
        return torch.ones(2)

    find = Remade(make)
    first = find()

    assert find() is first
    del first
    assert find().tolist() == [1.0, 1.0]
    assert len(made) == 2
