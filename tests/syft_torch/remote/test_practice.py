"""Programs of practitioners give the same bits on pointers as locally: in process, by wire and on private data."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import ValueRefusedError, WrapperLeakError  # noqa: E402
from syft_core.hook.chain import plain_below  # noqa: E402

from .practice import PROGRAMS, net  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

DRAWN_FROM_PRIVATE_DATA = {"vae", "dropout_mc", "diffusion", "gumbel"}
"""A worker draws numbers for private data from a generator of its own."""
REFUSED_ON_PRIVATE_DATA = {"orthogonal": "torch.matrix_exp", "reinforce": "torch.multinomial"}


class Local:
    """Where a program gets its data and models."""

    def send(self, x: Any) -> Any:
        return x

    model = send

    def read(self, x: Any) -> Any:
        return x.detach().clone()


class Remote(Local):
    def __init__(self, bob: Any) -> None:
        self.bob = bob

    def send(self, x: Any) -> Any:
        return x.send(self.bob)

    model = send

    def read(self, x: Any) -> Any:
        return x.copy().get().detach()


class Private(Remote):
    """The data is private, and the owner looks at the results."""

    def send(self, x: Any) -> Any:
        tag = f"#{self.bob.objects_count}"
        self.bob.load_data([x.private_tensor([]).tag(tag)])
        return self.bob.search(tag)[-1].copy()

    def read(self, x: Any) -> Any:
        return plain_below(self.bob.get_obj(x.copy().id_at_location)).detach()


def run(name: str, place: Local) -> list[Any]:
    torch.manual_seed(0)
    return [place.read(result) for result in PROGRAMS[name](place)]


def are_same(expected: list[Any], found: list[Any]) -> bool:
    return len(expected) == len(found) and all(map(torch.equal, expected, found))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_same_bits_as_locally(name: str, bob: Any) -> None:
    assert are_same(run(name, Local()), run(name, Remote(bob)))


@pytest.mark.parametrize(
    "name", [n for n in PROGRAMS if n not in DRAWN_FROM_PRIVATE_DATA | REFUSED_ON_PRIVATE_DATA.keys()]
)
def test_a_program_gives_the_same_bits_on_private_data(name: str, bob: Any) -> None:
    assert are_same(run(name, Local()), run(name, Private(bob)))


@pytest.mark.parametrize("name", REFUSED_ON_PRIVATE_DATA)
def test_what_is_not_reviewed_is_refused_by_name(name: str, bob: Any) -> None:
    with pytest.raises(ValueRefusedError, match=REFUSED_ON_PRIVATE_DATA[name]):
        run(name, Private(bob))


@pytest.mark.parametrize("transform", [torch.func.jacrev, torch.func.vmap, torch.func.hessian])
def test_a_transform_of_functions_is_refused_with_another_way(transform: Any, bob: Any) -> None:
    with pytest.raises(WrapperLeakError, match="torch.autograd.functional"):
        transform(lambda x: x.sin().sum())(torch.randn(3, 2).send(bob))


def test_layers_that_are_added_to_a_remote_model_are_sent_with_it(bob: Any, alice: Any) -> None:
    model, expected, x = net().send(bob), net(), torch.randn(2, 4)
    expected.load_state_dict(model.copy().get().state_dict())
    torch.manual_seed(0)
    model[1] = torch.nn.Linear(8, 8)
    torch.manual_seed(0)
    expected[1] = torch.nn.Linear(8, 8)

    model.send(bob)

    assert torch.equal(model(x.send(bob)).get(), expected(x).detach())
    model.append(torch.nn.Linear(3, 1))
    assert {p.location.id for p in model.move(alice).parameters()} == {"alice"}
    assert model.send(alice) is model


def test_numbers_that_get_dimensions_in_a_block_are_sent(bob: Any) -> None:
    with bob:
        number = torch.tensor(3)
        made = [
            number.unsqueeze(0),
            number[None],
            torch.stack([number, number]),
            number.expand(2),
            torch.normal(0.0, 1.0, (2,)),
        ]

    assert number.location is None
    assert {each.location.id for each in made} == {"bob"}


def test_a_function_creates_tensors_where_the_graph_is(bob: Any) -> None:
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * torch.full((3,), 2.0)

    x = torch.ones(3).send(bob).requires_grad_()

    Scale.apply(x).sum().backward()

    assert x.grad.get().tolist() == [2.0, 2.0, 2.0]


@pytest.mark.skipif(torch.__version__.startswith("2.4."), reason="this torch ignores the protocol for sizes")
def test_a_tensor_is_created_where_its_size_is(bob: Any) -> None:
    size = torch.tensor(3).send(bob)

    assert torch.zeros(size).get().tolist() == [0.0, 0.0, 0.0]
    assert torch.ones(2, size).shape == (2, 3)


def test_a_tensor_is_converted_where_it_is(bob: Any) -> None:
    x = torch.ones(2).send(bob)

    converted = torch.as_tensor(x, dtype=torch.float64, device="cpu")

    assert converted.dtype is torch.float64
    assert converted.get().tolist() == [1.0, 1.0]
    with pytest.raises(WrapperLeakError, match="call a method of the tensor instead"):
        torch.as_tensor(x.requires_grad_(), dtype=torch.float64)
    with torch.no_grad():
        assert torch.as_tensor(x, dtype=torch.float64).get().tolist() == [1.0, 1.0]
