from __future__ import annotations

from pathlib import Path

import pytest

from syft_core.exceptions import ConfigurationError
from syft_sums.keys import MemberKey, is_signed, read_fingerprint, write_fingerprint


def test_a_key_file_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "key"
    first, second = MemberKey.load(path), MemberKey.load(path)

    assert first.public == second.public
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    MemberKey.load(path)
    path.chmod(0o644)
    with pytest.raises(ConfigurationError, match="others can read or change it"):
        MemberKey.load(path)


def test_a_key_file_of_another_length_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"short")
    path.chmod(0o600)
    with pytest.raises(ConfigurationError, match="it has 5 bytes, not 32; restore it"):
        MemberKey.load(path)


def test_a_signature_is_valid_for_one_key_and_one_text() -> None:
    key, other = MemberKey(), MemberKey()
    signature = key.sign(b"text")

    assert is_signed(key.public, b"text", signature)
    assert not is_signed(key.public, b"texts", signature)
    assert not is_signed(other.public, b"text", signature)
    assert not is_signed(b"short", b"text", signature)


def test_a_fingerprint_is_the_whole_key() -> None:
    key = MemberKey()
    assert read_fingerprint(key.fingerprint) == key.public
    assert write_fingerprint(key.public) == key.fingerprint


@pytest.mark.parametrize("text", ["", "ed25519:", "ed25519:" + "0" * 63, "rsa:" + "0" * 64, "ed25519:" + "A" * 64, 7])
def test_anything_else_is_not_a_fingerprint(text: object) -> None:
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        read_fingerprint(text)
