from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import toy
from syft_toy import plugin as toy_plugin
from syft_toy.hook import ToyHook
from toy_layers import Watcher, values

from syft_core.departures import RULES, ReleaseRule
from syft_core.exceptions import GetNotPermittedError, NotRegisteredError, PluginError, SerdeError, SyftError
from syft_core.features import Feature, Features
from syft_core.hook import hook as hooking
from syft_core.hook import hook_args
from syft_core.hook.hook import current_hook
from syft_core.kinds import ObjectKind
from syft_core.messages import Fetch, Message, MessageFacts, Search, Store
from syft_core.plugins.backend import Backend
from syft_core.plugins.hookspecs import hookimpl
from syft_core.plugins.manager import PluginManager, load_backend, plugin_manager
from syft_core.serde import codecs, deserialize, serialize
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.private import PrivateTensor
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.ledger import Grant
from syft_core.workers.seeing.trace import trace
from syft_worker.desk.history import ReleaseHistory


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> PluginManager:
    """Return a manager that is disconnected from hooks after the test."""
    monkeypatch.setattr(hooking, "_listeners", [])
    return PluginManager()


def card(name: str = "card", framework: str = "toy", hook: str = "syft_toy.hook:ToyHook", **more: Any) -> Backend:
    return Backend(name, framework, hook, "pip install it", **more)


class OneBackend:
    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    @hookimpl
    def register_backends(self, backends: Any) -> None:
        backends.register(self.backend.name, self.backend)


# --- register


def test_a_plugin_registers_its_backend(manager: PluginManager) -> None:
    manager.register(toy_plugin, "toy")

    assert manager.backend("toy") is toy_plugin.BACKEND
    assert manager.provided == {"toy": ["toy"]}
    assert manager.failures == {}


def test_two_managers_are_independent(manager: PluginManager) -> None:
    manager.register(toy_plugin, "toy")

    assert list(PluginManager().backends) == []


def test_a_plugin_may_register_tensor_types(manager: PluginManager) -> None:
    class Brought(AbstractTensor):
        pass

    class Plugin:
        @hookimpl
        def register_tensor_types(self, register: Any) -> None:
            register(Brought)

    manager.register(Plugin(), "types")

    with ToyHook(toy):
        assert str(Brought().on(toy.Vector([1.0])) + 1) == "(Wrapper)>Brought>Vector([2.0])"


@pytest.mark.parametrize("late", [False, True])
def test_a_plugin_may_register_operations_before_or_after_hooking(manager: PluginManager, late: bool) -> None:
    def fourfold(x: Any) -> Any:
        return x * 4

    class Plugin:
        @hookimpl
        def register_operations(self, attributes: Any) -> None:
            attributes.allow(fourfold, f"toy.fourfold_{late}")

    if not late:
        manager.register(Plugin(), "operations")
    with ToyHook(toy) as hook:
        if late:
            manager.register(Plugin(), "operations")
        result = hook.get_hooked_func(f"toy.fourfold_{late}")(Watcher().on(toy.Vector([2.0])))

    assert values(result) == [8.0]


class Ticket:
    def __init__(self, number: int) -> None:
        self.number = number


def test_a_plugin_may_register_codecs(manager: PluginManager) -> None:
    class Plugin:
        @hookimpl
        def register_codecs(self, register: Any) -> None:
            register(
                Ticket,
                code=70_001,
                simplify=lambda ticket, context: (ticket.number,),
                detail=lambda payload, context: Ticket(*payload),
            )

    manager.register(Plugin(), "tickets")

    assert deserialize(serialize(Ticket(7))).number == 7


def test_a_plugin_with_a_reserved_wire_code_is_refused(manager: PluginManager) -> None:
    class Plugin:
        @hookimpl
        def register_codecs(self, register: Any) -> None:
            register(Ticket, code=3, simplify=lambda ticket, context: (), detail=lambda payload, context: None)

    with pytest.raises(PluginError, match="codes below 1000 are reserved"):
        manager.register(Plugin(), "thief")


def test_a_manager_created_after_the_hook_still_registers_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooking, "_listeners", [])
    seen = []

    class Plugin:
        @hookimpl
        def register_operations(self, attributes: Any) -> None:
            seen.append(attributes)

    with ToyHook(toy) as hook:
        PluginManager().register(Plugin(), "operations")

        assert seen == [hook.attributes]


@dataclass(slots=True)
class Count(Message):
    """How many objects are there?"""

    code: ClassVar[int] = 1_000_301
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda m: f"count {m.tag}")
    tag: str


class Counting:
    @hookimpl
    def register_messages(self, register: Any) -> None:
        register(Count, lambda worker, message, _sender: len(worker.object_store.search((message.tag,))))


def test_a_plugin_may_register_messages(manager: PluginManager, hook: Any) -> None:
    manager.register(Counting(), "counting")
    bob = VirtualWorker(hook, id="bob of the counting plugin")
    for id in (1, 2):
        bob.handle(Store(id, toy.Vector([1.0]), tags=("#x",)), bob.peer)

    with trace() as seen:
        assert hook.local_worker.location_of(bob).ask(Count("#x")) == 2
    assert [event.operation for event in seen] == ["count #x"]


def test_the_wire_codes_of_syft_core_are_reserved(manager: PluginManager) -> None:
    class Low(Counting):
        @hookimpl
        def register_messages(self, register: Any) -> None:
            register(type("Mine", (Message,), {"code": 399}), lambda *_given: None)

    with pytest.raises(PluginError, match="399"):
        manager.register(Low(), "low")


def test_a_plugin_may_register_kinds_of_objects(manager: PluginManager, hook: Any) -> None:
    class Note:
        pass

    class Noting:
        @hookimpl
        def register_kinds(self, register: Any) -> None:
            nothing = lambda *_given: None  # noqa: E731
            register(Note, ObjectKind("note", nothing, nothing, lambda _note: 8))

    manager.register(Noting(), "noting")
    bob = VirtualWorker(hook, id="bob of the noting plugin")
    bob.handle(Store(5, Note(), tags=("#note",), publish=True), bob.peer)

    (found,) = bob.handle(Search(("#note",)), bob.peer)
    assert found[3] == "note"


def test_a_plugin_may_let_objects_leave_that_the_policy_keeps(manager: PluginManager, hook: Any) -> None:
    def cover(leaving: Any) -> None:
        if leaving.verb == "read" and leaving.peer.user == "auditor":
            for place in list(leaving.kept):
                leaving.cover(place, leaving.objects[place]._replace(grant=Grant("audit", "the law", "audits")))

    def finish(_worker: Any, message: Any) -> None:
        left.append(message.id)

    def undo(_worker: Any, _messages: Any) -> None:
        left.append("nothing")

    class Auditing:
        @hookimpl
        def register_rules(self, register: Any) -> None:
            register("auditors may read", ReleaseRule(cover, finish, undo, ReleaseHistory))

    left: list[Any] = []
    manager.register(Auditing(), "auditing")
    try:
        bob = VirtualWorker(hook, id="bob of the auditing plugin")
        bob.handle(Store(5, PrivateTensor().on(toy.Vector([1.0]))), bob.peer)
        client = VirtualWorker(hook, id="a client of the auditing plugin")
        location = client.location_of(bob)

        with pytest.raises(GetNotPermittedError):
            location.ask(Fetch(5, keep=True))
        client.user = "auditor"
        location.ask(Fetch(5, keep=True))

        assert left == ["nothing", 5]
        assert [(entry.event, entry.rule) for entry in bob.ledger] == [("released", "audits")]
    finally:
        RULES._entries.pop("auditors may read")


def test_a_plugin_may_register_errors(manager: PluginManager) -> None:
    class TornError(SyftError):
        pass

    class Tearing:
        @hookimpl
        def register_errors(self, register: Any) -> None:
            register(TornError)

    manager.register(Tearing(), "tearing")

    assert type(deserialize(serialize(TornError("cannot tear: it is torn; mend it")))) is TornError


class Later:
    """A plugin whose feature is in a module that a test writes."""

    def __init__(self, **described: Any) -> None:
        self.feature = Feature("later", "feature_of_a_test", **described)

    @hookimpl
    def register_features(self, register: Any) -> None:
        register(self.feature)


@pytest.fixture
def features(monkeypatch: pytest.MonkeyPatch) -> Features:
    """Return an empty table of features in place of that of the process."""
    made = Features(lambda: None)
    for module in ("plugins.manager", "serde.codec", "messages", "hook.rules", "kinds", "departures"):
        monkeypatch.setattr(f"syft_core.{module}.FEATURES", made)
    return made


def write_feature(folder: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    (folder / "feature_of_a_test.py").write_text(source)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "feature_of_a_test", raising=False)


CODEC = """
from syft_core.plugins.hookspecs import hookimpl

class Late:
    pass

@hookimpl
def register_codecs(register):
    register(Late, code={code}, simplify=lambda late, context: (), detail=lambda payload, context: Late())

@hookimpl
def register_operations(attributes):
    attributes.seen_by_a_test = True
"""


def test_a_feature_is_registered_when_something_of_it_is_read(
    manager: PluginManager, features: Features, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_feature(tmp_path, monkeypatch, CODEC.format(code=70_101))
    manager.register(Later(codes=(70_101,)), "later")
    assert "feature_of_a_test" not in sys.modules

    with ToyHook(toy) as hook:
        assert codecs.for_code(70_101).type.__name__ == "Late"
        assert hook.attributes.seen_by_a_test  # type: ignore[attr-defined]  # set by the feature
    assert manager.failures == {}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_module_of_a_test", "feature_of_a_test raised ModuleNotFoundError"),
        (CODEC.format(code=7), "codes below 1000 are reserved"),
        (CODEC.format(code=70_102).replace("register_codecs", "register_everything"), "unknown hook"),
        ("raise SystemExit(3)", "feature_of_a_test raised SystemExit: 3"),
    ],
)
def test_a_feature_that_cannot_be_loaded_is_reported_as_a_failure_of_its_plugin_and_offers_nothing(
    manager: PluginManager,
    features: Features,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    reason: str,
) -> None:
    write_feature(tmp_path, monkeypatch, source)
    manager.register(Later(codes=(70_102,)), "later")

    for _ in range(2):
        with pytest.raises(SerdeError, match="no codec is registered for it"):
            codecs.for_code(70_102)

    assert reason in str(manager.failures["later"])
    assert str(manager.failures["later"]).startswith("cannot use the plugin 'later': it cannot be loaded: ")


def test_a_feature_of_another_distribution_cannot_take_codes_of_this_one(
    manager: PluginManager, features: Features
) -> None:
    with pytest.raises(PluginError, match="codes below 1000 are reserved"):
        manager.register(Later(codes=(399,)), "later")

    assert list(features) == []


# --- broken plugins


def broken_plugins() -> dict[str, tuple[Any, str]]:
    class WrongSignature:
        @hookimpl
        def register_backends(self, backend_list: Any) -> None:
            pass

    class UnknownHook(OneBackend):
        @hookimpl
        def register_everything(self) -> None:
            pass

    class FailsLater(OneBackend):
        @hookimpl
        def register_tensor_types(self, register: Any) -> None:
            raise RuntimeError("no types today")

    class KnownType(OneBackend):
        @hookimpl
        def register_tensor_types(self, register: Any) -> None:
            register(Watcher)

    class KnownBackend(OneBackend):
        @hookimpl
        def register_tensor_types(self, register: Any) -> None:
            register(type("New", (AbstractTensor,), {}))

    return {
        "wrong signature": (WrongSignature(), "backend_list"),
        "unknown hook": (
            UnknownHook(card("left")),
            "it implements the unknown hook 'register_everything' "
            "(there are register_backends, register_codecs, register_commands, register_errors, register_features, "
            "register_kinds, "
            "register_messages, register_operations, register_rules, register_tensor_types)",
        ),
        "fails later": (FailsLater(card("left")), "no types today"),
        "known type": (KnownType(card("left")), "cannot register toy_layers.Watcher in 'backward_func'"),
        "known backend": (KnownBackend(card("toy")), "cannot register 'toy' in 'backends'"),
    }


@pytest.mark.parametrize("kind", sorted(broken_plugins()))
def test_a_broken_plugin_is_refused_and_changes_nothing(manager: PluginManager, kind: str) -> None:
    plugin, reason = broken_plugins()[kind]
    manager.register(toy_plugin, "toy")
    types = len(hook_args.backward_func)

    with pytest.raises(PluginError) as caught:
        manager.register(plugin, "broken")

    assert str(caught.value).startswith("cannot use the plugin 'broken': ")
    assert reason in str(caught.value)
    assert list(manager.backends) == ["toy"]
    assert manager.backend("toy") is toy_plugin.BACKEND
    assert len(hook_args.backward_func) == types
    manager.register(OneBackend(card("next")), "broken")
    assert manager.provided == {"toy": ["toy"], "broken": ["next"]}


def test_a_second_plugin_of_the_same_name_is_refused(manager: PluginManager) -> None:
    seen = []

    class First(OneBackend):
        @hookimpl
        def register_operations(self, attributes: Any) -> None:
            seen.append(attributes.ALIAS)

    manager.register(First(card("one")), "same")

    with pytest.raises(PluginError, match="cannot use the plugin 'same': another plugin has the same name"):
        manager.register(OneBackend(card("two")), "same")

    assert list(manager.backends) == ["one"]
    with ToyHook(toy):
        assert seen == ["toy"]


def test_a_plugin_that_fails_when_a_framework_is_hooked_is_reported_and_the_hook_works(manager: PluginManager) -> None:
    class Failing:
        @hookimpl
        def register_operations(self, attributes: Any) -> None:
            raise RuntimeError("no operations today")

    manager.register(Failing(), "failing")

    with ToyHook(toy) as hook:
        assert current_hook() is hook
        assert values(Watcher().on(toy.Vector([1.0])) + 1) == [2.0]

    assert current_hook() is None
    assert str(manager.failures["failing"]) == (
        "cannot use the plugin 'failing': its register_operations raised RuntimeError: no operations today; "
        "run `syft-core plugins` to list all plugins"
    )


def test_an_unknown_backend_is_refused_with_similar_names(manager: PluginManager) -> None:
    manager.register(toy_plugin, "toy")

    with pytest.raises(NotRegisteredError) as caught:
        manager.backend("toyy")

    assert str(caught.value) == (
        "cannot find 'toyy' in 'backends': it is not registered; did you mean 'toy'? otherwise "
        "install the package that provides it; see `syft-core plugins`"
    )


def test_exports_are_found_by_name(manager: PluginManager) -> None:
    manager.register(toy_plugin, "toy")

    assert manager.export("ToyHook") is ToyHook
    assert manager.export("NobodysHook") is None


# --- the manager of the process


def test_the_builtin_backends_are_ordinary_plugins() -> None:
    manager = plugin_manager()

    assert plugin_manager() is manager
    assert {"torch", "numpy"} <= set(manager.backends)
    assert manager.failures == {}
    assert manager.origins["torch"].startswith("syft-core ")


def test_an_unknown_backend_cannot_be_loaded() -> None:
    with pytest.raises(NotRegisteredError, match="cannot find 'abacus' in 'backends'"):
        load_backend("abacus")


def test_a_plugin_may_add_commands_and_a_broken_one_spoils_no_other(manager: PluginManager) -> None:
    class Greeting:
        @hookimpl
        def register_commands(self, commands: Any) -> None:
            commands.add_parser("greet").set_defaults(run=lambda _options: "hello")

    class Broken:
        @hookimpl
        def register_commands(self, commands: Any) -> None:
            raise RuntimeError("out of words")

    manager.register(Broken(), "broken")
    manager.register(Greeting(), "greeting")
    parser = argparse.ArgumentParser()

    manager.add_commands(parser.add_subparsers())

    options = parser.parse_args(["greet"])
    assert options.run(options) == "hello"
    assert "its register_commands raised RuntimeError: out of words" in str(manager.failures["broken"])
