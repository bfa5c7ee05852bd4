"""History: what the ledger file says about release requests and rules of earlier processes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from syft_core.ledgers.entry import Entry

MAX_COUNTED = 10_000
"""How many users, forms and sources are counted: peers choose the forms."""
MAX_CLOSED = 1000
"""How many requests are remembered that were denied, fetched or lapsed; the file has all of them."""


_MAKER = re.compile(r" of \w+\(.*?\)(?: among \d+ parties)?(?=, [A-Za-z_]\w*[\[>]|$)")


def omit_makers(forms: str) -> str:
    """Return forms without what has computed the objects.

    >>> omit_makers("Tensor[3] of train(program=0123ab…, samples=9), Tensor[]")
    'Tensor[3], Tensor[]'
    """
    return _MAKER.sub("", forms)


def name_sources(names: Iterable[str]) -> str:
    """Return the tags of sources in one text, each once."""
    return ", ".join(sorted(set(filter(None, names))))


@dataclass
class RecordedRequest:
    """A request: the entry that recorded it, and what happened to it since."""

    asked: Entry
    state: Literal["open", "approved", "granted", "denied", "released", "expired"] = "open"
    decided: Entry | None = None
    released_at: float | None = None


class Released(NamedTuple):
    """What is counted together: to whom, in which forms, and computed from what."""

    user: str
    forms: str
    sources: str


class ReleaseCounts:
    """How often each user got objects of the same forms that were computed from the same data."""

    def __init__(self) -> None:
        self._counts: Counter[Released] = Counter()

    def add(self, released: Released) -> None:
        """Count a release."""
        self._counts[released] += 1
        if len(self._counts) > MAX_COUNTED:
            del self._counts[next(iter(self._counts))]

    def count(self, released: Released) -> int:
        """Return how often it was released."""
        return self._counts[released]


@dataclass
class ReleaseHistory:
    """The requests and rules in a ledger, by id and name."""

    requests: dict[str, RecordedRequest] = field(default_factory=dict)
    approvals: dict[str, Entry] = field(default_factory=dict)
    """The entry that recorded each rule that was not revoked."""
    revoked: set[str] = field(default_factory=set)
    """The digests of those that were."""
    uses: dict[str, dict[str, float]] = field(default_factory=dict)
    """When each of them was used, by the id of the use."""
    released: ReleaseCounts = field(default_factory=ReleaseCounts)
    """How often each user got what."""
    _closed: dict[str, None] = field(default_factory=dict)
    _last: Entry | None = None
    """The last release, with the forms of all objects that left with it so far."""

    def note(self, entry: Entry) -> None:
        """Take note of the next entry."""
        if entry.event == "released":
            self._note_release(entry)
        if entry.rule and entry.sum is None:
            self._note_approval(entry)
        if entry.request is not None:
            self._note_request(entry, entry.request)

    def count_releases(self) -> ReleaseCounts:
        """Return how often each user got what, when all entries were noted."""
        if (last := self._last) is not None:
            self.released.add(Released(last.user, last.form, name_sources(last.names)))
            self._last = None
        return self.released

    def _note_release(self, entry: Entry) -> None:
        """Note an object that was released; those of one release have entries after one another."""
        entry = entry._replace(form=omit_makers(entry.form))
        last = self._last
        if last is not None and last.request == entry.request:
            self._last = last._replace(form=f"{last.form}, {entry.form}", names=(*last.names, *entry.names))
            return
        self.count_releases()
        self._last = entry

    def _note_request(self, entry: Entry, id: str) -> None:
        if entry.event == "requested":
            self.requests.setdefault(id, RecordedRequest(entry))
            return
        recorded = self.requests.get(id)
        if recorded is None:
            return
        if entry.event == "approved":
            recorded.state, recorded.decided = ("approved" if entry.terms is None else "granted"), entry
        elif entry.event == "denied":
            recorded.state, recorded.decided = "denied", entry
        elif entry.event == "expired":
            recorded.state = "expired"
        elif entry.event == "withdrawn":
            recorded.state, recorded.decided = "open", None
        elif entry.event in ("released", "resent"):
            recorded.state, recorded.released_at = "released", entry.when
        if recorded.state in ("denied", "granted", "released", "expired"):
            self._closed[id] = None
            if len(self._closed) > MAX_CLOSED:
                oldest = next(iter(self._closed))
                del self._closed[oldest], self.requests[oldest]

    def _note_approval(self, entry: Entry) -> None:
        if entry.event == "standing":
            self.approvals[entry.rule] = entry
            self.revoked.discard(entry.digest)
        elif entry.event == "revoked":
            self.approvals.pop(entry.rule, None)
            self.revoked.add(entry.digest)
        elif entry.request is not None and entry.terms is None:
            self.uses.setdefault(entry.rule, {}).setdefault(entry.request, entry.when)
