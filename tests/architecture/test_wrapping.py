from __future__ import annotations

from pathlib import Path

import pytest

from .wrapping import PAGES, ROOT, find_long, split_sentences, wrap


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("One. Two\nends here. Three.\n", "One.\nTwo ends here.\nThree.\n"),
        ("- One. Two.\n  Three\n- Four.\n", "- One.\n  Two.\n  Three\n- Four.\n"),
        ("1. One. Two.\n\n   ```sh\n   a. B\n   ```\n", "1. One.\n   Two.\n\n   ```sh\n   a. B\n   ```\n"),
        ("> One. Two.\n", "> One.\n> Two.\n"),
        ("```python\n>>> a. B\nC. D\n```\n", "```python\n>>> a. B\nC. D\n```\n"),
        ("# A. B\n\n| a. B | C. D |\n|---|---|\n", "# A. B\n\n| a. B | C. D |\n|---|---|\n"),
        ("Text. `code` follows. [A link. Here](x.md) too.\n", "Text.\n`code` follows.\n[A link. Here](x.md) too.\n"),
        ("A verse,  \nand. Another.\n", "A verse,  \nand. Another.\n"),
        ("One.\n\n\nTwo.\n", "One.\n\n\nTwo.\n"),
    ],
)
def test_each_sentence_is_on_a_line_and_everything_else_stays(page: str, expected: str) -> None:
    assert wrap(page) == expected
    assert wrap(expected) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "See e.g. Smith et al. (2020).",
        "J. Doe wrote it.",
        "Torch 2. 4 is old.",
        "It has `a.b. C` in it.",
        "(One. Two.)",
    ],
)
def test_a_sentence_is_not_split_after_an_abbreviation_or_inside(sentence: str) -> None:
    assert split_sentences(sentence) == [sentence]


def test_a_long_paragraph_is_found_and_a_table_is_not() -> None:
    (found,) = find_long(f"# Title\n\n{'word ' * 130}\n\nshort\n\n| {'x' * 700} |\n")

    assert found.startswith("word word")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_has_one_sentence_per_line_and_no_long_paragraph(path: Path) -> None:
    page = path.read_text(encoding="utf-8")

    assert page == wrap(page), "run `python -m tests.architecture.wrapping --write`"
    assert find_long(page) == []
