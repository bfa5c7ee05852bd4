"""The scene: hospitals with data of their own, what a visitor may do with it, and what left them in the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from syft_core.demo.screen import Screen
from syft_core.exceptions import SyftError
from syft_core.hook.hook import FrameworkHook
from syft_core.workers.permissions import unless_private
from syft_core.workers.store import Stored
from syft_core.workers.virtual import VirtualWorker

Attempt = tuple[str, Callable[[], object]]
"""A line of code as the reader sees it, and what runs."""


def keep_raw_data(stored: Stored, user: str) -> str | None:
    """Let results leave, but neither what the hospital itself published nor what is private: a policy of the demo."""
    if stored.published:
        return "it is raw data, which the policy of this worker keeps in the house"
    return unless_private(stored, user)


def create_hospital(hook: FrameworkHook, name: str, data: Sequence[object], serialize: bool) -> VirtualWorker:
    """Return a worker that has loaded data of its own; the visitor sends none."""
    hospital = VirtualWorker(hook, id=name, policy=keep_raw_data, serialize=serialize)
    hospital.load_data(data)
    return hospital


def show_hospitals(screen: Screen, hospitals: Sequence[VirtualWorker]) -> None:
    """Search both hospitals, and show the names and forms of what is there."""
    screen.title("1. Two hospitals, each with patients of its own")
    screen.text(
        "Two workers, here in this process; between organisations they would be servers. Each has loaded its own data. "
        "You are a data scientist: you search, and what you get are pointers, with names and shapes but no values."
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
        screen.page.add(
            f"What {hospital.id} holds", "Names, forms and who keeps what alive; never a value.", hospital._repr_html_()
        )


def show_refusals(screen: Screen, attempts: Sequence[Attempt]) -> None:
    """Try to look at the data, and show the answers."""
    screen.title("2. Try to look")
    screen.text("You may compute with pointers as with any tensor. Looking is another matter:")
    for source, attempt in attempts:
        screen.refusal(source, get_refusal(attempt))


def show_departures(screen: Screen, hospitals: Sequence[VirtualWorker]) -> None:
    """Show what left each hospital, by its own ledger, and how much was said."""
    screen.title("5. What left each hospital")
    screen.text(
        "Every object that leaves a worker is one line of its ledger: who took it, its form and what it was computed "
        "from. Here alike lines are counted; `print(worker.ledger)` shows each."
    )
    for hospital in hospitals:
        screen.text(f"{hospital.id}:")
        screen.table(hospital.ledger.SUMMARY, hospital.ledger.kinds())
        screen.page.add(
            f"What left {hospital.id}",
            "By its own ledger, with what it was computed from.",
            hospital.ledger._repr_html_(),
        )
    raw = sum(1 for hospital in hospitals for line in hospital.ledger if line.sources == (line.id,))
    screen.text(f"Raw data among them: {raw} of {sum(len(hospital.ledger) for hospital in hospitals)} departures.")
    screen.table(
        ("worker", "messages", "operations", "bytes in", "bytes out"),
        [(str(hospital.id), *_numbers(hospital.stats)) for hospital in hospitals],
    )
    screen.text(
        "Honest words: this policy keeps raw data in the house and lets results leave. `(x * 1).get()` would pass "
        "it, and stand in the ledger; what is private never passes. A model can remember some of those it learnt from. "
        "docs/security.md says what is protected and what is not."
    )


def get_refusal(attempt: Callable[[], object]) -> str:
    """Return why something is refused."""
    try:
        attempt()
    except SyftError as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("the demo shows a refusal that did not happen")


def _numbers(stats: Any) -> list[str]:
    return [f"{number:,}" for number in (stats.messages, stats.operations, stats.bytes_in, stats.bytes_out)]
