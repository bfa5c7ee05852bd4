"""Stand-ins: what replaces the results of an operation that failed because of values.

A caller who may not have the values must not learn that it failed. So a stand-in has zeros of the same form in as much
memory, and a graph that behaves like that of the real result: it keeps the same operands and as many bytes, raises the
same errors after these were changed or freed, and gives gradients, zeros, to the same operands, of any order. It takes
all of this from a *twin*: the result of the same call on operands with other values, with its graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

from syft_core.values import Nested, Tensor
from syft_torch.graphs import iter_saved

Pair = tuple[Tensor, Tensor]
"""An operand of a twin, after the call, and the real one."""


class _Twin(NamedTuple):
    """Results of a call on other operands, and where their gradients go."""

    results: list[Tensor]
    edges: list[GradientEdge]
    """The edges at which the graph ends, one for each tensor that gets a gradient from the stand-in."""
    pairs: list[Pair]


def make_stand_ins(twins: Sequence[Tensor], operands: Sequence[Pair]) -> list[Tensor]:
    """Return stand-ins for the results of a call, given those of a twin and the operands of both."""
    starts = [(edge, real) for twin, real in operands if real.requires_grad and (edge := _edge_of(twin, twins))]
    if not (starts and any(twin.requires_grad for twin in twins) and torch.is_grad_enabled()):
        return _make_blanks(twins, operands)
    edges, starting = map(list, zip(*starts, strict=True))
    return list(_StandIn.apply(_Twin(list(twins), edges, list(operands)), *starting))


class _StandIn(torch.autograd.Function):  # type: ignore[misc]  # torch has no types here
    """Zeros with a graph like that of a twin."""

    @staticmethod
    def forward(ctx: Nested, twin: _Twin, *operands: Tensor) -> tuple[Tensor, ...]:
        made = _make_blanks(twin.results, twin.pairs)
        fixed = [blank for blank, known in zip(made, twin.results, strict=True) if not known.requires_grad]
        ctx.mark_non_differentiable(*fixed)
        ctx.set_materialize_grads(False)
        ctx.twin, ctx.like = twin, [operand.new_zeros(()).expand(operand.shape) for operand in operands]
        with torch.enable_grad():  # They lead to the operands without keeping their memory.
            ctx.anchors = [operand.unsqueeze(0)[:0].sum() for operand in operands]
        kept = _find_kept(twin, made)
        ctx.save_for_backward(*kept)
        ctx.keeps = bool(kept)
        return tuple(made)

    @staticmethod
    def backward(ctx: Nested, *gradients: Tensor) -> tuple[Nested, ...]:
        _ = ctx.keeps and ctx.saved_tensors  # Raises like the real graph if one was changed or freed.
        given = [(known, grad) for known, grad in zip(ctx.twin.results, gradients, strict=True) if grad is not None]
        starts = [torch.zeros_like(known).requires_grad_(grad.requires_grad) for known, grad in given]
        further = torch.is_grad_enabled()
        found = torch.autograd.grad(
            [known for known, _ in given], ctx.twin.edges, starts, True, further, allow_unused=True
        )
        answer: list[Nested] = [None if grad is None else like for grad, like in zip(found, ctx.like, strict=True)]
        places = [place for place, grad in enumerate(found) if grad is not None and grad.requires_grad]
        if further and places:
            answers = _continue(ctx, [found[place] for place in places], starts, [grad for _, grad in given])
            for place, made in zip(places, answers, strict=True):
                answer[place] = made
        return (None, *answer)


def _continue(ctx: Nested, found: list[Tensor], starts: list[Tensor], gradients: list[Tensor]) -> tuple[Tensor, ...]:
    """Return stand-ins for gradients in a graph: they depend on the operands and on the gradients of the results."""
    pairs = list(zip(starts, gradients, strict=True))
    linked = [pair for pair in pairs if pair[0].requires_grad]
    edges = [*ctx.twin.edges, *[get_gradient_edge(start) for start, _ in linked]]
    twin = _Twin(found, edges, [*ctx.twin.pairs, *pairs])
    made: tuple[Tensor, ...] = _StandIn.apply(twin, *ctx.anchors, *[gradient for _, gradient in linked])
    return made


def _edge_of(twin: Tensor, results: Sequence[Tensor]) -> GradientEdge | None:
    """Return the gradient edge of a twin's operand; if it was changed in place, the edge before that."""
    if not twin.requires_grad:
        return None
    changed = next((node for node in _iter_nodes([twin, *results]) if _is_start_of(node, twin)), None)
    return get_gradient_edge(twin) if changed is None else GradientEdge(changed, 0)


def _is_start_of(node: Nested, twin: Tensor) -> bool:
    """Return whether a node made an operand before the call began; nodes of examples know their storage."""
    return bool(getattr(node, "storage", None) == twin.untyped_storage()._cdata)


def _iter_nodes(roots: Sequence[Tensor]) -> Iterator[Nested]:
    waiting = [root.grad_fn for root in roots if root.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        yield node
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)


def _find_kept(twin: _Twin, made: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors that a stand-in's graph keeps: operands, results, and memory of its own like its twin's."""
    known = {_memory_of(operand): real for operand, real in twin.pairs}
    known |= {_memory_of(result): blank for result, blank in zip(twin.results, made, strict=True)}
    kept: dict[int, Tensor] = {}
    for node in _iter_nodes(twin.results):
        for saved in iter_saved(node):
            memory = _memory_of(saved)
            kept[memory] = known.get(memory, saved.detach())
    return list(kept.values())


def _make_blanks(results: Sequence[Tensor], pairs: Sequence[Pair]) -> list[Tensor]:
    """Return zeros of the forms of results; those that share memory share as much of it here."""
    device = pairs[0][1].device if pairs else None
    memory: dict[int, Tensor] = {}
    made = []
    for known in results:
        size = known.untyped_storage().nbytes()
        where = known.device if device is None else device
        own = memory.setdefault(_memory_of(known), torch.zeros(size, dtype=torch.uint8, device=where))
        place = known.storage_offset(), known.shape, known.stride()
        made.append(torch.empty(0, dtype=known.dtype, device=where).set_(own.untyped_storage(), *place))
    return made


def _memory_of(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
