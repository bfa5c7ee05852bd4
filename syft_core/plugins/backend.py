"""Backend: a plugin's description of the framework it supports."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from syft_core.exceptions import DependencyError, PluginError
from syft_core.hook.hook import FrameworkHook


@dataclass(frozen=True)
class Backend:
    """Describes a backend, so that it can be listed without loading it."""

    name: str
    """The name that users pass to ``load_backend`` and ``syft-core demo``."""
    framework: str
    """The import name of the framework."""
    hook: str
    """The import path of its FrameworkHook, ``package.module:Class``."""
    install: str
    """The command that installs the framework."""
    exports: Mapping[str, str] = field(default_factory=dict)
    """The names that this backend adds to ``syft_core``, with their import paths."""
    extends: Mapping[str, str] = field(default_factory=dict)
    """Modules by feature name, to import when the feature and the framework are both in use."""
    agents: Mapping[str, str] = field(default_factory=dict)
    """The agents that clients run near their workers, with their import paths; see ``syft_ray.host``."""
    demo: str | None = None
    """The import path of the backend's own part of ``syft-core demo``, if it has one."""
    suite: str | None = None
    """The import path of its subclass of ``BackendConformance``, which ``syft-core plugins --check`` runs."""

    def is_installed(self) -> bool:
        """Return whether the framework is installed."""
        try:
            return importlib.util.find_spec(self.framework) is not None
        except ModuleNotFoundError:  # The parent of a dotted name is missing.
            return False

    def import_framework(self) -> ModuleType:
        """Import the framework, or raise an error with the command that installs it."""
        if not self.is_installed():
            raise DependencyError.missing(self.name, self.framework, self.install)
        return importlib.import_module(self.framework)

    def load(self) -> type[FrameworkHook]:
        """Import the backend's hook."""
        loaded = self.resolve(self.hook)
        if not (isinstance(loaded, type) and issubclass(loaded, FrameworkHook)):
            raise PluginError.broken(self.name, f"{self.hook!r} is not a FrameworkHook")
        return loaded

    def resolve(self, path: str) -> Any:
        """Import the object at ``path``, ``package.module:name``."""
        self.import_framework()
        try:
            return pkgutil.resolve_name(path)
        except (ImportError, AttributeError) as error:
            raise PluginError.broken(self.name, f"{path!r} cannot be imported ({error})") from error


def find_installed(backends: Sequence[Backend]) -> list[Backend]:
    """Return the installed backends; those with their own demo come first."""
    return sorted([backend for backend in backends if backend.is_installed()], key=lambda backend: backend.demo is None)
