from __future__ import annotations

from typing import Any

import pytest
import toy
from syft_toy.hook import ToyHook
from toy_layers import Watcher

from syft_core.pictures.boxes import chain_html
from syft_core.pictures.sequence import Arrow, Repeated, sequence_svg
from syft_core.pictures.tables import html_table, text_table
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.seeing.ledger import Entry, Ledger


class SilentWorker(BaseWorker):
    """Fails when it receives a message."""

    def handle(self, message: Any, sender: Any) -> Any:
        raise AssertionError(f"a picture sent a message: {message}")


@pytest.mark.parametrize("words", ["<script>alert(1)</script>", '"><img src=x>', "a & b"])
def test_text_from_peers_is_escaped(hook: ToyHook, words: str) -> None:
    worker = SilentWorker(hook, id=words)
    worker.register_obj(Watcher().on(toy.Vector([1.0])), words)
    worker.object_store.tag(words, [words], words)
    x = Watcher().on(toy.Vector([1.0])).tag(words).describe(words)
    ledger = Ledger(words)
    ledger.record(Entry(0.0, words, words, words, (words,), words, words))
    arrow = Arrow(words, words, "data", words, words, words)

    pages = [
        worker._repr_html_(),
        chain_html(x),
        ledger._repr_html_(),
        sequence_svg([words], [Repeated((arrow,))], words),
    ]

    for page in pages:
        assert page is not None
        assert words not in page


def test_a_long_table_is_truncated_with_a_note() -> None:
    page = html_table("many", ("number",), [(str(number),) for number in range(12)], limit=10)

    assert page.count("<tr>") == 11
    assert "and 2 more" in page


def test_a_text_table_is_as_wide_as_its_cells() -> None:
    assert text_table(("a", "b"), [("long", "x"), ("y", "z")]) == "a     b\nlong  x\ny     z"
