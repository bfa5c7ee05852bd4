"""Attention on encoded numbers: torch's fused kernel and its gradient, in terms of simpler kernels."""

from __future__ import annotations

import math

import torch
from torch.nn import functional

from syft_core.exceptions import OperationNotAllowedError

KEYS = 1
"""Torch's number for a mask that excludes keys of each sequence, not of each query."""
LAYERS = 8
"""Number of weights and biases of a layer that follow those of the attention."""


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
    """Return softmax(q·kᵀ·scale + mask)·v, and zeros for the values that the fused kernel keeps for its gradient."""
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


def attend_with_heads(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    width: int,
    heads: int,
    weight: torch.Tensor,
    bias: torch.Tensor,
    out_weight: torch.Tensor,
    out_bias: torch.Tensor,
    mask: torch.Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return multi-head attention and its weights: the kernel that torch uses in evaluation."""
    parts = zip((query, key, value), weight.chunk(3), bias.chunk(3), strict=True)
    q, k, v = (functional.linear(x, w, b).unflatten(-1, (heads, width // heads)).transpose(1, 2) for x, w, b in parts)
    scores = (q * _find_scale(q, None)) @ k.transpose(-2, -1)
    if mask is not None:
        excluded = torch.zeros(mask.shape).masked_fill(mask.bool(), -math.inf)
        scores = scores + (excluded[:, None, None, :] if mask_type == KEYS else excluded)
    weights = scores.softmax(-1)
    result = functional.linear((weights @ v).transpose(1, 2).flatten(2), out_weight, out_bias)
    if not need_weights:
        return result, None
    return result, weights.mean(1) if average_attn_weights else weights


def encode_with_attention(
    x: torch.Tensor,
    width: int,
    heads: int,
    weight: torch.Tensor,
    bias: torch.Tensor,
    out_weight: torch.Tensor,
    out_bias: torch.Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    *layers: torch.Tensor,
    mask: torch.Tensor | None = None,
    mask_type: int | None = None,
) -> torch.Tensor:
    """Return a layer of a transformer's encoder: the kernel that torch uses in evaluation.

    The layers are the weights and biases of two norms and two linear layers, and possibly the mask and its type.
    """
    if len(layers) > LAYERS:
        mask, mask_type = layers[LAYERS], layers[LAYERS + 1] if len(layers) > LAYERS + 1 else mask_type

    def normalize(y: torch.Tensor, place: int) -> torch.Tensor:
        return functional.layer_norm(y, (width,), layers[place], layers[place + 1], eps)

    def attend_to(y: torch.Tensor) -> torch.Tensor:
        options = (width, heads, weight, bias, out_weight, out_bias, mask, False, True, mask_type)
        return attend_with_heads(y, y, y, *options)[0]

    def feed_forward(y: torch.Tensor) -> torch.Tensor:
        activate = functional.gelu if use_gelu else functional.relu
        return functional.linear(activate(functional.linear(y, layers[4], layers[5])), layers[6], layers[7])

    for place, change in ((0, attend_to), (2, feed_forward)):
        x = x + change(normalize(x, place)) if norm_first else normalize(x + change(x), place)
    return x


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
        mask = torch.full(scores.shape[-2:], -math.inf).triu(1)
    if mask is not None:
        scores = scores + mask
    return scores.softmax(-1)


def _find_scale(query: torch.Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(query.shape[-1]) if scale is None else scale
