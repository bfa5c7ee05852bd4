"""Joint training: workers of one process, their host, train the models of several of them in one loop.

Each worker gets a ``Train`` of its own and executes it with its own stages: permissions, quotas, lineage, results. Only
the innermost step is shared: a worker that may share it waits there for the others, each of which executes its message
within the stages of those before it. The last one computes for all, and each keeps its own result:

    north: authorize, keep ─▶ south: authorize, keep ─▶ east: authorize, keep ─▶ one loop for three models

A worker with restricted data does not take part: it executes its message alone.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from syft_core.exceptions import ConnectionLostError
from syft_core.location import Location
from syft_core.messages import Message
from syft_core.peer import Peer
from syft_core.values import Tensor
from syft_core.workers.addresses.local import LocalLocation
from syft_core.workers.party.turns import yield_turn
from syft_core.workers.party.worker import Worker
from syft_torch.federated import loops

_log = logging.getLogger(__name__)
MOST = 10
"""Maximum number of models trained in one loop: more do not fit a processor's cache."""


def train_together(trainings: Sequence[tuple[Location, Joinable]]) -> list[Exception | None]:
    """Let the host of several workers execute a message to each of them; return what each raised, or None.

    The host is this process, also if it is an actor of Ray. Workers elsewhere execute theirs by themselves.
    """
    found: dict[int, Exception | None] = {}
    for start in range(0, len(trainings), MOST):
        found.update(Company(trainings[start : start + MOST]).run())
    return [found[id(message)] for _, message in trainings]


class Joinable(Message):
    """A message that a worker may execute together with other workers of its process.

    The other workers are not a field, so they are never sent, and a peer cannot claim them.
    """

    __slots__ = ("company",)
    company: Company


@dataclass(eq=False)
class Member:
    """A worker that is ready to train, with its operands."""

    worker: Worker
    peer: Peer
    task: loops.Recipe
    weights: Tensor
    fixed: list[Tensor]
    parts: list[Tensor]
    seed: int | None
    correction: Tensor | None
    outcome: tuple[Tensor, Tensor] | Exception | None = None

    @contextmanager
    def noting_errors(self) -> Iterator[None]:
        """Return a block whose error is the outcome, unless there is one."""
        try:
            yield
        except ConnectionLostError:  # Nobody waits for the results.
            raise
        except Exception as error:  # noqa: BLE001  # the worker raises it
            self.outcome = self.outcome or error

    def is_like(self, other: Member) -> bool:
        """Return whether both can be trained in one loop: same loss and numbers, same weights, data of one form."""
        return (
            self.task is other.task
            and self.weights is other.weights
            and [(part.shape, part.dtype) for part in self.parts] == [(part.shape, part.dtype) for part in other.parts]
            and all(map(torch.equal, self.fixed, other.fixed))
        )


class Company:
    """The workers that execute their messages together."""

    def __init__(self, trainings: Sequence[tuple[Location, Joinable]]) -> None:
        near = list({each[0].face: each for each in trainings if isinstance(each[0], LocalLocation)}.values())
        # Each holds its lock while the others come, so all companies take locks in one order.
        self._coming = deque(sorted(near, key=lambda each: id(each[0].face.lock)))
        self._locations = {id(message): location for location, message in trainings}
        coming = {id(message) for _, message in near}
        self._declined = [message for _, message in trainings if id(message) not in coming]
        self._members: list[Member] = []
        """The workers that have joined; they hold their locks until their messages are executed."""
        self._has_computed = False
        self._outcomes: dict[int, Exception | None] = {}

    def run(self) -> dict[int, Exception | None]:
        """Execute all messages; return what each raised, or None, by the identity of the message."""
        self._welcome()
        self._members.clear()
        for message in self._declined:
            self._ask(self._locations[id(message)], message)
        return self._outcomes

    def decline(self, message: Joinable) -> None:
        """Let a worker execute its message by itself, after the others have finished."""
        del message.company
        self._declined.append(message)

    def train(self, member: Member) -> tuple[Tensor, Tensor]:
        """Train the model of a worker when all others have come; return the difference and the mean loss."""
        self._members.append(member)
        self._welcome()
        if not self._has_computed:
            self._has_computed = True
            self._compute()
        if not isinstance(member.outcome, tuple):
            raise member.outcome or RuntimeError("a company has trained nothing")
        return member.outcome

    def _welcome(self) -> None:
        """Execute the messages that have not begun, all of them within the stages of the caller."""
        while self._coming:
            location, message = self._coming.popleft()
            message.company = self
            self._ask(location, message)

    def _ask(self, location: Location, message: Joinable) -> None:
        try:
            self._yield_turn()
            location.ask(message)
            self._outcomes[id(message)] = None
        except Exception as error:  # noqa: BLE001  # it is reported, and the others continue
            self._outcomes[id(message)] = error.with_traceback(None)

    # --- computing

    def _compute(self) -> None:
        waiting = list(self._members)
        try:
            while waiting:
                group = [member for member in waiting if member.is_like(waiting[0])]
                waiting = [member for member in waiting if member not in group]
                if len(group) < 2 or not self._train_stacked(group):
                    for member in group:
                        self._train_alone(member)
        except ConnectionLostError as error:  # Nobody waits for the results.
            for member in self._members:
                member.outcome = member.outcome or error

    def _train_stacked(self, group: Sequence[Member]) -> bool:
        """Train models in one loop; return False if an error prevents that, which may be due to one of them."""
        first = group[0]
        corrections = [member.correction for member in group]
        if len({correction is None for correction in corrections}) > 1:
            corrections = [torch.zeros_like(first.weights) if c is None else c for c in corrections]
        data, seeds = [member.parts for member in group], [member.seed for member in group]
        try:
            loop = loops.train_stacked(first.task, first.weights, first.fixed, data, seeds, corrections)
            differences, means = loops.Turns(self._yield_turn).run(loop)
        except ConnectionLostError:
            raise
        except Exception as error:  # noqa: BLE001  # each trains alone, and reports its own error
            _log.warning("cannot stack %d clients (%s): each trains alone", len(group), type(error).__name__)
            return False
        for member, difference, mean in zip(group, differences, means, strict=True):
            member.outcome = member.outcome or (difference.clone(), mean.clone())
        return True

    def _train_alone(self, member: Member) -> None:
        turns = loops.Turns(self._yield_turn)
        with member.noting_errors():
            given = member.task, member.weights, member.fixed, member.parts, member.seed, member.correction
            member.outcome = member.outcome or turns.run(loops.train(*given, turns.rest))

    def _yield_turn(self) -> None:
        """Let others use the workers, then take the locks again in order; a worker that may not continue fails."""
        entered = []
        try:
            for member in reversed(self._members):
                block = member.worker.waiting(is_idle=True)
                with member.noting_errors():
                    block.__enter__()
                    entered.append((member, block))
            yield_turn()
        finally:
            for member, block in reversed(entered):
                with member.noting_errors():
                    block.__exit__(None, None, None)
