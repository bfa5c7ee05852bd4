import pytest

torch = pytest.importorskip("torch")
from syft_core.serde import (  # noqa: E402
    Context,
    deserialize,
    serialize,
)
from syft_torch import serde as torch_serde  # noqa: E402

from ...serde.equality import same  # noqa: E402
from .tensors import RAW_DTYPES, SERIALIZERS, some, there_and_back, worker  # noqa: E402


@pytest.mark.parametrize("serializer", SERIALIZERS)
@pytest.mark.parametrize("dtype", RAW_DTYPES, ids=str)
def test_each_strategy_writes_every_dtype_exactly(serializer, dtype):
    tensor = some(dtype, 2, 3, 2)
    if dtype.is_floating_point or dtype.is_complex:
        # NaN has many bit patterns; a list of Python floats keeps only one.
        bytes_ = torch.arange(2 * 3 * 2 * dtype.itemsize, dtype=torch.uint8)
        tensor = bytes_.view(dtype).reshape(2, 3, 2)
    bob = worker(serializer)
    written = torch_serde._serialize_tensor(bob, tensor)
    assert same(torch_serde._deserialize_tensor(bob, serializer, written), tensor)
    assert same(deserialize(serialize([tensor], Context(bob)), Context(bob)), [tensor])


@pytest.mark.parametrize("serializer", SERIALIZERS)
@pytest.mark.parametrize("shape", [(), (0,), (0, 3)])
def test_each_strategy_writes_zero_dimensions_and_zero_lengths(serializer, shape):
    tensor = torch.ones(shape)
    written = torch_serde._serialize_tensor(worker(serializer), tensor)
    assert same(torch_serde._deserialize_tensor(None, serializer, written), tensor)


@pytest.mark.parametrize("serializer", SERIALIZERS)
@pytest.mark.parametrize("shape", [(3,), (300, 20), (0,)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.bfloat16])
def test_each_strategy_writes_zeros_without_memory_as_zeros(serializer, dtype, shape):
    zeros, bob = torch._efficientzerotensor(shape, dtype=dtype), worker(serializer)
    assert zeros._is_zerotensor()

    written = torch_serde._serialize_tensor(bob, zeros)

    for received in (torch_serde._deserialize_tensor(bob, serializer, written), there_and_back(zeros)):
        assert same(received, torch.zeros(shape, dtype=dtype))


def test_unknown_strategies_are_not_implemented():
    with pytest.raises(NotImplementedError, match="the registered ones are torch, numpy, all"):
        torch_serde._serialize_tensor(worker("arrow"), torch.ones(1))
    with pytest.raises(NotImplementedError):
        torch_serde._deserialize_tensor(None, "arrow", b"")


def test_a_registered_strategy_is_used():
    strategy = torch_serde.TensorEncoding(lambda tensor: (tensor.tolist(),), lambda data: torch.tensor(data[0]))
    torch_serde.strategies.register("own", strategy)
    bob = worker("own")
    assert same(deserialize(serialize(torch.ones(2), Context(bob)), Context(bob)), torch.ones(2))


def test_simplified_tensors_are_shape_dtype_and_numbers():
    tensor = torch.tensor([[1, 2], [3, 4]])
    assert torch_serde.simplified_tensor_serializer(None, tensor) == ((2, 2), "int64", [1, 2, 3, 4])
    assert same(torch_serde.simplified_tensor_deserializer(None, ((2, 2), "int64", [1, 2, 3, 4])), tensor)


def test_simplifying_a_tensor_that_requires_grad_warns():
    with pytest.warns(UserWarning, match="requires grad"):
        torch_serde.simplified_tensor_serializer(None, torch.ones(1, requires_grad=True))
