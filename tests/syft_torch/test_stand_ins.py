from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from syft_torch.stand_ins import STAND_INS, set_values, stand_in

TENSORS = {
    "vector": lambda: torch.full((3,), 7.0),
    "number": lambda: torch.tensor(7.0),
    "transposed": lambda: torch.full((2, 3), 7.0).T,
    "expanded": lambda: torch.full((2,), 7.0).expand(3, 2),
    "overlapping": lambda: torch.full((6,), 7.0).unfold(0, 3, 1),
    "empty": lambda: torch.full((0, 3), 7.0),
    "integers": lambda: torch.full((2, 2), 7),
    "flags": lambda: torch.ones(2, dtype=torch.bool),
    "complex": lambda: torch.full((2, 2), 7.0j),
    "learning": lambda: torch.full((3, 2), 7.0, requires_grad=True),
    "result": lambda: torch.full((3, 2), 7.0, requires_grad=True) * 1,
    "sparse": lambda: torch.full((2, 2), 7.0).to_sparse(),
}


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("number", range(STAND_INS))
def test_a_stand_in_has_the_form_of_a_tensor_and_none_of_its_values(name: str, number: int) -> None:
    tensor = TENSORS[name]()

    made = stand_in(tensor, number)

    for fact in ("shape", "dtype", "layout", "device", "requires_grad"):
        assert getattr(made, fact) == getattr(tensor, fact)
    if made.layout is torch.strided:
        assert made.stride() == tensor.stride()
    assert tensor.dtype is torch.bool or not made.to_dense().abs().eq(7).any()


def test_a_gradient_goes_through_a_stand_in_as_zeros() -> None:
    tensor = torch.full((2, 2), float("nan"), requires_grad=True)

    torch.linalg.inv(stand_in(tensor, 0)).sum().backward()

    assert tensor.grad.eq(0).all()


def test_a_square_stands_in_for_what_has_an_inverse_and_fractions_for_what_gets_another_shape() -> None:
    square, cube = torch.zeros(2, 3, 3), torch.zeros(2, 3, 6)
    set_values(square, 0)
    set_values(cube, 2)

    assert torch.linalg.cholesky(square).equal(square)
    assert torch.linalg.tensorinv(cube).shape == (6, 2, 3)
    assert ((cube > 0) & (cube < 1)).all()
