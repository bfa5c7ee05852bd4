"""Pointers: operations on them run on a worker, in process and by wire."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from syft_core.exceptions import OperationNotAllowedError, SyftError, ValueRefusedError
from syft_core.hook.chain import end_of
from syft_core.hook.dispatch import dispatch
from syft_core.hook.rules import leaves, map_leaves
from syft_core.pointers.object_pointer import ObjectPointer
from syft_core.pointers.revealing import revealing
from syft_core.testing.calls import SampleCall, is_tensor, plain_parts
from syft_core.testing.section import VALUES, Bob, Section, fix
from syft_core.values import Tensor

_CODECS = "register_codecs"


class PointerSection(Section):
    """Every check runs in process and through the wire format."""

    @fix("FrameworkAttributes.transfer", _CODECS)
    def test_a_tensor_is_sent_to_a_worker_and_fetched(self, bob: Bob) -> None:
        pointer = self.send(bob, VALUES)

        assert isinstance(pointer.child, ObjectPointer)
        assert self.numbers(end_of(pointer.get())) == VALUES

    @fix("FrameworkAttributes.transfer", _CODECS)
    def test_workers_do_not_share_memory(self, bob: Bob) -> None:
        if not self.mutable:
            pytest.skip("tensors are immutable")
        plain = bob.hook.create_tensor(VALUES)
        pointer = self.send(bob, plain)

        plain[0] = 9.0
        first = end_of(pointer.get(deregister_ptr=False))
        first[1] = 9.0

        assert self.fetch(pointer) == VALUES

    @fix("FrameworkAttributes.form_of", "FrameworkAttributes.facts_of_form", "FrameworkAttributes.answer_from_form")
    def test_a_pointer_knows_the_form_of_its_object(self, bob: Bob, plain: Tensor) -> None:
        pointer = self.send(bob, plain)

        for tensor in (pointer, pointer + pointer):
            assert (tuple(tensor.shape), tensor.dtype, len(tensor)) == (tuple(plain.shape), plain.dtype, 3)

    @fix("FrameworkAttributes._collect", "FrameworkAttributes.infer", "Op.facts", _CODECS)
    def test_operations_on_pointers_give_the_same_results(self, bob: Bob, calls: Sequence[SampleCall]) -> None:
        usual = {call.op: call for call in calls if call.op.tier == "reviewed" and not call.op.random}
        for call in usual.values():
            if call.discloses_nothing and any(map(is_tensor, leaves(call.outcomes[0].before))):
                self._check(bob, call)

    def _check(self, bob: Bob, call: SampleCall) -> None:
        """Compare the result of a call, or the tensor it changes, with that of the same call on pointers."""
        outcome, copy = call.working[0], bob.hook.attributes.copy
        sent = map_leaves(lambda leaf: self.send(bob, copy(leaf)) if is_tensor(leaf) else leaf, outcome.before)
        try:
            result = dispatch(call.op, sent, {})
        except SyftError as error:
            raise AssertionError(f"{call} is refused: {error}") from error
        result, expected = (sent[0], outcome.args[0]) if call.op.inplace else (result, outcome.result)
        fetched = map_leaves(lambda leaf: end_of(leaf.get(deregister_ptr=False)) if _is_remote(leaf) else leaf, result)
        assert type(fetched) is type(expected), f"{call} returns a {type(fetched).__name__} on a pointer"
        assert plain_parts(fetched) == plain_parts(expected), f"{call} returns different plain values on a pointer"
        for found, real in zip(leaves(fetched), leaves(expected), strict=True):
            if is_tensor(real):
                assert is_tensor(found), f"{call} does not return a pointer"
                assert (tuple(found.shape), found.dtype) == (tuple(real.shape), real.dtype), str(call)
                same = call.op.uninitialized or repr(self.numbers(found)) == repr(self.numbers(real))
                assert same, f"{call} returns different numbers on a pointer"

    @fix("the wrapper's protocol method", "FrameworkAttributes._methods")
    def test_functions_methods_and_operators_accept_pointers(self, bob: Bob) -> None:
        x, y = (self.send(bob, values) for values in ([1.0, 2.0], [3.0, 5.0]))

        assert self.fetch(self.concatenate([x, y])) == [1.0, 2.0, 3.0, 5.0]
        assert self.fetch(x + y) == [4.0, 7.0]
        assert self.fetch(2 - x) == [1.0, 0.0]
        assert self.fetch(x[1:]) in (2.0, [2.0])
        assert float(self.fetch(y.sum())) == 8.0

    @fix("describe_op(inplace=...)", "FrameworkAttributes.inplace_methods")
    def test_an_in_place_operator_changes_the_object_or_creates_a_new_one(self, bob: Bob) -> None:
        x = self.send(bob, VALUES)
        same = x

        x += 1

        assert (x is same) is self.mutable
        assert self.fetch(x) == [v + 1 for v in VALUES]
        assert self.fetch(same) == ([v + 1 for v in VALUES] if self.mutable else VALUES)

    @fix("FrameworkAttributes.replace_in_place")
    def test_a_tensor_can_be_sent_and_fetched_in_place(self, bob: Bob) -> None:
        x = self.tensor(bob.hook, VALUES)

        x.send_(bob)
        assert isinstance(x.child, ObjectPointer)
        x.get_()

        assert self.numbers(end_of(x)) == VALUES

    @fix("FrameworkAttributes.worker_methods")
    def test_tensors_are_created_on_a_worker(self, bob: Bob) -> None:
        remote = getattr(bob.remote, bob.hook.attributes.ALIAS)

        made = remote.zeros((2,))

        assert isinstance(made.child, ObjectPointer)
        assert self.fetch(made) == [0.0, 0.0]

    @fix("FrameworkAttributes.result_types")
    def test_named_tuples_keep_their_type(self, bob: Bob, calls: Sequence[SampleCall]) -> None:
        named = {type(call.working[0].result): call for call in calls if call.returns_named_tuple}
        for call in named.values():
            if call.op.tier == "reviewed":
                self._check(bob, call)

    @fix("Op.facts (Facts.reveals)")
    def test_values_are_not_revealed_implicitly(self, bob: Bob) -> None:
        x = self.send(bob, [2.0]).sum()

        for read in (bool, float, int, lambda value: value.tolist(), lambda value: value.item()):
            with pytest.raises(ValueRefusedError, match="cannot"):
                read(x)
        with revealing("the check of a backend"):
            assert float(x) == 2.0

    @fix("Op.facts (Facts.reveals, local, tier)")
    def test_revealing_local_and_off_operations_do_not_run_on_a_worker(self, bob: Bob) -> None:
        x = self.send(bob, VALUES)
        answered_here = {"__deepcopy__", *bob.hook.attributes.facts_of_form}
        methods = [op for op in bob.hook.attributes.ops if op.spelling == "method" and op.attr not in answered_here]
        for op in methods:
            if op.reveals or op.local or op.tier == "off":
                with pytest.raises((ValueRefusedError, OperationNotAllowedError)):
                    dispatch(op, (x,), {})


def _is_remote(leaf: Tensor) -> bool:
    return isinstance(getattr(leaf, "child", None), ObjectPointer)
