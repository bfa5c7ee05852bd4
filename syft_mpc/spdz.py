"""Products of shared values with Beaver triples (Beaver 1991; Damgård, Pastro, Smart, Zakarias 2012)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import prod
from typing import Any

from syft_mpc.kernels import ITEM_BYTES, Array, Kernels, Pair, Shape, count_windows, dtype_name
from syft_mpc.protocol import (
    MASK,
    PROVIDER,
    Common,
    Correlation,
    DealtForms,
    Draw,
    Keep,
    Open,
    Recall,
    Rest,
    Role,
    Spec,
    Steps,
    Zeros,
    protocol,
    spec_of,
)
from syft_mpc.truncation import TruncationMask, divide_masked

Options = tuple[tuple[str, Any], ...]
ELEMENTS, MATRICES, IMAGES, INPUTS, FILTERS = "elements", "matrices", "images", "inputs", "filters"
"""The bilinear operations: products of elements, matrix products, convolutions, and the gradients of a convolution with
respect to its inputs and its filters."""


@dataclass(frozen=True)
class Triple(Correlation):
    """Uniform a and b, and c = a ∘ b for a bilinear operation ∘."""

    op: str
    x: Shape
    y: Shape
    z: Shape
    dtype: str
    options: Options = ()

    @cached_property
    def forms(self) -> DealtForms:
        """The forms of a and b, and that of c."""
        return (Spec(self.x, self.dtype), Spec(self.y, self.dtype)), (Spec(self.z, self.dtype),)

    def derive(self, kernels: Kernels, *free: Array) -> Sequence[Array]:
        """Compute c."""
        a, b = free
        return (BILINEAR[self.op](kernels, a, b, **dict(self.options)),)


@dataclass(frozen=True)
class MaskedTriple(Triple):
    """Uniform a, and c = a ∘ b for a bilinear operation ∘ and a mask b that the parties have kept."""

    mask: int = 0

    @cached_property
    def forms(self) -> DealtForms:
        """The form of a, and that of c."""
        return (Spec(self.x, self.dtype),), (Spec(self.z, self.dtype),)

    def kept(self) -> Sequence[tuple[int, Spec]]:
        """Return the number and the form of b."""
        return ((self.mask, Spec(self.y, self.dtype)),)

    def bind(self, mask: int) -> Correlation:
        """Return the same for the mask of a number."""
        return replace(self, mask=mask)


@dataclass(frozen=True)
class Square(Correlation):
    """Uniform a, and c = a²."""

    x: Shape
    dtype: str

    @cached_property
    def forms(self) -> DealtForms:
        """The form of a, and that of c."""
        return (Spec(self.x, self.dtype),), (Spec(self.x, self.dtype),)

    def derive(self, kernels: Kernels, *free: Array) -> Sequence[Array]:
        """Compute c."""
        return (free[0] * free[0],)


@dataclass(frozen=True)
class DividedProduct(Correlation):
    """Randomness of a product that is divided next: the masks of its factors, and uniform s = c + r.

    The result of the product is only opened, plus r. So only the sum of [c] and [r] is needed, which is uniform.
    """

    product: Correlation
    mask: TruncationMask

    @cached_property
    def forms(self) -> DealtForms:
        """The forms of the masks of the factors and of s, and those of the division."""
        free, dependent = self.mask.forms
        return (*self.product.forms[0], *free), dependent

    def kept(self) -> Sequence[tuple[int, Spec]]:
        """Return the kept mask of a factor, if there is one."""
        return self.product.kept()

    def derive(self, kernels: Kernels, *free: Array) -> Sequence[Array]:
        """Compute it from r = s - c."""
        place = len(self.forms[0]) - 1
        (c,) = self.product.derive(kernels, *free[:place], *free[place + 1 :])
        return self.mask.derive(kernels, free[place] - c)

    def bind(self, mask: int) -> Correlation:
        """Return the same for the kept mask of a number."""
        return replace(self, product=self.product.bind(mask))


def _sends_product(x: Spec, y: Spec, *_plus: Spec, **options: Any) -> int:
    bilinear = {name: value for name, value in options.items() if name not in ("op", "divisor", MASK)}
    z = prod(bilinear_shape(options.get("op", ELEMENTS), x.shape, y.shape, bilinear))
    return ITEM_BYTES[x.dtype] * (prod(x.shape) + prod(y.shape) + (z if options.get("divisor", 1) != 1 else 0))


def _sends_masked(x: Spec, y: Spec, *_plus: Spec, **options: Any) -> int:
    return _sends_product(x, y, **options) - ITEM_BYTES[y.dtype] * prod(y.shape)


@protocol(
    rounds=lambda *_specs, **options: 1 + (options.get("divisor", 1) != 1),
    sends=_sends_product,
    opens="x - a and y - b, both uniform because a and b are; with a divisor, also the product plus a uniform mask",
    uses="one triple; with a divisor, one truncation mask",
)
def spdz_mul(
    party: Role, x: Array, y: Array, *plus: Array, op: str = ELEMENTS, divisor: int = 1, **options: Any
) -> Steps:
    """Multiply two shared values, elementwise or with another bilinear operation, and add a third one if there is one.

    1. Open  d = x - a  and  e = y - b.
    2. [xy] = [c] + d[b] + [a]e + de,  the last term at the first party only: two products for each party.
    3. With a divisor, truncate the product; then the parties have [c + r] instead of [c].
    4. Add the third value. To images it adds one number for each channel.

    Rounds: 1, and 1 to truncate. Bytes: those of x and y, and of the product to truncate.
    """
    run, kernels = BILINEAR[op], party.kernels
    draw = Draw(
        _plan_product(op, tuple(x.shape), tuple(y.shape), dtype_name(x), tuple(sorted(options.items())), divisor)
    )
    a, b, *mask = yield draw
    d, e = yield Open(x - a, y - b)
    if party.leads:
        b += e
    z = _add(kernels, op, run(kernels, d, b, **options), a, e, options)
    return (yield from _finish(party, z, divisor, mask, draw, *[_shape_addend(kernels, op, part) for part in plus]))


def _finish(party: Role, z: Array, divisor: int, mask: Sequence[Array], draw: Draw, *plus: Array) -> Steps:
    """Add the product of the masks to a product of shares, in place; with a divisor, divide it. Then add ``plus``."""
    if divisor == 1:
        (c,) = yield Rest(draw)
        require_shape(z, c)
        z += c
    else:
        require_shape(z, mask[0])
        z += mask[0]
        z = yield from divide_masked(party, z, divisor, draw)
    for addend in plus:
        z += addend
    return z


def _shape_addend(kernels: Kernels, op: str, x: Array) -> Array:
    """Reshape an addend to fit a product: a bias has one number for each channel of the result."""
    return kernels.reshape(x, (-1, 1, 1)) if op in (IMAGES, INPUTS) else x


def require_shape(z: Array, mask: Array) -> None:
    """Raise unless a product has the shape that its options announced: no mask serves several elements."""
    if tuple(z.shape) != tuple(mask.shape):
        shapes = f"the result has the shape {tuple(z.shape)}, and the options announce {tuple(mask.shape)}"
        raise ValueError(f"cannot multiply: {shapes}; check them")


def _add(kernels: Kernels, op: str, total: Array, x: Array, y: Array, options: dict[str, Any]) -> Array:
    """Add a product to ``total``, in place."""
    total += BILINEAR[op](kernels, x, y, **options)
    return total


@protocol(
    rounds=1,
    sends=lambda y: ITEM_BYTES[y.dtype] * prod(y.shape),
    opens="y - b, uniform because b is",
    uses="nothing",
    keeps_mask=True,
    informs_client=True,
)
def spdz_mask(party: Role, y: Array) -> Steps:
    """Open a value under a mask, for products with it: the parties keep their shares of the mask, and what they opened.

    1. [b] is random: each party has its share in common with the provider.
    2. Open  e = y - b.  The mask is used for no other opening. The result is a handle: b and e are forgotten with it.

    Rounds: 1. Bytes: those of y.
    """
    (b,) = yield Common((spec_of(y),), (party.rank, PROVIDER))
    (e,) = yield Open(y - b)
    if party.leads:
        b += e
    handle = party.kernels.zeros((1,), dtype_name(y))
    yield Keep(b, e, handle)
    return handle


@protocol(
    rounds=lambda *_specs, **options: 1 + (options.get("divisor", 1) != 1),
    sends=_sends_masked,
    opens="x - a, uniform because a is; with a divisor, also the product plus a uniform mask",
    uses="one triple with a kept mask; with a divisor, one truncation mask",
)
def spdz_mul_masked(
    party: Role, x: Array, y: Array, *plus: Array, mask: int = 0, op: str = ELEMENTS, divisor: int = 1, **options: Any
) -> Steps:
    """Multiply by a value y that was opened as e in the run of a number, by ``spdz_mask``.

    As ``spdz_mul``, with the kept b and a fresh a:  open  d = x - a;  [xy] = [c] + d[b] + [a]e + de.

    Rounds: 1, and 1 to truncate. Bytes: those of x, and of the product to truncate.
    """
    run, kernels = BILINEAR[op], party.kernels
    settings = tuple(sorted(options.items()))
    draw = Draw(_plan_product(op, tuple(x.shape), tuple(y.shape), dtype_name(x), settings, divisor, mask))
    a, *masks = yield draw
    b, e = yield Recall(mask, y)  # The first party has added e to b.
    (d,) = yield Open(x - a)
    z = _add(kernels, op, run(kernels, d, b, **options), a, e, options)
    return (yield from _finish(party, z, divisor, masks, draw, *[_shape_addend(kernels, op, part) for part in plus]))


@lru_cache(maxsize=8192)
def _plan_product(
    op: str, x: Shape, y: Shape, dtype: str, options: Options, divisor: int, mask: int | None = None
) -> Correlation:
    shape = bilinear_shape(op, x, y, dict(options))
    facts = op, x, y, shape, dtype, options
    triple = Triple(*facts) if mask is None else MaskedTriple(*facts, mask)
    return _add_division(triple, shape, dtype, divisor)


@lru_cache(maxsize=4096)
def _plan_square(x: Shape, dtype: str, divisor: int) -> Correlation:
    return _add_division(Square(x, dtype), x, dtype, divisor)


def _add_division(correlation: Correlation, shape: Shape, dtype: str, divisor: int) -> Correlation:
    return correlation if divisor == 1 else DividedProduct(correlation, TruncationMask(shape, divisor, dtype))


@protocol(
    rounds=lambda *_specs, **options: 1 + (options.get("divisor", 1) != 1),
    sends=lambda x, **options: ITEM_BYTES[x.dtype] * prod(x.shape) * (1 + (options.get("divisor", 1) != 1)),
    opens="x - a, uniform because a is; with a divisor, also the square plus a uniform mask",
    uses="one square; with a divisor, one truncation mask",
    by_line=True,
)
def square(party: Role, x: Array, *, divisor: int = 1) -> Steps:
    """Square a shared value:  open d = x - a;  [x²] = [c] + 2d[a] + d²,  the last term at the first party only.

    Rounds: 1, and 1 to truncate. Bytes: those of x, twice to truncate.
    """
    draw = Draw(_plan_square(tuple(x.shape), dtype_name(x), divisor))
    a, *mask = yield draw
    (d,) = yield Open(x - a)
    a += a
    if party.leads:
        a += d
    return (yield from _finish(party, a * d, divisor, mask, draw))


BILINEAR: dict[str, Callable[..., Array]] = {
    ELEMENTS: lambda _kernels, x, y: x * y,
    MATRICES: lambda kernels, x, y: kernels.matmul(x, y),
    IMAGES: lambda kernels, x, y, **options: kernels.conv2d(x, y, **options),
    INPUTS: lambda kernels, x, y, **options: kernels.conv2d_input(x, y, **options),
    FILTERS: lambda kernels, x, y, **options: kernels.conv2d_weight(x, y, **options),
}
"""How each bilinear operation is computed."""


def bilinear_shape(op: str, x: Shape, y: Shape, options: dict[str, Any]) -> Shape:
    """Return the shape of the result of a bilinear operation."""
    if op == ELEMENTS:
        return broadcast(x, y)
    if op == MATRICES:
        return matmul_shape(x, y)
    if op == IMAGES:
        return conv2d_shape(x, y, **options)
    return tuple(options["shape"])


def broadcast(x: Shape, y: Shape) -> Shape:
    """Return the shape of two shapes broadcast together.

    >>> broadcast((2, 1), (3,))
    (2, 3)
    """
    rank = max(len(x), len(y))
    pairs = zip((1,) * (rank - len(x)) + x, (1,) * (rank - len(y)) + y, strict=True)
    shape = []
    for one, other in pairs:
        if one != other and 1 not in (one, other):
            raise ValueError(f"cannot broadcast shapes {x} and {y}: they differ in a dimension; reshape one of them")
        shape.append(other if one == 1 else one)
    return tuple(shape)


def matmul_shape(x: Shape, y: Shape) -> Shape:
    """Return the shape of a matrix product.

    >>> matmul_shape((5, 2, 3), (3, 4)), matmul_shape((3,), (3,))
    ((5, 2, 4), ())
    """
    rows, columns = x[-2:-1], y[-1:] if len(y) > 1 else ()
    if not x or not y or x[-1] != y[-2 if len(y) > 1 else -1]:
        raise ValueError(f"cannot multiply matrices of shapes {x} and {y}: the inner dimensions differ; transpose one")
    return (*broadcast(x[:-2], y[:-2]), *rows, *columns)


def conv2d_shape(
    x: Shape,
    weight: Shape,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Shape:
    """Return the shape of a convolution of images with filters.

    >>> conv2d_shape((16, 1, 28, 28), (8, 1, 5, 5))
    (16, 8, 24, 24)
    """
    return (x[0], weight[0], *count_windows(x[2:], weight[2:], stride, dilation, padding))


# --- values as they are


@protocol(rounds=0, sends=0, opens="nothing", uses="nothing")
def zero(_party: Role, x: Array) -> Steps:
    """Compute fresh random shares of zeros, of the form of x, from seeds that pairs of parties share.

    Rounds: 0. Bytes: 0.
    """
    (zeros,) = yield Zeros((spec_of(x),))
    return zeros


@protocol(
    rounds=1,
    sends=lambda x, **_options: ITEM_BYTES[x.dtype] * prod(x.shape),
    opens="x, to all parties",
    uses="nothing",
    reveals=True,
)
def reconstruct(_party: Role, x: Array) -> Steps:
    """Open a value at all parties.

    Rounds: 1. Bytes: those of x.
    """
    (value,) = yield Open(x)
    return value
