import warnings
from collections import OrderedDict
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import msgpack  # noqa: E402
from torch import nn  # noqa: E402

from syft_core.serde import (  # noqa: E402
    Codec,
    CodecTable,
    Context,
    SerdeError,
    codecs,
    deserialize,
    frames,
    from_frames,
    serialize,
)
from syft_core.serde.layout import join, pack_header  # noqa: E402
from syft_torch import serde as torch_serde  # noqa: E402
from syft_torch.serde import names  # noqa: E402

from .equality import bits, same  # noqa: E402

ALL_DTYPES = sorted({x for x in vars(torch).values() if isinstance(x, torch.dtype)}, key=str)
QUANTIZED = {torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4}
RAW_DTYPES = [dtype for dtype in ALL_DTYPES if dtype not in QUANTIZED]
SERIALIZERS = ["torch", "numpy", "all"]


def there_and_back(value, **options):
    received = deserialize(serialize(value), **options)
    apart = from_frames(frames(value), **options)
    assert same(received, apart)
    return received


def some(dtype, *shape):
    """Return a tensor with many different bytes; bools are valid, floats are finite."""
    count = torch.Size(shape).numel()
    data = torch.arange(count * dtype.itemsize, dtype=torch.uint8) * 37
    if dtype is torch.bool:
        data = data % 2
    return data.view(dtype).reshape(shape)


# ---- every dtype ---------------------------------------------------------------------------------------------------


def test_every_dtype_of_this_torch_has_a_wire_number():
    assert set(names.DTYPE_NUMBERS) == set(ALL_DTYPES)


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


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_every_dtype_travels_as_a_value(dtype):
    assert there_and_back([dtype])[0] is dtype


# ---- views, memory formats, ownership ------------------------------------------------------------------------------


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


def test_a_tensor_sent_in_process_is_not_shared():
    tensor = torch.zeros(5000)
    received = from_frames(frames(tensor))
    received.add_(1)
    assert tensor.sum() == 0


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


# ---- sparse, quantized, meta ---------------------------------------------------------------------------------------


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


# ---- attributes of a tensor ----------------------------------------------------------------------------------------


def test_requires_grad_and_grad_come_back():
    tensor = torch.arange(3.0, requires_grad=True)
    (tensor**2).sum().backward()
    received = there_and_back(tensor)
    assert received.requires_grad
    assert received.is_leaf
    assert same(received.grad, tensor.grad)


def test_the_grad_of_a_grad_comes_back():
    tensor = torch.ones(2, requires_grad=True)
    tensor.grad = torch.full((2,), 2.0)
    tensor.grad.grad = torch.full((2,), 3.0)
    assert same(there_and_back(tensor).grad.grad, tensor.grad.grad)


def test_a_tensor_inside_a_graph_arrives_as_a_leaf():
    received = there_and_back(torch.ones(2, requires_grad=True) * 2)
    assert received.requires_grad
    assert received.is_leaf


def test_id_tags_and_description_come_back_and_nothing_else():
    tensor = torch.ones(2)
    tensor.__dict__.update(_syft_id=5, _syft_tags={"#x"}, _syft_description="mine", secret="stays here")
    assert there_and_back(tensor).__dict__ == {"_syft_id": 5, "_syft_tags": {"#x"}, "_syft_description": "mine"}


def test_a_plain_tensor_carries_nothing_extra():
    assert there_and_back(torch.ones(2)).__dict__ == {}
    assert len(serialize(torch.zeros(10))) == 24 + 8 + 40


def test_a_child_comes_back():
    tensor = torch.ones(2)
    tensor.__dict__["child"] = [torch.zeros(1)]
    assert same(there_and_back(tensor).__dict__["child"], [torch.zeros(1)])


@pytest.mark.parametrize("requires_grad", [True, False])
def test_a_parameter_stays_a_parameter(requires_grad):
    parameter = nn.Parameter(torch.randn(30, 20), requires_grad=requires_grad)
    parameter.__dict__["_syft_id"] = "p"
    parameter.grad = torch.randn(30, 20)
    received = there_and_back(parameter)
    assert same(received, parameter)
    assert same(received.grad, parameter.grad)
    assert received.__dict__["_syft_id"] == "p"


def test_a_buffer_stays_a_buffer():
    if not hasattr(nn, "Buffer"):
        pytest.skip("this torch has no nn.Buffer")
    received = there_and_back(nn.Buffer(torch.ones(2), persistent=False))
    assert isinstance(received, nn.Buffer)
    assert received.persistent is False


def test_an_unregistered_subclass_is_refused():
    class Mine(torch.Tensor):
        pass

    for tensor in (torch.ones(2).as_subclass(Mine), nn.UninitializedParameter()):
        with pytest.raises(SerdeError, match=r"derives from torch\..*Tensor|derives from torch.*Parameter"):
            serialize(tensor)


def test_a_subclass_with_a_codec_is_found_before_its_base():
    class Head(torch.Tensor):
        pass

    table = CodecTable()
    torch_serde.register_codecs(table)
    table.register(Codec(Head, 260, lambda obj, context: (), lambda payload, context: None))
    assert table.for_type(Head).code == 260
    assert table.for_type(torch.Tensor).code == 150


def test_a_tensor_that_occurs_twice_stays_one():
    tensor = torch.randn(5000)
    first, second = there_and_back([tensor, tensor])
    assert first is second
    assert len(frames([tensor, tensor])) == 2


def test_slices_with_tensors_inside_come_back():
    assert same(
        there_and_back(slice(torch.tensor(1), None, torch.tensor(2))), slice(torch.tensor(1), None, torch.tensor(2))
    )


# ---- devices -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cpu", "cuda", "cuda:1", "mps", "meta", "xpu:0", "privateuseone:3"])
def test_a_device_keeps_its_index(name):
    assert there_and_back(torch.device(name)) == torch.device(name)


def on_cuda(tensor):
    """Serialize a tensor like a sender with a second GPU."""
    dense = [150, 1, [5, "device", [155, "cuda", 1]], 0, 7, tensor.numpy().tobytes(), *tensor.shape]
    return join([pack_header(msgpack.packb(dense), [])])


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device")
def test_a_tensor_from_a_missing_device_falls_back_as_stated():
    received = deserialize(on_cuda(torch.arange(3.0)))
    assert received.device == torch.device("cpu")
    assert same(received, torch.arange(3.0))
    assert deserialize(on_cuda(torch.arange(3.0)), Context(device_fallback="meta")).device.type == "meta"
    with pytest.raises(SerdeError, match="cannot put a tensor on cuda:1: the receiver has no such device"):
        deserialize(on_cuda(torch.arange(3.0)), Context(device_fallback=None))


def test_the_receivers_default_device_does_not_move_what_arrives():
    messages = [
        serialize(tensor) for tensor in (torch.ones(3), torch.ones(2, 2), torch.ones(0), torch.eye(2).to_sparse())
    ]
    listed = serialize(torch.ones(2), Context(worker("all")))
    with torch.device("meta"):
        received = [deserialize(message) for message in (*messages, listed)]
    assert {tensor.device.type for tensor in received} == {"cpu"}


# ---- small constants -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        torch.Size([]),
        torch.Size([1, 0, 3]),
        *names.LAYOUTS.values(),
        *names.MEMORY_FORMATS.values(),
        *names.QSCHEMES.values(),
    ],
    ids=str,
)
def test_constants_come_back(value):
    received = there_and_back(value)
    assert type(received) is type(value)
    assert received == value


def test_a_generator_keeps_its_state():
    generator = torch.Generator().manual_seed(5)
    torch.rand(3, generator=generator)
    received = there_and_back(generator)
    assert torch.equal(torch.rand(4, generator=received), torch.rand(4, generator=generator))


# ---- hostile payloads ----------------------------------------------------------------------------------------------

F32, I64, BOOL = 7, 5, 0
FOUR = bytes(4)


def dense(dtype, data, *shape):
    return [150, 0, dtype, data, *shape]


INDICES = dense(I64, (1).to_bytes(8, "little") * 2, 2, 1)
HOSTILE = {
    "negative length": dense(F32, FOUR, -1),
    "two negative lengths": dense(F32, FOUR, -1, -1),
    "product overflows": dense(F32, b"", 2**62, 4),
    "overflow to zero": dense(F32, b"", 2**32, 2**32),
    "too few bytes": dense(F32, FOUR, 2),
    "too many bytes": dense(F32, FOUR, 0),
    "bool as length": dense(F32, FOUR, True),
    "float as length": dense(F32, FOUR, 1.0),
    "text as data": dense(F32, "abcd", 1),
    "list as data": dense(F32, [3, 1, 2, 3, 4], 1),
    "number as data": dense(F32, 4, 1),
    "no data": [150, 0, F32],
    "nothing": [150],
    "unknown form": [150, 99, 1],
    "form of another type": [150, "0", F32, FOUR, 1],
    "unknown dtype": dense(99, FOUR, 1),
    "dtype by name": dense("float32", FOUR, 1),
    "dtype as list": dense([3, 1], FOUR, 1),
    "too many dimensions": dense(F32, FOUR, *[1] * 65),
    "bool of two": dense(BOOL, b"\x02", 1),
    "extras no dict": [150, 1, [3, 1], 0, F32, FOUR, 1],
    "unknown extras": [150, 1, [5, "backward_hooks", 1], 0, F32, FOUR, 1],
    "extras with a list as key": [150, 1, [5, [4, 1], 1], 0, F32, FOUR, 1],
    "order no permutation": [150, 1, [5, "order", [4, 0, 0]], 0, F32, FOUR, 1, 1],
    "order of texts": [150, 1, [5, "order", [4, "a", "b"]], 0, F32, FOUR, 1, 1],
    "grad of another shape": [150, 1, [5, "grad", dense(F32, FOUR * 2, 2), "requires_grad", True], 0, F32, FOUR, 1],
    "grad no tensor": [150, 1, [5, "grad", 5], 0, F32, FOUR, 1],
    "integers require no grad": [150, 1, [5, "requires_grad", True], 0, I64, bytes(8), 1],
    "id of a wrong type": [150, 1, [5, "id", [3, 1]], 0, F32, FOUR, 1],
    "tags of a wrong type": [150, 1, [5, "tags", [7, 1]], 0, F32, FOUR, 1],
    "device of no kind": [150, 1, [5, "device", "cuda:0"], 0, F32, FOUR, 1],
    "meta as a device": [150, 1, [5, "device", [155, "meta", None]], 0, F32, FOUR, 1],
    "full in full": [150, 1, [5], 1, [5], 0, F32, FOUR, 1],
    "sparse index outside": [150, 2, [153, 1, 1], False, INDICES, dense(F32, FOUR, 1)],
    "sparse falsely coalesced": [
        150,
        2,
        [153, 2],
        True,
        dense(I64, (1).to_bytes(8, "little") + bytes(8), 1, 2),
        dense(F32, FOUR * 2, 2),
    ],
    "sparse with a list as shape": [150, 2, [3, 2, 2], False, INDICES, dense(F32, FOUR, 1)],
    "sparse without indices": [150, 2, [153, 2, 2], False, 5, dense(F32, FOUR, 1)],
    "sparse huge shape": [150, 2, [153, 2**62, 2**62], False, INDICES, dense(F32, FOUR, 1)],
    "compressed index outside": [
        150,
        3,
        2,
        [153, 1, 1],
        dense(I64, bytes(8) + (1).to_bytes(8, "little"), 2),
        dense(I64, (9).to_bytes(8, "little"), 1),
        dense(F32, FOUR, 1),
    ],
    "compressed strided": [150, 3, 0, [153, 1], INDICES, INDICES, dense(F32, FOUR, 1)],
    "quantized of floats": [150, 4, 41, dense(F32, FOUR, 1), 1.0, 0],
    "quantized without scale": [150, 4, 41, dense(2, b"\x01", 1), "1.0", 0],
    "quantized axis": [150, 4, 41, dense(2, b"\x01", 1), dense(F32, FOUR, 1), dense(I64, bytes(8), 1), 7],
    "dense of a quantized dtype": dense(41, b"1234", 4),
    "meta of a quantized dtype": [150, 5, 42, 3],
    "meta overflow": [150, 5, F32, 2**62, 2**62],
    "meta negative": [150, 5, F32, -5],
    "strategy unknown": [150, 6, "cloudpickle", b"x"],
    "strategy torch": [150, 6, "torch", b"x"],
    "strategy all wrong": [150, 6, "all", [4, [4, 2], "float32", [3, 1.0]]],
    "strategy all text": [150, 6, "all", [4, [4, 1], "float32", [3, "a"]]],
    "strategy numpy wrong": [150, 6, "numpy", [4, "|O8", [4, 1], FOUR, "float32"]],
    "parameter without flag": [151, 0, F32, FOUR, 1],
    "parameter empty": [151, True],
    "size negative": [153, -2],
    "size text": [153, "a"],
    "size huge": [153, 2**64 - 1],
    "dtype number": [154, 999],
    "dtype name": [154, "float32"],
    "device name": [155, "__class__", None],
    "device index": [155, "cuda", -1],
    "device index text": [155, "cuda", "1"],
    "layout": [156, 99],
    "memory format": [157, 0],
    "generator": [158, [155, "cpu", None], dense(1, FOUR, 4)],
    "generator of nothing": [158, 1, 2],
    "script": [159, b"PK"],
    "script function": [160, b"PK"],
    "module unknown": [161, "os.system", True, [5], [5], [3], [5], [5]],
    "module hides forward": [161, "torch.nn.ReLU", True, [5], [5], [3], [5], [5, "forward", 1]],
    "module dunder": [161, "torch.nn.ReLU", True, [5], [5], [3], [5], [5, "__class__", 1]],
    "module hooks": [161, "torch.nn.ReLU", True, [5], [5], [3], [5], [5, "_forward_hooks", 1]],
    "module with text as parameter": [161, "torch.nn.ReLU", True, [5, "w", "x"], [5], [3], [5], [5]],
    "module with tensor as child": [161, "torch.nn.ReLU", True, [5], [5], [3], [5, "a", dense(F32, FOUR, 1)], [5]],
    "module state": [161, "torch.nn.ReLU", 5, [5], [5], [3], [5], [5]],
    "recurrent without names": [161, "torch.nn.LSTM", True, [5], [5], [3], [5], [5]],
    "function unknown": [162, "os.system"],
    "export": [164, b"PK"],
}


@pytest.mark.parametrize("structure", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_payload_is_refused(structure):
    message = join([pack_header(msgpack.packb(structure), [])])
    with pytest.raises(SerdeError):
        deserialize(message)


def test_errors_never_contain_tensor_values():
    secret = 7919
    indices = torch.full((2, 1), secret).numpy().tobytes()
    structure = [150, 2, [153, 1, 1], False, dense(I64, indices, 2, 1), dense(F32, FOUR, 1)]
    with pytest.raises(SerdeError) as caught:
        deserialize(join([pack_header(msgpack.packb(structure), [])]))
    chain, error = [], caught.value
    while error is not None:
        chain.append(str(error))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert not any(str(secret) in text for text in chain)


# ---- state dicts and modules ---------------------------------------------------------------------------------------


def network():
    return nn.Sequential(
        OrderedDict(
            conv=nn.Conv2d(1, 4, 3, padding=1),
            norm=nn.BatchNorm2d(4),
            act=nn.LeakyReLU(0.2),
            flat=nn.Flatten(),
            drop=nn.Dropout(0.5),
            out=nn.Linear(4 * 16, 3),
        )
    )


def test_a_state_dict_comes_back_with_its_metadata():
    state = network().state_dict()
    received = there_and_back(state)
    assert same(dict(received), dict(state))
    assert same(received._metadata, state._metadata)
    network().load_state_dict(received)


@pytest.mark.parametrize("training", [True, False])
def test_a_module_computes_the_same(training):
    model = network().train(training)
    received = there_and_back(model)
    assert received.training is training
    batch = torch.randn(2, 1, 4, 4)
    torch.manual_seed(0)
    expected = model(batch)
    torch.manual_seed(0)
    assert torch.equal(received(batch), expected)


def test_a_received_module_can_be_trained():
    received = there_and_back(network())
    optimizer = torch.optim.SGD(received.parameters(), lr=0.1)
    received(torch.randn(2, 1, 4, 4)).sum().backward()
    optimizer.step()
    assert all(parameter.grad is not None for parameter in received.parameters())


STANDARD = {
    "Bilinear": lambda: nn.Bilinear(2, 3, 4),
    "ConvTranspose1d": lambda: nn.ConvTranspose1d(2, 3, 2),
    "Embedding": lambda: nn.Embedding(5, 3, padding_idx=1),
    "EmbeddingBag": lambda: nn.EmbeddingBag(5, 3),
    "GroupNorm": lambda: nn.GroupNorm(2, 4),
    "LSTM": lambda: nn.LSTM(3, 4, 2, bidirectional=True),
    "GRU": lambda: nn.GRU(3, 4),
    "RNNCell": lambda: nn.RNNCell(3, 4),
    "MultiheadAttention": lambda: nn.MultiheadAttention(4, 2),
    "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(4, 2, 8, activation=nn.functional.gelu),
    "Transformer": lambda: nn.Transformer(4, 2, 1, 1, 8, batch_first=True),
    "ModuleDict": lambda: nn.ModuleDict({"a": nn.ReLU(), "b": nn.ModuleList([nn.Tanh(), nn.GELU("tanh")])}),
    "ParameterList": lambda: nn.ParameterList([torch.ones(2), torch.zeros(3)]),
    "ParameterDict": lambda: nn.ParameterDict({"a": torch.ones(2)}),
    "CrossEntropyLoss": lambda: nn.CrossEntropyLoss(torch.ones(3), label_smoothing=0.1),
    "AdaptiveLogSoftmax": lambda: nn.AdaptiveLogSoftmaxWithLoss(16, 10, [3, 6]),
    "TripletMarginWithDistance": lambda: nn.TripletMarginWithDistanceLoss(
        distance_function=nn.functional.pairwise_distance
    ),
    "Upsample": lambda: nn.Upsample(scale_factor=2.0),
    "PixelShuffle": lambda: nn.PixelShuffle(2),
}


@pytest.mark.parametrize("build", STANDARD.values(), ids=STANDARD)
@pytest.mark.filterwarnings("ignore:.*nested_tensor.*")
def test_standard_layers_come_back(build):
    module = build()
    received = there_and_back(module)
    assert type(received) is type(module)
    assert str(received) == str(module)
    assert same(dict(received.state_dict()), dict(module.state_dict()))


def test_a_recurrent_layer_computes_the_same():
    layer, batch = nn.LSTM(3, 4, 2), torch.randn(5, 2, 3)
    assert torch.equal(there_and_back(layer)(batch)[0], layer(batch)[0])


def test_tied_weights_stay_tied():
    model = nn.Sequential(nn.Linear(50, 50), nn.Linear(50, 50))
    model[1].weight = model[0].weight
    received = there_and_back(model)
    assert received[0].weight is received[1].weight


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.scale = 3
        self.register_buffer("offset", torch.ones(2), persistent=False)

    def forward(self, x):
        return self.inner(x) * self.scale + self.offset


def test_a_users_module_is_refused_until_it_is_registered():
    class Unlisted(Net):
        pass

    with pytest.raises(SerdeError, match=r"its class is not registered.*register_module\(Unlisted, 'Unlisted'\)"):
        serialize(Unlisted())

    torch_serde.register_module(Net, "tests.Net")
    model, batch = Net(), torch.randn(3, 2)
    received = there_and_back(model)
    assert torch.equal(received(batch), model(batch))
    assert received._non_persistent_buffers_set == {"offset"}


def test_only_module_classes_can_be_registered():
    with pytest.raises(SerdeError, match=r"it is not a subclass of torch\.nn\.Module"):
        torch_serde.register_module(dict, "tests.dict")


def test_a_module_with_hooks_is_refused():
    layer = nn.Linear(2, 2)
    layer.register_forward_hook(lambda module, args, output: None)
    with pytest.raises(SerdeError, match=r"hooks are code and cannot be sent \(_forward_hooks\)"):
        serialize(layer)


def test_a_module_with_an_unlisted_function_is_refused():
    layer = nn.TransformerEncoderLayer(4, 2, 8, activation=lambda x: x)
    with pytest.raises(SerdeError, match="functions are code"):
        serialize(layer)


# ---- scripts -------------------------------------------------------------------------------------------------------


def make_script():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2))


def test_a_script_is_loaded_only_where_the_receiver_allows_it():
    script = make_script()
    message = serialize(script)
    with pytest.raises(SerdeError, match="run code from the sender"):
        deserialize(message)
    received = deserialize(message, Context(allow_scripts=True))
    assert torch.equal(received(torch.ones(1, 2)), script(torch.ones(1, 2)))


def test_a_script_function_is_callable_after_the_round_trip():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = torch.jit.trace(lambda x: x * 2, torch.ones(2))
    received = deserialize(serialize(function), Context(allow_scripts=True))
    assert torch.equal(received(torch.ones(2)), torch.full((2,), 2.0))


def test_exported_programs_are_refused_with_the_reason():
    program = torch.export.ExportedProgram.__new__(torch.export.ExportedProgram)
    with pytest.raises(SerdeError, match="unpickles"):
        serialize(program)


# ---- the published names -------------------------------------------------------------------------------------------


def worker(serializer=None, **rest):
    return SimpleNamespace(id="bob", serializer=serializer, **rest)


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


@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_the_published_tensor_pair_keeps_everything(serializer):
    tensor = torch.tensor([1.0, 2.0])
    tensor.grad = torch.tensor([3.0, 4.0])
    tensor.__dict__.update(_syft_id=9, _syft_tags={"#t"}, _syft_description="d")
    bob = worker(serializer)

    simplified = torch_serde._simplify_torch_tensor(bob, tensor)
    received = torch_serde._detail_torch_tensor(bob, simplified)

    assert simplified[0] == 9
    assert same(received, tensor)
    assert same(received.grad, tensor.grad)
    assert received.__dict__ == tensor.__dict__


def test_the_published_parameter_pair_keeps_the_type():
    parameter = nn.Parameter(torch.ones(2), requires_grad=False)
    parameter.__dict__["_syft_id"] = 4
    parameter.grad = torch.zeros(2)
    received = torch_serde._detail_torch_parameter(None, torch_serde._simplify_torch_parameter(None, parameter))
    assert same(received, parameter)
    assert received.__dict__["_syft_id"] == 4
    assert same(received.grad, parameter.grad)


@pytest.mark.parametrize(
    "value",
    [torch.device("cuda:1"), torch.Size([2, 3]), torch.channels_last, torch.preserve_format, torch.float16],
    ids=str,
)
def test_the_published_pairs_come_back(value):
    simplify, detail = torch_serde.MAP_TORCH_SIMPLIFIERS_AND_DETAILERS[type(value)]
    assert detail(None, simplify(None, value)) == value


def test_memory_formats_have_the_published_numbers():
    formats = (torch.channels_last, torch.contiguous_format, torch.preserve_format, torch.channels_last_3d)
    assert [torch_serde._simplify_torch_mem_format(None, form) for form in formats] == [1, 2, 3, 4]


def test_the_published_script_pair_asks_the_worker():
    simplified = torch_serde._simplify_script_module(None, make_script())
    with pytest.raises(SerdeError, match="run code"):
        torch_serde._detail_script_module(worker(), simplified)
    assert torch_serde._detail_script_module(worker(allow_scripts=True), simplified)(torch.ones(1, 2)).shape == (1, 2)


def test_the_published_map_agrees_with_the_codecs():
    published = list(torch_serde.MAP_TORCH_SIMPLIFIERS_AND_DETAILERS)
    assert published.index(nn.Parameter) < published.index(torch.Tensor)
    assert all(codecs.for_type(kind).type in (kind, torch.jit.ScriptModule) for kind in published)


def test_bits_distinguishes_tensors():
    assert bits(torch.zeros(1)) != bits(-torch.zeros(1))
