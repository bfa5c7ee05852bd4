"""Journal: an append-only file of JSON lines, each with a hash of itself and of all lines before it."""

from __future__ import annotations

import glob
import hashlib
import json
import logging
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from syft_core.exceptions import LedgerError
from syft_core.files import sync_folder, write_file
from syft_core.values import Table

MAX_TEXT = 4096
"""The maximum number of characters in one text of a line: peers choose some of the texts."""
FORMAT = 1
"""The version of the file format, stored in the first line."""
_END = re.compile(rb',"hash":"([0-9a-f]{64})"}\n')
_LENGTH = len(',"hash":""}\n') + 64
_log = logging.getLogger(__name__)


class Journal:
    """A journal that is open for writing; no other process can open it at the same time.

    ``visit`` is called with the content of each existing line. An incomplete last line, left by a crash, is moved to
    a separate file, and the journal records that.

    A file of more than ``limit`` bytes is renamed and continued in a new one, whose first line contains the name of the
    previous file and the hash of its last line.
    """

    def __init__(
        self, path: str | Path, owner: str, visit: Callable[[Table], object] = bool, limit: int | None = None
    ) -> None:
        self.path = Path(path)
        self._owner, self._visit, self._limit = owner, visit, limit
        self._lock = threading.Lock()
        self._first: list[Table] = []
        """The first line of a new file, until it is written."""
        self._file = -1
        try:
            self._file = self._open()
            self._continue()
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise _unusable(self.path, error) from None
            raise

    @property
    def head(self) -> str:
        """The hash of the last line."""
        return self._hash

    @property
    def total_size(self) -> int:
        """The size in bytes of the file and those that it continues."""
        return self._size + sum(file.stat().st_size for file in _list_rotated(self.path))

    def _open(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def _take(self) -> None:
        import fcntl  # noqa: PLC0415  # only POSIX systems have it, and only a ledger on disk needs it

        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LedgerError.unusable(self.path, "another process writes to it") from None

    def _continue(self) -> None:
        self._take()
        earlier = find_earlier(self.path)
        before = BEFORE
        for file in earlier:
            for before in iter_lines(file):
                self._visit(before.content)
        last = BEFORE
        for last in iter_lines(self.path, to_be_mended=True):
            self._visit(last.content)
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
        elif not last.number and earlier:  # A crash came between renaming a file and writing to the next.
            self._begin(earlier[-1].name, before.hash)
        elif not last.number:
            self.append({"time": _now(), "event": "opened", "to": self._owner, "format": FORMAT}, sync=True)
            sync_folder(self.path.parent)

    def _begin(self, file: str, after: str) -> None:
        """Continue another file; the link to it is written with the next entry."""
        first = {"time": _now(), "event": "continued", "to": self._owner, "format": FORMAT}
        self._first, self._hash, self._size = [{**first, "file": file, "after": after}], after, 0
        sync_folder(self.path.parent)

    def rotate(self) -> Path:
        """Rename the file, and continue in a new one; return the renamed one."""
        with self._lock:
            numbers = [0, *[int(file.suffix[1:]) for file in _list_rotated(self.path)]]
            aside = self.path.with_name(f"{self.path.name}.{max(numbers) + 1}")
            before = self._file
            os.fsync(before)
            self.path.rename(aside)
            try:
                self._file = self._open()
            except OSError:
                aside.rename(self.path)
                raise
            os.close(before)
            self._take()
            self._begin(aside.name, self._hash)
        return aside

    def append(self, *entries: Table, sync: bool) -> None:
        """Write lines, and wait until they are on disk if ``sync``; on failure, raise and leave no part of them."""
        with self._lock:
            every = (*self._first, *entries)
            contents = [json.dumps(_shorten(entry), separators=(",", ":")).encode("ascii") for entry in every]
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
            self._first, self._hash, self._size = [], hash, self._size + len(written)
        if self._limit is not None and self._size > self._limit:
            try:
                _log.info("the ledger of worker %r continues after %s", self._owner, self.rotate().name)
            except OSError as error:
                _log.error("worker %r cannot begin a new ledger file: %s", self._owner, error)

    def _write(self, lines: bytes) -> None:
        rest = memoryview(lines)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            os.ftruncate(self._file, self._size)
            raise

    def close(self) -> None:
        """Close the file; later writes fail."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class JournalLine(NamedTuple):
    """One verified line: its number, its hash, its content, and its end in the file."""

    number: int
    hash: str
    content: Table
    end: int


BEFORE = JournalLine(0, "0" * 64, {}, 0)
"""The predecessor of the first line."""


def iter_lines(path: Path, to_be_mended: bool = False) -> Iterator[JournalLine]:
    """Yield the lines of a journal; raise ``LedgerError`` at the first that was changed, inserted or removed.

    With ``to_be_mended``, ignore an incomplete last line.
    """
    line = BEFORE
    try:
        with path.open("rb") as file:
            for raw in file:
                if raw.endswith(b"\n"):
                    line = _verify(path, line, raw)
                    if line.number == 1 and line.content.get("format", FORMAT) != FORMAT:
                        raise LedgerError.later(path, line.content["format"])
                    yield line
                elif not to_be_mended:
                    raise LedgerError.incomplete(path, line.number + 1)
    except OSError as error:
        raise _unusable(path, error) from None


def _list_rotated(path: Path) -> list[Path]:
    found = [file for file in path.parent.glob(f"{glob.escape(path.name)}.*") if file.suffix[1:].isdecimal()]
    named = [file for file in found if file.stem == path.name]
    return sorted(named, key=lambda file: int(file.suffix[1:]))


def find_earlier(path: Path) -> list[Path]:
    """Return the files that a journal continues, oldest first; raise ``LedgerError`` if one is missing."""
    first = _read_first(path)
    if first is None:  # The file is empty: it will continue the last one that was renamed.
        rotated = _list_rotated(path)
        return [*find_earlier(rotated[-1]), rotated[-1]] if rotated else []
    if first.get("event") != "continued":
        return []
    name, after = Path(str(first.get("file", ""))).name, str(first.get("after", ""))
    if not name or "\0" in name:
        raise LedgerError.broken(path, 1)
    earlier = path.with_name(name)
    (last,) = deque(chain([BEFORE], iter_lines(earlier)), maxlen=1)
    if last.hash != after:
        raise LedgerError.cut(earlier, after)
    return [*find_earlier(earlier), earlier]


def _read_first(path: Path) -> Table | None:
    """Return the content of the first line: None if there is no line, an empty dict if it is invalid."""
    try:
        with path.open("rb") as file:
            line = file.readline()
    except OSError as error:
        raise _unusable(path, error) from None
    try:
        content = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return {}
    return content if isinstance(content, dict) or content is None else {}


def read_last(path: Path, size: int) -> list[Table]:
    """Return the contents of the last lines, at most ``size`` bytes in total; they are not verified."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(end - size, 0))
        lines = file.read(size).split(b"\n")
    whole = lines[1:-1] if end > size else lines[:-1]  # The last line may still be incomplete.
    return [json.loads(line) for line in whole if line]


def _verify(path: Path, before: JournalLine, raw: bytes) -> JournalLine:
    number = before.number + 1
    match = _END.match(raw, max(len(raw) - _LENGTH, 0))
    content = b"" if match is None else raw[: match.start()] + b"}"
    hash = _hash(_find_before(before, content), content)
    if match is None or match[1].decode("ascii") != hash:
        raise LedgerError.broken(path, number)
    return JournalLine(number, hash, json.loads(content), before.end + len(raw))


def _find_before(before: JournalLine, content: bytes) -> str:
    """Return the hash of the previous line; in the first line of a continuation, the hash it names."""
    if not before.number and b'"event":"continued"' in content:
        try:
            return str(json.loads(content)["after"])
        except (ValueError, KeyError, TypeError):
            pass
    return before.hash


def _unusable(path: Path, error: OSError) -> LedgerError:
    return LedgerError.unusable(path, error.strerror or type(error).__name__)


def _hash(before: str, content: bytes) -> str:
    return hashlib.sha256(before.encode("ascii") + content).hexdigest()


def _shorten(value: Any) -> Any:
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
