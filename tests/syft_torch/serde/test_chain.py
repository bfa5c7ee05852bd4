from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import SerdeError  # noqa: E402
from syft_core.serde import deserialize, frames, from_frames, serialize  # noqa: E402
from syft_core.tensors.abstract import AbstractTensor  # noqa: E402
from syft_core.tensors.codecs import register_layer_codec  # noqa: E402
from syft_core.tensors.logging import LoggingTensor  # noqa: E402
from syft_core.tensors.plus_is_minus import PlusIsMinusTensor  # noqa: E402
from syft_core.tensors.polynomial import PolynomialTensor  # noqa: E402
from syft_torch.wrapper import Wrapper  # noqa: E402

pytestmark = pytest.mark.usefixtures("hook")


def test_a_chain_is_preserved() -> None:
    x = LoggingTensor().on(PlusIsMinusTensor().on(torch.tensor([5.0, 7.0], id=3)))
    x.tag("#x").describe("two numbers")

    received = deserialize(serialize(x))

    assert str(received) == str(x)
    assert (received.id, received.tags, received.description) == (3, {"#x"}, "two numbers")
    assert (received + 1).child.child.child.tolist() == [4.0, 6.0]


def test_the_data_of_a_large_chain_is_sent_as_a_buffer() -> None:
    x = LoggingTensor().on(torch.zeros(1000))
    parts = frames(x)
    assert len(parts) == 2
    assert from_frames(parts).child.child.shape == (1000,)


def test_a_parameter_on_a_chain_stays_a_parameter() -> None:
    parameter = torch.nn.Parameter(LoggingTensor().on(torch.ones(2)))
    parameter.sum().backward()

    received = deserialize(serialize(parameter))

    assert isinstance(received, torch.nn.Parameter)
    assert received.requires_grad
    assert received.grad.child.child.tolist() == [1.0, 1.0]


def test_a_parameter_inside_a_chain_stays_a_parameter() -> None:
    received = deserialize(serialize(LoggingTensor().on(torch.nn.Parameter(torch.ones(2)))))
    assert type(received.child.child) is torch.nn.Parameter


def test_a_module_whose_parameters_are_chains_can_be_sent() -> None:
    model = torch.nn.Linear(2, 1)
    model.weight = torch.nn.Parameter(LoggingTensor().on(model.weight.detach()))
    received = deserialize(serialize(model))
    assert torch.equal(received.weight.child.child, model.weight.child.child)


def test_attributes_of_a_layer_are_sent() -> None:
    x = PolynomialTensor(precision=3).on(torch.ones(1))
    x.child.add_function("cube", 3, [[0, 1]], lambda v: v**3)
    received = deserialize(serialize(x)).child
    assert received.get_class_attributes() == x.child.get_class_attributes()


def test_a_layer_with_a_function_is_refused() -> None:
    with pytest.raises(SerdeError, match="cannot serialize a function"):
        serialize(PolynomialTensor(function=lambda c: c).on(torch.ones(1)))


def test_a_layer_without_a_codec_is_refused_with_advice() -> None:
    class LocalTensor(AbstractTensor):
        pass

    from syft_core.hook import hook_args  # noqa: PLC0415

    hook_args.default_register_tensor(LocalTensor)
    with pytest.raises(SerdeError, match="cannot serialize a .*LocalTensor: it has no codec"):
        serialize(LocalTensor().on(torch.ones(1)))


def test_one_line_registers_a_codec_for_a_users_layer() -> None:
    class TravellingTensor(AbstractTensor):
        pass

    from syft_core.hook import hook_args  # noqa: PLC0415

    hook_args.default_register_tensor(TravellingTensor)
    register_layer_codec(TravellingTensor, code=7_901)
    received = deserialize(serialize(TravellingTensor().on(torch.ones(1))))
    assert type(received.child) is TravellingTensor


@pytest.mark.parametrize(
    "payload",
    [
        (False, {}, 5),
        (False, {"id": []}, torch.ones(1)),
        (False, {"owner": 1}, torch.ones(1)),
        ("yes", {}, torch.ones(1)),
        (False, {}),
    ],
)
def test_a_forged_wrapper_is_refused(payload: Any) -> None:
    from syft_core.serde import codecs  # noqa: PLC0415

    with pytest.raises((SerdeError, ValueError)):
        codecs.for_type(Wrapper).detail(list(payload), None)
