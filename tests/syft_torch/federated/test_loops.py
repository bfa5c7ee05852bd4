from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from syft_torch import federated as fl  # noqa: E402  # torch may be missing
from syft_torch.federated.layout import Layout  # noqa: E402
from syft_torch.federated.loops import Batches  # noqa: E402

from .settings import Setting  # noqa: E402
from .trainers import make_trainer  # noqa: E402

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


def test_running_statistics_are_not_clipped_and_do_not_count_for_the_norm(hook: Any, bob: Any) -> None:
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 3))
    model[0].running_mean.fill_(1e4)
    setting = Setting(hook, bob, model=model)
    whole, _ = setting.train()
    size = sum(parameter.numel() for parameter in model.parameters())
    norm = whole[:size].norm().item()

    loose, _ = setting.train(settings={**setting.settings, "clip": norm * 1.01})
    clipped, _ = setting.train(settings={**setting.settings, "clip": norm / 10})

    assert whole[size:].norm() > 1000 * norm
    assert torch.equal(loose, whole)
    assert torch.allclose(clipped[:size], whole[:size] / 10, rtol=1e-5)
    assert torch.equal(clipped[size:], whole[size:])


class Moving(torch.nn.Module):
    """Keeps a moving average of its input, in a buffer that is changed in place."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: Any) -> Any:
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(x.mean(0), 0.1)
        return x - self.mean


def make_images(norm: Any) -> Any:
    return torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, 2, 2)), torch.nn.Conv2d(1, 4, 1), norm, torch.nn.Flatten(), torch.nn.Linear(16, 3)
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4), Moving(), torch.nn.Linear(4, 3)),
        lambda: torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 4), Moving(), torch.nn.Linear(4, 3)),
        lambda: make_images(torch.nn.InstanceNorm2d(4)),
        lambda: make_images(torch.nn.InstanceNorm2d(4, affine=True)),
        lambda: make_images(torch.nn.InstanceNorm2d(4, affine=True, track_running_stats=True)),
        lambda: make_images(torch.nn.BatchNorm2d(4, affine=False)),
        lambda: make_images(torch.nn.GroupNorm(2, 4)),
        lambda: make_images(torch.nn.SyncBatchNorm(4)),
    ],
    ids=["average", "average and norm", "instance", "instance affine", "instance tracked", "batch", "group", "sync"],
)
def test_a_model_that_changes_its_buffers_trains_as_in_a_plain_loop(hook: Any, bob: Any, make: Any) -> None:
    torch.manual_seed(0)
    model = make()
    plain = copy.deepcopy(model)
    x, y = torch.randn(11, 4), torch.arange(11) % 3
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    for start in (0, 4, 8):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(plain(x[start : start + 4]), y[start : start + 4]).backward()
        optimizer.step()

    data = fl.FederatedDataset([fl.BaseDataset(x, y).send(bob)])
    make_trainer(hook, data, model=model, batch_size=4, shuffle=False).fit(1)

    for (name, found), expected in zip(model.state_dict().items(), plain.state_dict().values(), strict=True):
        torch.testing.assert_close(found, expected, msg=name)


# --- the last batch


@pytest.mark.parametrize(
    ("samples", "batch_size", "drop_last", "ends"),
    [
        (32, 16, False, [16, 32]),
        (33, 16, False, [16, 33]),
        (34, 16, False, [16, 32, 34]),
        (33, 16, True, [16, 32]),
        (40, 16, True, [16, 32]),
        (17, 16, False, [17]),
        (9, 16, False, [9]),
        (9, 16, True, [9]),
        (1, 16, False, [1]),
        (3, 1, False, [1, 2, 3]),
        (5, None, True, [5]),
    ],
)
def test_a_single_sample_joins_the_batch_before(
    samples: int, batch_size: int | None, drop_last: bool, ends: list[int]
) -> None:
    batches = Batches.of(samples, batch_size, drop_last)
    lengths = [end - start for start, end in zip([0, *ends], ends, strict=False)]

    for most in (0, 20, 10**6):
        assert [batch.stop for block in batches.split(most) for batch in block] == ends
    assert set(batches.lengths) == set(lengths)
    assert batches.count == len(ends)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("limit", [1, 1 << 24], ids=["in blocks", "at once"])
def test_a_worker_trains_with_the_batches_of_a_plain_loop(
    hook: Any, bob: Any, drop_last: bool, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syft_torch.federated.loops.MAX_BLOCK", limit)
    setting = Setting(hook, bob)
    options = {**setting.settings, "batch_size": 7, "drop_last": drop_last}

    difference, _ = setting.train(settings=options)

    optimizer, generator = setting.make(setting.model.parameters()), torch.Generator().manual_seed(5)
    for _ in range(2):
        rows = list(torch.randperm(50, generator=generator).split(7))
        last = rows.pop()
        if not drop_last:
            rows[-1] = torch.cat([rows[-1], last])
        for batch in rows:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(setting.model(setting.x[batch]), setting.y[batch]).backward()
            optimizer.step()
    trained = Layout(setting.recorded.trained).join(setting.recorded.trained)
    assert torch.equal(difference, trained - setting.weights)


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
            return self.linear(x.view(len(x), 4))

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
