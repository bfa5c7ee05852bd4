"""Journal: an append-only file of JSON lines, each with a hash of itself and of all lines before it."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import threading
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from syft_core.exceptions import LedgerError
from syft_core.files import sync_folder, write_file

MAX_TEXT = 4096
"""How many characters of one text a line contains: peers choose some of the texts."""
_END = re.compile(rb',"hash":"([0-9a-f]{64})"}\n')
_LENGTH = len(',"hash":""}\n') + 64
_log = logging.getLogger(__name__)


class Journal:
    """A journal that is open for writing; no other process can open it at the same time.

    A crash can leave an incomplete last line. It is moved to a file of its own, and a line of the journal says so.
    """

    def __init__(self, path: str | Path, owner: str) -> None:
        self.path = Path(path)
        self._owner = owner
        self._lock = threading.Lock()
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise LedgerError.unusable(self.path, error.strerror or type(error).__name__) from None
        try:
            self._continue()
        except OSError as error:
            self.close()
            raise LedgerError.unusable(self.path, error.strerror or type(error).__name__) from None
        except BaseException:
            self.close()
            raise

    def _continue(self) -> None:
        import fcntl  # noqa: PLC0415  # only POSIX systems have it, and only a ledger on disk needs it

        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LedgerError.unusable(self.path, "another process writes to it") from None
        (last,) = deque(chain([BEFORE], iter_lines(self.path, to_be_mended=True)), maxlen=1)
        self._hash, self._size = last.hash, last.end
        torn = os.pread(self._file, os.fstat(self._file).st_size - last.end, last.end)
        if torn:
            digest = hashlib.sha256(torn).hexdigest()
            aside = self.path.with_name(f"{self.path.name}.torn-{last.number + 1}-{digest[:8]}")
            write_file(aside, torn)
            os.ftruncate(self._file, self._size)
            why = f"line {last.number + 1} was incomplete ({len(torn)} bytes) and was moved to {aside.name}"
            _log.warning("ledger of worker %r: %s", self._owner, why)
            self.append({"time": _now(), "event": "recovered", "reason": why}, sync=True)
        elif not last.number:
            self.append({"time": _now(), "event": "opened", "to": self._owner, "format": 1}, sync=True)
            sync_folder(self.path.parent)

    def append(self, *entries: dict[str, Any], sync: bool) -> None:
        """Write lines, and wait until they are on disk if ``sync``; if that fails, raise and leave no part of them."""
        contents = [json.dumps(_shorten(entry), separators=(",", ":")).encode("ascii") for entry in entries]
        with self._lock:
            hash, lines = self._hash, []
            for content in contents:
                hash = _hash(hash, content)
                lines.append(content[:-1] + b',"hash":"' + hash.encode("ascii") + b'"}\n')
            written = b"".join(lines)
            try:
                if os.fstat(self._file).st_size != self._size:  # An earlier attempt could not be undone.
                    os.ftruncate(self._file, self._size)
                self._write(written)
                if sync:
                    os.fsync(self._file)
            except OSError as error:
                _log.error("worker %r cannot write to its ledger %s: %s", self._owner, self.path, error)
                raise LedgerError.unwritable(self._owner, error.strerror or type(error).__name__) from None
            self._hash, self._size = hash, self._size + len(written)

    def _write(self, lines: bytes) -> None:
        rest = memoryview(lines)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            os.ftruncate(self._file, self._size)
            raise

    def close(self) -> None:
        """Close the file; nothing can be written after that."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class Line(NamedTuple):
    """One verified line: its number, its hash, its content, and where it ends in the file."""

    number: int
    hash: str
    content: dict[str, Any]
    end: int


BEFORE = Line(0, "0" * 64, {}, 0)
"""What precedes the first line."""


def iter_lines(path: Path, to_be_mended: bool = False) -> Iterator[Line]:
    """Yield the lines of a journal; raise ``LedgerError`` at the first that was changed, inserted or removed.

    With ``to_be_mended``, end before a last line that is incomplete.
    """
    line = BEFORE
    try:
        with path.open("rb") as file:
            for raw in file:
                if raw.endswith(b"\n"):
                    line = _verify(path, line, raw)
                    yield line
                elif not to_be_mended:
                    raise LedgerError.incomplete(path, line.number + 1)
    except OSError as error:
        raise LedgerError.unusable(path, error.strerror or type(error).__name__) from None


def _verify(path: Path, before: Line, raw: bytes) -> Line:
    number = before.number + 1
    match = _END.match(raw, max(len(raw) - _LENGTH, 0))
    content = b"" if match is None else raw[: match.start()] + b"}"
    hash = _hash(before.hash, content)
    if match is None or match[1].decode("ascii") != hash:
        raise LedgerError.broken(path, number)
    return Line(number, hash, json.loads(content), before.end + len(raw))


def _hash(before: str, content: bytes) -> str:
    return hashlib.sha256(before.encode("ascii") + content).hexdigest()


def _shorten(value: Any) -> Any:
    """Return what JSON can express of an entry, with long texts cut."""
    if isinstance(value, dict):
        return {key: _shorten(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return [_shorten(item) for item in value]
    if value is None or type(value) in (int, float, bool):
        return value
    text = str(value)
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}… ({len(text) - MAX_TEXT} more characters)"


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")
