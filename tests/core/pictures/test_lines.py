from __future__ import annotations

import re
from itertools import pairwise
from math import nan

import pytest

from syft_core.pictures.lines import COLOURS, MUTED, draw_lines


def test_a_line_for_each_name_and_its_name_at_its_end() -> None:
    picture = draw_lines({"a < b": [(1, 0.5), (2, 0.75)], "other": [(1, 0.1), (2, 0.9)]}, 400, 200)

    assert picture.startswith("<svg")
    assert picture.count("<polyline") == 2
    assert [colour for colour in COLOURS if f'fill="{colour}">' in picture] == list(COLOURS[:2])
    assert "a &lt; b</text>" in picture
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)", picture)


def test_values_that_are_not_finite_are_left_out() -> None:
    picture = draw_lines({"loss": [(1, nan), (2, 3.0), (3, 4.0)], "none": [(1, nan)]})

    assert picture.count("<polyline") == 1
    assert len(re.findall(r'points="(.*?)"', picture)[0].split()) == 2
    assert "nan" not in picture


@pytest.mark.parametrize("lines", [{}, {"empty": []}, {"one": [(1, 2.0)]}, {"flat": [(1, 5.0), (2, 5.0)]}])
def test_lines_with_few_values_are_drawn(lines: dict[str, list[tuple[int, float]]]) -> None:
    picture = draw_lines(lines)

    numbers = [float(number) for number in re.findall(r'(?:x|y|cx|cy)="(-?[\d.]+)"', picture)]
    assert all(0 <= number <= 640 for number in numbers)


def test_percentages_and_lines_for_comparison() -> None:
    picture = draw_lines(
        {"ours": [(0, 0.5), (10, 0.92)], "theirs": [(0, 0.5), (10, 0.7)]}, percent=True, muted=["theirs"]
    )

    assert ">90%</text>" in picture
    first, second = re.findall(r'<polyline .*?stroke="(.*?)"', picture)
    assert (first, second) == (MUTED, COLOURS[0])


def test_names_of_lines_that_end_close_to_each_other_do_not_overlap() -> None:
    lines = {f"line {number}": [(1, 0.0), (2, 0.001 * number)] for number in range(6)} | {"top": [(1, 0.0), (2, 1.0)]}

    picture = draw_lines(lines, 400, 200)

    places = sorted(float(y) for y in re.findall(r'y="([\d.]+)" fill="#', picture))
    assert len(places) == 7
    assert all(after - before >= 13.9 for before, after in pairwise(places))
    assert places[-1] < 180
