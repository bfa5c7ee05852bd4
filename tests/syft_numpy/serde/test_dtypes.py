import pytest

np = pytest.importorskip("numpy")
from syft_core.serde import SerdeError, deserialize, frames, from_frames, serialize  # noqa: E402

from .test_array import DTYPES  # noqa: E402


def there_and_back(value, **options):
    received = deserialize(serialize(value), **options)
    assert type(from_frames(frames(value), **options)) is type(received)
    return received


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_travels_as_a_value(dtype):
    assert there_and_back(np.dtype(dtype)) == np.dtype(dtype)


@pytest.mark.parametrize("kind", [np.float32, np.int8, np.bool_, np.str_, np.datetime64, np.longlong])
def test_scalar_types_travel_as_values(kind):
    assert there_and_back(kind) is kind


def test_array_classes_do_not_travel():
    with pytest.raises(SerdeError, match="classes are code"):
        serialize(np.ndarray)


def test_a_dtype_that_is_not_numpys_own_is_refused():
    tests = pytest.importorskip("numpy._core._rational_tests")
    array = np.array([tests.rational(1, 2), tests.rational(1, 3)])

    for value in (array, array.dtype, np.zeros(2, [("a", "i4"), ("b", array.dtype)])):
        with pytest.raises(SerdeError, match=r"dtype rational: it is not one of numpy's own.*`x.astype"):
            serialize(value)


def test_bfloat16_of_another_package_is_refused():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with pytest.raises(SerdeError, match="dtype bfloat16: it is not one of numpy's own"):
        serialize(np.ones(3, ml_dtypes.bfloat16))
