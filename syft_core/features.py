"""Features: descriptions of what plugins offer, in literals, so that nothing is loaded before it is used.

A kernel table that misses a key asks here whether a feature offers it, and looks again after loading that feature. The
keys are those of this table, which plugins fill when they are registered: nothing else is ever imported, whatever a
peer sends.
"""

from __future__ import annotations

import functools
import pkgutil
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal, TypeAlias
from weakref import WeakSet

from syft_core.exceptions import AlreadyRegisteredError, NotRegisteredError, RegistryError
from syft_core.values import Nested

KeyTable: TypeAlias = Literal["name", "code", "error", "package", "encoded", "kind", "restriction", "rule", "protocol"]
"""The tables whose keys a feature may offer."""


@dataclass(frozen=True, eq=False)
class Feature:
    """Describes what a plugin offers, and the module to load on first use."""

    name: str
    """The name in ``syft-core plugins``."""
    module: str
    """The module with its hooks; it is registered as a plugin when the feature is loaded."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Names it adds to ``syft_core``, with their import paths."""
    codes: Collection[int] = ()
    errors: Collection[str] = ()
    packages: Collection[str] = ()
    """Packages and modules with its classes: layers, messages, errors, and objects that workers store."""
    encodes: Collection[str] = ()
    """Packages of others for whose classes it has codecs."""
    kinds: Collection[str] = ()
    """Kinds of objects, in search results, for which it has pointers."""
    restrictions: Collection[str] = ()
    """Restrictions that it adds to stored objects; see ``workers/party/status.py``."""
    rules: Collection[str] = ()
    """Rules by which it lets objects leave that a policy withholds."""
    sections: Collection[str] = ()
    """Import paths of its sections in the conformance suite of backends."""
    protocols: Collection[str] = ()
    """Protocols on shares that it adds to encrypted computation."""
    requires: str | None = None
    """A module that must be loaded first: the hook of a framework, which no peer can make a worker load."""

    def __post_init__(self) -> None:
        """Raise if a field has a wrong type: a text, for instance, is a collection of characters."""
        for each in fields(self)[2:-1]:
            value, expected = getattr(self, each.name), Mapping if each.name == "names" else Collection
            if isinstance(value, str) or not isinstance(value, expected):
                what = "a dict of import paths" if each.name == "names" else "a tuple"
                raise RegistryError(f"cannot describe the feature {self.name!r}: {each.name!r} is not {what}; use one")

    def list_keys(self) -> Iterator[tuple[KeyTable, int | str]]:
        """Yield the keys that load the feature, with their tables."""
        yield from (("name", name) for name in self.names)
        yield from (("code", code) for code in self.codes)
        yield from (("error", error) for error in self.errors)
        yield from (("package", package) for package in self.packages)
        yield from (("encoded", package) for package in self.encodes)
        yield from (("kind", kind) for kind in self.kinds)
        yield from (("restriction", restriction) for restriction in self.restrictions)
        yield from (("rule", rule) for rule in self.rules)
        yield from (("protocol", protocol) for protocol in self.protocols)


class Features:
    """The features of this process by the keys that load them.

    Features are loaded on demand; which ones, and in which order, makes no difference.
    """

    def __init__(self, plugins: Callable[[], object]) -> None:
        self._plugins, self._is_discovered = plugins, False
        self._by_key: dict[tuple[KeyTable, int | str], Feature] = {}
        self._loaders: dict[Feature, Callable[[Feature], None]] = {}
        self._loaded: set[str] = set()
        self._unknown: WeakSet[type] = WeakSet()
        self._here = threading.local()

    def declare(self, *features: Feature, load: Callable[[Feature], None]) -> None:
        """Add features, which ``load`` loads later; add none if a key is taken. May be called repeatedly."""
        self.require_free(features)
        for feature in features:
            self._by_key.update(dict.fromkeys(feature.list_keys(), feature))
            self._loaders.setdefault(feature, load)
        self._unknown.clear()

    def require_free(self, features: Collection[Feature]) -> None:
        """Raise if another feature offers a key of one of these."""
        found = dict(self._by_key)
        for feature in features:
            for key in feature.list_keys():
                if found.setdefault(key, feature) != feature:
                    raise AlreadyRegisteredError.of("features", f"the {key[0]} {key[1]!r}")

    def load(self, table: KeyTable, key: object) -> bool:
        """Load the feature that offers a key of a table; return whether there is one."""
        feature = self._find(table, key) if isinstance(key, int | str) else None
        if feature is not None:
            self._load(feature)
        return feature is not None

    def load_all(self, table: KeyTable | None = None) -> None:
        """Load all features, or those that offer a key of one table, in the order of declaration."""
        self._discover()
        for feature in list(self):
            if table is None or any(found == table for found, _key in feature.list_keys()):
                self._load(feature)

    def load_type(self, cls: type) -> bool:
        """Load the features with a class or a base of it; return whether there is one."""
        if cls in self._unknown:
            return False
        found = [self._load_module("package", base.__module__) for base in cls.__mro__]
        if not any(found):
            self._unknown.add(cls)
        return any(found)

    def load_codec(self, cls: type) -> None:
        """Load the features that may have a codec of a class, or of a base of it."""
        if not self.load_type(cls):
            for base in cls.__mro__:
                self._load_module("encoded", base.__module__)

    def resolve(self, name: str) -> Nested:
        """Load the feature that adds a name to ``syft_core``, and return the named object."""
        feature = self._find("name", name)
        if feature is None:
            raise NotRegisteredError.of("features", repr(name), (), "install the package that provides it")
        self._load(feature)
        return pkgutil.resolve_name(feature.names[name])

    def list_sections(self) -> list[str]:
        """Return the import paths of the sections that features add to the conformance suite of backends."""
        self._discover()
        return [section for feature in self for section in feature.sections]

    def is_loaded(self, name: str) -> bool:
        """Return whether the feature called ``name`` was loaded."""
        return name in self._loaded

    def __iter__(self) -> Iterator[Feature]:
        return iter(self._loaders)

    def __contains__(self, key: tuple[KeyTable, int | str]) -> bool:
        return key in self._by_key

    def _load_module(self, table: KeyTable, module: object) -> bool:
        found = False
        while isinstance(module, str) and module and not found:
            found = self.load(table, module)
            module = module.rpartition(".")[0]
        return found

    def _find(self, table: KeyTable, key: int | str) -> Feature | None:
        if (table, key) not in self._by_key:
            self._discover()
        return self._by_key.get((table, key))

    def _discover(self) -> None:
        if not self._is_discovered and not vars(self._here).get("is_discovering"):
            self._here.is_discovering = True
            try:
                self._plugins()
            finally:
                self._here.is_discovering = False
            self._is_discovered = True

    def _load(self, feature: Feature) -> None:
        for each in [other for other in self if other.rules] if feature.rules else [feature]:
            self._load_one(each)  # Rules are asked in one order, whichever is needed first.

    def _load_one(self, feature: Feature) -> None:
        loading: set[str] = vars(self._here).setdefault("loading", set())
        if feature.name in self._loaded or feature.name in loading:
            return
        if feature.requires is not None and feature.requires not in sys.modules:
            return
        loading.add(feature.name)
        try:
            self._loaders[feature](feature)
        finally:
            loading.discard(feature.name)
        self._loaded.add(feature.name)


class Later:
    """An attribute of a class, or a function, that is imported when it is first used.

    >>> class Circle:
    ...     area = Later("math:pi")
    >>> round(Circle().area, 2)
    3.14
    >>> Later("math:floor")(2.5)
    2
    """

    _made: ClassVar[list[Later]] = []

    def __init__(self, path: str) -> None:
        self.path = path
        self._made.append(self)

    @functools.cached_property
    def found(self) -> Nested:
        """The object at the path."""
        return pkgutil.resolve_name(self.path)

    def __get__(self, instance: object, owner: type | None = None) -> Nested:
        bind = getattr(type(self.found), "__get__", None)
        return self.found if bind is None else bind(self.found, instance, owner)

    def __call__(self, *args: object, **options: object) -> Nested:
        """Call the function at the path."""
        return self.found(*args, **options)


def import_everything() -> None:
    """Load all features and all that is imported later: a served worker does it before it limits itself.

    Once the limits apply, an import may find no memory, or no access to files.
    """
    FEATURES.load_all()
    for each in list(Later._made):
        with suppress(ImportError):  # It needs a package that is not installed, and says so when it is used.
            _ = each.found


def later(path: str) -> Nested:
    """Return ``Later(path)``, typed as the object there: for attributes whose class declares another type."""
    return Later(path)


FEATURES = Features(Later("syft_core.plugins.manager:plugin_manager"))
