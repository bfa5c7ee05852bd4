import pytest

torch = pytest.importorskip("torch")
from syft_torch import serde as torch_serde  # noqa: E402
from syft_torch.serde import names  # noqa: E402

from .tensors import ALL_DTYPES, there_and_back  # noqa: E402


def test_every_dtype_of_this_torch_has_a_wire_number():
    assert set(names.DTYPE_NUMBERS) == set(ALL_DTYPES)


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_every_dtype_travels_as_a_value(dtype):
    assert there_and_back([dtype])[0] is dtype


@pytest.mark.parametrize("name", ["cpu", "cuda", "cuda:1", "mps", "meta", "xpu:0", "privateuseone:3"])
def test_a_device_keeps_its_index(name):
    assert there_and_back(torch.device(name)) == torch.device(name)


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


def test_memory_formats_have_the_published_numbers():
    formats = (torch.channels_last, torch.contiguous_format, torch.preserve_format, torch.channels_last_3d)
    assert [torch_serde._simplify_torch_mem_format(None, form) for form in formats] == [1, 2, 3, 4]
