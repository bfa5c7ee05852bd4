from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional  # noqa: E402  # torch may be missing

from syft_torch.federated.private_steps.guards import replace_invalid  # noqa: E402  # the same

NAN = float("nan")


def run(name: str, *args: Any, length: int = 3, **kwargs: Any) -> tuple[Any, list[bool]]:
    flags: list[Any] = []
    found = replace_invalid(name, args, kwargs, length, flags)
    return found, torch.stack(flags).all(0).logical_not().tolist()


@pytest.mark.parametrize("labels", [[0, 3, -1], [1, 1 << 40, -100]])
def test_labels_out_of_range_are_replaced_and_named(labels: list[int]) -> None:
    scores = torch.randn(3, 3)

    (args, kwargs), flags = run("torch.nn.functional.cross_entropy", scores, torch.tensor(labels), reduction="mean")

    assert flags == [False, True, True]
    assert functional.cross_entropy(*args, **kwargs).isfinite()


def test_arguments_may_have_names() -> None:
    target = torch.tensor([0, 1, 9])

    (args, kwargs), flags = run("torch.nn.functional.nll_loss", torch.zeros(3, 2), target=target)

    assert flags == [False, False, True]
    assert kwargs["target"].tolist() == [0, 1, 0]
    assert len(args) == 1


def test_a_sample_with_one_wrong_index_of_many_is_named() -> None:
    indices = torch.tensor([[0, 1], [4, 5], [2, -1]])

    (args, _), flags = run("torch.nn.functional.embedding", indices, torch.zeros(5, 2))

    assert flags == [False, True, True]
    assert args[0].tolist() == [[0, 1], [4, 0], [2, 0]]


def test_indices_of_a_sample_may_be_consecutive_rows() -> None:
    _, flags = run("torch.nn.functional.embedding", torch.tensor([0, 1, 4, 5]), torch.zeros(5, 2), length=2)

    assert flags == [False, True]


@pytest.mark.parametrize("value", [-0.1, 1.1, NAN, float("inf")])
@pytest.mark.parametrize("place", [0, 1])
def test_probabilities_out_of_range_are_replaced(value: float, place: int) -> None:
    pair = [torch.full((3,), 0.5), torch.full((3,), 0.5)]
    pair[place][1] = value

    (args, _), flags = run("torch.nn.functional.binary_cross_entropy", *pair)

    assert flags == [False, True, False]
    assert functional.binary_cross_entropy(*args).isfinite()


def test_classes_and_picked_elements_are_checked() -> None:
    labels = torch.tensor([0, 2, 3])

    _, of_classes = run("torch.nn.functional.one_hot", labels, 3)
    _, of_elements = run("torch.Tensor.gather", torch.zeros(3, 2), 1, labels.unsqueeze(1))

    assert of_classes == [False, False, True]
    assert of_elements == [False, True, True]
