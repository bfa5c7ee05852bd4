"""What left each hospital, on the terminal and on the page; the other sections of the page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from typing import NamedTuple

from syft_core.demo.page import DemoPage
from syft_core.demo.screen import Screen
from syft_core.ledgers.entry import Entry
from syft_core.pictures.lines import draw_lines
from syft_core.pictures.tables import html_table, one_line
from syft_core.workers.seeing.trace import Trace
from syft_torch.demo.hospitals import Hospital
from syft_torch.demo.patients import PATIENTS, TESTED

WHO = (
    "From the ledgers of the hospitals; the lines of all rounds are counted. The data scientist has the sums, and no "
    "hospital has seen a result of another one."
)
ROUND = (
    "The last round of training, message by message. What leaves is masked by numbers that are random on their own, "
    "and add up to nothing as soon as all three hospitals have taken part."
)
HEADER = ("times", "what left", "computed from", "who got it", "why")


class WhatLeft(NamedTuple):
    """What has left a hospital."""

    hospital: str
    clinic: str
    entries: Sequence[Entry]

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The rows of a table, one for each kind of departure."""
        counted = Counter(map(_describe, self.entries))
        return [(str(times), *kind) for kind, times in counted.items()]

    @property
    def outside(self) -> int:
        """How many departures were computed from patients, and were not in a sum of several workers."""
        return sum(1 for entry in self.entries if any(entry.names) and entry.sum is None)

    @property
    def records(self) -> int:
        """How many departures were objects of the hospital itself, and not computed from them."""
        return sum(1 for entry in self.entries if entry.sources == (entry.id,))


def _describe(entry: Entry) -> tuple[str, str, str, str]:
    """Return the cells of a departure, which are the same in each round."""
    sources = ", ".join(sorted(set(filter(None, entry.names)))) or "nothing of this hospital"
    if entry.sum is None:
        return one_line(entry.form), sources, one_line(entry.user), one_line(entry.reason)
    # The headline has the largest epsilon, which grows with each round.
    noise = (
        "" if entry.sum["noise"] == "none" else f", with noise: {re.sub(', epsilon=[^),]*', '', entry.sum['noise'])}"
    )
    what = f"{entry.form.partition(' of ')[0]}, only in the sum of {len(entry.sum['list'])} workers{noise}"
    return what, one_line(sources), one_line(entry.user), f"rule {one_line(entry.rule)}"


def show_departures(screen: Screen, hospitals: Sequence[Hospital], number: int) -> list[WhatLeft]:
    """Show what left each hospital, from its ledger; return it."""
    screen.title(f"{number}. What left each hospital")
    screen.text(
        "Everything that leaves is a line in the ledger of the hospital, on its disk, before it leaves. The lines of "
        "all rounds are counted here:"
    )
    found = [WhatLeft(hospital.name, hospital.clinic, hospital.read_departures()) for hospital in hospitals]
    for departures in found:
        screen.text(f"{departures.hospital}, the {departures.clinic}:")
        screen.table(HEADER, departures.rows)
    screen.text(
        f"Rows of patients that left a hospital: {sum(each.records for each in found)}. Results that were computed "
        f"from patients and left outside a sum: {sum(each.outside for each in found)}."
    )
    return found


def write_page(
    page: DemoPage,
    curves: Mapping[str, Sequence[float]],
    hospitals: Sequence[str],
    departures: Sequence[WhatLeft],
    rule: str,
    seen: Trace,
    spent: str = "",
) -> None:
    """Fill the page: accuracy by round, who got what, the rule, and one round as a diagram."""
    alone = {name: curves[f"{name} alone"] for name in hospitals}
    best = max(alone, key=lambda name: alone[name][-1])
    page.title = "Three hospitals trained one model, and no patient record left any of them"
    page.lead = (
        f"{len(alone)} hospitals with {PATIENTS} made-up patients each. The model went to the patients; this page was "
        f"drawn from what left, and from the ledger of each hospital."
    )
    noise = f", with {spent} (the largest of the three)" if spent else ""
    page.add_figure(f"{curves['together'][-1]:.1%}", f"right diagnoses, trained together{noise}")
    page.add_figure(f"{alone[best][-1]:.1%}", f"the best of the three alone ({best})")
    page.add_figure(f"{curves['pooled'][-1]:.1%}", "with all patients in one place")
    page.add_figure(str(sum(found.records for found in departures)), "rows that left", is_good=True)
    lines = {name: list(enumerate(curve)) for name, curve in curves.items()}
    muted = [f"{name} alone" for name in alone]
    page.add_chart(
        "Accuracy by round",
        f"Right diagnoses of {TESTED:,} patients that none of the hospitals has. Only a demo can draw the other lines: "
        f"the same training by one hospital alone, and with all patients in one place.",
        partial(draw_lines, lines, percent=True, muted=muted),
    )
    tables = "".join(html_table(f"{found.hospital}, the {found.clinic}", HEADER, found.rows) for found in departures)
    page.add("Who got what", WHO, tables)
    page.add(
        "What each owner has agreed to",
        "The part of the configuration that decides what leaves: whose keys the owner counts, and which program may be "
        "summed. Each worker checks it by itself. There was no further click. With three members, all three must take "
        "part in each round. If one of them works together with the data scientist, a sum hides a result among two.",
        f"<pre>{escape(rule)}</pre>",
    )
    page.add("One round", ROUND, seen.svg())
    page.footer = (
        "The patients are made up. What is protected, and what is not, is in docs/security.md: a model reveals "
        "something about the patients it was trained on."
    )
