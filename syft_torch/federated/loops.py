"""The loop that trains on a worker: batches, shuffling, optimizer, clipping, and the difference to the weights."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from functools import cache, partial
from time import monotonic

import torch
from torch.func import vmap

from syft_core.values import Function, Kwargs, Nested, Tensor
from syft_core.workers.party.turns import TURN_SECONDS
from syft_torch.federated import optimizers
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.layout import Layout
from syft_torch.federated.losses import Loss, ModelForms
from syft_torch.federated.private_steps.sample_dp import SampleDP

MAX_BLOCK = 1 << 24
"""Approximate bytes of samples that are shuffled at once."""
MAX_STACKED = 1 << 20
"""Approximate bytes of samples of stacked clients that are copied at once: they fit a processor's cache."""
MAX_EPOCHS = 1 << 20
MASK = (1 << 63) - 1
"""The bits of a seed that are used."""


@dataclass(frozen=True)
class Settings:
    """The numbers of a training, as they are sent."""

    epochs: int = 1
    batch_size: int | None = 32
    """None means all samples."""
    optimizer: str = "SGD"
    groups: optimizers.Groups = ()
    clip: float | None = None
    """The largest norm of the difference."""
    clip_grad: float | None = None
    """The largest norm of a gradient."""
    drop_last: bool = False
    """Whether a last batch that is not full is left out."""
    proximal: float = 0.0
    """How strongly the weights are pulled towards those received: the factor mu of FedProx."""
    privacy: SampleDP | None = None
    """How training is made private for each record; None means it is not."""

    @classmethod
    def read(cls, received: Kwargs) -> Settings:
        """Return received settings; raise unless all are known and valid."""
        unknown = received.keys() - {each.name for each in fields(cls)}
        if unknown:
            raise FederatedError.settings(min(unknown), "is unknown here: this worker has another release")
        found = cls(**{**received, "privacy": SampleDP.read(received.get("privacy"))})
        found.require_valid()
        return found

    def require_valid(self) -> None:
        """Raise unless all numbers have the right types and sizes."""
        for name, is_valid in _VALID.items():
            if not is_valid(getattr(self, name)):
                raise FederatedError.settings(name, "has a wrong type, or is too large or too small")

    def write(self) -> Kwargs:
        """Invert ``read``."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**found, "privacy": None if self.privacy is None else self.privacy.write()}

    def divide(self, samples: int) -> Batches:
        """Return the batches of an epoch, without ``privacy``."""
        return Batches.of(samples, self.batch_size, self.drop_last)

    def count_steps(self, samples: int) -> int:
        """Return how many steps a training makes."""
        if self.privacy is not None:
            return self.privacy.plan(samples, self.epochs, self.batch_size).steps
        return self.epochs * self.divide(samples).count

    @property
    def lr(self) -> float | None:
        """The learning rate of the optimizer, if it has one for all parameters."""
        lr = self.groups[0][0].get("lr") if len(self.groups) == 1 else None
        return None if lr is None else float(lr)


def _is_count(value: object, most: int) -> bool:
    return type(value) is int and 1 <= value <= most


def is_size(value: object) -> bool:
    """Return whether a value is a positive number, or None."""
    return value is None or (optimizers.is_finite(value) and value > 0)  # type: ignore[operator]


def _are_groups(groups: object) -> bool:
    if type(groups) is not tuple:
        return False
    for group in groups:
        if type(group) is not tuple or len(group) != 2 or type(group[0]) is not dict or type(group[1]) is not tuple:
            return False
        if not all(type(name) is str and optimizers.is_number(value) for name, value in group[0].items()):
            return False
        if not all(type(place) is int for place in group[1]):
            return False
    return True


_VALID: dict[str, Callable[[Nested], bool]] = {
    "epochs": lambda value: _is_count(value, MAX_EPOCHS),
    "batch_size": lambda value: value is None or _is_count(value, 1 << 40),
    "optimizer": lambda value: type(value) is str,
    "groups": _are_groups,
    "drop_last": lambda value: type(value) is bool,
    "clip": is_size,
    "clip_grad": is_size,
    "proximal": lambda value: optimizers.is_finite(value) and value >= 0,
}


@dataclass
class Recipe:
    """The inputs of one training, or one evaluation."""

    losses: Sequence[Loss]
    shape: ModelForms
    settings: Settings

    def find_loss(self, length: int) -> Loss:
        """Return the loss for batches of a length."""
        for loss in self.losses:
            if loss.fits(length):
                return loss
        raise FederatedError.plan("loss", f"it was not recorded for batches of {length} samples")

    @property
    def writes(self) -> bool:
        """Whether a step may change its operands in place."""
        return any(loss.writes for loss in self.losses)

    def lengths(self, samples: int) -> list[int]:
        """Return the lengths of batches that occur."""
        return self.settings.divide(samples).lengths


@dataclass(frozen=True)
class Batches:
    """How a worker divides its samples into batches.

    All batches are full, but the last one may have fewer samples, or one more: a single sample that is left over joins
    the batch before, because models with batch norm cannot be trained on one. With ``drop_last``, samples that do not
    fill a batch are left out of an epoch, unless there is no other batch.
    """

    size: int
    count: int
    end: int
    """Number of samples that are used."""

    @classmethod
    def of(cls, samples: int, batch_size: int | None, drop_last: bool = False) -> Batches:
        """Divide a number of samples."""
        size = min(batch_size or samples, samples)
        count, rest = divmod(samples, size)
        if drop_last:
            return cls(size, count, count * size)
        return cls(size, count + (rest > 1), samples)

    @property
    def lengths(self) -> list[int]:
        """The lengths of batches that occur, the usual one first."""
        last = self.end - (self.count - 1) * self.size
        return list(dict.fromkeys([self.size, last] if self.count > 1 else [last]))

    def split(self, most: int) -> Iterator[list[slice]]:
        """Yield the batches in order, in blocks of about ``most`` samples."""
        step = max(most // self.size, 1)
        for first in range(0, self.count, step):
            places = range(first, min(first + step, self.count))
            ends = [self.end if place == self.count - 1 else (place + 1) * self.size for place in places]
            yield [slice(place * self.size, end) for place, end in zip(places, ends, strict=True)]


# --- one model


def train(
    task: Recipe,
    weights: Tensor,
    fixed: Sequence[Tensor],
    parts: Sequence[Tensor],
    seed: int | None = None,
    correction: Tensor | None = None,
    rest: Callable[[], None] = lambda: None,
) -> Iterator[Nested]:
    """Train; yield None after each batch, and at last the difference to the weights and the mean loss.

    Call ``rest`` before each of the losses that a step computes, if there are several.
    """
    settings, shape = task.settings, task.shape
    flat = weights.detach().clone()
    tensors = shape.layout.split_apart(flat)
    trained = [tensors[place].requires_grad_() for place in shape.parameters]
    kept = [tensor.clone() for tensor in fixed] if task.writes else list(fixed)
    optimizer = optimizers.make(settings.optimizer, settings.groups, trained)
    pull = Pull(shape, settings.proximal, weights, correction)
    searches = settings.optimizer == optimizers.SEARCHING
    repeats = task.writes and searches

    def differentiate(batch: Sequence[Tensor]) -> Tensor:
        if searches:
            rest()
        given = [part.clone() for part in batch] if repeats else batch
        loss = task.find_loss(len(batch[0]))((*tensors, *kept, *given))
        require_scalar(loss)
        for parameter, gradient in zip(trained, torch.autograd.grad(loss, trained, allow_unused=True), strict=True):
            parameter.grad = gradient
        pull.apply(trained)
        if settings.clip_grad is not None:
            torch.nn.utils.clip_grad_norm_(trained, settings.clip_grad)
        return loss.detach()

    total, seen = 0.0, 0
    for batch in iter_batches(parts, settings, seed, task.writes):
        length = len(batch[0])
        if searches:
            loss = optimizer.step(partial(differentiate, batch))  # the loss before the step
        else:
            loss = differentiate(batch)
            optimizer.step()
        total, seen = total + loss.item() * length, seen + length
        yield None
    if not shape.layout.is_uniform:
        flat = shape.layout.join(tensors)
    difference = clip(flat.sub_(weights), settings.clip, shape.layout)
    yield difference, torch.tensor(total / seen, dtype=torch.float64)


def evaluate(task: Recipe, weights: Tensor, fixed: Sequence[Tensor], parts: Sequence[Tensor]) -> Iterator[Nested]:
    """Compute metrics; yield None after each batch, and at last the sum of each over all samples."""
    tensors = [tensor.detach() for tensor in task.shape.layout.split(weights.detach().clone())]
    kept = [tensor.clone() for tensor in fixed] if task.writes else list(fixed)
    sums: Tensor | None = None
    for batch in iter_batches(parts, task.settings, None, task.writes):
        with torch.no_grad():
            found = measure(task.find_loss(len(batch[0]))((*tensors, *kept, *batch)), len(batch[0]))
        sums = found if sums is None else sums + found
        yield None
    yield sums


class Turns:
    """The turns in which a loop runs; between them, others go first."""

    def __init__(self, yield_turn: Function, protect: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._yield_turn = yield_turn
        self._protect = protect
        """Makes a context in which each turn runs."""
        self._contexts = contextlib.ExitStack()
        self._end = 0.0

    def run(self, loop: Iterator[Nested]) -> Nested:
        """Run a loop until it yields its result."""
        self._begin()
        with self._contexts:
            for result in loop:
                if result is not None:
                    return result
                self.rest()
        return None

    def rest(self) -> None:
        """Let others go first if the turn is over; a step of many parts calls it between them."""
        if monotonic() > self._end:
            self._contexts.close()
            self._yield_turn()
            self._begin()

    def _begin(self) -> None:
        self._contexts.enter_context(self._protect())
        self._contexts.enter_context(torch.enable_grad())
        self._end = monotonic() + TURN_SECONDS


def measure(answer: Nested, length: int) -> Tensor:
    """Return the metrics of a batch, each a mean or a flat tensor of means, as sums."""
    metrics = answer if isinstance(answer, tuple | list) else (answer,)
    for metric in metrics:
        if not isinstance(metric, torch.Tensor) or metric.dim() > 1 or metric.is_complex():
            raise FederatedError.plan("metric", "it does not return a number, or a flat tensor")
    return torch.cat([metric.detach().reshape(-1).to(torch.float64) for metric in metrics]) * length


def require_scalar(loss: Nested) -> None:
    """Raise unless a loss is one number."""
    if not isinstance(loss, torch.Tensor) or loss.dim() or loss.is_complex():
        raise FederatedError.plan("loss", "it does not return a tensor with one number")


class Pull:
    """Terms that strategies add to gradients: the pull of FedProx, the correction of SCAFFOLD."""

    def __init__(self, shape: ModelForms, proximal: float, weights: Tensor, correction: Tensor | None) -> None:
        self._proximal = proximal
        self._start = self._choose(shape, weights) if proximal else []
        self._correction = self._choose(shape, correction) if correction is not None else []

    @staticmethod
    def _choose(shape: ModelForms, flat: Tensor) -> list[Tensor]:
        tensors = shape.layout.split(flat)
        return [tensors[place] for place in shape.parameters]

    def apply(self, trained: Sequence[Tensor]) -> None:
        """Add the terms to the gradients of the parameters."""
        if not (self._start or self._correction):
            return
        for parameter in trained:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        for parameter, start in zip(trained, self._start, strict=False):
            parameter.grad.add_(parameter.detach() - start, alpha=self._proximal)
        for parameter, correction in zip(trained, self._correction, strict=False):
            parameter.grad.add_(correction)


def clip(difference: Tensor, largest: float | None, layout: Layout) -> Tensor:
    """Scale the parameters in a difference, in place, so that their norm does not exceed the limit.

    Statistics and counts are neither scaled nor part of the norm: no optimizer changes them.
    """
    if largest is not None:
        parameters = difference[..., : layout.parameters]
        norm = torch.linalg.vector_norm(parameters, dim=-1, keepdim=True, dtype=torch.float64)
        parameters.mul_((largest / norm.clamp(min=largest)).to(difference.dtype))
    return difference


def iter_batches(
    parts: Sequence[Tensor], settings: Settings, seed: int | None, are_written: bool
) -> Iterator[list[Tensor]]:
    """Yield the batches of all epochs; a batch never shares memory with the data if it may be changed."""
    samples = len(parts[0])
    batches = settings.divide(samples)
    generator = None if seed is None else torch.Generator().manual_seed(seed & MASK)
    row = sum(part[:1].nbytes for part in parts)
    for _ in range(settings.epochs):
        order = None if generator is None else torch.randperm(samples, generator=generator)
        for block in batches.split(MAX_BLOCK // max(row, 1)):
            start, rows = block[0].start, slice(block[0].start, block[-1].stop)
            if order is not None:
                shuffled = [part.index_select(0, order[rows].to(part.device)) for part in parts]
            else:
                shuffled = [part[rows].clone() if are_written else part[rows] for part in parts]
            for batch in block:
                yield [part[batch.start - start : batch.stop - start] for part in shuffled]


@contextlib.contextmanager
def seeded(state: list[Tensor]) -> Iterator[None]:
    """Return a context with a state of torch's generator, which the list keeps until the next time.

    The process has one generator, so trainings on other workers of this process wait meanwhile.
    """
    with _generator:
        before = torch.default_generator.get_state()
        torch.default_generator.set_state(state[0])
        try:
            yield
        finally:
            state[0] = torch.default_generator.get_state()
            torch.default_generator.set_state(before)


_generator = threading.Lock()


# --- several models at once


def train_stacked(
    task: Recipe,
    weights: Tensor,
    fixed: Sequence[Tensor],
    clients: Sequence[Sequence[Tensor]],
    seeds: Sequence[int | None],
    corrections: Sequence[Tensor | None],
) -> Iterator[Nested]:
    """Train the models of clients with data of the same form in one loop.

    Yield None after each batch, and at last the differences to the weights, and the mean losses.
    """
    _keep_freed_memory()
    settings, shape, count = task.settings, task.shape, len(clients)
    flat = weights.detach().expand(count, -1).clone()
    tensors = shape.layout.split_apart(flat)
    trained = [tensors[place].requires_grad_() for place in shape.parameters]
    kept = [tensor.expand(count, *tensor.shape).clone() for tensor in fixed] if task.writes else list(fixed)
    optimizer = optimizers.make(settings.optimizer, settings.groups, trained)
    correction = None if corrections[0] is None else torch.stack([c for c in corrections if c is not None])
    pull = Pull(shape, settings.proximal, weights.expand(count, -1), correction)
    dims = ([0] * len(tensors), [0 if task.writes else None] * len(kept), [0] * len(clients[0]))
    replays = {id(loss): _stack(loss, dims) for loss in task.losses}
    total, seen = torch.zeros(count, dtype=torch.float64), 0
    for batch in _iter_stacked(clients, settings, seeds):
        length = batch[0].shape[1]
        losses = replays[id(task.find_loss(length))](tensors, kept, batch)
        if losses.dim() != 1:
            raise FederatedError.plan("loss", "it does not return a tensor with one number")
        for parameter, gradient in zip(
            trained, torch.autograd.grad(losses.sum(), trained, allow_unused=True), strict=True
        ):
            parameter.grad = gradient
        pull.apply(trained)
        if settings.clip_grad is not None:
            _clip_grads(trained, settings.clip_grad)
        optimizer.step()
        total, seen = total + losses.detach() * length, seen + length
        yield None
    if not shape.layout.is_uniform:
        flat = shape.layout.join(tensors, (count,))
    yield clip(flat.sub_(weights), settings.clip, shape.layout), total / seen


@cache
def _keep_freed_memory() -> None:
    """Let the allocator keep the gradients that a step frees for the next step.

    glibc returns blocks of some megabytes to the system, which costs up to a third of a round, until the program has
    freed a larger one: its thresholds grow with the largest block, up to 32 MB. Other allocators do not need this.
    """
    torch.empty(31 << 20, dtype=torch.uint8)


def _stack(loss: Loss, dims: tuple[list[int], list[int | None], list[int]]) -> Callable[..., Tensor]:
    stacked: Callable[..., Tensor] = vmap(
        lambda tensors, kept, batch: loss.run_stacked((*tensors, *kept, *batch)), in_dims=dims, randomness="different"
    )
    return stacked


def _iter_stacked(
    clients: Sequence[Sequence[Tensor]], settings: Settings, seeds: Sequence[int | None]
) -> Iterator[list[Tensor]]:
    """Yield stacked batches of all clients, each in its ``iter_batches`` order; later ones overwrite earlier ones."""
    samples = len(clients[0][0])
    batches = settings.divide(samples)
    row = len(clients) * sum(part[:1].nbytes for part in clients[0])
    most = MAX_STACKED // max(row, 1)
    longest = max(block[-1].stop - block[0].start for block in batches.split(most))
    generators = [None if seed is None else torch.Generator().manual_seed(seed & MASK) for seed in seeds]
    stacked = [part.new_empty((len(clients), longest, *part.shape[1:])) for part in clients[0]]
    for _ in range(settings.epochs):
        orders = [None if each is None else torch.randperm(samples, generator=each) for each in generators]
        for block in batches.split(most):
            start, rows = block[0].start, slice(block[0].start, block[-1].stop)
            length = rows.stop - rows.start
            for place, (parts, order) in enumerate(zip(clients, orders, strict=True)):
                for target, part in zip(stacked, parts, strict=True):
                    if order is None:
                        target[place, :length].copy_(part[rows])
                    else:
                        torch.index_select(part, 0, order[rows], out=target[place, :length])
            for batch in block:
                yield [part[:, batch.start - start : batch.stop - start] for part in stacked]


def _clip_grads(trained: Sequence[Tensor], largest: float) -> None:
    gradients = [parameter.grad for parameter in trained if parameter.grad is not None]
    norms = torch.stack([torch.linalg.vector_norm(g.flatten(1), dim=1) for g in gradients])
    factors = (largest / (torch.linalg.vector_norm(norms, dim=0) + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(factors.view(-1, *[1] * (gradient.dim() - 1)))
