"""The CTC loss on remote data is that of torch: on pointers, in plans, and on private data."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402  # torch may be missing
from torch.nn import functional  # noqa: E402  # the same

import syft_core as sy  # noqa: E402
from syft_core.exceptions import NotCollocatedError  # noqa: E402
from syft_core.hook.chain import plain_below  # noqa: E402
from syft_torch.sequences import ctc_loss  # noqa: E402

STEPS, COUNT, CLASSES, WIDTH = 9, 4, 5, 3
INPUTS, WANTED = torch.tensor([9, 7, 2, 4]), torch.tensor([3, 2, 3, 0])
"""The third sequence is too short for its labels: its loss is infinite."""


def make(dtype: Any = torch.float64) -> tuple[Any, Any]:
    torch.manual_seed(2)
    return torch.randn(STEPS, COUNT, CLASSES, dtype=dtype), torch.tensor([[1, 1, 2], [3, 4, 9], [1, 2, 3], [7, 7, 7]])


def follow(rows: Any) -> Any:
    return torch.cat([row[:length] for row, length in zip(rows, WANTED, strict=True)])


def differentiate(loss: Any, scores: Any, targets: Any, lengths: Any, normalize: bool, **options: Any) -> list[Any]:
    scores = scores.clone() if normalize else scores.log_softmax(2).detach()
    scores.requires_grad_()
    found = loss(scores.log_softmax(2) if normalize else scores, targets, *lengths, **options)
    found.sum().backward()
    return [found.detach(), scores.grad]


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("form", ["rows", "one after another", "numbers", "numbers, one after another"])
def test_the_loss_and_its_gradients_are_those_of_torch(normalize: bool, reduction: str, form: str) -> None:
    scores, rows = make()
    targets = follow(rows) if "another" in form else rows
    lengths = (INPUTS.tolist(), WANTED.tolist()) if "numbers" in form else (INPUTS, WANTED)
    options = {"reduction": reduction, "zero_infinity": True}

    found, expected = (
        differentiate(loss, scores, targets, lengths, normalize, **options) for loss in (ctc_loss, functional.ctc_loss)
    )

    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-9)


def test_a_sequence_that_is_too_short_has_an_infinite_loss() -> None:
    scores, targets = make()

    found = ctc_loss(scores.log_softmax(2), targets, INPUTS, WANTED, reduction="none")

    assert found.isinf().tolist() == [False, False, True, False]


def test_one_sequence_needs_no_batch() -> None:
    scores, targets = make()
    given = scores[:, 0].log_softmax(1), targets[0], INPUTS[0], WANTED[0]

    assert ctc_loss(*given).item() == pytest.approx(functional.ctc_loss(*given).item())


@pytest.mark.parametrize("lengths", [(INPUTS + 1, WANTED), (INPUTS, 4 - WANTED), (INPUTS - 5, WANTED)])
def test_the_loss_of_lengths_that_torch_refuses_is_not_a_number(lengths: Any) -> None:
    scores, targets = make()
    targets = targets.clamp(max=CLASSES - 1)
    with pytest.raises(RuntimeError):
        functional.ctc_loss(scores.log_softmax(2), targets, *lengths)

    assert ctc_loss(scores.log_softmax(2), targets, *lengths).isnan()


def test_an_unknown_reduction_is_refused() -> None:
    scores, targets = make()

    with pytest.raises(ValueError, match="'max' is not a reduction; use 'mean'"):
        ctc_loss(scores.log_softmax(2), targets, INPUTS, WANTED, reduction="max")


@pytest.mark.parametrize("is_private", [False, True], ids=["plain", "private"])
@pytest.mark.parametrize("as_numbers", [False, True], ids=["tensors", "numbers"])
def test_a_layer_computes_it_on_remote_data(bob: Any, is_private: bool, as_numbers: bool) -> None:
    def send(x: Any) -> Any:
        if not is_private:
            return x.send(bob)
        tag = f"#{bob.objects_count}"
        bob.load_data([x.private_tensor([]).tag(tag)])
        return bob.search(tag)[0]

    scores, targets = make(torch.float32)
    loss = nn.CTCLoss(zero_infinity=True)
    expected = differentiate(loss, scores, targets, (INPUTS, WANTED), True)
    weights = torch.zeros(CLASSES, requires_grad=True)
    weights = weights.send(bob) if not is_private else torch.zeros(CLASSES).send(bob).requires_grad_()
    lengths = (
        (tuple(INPUTS.tolist()), tuple(WANTED.tolist())) if as_numbers else (send(INPUTS.clone()), send(WANTED.clone()))
    )

    found = loss((send(scores) + weights).log_softmax(2), send(targets), *lengths)
    found.backward()

    torch.testing.assert_close(plain_below(bob.get_obj(found.id_at_location)).detach(), expected[0])
    gradient = plain_below(bob.get_obj(weights.id_at_location)).grad
    torch.testing.assert_close(gradient, expected[1].sum((0, 1)), atol=1e-6, rtol=1e-5)


def test_the_function_without_a_name_for_its_reduction_computes_the_same(bob: Any) -> None:
    scores, targets = make()
    given = [scores.log_softmax(2), targets, INPUTS, WANTED]

    found = torch.ctc_loss(*[x.clone().send(bob) for x in given], 0, 2, True)

    torch.testing.assert_close(found.get(), torch.ctc_loss(*given, 0, 2, True))


def test_local_lengths_are_refused_with_advice(bob: Any) -> None:
    scores, targets = make()

    with pytest.raises(NotCollocatedError, match=r"send the local one: `y = y.send\('bob'\)`"):
        functional.ctc_loss(scores.log_softmax(2).send(bob), targets.send(bob), INPUTS, WANTED)


@pytest.mark.parametrize("serialize", [False, True])
def test_a_plan_computes_it(hook: Any, serialize: bool) -> None:
    scores, targets = make()
    worker = sy.VirtualWorker(hook, id="dora", serialize=serialize)

    def compute(x: Any, y: Any, inputs: Any, wanted: Any) -> Any:
        return functional.ctc_loss(x.log_softmax(2), y, inputs, wanted, zero_infinity=True)

    given = [scores, targets, INPUTS.clone(), WANTED.clone()]
    plan = sy.Plan("loss", compute, args_shape=[x.shape for x in given], args_dtypes=[x.dtype for x in given]).build()

    found = plan.send(worker)(*[x.send(worker) for x in given])

    torch.testing.assert_close(found.get(), compute(*given))
