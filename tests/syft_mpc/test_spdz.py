from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
from syft_mpc.errors import ProtocolError  # noqa: E402
from syft_mpc.numpy.kernels import NumpyKernels  # noqa: E402
from syft_mpc.protocol import PROTOCOLS, Spec, rehearse  # noqa: E402

from .groups import Group  # noqa: E402


def test_products_and_squares_are_exact(group: Group, values: Any) -> None:
    x, y = values

    assert (group.open(group.run("spdz_mul", group.share(x), group.share(y))) == x * y).all()
    assert (group.open(group.run("square", group.share(x))) == x * x).all()


def test_matrix_products_and_convolutions_are_exact(group: Group) -> None:
    random = np.random.default_rng(7)
    x, y = random.integers(-99, 99, (2, 3, 4)), random.integers(-99, 99, (4, 5))
    image, filters = random.integers(-99, 99, (2, 4, 7, 7)), random.integers(-99, 99, (6, 2, 3, 3))
    options = {"op": "images", "stride": (2, 2), "padding": (1, 1), "groups": 2}

    assert (group.open(group.run("spdz_mul", group.share(x), group.share(y), op="matrices")) == x @ y).all()
    expected = NumpyKernels().conv2d(image, filters, (2, 2), (1, 1), (1, 1), 2)
    assert (group.open(group.run("spdz_mul", group.share(image), group.share(filters), **options)) == expected).all()


def test_a_value_that_was_masked_once_serves_many_products(group: Group) -> None:
    random = np.random.default_rng(7)
    y, filters = random.integers(-99, 99, (4, 5)), random.integers(-99, 99, (6, 2, 3, 3))
    kept = [(values, group.run("spdz_mask", values), group.number) for values in map(group.share, (y, filters))]

    for _ in range(3):
        x, image = random.integers(-99, 99, (2, 3, 4)), random.integers(-99, 99, (2, 2, 7, 7))
        for one, options, expected, (other, _, mask) in (
            (x, {"op": "matrices"}, x @ y, kept[0]),
            (image, {"op": "images", "stride": (2, 2)}, NumpyKernels().conv2d(image, filters, (2, 2)), kept[1]),
        ):
            found = group.run("spdz_mul_masked", group.share(one), other, mask=mask, **options)
            assert (group.open(found) == expected).all()


def test_a_mask_is_used_for_one_opening_and_one_value() -> None:
    sent: list[Any] = []
    group = Group(2, NumpyKernels(), watch=lambda *message: sent.append(message))
    x, y = (group.share(np.arange(6) * k) for k in (1, 2))
    handles = [group.run("spdz_mask", y) for _ in range(2)]
    ((one,), _, (other,), _) = [arrays for _, _, arrays in sent if type(arrays) is tuple]
    assert not (one == other).any()

    sent.clear()
    with pytest.raises(ProtocolError, match="its mask 99 is unknown here"):
        group.attempt("spdz_mul_masked", x, y, mask=99)
    del handles
    assert not [arrays for sender, _, arrays in sent if sender != -1 and type(arrays) is tuple]


def test_a_mask_is_forgotten_with_what_was_opened_under_it() -> None:
    group = Group(2, NumpyKernels())
    x, y = group.share(np.arange(6)), group.share(np.arange(6))
    handle, mask = group.run("spdz_mask", y), group.number
    group.run("spdz_mul_masked", x, y, mask=mask)
    assert all(group.channels[rank].kept == 3 * 8 * 6 for rank in (0, 1))

    del handle
    group.run("square", x)

    for rank in (0, 1):
        channel = group.channels[rank]
        assert (channel.kept, channel._masks) == (0, {})


def test_a_product_with_a_kept_mask_costs_what_its_declaration_says() -> None:
    group, entry = Group(2, NumpyKernels()), PROTOCOLS["spdz_mul_masked"]
    x, y = group.share(np.zeros((4, 3), "int64")), group.share(np.zeros((3, 2), "int64"))
    options = {"op": "matrices", "divisor": 1000}
    handle, mask = group.run("spdz_mask", y), group.number
    specs = (Spec((4, 3)), Spec((3, 2)))

    rounds, sent = group.measure("spdz_mul_masked", x, y, mask=mask, **options)
    del handle

    declared = [cost(*specs, mask=mask, **options) for cost in (entry.rounds, entry.sends) if not isinstance(cost, int)]
    assert [rounds, sent] == [declared[0], 2 * declared[1]] == [2, 2 * 8 * (12 + 8)]
    rehearsed = rehearse(
        NumpyKernels(), "spdz_mul_masked", specs, (("divisor", 1000), ("mask", 5), ("op", "matrices")), 2
    )
    assert (rehearsed.rounds, rehearsed.sends) == (rounds, sent // 2)
