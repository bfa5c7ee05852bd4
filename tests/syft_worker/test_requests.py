"""`syft-core requests`: an owner decides from a terminal or a script, over the worker's port."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from syft_core.cli import main
from syft_core.exceptions import GetNotPermittedError
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.ledger import Ledger, read_ledger
from syft_worker.desk.errors import ReleaseDeniedError, ReleaseError, ReleasePendingError

from ..network.served import Served, serve

torch = pytest.importorskip("torch")


@pytest.fixture
def served(torch_hook: Any, tmp_path: Path) -> Iterator[Served]:
    with serve(torch_hook, ledger=Ledger("hospital", path=tmp_path / "ledger")) as served:
        served.worker.load_data([torch.tensor([[30.0], [40.0]]).private_tensor([]).tag("#ages")])
        yield served


@pytest.fixture
def mean(served: Served) -> Any:
    return served.connect().search("#ages")[0].mean()


class Command:
    """Runs ``syft-core requests`` with the token of the owner."""

    def __init__(self, served: Served, folder: Path, capsys: Any) -> None:
        self.token = folder / "token"
        self.token.write_text("owner-secret\n")
        self._url, self._capsys = f"ws://127.0.0.1:{served.server.port}", capsys

    def run(self, *words: str) -> str:
        code = main(["requests", *words, "--url", self._url, "--token-from", str(self.token)])
        captured = self._capsys.readouterr()
        self.errors = str(captured.err)
        assert code == (1 if self.errors.startswith("syft-core: cannot") else 0)
        return str(captured.out).strip()

    def read(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json"))


@pytest.fixture
def command(served: Served, tmp_path: Path, capsys: Any) -> Command:
    return Command(served, tmp_path, capsys)


def test_a_request_is_listed_shown_and_approved(mean: Any, command: Command, tmp_path: Path) -> None:
    assert command.run("list") == "no requests"
    request = mean.request("table 1")

    (listed,) = command.read("list", "--state", "open")
    assert (listed["id"], listed["user"], listed["form"]) == (request.id, "ana", "Tensor[]")
    assert request.id in command.run("list")
    assert "computed_from: #ages" in command.run("show", request.id)
    with pytest.raises(ReleasePendingError):
        request.wait(0)
    approved = command.read("approve", request.id, "--digest", listed["digest"], "--answer", "it is an average")

    assert (approved["state"], approved["decided_by"]) == ("approved", "Dr. Noor")
    assert (request.wait(5).state, request.answer) == ("approved", "it is an average")
    assert request.get().item() == 35.0
    (decided,) = [entry for entry in read_ledger(tmp_path / "ledger") if entry.event == "approved"]
    assert (decided.approver, decided.reason, decided.digest) == ("Dr. Noor", "it is an average", listed["digest"])


def test_values_are_shown_to_the_owner_and_recorded_as_seen(mean: Any, command: Command, tmp_path: Path) -> None:
    request = mean.request("table 1")

    shown = command.read("show", request.id, "--values")

    assert shown["values"][0]["values"] == 35.0
    (seen,) = [entry for entry in read_ledger(tmp_path / "ledger") if entry.event == "seen"]
    assert (seen.request, seen.approver) == (request.id, "Dr. Noor")
    lines = map(json.loads, (tmp_path / "ledger").read_text().splitlines())
    (recorded,) = [line for line in lines if "seen" in line.values()]
    del recorded["time"]
    assert "35.0" not in json.dumps(recorded)


def test_a_large_value_is_shown_by_its_range_and_histogram(served: Served, command: Command) -> None:
    large = served.connect().search("#ages")[0].repeat(500, 1)

    (shown,) = command.read("show", large.request("why").id, "--values")["values"]

    assert (shown["min"], shown["max"], shown["mean"], shown["numbers"]) == (30.0, 40.0, 35.0, 1000)
    assert (shown["histogram"][0], shown["histogram"][-1]) == (500, 500)


def test_a_request_is_denied_with_a_reason(mean: Any, command: Command) -> None:
    request = mean.request("table 1")

    assert "is denied" in command.run("deny", request.id, "--answer", "two patients are too few")

    with pytest.raises(ReleaseDeniedError, match="two patients are too few"):
        request.wait(timeout=60)
    with pytest.raises(ReleaseDeniedError, match="two patients are too few"):
        mean.get()
    assert command.run("approve", request.id) == ""
    assert "it was denied already" in command.errors


def test_an_approval_is_taken_back_until_it_is_fetched(mean: Any, command: Command) -> None:
    request = mean.request("table 1")
    command.run("approve", request.id)
    command.run("withdraw", request.id)
    with pytest.raises(ReleasePendingError):
        mean.get()

    command.run("approve", request.id)
    mean.get()

    command.run("withdraw", request.id)
    assert "it was released already" in command.errors


def test_rules_are_added_from_a_request_listed_and_revoked(served: Served, mean: Any, command: Command) -> None:
    request = mean.request("table 1")

    command.run("rules", "--add", "averages", "--request", request.id, "--count", "2", "--until", "7d")
    assert mean.get().item() == 35.0

    (rule,) = command.read("rules")
    assert (rule["user"], rule["form"], rule["computed_from"], rule["used"]) == ("ana", "Tensor[]", ["#ages"], 1)
    assert "1 of 2" in command.run("rules")
    assert "is revoked" in command.run("rules", "--revoke", "averages")
    with pytest.raises(GetNotPermittedError, match="it was revoked"):
        served.clients[0].search("#ages")[0].mean().get()
    command.run("rules", "--add", "x", "--user", "ana", "--computed-from", "#age", "--any-program")
    assert "did you mean '#ages'" in command.errors


def test_a_rule_is_made_from_a_request_that_was_fetched_but_not_without_tags(
    served: Served, mean: Any, command: Command
) -> None:
    request = mean.request("table 1")
    served.worker.approve(request, by="Dr. Noor")
    request.get()
    own = torch.ones(2).send(served.connect()).request("my own")

    assert command.read("rules", "--add", "study", "--request", request.id)["computed_from"] == ["#ages"]

    command.run("rules", "--add", "other", "--request", own.id)
    assert "it is not known which tagged data of the worker is in it" in command.errors


def test_only_the_token_of_an_administrator_decides(mean: Any, command: Command) -> None:
    request = mean.request("table 1")
    command.token.write_text("ana-secret")

    for words in (["list"], ["show", request.id], ["approve", request.id], ["rules"], ["rules", "--revoke", "x"]):
        assert command.run(*words) == ""
        assert "only its owner may" in command.errors
    command.token.write_text("")
    command.run("list")
    assert "cannot use the token in this file: it is empty" in command.errors


def test_an_asker_sees_only_the_requests_of_the_same_user(served: Served, mean: Any) -> None:
    request = mean.request("table 1")
    served.tokens["bo-secret"] = type(served.tokens["ana-secret"])("bo")
    bo = served.connect("bo-secret", client=VirtualWorker(served.hook, id="bo", auto_add=False))

    assert served.clients[0].requests() == [request]
    assert bo.requests() == []
    stolen = type(request)(bo, request.id)
    for use in (lambda: stolen.state, stolen.get, stolen.wait):
        with pytest.raises(ReleaseError, match="has no such request for you to see"):
            use()


def test_a_program_with_an_event_loop_awaits_a_decision(served: Served, mean: Any) -> None:
    request = mean.request("table 1")

    async def study() -> float:
        loop = asyncio.get_running_loop()
        loop.call_later(0.1, served.worker.approve, request)
        return float((await request).get())

    assert asyncio.run(study()) == 35.0


def test_an_owner_who_asks_is_warned(served: Served, command: Command, caplog: pytest.LogCaptureFixture) -> None:
    served.connect("owner-secret").search("#ages")[0].mean().request("mine")

    (request,) = command.read("list")
    command.run("approve", request["id"])

    assert request["asked_by_owner"] is True
    assert "warning: the request was made with an owner's token" in command.errors
    assert "was decided by 'Dr. Noor', who asked" in caplog.text


def test_a_model_is_shown_by_layer_with_the_line_of_the_program(served: Served, command: Command) -> None:
    hospital = served.connect()
    model = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)).send(hospital)
    model(hospital.search("#ages")[0]).sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()

    shown = command.read("show", model.request("the model").id, "--values")

    assert [part["label"] for part in shown["values"]] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert shown["line"].startswith("test_requests.py:")
    assert 'model.request("the model")' in shown["line"]


@pytest.mark.parametrize(
    "numbers",
    [[1e308, -1e308] * 50, [float("nan")] * 100, [float("inf")] * 10, [0.0] * 100, [1e-310] * 100],
    ids=["large", "not a number", "infinite", "zeros", "tiny"],
)
def test_no_numbers_keep_an_owner_from_seeing_a_value(served: Served, command: Command, numbers: list[float]) -> None:
    hospital = served.connect()
    made = (torch.tensor(numbers, dtype=torch.float64).send(hospital) + hospital.search("#ages")[0].sum() * 0).request(
        ""
    )

    (shown,) = json.loads(command.run("show", made.id, "--values", "--json"), parse_constant=pytest.fail)["values"]

    assert shown["numbers"] == len(numbers)


def test_the_owner_sees_how_often_a_user_got_something_of_the_form(served: Served, mean: Any, command: Command) -> None:
    hospital = served.connect()
    first = mean.request("1")
    served.worker.approve(first, by="Dr. Noor")
    first.get()
    served.worker.allow("any", user="ana", computed_from=["#ages"], any_program=True)
    hospital.search("#ages")[0].std().get()

    assert command.read("show", mean.request("2").id)["released_before"] == 2


# --- programs


def test_a_program_is_approved_from_now_on_with_one_option(served: Served, mean: Any, command: Command) -> None:
    request = mean.request("table 1")

    assert "the rule averages stands" in command.run("approve", request.id, "--rule", "averages", "--count", "3")

    assert mean.get().item() == 35.0
    assert served.clients[0].search("#ages")[0].mean().get().item() == 35.0
    with pytest.raises(GetNotPermittedError, match="its program is not approved"):
        served.clients[0].search("#ages")[0].sum().get()
    (rule,) = command.read("rules")
    assert f"{rule['program'][0][:12]}…" in command.run("rules")


def test_a_program_is_not_approved_if_the_digest_is_that_of_something_else(
    served: Served, mean: Any, command: Command
) -> None:
    request = mean.request("table 1")

    command.run("approve", request.id, "--rule", "averages", "--digest", "0" * 64)

    assert "the digest is that of something else" in command.errors
    assert len(served.worker.rules) == 0


def test_a_request_is_shown_with_how_it_was_computed_and_what_was_checked(mean: Any, command: Command) -> None:
    request = mean.request("table 1")

    shown = command.run("show", request.id)

    assert "mean of #ages; program " in shown
    assert "checks: " in shown
    assert "influence" not in shown
    assert "influence: with another row in place of row" in command.run("show", request.id, "--values")


def test_rules_for_any_program_are_listed_with_the_numbers_that_they_let_leave(mean: Any, command: Command) -> None:
    wanted = ("--user", "ana", "--computed-from", "#ages", "--form", "Tensor[114]", "--count", "20")
    command.run("rules", "--add", "any", *wanted)
    assert "20 uses of Tensor[114]: up to 2,280 numbers of the data" in command.errors

    command.run("rules", "--add", "any", *wanted, "--any-program")

    assert "any: 20 uses of Tensor[114]: up to 2,280 numbers of the data" in command.run("rules")
