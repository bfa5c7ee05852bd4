from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402  # torch may be missing

from syft_torch.federated.private_steps import kernels  # noqa: E402  # the same

from .recorded import Model, Subject, make_images, make_words  # noqa: E402  # the same


def make_parts() -> tuple[Any, Any]:
    torch.manual_seed(0)
    return torch.randn(5, 4, 7), torch.randn(5, 4, 6)


FACTORS = torch.tensor([0.1, 0.5, 1.0, 0.7, 0.3])
VALID = torch.tensor([True, True, False, True, True])


def test_the_norms_and_sums_of_a_gram_matrix_are_those_of_whole_gradients() -> None:
    inputs, outputs = make_parts()
    whole, gram = kernels.Whole(outputs.mT @ inputs), kernels.Gram(inputs, outputs)

    torch.testing.assert_close(gram.squares, whole.squares, rtol=1e-5, atol=0)
    torch.testing.assert_close(gram.sum_up(FACTORS, VALID), whole.sum_up(FACTORS, VALID))


def test_terms_that_cancel_out_do_not_make_a_norm_too_small() -> None:
    inputs = torch.ones(1, 2, 3) * 1e6
    outputs = torch.stack([torch.ones(3), -torch.ones(3)]).unsqueeze(0) * 1e6

    gram = kernels.Gram(inputs, outputs)

    assert float(gram.squares.sqrt()) >= 2**-8 * 2 * 3e12 * 0.99


def test_the_norms_of_a_product_are_right_where_float32_would_lose_them() -> None:
    outer = kernels.Outer(torch.full((1, 4), 1e-30), kernels.Scaled(torch.full((1, 4), 1e30)))

    assert float(outer.squares) == pytest.approx(16.0, rel=1e-5)


def test_equal_words_of_a_sample_are_one_row() -> None:
    outputs = torch.tensor([[[3.0], [1.0], [4.0]]])
    rows = kernels.Rows(torch.tensor([[2, 2, 0]]), outputs, torch.zeros(5, 1))

    assert float(rows.squares) == pytest.approx(32.0)
    found = rows.sum_up(torch.tensor([0.5]), torch.tensor([True]))
    assert found.flatten().tolist() == pytest.approx([2.0, 0, 2.0, 0, 0])


@pytest.mark.parametrize("kind", ["linear", "convolution"])
def test_large_weights_are_handled_without_whole_gradients(
    hook: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    torch.manual_seed(0)
    if kind == "linear":
        model = Model(lambda m, x: m.last(m.words(x)).sum(1), words=nn.Embedding(20, 16), last=nn.Linear(16, 12))
        subject = Subject(model, *make_words())
    else:
        subject = Subject(nn.Sequential(nn.Conv2d(2, 40, 8, stride=2), nn.Flatten()), *make_images())
    expected = subject.sum_up()
    monkeypatch.setattr(kernels, "MAX_WHOLE", 0)
    used = []
    monkeypatch.setattr(kernels, "Gram", lambda *parts: used.append(1) or GRAM(*parts))

    found = subject.sum_up()

    assert used
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


GRAM = kernels.Gram
