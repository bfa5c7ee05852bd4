"""Operations that are the worker's own code, apart from its loops: what arranging data and statistics have in common.

The sender names stored tensors and settings. For the worker the call is one operation: it passes the same stages as
every other, and its results stay on the worker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

import torch

from syft_core.hook.attributes import Op
from syft_core.hook.facts import Facts
from syft_core.hook.signatures import Memo
from syft_core.messages import Message
from syft_core.peer import Peer
from syft_core.values import Args, Function, Nested, Tensor
from syft_core.workers.party.derivations import Maker
from syft_core.workers.party.store import lineage_of
from syft_core.workers.party.worker import Worker
from syft_core.workers.road.derivation import derive_program, describe_arguments
from syft_core.workers.road.execution import Execution
from syft_core.workers.road.procedure import execute
from syft_core.workers.seeing.permissions import require_right_to_use
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.memory import measure_peak

Describe = Callable[["OwnExecution", int], "Maker | None"]
"""A function of an execution and the place of a result that returns how it was computed."""


class OwnExecution(Execution):
    """The execution of an operation of the worker's own; what is known about its call is forgotten with it."""

    __slots__ = ("describe", "own_memo")
    describe: Describe
    own_memo: Memo

    @property
    def memo(self) -> Memo:
        """What the stages know about this call."""
        return self.own_memo

    def store(self, value: Tensor, place: int) -> Nested:
        """Store a result, and how it was computed."""
        placed = super().store(value, place)
        if (maker := self.describe(self, place)) is not None:
            self.find_result(placed).derivation = derive_program(maker, list(describe_arguments(self)))
        return placed


def prepare(worker: Worker, message: Message, data: Args, result: int, sender: Peer) -> OwnExecution:
    """Return the execution of a message on stored data; raise unless the sender may use it, and it is plain."""
    framework = worker.attributes_of("torch")
    execution = OwnExecution(worker, framework, _make_op(message, lambda *tensors: tensors), sender)
    execution.own_memo, execution.describe = {}, lambda _execution, _place: None
    execution.result = result
    execution.args = execution.resolve(data)
    execution.lineage = lineage_of(execution.parents)
    require_right_to_use(worker, execution.parents, sender)
    if not execution.args or len(execution.parents) != len(execution.args):
        raise FederatedError.operands(str(worker.id), "its data is not stored there", "send it first")
    for tensor in execution.args:
        _require_plain(worker, tensor)
    return execution


def run(execution: OwnExecution, message: Message, compute: Function, count: int, describe: Describe) -> Nested:
    """Compute the results of a message: a function of the data whose forms depend on the forms of the data alone."""
    worker, sender = execution.worker, execution.peer
    execution.op, execution.describe, execution.count = _make_op(message, compute), describe, count
    needed = 0 if worker.guard is None else measure_peak(compute, execution.args)
    worker.stats.operations += 1
    with worker.reserve(sender, execution.op.name, count, needed), execution.framework.isolate() or nullcontext():
        return execute(execution)


def require_rows(worker: Worker, parts: Sequence[Tensor]) -> int:
    """Return how many rows the parts of a dataset have; raise unless all have as many."""
    lengths = {len(part) if part.dim() else 0 for part in parts}
    if len(lengths) > 1 or 0 in lengths:
        raise FederatedError.operands(
            str(worker.id), "the parts of its data differ in length", "store one row per sample"
        )
    return lengths.pop()


def _make_op(message: Message, compute: Function) -> Op:
    facts = Facts(writes=frozenset(), discloses="nothing", reads_beyond=False, partial=True, tier="reviewed")
    name = f"federated.{type(message).__name__.lower()}"

    def process(execution: OwnExecution) -> Nested:
        with torch.no_grad():
            return compute(*[_detach(tensor) for tensor in execution.args])

    return Op(name, compute, "function", name, compute, describe=lambda _op: facts, process=process)


def _detach(tensor: Tensor) -> Tensor:
    plain = tensor.detach()
    return plain.clone() if plain.is_inference() else plain


def _require_plain(worker: Worker, tensor: Tensor) -> None:
    is_plain = isinstance(tensor, torch.Tensor) and getattr(tensor, "child", None) is None
    if not is_plain or tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized:
        raise FederatedError.operands(str(worker.id), "its data is not a plain, dense tensor", "store it as one")
