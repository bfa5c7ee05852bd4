from __future__ import annotations

import copy
import operator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402, N812
from torch import nn  # noqa: E402

from syft_core.exceptions import OperationNotAllowedError, WrapperLeakError  # noqa: E402
from syft_core.tensors.logging import LoggingTensor  # noqa: E402
from syft_core.tensors.plus_is_minus import PlusIsMinusTensor  # noqa: E402
from syft_torch.wrapper import Wrapper  # noqa: E402

pytestmark = pytest.mark.usefixtures("hook")


def chain(*shape: int, **options: Any) -> Wrapper:
    return LoggingTensor().on(torch.randn(*shape, **options))


def data(wrapper: Any) -> Any:
    return wrapper.child.child


def test_a_wrapper_is_a_tensor_with_the_form_of_its_data() -> None:
    x = LoggingTensor().on(torch.zeros(2, 3, dtype=torch.int32))
    assert isinstance(x, torch.Tensor)
    assert x.shape == x.size() == torch.Size([2, 3])
    assert (x.dtype, x.device, x.ndim, len(x), x.numel()) == (torch.int32, torch.device("cpu"), 2, 2, 6)
    assert x.stride() == (3, 1)
    assert x.T.shape == (3, 2)


def test_metadata_follows_in_place_changes() -> None:
    x = chain(2, 3)
    x.unsqueeze_(0)
    assert x.shape == (1, 2, 3)
    x.requires_grad_()
    assert x.requires_grad
    assert x.is_leaf


def test_results_keep_named_tuples_and_nesting() -> None:
    x = chain(3, 4)
    values, indices = x.max(0)
    assert type(x.max(0)) is torch.return_types.max
    assert type(values.child) is LoggingTensor
    assert torch.equal(data(indices), data(x).max(0).indices)
    parts = x.split([1, 2])
    assert isinstance(parts, tuple)
    assert [p.shape[0] for p in parts] == [1, 2]


def test_keyword_arguments_and_out_are_unwrapped() -> None:
    x, y = chain(3), chain(3)
    assert torch.equal(data(torch.add(input=x, other=y, alpha=2)), data(x) + 2 * data(y))
    out = chain(3)
    assert torch.add(x, y, out=out) is out
    assert torch.equal(data(out), data(x) + data(y))


def test_indexing_with_chains_masks_and_slices() -> None:
    x = LoggingTensor().on(torch.arange(6.0).reshape(2, 3))
    assert data(x[x > 2]).tolist() == [3.0, 4.0, 5.0]
    assert data(x[:, 1:]).tolist() == [[1.0, 2.0], [4.0, 5.0]]
    index = LoggingTensor().on(torch.tensor([1, 0]))
    assert data(x[index]).tolist() == [[3.0, 4.0, 5.0], [0.0, 1.0, 2.0]]
    assert data(x[..., index]).shape == (2, 2)
    x[0, :2] = LoggingTensor().on(torch.tensor([7.0, 8.0]))
    assert data(x)[0].tolist() == [7.0, 8.0, 2.0]
    start = LoggingTensor().on(torch.tensor(1))
    assert data(x[start:]).tolist() == [[3.0, 4.0, 5.0]]


def test_an_operation_that_returns_its_argument_returns_the_same_wrapper() -> None:
    x = chain(3)
    assert x.contiguous() is x
    assert x.to("cpu") is x
    assert x.add_(1) is x
    assert torch.relu_(x) is x
    assert nn.init.normal_(x) is x


def test_comparison_with_none_behaves_as_in_torch() -> None:
    x = chain(3)
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711


def test_autograd_runs_under_the_chain() -> None:
    plain = torch.tensor([1.0, 2.0], requires_grad=True)
    x = LoggingTensor().on(plain)
    (x * x).sum().backward()
    assert x.grad is not None
    assert data(x.grad).tolist() == [2.0, 4.0]
    (gradient,) = torch.autograd.grad((x**3).sum(), [x])
    assert data(gradient).tolist() == [3.0, 12.0]
    assert not (x * 1).detach().requires_grad


def test_no_grad_applies_to_the_data() -> None:
    x = LoggingTensor().on(torch.ones(2, requires_grad=True))
    with torch.no_grad():
        assert not (x * 2).requires_grad


def test_a_wrapper_becomes_a_parameter() -> None:
    parameter = nn.Parameter(chain(2, 2))
    assert isinstance(parameter, nn.Parameter)
    assert parameter.requires_grad
    assert type(parameter.child) is LoggingTensor


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: nn.Linear(4, 3), (2, 4)),
        (lambda: nn.Conv2d(1, 2, 3), (2, 1, 5, 5)),
        (lambda: nn.BatchNorm1d(4), (3, 4)),
        (lambda: nn.LayerNorm(4), (2, 4)),
        (lambda: nn.LSTM(4, 3), (5, 2, 4)),
        (lambda: nn.GRU(4, 3), (5, 2, 4)),
        (lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), (2, 3, 4)),
    ],
)
def test_stock_modules_compute_on_chains(make: Any, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    module = make()
    x = torch.randn(*shape)
    expected = copy.deepcopy(module)(x)
    result = module(LoggingTensor().on(x))
    if isinstance(result, tuple):
        result, expected = result[0], expected[0]
    torch.testing.assert_close(data(result), expected)


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop])
def test_stock_optimizers_train_chains_like_plain_tensors(make: Any, foreach: bool) -> None:
    torch.manual_seed(0)
    plain = nn.Linear(3, 1)
    chained = copy.deepcopy(plain)
    for name, parameter in list(chained.named_parameters()):
        setattr(chained, name, nn.Parameter(LoggingTensor().on(parameter.detach().clone())))
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    for model, inputs in ((plain, x), (chained, LoggingTensor().on(x))):
        optimizer = make(model.parameters(), lr=0.1, foreach=foreach)
        for _ in range(3):
            optimizer.zero_grad()
            F.mse_loss(model(inputs), y).backward()
            optimizer.step()
    assert torch.equal(data(chained.weight), plain.weight)
    assert torch.equal(data(chained.bias), plain.bias)


def test_copies_are_chains() -> None:
    x = chain(3)
    deep = copy.deepcopy(x)
    assert deep is not x
    assert type(deep.child) is LoggingTensor
    assert data(deep) is not data(x)
    assert torch.equal(data(deep), data(x))
    assert data(copy.copy(x)) is data(x)


def test_a_chain_is_shown_by_repr_str_and_format() -> None:
    x = LoggingTensor().on(torch.tensor([1.0]))
    shown = "(Wrapper)>LoggingTensor>tensor([1.])"
    assert (str(x), repr(x), f"{x}") == (shown, shown, shown)


@pytest.mark.filterwarnings("ignore")
def test_a_scripted_function_runs_as_python_on_a_chain() -> None:
    scripted, x = torch.jit.script(_double), chain(2)

    assert torch.equal(data(scripted(x)), 2 * data(x))
    assert scripted(torch.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "compiled",
    [lambda: torch.jit.trace(lambda x: x * 2, torch.ones(2)), lambda: torch.jit.script(nn.Linear(2, 2)).forward],
    ids=["trace", "module"],
)
def test_other_torchscript_refuses_a_chain(compiled: Any) -> None:
    with pytest.raises(WrapperLeakError, match="use the module or function from which it was compiled"):
        compiled()(chain(2))


@pytest.mark.parametrize("make", [torch.ones, lambda n: nn.Parameter(torch.ones(n))], ids=["tensor", "parameter"])
def test_the_data_of_a_plain_tensor_cannot_be_set_to_a_wrapper(make: Any) -> None:
    plain = make(2)
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        plain.data = chain(2)
    with pytest.raises(RuntimeError, match="assign a gradient"):
        plain.grad = chain(2)
    assert plain.tolist() == [1.0, 1.0]


def test_the_device_is_that_of_the_data() -> None:
    assert LoggingTensor().on(torch.ones(2, device="meta")).device.type == "meta"
    assert chain(2).device.type == "cpu"
    assert not chain(2).is_meta


@pytest.mark.filterwarnings("ignore")
def test_the_constructor_refuses_a_wrapper_with_advice() -> None:
    with pytest.raises(WrapperLeakError, match="call a method of the tensor instead"):
        torch.tensor(chain(2))


def test_asarray_returns_the_chain_itself() -> None:
    x = chain(2)
    assert torch.as_tensor(x) is x


def test_directly_called_kernels_are_refused() -> None:
    with pytest.raises(OperationNotAllowedError, match="not in the torch op table"):
        torch.ops.aten.add.Tensor(chain(2), chain(2))


def test_an_operation_can_be_allowed(hook: Any) -> None:
    function = torch.ops.aten.add.Tensor
    op = hook.attributes.allow(function, "torch.ops.aten.add.Tensor")
    try:
        assert type(function(chain(2), chain(2)).child) is LoggingTensor
    finally:
        del hook.attributes.ops.by_func[function]
        del hook.attributes.ops.by_name[op.name]


def test_a_plain_tensor_cannot_be_turned_into_a_chain_in_place() -> None:
    with pytest.raises(OperationNotAllowedError, match="a plain tensor cannot be changed in place into a chain"):
        torch.ones(2).add_(PlusIsMinusTensor().on(torch.ones(2)))


def _double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@pytest.mark.parametrize("function", ["add", "add_", "sub"])
@pytest.mark.parametrize("module", ["_foreach_", "foreach."])
def test_an_operation_on_lists_does_not_bypass_a_rule(module: str, function: str) -> None:
    if module == "foreach." and not hasattr(torch, "foreach"):
        pytest.skip("this torch has no public functions on lists")
    x = PlusIsMinusTensor().on(torch.tensor([5.0]))
    with pytest.raises(OperationNotAllowedError, match="which this operation on lists would bypass"):
        operator.attrgetter(module + function)(torch)([x], [torch.ones(1)])
    assert operator.attrgetter(module + "mul")(torch)([x], 2)[0].child.child.tolist() == [10.0]
