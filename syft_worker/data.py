"""The data of a worker: files and loaders that its owner names, as tagged and possibly private tensors."""

from __future__ import annotations

import hashlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from syft_core.exceptions import ConfigurationError, how_to_install
from syft_core.hook.forms import Form
from syft_core.hook.hook import FrameworkHook
from syft_core.hook.ranks import is_framework_tensor
from syft_core.ids import ID_BITS
from syft_core.plugins.backend import Backend, find_installed
from syft_core.plugins.manager import plugin_manager
from syft_core.tensors.schema import Column, Schema
from syft_core.values import Kwargs, Tensor
from syft_worker.columns import ColumnRule
from syft_worker.tables import TableFile, TableRules, draw_table, read_csv, read_parquet

DRAW = "draw"
"""The mock that a worker makes up itself, from the owner's declarations about the columns."""
MAX_MOCK_ROWS = 1_000_000
TABLES = {".csv": read_csv, ".parquet": read_parquet}
_LOADER = r"[A-Za-z_][\w.]*:[A-Za-z_]\w*"


@dataclass(frozen=True)
class DataSource:
    """A file, or a loader, and the options for its tensors."""

    file: Path | None = None
    loader: str | None = None
    """A function of the owner, ``module:function``, that returns a tensor, or tensors by name."""
    tags: tuple[str, ...] = ()
    private: tuple[str, ...] | None = None
    """The users who may have the values; None if everybody may."""
    description: str | None = None
    columns: tuple[str, ...] | None = None
    """Which columns of a table to load; None for all."""
    schema: Mapping[str, ColumnRule] | None = None
    """Declarations about columns, by name."""
    missing: str | float | None = None
    """How to handle missing values in columns without a rule in ``schema``; see ``ColumnRule.missing``."""
    mock: str | None = None
    """Data of the same form that is not real, for everybody: a file, a loader, or "draw"."""
    mock_rows: int = 100
    """Number of rows of a mock that is drawn."""
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
        known = [field.name for field in fields(cls)]
        options: Kwargs = {}
        for key, value in table.items():
            if key not in known:
                raise ConfigurationError(
                    f"cannot read a data source: it has no option {key!r}; choose from {', '.join(known)}"
                )
            expected, convert = _OPTIONS.get(key, ("a text", _read_text))
            try:
                options[key] = convert(value)
            except TypeError:
                raise ConfigurationError(
                    f"cannot read the option {key!r} of a data source: it is not {expected}; write it as in the example"
                ) from None
        if ("file" in table) == ("loader" in table):
            raise ConfigurationError("cannot read a data source: it needs a file or a loader; name one of them")
        if "file" in options:
            options["file"] = folder / Path(options["file"]).expanduser()
        if any(not re.fullmatch(r"#[^\s,:=]+", tag) for tag in options.get("tags", ())):
            raise ConfigurationError(
                f"cannot tag the data of {options.get('file') or options['loader']}: a tag is # and a word; "
                f"write them as #ages,#2026"
            )
        if "mock" in options and not _is_mock_without_file(options["mock"]):
            options["mock"] = str(folder / Path(options["mock"]).expanduser())
        return cls(**options)

    @property
    def rules(self) -> TableRules:
        """The owner's rules for the columns of a table."""
        return TableRules(self.columns, self.schema, self.missing)

    @property
    def has_rules(self) -> bool:
        """Whether the owner has rules for columns."""
        return not (self.columns is None and self.schema is None and self.missing is None)

    @property
    def of_mock(self) -> DataSource | None:
        """The source of the mock, unless it is drawn."""
        if self.mock is None or self.mock == DRAW:
            return None
        is_loader = re.fullmatch(_LOADER, self.mock) is not None
        file, loader = (None, self.mock) if is_loader else (Path(self.mock), None)
        return replace(self, file=file, loader=loader, mock=None, private=None)


def _is_mock_without_file(mock: str) -> bool:
    return mock == DRAW or re.fullmatch(_LOADER, mock) is not None


def _read_text(value: object) -> str:
    if type(value) is not str:
        raise TypeError
    return value


def _read_texts(value: object) -> tuple[str, ...]:
    if type(value) is not list:
        raise TypeError
    return tuple(map(_read_text, value))


def _read_missing(value: object) -> str | float:
    if type(value) not in (str, int, float):
        raise TypeError
    return value  # type: ignore[return-value]  # checked above


def _read_rows(value: object) -> int:
    if type(value) is not int or not 0 < value <= MAX_MOCK_ROWS:
        raise TypeError
    return value


def _read_rules(value: object) -> dict[str, ColumnRule]:
    if not isinstance(value, Mapping):
        raise TypeError
    return {name: ColumnRule.from_table(name, table) for name, table in value.items()}


_OPTIONS: dict[str, tuple[str, Callable[[object], Any]]] = {
    **dict.fromkeys(("tags", "private", "columns"), ("a list of texts", _read_texts)),
    "schema": ("a table of columns", _read_rules),
    "missing": ("a text or a number", _read_missing),
    "mock_rows": (f"a number from 1 to {MAX_MOCK_ROWS:,}", _read_rows),
}
"""The options that are not texts, and how they are read."""


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
        parts = list(_read(source, hook))
        mocks = {} if source.mock is None else _find_mocks(source, parts, hook)
        for part in parts:
            id, mock = _make_id(source, part.key), _make_id(source, part.key, "mock") if mocks else None
            if id in found:
                raise ConfigurationError(
                    f"cannot load {source}: another source has the same name; give each a name of its own: `name = ...`"
                )
            found[id] = _prepare(part, source, hook)
            found[id].id = id
            if mock is not None or part.columns:
                found[id]._syft_schema = Schema(part.columns, mock)
            if mock is not None:
                found[mock] = _prepare_mock(mocks[part.key], hook)
                found[mock].id = mock
    return list(found.values())


class SourcePart(NamedTuple):
    """A tensor of a source."""

    key: str
    """Its name; empty if there is only one, without a name."""
    tensor: Tensor
    columns: tuple[Column, ...] = ()
    """The columns, if it is a table."""


def _make_id(source: DataSource, *names: str) -> int:
    name = "/".join([source.name or (source.file.name if source.file else str(source.loader)), *names])
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> (64 - ID_BITS)


def _prepare(part: SourcePart, source: DataSource, hook: FrameworkHook) -> Tensor:
    prepared = hook.make_taggable(part.tensor)
    if source.private is not None:
        prepared = prepared.private_tensor(source.private)
    own = part.key or (source.file.stem if source.file else str(source.loader).partition(":")[2])
    prepared = prepared.tag(*source.tags, *([f"#{own}"] if part.key or not source.tags else []))
    return prepared if source.description is None else prepared.describe(source.description)


# --- mocks


def _find_mocks(source: DataSource, parts: Sequence[SourcePart], hook: FrameworkHook) -> dict[str, SourcePart]:
    """Return the mock of each part of a source; raise unless it has the same form."""
    if (given := source.of_mock) is None:
        return {part.key: _draw(source, part, hook) for part in parts}
    mocks = {part.key: part for part in _read(given, hook)}
    for part in parts:
        if part.key not in mocks:
            raise _unusable(source, f"it has nothing under {part.key!r}", "provide a mock of each tensor")
        _require_same_form(source, part, mocks[part.key], hook)
    return mocks


def _draw(source: DataSource, part: SourcePart, hook: FrameworkHook) -> SourcePart:
    if not part.columns:
        raise _unusable(source, "only tables can be drawn", "name a file or a loader with made-up data")
    table = draw_table(part.columns, source.rules, source.mock_rows)
    return SourcePart(part.key, hook.create_table(table.numbers), table.columns)


def _require_same_form(source: DataSource, part: SourcePart, mock: SourcePart, hook: FrameworkHook) -> None:
    """Raise unless a mock has the columns, the dtype and, but for its length, the shape of the data."""
    if [column.name for column in part.columns] != [column.name for column in mock.columns]:
        raise _unusable(source, "it has other columns", "give it the same columns in the same order")
    for real, made in zip(part.columns, mock.columns, strict=True):
        if real != made:
            raise _unusable(
                source,
                f"its column {real.name!r} has the type {made.type}, and that of the data has the type {real.type}",
                f"declare the type: `schema.{real.name}`",
            )
    form, other = hook.attributes.form_of(part.tensor), hook.attributes.form_of(mock.tensor)
    if form is None or other is None or _row_of(form) != _row_of(other):
        raise _unusable(source, "it has another form", "give it the same dtype and, but for its length, the same shape")


def _row_of(form: Form) -> tuple[object, ...]:
    return form.dtype, tuple(form.shape or ())[1:]


def _prepare_mock(part: SourcePart, hook: FrameworkHook) -> Tensor:
    mock = hook.make_taggable(part.tensor).tag("#mock").describe("a mock: made up, not real data")
    if part.columns:
        mock._syft_schema = Schema(part.columns)
    return mock


def _unusable(source: DataSource, why: str, advice: str) -> ConfigurationError:
    return ConfigurationError(f"cannot use the mock {source.mock!r} of {source}: {why}; {advice}")


# --- reading


def _read(source: DataSource, hook: FrameworkHook) -> Iterator[SourcePart]:
    value = _call(source) if source.file is None else _read_file(source.file, source, hook)
    if isinstance(value, TableFile):
        yield SourcePart("", hook.create_table(value.numbers), value.columns)
        return
    if source.has_rules:
        raise ConfigurationError(
            f"cannot load columns of {source}: it is not a table; leave `columns`, `schema` and `missing` out"
        )
    for key, tensor in value.items() if isinstance(value, Mapping) else [("", value)]:
        if not is_framework_tensor(type(tensor)):
            part = f" under {key!r}" if key else ""
            raise ConfigurationError(
                f"cannot load {source}: it has a {type(tensor).__name__}{part}, which is not a tensor of {hook.name}; "
                f"provide a tensor, or tensors by name"
            )
        named = getattr(tensor, "_syft_schema", None)
        yield SourcePart(str(key), tensor, () if named is None else named.columns)


def _read_file(path: Path, source: DataSource, hook: FrameworkHook) -> Any:
    suffix = path.suffix.lower()
    reader = hook.readers.get(suffix)
    if reader is None and suffix not in TABLES:
        known = ", ".join(sorted({*hook.readers, *TABLES}))
        raise ConfigurationError(
            f"cannot load {path}: {hook.name} reads no {suffix or 'such'} files; use one of {known}, or name a loader"
        )
    try:
        if reader is not None:
            return reader.read(path)
        return TABLES[suffix](path, source.rules)
    except ConfigurationError:
        raise
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        raise ConfigurationError(
            f"cannot load {path}: {package} is not installed; run `{how_to_install(package)}`"
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
