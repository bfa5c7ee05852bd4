from __future__ import annotations

import math
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from syft_mpc import waves  # noqa: E402
from syft_mpc.protocol import Spec  # noqa: E402
from syft_mpc.waves import Exponentials, Waves, Widening, bits_of, digits, turn  # noqa: E402

from .groups import Group, make_kernels  # noqa: E402

FRAMEWORKS = ["numpy", "torch"]
ANGLES = np.array([0, 1 << 62, -(1 << 62), (1 << 63) - 1, -(1 << 63), 1 << 40, 12345678901234567], dtype="int64")


def numbers(kernels: Any, values: np.ndarray) -> Any:
    return kernels.from_bytes(bytearray(values.tobytes()), values.dtype.name, values.shape)


@pytest.mark.parametrize(("number", "bits"), [(1, 0), (2, 1), (1000, 10), (1024, 10), (1025, 11), (0.5, -1), (0.3, -1)])
def test_a_number_has_as_many_bits_as_the_next_power_of_two(number: float, bits: int) -> None:
    assert bits_of(number) == bits
    assert 2.0 ** (bits - 1) < number <= 2.0**bits


def test_digits_leave_room_for_the_largest_number() -> None:
    assert digits(1 << 16, 8.0) == 61 - 16 - 3


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_waves_are_cosines_and_sines_of_multiples(framework: str, odd: bool, count: int) -> None:
    found = np.asarray(turn(make_kernels(framework), numbers(make_kernels(framework), ANGLES), count, odd))

    multiples = np.arange(1, 2 * count, 2) if odd else np.arange(1, count + 1)
    exact = ANGLES.astype("float64") * 2.0**-64 * 2 * math.pi * multiples[:, None]
    assert found.shape == (2 * count, len(ANGLES))
    assert np.abs(found - np.concatenate([np.cos(exact), np.sin(exact)])).max() < 1e-12


def test_both_frameworks_compute_the_same_bits() -> None:
    pytest.importorskip("torch")
    found = [np.asarray(turn(kernels, numbers(kernels, ANGLES), 5, True)) for kernels in map(make_kernels, FRAMEWORKS)]

    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize("width", [0.1, 1.0, 2.5])
def test_powers_of_e_are_computed_with_products_only(width: float) -> None:
    x = np.linspace(0, 1, 50)

    assert np.abs(waves._exp(x, width) / np.exp(x * width) - 1).max() < 1e-13


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_number_is_in_one_part_of_the_ring(framework: str) -> None:
    kernels = make_kernels(framework)

    part, rest = waves._locate(kernels, numbers(kernels, ANGLES), 8)

    assert np.asarray(part).tolist() == [(int(angle) % 2**64) >> 61 for angle in ANGLES]
    assert ((np.asarray(rest) >= 0) & (np.asarray(rest) <= 1)).all()


@pytest.mark.parametrize(
    "correlation", [Waves(3, True, 20, (4, 2)), Exponentials(8, 1.5, 30, (4, 2)), Widening((4, 2))], ids=repr
)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_correlation_has_the_forms_that_it_declares(framework: str, correlation: Any) -> None:
    kernels = make_kernels(framework)
    (free,) = correlation.forms[0]
    drawn = np.random.default_rng(5).integers(-(2**30), 2**30, free.shape).astype(free.dtype)

    derived = correlation.derive(kernels, numbers(kernels, drawn))

    found = [Spec(tuple(array.shape), str(array.dtype).removeprefix("torch.")) for array in derived]
    assert found == list(correlation.forms[1])


def test_a_power_is_shared_for_the_part_in_which_the_mask_is_only() -> None:
    kernels = make_kernels("numpy")
    masks = np.array([0, 1 << 61, -1], dtype="int64")

    (powers,) = Exponentials(8, 1.0, 30, (3,)).derive(kernels, masks)

    assert (powers != 0).sum(axis=0).tolist() == [1, 1, 1]
    assert powers[:, 0].tolist() == [1 << 30, *[0] * 7]
    assert powers.argmax(axis=0).tolist() == [0, 1, 7]


def test_the_parts_of_a_mask_add_up_to_it(group: Group) -> None:
    kernels = make_kernels("numpy")
    masks = np.array([0, 1, -1, 2**31 - 1, -(2**31)], dtype="int32")

    low, top = Widening((5,)).derive(kernels, masks)

    assert ((low + top * (1 << 31)) % 2**32 == masks.astype("int64") % 2**32).all()


@pytest.mark.parametrize("scale", [1 << 10, 1 << 16])
def test_a_wave_of_shared_numbers_is_that_of_the_numbers(group: Group, scale: int) -> None:
    x = np.linspace(-6, 6, 20)

    shares = group.run("wave", group.share((x * scale).astype("int64")), scale=scale, function="sin")

    assert np.abs(group.open(shares) / scale - np.sin(x)).max() < 2 / scale + 1e-3
