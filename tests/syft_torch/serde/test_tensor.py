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

from ...serde.equality import bits, same  # noqa: E402
from .tensors import SERIALIZERS, dense, there_and_back, worker  # noqa: E402

# ---- views, memory formats, ownership ------------------------------------------------------------------------------


def test_a_tensor_sent_in_process_is_not_shared():
    tensor = torch.zeros(5000)
    received = from_frames(frames(tensor))
    received.add_(1)
    assert tensor.sum() == 0


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


# ---- hostile payloads ----------------------------------------------------------------------------------------------

F32, I64, BOOL = 7, 5, 0
FOUR = bytes(4)


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


# ---- the published names -------------------------------------------------------------------------------------------


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


def test_the_published_map_agrees_with_the_codecs():
    published = list(torch_serde.MAP_TORCH_SIMPLIFIERS_AND_DETAILERS)
    assert published.index(nn.Parameter) < published.index(torch.Tensor)
    assert all(codecs.for_type(kind).type in (kind, torch.jit.ScriptModule) for kind in published)


def test_bits_distinguishes_tensors():
    assert bits(torch.zeros(1)) != bits(-torch.zeros(1))
