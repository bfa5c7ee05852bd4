from __future__ import annotations

import re
from itertools import pairwise

import pytest

from syft_core.pictures.sequence import Arrow, Repeated, fold, sequence_svg


@pytest.mark.parametrize(
    ("items", "folded"),
    [
        ("", []),
        ("abc", [("abc", 1)]),
        ("aaaa", [("a", 4)]),
        ("xababab!", [("x", 1), ("ab", 3), ("!", 1)]),
        ("aabaab", [("aab", 2)]),
    ],
)
def test_repetitions_are_folded(items: str, folded: list[tuple[str, int]]) -> None:
    assert [("".join(block), times) for block, times in fold(items, str)] == folded


def test_folding_keeps_every_item() -> None:
    items = [number * number % 7 for number in range(300)]

    assert [item for block, times in fold(items, lambda item: item) for item in block * times] == items


def test_a_diagram_has_a_lifeline_for_each_actor_and_an_arrow_for_each_message() -> None:
    there, back = (
        Arrow("me", "bob", "data", "send #1"),
        Arrow("bob", "me", "departure", "get #1", "Vector[2]", "all of it"),
    )

    drawn = sequence_svg(["me", "bob"], [Repeated((there, back)), Repeated((there,), times=3)], "a note")

    assert drawn.count('class="life"') == 2
    assert drawn.count("<g>") == 3
    assert drawn.count('class="actor"') == 2
    assert "3 ×" in drawn  # noqa: RUF001  # times
    assert "<title>all of it</title>" in drawn
    assert "data leaves a worker" in drawn


def boxes_of_names(drawn: str) -> list[tuple[float, float]]:
    """Return the start and the end of the boxes of the names."""
    boxes = re.findall(r'class="head" x="([\d.]+)" y="18" width="([\d.]+)"', drawn)
    return [(float(x), float(x) + float(width)) for x, width in boxes]


def test_long_names_are_truncated_and_do_not_overlap() -> None:
    name = "the-hospital-with-a-name-that-goes-on-and-on"

    drawn = sequence_svg([name, "bob", name[::-1]], [Repeated((Arrow("bob", "bob", "compute", "x" * 90),))])

    boxes = boxes_of_names(drawn)
    assert boxes[0][0] > 0
    assert all(left[1] < right[0] for left, right in pairwise(boxes))
    assert f"<title>{name}</title>" in drawn
    assert f">{name[:25]}…<" in drawn
    width = float(re.findall(r'viewBox="0 0 ([\d.]+)', drawn)[0])
    assert boxes[-1][1] < width


def test_a_note_fits_into_the_picture() -> None:
    note = "102 messages, 1 departure; 42 later messages not shown"

    drawn = sequence_svg(["me"], [], note)

    assert float(re.findall(r'viewBox="0 0 ([\d.]+)', drawn)[0]) > 6 * len(note)


def test_a_repeated_message_is_one_arrow_with_a_count() -> None:
    drawn = sequence_svg(["me", "bob"], [Repeated((Arrow("me", "bob", "talk", "ask", times=3),))])

    assert ">ask (3 ×)<" in drawn  # noqa: RUF001  # times


def test_a_failure_has_the_colour_of_failures() -> None:
    drawn = sequence_svg(["me", "bob"], [Repeated((Arrow("me", "bob", "failure", "get #1", "refused"),))])

    assert 'class="label failed"' in drawn
    assert 'class="detail failed"' in drawn


def test_a_diagram_loads_nothing() -> None:
    drawn = sequence_svg(["me"], [Repeated((Arrow("me", "me", "talk", "think"),))])

    assert not re.search(r"href|url\(|<script|@import", drawn)
    assert re.findall(r"https?://[^\"]*", drawn) == ["http://www.w3.org/2000/svg"]
