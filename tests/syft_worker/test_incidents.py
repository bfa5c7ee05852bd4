"""What ended the process is refused to its user for a while; a kill from outside counts when it repeats."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from syft_core.cli import main
from syft_core.exceptions import ConfigurationError
from syft_worker.incidents import (
    MAX_INCIDENTS,
    MAX_OF_USER,
    NAME,
    Ban,
    Incident,
    Incidents,
    read_incidents,
)

DAY = 86_400.0


def make(user: str = "ana", operation: str = "train(x)", is_certain: bool = True, age: float = 0) -> Incident:
    return Incident(user, operation, "ended the process (SIGSEGV)", is_certain, time.time() - age)


def has_ban(incidents: Incidents, user: str = "ana", operation: str = "train(x)") -> bool:
    return incidents.find_ban(user, operation) is not None


# --- what follows from incidents


def test_what_ended_the_process_by_itself_is_refused_to_its_user_only() -> None:
    incidents = Incidents(DAY, None, [make()])

    ban = incidents.find_ban("ana", "train(x)")

    assert ban is not None
    assert ban.why == "it ended the process (SIGSEGV)"
    assert abs(ban.until - time.time() - DAY) < 60
    assert not has_ban(incidents, "bo")
    assert not has_ban(incidents, "ana", "train(y)")


def test_what_was_running_when_the_process_was_killed_is_refused_if_that_repeats() -> None:
    incidents = Incidents(DAY)
    incidents.add(make(is_certain=False))
    assert not has_ban(incidents)

    incidents.add(make("bo", is_certain=False), make(operation="train(y)", is_certain=False))
    assert not has_ban(incidents)

    incidents.add(make(is_certain=False))
    assert has_ban(incidents)
    assert not has_ban(incidents, "bo")
    assert not has_ban(incidents, "ana", "train(y)")


def test_kills_that_are_a_day_apart_do_not_add_up() -> None:
    incidents = Incidents(DAY, None, [make(is_certain=False, age=DAY + 1), make(is_certain=False)])

    assert not has_ban(incidents)


def test_the_reason_of_a_ban_does_not_count_kills_from_outside() -> None:
    incidents = Incidents(DAY, None, [make(is_certain=False), make(), make(is_certain=False)])

    ban = incidents.find_ban("ana", "train(x)")

    assert ban is not None
    assert ban.why == "it ended the process (SIGSEGV)"


def test_a_ban_expires() -> None:
    assert has_ban(Incidents(DAY, None, [make(age=DAY - 60)]))
    assert not has_ban(Incidents(DAY, None, [make(age=DAY + 1)]))


def test_a_command_without_a_signature_counts_against_its_user_only() -> None:
    incidents = Incidents(DAY, None, [make(operation="reading a message") for _ in range(3)])

    assert not has_ban(incidents, "ana", "reading a message")
    assert incidents.find_lockout("ana", 3) is not None


@pytest.mark.parametrize(
    ("certain", "suspicions", "crashes", "is_out"),
    [(4, 1, 5, False), (4, 2, 5, True), (5, 0, 5, True), (0, 5, 5, False), (0, 6, 5, True), (9, 9, None, False),
     (1, 0, 0, True), (0, 1, 0, False)],
)  # fmt: skip
def test_a_user_whose_commands_ended_the_process_often_cannot_connect_for_a_while(
    certain: int, suspicions: int, crashes: int | None, is_out: bool
) -> None:
    known = [make(operation=f"f({n})") for n in range(certain)]
    known += [make(operation=f"g({n})", is_certain=False) for n in range(suspicions)]
    incidents = Incidents(DAY, None, [*known, make("bo")])

    ban = incidents.find_lockout("ana", crashes)

    assert (ban is not None) is is_out
    assert ban is None or ban.operation == ""


def test_a_lockout_ends_when_enough_incidents_are_old() -> None:
    ages = (DAY - 30, DAY - 20, DAY - 10)
    incidents = Incidents(DAY, None, [make(operation=f"f({age})", age=age) for age in ages])

    ban = incidents.find_lockout("ana", 2)

    assert ban is not None
    assert abs(ban.until - time.time() - 20) < 5


# --- lifting


def test_a_lifted_ban_does_not_affect_others_and_may_come_back(tmp_path: Path) -> None:
    incidents = Incidents.open(DAY, tmp_path)
    incidents.add(make(), make("bo"), make(operation="train(y)"))
    ban = incidents.find_ban("ana", "train(x)")
    assert ban is not None

    incidents.lift(ban)

    for known in (incidents, Incidents.open(DAY, tmp_path)):
        assert [has_ban(known), has_ban(known, "bo"), has_ban(known, "ana", "train(y)")] == [False, True, True]
    incidents.add(make())
    assert has_ban(incidents)


def test_lifting_a_lockout_forgives_everything() -> None:
    incidents = Incidents(DAY, None, [make(), make(operation="f(x)"), make("bo")])
    lockout = incidents.find_lockout("ana", 2)
    assert lockout is not None

    incidents.lift(lockout)

    assert [incident.user for incident in incidents] == ["bo"]


def test_bans_are_listed_with_an_id_the_latest_first() -> None:
    incidents = Incidents(
        DAY, None, [make(age=10), make("bo"), make("bo", "f(x)", age=5), make("cy", is_certain=False)]
    )

    bans = incidents.list_bans(lambda user: 2)

    assert (bans[0].user, bans[0].operation) == ("bo", "train(x)")
    assert {(ban.user, ban.operation) for ban in bans[1:3]} == {("bo", "f(x)"), ("bo", "")}
    assert (bans[3].user, bans[3].operation) == ("ana", "train(x)")
    assert len({ban.id for ban in bans}) == len(bans) == 4


# --- the file


def test_incidents_outlive_the_process_and_are_bounded(tmp_path: Path) -> None:
    incidents = Incidents.open(DAY, tmp_path)

    incidents.add(*[make("ana", f"f({number})") for number in range(MAX_OF_USER + 10)], make("bo"))
    assert len(list(Incidents.open(DAY, tmp_path))) == MAX_OF_USER + 1
    assert has_ban(incidents, "ana", f"f({MAX_OF_USER + 9})")
    assert not has_ban(incidents, "ana", "f(9)")

    incidents.add(*[make(f"user {number}") for number in range(MAX_INCIDENTS + 10)])
    assert len(list(Incidents.open(DAY, tmp_path))) == MAX_INCIDENTS
    assert [path.suffix for path in sorted(tmp_path.iterdir())] == [".json", ".lock"]


def test_without_a_store_incidents_are_in_memory() -> None:
    incidents = Incidents.open(DAY, None)
    incidents.add(make())

    assert has_ban(Incidents(DAY, None, read_incidents(incidents.to_list())))


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"format": 2, "incidents": [{"user": "ana", "opera',
        "[]",
        "{}",
        '{"format": 2}',
        '{"format": 2, "incidents": {}}',
        '{"format": 2, "incidents": [3]}',
        '{"format": 2, "incidents": [{"user": "ana"}]}',
        '{"format": 2, "incidents": [{"user": 3, "operation": "", "what": "", "is_certain": true, "when": 0}]}',
        '{"format": 2, "incidents": [{"user": "", "operation": "", "what": "", "is_certain": true, "when": "x"}]}',
        '{"refused": {"f(x)": "it ended the process"}, "crashes": {}}',
        "\x00" * 100,
    ],
)
def test_a_damaged_file_is_set_aside_and_the_worker_starts(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / NAME).write_text(text)

    incidents = Incidents.open(DAY, tmp_path)

    assert list(incidents) == []
    assert (tmp_path / "incidents.damaged").read_text() == text
    assert "incidents.json is damaged" in caplog.text
    incidents.add(make())
    assert has_ban(Incidents.open(DAY, tmp_path))


def test_a_file_of_a_later_release_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text('{"format": 3, "incidents": []}')

    with pytest.raises(ConfigurationError, match="a later release of syft-core wrote it; install that, or remove it"):
        Incidents.open(DAY, tmp_path)

    assert (tmp_path / NAME).exists()


def test_times_in_the_future_count_as_now(tmp_path: Path) -> None:
    table = {**vars(make()), "when": time.time() + 1e9}

    (incident,) = read_incidents([table])

    assert incident.when <= time.time()


def test_a_process_notices_what_another_one_changes(tmp_path: Path) -> None:
    supervisor, serving = Incidents.open(DAY, tmp_path), Incidents(DAY, tmp_path / NAME, [make()])
    supervisor.add(make())
    serving.refresh()
    assert has_ban(serving)

    supervisor.lift(supervisor.list_bans(lambda _user: 5)[0])
    serving.refresh()
    assert not has_ban(serving)

    supervisor.add(make())
    (tmp_path / NAME).unlink()
    supervisor.refresh()
    assert not has_ban(supervisor)


def test_a_file_that_is_torn_while_the_worker_runs_changes_nothing_and_is_written_again(tmp_path: Path) -> None:
    incidents = Incidents.open(DAY, tmp_path)
    incidents.add(make())
    (tmp_path / NAME).write_text("{")

    with pytest.raises(ValueError, match="Expecting"):
        incidents.refresh()

    incidents.add(make("bo"))
    assert [has_ban(Incidents.open(DAY, tmp_path), user) for user in ("ana", "bo")] == [True, True]


def test_what_cannot_be_written_is_known_until_the_process_ends(tmp_path: Path) -> None:
    incidents = Incidents.open(DAY, tmp_path)
    (tmp_path / NAME).mkdir()

    with pytest.raises(ConfigurationError, match=r"cannot write .*incidents.json: Is a directory; check the disk"):
        incidents.add(make())

    assert has_ban(incidents)


def test_processes_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    writers = [Incidents.open(DAY, tmp_path) for _ in range(4)]

    def write(number: int) -> None:
        for turn in range(5):
            writers[number].add(make(f"user {number}", f"f({turn})"))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert len(list(Incidents.open(DAY, tmp_path))) == 20


# --- the command


def test_a_command_lists_bans_and_lifts_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "worker.toml"
    config.write_text('store = "store"\n[users.bo]\ncrashes = 1\n')
    incidents = Incidents.open(DAY, tmp_path / "store")
    incidents.add(make(operation="f(\x1b[31m)"), make("bo"), make("cy", is_certain=False))

    assert main(["worker", str(config), "--bans"]) == 0
    shown = capsys.readouterr().out
    assert main(["worker", str(config), "--bans", "--json"]) == 0
    tables: list[dict[str, Any]] = json.loads(capsys.readouterr().out)

    assert [line.split()[1] for line in shown.splitlines()[1:] if line.strip("- ")].count("bo") == 2
    assert "\x1b" not in shown
    assert "cy" not in shown
    (ana,) = [table for table in tables if table["user"] == "ana"]
    assert main(["worker", str(config), "--lift", ana["id"]]) == 0
    assert capsys.readouterr().out.startswith("user ana may run f(")
    assert [incident.user for incident in Incidents.open(DAY, tmp_path / "store")] == ["bo", "cy"]

    assert main(["worker", str(config), "--lift", ana["id"]]) == 1
    assert "there is no ban of that name; choose one of these: " in capsys.readouterr().err
    (lockout,) = [table for table in tables if not table["operation"]]
    assert main(["worker", str(config), "--lift", lockout["id"]]) == 0
    assert capsys.readouterr().out.strip() == "user bo may connect again"


def test_without_a_store_the_command_says_where_bans_are_lifted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker", "--bans"]) == 1

    error = capsys.readouterr().err
    assert "it has no `store`, so they are in its memory; lift them on its page, or start it again" in error


def test_what_is_shown_says_who_and_until_when() -> None:
    ban = replace(Ban("ana", "f(x)", "it ended the process (SIGSEGV)", 0.0), until=1_800_000_000.0)

    assert ban.end == "2027-01-15 08:00 UTC"
    assert ban.cells()[1:4] == ("ana", "f(x)", "it ended the process (SIGSEGV)")
