from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402  # torch may be missing

from .recorded import Model, Subject, cross_entropy, make_images, make_rows, make_words  # noqa: E402  # the same


def make_text_model() -> Any:
    return Model(
        lambda m, x: m.last(torch.relu(m.norm(m.first(m.words(x)))).mean(1)) * m.scale + m.shift - m.less,
        words=nn.Embedding(20, 8, padding_idx=0), first=nn.Linear(8, 12), norm=nn.LayerNorm(12), last=nn.Linear(12, 3),
        scale=nn.Parameter(torch.randn(3)), shift=nn.Parameter(torch.randn(3)), less=nn.Parameter(torch.randn(1)),
    )  # fmt: skip


def make_vision_model() -> Any:
    return nn.Sequential(
        nn.Conv2d(2, 8, 3, stride=2, padding=1), nn.GroupNorm(2, 8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=2, padding="same", bias=False), nn.Flatten(), nn.Linear(72, 3),
    )  # fmt: skip


def make_sequence_model() -> Any:
    layers = nn.Conv1d(3, 8, 3, stride=2, padding=1, dilation=2), nn.Tanh(), nn.Conv1d(8, 6, 3, padding="same")
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(54, 3))


def sequences() -> tuple[Any, Any]:
    return torch.randn(12, 3, 20), torch.randint(0, 3, (12,))


BY_KERNELS = {
    "layers": (lambda: nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 3)), make_rows, cross_entropy),
    "text": (make_text_model, make_words, cross_entropy),
    "vision": (make_vision_model, make_images, cross_entropy),
    "sequences": (make_sequence_model, sequences, cross_entropy),
    "a sum": (lambda: nn.Linear(10, 3), make_rows, nn.CrossEntropyLoss(reduction="sum", label_smoothing=0.1)),
    "two means": (
        lambda: nn.Linear(10, 3), make_rows, lambda o, y: cross_entropy(o, y) * 0.5 + 0.1 * o.square().mean()
    ),
    "one word after the other": (
        lambda: Model(lambda m, x: m.last(m.words(x)), words=nn.Embedding(20, 8), last=nn.Linear(8, 20)),
        lambda: (make_words()[0], make_words()[0].roll(1, 1)),
        lambda o, y: cross_entropy(o.view(-1, 20), y.view(-1)),
    ),
    "gathered": (
        lambda: nn.Linear(10, 3), make_rows, lambda o, y: -o.log_softmax(1).gather(1, y.unsqueeze(1)).mean()
    ),
}  # fmt: skip
ONE_BY_ONE = {
    "tied weights": (
        lambda: Model(lambda m, x: m.words(x).mean(1) @ m.words.weight.T, words=nn.Embedding(20, 8)),
        lambda: (make_words()[0], make_words()[0][:, 0]), cross_entropy,
    ),
    "a layer that is used twice": (
        lambda: Model(
            lambda m, x: m.last(m.cell(torch.tanh(m.cell(x)))), cell=nn.Linear(10, 10), last=nn.Linear(10, 3)
        ),
        make_rows, cross_entropy,
    ),
    "a weight that is reshaped": (
        lambda: Model(lambda m, x: nn.functional.linear(x, m.weight.view(3, 10)), weight=nn.Parameter(torch.randn(30))),
        make_rows, cross_entropy,
    ),
    "positions": (
        lambda: Model(
            lambda m, x: m.last((m.words(x) + m.places(torch.arange(6))).mean(1)),
            words=nn.Embedding(20, 8), places=nn.Embedding(6, 8), last=nn.Linear(8, 3),
        ),
        make_words, cross_entropy,
    ),
    "attention": (
        lambda: Model(
            lambda m, x: m.last(m.layer(m.words(x)).mean(1)),
            words=nn.Embedding(20, 8), last=nn.Linear(8, 3),
            layer=nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
        ),
        make_words, cross_entropy,
    ),
}  # fmt: skip


def make_subject(case: Any) -> Subject:
    torch.manual_seed(0)
    make_model, make_batch, loss = case
    return Subject(make_model(), *make_batch(), loss)


def compare(found: list[Any], expected: list[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("case", BY_KERNELS.values(), ids=BY_KERNELS)
def test_kernels_find_the_sum_of_clipped_gradients(hook: Any, case: Any) -> None:
    subject = make_subject(case)

    assert subject.follow().is_short
    compare(subject.sum_up(), subject.sum_one_by_one())


@pytest.mark.parametrize("case", ONE_BY_ONE.values(), ids=ONE_BY_ONE)
def test_parameters_without_a_kernel_are_handled_one_sample_at_a_time(hook: Any, case: Any) -> None:
    subject = make_subject(case)

    assert not subject.follow().is_short
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "There is a performance drop")  # torch has no batching rule of attention.
        compare(subject.sum_up(), subject.sum_one_by_one())


def test_a_penalty_of_the_weights_is_part_of_each_gradient(hook: Any) -> None:
    model = nn.Linear(10, 3)
    subject = Subject(model, *make_rows(), lambda o, y: cross_entropy(o, y) + 0.1 * model.weight.square().sum())

    assert not subject.follow().is_short
    compare(subject.sum_up(), subject.sum_one_by_one())


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_have_the_clipped_gradients_of_single_samples(hook: Any, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    pick = lambda *choices: choices[int(torch.randint(len(choices), (1,), generator=draw))]  # noqa: E731  # short
    torch.manual_seed(seed)
    wide = pick(4, 8, 12)
    layers = [nn.Linear(10, wide), pick(nn.ReLU(), nn.Tanh(), nn.GELU(), nn.Softplus())]
    layers += [pick(nn.LayerNorm(wide), nn.GroupNorm(2, wide), nn.Identity(), nn.Softmax(1))]
    layers += [pick(nn.Linear(wide, wide), nn.Identity()), pick(nn.SiLU(), nn.ELU())]
    subject = Subject(nn.Sequential(*layers, nn.Linear(wide, 3)), *make_rows(seed=seed), clip=pick(0.01, 1.0, 100.0))

    compare(subject.sum_up(), subject.sum_one_by_one())


@pytest.mark.parametrize("case", [BY_KERNELS["text"], ONE_BY_ONE["tied weights"]], ids=["kernels", "one by one"])
def test_another_sample_changes_only_its_own_share(hook: Any, case: Any) -> None:
    subject = make_subject(case)
    x, y = subject.batch
    changed = torch.cat([x[:-1], (x[-1:] + 7) % 20])
    alone, alone_changed = [x[-1:], y[-1:]], [changed[-1:], y[-1:]]

    before, after = subject.sum_up([x, y]), subject.sum_up([changed, y])

    own = zip(subject.sum_up(alone), subject.sum_up(alone_changed), strict=True)
    compare([b - a for a, b in zip(before, after, strict=True)], [b - a for a, b in own])


@pytest.mark.parametrize("case", BY_KERNELS.values(), ids=BY_KERNELS)
def test_the_norm_of_one_sample_stays_below_the_clip(hook: Any, case: Any) -> None:
    subject = make_subject(case)
    subject.clip = 0.01

    for place in range(3):
        found = subject.sum_up([part[place : place + 1] for part in subject.batch])

        assert sum([float(g.double().square().sum()) for g in found]) ** 0.5 < 0.01


@pytest.mark.parametrize("case", [BY_KERNELS["layers"], BY_KERNELS["vision"]], ids=["layers", "vision"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_a_sample_without_a_finite_gradient_counts_as_zeros(hook: Any, case: Any, value: float) -> None:
    subject = make_subject(case)
    x, y = subject.batch
    broken = torch.cat([x[:-1], torch.full_like(x[-1:], value)])

    compare(subject.sum_up([broken, y]), subject.sum_up([x[:-1], y[:-1]]))


@pytest.mark.parametrize("label", [-1, 3, -100, 1 << 40])
def test_a_label_out_of_range_counts_as_zeros(hook: Any, label: int) -> None:
    subject = make_subject(BY_KERNELS["layers"])
    x, y = subject.batch

    compare(subject.sum_up([x, torch.cat([y[:-1], torch.tensor([label])])]), subject.sum_up([x[:-1], y[:-1]]))


@pytest.mark.parametrize("case", [BY_KERNELS["text"], ONE_BY_ONE["positions"]], ids=["kernels", "one by one"])
@pytest.mark.parametrize("word", [-1, 20])
def test_an_index_out_of_range_counts_as_zeros(hook: Any, case: Any, word: int) -> None:
    subject = make_subject(case)
    x, y = subject.batch
    broken = x.clone()
    broken[-1, 2] = word

    compare(subject.sum_up([broken, y]), subject.sum_up([x[:-1], y[:-1]]))


def test_weights_that_are_not_finite_give_zeros(hook: Any) -> None:
    subject = make_subject(BY_KERNELS["layers"])
    subject.values[0][0, 0] = float("nan")

    assert all(not gradient.any() for gradient in subject.sum_up())


def test_terms_of_very_different_sizes_do_not_escape_the_clip(hook: Any) -> None:
    subject = Subject(nn.Linear(10, 3, bias=False), *make_rows(1), lambda o, y: (o * 1e19).sum(1).mean(), clip=1e-3)
    tiny = [torch.full((1, 10), 2e-23), subject.batch[1]]  # Its squares vanish in float32.

    (found,) = subject.sum_up(tiny)

    assert float(found.double().norm()) < 1e-3


def test_many_samples_are_summed_as_few_at_a_time(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = make_subject(ONE_BY_ONE["a layer that is used twice"])
    expected = subject.sum_up()
    monkeypatch.setattr("syft_torch.federated.private_steps.gradients.MAX_WHOLE", 3000)

    compare(subject.sum_up(), expected)


def test_dropout_draws_for_each_sample(hook: Any) -> None:
    torch.manual_seed(0)
    subject = Subject(nn.Sequential(nn.Dropout(0.5), nn.Linear(10, 3)), *make_rows(1), clip=100.0)
    x, y = (part.expand(64, *part.shape[1:]).contiguous() for part in subject.batch)

    (weight, _) = subject.sum_up([x, y])

    used = weight.abs().sum(0) / subject.sum_up([x[:1], y[:1]])[0].abs().sum(0).clamp(min=1e-9)
    assert len(used.unique()) > 1
