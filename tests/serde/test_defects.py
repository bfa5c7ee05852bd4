"""One test for each serialization defect of the ancestor, by its number in the defect register."""

import gc
import weakref
from collections import OrderedDict
from types import SimpleNamespace

import pytest

from syft_core.serde import Context, SerdeError, deserialize, frames, register_codec, serialize

from .equality import same


class Pointer:
    """A pointer as the serializer sees it: a few plain values and a location."""

    def __init__(self, id_at_location, location):
        self.id_at_location, self.location = id_at_location, location


def test_d28_a_message_holds_values_and_no_claim_on_the_senders_object():
    register_codec(
        Pointer,
        code=7028,
        simplify=lambda pointer, context: (pointer.id_at_location, pointer.location),
        detail=lambda payload, context: Pointer(*payload),
    )
    pointer = Pointer(5, "bob")
    alive = weakref.ref(pointer)
    message = serialize(pointer)
    del pointer
    gc.collect()
    assert alive() is None
    assert vars(deserialize(message)) == {"id_at_location": 5, "location": "bob"}


@pytest.mark.parametrize("number", [2**64, 2**64 + 1, 2**100, -(2**63) - 1, -(2**100), 10**1000])
def test_d60_ints_of_any_size_come_back_as_ints(number):
    assert same(deserialize(serialize([number])), [number])


def test_d61_the_numpy_strategy_works_both_ways():
    torch = pytest.importorskip("torch")
    from syft_torch.serde import _deserialize_tensor, _serialize_tensor  # noqa: PLC0415 - the framework may be absent

    worker = SimpleNamespace(id="bob", serializer="numpy")
    tensor = torch.arange(6).reshape(2, 3)
    assert same(_deserialize_tensor(worker, "numpy", _serialize_tensor(worker, tensor)), tensor)
    assert same(deserialize(serialize(tensor, Context(worker)), Context(worker)), tensor)


def test_d62_a_device_keeps_its_index():
    torch = pytest.importorskip("torch")
    assert deserialize(serialize(torch.device("cuda:1"))) == torch.device("cuda:1")


def test_d62_complex_and_slices_with_tensors_travel():
    torch = pytest.importorskip("torch")
    assert deserialize(serialize(1 + 2j)) == 1 + 2j
    assert same(deserialize(serialize(slice(torch.tensor(1), 5))), slice(torch.tensor(1), 5))


def test_d62_numpy_scalars_and_strings_travel_and_arrays_are_writable():
    np = pytest.importorskip("numpy")
    for value in (np.bool_(True), np.int8(3), np.array(["a", "bc"])):
        assert same(deserialize(serialize(value)), value)
    assert deserialize(serialize(np.zeros(3))).flags.writeable


def test_d63_a_slice_travels_without_its_storage():
    torch = pytest.importorskip("torch")
    whole = torch.zeros(1000, 1000)
    assert len(serialize(whole[0:1])) < 4200
    assert sum(map(len, frames(whole[0:1]))) < 4200


def test_d64_a_pickle_in_the_place_of_a_message_is_not_run():
    pickle = pytest.importorskip("pickle")

    class Run:
        def __reduce__(self):
            return (pytest.fail, ("it was run",))

    with pytest.raises(SerdeError, match="not a syft-core message"):
        deserialize(pickle.dumps(Run()))


def test_d65_functions_that_touch_files_cannot_be_named_in_a_message():
    torch = pytest.importorskip("torch")
    for function in (torch.save, torch.load, open):
        with pytest.raises(SerdeError, match="has no codec"):
            serialize(function)


def test_d89_an_ordered_dict_stays_an_ordered_dict():
    assert same(deserialize(serialize(OrderedDict(b=1, a=2))), OrderedDict(b=1, a=2))


def test_d89_damage_is_detected():
    message = bytearray(serialize({"key": "value"}))
    message[-2] ^= 1
    with pytest.raises(SerdeError, match="checksum"):
        deserialize(message)


def test_d89_incompressible_data_is_not_compressed():
    np = pytest.importorskip("numpy")
    noise = np.random.default_rng(1).integers(0, 2**63, 50_000)
    header, buffer = frames(noise, Context(compression="auto"))
    assert memoryview(buffer).nbytes == noise.nbytes
    assert len(header) < 200
