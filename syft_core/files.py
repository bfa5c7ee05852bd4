"""Write files so that a crash leaves the old content or the new, and secrets so that only their owner reads them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from syft_core.exceptions import ConfigurationError

TEMPORARY = ".new"
"""The suffix of a file that is being written; a crash may leave one."""
RESERVE = 64 * 2**20
"""Bytes of a disk kept free for essential records: users must not be able to fill it."""


def write_file(path: Path, *parts: bytes | memoryview, mode: int = 0o600, replace: bool = True) -> None:
    """Write a whole file; when this returns, the content and the name are on disk.

    Without ``replace``, raise if it exists; a crash may then leave a part of the new file.
    """
    written = path.with_name(f".{path.name}.{secrets.token_hex(8)}{TEMPORARY}") if replace else path
    try:
        handle = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        raise ConfigurationError(
            f"cannot write {path}: it exists, and is not overwritten; move it away, or choose another folder"
        ) from None
    try:
        with open(handle, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            written.replace(path)
    except BaseException:
        written.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def has_room(path: Path, size: int = 0) -> bool:
    """Return whether the disk of a file or folder has room for ``size`` bytes in addition to the reserve."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize >= size + RESERVE


def remove_file(path: Path) -> None:
    """Remove a file, if it exists; when this returns, it will not come back after a crash."""
    path.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def lock_folder(folder: Path, wait: bool = True) -> Iterator[None]:
    """Lock a folder against other processes that use this lock; without ``wait``, raise ``BlockingIOError``."""
    import fcntl  # noqa: PLC0415  # only POSIX systems have it

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(handle)


def require_secrecy(path: Path) -> None:
    """Raise if anyone except the owner of a file can read or write it."""
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise ConfigurationError(
            f"cannot use {path}: others can read or change it (its mode is {mode:o}); run `chmod 600 {path}`"
        )
