"""Truncation: divide a shared value by a public number, right for any number of parties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod

from syft_mpc.errors import ProtocolError
from syft_mpc.kernels import Array, Kernels, Shape, dtype_name
from syft_mpc.protocol import Correlation, DealtForms, Draw, Open, Rest, Role, Spec, Steps, protocol

BITS = {"int64": 64, "int32": 32}


@dataclass(frozen=True)
class TruncationMask(Correlation):
    """Uniform r; the negative of its quotient by the divisor, rounded down; and 1 where r is negative."""

    shape: Shape
    divisor: int
    dtype: str

    def __post_init__(self) -> None:
        most = BITS[self.dtype] - 2
        if type(self.divisor) is not int or not 1 <= self.divisor <= 1 << most:
            raise ProtocolError(f"cannot divide shared integers: the divisor is not an integer from 1 to 2^{most}")

    @cached_property
    def forms(self) -> DealtForms:
        """The form of r, and those of the quotient and the sign.

        The sign is multiplied by 2^l / divisor. If that is a power of two, few bits of it matter.
        """
        few = 1 << (self.divisor.bit_length() - 1) == self.divisor <= 1 << 32
        word = Spec(self.shape, self.dtype)
        return (word,), (word, Spec(self.shape, "int32" if few else self.dtype))

    def derive(self, kernels: Kernels, *free: Array) -> Sequence[Array]:
        """Compute the quotient and the sign."""
        (mask,), bits = free, BITS[self.dtype]
        quotient = kernels.blockwise(lambda r: -kernels.floor_divide(r, self.divisor), mask)
        sign = kernels.blockwise(lambda r: (r >> (bits - 1)) & 1, mask)
        return quotient, kernels.cast(sign, self.forms[1][1].dtype)


def split_top(kernels: Kernels, x: Array) -> tuple[Array, Array]:
    """Return the lower bits of the elements, and the highest bit as 0 or 1."""
    bits = BITS[dtype_name(x)]
    return x & ((1 << (bits - 1)) - 1), (x >> (bits - 1)) & 1


@protocol(
    rounds=1,
    sends=lambda x, **_options: BITS[x.dtype] // 8 * prod(x.shape),
    opens="x plus a uniform mask",
    uses="one truncation mask",
    by_line=True,
)
def truncate(party: Role, x: Array, *, divisor: int) -> Steps:
    """Divide by a public number, for |x| < 2^(l-2) in a ring of l bits.

    The result is x / divisor, rounded up or down at random such that its expectation is exact: the error is less than
    one, always. (Dividing each share locally has rare errors of up to 2^l / divisor, and is wrong for three parties.)

    1. Add a multiple of the divisor to x, so that it is not negative.
    2. Open  c = x + r,  where c is read as a number from 0 on, and r as a signed number. Let u and s be the highest
       bits of c and r.  Then  x = c - r - u·s·2^l.
    3. [x / d] = c / d - [r / d] - [s]·(c / d - (c - 2^l) / d) where u = 1;  all quotients are rounded down.

    Rounds: 1. Bytes: those of x.
    """
    draw = Draw(TruncationMask(tuple(x.shape), divisor, dtype_name(x)))
    (mask,) = yield draw
    return (yield from divide_masked(party, x + mask, divisor, draw))


def divide_masked(party: Role, masked: Array, divisor: int, draw: Draw) -> Steps:
    """Truncate x, given as x + r, in place; ``draw`` is of a truncation mask, or of one for a product."""
    bits = BITS[dtype_name(masked)]
    lift = (1 << (bits - 2)) // divisor
    if party.leads:
        masked += lift * divisor
    (c,) = yield Open(masked)
    quotient, sign = yield Rest(draw)
    return party.kernels.blockwise(partial(_divide, party, divisor, lift, bits), c, quotient, sign)


def _divide(party: Role, divisor: int, lift: int, bits: int, c: Array, quotient: Array, sign: Array) -> Array:
    """Return the share of x / divisor, from the opened c."""
    kernels = party.kernels
    whole, remainder = divmod(1 << bits, divisor)
    floor = kernels.floor_divide(c, divisor)
    step = c >> (bits - 1)  # -1 where the highest bit of c is 1, and 0 elsewhere.
    if remainder:  # The quotients differ by one more if the remainders add up to the divisor.
        rest = c - floor * divisor
        rest += remainder - divisor
        rest >>= bits - 1
        rest += whole + 1
        step &= rest
    else:
        step &= whole - (1 << bits) if whole >> (bits - 1) else whole
    result = quotient - kernels.cast(sign, dtype_name(c)) * step
    if party.leads:
        result += floor
        result += step
        result -= lift
    return result
