"""The commands and examples for operators run."""

from __future__ import annotations

import doctest
import re
import shlex
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("numpy")

from syft_core import cli
from syft_core.exceptions import GetNotPermittedError
from syft_worker.data import DataSource

from .supervised import supervise

PAGE = Path(__file__).parents[2] / "docs" / "operating.md"
README, FIRST_HOUR = PAGE.parents[1] / "README.md", PAGE.parent / "first-hour-data-owner.md"
COMMANDS = re.findall(r"^\$ syft-core (certs|token|ledger)( .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_commands_and_examples_on_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(COMMANDS) >= 9
    for name, rest in COMMANDS:
        if name != "ledger":
            assert cli.main([name, *shlex.split(rest)]) == 0, rest

    failed, tried = doctest.testfile(str(PAGE), module_relative=False)

    assert tried
    assert not failed, capsys.readouterr().out
    for name, rest in COMMANDS:
        if name == "ledger":
            assert cli.main([name, *shlex.split(rest)]) == 0, rest


def test_the_toml_examples_are_accepted(tmp_path: Path) -> None:
    tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    pages = [page.read_text(encoding="utf-8") for page in (PAGE, FIRST_HOUR)]
    examples = [text for page in pages for text in re.findall(r"```toml\n([^`]*\[\[data\]\].*?)```", page, re.DOTALL)]

    sources = [DataSource.from_table(*tomllib.loads(text)["data"], tmp_path) for text in examples]

    assert [source.private for source in sources] == [("ana", "bo"), ("ana",), ("noor",)]
    assert [list(source.schema or ()) for source in sources] == [[], ["age", "sex", "admitted"], ["age", "sex"]]


def test_the_two_terminals_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    torch_hook = pytest.importorskip("syft_torch.hook").TorchHook
    text = README.read_text(encoding="utf-8")
    (make_data, options), (client,) = (
        re.findall(r'```sh\npython -c "(.*)"\nsyft-core worker (.*)\n```', text)[0],
        re.findall(r"```python\n(import torch, syft_core as sy\n\nhook .*?)```", text, re.DOTALL),
    )
    monkeypatch.chdir(tmp_path)
    exec(make_data, {})
    given = shlex.split(options.replace("ages.npy", str(tmp_path / "ages.npy")).replace("8778", "0"))
    with supervise(*given) as worker:
        token = worker.read_token()
        page = urlsplit(worker.wait_for("serving the page of the worker")["url"])
        worker.wait_for("worker is ready")

        def approve(_prompt: str) -> None:
            path = re.findall(r'href="(/requests/[0-9a-f]{16})"', ask("GET", "/"))[0]
            ask("POST", f"{path}/approve", "digest=" + re.findall(r'name="digest" value="(\w+)"', ask("GET", path))[0])

        def ask(method: str, path: str, body: str = "") -> str:
            connection = HTTPConnection(str(page.hostname), page.port, timeout=60)
            connection.request(method, path, body, {"Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            shown = response.read().decode()
            connection.close()
            assert response.status in (200, 303)
            return shown

        names: dict[str, Any] = {"input": approve}
        exec(client.replace("the printed token", token).replace("8777", str(worker.port)), names)
        names["north"].close()
        assert type(names["hook"]) is torch_hook
        names["hook"].unhook()

    assert "tensor(37.6667, dtype=torch.float64)" in capsys.readouterr().out


def test_the_commands_of_an_owners_first_hour(
    torch_hook: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    commands = re.findall(r"^\$ (.*)$", FIRST_HOUR.read_text(encoding="utf-8"), re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    make_data, *token_commands, worker_command, show, verify = map(shlex.split, commands)
    exec(make_data[2], {})
    for command in token_commands:
        assert cli.main(command[1:]) == 0
    tokens = re.findall(r"^syft-\S+$", capsys.readouterr().out, re.MULTILINE)
    with supervise(*(option.replace("8778", "0") for option in worker_command[2:]), cwd=tmp_path) as worker:
        hospital = worker.connect(torch_hook, tokens[0])
        assert hospital.search("#ages")[0].shape == (4,)
        with pytest.raises(GetNotPermittedError):
            hospital.search("#ages")[0].get()
        hospital.close()

    assert [cli.main(command[1:]) for command in (show, verify)] == [0, 0]
    assert "visitor" in capsys.readouterr().out
