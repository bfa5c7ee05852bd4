"""Checkpoints: the weights, the state of the strategy and the history, written in one step after each round."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from syft_core.exceptions import how_to_install
from syft_core.files import write_file
from syft_core.values import Kwargs, Table, Tensor
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.history import History
from syft_torch.federated.strategies import Strategy, is_setting

VERSION = 2


@dataclass
class Checkpoint:
    """The state from which a run continues."""

    tensors: dict[str, Tensor]
    facts: Kwargs
    """Plain data: the identity of the run, and its history."""


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; at any moment the file is complete, either the old one or the new one."""
    tensors = {name: tensor.detach().contiguous() for name, tensor in checkpoint.tensors.items()}
    text = json.dumps({"version": VERSION, "digest": digest(tensors), **checkpoint.facts})
    try:
        from safetensors.torch import save as encode  # noqa: PLC0415  # optional
    except ImportError:
        buffer = io.BytesIO()
        torch.save({"facts": text, "tensors": tensors}, buffer)
        write_file(path, buffer.getvalue(), mode=0o644)
        return
    write_file(path, encode(tensors, metadata={"facts": text}), mode=0o644)


def load(path: Path) -> Checkpoint:
    """Read a checkpoint."""
    try:
        content = path.read_bytes()
        text, tensors = _read_zip(content) if content[:2] == b"PK" else _read_safetensors(content)
        facts = json.loads(text)
        if facts["version"] != VERSION:
            raise FederatedError.checkpoint(str(path), "another release wrote it", "use that release, or another file")
        if facts["digest"] != digest(tensors):
            raise FederatedError.checkpoint(str(path), "it is damaged", "use a copy of it, or another file")
    except FederatedError:
        raise
    except ImportError:
        advice = f"run `{how_to_install('safetensors')}`"
        raise FederatedError.checkpoint(str(path), "safetensors is not installed", advice) from None
    except Exception as error:  # noqa: BLE001  # whatever is wrong with a file
        why = f"it is not a checkpoint ({type(error).__name__})"
        raise FederatedError.checkpoint(str(path), why, "give the file of a checkpoint, or a new name") from None
    return Checkpoint(tensors, facts)


def digest(tensors: dict[str, Tensor]) -> str:
    """Return a digest of the names, forms and values of tensors."""
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        found.update(memoryview(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy()))
    return found.hexdigest()


def _read_zip(content: bytes) -> tuple[str, dict[str, Tensor]]:
    found = torch.load(io.BytesIO(content), weights_only=True)
    return found["facts"], found["tensors"]


def _read_safetensors(content: bytes) -> tuple[str, dict[str, Tensor]]:
    from safetensors.torch import load as decode  # noqa: PLC0415  # optional

    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + size])["__metadata__"]["facts"], decode(content)


# --- the state of a run


@dataclass
class RunState:
    """The state of a run, apart from that of its strategy."""

    weights: Tensor
    history: History
    departures: Kwargs
    """Number of results that have left the workers."""
    starts: int = 0
    """Number of trainings of asynchronous rounds that have been started."""
    best: Tensor | None = None
    """The weights of the best evaluation, if early stopping needs them."""
    evidence: Sequence[Table] = ()
    """What the workers have signed for sums."""


def require_writable(path: Path, strategy: Strategy) -> None:
    """Raise before the first round if a checkpoint cannot be written after it."""
    dump_strategy(strategy)
    if not path.parent.is_dir():
        raise FederatedError.checkpoint(str(path), "its folder does not exist", "make it first")


def save_run(path: Path, identity: Kwargs, strategy: Strategy, run: RunState) -> None:
    """Write the state of a run; ``identity`` must be the same in a run that continues."""
    tensors, numbers = dump_strategy(strategy)
    kept = {"weights": run.weights, **{f"{_PREFIX}{name}": tensor for name, tensor in tensors.items()}}
    if run.best is not None:
        kept["best"] = run.best
    facts: Kwargs = {"run": identity, "strategy": numbers, "history": run.history.dump()}
    facts |= {"starts": run.starts, "departures": run.departures, "evidence": list(run.evidence)}
    try:
        save(path, Checkpoint(kept, facts))
    except OSError as error:
        raise FederatedError.unwritten(str(path), error.strerror or str(error)) from None


def load_run(path: Path, identity: Kwargs, strategy: Strategy) -> RunState:
    """Read the state of a run, and load that of its strategy; raise if another run has written it."""
    found = load(path)
    advice = "use the model, strategy and seed that it was made with, or another file"
    for name, what in _IDENTITY.items():
        if found.facts["run"][name] != identity[name]:
            raise FederatedError.checkpoint(str(path), f"it has another {what}", advice)
    numbers = dump_strategy(strategy)[1]
    if any(numbers.get(name) != value for name, value in found.facts["strategy"].items()):
        raise FederatedError.checkpoint(str(path), "its strategy has other numbers", advice)
    tensors = {name.removeprefix(_PREFIX): t for name, t in found.tensors.items() if name.startswith(_PREFIX)}
    load_strategy(strategy, tensors, found.facts["strategy"])
    history, departures = History.load(found.facts["history"]), found.facts.get("departures", {})
    starts, evidence = found.facts["starts"], found.facts.get("evidence", ())
    return RunState(found.tensors["weights"], history, departures, starts, found.tensors.get("best"), evidence)


_PREFIX = "strategy/"
_IDENTITY = {"model": "model", "fixed": "frozen state of the model", "strategy": "strategy", "seed": "seed"}
"""Facts in which a run and its checkpoint must agree."""


# --- the state of a strategy


def dump_strategy(strategy: Strategy) -> tuple[dict[str, Tensor], Kwargs]:
    """Return the tensors of a strategy, and its numbers."""
    tensors: dict[str, Tensor] = {}
    numbers: Kwargs = {}
    for name, value in vars(strategy).items():
        if isinstance(value, torch.Tensor):
            tensors[name] = value
        elif isinstance(value, dict):
            for key, part in value.items():
                if not isinstance(key, str) or not isinstance(part, torch.Tensor):
                    raise _refuse(strategy, name)
                tensors[f"{name}/{key}"] = part
        elif is_setting(value):
            numbers[name] = list(value) if isinstance(value, tuple) else value
        else:
            raise _refuse(strategy, name)
    return tensors, numbers


def require_stateless(strategy: Strategy) -> None:
    """Raise if a strategy keeps a state of the parameters, which are to be replaced by others."""
    if dump_strategy(strategy)[0]:
        name = type(strategy).__name__
        why = f"the model has other parameters to train than before, of which {name} keeps a state"
        raise FederatedError.trainer(why, "make another trainer")


def _refuse(strategy: Strategy, name: str) -> FederatedError:
    why = f"its attribute {name!r} cannot be saved; keep numbers, tensors, and dicts of tensors with texts as keys"
    return FederatedError.strategy(type(strategy).__name__, why)


def load_strategy(strategy: Strategy, tensors: dict[str, Tensor], numbers: Kwargs) -> None:
    """Invert ``dump_strategy``."""
    for name, value in vars(strategy).items():
        if isinstance(value, dict):
            value.clear()
        elif isinstance(value, torch.Tensor):
            setattr(strategy, name, None)
    for name, value in numbers.items():
        setattr(strategy, name, tuple(value) if isinstance(value, list) else value)
    for name, tensor in tensors.items():
        owner, _, key = name.partition("/")
        if key:
            getattr(strategy, owner)[key] = tensor
        else:
            setattr(strategy, name, tensor)
