from __future__ import annotations

from dataclasses import replace
from math import isnan
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("dp_accounting")
from torch import nn, optim  # noqa: E402  # torch may be missing

from syft_core.exceptions import GetNotPermittedError, SyftError  # noqa: E402
from syft_core.hook.forms import form  # noqa: E402
from syft_core.messages import FetchAll  # noqa: E402
from syft_core.pointers.object_pointer import new_id  # noqa: E402
from syft_torch import federated as fl  # noqa: E402  # torch may be missing
from syft_torch.federated import losses  # noqa: E402  # the same
from syft_torch.federated.layout import Layout  # noqa: E402  # the same
from syft_torch.federated.private_steps.accounting import PrivateStep, find_epsilon  # noqa: E402  # the same
from syft_torch.federated.private_steps.charges import Charges  # noqa: E402  # the same
from syft_torch.federated.training import Evaluate  # noqa: E402  # the same

from ..settings import SAMPLES, Setting  # noqa: E402  # the same
from ..trainers import make_data, make_model, make_trainer, sgd  # noqa: E402  # the same

PRIVACY = fl.SampleDP(clip=1.0, multiplier=1.1, delta=1e-5)


def private_message(setting: Setting, privacy: Any = PRIVACY, **changes: Any) -> Any:
    program = setting.recorded.programs.all[0]
    settings = {**setting.settings, "privacy": privacy.write(), **changes.pop("settings", {})}
    return setting.message(plans=(setting.store(program),), settings=settings, **changes)


def train(setting: Setting, privacy: Any = PRIVACY, **changes: Any) -> Any:
    message = private_message(setting, privacy, **changes)
    setting.location.tell(message)
    return message


def fetch(setting: Setting, message: Any) -> list[Any]:
    found: list[Any] = setting.location.ask(FetchAll((message.result, message.result + 1)))
    return found


def test_without_noise_a_full_batch_is_a_step_with_clipped_gradients(setting: Setting) -> None:
    setting.make = lambda p: optim.SGD(p, lr=0.5)
    privacy = fl.SampleDP(clip=1e6, multiplier=0.01, delta=1e-5, rate=1.0)
    quiet = "syft_torch.federated.private_steps.sample_dp.SampleDP.sigma"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quiet, 1e-9)
        difference, loss = fetch(setting, train(setting, privacy, settings={"epochs": 1}))

    found = torch.autograd.grad(
        nn.functional.cross_entropy(setting.model(setting.x), setting.y), list(setting.model.parameters())
    )
    expected = -0.5 * torch.cat([gradient.flatten() for gradient in found])
    torch.testing.assert_close(difference, expected, rtol=1e-4, atol=1e-6)
    assert isnan(loss)


def test_the_noise_of_a_step_has_the_stated_size(setting: Setting) -> None:
    setting.make = lambda p: optim.SGD(p, lr=1.0)
    privacy = fl.SampleDP(clip=1e-3, multiplier=50.0, delta=1e-5, rate=0.2)

    differences = [fetch(setting, train(setting, privacy, settings={"epochs": 4}))[0] for _ in range(10)]

    expected = 1e-3 * 50 / (0.2 * SAMPLES) * 20**0.5
    assert float(torch.cat(differences).std()) == pytest.approx(expected, rel=0.15)


def test_two_trainings_with_one_seed_differ(setting: Setting) -> None:
    first, second = (fetch(setting, train(setting, seed=5))[0] for _ in range(2))

    assert not torch.equal(first, second)


def test_empty_batches_are_steps_of_noise(setting: Setting) -> None:
    privacy = fl.SampleDP(clip=1.0, multiplier=1.0, delta=1e-5, rate=1e-9)
    setting.make = lambda p: optim.SGD(p, lr=1.0)
    draws = "syft_torch.federated.private_steps.sample_dp.SampleDP.plan"
    with pytest.MonkeyPatch.context() as patch:
        known = privacy.plan(SAMPLES, 1, None)
        patch.setattr(draws, lambda *_: type(known)(1e-9, 3, 1.0, 1))
        difference, _ = fetch(setting, train(setting, privacy))

    assert bool(difference.all())
    assert float(difference.std()) == pytest.approx(3**0.5, rel=0.4)


def test_large_batches_are_computed_in_parts(setting: Setting) -> None:
    setting.make = lambda p: optim.SGD(p, lr=0.5)
    privacy = fl.SampleDP(clip=0.3, multiplier=0.01, delta=1e-5, rate=1.0)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("syft_torch.federated.private_steps.sample_dp.SampleDP.sigma", 1e-9)
        for size in (7, SAMPLES):
            message = train(setting, privacy, settings={"epochs": 1, "batch_size": size})
            found.append(fetch(setting, message)[0])

    torch.testing.assert_close(found[0], found[1], rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("label", [-1, 3, 1 << 40])
def test_a_label_out_of_range_changes_nothing_that_can_be_seen(private: Setting, label: int) -> None:
    stored = private.worker.object_store.entry(private.data[1]._id_at_location).value
    stored.data[3] = label

    entry = private.worker.object_store.entry(train(private).result)

    assert not entry.failures
    assert bool(entry.value.isfinite().all())


def test_results_carry_what_they_cost(private: Setting) -> None:
    entry = private.worker.object_store.entry(train(private).result)

    clip, multiplier, rate, steps, delta, epsilon = dict(entry.made_by.options)["privacy"]
    assert (clip, multiplier, rate, steps, delta) == (1.0, 1.1, 8 / SAMPLES, 12, 1e-5)
    assert epsilon == private.worker.part(Charges).find_epsilon("#x", 1e-5) > 0


def test_a_training_that_is_never_fetched_is_charged(private: Setting) -> None:
    train(private)
    once = private.worker.part(Charges).find_epsilon("#x", 1e-5)
    train(private)

    assert private.worker.part(Charges).find_epsilon("#x", 1e-5) > once


def test_a_training_that_is_refused_is_not_charged(private: Setting) -> None:
    with pytest.raises(fl.FederatedError):
        train(private, settings={"epochs": 0})

    assert private.worker.part(Charges).find_epsilon("#x", 1e-5) == 0


def change_by_hand(setting: Setting, kind: str) -> tuple[Any, ...]:
    x, y = (setting.worker.search(tag)[0] for tag in ("#x", "#y"))
    changed = {
        "normalized": lambda: (x - x.mean(0), y),
        "sorted": lambda: (x.sort(0)[0], y),
        "some rows": lambda: (x[:20], y[:20]),
        "joined": lambda: (torch.cat([x, x]), torch.cat([y, y])),
        "repeated": lambda: (x[:1].expand(20, 4).contiguous(), y[:20]),
    }[kind]()
    return tuple([part.child for part in changed])


@pytest.mark.parametrize("kind", ["normalized", "sorted", "some rows", "joined", "repeated"])
def test_data_whose_rows_depend_on_each_other_is_refused(private: Setting, kind: str) -> None:
    data = change_by_hand(private, kind)

    with pytest.raises(SyftError, match="not as its owner has published it"):
        train(private, data=data)


def test_data_that_is_used_twice_is_refused(private: Setting) -> None:
    with pytest.raises(fl.FederatedError, match="or is used twice"):
        train(private, data=(*private.data, *private.data))


def test_weights_of_private_values_are_refused(private: Setting) -> None:
    hidden = torch.zeros(len(private.weights)).private_tensor(["board"]).tag("#w")
    private.worker.load_data([hidden])

    with pytest.raises(fl.FederatedError, match="not as its owner"):
        train(private, weights=private.worker.search("#w")[0].child)


@pytest.mark.parametrize("name", ["correction", "weights"])
def test_targets_that_are_a_correction_or_the_weights_as_well_are_refused(private: Setting, name: str) -> None:
    """Noise is added to the gradients of the data, not to such tensors."""
    private.worker.load_data([torch.randn(SAMPLES).private_tensor(["board"]).tag("#targets")])
    targets = private.worker.search("#targets")[0].child
    model = nn.Linear(4, SAMPLES // 5)
    forms = [form((SAMPLES, 4), None, torch.float32), form((SAMPLES,), None, torch.float32)]
    recorded = losses.record(model, lambda model, x, y: ((model(x).sum(1) - y) ** 2).mean(), forms, [8], ())
    private.plans, private.model = (private.store(recorded.programs.all[0]),), model
    weights = Layout(recorded.trained).join(recorded.trained)
    settings = {**private.settings, "privacy": PRIVACY.write()}
    message = private.message(**{"weights": weights, "data": (private.data[0], targets), "settings": settings})
    private.location.tell(message)

    with pytest.raises(fl.FederatedError, match="or is used twice"):
        private.location.tell(replace(message, **{name: targets, "result": new_id()}))


def test_losses_by_length_are_refused(private: Setting) -> None:
    program = private.recorded.programs.find([8, 2])[0]

    with pytest.raises(fl.FederatedError, match="SampleDP"):
        private.location.tell(
            private.message(
                plans=(private.store(program), private.store(program)),
                settings={**private.settings, "privacy": PRIVACY.write()},
            )
        )


def test_evaluating_with_it_is_refused(private: Setting) -> None:
    sent = private_message(private)
    message = Evaluate(sent.plans, sent.weights, sent.fixed, sent.data, sent.parts, sent.settings, sent.result)

    with pytest.raises(fl.FederatedError, match="not for evaluating"):
        private.location.tell(message)


def test_a_search_along_a_line_is_refused(private: Setting) -> None:
    private.make = optim.LBFGS

    with pytest.raises(fl.FederatedError, match="LBFGS computes the loss several times"):
        train(private)


# --- trainers


def make_private_trainer(hook: Any, data: Any = None, **options: Any) -> Any:
    return make_trainer(hook, data, **{"privacy": PRIVACY, **options})


@pytest.mark.parametrize("serialize", [False, True], ids=["in process", "by wire"])
def test_a_trainer_learns_and_shows_the_largest_epsilon(hook: Any, serialize: bool) -> None:
    torch.manual_seed(0)
    data = make_data(hook, [400, 200], serialize=serialize)
    trainer = make_private_trainer(hook, data, optimizer=lambda p: optim.SGD(p, lr=1.0))

    history = trainer.fit(4, evaluate_every=1)

    assert history[-1].evaluation["accuracy"] > 0.5
    assert all(isnan(row.loss) for row in history)
    few = PRIVACY.plan(200, 1, 16)
    assert history[-1].epsilon == find_epsilon({PrivateStep(few.rate, 1.1): 4 * few.steps}, 1e-5)
    assert "ε" in str(history)
    assert "ε" in str(trainer.evaluate())


def test_what_leaves_a_worker_has_no_loss(hook: Any) -> None:
    trainer = make_private_trainer(hook, make_data(hook, [40]))
    client = trainer.clients["w0"]

    difference, loss = client.train(trainer._job, lambda: trainer.weights, 1, None)

    assert isnan(loss)
    assert len(difference) == trainer._recorded.layout.total


def test_private_data_stays_on_its_worker(hook: Any) -> None:
    trainer = make_private_trainer(hook, make_data(hook, [40, 40], private=True))

    with pytest.raises(fl.FederatedError, match="needed workers returned an update"):
        trainer.fit(1)

    entries = [entry for name in ("w0", "w1") for entry in hook.local_worker.get_worker(name).ledger]
    assert not entries
    with pytest.raises(GetNotPermittedError):
        hook.local_worker.get_worker("w0").search("#x")[0].get()


def test_owners_may_release_the_updates(hook: Any) -> None:
    data = make_data(hook, [40, 40], private=True)
    for name in ("w0", "w1"):
        hook.local_worker.get_worker(name).allow(
            "study", by="Noor", user="me", computed_from=["#x", "#y"], any_program=True
        )

    hook.local_worker.user = "me"

    history = make_private_trainer(hook, data).fit(1)

    assert history[0].workers == ["w0", "w1"]
    assert history[0].epsilon == hook.local_worker.get_worker("w0").part(Charges).find_epsilon("#x", 1e-5)


@pytest.mark.parametrize("engine", ["stacked", "workers", None])
def test_each_client_trains_alone(hook: Any, engine: Any) -> None:
    trainer = make_private_trainer(hook, make_data(hook, [40, 40, 40]), engine=engine)

    assert trainer._engine.name == "workers"
    assert len(trainer.fit(1)[0].workers) == 3


def make_words(tied: bool) -> Any:
    words, last = nn.Embedding(20, 8), nn.Linear(8, 20)
    if tied:
        last.weight = words.weight
    return nn.Sequential(words, Mean(), last)


class Mean(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.mean(1)


@pytest.mark.parametrize("tied", [False, True], ids=["kernels", "one by one"])
def test_indices_and_labels_out_of_range_make_no_error_on_private_data(hook: Any, bob: Any, tied: bool) -> None:
    words, labels = torch.randint(0, 20, (60, 6)), torch.randint(0, 20, (60,))
    words[7, 2], labels[3], labels[4] = -5, 99_999, -100
    parts = [part.private_tensor(["board"]).tag(tag) for part, tag in ((words, "#x"), (labels, "#y"))]
    bob.load_data(parts)
    hook.local_worker.user = "me"
    bob.allow("study", by="Noor", user="me", computed_from=["#x", "#y"], any_program=True)
    data = fl.FederatedDataset([fl.BaseDataset(*[bob.search(tag)[0] for tag in ("#x", "#y")])])

    history = make_private_trainer(hook, data, model=make_words(tied)).fit(2)

    assert [row.workers for row in history] == [["bob"], ["bob"]]
    assert not any(entry.failed for entry in bob.ledger)


@pytest.mark.parametrize("strategy", [fl.FedProx(0.1), fl.FedAdam(), fl.Scaffold(), fl.Median()], ids=repr)
def test_strategies_see_noisy_updates_only(hook: Any, strategy: Any) -> None:
    history = make_private_trainer(hook, make_data(hook, [40, 40, 40]), strategy=strategy).fit(2)

    assert len(history) == 2
    assert all(not row.left_out for row in history)


def test_epsilon_continues_from_a_checkpoint(hook: Any, tmp_path: Any) -> None:
    data = make_data(hook, [40, 40])
    make_private_trainer(hook, data).fit(2, checkpoint=tmp_path / "run")
    whole = make_private_trainer(hook, make_data(hook, [40, 40])).fit(3)

    again = make_private_trainer(hook, data).fit(3, checkpoint=tmp_path / "run")

    assert [row.epsilon for row in again] == [row.epsilon for row in whole][: len(again)]
    assert len(again) == 3 or again[-1].epsilon == whole[1].epsilon


def test_a_report_names_epsilon(hook: Any, tmp_path: Any) -> None:
    trainer = make_private_trainer(hook, make_data(hook, [40, 40]))
    trainer.fit(1, evaluate_every=1)

    trainer.report(tmp_path / "page.html")

    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "SampleDP(clip=1.0, multiplier=1.1, delta=1e-05, rate=None)" in text
    assert "ε" in text
    assert "nan" not in text


def test_schedulers_that_read_the_loss_are_refused(hook: Any) -> None:
    trainer = make_private_trainer(hook, make_data(hook, [40]), scheduler=optim.lr_scheduler.ReduceLROnPlateau)

    with pytest.raises(fl.FederatedError, match="reads the loss"):
        trainer.fit(1)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)), "GroupNorm"),
        (nn.Sequential(nn.Linear(4, 3), nn.Softmax(0)), "may compute over the batch"),
    ],
    ids=["batch norm", "softmax"],
)
def test_a_model_is_refused_when_the_trainer_is_made(hook: Any, model: Any, why: str) -> None:
    with pytest.raises(fl.FederatedError, match=why):
        make_private_trainer(hook, make_data(hook, [40]), model=model)


def test_a_cell_that_torch_cannot_batch_is_refused(hook: Any) -> None:
    model = nn.Sequential(nn.Unflatten(1, (2, 2)), nn.GRU(2, 3, batch_first=True), Last())

    with pytest.raises(fl.FederatedError, match="cannot be computed"):
        make_private_trainer(hook, make_data(hook, [40]), model=model)


class Last(nn.Module):
    def forward(self, found: Any) -> Any:
        return found[0][:, -1]


@pytest.mark.parametrize("privacy", [1.0, (1.0, 1.1, 1e-5), {"clip": 1.0}])
def test_another_type_is_refused(hook: Any, privacy: Any) -> None:
    with pytest.raises(fl.FederatedError, match="the privacy is a"):
        make_trainer(hook, make_data(hook, [40]), privacy=privacy)


def test_a_population_is_refused(hook: Any) -> None:
    population = fl.Population(3, lambda number: fl.BaseDataset(torch.randn(9, 4), torch.randint(0, 3, (9,))))

    with pytest.raises(fl.FederatedError, match="keep no account"):
        fl.FederatedTrainer(make_model(), nn.functional.cross_entropy, sgd, population, privacy=PRIVACY)


def test_teachers_can_be_trained_with_it(hook: Any) -> None:
    trainer = make_private_trainer(hook, make_data(hook, [40, 40]))

    assert set(trainer.train_apart()) == {"w0", "w1"}
