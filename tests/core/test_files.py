from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from syft_core.exceptions import ConfigurationError
from syft_core.files import RESERVE, has_room, lock_folder, remove_file, require_secrecy, write_file


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_has_all_parts_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "secret"

    write_file(path, b"one ", memoryview(b"two"))

    assert path.read_bytes() == b"one two"
    assert mode_of(path) == 0o600


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "state"
    write_file(path, b"a long old content")

    write_file(path, b"new", mode=0o644)

    assert path.read_bytes() == b"new"
    assert mode_of(path) == 0o644
    assert [entry.name for entry in tmp_path.iterdir()] == ["state"]


def test_a_write_that_fails_keeps_the_old_content_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "state"
    write_file(path, b"old")

    with pytest.raises(TypeError):
        write_file(path, b"new", "not bytes")  # type: ignore[arg-type]

    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["state"]


def test_a_file_that_must_be_new_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "key"
    write_file(path, b"old", replace=False)

    with pytest.raises(ConfigurationError, match="it exists, and is not overwritten; move it away"):
        write_file(path, b"new", replace=False)

    assert path.read_bytes() == b"old"


def test_a_new_file_that_cannot_be_written_whole_does_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "key"

    with pytest.raises(TypeError):
        write_file(path, b"begin", 1, replace=False)  # type: ignore[arg-type]

    assert not path.exists()


def test_a_file_is_removed_once_or_twice(tmp_path: Path) -> None:
    path = tmp_path / "object"
    path.touch()

    remove_file(path)
    remove_file(path)

    assert not path.exists()


def test_a_disk_has_room_only_beyond_the_reserve(tmp_path: Path) -> None:
    disk = os.statvfs(tmp_path)
    free = disk.f_bavail * disk.f_frsize

    assert has_room(tmp_path) is (free >= RESERVE)
    assert not has_room(tmp_path, 2**80)


def test_a_folder_is_locked_by_one_at_a_time(tmp_path: Path) -> None:
    with lock_folder(tmp_path), pytest.raises(BlockingIOError), lock_folder(tmp_path, wait=False):
        pass

    with lock_folder(tmp_path, wait=False):
        pass


def test_a_lock_ends_with_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"), lock_folder(tmp_path):
        raise ValueError("mine")

    with lock_folder(tmp_path, wait=False):
        pass


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_secret_that_others_can_read_or_change_is_refused_with_the_command(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    path.touch()
    path.chmod(mode)

    with pytest.raises(ConfigurationError, match=f"its mode is {mode:o}.*run `chmod 600 {path}`"):
        require_secrecy(path)

    path.chmod(0o600)
    require_secrecy(path)
