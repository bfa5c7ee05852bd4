from __future__ import annotations

import copy
import logging
import pickle
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402, N812
from torch import nn  # noqa: E402

from syft_core.exceptions import MixedLayersError, OperationNotAllowedError, SerdeError, WrapperLeakError  # noqa: E402
from syft_core.hook import hook_args  # noqa: E402
from syft_core.hook.overload import overloaded  # noqa: E402
from syft_core.pointers.pointer_tensor import PointerTensor  # noqa: E402
from syft_core.serde import deserialize, serialize  # noqa: E402
from syft_core.tensors.codecs import register_layer_codec  # noqa: E402
from syft_core.tensors.logging import LoggingTensor  # noqa: E402
from syft_core.tensors.numeric import NumericTensor  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_torch.hook import TorchHook  # noqa: E402
from syft_torch.numeric import NumericWrapper  # noqa: E402
from syft_torch.wrapper import Wrapper  # noqa: E402

from .test_hook import everything_in_torch  # noqa: E402

pytestmark = pytest.mark.usefixtures("hook")


class FixedPoint(NumericTensor):
    """Real numbers as int64, scaled by a power of two; rules work on the integers."""

    dtype = torch.float32

    def __init__(self, bits: int = 24, **identity: Any) -> None:
        super().__init__(**identity)
        self.bits = bits

    def get_class_attributes(self) -> dict[str, Any]:
        return {"bits": self.bits}

    def encode(self, plain: Any) -> Any:
        return (plain.detach().double() * 2**self.bits).round().long()

    def decode(self, encoding: Any) -> Any:
        return (encoding.double() / 2**self.bits).float()

    def scale(self, other: Any) -> Any:
        return round(other * 2**self.bits) if isinstance(other, int | float) else other

    @overloaded.method
    def add(self, _self: Any, other: Any, *, alpha: float = 1) -> Any:
        return self.scale(_self) + (self.scale(other) * self.scale(alpha) >> self.bits)

    @overloaded.method
    def sub(self, _self: Any, other: Any, *, alpha: float = 1) -> Any:
        return self.scale(_self) - (self.scale(other) * self.scale(alpha) >> self.bits)

    @overloaded.method
    def mul(self, _self: Any, other: Any) -> Any:
        return self.scale(_self) * self.scale(other) >> self.bits

    @overloaded.method
    def div(self, _self: Any, other: Any) -> Any:
        return (_self << self.bits) // self.scale(other)

    @overloaded.method
    def mm(self, _self: Any, other: Any) -> Any:
        return _self.mm(other) >> self.bits

    @overloaded.method
    def addmm(self, _self: Any, one: Any, other: Any) -> Any:
        return _self + (one.mm(other) >> self.bits)

    @overloaded.method
    def sum(self, _self: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        return _self.sum(dim, keepdim)

    @overloaded.method
    def mse_loss(self, _self: Any, target: Any, reduction: int = 1) -> Any:
        return ((_self - target) ** 2).sum() // _self.numel() >> self.bits

    @overloaded.method
    def mse_loss_backward(self, gradient: Any, _self: Any, target: Any, reduction: int) -> Any:
        return (gradient * 2 * (_self - target) >> self.bits) // _self.numel()

    @overloaded.method
    def t(self, _self: Any) -> Any:
        return _self.t()

    @overloaded.method
    def view(self, _self: Any, size: Any) -> Any:
        return _self.view(size)

    @overloaded.method
    def expand(self, _self: Any, size: Any) -> Any:
        return _self.expand(size)

    @overloaded.method
    def clone(self, _self: Any, *, memory_format: Any = torch.preserve_format) -> Any:
        return _self.clone(memory_format=memory_format)

    @overloaded.method
    def new_empty_strided(self, _self: Any, size: Any, stride: Any, **_options: Any) -> Any:
        return _self.new_empty_strided(size, stride)

    @overloaded.method
    def ones_like(self, _self: Any, **_options: Any) -> Any:
        return torch.full_like(_self, 2**self.bits)

    @overloaded.method
    def zeros_like(self, _self: Any, **_options: Any) -> Any:
        return torch.zeros_like(_self)

    @overloaded.method
    def zero(self, _self: Any) -> Any:
        return torch.zeros_like(_self)

    # Additional operations for Adam; a real layer would not decode.

    @overloaded.method
    def sqrt(self, _self: Any) -> Any:
        return self.encode(self.decode(_self).sqrt())

    @overloaded.method
    def lerp(self, _self: Any, end: Any, weight: float) -> Any:
        return _self + ((end - _self) * self.scale(weight) >> self.bits)

    @overloaded.method
    def addcmul(self, _self: Any, one: Any, other: Any, *, value: float = 1) -> Any:
        return self.encode(self.decode(_self).addcmul(self.decode(one), self.decode(other), value=value))

    @overloaded.method
    def addcdiv(self, _self: Any, one: Any, other: Any, *, value: float = 1) -> Any:
        return self.encode(self.decode(_self).addcdiv(self.decode(one), self.decode(other), value=value))


hook_args.default_register_tensor(FixedPoint)
register_layer_codec(FixedPoint, code=1890)


def fix(plain: Any, bits: int = 24) -> Any:
    layer = FixedPoint(bits)
    return layer.on(layer.encode(plain))


def decode_end(wrapper: Any) -> Any:
    layer = wrapper.child
    while not isinstance(layer, FixedPoint):
        layer = layer.child
    return layer.decode(layer.child)


def assert_decodes_to(wrapper: Any, expected: Any, tolerance: float = 1e-5) -> None:
    assert type(wrapper) is NumericWrapper
    torch.testing.assert_close(decode_end(wrapper), expected, atol=tolerance, rtol=tolerance)


def encode_copy(model: nn.Module) -> nn.Module:
    twin = copy.deepcopy(model)
    for name, parameter in list(twin.named_parameters()):
        setattr(twin, name, nn.Parameter(fix(parameter)))
    return twin


def test_a_numeric_wrapper_has_the_form_of_the_values_and_not_of_the_encoding() -> None:
    x = fix(torch.randn(2, 3))

    assert (type(x), x.dtype, x.shape, x.device) == (NumericWrapper, torch.float32, (2, 3), torch.device("cpu"))
    assert (x.is_cpu, x.is_meta, x.is_floating_point()) == (True, False, True)
    assert x.child.child.dtype is torch.int64
    assert x.t().stride() == (1, 3)
    assert type(LoggingTensor().on(torch.ones(2))) is Wrapper


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x + y,
        lambda x, y: x - 2 * y,
        lambda x, y: 1 - x,
        lambda x, y: x * y / 4,
        lambda x, y: x @ y.t(),
        lambda x, y: x.sum(0) + y.sum(),
        lambda x, y: x.reshape(-1).view(3, 2),
    ],
)
def test_one_rule_handles_every_spelling_with_encoded_and_plain_operands(function: Any) -> None:
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    expected = function(x, y)

    assert_decodes_to(function(fix(x), fix(y)), expected)
    assert_decodes_to(function(fix(x), y), expected)
    with torch.inference_mode():  # There torch does not take its composite functions apart.
        assert_decodes_to(function(fix(x), fix(y)), expected)


@pytest.mark.parametrize("other", [True, False], ids=["encoded", "plain"])
def test_gradients_of_broadcasting_match_torch(other: bool) -> None:
    x, y = torch.randn(4, 3, requires_grad=True), torch.randn(3, requires_grad=True)
    ((x * y + y) * y).sum().backward()
    a = fix(x).requires_grad_()
    b = fix(y).requires_grad_() if other else y.detach()

    ((a * b + b) * b).sum().backward()

    assert_decodes_to(a.grad, x.grad)
    if other:
        assert_decodes_to(b.grad, y.grad)


def test_gradients_accumulate_and_can_be_cleared() -> None:
    x = fix(torch.ones(2)).requires_grad_()
    for _ in range(3):
        (x * 2).sum().backward()
    assert_decodes_to(x.grad, torch.full((2,), 6.0))

    torch.optim.SGD([x], lr=1.0).zero_grad(set_to_none=False)
    assert_decodes_to(x.grad, torch.zeros(2))
    torch.optim.SGD([x], lr=1.0).zero_grad()
    assert x.grad is None


def test_second_derivatives_and_functional_gradients_match_torch() -> None:
    x = fix(torch.tensor([2.0, 3.0])).requires_grad_()
    (first,) = torch.autograd.grad((x * x * x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)

    assert_decodes_to(second, torch.tensor([12.0, 18.0]))
    assert_decodes_to(torch.func.grad(lambda v: (v * v).sum())(x.detach()), torch.tensor([4.0, 6.0]))


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (torch.optim.SGD, {"lr": 0.1}),
        (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
        (torch.optim.Adam, {"lr": 0.05, "eps": 1e-3}),
    ],
    ids=["SGD", "momentum", "Adam"],
)
def test_stock_backward_and_stock_optimizers_train_a_linear_model(make: Any, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    plain = nn.Linear(3, 1)
    encoded = encode_copy(plain)
    x = torch.randn(16, 3)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5]]) + 0.3
    losses = []
    for model, data in ((plain, x), (encoded, fix(x))):
        optimizer = make(model.parameters(), **options)
        for _ in range(40):
            optimizer.zero_grad()
            loss = F.mse_loss(model(data), y if model is plain else fix(y))
            losses.append(loss.detach())
            loss.backward()
            optimizer.step()

    assert_decodes_to(losses[-1], losses[39], tolerance=1e-3)
    assert losses[39] < losses[0] / 10
    assert_decodes_to(encoded.weight, plain.weight.detach(), tolerance=1e-3)
    assert_decodes_to(encoded.bias, plain.bias.detach(), tolerance=1e-3)
    assert encoded.weight.child.child.dtype is torch.int64


def test_views_and_detached_tensors_see_in_place_changes() -> None:
    x = fix(torch.zeros(2, 2))
    view, shared = x.view(4), x.detach()

    x.add_(1)
    view.mul_(3)

    for seen in (x, shared, view.view(2, 2)):
        assert_decodes_to(seen, torch.full((2, 2), 3.0))
    assert x.add_(1) is x


def test_values_can_be_loaded_and_parameters_replaced() -> None:
    model = encode_copy(nn.Linear(3, 2))
    plain = nn.Linear(3, 2)
    model.load_state_dict(plain.state_dict())
    assert_decodes_to(model.weight, plain.weight.detach())

    model.bias.data = fix(torch.ones(2))
    assert_decodes_to(model.bias, torch.ones(2))
    assert_decodes_to(model.bias.data, torch.ones(2))
    with pytest.raises(OperationNotAllowedError, match="a plain tensor is not encoded; write `x.copy_"):
        model.bias.data = torch.zeros(2)


def test_copies_of_a_model_share_nothing() -> None:
    model = encode_copy(nn.Linear(2, 2))
    F.mse_loss(model(fix(torch.ones(1, 2))), fix(torch.ones(1, 2))).backward()
    before = decode_end(model.weight).clone()

    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.weight.zero_()

    assert isinstance(twin.weight, nn.Parameter)
    assert twin.weight.requires_grad
    assert_decodes_to(twin.weight.grad, decode_end(model.weight.grad))
    assert_decodes_to(model.weight, before)
    assert copy.copy(model.weight).child is model.weight.child


def test_a_parameter_is_sent_with_its_gradient() -> None:
    parameter = nn.Parameter(fix(torch.ones(2)))
    (parameter * 3).sum().backward()

    received = deserialize(serialize(parameter))

    assert isinstance(received, nn.Parameter)
    assert received.requires_grad
    assert_decodes_to(received, torch.ones(2))
    assert_decodes_to(received.grad, torch.full((2,), 3.0))


def test_a_message_with_the_wrong_kind_of_wrapper_is_refused() -> None:
    with pytest.raises(SerdeError, match="Wrapper does not match its layers"):
        deserialize(serialize(Wrapper(fix(torch.ones(2)).child)))


def test_encoded_values_are_sent_and_layers_encode_remote_values(hook: Any) -> None:
    bob = VirtualWorker(hook, id="bob")
    assert_decodes_to((fix(torch.ones(2)).send(bob) + 1).get(), torch.full((2,), 2.0))

    x = FixedPoint().on(FixedPoint().encode(torch.ones(2)).send(bob)).requires_grad_()
    (x * x).sum().backward()

    assert type(x.grad.child.child) is PointerTensor
    assert x.grad.child.child.get().tolist() == [2**25, 2**25]


def test_an_operation_without_a_rule_is_refused_before_anything_changes() -> None:
    x = fix(torch.ones(2))
    message = "cannot run 'aten.exp_.default' on a FixedPoint: .*has no rule for it.*a rule called 'exp'"
    with pytest.raises(OperationNotAllowedError, match=message):
        x.exp_()
    with pytest.raises(OperationNotAllowedError, match=r"aten\.unsqueeze\.default"):
        x.unsqueeze_(0)
    with pytest.raises(OperationNotAllowedError, match=r"aten\.add\.out"):
        torch.add(x, x, out=torch.ones(2))
    assert_decodes_to(x, torch.ones(2))
    assert x._version == 0


def test_a_result_is_written_to_a_tensor_of_the_same_kind() -> None:
    x, out = fix(torch.ones(2)), fix(torch.zeros(2))
    assert torch.add(x, x, out=out) is out
    assert_decodes_to(out, torch.full((2,), 2.0))


def test_an_operation_on_lists_names_the_option_of_optimizers() -> None:
    x = fix(torch.ones(2)).requires_grad_()
    x.sum().backward()
    with pytest.raises(OperationNotAllowedError, match="pass `foreach=False` to the optimizer"):
        torch.optim.SGD([x], lr=1.0, foreach=True).step()
    assert_decodes_to(x, torch.ones(2))


@pytest.mark.parametrize("read", [lambda x: x.item(), bool, float, lambda x: torch.equal(x, x)])
def test_reading_a_value_is_refused(read: Any) -> None:
    with pytest.raises(OperationNotAllowedError, match="reveal a value"):
        read(fix(torch.tensor(2.0)))


@pytest.mark.parametrize(
    "read",
    [
        pickle.dumps,
        torch.from_dlpack,
        lambda x: x.__dlpack__(),
        lambda x: x.untyped_storage(),
        lambda x: x.tolist(),
        lambda x: x.numpy(),
    ],
)
def test_reading_memory_is_refused(read: Any) -> None:
    with pytest.raises(WrapperLeakError, match="decode the tensor first"):
        read(fix(torch.ones(2)))


def test_printing_shows_the_layers_and_no_values() -> None:
    x = fix(torch.tensor([1.5]))
    shown = "(Wrapper)>FixedPoint>(torch.float32 values of shape (1,))"
    assert (str(x), repr(x), f"{x}", str(nn.Parameter(x))) == (shown, shown, shown, shown)


def test_a_plain_tensor_is_never_changed_by_an_encoded_one() -> None:
    plain = torch.ones(2)
    with pytest.raises(OperationNotAllowedError, match="a plain tensor cannot be changed in place into a chain"):
        plain.add_(fix(torch.ones(2)))
    with pytest.raises(OperationNotAllowedError, match="a plain tensor cannot be changed in place into a chain"):
        plain.copy_(fix(torch.ones(2)))
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        plain.data = fix(torch.ones(2))
    assert plain.tolist() == [1.0, 1.0]


def test_layers_with_other_attributes_are_refused() -> None:
    with pytest.raises(MixedLayersError, match="two FixedPoints that differ in bits"):
        fix(torch.ones(2), bits=16) + fix(torch.ones(2), bits=24)
    x = fix(torch.ones(2))
    with pytest.raises(MixedLayersError, match="differ in bits"):
        x.copy_(fix(torch.zeros(2), bits=16))
    assert_decodes_to(x, torch.ones(2))


def test_the_two_kinds_of_wrapper_do_not_mix() -> None:
    x, y = fix(torch.ones(2)), LoggingTensor().on(torch.ones(2))
    for function in (lambda: x + y, lambda: y + x, lambda: torch.add(x, y), lambda: y.add_(x)):
        with pytest.raises(MixedLayersError, match="one operand is encoded by a numeric layer"):
            function()


class Bare(NumericTensor):
    dtype = torch.float64

    @overloaded.method
    def add(self, _self: Any, other: Any) -> Any:
        return _self + other


hook_args.default_register_tensor(Bare)


def test_a_layer_that_does_not_encode_refuses_plain_operands() -> None:
    x = Bare().on(torch.ones(2, dtype=torch.int64))
    assert (x + x).dtype is torch.float64
    with pytest.raises(MixedLayersError, match="cannot mix a Bare with a plain tensor"):
        x + torch.ones(2)


def test_a_transparent_layer_works_above_and_below(caplog: pytest.LogCaptureFixture) -> None:
    x = LoggingTensor().on(fix(torch.ones(2)))
    assert (type(x), type(x.child), type(x.child.child)) == (NumericWrapper, LoggingTensor, FixedPoint)
    x.requires_grad_()
    with caplog.at_level(logging.INFO, logger="syft_core.tensors.logging"):
        (x * fix(torch.full((2,), 3.0))).sum().backward()
    assert "Default log aten.mul.Tensor" in caplog.messages
    assert type(x.grad.child) is LoggingTensor
    assert_decodes_to(x.grad, torch.full((2,), 3.0))

    below = FixedPoint().on(LoggingTensor().on(FixedPoint().encode(torch.ones(2))))
    assert (type(below), type(below.child.child)) == (NumericWrapper, LoggingTensor)
    below.mul_(2)
    assert below.child.child.child.tolist() == [2**25, 2**25]


def test_unhooking_after_encoded_training_leaves_torch_as_it_was(hook: Any) -> None:
    hook.unhook()
    before = everything_in_torch()
    with TorchHook(torch):
        model = encode_copy(nn.Linear(2, 1))
        model(fix(torch.ones(1, 2))).sum().backward()
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9).step()

    after = everything_in_torch()
    for place, was in before.items():
        assert was.keys() == after[place].keys()
        assert [name for name in was if was[name] is not after[place][name]] == []


def test_a_backend_without_a_numeric_wrapper_refuses_the_layer(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook.attributes, "_numeric_wrapper", None)

    with pytest.raises(OperationNotAllowedError, match="the torch backend has no numeric wrapper"):
        FixedPoint().on(torch.ones(2))
