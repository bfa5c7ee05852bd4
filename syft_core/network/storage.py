"""Storage: the published and tagged objects of a worker on disk, so that they are there again after a restart.

One file per object, written by our serializer and replaced as a whole before a command is answered. Tensors and
published plans are kept, but not tensors that end in a pointer.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from syft_core.exceptions import ConfigurationError, SerdeError, StorageError
from syft_core.files import TEMPORARY, has_room, lock_folder, remove_file, write_file
from syft_core.peer import Id, Peer
from syft_core.plans.program import Program
from syft_core.serde import deserialize, serialize
from syft_core.tensors.private import get_allowed_users
from syft_core.values import Tensor
from syft_core.workers.base import BaseWorker
from syft_core.workers.fetching import leave_graph
from syft_core.workers.memory import memory_of
from syft_core.workers.running import set_owner
from syft_core.workers.store import Failure, Source, Stored
from syft_core.workers.transfer import ends_elsewhere, is_tensor

FORMAT = 1
LASTING = 1 << 30
"""The leases of a tagged object after a restart: dropping pointers does not remove it, fetching or moving it does.

How many pointers its holder had is not known then.
"""
_DIGEST = hashlib.sha256().digest_size
_log = logging.getLogger(__name__)


class Storage:
    """The folder of one worker; no other process can open it at the same time."""

    def __init__(self, folder: str | Path, worker: BaseWorker, data: Iterable[Tensor] = ()) -> None:
        self.folder = Path(folder)
        self._worker = worker
        self._open = ExitStack()
        self._noted: dict[Id, None] = {}
        self._digests: dict[Id, bytes] = {}
        """What was last written of each object on disk."""
        self._memory: dict[Id, frozenset[Any]] = {}
        """The memory that each lasting object uses."""
        self._users: dict[Any, set[Id]] = {}
        """The lasting objects that use some memory."""
        self._sources: dict[int, Source] = {}
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._open.enter_context(lock_folder(self.folder, wait=False))
        except BlockingIOError:
            raise ConfigurationError(
                f"cannot use the store {self.folder}: another process uses it; stop that one, or choose another folder"
            ) from None
        except OSError as error:
            raise ConfigurationError(
                f"cannot use the store {self.folder}: {error.strerror}; check the path and its permissions"
            ) from None
        try:
            self._start(data)
        except BaseException:
            self._open.close()
            raise

    def flush(self) -> None:
        """Write what has changed; raise ``StorageError`` if an object cannot be written."""
        failed: list[StorageError] = []
        while self._noted:
            id = next(iter(self._noted))  # In order: state that a plan creates is written before the plan itself.
            del self._noted[id]
            try:
                self._save(id)
            except (OSError, SerdeError) as error:
                why = getattr(error, "strerror", None) or type(error).__name__
                _log.error("cannot write object %r to the store %s: %s", id, self.folder, why)
                failed.append(StorageError.unwritable(id, str(self._worker.id), why))
        if failed:
            raise failed[0]

    def save_all(self) -> None:
        """Write what the owner's own code has changed in objects on disk without the worker noticing."""
        with self._worker.lock:
            self._noted.update(dict.fromkeys(self._digests))
            self.flush()

    def close(self) -> None:
        """Write everything, and let other processes use the folder."""
        with self._worker.lock:
            try:
                self.save_all()
            finally:
                self._worker.object_store.listener = self._worker.save = None
                self._open.close()

    def _note(self, entry: Stored, written: bool) -> None:
        self._noted[entry.id] = None
        if written:
            for key in memory_of(entry.value):
                self._noted.update(dict.fromkeys(self._users.get(key, ())))

    def _save(self, id: Id) -> None:
        entry = self._worker.object_store.get(id)
        if entry is not None and _is_lasting(entry):
            self._index(id, frozenset(memory_of(entry.value)))
            data = serialize(_pack(entry, self._worker))
            digest = hashlib.sha256(data).digest()
            if self._digests.get(id) != digest:
                self._require_room(len(data))
                write_file(self._file(id), data, digest)
                self._digests[id] = digest
            return
        self._index(id, frozenset())
        if id in self._digests:
            try:
                remove_file(self._file(id))
                del self._digests[id]
            except OSError as error:  # Nothing is lost; `save_all` tries again.
                _log.error("cannot remove object %r from the store %s: %s", id, self.folder, error.strerror)

    def _require_room(self, size: int) -> None:
        if not has_room(self.folder, size):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _index(self, id: Id, memory: frozenset[Any]) -> None:
        for key in self._memory.pop(id, ()):
            self._users[key].discard(id)
            if not self._users[key]:
                del self._users[key]
        if memory:
            self._memory[id] = memory
        for key in memory:
            self._users.setdefault(key, set()).add(id)

    def _file(self, id: Id) -> Path:
        return self.folder / f"{hashlib.sha256(repr(id).encode()).hexdigest()[:32]}.object"

    # --- at the start

    def _start(self, data: Iterable[Tensor]) -> None:
        worker = self._worker
        with worker.lock:
            self._restore()
            worker.load_data([tensor for tensor in data if not self._is_restored(tensor)])
            for entry in filter(_is_lasting, worker.object_store.entries()):
                self._index(entry.id, frozenset(memory_of(entry.value)))
            worker.object_store.listener, worker.save = self._note, self.flush

    def _restore(self) -> None:
        for path in self.folder.glob(f".*{TEMPORARY}"):  # A crash interrupted their writer before it answered.
            path.unlink()
        for path in sorted(self.folder.glob("*.object")):
            try:
                data = memoryview(path.read_bytes())
                content, digest = data[:-_DIGEST], data[-_DIGEST:]
                if hashlib.sha256(content).digest() != bytes(digest):
                    raise SerdeError("the checksum is wrong")
                entry = self._unpack(deserialize(content))
            except ConfigurationError:
                raise
            except (OSError, SerdeError, KeyError, TypeError, ValueError) as error:
                raise ConfigurationError(
                    f"cannot load {path}: it is damaged, or of another release or framework ({type(error).__name__}); "
                    f"restore it from a backup, or move it away to start without this object"
                ) from None
            self._worker.object_store.put(entry.id, entry)
            set_owner(self._worker, entry.value, entry.id)
            self._digests[entry.id] = bytes(digest)
        self._undo_first_calls()

    def _undo_first_calls(self) -> None:
        """Remove the state that the first call of a plan created, if a crash interrupted that call."""
        for entry in self._worker.object_store.entries():
            if isinstance(entry.value, Program) and not entry.value.begun:
                for id in entry.value.state[len(entry.value.state) - entry.value.made :]:
                    if self._worker.object_store.get(id) is not None:
                        self._worker.object_store.remove(id, "the first call of its plan was interrupted")
                        remove_file(self._file(id))
                        del self._digests[id]

    def _unpack(self, record: dict[str, Any]) -> Stored:
        if record["worker"] != self._worker.id:
            raise ConfigurationError(
                f"cannot use the store {self.folder}: it belongs to worker {record['worker']!r}; "
                f"start that one, or choose another folder"
            )
        if record["format"] != FORMAT:
            raise SerdeError("unknown format")
        entry = Stored(record["value"], record["holder"])
        entry.id = record["id"]
        entry.leases = 0 if record["published"] else LASTING
        entry.published, entry.touched = record["published"], record["touched"]
        entry.publisher, entry.giver = _unpack_peer(record["publisher"]), _unpack_peer(record["giver"])
        entry.writers, entry.access = record["writers"], record["access"]
        entry.tags, entry.description = record["tags"], record["description"]
        entry.sources = frozenset([self._unpack_source(*source) for source in record["sources"]])
        if record["own"] is not None:
            entry.source = self._unpack_source("source", *record["own"])
            entry.source.tags, entry.source.published = entry.tags, entry.published
        entry.root = entry.sources if record["original"] else None
        return entry

    def _unpack_source(self, kind: str, *fields: Any) -> Any:
        if kind == "source":
            serial, id, tags, published = fields
            source = self._sources.setdefault(serial, Source(id))
            if source.serial != serial:  # It is new here.
                source.serial, source.tags, source.published = serial, tags, published
            return source
        return Failure(*fields) if kind == "failure" else fields[0]

    def _is_restored(self, tensor: Tensor) -> bool:
        """Return whether data is there in a version that was changed later, which takes precedence."""
        entry = self._worker.object_store.get(tensor.id)
        if entry is None:
            return False
        tags = " ".join(sorted(tensor.tags))
        users = get_allowed_users(tensor)
        if users is not None and (entry.access is None or not entry.access <= users):
            raise ConfigurationError(
                f"cannot load {tags}: {self._file(tensor.id)} has a changed version of it, for more users; "
                f"move that file away to load the data again, or restore the list of users"
            )
        _log.warning("%s was changed on this worker: that version is used; to load the data again, move %s away",
                     tags, self._file(tensor.id))  # fmt: skip
        return True


def _is_lasting(entry: Stored) -> bool:
    if isinstance(entry.value, Program):
        return entry.published
    return bool(entry.published or entry.tags) and is_tensor(entry.value) and not ends_elsewhere(entry.value)


def _pack(entry: Stored, worker: BaseWorker) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "worker": worker.id,
        "id": entry.id,
        "value": leave_graph(entry.value),
        "tags": entry.tags,
        "description": entry.description,
        "published": entry.published,
        "publisher": _pack_peer(entry.publisher),
        "touched": entry.touched,
        "holder": entry.holder,
        "giver": _pack_peer(entry.giver),
        "writers": entry.writers,
        "access": entry.access,
        "sources": sorted([_pack_source(source) for source in entry.sources], key=repr),
        "own": None if entry.source is None else _pack_source(entry.source)[1:],
        "original": entry.sources is entry.root,
    }


def _pack_source(source: object) -> tuple[Any, ...]:
    if isinstance(source, Source):
        return "source", source.serial, source.id, source.tags, source.published
    return ("failure", *source) if isinstance(source, Failure) else ("text", str(source))


def _pack_peer(peer: Peer | None) -> tuple[Any, ...] | None:
    return None if peer is None else (peer.id, peer.user, tuple([_pack_peer(other) for other in peer.behalf]))


def _unpack_peer(packed: tuple[Any, ...] | None) -> Peer | None:
    if packed is None:
        return None
    id, user, behalf = packed
    return Peer(id, user, tuple([peer for other in behalf if (peer := _unpack_peer(other)) is not None]))
