"""Incidents: the commands that ended the serving process, and the bans that follow for their users.

A ban is never recorded. It follows from the incidents of one user in the last ``limits.ban_seconds``:

- A command that ended the process by itself (an invalid access to memory, an abort, an exit) or that ran longer than
  ``limits.operation_seconds`` is refused from the first time on: there is no other explanation.
- A process can also be killed from outside, by an administrator or by a system without memory, and a command outside
  of the lock of the worker may be the cause, such as a protocol. Then the command is a *suspect*, and is refused if the
  same happens again while it runs.
- A user with as many incidents as the quota ``crashes`` cannot connect; of suspicions, the first one does not count.

Other users may run the command. The supervisor keeps the incidents in the store, if there is one.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from syft_core.exceptions import ConfigurationError, OperationNotAllowedError
from syft_core.files import lock_folder, write_file
from syft_core.pictures.tables import one_line, to_moment
from syft_core.values import Table
from syft_worker.logs import log_event

NAME = "incidents.json"
"""The file in the store."""
MAX_INCIDENTS, MAX_OF_USER = 1_000, 100
"""Maximum number of incidents that are kept, of all users and of each; the oldest are forgotten."""
_FORMAT = 2
_OPERATION = "("
"""Part of the name of every command that can be refused by its signature."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Incident:
    """A command that ended the process, or may have done so."""

    user: str
    operation: str
    """The operation with the forms of its operands, or the name of another message."""
    what: str
    """For instance "ended the process (SIGSEGV)"."""
    is_certain: bool
    """Whether nothing else can be the cause."""
    when: float
    """In seconds since 1970."""

    @property
    def is_operation(self) -> bool:
        """Whether the command can be refused by its signature."""
        return _OPERATION in self.operation


@dataclass(frozen=True)
class Ban:
    """A ban of a user, from one command or from connecting, and its end."""

    user: str
    operation: str
    """The command that is refused; empty if the user cannot connect."""
    why: str
    until: float
    """In seconds since 1970."""

    @property
    def id(self) -> str:
        """Identifies the ban to those who lift it."""
        return hashlib.sha256(f"{self.user}\n{self.operation}".encode()).hexdigest()[:12]

    @property
    def end(self) -> str:
        """The end, as it is shown to users."""
        return f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime(self.until))} UTC"

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the ban: its id, the user, the refused command, the reason, and the end."""
        refused = self.operation or "to connect"
        return self.id, *map(one_line, (self.user, refused, self.why)), to_moment(self.until)

    def to_table(self) -> Table:
        """Return the ban as JSON can express it."""
        return {"id": self.id, **asdict(self)}


class Incidents:
    """The incidents of the last ``seconds``, which are read again whenever their file changes.

    The supervisor and the command that lifts bans write the file; the serving process only reads it.
    """

    def __init__(self, seconds: float, file: Path | None = None, known: Iterable[Incident] = ()) -> None:
        self.seconds, self.file = seconds, file
        self._seen: tuple[int, ...] | None = None
        self.by_command: dict[tuple[str, str], list[Incident]] = {}
        """The incidents, oldest first, by user and operation."""
        self._keep(known)

    @classmethod
    def open(cls, seconds: float, store: Path | None) -> Incidents:
        """Read what earlier processes were ended by; a damaged file is set aside."""
        incidents = cls(seconds, None if store is None else store / NAME)
        try:
            incidents.refresh()
        except ConfigurationError:
            raise
        except ValueError as error:
            if incidents.file is not None:
                _set_aside(incidents.file, str(error))
        return incidents

    def __iter__(self) -> Iterator[Incident]:
        """Yield the incidents that count, oldest first."""
        known = [incident for found in self.by_command.values() for incident in self._select(found)]
        return iter(sorted(known, key=lambda incident: incident.when))

    def _select(self, incidents: Iterable[Incident]) -> list[Incident]:
        start = time.time() - self.seconds
        return [incident for incident in incidents if incident.when > start]

    def _keep(self, incidents: Iterable[Incident]) -> None:
        self.by_command = {}
        for incident in incidents:
            self.by_command.setdefault((incident.user, incident.operation), []).append(incident)

    # --- bans

    def find_ban(self, user: str, operation: str) -> Ban | None:
        """Return why a command of a user is refused, or None."""
        found = self._select(self.by_command.get((user, operation), ()))
        certain = [incident for incident in found if incident.is_certain]
        if not found or not found[-1].is_operation or not (certain or len(found) > 1):
            return None
        counted = certain or found
        last = counted[-1]
        why = f"it {last.what}" + (f" {len(counted)} times" if len(counted) > 1 else "")
        return Ban(user, operation, why, last.when + self.seconds)

    def find_lockout(self, user: str, crashes: int | None) -> Ban | None:
        """Return why a user with the quota ``crashes`` cannot connect, or None."""
        found = [incident for incident in self if incident.user == user]
        suspicions = [incident for incident in found if not incident.is_certain]
        counted = [incident for incident in found if incident not in suspicions[:1]]
        if crashes is None or len(counted) < (most := max(crashes, 1)):
            return None
        why = f"operations of user {user!r} ended the worker's process {len(counted)} times"
        return Ban(user, "", why, counted[-most].when + self.seconds)

    def list_bans(self, find_crashes: Callable[[str], int | None]) -> list[Ban]:
        """Return all bans, latest first; ``find_crashes`` returns the quota of a user."""
        commands = dict.fromkeys([(incident.user, incident.operation) for incident in self])
        found = [self.find_ban(*command) for command in commands]
        found += [self.find_lockout(user, find_crashes(user)) for user in dict.fromkeys(user for user, _ in commands)]
        return sorted([ban for ban in found if ban is not None], key=lambda ban: -ban.until)

    def confirm(self, find: Callable[[], Ban | None]) -> Ban | None:
        """Return the ban that ``find`` returns, unless it was lifted in the meantime."""
        if not self.by_command or find() is None:
            return None
        self.look_again()
        return find()

    def look_again(self) -> None:
        """Read the file again if it has changed; if it is damaged, keep the known incidents."""
        with suppress(ValueError):
            self.refresh()

    def require_allowed(self, user: str, operation: str) -> None:
        """Raise if an operation is refused to a user because it has ended the process."""
        if (ban := self.confirm(lambda: self.find_ban(user, operation))) is not None:
            advice = "use another operation, or operands of another form, or ask the owner"
            why = f"{ban.why} before, and is refused to user {user!r} until {ban.end}; {advice}"
            raise OperationNotAllowedError.refused_by("worker", operation, why)

    def forget(self, ban: Ban) -> None:
        """Forget the incidents behind a ban, without changing the file."""
        self._keep([i for i in self if i.user != ban.user or ban.operation not in ("", i.operation)])

    # --- the file

    def add(self, *incidents: Incident) -> None:
        """Add incidents, and write them down; if that fails, they are known until this process ends."""
        self._change(lambda: self._keep(_limit([*self, *incidents])))

    def lift(self, ban: Ban) -> None:
        """Forget the incidents behind a ban, and write that down."""
        self._change(lambda: self.forget(ban))

    def to_list(self) -> list[Table]:
        """Return the incidents as JSON can express them."""
        return [asdict(incident) for incident in self]

    def refresh(self) -> None:
        """Read the file again if it has changed; raise ``ValueError`` if it is damaged."""
        if self.file is None:
            return
        try:
            facts = self.file.stat()
            seen = facts.st_mtime_ns, facts.st_size, facts.st_ino
            if seen != self._seen:
                self._keep(_parse(self.file))
                self._seen = seen
        except FileNotFoundError:
            if self._seen is not None:
                self._keep(())
                self._seen = None
        except OSError as error:
            raise ValueError(error.strerror) from None

    def _change(self, change: Callable[[], None]) -> None:
        """Change the incidents, also in the file; processes that do so at the same time wait for one another."""
        problem: Exception | None = None
        with ExitStack() as stack:
            try:
                if self.file is not None:
                    stack.enter_context(_lock(self.file))
                    self.refresh()
            except (OSError, ConfigurationError) as error:
                problem = error
            except ValueError:
                pass  # It is damaged, and the known incidents replace it.
            change()
            if self.file is not None and problem is None:
                try:
                    data = {"format": _FORMAT, "incidents": self.to_list()}
                    write_file(self.file, json.dumps(data, indent=1).encode())
                    self.refresh()
                except (OSError, ValueError) as error:
                    problem = error
        if problem is not None:
            why = getattr(problem, "strerror", None) or str(problem)
            raise ConfigurationError(f"cannot write {self.file}: {why}; check the disk and the owner")


def _set_aside(file: Path, why: str) -> None:
    """Rename a damaged file: it must not keep the worker from starting."""
    aside = file.with_suffix(".damaged")
    try:
        file.replace(aside)
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {file}: {why}, and it cannot be renamed ({error.strerror}); remove it"
        ) from None
    log_event(_log, logging.ERROR, f"{file} is damaged ({why}): it is {aside} now, and no command is refused")


@contextmanager
def _lock(file: Path) -> Iterator[None]:
    """Keep other processes from changing the file; the worker locks the folder itself as long as it runs."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = file.with_suffix(".lock")
    lock.touch(mode=0o600)
    with lock_folder(lock):
        yield


def _limit(incidents: Iterable[Incident]) -> list[Incident]:
    counts: Counter[str] = Counter()
    kept: list[Incident] = []
    for incident in reversed([*incidents]):
        counts[incident.user] += 1
        if counts[incident.user] <= MAX_OF_USER and len(kept) < MAX_INCIDENTS:
            kept.append(incident)
    return kept[::-1]


def read_incidents(tables: Iterable[Table]) -> list[Incident]:
    """Return incidents from what ``to_list`` returns; raise ``ValueError`` if something else is given."""
    now, found = time.time(), []
    try:
        for table in tables:
            incident = Incident(**table)
            texts = (incident.user, incident.operation, incident.what)
            if not all(type(text) is str for text in texts) or type(incident.is_certain) is not bool:
                raise ValueError("an entry has a wrong type")
            when = min(float(incident.when), now)  # The clock may have been wrong.
            found.append(Incident(*texts, incident.is_certain, when))
    except TypeError:
        raise ValueError("an entry is malformed") from None
    return _limit(found)


def _parse(file: Path) -> list[Incident]:
    data = json.loads(file.read_bytes())
    if type(data) is not dict or type(data.get("format")) is not int or type(data.get("incidents")) is not list:
        raise ValueError("it is not a file of incidents")
    if data["format"] > _FORMAT:
        raise ConfigurationError(
            f"cannot read {file}: a later release of syft-core wrote it; install that, or remove it"
        )
    return read_incidents(data["incidents"])
