"""Kernels that only move or add elements give what torch's kernels give, on tensors and on pointers."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_torch import structural  # noqa: E402
from syft_torch.structural import MASKING, SELECTING, STRUCTURAL, TRANSPOSING, convolve, real_dtype  # noqa: E402

X = torch.arange(24).reshape(2, 3, 4)
INDEX = torch.tensor([1, 0])
MASK = torch.tensor([True, False])
CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("view", (X, (6, 4))),
    ("permute", (X, (2, 0, 1))),
    ("slice", (X, 1, 1, 3)),
    ("slice", (X, 2, None, None, 2)),
    ("select", (X, 1, 2)),
    ("index_select", (X, 0, INDEX)),
    ("index", (X, [None, INDEX])),
    ("index", (X, [MASK])),
    ("index_put", (X, [INDEX, None, INDEX], torch.arange(6).reshape(2, 3))),
    ("index_put", (X, [None, INDEX], torch.arange(16).reshape(2, 2, 4), True)),
    ("index_put", (X, [MASK], torch.tensor(7))),
    ("scatter_add", (X, 0, torch.zeros(1, 3, 4, dtype=torch.int64), X[:1])),
    ("cumsum", (X, 1)),
    ("constant_pad_nd", (X, (1, 2), 0)),
    ("select_backward", (X[:, 0], (2, 3, 4), 1, 0)),
    ("slice_backward", (X[:, :2], (2, 3, 4), 1, 0, 2, 1)),
    ("diagonal_backward", (X[0].diagonal(), (3, 4), 0, 0, 1)),
    ("embedding_dense_backward", (X[0], torch.tensor([2, 0, 2]), 5, -1, False)),
    ("embedding_dense_backward", (X[0], torch.tensor([2, 0, 2]), 5, 2, False)),
]


def kernel(name: str) -> Any:
    return getattr(torch.ops.aten, name)


@pytest.mark.parametrize(("name", "args"), CALLS, ids=[f"{name}-{place}" for place, (name, _) in enumerate(CALLS)])
@pytest.mark.parametrize("remote", [False, True])
def test_a_kernel_gives_what_torch_gives(hook: Any, bob: Any, name: str, args: tuple[Any, ...], remote: bool) -> None:
    exact = kernel(name)(*args)
    shared = (0, 2) if name == "index_put" else (0, 3)  # The other tensors are public indices.
    given = [
        arg.send(bob) if remote and place in shared and isinstance(arg, torch.Tensor) else arg
        for place, arg in enumerate(args)
    ]

    found = STRUCTURAL[name](*given)

    assert torch.equal(found.get() if remote else found, exact)


def test_tensors_are_joined(hook: Any) -> None:
    assert torch.equal(STRUCTURAL["cat"]([X, X], 1), torch.cat([X, X], 1))
    assert torch.equal(STRUCTURAL["stack"]((X, X)), torch.stack((X, X)))


def test_what_is_not_initialized_is_zero() -> None:
    for name, args in (("new_empty", ((2, 2),)), ("new_empty_strided", ((2, 2), (2, 1))), ("empty_like", ())):
        assert STRUCTURAL[name](X, *args).sum() == 0


@pytest.mark.parametrize("reduce", ["multiply", "amax"])
def test_only_sums_are_scattered(reduce: str) -> None:
    with pytest.raises(ValueError, match="only sums are supported; use 'add'"):
        structural._scatter(X, 0, torch.zeros(1, 3, 4, dtype=torch.int64), X[:1], reduce)


def test_gradients_of_embeddings_are_not_scaled_by_frequency() -> None:
    with pytest.raises(ValueError, match="leave it out"):
        structural._sum_rows(X[0], torch.tensor([2, 0, 2]), 5, -1, True)


def test_images_are_convolved_with_remote_filters(hook: Any, bob: Any) -> None:
    images, filters = torch.randn(1, 2, 5, 5), torch.randn(3, 2, 2, 2)

    found = convolve(images.send(bob), filters.send(bob), stride=(2, 2))

    assert torch.equal(found.get(), torch.nn.functional.conv2d(images, filters, None, stride=(2, 2)))


def test_the_real_numbers_of_integers_have_the_default_dtype() -> None:
    assert real_dtype(X) is torch.get_default_dtype()
    assert real_dtype(X.to(torch.float64)) is torch.float64


def test_the_facts_are_about_operations_of_the_table() -> None:
    assert set(STRUCTURAL) >= MASKING | TRANSPOSING | SELECTING
