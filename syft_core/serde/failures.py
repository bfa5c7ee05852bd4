"""The codec for exceptions: a registered class, the message and plain attributes; reading one does not raise it.

Texts are sent without the directories of this machine.
"""

from __future__ import annotations

import builtins
import contextlib
import re
from functools import partial
from types import MemberDescriptorType

from syft_core import exceptions
from syft_core.exceptions import SerdeError
from syft_core.features import FEATURES
from syft_core.printing import printable
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

failures: Registry[str, type[Exception]] = Registry(
    "failures", advice="register its class with `register_failure`", load=partial(FEATURES.load, "error")
)


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
    plain = {name: _hide_paths(value) for name, value in _attributes_of(error).items() if _is_plain(value)}
    return qualified_name(listed), qualified_name(type(error)), _hide_paths(_text(error)), plain


def _detail(payload: Payload, _: Context) -> Exception:
    listed, raised, text, attributes = payload
    kind = failures.get(listed) if type(listed) is str else None
    if kind is None or type(raised) is not str or type(text) is not str or type(attributes) is not dict:
        raise SerdeError("cannot rebuild an exception: its class is not registered here; use `register_failure`")
    names, slots = set(dir(kind)), _slots_of(kind)
    are_valid = all(
        type(name) is str and (name in slots or name not in names) and _is_plain(x) for name, x in attributes.items()
    )
    require(are_valid, "an exception: an attribute is not plain or hides a method")
    # Not through __init__: its arguments are unknown.
    text = printable(text, lines=True)
    error = kind.__new__(kind, text)
    error.args = (text,)
    for name, value in attributes.items():
        if name in slots:
            slots[name].__set__(error, value)
        else:
            vars(error)[name] = value
    if raised != listed:
        vars(error)["raised_as"] = printable(raised)
    require(_is_printable(error), "an exception: it cannot be printed")
    return error


def _attributes_of(error: BaseException) -> dict[str, object]:
    found = vars(error).copy()
    for name, slot in _slots_of(type(error)).items():
        with contextlib.suppress(AttributeError):  # It was not set.
            found[name] = slot.__get__(error)
    return found


def _slots_of(kind: type) -> dict[str, MemberDescriptorType]:
    """Return the slots of a class, except those of base classes not written in Python."""
    members = [item for base in kind.__mro__ if "__slots__" in vars(base) for item in vars(base).items()]
    return {name: value for name, value in members if isinstance(value, MemberDescriptorType)}


def _is_printable(error: Exception) -> bool:
    try:
        return type(str(error)) is type(repr(error)) is str
    except Exception:  # noqa: BLE001  # whatever a class raises if an attribute is missing or has a wrong type
        return False


def _text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"[Errno {error.errno}] {error.strerror}"
    # str() of a KeyError quotes its argument, and would quote it again at the receiver.
    args = error.args
    return args[0] if len(args) == 1 and type(args[0]) is str else str(error)


def _hide_paths(value: object) -> object:
    """Reduce each absolute path in a plain value to its last part."""
    if type(value) is str:
        return _PATH.sub("", value) if "/" in value or "\\" in value else value
    return type(value)(map(_hide_paths, value)) if isinstance(value, (list, tuple)) else value


_PATH = re.compile(
    r"""(?<=['"])(?:[A-Za-z]:)?[/\\](?:[^'"/\\\n]+[/\\])+(?=[^'"/\\\n]*['"])"""  # quoted, perhaps with spaces
    r"""|(?:(?<=file://)|(?<![\w.:/\\<>~-]))(?:[A-Za-z]:)?[/\\](?:[^\s'"/\\:]+[/\\])+"""
)


def _is_plain(value: object) -> bool:
    if type(value) is list or type(value) is tuple:
        return all(type(x) in PLAIN_TYPES for x in value)
    return type(value) in PLAIN_TYPES


FAILURE = Codec(BaseException, 16, _simplify, _detail, subclasses=True)

for _kind in (*map(vars(builtins).get, _LISTED_BUILTINS.split()), *vars(exceptions).values()):
    if isinstance(_kind, type) and issubclass(_kind, Exception):
        register_failure(_kind)
