from __future__ import annotations

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from syft_sums.encoding import BLOCK
from syft_sums.masks import add_masks, derive, key_of_seal, mask_of_pair, mask_of_seed, seal, unseal

KEY, LIST = derive(b"secret", b"info"), bytes(32)
ONE, OTHER = bytes([1] * 32), bytes([2] * 32)


@pytest.mark.parametrize("length", [1, BLOCK - 1, BLOCK, 2 * BLOCK + 3])
def test_a_mask_is_the_stream_of_aes_in_counter_mode(length: int) -> None:
    stream = Cipher(algorithms.AES(KEY[:32]), modes.CTR(KEY[32:])).encryptor().update(bytes(8 * length))
    vector = np.zeros(length, np.uint64)
    add_masks(vector, [(KEY, 1)])
    assert vector.tobytes() == stream


def test_masks_with_opposite_signs_cancel() -> None:
    vector = np.arange(BLOCK + 5, dtype=np.uint64)
    add_masks(vector, [(KEY, 1), (derive(b"other", b""), -1)])
    assert not np.array_equal(vector, np.arange(BLOCK + 5))
    add_masks(vector, [(KEY, -1), (derive(b"other", b""), 1)])
    assert np.array_equal(vector, np.arange(BLOCK + 5))


def test_the_mask_of_a_pair_is_bound_to_both_members_and_the_list() -> None:
    known = mask_of_pair(b"secret", LIST, ONE, OTHER)
    assert known == mask_of_pair(b"secret", LIST, OTHER, ONE)
    assert known != mask_of_pair(b"secret", LIST, ONE, bytes([3] * 32))
    assert known != mask_of_pair(b"secret", bytes([1] * 32), ONE, OTHER)


def test_the_keys_for_different_purposes_differ() -> None:
    keys = [
        mask_of_pair(b"secret", LIST, ONE, OTHER)[:32],
        mask_of_seed(b"secret", LIST)[:32],
        key_of_seal(b"secret", LIST, ONE, OTHER),
        key_of_seal(b"secret", LIST, OTHER, ONE),
    ]
    assert len(set(keys)) == 4


def test_a_share_is_unsealed_with_its_key_for_its_list_only() -> None:
    key = key_of_seal(b"secret", LIST, ONE, OTHER)
    sealed = seal(key, b"share", LIST)

    assert unseal(key, sealed, LIST) == b"share"
    assert unseal(key, sealed, bytes([1] * 32)) is None
    assert unseal(key_of_seal(b"secret", LIST, OTHER, ONE), sealed, LIST) is None
    assert unseal(key, sealed[:-1] + bytes([sealed[-1] ^ 1]), LIST) is None
