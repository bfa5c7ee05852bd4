from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402  # torch may be missing
from torch.nn import functional  # noqa: E402  # the same

from syft_core.hook.forms import form  # noqa: E402  # the same
from syft_core.plans.program import FACT, GUARD, Program, Routine, Slot, Step  # noqa: E402  # the same
from syft_torch import federated as fl  # noqa: E402  # the same
from syft_torch.federated.losses import Loss, ModelForms  # noqa: E402  # the same
from syft_torch.federated.private_steps.marks import LENGTH_OF_TRIAL as L  # noqa: E402  # the same
from syft_torch.federated.private_steps.samples import follow  # noqa: E402  # the same

from .recorded import Model, Subject, cross_entropy, make_images, make_rows, make_words  # noqa: E402  # the same

REALS = torch.randn(12, 3)


def squares(o: Any, y: Any) -> Any:
    return (o - y) ** 2


COUPLED = {
    "class weights": (nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0])), "class weights.*leave them out"),
    "ignored labels": (nn.CrossEntropyLoss(ignore_index=0), "ignore_index"),
    "contrastive": (lambda o, y: (o @ o.T).logsumexp(1).mean(), "__matmul__.*combines each sample with others"),
    "pairs": (lambda o, y: (o.unsqueeze(0) - o.unsqueeze(1)).square().mean(), "__sub__.*combines each sample"),
    "broadcast": (lambda o, y: squares(o.mean(1, keepdim=True), y).mean(), "combines each sample"),
    "std of the batch": (lambda o, y: cross_entropy(o / o.std(0), y), "'torch.Tensor.std' may compute over the batch"),
    "max of the batch": (lambda o, y: o.max(), "'torch.Tensor.max' may compute over the batch"),
    "largest loss": (lambda o, y: cross_entropy(o, y, reduction="none").max(0).values, "max"),
    "mean of the batch": (lambda o, y: cross_entropy(o - o.mean(0), y), "combines a mean over the batch"),
    "softmax over the batch": (lambda o, y: cross_entropy(o.softmax(0), y), "may compute over the batch"),
    "running sum": (lambda o, y: cross_entropy(o.cumsum(0), y), "cumsum"),
    "some rows": (lambda o, y: cross_entropy(o[:5], y[:5]), "picks some of the samples"),
    "one row": (lambda o, y: o[0].sum(), "picks some of the samples"),
    "shuffled": (lambda o, y: cross_entropy(o.flip(0), y), "flip.*not known to keep samples apart"),
    "shifted": (lambda o, y: cross_entropy(o.roll(1, 0), y), "roll"),
    "sorted": (lambda o, y: o.sort(0).values.mean(), "sort"),
    "joined": (lambda o, y: cross_entropy(torch.cat([o, o]), torch.cat([y, y])), "joins batches"),
    "root of a mean": (lambda o, y: squares(o, y.unsqueeze(1)).mean().sqrt(), "average over the batch only once"),
    "a mean of a mean and samples": (lambda o, y: (squares(o, y.unsqueeze(1)) + o.mean()).mean(), "combines a mean"),
    "a ratio": (lambda o, y: (o[:, 0] * y).sum() / y.sum(), "divides by a sum over the batch"),
    "a weighted mean": (lambda o, y: fl.WeightedMean((o[:, 0] * y).sum(), y.sum()), "divides by a sum"),
    "divided by the length": (lambda o, y: cross_entropy(o, y, reduction="sum") / o.shape[0], "use a mean"),
    "a sum and a mean": (lambda o, y: o.sum() + o.mean(), "combines a mean over the batch with samples, or with a sum"),
    "mixed with the batch": (lambda o, y: o.reshape(3, -1).square().mean(), "mixes the dimension of the samples"),
    "transposed": (lambda o, y: functional.softmax(o.T, dim=1).square().mean(), "may compute over the batch"),
    "all rows together": (lambda o, y: o.flatten().softmax(0).square().mean(), "may compute over the batch"),
    "positions in the batch": (lambda o, y: (o.sum(1) * torch.arange(o.shape[0])).mean(), "arange"),
    "normalized over the batch": (lambda o, y: functional.normalize(o, dim=0).sum(), "may compute over the batch"),
    "integers": (lambda o, y: (o.sum(1) * (y // (y + 1))).mean(), "divides integers"),
    "changed in place": (lambda o, y: cross_entropy(o.mul_(2.0), y), "mul_.*without changing a tensor in place"),
}  # fmt: skip


@pytest.mark.parametrize("case", COUPLED.values(), ids=COUPLED)
def test_a_loss_in_which_samples_depend_on_each_other_is_refused(hook: Any, case: Any) -> None:
    loss, why = case

    with pytest.raises(Exception, match=why) as refused:
        Subject(nn.Linear(10, 3), *make_rows(), loss).follow()

    assert isinstance(refused.value, fl.FederatedError)


MODELS = {
    "batch norm": (lambda: nn.Sequential(nn.Linear(10, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)), "GroupNorm"),
    "batch norm without statistics": (
        lambda: nn.Sequential(nn.Linear(10, 8), nn.BatchNorm1d(8, track_running_stats=False), nn.Linear(8, 3)),
        "batch_norm.*computes over the batch; replace it, e.g. by `nn.GroupNorm`",
    ),
    "a counter": (lambda: Model(count, last=nn.Linear(10, 3)), "without changing a tensor"),
    "the length as a factor": (lambda: Model(lambda m, x: m.last(x) * x.shape[0], last=nn.Linear(10, 3)), "length"),
    "a branch by the length": (
        lambda: Model(lambda m, x: m.last(x) if x.shape[0] > 3 else m.last(-x), last=nn.Linear(10, 3)), "length"
    ),
    "half precision": (lambda: Model(lambda m, x: m.last(x.half().float()), last=nn.Linear(10, 3)), "32 bits"),
    "gradients of its own": (lambda: Model(penalize, last=nn.Linear(10, 3)), "do not differentiate"),
    "no gradients": (lambda: Model(without_gradients, first=nn.Linear(10, 10), last=nn.Linear(10, 3)), "detach"),
}  # fmt: skip


def count(model: Any, x: Any) -> Any:
    return model.last(x).add_(1.0)


def penalize(model: Any, x: Any) -> Any:
    x = x.clone().requires_grad_()
    (found,) = torch.autograd.grad(model.last(x).sum(), x, create_graph=True)
    return model.last(x) + found.sum(1, keepdim=True)


def without_gradients(model: Any, x: Any) -> Any:
    with torch.no_grad():
        first = model.first(x)
    return model.last(first)


@pytest.mark.parametrize("case", MODELS.values(), ids=MODELS)
def test_a_model_in_which_samples_depend_on_each_other_is_refused(hook: Any, case: Any) -> None:
    make, why = case

    with pytest.raises(Exception, match=why) as refused:
        Subject(make(), *make_rows()).follow()

    assert isinstance(refused.value, fl.FederatedError)


def test_embeddings_that_count_the_batch_are_refused(hook: Any) -> None:
    for options in ({"scale_grad_by_freq": True}, {"max_norm": 1.0}):
        model = Model(
            lambda m, x: m.last(m.words(x).mean(1)), words=nn.Embedding(20, 8, **options), last=nn.Linear(8, 3)
        )
        with pytest.raises(fl.FederatedError, match="counts indices in the batch"):
            Subject(model, *make_words()).follow()


def test_a_convolution_over_the_batch_is_refused(hook: Any) -> None:
    convolve = lambda m, x: x + m.conv(x.T.unsqueeze(0)).squeeze(0).T  # noqa: E731  # short
    model = Model(convolve, conv=nn.Conv1d(10, 10, 3, padding=1))

    with pytest.raises(fl.FederatedError, match="conv1d.*first dimension is not that of the samples"):
        Subject(model, make_rows()[0], torch.randn(12, 10), lambda o, y: squares(o, y).mean()).follow()


def test_attention_among_samples_is_refused(hook: Any) -> None:
    attend = lambda m, x: m.last(functional.scaled_dot_product_attention(x, x, x))  # noqa: E731  # short

    with pytest.raises(fl.FederatedError, match="attention"):
        Subject(Model(attend, last=nn.Linear(10, 3)), *make_rows()).follow()


APART = {
    "permuted": lambda o, y: cross_entropy(o.unsqueeze(2).permute(2, 0, 1).squeeze(0), y),
    "products of matrices": lambda o, y: (o.unsqueeze(1) @ o.unsqueeze(2)).mean(),
    "einsum": lambda o, y: torch.einsum("bi,bj->bij", o, o).mean(),
    "norms": lambda o, y: o.norm(dim=1).mean(),
    "pieces": lambda o, y: cross_entropy(torch.cat(o.split(1, 1), 1), y),
    "stacked": lambda o, y: torch.stack([o, o * 2]).mean(),
    "one hot": lambda o, y: (functional.one_hot(y, 3) * o).mean(),
    "columns": lambda o, y: squares(o[:, 1:], y.unsqueeze(1)).mean(),
    "constants of the length": lambda o, y: (o + torch.zeros(o.shape[0], 3)).mean(),
    "mean of losses": lambda o, y: cross_entropy(o, y, reduction="none").mean(),
    "mean over both": lambda o, y: squares(o, y.unsqueeze(1)).sum(1).mean(0),
}


@pytest.mark.parametrize("loss", APART.values(), ids=APART)
def test_other_losses_are_taken_and_give_the_gradients_of_single_samples(hook: Any, loss: Any) -> None:
    subject = Subject(nn.Linear(10, 3), *make_rows(), loss)

    for one, other in zip(subject.sum_up(), subject.sum_one_by_one(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_a_model_of_images_is_taken(hook: Any) -> None:
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4).eval(), nn.AdaptiveAvgPool2d(1), nn.Flatten(1))

    assert Subject(nn.Sequential(model, nn.Linear(4, 3)), *make_images()).follow().kind == "mean"


# --- programs that no recording would make

FORMS = (
    form((4, 3), None, torch.float32, None, True),
    form((-1, 4), None, torch.float32),
    form((-1,), None, torch.int64),
)
PRODUCT = Step("torch", "torch.Tensor.matmul", (Slot(1), Slot(0)), {}, 1)
LOSS = "torch.nn.functional.cross_entropy"


def follow_steps(*steps: Step) -> None:
    last = 2 + sum(step.count for step in steps)
    program = Program("loss", FORMS, (), 0, (Routine(steps, Slot(last)),))
    follow([Loss(program, 2)], ModelForms(program, 0, 2))


def test_a_program_by_hand_is_followed(hook: Any) -> None:
    follow_steps(PRODUCT, Step("torch", LOSS, (Slot(3), Slot(2)), {}, 1))


@pytest.mark.parametrize(
    "steps",
    [
        (Step("torch", "torch.Tensor.view", (Slot(3), L, 3), {}, 1),
         Step("torch", "torch.Tensor.mean", (Slot(4),), {}, 1)),
        (Step("torch", "torch.Tensor.__mul__", (Slot(3), torch.rand(L, 1)), {}, 1),
         Step("torch", "torch.Tensor.mean", (Slot(4),), {}, 1)),
        (Step("torch", "torch.Tensor.sum", (Slot(3), 0), {"out": Slot(3)}, 1),
         Step("torch", "torch.Tensor.mean", (Slot(4),), {}, 1)),
        (Step("torch", LOSS, (Slot(3), Slot(2)), {"unheard": 1}, 1),),
        (Step("torch", "torch.Tensor.mean", (Slot(3), torch.zeros(())), {}, 1),),
        (Step("torch", "torch.Tensor.index_select", (Slot(3), 0, torch.tensor([1])), {}, 1),
         Step("torch", "torch.Tensor.mean", (Slot(4),), {}, 1)),
        (Step("", FACT, ("torch", "torch.Tensor.numel", None, Slot(3)), {}, 1),
         Step("torch", "torch.Tensor.__mul__", (Slot(3), Slot(4)), {}, 1),
         Step("torch", "torch.Tensor.mean", (Slot(5),), {}, 1)),
        (Step("", FACT, ("torch", "torch.Tensor.size", None, Slot(3), 0), {}, 1),
         Step("torch", "torch.full", ((Slot(4), 1), Slot(4)), {"dtype": torch.float32}, 1),
         Step("torch", "torch.Tensor.__mul__", (Slot(3), Slot(5)), {}, 1),
         Step("torch", "torch.Tensor.mean", (Slot(6),), {}, 1)),
        (Step("", FACT, ("torch", "torch.Tensor.size", None, Slot(3), 0), {}, 1),
         Step("", GUARD, ("lt", Slot(4), 100, True), {}, 0),
         Step("torch", "torch.Tensor.mean", (Slot(3),), {}, 1)),
        (Step("torch", "torch.div", (Slot(1),), {"other": Slot(3)}, 1),),
    ],
    ids=["view", "rows", "out", "argument", "dimension", "index", "numel", "full", "guard", "shape"],
)  # fmt: skip
def test_a_hand_made_program_that_could_mix_samples_is_refused(hook: Any, steps: Any) -> None:
    with pytest.raises(fl.FederatedError):
        follow_steps(PRODUCT, *steps)


def test_dividing_by_a_sum_by_name_is_refused(hook: Any) -> None:
    steps = (
        Step("torch", "torch.Tensor.mean", (Slot(3),), {}, 1),
        Step("torch", "torch.div", (torch.ones(()),), {"other": Slot(4)}, 1),
    )

    with pytest.raises(fl.FederatedError, match="divides by a sum over the batch"):
        follow_steps(PRODUCT, *steps)
