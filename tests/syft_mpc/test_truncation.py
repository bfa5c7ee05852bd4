from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
from syft_mpc.errors import ProtocolError  # noqa: E402
from syft_mpc.numpy.kernels import NumpyKernels  # noqa: E402
from syft_mpc.protocol import Spec, rehearse  # noqa: E402

from .groups import Group  # noqa: E402


@pytest.mark.parametrize("divisor", [7, 256])
def test_a_quotient_reveals_one_comparison_on_the_lost_digits_to_whoever_knows_what_was_opened(divisor: int) -> None:
    """What truncation.md says, and no more than that."""
    sent: list[Any] = []
    group = Group(2, NumpyKernels(), watch=lambda sender, _to, arrays: sent.append((sender, arrays)))
    x = np.random.default_rng(7).integers(-(1 << 40), 1 << 40, 500)

    found = group.open(group.run("truncate", group.share(x), divisor=divisor))

    shares = [arrays[0] for sender, arrays in sent if sender != -1]
    lift = (1 << 62) // divisor * divisor
    unsigned = [int(c) % (1 << 64) for c in shares[0] + shares[1]]
    for quotient, value, c in zip(found.tolist(), (x + lift).tolist(), unsigned, strict=True):
        mask = (c - value + (1 << 63)) % (1 << 64) - (1 << 63)
        is_larger = value % divisor > (value + mask) % divisor
        assert quotient == value // divisor + is_larger - lift // divisor


@pytest.mark.parametrize("divisor", [2, 7, 1000, 65536, 1 << 20])
def test_truncation_is_never_off_by_one_or_more(group: Group, values: Any, divisor: int) -> None:
    x = values[0] // 2
    small = np.arange(-50, 250).astype(x.dtype)

    for numbers in (x, small):
        found = group.open(group.run("truncate", group.share(numbers), divisor=divisor))
        error = [abs(int(q) * divisor - int(n)) for q, n in zip(found, numbers, strict=True)]
        assert max(error) < divisor


def test_truncation_is_right_on_average() -> None:
    group = Group(3, NumpyKernels())

    found = group.open(group.run("truncate", group.share(np.full(40_000, 250)), divisor=1000))

    assert set(found.tolist()) == {0, 1}
    assert abs(found.mean() - 0.25) < 0.02


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("bits", [0, 1, 16, 29, 30])
def test_quotients_by_powers_of_two_are_off_by_less_than_one(dtype: str, bits: int) -> None:
    group, most = Group(3, NumpyKernels()), np.iinfo(dtype).max // 2
    divisors = [1 << bits, *([1 << 2 * bits, 1 << 2 * bits + 1] if dtype == "int64" else [])]
    x = np.array([0, 1, -1, 12345, -12345, most, -most], dtype)

    for divisor in divisors:
        found = group.open(group.run("truncate", group.share(x), divisor=divisor))
        assert all(abs(int(q) * divisor - int(value)) < divisor for q, value in zip(found, x, strict=True))


@pytest.mark.parametrize("divisor", [0, -3, 1 << 63, "2", None])
def test_a_divisor_that_is_not_a_positive_integer_is_refused(divisor: Any) -> None:
    group = Group(2, NumpyKernels())
    x = np.arange(3)

    for name, operands in (("truncate", [x]), ("spdz_mul", [x, x]), ("square", [x])):
        with pytest.raises(ProtocolError, match="the divisor is not an integer from 1 to"):
            rehearse(NumpyKernels(), name, (Spec((3,)),) * len(operands), (("divisor", divisor),), 2)
    assert (group.open(group.run("square", group.share(x))) == x * x).all()
