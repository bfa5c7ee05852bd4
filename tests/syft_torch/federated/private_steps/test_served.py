"""Private training on a worker in a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from syft_core.exceptions import SyftError
from syft_core.ledgers.reading import read_ledger
from syft_worker.tokens import TokenFile
from tests.network.supervised import supervise

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
pytest.importorskip("dp_accounting")

from syft_torch import federated as fl  # noqa: E402  # torch may be missing

from ..trainers import cross_entropy, make_model, sgd  # noqa: E402  # the same

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the tests rely on the isolation of Linux"),
    pytest.mark.slow,
]


def write_config(folder: Path) -> Path:
    np.save(folder / "x.npy", np.random.default_rng(0).standard_normal((50, 4)).astype("float32"))
    np.save(folder / "y.npy", np.arange(50) % 3)
    tokens = folder / "tokens.json"
    tokens.write_text('{"format": 1, "tokens": []}')
    tokens.chmod(0o600)
    config = folder / "worker.toml"
    config.write_text(
        f"""
        id = "north"
        framework = "torch"
        data = ["{folder}/x.npy#x", "{folder}/y.npy#y"]
        token_file = "tokens.json"
        ledger = "{folder}/ledger"
        [limits]
        operation_seconds = 20.0
        memory = "3GB"
        """
    )
    return config


def test_a_served_worker_trains_with_noise_and_charges_its_ledger(hook: Any, tmp_path: Path) -> None:
    with supervise(str(write_config(tmp_path))) as served:
        far = served.connect(hook, TokenFile(tmp_path / "tokens.json").add("ana", None)[1])
        data = fl.find("#x", "#y", workers=[far])
        privacy = fl.SampleDP(clip=1.0, multiplier=1.1, delta=1e-5)
        trainer = fl.FederatedTrainer(make_model(), cross_entropy, sgd, data, batch_size=8, privacy=privacy)
        history = trainer.fit(2)

        with pytest.raises(SyftError, match="GroupNorm"):
            fl.FederatedTrainer(
                torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)),
                cross_entropy, sgd, data, batch_size=8, privacy=privacy,
            )  # fmt: skip

    assert [row.workers for row in history] == [["north"], ["north"]]
    charged = [entry for entry in read_ledger(tmp_path / "ledger") if entry.event == "charged"]
    assert [entry.user for entry in charged] == ["ana", "ana"]
    assert all("6 steps of SampleDP" in entry.form for entry in charged)
    assert history[-1].privacy in charged[-1].form
