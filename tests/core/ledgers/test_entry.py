from __future__ import annotations

from syft_core.ledgers.entry import Entry
from syft_core.workers.seeing.ledger import Ledger


def ledger_of(*lines: Entry) -> Ledger:
    ledger = Ledger("north")
    for line in lines:
        ledger.record(line)
    return ledger


def weight(id: int, when: float = 0.0) -> Entry:
    return Entry(when, "me", id, "Tensor[3]", (1, 2, 77), "me", "training", ("#patients", "#ill #labels", ""))


def test_an_empty_ledger_has_a_note() -> None:
    ledger = ledger_of()

    assert str(ledger) == ledger.summary() == "nothing has left 'north'"
    assert ledger._repr_html_() == "<div>nothing has left &#x27;north&#x27;</div>"


def test_sources_are_named_by_tags_or_else_by_ids() -> None:
    assert "#patients, #ill #labels, 77" in str(ledger_of(weight(5)))


def test_similar_departures_are_one_line_of_the_summary() -> None:
    loss = Entry(0.0, "me", 9, "Tensor[]", (1, 2), "me")

    ledger = ledger_of(weight(5), loss, weight(6, when=60.0))

    assert ledger.kinds() == [
        ("2", "me", "Tensor[3]", "#ill #labels, #patients and others", "me", "training"),
        ("1", "me", "Tensor[]", "2 untagged", "me", ""),
    ]
    assert ledger.summary().splitlines()[0].split() == ["times", "who", "form", "computed", "from", "to", "reason"]
    assert len(str(ledger).splitlines()) == 4


def test_a_notebook_shows_the_summary_and_on_demand_every_line() -> None:
    page = ledger_of(weight(5), weight(6))._repr_html_()

    assert "what left north" in page
    assert page.index("times") < page.index("<details>") < page.index("when")


def test_text_from_peers_cannot_fake_a_line_or_a_column() -> None:
    fake = "me\n1970-01-01 00:00:00  boss  1  Tensor[]  #public  boss\r\x1b[2K\u2028\u202e\x85\ud800"
    hostile = Entry(0.0, fake, fake, fake, (fake, "3"), fake, fake, ("#a\n#b", ""))

    ledger = ledger_of(hostile)

    for text in (str(ledger), ledger.summary()):
        assert len(text.splitlines()) == 2
        assert text.replace("\n", "").isprintable()
        assert "00:00:00  boss" not in text
    page = ledger._repr_html_()
    assert page.isprintable()
    assert page.count("<tr>") == 4


def test_text_from_peers_is_escaped_in_html() -> None:
    fake = "</td></tr><tr><td>boss<script>"

    page = ledger_of(Entry(0.0, fake, fake, fake, (fake,), fake, fake, (fake,)))._repr_html_()

    assert "<script>" not in page
    assert page.count("<tr>") == 4


def test_a_comma_in_a_tag_is_not_another_source() -> None:
    cells = Entry(0.0, "me", 5, "Tensor[3]", (1, "2, 3"), "me", "", ("#a, #patients", "")).cells()

    assert cells[4] == r"#a\x2c #patients, 2\x2c 3"


def test_a_line_of_a_file_gives_the_entry_again() -> None:
    entry = Entry(1.5, "me", 5, "Tensor[3]", (1, "x"), "me", "why", ("#a", ""), "laptop", "released", "r1", "noor")

    again = Entry.from_line(entry.to_line())

    assert again == entry._replace(id="5", sources=("1", "x"))
    assert "digest" not in entry.to_line()
