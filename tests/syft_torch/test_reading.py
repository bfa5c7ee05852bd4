"""Read the numbers of tensors that are not dense, for owners who look at what would leave."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")
import torch

from syft_core.workers.party.store import Stored
from syft_worker.desk.summaries import summarize

SMALL, LARGE = [[1.0, 0.0], [0.0, 2.0]], "the 20 numbers that it stores, of 400; the others are zero"


def large() -> Any:
    return torch.eye(20)


KINDS: dict[str, tuple[Callable[[], Any], str, Any, str]] = {
    "coo": (lambda: torch.tensor(SMALL).to_sparse(), "float32 sparse_coo", SMALL, ""),
    "csr": (lambda: torch.tensor(SMALL).to_sparse_csr(), "float32 sparse_csr", SMALL, ""),
    "csc": (lambda: torch.tensor(SMALL).to_sparse_csc(), "float32 sparse_csc", SMALL, ""),
    "bsr": (lambda: torch.tensor(SMALL).to_sparse_bsr((1, 1)), "float32 sparse_bsr", SMALL, ""),
    "large coo": (lambda: large().to_sparse(), "float32 sparse_coo", [1.0] * 20, LARGE),
    "large csr": (lambda: large().to_sparse_csr(), "float32 sparse_csr", [1.0] * 20, LARGE),
    "quantized": (
        lambda: torch.quantize_per_tensor(torch.tensor(SMALL), 1.0, 0, torch.quint8),
        "quint8 per_tensor_affine",
        SMALL,
        "the numbers that its quantized ones stand for",
    ),
    "meta": (lambda: torch.empty(2, device="meta"), "", None, "it has a form, but no numbers"),
    "nested": (
        lambda: torch.nested.nested_tensor([torch.ones(1), torch.zeros(2)]),
        "float32 nested",
        [1.0, 0.0, 0.0],
        "the numbers of its 2 parts, one after the other",
    ),
    "complex": (lambda: torch.ones(2, dtype=torch.complex64), "complex64", ["(1+0j)", "(1+0j)"], ""),
    "of one byte": (lambda: torch.ones(2).to(torch.float8_e4m3fn), "float8_e4m3fn", [1.0, 1.0], ""),
    "in a graph": (lambda: torch.ones(2, requires_grad=True), "", [1.0, 1.0], ""),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_owner_sees_tensors_of_every_kind(hook: Any, kind: str) -> None:
    make, words, values, note = KINDS[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Torch says of some kinds that they are new or old.
        summary = summarize(Stored(make(), "me"))

    assert summary["form"].partition("]")[2].strip() == words or summary["form"] == f"Tensor {words}"
    assert summary.get("values") == values
    assert summary.get("note", "") == note


def test_large_tensors_of_complex_numbers_are_shown_by_their_parts(hook: Any) -> None:
    summary = summarize(Stored(torch.full((100,), 3 + 4j), "me"))

    assert (summary["numbers"], summary["min"], summary["max"]) == (100, 3.0, 4.0)
    assert summary["note"] == "their real and imaginary parts"
