"""The plugin manager: find installed plugins, load them on demand and report broken ones."""

from __future__ import annotations

import importlib
import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy

from syft_core.departures import register_rule
from syft_core.exceptions import PluginError
from syft_core.features import FEATURES, Feature
from syft_core.hook.hook import FrameworkHook, attached_hooks, on_attach
from syft_core.hook.hook_args import default_register_tensor
from syft_core.kinds import register_kind
from syft_core.messages import Handler, Message, register_message
from syft_core.packages import find_namesakes, warn_of
from syft_core.plugins import hookspecs
from syft_core.plugins.backend import Backend
from syft_core.registry import Registry
from syft_core.serde import Codec, codecs, register_failure
from syft_core.serde.codec import require_user_code

OWN = "syft_core.plugin"
"""The plugin of this package, which needs no entry point."""
_log = logging.getLogger(__name__)


class PluginManager:
    """All plugins of one process.

    A plugin that cannot be imported, has a hook with a wrong name or signature, or raises in a hook, is recorded in
    ``failures`` and left out; other plugins are not affected.
    """

    def __init__(self) -> None:
        self.backends: Registry[str, Backend] = _new_backends()
        self.failures: dict[str, PluginError] = {}
        self.origins: dict[str, str] = {}
        self.provided: dict[str, list[str]] = {}
        self._plugins: dict[str, str] = {}
        self._loaded: list[tuple[str, Feature]] = []
        self._lock = threading.RLock()
        """Held while a plugin is registered, but not during an import, which other threads may be waiting for."""
        self._pluggy = pluggy.PluginManager(hookspecs.PROJECT)
        self._pluggy.add_hookspecs(hookspecs)
        on_attach(self._announce)

    def discover(self) -> None:
        """Register the features of this package, and every plugin in the entry-point group ``syft_core``."""
        others = find_namesakes()
        if others:
            warnings.warn(warn_of(others), stacklevel=2)
        self.register(importlib.import_module(OWN), OWN)
        for entry_point in entry_points(group=hookspecs.PROJECT):
            self._load(entry_point)

    def register(self, plugin: object, name: str) -> None:
        """Register one plugin; if it is broken, raise ``PluginError`` and change nothing."""
        with self._lock:
            if self._pluggy.has_plugin(name):
                raise PluginError.broken(name, "another plugin has the same name")
            try:
                self._register(plugin, name)
            except Exception as error:
                if self._pluggy.has_plugin(name):
                    self._pluggy.unregister(name=name)
                raise PluginError.broken(name, str(error) or type(error).__name__) from error
            for hook in attached_hooks():
                self._offer(name, "register_operations", hook.attributes)

    def _register(self, plugin: object, name: str) -> None:
        """Call a plugin's hooks; register what they provide once the whole plugin is known to be valid."""
        backends, features, types, rest = _new_backends(), list[Feature](), list[type](), list[Callable[[], object]]()

        def collect(register: Callable[..., object]) -> Callable[..., object]:
            return lambda *args, **given: rest.append(partial(register, *args, **given))

        self._pluggy.register(plugin, name=name)
        self._require_known_hooks(plugin, name)
        self._call(name, "register_backends", backends)
        self._call(name, "register_features", lambda *given: features.extend(given))
        self._call(name, "register_tensor_types", lambda *given: types.extend(given))
        self._call(name, "register_codecs", collect(partial(_register_codec, self._is_own(name))))
        self._call(name, "register_errors", collect(register_failure))
        self._call(name, "register_messages", collect(partial(_register_message, self._is_own(name))))
        self._call(name, "register_kinds", collect(register_kind))
        self._call(name, "register_rules", collect(register_rule))
        self.backends.require_free(backends)
        self._require_valid(features, name)
        default_register_tensor(*types)
        for register in rest:
            register()
        self.backends.update(backends)
        FEATURES.declare(*features, load=partial(self._load_feature, name))
        self.provided[name] = list(backends)

    def _require_valid(self, features: list[Feature], name: str) -> None:
        FEATURES.require_free(features)
        for feature in features:
            for code in feature.codes if not self._is_own(name) else ():
                require_user_code(code)

    def _load_feature(self, plugin: str, feature: Feature) -> None:
        """Import a feature and register its hooks; record an error as its plugin's failure instead of raising it."""
        with self._reporting(plugin, f"it cannot be loaded: {feature.module} raised"):
            loaded = importlib.import_module(feature.module)
            self._extend(feature, *attached_hooks())
            with self._lock:
                if self._pluggy.has_plugin(feature.module):  # Another thread was faster.
                    return
                self._plugins[feature.module] = plugin
                self.register(loaded, feature.module)
                self._loaded.append((plugin, feature))
            self._extend(feature, *attached_hooks())  # Include hooks attached in the meantime.

    def _extend(self, feature: Feature, *hooks: FrameworkHook) -> None:
        names = {hook.name for hook in hooks}
        for backend in list(self.backends.values()):
            if backend.framework in names and feature.name in backend.extends:
                importlib.import_module(backend.extends[feature.name])

    @contextmanager
    def _reporting(self, plugin: str, what: str) -> Iterator[None]:
        """Record an error as the failure of a plugin instead of raising it."""
        try:
            yield
        except (Exception, SystemExit) as error:  # noqa: BLE001  # third-party modules may raise anything
            self.failures[plugin] = PluginError.broken(plugin, f"{what} {type(error).__name__}: {error}")
            _log.error("%s", self.failures[plugin])

    def backend(self, name: str) -> Backend:
        """Return the backend called ``name``; raise the plugin's failure if it is broken."""
        if name not in self.backends and name in self.failures:
            raise self.failures[name]
        return self.backends[name]

    def add_commands(self, commands: hookspecs.Commands) -> None:
        """Let all plugins add commands to the command line; record an error as the plugin's failure."""
        for name, _plugin in self._pluggy.list_name_plugin():
            self._offer(name, "register_commands", commands)

    def export(self, name: str) -> Any:
        """Return the object that a backend or a feature exports to ``syft_core`` as ``name``, or None."""
        for backend in self.backends.values():
            if name in backend.exports:
                return backend.resolve(backend.exports[name])
        return FEATURES.resolve(name) if ("name", name) in FEATURES else None

    def list_exports(self) -> list[str]:
        """Return the names that backends and features export to ``syft_core``."""
        exports = [name for backend in self.backends.values() for name in backend.exports]
        return [*exports, *(name for feature in FEATURES for name in feature.names)]

    def load_all(self) -> None:
        """Load all features but those of frameworks that are not hooked, to list everything available."""
        FEATURES.load_all()

    def _is_own(self, name: str) -> bool:
        name = self._plugins.get(name, name)
        return name == OWN or self.origins.get(name, "").startswith("syft-core ")

    def _load(self, entry_point: EntryPoint) -> None:
        distribution = entry_point.dist
        self.origins[entry_point.name] = f"{distribution.name} {distribution.version}" if distribution else "?"
        try:
            self.register(entry_point.load(), entry_point.name)
        except PluginError as error:
            self.failures[entry_point.name] = error
        except (Exception, SystemExit) as error:  # noqa: BLE001  # third-party modules may raise anything
            reason = f"it cannot be imported ({type(error).__name__}: {error})"
            self.failures[entry_point.name] = PluginError.broken(entry_point.name, reason)

    def _require_known_hooks(self, plugin: object, name: str) -> None:
        unknown = [caller.name for caller in self._pluggy.get_hookcallers(plugin) or () if not caller.has_spec()]
        if unknown:
            known = ", ".join(sorted(n for n in vars(hookspecs) if n.startswith("register_")))
            raise PluginError(f"it implements the unknown hook {unknown[0]!r} (there are {known})")

    def _announce(self, hook: FrameworkHook) -> None:
        for name, _plugin in self._pluggy.list_name_plugin():
            self._offer(name, "register_operations", hook.attributes)
        for name, feature in self._loaded:
            with self._reporting(name, f"its part for {hook.name} raised"):
                self._extend(feature, hook)

    def _offer(self, name: str, hook: str, argument: object) -> None:
        """Call a hook of one plugin; record an error as the plugin's failure instead of raising it."""
        with self._reporting(self._plugins.get(name, name), f"its {hook} raised"):
            self._call(name, hook, argument)

    def _call(self, name: str, hook: str, argument: object) -> None:
        for implementation in getattr(self._pluggy.hook, hook).get_hookimpls():
            if implementation.plugin_name == name:
                implementation.function(*[argument for _ in implementation.argnames])


def _register_codec(is_own: bool, type: type, *, code: int, **options: Any) -> None:
    if not is_own:
        require_user_code(code)
    codecs.register(Codec(type, code, **options))


def _register_message(is_own: bool, kind: type[Message], *handlers: Handler) -> None:
    if not is_own:
        require_user_code(kind.code)
    register_message(kind, *handlers)


def _new_backends() -> Registry[str, Backend]:
    return Registry("backends", advice="install the package that provides it; see `syft-core plugins`")


def plugin_manager() -> PluginManager:
    """Return the plugin manager of this process, with all installed plugins."""
    return _managers[0] if _managers else _make_manager()


def _make_manager() -> PluginManager:
    with _making:
        if not _managers:
            manager = PluginManager()
            manager.discover()
            _managers.append(manager)
        return _managers[0]


_managers: list[PluginManager] = []
_making = threading.RLock()


def load_backend(name: str) -> type[FrameworkHook]:
    """Return the FrameworkHook class of the backend called ``name``, loading it if necessary."""
    return plugin_manager().backend(name).load()
