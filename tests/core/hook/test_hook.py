from __future__ import annotations

import contextlib
import gc
import types
import warnings
import xml
from typing import Any

import pytest
import toy
from syft_toy.hook import ToyHook
from toy_layers import Scaled, Watcher, under, values

from syft_core.exceptions import LocalWorkerConflictError, NotTheFrameworkError, OperationNotAllowedError
from syft_core.hook.hook import FrameworkHook, Patches, attached_hook, current_hook, current_worker
from syft_core.tensors.abstract import AbstractTensor
from syft_core.workers.party.base import BaseWorker


def everything() -> list[dict[str, Any]]:
    """Return everything that a hook may have changed."""
    return [dict(vars(target)) for target in (toy, toy.nn, toy.Vector, AbstractTensor)]


# --- Patches


class Target:
    kept = "before"


def test_patches_are_undone_in_reverse_order() -> None:
    before, patches, order = dict(vars(Target)), Patches(), []

    patches.set(Target, "kept", "changed")
    patches.set(Target, "kept", "changed again")
    patches.set(Target, "added", 1)
    patches.on_undo(lambda: order.append(Target.kept))
    changed = (Target.kept, Target.added)
    patches.undo()

    assert changed == ("changed again", 1)
    assert order == ["changed again"]
    assert dict(vars(Target)) == before


def test_a_patch_of_an_inherited_name_is_deleted() -> None:
    class Heir(Target):
        pass

    patches = Patches()
    patches.set(Heir, "kept", "changed")
    patches.undo()

    assert "kept" not in vars(Heir)
    assert Heir.kept == "before"


def test_patches_restore_the_same_descriptor() -> None:
    class Static:
        f = staticmethod(abs)

    descriptor, patches = vars(Static)["f"], Patches()
    patches.set(Static, "f", None)
    patches.undo()

    assert vars(Static)["f"] is descriptor


def test_patches_are_undone_once() -> None:
    patches, times = Patches(), []
    patches.on_undo(lambda: times.append(1))

    patches.undo()
    patches.undo()

    assert times == [1]


def test_a_failed_patch_does_not_keep_others_from_being_undone() -> None:
    before, patches = dict(vars(Target)), Patches()
    patches.set(Target, "kept", "changed")

    with pytest.raises(TypeError):
        patches.set(int, "added", 1)
    patches.undo()

    assert dict(vars(Target)) == before


# --- attaching


def test_a_hook_attaches_the_framework(hook: ToyHook) -> None:
    assert hook.framework is toy
    assert current_hook() is hook
    assert attached_hook("toy") is hook
    assert current_worker() is hook.local_worker
    assert toy.native_cat is toy.cat
    assert repr(hook) == "<ToyHook on, local worker 'me'>"


def test_the_options_of_a_hook_are_kept() -> None:
    with ToyHook(toy, None, False, False) as hook:
        assert (hook.is_client, hook.verbose) == (False, False)
        assert (hook.local_worker.is_client_worker, hook.local_worker.verbose) == (False, False)
        assert hook.to_auto_overload == {}


def test_the_defaults_are_those_of_the_published_interface(hook: ToyHook) -> None:
    assert (hook.is_client, hook.verbose) == (True, True)


def test_a_given_worker_becomes_the_local_one() -> None:
    bob = BaseWorker(id="bob")

    with ToyHook(toy, local_worker=bob) as hook:
        assert hook.local_worker is bob
        assert current_worker() is bob
        assert bob.hook is hook


def test_verbosity_is_set_on_the_worker_too(hook: ToyHook) -> None:
    hook.set_verbose(False)

    assert (hook.verbose, hook.local_worker.verbose) == (False, False)


@pytest.mark.parametrize(
    ("thing", "name"),
    [
        (types, "types"),
        (None, "NoneType"),
        ("toy", "str"),
        (toy.Vector, "Vector"),
        (types.ModuleType("toy"), "toy"),
    ],
)
def test_something_that_is_not_the_framework_is_refused(thing: Any, name: str) -> None:
    with pytest.raises(NotTheFrameworkError) as caught:
        ToyHook(thing)

    assert str(caught.value) == (
        f"cannot hook {name!r}: ToyHook takes the toy module itself; write `import toy` and `ToyHook(toy)`"
    )
    assert current_hook() is None


# --- sharing


def test_a_second_hook_warns_and_shares_the_first(hook: ToyHook) -> None:
    with pytest.warns(UserWarning, match="hooked already") as caught:
        second = ToyHook(toy)

    with second:
        assert [str(w.message) for w in caught] == [
            "toy is hooked already: this ToyHook shares the first one's local worker 'me'; "
            "keep one hook, or detach the other with `hook.unhook()`"
        ]
        assert caught[0].filename == __file__, "the warning points at the caller"
        assert second.local_worker is hook.local_worker
        assert second.attributes is hook.attributes
        assert second.to_auto_overload is hook.to_auto_overload


@pytest.mark.parametrize("first_goes_first", [True, False])
def test_the_framework_stays_hooked_until_the_last_hook_is_detached(first_goes_first: bool) -> None:
    before = everything()
    first = ToyHook(toy)
    with pytest.warns(UserWarning, match="hooked already"):
        second = ToyHook(toy)
    one, other = (first, second) if first_goes_first else (second, first)

    one.unhook()
    one.unhook()
    still = attached_hook("toy")
    other.unhook()

    assert still is first
    assert attached_hook("toy") is None
    assert everything() == before


# --- one local worker for all frameworks


class OtherHook(ToyHook):
    """A hook on another framework; the package ``xml`` serves as one."""

    name = "xml"

    def _install(self, patches: Patches) -> None:
        patches.set(xml, "hooked", True)


def test_a_hook_on_another_framework_shares_the_local_worker_without_a_warning(hook: ToyHook) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = OtherHook(xml)

    with other:
        assert other.local_worker is hook.local_worker is current_worker()
        assert hook.local_worker.hook is hook
        assert current_hook() is other


@pytest.mark.parametrize("first_goes_first", [True, False])
def test_the_local_worker_stays_until_all_hooks_are_detached(first_goes_first: bool) -> None:
    first, second = ToyHook(toy), OtherHook(xml)
    worker = first.local_worker
    bob = BaseWorker(first, id="bob")
    one, other = (first, second) if first_goes_first else (second, first)

    one.unhook()

    assert current_worker() is worker
    assert worker.hook is other
    assert worker.get_worker("bob") is bob
    assert BaseWorker(other, id="alice") is bob.get_worker("alice")

    other.unhook()

    assert current_worker() is None


def test_a_hook_after_the_last_one_has_a_new_local_worker() -> None:
    with ToyHook(toy) as before, OtherHook(xml):
        BaseWorker(before, id="bob")

    with OtherHook(xml) as after:
        assert after.local_worker is not before.local_worker
        assert list(after.local_worker._known_workers) == ["me"]


def test_a_framework_that_is_hooked_again_shares_the_local_worker(hook: ToyHook) -> None:
    with OtherHook(xml) as other:
        hook.unhook()
        with ToyHook(toy) as again:
            assert again.local_worker is hook.local_worker
            assert again.local_worker.hook is other


@pytest.mark.parametrize(("kind", "framework"), [(ToyHook, toy), (OtherHook, xml)])
@pytest.mark.filterwarnings("ignore:toy is hooked already")
def test_a_later_hook_may_be_given_the_worker_in_use(kind: type[ToyHook], framework: Any) -> None:
    bob = BaseWorker(id="bob", is_client_worker=True)

    with ToyHook(toy, local_worker=bob) as first, kind(framework, local_worker=bob, is_client=False) as second:
        assert first.local_worker is second.local_worker is bob
        assert bob.hook is first
        assert second.is_client, "the options are for a worker that a hook creates"


@pytest.mark.parametrize(("kind", "framework"), [(ToyHook, toy), (OtherHook, xml)])
def test_a_different_local_worker_is_refused_before_anything_changes(
    hook: ToyHook, kind: type[ToyHook], framework: Any
) -> None:
    before, others, bob = everything(), dict(vars(xml)), BaseWorker(id="bob")

    with pytest.raises(LocalWorkerConflictError) as caught:
        kind(framework, local_worker=bob)

    assert str(caught.value) == (
        f"cannot hook {kind.name} with the local worker 'bob': all hooks of a process share one, and another worker, "
        "'me', is in use; leave `local_worker` out, or unhook toy first"
    )
    assert (everything(), dict(vars(xml))) == (before, others)
    assert (current_hook(), current_worker(), bob.hook) == (hook, hook.local_worker, None)
    hook.unhook()
    assert current_hook() is None, "the refused hook does not count"


def test_a_later_hook_that_serves_others_is_refused_if_the_worker_is_a_client(hook: ToyHook) -> None:
    with pytest.raises(LocalWorkerConflictError, match="`is_client=False` to the first hook"):
        OtherHook(xml, is_client=False)

    assert (current_hook(), hook.is_client) == (hook, True)


def test_a_later_hook_has_the_options_of_the_worker_in_use() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ToyHook(toy, is_client=False, verbose=False), OtherHook(xml) as later:
            assert (later.is_client, later.verbose) == (False, False)
        with ToyHook(toy, is_client=False, verbose=False), OtherHook(xml, is_client=False, verbose=False) as later:
            assert (later.is_client, later.verbose) == (False, False)


def test_a_later_hook_with_verbose_false_warns_with_advice(hook: ToyHook) -> None:
    with pytest.warns(UserWarning, match="has no effect") as caught:
        later = OtherHook(xml, verbose=False)

    with later:
        assert [str(w.message) for w in caught] == [
            "`verbose=False` has no effect: this OtherHook shares the local worker 'me', which is verbose; "
            "call `hook.set_verbose(False)`"
        ]
        assert caught[0].filename == __file__, "the warning points at the caller"
        later.set_verbose(False)
        assert not hook.verbose


def test_a_later_hook_that_fails_does_not_change_the_local_worker(hook: ToyHook) -> None:
    class HalfOtherHook(OtherHook):
        def _install(self, patches: Patches) -> None:
            super()._install(patches)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        HalfOtherHook(xml)

    assert not hasattr(xml, "hooked")
    assert (current_worker(), hook.local_worker.hook) == (hook.local_worker, hook)


# --- unhooking


def test_unhooking_restores_everything() -> None:
    before = everything()

    hook = ToyHook(toy)
    during = everything()
    hook.unhook()

    assert during != before
    for was, now in zip(before, everything(), strict=True):
        assert list(was) == list(now)
        assert [name for name in was if was[name] is not now[name]] == []
    assert (current_hook(), attached_hook("toy"), current_worker()) == (None, None, None)
    assert repr(hook) == "<ToyHook off, local worker 'me'>"


def test_leaving_the_block_unhooks_also_after_an_error() -> None:
    before = everything()

    with pytest.raises(ZeroDivisionError), ToyHook(toy):
        _ = 1 / 0

    assert everything() == before


def test_a_framework_can_be_hooked_again_without_a_warning() -> None:
    ToyHook(toy).unhook()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ToyHook(toy) as hook:
            assert values(Watcher().on(toy.Vector([1.0])) + 1) == [2.0]

    assert not hook._hooked


def test_a_chain_made_before_unhooking_works_after_hooking_again() -> None:
    with ToyHook(toy):
        x = Watcher().on(toy.Vector([1.0]))

    with ToyHook(toy):
        assert values(x + 1) == [2.0]


# --- failed installations


class HalfHook(ToyHook):
    """Fails after it has changed something."""

    def _install(self, patches: Patches) -> None:
        super()._install(patches)
        patches.set(toy, "half", True)
        raise KeyboardInterrupt


def test_a_failed_installation_leaves_nothing_behind() -> None:
    before, bob = everything(), BaseWorker(id="bob")

    with pytest.raises(KeyboardInterrupt):
        HalfHook(toy, local_worker=bob)

    assert everything() == before
    assert current_hook() is None
    assert bob.hook is None
    with ToyHook(toy) as hook:
        assert current_hook() is hook


@pytest.mark.parametrize("kind", [ToyHook, HalfHook])
@pytest.mark.parametrize("was_on", [True, False])
def test_the_garbage_collector_is_restored(kind: type[ToyHook], was_on: bool) -> None:
    (gc.enable if was_on else gc.disable)()
    try:
        with contextlib.suppress(KeyboardInterrupt), kind(toy):
            pass
        is_on = gc.isenabled()
    finally:
        gc.enable()

    assert is_on == was_on


def test_an_incomplete_hook_cannot_be_instantiated() -> None:
    class Incomplete(FrameworkHook):
        name = "toy"

    with pytest.raises(TypeError, match="abstract"):
        Incomplete(toy)


# --- hooked methods and functions

METHOD_GETTERS = (
    "get_hooked_method",
    "get_hooked_syft_method",
    "get_hooked_pointer_method",
    "get_hooked_multi_pointer_method",
    "get_hooked_additive_shared_method",
)


@pytest.mark.parametrize("getter", METHOD_GETTERS)
def test_a_hooked_method_runs_plain_tensors_natively_and_dispatches_chains(hook: ToyHook, getter: str) -> None:
    method = getattr(hook, getter)("clip")

    assert method(toy.Vector([5.0]), 0, high=2).tolist() == [2]
    assert str(method(Watcher().on(toy.Vector([5.0])), 0, high=2)) == "(Wrapper)>Watcher>Vector([2.0])"


def test_a_hooked_method_keeps_the_attributes_of_a_layer(hook: ToyHook) -> None:
    assert hook.get_hooked_syft_method("sum")(under(Scaled(scale=4), 1.0)).scale == 4


def test_a_hooked_in_place_method_returns_the_tensor_itself(hook: ToyHook) -> None:
    x = Watcher().on(toy.Vector([5.0]))

    assert hook.get_hooked_method("add_")(x, 1) is x
    assert values(x) == [6.0]


def test_a_hooked_function_runs_plain_tensors_natively_and_dispatches_chains(hook: ToyHook) -> None:
    relu = hook.get_hooked_func("toy.nn.relu")

    assert relu(toy.Vector([-1.0, 1.0])).tolist() == [0.0, 1.0]
    assert values(relu(Watcher().on(toy.Vector([-1.0, 1.0])))) == [0.0, 1.0]


def test_an_unlisted_function_cannot_be_hooked(hook: ToyHook) -> None:
    with pytest.raises(OperationNotAllowedError, match=r"cannot run 'toy\.save' on a pointer or another layer"):
        hook.get_hooked_func("toy.save")


def test_an_unlisted_method_cannot_be_hooked(hook: ToyHook) -> None:
    with pytest.raises(OperationNotAllowedError, match="cannot run '.*no_such_method' on a pointer or another layer"):
        hook.get_hooked_method("no_such_method")
