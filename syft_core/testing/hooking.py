"""The hook: attaching it, detaching it, and its factories."""

from __future__ import annotations

import warnings

import pytest

from syft_core.exceptions import NotTheFrameworkError
from syft_core.hook.hook import FrameworkHook
from syft_core.tensors.logging import LoggingTensor
from syft_core.testing.section import VALUES, Section, fix


class HookSection(Section):
    """Unhooking restores the framework, and factories create plain tensors."""

    @fix("FrameworkHook._install")
    def test_unhooking_leaves_the_framework_exactly_as_it_was(self) -> None:
        before = [dict(vars(target)) for target in self.patched_objects()]
        with self.hook_class(self.framework):
            pass
        after = [dict(vars(target)) for target in self.patched_objects()]
        for was, now in zip(before, after, strict=True):
            assert was.keys() == now.keys()
            assert [name for name in was if was[name] is not now[name]] == []

    @fix("FrameworkHook._make_attributes")
    def test_a_second_hook_warns_and_shares_the_local_worker(self, hook: FrameworkHook) -> None:
        with pytest.warns(UserWarning, match="hooked already"):
            second = self.hook_class(self.framework)
        assert second.local_worker is hook.local_worker
        assert second.attributes is hook.attributes
        second.unhook()
        assert (LoggingTensor().on(hook.create_tensor(VALUES)) + 1).is_wrapper

    @fix("FrameworkHook._install")
    def test_unhooking_twice_is_harmless(self) -> None:
        hook = self.hook_class(self.framework)
        hook.unhook()
        hook.unhook()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.hook_class(self.framework).unhook()

    @fix("FrameworkHook.name")
    def test_something_that_is_not_the_framework_is_refused(self) -> None:
        with pytest.raises(NotTheFrameworkError, match="takes the .* module itself"):
            self.hook_class(pytest)

    @fix("FrameworkHook.worker_type")
    def test_the_local_worker_is_called_me(self, hook: FrameworkHook) -> None:
        assert hook.local_worker.id == "me"
        assert hook.local_worker.is_client_worker

    @fix("FrameworkHook.create_tensor")
    def test_a_tensor_is_created_from_numbers(self, hook: FrameworkHook) -> None:
        assert self.numbers(hook.create_tensor(VALUES)) == VALUES
        assert not getattr(hook.create_tensor(VALUES), "is_wrapper", False)

    @fix("FrameworkHook.create_zeros", "FrameworkHook.create_shape")
    def test_zeros_and_shapes_are_created(self, hook: FrameworkHook) -> None:
        assert self.numbers(hook.create_zeros(2)) == [0.0, 0.0]
        assert tuple(hook.create_shape([2, 3])) == (2, 3)

    @fix("FrameworkHook.create_wrapper")
    def test_a_wrapper_of_an_invalid_type_is_refused(self, hook: FrameworkHook) -> None:
        assert len(hook.create_wrapper(None)) == 0
        with pytest.raises(ValueError, match="cannot create a wrapper"):
            hook.create_wrapper("not a type")
