"""The message ``Arrange``: a worker prepares its own data for training, with code of its own.

It selects columns, replaces missing values, scales, and splits rows. The sender chooses columns, constants and the
share for testing; it cannot choose rows. So a result of whole published data is still all of it, or one of two halves
that the worker has drawn, and sums over it cannot be compared to find out what one row adds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

import torch

from syft_core.exceptions import ColumnError
from syft_core.messages import Message, MessageFacts
from syft_core.peer import Id, Peer
from syft_core.pointers.object_pointer import new_id
from syft_core.pointers.pointer_tensor import pointer_at
from syft_core.tensors.schema import Column, Schema
from syft_core.values import Args, Kwargs, Nested, Tensor
from syft_core.workers.party.derivations import ARRANGE, Maker
from syft_core.workers.party.status import RESTRICTED
from syft_core.workers.party.store import Source, describe_operand
from syft_core.workers.party.worker import Worker
from syft_sums.studies import studies_of
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.makers import digest
from syft_torch.federated.operations import OwnExecution, prepare, require_rows, run

MIN_ROWS = 10
"""Minimum number of rows of both halves of private data, if sums over them may leave."""
Compute = Callable[..., "list[Tensor]"]


@dataclass(slots=True)
class Arrange(Message):
    """Prepare stored data for training; keep the results under ``result`` and the ids after it."""

    code: ClassVar[int] = 387
    facts: ClassVar[MessageFacts] = MessageFacts(
        text=lambda message: f"arrange: {message.step}",
        creates=lambda message, _receiver: (message.result,),
        stores_results=True,
    )
    data: Args
    """Pointers to the tensors that the step needs, of one dataset."""
    step: str
    """The name of the step: one of ``STEPS``."""
    settings: Kwargs
    """The fields of the step, apart from its constants."""
    result: int
    constants: Tensor = None
    """The constants of the step, in rows, if it has some."""

    @property
    def expected(self) -> range:
        """The ids of the results."""
        count = 2 if self.step == Columns.name else len(self.data)
        return range(self.result, self.result + count)


# --- steps


class Arrangement:
    """The base class of steps."""

    def keeps_whole(self, execution: OwnExecution) -> bool:
        """Return whether sums over the results may be compared with sums over the data: they differ by no few rows."""
        return True


@dataclass(frozen=True)
class Columns(Arrangement):
    """Make the inputs and the targets of columns of a table; its schema is that of the worker."""

    name: ClassVar[str] = "columns"
    inputs: tuple[str, ...]
    label: str
    dtype: str
    """The type of the inputs, and of targets that are real; others become class numbers."""
    one_hot: bool = False
    """Whether a category becomes a column of zeros and ones for each of its values."""
    constants: Tensor = None
    """A number for each input in place of missing values; NaN keeps them."""

    def require_valid(self) -> None:
        """Raise unless all fields have the right types."""
        are_names = type(self.inputs) is tuple and self.inputs and all(type(name) is str for name in self.inputs)
        _require(self, "inputs", bool(are_names) and type(self.label) is str)
        _require(self, "dtype", self.dtype in DTYPES)
        _require(self, "one_hot", type(self.one_hot) is bool)
        if self.constants is not None:
            _require_constants(self, self.constants, (1, len(self.inputs)))

    def make(self, execution: OwnExecution) -> Compute:
        """Return the function of the table that computes inputs and targets."""
        schema = _find_schema(execution)
        chosen = schema.choose([*self.inputs, self.label]).columns
        *places, label = schema.find([*self.inputs, self.label])
        dtype = DTYPES[self.dtype]
        kind = dtype if chosen[-1].type == "real" else torch.int64

        def compute(table: Tensor) -> list[Tensor]:
            inputs = table[:, places].to(dtype)
            if self.constants is not None:
                numbers = self.constants[0].to(inputs)
                inputs = torch.where(inputs.isnan(), numbers, inputs)
            return [self._spread(inputs, chosen[:-1]), table[:, label].to(kind, copy=True)]

        return compute

    def list_values(self, column: Column) -> tuple[str, ...] | None:
        """Return the values of a category that becomes several columns."""
        return column.categories if self.one_hot and column.type == "category" else None

    def _spread(self, inputs: Tensor, columns: Sequence[Column]) -> Tensor:
        """Replace each category by a column of zeros and ones for each of its values; all are zero if it is missing."""
        if not any(map(self.list_values, columns)):
            return inputs
        parts = []
        for place, column in enumerate(columns):
            part, values = inputs[:, place : place + 1], self.list_values(column)
            if values is not None:
                part = (part == torch.arange(len(values), dtype=part.dtype, device=part.device)).to(part.dtype)
            parts.append(part)
        return torch.cat(parts, dim=1)


@dataclass(frozen=True)
class Fill(Arrangement):
    """Put a number for each column in place of missing values."""

    name: ClassVar[str] = "fill"
    constants: Tensor = None

    def require_valid(self) -> None:
        """Raise unless the constants are one row of finite numbers."""
        _require_constants(self, self.constants, (1,))

    def make(self, execution: OwnExecution) -> Compute:
        """Return the function of the inputs."""
        _require_row(self, self.constants, execution)
        return lambda inputs: [torch.where(inputs.isnan(), self.constants[0].to(inputs), inputs)]


@dataclass(frozen=True)
class Scale(Arrangement):
    """Subtract a number from each column, and divide it by another."""

    name: ClassVar[str] = "scale"
    constants: Tensor = None
    """The numbers to subtract, and those by which to divide."""

    def require_valid(self) -> None:
        """Raise unless the constants are two rows of finite numbers, and none divides by zero."""
        _require_constants(self, self.constants, (2,))
        _require(self, "constants", bool(self.constants.isfinite().all()) and bool((self.constants[1] != 0).all()))

    def make(self, execution: OwnExecution) -> Compute:
        """Return the function of the inputs."""
        _require_row(self, self.constants, execution)

        def compute(inputs: Tensor) -> list[Tensor]:
            mean, deviation = self.constants.to(inputs.device)
            return [(inputs - mean) / deviation]

        return compute


@dataclass(frozen=True)
class Half(Arrangement):
    """One half of the rows: those for training, or those for testing."""

    name: ClassVar[str] = "half"
    test_size: float
    is_test: bool
    seed: int = 0
    """Chooses the rows of data without restrictions; those of other data are chosen by the worker."""
    constants: Tensor = None

    def require_valid(self) -> None:
        """Raise unless all fields have the right types."""
        _require(self, "test_size", type(self.test_size) in (int, float) and 0 < self.test_size < 1)
        _require(self, "is_test", type(self.is_test) is bool)
        _require(self, "seed", type(self.seed) is int)
        _require(self, "constants", self.constants is None)

    def make(self, execution: OwnExecution) -> Compute:
        """Return the function of the parts of a dataset."""
        worker, parts = execution.worker, execution.args
        rows = require_rows(worker, parts)
        tested = round(rows * self.test_size)
        if not 0 < tested < rows:
            raise FederatedError.small_split(worker.id, self.test_size)
        if execution.status & RESTRICTED:
            order = worker.part(Splits).find_order(execution.lineage[1], rows, tested)
        else:
            order = _shuffle(f"{self.seed}/{worker.id}", rows)
        chosen = (order[:tested] if self.is_test else order[tested:]).sort().values
        return lambda *parts: [part.index_select(0, chosen.to(part.device)) for part in parts]

    def keeps_whole(self, execution: OwnExecution) -> bool:
        """Return whether both halves have enough rows: the sum over one is that over all data without the other."""
        rows = len(execution.args[0])
        tested = round(rows * self.test_size)
        return min(tested, rows - tested) >= MIN_ROWS


Step = Columns | Fill | Scale | Half
STEPS: dict[str, type[Step]] = {step.name: step for step in (Columns, Fill, Scale, Half)}
DTYPES = {name: getattr(torch, name) for name in ("float16", "bfloat16", "float32", "float64")}


def _shuffle(seed: str, rows: int) -> Tensor:
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:7], "big")
    return torch.randperm(rows, generator=torch.Generator().manual_seed(number))


def _require(step: Step, name: str, is_valid: bool) -> None:
    if not is_valid:
        raise FederatedError.arrangement(step.name, f"its {name} has a wrong type or value")


def _require_constants(step: Step, constants: Tensor, sizes: tuple[int, ...]) -> None:
    """Raise unless constants are a plain tensor of real numbers whose first dimensions have these sizes."""
    is_plain = type(constants) is torch.Tensor and constants.layout is torch.strided and not constants.is_meta
    _require(step, "constants", is_plain)
    _require(step, "constants", constants.dtype.is_floating_point and tuple(constants.shape[: len(sizes)]) == sizes)
    _require(step, "constants", not bool(constants.isinf().any()))


def _require_row(step: Step, constants: Tensor, execution: OwnExecution) -> None:
    """Raise unless each row of the constants has the shape of a row of the inputs, which are one tensor."""
    (inputs, *others) = execution.args
    _require(step, "constants", not others and tuple(constants.shape[1:]) == tuple(inputs.shape[1:]))
    if not inputs.dtype.is_floating_point and step.name == Fill.name:
        raise FederatedError.arrangement(step.name, "only real columns may miss values")


def _find_schema(execution: OwnExecution) -> Schema:
    """Return the worker's schema of a table."""
    (table, *others), known = execution.args, execution.parents[0].schema
    columns = () if known is None else known.columns
    if others or not columns or tuple(table.shape[1:]) != (len(columns),):
        raise ColumnError.unnamed(f"this object of worker {execution.worker.id!r}")
    return Schema(columns)


# --- splits


class Splits:
    """The halves of a worker's restricted data: drawn once, from a secret of its own, with one share for each dataset.

    With two shares of one dataset, a sender could find out what the rows between both add to a sum. After a restart,
    the same share has the same order, and another one an order of its own, so that two halves never differ by few rows.
    The secret follows from the key of the worker: with a new key, data is split anew.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._secret = b""
        self._known: dict[tuple[int, int], int] = {}
        """How many rows are for testing, by the serial number of a published source and the number of rows."""

    def find_order(self, sources: Iterable[object], rows: int, tested: int) -> Tensor:
        """Return the order in which rows are drawn: the same for all parts of a dataset."""
        published = [each.serial for each in sources if isinstance(each, Source) and each.published]
        for serial in published:
            known = self._known.get((serial, rows), tested)
            if known != tested:
                raise FederatedError.other_split(self._worker.id, known, rows)
        for serial in published:
            self._known[serial, rows] = tested
        if not self._secret:  # A signature of this key that depends on the text alone, which nobody else asks for.
            self._secret = studies_of(self._worker).key.sign(b"syft-core: the order of rows in splits")
        stream = hashlib.shake_256(self._secret + f"split {rows} {tested}".encode()).digest(8 * rows)
        return torch.frombuffer(bytearray(stream), dtype=torch.int64).argsort()

    def forget(self, peer: Id) -> None:
        """Keep everything: a split belongs to no client."""


# --- the handler


def arrange(worker: Worker, message: Arrange, sender: Peer) -> Nested:
    """Prepare stored data for training, as one operation."""
    step = _read(message)
    execution = prepare(worker, message, message.data, message.result, sender)
    program = (*_write(step), message.constants)

    def describe(execution: OwnExecution, place: int) -> Maker | None:
        if not execution.status & RESTRICTED:
            return None
        operands = tuple(map(describe_operand, execution.parents, execution.operands))
        if not step.keeps_whole(execution):
            operands = tuple([operand._replace(is_whole=False) for operand in operands])
        inner = [operand.arrangement for operand in operands]
        options = ("program", digest((*program, place, *inner))), ("samples", len(execution.args[0]))
        return Maker(ARRANGE, options, (worker.id,), operands)

    return run(execution, message, step.make(execution), len(message.expected), describe)


def _read(message: Arrange) -> Step:
    kind = STEPS.get(message.step)
    if kind is None:
        raise FederatedError.arrangement(message.step, "there is no such step: this worker has another release")
    known = {field.name for field in fields(kind)} - {"constants"}
    if message.settings.keys() - known:
        raise FederatedError.arrangement(message.step, "it has a setting that is unknown here")
    try:
        step = kind(**message.settings, constants=message.constants)
    except TypeError:
        raise FederatedError.arrangement(message.step, "one of its settings is missing") from None
    step.require_valid()
    return step


def _write(step: Step) -> tuple[str, Kwargs]:
    settings = {field.name: getattr(step, field.name) for field in fields(step) if field.name != "constants"}
    return step.name, settings


# --- the client


def arrange_there(step: Step, parts: Sequence[Tensor]) -> list[Tensor]:
    """Let a worker arrange data; return pointers to the results."""
    pointers = [part.child for part in parts]
    location = pointers[0]._location
    message = Arrange(tuple(pointers), *_write(step), new_id(), step.constants)
    location.ask(message)
    framework = location.client.attributes_of("torch")
    return [framework.wrapper(pointer_at(location, id, framework, location.client)) for id in message.expected]
