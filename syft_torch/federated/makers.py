"""Makers: how a loop of the worker has computed a result, for the owner's rules, requests and the ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from syft_core.serde import frames
from syft_core.values import Kwargs, Nested, Tensor
from syft_core.workers.party.derivations import Maker, Operand
from syft_core.workers.party.status import RESTRICTED
from syft_core.workers.party.store import Stored, describe_operand
from syft_core.workers.road.execution import Execution


def describe_loop(
    execution: Execution,
    program: tuple[Nested, ...],
    supplied: Sequence[Tensor | None],
    described: Kwargs,
    datasets: Sequence[Sequence[Tensor]],
) -> Maker:
    """Return the maker of the results of a loop.

    Args:
        execution: the execution of the loop.
        program: the protocol's name, then everything that an owner approves: recorded programs with their constants,
            the role of each input, and settings.
        supplied: the tensors that the sender supplied.
        described: further options.
        datasets: the parts of the data, for each dataset.

    """
    digests = {"program": digest(program), "supplied": digest([_detach(each) for each in supplied])}
    options = {**described, **digests, "datasets": len(datasets)}
    operands = describe_operands(execution, datasets)
    return Maker(str(program[0]), tuple(sorted(options.items())), (execution.worker.id,), operands)


def describe_program(
    protocol: str,
    programs: Sequence[str],
    parts: int,
    fixed: int,
    parameters: int,
    settings: Mapping[str, Nested],
    is_shuffled: bool,
) -> tuple[Nested, ...]:
    """Return what an owner approves of a loop over data.

    Args:
        protocol: "train" or "evaluate".
        programs: the digests of the recorded programs.
        parts: the number of parts of the data.
        fixed: the number of tensors that training does not change.
        parameters: the number of those that it does.
        settings: the settings of the loop.
        is_shuffled: whether the samples are in an order that the sender has chosen by a seed.

    """
    return protocol, tuple(programs), (parts, fixed, parameters), tuple(sorted(settings.items())), is_shuffled


def digest(content: Nested) -> str:
    """Return a digest of serialized content: of tensors, their forms and numbers."""
    found = hashlib.sha256()
    for frame in frames(content):
        found.update(len(frame).to_bytes(8, "big"))
        found.update(frame)
    return found.hexdigest()


def _detach(tensor: Tensor | None) -> Tensor | None:
    """Return a tensor without its id and tags."""
    return None if tensor is None else tensor.detach()


def describe_operands(execution: Execution, datasets: Sequence[Sequence[Tensor]]) -> tuple[Operand, ...]:
    """Return the parts of the data in order, then whatever else is restricted.

    Data that is used twice is not whole: one record would count for two.
    """
    parents = list(zip(execution.parents, execution.operands, strict=True))
    operands, seen = [], frozenset[object]()
    for dataset in datasets:
        found = [next((parent for parent, operand in parents if operand is part), None) for part in dataset]
        sources = frozenset([source for parent in found if parent is not None for source in parent.sources])
        is_again = not seen.isdisjoint(sources)
        seen |= sources
        operands += [_describe(parent, part, is_again) for parent, part in zip(found, dataset, strict=True)]
    data = [part for dataset in datasets for part in dataset]
    others = [parent for parent, operand in parents if not _take(data, operand)]
    operands += [Operand((), ()) for parent in others if parent.status & RESTRICTED]
    return tuple(operands)


def _take(data: list[Tensor], operand: Tensor) -> bool:
    """Remove an operand from a list, and return whether it was there: what is data may be something else as well."""
    place = next((place for place, part in enumerate(data) if part is operand), None)
    if place is not None:
        del data[place]
    return place is not None


def _describe(parent: Stored | None, part: Tensor, is_again: bool) -> Operand:
    if parent is None:
        return Operand((), tuple(part.shape))
    described = describe_operand(parent, part)
    return described._replace(is_whole=False) if is_again else described
