"""Read the conditions that rules of an owner have in common, as TOML or a program gives them and JSON can express them.

Each function raises ``ValueError`` with the reason if a value is wrong, as the end of a sentence about the condition.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from datetime import time as clock_time

from syft_core.values import Json

DAY = 86_400.0


def read_text(value: Json) -> str:
    """Return a text that is not empty."""
    if type(value) is not str or not value.strip():
        raise ValueError(f"must be a text, not {value!r}")
    return value


def read_tags(value: Json) -> list[str]:
    """Return tags in order, given as a list, or as one text.

    >>> read_tags("#scans")
    ['#scans']
    """
    tags = [value] if type(value) is str else value
    if not isinstance(tags, list | tuple) or not tags or not all(type(tag) is str and tag for tag in tags):
        raise ValueError(f"must be a list of at least one tag, such as ['#scans'], not {value!r}")
    return sorted(set(tags))


def read_count(value: Json) -> int:
    """Return a positive whole number."""
    if type(value) is not int or not 0 < value < 2**31:
        raise ValueError(f"must be a whole number of at least 1, not {value!r}")
    return value


def read_until(value: Json) -> str:
    """Return a date, or a date and a time, as text."""
    text = value.isoformat() if isinstance(value, date) else value
    try:
        read_moment(read_text(text))
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"must be a date, such as 2027-01-31, or a date and a time, not {value!r}") from None
    return str(text)


def read_moment(until: str) -> float:
    """Return the end of a day, or a moment; without a time zone, in that of this machine."""
    if len(until) == len("2027-01-31"):
        return datetime.combine(date.fromisoformat(until) + timedelta(days=1), clock_time()).timestamp()
    return datetime.fromisoformat(until).timestamp()
