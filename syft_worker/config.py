"""WorkerConfig: everything that the owner of a served worker decides, from a TOML file or the command line."""

from __future__ import annotations

import ipaddress
import re
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from syft_core.exceptions import ConfigurationError, suggest
from syft_core.network.address import DEFAULT_PORT, is_loopback
from syft_core.values import Json, Table
from syft_core.workers.seeing.permissions import POLICIES
from syft_sums.errors import SumRuleError
from syft_sums.rules import read_conditions as read_sum_conditions
from syft_sums.rules import read_members
from syft_worker.allowances import DEFAULT, Allowance
from syft_worker.certificates import require_host
from syft_worker.data import DataSource
from syft_worker.desk.approvals import read_conditions
from syft_worker.desk.errors import ApprovalError
from syft_worker.notices import require_target

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EXAMPLE = Path(__file__).with_name("example.toml")
"""A configuration file that explains every key."""
MAX_THREADS = 1024
_MAX_NUMBER = {int: 2**63 - 1}
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


class Conditions(Table):
    """The conditions of a rule; see ``desk/approvals.py``."""


class SumConditions(Table):
    """The conditions of the rule for sums; see ``syft_sums/rules.py``."""


@dataclass(frozen=True)
class PeerConfig:
    """Another worker, to which this one may send objects."""

    url: str
    """For instance ``wss://north.example.org:8777``."""
    ca: Path | None = None
    """The certificates to trust, instead of those of the system."""
    name: str | None = None
    """The name in its certificate, if the address is that of a tunnel."""


@dataclass(frozen=True)
class WorkerLimits:
    """The limits of the serving process, for all users together."""

    memory: int | None = None
    """Bytes of data in memory; by default three quarters of the memory of the machine or its control group."""
    operation_seconds: float = 60
    """How long one operation may run until the process is ended and started again."""
    ban_seconds: float = 86_400
    """How long an operation that ended the process is refused to the user who sent it."""
    session_seconds: float = 3600
    """How long the session of a client without a connection is kept."""
    message_bytes: int | None = None
    """Maximum bytes of one message; by default as many as its user may have on the worker."""
    connections: int = 1000


@dataclass(frozen=True)
class WorkerConfig:
    """A served worker; paths in a file are relative to its folder."""

    id: str = "worker"
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    page_port: int | None = None
    """The port of the page for the owner; None for no page."""
    page_hosts: tuple[str, ...] = ()
    """Names of the page in addition to ``host``, those of the certificate, and localhost."""
    trusted_proxy: tuple[str, ...] = ()
    """The addresses of proxies in front of the page, which say who asks and whether they use TLS."""
    framework: str | None = None
    """The only framework to serve; by default all that are installed, of which the first loads the data."""
    threads: int | None = None
    """Threads for one operation; by default the choice of the frameworks, within the limit of the control group."""
    data: tuple[DataSource, ...] = ()
    token_file: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    """Who signs the certificates of clients; the user is the common name."""
    policy: str = "unless_private"
    ledger: Path | None = None
    ledger_bytes: int | None = None
    """The size from which a new file continues the ledger; by default it is one file."""
    store: Path | None = None
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    trusted: tuple[str, ...] = ()
    """The workers with which this one may compute on shares of private data."""
    limits: WorkerLimits = field(default_factory=WorkerLimits)
    users: Mapping[str, Allowance] = field(default_factory=dict)
    peers: Mapping[str, PeerConfig] = field(default_factory=dict)
    rules: Mapping[str, Conditions] = field(default_factory=dict)
    """Rules: what users may have without a decision for each request."""
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The fingerprints of the workers whom the owner counts in sums, by the name of the organisation."""
    aggregates: SumConditions | None = None
    """The rule for sums: results leave only together with those of other workers."""
    request_days: float = 30
    """Days after which an undecided request or an unused approval expires; 0 means never."""
    on_request: str | None = None
    """A command, or an http(s) address, that is notified of each new release request."""

    @property
    def every_rule(self) -> Mapping[str, Table]:
        """The rules by name, with the one for sums."""
        return {**self.rules, **({} if self.aggregates is None else {"aggregates": self.aggregates})}

    @property
    def has_authentication(self) -> bool:
        """Whether users are known by a token file or certificates."""
        return self.token_file is not None or self.client_ca is not None

    def require_valid(self) -> WorkerConfig:
        """Return the configuration; raise if its parts contradict each other."""
        local = is_loopback(self.host)
        if self.cert is None and (self.client_ca is not None or not local):
            why = "without TLS, others on the network can read and change what is sent"
            raise ConfigurationError(
                f"cannot serve on {self.host} without a certificate: {why}; give `cert` and `key` "
                f"(`syft-core certs` makes them), or listen on 127.0.0.1"
            )
        if not (self.has_authentication or local):
            raise ConfigurationError(
                f"cannot serve on {self.host} without authentication: anyone could connect; "
                f"give `token_file` (`syft-core token add` makes it) or `client_ca`"
            )
        if self.key is not None and self.cert is None:
            raise ConfigurationError("cannot use `key` without `cert`: the worker would not use TLS; give both")
        if self.page_port is not None and self.page_port == self.port != 0:
            raise ConfigurationError(f"cannot serve the page on port {self.port}: the worker uses it; choose another")
        if self.policy not in POLICIES:
            raise ConfigurationError(f"cannot use the policy {self.policy!r}: {_choose(self.policy, POLICIES)}")
        for id in (self.id, *self.peers):
            _require_id(id)
        for address in self.trusted_proxy:
            require_address(address)
        if self.on_request is not None:
            require_target(self.on_request)
        for host in self.page_hosts:
            require_host(host, "use the name in page_hosts")
        self._require_usable_limits()
        self._require_usable_sums()
        return self

    def _require_usable_sums(self) -> None:
        if self.aggregates is not None and (self.ledger is None or self.store is None):
            raise ConfigurationError(
                "cannot use [aggregates] without a ledger and a store: after a restart, the worker could repeat a "
                "round, and would have another key; give `ledger` and `store`"
            )
        try:
            read_members(self.members)
        except SumRuleError as error:
            raise ConfigurationError(str(error)) from None
        least = 0 if self.aggregates is None else self.aggregates["at_least"]
        if least > len(self.members) + 1:
            raise ConfigurationError(
                f"cannot use aggregates.at_least = {least}: there are {len(self.members)} members, so no sum could "
                f"have as many workers; add their fingerprints to [members]"
            )

    def _require_usable_limits(self) -> None:
        if self.threads is not None and not 0 < self.threads <= MAX_THREADS:
            raise ConfigurationError(
                f"cannot compute with {self.threads} threads: it is not a number of threads that a machine uses; "
                f"choose 1 to {MAX_THREADS}"
            )
        for name in ("memory", "operation_seconds", "ban_seconds", "message_bytes", "connections"):
            if getattr(self.limits, name) == 0:
                raise ConfigurationError(f"cannot use limits.{name} = 0: nobody could use the worker; choose more")
        for user, allowance in self.users.items():
            if 0 in (allowance.cpu_seconds, allowance.messages):
                raise ConfigurationError(
                    f"cannot limit users.{user} to 0 CPU seconds or messages: every command would wait forever; "
                    f"write connections = 0 to keep a user out"
                )

    def to_table(self) -> Table:
        """Return the configuration as ``parse_config`` reads it."""
        table: Table = _to_plain(self)
        return table


def read_config(path: Path) -> WorkerConfig:
    """Read a TOML file."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}; check the path") from None
    except (ValueError, UnicodeError) as error:
        raise ConfigurationError(
            f"cannot read {path}: it is not a TOML file ({error}); start from `syft-core worker --example`"
        ) from None
    return parse_config(table, path.parent, str(path))


def parse_config(table: Mapping[str, object], folder: Path = Path(), where: str = "the options") -> WorkerConfig:
    """Return the configuration in a table; raise for unknown keys and values of a wrong type."""
    config: WorkerConfig = _Located(folder).convert_table(WorkerConfig, table, where)
    return config


def override(config: WorkerConfig, table: Mapping[str, Json]) -> WorkerConfig:
    """Return a configuration with the options of the command line in place of those that it has."""
    given = parse_config(table)
    limits = replace(config.limits, **{name: getattr(given.limits, name) for name in table.get("limits", {})})
    return replace(config, **{**{name: getattr(given, name) for name in table}, "limits": limits})


class _Located:
    """Converts tables to dataclasses; paths are relative to a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def convert_table(self, cls: Any, table: Any, where: str) -> Any:
        _require_table(table, where)
        kinds = get_type_hints(cls)
        for key in table:
            if key not in kinds:
                raise ConfigurationError(f"cannot read {where}: there is no key {key!r}; {_choose(key, kinds)}")
        missing = [f.name for f in fields(cls) if f.default is f.default_factory is MISSING and f.name not in table]
        if missing:
            raise ConfigurationError(f"cannot read {where}: {missing[0]!r} is missing; add it")
        return cls(**{key: self._convert(kinds[key], value, f"{where}: {key}") for key, value in table.items()})

    def _convert(self, kind: Any, value: Any, where: str) -> Any:
        origin, args = get_origin(kind), get_args(kind)
        if origin in (Union, types.UnionType):
            kinds = [arg for arg in args if arg is not type(None)]
            return None if value is None else self._convert(kinds[0], value, where)
        if origin is Literal:
            if value not in args:
                raise ConfigurationError(f"cannot read {where}: it is {value!r}; {_choose(str(value), args)}")
            return value
        if origin is tuple:
            items = value if isinstance(value, list | tuple) else [value]
            return tuple([self._convert(args[0], item, where) for item in items])
        if origin is Mapping:
            _require_table(value, where)
            return self._convert_entries(args[1], value, where)
        if kind is DataSource:
            read = DataSource.parse if isinstance(value, str) else DataSource.from_table
            return read(value, self._folder)
        return self.convert_table(kind, value, where) if is_dataclass(kind) else self._convert_plain(kind, value, where)

    def _convert_entries(self, kind: Any, value: Mapping[str, Json], where: str) -> Table:
        """Convert the entries of a table by name; users inherit from the entry called "default"."""
        if kind is Conditions:
            return {
                name: Conditions(self._read_conditions(read_conditions, name, entry, f"{where}.{name}"))
                for name, entry in value.items()
            }
        if get_origin(kind) is tuple:
            return {name: self._convert(kind, entry, f"{where}.{name}") for name, entry in value.items()}
        shared = value.get(DEFAULT, {}) if kind is Allowance else {}
        return {
            name: self.convert_table(
                kind, {**shared, **entry} if isinstance(entry, Mapping) else entry, f"{where}.{name}"
            )
            for name, entry in value.items()
        }

    @staticmethod
    def _read_conditions(read: Callable[[str, Table], Table], name: str, table: Any, where: str) -> Table:
        _require_table(table, where)
        try:
            return read(name, table)
        except (ApprovalError, SumRuleError) as error:
            raise ConfigurationError(f"cannot read {where}: {error}") from None

    def _convert_plain(self, kind: Any, value: Any, where: str) -> Any:
        if kind is SumConditions:
            return SumConditions(self._read_conditions(read_sum_conditions, "aggregates", value, where))
        if kind is Path and isinstance(value, str | Path):
            return (self._folder / Path(value).expanduser()).absolute()
        if kind is int and isinstance(value, str):
            value = _parse_size(value, where)
        fits = isinstance(value, int | float if kind is float else kind) and not isinstance(value, bool)
        if not fits or (kind in (int, float) and not 0 <= value <= _MAX_NUMBER.get(kind, inf)):
            name = {int: "a number", float: "a number", Path: "a path"}.get(kind, "a text")
            raise ConfigurationError(f"cannot read {where}: expected {name}, got {value!r}; write it as in `--example`")
        return value


def _require_table(value: object, where: str) -> None:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"cannot read {where}: expected a table; write it as in `--example`")


def _require_id(id: str) -> None:
    """Raise unless the id of a worker fits a header, and differs from all ids of clients, which contain an @."""
    if not re.fullmatch(r"(?! )[ -?A-~]{1,64}(?<! )", id):
        raise ConfigurationError(
            f"cannot use {id!r} as the id of a worker: an id is 1 to 64 ASCII characters without @, line breaks, and "
            f"spaces at its ends; choose another one"
        )


def require_address(address: str) -> None:
    """Raise unless a text is the address of a machine."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        raise ConfigurationError(
            f"cannot trust the proxy {address!r}: it is not an IP address; write for instance 127.0.0.1"
        ) from None


def _parse_size(text: str, where: str) -> int:
    number = text.strip().upper()
    for unit, factor in _UNITS.items():
        if number.endswith(unit) and number.removesuffix(unit).strip().isdecimal():
            return int(number.removesuffix(unit)) * factor
    if number.isdecimal():
        return int(number)
    raise ConfigurationError(f"cannot read {where}: {text!r} is not a number or a size; write 64MB or 4GB")


def _choose(key: str, known: Any) -> str:
    return suggest(key, known, f"choose from {', '.join(known)}")


def _to_plain(value: object) -> Any:
    if is_dataclass(value):
        values = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: _to_plain(item) for name, item in values.items() if item is not None}
    if isinstance(value, Mapping):
        return {name: _to_plain(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [_to_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
