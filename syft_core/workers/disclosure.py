"""Keep the form of a result, and whether there is one, from disclosing values that the sender may not have."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from syft_core.exceptions import ValueRefusedError
from syft_core.hook.attributes import Op, words
from syft_core.hook.chain import plain_end
from syft_core.hook.rules import leaves
from syft_core.workers.execution import Execution
from syft_core.workers.memory import memory_of

TELLS_FORM = words(
    "nonzero argwhere flatnonzero masked_select unique unique_consecutive unique_dim unique_all unique_counts "
    "unique_inverse unique_values bincount one_hot compress extract trim_zeros intersect1d setdiff1d setxor1d union1d "
    "to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc coalesce _nnz indices values "
    "histogram histogramdd histogram2d histogram_bin_edges _pack_padded_sequence _pad_packed_sequence"
)
"""Operations whose results have a form that depends on values."""
TELLS_BY_TENSOR = words(
    "repeat_interleave repeat tile tensor_split split split_with_sizes array_split hsplit vsplit dsplit delete insert "
    "view reshape expand narrow unflatten resize new_zeros new_ones new_full new_empty new_tensor interpolate pad "
    "combinations full select_scatter slice_scatter"
)
"""The same, where one of the arguments that are sizes or positions is itself a tensor."""


def require_undisclosed(execution: Execution) -> None:
    """Refuse an operation whose result, or failure, would tell values that the sender may not have."""
    op, worker = execution.op, execution.worker
    if _tells_form(op, execution.args, execution.kwargs):
        raise ValueRefusedError.form(op.name, str(worker.id))
    elsewhere = any(plain_end(stored.value) is None and not execution.may_read(stored) for stored in execution.parents)
    if elsewhere or execution.framework.needs_values(op, execution.args, execution.kwargs):
        raise ValueRefusedError.undecided(op.name, str(worker.id))


def compute_unread(execution: Execution) -> Any:
    """Run an operation that is refused if it reads values which the sender may not have to decide on a form."""
    with unread(execution, readable_by(execution)):
        return execution.compute()


def readable_by(execution: Execution) -> set[Any]:
    """Return the memory of all tensors in a call that the sender may have."""
    message, parents = execution.message, execution.parents
    own = [stored.value for stored in parents if execution.may_read(stored)]
    readable = {memory for value in [*own, *leaves((message.args, message.kwargs))] for memory in memory_of(value)}
    return readable - {
        memory for stored in parents if not execution.may_read(stored) for memory in memory_of(stored.value)
    }


def unread(execution: Execution, readable: set[Any]) -> AbstractContextManager[Any]:
    """Return a context in which an operation is refused if it reads anything else to decide on a form."""
    op, refusal = execution.op, ValueRefusedError.form(execution.op.name, str(execution.worker.id))
    return execution.framework.unread(op, execution.args, execution.kwargs, readable, refusal)


def _tells_form(op: Op, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Say whether the form of the result may depend on values."""
    operation = op.operation
    if operation in TELLS_FORM:
        return True
    if operation == "where":
        return len(args) + len(kwargs) == 1
    if operation == "__getitem__":
        return any(map(_is_mask_or_bound, args[1] if type(args[1]) is tuple else args[1:]))
    return operation in TELLS_BY_TENSOR and any(hasattr(leaf, "ndim") for leaf in leaves((args[1:], kwargs)))


def _is_mask_or_bound(index: Any) -> bool:
    if type(index) is slice:
        return any(hasattr(bound, "ndim") for bound in (index.start, index.stop, index.step))
    return any(str(getattr(leaf, "dtype", "")).rpartition(".")[2] in ("bool", "uint8") for leaf in leaves(index))
