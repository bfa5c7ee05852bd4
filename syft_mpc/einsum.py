"""Einstein summation of integers, shared or public, as matrix products of two operands at a time."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from string import ascii_letters

from syft_mpc import integers
from syft_mpc.integers import Integers
from syft_mpc.spdz import MATRICES


def contract(equation: str, operands: Sequence[Integers], scale: int) -> Integers:
    """Return the sum of products that an equation such as ``"ij,jk->ik"`` describes, of numbers with a scale."""
    shapes = [integers.shape_of(operand) for operand in operands]
    terms, result = _parse(equation, [len(shape) for shape in shapes])
    lengths = set(zip("".join(terms), [length for shape in shapes for length in shape], strict=True))
    if len(lengths) != len({letter for letter, _ in lengths}):
        raise ValueError(f"cannot compute einsum {equation!r}: axes with the same letter have different lengths")
    parts = [
        _reduce(operand, terms[place], "".join((*terms[:place], *terms[place + 1 :], result)))
        for place, operand in enumerate(operands)
    ]
    value, axes = parts[0]
    for place, (other, term) in enumerate(parts[1:], 2):
        kept = "".join(term for _, term in parts[place:]) + result
        value, axes = _multiply(value, axes, other, term, kept, scale)
    return integers.permute(value, [axes.index(axis) for axis in result])


def _parse(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result, with letters for ``...`` too."""
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms, spare = left.split(","), [letter for letter in ascii_letters if letter not in equation]
    if len(terms) != len(ranks):
        raise ValueError(f"cannot compute einsum {equation!r}: it needs {len(terms)} operands; pass as many")
    longest = ""
    for place, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        count = rank - len(term.replace("...", ""))
        dots = "".join(spare[len(spare) - count :]) if "..." in term and count > 0 else ""
        terms[place] = term.replace("...", dots)
        longest = max(longest, dots, key=len)
        if len(terms[place]) != rank or not set(terms[place]) <= set(ascii_letters):
            raise ValueError(
                f"cannot compute einsum {equation!r}: {term!r} does not fit {rank} axes; change the letters"
            )
    letters = "".join(terms)
    if not arrow:
        result = "..." + "".join(sorted(letter for letter in set(letters) - set(longest) if letters.count(letter) == 1))
    result = result.replace("...", longest)
    if not set(result) <= set(letters) or len(set(result)) != len(result):
        raise ValueError(f"cannot compute einsum {equation!r}: the result has letters of no operand, or one twice")
    return terms, result


def _reduce(x: Integers, term: str, kept: str) -> tuple[Integers, str]:
    """Take diagonals for letters that occur twice, and add along axes that nothing else needs."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            places = [place for place, other in enumerate(term) if other == letter][:2]
            rest = [place for place in range(len(term)) if place not in places]
            moved = integers.permute(x, (*rest, *places))
            shape = integers.shape_of(moved)
            line = integers.reshape(moved, (*shape[:-2], shape[-1] ** 2))
            x, term = integers.take(line, slice(None, None, shape[-1] + 1)), "".join(term[k] for k in rest) + letter
    unused = tuple(place for place, letter in enumerate(term) if letter not in kept)
    if unused:
        x = integers.total(x, unused)
    return x, "".join(letter for letter in term if letter in kept)


def _multiply(x: Integers, first: str, y: Integers, second: str, kept: str, scale: int) -> tuple[Integers, str]:
    both = [letter for letter in first if letter in second]
    batch, summed = [a for a in both if a in kept], [a for a in both if a not in kept]
    rows, columns = [a for a in first if a not in both], [a for a in second if a not in both]
    sizes = dict(zip(first + second, integers.shape_of(x) + integers.shape_of(y), strict=True))

    def arrange(value: Integers, term: str, *groups: list[str]) -> Integers:
        moved = integers.permute(value, [term.index(letter) for group in groups for letter in group])
        return integers.reshape(moved, [prod(sizes[letter] for letter in group) for group in groups])

    product = integers.multiply(
        arrange(x, first, batch, rows, summed), arrange(y, second, batch, summed, columns), scale, MATRICES
    )
    axes = [*batch, *rows, *columns]
    return integers.reshape(product, [sizes[letter] for letter in axes]), "".join(axes)
