"""Encrypted computation: the backend's kernels compute modulo powers of two, and its tensors can be shared."""

from __future__ import annotations

import operator
import secrets
import struct
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from syft_core.hook.chain import end_of
from syft_core.hook.hook import FrameworkHook
from syft_core.testing.section import OTHERS, VALUES, Bob, Section, fix
from syft_core.values import Tensor
from syft_mpc.kernels import Kernels

FORMATS = {"int64": "q", "int32": "i", "int16": "h", "uint8": "B"}
ARITHMETIC: tuple[Callable[[Any, Any], Any], ...] = (operator.add, operator.sub, operator.mul)
COMPARISONS: tuple[Callable[[Any, Any], Any], ...] = (operator.lt, operator.ge, operator.eq)
EXTREMES = [0, 1, -1, 12345, -(2**31), 2**31 - 1]


class EncryptedSection(Section):
    """Every check is skipped for a backend without kernels."""

    @fix("Kernels.from_bytes", "Kernels.to_bytes")
    def test_bytes_become_integers_and_back(self, kernels: Kernels) -> None:
        for dtype, code in FORMATS.items():
            low, high = (0, 255) if dtype == "uint8" else (-(2 ** (8 * struct.calcsize(code) - 1)), 3)
            buffer = struct.pack(f"<6{code}", low, high, 1, 2, 3, 4)
            array = kernels.from_bytes(bytearray(buffer), dtype, (2, 3))
            assert self.numbers(array) == [[low, high, 1], [2, 3, 4]]
            assert bytes(kernels.to_bytes(array)) == buffer
        assert tuple(kernels.from_bytes(bytearray(), "int64", (0, 2)).shape) == (0, 2)

    @fix("Kernels (operators)", "Kernels.wrapping_around")
    def test_integers_wrap_around(self, kernels: Kernels) -> None:
        for dtype, bits in (("int64", 64), ("int32", 32)):
            numbers = [*EXTREMES, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))]
            x, y = self._array(kernels, numbers, dtype), self._array(kernels, numbers[::-1], dtype)
            with kernels.wrapping_around():
                for compute in ARITHMETIC:
                    expected = [_wrap(compute(a, b), bits) for a, b in zip(numbers, numbers[::-1], strict=True)]
                    assert self.numbers(compute(x, y)) == expected

    @fix("Kernels.cast")
    def test_casts_are_modulo_the_range_of_the_type(self, kernels: Kernels) -> None:
        numbers = [2**40 + 5, -3, 2**31, 255]
        x = self._array(kernels, numbers)
        assert self.numbers(kernels.cast(x, "int32")) == [_wrap(number, 32) for number in numbers]
        assert self.numbers(kernels.cast(x, "uint8")) == [number % 256 for number in numbers]

    @fix("Kernels.matmul")
    def test_matrix_products_are_exact(self, kernels: Kernels) -> None:
        for dtype, bits in (("int64", 64), ("int32", 32)):
            one, other = (_draw(rows * columns, bits) for rows, columns in ((3, 40), (40, 2)))
            x = kernels.reshape(self._array(kernels, one, dtype), (3, 40))
            y = kernels.reshape(self._array(kernels, other, dtype), (40, 2))
            expected = [
                [_wrap(sum(one[40 * i + k] * other[2 * k + j] for k in range(40)), bits) for j in range(2)]
                for i in range(3)
            ]
            assert self.numbers(kernels.matmul(x, y)) == expected

    @fix("Kernels.conv2d", "Kernels.windows", "Kernels.pad")
    def test_convolutions_are_exact(self, kernels: Kernels) -> None:
        image, filters = _draw(25, 64), _draw(4, 64)
        found = kernels.conv2d(
            kernels.reshape(self._array(kernels, image), (1, 1, 5, 5)),
            kernels.reshape(self._array(kernels, filters), (1, 1, 2, 2)),
            stride=(2, 2),
            padding=(1, 1),
        )
        padded = {(i, j): image[5 * i + j] for i in range(5) for j in range(5)}
        expected = [
            [
                _wrap(sum(padded.get((2 * i + a - 1, 2 * j + b - 1), 0) * filters[2 * a + b] for a, b in _PLACES), 64)
                for j in range(3)
            ]
            for i in range(3)
        ]
        assert self.numbers(found) == [[expected]]

    @fix("Kernels.concat", "Kernels.stack", "Kernels.permute", "Kernels.sum", "Kernels.arange")
    def test_arrays_are_joined_permuted_and_added(self, kernels: Kernels) -> None:
        x, y = self._array(kernels, [1, 2]), self._array(kernels, [3, 4])
        assert self.numbers(kernels.concat([x, y])) == [1, 2, 3, 4]
        stacked = kernels.stack([x, y], 0)
        assert self.numbers(stacked) == [[1, 2], [3, 4]]
        assert self.numbers(kernels.permute(stacked, (1, 0))) == [[1, 3], [2, 4]]
        assert self.numbers(kernels.sum(stacked, 0)) == [4, 6]
        assert self.numbers(kernels.arange(3)) == [0, 1, 2]

    @fix("Kernels.floor_divide")
    def test_quotients_are_rounded_down(self, kernels: Kernels) -> None:
        x = self._array(kernels, [7, -7, 8, -8])
        for divisor in (4, 3):
            assert self.numbers(kernels.floor_divide(x, divisor)) == [number // divisor for number in (7, -7, 8, -8)]

    @fix("Kernels.encode", "Kernels.decode", "Kernels.is_within", "FrameworkAttributes.real_dtype")
    def test_numbers_are_rounded_when_they_are_encoded(self, hook: FrameworkHook, kernels: Kernels) -> None:
        numbers = [1.2346, -1.2346, 0.0]
        encoded = self.tensor(hook, numbers).fix_precision()
        assert self.numbers(end_of(encoded)) == [1235, -1235, 0]
        assert self._approximate(encoded.float_precision(), numbers, 1e-3)
        with pytest.raises(ValueError, match="does not fit into the ring"):
            self.tensor(hook, [1e30]).fix_precision()

    @fix("FrameworkAttributes.kernels", "Kernels.from_bytes")
    def test_a_value_is_the_sum_of_its_shares(self, group: Sharer) -> None:
        x = group(VALUES)
        shares = [self.numbers(end_of(pointer.copy().get())) for pointer in end_of(x).child.values()]
        assert [_wrap(sum(pair), 64) for pair in zip(*shares, strict=True)] == [int(v * 2**16) for v in VALUES]
        assert tuple(x.shape) == (3,)
        assert self._approximate(self._open(x), VALUES, 1e-3)

    @fix("FrameworkAttributes.kernels", "Kernels (operators)", "describe_op (synonyms)")
    def test_shares_are_added_and_multiplied(self, group: Sharer) -> None:
        x, y = group(VALUES), group(OTHERS)
        for compute in ARITHMETIC:
            expected = [compute(a, b) for a, b in zip(VALUES, OTHERS, strict=True)]
            assert self._approximate(self._open(compute(x, y)), expected)
            assert self._approximate(self._open(compute(x, self.tensor(group.hook, OTHERS))), expected)
            assert self._approximate(self._open(compute(self.tensor(group.hook, VALUES), y)), expected)
        assert self._approximate(self._open(3 - x * 2), [3 - 2 * v for v in VALUES])
        assert self._approximate(self._open(x.sum()), sum(VALUES))

    @fix("Kernels.floor_divide", "Kernels.encode")
    def test_products_are_truncated(self, group: Sharer) -> None:
        x = group(VALUES)
        assert self._approximate(self._open(x * 0.3), [v * 0.3 for v in VALUES])
        for divisor in (4, 3, 2.5):
            assert self._approximate(self._open(x / divisor), [v / divisor for v in VALUES])
        assert self._approximate(self._open(-x * x * x / 7), [-(v**3) / 7 for v in VALUES])

    @fix("Kernels.cast", "Kernels.from_bytes", "describe_op (synonyms)")
    def test_shares_are_compared(self, group: Sharer) -> None:
        others = [1.0, 5.0, 2.0]
        x, y = group(VALUES), group(others)
        for compare in COMPARISONS:
            expected = [float(compare(a, b)) for a, b in zip(VALUES, others, strict=True)]
            assert self._approximate(self._open(compare(x, y)), expected)
        assert self._approximate(self._open(x > 1.5), [float(v > 1.5) for v in VALUES])

    @fix("FrameworkAttributes.structural")
    def test_operations_that_move_elements_run_on_shares(self, group: Sharer) -> None:
        x, y = group(VALUES), group(OTHERS)
        assert self._approximate(self._open(x[1:]), VALUES[1:])
        assert self._approximate(self._open(self.concatenate([x, y])), [*VALUES, *OTHERS])

    @fix("FrameworkAttributes.expand", "FrameworkAttributes.permute")
    def test_shares_are_expanded_and_permuted(self, group: Sharer) -> None:
        framework, pointer = group.hook.attributes, group(VALUES)
        shared = end_of(pointer)
        wide = shared.on_each(lambda p: framework.expand(p, (2, 3)))
        assert tuple(wide.pointer.shape) == (2, 3)
        assert tuple(wide.on_each(lambda p: framework.permute(p, (1, 0))).pointer.shape) == (3, 2)

    @fix("FrameworkAttributes.overwrite")
    def test_shares_change_in_place(self, group: Sharer) -> None:
        if not self.mutable:
            pytest.skip("tensors are immutable")
        x = group(VALUES)
        y = x + 1
        part = x[1:]
        y += group(OTHERS)
        part += 1
        assert self._approximate(self._open(y), [a + b + 1 for a, b in zip(VALUES, OTHERS, strict=True)])
        assert self._approximate(self._open(x), [VALUES[0], *[v + 1 for v in VALUES[1:]]])

    # --- helpers

    @pytest.fixture
    def kernels(self, hook: FrameworkHook) -> Kernels:
        """Return the kernels of the backend."""
        kernels: Kernels | None = hook.attributes.kernels
        if kernels is None:
            pytest.skip("the backend has no kernels, so its tensors cannot be shared")
        return kernels

    @pytest.fixture(params=[2, 3], ids=["two_parties", "three_parties"])
    def group(self, request: pytest.FixtureRequest, bob: Bob, kernels: Kernels) -> Sharer:
        """Return a function that shares numbers among two or three workers."""
        names = ("alice", "dave")[: request.param - 1]
        workers = [bob, *(Bob(bob.hook, id=name, serialize=bob.serialize) for name in names)]
        provider = Bob(bob.hook, id="carol", serialize=bob.serialize)
        return Sharer(bob.hook, lambda values: self._share(bob.hook, values, workers, provider))

    def _share(self, hook: FrameworkHook, values: Sequence[float], workers: Sequence[Bob], provider: Bob) -> Tensor:
        encoded = self.tensor(hook, list(values)).fix_precision(base=2, precision_fractional=16)
        return encoded.share(*workers, crypto_provider=provider)

    def _open(self, x: Tensor) -> Tensor:
        return x.copy().get().float_precision()

    def _array(self, kernels: Kernels, numbers: Sequence[int], dtype: str = "int64") -> Any:
        buffer = struct.pack(f"<{len(numbers)}{FORMATS[dtype]}", *numbers)
        return kernels.from_bytes(bytearray(buffer), dtype, (len(numbers),))

    def _approximate(self, found: Tensor, expected: Any, tolerance: float = 5e-3) -> bool:
        return bool(self.numbers(end_of(found)) == pytest.approx(expected, abs=tolerance))


class Sharer:
    """Shares numbers among the workers of a check."""

    def __init__(self, hook: FrameworkHook, share: Callable[[Sequence[float]], Tensor]) -> None:
        self.hook, self._share = hook, share

    def __call__(self, values: Sequence[float]) -> Tensor:
        return self._share(values)


_PLACES = ((0, 0), (0, 1), (1, 0), (1, 1))


def _draw(count: int, bits: int) -> list[int]:
    """Return random integers of the ring."""
    return [secrets.randbits(bits) - 2 ** (bits - 1) for _ in range(count)]


def _wrap(number: int, bits: int) -> int:
    """Return an integer modulo a power of two, with a sign."""
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half
