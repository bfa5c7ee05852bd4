"""The examples for owners run, and the pages say what the code does."""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from syft_core.exceptions import ConfigurationError
from syft_sums.roster import find_quorum
from syft_sums.rules import CONDITIONS
from syft_worker.checks import find_problems
from syft_worker.config import EXAMPLE, parse_config
from syft_worker.tokens import TokenFile

PAGE = Path(__file__).parents[2] / "docs" / "aggregates.md"
PROTOCOL = PAGE.parent / "protocols" / "sums.md"


def test_the_examples_in_the_docs_run(capsys: Any) -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)

    assert tried
    assert not failed, capsys.readouterr().out


def test_the_page_has_every_condition() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE))))
    assert rows >= set(CONDITIONS)


def test_the_table_of_quorums_is_that_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    sizes, quorums, lost = (
        [int(cell) for cell in re.findall(rf"^\| {name} \| (.*) \|$", text, re.MULTILINE)[0].split(" | ")]
        for name in ("members, `colluding = 1`", "must take part to the end", "may be lost after they have masked")
    )
    assert [find_quorum(size, 1) for size in sizes] == quorums
    assert [size - quorum for size, quorum in zip(sizes, quorums, strict=True)] == lost


def test_the_protocol_page_names_tests_that_exist() -> None:
    tests = "".join([path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py")])
    names = re.findall(r"`(test_\w+)`", PROTOCOL.read_text(encoding="utf-8"))
    assert names
    assert all(f"def {name}(" in tests for name in names)


def read_example(folder: Path, **changes: str) -> dict[str, Any]:
    """Return the part of the example configuration that is about sums."""
    tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    part = EXAMPLE.read_text(encoding="utf-8").partition("# [members]")[2]
    lines = ["[members]", *[line.removeprefix("# ") for line in part.splitlines()]]
    table = tomllib.loads("\n".join([line for line in lines if " = " in line or line.startswith("[")]))
    return {"id": "north", "ledger": str(folder / "l"), "store": str(folder / "s"), **table, **changes}


def test_the_example_configuration_is_accepted(tmp_path: Path) -> None:
    config = parse_config(read_example(tmp_path)).require_valid()

    assert len(config.members["west"]) == 2
    assert config.aggregates is not None
    assert config.aggregates["noise"]["epsilon"] == 8.0
    assert parse_config(config.to_table()) == config


@pytest.mark.parametrize("missing", ["ledger", "store"])
def test_a_rule_without_a_ledger_or_a_store_is_refused(tmp_path: Path, missing: str) -> None:
    table = read_example(tmp_path)
    del table[missing]
    with pytest.raises(ConfigurationError, match=r"cannot use \[aggregates\] without a ledger and a store"):
        parse_config(table).require_valid()


def test_a_wrong_condition_in_the_configuration_is_explained(tmp_path: Path) -> None:
    table = read_example(tmp_path)
    table["aggregates"]["at_leest"] = 3
    with pytest.raises(ConfigurationError, match="there is no condition 'at_leest'.*at_least"):
        parse_config(table)


def test_a_rule_for_more_workers_than_there_are_members_is_refused(tmp_path: Path) -> None:
    table = read_example(tmp_path)
    table["aggregates"]["at_least"] = 5
    with pytest.raises(ConfigurationError, match="there are 3 members, so no sum could have as many workers"):
        parse_config(table).require_valid()


def test_a_member_with_a_malformed_fingerprint_is_refused(tmp_path: Path) -> None:
    table = read_example(tmp_path)
    table["members"]["south"] = "ed25519:12"
    with pytest.raises(ConfigurationError, match="'members' for sums: 'south' must be 'ed25519:' and 64 hexadecimal"):
        parse_config(table).require_valid()


def test_the_check_of_a_configuration_finds_users_and_tags_of_the_rule_that_are_not_there(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    tokens.write_text('{"format": 1, "tokens": []}')
    tokens.chmod(0o600)
    TokenFile(tokens).add("bo", None)
    config = parse_config(read_example(tmp_path, token_file=str(tokens)))

    (problem,) = [problem for problem in find_problems(config) if "rule" in problem]

    assert "cannot use the rule 'aggregates': no user of this worker has the name 'ana'" in problem
