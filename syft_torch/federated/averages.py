"""Find by trial how a metric averages, so that its values on several workers combine to that of the pooled data.

A metric is a function of outputs and targets. It is a mean over samples, a sum, a mean in which classes have weights
(class weights, labels that are ignored), or it returns a sum with the weight that divides it. Its name does not show
which it is, so it is called on made-up outputs and targets: of a batch a, of b, and of both together.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite, prod
from typing import Literal, NamedTuple

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from syft_core.hook.forms import Form
from syft_core.values import Args, Function, Kwargs, Nested, Tensor
from syft_torch.federated.errors import FederatedError

TOLERANCE = 1e-4
"""Relative difference up to which two values count as equal."""
MAX_PLACES = 256
"""Maximum number of labels of one sample for which each is tried."""
MAX_WORK = 1 << 21
"""Maximum numbers in the outputs of a trial: of too many classes, only the last ones are tried, and those whose
numbers the metric uses.
"""
MAX_OUTPUT = 1 << 24
"""Maximum numbers in the output for one sample in a trial."""
MAX_LABEL = 1 << 20
FEW = 16
TRIALS = 6
ROWS = 3
"""The number of samples in a batch of a trial."""


class WeightedMean(NamedTuple):
    """The result of a loss or a metric that is not a mean over samples: a sum, and the weight that divides it."""

    total: Tensor
    weight: Tensor


@dataclass(frozen=True)
class Average:
    """How the values of a metric on several batches are combined."""

    kind: Literal["mean", "sum", "given", "weighted"] = "mean"
    weights: Tensor | None = None
    """The weight of each target, if it is "weighted"."""
    least: int = 0
    """The target that has the first of these weights."""
    ignored: tuple[int, ...] = ()
    """The targets without weight, instead of a table, if all others have the same: no tensor is sent for that. A "mean"
    is one only of data without these targets."""
    places: Tensor | None = None
    """The weight of each label of a sample, if they differ: some losses leave out the first one."""

    @property
    def size(self) -> int:
        """The number of sums over all batches and workers."""
        return 1 if self.kind in ("mean", "sum") else 2

    def split(self, value: Nested, targets: Tensor) -> Tensor:
        """Return the summands, divided by the number of samples, by which a worker multiplies."""
        if self.kind == "mean":
            return value + self._forbid_ignored(targets) if self.ignored else value
        if self.kind == "sum":
            return value / _count_samples(targets)
        if self.kind == "given":
            total, weight = value
        else:
            weights = self._weigh(targets.reshape(-1))
            weight = (weights if self.places is None else weights.reshape(-1, len(self.places)) * self.places).sum()
            # A batch without weight has no mean, and adds nothing.
            total = torch.where(weight > 0, value.to(torch.float64) * weight, torch.zeros_like(weight))
        return torch.stack([total.to(torch.float64), weight.to(torch.float64)]) / _count_samples(targets)

    def _forbid_ignored(self, targets: Tensor) -> Tensor:
        """Return 0, or infinity if a target is one that the metric ignores, to leave the worker out of the mean."""
        found = torch.stack([(targets == number).any() for number in self.ignored]).any().to(torch.float64)
        return found / (1 - found)

    def _weigh(self, targets: Tensor) -> Tensor:
        if self.weights is not None:
            return self.weights.index_select(0, targets.to(torch.int64) - self.least)
        weights = torch.ones_like(targets, dtype=torch.float64)
        for number in self.ignored:
            weights = weights * (targets != number).to(torch.float64)
        return weights

    def merge(self, sums: Tensor, samples: int) -> float:
        """Return the value over all samples, given the sums."""
        if self.kind == "sum":
            return float(sums[0])
        weight = samples if self.kind == "mean" else float(sums[1])
        return float(sums[0]) / weight if weight else float("nan")


def _count_samples(targets: Tensor) -> Tensor:
    """Return the number of samples as a tensor: as a number, it would fix a recording to this length."""
    place = (slice(None), *[0] * (targets.dim() - 1))
    first = targets[place]
    return torch.ones_like(first, dtype=torch.float64).sum()


def find_average(name: str, metric: Function, model: nn.Module, forms: Sequence[Form]) -> Average:
    """Return how a metric averages; raise if it is neither a mean nor a sum.

    The model is in evaluation mode. If the metric cannot be called on made-up values, or returns nothing that
    distinguishes them, it counts as a mean over samples, which metrics are expected to be.
    """
    with torch.no_grad(), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The user gets them when the metric is recorded.
        torch.manual_seed(0)
        try:
            found = _Trial(metric, model, forms).find()
        except _UndecidedError:
            return Average()
    if found is None:
        raise FederatedError.average(name)
    return found


class _UndecidedError(Exception):
    """A trial does not show how a metric averages."""


class _Trial:
    """Calls a metric on made-up outputs and targets."""

    def __init__(self, metric: Function, model: nn.Module, forms: Sequence[Form]) -> None:
        self._metric = metric
        self._target = forms[-1]
        self._like = [_run(model, forms[:-1], rows) for rows in (1, 2)]
        self._shape = (1, *(self._target.shape or ())[1:])
        self._draw: Function = torch.randn
        self._precise = _Precise()
        size = max(map(_count, tree_leaves(self._like[0])), default=0)
        if size > MAX_OUTPUT:
            raise _UndecidedError
        self._most = MAX_WORK // max(size, 1)

    def find(self) -> Average | None:
        found: set[str] | None = None
        for self._draw in (torch.randn, torch.rand):
            values = [self._call([self._make()], [self._fill(number)]) for number in (0, 1)]
            if any(isinstance(value, WeightedMean) for value in values):
                return Average("given")
            if not self._target.dtype.is_floating_point and self._target.dtype != torch.bool:
                if not any(map(_is_value, values)):
                    continue
                return self._find_for_classes()
            kinds = self._compare_for_numbers()
            found = kinds if found is None else found & kinds
        return _choose(found)

    # --- real targets: each sample counts 1

    def _compare_for_numbers(self) -> set[str]:
        shape = self._shape
        makers: list[Function] = [
            lambda: torch.randn(shape),
            lambda: torch.rand(shape),
            lambda: torch.rand(shape).round(),
            lambda: torch.randn(shape).where(torch.rand(shape) < 1 / 2, torch.nan),  # missing values, for a mask
        ]
        return self._compare_all((make, len) for make in makers)

    # --- classes: each has a weight

    def _find_for_classes(self) -> Average | None:
        weights = self._weigh_classes()
        found = _make_weighted(weights)
        kinds = self._compare_for_classes(found, weights)
        if not kinds and (places := self._weigh_places(weights)) is not None:
            found = replace(found, places=places)
            kinds = self._compare_for_classes(found, weights)
        if set(weights.values()) == {1.0} or kinds == {"sum"}:
            return _choose(kinds)
        return found if kinds == {"mean"} else self._find_mean_of_classes(weights)

    def _find_mean_of_classes(self, weights: Mapping[int, float]) -> Average | None:
        """Return a mean over samples, if the metric is one without labels below 0, which some of its terms ignore."""
        ignored = tuple([number for number, weight in weights.items() if weight != 1])
        usual = {number: weight for number, weight in weights.items() if number not in ignored}
        if not ignored or max(ignored) >= 0 or not usual:
            return None
        is_mean = self._compare_for_classes(_make_weighted(usual), usual) == {"mean"}
        return Average("mean", ignored=ignored) if is_mean else None

    def _compare_for_classes(self, found: Average, weights: Mapping[int, float]) -> set[str]:
        """Return the kinds of average that fit targets of all classes, of the first ones, and of other weights."""
        known = sorted(weights)
        first = [number for number in known if 0 <= number < ROWS] or known
        rare = [number for number, weight in weights.items() if weight != 1][:FEW]

        def draw(numbers: Sequence[int]) -> Tensor:
            return torch.tensor(numbers)[torch.randint(len(numbers), self._shape)]

        def weigh(batch: Sequence[Tensor]) -> float:
            return float(found.split(torch.ones(()), torch.cat([*batch]))[1]) * len(batch)

        return self._compare_all([(partial(draw, numbers), weigh) for numbers in (known, first, first + rare)])

    def _weigh_places(self, weights: Mapping[int, float]) -> Tensor | None:
        """Return the weight of each label of a sample, if samples have several and one class has no weight.

        A sample with that class at one place has less weight than one without it, by the weight of the place.
        """
        count = prod(self._shape)
        zeros = [number for number, weight in weights.items() if weight == 0]
        ones = [number for number, weight in weights.items() if weight == 1]
        if not 1 < count <= min(MAX_PLACES, self._most) or not zeros or not ones:
            return None
        rows = self._fill(ones[0]).reshape(1, count).repeat(count, 1).fill_diagonal_(zeros[0])
        row, outputs, change = self._find_reference()
        first = self._make()
        targets = [self._fill(ones[0]), *[labels.reshape(self._shape) for labels in rows]]
        found = [self._weigh_row(each, first, row, outputs, change) for each in targets]
        whole, *rest = [0.0 if weight is None else weight for weight in found]
        return torch.tensor([_snap(1 - weight / whole) for weight in rest], dtype=torch.float64) if whole else None

    def _weigh_classes(self) -> dict[int, float]:
        row, outputs, change = self._find_reference()
        first = self._make()
        weights = {}
        for number in self._list_classes():
            weight = self._weigh_row(self._fill(number), first, row, outputs, change)
            if weight is not None:
                weights[number] = weight
        most = max(weights.values(), default=0.0)
        if most < TOLERANCE:
            return dict.fromkeys(weights or {0: 1.0}, 1.0)
        return {number: _snap(weight / most) for number, weight in weights.items()}

    def _weigh_row(
        self, targets: Tensor, output: Nested, row: Tensor, outputs: Sequence[Nested], change: float
    ) -> float | None:
        """Return the weight of a sample v relative to a row r; None if it has no value.

        If r' is r with other outputs, the weight of r in a mean of both is (f(v, r) - f(v, r')) / (f(r) - f(r')).
        In a sum it is 1, whatever v is.
        """
        pair = [self._call([output, other], [targets, row]) for other in outputs]
        if not all(map(_is_value, pair)) or pair[0] == pair[1]:
            return None
        return max(float(change / (pair[0] - pair[1])) - 1, 0.0)

    def _find_reference(self) -> tuple[Tensor, tuple[Nested, Nested], float]:
        for _ in range(TRIALS):
            outputs = self._make(), self._make()
            for row in (*self._guess(outputs[0]), *map(self._fill, range(FEW))):
                found = [self._call([output], [row]) for output in outputs]
                if all(map(_is_value, found)) and abs(found[0] - found[1]) > TOLERANCE * abs(found[0]):
                    return row, outputs, found[0] - found[1]
        raise _UndecidedError

    def _guess(self, output: Nested) -> list[Tensor]:
        guesses = [leaf.argmax(1) for leaf in tree_leaves(output) if _is_tensor(leaf) and leaf.dim() > 1]
        return [guess for guess in guesses if tuple(guess.shape) == self._shape]

    def _list_classes(self) -> list[int]:
        sizes = {size for leaf in tree_leaves(self._like[0]) if _is_tensor(leaf) for size in leaf.shape}
        found = {-100, -1, *range(min(FEW, self._most)), *self._precise.numbers}
        found.update(*[range(max(size - self._most, 0), size) for size in sizes])
        limits = torch.iinfo(self._target.dtype)
        return sorted(number for number in found if max(limits.min, -MAX_LABEL) <= number <= min(limits.max, MAX_LABEL))

    # --- calls

    def _compare_all(self, cases: Iterable[tuple[Function, Function]]) -> set[str]:
        kinds = {"mean", "sum"}
        for make, weigh in cases:
            for _ in range(min(TRIALS, self._most + 1)):
                kinds &= self._compare([[make() for _ in range(ROWS)] for _ in "ab"], weigh)
        return kinds

    def _compare(self, batches: Sequence[list[Tensor]], weigh: Callable[[list[Tensor]], float]) -> set[str]:
        outputs = [[self._make() for _ in batch] for batch in batches]
        one, two = map(self._call, outputs, batches)
        both = self._call(outputs[0] + outputs[1], batches[0] + batches[1])
        weights = list(map(weigh, batches))
        if not all(map(_is_value, (one, two, both))) or not all(weights):
            return {"mean", "sum"}
        expected = {"mean": (one * weights[0] + two * weights[1]) / sum(weights), "sum": one + two}
        close = TOLERANCE * max(abs(one), abs(two))
        return {kind for kind, value in expected.items() if abs(both - value) <= close}

    def _call(self, outputs: Sequence[Nested], targets: Sequence[Tensor]) -> Nested:
        joined = torch.cat([part.to(self._target.dtype) for part in targets])
        try:
            with self._precise:
                value = self._metric(self._join(outputs), joined)
            return value if isinstance(value, WeightedMean) else float(value)
        except Exception:  # noqa: BLE001  # of a function of the user, on values that may be senseless
            return None

    def _fill(self, number: int) -> Tensor:
        return torch.full(self._shape, number)

    def _make(self) -> Nested:
        return tree_map(self._fake, self._like[0])

    def _fake(self, leaf: Nested) -> Nested:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if leaf.dtype.is_floating_point:
            return self._draw(leaf.shape)
        return torch.randint(0, 2, leaf.shape).to(leaf.dtype)

    def _join(self, outputs: Sequence[Nested]) -> Nested:
        def join(one: Nested, two: Nested, *rows: Nested) -> Nested:
            places = [place for place, sizes in enumerate(zip(one.shape, two.shape, strict=True)) if len({*sizes}) > 1]
            return torch.cat(rows, places[0]) if places else rows[0]

        return tree_map(lambda *leaves: join(*leaves) if _is_tensor(leaves[0]) else leaves[0], *self._like, *outputs)


class _Precise(TorchFunctionMode):  # type: ignore[misc]  # torch is not typed
    """Computes with 64 bits, and collects the integers that are used: one of them may be a label to ignore."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: set[int] = set()

    def __torch_function__(
        self, func: Function, types: Nested, args: Args = (), kwargs: Kwargs | None = None
    ) -> Nested:
        self.numbers |= {leaf for leaf in tree_leaves((args, kwargs)) if type(leaf) is int}
        args, kwargs = tree_map(_to_double, (args, kwargs or {}))
        return func(*args, **kwargs)


def _to_double(leaf: Nested) -> Nested:
    return leaf.double() if isinstance(leaf, torch.Tensor) and leaf.dtype.is_floating_point else leaf


def _run(model: nn.Module, forms: Sequence[Form], rows: int) -> Nested:
    """Return a model's output for ``rows`` samples; its buffers stay as they are."""
    inputs = [
        torch.randn(shape, dtype=known.dtype) if known.dtype.is_floating_point else torch.ones(shape, dtype=known.dtype)
        for known in forms
        for shape in [(rows, *(known.shape or ())[1:])]
    ]
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    try:
        return torch.func.functional_call(model, buffers, tuple(inputs))
    except Exception:  # noqa: BLE001  # of a model, on inputs that may be senseless
        raise _UndecidedError from None


def _is_tensor(leaf: Nested) -> bool:
    return isinstance(leaf, torch.Tensor)


def _count(leaf: Nested) -> int:
    return leaf.numel() if isinstance(leaf, torch.Tensor) else 0


def _is_value(value: Nested) -> bool:
    return isinstance(value, WeightedMean) or (value is not None and isfinite(value))


def _snap(weight: float) -> float:
    """Return a weight, or the whole number next to it, from which rounding may have moved it."""
    return float(round(weight)) if abs(weight - round(weight)) < TOLERANCE / 10 else weight


def _make_weighted(weights: Mapping[int, float]) -> Average:
    """Return an average in which targets have weights; those that were not tried have 1."""
    ignored = tuple([number for number, weight in weights.items() if weight == 0])
    if len(ignored) <= FEW and set(weights.values()) <= {0.0, 1.0}:
        return Average("weighted", ignored=ignored)
    known = sorted(weights)
    table = torch.ones(known[-1] - known[0] + 1, dtype=torch.float64)
    for number, weight in weights.items():
        table[number - known[0]] = weight
    return Average("weighted", table, known[0])


def _choose(kinds: set[str] | None) -> Average | None:
    """Return the only kind on which all trials agree; None if there is none."""
    if kinds is None or len(kinds) > 1:
        raise _UndecidedError
    return Average(kinds.pop()) if kinds else None  # type: ignore[arg-type]  # one of its kinds
