from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")

from .groups import make_kernels  # noqa: E402


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("terms", [90, 512, 1024, 2048])
def test_products_of_digits_are_exact_for_all_integers(framework: str, dtype: str, terms: int) -> None:
    kernels, random, info = make_kernels(framework), np.random.default_rng(3), np.iinfo(dtype)
    x, y = (random.integers(info.min, info.max, shape, dtype, endpoint=True) for shape in ((20, terms), (terms, 10)))
    x[0], y[:, 0] = info.min, info.max
    x[1:3] = y[:, 1:3] = np.array(-(1 << 21) * (1 + (1 << 22)) - (1 << 62)).astype(dtype)  # The largest digits.
    one, other = (kernels.from_bytes(bytearray(z.tobytes()), dtype, z.shape) for z in (x, y))

    assert (np.asarray(kernels.matmul(one, other)) == x @ y).all()
    assert (np.asarray(kernels.multiply_digits(one, other, kernels.xp.matmul, terms)) == x @ y).all()


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("terms", [1, 90, 512, 513, 1100])
def test_products_of_large_matrices_are_exact_for_all_integers(
    framework: str, terms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYFT_PRODUCTS", "digits")
    kernels, random, info = make_kernels(framework), np.random.default_rng(3), np.iinfo("int64")
    x, y = (random.integers(info.min, info.max, shape, endpoint=True) for shape in ((2000, terms), (40, terms)))
    x[0], y[0] = info.min, info.max
    x[1:3] = y[1:3] = -(1 << 21) * (1 + (1 << 22)) - (1 << 62)  # The largest digits.

    one, other = kernels.from_array(x), kernels.from_array(y.T)

    assert (np.asarray(kernels.matmul(one, other)) == x @ y.T).all()
    batches = kernels.matmul(kernels.reshape(one, (2, 1000, terms)), other)
    assert (np.asarray(batches).reshape(2000, 40) == x @ y.T).all()


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 2, 2)])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_convolutions_and_their_gradients_are_those_of_torch(
    framework: str, stride: int, padding: int, dilation: int, groups: int
) -> None:
    torch = pytest.importorskip("torch")
    kernels, random = make_kernels(framework), np.random.default_rng(3)
    x, weight = random.integers(-9, 9, (3, 4, 9, 8)), random.integers(-9, 9, (8, 4 // groups, 3, 2))
    inputs, filters = (torch.from_numpy(part).double().requires_grad_() for part in (x, weight))
    result = torch.conv2d(inputs, filters, None, stride, padding, dilation, groups)
    gradient = random.integers(-9, 9, tuple(result.shape))
    result.backward(torch.from_numpy(gradient).double())
    pairs = {"stride": stride, "padding": padding, "dilation": dilation}
    options = {"groups": groups, **{name: (number, number) for name, number in pairs.items()}}
    x, weight, gradient = map(kernels.from_array, (x, weight, gradient))

    assert np.asarray(kernels.conv2d(x, weight, **options)).tolist() == result.tolist()
    found = kernels.conv2d_input(gradient, weight, shape=(3, 4, 9, 8), **options)
    assert np.asarray(found).tolist() == inputs.grad.tolist()
    found = kernels.conv2d_weight(x, gradient, shape=tuple(filters.shape), **options)
    assert np.asarray(found).tolist() == filters.grad.tolist()
