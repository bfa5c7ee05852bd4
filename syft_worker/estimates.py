"""Estimates: how much memory the results of an operation need, by its signature, which is also written in records."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from syft_core.hook.attributes import Op
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.hook.forms import Form, is_constant
from syft_core.hook.rules import map_leaves
from syft_core.hook.signatures import Undescribed
from syft_core.values import Nested, Tensor
from syft_core.workers.road.execution import Execution

_MAX_SIGNATURE = 1024


@dataclass
class Estimate:
    """The known facts about all calls of one signature."""

    signature: str
    encoded: bytes
    is_inferred: bool = False
    """Whether the size of the result could be inferred."""
    bytes: int = 0
    """The new memory for the result, and for the tensors that its graph keeps."""
    count: int = -1
    """The number of tensors in the result; -1 if that is not known."""
    measured: int = -1
    """The size up to which a single result was measured, so that it need not be compared with the estimate."""


def infer(execution: Execution, known: Estimate) -> None:
    """Infer the memory and the results of an operation; the inference itself may crash."""
    call = map_leaves(_to_form, (execution.args, execution.kwargs))
    size = execution.framework.infer_size(execution.op, *call)
    if size is not None:
        known.is_inferred, (known.bytes, known.count) = True, size


def _to_form(leaf: Tensor) -> Nested:
    end = plain_end(leaf)
    if end is None:
        return leaf
    return framework_of(end).form_of(end) or leaf


def write_signature(op: Op, key: tuple[object, ...]) -> str:
    """Return a signature as text that is the same in every process; a long one ends with its hash."""
    text = f"{op.name}({', '.join(map(_write, key[1:]))})"
    if len(text) <= _MAX_SIGNATURE:
        return text
    return f"{text[:_MAX_SIGNATURE]}... {hashlib.sha256(text.encode(errors='replace')).hexdigest()[:16]}"


def _write(part: object) -> str:
    if isinstance(part, Form):
        dtype, grad = str(part.dtype).rpartition(".")[2], " grad" if part.requires_grad else ""
        strides = "" if part.strides is None else f"/{','.join(map(str, part.strides))}"
        return f"{dtype}{list(part.shape)}{strides}{grad}"
    if isinstance(part, type | Undescribed):
        return (part if isinstance(part, type) else part.type).__name__
    if type(part) is tuple:
        if isinstance(part[0], Form | Undescribed) or (
            len(part) == 2 and isinstance(part[0], type)
        ):  # a chain, or a value
            return ascii(part[1]) if _is_text(part) else _write(part[0])
        if type(part[0]) is str:  # a named argument
            return f"{ascii(part[0])[1:-1]}={_write(part[1])}"
        return f"[{', '.join([_write(item) for item in part[1]])}]"
    return repr(part)


def _is_text(part: tuple[Any, ...]) -> bool:
    """Return whether a part is a type and a constant of it, which is written as it is."""
    return isinstance(part[0], type) and part[0] is not float and is_constant(part[1])
