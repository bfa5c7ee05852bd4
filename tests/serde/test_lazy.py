"""Readers check types before they iterate or compare: a range may be endless, a tensor may be remote."""

import pytest

import syft_core.tensors.logging
import syft_core.tensors.polynomial
import syft_core.workers.party.virtual  # noqa: F401  # they register the codecs of layers, messages and pointers
from syft_core.hook.forms import form
from syft_core.messages import _detail_form
from syft_core.serde import PEER_LIMITS, Context, Limits, SerdeError, codecs, deserialize, from_frames, serialize
from syft_core.serde.layout import pack_header
from syft_core.serde.structure import _packers

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

ENDLESS = [9, 0, 10**15, 1]
F32 = 7
PRECISION = {"base": 10, "precision_fractional": 3, "field": "long", "dtype": None}


def read(structure, limits=None):
    context = Context(limits=limits or Limits())
    return from_frames([pack_header(_packers.packer.pack(structure), ())], context)


LAZY = {
    "attributes of an OrderedDict": [6, ENDLESS],
    "shape of a tensor written as a list": [150, 6, "all", [4, ENDLESS, "float32", [3]]],
    "shape of a tensor written as an array": [150, 6, "numpy", [4, "<f4", ENDLESS, b"", "float32"]],
    "parts of a tensor written as a list": [150, 6, "all", ENDLESS],
    "elements of a tensor": [150, 0, F32, ENDLESS, 1],
    "order of dimensions": [150, 1, [5, "order", ENDLESS], 0, F32, bytes(4), 1],
    "elements of an array": [100, 0, "<f4", ENDLESS, 1],
    "texts of an array": [100, 2, [102, 3], ENDLESS, 10**15],
    "users of a PrivateTensor": [254, [5, "allowed_users", ENDLESS], [5], None],
    **{
        f"{name} of a FixedPrecisionTensor ({number})": [
            255,
            [5, *[part for key, own in {**PRECISION, name: value}.items() for part in (key, own)]],
            [5],
            None,
        ]
        for number, (name, value) in enumerate(
            (
                ("base", ENDLESS),
                ("base", 1 << 62),
                ("precision_fractional", ENDLESS),
                ("precision_fractional", 10**9),
                ("field", ENDLESS),
                ("dtype", ENDLESS),
            )
        )
    },
    "functions of a PolynomialTensor": [252, [5, "function", None, "precision", 1, "functions", ENDLESS], [5], None],
    "pieces of a PolynomialTensor": [
        252,
        [5, "function", None, "precision", 1, "functions", [5, "exp", ENDLESS]],
        [5],
        None,
    ],
    "tags of a layer": [250, [5], [5, "tags", ENDLESS], None],
    "pointers of a multi-pointer": [342, ENDLESS],
    "shape of a form": [318, ENDLESS, None, None, None, False, True],
    "buffers of a module": [161, "torch.nn.Linear", True, [5], [5], ENDLESS, [5], [5]],
    "arguments of a Run": [301, "torch", "torch.add", ENDLESS, None, 1, None, -1],
    "ids of a Release": [305, ENDLESS],
    "words of a Search": [308, ENDLESS],
    "word of a Search": [308, [4, ENDLESS]],
    "names of arguments": [309, 1, [4], [5, ENDLESS, 1], 1],
}


@pytest.mark.parametrize("structure", LAZY.values(), ids=LAZY)
def test_a_range_is_not_walked_where_a_list_is_expected(structure):
    with pytest.raises(SerdeError, match="^(?!.*no codec)"):
        read(structure)


class Untouchable(np.ndarray):
    """Represents a remote tensor in a message: comparing it, or reading its length, would send a message."""

    def _refuse(self, *args, **kwargs):
        pytest.fail("a reader used a value before it looked at its type")

    __eq__ = __ne__ = __lt__ = __bool__ = __len__ = __iter__ = _refuse
    __hash__ = None


UNTYPED = {
    "form of a tensor": lambda odd: (150, [odd, F32, bytes(4), 1]),
    "form of a parameter": lambda odd: (151, [True, odd, F32, bytes(4), 1]),
    "form of the elements of a tensor": lambda odd: (150, [1, {"id": 5}, odd, F32, bytes(4), 1]),
    "elements of a tensor": lambda odd: (150, [0, F32, odd, 1]),
    "dtype of a tensor": lambda odd: (150, [0, odd, bytes(4), 1]),
    "requires_grad": lambda odd: (150, [1, {"requires_grad": odd}, 0, F32, bytes(4), 1]),
    "buffer": lambda odd: (150, [1, {"buffer": odd}, 0, F32, bytes(4), 1]),
    "grad": lambda odd: (150, [1, {"grad": odd}, 0, F32, bytes(4), 1]),
    "order": lambda odd: (150, [1, {"order": (odd,)}, 0, F32, bytes(4), 1]),
    "numpy's name of a dtype": lambda odd: (150, [6, "numpy", (odd, (1,), bytes(4), "float32")]),
    "parts written by a strategy": lambda odd: (150, [6, "numpy", odd]),
    "type of a device": lambda odd: (155, [odd, 0]),
    "state of a generator": lambda odd: (158, [torch.device("cpu"), odd]),
    "layout of an array": lambda odd: (100, [odd, "<f4", bytes(4), 1]),
    "elements of an array": lambda odd: (100, [0, "<f4", odd, 1]),
    "form of a dtype": lambda odd: (102, [odd, 8, False]),
    "coefficient": lambda odd: (253, [0.0, 1.0, odd]),
    "tag": lambda odd: (250, [{}, {"tags": odd}, None]),
    "shape of a form": lambda odd: (318, [(odd,), None, None, None, False, True]),
    "flag of a form": lambda odd: (318, [None, None, None, None, odd, True]),
}


@pytest.mark.parametrize("payload", UNTYPED.values(), ids=UNTYPED)
def test_a_value_is_not_compared_before_its_type_is_known(payload):
    code, parts = payload(np.zeros(1).view(Untouchable))

    with pytest.raises(SerdeError):
        codecs.for_code(code).detail(parts, Context())


@pytest.mark.parametrize("shape", [(True, 2), (1.0, 2), [1, 2]])
def test_a_form_from_the_wire_does_not_replace_an_equal_one(shape):
    with pytest.raises(SerdeError, match="a field has a wrong type"):
        _detail_form([shape, None, torch.float64, torch.device("cpu"), False, True], Context())
    assert list(map(type, form((1, 2), None, torch.float64, torch.device("cpu")).shape)) == [int, int]


def test_a_plain_tuple_does_not_take_the_place_of_a_size():
    _detail_form([(7, 13), None, torch.float32, torch.device("cpu"), False, True], Context())

    assert type(form(torch.Size((7, 13)), None, torch.float32, torch.device("cpu")).shape) is torch.Size


@pytest.mark.parametrize(
    "value", [range(200_000), [range(60_000), (range(60_000),)], range(2**70), range(0, -(10**9), -1)]
)
def test_all_ranges_of_a_message_together_are_bounded(value):
    data = serialize(value)

    assert deserialize(data) == value
    with pytest.raises(SerdeError, match="ranges have more than 100000 values"):
        deserialize(data, Context(limits=PEER_LIMITS))


def test_short_ranges_are_taken_from_peers():
    value = [range(50_000), range(50_000), range(0), range(5, 5, 7)]

    assert deserialize(serialize(value), Context(limits=PEER_LIMITS)) == value


def test_a_structure_alone_is_bounded_by_the_bytes_of_a_message():
    with pytest.raises(SerdeError, match="bytes: the limit is 1000"):
        deserialize(serialize("x" * 2000), Context(limits=Limits(max_bytes=1000)))
