"""Truncation: divide a shared value by a public number, right for any number of parties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from syft_core.crypto.kernels import Array, Kernels, Shape, dtype_name
from syft_core.crypto.protocol import Correlation, Draw, Open, Party, Rest, Spec, Steps, protocol

BITS = {"int64": 64, "int32": 32}


@dataclass(frozen=True)
class TruncationMask(Correlation):
    """Uniform r; the quotient of its lower bits and the divisor; and its highest bit, as an integer."""

    shape: Shape
    divisor: int
    dtype: str

    def free(self) -> Sequence[Spec]:
        """Return the form of r."""
        return (Spec(self.shape, self.dtype),)

    def dependent(self) -> Sequence[Spec]:
        """Return the forms of the quotient and of the highest bit."""
        return Spec(self.shape, self.dtype), Spec(self.shape, self.dtype)

    def derive(self, kernels: Kernels, *free: Array) -> Sequence[Array]:
        """Compute the quotient and the highest bit."""
        mask, bits = free[0], BITS[self.dtype]
        low = (1 << (bits - 1)) - 1
        quotient = kernels.blockwise(lambda r: kernels.floor_divide(r & low, self.divisor), mask)
        return quotient, kernels.blockwise(lambda r: (r >> (bits - 1)) & 1, mask)


def split_top(kernels: Kernels, x: Array) -> tuple[Array, Array]:
    """Return the lower bits of the elements, and the highest bit as 0 or 1."""
    bits = BITS[dtype_name(x)]
    return x & ((1 << (bits - 1)) - 1), (x >> (bits - 1)) & 1


@protocol(
    rounds=1,
    sends=lambda x, **_options: BITS[x.dtype] // 8 * prod(x.shape),
    opens="x plus a uniform mask",
    uses="one truncation mask",
)
def truncate(party: Party, x: Array, *, divisor: int) -> Steps:
    """Divide by a public number, for |x| < 2^(l-2) in a ring of l bits.

    The result is x / divisor, rounded up or down at random such that its expectation is exact: the error is less than
    one, always. (Dividing each share locally has rare errors of up to 2^l / divisor, and is wrong for three parties.)

    1. Add a multiple of the divisor to x, so that it is not negative.
    2. Open  c = x + r.  Let c' and r' be the lower l-1 bits of c and r;  w = 1 if x + r' overflows them.
       Then  w = top(c) xor top(r),  and  x = c' + w·2^(l-1) - r'.
    3. [x / d] = (c' + [w]·2^(l-1)) / d - [r' / d],  where w selects one of two public quotients.

    Rounds: 1. Bytes: those of x.
    """
    draw = Draw(TruncationMask(tuple(x.shape), divisor, dtype_name(x)))
    (mask,) = yield draw
    return (yield from divide_masked(party, x, divisor, mask, Rest(draw)))


def divide_masked(party: Party, x: Array, divisor: int, mask: Array, rest: Rest | Sequence[Array]) -> Steps:
    """Do what ``truncate`` does, with a mask, and the quotient and the highest bit of it, or a request for them."""
    kernels, bits = party.kernels, BITS[dtype_name(x)]
    lift = (1 << (bits - 2)) // divisor
    masked = x + mask
    if party.leads:
        masked += lift * divisor
    (c,) = yield Open(masked)
    quotient, top = (yield rest) if isinstance(rest, Rest) else rest
    return kernels.blockwise(partial(_divide, party, divisor, lift, bits), c, quotient, top)


def _divide(party: Party, divisor: int, lift: int, bits: int, c: Array, quotient: Array, top: Array) -> Array:
    """Return the share of x / divisor, from the opened c."""
    kernels = party.kernels
    whole, remainder = divmod(1 << (bits - 1), divisor)
    negative = c >> (bits - 1)  # -1 where the highest bit of c is 1, and 0 elsewhere.
    result = top * (negative | 1)
    if party.leads:
        result -= negative
    low = c & ((1 << (bits - 1)) - 1)
    floor = kernels.floor_divide(low, divisor)
    if remainder:  # The second quotient is one larger if the remainders add up to the divisor.
        low -= floor * divisor
        low += remainder - divisor
        result *= whole + 1 + (low >> (bits - 1))
    else:
        result *= whole
    result -= quotient
    if party.leads:
        result += floor
        result -= lift
    return result
