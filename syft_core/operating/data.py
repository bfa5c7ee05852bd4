"""The data of a worker: files and loaders that its owner names, as tagged and possibly private tensors."""

from __future__ import annotations

import hashlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from syft_core.exceptions import ConfigurationError
from syft_core.hook.hook import FrameworkHook
from syft_core.hook.ranks import is_framework_tensor
from syft_core.ids import ID_BITS
from syft_core.operating.tables import read_csv, read_parquet
from syft_core.plugins.backend import Backend, find_installed
from syft_core.plugins.manager import plugin_manager
from syft_core.values import Kwargs, Tensor

TABLES = {".csv": read_csv, ".parquet": read_parquet}
_LOADER = r"[A-Za-z_][\w.]*:[A-Za-z_]\w*"


@dataclass(frozen=True)
class DataSource:
    """A file, or a loader, and what becomes of its tensors."""

    file: Path | None = None
    loader: str | None = None
    """A function of the owner, ``module:function``, that returns a tensor, or tensors by name."""
    tags: tuple[str, ...] = ()
    private: tuple[str, ...] | None = None
    """The users who may have the values; None if everybody may."""
    description: str | None = None
    columns: tuple[str, ...] | None = None
    """Which columns of a table to load; None for all."""
    name: str = ""
    """Identifies the data across restarts; by default the name of the file or loader."""

    def __str__(self) -> str:
        return str(self.file or self.loader)

    @classmethod
    def parse(cls, text: str, folder: Path = Path()) -> DataSource:
        """Read ``FILE#tag,#tag:private=user,user``; instead of a file, ``module:function`` names a loader.

        >>> DataSource.parse("ages.npy#ages,#2026:private=ana").tags
        ('#ages', '#2026')
        """
        match = re.fullmatch(rf"({_LOADER}|[^#:]+)(#[^:]*)?(?::private=([^#:]*))?", text)
        if match is None:
            raise ConfigurationError(
                f"cannot read the data source {text!r}: it is malformed; write FILE#tag,#tag:private=user,user"
            )
        place, tags, users = match.groups()
        table: dict[str, Any] = {"loader" if ":" in place else "file": place}
        if tags:
            table["tags"] = [tag.strip() for tag in tags.split(",")]
        if users is not None:
            table["private"] = [user.strip() for user in users.split(",") if user.strip()]
        return cls.from_table(table, folder)

    @classmethod
    def from_table(cls, table: Mapping[str, object], folder: Path = Path()) -> DataSource:
        """Read a table of a TOML file, with the fields of this class as keys; paths are relative to ``folder``."""
        known = {field.name: field.type for field in fields(cls)}
        for key, value in table.items():
            if key not in known:
                raise ConfigurationError(
                    f"cannot read a data source: it has no option {key!r}; choose from {', '.join(known)}"
                )
            is_list = str(known[key]).startswith("tuple")
            if type(value) is not (list if is_list else str) or (is_list and any(type(x) is not str for x in value)):
                expected = "a list of texts" if is_list else "a text"
                raise ConfigurationError(
                    f"cannot read the option {key!r} of a data source: it is not {expected}; write it as in the example"
                )
        if ("file" in table) == ("loader" in table):
            raise ConfigurationError("cannot read a data source: it needs a file or a loader; name one of them")
        options: Kwargs = {key: tuple(value) if type(value) is list else value for key, value in table.items()}
        if "file" in options:
            options["file"] = folder / Path(options["file"]).expanduser()
        if any(not re.fullmatch(r"#[^\s,:=]+", tag) for tag in options.get("tags", ())):
            raise ConfigurationError(
                f"cannot tag the data of {options.get('file') or options['loader']}: a tag is # and a word; "
                f"write them as #ages,#2026"
            )
        return cls(**options)


def choose_backend(name: str | None = None) -> Backend:
    """Return the backend that the owner names or, by default, the first that is installed."""
    manager = plugin_manager()
    if name is not None:
        return manager.backend(name)
    installed = find_installed(list(manager.backends.values()))
    if not installed:
        commands = " or ".join(f"`{backend.install}`" for backend in manager.backends.values())
        raise ConfigurationError(f"cannot load data: no framework is installed; run {commands}")
    return installed[0]


def load(sources: Iterable[DataSource], hook: FrameworkHook) -> list[Tensor]:
    """Return the tensors of all sources for ``worker.load_data``; they have the same ids after a restart."""
    found: dict[int, Tensor] = {}
    for source in sources:
        for key, tensor in _read(source, hook):
            name = f"{source.name or (source.file.name if source.file else source.loader)}/{key}"
            id = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> (64 - ID_BITS)
            if id in found:
                raise ConfigurationError(
                    f"cannot load {source}: another source has the same name; give each a name of its own: `name = ...`"
                )
            found[id] = _prepare(tensor, source, key, hook)
            found[id].id = id
    return list(found.values())


def _prepare(tensor: Tensor, source: DataSource, key: str, hook: FrameworkHook) -> Tensor:
    prepared = hook.make_taggable(tensor)
    if source.private is not None:
        prepared = prepared.private_tensor(source.private)
    own = key or (source.file.stem if source.file else str(source.loader).partition(":")[2])
    prepared = prepared.tag(*source.tags, *([f"#{own}"] if key or not source.tags else []))
    return prepared if source.description is None else prepared.describe(source.description)


def _read(source: DataSource, hook: FrameworkHook) -> Iterator[tuple[str, Tensor]]:
    """Yield the name and the value of each tensor; the name is empty if there is only one, without a name."""
    value = _call(source) if source.file is None else _read_file(source.file, source, hook)
    for key, tensor in value.items() if isinstance(value, Mapping) else [("", value)]:
        if not is_framework_tensor(type(tensor)):
            part = f" under {key!r}" if key else ""
            raise ConfigurationError(
                f"cannot load {source}: it has a {type(tensor).__name__}{part}, which is not a tensor of {hook.name}; "
                f"provide a tensor, or tensors by name"
            )
        yield str(key), tensor


def _read_file(path: Path, source: DataSource, hook: FrameworkHook) -> Any:
    suffix = path.suffix.lower()
    reader = hook.readers.get(suffix)
    if reader is None and suffix not in TABLES:
        known = ", ".join(sorted({*hook.readers, *TABLES}))
        raise ConfigurationError(
            f"cannot load {path}: {hook.name} reads no {suffix or 'such'} files; use one of {known}, or name a loader"
        )
    if source.columns is not None and suffix not in TABLES:
        raise ConfigurationError(f"cannot load columns of {path}: it is not a table; leave `columns` out")
    try:
        if reader is not None:
            return reader.read(path)
        return hook.create_table(list(TABLES[suffix](path, source.columns).values()))
    except ConfigurationError:
        raise
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        raise ConfigurationError(
            f"cannot load {path}: {package} is not installed; run `pip install {package}`"
        ) from None
    except OSError as error:
        raise ConfigurationError(
            f"cannot load {path}: {error.strerror or type(error).__name__}; check the path and its permissions"
        ) from None
    except Exception as error:  # noqa: BLE001  # the text may quote values, or recommend what is not safe
        expected = "a table" if reader is None else reader.expects
        raise ConfigurationError(
            f"cannot load {path}: it is not {expected} ({type(error).__name__}); write it again, or name a loader"
        ) from None


def _call(source: DataSource) -> Any:
    name = str(source.loader)
    if not re.fullmatch(_LOADER, name):
        raise ConfigurationError(f"cannot call the loader {name!r}: it is malformed; write module:function")
    try:
        function = pkgutil.resolve_name(name)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"cannot call the loader {name}: {error}; check the name, and that PYTHONPATH has its folder"
        ) from None
    try:
        return function()
    except Exception as error:
        raise ConfigurationError(
            f"cannot load data with {name}: it raised {type(error).__name__}; call it in Python to see why"
        ) from error
