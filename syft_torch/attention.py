"""Attention on encoded numbers: torch's fused kernel and its gradient, in terms of simpler kernels."""

from __future__ import annotations

import math

import torch

from syft_core.exceptions import OperationNotAllowedError

MASKED = -10_000.0
"""Added to scores that a mask excludes, instead of minus infinity, which cannot be encoded; its power of e is 0."""


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: torch.Tensor | None = None,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return softmax(q·kᵀ·scale + mask)·v, and zeros instead of what the fused kernel keeps for its gradient."""
    weights = _weigh(query, key, dropout_p, is_causal, attn_mask, scale)
    return weights @ value, torch.zeros(query.shape[:-1])


def attend_backward(
    gradient: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    result: torch.Tensor,
    _kept: torch.Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: torch.Tensor | None = None,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of q, k and v."""
    weights = _weigh(query, key, dropout_p, is_causal, attn_mask, scale)
    scores = weights * (gradient @ value.transpose(-2, -1) - (gradient * result).sum(-1, keepdim=True))
    scores = scores * _find_scale(query, scale)
    return scores @ key, scores.transpose(-2, -1) @ query, weights.transpose(-2, -1) @ gradient


def _weigh(
    query: torch.Tensor,
    key: torch.Tensor,
    dropout_p: float,
    is_causal: bool,
    mask: torch.Tensor | None,
    scale: float | None,
) -> torch.Tensor:
    if dropout_p:
        raise OperationNotAllowedError.refused_by(
            "NumericWrapper", "attention with dropout", "there is no rule for it; call `model.eval()`, or use dropout=0"
        )
    scores = (query * _find_scale(query, scale)) @ key.transpose(-2, -1)
    if is_causal:
        mask = torch.full(scores.shape[-2:], MASKED).triu(1)
    if mask is not None:
        scores = scores + (mask.clamp(min=MASKED) if type(mask) is torch.Tensor else mask)
    return scores.softmax(-1)


def _find_scale(query: torch.Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(query.shape[-1]) if scale is None else scale
