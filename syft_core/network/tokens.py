"""Tokens: check a client's secret before sending it, and keep it out of texts."""

from __future__ import annotations

import os

from syft_core.exceptions import AuthenticationError
from syft_core.pictures.tables import one_line

VARIABLE = "SYFT_TOKEN"
"""The environment variable with the default token."""
MAX_TOKEN = 4096
_MIN_SECRET = 8
"""The minimum length of a token to be removed from texts: shorter ones are words, not secrets."""


def find_token(given: object = None, what: str = "the token") -> str | None:
    """Return the given token, the one in the environment, or None; ``what`` describes its source.

    Surrounding whitespace is stripped: files and copied lines end with it.
    """
    if given is None:
        given, what = os.environ.get(VARIABLE, "").strip() or None, f"the token in the variable {VARIABLE}"
    return None if given is None else read_token(given, what)


def read_token(given: object, what: str) -> str:
    """Strip whitespace around a token; raise, without quoting it, if it cannot be a token."""
    if type(given) is not str:
        raise AuthenticationError.unusable(what, f"it is a {type(given).__name__}, not a text")
    token = given.strip()
    if not token:
        raise AuthenticationError.unusable(what, "it is empty")
    if len(token) > MAX_TOKEN:
        raise AuthenticationError.unusable(what, f"it has more than {MAX_TOKEN:,} characters")
    if not (token.isascii() and token.isprintable()):
        raise AuthenticationError.unusable(what, "it has line breaks, or characters that are not ASCII")
    return token


def conceal(text: str, secret: str) -> str:
    """Return a text of another machine as one line, without the secret sent to that machine."""
    return one_line(text.replace(secret, "...") if len(secret) >= _MIN_SECRET else text)
