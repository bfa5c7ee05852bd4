"""Token files: secrets shown once and kept as hashes, with expiry and revocation."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from syft_core import cli
from syft_core.exceptions import ConfigurationError
from syft_core.network.identity import Identity
from syft_worker.tokens import TokenFile, parse_lifetime


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


def add(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert cli.main(["token", "add", str(path), *options]) == 0
    return capsys.readouterr().out.split()[-1]


def test_a_token_authenticates_its_user_and_the_file_has_no_secret(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = add(path, capsys, "--user", "ana", "--expires", "30d")
    root = add(path, capsys, "--user", "root", "--admin")

    tokens = TokenFile(path)

    assert tokens.authenticate(secret) == Identity("ana", admin=False, name="ana-1")
    assert tokens.authenticate(root) == Identity("root", admin=True, name="root-1")
    assert len(secret) >= 43
    assert secret not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("wrong", ["", "syft-", "ana-1", "é", "\ud800", "x" * 100_000])
def test_an_unknown_secret_is_refused(
    path: Path, wrong: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    secret = add(path, capsys, "--user", "ana")
    tokens = TokenFile(path)

    assert tokens.authenticate(wrong) is None
    assert tokens.authenticate(secret[:-1]) is None
    assert tokens.authenticate(json.loads(path.read_text())["tokens"][0]["hash"]) is None
    assert "refused a token: it is not in" in caplog.text
    assert secret[:-1] not in caplog.text


def test_a_revoked_token_is_refused_by_a_running_worker(
    path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    first, second = add(path, capsys, "--user", "ana"), add(path, capsys, "--user", "ana")
    tokens = TokenFile(path)
    identity = tokens.authenticate(first)
    assert identity is not None

    assert cli.main(["token", "revoke", str(path), "ana-1"]) == 0

    assert tokens.authenticate(first) is None
    assert not tokens.is_valid(identity)
    assert "refused token 'ana-1' of user 'ana': it is revoked" in caplog.text
    assert tokens.authenticate(second) == Identity("ana", admin=False, name="ana-2")


def test_an_expired_token_is_refused(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_text('{"format": 1, "tokens": []}')
    path.chmod(0o600)
    tokens = TokenFile(path)
    _, secret = tokens.add("ana", lifetime=-1.0)

    assert tokens.authenticate(secret) is None
    assert "refused token 'ana-1' of user 'ana': it is expired" in caplog.text


def test_the_list_shows_states_and_no_secrets(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = add(path, capsys, "--user", "ana", "--expires", "never")
    add(path, capsys, "--user", "bo", "--admin")
    cli.main(["token", "revoke", str(path), "bo-1"])
    capsys.readouterr()

    cli.main(["token", "list", str(path)])

    shown = capsys.readouterr().out
    assert re.search(r"ana-1 +ana +valid +never expires", shown)
    assert re.search(r"bo-1 +bo +revoked +admin +valid until", shown)
    assert secret not in shown


def test_a_file_that_others_can_read_is_refused(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = add(path, capsys, "--user", "ana")
    tokens = TokenFile(path)
    path.chmod(0o640)

    assert tokens.authenticate(secret) is None
    with pytest.raises(ConfigurationError, match=r"others can read or change it \(its mode is 640\); run `chmod 600"):
        TokenFile(path)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"tokens": []}',
        '{"format": 2, "tokens": []}',
        '{"format": 1, "tokens": [{"name": 1}]}',
        '{"format": 1, "tokens": [{"name": "a", "user": "a", "hash": "", "expires": "never"}]}',
        '{"format": 1, "tokens": [{"name": "a", "user": "a", "hash": "", "revoked": "no"}]}',
    ],
)
def test_a_damaged_file_authenticates_nobody_and_is_not_overwritten(
    path: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = add(path, capsys, "--user", "ana")
    tokens = TokenFile(path)
    path.write_text(content)

    assert tokens.authenticate(secret) is None
    assert cli.main(["token", "add", str(path), "--user", "bo"]) == 1
    assert "it is not a token file of this release" in capsys.readouterr().err
    assert path.read_text() == content


def test_a_removed_file_authenticates_nobody(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = add(path, capsys, "--user", "ana")
    tokens = TokenFile(path)
    path.unlink()

    assert tokens.authenticate(secret) is None
    with pytest.raises(ConfigurationError, match="make the file with `syft-core token add"):
        TokenFile(path)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["add", "--user", "ana", "--expires", "soon"], "write 30d, 12h, 15m or never"),
        (["add", "--user", "../ana"], "cannot use '../ana' as a user"),
        (["add", "--user", "an\u0430"], "choose another name"),  # a Cyrillic letter
        (["revoke", "bo-1"], "has no token of that name; choose one of these: ana-1"),
    ],
)
def test_wrong_input_is_refused_and_changes_nothing(
    path: Path, command: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    add(path, capsys, "--user", "ana")
    before = path.read_text()

    assert cli.main(["token", command[0], str(path), *command[1:]]) == 1
    assert message in capsys.readouterr().err
    assert path.read_text() == before


def test_the_default_expiry_is_ninety_days(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(path, capsys, "--user", "ana")
    (token,) = TokenFile(path)

    assert token.expires is not None
    assert 89 < (token.expires - time.time()) / 86_400 <= 90
    assert parse_lifetime("15m") == 900


def test_two_commands_at_the_same_time_lose_nothing(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  # only here

    add(path, capsys, "--user", "ana")

    def add_one(_: Any) -> None:
        TokenFile(path).add("ana", None)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add_one, range(24)))

    assert len({token.name for token in TokenFile(path)}) == 25


def test_all_tokens_of_a_user_are_revoked_and_listed_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "tokens.json")
    for user in ("ana", "ana", "bo"):
        assert cli.main(["token", "add", file, "--user", user]) == 0
    capsys.readouterr()

    assert cli.main(["token", "revoke", file, "--user", "ana"]) == 0
    assert cli.main(["token", "revoke", file, "--user", "anna"]) == 1
    assert "did you mean 'ana'?" in capsys.readouterr().err
    assert cli.main(["token", "revoke", file]) == 1
    capsys.readouterr()
    assert cli.main(["token", "list", file, "--json"]) == 0

    listed = json.loads(capsys.readouterr().out)
    assert [(token["name"], token["state"]) for token in listed] == [
        ("ana-1", "revoked"),
        ("ana-2", "revoked"),
        ("bo-1", "valid"),
    ]
    assert "hash" not in listed[0]
