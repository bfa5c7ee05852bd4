"""Token files: who may connect to a worker, by secrets of which the worker keeps only hashes.

A token is 256 random bits, which cannot be guessed, so a plain SHA-256 of it is enough: slow hashes protect passwords.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import logging
import re
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from syft_core.exceptions import ConfigurationError, suggest
from syft_core.files import lock_folder, require_secrecy, write_file
from syft_core.network.identity import Identity
from syft_core.pictures.tables import one_line, text_table

PREFIX = "syft-"
"""Starts every secret, so that scanners of repositories and logs find it."""
_UNITS = {"m": 60, "h": 3600, "d": 86_400}
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Token:
    """One entry of a token file."""

    name: str
    user: str
    hash: str
    admin: bool = False
    expires: float | None = None
    """When it stops being valid, in seconds since 1970; None if never."""
    revoked: bool = False

    @property
    def state(self) -> str:
        """Return "valid", "revoked" or "expired"."""
        if self.revoked:
            return "revoked"
        return "expired" if self.expires is not None and time.time() >= self.expires else "valid"


class TokenFile:
    """The tokens of a worker, read again whenever the file changes; if it cannot be read, nobody is authenticated."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._seen: tuple[int, ...] | None = None
        self._tokens: list[Token] = []
        self._refresh()

    @classmethod
    def create(cls, path: Path) -> TokenFile:
        """Return the tokens in a file, which is made if it does not exist."""
        if not path.exists():
            write_file(path, b'{"format": 1, "tokens": []}', replace=False)
        return cls(path)

    def authenticate(self, secret: str) -> Identity | None:
        """Return who has this secret, or None; the log has the reason, which the client must not learn."""
        given, found = _hash(secret), None
        for token in self._read_current():  # All of them, so that the time does not depend on which one matches.
            if hmac.compare_digest(token.hash, given):
                found = token
        if found is None:
            _log.warning("refused a token: it is not in %s", self.path)
            return None
        if found.state != "valid":
            _log.warning("refused token %r of user %r: it is %s", found.name, found.user, found.state)
            return None
        return Identity(found.user, found.admin, found.name)

    def is_valid(self, identity: Identity) -> bool:
        """Return whether an identity would still be authenticated, for connections that are open."""
        return any(
            token.state == "valid" and Identity(token.user, token.admin, token.name) == identity
            for token in self._read_current()
        )

    def add(self, user: str, lifetime: float | None, admin: bool = False) -> tuple[Token, str]:
        """Add a token that is valid for some seconds, or for ever; return it and its secret, which is not stored."""
        secret = PREFIX + secrets.token_urlsafe(32)
        expires = None if lifetime is None else time.time() + lifetime
        with self._change() as tokens:
            name = f"{user}-{1 + sum(1 for token in tokens if token.user == user)}"
            token = Token(name, user, _hash(secret), admin, expires)
            tokens.append(token)
        return token, secret

    def revoke(self, name: str) -> Token:
        """Revoke a token by its name; a running worker notices."""
        with self._change() as tokens:
            for place, token in enumerate(tokens):
                if token.name == name:
                    tokens[place] = replace(token, revoked=True)
                    return tokens[place]
        listed = ", ".join(token.name for token in tokens) or "none"
        raise ConfigurationError(
            f"cannot revoke token {name!r}: {self.path} has no token of that name; choose one of these: {listed}"
        )

    def __iter__(self) -> Iterator[Token]:
        return iter(self._read_current())

    @contextmanager
    def _change(self) -> Iterator[list[Token]]:
        """Let a block change the tokens; commands that do so at the same time wait for one another."""
        with lock_folder(self.path.parent):
            self._refresh()
            tokens = list(self._tokens)
            yield tokens
            if tokens != self._tokens:
                data = {"format": 1, "tokens": [asdict(token) for token in tokens]}
                write_file(self.path, json.dumps(data, indent=1).encode())

    def _read_current(self) -> list[Token]:
        try:
            self._refresh()
        except ConfigurationError as error:
            _log.error("nobody can authenticate: %s", error)
            return []
        return self._tokens

    def _refresh(self) -> None:
        with self._lock:
            try:
                facts = self.path.stat()
                require_secrecy(self.path)
                seen = facts.st_mtime_ns, facts.st_size, facts.st_ino
                if seen != self._seen:
                    self._tokens = _parse(self.path)
                    self._seen = seen
            except OSError as error:
                raise ConfigurationError(
                    f"cannot read the tokens in {self.path}: {error.strerror}; "
                    f"make the file with `syft-core token add {self.path} --user NAME`"
                ) from None


def _parse(path: Path) -> list[Token]:
    try:
        data = json.loads(path.read_bytes())
        tokens = [Token(**fields) for fields in data["tokens"]]
        if data["format"] != 1 or not all(map(_is_well_formed, tokens)):
            raise ValueError
    except (ValueError, TypeError, KeyError):
        raise ConfigurationError(
            f"cannot read the tokens in {path}: it is not a token file of this release; restore it, or make a new one"
        ) from None
    return tokens


def _is_well_formed(token: Token) -> bool:
    texts, flags = (token.name, token.user, token.hash), (token.admin, token.revoked)
    return (
        all(type(text) is str for text in texts)
        and token.hash.isascii()
        and all(type(flag) is bool for flag in flags)
        and isinstance(token.expires, int | float | None)
    )


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


# --- the command


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``syft-core token add``, ``revoke`` and ``list``."""
    actions = commands.add_parser("token", help="add, revoke or list the tokens of a worker's users").add_subparsers(
        required=True, metavar="action"
    )
    add = actions.add_parser("add", help="add a token and print its secret, once")
    revoke = actions.add_parser("revoke", help="revoke a token; a running worker notices")
    listing = actions.add_parser("list", help="list the tokens, without secrets")
    for parser, run in ((add, _add), (revoke, _revoke), (listing, _list)):
        parser.add_argument("file", type=Path)
        parser.set_defaults(run=run)
    add.add_argument("--user", required=True, help="the user who gets it")
    add.add_argument("--expires", default="90d", help="how long it is valid: 30d, 12h, 15m or never (default: 90d)")
    add.add_argument("--admin", action="store_true", help="let it decide on release requests and see the worker's page")
    revoke.add_argument("name", nargs="?", help="the name that `add` and `list` print")
    revoke.add_argument("--user", help="all tokens of this user instead")
    for parser in (add, listing):
        parser.add_argument("--json", action="store_true", help="print JSON")


def _add(args: argparse.Namespace) -> str:
    lifetime = parse_lifetime(args.expires)
    require_user_name(args.user)
    token, secret = TokenFile.create(args.file).add(args.user, lifetime, args.admin)
    if args.json:
        return json.dumps({"name": token.name, "user": token.user, "expires": token.expires, "secret": secret})
    return f"token {token.name}, {_describe_expiry(token)}; it is shown only now:\n{secret}"


def _revoke(args: argparse.Namespace) -> str:
    if (args.name is None) == (args.user is None):
        raise ConfigurationError("cannot revoke a token: name either a token or, with --user, a user")
    tokens = TokenFile(args.file)
    if args.user is None:
        token = tokens.revoke(args.name)
        return f"token {token.name} of user {token.user} is revoked"
    names = [token.name for token in tokens if token.user == args.user and token.state != "revoked"]
    if not names:
        advice = suggest(args.user, {token.user for token in tokens}, "see `syft-core token list`")
        raise ConfigurationError(f"cannot revoke the tokens of {args.user!r}: the user has none; {advice}")
    for name in names:
        tokens.revoke(name)
    return f"the tokens of user {args.user} are revoked: {', '.join(names)}"


def _list(args: argparse.Namespace) -> str:
    if args.json:
        names = ("name", "user", "state", "admin", "expires")
        return json.dumps([{name: getattr(token, name) for name in names} for token in TokenFile(args.file)], indent=1)
    rows = [
        (token.name, one_line(token.user), token.state, "admin" if token.admin else "", _describe_expiry(token))
        for token in TokenFile(args.file)
    ]
    return text_table(("name", "user", "state", "rights", "expiry"), rows)


def require_user_name(user: str) -> None:
    """Raise unless a name is plain: names that look alike, or that are paths, could be confused."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}", user):
        raise ConfigurationError(
            f"cannot use {user!r} as a user: a user is 1 to 64 of the characters A-Z a-z 0-9 . _ @ + - and starts with "
            f"a letter or digit; choose another name"
        )


def parse_lifetime(text: str) -> float | None:
    """Return "30d", "12h" or "15m" in seconds, and "never" as None.

    >>> parse_lifetime("2h")
    7200.0
    """
    if text == "never":
        return None
    match = re.fullmatch(r"([1-9]\d{0,5})([mhd])", text)
    if match is None:
        raise ConfigurationError(f"cannot read the time {text!r}: it is malformed; write 30d, 12h, 15m or never")
    return float(match[1]) * _UNITS[match[2]]


def _describe_expiry(token: Token) -> str:
    if token.expires is None:
        return "never expires"
    return time.strftime("valid until %Y-%m-%d %H:%M UTC", time.gmtime(token.expires))
