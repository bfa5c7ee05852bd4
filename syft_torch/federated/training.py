"""The messages ``Train`` and ``Evaluate``: a worker trains a model on its data, or measures it.

The sender brings a recorded loss, weights and numbers; the loop is the worker's own code. For the worker the whole call
is one operation: it passes the same stages, and its results stay on the worker like those of any other operation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import ClassVar
from weakref import ref

import torch

from syft_core.exceptions import OperandChangedError
from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.facts import Facts
from syft_core.hook.rules import leaves
from syft_core.hook.signatures import Memo, note, signature_of
from syft_core.messages import MessageFacts
from syft_core.peer import Peer
from syft_core.plans.program import Program
from syft_core.values import Args, Kwargs, Nested, Tensor
from syft_core.workers.party.derivations import CORRECTION, WEIGHTS, Derivation
from syft_core.workers.party.status import RESTRICTED
from syft_core.workers.party.store import Stored, lineage_of
from syft_core.workers.party.worker import Worker
from syft_core.workers.road.derivation import derive_program, describe_arguments
from syft_core.workers.road.execution import Execution
from syft_core.workers.road.memory import change_count
from syft_core.workers.road.procedure import execute
from syft_core.workers.seeing.ledger import join_sources
from syft_core.workers.seeing.permissions import require_permission
from syft_torch.federated import loops, optimizers
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.joint import Company, Joinable, Member
from syft_torch.federated.loops import Recipe, Settings
from syft_torch.federated.losses import Loss, ModelForms, compile_loss, digests
from syft_torch.federated.makers import describe_loop, describe_operands, describe_program
from syft_torch.federated.memory import measure_peak
from syft_torch.federated.private_steps.accounting import require_accounting
from syft_torch.federated.private_steps.charges import Charges
from syft_torch.federated.private_steps.loop import PrivateSteps

MAX_OPERATIONS, MAX_BYTES = 16, 1 << 26
"""Maximum number of losses, with their settings, that a process remembers, and maximum bytes of their plans."""
_NOISE_STATES = 12
"""Number of tensors of the size of the weights that a step with noise needs, in float32."""


def _describe(text: str) -> MessageFacts:
    return MessageFacts(
        text=lambda _message: text,
        uses=lambda message, _receiver: message.plans,
        creates=lambda message, _receiver: (message.result,),
        stores_results=True,
        waits=True,
    )


@dataclass(slots=True)
class OnData(Joinable):
    """A recorded function of a model and of stored data; the base of both messages."""

    plans: tuple[int | str, ...]
    """The function: one plan for all batch lengths, or one for each length."""
    weights: Tensor
    """The tensors that training changes, as one flat tensor."""
    fixed: Args
    """Pointers to the other tensors of the model."""
    data: Args
    """Pointers to the parts of the data: of one dataset after another."""
    parts: int
    """Number of parts of a dataset."""
    settings: Kwargs
    """The fields of ``loops.Settings``."""
    result: int

    @property
    def id(self) -> int | str:
        """The id of the function, which names the message in records."""
        return self.plans[0] if self.plans else ""


@dataclass(slots=True)
class Train(OnData):
    """Train a model on stored data; keep the difference to its weights under ``result``, and the loss after it."""

    code: ClassVar[int] = 380
    facts: ClassVar[MessageFacts] = _describe("train")
    seed: int | None = None
    """The seed of the order of samples, and of random operations on data that the sender may read; None means the order
    in which they are stored."""
    correction: Tensor = None
    """A flat tensor that is added to each gradient."""

    @property
    def expected(self) -> range:
        """The ids of the results."""
        return range(self.result, self.result + 2)


@dataclass(slots=True)
class Evaluate(OnData):
    """Compute metrics of a model on stored data; keep the sum of each over all samples, in one tensor."""

    code: ClassVar[int] = 381
    facts: ClassVar[MessageFacts] = _describe("evaluate")

    @property
    def expected(self) -> range:
        """The id of the result."""
        return range(self.result, self.result + 1)


def train(worker: Worker, message: Train, sender: Peer) -> Nested:
    """Train a model on stored data, as one operation."""
    return _handle(worker, message, sender, message.correction, message.seed, 2)


def evaluate(worker: Worker, message: Evaluate, sender: Peer) -> Nested:
    """Compute metrics of a model on stored data, as one operation."""
    return _handle(worker, message, sender, None, None, 1)


class _Execution(Execution):
    """The execution of a training; its seed is not an argument, because forms do not depend on it."""

    __slots__ = ("company", "operation", "seed")
    operation: LoopOp
    seed: int | None
    company: Company | None
    """The workers with which it is executed, if there are others."""

    @property
    def memo(self) -> Memo:
        """The memo of the stages for all calls of this signature, forgotten together with the operation."""
        if self.found_memo is None:
            self.found_memo = self.operation.recall(signature_of(self.op, self.args, self.kwargs))
        return self.found_memo


def _handle(worker: Worker, message: OnData, sender: Peer, correction: Tensor, seed: int | None, count: int) -> Nested:
    framework = worker.attributes_of("torch")
    programs = [_find_program(worker, id, sender) for id in message.plans]
    operation = _find_operation(framework, programs, message)
    execution = _Execution(worker, framework, operation.op, sender)
    execution.operation, execution.seed = operation, seed
    company = execution.company = getattr(message, "company", None)
    execution.result, execution.count = message.result, count
    execution.args = execution.resolve((message.weights, correction, *message.fixed, *message.data))
    execution.lineage = lineage_of(execution.parents)
    operation.require_operands(execution)
    operation.require_reviewed(execution)
    operation.require_whole(execution)
    if company is not None and not operation.may_join(execution):
        company.decline(message)
        return None
    needed = 0 if worker.guard is None else operation.measure_memory(execution.args)
    worker.stats.operations += 1
    with worker.reserve(sender, operation.op.name, count, needed), framework.isolate() or nullcontext():
        return execute(execution)


def _find_program(worker: Worker, id: int | str, sender: Peer) -> Program:
    """Return a plan of the sender: a plan of another peer may contain values that the sender does not know."""
    entry = worker.object_store.entry(id)
    if not isinstance(entry.value, Program):
        raise FederatedError.plan(str(id), "it is not a plan")
    require_permission(worker, "call", entry, sender, entry.value)
    if entry.giver != sender:
        raise FederatedError.plan(entry.value.name, "somebody else has sent it")
    return entry.value


# --- the operation


class LoopOp:
    """Training, or evaluating, with one loss and one choice of numbers, as an operation."""

    def __init__(self, framework: FrameworkAttributes, programs: Sequence[Program], message: OnData) -> None:
        self.is_training = type(message) is Train
        self.verb = message.facts.text(message)
        parts, fixed = message.parts, len(message.fixed)
        if not programs or any(
            known.inputs[: -parts or None] != programs[0].inputs[: -parts or None] for known in programs
        ):
            raise FederatedError.plan("loss", "its plans differ in their inputs")
        if not 1 <= parts <= len(programs[0].inputs) - fixed:
            raise FederatedError.plan("loss", "it has fewer inputs than there are parts of the data")
        self.losses: list[Loss] = [compile_loss(program, parts, framework) for program in programs]
        self.shape = ModelForms(programs[0], fixed, parts)
        self.parts, self.fixed = parts, fixed
        self._memory: Memo = {}
        """The bytes that a step needs, by the lengths of the datasets."""
        self._memos: Memo = {}
        """The memos of calls, by signature."""
        self.bytes = sum(program.bytes for program in programs)
        self.settings = Settings.read(message.settings)
        self.task = Recipe(self.losses, self.shape, self.settings)
        self._require_model()
        self.private = self._make_private()
        self._unreviewed = [op for loss in self.losses for op in loss.unreviewed]
        facts = Facts(
            writes=frozenset(),
            discloses="nothing",
            reads_beyond=False,
            partial=True,
            random=any(loss.is_random for loss in self.losses),
            tier="public" if self._unreviewed else "reviewed",
        )
        # If one loss ended the process, only that loss is refused.
        name = f"federated.{type(message).__name__.lower()}#{_write_digest(programs)}"
        self.op = Op(
            name, self.rehearse, "function", name, self.rehearse, describe=lambda _op: facts, process=self.process
        )

    def _require_model(self) -> None:
        forms, count = self.shape.forms, len(self.shape.parameters)
        if not all(known.dtype.is_floating_point for known in forms if known.requires_grad):
            raise FederatedError.plan("loss", "it trains a tensor that is not real")
        if any(known.dtype.is_complex for known in forms):
            raise FederatedError.plan("loss", "it changes a complex tensor")
        if not self.is_training:
            return
        if not count or self.shape.parameters != list(range(count)):
            raise FederatedError.plan("loss", "its parameters are not its first inputs")
        places = [place for _, found in self.settings.groups for place in found]
        if len(set(places)) < len(places) or not all(0 <= place < count for place in places) or not places:
            raise FederatedError.settings("groups", "does not name each parameter once")
        optimizers.require_valid(self.settings.optimizer, self.settings.groups)

    def _make_private(self) -> PrivateSteps | None:
        """Return the loop with clipping and noise, if it is asked for and the loss can be used with it."""
        privacy = self.settings.privacy
        if privacy is None:
            return None
        if not self.is_training:
            raise FederatedError.settings("privacy", "is for training, not for evaluating")
        require_accounting()
        return PrivateSteps(self.losses, self.shape, self.settings, privacy)

    def require_operands(self, execution: Execution) -> None:
        """Raise unless weights and data are plain tensors of the recorded forms; needs no values."""
        weights, correction, *tensors = execution.args
        worker = str(execution.worker.id)
        layout = self.shape.layout
        for flat in (weights, *(() if correction is None else (correction,))):
            is_flat = type(flat) is torch.Tensor and _is_dense(flat) and not flat.is_meta
            if not is_flat or tuple(flat.shape) != (layout.total,) or flat.dtype != layout.dtype:
                why = f"the weights do not have the form {layout.dtype}[{layout.total}] of the recorded loss"
                raise FederatedError.operands(worker, why, "send the weights of the recorded model")
        forms = [*self.shape.fixed, *self.shape.parts * ((len(tensors) - self.fixed) // self.parts)]
        if len(forms) != len(tensors) or len(tensors) == self.fixed:
            raise FederatedError.operands(worker, "a part of the data is missing", "name all parts of each dataset")
        for place, (tensor, known) in enumerate(zip(tensors, forms, strict=True)):
            if (
                not isinstance(tensor, torch.Tensor)
                or getattr(tensor, "child", None) is not None
                or not _is_dense(tensor)
            ):
                raise FederatedError.operands(worker, "its data is not a plain, dense tensor", "store it as one")
            any_length = place >= self.fixed
            expected, found = tuple(known.shape)[any_length:], tuple(tensor.shape)[any_length:]
            if tensor.dtype != known.dtype or tensor.dim() != len(known.shape) or found != expected:
                why = f"its data has the form {tensor.dtype}{list(tensor.shape)}, not {known.dtype}{list(known.shape)}"
                raise FederatedError.operands(worker, why, "record the loss for data of this form")
        for start in range(self.fixed, len(tensors), self.parts):
            if len({len(tensor) for tensor in tensors[start : start + self.parts]}) > 1:
                raise FederatedError.operands(
                    worker, "the parts of its data differ in length", "store one row per sample"
                )
        if not sum(len(tensor) for tensor in tensors[self.fixed :]):
            raise FederatedError.operands(worker, "it has no samples", "leave this worker out")

    def require_reviewed(self, execution: Execution) -> None:
        """Raise if the sender may not read the data, and a step of the loss was not reviewed for such data."""
        if self._unreviewed and not execution.is_readable:
            op = self._unreviewed[0]
            instead = f"use `{op.instead}`" if op.instead else "use operations that are (docs/security.md)"
            why = f"the loss uses {op.name!r}, which was not reviewed for private data"
            raise FederatedError.trainer(why, instead)

    def may_join(self, execution: Execution) -> bool:
        """Return whether a worker may train together with others: nothing restricts its data, and no step is its own.

        Random numbers and running statistics would differ from those of the worker alone.
        """
        has_statistics = len(self.shape.forms) > len(self.shape.parameters)
        is_alike = not (execution.status & RESTRICTED or self.op.random or has_statistics)
        return self.is_training and self.private is None and is_alike

    def recall(self, signature: tuple[object, ...]) -> Memo:
        """Return the memo of a signature."""
        found = self._memos.get(signature)
        return note(self._memos, signature, {}) if found is None else found

    def measure_memory(self, args: Args) -> int:
        """Return the approximate bytes that the loop needs in addition to its operands."""
        weights, _, *tensors = args
        data = tensors[self.fixed :]
        key = tuple(map(len, data[:: self.parts]))
        step = self._memory.get(key)
        if step is None:
            step = note(self._memory, key, measure_peak(self.rehearse, args))
        size: int = sum(tensor.nbytes for tensor in data)
        states = optimizers.count_states(self.settings.optimizer, self.settings.groups)
        states += 0 if self.private is None else _NOISE_STATES
        return step + 8 * sum(key) + min(size, loops.MAX_BLOCK) + states * int(weights.nbytes)

    def rehearse(self, weights: Tensor, correction: Tensor | None, *tensors: Tensor) -> Nested:
        """Do one step for each length of batches; return results of the right form."""
        fixed, parts = self._arrange(tensors)
        values = self.shape.layout.split_apart(weights.detach().clone())
        found = None
        if self.private is not None:
            self.private.rehearse(values, fixed, parts)
            return torch.zeros_like(weights), torch.zeros((), dtype=torch.float64, device=weights.device)
        for length in self.task.lengths(len(parts[0])):
            batch = [part[:length].clone() for part in parts]
            trained = [values[place].requires_grad_(self.is_training) for place in self.shape.parameters]
            kept = [tensor.clone() for tensor in fixed]
            with torch.set_grad_enabled(self.is_training):
                found = self.task.find_loss(length).rehearse((*values, *kept, *batch))
            if self.is_training:
                loops.require_scalar(found)
                torch.autograd.grad(found, trained, allow_unused=True)
            else:
                found = loops.measure(found, length)
        if not self.is_training:
            return found
        return torch.zeros_like(weights), torch.zeros((), dtype=torch.float64, device=weights.device)

    def process(self, execution: _Execution) -> Nested:
        """Compute the result, and let others go first from time to time."""
        versions = list(map(change_count, execution.args[2:]))
        try:
            result = self._run(execution, versions)
        finally:
            self._require_unchanged(execution, versions)
        execution.lineage = lineage_of(execution.parents)
        return result

    def _run(self, execution: _Execution, versions: list[int | None]) -> Nested:
        weights, correction, *tensors = execution.args
        weights, correction = self._copy_stored(execution, weights), self._copy_stored(execution, correction)
        fixed, parts = self._arrange(tensors)
        privacy = self._charge(execution, sum(map(len, parts[:1])))
        if execution.status & RESTRICTED:
            seed = None if execution.seed is None else torch.tensor(execution.seed)
            execution.derivation = self._describe(execution, (weights, correction, *fixed, seed), privacy)
        if execution.company is not None and self.may_join(execution):
            member = Member(
                execution.worker, execution.peer, self.task, weights, fixed, parts, execution.seed, correction
            )
            return execution.company.train(member)

        def yield_turn() -> None:
            execution.worker.yield_turn()
            self._require_unchanged(execution, versions)

        turns = loops.Turns(yield_turn, self._protect_generator(execution))
        if self.private is not None:
            loop = self.private.train(weights, fixed, parts, correction)
        elif self.is_training:
            loop = loops.train(self.task, weights, fixed, parts, execution.seed, correction, turns.rest)
        else:
            loop = loops.evaluate(self.task, weights, fixed, parts)
        return turns.run(loop)

    def require_whole(self, execution: Execution) -> None:
        """Raise if a record that is left out could change more than its own row of the data."""
        if self.private is None or not execution.status & RESTRICTED:
            return
        if not all(operand.is_whole for operand in describe_operands(execution, self._find_datasets(execution))):
            why = "it would train on data that is not as its owner has published it, or is used twice"
            advice = "use published objects, each once; let the worker choose columns, scale and split"
            raise FederatedError.operands(str(execution.worker.id), why, advice)

    def _find_datasets(self, execution: Execution) -> list[Args]:
        data = execution.args[2 + self.fixed :]
        return [data[start : start + self.parts] for start in range(0, len(data), self.parts)]

    def _charge(self, execution: _Execution, samples: int) -> Nested:
        """Charge a private training to its data before its first step; return the description of its noise."""
        privacy = self.settings.privacy
        if privacy is None or self.private is None:
            return None
        self.require_whole(execution)
        charges = execution.worker.part(Charges)
        sources = join_sources(self._find_parents(execution))
        return charges.charge(execution.peer, execution.result, sources, privacy, self.private.draws(samples))

    def _find_parents(self, execution: Execution) -> list[Stored]:
        """Return the stored objects of the data."""
        data = execution.args[2 + self.fixed :]
        pairs = zip(execution.parents, execution.operands, strict=True)
        return [parent for parent, operand in pairs if any(operand is part for part in data)]

    def _describe(self, execution: _Execution, supplied: Sequence[Tensor | None], privacy: Nested) -> Derivation:
        """Return how the results are computed: by which program, on which data, from what the sender supplied."""
        datasets = self._find_datasets(execution)
        lengths = [len(dataset[0]) for dataset in datasets]
        used = sum(lengths) if self.private is not None else self.settings.divide(sum(lengths)).end
        described = {
            "parameters": self.shape.layout.parameters,
            "samples": used,
            "weighted": self.is_training,
            "clip": self.settings.clip,
            "privacy": privacy,
        }
        program = describe_program(
            "train" if self.is_training else "evaluate",
            [digests.of(loss.program) for loss in self.losses],
            self.parts,
            self.fixed,
            len(self.shape.parameters),
            self.settings.write(),
            execution.seed is not None,
        )
        maker = describe_loop(execution, program, supplied, described, datasets)
        given = [WEIGHTS, *([CORRECTION] if execution.args[1] is not None else [])]
        given += [f"fixed {place}" for place in range(1, self.fixed + 1)]
        roles = [*given, *[""] * (len(execution.args) - 2 - self.fixed)]
        return derive_program(maker, list(describe_arguments(execution)), roles, find_rerun=ref(self))

    def find_length(self, rows: int) -> int:
        """Return how many samples a batch has."""
        return self.task.lengths(rows)[0]

    def run_again(self, roles: Sequence[str], operands: Sequence[Tensor]) -> Tensor:
        """Return the gradient of one batch, or what is measured on it."""
        weights, *tensors = [each for each, role in zip(operands, roles, strict=True) if role != CORRECTION]
        fixed, parts = self._arrange(tensors)
        length = self.find_length(len(parts[0]))
        values = self.shape.layout.split_apart(weights.detach().clone())
        trained = [values[place].requires_grad_(self.is_training) for place in self.shape.parameters]
        with torch.set_grad_enabled(self.is_training):
            found = self.task.find_loss(length)(
                (*values, *[each.clone() for each in fixed], *[p[:length] for p in parts])
            )
        if not self.is_training:
            return torch.cat([each.reshape(-1) for each in leaves(loops.measure(found, length))])
        gradients = torch.autograd.grad(found, trained, allow_unused=True)
        return torch.cat([each.reshape(-1) for each in gradients if each is not None])

    def _protect_generator(self, execution: _Execution) -> Callable[[], AbstractContextManager[None]]:
        """Return a function that makes a context for the random numbers of a turn.

        On data that the sender may not read, they come from a generator that it does not know.
        """
        if not self.op.random:
            return nullcontext
        if not execution.is_readable:
            return partial(execution.framework.protect_rng, self.op)
        if execution.seed is None:
            return nullcontext
        return partial(loops.seeded, [torch.Generator().manual_seed(execution.seed & loops.MASK).get_state()])

    def _arrange(self, tensors: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        plain = [tensor.detach() for tensor in tensors]
        plain = [tensor.clone() if tensor.is_inference() else tensor for tensor in plain]
        fixed, data = plain[: self.fixed], plain[self.fixed :]
        if len(data) == self.parts:
            return fixed, data
        return fixed, [torch.cat(data[place :: self.parts]) for place in range(self.parts)]

    @staticmethod
    def _copy_stored(execution: Execution, flat: Tensor) -> Tensor:
        """Return a copy of a stored tensor, which others may change in their turns, or a tensor of the message."""
        is_stored = any(flat is operand for operand in execution.operands)
        return flat.detach().clone() if is_stored else flat

    def _require_unchanged(self, execution: Execution, versions: list[int | None]) -> None:
        """Raise if the data has changed: the sender may have been allowed to see only the old values."""
        if list(map(change_count, execution.args[2:])) != versions:
            raise OperandChangedError.during(self.verb, execution.worker.id) from None


def _is_dense(tensor: Tensor) -> bool:
    return tensor.layout is torch.strided and not (tensor.is_nested or tensor.is_quantized)


def _write_digest(programs: Sequence[Program]) -> str:
    return hashlib.sha256("".join(map(digests.of, programs)).encode()).hexdigest()[:12]


def _find_operation(framework: FrameworkAttributes, programs: list[Program], message: OnData) -> LoopOp:
    """Return the operation for a message; those of equal messages are the same, so that forms are inferred once.

    Only the latest are kept, because peers send the losses: no other cache refers to them.
    """
    numbers = repr(sorted(message.settings.items()))
    key = type(message), tuple(map(digests.of, programs)), message.parts, len(message.fixed), numbers
    known = _operations.pop(key, None) or LoopOp(framework, programs, message)
    _operations[key] = known
    while len(_operations) > MAX_OPERATIONS or (
        len(_operations) > 1 and sum(operation.bytes for operation in _operations.values()) > MAX_BYTES
    ):
        del _operations[next(iter(_operations))]
    return known


_operations: dict[object, LoopOp] = {}
"""The operations that were used last, the latest at the end."""
