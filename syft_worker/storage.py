"""Storage: the published and tagged objects of a worker on disk, so that they are there again after a restart.

One file per object, written by our serializer and replaced as a whole before a command is answered. Tensors and
published plans are kept, but not tensors that end in a pointer. Open release requests with their copies, and
rules, are here too.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import fields
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import Any, TypeVar

from syft_core.exceptions import ConfigurationError, NotRegisteredError, SerdeError, StorageError
from syft_core.files import TEMPORARY, has_room, lock_folder, remove_file, write_file
from syft_core.peer import Id, Peer
from syft_core.plans.program import Program
from syft_core.serde import deserialize, serialize
from syft_core.tensors.private import get_allowed_users
from syft_core.values import Table, Tensor
from syft_core.workers.moving.departure import leave_graph
from syft_core.workers.moving.transfer import ends_elsewhere, is_tensor
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.party.status import RESTRICTIONS, name_restrictions
from syft_core.workers.party.store import FailedSource, Source, Stored
from syft_core.workers.road.derivation import derive_program
from syft_core.workers.road.keeping import set_owner
from syft_worker.derivations import pack, unpack, unpack_maker
from syft_worker.desk.approvals import StandingApproval
from syft_worker.desk.releases import releases_of
from syft_worker.desk.requests import ReleaseRequest, Requested
from syft_worker.desk.terms import Terms

FORMAT = 4
"""The version of the files; the previous ones are read too."""
LASTING = 1 << 30
"""The leases of a tagged object after a restart: dropping pointers does not remove it, fetching or moving it does.

How many pointers its holder had is not known then.
"""
_DIGEST = hashlib.sha256().digest_size
_APPROVALS = "approvals.json"
_log = logging.getLogger(__name__)
T = TypeVar("T")


class Storage:
    """The folder of one worker; no other process can open it at the same time."""

    def __init__(self, folder: str | Path, worker: BaseWorker, data: Iterable[Tensor] = ()) -> None:
        self.folder = Path(folder)
        self._worker = worker
        self._open = ExitStack()
        self._noted: dict[Id, None] = {}
        self._digests: dict[Id, bytes] = {}
        """The digest of the last written state of each object on disk."""
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
        """Write changes; raise ``StorageError`` if an object cannot be written."""
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
        """Write changes that the owner's own code has made to objects on disk without the worker noticing."""
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
                releases = releases_of(self._worker)
                releases.requests.keeper = releases.approvals.keeper = None
                self._open.close()

    def _note(self, entry: Stored, written: bool) -> None:
        self._noted[entry.id] = None
        if written:
            sharing = self._worker.object_store.find_sharing(entry.value)
            self._noted.update(dict.fromkeys([other.id for other in sharing]))

    def _save(self, id: Id) -> None:
        entry = self._worker.object_store.get(id)
        if entry is not None and _is_lasting(entry):
            data = serialize(_pack(entry, self._worker))
            digest = hashlib.sha256(data).digest()
            if self._digests.get(id) != digest:
                self._require_room(len(data))
                write_file(self._file(id), data, digest)
                self._digests[id] = digest
            return
        if id in self._digests:
            try:
                remove_file(self._file(id))
                del self._digests[id]
            except OSError as error:  # Nothing is lost; `save_all` tries again.
                _log.error("cannot remove object %r from the store %s: %s", id, self.folder, error.strerror)

    def _require_room(self, size: int) -> None:
        if not has_room(self.folder, size):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    # --- release requests and rules

    def save_request(self, request: ReleaseRequest) -> None:
        """Write a request with its copies; raise ``StorageError`` if that fails."""
        try:
            data = serialize(_pack_request(request, self._worker))
            self._require_room(len(data))
            write_file(self._request_file(request.id), data, hashlib.sha256(data).digest())
        except (OSError, SerdeError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            _log.error("cannot write request %s to the store %s: %s", request.id, self.folder, why)
            raise StorageError.request(f"request {request.id}", str(self._worker.id), why) from None

    def remove_request(self, id: str) -> None:
        """Remove a request that is denied, or was fetched."""
        remove_file(self._request_file(id))

    def save_approvals(self, approvals: Iterable[StandingApproval]) -> None:
        """Write the rules and their uses; raise ``StorageError`` if that fails."""
        tables = [_pack_approval(approval) for approval in approvals]
        data = {"format": 1, "revoked": releases_of(self._worker).approvals.revoked, "approvals": tables}
        try:
            write_file(self.folder / _APPROVALS, json.dumps(data, indent=1).encode())
        except OSError as error:
            _log.error("cannot write the rules to the store %s: %s", self.folder, error.strerror)
            raise StorageError.request("a rule", str(self._worker.id), str(error.strerror)) from None

    def _restore_requests(self) -> None:
        """Take over requests and rules; the worker has read its ledger already."""
        releases = releases_of(self._worker)
        releases.requests.keeper = releases.approvals.keeper = self
        file = self.folder / _APPROVALS
        if file.exists():
            try:
                data = json.loads(file.read_bytes())
                if data["format"] != 1:
                    raise ValueError("unknown format")
                releases.approvals.restore(data["approvals"], data["revoked"], releases.history)
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise _damaged(file, error, "rules") from None
        for path in sorted(self.folder.glob("*.request")):
            request, _ = _read(path, "request", self._unpack_request)
            releases.requests.restore(request)

    def _unpack_request(self, record: Table) -> ReleaseRequest:
        self._require_own(record)
        objects = []
        for part in record.pop("objects"):
            sources = frozenset([self._unpack_source(*source) for source in part["sources"]])
            copy = Stored(part["value"], record["peer"][0], (part["access"], sources, 0))
            copy.id = part["id"]
            copy.derivation = unpack(self._worker, part.get("derivation"))
            if maker := unpack_maker(part.get("maker")):  # Earlier releases knew nothing else.
                copy.derivation = derive_program(maker, [])
            copy.mark(_find_restrictions(part))
            copy.refresh_status()
            find = partial(self._worker.object_store.get, copy.id)
            objects.append(Requested(find, part["attr"], copy, label=part.get("label", "")))
        # Files of earlier releases do not have the facts about the sender, and how the objects were computed.
        fields = {name: record[name] for name in _REQUEST_FIELDS if name in record or name not in _LATER}
        fields["terms"] = None if fields.get("terms") is None else Terms(**fields["terms"])
        lineage = frozenset([source for requested in objects for source in requested.copy.sources])
        peer = _unpack_peer(record["peer"]) or self._worker.peer
        return ReleaseRequest(peer=peer, objects=objects, lineage=lineage, **fields)

    def _request_file(self, id: str) -> Path:
        return self.folder / f"{id}.request"

    def _file(self, id: Id) -> Path:
        return self.folder / f"{hashlib.sha256(repr(id).encode()).hexdigest()[:32]}.object"

    # --- at the start

    def _start(self, data: Iterable[Tensor]) -> None:
        worker = self._worker
        with worker.lock:
            self._restore()
            worker.load_data([tensor for tensor in data if not self._is_restored(tensor)])
            worker.object_store.listener, worker.save = self._note, self.flush
            self._restore_requests()

    def _restore(self) -> None:
        for path in self.folder.glob(f".*{TEMPORARY}"):  # A crash interrupted their writer before it answered.
            path.unlink()
        for path in sorted(self.folder.glob("*.object")):
            entry, digest = _read(path, "object", self._unpack)
            self._worker.object_store.put(entry.id, entry)
            set_owner(self._worker, entry.value, entry.id)
            self._digests[entry.id] = digest
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

    def _require_own(self, record: Table) -> None:
        if record["worker"] != self._worker.id:
            raise ConfigurationError(
                f"cannot use the store {self.folder}: it belongs to worker {record['worker']!r}; "
                f"start that one, or choose another folder"
            )
        if record["format"] not in range(1, FORMAT + 1):
            raise SerdeError("unknown format")

    def _unpack(self, record: Table) -> Stored:
        self._require_own(record)
        entry = Stored(record["value"], record["holder"])
        for name in _ENTRY_FIELDS:
            setattr(entry, name, record[name])
        entry.leases = 0 if entry.published else LASTING
        entry.schema = record.get("schema")  # Files of the first format do not have it.
        entry.publisher, entry.giver = _unpack_peer(record["publisher"]), _unpack_peer(record["giver"])
        entry.sources = frozenset([self._unpack_source(*source) for source in record["sources"]])
        if record["own"] is not None:
            entry.source = self._unpack_source("source", *record["own"])
            entry.source.tags, entry.source.published = entry.tags, entry.published
        entry.root = entry.sources if record["original"] else None
        entry.derivation = unpack(self._worker, record.get("derivation"))
        entry.mark(_find_restrictions(record))
        entry.refresh_status()
        return entry

    def _unpack_source(self, kind: str, *fields: Any) -> Any:
        if kind == "source":
            serial, id, tags, published, *more = fields
            giver, private = more or (("", None, ()), True)  # Format 1 does not say: no rule of the owner covers it.
            source = self._sources.setdefault(serial, Source(id, giver=_unpack_peer(giver), private=private))
            if source.serial != serial:  # It is new here.
                source.serial, source.tags, source.published = serial, tags, published
            return source
        return FailedSource(*fields) if kind == "failure" else fields[0]

    def _is_restored(self, tensor: Tensor) -> bool:
        """Return whether a changed version of the data is already there, which takes precedence."""
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


def _read(path: Path, what: str, unpack: Callable[[Table], T]) -> tuple[T, bytes]:
    try:
        data = memoryview(path.read_bytes())
        content, digest = data[:-_DIGEST], bytes(data[-_DIGEST:])
        if hashlib.sha256(content).digest() != digest:
            raise SerdeError("the checksum is wrong")
        return unpack(deserialize(content)), digest
    except ConfigurationError:
        raise
    except NotRegisteredError as error:
        raise ConfigurationError(
            f"cannot load {path}: {error}, or move the file away if you no longer need what is in it"
        ) from None
    except (OSError, SerdeError, KeyError, TypeError, ValueError) as error:
        raise _damaged(path, error, what) from None


def _find_restrictions(record: Table) -> int:
    """Return the bits of the restrictions of features; files of the first three formats have none."""
    return reduce(or_, [RESTRICTIONS[name] for name in record.get("restrictions", ())], 0)


def _is_lasting(entry: Stored) -> bool:
    if isinstance(entry.value, Program):
        return entry.published
    return bool(entry.published or entry.tags) and is_tensor(entry.value) and not ends_elsewhere(entry.value)


_ENTRY_FIELDS = ("id", "tags", "description", "published", "touched", "holder", "writers", "access")


def _pack(entry: Stored, worker: BaseWorker) -> Table:
    return {
        "format": FORMAT,
        "worker": worker.id,
        "value": leave_graph(entry.value),
        **{name: getattr(entry, name) for name in (*_ENTRY_FIELDS, "schema")},
        "publisher": _pack_peer(entry.publisher),
        "giver": _pack_peer(entry.giver),
        "sources": sorted([_pack_source(source) for source in entry.sources], key=repr),
        "own": None if entry.source is None else _pack_source(entry.source)[1:],
        "original": entry.sources is entry.root,
        "derivation": pack(entry.derivation),
        "restrictions": name_restrictions(entry.status),
    }


_LATER = ("labels", "parties", "line", "how", "terms")
_UNSTORED = ("peer", "objects", "lineage", "lifetime", "results")
_REQUEST_FIELDS = [field.name for field in fields(ReleaseRequest) if field.name not in _UNSTORED]


def _pack_request(request: ReleaseRequest, worker: BaseWorker) -> Table:
    objects = [
        {
            "id": requested.copy.id,
            "attr": requested.attr,
            "label": requested.label,
            "value": leave_graph(requested.value),
            "access": requested.copy.access,
            "sources": sorted([_pack_source(source) for source in requested.copy.sources], key=repr),
            "derivation": pack(requested.copy.derivation),
            "restrictions": name_restrictions(requested.copy.status),
        }
        for requested in request.objects
    ]
    fields = {name: getattr(request, name) for name in _REQUEST_FIELDS}
    fields["terms"] = None if request.terms is None else request.terms.to_table()
    return {"format": FORMAT, "worker": worker.id, "peer": _pack_peer(request.peer), "objects": objects, **fields}


def _pack_approval(approval: StandingApproval) -> Table:
    return {
        "name": approval.name,
        "conditions": dict(approval.conditions),
        "by": approval.made_by,
        "made": approval.made_at,
        "configured": approval.is_configured,
        "earlier": approval.uses.earlier,
        "times": approval.uses.times,
        "last": approval.uses.last,
    }


def _damaged(path: Path, error: Exception, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"cannot load {path}: it is damaged, or of another release or framework ({type(error).__name__}); "
        f"restore it from a backup, or move it away to start without this {what}"
    )


def _pack_source(source: object) -> tuple[Any, ...]:
    if isinstance(source, Source):
        giver = _pack_peer(source.giver)
        return "source", source.serial, source.id, source.tags, source.published, giver, source.private
    return ("failure", *source) if isinstance(source, FailedSource) else ("text", str(source))


def _pack_peer(peer: Peer | None) -> tuple[Any, ...] | None:
    return None if peer is None else (peer.id, peer.user, tuple([_pack_peer(other) for other in peer.behalf]))


def _unpack_peer(packed: tuple[Any, ...] | None) -> Peer | None:
    if packed is None:
        return None
    id, user, behalf = packed
    return Peer(id, user, tuple([peer for other in behalf if (peer := _unpack_peer(other)) is not None]))
