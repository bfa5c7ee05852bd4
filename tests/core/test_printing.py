"""Text from another party, without anything that a terminal or a browser would obey."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syft_core.exceptions import SyftError
from syft_core.pictures.tables import html_table, text_table
from syft_core.printing import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ages of patients, in years: ∑ äöü 年齢", "ages of patients, in years: ∑ äöü 年齢"),
        ("\x1b[2J\x07\b\r", r"\x1b[2J\x07\x08\r"),
        ("a\u202eb\u2066c\u200bd\ufeff", r"a\u202eb\u2066c\u200bd\ufeff"),
        ("one\ntwo\tthree", r"one\ntwo\tthree"),
        ("\x9b2J", r"\x9b2J"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_a_terminal_would_obey_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_line_ends_are_kept_where_a_text_may_have_several_lines() -> None:
    assert printable("one\n\ttwo\r\x1b", lines=True) == "one\n\ttwo" + r"\r\x1b"


@given(st.text())
def test_it_may_be_applied_twice(text: str) -> None:
    assert printable(printable(text)) == printable(text)
    assert printable(text).isprintable()


def test_tables_and_errors_apply_it() -> None:
    hostile = "\x1b[2J\u202e"

    for text in (text_table((hostile,), [(hostile,)]), html_table(hostile, (hostile,), [(hostile,)])):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert str(SyftError(f"one\n{hostile}")) == "one\n" + r"\x1b[2J\u202e"
