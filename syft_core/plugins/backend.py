"""Backend: the card with which a plugin presents the framework it serves."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from syft_core.exceptions import DependencyError, PluginError
from syft_core.hook.hook import FrameworkHook


@dataclass(frozen=True)
class Backend:
    """What is known of a backend before anything of it is loaded."""

    name: str
    """The name under which it is asked for."""
    framework: str
    """The import name of the framework it serves."""
    hook: str
    """Where its FrameworkHook is, as ``package.module:Class``."""
    install: str
    """The command that installs the framework."""
    summary: str = ""
    exports: Mapping[str, str] = field(default_factory=dict)
    """Names that users find in ``syft_core`` when this backend is installed, each with its place."""
    demo: str | None = None
    """Where the backend's own acts of ``syft-core demo`` are, if it has any."""

    def is_installed(self) -> bool:
        """Say whether the framework could be imported."""
        try:
            return importlib.util.find_spec(self.framework) is not None
        except ModuleNotFoundError:  # the parent of a dotted name is missing
            return False

    def import_framework(self) -> ModuleType:
        """Import the framework, or say how to install it."""
        if not self.is_installed():
            raise DependencyError.missing(self.name, self.framework, self.install)
        return importlib.import_module(self.framework)

    def load(self) -> type[FrameworkHook]:
        """Import the backend's hook."""
        loaded = self.resolve(self.hook)
        if not (isinstance(loaded, type) and issubclass(loaded, FrameworkHook)):
            raise PluginError.broken(self.name, f"{self.hook!r} is not a FrameworkHook")
        return loaded

    def resolve(self, place: str) -> Any:
        """Import what is at ``place``."""
        self.import_framework()
        try:
            return pkgutil.resolve_name(place)
        except (ImportError, AttributeError) as error:
            raise PluginError.broken(self.name, f"{place!r} cannot be imported ({error})") from error
