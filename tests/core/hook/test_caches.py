from __future__ import annotations

import pytest

from syft_core.hook import caches
from syft_core.hook.caches import LIMIT, MAX_WEIGHT, remember


def test_a_value_is_found_again() -> None:
    cache: dict[str, int] = {}

    assert remember(cache, "a", 1) == 1
    assert remember(cache, "b", 2) == 2
    assert cache == {"a": 1, "b": 2}


def test_a_cache_never_has_more_entries_than_the_limit() -> None:
    cache: dict[int, int] = {}

    for key in range(LIMIT + 5):
        remember(cache, key, key)
        assert len(cache) <= LIMIT

    assert cache == {key: key for key in range(LIMIT, LIMIT + 5)}


@pytest.mark.parametrize("key", [tuple(range(MAX_WEIGHT // 2)), "x" * 64 * (MAX_WEIGHT // 2)], ids=["tuple", "text"])
def test_large_keys_count_more_than_small_ones(key: object) -> None:
    cache: dict[object, int] = {}

    for number in range(4):
        remember(cache, (number, key), number)

    assert list(cache.values()) == [3]


def test_a_key_weighs_as_much_as_its_parts() -> None:
    assert caches._weigh(()) == 1
    assert caches._weigh(("add", (int, "x" * 128))) == 1 + 1 + (1 + 1 + 3)
