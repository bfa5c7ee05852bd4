"""RequestHandle: a release request, as the one who asked sees it."""

from __future__ import annotations

import asyncio
import linecache
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from pathlib import PurePath

from syft_core.hook.hook import find_line_of_program
from syft_core.location import Location
from syft_core.peer import Id
from syft_core.printing import printable
from syft_core.tensors.identity import require_text
from syft_core.values import Json, Table, Tensor
from syft_worker.desk.errors import ReleaseError, ReleasePendingError, require_not_denied
from syft_worker.desk.messages import AskRelease, AskStudy, FetchReleased, FollowRequests
from syft_worker.desk.waiting import LINE

POLL_SECONDS, MAX_POLL_SECONDS = 0.2, 5.0
"""How long to wait before asking a worker again, at first and at most."""


class RequestHandle:
    """A release request on a worker; the same for every client of the user who asked.

    >>> request = model.request("for our paper")  # doctest: +SKIP
    >>> request.wait(timeout=3600).get()          # doctest: +SKIP
    """

    def __init__(self, location: Location, id: str) -> None:
        self.location, self.id = location, printable(id)

    @classmethod
    def ask(
        cls,
        location: Location,
        ids: Sequence[Id],
        attr: str | None,
        reason: str,
        labels: Sequence[str] = (),
        parties: Sequence[Id] = (),
    ) -> RequestHandle:
        """Ask the owner of a worker to release objects; ``labels`` and ``parties`` say more about them."""
        require_text("reason", reason)
        message = AskRelease(tuple(ids), attr, reason, tuple(labels), tuple(parties), describe_line())
        return cls(location, location.ask(message))

    @classmethod
    def ask_study(
        cls,
        location: Location,
        examples: Mapping[Id, str],
        reason: str,
        count: int,
        sums: tuple[str, int, int] = ("", 0, 0),
        line: str = "",
    ) -> RequestHandle | None:
        """Ask the owner of a worker for a rule for the programs that have computed examples, which have labels.

        ``sums`` are the name of a study, its number of workers, and how many may collude, if results leave only in
        sums; ``line`` is that of the program that asks. Return None if nothing restricts the results.
        """
        require_text("reason", reason)
        message = AskStudy(tuple(examples), reason, tuple(examples.values()), count, *sums, line=line)
        id = location.ask(message)
        return None if id is None else cls(location, id)

    @classmethod
    def find_all(cls, location: Location) -> list[RequestHandle]:
        """Return the requests of a client's user to a worker, the oldest first."""
        return [cls(location, found["id"]) for found in location.ask(FollowRequests())]

    def _ask(self) -> Table:
        (found,) = self.location.ask(FollowRequests((self.id,)))
        return dict(found)

    @property
    def state(self) -> str:
        """What has become of it: "open", "approved", "denied", "released", "expired" or "lapsed"."""
        return printable(str(self._ask()["state"]))

    @property
    def answer(self) -> str:
        """What the owner of the worker said about the decision; empty if it is open."""
        return printable(str(self._ask()["answer"]), lines=True)

    @property
    def reason(self) -> str:
        """The reason that was given for the request."""
        return printable(str(self._ask()["reason"]), lines=True)

    @property
    def form(self) -> str:
        """The forms of the objects that were asked for."""
        return printable(str(self._ask()["form"]))

    def wait(self, timeout: float | None = None) -> RequestHandle:
        """Wait until the owner has approved the request, and return it.

        Raises ``ReleaseDeniedError`` if it was denied, has expired or lapsed, and ``ReleasePendingError`` after
        ``timeout`` seconds.
        """
        for pause in self._poll(timeout):
            time.sleep(pause)
        return self

    def __await__(self) -> Generator[Json, None, RequestHandle]:
        return self._wait().__await__()

    async def _wait(self) -> RequestHandle:
        pauses = self._poll(None)
        with closing(pauses):
            while (pause := await asyncio.to_thread(next, pauses, None)) is not None:
                await asyncio.sleep(pause)
        return self

    def _poll(self, timeout: float | None) -> Generator[float, None, None]:
        """Yield how long to wait until it is approved, and show that the program waits."""
        end = None if timeout is None else time.monotonic() + timeout
        pause = POLL_SECONDS
        if self._is_approved():
            return
        LINE.begin(self.id, self.location.id)
        try:
            while True:
                left = MAX_POLL_SECONDS if end is None else end - time.monotonic()
                if left <= 0:
                    raise ReleasePendingError.still(self.id, self.location.id)
                yield min(pause, left)
                if self._is_approved():
                    return
                LINE.update()
                pause = min(pause * 1.5, MAX_POLL_SECONDS)
        finally:
            LINE.end(self.id)

    def _is_approved(self) -> bool:
        found = self._ask()
        require_not_denied(found["state"], found["answer"], self.id, self.location.id)
        return str(found["state"]) != "open"

    def get(self, reason: str = "") -> Tensor:
        """Fetch what was approved, once: the object, or a list if several were asked for.

        Works also after the worker was started again, when pointers from before are not valid any more.
        """
        values = self.location.ask(FetchReleased(self.id, reason))
        return values[0] if len(values) == 1 else values

    def __str__(self) -> str:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RequestHandle) and (other.location.id, other.id) == (self.location.id, self.id)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        try:
            state = self.state
        except (ReleaseError, OSError):
            state = "not known"
        return f"<RequestHandle {self.id} to {self.location.id!r}: {state}>"


def describe_line() -> str:
    """Return the line of the program that asks."""
    file, number = find_line_of_program()
    source = linecache.getline(file, number).strip()
    return f"{PurePath(file).name}:{number}: {source}" if source else ""
