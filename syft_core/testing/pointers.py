"""Pointers: operations on them run on a worker, in process and by wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from syft_core.exceptions import OperationNotAllowedError, SyftError, ValueRefusedError
from syft_core.hook.chain import end_of
from syft_core.hook.dispatch import dispatch
from syft_core.hook.hook import FrameworkHook
from syft_core.hook.rules import leaves, map_leaves
from syft_core.pointers.object_pointer import ObjectPointer
from syft_core.pointers.revealing import revealing
from syft_core.testing.calls import Call, form_of, is_tensor, plain_parts
from syft_core.testing.section import VALUES, Section, fix
from syft_core.values import Nested, Tensor
from syft_core.workers.virtual import VirtualWorker

_CODECS = "register_codecs"


class PointerSection(Section):
    """Every check runs in process and through the wire format."""

    @fix("FrameworkAttributes.transfer", _CODECS)
    def test_a_tensor_is_sent_to_a_worker_and_fetched(self, hook: FrameworkHook, by_wire: bool) -> None:
        pointer = self.tensor(hook, VALUES).send(self.worker(hook, by_wire))

        assert isinstance(pointer.child, ObjectPointer)
        assert self.numbers(end_of(pointer.get())) == VALUES

    @fix("FrameworkAttributes.transfer", _CODECS)
    def test_workers_do_not_share_memory(self, hook: FrameworkHook, by_wire: bool) -> None:
        if not self.mutable:
            pytest.skip("tensors are immutable")
        plain = hook.create_tensor(VALUES)
        pointer = self.tensor(hook, plain).send(self.worker(hook, by_wire))

        plain[0] = 9.0
        first = end_of(pointer.get(deregister_ptr=False))
        first[1] = 9.0

        assert self.fetch(pointer) == VALUES

    @fix("FrameworkAttributes.form_of", "FrameworkAttributes.facts_of_form", "FrameworkAttributes.answer_from_form")
    def test_a_pointer_knows_the_form_of_its_object(self, hook: FrameworkHook, by_wire: bool, plain: Tensor) -> None:
        pointer = self.tensor(hook, plain).send(self.worker(hook, by_wire))

        for tensor in (pointer, pointer + pointer):
            assert (tuple(tensor.shape), tensor.dtype, len(tensor)) == (tuple(plain.shape), plain.dtype, 3)

    @fix("FrameworkAttributes._collect", "FrameworkAttributes.infer", "Op.facts", _CODECS)
    def test_operations_on_pointers_give_the_same_results(
        self, hook: FrameworkHook, calls: Sequence[Call], by_wire: bool
    ) -> None:
        bob = self.worker(hook, by_wire)
        usual = {call.op: call for call in calls if call.op.tier == "reviewed" and not call.op.random}
        for call in usual.values():
            if call.discloses_nothing and any(map(is_tensor, leaves(call.outcomes[0].before))):
                self._check(hook, bob, call)

    def _check(self, hook: FrameworkHook, bob: VirtualWorker, call: Call) -> None:
        """Compare the result of a call, or the tensor it changes, with that of the same call on pointers."""
        outcome = call.working[0]

        def send(leaf: Tensor) -> Any:
            return self.tensor(hook, hook.attributes.copy(leaf)).send(bob) if is_tensor(leaf) else leaf

        sent = map_leaves(send, outcome.before)
        try:
            result = dispatch(call.op, sent, {})
        except SyftError as error:
            raise AssertionError(f"{call} is refused: {error}") from error
        if call.op.inplace:
            self._compare(hook, call, sent[0], outcome.args[0])
        else:
            self._compare(hook, call, result, outcome.result)

    def _compare(self, hook: FrameworkHook, call: Call, result: Nested, expected: Any) -> None:
        fetched = map_leaves(lambda leaf: end_of(leaf.get(deregister_ptr=False)) if _is_remote(leaf) else leaf, result)
        assert type(fetched) is type(expected), f"{call} returns a {type(fetched).__name__} on a pointer"
        pairs = list(zip(leaves(fetched), leaves(expected), strict=True))
        assert plain_parts(fetched) == plain_parts(expected), f"{call} returns different plain values on a pointer"
        for found, real in pairs:
            if is_tensor(real):
                assert is_tensor(found), f"{call} does not return a pointer"
                assert form_of(hook.attributes, found)[:2] == form_of(hook.attributes, real)[:2], str(call)
                same = call.op.uninitialized or repr(self.numbers(found)) == repr(self.numbers(real))
                assert same, f"{call} returns different numbers on a pointer"

    @fix("the wrapper's protocol method", "FrameworkAttributes._methods")
    def test_functions_methods_and_operators_accept_pointers(self, hook: FrameworkHook, by_wire: bool) -> None:
        bob = self.worker(hook, by_wire)
        x, y = (self.tensor(hook, values).send(bob) for values in ([1.0, 2.0], [3.0, 5.0]))

        assert self.fetch(self.concatenate([x, y])) == [1.0, 2.0, 3.0, 5.0]
        assert self.fetch(x + y) == [4.0, 7.0]
        assert self.fetch(2 - x) == [1.0, 0.0]
        assert self.fetch(x[1:]) in (2.0, [2.0])
        assert float(self.fetch(y.sum())) == 8.0

    @fix("describe_op(inplace=...)", "FrameworkAttributes.inplace_methods")
    def test_an_in_place_operator_changes_the_object_or_creates_a_new_one(
        self, hook: FrameworkHook, by_wire: bool
    ) -> None:
        x = self.tensor(hook, VALUES).send(self.worker(hook, by_wire))
        same = x

        x += 1

        assert (x is same) is self.mutable
        assert self.fetch(x) == [v + 1 for v in VALUES]
        assert self.fetch(same) == ([v + 1 for v in VALUES] if self.mutable else VALUES)

    @fix("FrameworkAttributes.replace_in_place")
    def test_a_tensor_can_be_sent_and_fetched_in_place(self, hook: FrameworkHook, by_wire: bool) -> None:
        x = self.tensor(hook, VALUES)

        x.send_(self.worker(hook, by_wire))
        assert isinstance(x.child, ObjectPointer)
        x.get_()

        assert self.numbers(end_of(x)) == VALUES

    @fix("FrameworkAttributes.worker_methods")
    def test_tensors_are_created_on_a_worker(self, hook: FrameworkHook, by_wire: bool) -> None:
        remote = getattr(self.worker(hook, by_wire).remote, hook.attributes.ALIAS)

        made = remote.zeros((2,))

        assert isinstance(made.child, ObjectPointer)
        assert self.fetch(made) == [0.0, 0.0]

    @fix("FrameworkAttributes.result_types")
    def test_named_tuples_keep_their_type(self, hook: FrameworkHook, calls: Sequence[Call], by_wire: bool) -> None:
        bob = self.worker(hook, by_wire)
        named = {type(call.working[0].result): call for call in calls if _is_named(call.working[0].result)}
        for call in named.values():
            if call.op.tier == "reviewed":
                self._check(hook, bob, call)

    @fix("Op.facts (Facts.reveals)")
    def test_values_are_not_revealed_implicitly(self, hook: FrameworkHook, by_wire: bool) -> None:
        x = self.tensor(hook, [2.0]).send(self.worker(hook, by_wire)).sum()

        for read in (bool, float, int, lambda value: value.tolist(), lambda value: value.item()):
            with pytest.raises(ValueRefusedError, match="cannot"):
                read(x)
        with revealing("the check of a backend"):
            assert float(x) == 2.0

    @fix("Op.facts (Facts.reveals, local, tier)")
    def test_revealing_local_and_off_operations_do_not_run_on_a_worker(
        self, hook: FrameworkHook, by_wire: bool
    ) -> None:
        x = self.tensor(hook, VALUES).send(self.worker(hook, by_wire))
        answered_here = {"__deepcopy__", *hook.attributes.facts_of_form}
        methods = [op for op in hook.attributes.ops if op.spelling == "method" and op.attr not in answered_here]
        for op in methods:
            if op.reveals or op.local or op.tier == "off":
                with pytest.raises((ValueRefusedError, OperationNotAllowedError)):
                    dispatch(op, (x,), {})


def _is_remote(leaf: Tensor) -> bool:
    return isinstance(getattr(leaf, "child", None), ObjectPointer)


def _is_named(result: Nested) -> bool:
    return isinstance(result, tuple) and type(result) is not tuple and any(map(is_tensor, leaves(result)))
