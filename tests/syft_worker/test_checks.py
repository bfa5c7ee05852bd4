"""`syft-core worker --check`: what is wrong with a configuration is found at once, before a framework is imported."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from syft_core.cli import main
from syft_worker.checks import find_problems
from syft_worker.config import parse_config, read_config

GOOD = 'host = "127.0.0.1"\ndata = ["ages.csv#ages"]\nledger = "ledger"\nstore = "deep/store"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ages.csv").write_text("age\n30\n")
    (tmp_path / "worker.toml").write_text(GOOD)
    return tmp_path


def test_a_configuration_in_order_has_no_problems(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert find_problems(read_config(folder / "worker.toml")) == []
    assert main(["worker", "--check", str(folder / "worker.toml")]) == 0
    assert "in order" in capsys.readouterr().out


def test_every_problem_is_found_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    (folder / "worker.toml").write_text(
        'data = ["none.npy#x", "no_such_module:load"]\ntoken_file = "none.json"\ncert = "none.pem"\n'
        f'ledger = "nowhere/ledger"\npolicy = "nothin"\n[peers.south]\nurl = "ws://127.0.0.1:{port}"\n'
    )

    assert main(["worker", "--check", str(folder / "worker.toml")]) == 1

    lines = capsys.readouterr().err.splitlines()
    for text in ("none.npy", "no_such_module", "none.json", "none.pem", "nowhere", "did you mean", "'south'"):
        assert len([line for line in lines if text in line]) == 1, text
    assert len(lines) == 7


def test_a_key_that_others_can_read_and_an_expired_certificate_are_found(folder: Path) -> None:
    assert main(["certs", str(folder / "certs"), "--host", "localhost"]) == 0
    config = parse_config({"cert": "certs/server.pem", "key": "certs/server.key"}, folder)
    assert find_problems(config) == []

    (folder / "certs" / "server.key").chmod(0o644)
    (problem,) = find_problems(config)
    assert "others can read or change it" in problem


def test_problems_of_access_folders_hooks_rules_and_names_do_not_hide_each_other(folder: Path) -> None:
    for name in ("certs", "other"):
        assert main(["certs", str(folder / name), "--host", "localhost"]) == 0
    (folder / "worker.toml").write_text(
        'data = ["ages.csv#ages"]\nport = 8777\npage_port = 8777\ncert = "certs/server.pem"\nkey = "other/server.key"\n'
        'client_ca = "ages.csv"\nledger = "certs"\non_request = "no-such-program --now"\n'
        '[peers.south]\nurl = "wss://south.invalid:8777"\n[peers.east]\nurl = "wss://127.0.0.1:1"\nca = "none.pem"\n'
        '[rules.study]\nuser = "ana"\ncomputed_from = ["#agse"]\nany_program = true\n'
    )

    problems = find_problems(read_config(folder / "worker.toml"))

    for text in (
        *(
            "on port 8777",
            "the key belongs to another certificate",
            "`client_ca`",
            "it is not a file",
            "'no-such-program'",
        ),
        *("peer 'south'", "none.pem", "no data of this worker has the tag '#agse'"),
    ):
        assert len([problem for problem in problems if text in problem]) == 1, (text, problems)
    assert len(problems) == 8


def test_no_framework_is_imported_before_the_checks(folder: Path) -> None:
    (folder / "worker.toml").write_text(GOOD.replace("ages.csv", "none.csv"))
    program = (
        "import sys; from syft_core.cli import main\n"
        f"code = main(['worker', {str(folder / 'worker.toml')!r}])\n"
        "print(code, [name for name in ('torch', 'numpy') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)

    assert done.stdout.strip() == "1 []"
    assert "none.csv" in done.stderr


@pytest.mark.parametrize(
    ("more", "hint"),
    [("", "the users are user"), ('token_file = "tokens.json"\n', "did you mean 'anna'")],
)
def test_a_rule_for_an_unknown_user_is_found_and_keeps_no_worker_from_starting(
    folder: Path, more: str, hint: str
) -> None:
    assert main(["token", "add", str(folder / "tokens.json"), "--user", "anna"]) == 0
    rule = '[rules.means]\nuser = "annna"\ncomputed_from = ["#ages"]\nany_program = true\n'
    (folder / "worker.toml").write_text(GOOD + more + rule)
    config = read_config(folder / "worker.toml")

    (problem,) = find_problems(config)

    assert "the rule 'means'" in problem
    assert hint in problem
    assert find_problems(config, peers=False) == []
