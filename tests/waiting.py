"""Wait, with a deadline, for what another thread or process does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T], seconds: float = 60, pause: float = 0.01) -> T:
    """Return the first true answer of ``condition``, or fail after ``seconds``."""
    deadline = time.monotonic() + seconds
    while True:
        is_last = time.monotonic() >= deadline
        if answer := condition():
            return answer
        if is_last:
            raise TimeoutError(f"{_describe(condition)} was not true within {seconds} s")
        time.sleep(pause)


def wait_for_end(*threads: Any, seconds: float = 60) -> None:
    """Wait until threads or processes have ended, or fail after ``seconds``."""
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
        if thread.is_alive():
            raise TimeoutError(f"{thread.name} did not end within {seconds} s")


def wait_for_result(call: Callable[[], T], seconds: float = 60) -> T:
    """Return what ``call`` returns, or fail after ``seconds``; for calls that have no timeout of their own.

    After a failure, its thread stays behind until it returns.
    """
    result: Future[T] = Future()
    threading.Thread(target=_answer, args=(call, result), daemon=True).start()
    try:
        return result.result(seconds)
    except TimeoutError:
        if result.done():  # The error of the call itself.
            raise
        raise TimeoutError(f"{_describe(call)} did not return within {seconds} s") from None


def _answer(call: Callable[[], T], result: Future[T]) -> None:
    try:
        result.set_result(call())
    except BaseException as error:  # noqa: BLE001  # raised by `result`
        result.set_exception(error)


def _describe(call: Callable[[], object]) -> str:
    code = getattr(call, "__code__", None)
    place = "" if code is None else f" ({code.co_filename}:{code.co_firstlineno})"
    return f"{getattr(call, '__qualname__', call)}{place}"
