"""The codec for exceptions: a registered class, the message and plain attributes; reading one does not raise it."""

from __future__ import annotations

import builtins

from syft_core import exceptions
from syft_core.exceptions import SerdeError
from syft_core.registry import Registry
from syft_core.serde.codec import Codec, qualified_name
from syft_core.serde.context import Context
from syft_core.serde.received import require
from syft_core.values import Payload

PLAIN_TYPES = (str, int, float, bool, type(None))

# Warnings can be configured to be raised as errors.
_LISTED_BUILTINS = (
    "Exception ArithmeticError AssertionError AttributeError BufferError ConnectionError EOFError FloatingPointError "
    "ImportError IndexError KeyError LookupError MemoryError NameError NotImplementedError OSError OverflowError "
    "PermissionError RecursionError RuntimeError StopIteration TimeoutError TypeError ValueError ZeroDivisionError "
    "Warning DeprecationWarning FutureWarning RuntimeWarning UserWarning"
)

failures: Registry[str, type[Exception]] = Registry("failures", advice="register its class with `register_failure`")


def register_failure(kind: type[Exception]) -> None:
    """Preserve your own exception class on the wire; other classes arrive as their nearest registered base."""
    failures.register(qualified_name(kind), kind)


def _simplify(error: BaseException, _: Context) -> tuple[object, ...]:
    listed = next((base for base in type(error).__mro__ if failures.get(qualified_name(base)) is base), None)
    if listed is None:
        raise SerdeError(
            f"cannot serialize a {qualified_name(type(error))}: it asks this process to stop, so it is not sent; "
            f"catch it here"
        )
    plain = {name: value for name, value in vars(error).items() if _is_plain(value)}
    return qualified_name(listed), qualified_name(type(error)), _text(error), plain


def _detail(payload: Payload, _: Context) -> Exception:
    listed, raised, text, attributes = payload
    kind = failures.get(listed) if type(listed) is str else None
    if kind is None or type(raised) is not str or type(text) is not str or type(attributes) is not dict:
        raise SerdeError("cannot rebuild an exception: its class is not registered here; use `register_failure`")
    names = set(dir(kind))
    are_valid = all(type(name) is str and name not in names and _is_plain(x) for name, x in attributes.items())
    require(are_valid, "an exception: an attribute is not plain or hides a method")
    # Not through __init__: its arguments are unknown.
    error = kind.__new__(kind, text)
    error.args = (text,)
    vars(error).update(attributes)
    if raised != listed:
        vars(error)["raised_as"] = raised
    return error


def _text(error: BaseException) -> str:
    # str() of a KeyError quotes its argument, and would quote it again at the receiver.
    args = error.args
    return args[0] if len(args) == 1 and type(args[0]) is str else str(error)


def _is_plain(value: object) -> bool:
    if type(value) is list or type(value) is tuple:
        return all(type(x) in PLAIN_TYPES for x in value)
    return type(value) in PLAIN_TYPES


FAILURE = Codec(BaseException, 16, _simplify, _detail, subclasses=True)

for _kind in (*map(vars(builtins).get, _LISTED_BUILTINS.split()), *vars(exceptions).values()):
    if isinstance(_kind, type) and issubclass(_kind, Exception):
        register_failure(_kind)
