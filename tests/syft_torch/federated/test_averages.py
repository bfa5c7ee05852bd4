"""What metrics are means of: their values on several workers are those of the pooled data, or are refused."""

from __future__ import annotations

from typing import Any

import pytest

import syft_core as sy

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402  # torch may be missing
from torch.nn import functional  # noqa: E402

from syft_core.hook.forms import form  # noqa: E402
from syft_torch import federated as fl  # noqa: E402
from syft_torch.federated.averages import find_average  # noqa: E402

from .trainers import sgd  # noqa: E402

CLASSES = torch.tensor([0.3, 0.7, 2.0])
COUNTS = (40, 7, 21)


class Tokens(nn.Module):
    """A model that answers scores of seven words for each of five places."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 35)

    def forward(self, x: Any) -> Any:
        return self.linear(x).view(-1, 5, 7)


def make_targets(kind: str, count: int, number: int) -> Any:
    source = torch.Generator().manual_seed(number)
    if kind == "real":
        return torch.randn(count, 1, generator=source)
    if kind == "gaps":
        return torch.randn(count, 1, generator=source).where(torch.rand(count, 1, generator=source) < 0.7, torch.nan)
    if kind == "tokens":
        words = torch.randint(0, 7, (count, 5), generator=source)
        return words.where(torch.rand(count, 5, generator=source) < 0.2 + 0.3 * number, -100)
    # Workers have very different classes.
    return torch.multinomial(torch.tensor([1.0, 1.0, 1.0]).index_fill(0, torch.tensor(number % 3), 20.0), count, True)


def make_trainer(hook: Any, model: Any, loss: Any, kind: str, private: bool = False) -> tuple[Any, Any, Any]:
    """Return a trainer whose data is spread at random, and the pooled data."""
    torch.manual_seed(1)
    parts, datasets = [], []
    for number, count in enumerate(COUNTS):
        worker = sy.VirtualWorker(hook, id=f"w{number}")
        x, y = torch.randn(count, 4), make_targets(kind, count, number)
        parts.append((x, y))
        if private:
            worker.load_data([part.clone().private_tensor(["board"]).tag(tag) for part, tag in ((x, "#x"), (y, "#y"))])
            datasets.append(fl.BaseDataset(*[worker.search(tag)[0] for tag in ("#x", "#y")]))
        else:
            datasets.append(fl.BaseDataset(x, y).send(worker))
    trainer = fl.FederatedTrainer(model, loss, sgd, fl.FederatedDataset(datasets), batch_size=8)
    x, y = map(torch.cat, zip(*parts, strict=True))
    return trainer, x, y


CASES: dict[str, Any] = {
    "mean": (functional.cross_entropy, "classes"),
    "class weights": (nn.CrossEntropyLoss(weight=CLASSES), "classes"),
    "class weights, smoothed": (nn.CrossEntropyLoss(weight=CLASSES, label_smoothing=0.1), "classes"),
    "likelihood": (lambda o, t: functional.nll_loss(o.log_softmax(1), t, CLASSES), "classes"),
    "sum": (nn.CrossEntropyLoss(reduction="sum"), "classes"),
    "weighted sum": (nn.CrossEntropyLoss(weight=CLASSES, reduction="sum"), "classes"),
    "an ignored class": (nn.CrossEntropyLoss(ignore_index=1), "classes"),
    "a mask made of labels": (
        lambda o, t: (functional.cross_entropy(o, t, reduction="none") * (t != 2)).sum() / (t != 2).sum(),
        "classes",
    ),
    "recall": (lambda o, t: functional.cross_entropy(o, t) * 0 + o.softmax(1)[:, 1].mul(t == 1).sum() / (t == 1).sum(),
               "classes"),
    "penalty": (lambda o, t: functional.cross_entropy(o, t) + 0.5, "classes"),
    "tokens": (lambda o, t: functional.cross_entropy(o.transpose(1, 2), t), "tokens"),
    "flat tokens": (lambda o, t: functional.cross_entropy(o.reshape(-1, 7), t.reshape(-1)), "tokens"),
    "next tokens": (lambda o, t: functional.cross_entropy(o[:, :-1].transpose(1, 2), t[:, 1:]), "tokens"),
    "squares": (functional.mse_loss, "real"),
    "sum of squares": (nn.MSELoss(reduction="sum"), "real"),
    "given": (
        lambda o, t: fl.WeightedMean(((o - t.nan_to_num()) ** 2)[:, 0].mul(~t.isnan()[:, 0]).sum(), (~t.isnan()).sum()),
        "gaps",
    ),
}  # fmt: skip


def make_model(kind: str) -> nn.Module:
    torch.manual_seed(3)
    return Tokens() if kind == "tokens" else nn.Linear(4, 3 if kind == "classes" else 1)


@pytest.mark.parametrize("private", [False, True], ids=["readable", "private"])
@pytest.mark.parametrize("name", CASES)
def test_a_loss_on_several_workers_is_that_of_the_pooled_data(hook: Any, name: str, private: bool) -> None:
    hook.local_worker.user = "board"
    loss, kind = CASES[name]
    model = make_model(kind)
    trainer, x, y = make_trainer(hook, model, loss, kind, private)
    found = trainer.evaluate(metrics={})

    with torch.no_grad():
        pooled = loss(model(x), y)
    pooled = pooled.total / pooled.weight if isinstance(pooled, fl.WeightedMean) else pooled
    assert found["loss"] == pytest.approx(float(pooled), rel=1e-5)
    assert found.samples == sum(COUNTS)
    assert not found.left_out


@pytest.mark.parametrize("name", ["class weights", "next tokens", "weighted sum"])
def test_weights_are_computed_on_data_that_nobody_may_read(hook: Any, name: str) -> None:
    loss, kind = CASES[name]
    trainer, _, _ = make_trainer(hook, make_model(kind), loss, kind, private=True)

    with pytest.raises(fl.FederatedError, match="no worker could evaluate the model .w0: .*it is private"):
        trainer.evaluate()


REFUSED: dict[str, Any] = {
    "root": (lambda o, t: functional.mse_loss(o, t).sqrt(), "real"),
    "missing values": (lambda o, t: ((o - t) ** 2).nansum() / (~t.isnan()).sum(), "gaps"),
    "overlap": (lambda o, t: 1 - 2 * (o.sigmoid() * t).sum() / (o.sigmoid().sum() + t.sum()), "real"),
    "correlation": (lambda o, t: (o * t).mean() / (o.std() * t.std()), "real"),
    "between samples": (lambda o, t: functional.mse_loss(o @ o.T, t @ t.T), "real"),
    "f1": (lambda o, t: 2 * ((o.argmax(1) == 1) & (t == 1)).sum() / ((o.argmax(1) == 1).sum() + (t == 1).sum()),
           "classes"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_mean_is_refused_with_a_way_out(hook: Any, name: str) -> None:
    metric, kind = REFUSED[name]
    trainer, _, _ = make_trainer(hook, make_model(kind), functional.cross_entropy if kind == "classes" else
                                 functional.mse_loss, kind)  # fmt: skip

    with pytest.raises(fl.FederatedError, match=r"cannot combine the metric 'score' .* return `fl.WeightedMean\("):
        trainer.evaluate(metrics={"score": metric})


def test_a_batch_without_weight_adds_nothing(hook: Any, bob: Any, alice: Any) -> None:
    loss = nn.CrossEntropyLoss(ignore_index=1)
    x, model = torch.randn(6, 4), make_model("classes")
    none, some = torch.ones(6, dtype=torch.int64), torch.tensor([0, 1, 2, 0, 1, 2])
    data = fl.FederatedDataset([fl.BaseDataset(x, none).send(bob), fl.BaseDataset(x, some).send(alice)])

    found = fl.FederatedTrainer(model, loss, sgd, data).evaluate(metrics={})

    with torch.no_grad():
        assert found["loss"] == pytest.approx(float(loss(model(x), some)), rel=1e-6)


def test_trials_leave_the_model_and_the_generator_alone() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return x

    model, state = Counter(), torch.get_rng_state()
    forms = [form((2, 3), None, torch.float32), form((2,), None, torch.int64)]

    assert find_average("loss", nn.CrossEntropyLoss(weight=CLASSES), model, forms).kind == "weighted"

    assert model.calls == 0
    assert torch.equal(torch.get_rng_state(), state)


def test_a_label_that_is_ignored_is_found_among_many_classes() -> None:
    forms = [form((2, 8), None, torch.float32), form((2,), None, torch.int64)]

    found = find_average("loss", nn.CrossEntropyLoss(ignore_index=7), nn.Linear(8, 40_000), forms)

    assert found.kind == "weighted"
    assert found.ignored == (7,)


def test_what_cannot_be_tried_counts_as_a_mean() -> None:
    forms = [form((2, 3), None, torch.float32), form((2,), None, torch.int64)]

    def fails(_output: Any, _targets: Any) -> Any:
        raise ValueError("not on such data")

    assert find_average("loss", fails, nn.Linear(3, 3), forms).kind == "mean"
    assert find_average("loss", lambda o, _t: o.sum() * 0, nn.Linear(3, 3), forms).kind == "mean"


@pytest.mark.parametrize("name", ["mean", "class weights", "sum", "next tokens", "given"])
def test_one_recording_measures_batches_of_all_lengths(hook: Any, name: str) -> None:
    loss, kind = CASES[name]
    trainer, _, _ = make_trainer(hook, make_model(kind), loss, kind)
    trainer.evaluate(metrics={})

    ((measurement, _),) = trainer._measurements._known.values()
    assert len(measurement.recorded.programs.all) == 1


def test_a_mean_of_which_one_term_ignores_a_label_is_one_of_data_without_that_label(hook: Any) -> None:
    def loss(output: Any, target: Any) -> Any:
        return torch.nn.functional.cross_entropy(output, target) + output.square().mean()

    forms = [form((5, 4), None, torch.float32), form((5,), None, torch.int64)]

    average = find_average("loss", loss, nn.Linear(4, 3).eval(), forms)

    assert (average.kind, average.ignored) == ("mean", (-100,))
    value = torch.tensor(2.0)
    assert float(average.split(value, torch.tensor([0, 1, 2]))) == 2.0
    assert not torch.isfinite(average.split(value, torch.tensor([0, -100, 2])))
