"""The plugin manager: find installed plugins, load them on demand and report broken ones."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import pluggy

from syft_core.departures import register_rule
from syft_core.exceptions import PluginError
from syft_core.hook.hook import FrameworkHook, attached_hooks, on_attach
from syft_core.hook.hook_args import default_register_tensor
from syft_core.kinds import register_kind
from syft_core.messages import Handler, Message, register_message
from syft_core.plugins import hookspecs
from syft_core.plugins.backend import Backend
from syft_core.registry import Registry, add_members
from syft_core.serde import register_codec, register_failure
from syft_core.serde.codec import require_user_code


class PluginManager:
    """All plugins of one process.

    A plugin that cannot be imported, has a hook with a wrong name or signature, or raises in a hook, is recorded in
    ``failures`` and left out; other plugins are not affected.
    """

    def __init__(self) -> None:
        self.backends: Registry[str, Backend] = _new_backends()
        self.failures: dict[str, PluginError] = {}
        self.origins: dict[str, str] = {}
        """The distribution of each plugin."""
        self.provided: dict[str, list[str]] = {}
        """The names of the backends of each plugin."""
        self._pluggy = pluggy.PluginManager(hookspecs.PROJECT)
        self._pluggy.add_hookspecs(hookspecs)
        on_attach(self._announce)

    def discover(self) -> None:
        """Register the features of syft-core, and every plugin in the entry-point group ``syft_core``."""
        for name in _find_features():
            self.register(importlib.import_module(name), name)
        for entry_point in entry_points(group=hookspecs.PROJECT):
            self._load(entry_point)

    def register(self, plugin: object, name: str) -> None:
        """Register one plugin; if it is broken, raise ``PluginError`` and change nothing."""
        if self._pluggy.has_plugin(name):
            raise PluginError.broken(name, "another plugin has the same name")
        # Collected, until the whole plugin is known to be valid.
        backends, types, rest = _new_backends(), list[type](), list[Callable[[], object]]()

        def collect(register: Callable[..., object]) -> Callable[..., None]:
            return lambda *args, **given: rest.append(partial(register, *args, **given))

        try:
            self._pluggy.register(plugin, name=name)
            self._require_known_hooks(plugin, name)
            self._call(name, "register_backends", backends)
            self._call(name, "register_tensor_types", lambda *given: types.extend(given))
            self._call(name, "register_codecs", collect(register_codec))
            self._call(name, "register_errors", collect(register_failure))
            self._call(name, "register_messages", collect(partial(_register_message, self._is_own(name))))
            self._call(name, "register_kinds", collect(register_kind))
            self._call(name, "register_rules", collect(register_rule))
            self._call(name, "register_members", collect(add_members))
            self.backends.require_free(backends)
            default_register_tensor(*types)
            for register in rest:
                register()
            self.backends.update(backends)
            self.provided[name] = list(backends)
        except Exception as error:
            if self._pluggy.has_plugin(name):
                self._pluggy.unregister(name=name)
            raise PluginError.broken(name, str(error) or type(error).__name__) from error
        for hook in attached_hooks():
            self._offer(name, "register_operations", hook.attributes)

    def backend(self, name: str) -> Backend:
        """Return the backend called ``name``; raise the plugin's failure if it is broken."""
        if name not in self.backends and name in self.failures:
            raise self.failures[name]
        return self.backends[name]

    def add_commands(self, commands: hookspecs.Commands) -> None:
        """Let all plugins add their commands to the command line; an error is recorded as the failure of a plugin."""
        for name, _plugin in self._pluggy.list_name_plugin():
            self._offer(name, "register_commands", commands)

    def export(self, name: str) -> Any:
        """Return what a backend exports as ``name``, or None if no backend does."""
        for backend in self.backends.values():
            if name in backend.exports:
                return backend.resolve(backend.exports[name])
        return None

    def _is_own(self, name: str) -> bool:
        return name.startswith("syft_core.") or self.origins.get(name, "").startswith("syft-core ")

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

    def _offer(self, name: str, hook: str, argument: object) -> None:
        """Call the implementation of a hook by one plugin; an error is recorded as its failure and not raised."""
        try:
            self._call(name, hook, argument)
        except Exception as error:  # noqa: BLE001  # third-party functions may raise anything
            reason = f"its {hook} raised {type(error).__name__}: {error}"
            self.failures[name] = PluginError.broken(name, reason)

    def _call(self, name: str, hook: str, argument: object) -> None:
        """Call the implementation of a hook by one plugin, if it has one."""
        for implementation in getattr(self._pluggy.hook, hook).get_hookimpls():
            if implementation.plugin_name == name:
                implementation.function(*[argument for _ in implementation.argnames])


def _find_features() -> list[str]:
    """Return the plugin modules in the packages of syft-core: each makes its package a feature."""
    root = Path(__file__).parents[1]  # Looking for a module would import its package, and what that needs.
    return [f"{root.name}.{path.parent.name}.plugin" for path in sorted(root.glob("*/plugin.py"))]


def _register_message(is_own: bool, kind: type[Message], *handlers: Handler) -> None:
    if not is_own:
        require_user_code(kind.code)
    register_message(kind, *handlers)


def _new_backends() -> Registry[str, Backend]:
    return Registry("backends", advice="install the package that provides it; see `syft-core plugins`")


@cache
def plugin_manager() -> PluginManager:
    """Return the plugin manager of this process, with all installed plugins."""
    manager = PluginManager()
    manager.discover()
    return manager


def load_backend(name: str) -> type[FrameworkHook]:
    """Return the FrameworkHook class of the backend called ``name``, loading it if necessary."""
    return plugin_manager().backend(name).load()
