"""Losses of sequences of different lengths, in terms of operations that may run on remote and on private data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

_NEVER = -1e30
"""The logarithm of a probability of zero: with infinity, gradients would be NaN."""


def ctc_loss(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> torch.Tensor:
    """Return the connectionist temporal classification loss, with the gradients of torch's kernel.

    The kernel reads the lengths as numbers. Here they stay tensors, so that no shape depends on them; the loss of a
    sequence with a length for which the kernel raises an error is NaN.
    """
    if log_probs.dim() == 2:  # one sequence
        batch = log_probs.unsqueeze(1), targets.reshape(1, -1), input_lengths, target_lengths
        found = ctc_loss(*batch, blank, reduction, zero_infinity)
        return found.reshape(()) if reduction == "none" else found
    inputs, wanted = (_to_tensor(log_probs, lengths) for lengths in (input_lengths, target_lengths))
    labels = _arrange(targets.long(), target_lengths, wanted, blank)
    losses = _score(log_probs, labels, inputs, wanted, blank)
    if zero_infinity:
        losses = torch.where(losses == torch.inf, 0.0, losses)
    if reduction == "mean":
        return (losses / wanted.clamp(min=1)).mean()
    if reduction == "sum":
        return losses.sum()
    if reduction == "none":
        return losses
    raise ValueError(f"cannot compute the CTC loss: {reduction!r} is not a reduction; use 'mean', 'sum' or 'none'")


def _to_tensor(near: torch.Tensor, lengths: Any) -> torch.Tensor:
    if not isinstance(lengths, torch.Tensor):
        numbers = list(lengths) if isinstance(lengths, Sequence) else [lengths]
        lengths = near.new_tensor(numbers, dtype=torch.int64)
    return lengths.reshape(-1).long()


def _count(near: torch.Tensor, length: int) -> torch.Tensor:
    """Return the numbers from 0, next to another tensor."""
    return near.new_ones((length,), dtype=torch.int64).cumsum(0) - 1


def _arrange(targets: torch.Tensor, given: Any, wanted: torch.Tensor, blank: int) -> torch.Tensor:
    """Return a row of labels for each sequence, with blanks after its end."""
    if targets.dim() > 1:
        return torch.where(_count(targets, targets.shape[1]) < wanted.unsqueeze(1), targets, blank)
    # The labels of all sequences follow each other. If the lengths are a tensor, each may be that of all of them.
    width = targets.shape[0] if isinstance(given, torch.Tensor) else max([0, *given])
    places = _count(targets, width)
    rows = (wanted.cumsum(0) - wanted).unsqueeze(1) + places
    found = functional.pad(targets, (0, 1))[rows.clamp(max=targets.shape[0])]
    return torch.where(places < wanted.unsqueeze(1), found, blank)


def _score(
    log_probs: torch.Tensor, labels: torch.Tensor, inputs: torch.Tensor, wanted: torch.Tensor, blank: int
) -> torch.Tensor:
    """Return the negative logarithm of the probability of each row of labels: the forward algorithm."""
    steps, width = log_probs.shape[0], labels.shape[1]
    path = _alternate(torch.full_like(labels, blank), labels, blank)
    repeats = functional.pad((labels[:, 1:] == labels[:, :-1]).to(log_probs.dtype), (1, 0))[:, :width] * _NEVER
    barrier = _alternate(torch.full_like(repeats, _NEVER), repeats, _NEVER)
    emitted = log_probs.clamp(min=_NEVER).gather(2, path.unsqueeze(0).expand(steps, -1, -1))
    runs = _count(log_probs, steps).unsqueeze(1) < inputs
    scores = functional.pad(log_probs.new_zeros((labels.shape[0], 1)), (0, 2 * width), value=_NEVER)
    for step in range(steps):
        wide = functional.pad(scores, (2, 0), value=_NEVER)
        arrived = torch.stack([scores, wide[:, 1:-1], wide[:, :-2] + barrier]).logsumexp(0)
        scores = torch.where(runs[step].unsqueeze(1), arrived + emitted[step], scores)
    ends = torch.stack([2 * wanted, 2 * wanted - 1], 1)
    last = scores.gather(1, ends.clamp(0, 2 * width))
    losses = -torch.where(ends >= 0, last, _NEVER).logsumexp(1)
    losses = torch.where(losses > -_NEVER / 2, torch.inf, losses)
    # The kernel's gradient assumes that the probabilities of a step sum to 1, and adds them.
    mass = (log_probs.exp() * runs.unsqueeze(2)).sum((0, 2))
    is_possible = (inputs.clamp(0, steps) == inputs) & (wanted.clamp(0, width) == wanted)
    return torch.where(is_possible, losses + (mass - mass.detach()), torch.nan)


def _alternate(even: torch.Tensor, odd: torch.Tensor, last: float) -> torch.Tensor:
    """Return the columns of two tensors in turn, and a last one of a number."""
    return functional.pad(torch.stack([even, odd], 2).flatten(1), (0, 1), value=last)


def ctc_loss_by_number(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> torch.Tensor:
    """Return ``ctc_loss``, with the reduction as `torch.ctc_loss` takes it: a number."""
    name = ("none", "mean", "sum")[reduction]
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, name, zero_infinity)
