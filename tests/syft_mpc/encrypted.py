"""Share numbers with fixed precision, and read them again."""

from __future__ import annotations

from typing import Any


def share(x: Any, workers: list[Any], digits: int = 16) -> Any:
    return x.fix_prec(base=2, precision_fractional=digits).share(*workers[:2], crypto_provider=workers[-1])


def read(x: Any) -> Any:
    return x.get().float_prec()
