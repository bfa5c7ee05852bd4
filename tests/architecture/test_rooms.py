from __future__ import annotations

from .rooms import MARKS, PACKAGES, PAGE, READ_FIRST, ROOT, describe, list_rooms, write_table


def test_the_table_of_rooms_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert all(mark in page for mark in MARKS)
    assert page == write_table(page), "run `python -m tests.architecture.rooms`"


def test_every_room_says_what_it_is_for() -> None:
    rooms = [path.parent for package in PACKAGES for path in list_rooms(package)]

    assert {str(room.relative_to(ROOT)) for room in rooms} == set(READ_FIRST)
    assert [room for room in rooms if not 10 < len(describe(room / "__init__.py")) < 160] == []
