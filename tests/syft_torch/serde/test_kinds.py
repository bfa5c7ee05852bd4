import warnings

import pytest

torch = pytest.importorskip("torch")
from syft_core.serde import (  # noqa: E402
    SerdeError,
    serialize,
)

from ...serde.equality import same  # noqa: E402
from .tensors import there_and_back  # noqa: E402


def make_sparse():
    dense = torch.tensor([[0.0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 0, 0], [0, 0, 4, 5]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            dense.to_sparse(),
            dense.to_sparse(1),
            torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 2)),
            torch.sparse_coo_tensor(size=(3, 2)),
            dense.to_sparse_csr(),
            dense.to_sparse_csc(),
            dense.to_sparse_bsr((2, 2)),
            dense.to_sparse_bsc((2, 2)),
        ]


@pytest.mark.parametrize("tensor", make_sparse(), ids=lambda tensor: str(tensor.layout))
def test_sparse_tensors_come_back(tensor):
    received = there_and_back(tensor)
    assert same(received, tensor)
    if tensor.layout is torch.sparse_coo:
        assert received.is_coalesced() == tensor.is_coalesced()
        assert same(received._indices(), tensor._indices())


def quantize(dtype, by_channel):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if by_channel:
            scales, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2])
            return torch.quantize_per_channel(torch.randn(4, 3), scales, zeros, 1, dtype)
        return torch.quantize_per_tensor(torch.randn(4, 3), 0.25, 3, dtype)


@pytest.mark.parametrize("dtype", [torch.qint8, torch.quint8, torch.qint32], ids=str)
@pytest.mark.parametrize("by_channel", [False, True])
def test_quantized_tensors_come_back(dtype, by_channel):
    tensor = quantize(dtype, by_channel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        received = there_and_back(tensor)
        assert torch.equal(received.dequantize(), tensor.dequantize())
    assert received.qscheme() == tensor.qscheme()


def test_a_meta_tensor_has_no_data_to_send():
    tensor = torch.empty(10**6, 10**6, device="meta")
    assert same(there_and_back(tensor), tensor)
    assert len(serialize(tensor)) < 100


def test_nested_tensors_are_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([torch.zeros(1), torch.zeros(2)])
    with pytest.raises(SerdeError, match="nested"):
        serialize(nested)
