"""The model of a run: recorded with its loss for the workers, and as one flat tensor for the strategy."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import nn

from syft_core.hook.forms import Form
from syft_core.location import Location
from syft_core.values import Function, Kwargs, Tensor
from syft_torch.federated import checkpoint
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.evaluation import compute_loss, require_answer
from syft_torch.federated.layout import Layout
from syft_torch.federated.losses import Recorded, record
from syft_torch.federated.strategies import Strategy, Update, combine, goes_by_parts, is_finite, merge

PART = 1 << 20
"""Number of weights combined at once, if the strategy works by parts."""


class RecordedModel:
    """A model and the recording of its loss; the recording does not follow changes of the model."""

    def __init__(self, model: nn.Module, loss: Function, forms: Sequence[Form], lengths: Sequence[int]) -> None:
        self.model = model
        self.recorded = _record_loss(model, loss, forms, lengths)
        self.layout = Layout(self.recorded.trained, self.recorded.parameters)
        self.shapes = self._find_shapes()

    def read_weights(self) -> Tensor:
        """Return a copy of the weights: the parameters, then the buffers that training changes."""
        return self.layout.join(self.recorded.trained)

    def set_weights(self, flat: Tensor) -> None:
        """Change the weights of the model."""
        with torch.no_grad():
            for tensor, value in zip(self.recorded.trained, self.layout.split(flat), strict=True):
                tensor.copy_(value)

    def combine(self, strategy: Strategy, find_weights: Callable[[], Tensor], updates: list[Update]) -> None:
        """Let the strategy combine the updates, in parts if that is possible, and set the weights of the model."""
        is_plain = self.layout.parameters == self.layout.total
        if is_plain and goes_by_parts(strategy) and all(each.is_contiguous() for each in self.recorded.trained):
            self._combine_parts(strategy, merge(updates))
        else:
            self.set_weights(combine(strategy, self.layout, find_weights(), updates))

    def _combine_parts(self, strategy: Strategy, updates: list[Update]) -> None:
        """Combine the parameters in parts, so that no further copy of them is needed; change none if one is wrong."""
        for is_trial in (True, False):
            for part, start in self._split_parts():
                moved = [replace(u, difference=u.difference[start : start + len(part)]) for u in updates]
                new = strategy.aggregate(part.to(self.layout.dtype), moved)
                if is_trial and not is_finite(new):
                    raise FederatedError.strategy(repr(strategy), "`aggregate` returned values that are not finite")
                if not is_trial:
                    part.copy_(new)

    def _split_parts(self) -> Iterator[tuple[Tensor, int]]:
        start = 0
        for tensor in self.recorded.trained:
            for part in tensor.detach().view(-1).split(PART):
                yield part, start
                start += part.numel()

    def copy_to(self, location: Location, weights: Tensor, difference: Tensor) -> nn.Module:
        """Return a copy of the model on a worker, with the weights that it has trained."""
        names = {id(tensor): name for name, tensor in _named_tensors(self.model)}
        model: nn.Module = copy.deepcopy(self.model).send(location)
        own = dict(_named_tensors(model))
        with torch.no_grad():
            values = self.layout.split(weights.send(location) + difference)
            for tensor, value in zip(self.recorded.trained, values, strict=True):
                own[names[id(tensor)]].copy_(value)
        return model

    def identify(self) -> Kwargs:
        """Return the facts in which the model of a run and that of its checkpoint must agree."""
        return {"model": self._find_shapes(), "fixed": self._digest_fixed()}

    def _find_shapes(self) -> list[list[object]]:
        names = {id(tensor): name for name, tensor in _named_tensors(self.model)}
        return [[names.get(id(t), ""), list(t.shape), str(t.dtype)] for t in self.recorded.trained]

    def _digest_fixed(self) -> str:
        """Return a digest of the tensors of the model that training does not change, such as a frozen backbone."""
        trained = set(map(id, self.recorded.trained))
        return checkpoint.digest({name: t for name, t in _named_tensors(self.model) if id(t) not in trained})


def _record_loss(model: nn.Module, loss: Function, forms: Sequence[Form], lengths: Sequence[int]) -> Recorded:
    recorded = record(model, partial(compute_loss, loss), forms, lengths, (loss,))
    require_answer("loss", recorded, 1, 0)
    if not recorded.answer[0].requires_grad:
        raise FederatedError.trainer("the loss does not depend on the parameters", "compute it from the model's output")
    return recorded


def _named_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    return itertools.chain(model.named_parameters(), model.named_buffers())
