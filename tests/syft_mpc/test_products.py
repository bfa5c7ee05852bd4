"""Matrix products of integers are the same in whichever way a process computes them."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("hypothesis")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from syft_mpc.products import FastestProduct  # noqa: E402

from .groups import make_kernels  # noqa: E402

INT64, EDGES = (
    np.iinfo("int64"),
    (-(1 << 63), (1 << 63) - 1, -1, 0, 1, 1 << 32, -(1 << 21) * (1 + (1 << 22)) - (1 << 62)),
)
SHAPES = [
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((4, 3), (3,)),
    ((0, 3), (3, 4)),
    ((4, 0), (0, 3)),
    ((4, 3), (3, 0)),
    ((1, 1), (1, 1)),
    ((1, 700), (700, 9)),
    ((65, 40), (40, 33)),
    ((2, 5, 3), (3, 4)),
    ((2, 5, 3), (2, 3, 4)),
    ((5, 3), (2, 3, 4)),
    ((3, 1, 4, 6), (2, 6, 5)),
]


@pytest.fixture(params=["numpy", "torch"])
def arrays(request: pytest.FixtureRequest) -> Any:
    """The kernels with which a party of a framework computes."""
    return make_kernels(request.param).arrays


def draw(random: Any, shape: tuple[int, ...], dtype: str, layout: str) -> Any:
    """Return integers of all sizes, in a layout that a program may produce."""
    numbers = random.integers(INT64.min, INT64.max, shape, endpoint=True)
    numbers = np.where(random.random(shape) < 0.3, random.choice(EDGES, shape), numbers).astype(dtype)
    if layout == "transposed" and len(shape) > 1:
        return np.ascontiguousarray(numbers.swapaxes(-1, -2)).swapaxes(-1, -2)
    if layout == "every second":
        return np.repeat(numbers, 2, -1)[..., ::2]
    if layout == "reversed":
        return np.ascontiguousarray(numbers[..., ::-1])[..., ::-1]
    if layout == "read-only":
        numbers.flags.writeable = False
    return numbers


LAYOUTS = st.sampled_from(["contiguous", "transposed", "every second", "reversed", "read-only"])


@settings(max_examples=60, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_all_ways_give_the_same_integers(framework: str, data: Any) -> None:
    arrays, random = make_kernels(framework).arrays, np.random.default_rng(data.draw(st.integers(0, 1 << 30)))
    shapes, dtype = data.draw(st.sampled_from(SHAPES)), data.draw(st.sampled_from(["int64", "int32"]))
    x, y = (draw(random, shape, dtype, data.draw(LAYOUTS)) for shape in shapes)
    expected = np.matmul(x.astype(object), y.astype(object)) if 0 not in (*x.shape, *y.shape) else np.matmul(x, y)
    bits = 8 * x.itemsize
    expected = np.vectorize(lambda n: (int(n) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1), otypes=[dtype])(
        expected
    )

    assert (arrays.matmul(x, y) == expected).all()
    if x.ndim > 1 and y.ndim > 1:
        for name, multiply in arrays.ways_to_multiply().items():
            found = multiply(x, y)
            assert (found.dtype, found.shape) == (x.dtype, expected.shape), name
            assert (found == expected).all(), name


def test_each_class_of_products_is_measured_once() -> None:
    calls: list[str] = []

    def make(name: str) -> Any:
        return lambda x, y: calls.append(name) or x @ y

    x = np.ones((40, 40), "int64")
    for classes, operands in enumerate([(x, x), (x[:33, :39], x[:39, :50]), (x[:3], x), (x.T, x), (x[None], x)]):
        calls.clear()
        for _ in range(2):  # Also if there are several kernels.
            multiply = FastestProduct({name: make(name) for name in ("one", "other")})
            multiply(*operands)
            multiply(*operands)
        assert len(calls) == (4 if classes == 1 else 10)
        assert len(set(calls[-4:])) == 1


def test_a_variable_names_the_way(arrays: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(6).reshape(2, 3)
    for name in arrays.ways_to_multiply():
        monkeypatch.setenv("SYFT_PRODUCTS", name)
        assert arrays._multiply.choose(x, x.T) == name
        assert (arrays.matmul(x, x.T) == x @ x.T).all()

    monkeypatch.setenv("SYFT_PRODUCTS", "magic")
    with pytest.raises(ValueError, match="cannot multiply by 'magic': SYFT_PRODUCTS must be one of .*digits"):
        arrays.matmul(x, x.T)
