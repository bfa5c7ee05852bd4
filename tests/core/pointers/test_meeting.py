from __future__ import annotations

from typing import Any

import pytest
import toy
from syft_toy.hook import ToyHook
from syft_toy.wrapper import Wrapper

from syft_core.exceptions import AlreadyRetrievedError, NotCollocatedError
from syft_core.hook.ops import Op
from syft_core.pointers.meeting import copy_if_plain, copy_plain_tensors, find_nested_pointer
from syft_core.pointers.pointer_tensor import PointerTensor


class Foreign:
    """An array of another library."""

    shape = (2,)

    def __array__(self) -> None: ...

    def __setitem__(self, index: Any, value: Any) -> None: ...


class ForeignNumber:
    """A number of another library, which cannot change."""

    shape = ()

    def __array__(self) -> None: ...


@pytest.fixture
def p(bob: Any) -> PointerTensor:
    return Wrapper(toy.Vector([1.0])).send(bob).child


@pytest.fixture
def q(alice: Any) -> PointerTensor:
    return Wrapper(toy.Vector([1.0])).send(alice).child


@pytest.fixture
def add(hook: ToyHook) -> Op:
    return hook.attributes.ops.look_up("toy.Vector.__add__")


def find(op: Op, *args: Any, **kwargs: Any) -> Any:
    return find_nested_pointer(PointerTensor, op, args, kwargs)


def test_the_first_pointer_of_a_call_is_found_wherever_it_is(add: Op, p: PointerTensor) -> None:
    assert find(add, 1, [p], 2.0) == (p, False)
    assert find(add, "text", other={"deep": p}) == (p, False)
    assert find(add, 1, None) == (None, False)


def test_pointers_to_two_workers_are_refused_with_both_names(add: Op, p: PointerTensor, q: PointerTensor) -> None:
    with pytest.raises(NotCollocatedError, match=r"'bob' and 'alice'"):
        find(add, p, [q])


def test_a_pointer_whose_object_was_fetched_is_refused(add: Op, p: PointerTensor) -> None:
    p.get()

    with pytest.raises(AlreadyRetrievedError):
        find(add, p, 1)


def test_a_local_tensor_is_refused_with_the_line_that_sends_it(add: Op, p: PointerTensor) -> None:
    with pytest.raises(NotCollocatedError, match="send"):
        find(add, p, toy.Vector([1.0]))


def test_a_call_without_pointers_may_have_local_tensors(add: Op) -> None:
    assert find(add, toy.Vector([1.0]), 2) == (None, True)


def test_a_local_tensor_is_not_changed_into_a_remote_one(hook: ToyHook, p: PointerTensor) -> None:
    change = hook.attributes.ops.look_up("toy.Vector.add_")

    with pytest.raises(NotCollocatedError, match="by writing it into a local tensor; fetch it first"):
        find(change, toy.Vector([1.0]), p)


def test_an_array_of_another_library_is_refused_and_a_number_is_not(add: Op, p: PointerTensor) -> None:
    assert find(add, p, ForeignNumber()) == (p, True)
    with pytest.raises(NotCollocatedError, match="Foreign"):
        find(add, p, Foreign())


def test_plain_tensors_are_copied_because_a_worker_may_keep_them(add: Op, p: PointerTensor) -> None:
    vector = toy.Vector([1.0])

    args, kwargs = copy_plain_tensors(add, p, (p, [vector]), {"key": vector, "number": 3})

    assert args[0] is p
    assert args[1][0] is not vector
    assert args[1][0].tolist() == [1.0]
    assert kwargs["key"] is not vector
    assert kwargs["number"] == 3


def test_what_is_not_a_plain_tensor_is_not_copied(p: PointerTensor) -> None:
    items = [1, "text", p, None]

    assert [copy_if_plain(item) for item in items] == items


def test_the_target_of_a_command_is_a_pointer(hook: ToyHook, p: PointerTensor) -> None:
    change = hook.attributes.ops.look_up("toy.Vector.add_")

    copy_plain_tensors(change, p, (p, toy.Vector([1.0])), {})
    with pytest.raises(NotCollocatedError):
        copy_plain_tensors(change, p, (toy.Vector([1.0]), p), {})
