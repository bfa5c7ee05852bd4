from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest

from syft_worker.activity import SIZE, Activity, Executing


@pytest.fixture
def file() -> Iterator[int]:
    with tempfile.TemporaryFile() as made:
        made.truncate(SIZE)
        yield made.fileno()


def test_nothing_is_executed_at_first(file: int) -> None:
    assert Activity(file).read() is None


def test_another_process_reads_what_is_executed_after_this_one_has_died(file: int) -> None:
    child = os.fork()
    if not child:
        Activity(file).begin(b"laptop\nana", 7, b"torch.linalg.inv(float32[2, 2])")
        os._exit(9)  # as a crash ends it
    os.waitpid(child, 0)

    assert Activity(file).read() == Executing(1, "laptop", "ana", 7, "torch.linalg.inv(float32[2, 2])")


def test_each_command_has_a_count_of_its_own_until_it_ends(file: int) -> None:
    activity = Activity(file)

    activity.begin(b"laptop\nana", 1, b"a long operation")
    activity.begin(b"phone\neve", 2, b"add")
    assert activity.read() == Executing(2, "phone", "eve", 2, "add")

    activity.end()
    assert activity.read() is None
    activity.begin(b"phone\neve", 3, b"add")
    found = activity.read()
    assert found is not None
    assert found.count == 3


def test_long_names_fit_into_the_record(file: int) -> None:
    activity = Activity(file)

    activity.begin(b"x" * 5000 + b"\nana", 1, b"y" * 9000)

    found = activity.read()
    assert found is not None
    assert set(found.peer) == {"x"}
    assert set(found.operation) == {"y"}
    assert len(found.peer) + len(found.operation) < SIZE


def test_names_that_are_cut_in_the_middle_of_a_character_can_be_read(file: int) -> None:
    activity = Activity(file)

    activity.begin("é".encode() * 400, 1, "é".encode() * 2000)

    found = activity.read()
    assert found is not None
    assert found.peer.startswith("éé")


def test_a_record_that_was_being_written_does_not_end_the_reader(file: int) -> None:
    os.pwrite(file, bytes([255]) * SIZE, 0)

    assert Activity(file).read() is not None


def test_commands_that_others_do_not_wait_for_have_places_of_their_own(file: int) -> None:
    activity = Activity(file)
    activity.begin(b"laptop\nana", 1, b"add")
    first, second = (activity.begin_apart(b"phone\neve", number, b"RunProtocol") for number in (2, 3))

    assert sorted((found.user, found.batch) for found in activity.read_apart()) == [("eve", 2), ("eve", 3)]
    activity.end_apart(first)
    assert [found.batch for found in activity.read_apart()] == [3]
    found = activity.read()
    assert found is not None
    assert found.user == "ana"
    activity.clear()
    assert (activity.read(), activity.read_apart(), second > 0) == (None, [], True)


def test_there_are_places_for_the_first_commands_only(file: int) -> None:
    activity = Activity(file)

    places = [activity.begin_apart(b"phone\neve", number, b"RunProtocol") for number in range(40)]
    for place in places:
        activity.end_apart(place)

    assert len({place for place in places if place}) == len([place for place in places if place]) > 10
    assert activity.read_apart() == []
    assert activity.begin_apart(b"phone\neve", 1, b"RunProtocol")
