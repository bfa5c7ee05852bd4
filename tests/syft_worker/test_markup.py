from __future__ import annotations

import pytest

from syft_worker.markup import MAX_CELL, Html, element, join, shorten, table

EVIL = "<script>alert('1')</script>"


def test_text_is_escaped_wherever_it_is() -> None:
    for page in (
        element("p", EVIL),
        element("p", title=EVIL),
        join([EVIL]),
        table(["name"], [[EVIL]], "nothing"),
        table([EVIL], [["x"]], "nothing"),
        table(["name"], [], EVIL),
    ):
        assert "<script" not in page
        assert "&lt;script" in page
        assert type(page) is Html


def test_html_is_not_escaped_twice() -> None:
    assert element("p", element("b", "1 < 2")) == "<p><b>1 &lt; 2</b></p>"
    assert join([element("b", "x"), " & "]) == "<b>x</b> &amp; "


def test_attributes_have_the_names_of_html() -> None:
    assert element("td", class_="a", data_label='"') == '<td class="a" data-label="&quot;"></td>'


@pytest.mark.parametrize("name", ["input", "meta"])
def test_an_element_without_content_has_no_end(name: str) -> None:
    assert element(name, name="x") == f'<{name} name="x">'


def test_a_long_text_is_cut_and_html_is_not() -> None:
    long = "x" * (MAX_CELL + 1)

    assert shorten(long) == "x" * MAX_CELL + "…"
    assert shorten(long[1:]) == long[1:]
    assert shorten(Html(long)) == long


def test_a_table_without_rows_says_so() -> None:
    assert table(["name"], [], "no requests") == '<p class="nothing">no requests</p>'


def test_cells_know_their_column() -> None:
    page = table(["name", ""], [["x", "y"]], "nothing")

    assert '<td data-label="name">x</td>' in page
    assert '<th scope="col"><span class="hidden">action</span></th>' in page


def test_a_row_has_as_many_cells_as_the_header() -> None:
    with pytest.raises(ValueError, match="zip"):
        table(["name"], [["x", "y"]], "nothing")
