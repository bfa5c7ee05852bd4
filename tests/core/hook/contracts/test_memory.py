"""What a backend that describes no memory says: tensors may share it with any other."""

from __future__ import annotations

from typing import Any

import pytest
import toy

from syft_core.hook.contracts.memory import Memory


class Copying(Memory):
    """A backend that knows how to copy, and nothing else."""

    def copy(self, tensor: Any) -> Any:
        return list(tensor)


def test_shared_memory_is_assumed_unless_a_backend_knows_better() -> None:
    assert Memory().memory_of([1]) is None
    assert Memory().is_shared([1], [2])
    assert not Memory().is_alone([1])
    assert Memory().owner_of is None
    assert Memory().find_leaves([[1]]) is None


def test_a_tensor_is_copied_for_another_worker() -> None:
    tensor = [1, 2]

    sent = Copying().transfer(tensor)

    assert sent == tensor
    assert sent is not tensor
    assert Copying().transfer_ownership(tensor, 0) is None


def test_a_framework_without_graphs_needs_no_copies_outside_of_them() -> None:
    tensor = [1]

    assert Memory().detach(tensor) is tensor
    assert Memory().alias(tensor) is tensor
    assert not Memory().has_hooks(tensor)
    assert not Memory().is_partial_view(tensor)
    assert not Memory().is_part_of_model(tensor)
    assert Memory().explain_backward(ValueError()) is None


def test_blocks_that_change_tensors_need_no_preparation_by_default() -> None:
    memory = Memory()

    with memory.clear_growth([1]), memory.restore_forms([[1]]):
        memory.make_resizable([[1]])
        memory.note_write([1])
    with memory.hold_state([object()], None, list) as (tensors, find):  # type: ignore[arg-type]
        assert (tensors, find()) == ([], {})
    assert memory.find_state([object()]) == []


def test_a_tensor_is_cleared_where_it_is() -> None:
    vector = toy.Vector([1.0, 2.0])

    Memory().clear(vector)

    assert vector.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda memory: memory.copy([1]),
        lambda memory: memory.replace_in_place([1], [2]),
        lambda memory: memory.overwrite([1], [2]),
        lambda memory: memory.parse_backward(None, (), {}),
    ],
)
def test_what_only_a_backend_can_do_is_not_guessed(call: Any) -> None:
    with pytest.raises(NotImplementedError):
        call(Memory())
