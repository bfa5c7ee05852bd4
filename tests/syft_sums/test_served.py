"""A study of three workers of ``syft-core worker``: only sums leave, and a worker that is killed loses nothing."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from syft_core.ledgers.reading import read_ledger
from syft_sums.evidence import read_evidence
from syft_sums.keys import KEY_FILE, MemberKey
from syft_sums.messages import JoinSum, MaskSum, RevealSum
from syft_worker.tokens import TokenFile
from tests.network.supervised import SupervisedWorker, supervise

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
pytest.importorskip("resource")

from torch import nn  # noqa: E402  # torch may be missing

from syft_torch import federated as fl  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux", reason="the tests rely on the isolation of Linux: another one has none"
    ),
]
NAMES = ("north", "south", "east")
PHASES = {"join": JoinSum, "mask": MaskSum, "reveal": RevealSum}


class Served:
    """Three workers, each with a configuration file, and their user dana."""

    def __init__(self, hook: Any, folder: Path, stack: ExitStack) -> None:
        self.hook, self.folder = hook, folder
        for name in NAMES:
            (folder / name / "store").mkdir(parents=True, mode=0o700)
        self.keys = {name: MemberKey.load(folder / name / "store" / KEY_FILE).fingerprint for name in NAMES}
        self.tokens = {}
        self.workers: dict[str, SupervisedWorker] = {}
        self.locations: list[Any] = []
        for number, name in enumerate(NAMES):
            self.tokens[name] = self.write(folder / name, name, number)
            self.workers[name] = stack.enter_context(supervise(str(folder / name / "worker.toml")))

    def write(self, folder: Path, name: str, seed: int) -> str:
        rows = np.random.default_rng(seed).standard_normal((60 + seed, 4)).astype("float32")
        np.save(folder / "x.npy", rows)
        np.save(folder / "y.npy", (rows.sum(1) > 0).astype("int64"))
        members = "\n".join([f'{other} = "{key}"' for other, key in self.keys.items()])
        (folder / "worker.toml").write_text(
            f"""
            id = "{name}"
            framework = "torch"
            data = ["x.npy#x:private=nobody", "y.npy#y:private=nobody"]
            token_file = "tokens.json"
            ledger = "ledger.jsonl"
            store = "store"
            [members]
            {members}
            [aggregates]
            user = "dana"
            computed_from = ["#x", "#y"]
            at_least = 3
            any_program = true
            """
        )
        tokens = folder / "tokens.json"
        tokens.write_text('{"format": 1, "tokens": []}')
        tokens.chmod(0o600)
        return TokenFile(tokens).add("dana", None)[1]

    def connect(self) -> list[Any]:
        """Connect as a new program of dana would."""
        self.disconnect()
        self.locations = [self.workers[name].connect(self.hook, self.tokens[name]) for name in NAMES]
        return self.locations

    def disconnect(self) -> None:
        for location in self.locations:
            self.hook.local_worker._known_workers.pop(location.id, None)
            location.close()

    def kill(self, name: str) -> None:
        """End the serving process of a worker as a crash would; its supervisor starts it again."""
        worker = self.workers[name]
        ready = [event for event in worker.events if "worker is ready" in event["event"]]
        os.kill(ready[-1]["process"], signal.SIGKILL)
        worker.wait_for("worker is ready", len(ready) + 1)

    def read(self, name: str) -> list[Any]:
        return list(read_ledger(self.folder / name / "ledger.jsonl"))


@pytest.fixture
def served(hook: Any, tmp_path: Path) -> Iterator[Served]:
    with ExitStack() as stack:
        found = Served(hook, tmp_path, stack)
        yield found
        found.disconnect()


def make_trainer(served: Served, locations: list[Any]) -> Any:
    torch.manual_seed(0)
    data = fl.find("#x", "#y", workers=locations)
    return fl.FederatedTrainer(
        nn.Linear(4, 2),
        nn.functional.cross_entropy,
        lambda parameters: torch.optim.SGD(parameters, lr=0.1),
        data,
        batch_size=16,
        aggregation=fl.SecureAggregation("icu"),
    )


def require_only_sums(served: Served) -> None:
    """Raise unless nothing but sums has left, each round once."""
    for name in NAMES:
        left = [entry for entry in served.read(name) if entry.event in ("departed", "released", "revealed")]
        assert all(entry.sum is not None for entry in left)
        rounds = [entry.sum["round"] for entry in left if entry.event == "revealed"]
        assert len(rounds) == len(set(rounds))
        masked = [(entry.sum["round"], tuple(entry.sum["list"])) for entry in left if entry.event == "released"]
        assert len(masked) == len(set(masked))


def test_a_study_of_five_rounds_needs_no_click_and_only_sums_leave(served: Served, tmp_path: Path) -> None:
    trainer = make_trainer(served, served.connect())

    trainer.fit(5)

    assert len(trainer.history.losses) == 5
    assert trainer.history.losses[-1] < trainer.history.losses[0]
    require_only_sums(served)
    for name in NAMES:
        lines = [entry for entry in served.read(name) if entry.event == "released"]
        assert len(lines) == 5
        assert all('sum(study="icu"' in line.form and line.rule == "aggregates" for line in lines)
    trainer.evidence(tmp_path / "study.syft")
    rounds = read_evidence(tmp_path / "study.syft")
    assert [len(each.signers) for each in rounds] == [3] * 5
    assert set(rounds[0].roster) == set(served.keys.values())


class Killing:
    """The way to a worker, which kills it once when asked for one kind of message: before it has answered, or after."""

    def __init__(self, served: Served, location: Any, kind: Any, is_after: bool) -> None:
        self._served, self._id, self._ask = served, location.id, location.ask
        self._kind, self._is_after = kind, is_after
        self.is_done = False

    def ask(self, message: Any) -> Any:
        kills = isinstance(message, self._kind) and not self.is_done
        self.is_done = self.is_done or kills
        if kills and not self._is_after:
            self._served.kill(self._id)
        answer = self._ask(message)
        if kills and self._is_after:
            self._served.kill(self._id)
        return answer


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.timeout(900)
def test_kill_9_in_each_phase_at_each_worker_loses_and_doubles_nothing(
    served: Served, is_after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = 0
    for kind in PHASES.values():
        for name in NAMES:
            locations = served.connect()
            killing = Killing(served, locations[NAMES.index(name)], kind, is_after)
            with monkeypatch.context() as patch:
                patch.setattr(locations[NAMES.index(name)], "ask", killing.ask)
                trainer = make_trainer(served, locations)
                with suppress(fl.FederatedError):  # With three workers, none may be lost after it has masked.
                    trainer.fit(1)
                    fitted += 1
            assert killing.is_done
            make_trainer(served, served.connect()).fit(1)
            require_only_sums(served)

    # A worker that is killed after it has revealed has lost nothing: the sum is there.
    assert fitted == (len(NAMES) if is_after else 0)
