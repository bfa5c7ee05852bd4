"""Shamir's secret sharing of a seed: any ``threshold`` shares give the seed, fewer reveal nothing about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

PRIME = 2**256 + 297
"""The smallest prime above all seeds."""
SHARE_BYTES = 33


def share(secret: int, coefficients: Sequence[int], places: Sequence[int]) -> list[bytes]:
    """Return the value of the polynomial at each place; with k coefficients, k + 1 shares give the secret."""
    shares = []
    for place in places:
        value = 0
        for coefficient in reversed([secret, *coefficients]):
            value = (value * place + coefficient) % PRIME
        shares.append(value.to_bytes(SHARE_BYTES, "big"))
    return shares


def combine(shares: Mapping[int, bytes]) -> int:
    """Return the secret of shares by place."""
    total = 0
    for place, value in shares.items():
        above = below = 1
        for other in shares:
            if other != place:
                above = above * -other % PRIME
                below = below * (place - other) % PRIME
        total += int.from_bytes(value, "big") * above * pow(below, -1, PRIME)
    return total % PRIME
