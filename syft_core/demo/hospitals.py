"""The hospitals of the demo: their data, refused requests and what left them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from syft_core.demo.screen import Screen
from syft_core.exceptions import SyftError
from syft_core.hook.hook import FrameworkHook
from syft_core.peer import Peer
from syft_core.workers.party.store import Stored
from syft_core.workers.party.virtual import VirtualWorker

Attempt = tuple[str, Callable[[], object]]
"""A line of code to show, and the function that runs it."""


def keep_raw_data(verb: str, stored: Stored, peer: Peer, value: object) -> str | None:
    """Let results leave, but no published or private data: the policy of the demo."""
    if verb in ("read", "move") and stored.published:
        return "it is raw data, which the policy of this worker does not release"
    return None


def create_hospital(hook: FrameworkHook, name: str, data: Sequence[object], serialize: bool) -> VirtualWorker:
    """Return a worker that has loaded its own data."""
    hospital = VirtualWorker(hook, id=name, policy=keep_raw_data, serialize=serialize)
    hospital.load_data(data)
    return hospital


def show_hospitals(screen: Screen, hospitals: Sequence[VirtualWorker]) -> None:
    """Search both hospitals, and show the names and forms of their data."""
    screen.title("1. Two hospitals, each with its own patients")
    screen.text(
        "Each hospital is a worker that has loaded its own data. Here both run in this process; in production they "
        "would be servers. You are a data scientist: you search for data and get pointers, with names and shapes but "
        "no values."
    )
    rows = []
    for hospital in hospitals:
        for found in hospital.search():
            tag = " ".join(sorted(found.tags))
            rows.append((str(hospital.id), tag, str(tuple(found.shape)), str(found.description)))
    screen.table(("worker", "tag", "shape", "description"), rows)
    example = hospitals[0].search(rows[0][1])[0]
    screen.code(f"{hospitals[0].id}.search({rows[0][1]!r})[0]", str(example).split("\n")[0])
    for hospital in hospitals:
        screen.page.add(f"What {hospital.id} holds", "Names, forms and leases; never a value.", hospital._repr_html_())


def show_refusals(screen: Screen, attempts: Sequence[Attempt]) -> None:
    """Try to read the data, and show the errors."""
    screen.title("2. Try to read the data")
    screen.text("You can compute with pointers as with any tensor, but reading values is refused:")
    for source, attempt in attempts:
        screen.refusal(source, get_refusal(attempt))


def show_departures(screen: Screen, hospitals: Sequence[VirtualWorker], number: int = 5) -> None:
    """Show what left each hospital, from its ledger, and the number of messages and bytes."""
    screen.title(f"{number}. What left each hospital")
    screen.text(
        "Every object that leaves a worker is recorded in its ledger: who received it, its form and what it was "
        "computed from. Similar entries are counted here; `print(worker.ledger)` shows them all."
    )
    caption = "From its ledger, with what each object was computed from."
    for hospital in hospitals:
        screen.text(f"{hospital.id}:")
        screen.table(hospital.ledger.SUMMARY, hospital.ledger.kinds())
        screen.page.add(f"What left {hospital.id}", caption, hospital.ledger._repr_html_())
    raw = sum(1 for hospital in hospitals for line in hospital.ledger if line.sources == (line.id,))
    screen.text(f"Raw data: {raw} of {sum(len(hospital.ledger) for hospital in hospitals)} departures.")
    screen.table(
        ("worker", "messages", "operations", "bytes in", "bytes out"),
        [
            (str(hospital.id), *[f"{n:,}" for n in (stats.messages, stats.operations, stats.bytes_in, stats.bytes_out)])
            for hospital in hospitals
            if (stats := hospital.stats)
        ],
    )
    screen.text(
        "Note the limits: this policy refuses raw data and private data but releases results. `(x * 1).get()` would be "
        "released, and recorded in the ledger. A model can memorize some of its training data. docs/security.md "
        "describes what is protected and what is not."
    )


def get_refusal(attempt: Callable[[], object]) -> str:
    """Return the error that ``attempt`` raises."""
    try:
        attempt()
    except SyftError as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("the demo expected a refusal, but the call succeeded")
