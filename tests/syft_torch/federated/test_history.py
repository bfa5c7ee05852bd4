from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from syft_torch.federated.history import History  # noqa: E402  # the same

from .trainers import make_trainer  # noqa: E402  # the same


def test_the_history_is_a_table_and_a_picture(hook: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    history = make_trainer(hook).fit(3)

    assert str(history).splitlines()[0].split() == "round loss samples seconds took part left out".split()
    assert len(str(history).splitlines()) == 4
    assert "<table" in history._repr_html_()
    picture = history.plot(tmp_path / "loss.svg")
    assert (tmp_path / "loss.svg").read_text() == picture
    assert picture.startswith("<svg")
    assert "polyline" in picture._repr_svg_()


def test_the_history_has_what_was_evaluated(hook: Any) -> None:
    history = make_trainer(hook).fit(4, evaluate_every=2)

    assert history.metrics == ["loss", "accuracy"]
    assert [round for round, _ in history.trace("accuracy")] == [2, 4]
    first, second = str(history).splitlines()[:2]
    assert "evaluated loss" in first
    assert "evaluated accuracy" in first
    assert len(second.split()) < len(str(history).splitlines()[2].split())
    assert history.draw().count("<polyline") == 2


def test_a_history_survives_as_plain_data(hook: Any) -> None:
    history = make_trainer(hook).fit(2, evaluate_every=1)
    history.rows[0].left_out[3] = history.rows[0].not_evaluated[3] = "gone"

    assert History.load(json.loads(json.dumps(history.dump()))) == history


NOTEBOOK = """
import torch, syft_core as sy
from torch import nn, optim
from syft_torch import federated as fl
hook = sy.TorchHook(torch)
data = fl.BaseDataset(torch.randn(20, 4), torch.arange(20) % 2).federate([sy.VirtualWorker(hook, id="bob")])
loss = nn.functional.cross_entropy
history = fl.FederatedTrainer(nn.Linear(4, 2), loss, lambda p: optim.SGD(p, lr=0.1), data).fit(3)
""", "history.plot()"  # fmt: skip


def test_a_notebook_shows_progress_and_one_picture() -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    cells = [nbformat.v4.new_code_cell(source) for source in NOTEBOOK]

    nbclient.NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=120).execute()

    lines = [output["data"]["text/plain"] for output in cells[0].outputs if "data" in output]
    assert len(lines) == 1
    assert lines[0].startswith("round 3/3  loss")
    assert sum("image/png" in output.get("data", {}) for output in cells[1].outputs) == 1


def test_outside_of_a_notebook_a_picture_stays_open_to_be_shown(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot  # noqa: PLC0415  # optional

    figure = make_trainer(hook).fit(2).plot()

    assert pyplot.get_fignums() == [figure.number]
    pyplot.close(figure)
