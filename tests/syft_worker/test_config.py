from __future__ import annotations

import json
import math
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from syft_core.cli import main
from syft_core.exceptions import ConfigurationError
from syft_sums.rules import CONDITIONS as SUM_CONDITIONS
from syft_worker.allowances import Allowance, find_allowance
from syft_worker.config import (
    EXAMPLE,
    PeerConfig,
    WorkerConfig,
    WorkerLimits,
    override,
    parse_config,
    read_config,
)
from syft_worker.desk.approvals import CONDITIONS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read(tmp_path: Path, text: str) -> WorkerConfig:
    (tmp_path / "worker.toml").write_text(text)
    return read_config(tmp_path / "worker.toml")


def test_the_example_is_printed_and_can_be_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["worker", "--example"]) == 0

    config = read(tmp_path, capsys.readouterr().out).require_valid()

    assert (config.id, config.limits.message_bytes) == ("north", None)
    assert config.users == {"default": Allowance()}


def test_the_example_has_every_key_and_all_its_comments_can_be_used(tmp_path: Path) -> None:
    lines = [
        line.removeprefix("# ") if line.startswith(("# ", "  # ")) else line
        for line in EXAMPLE.read_text().splitlines()
    ]
    keys = {line.split(" =")[0].strip() for line in lines if " = " in line}
    classes = (WorkerConfig, WorkerLimits, Allowance, PeerConfig)
    expected = {field.name for cls in classes for field in fields(cls)} - {"limits", "users", "peers", "rules"}
    expected -= {"members", "aggregates"}
    used = "\n".join(line for line in lines if " = " in line or line.startswith("[") or line.strip() == "]")

    config = read(tmp_path, used)

    assert expected <= keys
    assert config.peers["south"] == PeerConfig(
        "wss://south.example.org:8777", tmp_path / "certs" / "south.pem", "south"
    )
    assert config.users["ana"].bytes == 8 * 10**9
    assert {name for rule in config.rules.values() for name in rule} == set(CONDITIONS)
    assert config.aggregates is not None
    assert set(config.aggregates) >= set(SUM_CONDITIONS) - {"per_day", "until"}
    assert parse_config(json.loads(json.dumps(config.to_table()))) == config


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[rules.a]\nuser = "ana"', "cannot read .*rules.a: .*'computed_from' is missing"),
        ('[rules.a]\nuser = "ana"\ncomputed_from = "#x"\ncuont = 3', "did you mean 'count'"),
        ("rules = 3", "expected a table"),
        ("[rules]\na = 3", "expected a table"),
        ('on_request = "mail \'"', "No closing quotation"),
        ('on_request = ""', "it is empty"),
    ],
)
def test_wrong_approvals_and_hooks_are_configuration_errors(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        read(tmp_path, text).require_valid()


def test_paths_in_a_file_are_relative_to_its_folder(tmp_path: Path) -> None:
    config = read(tmp_path, 'ledger = "ledger.jsonl"\ndata = ["ages.npy#ages"]')

    assert config.ledger == tmp_path / "ledger.jsonl"
    assert config.data[0].file == tmp_path / "ages.npy"


def test_users_inherit_from_the_default_entry() -> None:
    config = parse_config(tomllib.loads('[users.default]\nobjects = 5\ntier = "reviewed"\n[users.ana]\nobjects = 9'))

    assert find_allowance(config.users, "ana") == Allowance(objects=9, tier="reviewed")
    assert find_allowance(config.users, "bo") == Allowance(objects=5, tier="reviewed")


def test_a_configuration_survives_the_way_to_the_serving_process(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        EXAMPLE.read_text().replace('# "patients', '"patients').replace("# [peers", "[peers").replace("# url", "url"),
    )

    assert parse_config(config.to_table()) == config


def test_options_of_the_command_line_take_precedence() -> None:
    config = parse_config({"id": "north", "port": 5, "limits": {"memory": "1GB", "connections": 7}})

    changed = override(config, {"id": "south", "limits": {"memory": "2GiB"}})

    assert (changed.id, changed.port) == ("south", 5)
    assert changed.limits == WorkerLimits(memory=2 * 2**30, connections=7)


def test_trusted_workers_come_from_the_file_or_the_command_line(tmp_path: Path) -> None:
    config = read(tmp_path, 'trusted = ["alice", "carol"]')

    assert config.trusted == ("alice", "carol")
    assert override(config, {"trusted": ["dora"]}).trusted == ("dora",)
    with pytest.raises(ConfigurationError, match="trusted: expected a text, got 5"):
        parse_config({"trusted": [5]})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"prot": 1}, "cannot read the options: there is no key 'prot'; did you mean 'port'\\?"),
        ({"zzz": 1}, "no key 'zzz'; choose from id, host"),
        ({"limits": {"memry": 1}}, "the options: limits: there is no key 'memry'; did you mean 'memory'"),
        ({"users": {"ana": {"byte": 1}}}, "users.ana: there is no key 'byte'; did you mean 'bytes'"),
        ({"peers": {"south": {}}}, "peers.south: 'url' is missing"),
        ({"port": "high"}, "port: 'high' is not a number or a size; write 64MB or 4GB"),
        ({"port": -1}, "port: expected a number, got -1"),
        ({"port": True}, "port: expected a number, got True"),
        ({"threads": "many"}, "threads: 'many' is not a number"),
        ({"id": 5}, "id: expected a text, got 5"),
        ({"users": {"ana": {"tier": "pubic"}}}, "tier: it is 'pubic'; did you mean 'public'"),
        ({"users": 3}, "users: expected a table"),
        ({"data": ["a:b:c"]}, "cannot read the data source"),
        ({"limits": {"operation_seconds": math.nan}}, "operation_seconds: expected a number, got nan"),
        ({"limits": {"memory": "99999999999GB"}}, "memory: expected a number, got 99999999999000000000"),
    ],
)
def test_a_mistake_is_named_with_the_nearest_key(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_config(table)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"host": "0.0.0.0"}, "cannot serve on 0.0.0.0 without a certificate: without TLS, others on the network can"),
        ({"host": "0.0.0.0", "cert": "c"}, "cannot serve on 0.0.0.0 without authentication: anyone could connect"),
        ({"client_ca": "ca.pem"}, "cannot serve on 127.0.0.1 without a certificate"),
        ({"policy": "nothin"}, "cannot use the policy 'nothin': did you mean 'nothing'"),
        ({"key": "server.key"}, "cannot use `key` without `cert`: the worker would not use TLS; give both"),
        ({"id": "phone@ana"}, "cannot use 'phone@ana' as the id of a worker: .* without @"),
        ({"id": "a\nb"}, "as the id of a worker: .* line breaks"),
        ({"id": ""}, "cannot use '' as the id of a worker"),
        ({"id": "clínica"}, "as the id of a worker: an id is 1 to 64 ASCII characters"),
        ({"limits": {"connections": 0}}, "cannot use limits.connections = 0: nobody could use the worker; choose more"),
        ({"limits": {"operation_seconds": 0}}, "cannot use limits.operation_seconds = 0"),
        ({"limits": {"memory": "0GB"}}, "cannot use limits.memory = 0"),
        ({"users": {"ana": {"messages": 0}}}, "cannot limit users.ana to 0 .*write connections = 0 to keep a user out"),
        ({"users": {"default": {"cpu_seconds": 0}}}, "cannot limit users.default to 0 CPU seconds"),
        ({"peers": {"phone@ana": {"url": "ws://127.0.0.1:1"}}}, "cannot use 'phone@ana' as the id of a worker"),
    ],
)
def test_what_is_not_safe_or_not_possible_is_refused(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_config(table).require_valid()


def test_a_file_that_is_not_toml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="it is not a TOML file"):
        read(tmp_path, "id = [")
    with pytest.raises(ConfigurationError, match="No such file"):
        read_config(tmp_path / "missing.toml")


def test_every_part_of_the_configuration_is_frozen() -> None:
    kinds = [arg for kind in get_type_hints(WorkerConfig).values() for arg in (kind, *get_args(kind))]

    assert all(kind.__dataclass_params__.frozen for kind in kinds if is_dataclass(kind))
