"""Disclosure: the facts in the op table are true, so that results disclose no more than the facts say."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.facts import WRITES_ALL
from syft_core.hook.hook import FrameworkHook
from syft_core.hook.rules import leaves
from syft_core.testing.calls import SETS, SampleCall, forms, is_tensor, plain_parts, run
from syft_core.testing.section import VALUES, Section, fix
from syft_core.values import Tensor


class DisclosureSection(Section):
    """The facts about every operation hold for all values."""

    @fix("Op.facts (Facts.tier, discloses, writes, reads_beyond)")
    def test_a_reviewed_operation_is_described(self, hook: FrameworkHook) -> None:
        for op in _list_reviewed(hook):
            assert op.discloses == "nothing", op.name
            assert op.writes is not WRITES_ALL, op.name
            assert (op.reads_beyond, op.reveals, op.local) == (False, False, False), op.name

    @fix("Op.facts (Facts.tier)")
    def test_arithmetic_is_reviewed(self, hook: FrameworkHook) -> None:
        reviewed = {op.operation for op in _list_reviewed(hook)}
        assert {"add", "sub", "mul"} <= reviewed, "without them, clients cannot compute on private data"

    @fix("Op.facts (Facts.discloses, form_depends)")
    def test_the_form_of_a_result_does_not_depend_on_values(
        self, hook: FrameworkHook, calls: Sequence[SampleCall]
    ) -> None:
        for call in calls:
            if call.op.tier == "reviewed" and call.discloses_nothing:
                found = [forms(hook.attributes, outcome.result) for outcome in call.working]
                assert all(form == found[0] for form in found), f"{call} has results of several forms: {found}"

    @fix("Op.facts (Facts.reveals, states_fact)")
    def test_an_operation_that_returns_a_value_is_marked(self, calls: Sequence[SampleCall]) -> None:
        for call in calls:
            if not call.op.reveals:
                found = [plain_parts(outcome.result) for outcome in call.working]
                assert all(parts == found[0] for parts in found), f"{call} returns a value: mark it as `reveals`"
                assert not any(type(part) is float for part in found[0]), f"{call} returns a number"

    @fix("Op.facts (Facts.partial)")
    def test_an_operation_that_is_not_partial_works_with_all_values(self, calls: Sequence[SampleCall]) -> None:
        for call in calls:
            if not call.op.partial and call.discloses_nothing:
                assert len(call.working) == SETS, f"{call} fails with some values"

    @fix("Op.facts (Facts.writes)", "describe_op(inplace=...)")
    def test_every_change_to_an_argument_is_declared(self, calls: Sequence[SampleCall]) -> None:
        for call in calls:
            for outcome in call.working:
                targets = call.op.targets(outcome.args, {})
                for before, after in zip(leaves(outcome.before), leaves(outcome.args), strict=True):
                    if is_tensor(after) and not any(after is target for target in targets):
                        same = repr(self._content(before)) == repr(self._content(after))
                        assert same, f"{call} changes an argument that is not in `writes`"

    def _content(self, tensor: Tensor) -> object:
        return (tuple(tensor.shape), self.numbers(tensor) if all(tensor.shape) else None)

    @fix("Op.facts (Facts.local)", "FrameworkAttributes.exclude")
    def test_no_operation_runs_code_on_a_worker(self, hook: FrameworkHook, plain: Tensor) -> None:
        called: list[object] = []

        def probe(*args: object) -> object:
            called.append(args)
            return args[0] if args else None

        for op in hook.attributes.ops:
            if op.tier != "off" and not op.local and op.spelling in ("function", "method"):
                for args in ((plain, probe), (plain, plain, probe), (probe, plain)):
                    run(hook.attributes, op, args)
                    assert not called, f"{op.name} calls a function argument: mark it as `local`, or exclude it"

    @fix("FrameworkAttributes.memory_of")
    def test_copies_do_not_share_memory(self, hook: FrameworkHook, plain: Tensor) -> None:
        attributes = hook.attributes
        memory = attributes.memory_of(plain)
        if memory is None:
            pytest.skip("the backend does not implement `memory_of`, so private data is not supported")
        assert memory == attributes.memory_of(plain)
        for copy in (attributes.copy(plain), attributes.transfer(plain), hook.create_tensor(VALUES)):
            assert memory.isdisjoint(attributes.memory_of(copy) or memory)

    @fix("FrameworkAttributes.memory_of")
    def test_shared_memory_is_detected(self, hook: FrameworkHook) -> None:
        attributes = hook.attributes
        if not self.mutable or attributes.memory_of(hook.create_tensor(VALUES)) is None:
            pytest.skip("tensors are immutable, or the backend does not implement `memory_of`")
        for op in _list_reviewed(hook):
            x = hook.create_tensor(VALUES)
            outcome = run(attributes, op, (x,))
            (own,) = outcome.args
            results = [leaf for leaf in leaves(outcome.result) if is_tensor(leaf)]
            before = [repr(self.numbers(result)) for result in results]
            if op.inplace or not results or tuple(own.shape) != (3,):
                continue
            own[:] = hook.create_tensor([9.0, 8.0, 7.0])
            for result, was in zip(results, before, strict=True):
                if repr(self.numbers(result)) != was:
                    assert _share(attributes, result, own), f"the result of {op.name} shares memory with its argument"

    @fix("FrameworkAttributes.is_partial_view", "FrameworkAttributes.transfer_ownership")
    def test_a_partial_view_is_detected(self, hook: FrameworkHook, plain: Tensor) -> None:
        attributes, part = hook.attributes, plain[1:]
        if attributes.memory_of(part) != attributes.memory_of(plain):
            pytest.skip("a slice does not share memory")
        assert attributes.is_partial_view(part), "an operation that reads beyond its arguments would read the rest"
        for shared in (part, plain):
            assert attributes.transfer_ownership(shared, 0) is None, "a receiver could change the sender's data"

    @fix("FrameworkAttributes.copy", "FrameworkAttributes.transfer")
    def test_a_copy_does_not_change_with_its_original(self, hook: FrameworkHook) -> None:
        if not self.mutable:
            pytest.skip("tensors are immutable")
        for copy in (hook.attributes.copy, hook.attributes.transfer):
            original = hook.create_tensor(VALUES)
            made = copy(original)
            original[0] = 9.0
            assert self.numbers(made) == VALUES, f"the result of {copy.__name__} shares memory with the original"

    @fix("FrameworkAttributes._collect")
    def test_immutable_tensors_have_no_in_place_operations(self, hook: FrameworkHook) -> None:
        if self.mutable:
            pytest.skip("tensors are mutable")
        changing = [op.name for op in hook.attributes.ops if op.inplace]
        assert changing == [], "leave in-place operations out of the table, or set `mutable = True`"


def _share(attributes: FrameworkAttributes, one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors share memory, according to the backend."""
    return not (attributes.memory_of(one) or frozenset()).isdisjoint(attributes.memory_of(other) or ())


def _list_reviewed(hook: FrameworkHook) -> list[Op]:
    return [op for op in hook.attributes.ops if op.tier == "reviewed"]
