"""Disclosure: what the op table says about operations is true, so that nothing depends on values unnoticed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.facts import WRITES_ALL
from syft_core.hook.hook import FrameworkHook
from syft_core.hook.rules import leaves
from syft_core.testing.calls import SETS, Call, forms, is_tensor, plain_parts, run
from syft_core.testing.section import VALUES, Section, fix
from syft_core.values import Tensor


class DisclosureSection(Section):
    """Two sets of values, one answer: the facts about every operation hold whatever the values."""

    @fix("Op.facts (Facts.tier, discloses, writes, reads_beyond)")
    def test_a_reviewed_operation_is_described(self, hook: FrameworkHook) -> None:
        for op in _reviewed(hook):
            assert op.discloses == "nothing", op.name
            assert op.writes is not WRITES_ALL, op.name
            assert (op.reads_beyond, op.reveals, op.local) == (False, False, False), op.name

    @fix("Op.facts (Facts.tier)")
    def test_arithmetic_is_reviewed(self, hook: FrameworkHook) -> None:
        reviewed = {op.operation for op in _reviewed(hook)}
        assert {"add", "sub", "mul"} <= reviewed, "without them nothing can be computed on private data"

    @fix("Op.facts (Facts.discloses, form_depends)")
    def test_the_form_of_a_result_does_not_depend_on_values(self, hook: FrameworkHook, calls: Sequence[Call]) -> None:
        for call in calls:
            if call.op.tier == "reviewed" and call.discloses_nothing:
                found = [forms(hook.attributes, outcome.result) for outcome in call.working]
                assert all(form == found[0] for form in found), f"{call} has results of several forms: {found}"

    @fix("Op.facts (Facts.reveals, states_fact)")
    def test_an_operation_that_answers_with_a_value_is_marked_so(self, calls: Sequence[Call]) -> None:
        for call in calls:
            if not call.op.reveals:
                found = [plain_parts(outcome.result) for outcome in call.working]
                assert all(parts == found[0] for parts in found), f"{call} answers with a value: mark it as `reveals`"
                assert not any(type(part) is float for part in found[0]), f"{call} answers with a number"

    @fix("Op.facts (Facts.partial)")
    def test_what_cannot_fail_on_values_does_not(self, calls: Sequence[Call]) -> None:
        for call in calls:
            if not call.op.partial and call.discloses_nothing:
                assert len(call.working) == SETS, f"{call} fails with some values"

    @fix("Op.facts (Facts.writes)", "describe_op(inplace=...)")
    def test_every_change_to_an_argument_is_declared(self, calls: Sequence[Call]) -> None:
        for call in calls:
            for outcome in call.working:
                targets = call.op.targets(outcome.args, {})
                for before, after in zip(leaves(outcome.before), leaves(outcome.args), strict=True):
                    if is_tensor(after) and not any(after is target for target in targets):
                        same = repr(self._content(before)) == repr(self._content(after))
                        assert same, f"{call} changes an argument that is not among its targets"

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
                    assert not called, f"{op.name} calls a function that it is given: mark it as `local`, or exclude it"

    @fix("FrameworkAttributes.memory_of")
    def test_copies_have_memory_of_their_own(self, hook: FrameworkHook, plain: Tensor) -> None:
        attributes = hook.attributes
        memory = attributes.memory_of(plain)
        if memory is None:
            pytest.skip("the backend does not know memory, and so gets no private data")
        assert memory == attributes.memory_of(plain)
        for copy in (attributes.copy(plain), attributes.transfer(plain), hook.create_tensor(VALUES)):
            assert memory.isdisjoint(attributes.memory_of(copy) or memory)

    @fix("FrameworkAttributes.memory_of")
    def test_tensors_that_share_memory_are_known(self, hook: FrameworkHook) -> None:
        attributes = hook.attributes
        if not self.mutable or attributes.memory_of(hook.create_tensor(VALUES)) is None:
            pytest.skip("nothing can change a tensor of the framework, or the backend does not know memory")
        for op in _reviewed(hook):
            x = hook.create_tensor(VALUES)
            outcome = run(attributes, op, (x,))
            (own,) = outcome.args
            results = [leaf for leaf in leaves(outcome.result) if is_tensor(leaf) and outcome.works]
            before = [repr(self.numbers(result)) for result in results]
            if op.inplace or not results or tuple(own.shape) != (3,):
                continue
            own[:] = hook.create_tensor([9.0, 8.0, 7.0])
            for result, was in zip(results, before, strict=True):
                if repr(self.numbers(result)) != was:
                    assert _share(attributes, result, own), f"what {op.name} returns shares memory with its argument"

    @fix("FrameworkAttributes.is_part", "FrameworkAttributes.give")
    def test_a_part_of_a_tensor_is_known_as_one(self, hook: FrameworkHook, plain: Tensor) -> None:
        attributes, part = hook.attributes, plain[1:]
        if attributes.memory_of(part) != attributes.memory_of(plain):
            pytest.skip("a part of a tensor has memory of its own")
        assert attributes.is_part(part), "an operation that reads beyond its arguments would see the rest"
        for shared in (part, plain):
            assert attributes.give(shared, 0) is None, "a receiver could change what is here"

    @fix("FrameworkAttributes.copy", "FrameworkAttributes.transfer")
    def test_a_copy_does_not_change_with_its_original(self, hook: FrameworkHook) -> None:
        if not self.mutable:
            pytest.skip("nothing can change a tensor of the framework")
        for copy in (hook.attributes.copy, hook.attributes.transfer):
            original = hook.create_tensor(VALUES)
            made = copy(original)
            original[0] = 9.0
            assert self.numbers(made) == VALUES, f"{copy.__name__} returns memory of the original"

    @fix("FrameworkAttributes._collect")
    def test_nothing_in_the_table_changes_what_cannot_change(self, hook: FrameworkHook) -> None:
        if self.mutable:
            pytest.skip("the framework can change tensors")
        changing = [op.name for op in hook.attributes.ops if op.inplace]
        assert changing == [], "leave operations in place out of the table, or set `mutable = True`"


def _share(attributes: FrameworkAttributes, one: Tensor, other: Tensor) -> bool:
    """Return whether a backend says that two tensors share memory."""
    return not (attributes.memory_of(one) or frozenset()).isdisjoint(attributes.memory_of(other) or ())


def _reviewed(hook: FrameworkHook) -> list[Op]:
    return [op for op in hook.attributes.ops if op.tier == "reviewed"]
