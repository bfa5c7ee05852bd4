from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402  # torch may be missing

from syft_torch import federated as fl  # noqa: E402
from syft_torch.federated.averages import Average  # noqa: E402
from syft_torch.federated.evaluation import Evaluation  # noqa: E402

from .trainers import make_data, make_trainer  # noqa: E402


def test_a_worker_whose_metrics_are_not_finite_is_left_out_of_an_evaluation(hook: Any) -> None:
    data = make_data(hook, [40, 40, 40])
    good = make_trainer(hook, fl.FederatedDataset(list(data)[:2])).evaluate()
    hook.local_worker.get_worker("w2").object_store.entry(data["w2"].inputs[0].child.id_at_location).value[3] = math.nan

    found = make_trainer(hook, data).evaluate()

    assert found["loss"] == pytest.approx(good["loss"], rel=1e-12)
    assert found["accuracy"] == good["accuracy"]
    assert found.samples == 80
    assert found.left_out == {"w2": "its metric 'loss' is not finite"}
    assert "w2 was left out: its metric 'loss' is not finite" in str(found)


def test_an_evaluation_in_which_all_are_left_out_is_refused(hook: Any) -> None:
    with pytest.raises(fl.FederatedError, match="no worker could evaluate the model .w0: its metric 'bad' is not fin"):
        make_trainer(hook).evaluate(metrics={"bad": lambda output, _targets: output.mean() / 0})


def test_an_evaluation_keeps_the_mode_of_each_layer(hook: Any) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 3))
    model[1].eval()
    model[1].requires_grad_(False)
    trainer = make_trainer(hook, model=model)
    mean = model[1].running_mean.clone()

    trainer.fit(1)
    trainer.evaluate()
    with pytest.raises(fl.FederatedError):
        trainer.evaluate(metrics={"bad": lambda output, _targets: output})
    trainer.fit(1)

    assert [module.training for module in model] == [True, False, True, True]
    assert model.training
    assert torch.equal(model[1].running_mean, mean)


@pytest.mark.parametrize("answer", [torch.zeros(2), torch.zeros(1, 1), torch.zeros(1), 3.0])
def test_an_answer_of_another_form_is_left_out(answer: Any) -> None:
    found = Evaluation({"loss": nn.functional.mse_loss}, [Average()])

    found.add("w0", torch.tensor([6.0], dtype=torch.float64), 3)
    found.add("w1", answer, 3)

    assert found == {"loss": 2.0}
    assert found.left_out == {"w1": "its answer has another form than the metrics"}
