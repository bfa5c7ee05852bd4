from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from syft_torch import federated as fl  # noqa: E402  # torch may be missing

from .settings import Setting  # noqa: E402

OPTIMIZERS = [
    lambda p: torch.optim.SGD(p, lr=0.1),
    lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    lambda p: torch.optim.AdamW(p, lr=0.01),
    lambda p: torch.optim.Adagrad(p),
    lambda p: torch.optim.Adadelta(p),
    lambda p: torch.optim.Adamax(p),
    lambda p: torch.optim.ASGD(p),
    lambda p: torch.optim.NAdam(p),
    lambda p: torch.optim.RAdam(p),
    lambda p: torch.optim.RMSprop(p, momentum=0.5),
    lambda p: torch.optim.Rprop(p),
]


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_a_worker_trains_with_the_bits_of_a_plain_loop(setting: Setting, make: Any) -> None:
    setting.make = make

    difference, loss = setting.train()

    expected, mean = setting.train_here()
    assert torch.equal(difference, expected)
    assert loss.item() == pytest.approx(mean, rel=1e-12)


def test_without_a_seed_samples_keep_their_order(setting: Setting) -> None:
    difference, _ = setting.train(seed=None)

    assert torch.equal(difference, setting.train_here(seed=None)[0])


def test_several_datasets_of_a_worker_are_trained_on_together(setting: Setting) -> None:
    split = [
        part.send(setting.worker).child
        for rows in (slice(0, 20), slice(20, None))
        for part in (setting.x[rows], setting.y[rows])
    ]

    difference, _ = setting.train(data=tuple(split))

    assert torch.equal(difference, setting.train_here()[0])


def test_gradients_and_differences_are_clipped(setting: Setting) -> None:
    whole, _ = setting.train()
    clipped, _ = setting.train(settings={**setting.settings, "clip": 0.01})
    loose, _ = setting.train(settings={**setting.settings, "clip": 1e6})
    steps, _ = setting.train(settings={**setting.settings, "clip_grad": 1e-3})

    assert clipped.norm().item() == pytest.approx(0.01, rel=1e-4)
    assert torch.allclose(clipped / clipped.norm(), whole / whole.norm(), atol=1e-5)
    assert torch.equal(loose, whole)
    assert 0 < steps.norm() < 0.05 < whole.norm()


def test_the_weights_that_were_sent_and_the_data_do_not_change(setting: Setting) -> None:
    before, x = setting.weights.clone(), setting.x.clone()

    setting.train()

    assert torch.equal(setting.weights, before)
    assert torch.equal(setting.worker.search("#x")[0].copy().get(), x)


def test_a_loss_that_changes_its_batch_does_not_change_the_data(hook: Any, bob: Any) -> None:
    setting = Setting(hook, bob, model=torch.nn.Sequential(torch.nn.ReLU(inplace=True), torch.nn.Linear(4, 3)))

    setting.train(seed=None)

    assert torch.equal(bob.search("#x")[0].copy().get(), setting.x)


def test_models_whose_steps_depend_on_the_length_of_a_batch_are_recorded_for_each(hook: Any, bob: Any) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            return self.linear(x.view(x.size(0), 4))

    setting = Setting(hook, bob, model=Net())

    assert len(setting.plans) == 2
    assert torch.equal(setting.train()[0], setting.train_here()[0])
    with pytest.raises(fl.FederatedError, match="not recorded for batches of 7"):
        setting.train(settings={**setting.settings, "batch_size": 7})


def test_dropout_is_repeated_with_a_seed_and_leaves_the_generator_alone(hook: Any, bob: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(), torch.nn.Linear(8, 3))
    setting = Setting(hook, bob, model=model)
    state = torch.get_rng_state()

    (one, _), (two, _), (other, _) = setting.train(), setting.train(), setting.train(seed=6)

    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), state)
