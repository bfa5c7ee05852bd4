"""Private data: what a stranger can do with it, and learn from it, does not depend on its values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from syft_core.exceptions import GetNotPermittedError, ValueRefusedError
from syft_core.hook.attributes import Op
from syft_core.hook.chain import end_of
from syft_core.hook.dispatch import dispatch
from syft_core.hook.hook import FrameworkHook
from syft_core.hook.rules import leaves, map_leaves
from syft_core.pointers.object_pointer import ObjectPointer
from syft_core.pointers.revealing import revealing
from syft_core.testing.calls import SETS, SampleCall, is_tensor
from syft_core.testing.section import VALUES, Bob, Section, fix
from syft_core.values import Function, Tensor


class PrivateDataSection(Section):
    """Every check computes as user "stranger" on data that only "owner" may fetch."""

    @fix("register_codecs", "Op.facts (Facts.reveals)")
    def test_private_data_cannot_be_fetched(self, secret: Tensor) -> None:
        for attempt in (secret, secret.copy()):
            with pytest.raises(GetNotPermittedError):
                attempt.get()
        with revealing("a stranger is curious"), pytest.raises(GetNotPermittedError):
            bool(secret)

    @fix("Op.facts (Facts.tier)")
    def test_results_of_operations_on_private_data_are_private(self, hook: FrameworkHook, secret: Tensor) -> None:
        for result in (secret + 1, secret * secret, secret.sum(), secret[1:], self.concatenate([secret, secret])):
            assert isinstance(result.child, ObjectPointer)
            with pytest.raises(GetNotPermittedError):
                result.get(deregister_ptr=False)
        result = secret + 1
        hook.local_worker.user = "owner"
        assert self.fetch(result) == [v + 1 for v in VALUES]

    @fix("FrameworkAttributes.facts_of_form")
    def test_a_stranger_may_know_the_form(self, secret: Tensor) -> None:
        assert (tuple(secret.shape), len(secret)) == ((3,), 3)

    @fix("Op.facts (Facts.states_fact)")
    def test_a_plain_result_from_private_data_is_refused(self, hook: FrameworkHook, secret: Tensor) -> None:
        facts: Any = {"tier": "reviewed", "discloses": "nothing", "writes": frozenset(), "reads_beyond": False}

        with _allow_temporarily(hook, lambda _tensor: True, **facts) as op, pytest.raises(ValueRefusedError):
            dispatch(op, (secret,), {})

    @fix("FrameworkAttributes.allow")
    def test_an_operation_without_facts_does_not_run_on_private_data(self, hook: FrameworkHook, secret: Tensor) -> None:
        with _allow_temporarily(hook, lambda tensor: tensor) as op, pytest.raises(ValueRefusedError):
            dispatch(op, (secret,), {})

    @fix("FrameworkAttributes.shadow", "FrameworkAttributes.form_of")
    def test_a_shadow_has_the_form_of_its_tensor(self, hook: FrameworkHook, plain: Tensor) -> None:
        attributes, form = hook.attributes, hook.attributes.form_of(plain)
        assert form is not None, "nothing can be computed on private data of unknown form"
        shadow = attributes.shadow(form, form.device)
        assert (tuple(shadow.shape), shadow.dtype) == (tuple(plain.shape), plain.dtype)
        assert attributes.shadow(3, form.device) == 3, "return anything but a form unchanged"

    @fix("FrameworkAttributes.zeros", "FrameworkAttributes.overwrite")
    def test_a_failed_operation_can_return_zeros(self, hook: FrameworkHook, plain: Tensor) -> None:
        attributes, form = hook.attributes, hook.attributes.form_of(plain)
        assert form is not None, "nothing can be computed on private data of unknown form"
        (zeros,) = attributes.zeros([form], [plain])
        assert attributes.form_of(zeros) is form
        assert self.numbers(zeros) == [0.0] * len(VALUES)
        if self.mutable:
            attributes.overwrite(plain, zeros)
            assert self.numbers(plain) == [0.0] * len(VALUES)

    @fix("FrameworkAttributes.memory_of")
    def test_nothing_runs_on_private_data_without_memory_of(self, hook: FrameworkHook, secret: Tensor) -> None:
        with patch.object(hook.attributes, "memory_of", lambda _tensor: None), pytest.raises(ValueRefusedError):
            secret + 1

    @fix("FrameworkAttributes.memory_of", "Op.facts (Facts.writes)")
    def test_a_tensor_that_private_data_is_written_to_becomes_private(self, bob: Bob, secret: Tensor) -> None:
        if not self.mutable:
            pytest.skip("tensors are immutable")
        hook, free = bob.hook, self.send(bob, VALUES)
        part = free[1:]
        before = self.fetch(part)

        free += secret

        with pytest.raises(GetNotPermittedError):
            free.get()
        hook.local_worker.user = "owner"
        if self.fetch(part) != before:
            hook.local_worker.user = "stranger"
            with pytest.raises(GetNotPermittedError):
                part.get()

    @fix("Op.facts (Facts.discloses, form_depends)")
    def test_a_form_that_depends_on_private_values_is_refused(self, bob: Bob, calls: Sequence[SampleCall]) -> None:
        for call in calls:
            if call.op.tier == "reviewed" and not call.discloses_nothing:
                seen = self._observe(bob, call.op, call.working[0].before)
                assert seen.startswith(ValueRefusedError.__name__), f"{call} runs on private data: {seen}"

    @fix("Op.facts (Facts.partial, tier)")
    def test_a_failure_that_depends_on_values_is_not_disclosed(self, bob: Bob, calls: Sequence[SampleCall]) -> None:
        for call in calls:
            if call.op.tier == "reviewed" and len(call.working) < SETS:
                seen = {self._observe(bob, call.op, outcome.before) for outcome in call.outcomes}
                assert len(seen) == 1, f"a stranger sees for which values {call} fails: {seen}"

    def _observe(self, bob: Bob, op: Op, args: object) -> str:
        """Return what a stranger sees of a call on private data: an error, or the forms of pointers."""
        sent = map_leaves(lambda leaf: self.send_secret(bob, leaf) if is_tensor(leaf) else leaf, args)
        try:
            result = dispatch(op, sent, {})
        except Exception as error:  # noqa: BLE001  # the stranger sees any error
            return re.sub(r"\d+", "#", f"{type(error).__name__}: {error}")
        return str([tuple(leaf.shape) if isinstance(end_of(leaf), ObjectPointer) else leaf for leaf in leaves(result)])

    @pytest.fixture
    def secret(self, bob: Bob) -> Tensor:
        """Return the stranger's pointer to the owner's data."""
        return self.send_secret(bob, VALUES)

    def send_secret(self, bob: Bob, plain: object) -> Tensor:
        """Send data of the owner, and return the stranger's pointer to it."""
        me = bob.hook.local_worker
        me.user = "owner"
        pointer = self.tensor(bob.hook, plain).private_tensor(["owner"]).send(bob)
        me.user = "stranger"
        return pointer


@contextmanager
def _allow_temporarily(hook: FrameworkHook, function: Function, **facts: Any) -> Iterator[Op]:
    """Add a function to the op table for the duration of a block."""
    op = hook.attributes.allow(function, f"{hook.attributes.ALIAS}.temporary", **facts)
    try:
        yield op
    finally:
        del hook.attributes.ops.by_name[op.name], hook.attributes.ops.by_func[op.func]
