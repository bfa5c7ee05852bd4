from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from syft_sums.shamir import PRIME, combine, share


@given(st.integers(0, 2**256 - 1), st.lists(st.integers(0, PRIME - 1), max_size=4), st.data())
def test_any_shares_of_the_threshold_give_the_secret(secret: int, coefficients: list[int], data: st.DataObject) -> None:
    places = list(range(1, len(coefficients) + 4))
    shares = dict(zip(places, share(secret, coefficients, places), strict=True))
    chosen = data.draw(st.permutations(places))[: len(coefficients) + 1]

    assert combine({place: shares[place] for place in chosen}) == secret


def test_fewer_shares_fit_every_secret() -> None:
    """For every other secret there is a polynomial with the same shares, so the shares tell nothing."""
    (one,) = share(5, [7], [1])
    other = (int.from_bytes(one, "big") - 11) % PRIME
    assert share(11, [other], [1]) == [one]


def test_the_modulus_is_the_smallest_prime_above_all_seeds() -> None:
    assert PRIME > 2**256
    assert all(pow(base, PRIME - 1, PRIME) == 1 for base in (2, 3, 5, 7, 11))
    assert not any(
        all(pow(base, n - 1, n) == 1 for base in (2, 3)) for n in itertools.islice(range(2**256 + 1, PRIME), 1000)
    )
