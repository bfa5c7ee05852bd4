from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402  # torch may be missing

from syft_torch import federated as fl  # noqa: E402

from .trainers import make_data, make_trainer  # noqa: E402


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"model": nn.Linear(4, 3)}, "it has another model"),
        ({"strategy": fl.Median()}, "it has another strategy"),
        ({"strategy": fl.FedProx(0.5)}, "its strategy has other numbers"),
        ({"seed": 3}, "it has another seed"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused_and_kept(hook: Any, tmp_path: Path, options: Any, text: str) -> None:
    path = tmp_path / "run.safetensors"
    make_trainer(hook, strategy=fl.FedProx(0.1)).fit(1, checkpoint=path)
    content = path.read_bytes()

    with pytest.raises(fl.FederatedError, match=text):
        make_trainer(hook, **{"strategy": fl.FedProx(0.1), **options}).fit(3, checkpoint=path)

    assert path.read_bytes() == content


class Frozen(nn.Module):
    """A model on a backbone that is not trained."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.backbone = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)).requires_grad_(False).eval()
        self.head = nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.backbone(x))


def test_a_checkpoint_of_another_frozen_backbone_is_refused(hook: Any, tmp_path: Path) -> None:
    path, data = tmp_path / "run.safetensors", make_data(hook)
    make_trainer(hook, data, model=Frozen(0)).fit(1, checkpoint=path)
    moved = Frozen(0)
    moved.backbone[1].running_mean += 1

    for model in (Frozen(1), moved):
        with pytest.raises(fl.FederatedError, match="it has another frozen state of the model"):
            make_trainer(hook, data, model=model).fit(2, checkpoint=path)
    assert len(make_trainer(hook, data, model=Frozen(0)).fit(2, checkpoint=path)) == 2


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04nonsense", b"\x08\x00\x00\x00\x00\x00\x00\x00{}", b"x" * 100])
def test_a_file_that_is_no_checkpoint_is_refused_and_kept(hook: Any, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.safetensors"
    path.write_bytes(content)

    with pytest.raises(fl.FederatedError, match="it is not a checkpoint"):
        make_trainer(hook).fit(1, checkpoint=path)

    assert path.read_bytes() == content


@pytest.mark.parametrize("has_safetensors", [True, False])
def test_a_damaged_checkpoint_is_refused_and_kept(
    hook: Any, tmp_path: Path, has_safetensors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_safetensors:
        pytest.importorskip("safetensors")
    else:
        monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    path = tmp_path / "run.safetensors"
    trainer = make_trainer(hook, strategy=fl.FedAdam())
    trainer.fit(1, checkpoint=path)
    content = bytearray(path.read_bytes())
    content[content.index(trainer.weights.numpy().tobytes()) + 2] ^= 1
    whole = path.read_bytes()

    for damaged in (bytes(content), whole[:-5], whole[: len(whole) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(fl.FederatedError, match="it is damaged|it is not a checkpoint"):
            make_trainer(hook, strategy=fl.FedAdam()).fit(2, checkpoint=path)
        assert path.read_bytes() == damaged


def test_a_disk_that_is_full_loses_nothing(hook: Any, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "run.safetensors"
    whole = make_trainer(hook, strategy=fl.FedAdam())
    whole.fit(4)
    trainer = make_trainer(hook, strategy=fl.FedAdam())
    trainer.fit(2, checkpoint=path)
    content, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        with pytest.raises(fl.FederatedError, match="cannot write the checkpoint .*the rounds that it had before"):
            trainer.fit(2, checkpoint=path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    again = make_trainer(hook, strategy=fl.FedAdam())
    again.fit(4, checkpoint=path)
    trainer.fit(1, checkpoint=path)
    assert torch.equal(again.weights, whole.weights)
    assert torch.equal(trainer.weights, whole.weights)


def test_a_checkpoint_that_cannot_be_written_is_refused_before_the_first_round(hook: Any, tmp_path: Path) -> None:
    class Keeper(fl.Strategy):
        def __init__(self) -> None:
            self.seen: Any = [object()]

        def aggregate(self, weights: Any, updates: Any) -> Any:
            return weights

    trainer = make_trainer(hook)
    with pytest.raises(fl.FederatedError, match="its folder does not exist"):
        trainer.fit(1, checkpoint=tmp_path / "missing" / "run.safetensors")
    assert not trainer.history.rows
    with pytest.raises(fl.FederatedError, match="its attribute 'seen' cannot be saved"):
        make_trainer(hook, strategy=Keeper()).fit(1, checkpoint=tmp_path / "run.safetensors")
