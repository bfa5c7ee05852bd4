import pytest

torch = pytest.importorskip("torch")
from syft_core.serde import (  # noqa: E402
    deserialize,
    frames,
    from_frames,
    serialize,
)

from ...serde.equality import same  # noqa: E402
from .tensors import RAW_DTYPES, some, there_and_back  # noqa: E402


@pytest.mark.parametrize("dtype", RAW_DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (0, 4), (2, 3, 2), (700, 2)], ids=str)
def test_every_dtype_and_shape_comes_back_bit_for_bit(dtype, shape):
    tensor = some(dtype, *shape)
    received = there_and_back(tensor)
    assert same(received, tensor)
    assert received.stride() == tensor.stride()
    assert same(there_and_back(tensor, writable=False), tensor)


@pytest.mark.parametrize("dtype", RAW_DTYPES, ids=str)
def test_every_dtype_may_be_a_view(dtype):
    tensor = some(dtype, 40, 6)[::3, 1:4]
    assert same(there_and_back(tensor), tensor)


@pytest.mark.parametrize("rows", [1, 1000])
def test_only_the_elements_of_a_view_are_sent(rows):
    whole = torch.zeros(2000, 1000)
    assert len(serialize(whole[:rows, :1])) < 4 * rows + 200


def test_an_expanded_tensor_is_sent_with_all_its_elements():
    tensor = torch.tensor([1.0]).expand(3, 5)
    received = there_and_back(tensor)
    assert same(received, tensor)
    received[0, 0] = 7
    assert received[0, 1] == 1


@pytest.mark.parametrize(
    "view",
    [
        torch.randn(6, dtype=torch.complex64).conj(),
        torch.randn(6, dtype=torch.complex128).conj().imag,
        torch.randn(6, dtype=torch.complex64).reshape(2, 3).mH,
        torch._neg_view(torch.arange(5.0)),
        torch._neg_view(torch.arange(600.0)),
        torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1),
        torch.arange(10).flip(0),
        torch.arange(10.0).as_strided((4, 3), (2, 1)),
    ],
)
def test_views_are_sent_by_value(view):
    received = there_and_back(view)
    assert same(received, view)
    assert not received.is_conj()
    assert not received.is_neg()


@pytest.mark.parametrize(
    ("shape", "form"), [((2, 3, 4, 5), torch.channels_last), ((2, 3, 4, 5, 6), torch.channels_last_3d)]
)
def test_channels_last_is_kept(shape, form):
    tensor = torch.randn(*shape).to(memory_format=form)
    received = there_and_back(tensor)
    assert same(received, tensor)
    assert received.stride() == tensor.stride()
    assert received.is_contiguous(memory_format=form)


def test_a_transposed_matrix_keeps_its_strides_and_is_sent_without_a_copy():
    tensor = torch.randn(300, 200).t()
    assert there_and_back(tensor).stride() == (1, 200)
    assert memoryview(frames(tensor)[1]).obj.ctypes.data == tensor.data_ptr()


def test_a_received_tensor_owns_its_memory():
    data = serialize(torch.zeros(5000))
    copy = bytes(bytearray(data))
    deserialize(data).add_(1)
    assert data == copy


def test_a_writable_frame_is_reused_without_a_copy():
    header, buffer = frames(torch.zeros(5000))
    mine = bytearray(buffer)
    received = from_frames([header, mine])
    received.add_(1)
    assert bytes(mine[:4]) == b"\x00\x00\x80\x3f"


def test_a_huge_tensor_owns_its_memory_too(monkeypatch):
    monkeypatch.setattr("syft_core.serde.received.HUGE", 1000)
    tensor = torch.arange(5000.0)
    data = serialize(tensor)
    received = deserialize(data)
    received.add_(1)
    assert torch.equal(received, tensor + 1)
    assert same(deserialize(data), tensor)


def test_a_view_of_the_frames_is_not_a_copy():
    header, buffer = frames(torch.arange(5000.0))
    mine = bytearray(buffer)
    received = from_frames([header, mine], writable=False)
    mine[:4] = b"\x00\x00\x80\x3f"
    assert received[0] == 1


def test_buffers_are_the_tensors_own_memory():
    tensor = torch.zeros(5000)
    header, buffer = frames(tensor)
    tensor[0] = 1
    assert bytes(buffer[:4]) == b"\x00\x00\x80\x3f"
    assert len(header) < 100
